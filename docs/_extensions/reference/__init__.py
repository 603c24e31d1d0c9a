"""The reference, generated from the code: `generated` makes all parts, `setup` has Sphinx write them.

Each part is MyST text in docs/reference/generated/NAME.txt, which a page of docs/reference includes. It is written
before any page is read, and only if it has changed, so one build is enough and the same code gives the same pages.
Nothing here imports Sphinx: tests/docs/test_reference.py uses the same functions.

python_names, command_line, service, files, games   what there is, and the parts that list it
docstrings                                           docstrings as reStructuredText, for autodoc
markdown                                             tables
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from reference import command_line, files, games, python_names, service
from reference.docstrings import to_rst

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def generated() -> dict[str, str]:
    """Every part by its name."""
    parts: dict[str, str] = {
        "python": python_names.python_overview(),
        "commands": command_line.commands_part(),
        "options": command_line.top_options(),
        "serve": command_line.serve_part(),
        "variables": command_line.variables_part(),
        "http": service.http_part(),
        "statuses": service.statuses_part(),
        "schemas": service.schemas_part(),
        "terms": service.terms_part(),
        "error-tree": service.error_tree(),
        "errors": service.errors_part(),
        "refusals": service.refusals_part(),
        "protocol": service.protocol_part(),
        "metrics": service.metrics_part(),
        "series": service.series_part(),
        "events": service.events_part(),
        "event-fields": service.event_fields_part(),
        "notifications": service.notifications_part(),
        "budget-units": files.budget_units_part(),
        "shipped": files.shipped_part(),
        "policies-table": games.policies_table(),
        "policies": games.policies_part(),
        "knowledge": games.knowledge_part(),
        "laws": games.laws_part(joint=False),
        "joint-laws": games.laws_part(joint=True),
        "families": games.families_part(ranged=True),
        "arms-families": games.families_part(ranged=False),
        "drifts": games.drifts_part(),
    }
    parts |= {f"keys-{title}": files.keys_part(title) for title in files.file_keys()}
    return parts | {f"python-{page}": python_names.python_page(page) for page in python_names.public()}


def write(folder: Path) -> None:
    """Write what has changed, and delete what there is no more."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = {f"{name}.txt": text for name, text in generated().items()}
    for name, text in parts.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for path in folder.iterdir():
        if path.name not in parts:
            path.unlink()


def setup(app: Sphinx) -> dict[str, bool]:
    def docstring(_app: Sphinx, what: str, name: str, _thing: Any, _options: Any, lines: list[str]) -> None:
        lines[:] = to_rst(python_names.attribute_docs(name) if what == "data" else "\n".join(lines))
        if lines[:1] and lines[0].startswith("Alias for field number"):  # what Python says of a NamedTuple's fields
            lines.clear()

    def signature(_app: Sphinx, *args: Any) -> tuple[str, str] | None:
        *_, arguments, returned = args
        return (arguments.replace("<factory>", "..."), returned) if arguments else None  # Sphinx cannot parse it

    app.connect("builder-inited", lambda app: write(Path(app.srcdir) / "reference" / "generated"))
    app.connect("autodoc-process-docstring", docstring)
    app.connect("autodoc-process-signature", signature)
    app.connect("viewcode-follow-imported", lambda app, module, name: python_names.unfollowed(module, name))
    # what it imports has threads, and a process that is forked from one with threads may wait for ever
    return {"parallel_read_safe": False, "parallel_write_safe": False}
