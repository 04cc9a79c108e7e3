-- The rate limit of an application. Both NULL: the gateway's; both 0: unlimited.
ALTER TABLE applications ADD COLUMN rate_per_second INTEGER CHECK (rate_per_second >= 0);
ALTER TABLE applications ADD COLUMN rate_burst      INTEGER CHECK (rate_burst >= 0);

-- Debts of the rate limits that gateways share. Rows are deleted soon after their debt is paid.
CREATE TABLE rate_limits (
    key      BLOB    PRIMARY KEY CHECK (length(key) = 32), -- HMAC-SHA256 of rule and application or network
    paid_at  INTEGER NOT NULL -- UTC microseconds, the database's clock
) STRICT, WITHOUT ROWID;

CREATE INDEX rate_limits_by_age ON rate_limits (paid_at);
