"""The first admin key: one for all servers, handed to a person or to a file of theirs, never to a log."""

import stat

import pytest

from budgetbandits.errors import BadParameter
from budgetbandits.service.http.auth import KeyRing, hand_over_first_key
from memory_store import MemoryStore


def test_without_a_terminal_it_goes_to_a_file_of_its_owner(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    store = MemoryStore()
    hand_over_first_key(store, None)
    file = tmp_path / "budgetbandits-admin.key"
    key = file.read_text().strip()
    assert KeyRing(store).check(key, "admin").scopes == ("admin",)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert key not in capsys.readouterr().out
    hand_over_first_key(store, None)  # there is one by now
    assert len(store.api_keys) == 1
    assert "key" not in capsys.readouterr().out


def test_a_terminal_is_shown_it_once(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    store = MemoryStore()
    hand_over_first_key(store, None)
    shown = capsys.readouterr().out.split("shown this once: ")[1].strip()
    assert KeyRing(store).check(shown, "admin")
    assert list(tmp_path.iterdir()) == []


def test_a_key_that_nobody_can_be_given_is_not_made(tmp_path):
    store = MemoryStore()
    there = tmp_path / "there"
    there.write_text("somebody's")
    for file in (there, tmp_path / "nowhere" / "key"):
        with pytest.raises(BadParameter, match="name another file with --key-file, which must not exist yet"):
            hand_over_first_key(store, file)
    assert there.read_text() == "somebody's"
    assert store.api_keys == {}
    hand_over_first_key(store, tmp_path / "new")
    assert len(store.api_keys) == 1
