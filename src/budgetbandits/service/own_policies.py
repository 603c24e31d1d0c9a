"""The policies that campaigns play: the package's own, and those of plugins that all servers have loaded.

A policy of a plugin is known by its name and by a fingerprint of its code, which the campaign keeps. Where the code is
not loaded, or is not the same, nothing is decided, learned or audited: every server, every audit and every choice ahead
must play the same rule. A rule that is changed is another policy and goes by another name.

The processes that a server starts load the same files (`policies.files.load_inherited`). Text from a network names a
policy that is loaded, never a file.
"""

from __future__ import annotations

from budgetbandits.errors import BadParameter, Conflict
from budgetbandits.fingerprint import fingerprint
from budgetbandits.policies import POLICIES, POLICY_REGISTRY, Policy, parse_policy
from budgetbandits.service.stores.records import Campaign


def offered_policy(text: str) -> Policy:
    """The policy of this name, for a campaign that is created or changed."""
    if ".py" in text:
        raise BadParameter(
            f"policy is {text[:60]!r}, and a campaign names no file; start every server with "
            "'budgetbandits --plugin FILE serve', and give the name that the policy has in its class"
        )
    policy = parse_policy(text)
    if type(policy).totals is Policy.totals:
        raise BadParameter(
            f"{policy.name} does not say what it has learned, so its campaign could not be changed; write "
            "totals(self, state, arm) in its class"
        )
    return policy


def code_of(policy: Policy) -> str | None:
    """The fingerprint of a policy's code; None for one of the package, which is known by its version."""
    return None if policy.name in POLICIES else fingerprint(policy)


def policy_of(row: Campaign) -> Policy:
    """The policy that a campaign plays; Conflict if its code is not the code that is loaded here."""
    code, name = row.settings.policy_code, row.policy.partition(":")[0]
    if code is not None and name not in POLICY_REGISTRY:
        raise Conflict(
            f"campaign {row.name!r:.60} plays {name}, a policy of a plugin that is not loaded here; load it with "
            "'budgetbandits --plugin FILE', or set BUDGETBANDITS_PLUGIN to the file"
        )
    policy = parse_policy(row.policy)
    if code_of(policy) != code:
        raise Conflict(
            f"campaign {row.name!r:.60} plays a {name} with other code than the one that is loaded here; load the file "
            "that it was created with, by the same version of Python, and give a changed policy another name"
        )
    return policy
