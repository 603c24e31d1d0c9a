-- Daily caps count what the decisions of the latest day hold and were charged. ROUND(x - 0.5) is FLOOR(x) in both databases.
ALTER TABLE campaign ADD COLUMN day BIGINT NOT NULL DEFAULT 0;
ALTER TABLE campaign ADD COLUMN today BIGINT NOT NULL DEFAULT 0;

UPDATE campaign SET day = COALESCE(
    (SELECT CAST(ROUND(MAX(created_at) / 86400 - 0.5) AS BIGINT) FROM decision WHERE decision.campaign = campaign.id), 0
);

UPDATE campaign SET today = COALESCE(
    (
        SELECT SUM(CASE decision.state WHEN 'pending' THEN decision.hold ELSE decision.charged END) FROM decision
        WHERE decision.campaign = campaign.id AND ROUND(decision.created_at / 86400 - 0.5) = campaign.day
    ), 0
);

-- Whoever has fallen behind reads the arms that changed since.
CREATE INDEX arm_version ON arm (campaign, version);

-- What /readyz writes to see whether anything can be written.
CREATE TABLE heartbeat (
    number INTEGER PRIMARY KEY,
    at DOUBLE PRECISION NOT NULL
);
