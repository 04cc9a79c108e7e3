//! The longer statements, built once: prepared statements are cached by their text.

use signpost_store::{PostgresDatabase, Topic, postgres::changes};

use crate::records::logins::rows::{COLUMNS, COMPLETION_COLUMNS};

#[derive(Debug)]
pub(in crate::records::logins) struct Statements {
    pub(in crate::records::logins) find: String,
    pub(in crate::records::logins) finish: String,
    pub(in crate::records::logins) redeem: String,
    pub(in crate::records::logins) find_redemption: String,
}

impl Statements {
    pub(in crate::records::logins) fn new(database: &PostgresDatabase) -> Self {
        Self {
            find: format!(
                "SELECT {COLUMNS} FROM logins LEFT JOIN accounts ON accounts.id = account_id WHERE state_hash = $1"
            ),
            finish: changes::with_notification(database, Topic::Login, FINISH),
            redeem: format!(
                "WITH spent AS (UPDATE logins SET ticket_used_at = $3 FROM accounts \
                     WHERE ticket_hash = $1 AND application_id = $2 AND status = 'complete' \
                       AND ticket_used_at IS NULL AND ticket_until > $3 AND accounts.id = account_id \
                     RETURNING application_id, {COMPLETION_COLUMNS}), \
                 kept AS (INSERT INTO credentials (hash, account_id, application_id, created_at, expires_at) \
                     SELECT CAST($4 AS BYTEA), account_id, application_id, finished_at, \
                         finished_at + CAST($5 AS BIGINT) FROM spent) \
                 SELECT * FROM spent"
            ),
            find_redemption: format!(
                "SELECT {COMPLETION_COLUMNS}, ticket_used_at, \
                     EXISTS (SELECT 1 FROM credentials WHERE hash = $3) AS is_kept \
                 FROM logins JOIN accounts ON accounts.id = account_id \
                 WHERE ticket_hash = $1 AND application_id = $2 AND status = 'complete'"
            ),
        }
    }
}

pub(in crate::records::logins) const BEGIN: &str = "INSERT INTO logins (state_hash, version, application_id, mode, provider, user_code, status, \
         created_at, expires_at) \
     VALUES ($1, $2, $3, 'polling', $4, $5, 'pending', $6, $7)";

pub(in crate::records::logins) const BIND: &str = "UPDATE logins SET cookie_hash = $2 \
     WHERE state_hash = $1 AND status = 'pending' AND expires_at > $3";

pub(in crate::records::logins) const CLAIM: &str = "UPDATE logins SET status = 'exchanging', claimed_until = $4, claimable_until = $5 \
     WHERE state_hash = $1 AND status = 'pending' AND expires_at > $3 \
       AND cookie_hash = $2";

pub(in crate::records::logins) const CLAIM_REDIRECT: &str = "INSERT INTO logins (state_hash, version, application_id, mode, provider, return_to, \
         cookie_hash, status, claimed_until, claimable_until, created_at, expires_at) \
     VALUES ($1, $2, $3, 'redirect', $4, $5, $6, 'exchanging', $7, $8, $9, $10) \
     ON CONFLICT (state_hash) DO NOTHING";

pub(in crate::records::logins) const UNCLAIM_REDIRECT: &str =
    "DELETE FROM logins WHERE state_hash = $1 AND mode = 'redirect' AND status = 'exchanging'";

const FINISH: &str = "UPDATE logins SET status = $2, reason = $3, account_id = $4, account_created = $5, \
         ticket_hash = $6, ticket_until = $7, finished_at = coalesce(finished_at, $8), claimable_until = $9 \
     WHERE state_hash = $1 AND ((status = 'exchanging' AND claimed_until > $10) \
         OR (status = $2 AND reason IS NOT DISTINCT FROM $3 AND account_id IS NOT DISTINCT FROM $4)) \
     RETURNING state_hash AS key";
