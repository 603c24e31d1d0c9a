"""Every code block of the manual runs: each page in a folder of its own, block after block.

- ``python``: run in one namespace per page; with ``>>>`` what is printed is compared, ``...`` stands for anything.
  Numbers with decimals may be a tenth off, since a machine that rounds otherwise plays another game.
  A first line ``# name.py`` writes a file instead of running it.
- ``console``: lines that begin with ``$`` are run by bash and must succeed; what stands below a command is compared
  with what it prints, ``...`` for anything. A command that serves is left running until the page ends.
- ``toml``, ``json``, ``yaml``, ``csv``: a first line ``# name.toml`` writes the file; JSON and TOML are parsed.
- An HTML comment ``<!-- setup`` before a block is Python that readers need not see: it waits for servers, stands in for
  others', and closes what was opened. What is shown uses no name and no file of it. ``<!-- not run: reason -->``
  leaves the next block out.
- ``text``, ``bibtex``, ``mermaid`` and MyST's directives are no code. Every other language is refused.
"""

import ast
import builtins
import contextlib
import doctest
import io
import json
import math
import os
import re
import socket
import ssl
import subprocess
import symtable
import sys
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"^<!-- setup\n(?P<setup>.*?)^-->"
    r"|^(?:<!-- (?P<skip>not run: [^\n]+?) -->\n+)?"
    r"^(?P<fence>```+)(?P<language>[\w-]*|\{[\w:-]+\}[^\n]*)\n(?P<text>.*?)^(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)
FILES = ("toml", "json", "yaml", "csv", "ini", "nginx")
PROSE = ("text", "bibtex")
SERVES = re.compile(r"budgetbandits (?:.* )?(?:serve|view)\b|demo --serve")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
PARTS = re.compile(r"(\.\.\.)|(-?\d[\d,]*\.\d+)|(\s+)|([^.\d\s-]+|.)")
TOLERANCE = 0.1


class Checker(doctest.OutputChecker):
    """Compares what is printed with what a page shows."""

    def check_output(self, want, got, optionflags):
        if super().check_output(want, got, optionflags):
            return True
        kinds = (".*?", r"(-?\d[\d,]*\.\d+)", r"\s+")
        pattern = "".join(
            kinds[found.lastindex - 1] if found.lastindex < 4 else re.escape(found[0])
            for found in PARTS.finditer(want.strip())
        )
        pattern = re.sub(r"\A\.\*\?\\s\+|\\s\+\.\*\?\Z", "(?:.*)", pattern)  # "..." may be no line at all
        said = re.fullmatch(pattern, got.strip(), re.DOTALL)
        if said is None:
            return False
        numbers = ([float(each.replace(",", "")) for each in found] for found in (decimals(want), said.groups()))
        return all(math.isclose(shown, printed, rel_tol=TOLERANCE) for shown, printed in zip(*numbers, strict=True))


def decimals(text):
    return [found[2] for found in PARTS.finditer(text) if found[2]]


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    line: int
    hidden: bool = False


def blocks(page):
    text = page.read_text()
    for found in BLOCK.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        if found["setup"] is not None:
            yield Block("python", found["setup"], line, hidden=True)
        elif found["skip"] is None and found["language"] not in PROSE and not found["language"].startswith("{"):
            yield Block(found["language"], found["text"], line)


def code(page):
    return [block for block in blocks(page) if block.language]


