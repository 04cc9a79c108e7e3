-- Pages of an account's events of one application, newest first. CONTRACT 8.
-- The id, which is the table's row id, follows in each index.
CREATE INDEX events_by_owner ON events (account_id, application_id);

-- The new index begins with the same column.
DROP INDEX events_by_account;
