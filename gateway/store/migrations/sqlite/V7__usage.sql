-- Requests by version and application, for `signpost versions report`. Rows are deleted after 90 days.

-- When counting began; at most one row.
CREATE TABLE usage_start (
    one       INTEGER PRIMARY KEY CHECK (one = 1),
    began_at  INTEGER NOT NULL -- UTC ms
) STRICT;

CREATE TABLE usage_counts (
    day          INTEGER NOT NULL, -- UTC days since the epoch
    version      TEXT    NOT NULL,
    application  INTEGER NOT NULL, -- 0: callbacks, which have none; -1: those beyond a gateway's bound
    is_signed    INTEGER NOT NULL CHECK (is_signed IN (0, 1)),
    source       TEXT    NOT NULL, -- a word of Acme-X-Version-Source
    requests     INTEGER NOT NULL,
    PRIMARY KEY (day, version, application, is_signed, source)
) STRICT, WITHOUT ROWID;

-- The last client only. An unsigned request does not replace the client of a signed one: anyone can send it.
CREATE TABLE usage_clients (
    version      TEXT    NOT NULL,
    application  INTEGER NOT NULL,
    is_signed    INTEGER NOT NULL CHECK (is_signed IN (0, 1)),
    ident        TEXT,             -- of the application, which may be deleted later
    last_seen    INTEGER NOT NULL, -- UTC ms
    address      TEXT,             -- NULL for callbacks
    user_agent   TEXT,             -- printable ASCII
    PRIMARY KEY (version, application, is_signed)
) STRICT, WITHOUT ROWID;

-- The last batch of each gateway process: if the process did not learn its outcome, it is sent again, and counts once.
CREATE TABLE usage_writers (
    id          BLOB    PRIMARY KEY CHECK (length(id) = 16),
    sequence    INTEGER NOT NULL,
    written_at  INTEGER NOT NULL -- UTC ms
) STRICT, WITHOUT ROWID;
