-- Pages of an account's events of one application, newest first. CONTRACT 8.
CREATE INDEX events_by_owner ON events (account_id, application_id, id);

-- The new index begins with the same column.
DROP INDEX events_by_account;
