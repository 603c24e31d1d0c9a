-- PostgreSQL writes a new version of a row at every change, and while anybody looks at an older state none can be cleared
-- away. So the tables that change with every request (campaign, arm, lease, decision) have no index on a column that
-- changes: most versions then stay on one page and the indexes are left alone. What changes again and again
-- (campaign, arm, lease) has no unique index either, because to check one is to read all versions: tables that never
-- change see to it that ids and names are used once; the ids of leases are random. And no row of a request refers to its
-- campaign by a foreign key, which would look it up and lock it once more; under leases nobody has it locked.

-- folded_name: the name without a difference between upper and lower case, as Python folds it in every alphabet; the list
-- of campaigns is filtered and ordered by it. cost_max, currency, shared_budget and tags: the settings that the list looks
-- at; each tag between two line breaks, NULL without any.
CREATE TABLE campaign_name (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    cost_max BIGINT NOT NULL,
    currency TEXT,
    folded_name BYTEWISE_TEXT NOT NULL,
    shared_budget TEXT,
    tags TEXT
);

CREATE INDEX campaign_name_shared_budget ON campaign_name (shared_budget) WHERE shared_budget IS NOT NULL;

-- Budgets over several campaigns. The account is the sum of its members' accounts, and what former members had spent.
CREATE TABLE shared_budget_name (
    name TEXT PRIMARY KEY
);

CREATE TABLE shared_budget (
    name TEXT NOT NULL,
    budget BIGINT NOT NULL,
    spent BIGINT NOT NULL,
    held BIGINT NOT NULL,
    overrun BIGINT NOT NULL,
    leased BIGINT NOT NULL,
    period BIGINT NOT NULL,
    advance BIGINT NOT NULL,
    created_at DOUBLE PRECISION NOT NULL,
    settings TEXT NOT NULL,
    CHECK (spent >= 0 AND held >= 0 AND overrun >= 0 AND leased >= 0 AND spent + held + leased <= budget)
) OFTEN_CHANGED;

CREATE INDEX shared_budget_row ON shared_budget (name);

-- Names that campaigns had before they were renamed: programs may go on using them.
CREATE TABLE former_name (
    name TEXT PRIMARY KEY,
    campaign TEXT NOT NULL
);

CREATE TABLE arm_name (
    campaign TEXT NOT NULL REFERENCES campaign_name (id),
    number BIGINT NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (campaign, number),
    UNIQUE (campaign, name)
);

-- Money is whole micros. The CHECK is the last line of defence: the rules in ledger.py keep it, the database enforces it.
-- day and today: when the day of the latest decision began, in seconds since 1970, and what the decisions of that day hold
-- and were charged, for daily caps.
-- period: when the present period of a budget that is renewed began; advance: money of periods to come that was spent
-- by a clock that was ahead. requests_used: requests whose cost was reported, or that were charged because nothing was
-- reported. arms_down: which arms cool down because they failed many times in a row, as JSON; NULL for most campaigns.
CREATE TABLE campaign (
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    policy TEXT NOT NULL,
    budget BIGINT NOT NULL,
    spent BIGINT NOT NULL DEFAULT 0,
    held BIGINT NOT NULL DEFAULT 0,
    overrun BIGINT NOT NULL DEFAULT 0,
    status TEXT NOT NULL,
    settings TEXT NOT NULL,
    learned TEXT NOT NULL,
    created_at DOUBLE PRECISION NOT NULL,
    day BIGINT NOT NULL DEFAULT 0,
    today BIGINT NOT NULL DEFAULT 0,
    leased BIGINT NOT NULL DEFAULT 0,
    requests_used BIGINT NOT NULL DEFAULT 0,
    period BIGINT NOT NULL DEFAULT 0,
    advance BIGINT NOT NULL DEFAULT 0,
    arms_down TEXT,
    CHECK (spent >= 0 AND held >= 0 AND overrun >= 0 AND leased >= 0 AND spent + held + leased <= budget),
    CHECK (status IN ('active', 'paused', 'frozen', 'closed'))
) OFTEN_CHANGED;

CREATE INDEX campaign_id ON campaign (id);

CREATE TABLE arm (
    campaign TEXT NOT NULL,
    number BIGINT NOT NULL,
    name TEXT NOT NULL,
    cost_cap BIGINT NOT NULL CHECK (cost_cap > 0),
    learned TEXT NOT NULL,
    active BOOLEAN NOT NULL
) OFTEN_CHANGED;

CREATE INDEX arm_number ON arm (campaign, number);

-- Money that a server decides with by itself. One that has ended has no row. lease_seq: the number of its latest event
-- among its own; merged_seq: of the latest that the campaign has learned from; digest: of all its events.
CREATE TABLE lease (
    id TEXT NOT NULL,
    campaign TEXT NOT NULL,
    amount BIGINT NOT NULL,
    spent BIGINT NOT NULL,
    held BIGINT NOT NULL,
    expires_at DOUBLE PRECISION NOT NULL,
    lease_seq BIGINT NOT NULL,
    merged_seq BIGINT NOT NULL,
    digest TEXT NOT NULL,
    requests_used BIGINT NOT NULL DEFAULT 0,
    CHECK (spent >= 0 AND held >= 0 AND spent + held <= amount)
) OFTEN_CHANGED;

