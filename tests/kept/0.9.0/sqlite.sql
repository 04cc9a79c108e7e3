CREATE TABLE migrations (
    owner       TEXT    NOT NULL, -- 'signpost', or a version
    number      INTEGER NOT NULL,
    name        TEXT    NOT NULL,
    sqlite      TEXT    NOT NULL, -- the statements, as the next one
    postgres    TEXT    NOT NULL, -- for `store copy`
    oldest      INTEGER NOT NULL, -- the migration that programs must have
    program     TEXT    NOT NULL,
    applied_at  INTEGER NOT NULL DEFAULT (unixepoch()), -- UTC seconds, the database's clock
    PRIMARY KEY (owner, number)
) STRICT;
INSERT INTO migrations VALUES ('signpost',1,'V1__schema','-- Applications: who may sign requests. CONTRACT 4.
CREATE TABLE applications (
    id                 INTEGER PRIMARY KEY AUTOINCREMENT,
    ident              TEXT    NOT NULL UNIQUE,
    name               TEXT    NOT NULL,
    state              TEXT    NOT NULL CHECK (state IN (''active'', ''disabled'')),
    created_at         INTEGER NOT NULL, -- UTC ms
    key_sealed         BLOB    NOT NULL, -- APP_KEY under the master key
    previous_sealed    BLOB,             -- the key before the last rotation
    previous_until     INTEGER,          -- UTC ms; the previous key is valid up to then
    sign_profile       TEXT,             -- JSON; NULL: the gateway''s own
    return_to_origins  TEXT    NOT NULL, -- JSON array of origins
    default_version    TEXT,
    rate_per_second    INTEGER CHECK (rate_per_second >= 0), -- this and the next NULL: the gateway''s; 0: unlimited
    rate_burst         INTEGER CHECK (rate_burst >= 0),
    extensions         TEXT,             -- JSON array of VERSION=TIME: until when it may use versions that end
    revision           INTEGER NOT NULL DEFAULT 1,  -- +1 by each change
    name_folded        BLOB    NOT NULL DEFAULT x'''' -- the name in lower case; UTF-8, so that both databases order by bytes
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
    subject   TEXT    NOT NULL, -- an application''s ident, a token''s name, a backend''s address
    revision  INTEGER NOT NULL, -- the subject''s, by the change; 0: it has none
    changes   TEXT    NOT NULL  -- JSON: [old, new] by name; a secret is only "changed"
) STRICT;

CREATE INDEX audit_by_age ON audit (at);
CREATE INDEX audit_by_actor ON audit (actor, at);
CREATE INDEX audit_by_subject ON audit (subject, at);
-- Their subject is backend and address; they are found by the address, too.
CREATE INDEX audit_of_drains ON audit (subject) WHERE action IN (''backend.drain'', ''backend.undrain'');
CREATE INDEX audit_by_both ON audit (actor, subject, at);

-- Tokens of the management API. Rows are deleted a year after their end.
CREATE TABLE tokens (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    hash          BLOB    NOT NULL UNIQUE CHECK (length(hash) = 32), -- SHA-256 of the token
    name          TEXT    NOT NULL,
    role          TEXT    NOT NULL CHECK (role IN (''viewer'', ''operator'', ''admin'')),
    created_at    INTEGER NOT NULL, -- UTC ms, as all that follow
    created_by    TEXT    NOT NULL,
    expires_at    INTEGER NOT NULL,
    last_used_at  INTEGER,
    revoked_at    INTEGER
) STRICT;

CREATE UNIQUE INDEX tokens_by_name ON tokens (name) WHERE revoked_at IS NULL;

-- Responses of the management API, for requests that are repeated with their key; one can have an application''s key or a
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
    seen_at  INTEGER NOT NULL  -- UTC ms, the database''s clock
) STRICT, WITHOUT ROWID;

-- What changed lately, so that every process can invalidate what it caches. Rows are kept for an hour.
CREATE TABLE changes (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    topic       TEXT    NOT NULL,
    key         BLOB    NOT NULL,
    changed_at  INTEGER NOT NULL  -- UTC seconds, the database''s clock
) STRICT;

-- The login service: accounts, logins in progress, credentials, events. CONTRACT 8.
-- No secret is in here: tokens, tickets, credentials and cookies are stored as SHA-256 only.

CREATE TABLE accounts (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    provider      TEXT    NOT NULL, -- the provider''s name in the configuration
    username      TEXT    NOT NULL, -- the provider''s identifier of the person, byte for byte
    created_at    INTEGER NOT NULL, -- UTC ms
    display_name  TEXT,             -- the provider''s name for the person; never identifies the account
    email         TEXT,             -- verified by the provider; never identifies the account
    UNIQUE (provider, username)
) STRICT;

CREATE TABLE logins (
    state_hash         BLOB    PRIMARY KEY CHECK (length(state_hash) = 32),
    version            TEXT    NOT NULL, -- the version that issued it
    application_id     INTEGER NOT NULL, -- 0 in single-application mode, so no foreign key
    mode               TEXT    NOT NULL CHECK (mode IN (''redirect'', ''polling'')),
    provider           TEXT    CHECK (provider IS NOT NULL OR user_chooses), -- NULL: not chosen yet
    user_chooses       INTEGER NOT NULL DEFAULT 0 CHECK (user_chooses IN (0, 1)),
    hints              TEXT,    -- what goes on to the provider, as a query
    user_code          TEXT    CHECK ((user_code IS NOT NULL) = (mode = ''polling'')),
    network            TEXT,    -- around the client that began it by polling
    return_to          TEXT    CHECK (return_to IS NULL OR mode = ''redirect''),
    cookie_hash        BLOB    CHECK (length(cookie_hash) = 32),
    status             TEXT    NOT NULL
        CHECK (status IN (''pending'', ''exchanging'', ''complete'', ''failed'')),
    claimed_until      INTEGER, -- UTC ms; a callback that has not finished by then never will
    reason             TEXT    CHECK ((reason IS NOT NULL) = (status = ''failed'')),
    account_id         INTEGER REFERENCES accounts (id)
        CHECK ((account_id IS NOT NULL) = (status = ''complete'')),
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
    WHERE mode = ''redirect'' AND status IN (''exchanging'', ''failed'');

-- A redirect login is stored when its callback comes; until then the browser''s cookie holds it, sealed under this key.
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
    revoked_at      INTEGER, -- kept a while, so that a polling login''s token cannot bring it back
    previous_hash   BLOB    CHECK (length(previous_hash) = 32), -- the credential before the last renewal, during the overlap
    previous_until  INTEGER, -- valid up to then; no renewal before
    renewal_salt    BLOB    CHECK (length(renewal_salt) = 32)   -- derives the present one from the one before
) STRICT, WITHOUT ROWID;

CREATE INDEX credentials_by_age ON credentials (expires_at);
CREATE INDEX credentials_revoked ON credentials (revoked_at) WHERE revoked_at IS NOT NULL;
CREATE UNIQUE INDEX credentials_by_login ON credentials (login_hash);
CREATE INDEX credentials_previous ON credentials (previous_hash) WHERE previous_hash IS NOT NULL;
CREATE INDEX credentials_overlap ON credentials (previous_until) WHERE previous_until IS NOT NULL;
-- To end an account''s logins. Those of an application are found without an index, which each login would pay for.
CREATE INDEX credentials_by_account ON credentials (account_id) WHERE revoked_at IS NULL;

CREATE TABLE events (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id      INTEGER NOT NULL REFERENCES accounts (id),
    application_id  INTEGER NOT NULL,
    event           TEXT    NOT NULL,
    data            TEXT,
    received_at     INTEGER NOT NULL, -- UTC ms
    idempotency_key TEXT -- the client''s name of the request, so that it can repeat it
) STRICT;

-- Pages of an account''s events of one application, newest first: the id, which is the row id, follows in the index.
CREATE INDEX events_by_owner ON events (account_id, application_id);
CREATE UNIQUE INDEX events_by_key ON events (account_id, application_id, idempotency_key)
    WHERE idempotency_key IS NOT NULL;

-- The rate limits that gateways share. Rows are deleted soon after their bucket is full again.
CREATE TABLE rate_limits (
    key      BLOB    PRIMARY KEY CHECK (length(key) = 32), -- HMAC-SHA256 of rule and application or network
    full_at  INTEGER NOT NULL -- UTC microseconds, the database''s clock
) STRICT, WITHOUT ROWID;

CREATE INDEX rate_limits_by_age ON rate_limits (full_at);

-- The replay memory of all gateways. Rows are deleted soon after the largest window, except one: its hash is empty, and
-- it was lost if the others were. Of signatures with a time up to its signed_at, no one knows which were used.
CREATE TABLE replay_signatures (
    hash           BLOB    PRIMARY KEY, -- of application and signature
    signed_at      INTEGER NOT NULL, -- UTC milliseconds: the signature''s time
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
    application  INTEGER NOT NULL, -- 0: callbacks, which have none; -1: those beyond a gateway''s bound
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

-- What clients use: `signpost versions report --paths`. Beyond a gateway''s bounds, `path` is "other".
CREATE TABLE usage_paths (
    day          INTEGER NOT NULL,
    version      TEXT NOT NULL,
    application  INTEGER NOT NULL, -- as in usage_counts
    is_bridged   INTEGER NOT NULL CHECK (is_bridged IN (0, 1)), -- whether another version''s backend served them
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
    writer   BLOB    NOT NULL CHECK (length(writer) = 16), -- the gateway''s process
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
','-- As in ../sqlite, which says more; so plain that engines that only speak Postgres'' protocol run it.

CREATE TABLE applications (
    id                 BIGINT  GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    ident              TEXT    NOT NULL UNIQUE,
    name               TEXT    NOT NULL,
    state              TEXT    NOT NULL CHECK (state IN (''active'', ''disabled'')),
    created_at         BIGINT  NOT NULL,
    key_sealed         BYTEA   NOT NULL,
    previous_sealed    BYTEA,
    previous_until     BIGINT,
    sign_profile       TEXT,
    return_to_origins  TEXT    NOT NULL,
    default_version    TEXT,
    rate_per_second    BIGINT  CHECK (rate_per_second >= 0),
    rate_burst         BIGINT  CHECK (rate_burst >= 0),
    extensions         TEXT,
    revision           BIGINT  NOT NULL DEFAULT 1,
    name_folded        BYTEA   NOT NULL DEFAULT ''''
);

CREATE INDEX applications_by_name ON applications (name_folded, id);
CREATE INDEX applications_pinned ON applications (default_version) WHERE default_version IS NOT NULL;
CREATE INDEX applications_extended ON applications (id) WHERE extensions IS NOT NULL;

CREATE TABLE audit (
    id        BIGINT  GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    at        BIGINT  NOT NULL,
    actor     TEXT    NOT NULL,
    origin    TEXT    NOT NULL,
    reason    TEXT,
    action    TEXT    NOT NULL,
    subject   TEXT    NOT NULL,
    revision  BIGINT  NOT NULL,
    changes   TEXT    NOT NULL
);

CREATE INDEX audit_by_age ON audit (at, id);
CREATE INDEX audit_by_actor ON audit (actor, at, id);
CREATE INDEX audit_by_subject ON audit (subject, at, id);
CREATE INDEX audit_of_drains ON audit (subject) WHERE action IN (''backend.drain'', ''backend.undrain'');
CREATE INDEX audit_by_both ON audit (actor, subject, at, id);

CREATE TABLE tokens (
    id            BIGINT  GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    hash          BYTEA   NOT NULL UNIQUE CHECK (length(hash) = 32),
    name          TEXT    NOT NULL,
    role          TEXT    NOT NULL CHECK (role IN (''viewer'', ''operator'', ''admin'')),
    created_at    BIGINT  NOT NULL,
    created_by    TEXT    NOT NULL,
    expires_at    BIGINT  NOT NULL,
    last_used_at  BIGINT,
    revoked_at    BIGINT
);

CREATE UNIQUE INDEX tokens_by_name ON tokens (name) WHERE revoked_at IS NULL;

CREATE TABLE idempotency (
    key       BYTEA   PRIMARY KEY CHECK (length(key) = 32),
    request   BYTEA   NOT NULL CHECK (length(request) = 32),
    response  BYTEA,
    at        BIGINT  NOT NULL
);

CREATE INDEX idempotency_by_age ON idempotency (at);

CREATE TABLE drains (
    backend    TEXT    PRIMARY KEY,
    addresses  TEXT    NOT NULL,
    until      BIGINT  NOT NULL
);

CREATE TABLE rejections (
    request_id  TEXT   PRIMARY KEY,
    asked_at    BIGINT NOT NULL,
    found       TEXT
);

CREATE TABLE gateways (
    id       BYTEA  PRIMARY KEY CHECK (length(id) = 16),
    state    TEXT,
    traffic  TEXT   NOT NULL,
    seen_at  BIGINT NOT NULL
);

-- For processes that cannot LISTEN. Rows are kept for ten minutes.
CREATE TABLE changes (
    id          BIGINT      GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    topic       TEXT        NOT NULL,
    key         BYTEA       NOT NULL,
    changed_at  TIMESTAMPTZ NOT NULL DEFAULT now()
);

CREATE INDEX changes_by_age ON changes (changed_at);

CREATE TABLE accounts (
    id            BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    provider      TEXT   NOT NULL,
    username      TEXT   NOT NULL,
    created_at    BIGINT NOT NULL,
    display_name  TEXT,
    email         TEXT,
    UNIQUE (provider, username)
);

CREATE TABLE logins (
    state_hash         BYTEA   PRIMARY KEY CHECK (length(state_hash) = 32),
    version            TEXT    NOT NULL,
    application_id     BIGINT  NOT NULL,
    mode               TEXT    NOT NULL CHECK (mode IN (''redirect'', ''polling'')),
    provider           TEXT    CHECK (provider IS NOT NULL OR user_chooses),
    user_chooses       BOOLEAN NOT NULL DEFAULT FALSE,
    hints              TEXT,
    user_code          TEXT    CHECK ((user_code IS NOT NULL) = (mode = ''polling'')),
    network            TEXT,    -- around the client that began it by polling
    return_to          TEXT    CHECK (return_to IS NULL OR mode = ''redirect''),
    cookie_hash        BYTEA   CHECK (length(cookie_hash) = 32),
    status             TEXT    NOT NULL
        CHECK (status IN (''pending'', ''exchanging'', ''complete'', ''failed'')),
    claimed_until      BIGINT,
    reason             TEXT    CHECK ((reason IS NOT NULL) = (status = ''failed'')),
    account_id         BIGINT  REFERENCES accounts (id)
        CHECK ((account_id IS NOT NULL) = (status = ''complete'')),
    account_created    BOOLEAN NOT NULL DEFAULT FALSE,
    finished_at        BIGINT,
    claimable_until    BIGINT,
    ticket_hash        BYTEA   UNIQUE CHECK (length(ticket_hash) = 32),
    ticket_until       BIGINT,
    ticket_used_at     BIGINT,
    created_at         BIGINT  NOT NULL,
    expires_at         BIGINT  NOT NULL
);

CREATE INDEX logins_by_age ON logins (expires_at);
CREATE INDEX logins_unvouched ON logins (expires_at)
    WHERE mode = ''redirect'' AND status IN (''exchanging'', ''failed'');

CREATE TABLE login_keys (
    name        TEXT   PRIMARY KEY,
    key         BYTEA  NOT NULL CHECK (length(key) = 32),
    created_at  BIGINT NOT NULL
);

CREATE TABLE credentials (
    hash            BYTEA  PRIMARY KEY CHECK (length(hash) = 32),
    login_hash      BYTEA  NOT NULL CHECK (length(login_hash) = 32),
    account_id      BIGINT NOT NULL REFERENCES accounts (id),
    application_id  BIGINT NOT NULL,
    created_at      BIGINT NOT NULL,
    expires_at      BIGINT NOT NULL,
    revoked_at      BIGINT,
    previous_hash   BYTEA  CHECK (length(previous_hash) = 32),
    previous_until  BIGINT,
    renewal_salt    BYTEA  CHECK (length(renewal_salt) = 32)
);

CREATE INDEX credentials_by_age ON credentials (expires_at);
CREATE INDEX credentials_revoked ON credentials (revoked_at) WHERE revoked_at IS NOT NULL;
CREATE UNIQUE INDEX credentials_by_login ON credentials (login_hash);
CREATE INDEX credentials_previous ON credentials (previous_hash) WHERE previous_hash IS NOT NULL;
CREATE INDEX credentials_overlap ON credentials (previous_until) WHERE previous_until IS NOT NULL;
CREATE INDEX credentials_by_account ON credentials (account_id) WHERE revoked_at IS NULL;

CREATE TABLE events (
    id              BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    account_id      BIGINT NOT NULL REFERENCES accounts (id),
    application_id  BIGINT NOT NULL,
    event           TEXT   NOT NULL,
    data            TEXT,
    received_at     BIGINT NOT NULL,
    idempotency_key TEXT
);

CREATE INDEX events_by_owner ON events (account_id, application_id, id);
CREATE UNIQUE INDEX events_by_key ON events (account_id, application_id, idempotency_key)
    WHERE idempotency_key IS NOT NULL;

CREATE TABLE rate_limits (
    key      BYTEA  PRIMARY KEY CHECK (length(key) = 32),
    full_at  BIGINT NOT NULL
);

CREATE INDEX rate_limits_by_age ON rate_limits (full_at);

-- A crash of the server empties it, and a replica has none of its rows: the row with the empty hash is missing then.
CREATE UNLOGGED TABLE replay_signatures (
    hash           BYTEA  PRIMARY KEY,
    signed_at      BIGINT NOT NULL,
    window_millis  BIGINT
);

CREATE INDEX replay_signatures_by_age ON replay_signatures (signed_at);

CREATE TABLE replay_mark (
    one    BIGINT PRIMARY KEY CHECK (one = 1),
    until  BIGINT NOT NULL
);

CREATE TABLE usage_start (
    one       BIGINT PRIMARY KEY CHECK (one = 1),
    began_at  BIGINT NOT NULL
);

CREATE TABLE usage_counts (
    day          BIGINT  NOT NULL,
    version      TEXT    NOT NULL,
    application  BIGINT  NOT NULL,
    is_signed    BOOLEAN NOT NULL,
    source       TEXT    NOT NULL,
    requests     BIGINT  NOT NULL,
    PRIMARY KEY (day, version, application, is_signed, source)
);

CREATE TABLE usage_clients (
    version      TEXT    NOT NULL,
    application  BIGINT  NOT NULL,
    is_signed    BOOLEAN NOT NULL,
    ident        TEXT,
    last_seen    BIGINT  NOT NULL,
    address      TEXT,
    user_agent   TEXT,
    PRIMARY KEY (version, application, is_signed)
);

CREATE TABLE usage_paths (
    day          BIGINT NOT NULL,
    version      TEXT NOT NULL,
    application  BIGINT NOT NULL,
    is_bridged   BOOLEAN NOT NULL,
    method       TEXT NOT NULL,
    path         TEXT NOT NULL,
    class        TEXT NOT NULL,
    requests     BIGINT NOT NULL,
    last_seen    BIGINT NOT NULL,
    PRIMARY KEY (day, version, application, is_bridged, method, path, class)
);

CREATE TABLE shadow_tallies (
    writer   BYTEA  NOT NULL CHECK (length(writer) = 16),
    hour     BIGINT NOT NULL,
    version  TEXT   NOT NULL,
    target   TEXT   NOT NULL,
    route    TEXT   NOT NULL,
    changes  TEXT   NOT NULL,
    tally    TEXT   NOT NULL,
    PRIMARY KEY (writer, hour, version, target, route, changes)
);

CREATE INDEX shadow_tallies_by_version ON shadow_tallies (version, target, changes, route, hour, writer);

CREATE INDEX shadow_tallies_by_age ON shadow_tallies (hour);

CREATE TABLE shadow_starts (
    version   TEXT PRIMARY KEY,
    began_at  BIGINT NOT NULL
);

CREATE TABLE usage_writers (
    id          BYTEA  PRIMARY KEY CHECK (length(id) = 16),
    sequence    BIGINT NOT NULL,
    written_at  BIGINT NOT NULL
);
',0,'login-v1 0.9.0 (a1cb4acda9fc or later, debug)',1795937217);
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
INSERT INTO applications VALUES (1,'kITtJVtN8W5DYjGg2qYF2pIe','Shop','active',1795937219003,X'328AF1C6CD2881B77B93D77BDFADDC7C32CBEDB743A097034741B2C5AF9B550334C7A3B40A650BD6D41B1D03993C1124F14DF4B8E63C0B78A2198BF93BDB87AF353643F58308D52FC35414A9323E31024F09CF6BC66D012961E15D3B886173A80F7A5642',X'328AF1C6CD2881B75A62AA2A21CDA36176BAFAE8706823D137217C68330504CD156D9787B7ADF9C34F87B1EE2B81CF873E376BC77A3BAE4E232F70238CE68618C7BC11C08CFD31AB54AA126075CE3A70E0865433F09D8742ADD41A636EABE2200AC4DAB0',1796023619024,NULL,'[]','v2',NULL,NULL,NULL,2,X'73686F70');
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
INSERT INTO audit VALUES (1,1795937219003,'root','cli vm',NULL,'app.create','kITtJVtN8W5DYjGg2qYF2pIe',1,'{"default_version":[null,"v2"],"extensions":[null,[]],"key":"changed","name":[null,"Shop"],"return_to":[null,[]],"state":[null,"active"]}');
INSERT INTO audit VALUES (2,1795937219024,'root','cli vm',NULL,'app.rotate','kITtJVtN8W5DYjGg2qYF2pIe',2,'{"key":"changed","previous_key_until":[null,"2026-11-30T07:26:59Z"]}');
INSERT INTO audit VALUES (3,1795937224043,'root','cli vm',NULL,'token.create','admin',1,'{"expires_at":[null,"2027-02-27T07:27:04Z"],"role":[null,"admin"]}');
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
INSERT INTO tokens VALUES (1,X'F638910EA8C377632890900C94DB8FDAB2C84B1B017EF11A43A0A0ED98C86711','admin','admin',1795937224043,'root',1803713224043,NULL,NULL);
CREATE TABLE idempotency (
    key       BLOB    PRIMARY KEY CHECK (length(key) = 32), -- SHA-256 of token and given key
    request   BLOB    NOT NULL CHECK (length(request) = 32), -- HMAC of the request, by the master key
    response  BLOB,             -- sealed under the master key; NULL: the request runs, or was interrupted
    at        INTEGER NOT NULL  -- UTC ms
) STRICT, WITHOUT ROWID;
CREATE TABLE drains (
    backend    TEXT    PRIMARY KEY, -- as signpost versions list shows it: v2 (canary next)
    addresses  TEXT    NOT NULL, -- JSON, of each: IP address and port, end in UTC ms, whether also if no address is left
    until      INTEGER NOT NULL  -- UTC ms: the last end
) STRICT, WITHOUT ROWID;
CREATE TABLE rejections (
    request_id  TEXT    PRIMARY KEY,
    asked_at    INTEGER NOT NULL, -- UTC ms, of the last one who asked
    found       TEXT              -- JSON, by the gateway that has rejected it
) STRICT, WITHOUT ROWID;
CREATE TABLE gateways (
    id       BLOB    PRIMARY KEY CHECK (length(id) = 16), -- random, of the process
    state    TEXT,             -- JSON; NULL of one that has stopped
    traffic  TEXT    NOT NULL, -- JSON: its requests of the last hour
    seen_at  INTEGER NOT NULL  -- UTC ms, the database's clock
) STRICT, WITHOUT ROWID;
INSERT INTO gateways VALUES (X'B5C0FD16A1E3E10D87263F8A5C58068F','{"addresses":["127.0.0.1:29445"],"certificates":[],"config":"da55283d270cae805d8f3725a5e8e80426ad1893051de3bf83a87fa6be4d6750","host":"vm","is_ready":true,"is_reload_rejected":false,"keys":{"applications":"73f5bfc62965","applications.master_key":"1af5c7decfe5","default_version":"43a0bd5b8318","limits.unsigned.burst":"3ed52d740417","limits.unsigned.per_second":"21759f8db387","prefix":"a486ebf48348","public_url":"0ef24b21028e","shutdown.drain_delay_seconds":"5a4766355270","store":"e93a83b3c399","versions.v1.backend":"26011f4d544a","versions.v2.backend":"9fe9f3103211"},"loaded_at":"2026-11-29T07:26:58Z","process":9164,"readiness":"ready","release":"0.9.0 (a1cb4acda9fc or later, debug)","started_at":"2026-11-29T07:26:58Z"}','[{"at":29932287,"counted":{"versions":{"v2":[3,0,0]},"problems":{},"apps":{}}}]',1795937224014);
CREATE TABLE changes (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    topic       TEXT    NOT NULL,
    key         BLOB    NOT NULL,
    changed_at  INTEGER NOT NULL  -- UTC seconds, the database's clock
) STRICT;
INSERT INTO changes VALUES (1,'application',X'6B4954744A56744E38573544596A47673271594632704965',1795937219);
INSERT INTO changes VALUES (2,'application',X'6B4954744A56744E38573544596A47673271594632704965',1795937219);
INSERT INTO changes VALUES (3,'login',X'01A2263C59C4481CF9C5EAF28467D6EC16025077A01FB6A6E89B64B55FB58CC0',1795937219);
CREATE TABLE accounts (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    provider      TEXT    NOT NULL, -- the provider's name in the configuration
    username      TEXT    NOT NULL, -- the provider's identifier of the person, byte for byte
    created_at    INTEGER NOT NULL, -- UTC ms
    display_name  TEXT,             -- the provider's name for the person; never identifies the account
    email         TEXT,             -- verified by the provider; never identifies the account
    UNIQUE (provider, username)
) STRICT;
INSERT INTO accounts VALUES (1,'bitbucket','{fdee430d-40bd-57de-eac1-86cd9790033d}',1795937219258,'Ada Lovelace',NULL);
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
INSERT INTO logins VALUES (X'01A2263C59C4481CF9C5EAF28467D6EC16025077A01FB6A6E89B64B55FB58CC0','v2',1,'redirect','bitbucket',0,NULL,NULL,NULL,NULL,X'067F52AE45B87E522F6C77F16AC4F1DF000FE0C0D1C5D89E8C17073CD0A9A851','complete',1795937249219,NULL,1,1,1795937219329,1795937339329,NULL,NULL,NULL,1795937219219,1795937819076);
CREATE TABLE login_keys (
    name        TEXT    PRIMARY KEY,
    key         BLOB    NOT NULL CHECK (length(key) = 32),
    created_at  INTEGER NOT NULL -- UTC ms
) STRICT, WITHOUT ROWID;
INSERT INTO login_keys VALUES ('redirect_cookie',X'296C921D5E73C875B544CF4F6B218DA40C20E47A16BB885829582029BC5B9F0C',1795937218664);
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
INSERT INTO credentials VALUES (X'9453E9208BFFE5EDA13E194F0540064DA04992C7438772086D34D940D2E695D3',X'76964B14A940BC429A009B009386732C4DEB9B6AD73779F639FBFA04737390E6',1,1,1795937219329,4102444800000,NULL,NULL,NULL,NULL);
CREATE TABLE events (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id      INTEGER NOT NULL REFERENCES accounts (id),
    application_id  INTEGER NOT NULL,
    event           TEXT    NOT NULL,
    data            TEXT,
    received_at     INTEGER NOT NULL, -- UTC ms
    idempotency_key TEXT -- the client's name of the request, so that it can repeat it
) STRICT;
INSERT INTO events VALUES (1,1,1,'kept',NULL,1795937219338,NULL);
CREATE TABLE rate_limits (
    key      BLOB    PRIMARY KEY CHECK (length(key) = 32), -- HMAC-SHA256 of rule and application or network
    full_at  INTEGER NOT NULL -- UTC microseconds, the database's clock
) STRICT, WITHOUT ROWID;
CREATE TABLE replay_signatures (
    hash           BLOB    PRIMARY KEY, -- of application and signature
    signed_at      INTEGER NOT NULL, -- UTC milliseconds: the signature's time
    window_millis  INTEGER -- of the row with the empty hash: the largest window of all gateways
) STRICT, WITHOUT ROWID;
CREATE TABLE replay_mark (
    one    INTEGER PRIMARY KEY CHECK (one = 1),
    until  INTEGER NOT NULL -- UTC milliseconds
) STRICT;
CREATE TABLE usage_start (
    one       INTEGER PRIMARY KEY CHECK (one = 1),
    began_at  INTEGER NOT NULL -- UTC ms
) STRICT;
INSERT INTO usage_start VALUES (1,1795937218751);
CREATE TABLE usage_counts (
    day          INTEGER NOT NULL, -- UTC days since the epoch
    version      TEXT    NOT NULL,
    application  INTEGER NOT NULL, -- 0: callbacks, which have none; -1: those beyond a gateway's bound
    is_signed    INTEGER NOT NULL CHECK (is_signed IN (0, 1)),
    source       TEXT    NOT NULL, -- a word of Acme-X-Version-Source
    requests     INTEGER NOT NULL,
    PRIMARY KEY (day, version, application, is_signed, source)
) STRICT, WITHOUT ROWID;
INSERT INTO usage_counts VALUES (20786,'v2',0,0,'state',1);
INSERT INTO usage_counts VALUES (20786,'v2',1,1,'app',2);
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
INSERT INTO usage_clients VALUES ('v2',0,0,NULL,1795937224001,NULL,'');
INSERT INTO usage_clients VALUES ('v2',1,1,'kITtJVtN8W5DYjGg2qYF2pIe',1795937224001,'127.0.0.1','');
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
INSERT INTO usage_paths VALUES (20786,'v2',0,0,'GET','/login','2xx',1,1795937224001);
INSERT INTO usage_paths VALUES (20786,'v2',1,0,'GET','/login','3xx',1,1795937224001);
INSERT INTO usage_paths VALUES (20786,'v2',1,0,'POST','/event/send','2xx',1,1795937224001);
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
CREATE TABLE shadow_starts (
    version   TEXT PRIMARY KEY,
    began_at  INTEGER NOT NULL -- UTC ms
) STRICT, WITHOUT ROWID;
CREATE TABLE usage_writers (
    id          BLOB    PRIMARY KEY CHECK (length(id) = 16),
    sequence    INTEGER NOT NULL,
    written_at  INTEGER NOT NULL -- UTC ms
) STRICT, WITHOUT ROWID;
INSERT INTO usage_writers VALUES (X'A6CCED78867B3734E0BF78E41E63AFEE',1,1795937224005);
CREATE INDEX applications_by_name ON applications (name_folded);
CREATE INDEX applications_pinned ON applications (default_version) WHERE default_version IS NOT NULL;
CREATE INDEX applications_extended ON applications (id) WHERE extensions IS NOT NULL;
CREATE INDEX audit_by_age ON audit (at);
CREATE INDEX audit_by_actor ON audit (actor, at);
CREATE INDEX audit_by_subject ON audit (subject, at);
CREATE INDEX audit_of_drains ON audit (subject) WHERE action IN ('backend.drain', 'backend.undrain');
CREATE INDEX audit_by_both ON audit (actor, subject, at);
CREATE UNIQUE INDEX tokens_by_name ON tokens (name) WHERE revoked_at IS NULL;
CREATE INDEX idempotency_by_age ON idempotency (at);
CREATE INDEX logins_by_age ON logins (expires_at);
CREATE INDEX logins_unvouched ON logins (expires_at)
    WHERE mode = 'redirect' AND status IN ('exchanging', 'failed');
CREATE INDEX credentials_by_age ON credentials (expires_at);
CREATE INDEX credentials_revoked ON credentials (revoked_at) WHERE revoked_at IS NOT NULL;
CREATE UNIQUE INDEX credentials_by_login ON credentials (login_hash);
CREATE INDEX credentials_previous ON credentials (previous_hash) WHERE previous_hash IS NOT NULL;
CREATE INDEX credentials_overlap ON credentials (previous_until) WHERE previous_until IS NOT NULL;
CREATE INDEX credentials_by_account ON credentials (account_id) WHERE revoked_at IS NULL;
CREATE INDEX events_by_owner ON events (account_id, application_id);
CREATE UNIQUE INDEX events_by_key ON events (account_id, application_id, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
CREATE INDEX rate_limits_by_age ON rate_limits (full_at);
CREATE INDEX replay_signatures_by_age ON replay_signatures (signed_at);
CREATE INDEX shadow_tallies_by_version ON shadow_tallies (version, target, changes, route, hour, writer);
CREATE INDEX shadow_tallies_by_age ON shadow_tallies (hour);
PRAGMA user_version = 0;
