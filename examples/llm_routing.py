"""Route requests between three priced language models, and learn which gives most good answers for the money.

The upstreams are simulated: token prices as in a price list, answers of random length, good with an unknown chance.
Whether an answer was good is known at once here; what it cost comes from the tokens that were used.

    python examples/llm_routing.py
"""

import random
import uuid

from local_service import compare, service

from budgetbandits.client import Client
from budgetbandits.errors import HoldRefused

BUDGET = 5.00
LONGEST = 1500
"""Tokens; a request may not ask for more, so an arm's cost cap is what this many tokens cost."""

MODELS = {  # price of a million tokens, chance that the answer is good (which nobody is told)
    "large": (15.00, 0.95),
    "medium": (3.00, 0.85),
    "small": (0.60, 0.12),
}
chance = random.Random(4)


def ask_model(name):
    """The upstream: was the answer good, and how many tokens did it take?"""
    tokens = min(LONGEST, int(chance.lognormvariate(6.3, 0.6)))
    return float(chance.random() < MODELS[name][1]), tokens


def price(name, tokens):
    return tokens * MODELS[name][0] / 1e6


def route(client, campaign):
    """Requests until the money is gone: good answers and what they cost."""
    good, spent, calls = 0.0, 0.0, dict.fromkeys(MODELS, 0)
    while True:
        try:
            with client.decide(campaign) as d:
                answer, tokens = ask_model(d.arm)
                d.settle(reward=answer, cost=price(d.arm, tokens))
        except HoldRefused as refused:
            if refused.reason != "exhausted":
                raise
            print(f"  calls: {', '.join(f'{name} {count:,}' for name, count in calls.items())}")
            return good, spent
        good, spent, calls[d.arm] = good + answer, spent + price(d.arm, tokens), calls[d.arm] + 1


def even_split():
    """A third of the money to each model."""
    good = 0.0
    for name in MODELS:
        left = BUDGET / len(MODELS)
        while left > price(name, LONGEST):
            answer, tokens = ask_model(name)
            good, left = good + answer, left - price(name, tokens)
    return good


with service() as (url, key), Client(url, key) as client:
    name = f"llm routing {uuid.uuid4().hex[:6]}"
    client.create(name, BUDGET, {model: price(model, LONGEST) for model in MODELS}, hold_seconds=60)
    print(f"Routing requests between {len(MODELS)} models with a budget of {BUDGET:.2f} ...")
    compare("good answers", BUDGET, *route(client, name), even_split())