CREATE INDEX lease_id ON lease (id);
CREATE INDEX lease_campaign ON lease (campaign, id);

-- hold: what was held; charged: what was booked as spent; overrun: what it cost beyond that; reported: whether the real cost
-- was reported. key: the idempotency key; request_digest: of the request under that key. request: what the request said
-- before its arm was chosen, as JSON; propensity: the probability of the choice. Most decisions have neither. The event has
-- them for the audit, the decision for learning. failed: whether a failure was reported.
-- The states are compared one by one: for IN, SQLite makes a table of them at every row it writes, which takes as long as
-- writing the row.
CREATE TABLE decision (
    id TEXT PRIMARY KEY,
    campaign TEXT NOT NULL,
    arm BIGINT NOT NULL,
    hold BIGINT NOT NULL,
    state TEXT NOT NULL CHECK (state = 'pending' OR state = 'settled' OR state = 'voided' OR state = 'expired'),
    charged BIGINT NOT NULL DEFAULT 0,
    overrun BIGINT NOT NULL DEFAULT 0,
    reported BOOLEAN NOT NULL,
    cost BIGINT,
    reward DOUBLE PRECISION,
    key TEXT NOT NULL,
    request_digest TEXT NOT NULL,
    created_at DOUBLE PRECISION NOT NULL,
    expires_at DOUBLE PRECISION NOT NULL,
    lease TEXT,
    request TEXT,
    propensity DOUBLE PRECISION,
    failed BOOLEAN NOT NULL DEFAULT FALSE,
    UNIQUE (campaign, key)
) CHANGED_ONCE;

-- pending_decision (expires_at, decision, campaign, created_at): the decisions whose state is pending, by when they expire
-- and by campaign.
PENDING_DECISIONS;

-- lease_seq: the number of an event of a lease among that lease's events. actor: the public part of the key of an
-- operator, or of a worker who reported on a decision; or the command line. shared_left: what the campaign's shared budget
-- had left, where that was less than its own.
CREATE TABLE event (
    seq COUNTED_KEY,
    campaign TEXT NOT NULL,
    kind TEXT NOT NULL,
    decision TEXT,
    arm BIGINT,
    amount BIGINT,
    reward DOUBLE PRECISION,
    at DOUBLE PRECISION NOT NULL,
    lease TEXT,
    lease_seq BIGINT,
    actor TEXT,
    request TEXT,
    propensity DOUBLE PRECISION,
    shared_left BIGINT
);

EVENTS_BY_CAMPAIGN;

-- The events of operators, which are few among very many.
CREATE INDEX event_operators ON event (campaign, seq) WHERE decision IS NULL AND lease IS NULL;

-- What was charged when a hold expired, for feedback that comes after: the campaign's terms may have changed since.
CREATE INDEX event_expired ON event (decision) WHERE kind = 'expired';

CREATE UNIQUE INDEX event_lease ON event (lease, lease_seq) WHERE lease IS NOT NULL;

-- Changes that operators made under an idempotency key, so that nothing is changed twice when an answer was lost.
-- request_digest: of the change; answer: what it was answered with, NULL where that is not kept.
CREATE TABLE operation (
    campaign TEXT NOT NULL REFERENCES campaign_name (id),
    key TEXT NOT NULL,
    request_digest TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    answer TEXT,
    PRIMARY KEY (campaign, key)
);

-- The answers of a campaign that are kept, the latest last.
CREATE INDEX operation_answers ON operation (campaign, at) WHERE answer IS NOT NULL;

-- Keys are kept as digests: a reader of the database cannot use them. name, owner: in words; last_used_at: written once a
-- minute at most. off: it came back with a restored copy, and nobody has turned it on.
CREATE TABLE api_key (
    prefix TEXT PRIMARY KEY,
    digest TEXT NOT NULL,
    scopes TEXT NOT NULL,
    campaign TEXT REFERENCES campaign_name (id),
    created_at DOUBLE PRECISION NOT NULL,
    name TEXT,
    owner TEXT,
    expires_at DOUBLE PRECISION,
    requests_per_second DOUBLE PRECISION,
    last_used_at DOUBLE PRECISION,
    off BOOLEAN NOT NULL DEFAULT FALSE
);

-- Who has made, dropped and turned on which key. The key itself may not exist any more. operation: the idempotency key of a form, so
-- that one that is sent twice makes one key.
CREATE TABLE key_event (
    seq COUNTED_KEY,
    kind TEXT NOT NULL,
    prefix TEXT NOT NULL,
    scopes TEXT NOT NULL,
    campaign TEXT,
    at DOUBLE PRECISION NOT NULL,
    actor TEXT,
    operation TEXT UNIQUE
);

