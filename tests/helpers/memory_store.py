"""A store in memory: what the contract asks for and no more, fast enough for a hundred thousand steps.

It can be told to break: before the commit (nothing happened) or after it (it happened, but the answer is lost).
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import Future
from dataclasses import replace

from budgetbandits.errors import StoreError
from budgetbandits.service.names import normal
from budgetbandits.service.stores.contract import Store, Transaction
from budgetbandits.service.stores.records import LEASE_MILESTONES, LeaseEvent, Watermark
from budgetbandits.service.stores.sql.dashboard import CampaignPage


class MemoryStore(Store):
    def __init__(self):
        self.campaigns, self.arms, self.decisions, self.keys, self.events = {}, {}, {}, {}, []
        self.api_keys, self.heartbeat, self.leases, self.operations = {}, {}, {}, {}
        self.former_names, self.shared_budgets = {}, {}
        self.breaks = None
        self.closed = False

    def submit(self, work, scope=""):
        """Done before it returns."""
        future = Future()
        try:
            future.set_result(self.write(work))
        except BaseException as error:
            future.set_exception(error)
        return future

    def write(self, work, scope=""):
        if self.closed:
            raise StoreError("the store is closed; open it again")
        transaction = _Memory(self)
        try:
            answer = work(transaction)
        except BaseException:
            transaction.rollback()
            raise
        if self.breaks == "before":
            transaction.rollback()
            raise StoreError("the disk is gone; nothing was decided")
        if self.breaks == "after":
            raise StoreError("the answer was lost")
        return answer

    def read(self, work, urgent=False):
        return work(_Memory(self))

    def close(self):
        self.closed = True


class _Memory(Transaction):
    def __init__(self, store):
        self.store, self.log, self.length = store, [], len(store.events)

    def rollback(self):
        for table, key, old in reversed(self.log):
            if old is None:
                table.pop(key, None)
            else:
                table[key] = old
        del self.store.events[self.length :]

    def _put(self, table, key, value):
        self.log.append((table, key, table.get(key)))
        table[key] = value

    def rollups(self):
        return NoRollups()

    def pages(self):
        return OperatorsPage(self.store)

    def pruning(self):
        return NoPruning()

    def webhooks(self):
        return NoWebhooks()

    def shared_budgets(self):
        return SharedRows(self)

    def shared_budget(self, name):
        return self.store.shared_budgets.get(name)

    def save_shared_budget(self, shared):
        self._put(self.store.shared_budgets, shared.name, shared)

    save_shared_settings = save_shared_budget

    def campaign(self, id_or_name):
        name = normal(id_or_name)
        named = (row for row in self.store.campaigns.values() if row.name == name)
        found = self.store.campaigns.get(id_or_name) or next(named, None)
        return found or self.store.campaigns.get(self.store.former_names.get(name))

    def campaigns(self, limit=None, after=""):
        found = sorted(self.store.campaigns.values(), key=lambda each: (each.created_at, each.id))
        first = [each.id for each in found].index(after) + 1 if after else 0
        return found[first:][:limit]

    def add_campaign(self, campaign):
        self.save_campaign(campaign)

    def drop_campaign(self, campaign):
        raise NotImplementedError

    def save_campaign(self, campaign):
        account = campaign.account
        if account.spent + account.held + account.leased > account.budget:
            raise StoreError("the store refused: spent + held + leased > budget; nothing was written")
        self.move_shared(self.store.campaigns.get(campaign.id), campaign)
        self._put(self.store.campaigns, campaign.id, campaign)

    def save_settings(self, campaign):
        before = self.campaign(campaign.id)
        if before.name != campaign.name:
            self._put(self.store.former_names, before.name, campaign.id)
        facts = {"settings": campaign.settings, "name": campaign.name, "policy": campaign.policy}
        self.save_campaign(replace(before, **facts))

    def former_names(self, campaign):
        return [name for name, id in self.store.former_names.items() if id == campaign]

    def save_caps(self, campaign, caps):
        rows = [replace(arm, cost_cap=caps.get(arm.number, arm.cost_cap)) for arm in self.store.arms[campaign]]
        self._put(self.store.arms, campaign, tuple(rows))

    def save_money(self, campaign):
        self.save_campaign(replace(self.campaign(campaign.id), account=campaign.account))

    def arms(self, campaign, numbers=None):
        rows = self.store.arms.get(campaign, ())
        return list(rows) if numbers is None else [rows[number] for number in numbers]

    def add_arms(self, arms):
        self.save_arms(arms)

    def save_arms(self, arms):
        for arm in arms:
            rows = list(self.store.arms.get(arm.campaign, ()))
            rows[arm.number : arm.number + 1] = [arm]
            self._put(self.store.arms, arm.campaign, tuple(rows))

    def decision(self, id):
        return self.store.decisions.get(id)

    def decisions_of(self, ids):
        return [self.store.decisions[id] for id in ids if id in self.store.decisions]

    def decision_by_key(self, campaign, key):
        return self.store.decisions.get(self.store.keys.get((campaign, key)))

    def add_decision(self, decision):
        if (decision.campaign, decision.key) in self.store.keys:
            raise StoreError("the store refused: the key is there; nothing was written")
        self._put(self.store.keys, (decision.campaign, decision.key), decision.id)
        self.save_decision(decision)

    def save_decision(self, decision):
        self._put(self.store.decisions, decision.id, decision)

    def forget_key(self, decision):
        self.log.append((self.store.keys, (decision.campaign, decision.key), decision.id))
        del self.store.keys[decision.campaign, decision.key]

    def due_decisions(self, now, limit, without=()):
        pending = [d for d in self.store.decisions.values() if d.hold.state == "pending" and d.expires_at <= now]
        pending = [d for d in pending if d.campaign not in without]
        return [(d.campaign, d.id) for d in sorted(pending, key=lambda d: d.expires_at)[:limit]]

    def pending_decisions(self, campaign):
        made = self.store.decisions.values()
        return {d.id: d.expires_at for d in made if d.hold.state == "pending" and d.campaign == campaign}

    def pending_of(self, ids):
        return {d.id: d.expires_at for d in self.decisions_of(ids) if d.hold.state == "pending"}

    def set_expiry(self, decision, expires_at):
        self.save_decision(replace(self.decision(decision), expires_at=expires_at))

    def booked_between(self, campaign, begin, end):
        made = [d for d in self.store.decisions.values() if d.campaign == campaign and d.lease is None]
        made = [d for d in made if begin <= d.created_at < end]
        return sum(d.hold.amount if d.hold.state == "pending" else d.hold.charged for d in made)

    def decisions(self, campaign, after=0, limit=1000):
        made = [event for event in self.events(campaign, after, 10**9) if event.kind == "decided"]
        return [(event.seq, self.decision(event.decision)) for event in made[:limit]]

    def pending_by_arm(self, campaign):
        pending = [self.store.decisions[id] for id in self.pending_decisions(campaign)]
        return Counter(made.arm for made in pending)

    def lease(self, id):
        return self.store.leases.get(id)

    def leases(self, campaign):
        return [lease for _, lease in sorted(self.store.leases.items()) if lease.campaign == campaign]

    def add_lease(self, lease):
        self.save_lease(lease)

    def save_lease(self, lease):
        self._put(self.store.leases, lease.id, lease)

    def drop_lease(self, id):
        self.log.append((self.store.leases, id, self.store.leases.pop(id)))

    def due_leases(self, now):
        return [(lease.campaign, lease.id) for lease in self.store.leases.values() if lease.expires_at <= now]

    def lease_events(self, lease, after):
        events = [event for event in self.store.events if event.lease == lease and event.lease_seq > after]
        made = [self.store.decisions.get(event.decision) for event in events]
        known = [() if each is None else (each.cost, each.reward, each.request, each.created_at) for each in made]
        return [LeaseEvent(event, *each) for event, each in zip(events, known, strict=True)]

    def write_heartbeat(self, now):
        self._put(self.store.heartbeat, 1, now)

    def add_event(self, event):
        self.store.events.append(replace(event, seq=len(self.store.events) + 1))

    def operation(self, campaign, key):
        return self.store.operations.get((campaign, key), (None, None))[0]

    def answer(self, campaign, key):
        return self.store.operations.get((campaign, key), (None, None))[1]

    def add_operation(self, campaign, key, digest, now, answer=None):
        self._put(self.store.operations, (campaign, key), (digest, answer))

    def add_key(self, key):
        self._put(self.store.api_keys, key.prefix, key)

    def key(self, prefix):
        return self.store.api_keys.get(prefix)

    def keys(self):
        return list(self.store.api_keys.values())

    def note_key_used(self, prefix, at):
        self.store.api_keys[prefix] = replace(self.store.api_keys[prefix], last_used_at=at)

    def set_key_off(self, prefix, off):
        self.store.api_keys[prefix] = replace(self.store.api_keys[prefix], off=off)

    def drop_key(self, prefix):
        self.store.api_keys.pop(prefix, None)

    def add_key_event(self, event):
        """This store keeps no record of keys."""

    def key_made_under(self, operation):
        return None

    def key_events(self, limit, before=None):
        return []

    def events(self, campaign, after=0, limit=1000, kind=None):
        events = [event for event in self.store.events[after:] if event.campaign == campaign]
        return [event for event in events if kind in (None, event.kind)][:limit]

    def last_event(self, campaign):
        return max((event.seq for event in self.store.events if event.campaign == campaign), default=0)

    def last_own_event(self, campaign):
        own = [
            event for event in self.events(campaign, 0, 10**9) if event.lease is None or event.kind in LEASE_MILESTONES
        ]
        return max((event.seq for event in own), default=0)


class OperatorsPage:
    """Of all that pages show, what operators have done."""

    def __init__(self, store):
        self.store = store

    def operator_events(self, campaign, limit):
        own = [e for e in self.store.events if e.campaign == campaign and e.decision is None and e.lease is None]
        return own[::-1][:limit]

    def names(self, campaigns):
        return {id: self.store.campaigns[id].name for id in campaigns}

    def campaign_list(self):
        return self

    def listed(self, *_):
        """No campaigns: their series are tested on real stores."""
        return CampaignPage([], {})


class SharedRows:
    """The shared budgets and who is a member."""

    def __init__(self, tx):
        self.tx = tx

    def add(self, shared):
        self.tx.save_shared_budget(shared)

    def all(self, limit=None):
        return sorted(self.tx.store.shared_budgets.values(), key=lambda each: each.name)

    def members(self, name):
        return [row.id for row in self.tx.campaigns() if row.settings.terms.shared_budget == name]


class NoRollups:
    """A store in memory adds nothing up."""

    def watermark(self, campaign):
        return Watermark()

    def rows(self, campaign, span, since=0):
        return []

    def mismatch(self, campaign, span):
        return None


class NoWebhooks:
    """A store in memory notifies nobody."""

    def all(self):
        return []


class NoPruning:
    """A store in memory keeps everything."""

    def checkpoint(self, campaign):
        return 0

    def prunings(self, campaign):
        return []
