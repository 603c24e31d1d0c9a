"""Files that others have put into the folder harm neither the rest of the list nor its reader."""

import json
import os
import shutil
import socket
import time

import pytest
from typer.testing import CliRunner

from budgetbandits.cli import app
from budgetbandits.errors import BadParameter, StudyError
from budgetbandits.experiments.study import Study, progress
from budgetbandits.report.viewer import pages, server
from budgetbandits.report.viewer.folder import Folder
from budgetbandits.report.viewer.pages import Viewer
from budgetbandits.report.viewer.server import Server
from budgetbandits.web import view_cache
from viewed import ask, past, text, until

WHOLE = {"name": "x", "policies": ["bts"], "problems": [{"name": "p", "group": "g"}], "budgets": [1.0], "runs": 1,
         "cells": [{"key": "k", "policy": "bts", "runs": 1}]}  # fmt: skip


def listed(folder):
    """The page and the JSON of the list."""
    viewer = Viewer(Folder(folder))
    page, numbers = viewer.answer("/", {}), viewer.answer("/", {"format": "json"})
    assert (page.status, numbers.status) == (200, 200)
    viewer.pulse("/")
    return text(page), json.loads(numbers.body)


@pytest.mark.parametrize(
    "record",
    [{}, [], None, 3, {"cells": []}, WHOLE | {"name": 7}, WHOLE | {"policies": []}, WHOLE | {"policies": "bts"},
     WHOLE | {"problems": [{"name": "p"}]}, WHOLE | {"budgets": []}, WHOLE | {"budgets": [float("inf")]},
     WHOLE | {"budgets": [10**400]}, WHOLE | {"runs": "7"}, WHOLE | {"runs": 10**400}, WHOLE | {"cells": [None]},
     WHOLE | {"cells": [{"key": "k", "policy": "kube", "runs": 1}]}],
    ids=repr,
)  # fmt: skip
def test_a_record_of_another_shape_leaves_the_others_in_the_list(finished, record, caplog):
    (finished / "bad").mkdir()
    (finished / "bad" / "study.json").write_text(json.dumps(record))
    page, numbers = listed(finished)
    assert 'href="/study/deep/one"' in page
    assert [study["place"] for study in numbers["studies"]] == ["deep/one"]
    [wrong] = numbers["unreadable"]
    assert "bad/study.json" in wrong
    assert "run the experiment again" in wrong
    assert wrong in caplog.text
    assert Viewer(Folder(finished)).answer("/study/bad", {}).status == 503


def test_the_smallest_record_is_shown(tmp_path):
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "study.json").write_text(json.dumps(WHOLE))
    page, numbers = listed(tmp_path)
    assert 'href="/study/small"' in page
    assert numbers["unreadable"] == []
    assert Viewer(Folder(tmp_path)).answer("/study/small", {}).status == 200


def test_json_that_is_nested_too_deeply(finished):
    (finished / "bad").mkdir()
    (finished / "bad" / "study.json").write_text("[" * 200_000)
    _, numbers = listed(finished)
    assert len(numbers["studies"]) == len(numbers["unreadable"]) == 1


def test_an_entry_with_an_error_that_nobody_foresaw(finished, monkeypatch, caplog):
    shutil.copytree(finished / "deep/one", finished / "two")

    def odd(study, record, now):
        if study.folder.name == "two":
            raise RuntimeError("odd")
        return progress(study, record, now)

    monkeypatch.setattr("budgetbandits.report.viewer.folder.progress", odd)
    page, numbers = listed(finished)
    assert 'href="/study/deep/one"' in page
    assert "RuntimeError: odd" in page
    assert len(numbers["studies"]) == 1
    assert caplog.text.count("Traceback") == 1  # however often it was looked at
    assert Viewer(Folder(finished)).answer("/study/two", {}).status == 500


def test_an_entry_that_cannot_be_drawn(finished, monkeypatch):
    shutil.copytree(finished / "deep/one", finished / "two")
    short = pages.PAGES.environment.filters["short"]
    places = iter([True])
    monkeypatch.setitem(
        pages.PAGES.environment.filters, "short", lambda value: 1 / 0 if next(places, None) else short(value)
    )
    page = text(Viewer(Folder(finished)).answer("/", {}))
    assert page.count("Finished") == 1
    assert "ZeroDivisionError" in page


