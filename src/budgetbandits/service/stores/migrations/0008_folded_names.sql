-- The name without a difference between upper and lower case, as Python folds it in every alphabet, by which the list of
-- campaigns is filtered and ordered. Names from before are folded by whoever brings the database to this version.
ALTER TABLE campaign_name ADD COLUMN folded BYTEWISE_TEXT;
