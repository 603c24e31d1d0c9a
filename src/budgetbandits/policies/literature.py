"""Where each policy is from, and what is proven of its regret: one line each, for tables.

The modules of the policies say more, under which assumptions among them. "Proven" is of the regret against the budget
B, for the problem as it is, with the parameters of the proof, which are often not the defaults. Where a parameter takes
a policy out of its proof, nothing is proven.
"""

from __future__ import annotations

from typing import NamedTuple


class Source(NamedTuple):
    """A reference and a proof, both short."""

    reference: str
    proven: str


NOTHING = "nothing"
_XIA_2017 = "Xia et al., Neurocomputing 2017"
_CAYCI = "Cayci, Eryilmaz and Srikant, AISTATS 2020"
_OURS = "not in print for ratios, as far as known"
_FUTURE = "future work of Xia et al. 2015"

SOURCES: dict[str, Source] = {
    "bts": Source("Xia et al., IJCAI 2015", "O(ln B)"),
    "bts-paced": Source(
        "after Ferreira, Simchi-Levi and Wang, Operations Research 2018",
        "O(√T) in Bayes' mean, for outcomes 0 and 1 and one segment",
    ),
    "bts-gaussian": Source(_FUTURE, NOTHING),
    "bts-joint": Source(_FUTURE, NOTHING),
    "epsilon-first": Source("Tran-Thanh et al., AAAI 2010, as in Xia et al. 2015", "O(B^2/3) with the best ε"),
    "epsilon-first-greedy": Source("Tran-Thanh et al., AAAI 2010", "O(B^2/3) with the best ε"),
    "pd-bwk": Source("Badanidiyuru et al., FOCS 2013, as in Xia et al. 2015", "O(√B) up to logarithms, any problem"),
    "primal-dual-bwk": Source("Badanidiyuru et al., FOCS 2013", "O(√B) up to logarithms, any problem"),
    "ucb-bv1": Source("Ding et al., AAAI 2013", "O(ln B)"),
    "ucb-bv2": Source("Ding et al., AAAI 2013", "O(ln B)"),
    "kube": Source("Tran-Thanh et al., AAAI 2012, as in Xia et al. 2015", NOTHING),
    "kube-fractional": Source("Tran-Thanh et al., AAAI 2012", "O(ln B), costs known and fixed"),
    "kube-knapsack": Source("Tran-Thanh et al., AAAI 2012", "O(ln B), costs known and fixed"),
    "thompson": Source("Thompson 1933", "O(ln B) if every cost is 1"),
    "ucb1": Source("Auer et al., Machine Learning 2002", "O(ln B) if every cost is 1"),
    "ucb-v": Source("Audibert et al., TCS 2009", "O(ln B) if every cost is 1"),
    "moss": Source("Audibert and Bubeck, COLT 2009", "O(√B) if every cost is 1, any problem"),
    "kl-ucb": Source("Garivier and Cappé, COLT 2011", "attains the lower bound if every cost is 1"),
    "bayes-ucb": Source("Kaufmann et al., AISTATS 2012", "attains the lower bound if every cost is 1"),
    "omega-ucb": Source("Heyden et al., KDD 2024", "O(ln B) for ρ = 1, nothing for ρ = 1/4"),
    "omega-star-ucb": Source("Heyden et al., KDD 2024", NOTHING),
    "omega-rising": Source(_OURS, NOTHING),
    "i-ucb": Source(_XIA_2017, "O(ln B) for large α"),
    "c-ucb": Source(_XIA_2017, "O(ln B) for large α"),
    "m-ucb": Source(_XIA_2017, "O(ln B) for large α"),
    "b-greedy": Source(_XIA_2017, "O(ln B) for large α"),
    "budget-ucb": Source("Xia et al., ACML 2015", "O(ln B)"),
    "ucb-sc": Source("Watanabe et al., IEICE 2018", "not checked"),
    "kl-ucb-sc": Source("Watanabe et al., IEICE 2017", "attains the lower bound, Bernoulli"),
    "kl-ucb-sc-plus": Source("Watanabe et al., IEICE 2017", NOTHING),
    "ucb-b1": Source(_CAYCI, "O(ln B)"),
    "ucb-b2": Source(_CAYCI, "O(ln B)"),
    "ucb-b2c": Source(_CAYCI, "O(ln B)"),
    "ucb-m1": Source(_CAYCI, "O(ln B)"),
    "imed-ratio": Source(_OURS, "attains the lower bound, Bernoulli, for κ = 1"),
    "imed-fading": Source(_OURS, "attains the lower bound, Bernoulli, for κ ≥ 1"),
    "imed-moss": Source(_OURS, "attains the lower bound, Bernoulli, for κ = 1"),
    "maillard-ratio": Source(_OURS, NOTHING),
    "npts-ratio": Source(_OURS, NOTHING),
    "empirical-imed": Source(_OURS, NOTHING),
}


UNPROVEN = frozenset({"kappa", "forget", "prior_reward", "prior_cost"})
"""Parameters with which nothing is proven of any policy: counts times κ, outcomes that are forgotten, and other priors
than the uniform ones of the proofs."""


def source_of(policy: str) -> Source:
    """Of a policy by its spec, which leaves out the defaults; one from outside the package is its author's.

    >>> source_of("bts").proven, source_of("bts:kappa=1.5").proven, source_of("bts-paced:forget=0.002").proven
    ('O(ln B)', 'nothing', 'nothing')
    """
    name, _, parameters = policy.partition(":")
    found = SOURCES.get(name, Source("yours", "yours to say"))
    given = {each.partition("=")[0].strip() for each in parameters.split(",")}
    return found._replace(proven=NOTHING) if name in SOURCES and given & UNPROVEN else found


def published(policy: str) -> bool:
    """Whether somebody else has put the rule of this policy in print; counts times κ are ours.

    >>> published("bts"), published("bts:kappa=1.5"), published("imed-ratio")
    (True, False, False)
    """
    reference = source_of(policy).reference
    return reference not in (_OURS, _FUTURE, "yours") and "kappa=" not in policy
