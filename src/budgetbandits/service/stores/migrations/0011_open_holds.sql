-- The open decisions of one campaign, for its page, which looks at no other's: pending (expires_at, decision, campaign,
-- created_at).
PENDING_BY_CAMPAIGN;
