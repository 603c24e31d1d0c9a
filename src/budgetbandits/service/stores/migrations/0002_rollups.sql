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
    delay_10 BIGINT NOT NULL,
    delay_60 BIGINT NOT NULL,
    delay_300 BIGINT NOT NULL,
    reward DOUBLE PRECISION NOT NULL,
    reward_squared DOUBLE PRECISION NOT NULL,
    cost_squared DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (campaign, span, begins, arm)
) OFTEN_CHANGED;

-- All events of a campaign up to number seq are in its rollups; when the latest of them was a decision or told a cost, and
-- the number of the latest that told an overrun.
CREATE TABLE rollup_mark (
    campaign TEXT PRIMARY KEY,
    seq BIGINT NOT NULL,
    decided_at DOUBLE PRECISION,
    told_at DOUBLE PRECISION,
    overran BIGINT
) OFTEN_CHANGED;

-- A refusal changes nothing, so no event tells of it: servers count refusals in memory and add them here.
CREATE TABLE refusal (
    campaign TEXT NOT NULL,
    begins BIGINT NOT NULL,
    reason TEXT NOT NULL,
    count BIGINT NOT NULL,
    PRIMARY KEY (campaign, begins, reason)
) OFTEN_CHANGED;

-- Who did it: the public part of an operator's key, or the command line.
ALTER TABLE event ADD COLUMN actor TEXT;

-- The events of operators, which are few among very many.
CREATE INDEX event_operators ON event (campaign, seq) WHERE decision IS NULL AND lease IS NULL;
