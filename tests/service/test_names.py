"""Names: one way to write each, nothing hidden in them, and none that passes for another."""

import asyncio
import unicodedata

import pytest

from budgetbandits.errors import BadParameter, Conflict, NotFound
from budgetbandits.service.feedback import FeedbackReport
from budgetbandits.service.http.auth import KeyRing, make_key
from budgetbandits.service.names import LOOKALIKES, checked_name
from budgetbandits.service.service import DecisionService
from memory_store import MemoryStore

ONE, TWO = unicodedata.normalize("NFC", "café"), unicodedata.normalize("NFD", "café")


def test_both_ways_to_write_a_name_are_one():
    store = MemoryStore()
    engine = DecisionService(store)
    campaign = engine.create(TWO, "kube-fractional", 10.0, {TWO: 1.0, "tea": 1.0}, known={"costs": {ONE: 1, "tea": 1}})
    assert engine.describe(ONE).name == engine.describe(TWO).name == ONE
    assert engine.describe(campaign).arms[0].name == ONE
    with pytest.raises(Conflict, match="already"):
        engine.create(ONE, "bts", 10.0, {"a": 1.0, "b": 1.0})
    with pytest.raises(BadParameter, match="written in two ways"):
        engine.create("other", "bts", 10.0, {ONE: 1.0, TWO: 1.0})
    assert engine.decide(TWO, "key").campaign == campaign
    key = make_key(store, ["decide"], 0.0, campaign=TWO)
    for name in (ONE, TWO, campaign):
        KeyRing(store).check(key, "decide", name)
    engine.retire_arm(ONE, TWO)
    assert not engine.describe(ONE).arms[0].active
    engine.create("new", "bts", 10.0, {"a": 1.0, "b": 1.0})
    engine.add_arm("new", ONE, 1.0)
    with pytest.raises(Conflict, match="already"):
        engine.add_arm("new", TWO, 1.0)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("\u0430ds", "taken for 'ads': its 'а' is Cyrillic; use Latin letters"),
        ("m\u03bfde", "its 'ο' is Greek"),
        ("\u0441\u043e\u0441\u043e", "taken for 'coco'"),  # all of it Cyrillic
        ("ads\u2800", "invisible character U\\+2800; leave it out"),
        ("ads\ufe0f", "invisible character U\\+FE0F"),
        ("ad\u034fs", "invisible character U\\+034F"),
        ("ad\u115fs", "invisible"),
        ("ａｄｓ", "taken for 'ads'; write it like that"),
        ("𝐚ds", "taken for 'ads'"),
        ("ad\u200bs", "printable"),
        ("ad\u202es", "printable"),
        ("a\u00a0b", "printable"),
        (".", "without . or .. alone"),
        ("..", "without . or .. alone"),
    ],
)
def test_names_that_deceive_are_refused(name, words):
    engine = DecisionService(MemoryStore())
    with pytest.raises(BadParameter, match=words):
        engine.create(name, "bts", 10.0, {"a": 1.0, "b": 1.0})
    with pytest.raises(BadParameter, match=words):
        engine.create("ads", "bts", 10.0, {name: 1.0, "b": 1.0})
    campaign = engine.create("ads", "bts", 10.0, {"a": 1.0, "b": 1.0})
    with pytest.raises(BadParameter, match=words):
        engine.add_arm(campaign, name, 1.0)


@pytest.mark.parametrize("name", ["openai/..", "./gpt", "a/../b"])
def test_an_arm_has_no_part_that_an_address_loses(name):
    with pytest.raises(BadParameter, match="also between slashes"):
        checked_name("an arm's name", name)
    assert checked_name("an arm's name", name.replace(".", "...")) == name.replace(".", "...")


@pytest.mark.parametrize(
    "name", ["ads", "Größe", "поиск", "αβ test", "10 μs", "東京 ads", "ขาย", "हिन्दी", "עברית", "👍 best", "naïve-2"]
)
def test_names_of_all_languages_are_taken(name):
    assert checked_name("name", name) == unicodedata.normalize("NFC", name)


def test_lookalikes_are_letters_of_other_alphabets_for_latin_ones():
    for strange, latin in LOOKALIKES.items():
        assert "LATIN" not in unicodedata.name(chr(strange))
        assert "LATIN" in unicodedata.name(chr(latin))
        assert chr(strange).isupper() == chr(latin).isupper()


@pytest.mark.parametrize("wrong", ["a\0b", "a\ud800b", "\0" * 32])
def test_no_store_is_asked_about_what_is_no_text(store, wrong):
    """Databases differ in what they take; a caller hears the same of each, and other outcomes of a batch are booked."""
    engine, arms = DecisionService(store), {"a": 1.0, "b": 1.0}
    engine.create("ads", "bts", 10.0, arms)
    for refused in (
        lambda: engine.decide("ads", wrong), lambda: engine.decide("ads", "key", segment=wrong),
        lambda: engine.decide_many("ads", wrong, 2), lambda: engine.top_up("ads", 1.0, key=wrong),
        lambda: engine.create(wrong, "bts", 10.0, arms), lambda: engine.add_arm("ads", wrong, 1.0),
        lambda: engine.create("other", "bts", 10.0, arms, currency=wrong),
    ):  # fmt: skip
        with pytest.raises(BadParameter):
            refused()
    for missing in (
        lambda: engine.decide(wrong, "key"), lambda: engine.account(wrong),
        lambda: engine.feedback(wrong, cost=0.5), lambda: engine.feedback(wrong, cost=0.5, campaign="ads"),
        lambda: engine.void(wrong, "ads"), lambda: engine.void(wrong),
    ):  # fmt: skip
        with pytest.raises(NotFound):
            missing()
    outcomes = [FeedbackReport(wrong, 0.5, 0.5), FeedbackReport(engine.decide("ads", "good").decision, 0.5, 0.5)]
    assert isinstance(asyncio.run(store.perform(*engine.feedback_many_task(outcomes, "ads")))[0], NotFound)
    assert engine.account("ads").spent == 500_000
