"""A campaign's terms are listed once, and every way into the service knows all of them."""

from dataclasses import dataclass, field, fields
from typing import Literal, get_type_hints

import pytest
from pydantic import ValidationError
from typer.testing import CliRunner

from budgetbandits.answers import CampaignAnswer
from budgetbandits.cli import campaign
from budgetbandits.errors import BadParameter
from budgetbandits.service.http.schemas import NewCampaign
from budgetbandits.service.service import DecisionService
from budgetbandits.service.stores.sqlite import SQLiteStore
from budgetbandits.terms import CHANGEABLE, TERMS, Term, Terms
from memory_store import MemoryStore


def test_every_term_is_known_everywhere():
    wide = CliRunner().invoke(campaign.campaign_app, ["create", "--help"], env={"COLUMNS": "200"})
    for term in TERMS:
        assert term in NewCampaign.model_fields
        assert term in {each.name for each in fields(CampaignAnswer)}
        assert f"--{term.replace('_', '-')}" in wide.output


def test_the_fields_have_the_types_that_their_terms_say():
    kinds = {"text": str, "names": tuple[str, ...]} | dict.fromkeys(("money", "seconds", "number"), float)
    stated = {}
    for term in TERMS.values():
        kind = Literal[tuple(value for value, _ in term.choices)] if term.choices else kinds[term.kind]
        stated[term.name] = kind | None if term.optional else kind
    assert get_type_hints(Terms) == stated


def test_terms_come_back_as_they_were_given():
    given = Terms(reward_max=2, hold_seconds=60, on_expire="release", daily_cap=1.5, pace_seconds=1000)
    engine = DecisionService(MemoryStore())
    engine.create("ads", "bts", 10.0, {"a": 1.0, "b": 0.5}, **vars(given))
    assert vars(given).items() <= vars(engine.describe("ads")).items()


def test_a_term_that_is_none_is_refused():
    with pytest.raises(TypeError, match="colour"):
        DecisionService(MemoryStore()).create("ads", "bts", 10.0, {"a": 1.0, "b": 0.5}, colour="red")


@dataclass(frozen=True)
class MoreTerms(Terms):
    """A text that need not be given is one more field, like any other term."""

    about = Term(label="Contact", help="Whom to call.", kind="text", group="Display")
    contact: str | None = field(default=None, metadata={"term": about})


@pytest.mark.parametrize("contact", [None, "Ada, 555-0100"])
def test_a_new_term_may_be_text(contact):
    assert MoreTerms(contact=contact).checked().contact == contact


@pytest.mark.parametrize("contact", ["", "a" * 201, "line\nbreak", 5])
def test_text_that_cannot_be_shown_is_refused(contact):
    with pytest.raises(BadParameter, match=r"contact is .*use 1 to 200 printable characters"):
        MoreTerms(contact=contact).checked()


LARGE = [(each.name, each.largest) for each in TERMS.values() if each.largest < float("inf")]


@pytest.mark.parametrize(("term", "largest"), LARGE)
def test_a_term_has_one_bound_whichever_door_it_comes_through(term, largest):
    """The engine, by which all come, and HTTP, which refuses earlier."""
    engine, beyond = DecisionService(MemoryStore()), largest * (1 + 1e-9)
    words = rf"{term} is .* up to {largest:,.0f}"
    with pytest.raises(BadParameter, match=words):
        engine.create("ads", "bts-paced", 10.0, {"a": 1.0, "b": 0.5}, **{term: beyond})
    given = {"name": "ads", "budget": 10.0, "arms": {"a": 1.0, "b": 0.5}}
    NewCampaign(**given, **{term: largest})
    with pytest.raises(ValidationError):
        NewCampaign(**given, **{term: beyond})
    engine.create("ads", "bts-paced", 10.0, {"a": 1.0, "b": 0.5})
    if term in CHANGEABLE:
        with pytest.raises(BadParameter, match=words):
            engine.change_terms("ads", {term: beyond})


@pytest.mark.parametrize(
    ("term", "value"), [("horizon", 0.5), ("propensity_draws", 0), ("propensity_draws", 2.5), ("reward_max", 0.0)]
)
def test_a_number_that_is_too_small_or_not_whole_is_refused_at_every_door(term, value):
    given = {"name": "ads", "budget": 10.0, "arms": {"a": 1.0, "b": 0.5}}
    with pytest.raises(ValidationError):
        NewCampaign(**given, **{term: value})
    with pytest.raises(BadParameter, match=f"{term} is {value:g}; use a (whole |positive )?number"):
        DecisionService(MemoryStore()).create(policy="bts-paced", **given, **{term: value})


def test_the_command_line_keeps_the_bounds(tmp_path):
    SQLiteStore(tmp_path / "money.db").close()
    given = ["--budget", "10", "--arm", "a=1", "--arm", "b=1", "--store", f"{tmp_path}/money.db"]
    said = CliRunner().invoke(campaign.campaign_app, ["create", "ads", *given, "--pace-seconds", "2e12"])
    assert said.exit_code != 0
    assert "up to 1,000,000,000" in f"{said.output} {said.exception}"


@pytest.mark.parametrize("policy", ["mine.py:OmegaUCB", "/somewhere/mine.py:OmegaUCB:rho=1", "mine.py"])
def test_the_service_runs_no_file(policy):
    with pytest.raises(BadParameter, match="a campaign names no file"):
        DecisionService(MemoryStore()).create("ads", policy, budget=5.0, arms={"a": 1.0, "b": 1.0})
