"""The learners of campaigns, in memory between transactions.

A learner in memory stands for one committed state of its campaign: the one whose tag it has. A change of a learner
must keep others from taking it for the state before, write what has changed, and give it the tag of the new state. If
the transaction fails halfway, the learner is read again from the store. `Learners.changing` and `choosing` see to all
of that; nothing else changes a learner.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from budgetbandits.service.campaign_learner import CampaignLearner, changed_since, newest_tag
from budgetbandits.service.stores.contract import DecisionTransaction, Store, find_campaign, full
from budgetbandits.service.stores.records import Campaign


class Learners:
    """The learners of the campaigns of one store, in one process."""

    def __init__(self) -> None:
        self.kept: dict[str, CampaignLearner] = {}
        self._ids: dict[str, str] = {}
        """The ids of campaigns that were read ahead, by name and by id."""

    def of(self, tx: DecisionTransaction, row: Campaign) -> CampaignLearner:
        """The campaign's learner as of this transaction, to look at: with what other servers have changed."""
        learner = self.kept.get(row.id)
        if learner is not None and learner.tag == newest_tag(row):
            return learner
        changed = None if learner is None else changed_since(row, learner.tag)
        if learner is None or changed is None:
            learner = self.kept[row.id] = CampaignLearner.from_rows(row, tx.arms(row.id))
        else:
            learner.catch_up(row, tx.arms(row.id, changed) if changed else [])
        return learner

    def read_ahead(self, store: Store, campaign: str) -> None:
        """Have a campaign's learner in memory before a transaction needs it: with very many arms that takes seconds, in
        which nobody else could write. Changes made meanwhile are caught up with by `of`."""

        def work(tx: DecisionTransaction) -> tuple[Campaign, CampaignLearner | None]:
            row = find_campaign(tx, campaign)
            return row, None if row.id in self.kept else CampaignLearner.from_rows(row, tx.arms(row.id))

        row, learner = store.read(work)
        if learner is not None:
            self.kept.setdefault(row.id, learner)
        self._ids[row.name] = self._ids[row.id] = row.id

    def was_read(self, campaign: str) -> bool:
        return campaign in self._ids

    def id_of(self, campaign: str) -> str:
        """The id of a campaign that was read ahead, by its name or id; what was given if it was not."""
        return self._ids.get(campaign, campaign)

    def opens_segment(self, campaign: str, segment: str) -> bool:
        """Whether a request with this segment may open it, for all that is known here."""
        learner = self.kept.get(self.id_of(campaign))
        return learner is None or (learner.by_request and segment not in learner.segments)

    def changing(self, tx: DecisionTransaction, row: Campaign) -> Change:
        """Change the learner in a ``with`` block; at its end the campaign and the changed arms are written."""
        return Change(self, tx, row)

    def choosing(self, tx: DecisionTransaction, row: Campaign) -> Change:
        """Let the learner choose in a ``with`` block. Most choices leave no trace; then only the money is written."""
        return _Choice(self, tx, row)


class Change:
    """A change that is under way. A class rather than contextlib's decorator, which is measurably slower.

    learner  what changes
    row      the campaign as it will be written: set it if its money changes too
    arms     the arms of which something has changed
    added    the arms that are new
    whole    whether all of it has changed, in such a way that every server must read it again
    """

    def __init__(self, learners: Learners, tx: DecisionTransaction, row: Campaign) -> None:
        self.learner = learners.of(tx, row)
        self.row = row
        self.arms: Sequence[int] = ()
        self.added: Sequence[int] = ()
        self.whole = False
        self._kept = learners.kept
        self._tx = tx

    def __enter__(self) -> Self:
        self._kept.pop(self.row.id, None)  # dropped from the cache until the change is committed
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if error is None:
            self._write()
            self._kept[self.row.id] = self.learner

    def _write(self) -> None:
        if self.whole:
            self.arms = [arm for arm in range(len(self.learner.names)) if arm not in self.added]
        self.row = self.learner.campaign_row(self.row, None if self.whole else [*self.arms, *self.added])
        if self.added:
            full(self._tx).add_arms([self.learner.arm_row(self.row, arm) for arm in self.added])
        self._tx.save_arms([self.learner.arm_row(self.row, arm) for arm in self.arms])
        self._tx.save_campaign(self.row)


class _Choice(Change):
    """A change that a choice makes, if it makes any."""

    def __enter__(self) -> Self:
        self._before: dict[str, Any] = {} if self.learner.stateless else dict(vars(self.learner.state))
        self._segments = len(self.learner.segments) if self.learner.by_request else 0
        return super().__enter__()

    def _write(self) -> None:
        learner, stateless = self.learner.learner, self.learner.stateless
        if self.learner.by_request and len(self.learner.segments) != self._segments:
            self.arms = range(len(self.learner.names))
        elif not stateless:
            self.arms = sorted({*self.arms, *learner.changed_since(self._before)})
        if self.arms or (not stateless and learner.shared_state() != self.row.learned["single"]):
            super()._write()
        else:
            self._tx.save_money(self.row)
