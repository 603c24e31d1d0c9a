"""Past outcomes in: tables of any columns, and LiteLLM's spend logs; what is taken, what is skipped, and why."""

import json

import polars
import pytest
from typer.testing import CliRunner

from budgetbandits.cli import app
from budgetbandits.cli.outcomes import read_history, read_outcomes
from budgetbandits.errors import BadParameter
from budgetbandits.problems.problem import Problem
from budgetbandits.problems.records import ReplayTable
from budgetbandits.service.stores.sqlite import SQLiteStore

SPEND = """request_id,call_type,spend,total_tokens,startTime,model,model_group,metadata,cache_hit,status
r1,completion,0.002,120,2026-11-01 10:00:00,gpt-4o-mini,small,"{""score"": 1, ""user_api_key"": ""x""}",False,success
r2,completion,0.004,130,2026-11-01 10:00:01,gpt-4o-mini,small,"{""score"": 0.5}",False,success
r3,completion,0.05,140,2026-11-01 10:00:02,openai/gpt-4o,large,"{""spend_logs_metadata"": {""score"": 1}}",False,success
r4,completion,0,0,2026-11-01 10:00:03,openai/gpt-4o,large,{},False,failure
r5,completion,0,90,2026-11-01 10:00:04,gpt-4o-mini,small,"{""score"": 1}",True,success
r6,completion,0.001,90,2026-11-01 10:00:05,,,"{""score"": 1}",,success
r7,completion,,90,2026-11-01 10:00:06,gpt-4o-mini,small,"{""score"": 1}",None,success
"""


@pytest.fixture
def spend(tmp_path):
    path = tmp_path / "spend.csv"
    path.write_text(SPEND)
    return path


def said(*words, code=0):
    result = CliRunner().invoke(app, ["import", *map(str, words)], env={"COLUMNS": "80"})
    assert result.exit_code == code, (result.output, result.exception)
    return result.output


def refused(*words):
    result = CliRunner().invoke(app, ["import", *map(str, words)])
    assert isinstance(result.exception, BadParameter), result.output
    return str(result.exception)


def test_spend_logs_with_a_constant_for_success(spend, tmp_path):
    """A call that succeeded has earned the constant, one that failed 0; cached answers say nothing of a model."""
    out = tmp_path / "past.csv"
    document = json.loads(said(spend, out, "--format", "litellm", "--success-reward", "1", "--json"))
    assert document["taken"] == 4
    assert document["skipped"] == {"answered from a cache": 1, "no arm": 1, "no cost": 1}
    assert document["arms"] == {
        "gpt-4o-mini": {"pulls": 2, "reward": 2.0, "cost": pytest.approx(0.006)},
        "openai/gpt-4o": {"pulls": 2, "reward": 1.0, "cost": 0.05},
    }
    assert read_history(out) == {"gpt-4o-mini": (2, 2.0, pytest.approx(0.006)), "openai/gpt-4o": (2, 1.0, 0.05)}


def test_spend_logs_with_a_reward_inside_their_metadata(spend):
    """What failed teaches nothing, as in a campaign; and arms may be named by another column."""
    columns = {"reward": "metadata.score", "arm": "model_group"}
    found = read_outcomes(spend, "litellm", columns)
    assert found.history() == {"small": (2, 1.5, pytest.approx(0.006))}
    assert found.skipped == {"failed": 1, "answered from a cache": 1, "no arm": 1, "no cost": 1, "no reward": 1}
    deeper = read_outcomes(spend, "litellm", {"reward": "metadata.spend_logs_metadata.score"})
    assert deeper.history() == {"openai/gpt-4o": (1, 1.0, 0.05)}


def test_a_constant_for_success_is_that_of_each_pull(tmp_path):
    """A row with pulls has their total reward."""
    (tmp_path / "sums.csv").write_text("arm,cost,pulls\nmail,2,10\nmail,1,\nsearch,4,5\n")
    found = read_outcomes(tmp_path / "sums.csv", success_reward=0.5)
    assert found.history() == {"mail": (11, 5.5, 3.0), "search": (5, 2.5, 4.0)}


