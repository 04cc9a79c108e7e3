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
    default_version    TEXT,
    rate_per_second    INTEGER CHECK (rate_per_second >= 0), -- this and the next NULL: the gateway's; 0: unlimited
    rate_burst         INTEGER CHECK (rate_burst >= 0),
    extensions         TEXT,             -- JSON array of VERSION=TIME: until when it may use versions that end
    revision           INTEGER NOT NULL DEFAULT 1,  -- +1 by each change
    name_folded        BLOB    NOT NULL DEFAULT x'' -- the name in lower case; UTF-8, so that both databases order by bytes
) STRICT;

CREATE INDEX applications_by_name ON applications (name_folded);
-- For reports: few have one.
CREATE INDEX applications_pinned ON applications (default_version) WHERE default_version IS NOT NULL;
CREATE INDEX applications_extended ON applications (id) WHERE extensions IS NOT NULL;

-- Who changed what: a row is written together with its change, and is never updated.
CREATE TABLE audit (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    at        INTEGER NOT NULL, -- UTC ms
    actor     TEXT    NOT NULL,
    origin    TEXT    NOT NULL, -- from where
    reason    TEXT,
    action    TEXT    NOT NULL,
    subject   TEXT    NOT NULL, -- an application's ident, a token's name, a backend's address
    revision  INTEGER NOT NULL, -- the subject's, by the change; 0: it has none
    changes   TEXT    NOT NULL  -- JSON: [old, new] by name; a secret is only "changed"
) STRICT;

CREATE INDEX audit_by_age ON audit (at);
CREATE INDEX audit_by_actor ON audit (actor, at);
CREATE INDEX audit_by_subject ON audit (subject, at);
-- Their subject is backend and address; they are found by the address, too.
CREATE INDEX audit_of_drains ON audit (subject) WHERE action IN ('backend.drain', 'backend.undrain');
CREATE INDEX audit_by_both ON audit (actor, subject, at);

-- Tokens of the management API. Rows are deleted a year after their end.
CREATE TABLE tokens (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    hash          BLOB    NOT NULL UNIQUE CHECK (length(hash) = 32), -- SHA-256 of the token
    name          TEXT    NOT NULL,
    role          TEXT    NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
    created_at    INTEGER NOT NULL, -- UTC ms, as all that follow
    created_by    TEXT    NOT NULL,
    expires_at    INTEGER NOT NULL,
    last_used_at  INTEGER,
    revoked_at    INTEGER
) STRICT;

CREATE UNIQUE INDEX tokens_by_name ON tokens (name) WHERE revoked_at IS NULL;

