-- Requests by version and application, for `signpost versions report`. Rows are deleted after 90 days. As in ../sqlite,
-- which says more.

CREATE TABLE usage_start (
    one       BIGINT PRIMARY KEY CHECK (one = 1),
    began_at  BIGINT NOT NULL -- UTC ms
);

CREATE TABLE usage_counts (
    day          BIGINT  NOT NULL, -- UTC days since the epoch
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
    last_seen    BIGINT  NOT NULL, -- UTC ms
    address      TEXT,
    user_agent   TEXT,
    PRIMARY KEY (version, application, is_signed)
);

CREATE TABLE usage_writers (
    id          BYTEA  PRIMARY KEY CHECK (length(id) = 16),
    sequence    BIGINT NOT NULL,
    written_at  BIGINT NOT NULL -- UTC ms
);
