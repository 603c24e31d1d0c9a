-- What was said of a request before its arm was chosen, as JSON, and how likely the choice was; most decisions have
-- neither. The event has them for the audit, the decision for whoever learns from it.
ALTER TABLE event ADD COLUMN request TEXT;
ALTER TABLE event ADD COLUMN propensity DOUBLE PRECISION;
ALTER TABLE decision ADD COLUMN request TEXT;
ALTER TABLE decision ADD COLUMN propensity DOUBLE PRECISION;

-- Whether it was told that there was no answer; NULL in rows from before.
ALTER TABLE decision ADD COLUMN failed BOOLEAN;
