"""Studies: an experiment file, its games on one machine or many, and what follows from them.

Public are `Experiment`, `run` and `Results`. Read them in the order of a study:

experiment_file, plan    read the TOML file; the experiment and its cells of work
runner, study            play the cells; the folder they are written to, its record and progress
data, results            the table of all games; summaries and comparisons of it
statistics, growth       intervals and tests; slopes and worst cases
plots                    figures of a study, drawn by `budgetbandits.figures`
suite, standings         settings that share their policies; policies in order, with intervals
leaderboard, recommend   the summary of a suite; which policy for a problem like one of its settings
score                    one number for a policy over a suite, in which tails count as much as means
paper                    the paper's own studies and the verdict on each of its claims
"""

from budgetbandits.experiments.plan import Experiment
from budgetbandits.experiments.results import Results
from budgetbandits.experiments.runner import run

__all__ = ["Experiment", "Results", "run"]
