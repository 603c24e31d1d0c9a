-- What was charged when a hold expired, for feedback that comes after: the campaign's terms may have changed since.
CREATE INDEX event_expired ON event (decision) WHERE kind = 'expired';
