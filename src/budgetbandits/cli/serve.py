"""The command ``serve``. Each option may also come from an environment variable or from a file (`--config`).

The command line comes first, then the environment, then the file, and then the default: Typer's own order.
"""

from __future__ import annotations

import contextlib
import difflib
import math
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer

from budgetbandits.cli.service import DEFAULT_STORE, Address, public_address, use_password
from budgetbandits.errors import BadParameter, MissingExtra, install


def environment_variable(flag: str) -> str:
    """The environment variable of an option of ``serve``.

    >>> environment_variable("--root-path")
    'BUDGETBANDITS_ROOT_PATH'
    """
    return f"BUDGETBANDITS_{flag.removeprefix('--').replace('-', '_').upper()}"


def _option(flag: str, help: str, **more: Any) -> Any:
    return typer.Option(flag, envvar=environment_variable(flag), help=help, **more)


def _use_file(context: typer.Context, file: Path | None) -> Path | None:
    """Make what a file says the defaults of the other options."""
    if file is not None:
        context.default_map = read_config(file)
    return file


def read_config(file: Path) -> dict[str, Any]:
    """The options in a file, by name, if each is an option of `serve_command` and of its type."""
    try:
        settings = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadParameter(f"cannot read {file}: {reason}; name a readable file with --config") from None
    except tomllib.TOMLDecodeError as error:
        raise BadParameter(f"{file} is no TOML: {error}; write lines such as port = 8000 or host = '0.0.0.0'") from None
    types = get_type_hints(serve_command)
    names = [name for name in types if name not in ("context", "config", "return")]
    for name, value in settings.items():
        if name not in names:
            near = difflib.get_close_matches(name.lower().replace("-", "_"), names, 1, 0.0)[0]
            raise BadParameter(f"{file}: there is no option {name!r:.60}; did you mean {near}?")
        kinds = get_args(types[name]) or (types[name],)
        numbers = int if int in kinds else int | float if float in kinds else None
        if isinstance(value, bool) or not isinstance(value, numbers or str):
            raise BadParameter(
                f"{file}: {name} is {value!r:.60}; write {'a number' if numbers else 'a text in quotes'}"
            )
        if numbers:
            _check_bounds(file, name, float(value))
    return settings


def _check_bounds(file: Path, name: str, value: float) -> None:
    """Refuse a number that its option does not take: Typer's own message would blame the environment for it."""
    [option] = get_type_hints(serve_command, include_extras=True)[name].__metadata__
    least, most = option.min, option.max
    if not least <= value <= (math.inf if most is None else most):
        bounds = f"{least:.15g} or more" if most is None else f"{least:.15g} to {most:.15g}"
        raise BadParameter(f"{file}: {name} is {value:.15g}; write {bounds}")


Config = Annotated[
    Path | None, _option("--config", "A TOML file with any of these options.", is_eager=True, callback=_use_file)
]
PasswordFile = Annotated[Path | None, _option("--store-password-file", "A file with the password of PostgreSQL.")]
Host = Annotated[str, _option("--host", "The address to listen on; 127.0.0.1 is this machine only.")]
Port = Annotated[int, _option("--port", "The port.", min=1, max=65535)]
UnixSocket = Annotated[
    Path | None, _option("--unix-socket", "A file to listen on in place of a port, for a proxy on this machine.")
]
PublishedPath = Annotated[
    str, _option("--root-path", "The path below which a proxy publishes the server, such as /bandits.")
]
TlsCertificate = Annotated[
    Path | None, _option("--tls-cert", "A PEM file with the certificate, to serve HTTPS. With --tls-key.")
]
TlsKey = Annotated[Path | None, _option("--tls-key", "A PEM file with the certificate's key.")]
WorkerCount = Annotated[
    int, _option("--workers", "How many processes serve. More than one needs PostgreSQL.", min=1, max=256)
]
KeyFile = Annotated[
    Path | None,
    _option(
        "--key-file",
        "The file for the first admin key. Without it a terminal shows the key; without a terminal it goes to "
        "budgetbandits-admin.key.",
    ),
]
PerAddress = Annotated[
    int | None, _option("--connections-per-address", "The most from one client. Without it, half of all.", min=1)
]
SeriesNames = Annotated[
    str | None,
    _option(
        "--campaign-metrics",
        "Which series each campaign has in /metrics, separated by commas, or none. Without it, all.",
    ),
]
SeriesCount = Annotated[
    int, _option("--metrics-campaigns", "How many campaigns have series in /metrics: the most urgent ones.", min=0)
]
RetentionDays = Annotated[
    float | None,
    _option(
        "--retention",
        "Days for which events and decisions are kept, and feedback is taken. Then they move to --archive. "
        "Without it, for ever.",
        min=1.0,
    ),
]
ArchiveFolder = Annotated[Path | None, _option("--archive", "The folder for what is older: Parquet files by month.")]


def serve_command(
    context: typer.Context,
    config: Config = None,
    store: Address = DEFAULT_STORE,
    store_password_file: PasswordFile = None,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    unix_socket: UnixSocket = None,
    root_path: PublishedPath = "",
    tls_cert: TlsCertificate = None,
    tls_key: TlsKey = None,
    workers: WorkerCount = 1,
    key_file: KeyFile = None,
    connections_per_address: PerAddress = None,
    campaign_metrics: SeriesNames = None,
    metrics_campaigns: SeriesCount = 1000,
    retention: RetentionDays = None,
    archive: ArchiveFolder = None,
) -> None:
    """Serve campaigns over HTTP; the first time, an admin key is made."""
    if (retention is None) != (archive is None):
        raise BadParameter("--retention and --archive go together; give the days and the folder, or neither")
    if retention is not None and find_spec("polars") is None:  # else noticed when the first events are old enough
        raise MissingExtra(f"--retention writes Parquet, which needs polars; {install('archive')}")
    if (tls_cert is None) != (tls_key is None):
        raise BadParameter("--tls-cert and --tls-key go together; give both files, or neither")
    if workers > 1 and "://" not in store:
        raise BadParameter(
            f"--workers {workers} needs PostgreSQL: SQLite lets one process write at a time, so more of them would "
            "only wait for each other; set --store postgresql://…, or leave --workers out"
        )
    if unix_socket is not None and any(_is_given(context, name) for name in ("host", "port")):
        raise BadParameter("--unix-socket takes the place of --host and --port; give it, or these, not both")
    if store_password_file is not None:
        use_password(store_password_file)
    from budgetbandits.web.servers import listening, listening_file

    # before the slow imports, and before a key is shown that would scroll away
    with contextlib.closing(listening(host, port)) if unix_socket is None else listening_file(unix_socket) as listener:
        from budgetbandits.service.audit.reader import Job
        from budgetbandits.service.http.app import checked_root_path
        from budgetbandits.service.http.campaign_metrics import CampaignSeries
        from budgetbandits.service.http.server import ServerOptions, check_tls, serve

        tls = None if tls_cert is None or tls_key is None else (tls_cert, tls_key)
        if tls is not None:
            check_tls(*tls)
        options = ServerOptions(
            store, public_address(store), key_file, connections_per_address,
            series=CampaignSeries.parse(campaign_metrics, metrics_campaigns),
            retention=None if retention is None else Job("prune", archive=str(archive), days=retention),
            root_path=checked_root_path(root_path), tls=tls, unix_socket=unix_socket, workers=workers,
        )  # fmt: skip
        serve(listener, options)


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"
