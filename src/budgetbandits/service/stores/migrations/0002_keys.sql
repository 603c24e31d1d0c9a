-- Keys are kept as digests: whoever reads the database cannot use them.
CREATE TABLE api_key (
    prefix TEXT PRIMARY KEY,
    digest TEXT NOT NULL,
    scopes TEXT NOT NULL,
    campaign TEXT REFERENCES campaign (id),
    created_at DOUBLE PRECISION NOT NULL
);
