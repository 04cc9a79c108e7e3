-- A redirect login is stored when its callback comes; until then the browser's cookie holds it, sealed under this key.
CREATE TABLE login_keys (
    name        TEXT    PRIMARY KEY,
    key         BLOB    NOT NULL CHECK (length(key) = 32),
    created_at  INTEGER NOT NULL -- UTC ms
) STRICT, WITHOUT ROWID;

-- Nothing counts pending logins any more: how many begin is limited per time, in memory.
DROP INDEX logins_pending_by_application;
DROP INDEX logins_pending_by_address;

-- Callbacks that no provider vouched for. Strangers can cause these rows, so they go when their login expires.
CREATE INDEX logins_unvouched ON logins (expires_at)
    WHERE mode = 'redirect' AND status IN ('exchanging', 'failed');
