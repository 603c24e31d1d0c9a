-- What an operator's change was answered with, for whoever asks again under its key; NULL where it is not kept.
ALTER TABLE operation ADD COLUMN answer TEXT;

-- The answers of a campaign that are kept, the latest last.
CREATE INDEX operation_answers ON operation (campaign, at) WHERE answer IS NOT NULL;
