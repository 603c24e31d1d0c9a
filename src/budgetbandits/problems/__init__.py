"""The hidden truth: what arms pay and cost, and what the best player could earn.

Read `problem` first: a problem is a list of arms, an arm is a name and a law. Public from here are the laws, and what
streams are built of by hand: `StreamPart`, or `LinearStream` with its arms and features.

distributions            laws of rewards and costs; checks of laws from outside the package
problem, families        problems and their files; random and hard families of them
streams                  request streams: several segments, arms that change with time
linear                   streams of requests with features, in which means are linear
records                  recorded outcomes from files and tables
oracle, oracle_horizon   the best player, without and with a number of requests for which the money must last

No policy may import this package.
"""

from budgetbandits.problems.distributions import (
    Bernoulli,
    Beta,
    Copula,
    Fixed,
    Independent,
    JointTable,
    Lattice,
    Law,
    OutcomeLaw,
)
from budgetbandits.problems.linear import BernoulliFeature, LinearArm, LinearStream, NormalFeature
from budgetbandits.problems.streams import StreamPart

__all__ = [
    "Bernoulli",
    "BernoulliFeature",
    "Beta",
    "Copula",
    "Fixed",
    "Independent",
    "JointTable",
    "Lattice",
    "Law",
    "LinearArm",
    "LinearStream",
    "NormalFeature",
    "OutcomeLaw",
    "StreamPart",
]