def test_the_words_for_people(spend):
    text = said(spend, "--format", "litellm", "--success-reward", "1")
    assert text.startswith("4 rows taken, 3 skipped (answered from a cache: 1, no arm: 1, no cost: 1)\n")
    assert "gpt-4o-mini        2    2.00  0.006" in text
    assert "written" not in text


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_laboratory_plays_what_was_imported(spend, tmp_path, suffix):
    source, out = tmp_path / f"spend.{suffix}", tmp_path / "past.csv"
    if suffix == "parquet":
        polars.read_csv(spend, infer_schema_length=None).write_parquet(source)
    said(source, out, "--format", "litellm", "--success-reward", "1")
    assert out.read_text().splitlines()[:2] == ["request,arm,reward,cost", "r1,gpt-4o-mini,1.0,0.002"]
    assert Problem.from_csv(out).names == ("gpt-4o-mini", "openai/gpt-4o")
    assert len(ReplayTable.from_csv(out)) == 4
    said(out, tmp_path / "again.parquet")
    assert read_history(tmp_path / "again.parquet") == read_history(out)


def test_a_campaign_begins_with_what_was_imported(spend, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    SQLiteStore("budgetbandits.db").close()
    said(spend, "past.parquet", "--format", "litellm", "--success-reward", "1")
    words = ["create", "models", "--budget", "5", "--arm", "gpt-4o-mini=0.01", "--arm", "openai/gpt-4o=0.1"]
    made = CliRunner().invoke(app, ["campaign", *words, "--history", "past.parquet", "--json"])
    assert {arm["name"]: arm["pulls"] for arm in json.loads(made.output)["arms"]} == {
        "gpt-4o-mini": 2, "openai/gpt-4o": 2,
    }  # fmt: skip


def test_a_table_of_other_columns(tmp_path):
    table = tmp_path / "calls.csv"
    table.write_text("model,kind,score,usd,failed\na,code,1,0.5,0\na,chat,0,0.25,0\nb,code,,1,0\nb,code,1,1,1\n")
    found = read_outcomes(table, columns={"arm": "model", "reward": "score", "cost": "usd", "segment": "kind"})
    assert found.rows == [
        {"arm": "a", "segment": "code", "reward": 1.0, "cost": 0.5},
        {"arm": "a", "segment": "chat", "reward": 0.0, "cost": 0.25},
    ]
    assert found.skipped == {"no reward": 1, "failed": 1}


def test_what_cannot_be_imported_says_why(spend, tmp_path):
    out = tmp_path / "out.csv"
    for words, message in (
        ([spend, "--format", "litellm"], "reward=metadata.NAME), or say --success-reward 1"),
        ([spend], "there is no column 'arm'"),
        ([spend, "--format", "langfuse"], "use table or litellm"),
        ([spend, "--format", "litellm", "--columns", "reward=score"], "there is no column 'score'; the columns are"),
        ([spend, "--format", "litellm", "--columns", "reward=metadata.none", out], "nothing was written"),
        ([spend, "--format", "litellm", "--columns", "reward=spend", "--success-reward", "1"], "leave it out"),
        ([spend, "--format", "litellm", "--columns", "reward=call_type"], "row 1: 'completion' is no number from 0"),
        ([spend, tmp_path / "out.txt", "--format", "litellm", "--success-reward", "1"], "use .csv or .parquet"),
        ([spend, tmp_path / "no" / "out.csv", "--format", "litellm", "--success-reward", "1"], "cannot write"),
    ):
        assert message in refused(*words)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["spend.csv"]


def test_formulas_in_names_stay_text(tmp_path):
    (tmp_path / "in.csv").write_text("arm,reward,cost\n=1+1,1,0.5\n")
    said(tmp_path / "in.csv", tmp_path / "out.csv")
    assert "'=1+1" in (tmp_path / "out.csv").read_text()
    assert read_history(tmp_path / "out.csv") == {"=1+1": (1, 1.0, 0.5)}
