-- Requests whose money is gone: their cost was told, or they were charged because nobody told. Policies that plan with
-- money and requests plan without them, in campaigns that are created from here on; those from before go by their own
-- rules.
ALTER TABLE campaign ADD COLUMN gone BIGINT NOT NULL DEFAULT 0;
ALTER TABLE lease ADD COLUMN gone BIGINT NOT NULL DEFAULT 0;
UPDATE lease SET gone = (
    SELECT COUNT(*) FROM event WHERE event.lease = lease.id AND event.turn > lease.merged
    AND (event.kind = 'settled' OR (event.kind = 'expired' AND event.amount > 0))
);
UPDATE campaign SET gone = (
    SELECT COUNT(*) FROM decision WHERE decision.campaign = campaign.id
    AND (decision.state = 'settled' OR (decision.state = 'expired' AND (decision.reported OR decision.charged > 0)))
) - (SELECT CAST(COALESCE(SUM(lease.gone), 0) AS BIGINT) FROM lease WHERE lease.campaign = campaign.id);

-- The rollups are made anew from the events, by the servers and in slices as ever: their rows know two things more. Of
-- decisions that failed how many there were, and what they cost, since the price of an arm is that of what it answers;
-- and the requests that are gone. They have no default: a server of an earlier version adds nothing, rather than too little.
-- What a mark says besides its number stays, so that lists know meanwhile when something happened last.
DROP TABLE rollup;
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
UPDATE rollup_mark SET seq = 0;
