-- The login service: accounts, logins under way, credentials, events. CONTRACT 8.
-- No secret is in here: tokens, tickets, credentials and cookies are stored as SHA-256 only.

CREATE TABLE accounts (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    provider    TEXT    NOT NULL, -- the provider's name in the configuration
    kind        TEXT    NOT NULL, -- the provider's kind: `type` of an account in v1
    username    TEXT    NOT NULL, -- the provider's identifier of the person, byte for byte
    created_at  INTEGER NOT NULL, -- UTC ms
    UNIQUE (provider, username)
) STRICT;

CREATE TABLE logins (
    state_hash         BLOB    PRIMARY KEY CHECK (length(state_hash) = 32),
    version            TEXT    NOT NULL, -- the version that issued it
    application_id     INTEGER NOT NULL, -- 0 in single-application mode, so no foreign key
    mode               TEXT    NOT NULL CHECK (mode IN ('redirect', 'polling')),
    provider           TEXT    NOT NULL,
    user_code          TEXT    CHECK ((user_code IS NOT NULL) = (mode = 'polling')),
    return_to          TEXT    CHECK (return_to IS NULL OR mode = 'redirect'),
    client_address     TEXT    NOT NULL, -- for the bound on pending logins
    cookie_hash        BLOB    CHECK (length(cookie_hash) = 32),
    cookie_stage       TEXT    CHECK (cookie_stage IN ('shown', 'authorizing')),
    status             TEXT    NOT NULL
        CHECK (status IN ('pending', 'exchanging', 'complete', 'failed')),
    reason             TEXT    CHECK ((reason IS NOT NULL) = (status = 'failed')),
    account_id         INTEGER REFERENCES accounts (id)
        CHECK ((account_id IS NOT NULL) = (status = 'complete')),
    account_created    INTEGER NOT NULL DEFAULT 0 CHECK (account_created IN (0, 1)),
    finished_at        INTEGER, -- UTC ms, as all that follow
    claimable_until    INTEGER, -- the outcome is told up to then
    ticket_hash        BLOB    UNIQUE CHECK (length(ticket_hash) = 32),
    ticket_until       INTEGER,
    ticket_used_at     INTEGER,
    created_at         INTEGER NOT NULL,
    expires_at         INTEGER NOT NULL,
    CHECK ((cookie_hash IS NULL) = (cookie_stage IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX logins_pending_by_application ON logins (application_id, expires_at)
    WHERE status IN ('pending', 'exchanging');
CREATE INDEX logins_pending_by_address ON logins (client_address, expires_at)
    WHERE status IN ('pending', 'exchanging');
CREATE INDEX logins_by_age ON logins (expires_at);

CREATE TABLE credentials (
    hash            BLOB    PRIMARY KEY CHECK (length(hash) = 32),
    account_id      INTEGER NOT NULL REFERENCES accounts (id),
    application_id  INTEGER NOT NULL,
    created_at      INTEGER NOT NULL, -- UTC ms, as all that follow
    expires_at      INTEGER NOT NULL,
    revoked_at      INTEGER -- kept a while, so that a polling login's token cannot bring it back
) STRICT, WITHOUT ROWID;

CREATE INDEX credentials_by_age ON credentials (expires_at);
CREATE INDEX credentials_revoked ON credentials (revoked_at) WHERE revoked_at IS NOT NULL;

CREATE TABLE events (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id      INTEGER NOT NULL REFERENCES accounts (id),
    application_id  INTEGER NOT NULL,
    event           TEXT    NOT NULL,
    data            TEXT,
    received_at     INTEGER NOT NULL -- UTC ms
) STRICT;

CREATE INDEX events_by_account ON events (account_id, id);
