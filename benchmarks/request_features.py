"""The share of rewards and costs that features of a text explain, out of sample; for docs/measurements/features.md.

    python benchmarks/request_features.py

The prompts of `online` in examples/data. Each cell is the share of variance that a ridge regression explains of prompts
that it has not seen: ten parts, the best of seven strengths. Hashes are directions in 16 or 128 dimensions that follow
from a word alone, added up over a text's words and pairs of words.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections import Counter

import numpy as np
from llm_routing import DATA, built_in_tables, tables
from numpy.typing import NDArray

from budgetbandits.problems.records import csv_columns

Array = NDArray[np.float64]

CHEAP, MIDDLE = "meta-llama/llama-3.1-8b-instruct", "mistralai/mistral-large-2512"
STRENGTHS, PARTS = (1, 10, 30, 100, 300, 1000, 3000), 10


def explained(features: Array, target: Array) -> float:
    """The share of variance that is explained out of sample."""
    part = np.random.default_rng(0).permutation(len(target)) % PARTS
    deviation = features.std(axis=0)
    rows = (features - features.mean(axis=0)) / np.where(deviation > 0.0, deviation, 1.0)
    errors = []
    for strength in STRENGTHS:
        predicted = np.empty(len(target))
        for number in range(PARTS):
            seen, mean = rows[part != number], target[part != number].mean()
            gram = seen.T @ seen + strength * np.eye(rows.shape[1])
            slopes = np.linalg.solve(gram, seen.T @ (target[part != number] - mean))
            predicted[part == number] = mean + rows[part == number] @ slopes
        errors.append(np.square(target - predicted).mean())
    return float(1.0 - min(errors) / target.var())


def hashed(text: str, size: int) -> Array:
    """The words of a text and pairs of them, projected to this many numbers."""
    words = re.findall(r"[^\W\d_]+", text.lower())
    total = np.zeros(size)
    for term in Counter([*words, *map(" ".join, itertools.pairwise(words))]):
        bits = np.frombuffer(hashlib.shake_128(term.encode()).digest(-(-size // 8)), np.uint8)
        total += np.unpackbits(bits)[:size] * 2.0 - 1.0
    return total / max(float(np.linalg.norm(total)), 1e-9)


def main() -> None:
    online, built_in = tables()[0], built_in_tables()[0]
    cheap, middle = (online.arms.index(name) for name in (CHEAP, MIDDLE))
    rewards, cost = online.rewards, np.log(online.costs[:, middle])
    texts = csv_columns(DATA / "llm-routing-online-texts.csv")["text"]
    versions = {
        "the benchmark itself": np.eye(len(online.segments))[online.segment],
        "25 components of TF-IDF, fitted here": online.features,
        f"the {len(built_in.feature_names)} of `request_features`": built_in.features,
    }
    for size in (16, 128):
        hashes = np.array([hashed(text, size) for text in texts])
        versions[f"hashes, {size} numbers"] = hashes
        versions[f"`request_features` and {size} numbers"] = np.column_stack([built_in.features, hashes])
    print("| features | gain of the middle model | reward of the cheap model | logarithm of the middle model's cost |")
    print("|---|---|---|---|")
    for name, features in versions.items():
        targets = rewards[:, middle] - rewards[:, cheap], rewards[:, cheap], cost
        print(f"| {name} | {' | '.join(f'{explained(features, target):.3f}' for target in targets)} |", flush=True)


if __name__ == "__main__":
    main()
