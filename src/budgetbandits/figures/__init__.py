"""Figures: drawn with Matplotlib from plain arrays, for the width at which they are read.

Nothing here changes Matplotlib's settings or uses pyplot. The functions know neither studies nor problems: those who
have the numbers (`Results.plot`, `Outcome.plot`, `Problem.plot`, `Allocation.plot`) hand them over.
"""

from __future__ import annotations

from importlib.util import find_spec

from budgetbandits.errors import MissingExtra

if find_spec("matplotlib") is None:
    raise MissingExtra("figures need Matplotlib; pip install 'budgetbandits[lab]'")
