"""Route prompts between three priced language models by what their texts say, so that the money lasts for all of them.

Each prompt becomes nine numbers: the logarithm of its length, and eight components of its words (TF-IDF, then a
singular value decomposition, by scikit-learn). They are its features: `bts-linear` learns from outcomes which of them
make a costlier model worth its price. Prompts and models are made up here. Code and mathematics need the large model;
translations and small talk do not. Nothing of that is known to the router, which sees texts, and of each answer
whether it was right and what it cost.

    pip install scikit-learn
    python examples/prompt_routing.py
"""

import math
import random
import sys

from budgetbandits import Allocation

try:
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline
except ImportError:
    sys.exit("this example turns texts into features with scikit-learn; pip install scikit-learn")

# --- a world to try it in: replace it by your prompts and your models ------------------------------------------------

KINDS = {  # beginnings, subjects, and how often each model's answer is right
    "translation": (
        ["Translate into French:", "How do you say in Spanish:", "Put this sentence into German:"],
        ["the train leaves at noon", "my sister likes green apples", "we would like a room with a view"],
        {"small": 0.90, "middle": 0.92, "large": 0.93},
    ),
    "small talk": (
        ["Tell me something nice about", "What do you think of", "Suggest a present for a friend who likes"],
        ["rainy Sundays", "old films", "gardens in spring", "cooking for friends"],
        {"small": 0.85, "middle": 0.90, "large": 0.90},
    ),
    "code": (
        ["Write a Python function that", "Find the bug in this function, which", "Write a test for code that"],
        ["sorts a list of intervals", "parses a date in a string", "merges two sorted lists", "caches a function"],
        {"small": 0.25, "middle": 0.60, "large": 0.90},
    ),
    "mathematics": (
        ["Prove that", "Compute step by step why", "Find all integers for which"],
        ["the sum of two odd squares is even", "a prime divides this product", "the integral of x squared converges"],
        {"small": 0.15, "middle": 0.45, "large": 0.90},
    ),
}
PRICES = {"small": 1e-7, "middle": 8e-7, "large": 5e-6}
"""Dollars for a word, read or written."""
LONGEST = 400
"""Words that a model may write."""
world = random.Random(1)


def some_prompt():
    """A prompt and, for the world alone, its kind."""
    kind = world.choice(list(KINDS))
    beginnings, subjects, _ = KINDS[kind]
    chosen = [world.choice(subjects) for _ in range(world.randint(1, 4))]
    return f"{world.choice(beginnings)} {', and '.join(chosen)}.", kind


def answer(model, prompt, kind):
    """Whether the answer was right, and its price."""
    right = world.random() < KINDS[kind][2][model]
    written = min(LONGEST, 10 + world.expovariate(1 / (20 if kind in ("translation", "small talk") else 80)))
    return float(right), PRICES[model] * (len(prompt.split()) + written)


# --- from texts to features ------------------------------------------------------------------------------------------

earlier = [some_prompt()[0] for _ in range(500)]  # texts alone are enough to fit this; no outcomes are needed
words = make_pipeline(TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True), TruncatedSVD(8, random_state=0))
words.fit(earlier)
NAMES = ["log_length", *(f"words{number}" for number in range(1, 9))]


def features_of(prompt):
    """The features of a prompt by name. Their scales do not matter: the allocation standardises by what it has seen."""
    return dict(zip(NAMES, [math.log(len(prompt)), *words.transform([prompt])[0]], strict=True))


# --- routing ---------------------------------------------------------------------------------------------------------

REQUESTS, DOLLARS = 1500, 0.25
prompts = [some_prompt() for _ in range(REQUESTS)]
cost_max = {model: price * (LONGEST + 60) for model, price in PRICES.items()}
print(f"{REQUESTS:,} prompts, {DOLLARS:.2f} dollars for all of them")
for policy, names in (("bts-paced", []), ("bts-linear", NAMES)):
    spend = Allocation(
        policy, list(PRICES), budget=DOLLARS, cost_max=cost_max, horizon=REQUESTS, features=names, seed=1
    )
    shares = {kind: dict.fromkeys(PRICES, 0) for kind in KINDS}
    for prompt, kind in prompts:
        given = {"features": features_of(prompt)} if names else {}
        if not spend.can_ask(hold=True, **given):
            break
        ask = spend.ask(hold=True, **given)
        reward, cost = answer(ask.arm, prompt, kind)
        spend.tell(ask, reward=reward, cost=cost)
        shares[kind][ask.arm] += 1
    information = f"{len(names)} features of each prompt" if names else "nothing of the prompts"
    print(
        f"\n{policy}, knowing {information}: {spend.earned / REQUESTS:.1%} right answers for {spend.spent:.3f} dollars"
    )
    for kind, counts in shares.items():
        parts = (f"{model} {count / max(sum(counts.values()), 1):.0%}" for model, count in counts.items())
        print(f"  {kind:<12} {', '.join(parts)}")