def test_what_is_no_page_though_it_is_called_so(finished):
    (finished / "x.html").mkdir()
    (finished / "y.html").symlink_to("/nowhere")
    os.mkfifo(finished / "z.html")
    os.mkfifo(finished / "deep/one/parts/pipe.parquet")
    (finished / "deep/one/parts/gone.parquet").symlink_to("/nowhere")
    (finished / "real.html").write_text("<title>Real</title>")
    page, numbers = listed(finished)
    assert "Real" in page
    assert not any(name in page for name in ("x.html", "y.html", "z.html"))
    assert numbers["unreadable"] == []
    assert numbers["studies"][0]["finished"]


def test_names_that_are_no_text(finished, serve):
    name = os.fsdecode(b"caf\xe9")
    shutil.copytree(finished / "deep/one", finished / name)
    (finished / f"{name}.html").write_text("page")
    page, numbers = listed(finished)
    assert 'href="/study/caf%E9"' in page
    assert [study["page"] for study in numbers["studies"]].count("/study/caf%E9") == 1
    port = serve(finished)
    for path in ("/study/caf%E9", "/files/caf%E9.html"):
        with ask(port, path) as answer:
            assert answer.status == 200


@pytest.mark.parametrize(
    "path", ["/study/%00", "/files/%00", "/study/" + "a" * 5000, "/watch/%ff", "/files/loop/x.html"]
)
def test_addresses_of_nothing(half, served, path):
    (half / "loop").symlink_to(half / "loop")
    with ask(served, path) as answer:
        assert answer.status == 404


def test_hosts_and_addresses_that_are_none(served):
    with ask(served, "/", Host="[") as answer:
        assert answer.status == 403
    with socket.create_connection(("127.0.0.1", served), timeout=10) as connection:
        connection.sendall(b"GET http://[/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 400")


def test_a_mistake_is_a_page_and_a_line_in_the_log(half, caplog, monkeypatch):
    monkeypatch.setattr(Folder, "look", lambda *_: 1 / 0)
    answer = Viewer(Folder(half)).answer("/", {})
    assert answer.status == 500
    assert "A mistake of ours" in text(answer)
    assert "ZeroDivisionError" in caplog.text


def test_a_stream_says_what_is_wrong_and_goes_on(half, served, caplog, monkeypatch):
    monkeypatch.setattr(server, "LOOK_SECONDS", 0.01)
    with ask(served, "/live/") as answer:
        assert answer.readline() == b"event: changed\n"
        half.rename(half.with_name("moved"))
        lines = [answer.readline() for _ in range(4)]
        assert lines[2] == b"event: store\n"
        assert b"was it moved or removed?" in lines[3]
        half.with_name("moved").rename(half)
        until(lambda: answer.readline() == b"event: changed\n")
    assert caplog.text.count("was it moved or removed?") == 1


# --- what is not to be trusted ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["/files/deep/evil.html", "/files/deep/evil.svg", "/files/deep/evil.csv", "/study/deep/one"]
)
def test_what_comes_from_the_folder_is_closed_in(finished, path):
    for name in ("evil.html", "evil.svg", "evil.csv", "one/report.html"):
        (finished / "deep" / name).write_text("<script>fetch('/?format=json')</script>")
    policy = Viewer(Folder(finished)).answer(path, {}).headers["Content-Security-Policy"]
    rules = dict(rule.strip().partition(" ")[::2] for rule in policy.split(";"))
    assert "allow-same-origin" not in rules["sandbox"]
    assert rules["default-src"] == rules["form-action"] == rules["base-uri"] == "'none'"
    assert "connect-src" not in rules


def test_a_report_that_is_drawn_here_is_closed_in_as_well(finished):
    viewer = Viewer(Folder(finished))
    until(lambda: text(viewer.answer("/study/deep/one", {})).endswith("small"))
    assert viewer.answer("/study/deep/one", {}).headers["Content-Security-Policy"] == pages.FOREIGN_FILE_POLICY