-- What /readyz writes to see whether anything can be written.
CREATE TABLE heartbeat (
    number INTEGER PRIMARY KEY,
    at DOUBLE PRECISION NOT NULL,
    filler TEXT
);

-- What pages are drawn from, so that they cost no more for a long campaign than for a short one. Decisions do not write
-- here: a server sums the events of a campaign from time to time, in slices, and moves the watermark in the same
-- transaction. A reader adds the events after the watermark.
--
-- A row is what happened to an arm in a minute, an hour or a day (span, in seconds) that begins then (seconds since 1970).
-- decided, voided, expired, failed: events of that kind; overruns: reported costs that were overruns; cost: the sum of
-- reported costs; spent: what was charged, less what feedback has taken back; overrun: what was reported beyond the cap or the money left;
-- requests_used: as in campaign; delay_10, _60, _300: costs reported within that many seconds, and not within the shorter
-- time; sums of squares, of rewards and of costs in micros.
CREATE TABLE rollup (
    campaign TEXT NOT NULL,
    span BIGINT NOT NULL,
    begins BIGINT NOT NULL,
    arm BIGINT NOT NULL,
    decided BIGINT NOT NULL,
    costs_reported BIGINT NOT NULL,
    rewards_reported BIGINT NOT NULL,
    voided BIGINT NOT NULL,
    expired BIGINT NOT NULL,
    overruns BIGINT NOT NULL,
    cost BIGINT NOT NULL,
    spent BIGINT NOT NULL,
    overrun BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    failed_cost BIGINT NOT NULL,
    requests_used BIGINT NOT NULL,
    delay_10 BIGINT NOT NULL,
    delay_60 BIGINT NOT NULL,
    delay_300 BIGINT NOT NULL,
    reward DOUBLE PRECISION NOT NULL,
    reward_squared DOUBLE PRECISION NOT NULL,
    cost_squared DOUBLE PRECISION NOT NULL,
    failed_cost_squared DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (campaign, span, begins, arm)
) OFTEN_CHANGED;

-- All events of a campaign up to number seq are in its rollups. last_overrun_event: the number of the latest event that
-- reported an overrun. activity_seq: the times know of the events up to this number, which may be beyond seq while that
-- waits for a lease. oldest_unanswered_at: when the first decision was made since the latest feedback. minutes_from: from
-- this time on all rows of minutes are kept; a clock that was ahead has moved it ahead, and it never moves back.
CREATE TABLE rollup_watermark (
    campaign TEXT PRIMARY KEY,
    seq BIGINT NOT NULL,
    last_decision_at DOUBLE PRECISION,
    last_feedback_at DOUBLE PRECISION,
    last_overrun_event BIGINT,
    activity_seq BIGINT NOT NULL DEFAULT 0,
    oldest_unanswered_at DOUBLE PRECISION,
    minutes_from BIGINT NOT NULL DEFAULT 0
) OFTEN_CHANGED;

-- A refusal changes nothing, so it has no event: servers count refusals in memory and add them here.
CREATE TABLE refusal (
    campaign TEXT NOT NULL,
    begins BIGINT NOT NULL,
    reason TEXT NOT NULL,
    count BIGINT NOT NULL,
    PRIMARY KEY (campaign, begins, reason)
) OFTEN_CHANGED;

-- A campaign after its event seq, as its events made it: money, what it had learned, open decisions. JSON in parts of
-- bounded size. Part 0 is written last: without it the others do not count.
CREATE TABLE checkpoint (
    campaign TEXT NOT NULL,
    seq BIGINT NOT NULL,
    part BIGINT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (campaign, seq, part)
);

-- Addresses that want to hear of campaigns: of one, or of all. secret: what notifications are signed with, so it is kept
-- as it is. tried_at: when a notification was last sent; problem: why it was not accepted, NULL if it was. off: as of keys.
CREATE TABLE webhook (
    id TEXT PRIMARY KEY,
    url TEXT NOT NULL,
    secret TEXT NOT NULL,
    created_at DOUBLE PRECISION NOT NULL,
    campaign TEXT REFERENCES campaign_name (id),
    tried_at DOUBLE PRECISION,
    problem TEXT,
    off BOOLEAN NOT NULL DEFAULT FALSE
);

-- What was last notified of a campaign: its standing, and its overrun.
CREATE TABLE webhook_state (
    campaign TEXT PRIMARY KEY,
    standing TEXT,
    overrun BIGINT NOT NULL
) OFTEN_CHANGED;

-- Notifications that an address has not accepted yet. due_at: when to try again.
CREATE TABLE webhook_delivery (
    id TEXT PRIMARY KEY,
    webhook TEXT NOT NULL,
    body TEXT NOT NULL,
    made_at DOUBLE PRECISION NOT NULL,
    due_at DOUBLE PRECISION NOT NULL,
    tries BIGINT NOT NULL
);

CREATE INDEX webhook_delivery_due ON webhook_delivery (due_at);
