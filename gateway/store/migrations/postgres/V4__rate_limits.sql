-- The rate limit of an application. Both NULL: the gateway's; both 0: unlimited.
ALTER TABLE applications ADD COLUMN rate_per_second BIGINT CHECK (rate_per_second >= 0);
ALTER TABLE applications ADD COLUMN rate_burst      BIGINT CHECK (rate_burst >= 0);

-- Debts of the rate limits that gateways share. Rows are deleted soon after their debt is paid.
CREATE TABLE rate_limits (
    key      BYTEA  PRIMARY KEY CHECK (length(key) = 32), -- HMAC-SHA256 of rule and application or network
    paid_at  BIGINT NOT NULL -- UTC microseconds, the server's clock
);

CREATE INDEX rate_limits_by_age ON rate_limits (paid_at);
