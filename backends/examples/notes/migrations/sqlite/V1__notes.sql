CREATE TABLE v3_notes (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id  INTEGER NOT NULL REFERENCES accounts (id),
    text        TEXT    NOT NULL,
    expires_at  INTEGER NOT NULL -- UTC ms
) STRICT;
CREATE INDEX v3_notes_by_account ON v3_notes (account_id);
CREATE INDEX v3_notes_by_age ON v3_notes (expires_at);
