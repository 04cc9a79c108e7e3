-- As in ../sqlite, which says more.

ALTER TABLE accounts ADD COLUMN display_name TEXT;

ALTER TABLE credentials ADD COLUMN issued_hash BYTEA CHECK (length(issued_hash) = 32);
ALTER TABLE credentials ADD COLUMN previous_hash BYTEA CHECK (length(previous_hash) = 32);
ALTER TABLE credentials ADD COLUMN previous_until BIGINT;
ALTER TABLE credentials ADD COLUMN ended_hash BYTEA CHECK (length(ended_hash) = 32);

CREATE UNIQUE INDEX credentials_issued ON credentials (issued_hash) WHERE issued_hash IS NOT NULL;
CREATE INDEX credentials_previous ON credentials (previous_hash) WHERE previous_hash IS NOT NULL;

ALTER TABLE events ADD COLUMN idempotency_key TEXT;

CREATE UNIQUE INDEX events_by_key ON events (account_id, application_id, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
