"""Studies: an experiment file, its games on one machine or many, and what they say."""

from budgetbandits.experiments.plan import Experiment
from budgetbandits.experiments.results import Results
from budgetbandits.experiments.runner import run

__all__ = ["Experiment", "Results", "run"]