-- Responses of the management API, for requests that are repeated with their key; one can have an application's key or a
-- token. Rows are kept for a day.
CREATE TABLE idempotency (
    key       BLOB    PRIMARY KEY CHECK (length(key) = 32), -- SHA-256 of token and given key
    request   BLOB    NOT NULL CHECK (length(request) = 32), -- HMAC of the request, by the master key
    response  BLOB,             -- sealed under the master key; NULL: the request runs, or was interrupted
    at        INTEGER NOT NULL  -- UTC ms
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_by_age ON idempotency (at);

-- Addresses of backends that an operator has taken out. One row for each backend, replaced only if it is as it was read: of two
-- changes at once, the second one sees the first. Rows are deleted an hour after the last end of all.
CREATE TABLE drains (
    backend    TEXT    PRIMARY KEY, -- as signpost versions list shows it: v2 (canary next)
    addresses  TEXT    NOT NULL, -- JSON, of each: IP address and port, end in UTC ms, whether also if no address is left
    until      INTEGER NOT NULL  -- UTC ms: the last end
) STRICT, WITHOUT ROWID;

-- Rejected requests that an operator asks all gateways for. Rows older than a minute are deleted with the next, or hourly.
CREATE TABLE rejections (
    request_id  TEXT    PRIMARY KEY,
    asked_at    INTEGER NOT NULL, -- UTC ms, of the last one who asked
    found       TEXT              -- JSON, by the gateway that has rejected it
) STRICT, WITHOUT ROWID;

-- The gateways, as each describes itself every few seconds. Rows of those that are gone are deleted after an hour.
CREATE TABLE gateways (
    id       BLOB    PRIMARY KEY CHECK (length(id) = 16), -- random, of the process
    state    TEXT,             -- JSON; NULL of one that has stopped
    traffic  TEXT    NOT NULL, -- JSON: its requests of the last hour
    seen_at  INTEGER NOT NULL  -- UTC ms, the database's clock
) STRICT, WITHOUT ROWID;

-- What changed lately, so that every process can invalidate what it caches. Rows are kept for an hour.
CREATE TABLE changes (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    topic       TEXT    NOT NULL,
    key         BLOB    NOT NULL,
    changed_at  INTEGER NOT NULL  -- UTC seconds, the database's clock
) STRICT;

-- The login service: accounts, logins in progress, credentials, events. CONTRACT 8.
-- No secret is in here: tokens, tickets, credentials and cookies are stored as SHA-256 only.

CREATE TABLE accounts (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    provider      TEXT    NOT NULL, -- the provider's name in the configuration
    username      TEXT    NOT NULL, -- the provider's identifier of the person, byte for byte
    created_at    INTEGER NOT NULL, -- UTC ms
    display_name  TEXT,             -- the provider's name for the person; never identifies the account
    email         TEXT,             -- verified by the provider; never identifies the account
    UNIQUE (provider, username)
) STRICT;

CREATE TABLE logins (
    state_hash         BLOB    PRIMARY KEY CHECK (length(state_hash) = 32),
    version            TEXT    NOT NULL, -- the version that issued it
    application_id     INTEGER NOT NULL, -- 0 in single-application mode, so no foreign key
    mode               TEXT    NOT NULL CHECK (mode IN ('redirect', 'polling')),
    provider           TEXT    CHECK (provider IS NOT NULL OR user_chooses), -- NULL: not chosen yet
    user_chooses       INTEGER NOT NULL DEFAULT 0 CHECK (user_chooses IN (0, 1)),
    hints              TEXT,    -- what goes on to the provider, as a query
    user_code          TEXT    CHECK ((user_code IS NOT NULL) = (mode = 'polling')),
    network            TEXT,    -- around the client that began it by polling
    return_to          TEXT    CHECK (return_to IS NULL OR mode = 'redirect'),
    cookie_hash        BLOB    CHECK (length(cookie_hash) = 32),
    status             TEXT    NOT NULL
        CHECK (status IN ('pending', 'exchanging', 'complete', 'failed')),
    claimed_until      INTEGER, -- UTC ms; a callback that has not finished by then never will
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
    expires_at         INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX logins_by_age ON logins (expires_at);
-- Callbacks that no provider vouched for. Strangers can cause these rows, so they go when their login expires.
CREATE INDEX logins_unvouched ON logins (expires_at)
    WHERE mode = 'redirect' AND status IN ('exchanging', 'failed');

-- A redirect login is stored when its callback comes; until then the browser's cookie holds it, sealed under this key.
CREATE TABLE login_keys (
    name        TEXT    PRIMARY KEY,
    key         BLOB    NOT NULL CHECK (length(key) = 32),
    created_at  INTEGER NOT NULL -- UTC ms
) STRICT, WITHOUT ROWID;

-- A renewal replaces `hash` in the row, so a login has one row however often it is renewed.
CREATE TABLE credentials (
    hash            BLOB    PRIMARY KEY CHECK (length(hash) = 32),
    login_hash      BLOB    NOT NULL CHECK (length(login_hash) = 32), -- of what all credentials of the login share
    account_id      INTEGER NOT NULL REFERENCES accounts (id),
    application_id  INTEGER NOT NULL,
    created_at      INTEGER NOT NULL, -- of the login; UTC ms, as all that follow
    expires_at      INTEGER NOT NULL,
    revoked_at      INTEGER, -- kept a while, so that a polling login's token cannot bring it back
    previous_hash   BLOB    CHECK (length(previous_hash) = 32), -- the credential before the last renewal, during the overlap
    previous_until  INTEGER, -- valid up to then; no renewal before
    renewal_salt    BLOB    CHECK (length(renewal_salt) = 32)   -- derives the present one from the one before
) STRICT, WITHOUT ROWID;

CREATE INDEX credentials_by_age ON credentials (expires_at);
CREATE INDEX credentials_revoked ON credentials (revoked_at) WHERE revoked_at IS NOT NULL;
CREATE UNIQUE INDEX credentials_by_login ON credentials (login_hash);
CREATE INDEX credentials_previous ON credentials (previous_hash) WHERE previous_hash IS NOT NULL;
CREATE INDEX credentials_overlap ON credentials (previous_until) WHERE previous_until IS NOT NULL;
-- To end an account's logins. Those of an application are found without an index, which each login would pay for.
CREATE INDEX credentials_by_account ON credentials (account_id) WHERE revoked_at IS NULL;

CREATE TABLE events (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id      INTEGER NOT NULL REFERENCES accounts (id),
    application_id  INTEGER NOT NULL,
    event           TEXT    NOT NULL,
    data            TEXT,
    received_at     INTEGER NOT NULL, -- UTC ms
    idempotency_key TEXT -- the client's name of the request, so that it can repeat it
) STRICT;

-- Pages of an account's events of one application, newest first: the id, which is the row id, follows in the index.
CREATE INDEX events_by_owner ON events (account_id, application_id);
CREATE UNIQUE INDEX events_by_key ON events (account_id, application_id, idempotency_key)
    WHERE idempotency_key IS NOT NULL;

-- The rate limits that gateways share. Rows are deleted soon after their bucket is full again.
CREATE TABLE rate_limits (
    key      BLOB    PRIMARY KEY CHECK (length(key) = 32), -- HMAC-SHA256 of rule and application or network
    full_at  INTEGER NOT NULL -- UTC microseconds, the database's clock
) STRICT, WITHOUT ROWID;

CREATE INDEX rate_limits_by_age ON rate_limits (full_at);

-- The replay memory of all gateways. Rows are deleted soon after the largest window, except one: its hash is empty, and
-- it was lost if the others were. Of signatures with a time up to its signed_at, no one knows which were used.
CREATE TABLE replay_signatures (
    hash           BLOB    PRIMARY KEY, -- of application and signature
    signed_at      INTEGER NOT NULL, -- UTC milliseconds: the signature's time
    window_millis  INTEGER -- of the row with the empty hash: the largest window of all gateways
) STRICT, WITHOUT ROWID;

CREATE INDEX replay_signatures_by_age ON replay_signatures (signed_at);

-- No signature with a later time was accepted; at most one row, which a crash does not lose.
CREATE TABLE replay_mark (
    one    INTEGER PRIMARY KEY CHECK (one = 1),
    until  INTEGER NOT NULL -- UTC milliseconds
) STRICT;

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

-- What clients use: `signpost versions report --paths`. Beyond a gateway's bounds, `path` is "other".
CREATE TABLE usage_paths (
    day          INTEGER NOT NULL,
    version      TEXT NOT NULL,
    application  INTEGER NOT NULL, -- as in usage_counts
    is_bridged   INTEGER NOT NULL CHECK (is_bridged IN (0, 1)), -- whether another version's backend served them
    method       TEXT NOT NULL,
    path         TEXT NOT NULL, -- a path of the configuration, or one with * for data
    class        TEXT NOT NULL, -- of the status: 2xx
    requests     INTEGER NOT NULL,
    last_seen    INTEGER NOT NULL, -- UTC ms
    PRIMARY KEY (day, version, application, is_bridged, method, path, class)
) STRICT, WITHOUT ROWID;

-- What differs between two versions, by the hour and by what is compared: `signpost versions diff` adds it up. Rows are
-- deleted after 30 days.
CREATE TABLE shadow_tallies (
    writer   BLOB    NOT NULL CHECK (length(writer) = 16), -- the gateway's process
    hour     INTEGER NOT NULL, -- its first ms, UTC
    version  TEXT    NOT NULL, -- whose clients got the responses
    target   TEXT    NOT NULL, -- the version that got copies
    route    TEXT    NOT NULL, -- an entry of the configuration: GET /orders/
    changes  TEXT    NOT NULL, -- the digest of the changes that were applied; empty without
    tally    TEXT    NOT NULL, -- JSON: paths, kinds, counts and shapes, but no value
    PRIMARY KEY (writer, hour, version, target, route, changes)
) STRICT, WITHOUT ROWID;

CREATE INDEX shadow_tallies_by_version ON shadow_tallies (version, target, changes, route, hour, writer);

CREATE INDEX shadow_tallies_by_age ON shadow_tallies (hour);

-- Since when the comparisons of a version count: `signpost bridge check --restart`. Gateways begin new rows then.
CREATE TABLE shadow_starts (
    version   TEXT PRIMARY KEY,
    began_at  INTEGER NOT NULL -- UTC ms
) STRICT, WITHOUT ROWID;

-- The last batch of each gateway process: if the process did not learn its outcome, it is sent again, and counts once.
CREATE TABLE usage_writers (
    id          BLOB    PRIMARY KEY CHECK (length(id) = 16),
    sequence    INTEGER NOT NULL,
    written_at  INTEGER NOT NULL -- UTC ms
) STRICT, WITHOUT ROWID;
