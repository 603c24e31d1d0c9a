"""The sessions of campaigns, in memory between transactions.

A session in memory stands for one committed state of its campaign: the one whose tag it has. A change of a session
must keep others from taking it for the state before, write what has changed, and give it the tag of the new state. If
the transaction fails halfway, the session is read again from the store. `SessionCache.changing` and `choosing` see to
all of that; nothing else changes a session.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from budgetbandits.service.campaign_session import CampaignSession
from budgetbandits.service.session_rows import arm_row, campaign_row, catch_up, changed_since, read_session
from budgetbandits.service.stores.contract import Store, Transaction, find_campaign
from budgetbandits.service.stores.records import Campaign


class SessionCache:
    """The sessions of the campaigns of one store, in one process."""

    def __init__(self) -> None:
        self.kept: dict[str, CampaignSession] = {}
        self._ids: dict[str, str] = {}
        """The ids of campaigns that were read ahead, by name and by id."""

    def of(self, tx: Transaction, row: Campaign) -> CampaignSession:
        """The campaign's session as of this transaction, to look at: with what other servers have changed."""
        session = self.kept.get(row.id)
        if session is not None and session.tag == row.tag:
            return session
        changed = None if session is None else changed_since(row, session.tag)
        if session is None or changed is None:
            session = self.kept[row.id] = read_session(row, tx.arms(row.id))
        else:
            catch_up(session, row, tx.arms(row.id, changed) if changed else [])
        return session

    def read_ahead(self, store: Store, campaign: str) -> None:
        """Have a campaign's session in memory before a transaction needs it: with very many arms that takes seconds, in
        which nobody else could write. Changes made meanwhile are caught up with by `of`."""

        def work(tx: Transaction) -> tuple[Campaign, CampaignSession | None]:
            row = find_campaign(tx, campaign)
            return row, None if row.id in self.kept else read_session(row, tx.arms(row.id))

        row, session = store.read(work)
        if session is not None:
            self.kept.setdefault(row.id, session)
        self._ids[row.name] = self._ids[row.id] = row.id

    def was_read(self, campaign: str) -> bool:
        """Whether the campaign was read ahead."""
        return campaign in self._ids

    def id_of(self, campaign: str) -> str:
        """The id of a campaign that was read ahead, by its name or id; what was given if it was not."""
        return self._ids.get(campaign, campaign)

    def opens_segment(self, campaign: str, segment: str) -> bool:
        """Whether a request with this segment may open it, for all that is known here."""
        session = self.kept.get(self.id_of(campaign))
        return session is None or (session.by_request and segment not in session.segments)

    def changing(self, tx: Transaction, row: Campaign) -> Change:
        """Change the session in a ``with`` block; at its end the campaign and the changed arms are written."""
        return Change(self, tx, row)

    def choosing(self, tx: Transaction, row: Campaign) -> Change:
        """Let the session choose in a ``with`` block. Most choices leave no trace; then only the money is written."""
        return _Choice(self, tx, row)


class Change:
    """A change that is under way. A class rather than contextlib's decorator, which is measurably slower.

    session  what changes
    row      the campaign as it will be written: set it if its money changes too
    arms     the arms of which something has changed
    added    the arms that are new
    whole    whether all of it has changed, in such a way that every server must read it again
    """

    def __init__(self, sessions: SessionCache, tx: Transaction, row: Campaign) -> None:
        self.session = sessions.of(tx, row)
        self.row = row
        self.arms: Sequence[int] = ()
        self.added: Sequence[int] = ()
        self.whole = False
        self._kept = sessions.kept
        self._tx = tx

    def __enter__(self) -> Self:
        self._kept.pop(self.row.id, None)  # dropped from the cache until the change is committed
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if error is None:
            self._write()
            self._kept[self.row.id] = self.session

    def _write(self) -> None:
        if self.whole:
            self.arms = [arm for arm in range(len(self.session.names)) if arm not in self.added]
        self.row = campaign_row(self.session, self.row, None if self.whole else [*self.arms, *self.added])
        if self.added:
            self._tx.add_arms([arm_row(self.session, self.row, arm) for arm in self.added])
        self._tx.save_arms([arm_row(self.session, self.row, arm) for arm in self.arms])
        self._tx.save_campaign(self.row)


class _Choice(Change):
    """A change that a choice makes, if it makes any."""

    def __enter__(self) -> Self:
        self._before: dict[str, Any] = {} if self.session.stateless else dict(vars(self.session.state))
        self._segments = len(self.session.segments) if self.session.by_request else 0
        return super().__enter__()

    def _write(self) -> None:
        learner, stateless = self.session.learner, self.session.stateless
        if self.session.by_request and len(self.session.segments) != self._segments:
            self.arms = range(len(self.session.names))
        elif not stateless:
            self.arms = sorted({*self.arms, *learner.changed_since(self._before)})
        if self.arms or (not stateless and learner.shared_state() != self.row.learned["single"]):
            super()._write()
        else:
            self._tx.save_money(self.row)
