-- PostgreSQL writes a new version of a row at every change, and while anybody looks at an older state none can be cleared
-- away. So the tables that change with every request (campaign, arm, lease, decision) have no index on a column that
-- changes: most versions then stand beside each other and the indexes are left alone. What changes again and again
-- (campaign, arm, lease) has no unique index either, because to check one is to read all versions: tables that never
-- change see to it that ids and names are used once; the ids of leases are random. And no row of a request refers to its
-- campaign by a foreign key, which would look it up and lock it once more; under leases nobody has it locked.

CREATE TABLE campaign_name (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
);

CREATE TABLE arm_name (
    campaign TEXT NOT NULL REFERENCES campaign_name (id),
    number BIGINT NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (campaign, number),
    UNIQUE (campaign, name)
);

-- Money is whole micros. The CHECK is the last line of defence: the rules in ledger.py keep it, the database enforces it.
-- day and today: what the decisions of the latest day hold and were charged, for daily caps.
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
    version BIGINT NOT NULL DEFAULT 0,
    created_at DOUBLE PRECISION NOT NULL,
    day BIGINT NOT NULL DEFAULT 0,
    today BIGINT NOT NULL DEFAULT 0,
    leased BIGINT NOT NULL DEFAULT 0,
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
    CHECK (spent >= 0 AND held >= 0 AND spent + held <= amount)
) OFTEN_CHANGED;

CREATE INDEX lease_id ON lease (id);
CREATE INDEX lease_campaign ON lease (campaign, id);

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
    UNIQUE (campaign, key)
) CHANGED_ONCE;

-- pending (expires_at, decision): the decisions whose state is pending, by when they expire.
LIST_OF_PENDING;

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
    turn BIGINT
);

CREATE INDEX event_campaign ON event (campaign, seq);

CREATE UNIQUE INDEX event_lease ON event (lease, turn) WHERE lease IS NOT NULL;

-- What operators have changed under a key of theirs, so that nothing is changed twice when an answer was lost.
CREATE TABLE operation (
    campaign TEXT NOT NULL REFERENCES campaign_name (id),
    key TEXT NOT NULL,
    payload TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (campaign, key)
);

-- Keys are kept as digests: whoever reads the database cannot use them.
CREATE TABLE api_key (
    prefix TEXT PRIMARY KEY,
    digest TEXT NOT NULL,
    scopes TEXT NOT NULL,
    campaign TEXT REFERENCES campaign_name (id),
    created_at DOUBLE PRECISION NOT NULL
);

-- What /readyz writes to see whether anything can be written.
CREATE TABLE heartbeat (
    number INTEGER PRIMARY KEY,
    at DOUBLE PRECISION NOT NULL
);