def _encrypted(connection):
    """The same connection by TLS, whoever has signed the certificate."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(connection)


class Page:
    """A reader who follows a page in an empty folder."""

    def __init__(self, path, folder):
        self.path, self.folder = path, folder
        self.names = {"__name__": "__main__"}
        self.servers = []
        scripts = str(Path(sys.executable).parent)
        self.environment = os.environ | {
            "PATH": f"{scripts}:{os.environ['PATH']}", "HOME": str(folder), "COLUMNS": "200", "TERM": "dumb",
            "MPLBACKEND": "agg", "PYTHONWARNINGS": "error",
        }  # fmt: skip

    def run(self, block):
        name = re.match(r"# ([\w./-]+\.\w+)\n", block.text)
        if name:
            target = self.folder / name[1]
            target.parent.mkdir(parents=True, exist_ok=True)
            commented = block.language in ("python", "toml", "yaml", "nginx", "ini")
            target.write_text(block.text if commented else block.text[name.end() :])
        if block.language in FILES:
            self.parse(block.language, block.text if not name else target.read_text())
        elif block.language == "console":
            self.converse(block)
        elif block.language == "python":
            if name is None:
                self.execute(block)
        else:
            pytest.fail(f"{self.path}:{block.line}: no way to run a block of {block.language!r}")

    def parse(self, language, text):
        if language == "toml":
            tomllib.loads(text)
        elif language == "json":
            json.loads(text)

    def execute(self, block):
        if ">>>" not in block.text:
            tree = ast.parse(block.text, f"{self.path}:{block.line}")
            ast.increment_lineno(tree, block.line)
            exec(compile(tree, str(self.path), "exec"), self.names)
            return
        test = doctest.DocTestParser().get_doctest(block.text, self.names, self.path.name, str(self.path), block.line)
        said = io.StringIO()
        runner = doctest.DocTestRunner(Checker(), optionflags=FLAGS)
        runner.run(test, out=said.write, clear_globs=False)
        self.names |= test.globs
        assert not runner.failures, said.getvalue()

    def converse(self, block):
        for command, expected in re.findall(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", block.text, re.MULTILINE):
            if SERVES.search(command):
                self.serve(command)
                continue
            done = subprocess.run(
                ["bash", "-c", command], cwd=self.folder, env=self.environment, capture_output=True, text=True,
                check=False, timeout=300,
            )  # fmt: skip
            assert done.returncode == 0, f"{self.path}:{block.line}: {command}\n{done.stdout}{done.stderr}"
            if expected.strip():
                printed = done.stdout + done.stderr
                same = Checker().check_output(expected, printed, FLAGS)
                assert same, f"{self.path}:{block.line}: {command}\nexpected:\n{expected}\nprinted:\n{printed}"

    def serve(self, command):
        port = int(found[1]) if (found := re.search(r"--port (\d+)", command)) else 8000
        log = self.folder / f"server-{port}.log"
        with log.open("w") as output:
            server = subprocess.Popen(
                ["bash", "-c", f"exec {command}"], cwd=self.folder, env=self.environment, stdout=output, stderr=output
            )
        self.servers.append(server)
        for _ in range(600):
            assert server.poll() is None, log.read_text()
            with (
                contextlib.suppress(OSError),
                socket.create_connection(("127.0.0.1", port), timeout=60) as plain,
                _encrypted(plain) if "--tls-cert" in command else plain as client,
            ):
                client.sendall(b"GET / HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")  # it listens before it has a store
                if client.recv(1):
                    return
            time.sleep(0.1)
        pytest.fail(f"{command} does not answer on port {port}")

    def close(self):
        for server in self.servers:
            server.terminate()
            server.wait(30)


@pytest.mark.examples
@pytest.mark.parametrize("path", [page for page in PAGES if code(page)], ids=lambda page: str(page.relative_to(ROOT)))
def test_the_blocks_of_a_page_run(path, tmp_path, monkeypatch):
    page = Page(path, tmp_path)
    monkeypatch.chdir(tmp_path)
    for name, value in page.environment.items():
        monkeypatch.setenv(name, value)
    try:
        for block in code(path):
            page.run(block)
    finally:
        page.close()


def hidden_names(page):
    """Names that visible Python reads though only hidden Python has bound them, or nothing has; block after block."""
    known, missing = set(dir(builtins)) | {"__name__"}, {}
    for block in code(page):
        if block.language != "python" or block.hidden or re.match(r"# [\w./-]+\.py\n", block.text):
            continue
        text = block.text
        if ">>>" in text:
            text = "".join(example.source for example in doctest.DocTestParser().get_examples(text))
        table = symtable.symtable(text, str(page), "exec")
        for name in read_globals(table) - known - bound_globals(table):
            missing.setdefault(name, block.line)
        known |= bound_globals(table)
    return missing


def bound_globals(table):
    return {each.get_name() for each in table.get_symbols() if each.is_assigned() or each.is_imported()}


def read_globals(table):
    """Names of the module that are read in it, or in a function of it."""
    top = table.get_type() == "module"
    here = {each.get_name() for each in table.get_symbols() if each.is_referenced() and (top or each.is_global())}
    return here.union(*map(read_globals, table.get_children()))


@pytest.mark.parametrize("path", [page for page in PAGES if code(page)], ids=lambda page: str(page.relative_to(ROOT)))
def test_no_block_needs_a_name_that_is_hidden(path):
    """Whoever pastes what a page shows, from top to bottom, has all names that it uses."""
    assert hidden_names(path) == {}


def test_a_block_that_needs_what_is_hidden_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- setup\nfile = open('x')\nsecret = 1\n-->\n"
        "```python\nimport os\n\n\ndef f(a):\n    return a + secret\n```\n"
        "```python\n>>> f(os)\n>>> [b for b in file]\n```\n"
    )
    assert hidden_names(page) == {"secret": 5, "file": 12}


def test_no_page_hides_a_file_that_it_needs():
    for page in PAGES:
        hidden = [block for block in code(page) if block.hidden]
        assert [block.line for block in hidden if re.search(r"\bopen\(|write_(text|bytes)", block.text)] == [], page


def test_blocks_say_their_language():
    """A fence without one is neither run nor coloured."""
    for page in PAGES:
        for found in BLOCK.finditer(page.read_text()):
            if found["setup"] is None:
                assert found["language"], f"{page}: {found['text'].splitlines()[0]}"


def test_blocks_that_cannot_run_fail(tmp_path):
    page = tmp_path / "page.md"
    for text in ("```python\n1 / 0\n```\n", "```console\n$ false\n```\n", "```python\n>>> 1 + 1\n3\n```\n",
                 "```console\n$ echo 1\n2\n```\n", "```toml\na = \n```\n"):  # fmt: skip
        page.write_text(text)
        (block,) = code(page)
        with pytest.raises((ZeroDivisionError, AssertionError, tomllib.TOMLDecodeError)):
            Page(page, tmp_path).run(block)
    page.write_text(
        "```console\n$ echo hello world\nhello ...\n$ true\n```\n"
        "<!-- setup\nx = 2\n-->\n```python\nassert x == 2\n```\n"
    )
    reader = Page(page, tmp_path)
    for block in code(page):
        reader.run(block)


def test_a_directive_is_no_code_and_hides_none(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```{mermaid} A caption\n:alt: a\n\na --> b\n```\n\n```python\n1 / 0\n```\n")
    assert [block.language for block in code(page)] == ["python"]


def test_pages_serve_on_ports_of_their_own():
    """Pages are read at the same time."""
    ports = [{(page, port) for port in re.findall(r"\$ .*--port (\d+)", page.read_text())} for page in PAGES]
    found = [port for each in ports for _, port in each]
    assert sorted(found) == sorted(set(found))


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("mean 0.84 of 100 runs", "mean  0.80 of 100 runs", True),
        ("mean 0.84 of 100 runs", "mean 0.74 of 100 runs", False),
        ("mean 0.84 of 100 runs", "mean 0.84 of 101 runs", False),
        ("... at 1,200.5\n...", "this is\nat 1,250.0 now", True),
        ("... at 1,200.5\n...", "this is at 1,250 now", False),
        ("version 0.1.0", "version 0.1.0", True),
        ("...\nat 1,200.5\n...", "at 1,200.5", True),
        ("...\nat 1,200.5\n...", "at 1,200.5 too", True),
        ("...\nat 1,200.5\n...", "at 900.5", False),
    ],
)
def test_numbers_may_be_a_tenth_off(shown, printed, same):
    assert Checker().check_output(shown, printed, FLAGS) is same
