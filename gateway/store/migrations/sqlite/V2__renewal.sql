-- The name that the provider shows for the person; NULL without one. It identifies nobody.
ALTER TABLE accounts ADD COLUMN display_name TEXT;

-- A renewal replaces `hash` in the row, so a login has one row however often it is renewed.
ALTER TABLE credentials ADD COLUMN issued_hash BLOB CHECK (length(issued_hash) = 32); -- the login's first credential
ALTER TABLE credentials ADD COLUMN previous_hash BLOB CHECK (length(previous_hash) = 32); -- the renewed one
ALTER TABLE credentials ADD COLUMN previous_until INTEGER; -- UTC ms; the renewed one is valid up to then
ALTER TABLE credentials ADD COLUMN ended_hash BLOB CHECK (length(ended_hash) = 32); -- what the last renewal ended at once

-- A polling login's token can ask for the first credential again: a row that had it is found here.
CREATE UNIQUE INDEX credentials_issued ON credentials (issued_hash) WHERE issued_hash IS NOT NULL;
CREATE INDEX credentials_previous ON credentials (previous_hash) WHERE previous_hash IS NOT NULL;

ALTER TABLE events ADD COLUMN idempotency_key TEXT;

CREATE UNIQUE INDEX events_by_key ON events (account_id, application_id, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
