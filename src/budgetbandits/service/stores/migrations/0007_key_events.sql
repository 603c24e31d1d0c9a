-- Who has made and dropped which key. The key itself may be gone. The operation is the idempotency key of a form, so that
-- one that is sent twice makes one key.
CREATE TABLE key_event (
    seq COUNTED_KEY,
    kind TEXT NOT NULL,
    prefix TEXT NOT NULL,
    scopes TEXT NOT NULL,
    campaign TEXT,
    at DOUBLE PRECISION NOT NULL,
    actor TEXT,
    operation TEXT UNIQUE
);
