-- A callback whose process was killed, or that lost the store, has its login no longer than this. A row that an older
-- release claimed has none: its login ends when it expires.
ALTER TABLE logins ADD COLUMN claimed_until INTEGER; -- UTC ms
