"""Folders of studies, and a viewer of one over HTTP."""

import shutil
import threading

import pytest
from markupsafe import Markup

from budgetbandits.experiments import Results, run
from budgetbandits.experiments.runner import Workers
from budgetbandits.report.figures import Drawing
from budgetbandits.report.viewer import pages
from budgetbandits.report.viewer.folder import Folder
from budgetbandits.report.viewer.pages import Curves, Viewer
from budgetbandits.report.viewer.server import Server
from budgetbandits.web.view_cache import THREAD_NAME
from studies import small
from viewed import past


@pytest.fixture(scope="session")
def whole_study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    run(small(), folder / "one", Workers(jobs=1))
    return folder / "one"


@pytest.fixture
def finished(whole_study, tmp_path):
    """A folder with a study of 12 cells in it, all of them finished a while ago."""
    shutil.copytree(whole_study, tmp_path / "deep" / "one")
    past(tmp_path / "deep" / "one", 3600)
    return tmp_path


@pytest.fixture
def half(finished):
    """The folder of `finished` with every other part of its study."""
    for path in sorted((finished / "deep/one/parts").iterdir())[::2]:
        path.unlink()
    return finished


@pytest.fixture(scope="session", autouse=True)
def asked():
    """The folders into which reports were drawn. Their content is tested in tests/report, and takes seconds; that of
    curves is tested by `test_curves_of_policies_that_have_not_all_played`."""
    asked = []

    def page_of(results, folder):
        asked.append(folder)
        (folder / "summary.csv").write_text("")
        return f'<span class="brand">b</span>{results.record["name"]}'

    def curves(folder):
        drawings = [Drawing(width, "", Markup("<svg></svg>")) for width in ("wide", "narrow")]
        return None if Results.so_far(folder) is None else Curves(drawings, 36, 2)

    with pytest.MonkeyPatch.context() as patch:  # as long as any thread may still draw
        patch.setattr(pages, "page_of", page_of)
        patch.setattr(pages, "curves", curves)
        yield asked


@pytest.fixture(autouse=True)
def nothing_left_to_draw():
    """A test does not leave its drawings to the next, which may count its own."""
    yield
    for thread in threading.enumerate():
        if thread.name == THREAD_NAME:
            thread.join(20.0)


@pytest.fixture
def serve():
    """Serves a folder, and returns the port."""
    servers = []

    def start(folder):
        server = Server(Viewer(Folder(folder)), "127.0.0.1", 0)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        servers.append((server, thread))
        return server.server_address[1]

    yield start
    for server, thread in servers:
        server.stopping.set()
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def served(half, serve):
    return serve(half)
