-- PostgreSQL writes a new version of a row at every change, and while anybody looks at an older state none can be cleared
-- away. So the tables that change with every request (campaign, arm, lease, decision) have no index on a column that
-- changes: most versions then stand beside each other and the indexes are left alone. What changes again and again
-- (campaign, arm, lease) has no unique index either, because to check one is to read all versions: tables that never
-- change see to it that ids and names are used once; the ids of leases are random. And no row of a request refers to its
-- campaign by a foreign key, which would look it up and lock it once more; under leases nobody has it locked.

-- folded: the name without a difference between upper and lower case, as Python folds it in every alphabet, by which the
-- list of campaigns is filtered and ordered. cost_max and currency: the two settings that the list looks at.
CREATE TABLE campaign_name (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    cost_max BIGINT NOT NULL,
    currency TEXT,
    folded BYTEWISE_TEXT NOT NULL
);

CREATE TABLE arm_name (
    campaign TEXT NOT NULL REFERENCES campaign_name (id),
    number BIGINT NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (campaign, number),
    UNIQUE (campaign, name)
);

-- Money is whole micros. The CHECK is the last line of defence: the rules in ledger.py keep it, the database enforces it.
-- day and today: what the decisions of the latest day hold and were charged, for daily caps. gone: requests whose money is
-- gone, because their cost was reported, or because nothing was reported and they were charged. down: which arms have
-- failed so often in a row that they rest, as JSON; of most campaigns nothing.
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
    gone BIGINT NOT NULL DEFAULT 0,
    down TEXT,
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

-- Money that a server decides with by itself. One that has ended has no row.
CREATE TABLE lease (
    id TEXT NOT NULL,
    campaign TEXT NOT NULL,
    amount BIGINT NOT NULL,
    spent BIGINT NOT NULL,
    held BIGINT NOT NULL,
    expires_at DOUBLE PRECISION NOT NULL,
    turn BIGINT NOT NULL,
    merged BIGINT NOT NULL,
    tag TEXT NOT NULL,
    gone BIGINT NOT NULL DEFAULT 0,
    CHECK (spent >= 0 AND held >= 0 AND spent + held <= amount)
) OFTEN_CHANGED;

CREATE INDEX lease_id ON lease (id);
CREATE INDEX lease_campaign ON lease (campaign, id);

-- request: what was said of a request before its arm was chosen, as JSON; propensity: how likely the choice was. Most
-- decisions have neither. The event has them for the audit, the decision for whoever learns from it. failed: whether it was
-- reported that there was no answer.
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
    payload TEXT NOT NULL,
    created_at DOUBLE PRECISION NOT NULL,
    expires_at DOUBLE PRECISION NOT NULL,
    lease TEXT,
    request TEXT,
    propensity DOUBLE PRECISION,
    failed BOOLEAN NOT NULL DEFAULT FALSE,
    UNIQUE (campaign, key)
) CHANGED_ONCE;

-- pending (expires_at, decision, campaign, created_at): the decisions whose state is pending, by when they expire and by
-- campaign.
LIST_OF_PENDING;

-- actor: the public part of an operator's key, or the command line.
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
    turn BIGINT,
    actor TEXT,
    request TEXT,
    propensity DOUBLE PRECISION
);

CREATE INDEX event_campaign ON event (campaign, seq);

-- The events of operators, which are few among very many.
CREATE INDEX event_operators ON event (campaign, seq) WHERE decision IS NULL AND lease IS NULL;

-- What was charged when a hold expired, for feedback that comes after: the campaign's terms may have changed since.
CREATE INDEX event_expired ON event (decision) WHERE kind = 'expired';

CREATE UNIQUE INDEX event_lease ON event (lease, turn) WHERE lease IS NOT NULL;

-- What operators have changed under a key of theirs, so that nothing is changed twice when an answer was lost. answer: what
-- the change was answered with; NULL where it is not kept.
CREATE TABLE operation (
    campaign TEXT NOT NULL REFERENCES campaign_name (id),
    key TEXT NOT NULL,
    payload TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    answer TEXT,
    PRIMARY KEY (campaign, key)
);

-- The answers of a campaign that are kept, the latest last.
CREATE INDEX operation_answers ON operation (campaign, at) WHERE answer IS NOT NULL;

-- Keys are kept as digests: whoever reads the database cannot use them.
CREATE TABLE api_key (
    prefix TEXT PRIMARY KEY,
    digest TEXT NOT NULL,
    scopes TEXT NOT NULL,
    campaign TEXT REFERENCES campaign_name (id),
    created_at DOUBLE PRECISION NOT NULL
);

-- Who has made and dropped which key. The key itself may be gone. The operation is the idempotency key of a form, so that
-- one that is sent twice makes one key.
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
-- here: a server adds up the events of a campaign from time to time, in slices, and moves the mark in the same
-- transaction. Whoever reads adds the events after the mark.
--
-- A row is what happened to an arm in a minute, an hour or a day (span, in seconds) that begins then (seconds since 1970):
-- counts of events; cost: what was told; spent: what was charged, less what feedback has taken back; overrun: what was
-- told beyond the hold; delay_10, _60, _300: costs told within so many seconds, and not within the shorter
-- time; sums of squares, of rewards and of costs in micros.
CREATE TABLE rollup (
    campaign TEXT NOT NULL,
    span BIGINT NOT NULL,
    begins BIGINT NOT NULL,
    arm BIGINT NOT NULL,
    decided BIGINT NOT NULL,
    told BIGINT NOT NULL,
    rewarded BIGINT NOT NULL,
    voided BIGINT NOT NULL,
    expired BIGINT NOT NULL,
    overran BIGINT NOT NULL,
    cost BIGINT NOT NULL,
    spent BIGINT NOT NULL,
    overrun BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    failed_cost BIGINT NOT NULL,
    gone BIGINT NOT NULL,
    delay_10 BIGINT NOT NULL,
    delay_60 BIGINT NOT NULL,
    delay_300 BIGINT NOT NULL,
    reward DOUBLE PRECISION NOT NULL,
    reward_squared DOUBLE PRECISION NOT NULL,
    cost_squared DOUBLE PRECISION NOT NULL,
    failed_squared DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (campaign, span, begins, arm)
) OFTEN_CHANGED;

-- All events of a campaign up to number seq are in its rollups; when the latest of them was a decision or told a cost, and
-- the number of the latest that told an overrun. seen: which events these moments know of, also beyond seq while that waits for
-- a lease; oldest_unanswered_at: when the first decision was made since the latest answer.
CREATE TABLE rollup_mark (
    campaign TEXT PRIMARY KEY,
    seq BIGINT NOT NULL,
    decided_at DOUBLE PRECISION,
    last_feedback_at DOUBLE PRECISION,
    overran BIGINT,
    seen BIGINT NOT NULL DEFAULT 0,
    oldest_unanswered_at DOUBLE PRECISION
) OFTEN_CHANGED;

-- A refusal changes nothing, so no event tells of it: servers count refusals in memory and add them here.
CREATE TABLE refusal (
    campaign TEXT NOT NULL,
    begins BIGINT NOT NULL,
    reason TEXT NOT NULL,
    count BIGINT NOT NULL,
    PRIMARY KEY (campaign, begins, reason)
) OFTEN_CHANGED;
