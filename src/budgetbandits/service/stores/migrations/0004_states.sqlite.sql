-- The same table with its states compared one by one: for IN, SQLite makes a table of them at every row it writes, which
-- takes as long as writing the row.
CREATE TABLE decision_again (
    id TEXT PRIMARY KEY,
    campaign TEXT NOT NULL REFERENCES campaign (id),
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
    UNIQUE (campaign, key)
);

INSERT INTO decision_again SELECT
    id, campaign, arm, hold, state, charged, overrun, reported, cost, reward, key, payload, created_at, expires_at
FROM decision;

DROP TABLE decision;

ALTER TABLE decision_again RENAME TO decision;

CREATE INDEX decision_due ON decision (expires_at) WHERE state = 'pending';
