-- The tags of a campaign's changes say all that its version did.
ALTER TABLE campaign DROP COLUMN version;
