-- Money is whole micros. The CHECK is the last line of defence: the rules in ledger.py keep it, the database enforces it.
-- day and today: what the decisions of the latest day hold and were charged, for daily caps.
CREATE TABLE campaign (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
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
);

CREATE TABLE arm (
    campaign TEXT NOT NULL REFERENCES campaign (id),
    number BIGINT NOT NULL,
    name TEXT NOT NULL,
    cost_cap BIGINT NOT NULL CHECK (cost_cap > 0),
    learned TEXT NOT NULL,
    version BIGINT NOT NULL DEFAULT 0,
    active BOOLEAN NOT NULL,
    PRIMARY KEY (campaign, number),
    UNIQUE (campaign, name)
);

-- Whoever has fallen behind reads the arms that changed since.
CREATE INDEX arm_version ON arm (campaign, version);

-- Money that a server decides with by itself. One that has ended has no row. No index has a column that changes.
CREATE TABLE lease (
    id TEXT PRIMARY KEY,
    campaign TEXT NOT NULL,
    amount BIGINT NOT NULL,
    spent BIGINT NOT NULL,
    held BIGINT NOT NULL,
    expires_at DOUBLE PRECISION NOT NULL,
    turn BIGINT NOT NULL,
    merged BIGINT NOT NULL,
    tag TEXT NOT NULL,
    CHECK (spent >= 0 AND held >= 0 AND spent + held <= amount)
);

CREATE INDEX lease_campaign ON lease (campaign, id);

-- Decisions and events do not refer to their campaign by a foreign key: a row that is added would lock the campaign, which
-- is what leases are there to avoid. Campaigns are never deleted.
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
);

CREATE INDEX decision_due ON decision (expires_at) WHERE state = 'pending';

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

-- Keys are kept as digests: whoever reads the database cannot use them.
CREATE TABLE api_key (
    prefix TEXT PRIMARY KEY,
    digest TEXT NOT NULL,
    scopes TEXT NOT NULL,
    campaign TEXT REFERENCES campaign (id),
    created_at DOUBLE PRECISION NOT NULL
);

-- What /readyz writes to see whether anything can be written.
CREATE TABLE heartbeat (
    number INTEGER PRIMARY KEY,
    at DOUBLE PRECISION NOT NULL
);