def test_links_that_lead_out_of_the_folder(finished, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret.txt").write_text("<title>SECRET</title>")
    os.utime(outside / "secret.txt", (time.time() + 5,) * 2)
    (finished / "deep/one/report.html").symlink_to(outside / "secret.txt")
    (finished / "page.html").symlink_to(outside / "secret.txt")
    shutil.copytree(finished / "deep/one", outside / "study", symlinks=True)
    (finished / "two").mkdir()
    (finished / "two" / "study.json").symlink_to(outside / "study/study.json")
    viewer = Viewer(Folder(finished))
    page, numbers = listed(finished)
    assert "SECRET" not in page
    assert [study["place"] for study in numbers["studies"]] == ["deep/one"]
    assert "SECRET" not in text(viewer.answer("/study/deep/one", {}))
    assert viewer.answer("/study/two", {}).status == 404


# --- what is shown is what there is ----------------------------------------------------------------------------------


def test_a_report_is_drawn_again_when_fewer_policies_are_asked_for(finished, asked):
    """The parts stay as they are, and so does the time of the latest."""
    asked.clear()
    viewer, study = Viewer(Folder(finished)), Study(finished / "deep/one")
    until(lambda: text(viewer.answer("/study/deep/one", {})).endswith("small"))
    record = study.asked()
    record["cells"] = [cell for cell in record["cells"] if cell["policy"] != "kube"]
    record["policies"].remove("kube")
    record["name"] = "smaller"
    study.record.write_text(json.dumps(record))
    until(lambda: text(viewer.answer("/study/deep/one", {})).endswith("smaller"))
    assert len(asked) == 2


def test_a_report_that_failed_is_tried_again(finished, monkeypatch):
    monkeypatch.setattr(view_cache, "RETRY_SECONDS", 0.05)
    good = pages.page_of
    with monkeypatch.context() as full:

        def boom(*_):
            raise OSError(28, "No space left on device")

        full.setattr(pages, "page_of", boom)
        viewer = Viewer(Folder(finished))
        until(lambda: "No space left" in text(viewer.answer("/study/deep/one", {})))
    assert pages.page_of is good
    until(lambda: text(viewer.answer("/study/deep/one", {})).endswith("small"))


def test_a_folder_that_is_gone_is_not_an_empty_one(half):
    viewer = Viewer(Folder(half))
    half.rename(half.with_name("moved"))
    answer = viewer.answer("/", {})
    assert answer.status == 503
    assert "was it moved or removed?" in text(answer)
    assert "No study here yet" not in text(answer)
    with pytest.raises(StudyError, match="moved or removed"):
        viewer.pulse("/")


def test_parts_that_take_long_are_waited_for(half):
    """Six parts, eleven minutes apart, the last two minutes ago; begun again after a night, it is quiet after one."""
    study, now = Study(half / "deep/one"), time.time()
    past(half, 9999)
    for place, path in enumerate(sorted(study.parts.iterdir(), reverse=True)):
        os.utime(path, (now - 120 - 660 * place,) * 2)
    far = progress(study, study.asked(), now)
    assert far.running
    assert far.rate == pytest.approx(30 / (120 + 5 * 660))
    os.utime(study.record, (now - 90,) * 2)
    assert not progress(study, study.asked(), now).running


def test_a_study_that_is_quiet_is_not_said_to_have_stopped(half):
    page = text(Viewer(Folder(half)).answer("/study/deep/one", {}))
    assert "is in a long cell" in page
    assert "nothing is running" not in page


@pytest.mark.parametrize("port", ["99999", "-1"])
def test_ports_that_are_none(half, port):
    result = CliRunner().invoke(app, ["view", str(half), "--no-browser", "--port", port])
    assert result.exit_code == 2
    assert "Input should be" in result.output
    with pytest.raises(BadParameter, match="--port 0"):
        Server(Viewer(Folder(half)), "127.0.0.1", int(port))


def test_times_of_an_alarm_are_in_the_zone_of_the_page(half, monkeypatch):
    monkeypatch.setenv("TZ", "XYZ-5:30")
    time.tzset()
    try:
        page = text(Viewer(Folder(half)).answer("/", {}))
    finally:
        monkeypatch.undo()
        time.tzset()
    assert 'data-east="19800"' in page
    assert "UTC+5.5" in page
