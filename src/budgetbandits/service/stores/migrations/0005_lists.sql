-- What was charged when a hold expired, for feedback that comes after: the campaign's terms may have changed since.
CREATE INDEX event_expired ON event (decision) WHERE kind = 'expired';

-- The two settings that the list of all campaigns looks at. They never change, like the name.
ALTER TABLE campaign_name ADD COLUMN cost_max BIGINT;
ALTER TABLE campaign_name ADD COLUMN currency TEXT;
UPDATE campaign_name SET cost_max = (SELECT CAST(SETTING(cost_max) AS BIGINT) FROM campaign WHERE campaign.id = campaign_name.id);
UPDATE campaign_name SET currency = (SELECT SETTING(currency) FROM campaign WHERE campaign.id = campaign_name.id);
