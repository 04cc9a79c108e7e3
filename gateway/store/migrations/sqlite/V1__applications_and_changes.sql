-- Applications: who may sign requests. CONTRACT 4.
CREATE TABLE applications (
    id                 INTEGER PRIMARY KEY AUTOINCREMENT,
    ident              TEXT    NOT NULL UNIQUE,
    name               TEXT    NOT NULL,
    state              TEXT    NOT NULL CHECK (state IN ('active', 'disabled')),
    created_at         INTEGER NOT NULL, -- UTC ms
    key_sealed         BLOB    NOT NULL, -- APP_KEY under the master key
    previous_sealed    BLOB,             -- the key before the last rotation
    previous_until     INTEGER,          -- UTC ms; the previous key is valid up to then
    sign_profile       TEXT,             -- JSON; NULL: the gateway's own
    return_to_origins  TEXT    NOT NULL, -- JSON array of origins
    default_version    TEXT
) STRICT;

-- What changed lately, so that every process can drop what it remembers. Rows are kept for an hour.
CREATE TABLE changes (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    topic       TEXT    NOT NULL,
    key         BLOB    NOT NULL,
    changed_at  INTEGER NOT NULL  -- UTC seconds, the database's clock
) STRICT;
