"""The campaign that the manual makes for language models, played: it spends its money, and spends it well."""

import random
import re
import shlex
from pathlib import Path

from budgetbandits import Allocation
from budgetbandits.service.campaign_checks import default_policy
from budgetbandits.terms import Terms

PAGE = (Path(__file__).parents[2] / "docs/howto/language_models.md").read_text()
REQUESTS = 500
PRICES = {"gpt-4o-mini": (0.15, 0.60), "gpt-4o": (2.50, 10.00)}
GOOD = {"gpt-4o-mini": 0.70, "gpt-4o": 0.90}


def command(name):
    """The options of the command that makes this campaign."""
    [line] = re.findall(rf"\$ (budgetbandits campaign create {name} (?:.*\\\n)*.*)", PAGE)
    words = shlex.split(line.replace("\\\n", " "))[4:]
    return [(option.removeprefix("--"), value) for option, value in zip(words[::2], words[1::2], strict=True)]


def play(options, with_horizon=True):
    """How much of the money for `REQUESTS` is used, the share of the large model, and of good answers."""
    given = dict(options)
    horizon = float(given["horizon"])
    caps = {arm: float(cap) for name, value in options if name == "arm" for arm, cap in [value.split("=")]}
    budget = float(given["budget"]) * REQUESTS / horizon
    policy = default_policy(Terms(horizon=horizon if with_horizon else None))
    terms = {"horizon": REQUESTS} if with_horizon else {}
    request = {"segment": "chat"} if with_horizon else {}  # which bts refuses
    spend = Allocation(policy, list(caps), budget=budget, cost_max=caps, seed=1, **terms)
    draws, spent, large, good = random.Random(1), 0.0, 0, 0.0
    for _ in range(REQUESTS):
        ask = spend.ask(hold=True, **request)
        input, output = PRICES[ask.arm]
        cost = (draws.randint(20, 200) * input + draws.randint(50, 250) * output) / 1e6
        reward = float(draws.random() < GOOD[ask.arm])
        spend.tell(ask, reward=reward, cost=cost)
        spent, large, good = spent + cost, large + (ask.arm == "gpt-4o"), good + reward
    return spent / budget, large / REQUESTS, good / REQUESTS


def test_the_campaign_of_the_manual_spends_its_money_on_the_better_model():
    used, large, good = play(command("models"))
    assert 0.9 <= used <= 1.0
    assert 0.4 <= large <= 0.6
    assert good >= 0.76
    used, large, good = play(command("models"), with_horizon=False)  # nearly always the cheapest
    assert used <= 0.2
    assert large <= 0.05
    assert good <= 0.74


def test_the_campaign_for_litellm_is_the_same_with_its_names():
    def plain(options):
        return [(name, value.removeprefix("openai/")) for name, value in options]

    assert plain(command("chat")) == plain(command("models"))
