-- Silence, for the list of all campaigns: which events the moments of a mark know of, also beyond the mark while that waits
-- for a lease, and when the first decision was made since the latest answer. Of the marks there are, the latest
-- decision is as far back as can be known.
ALTER TABLE rollup_mark ADD COLUMN seen BIGINT NOT NULL DEFAULT 0;
ALTER TABLE rollup_mark ADD COLUMN waits_since DOUBLE PRECISION;
UPDATE rollup_mark SET waits_since = decided_at WHERE decided_at > COALESCE(told_at, 0);
