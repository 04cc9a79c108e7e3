//! The longer statements, built once: a statement is prepared and remembered by its text.

use signpost_store::{PostgresDatabase, Topic, postgres::changes};

use crate::logins::rows::{COLUMNS, COMPLETION_COLUMNS, IS_PENDING};

#[derive(Debug)]
pub(in crate::logins) struct Statements {
    pub(in crate::logins) begin: String,
    pub(in crate::logins) free_at: String,
    pub(in crate::logins) find: String,
    pub(in crate::logins) bind: String,
    pub(in crate::logins) claim: String,
    pub(in crate::logins) finish: String,
    pub(in crate::logins) redeem: String,
    pub(in crate::logins) refusal: String,
}

impl Statements {
    pub(in crate::logins) fn new(database: &PostgresDatabase) -> Self {
        Self {
            begin: begin(),
            free_at: free_at(),
            find: format!(
                "SELECT {COLUMNS} FROM logins LEFT JOIN accounts ON accounts.id = account_id WHERE state_hash = $1"
            ),
            bind: format!(
                "UPDATE logins SET cookie_hash = $2, cookie_stage = $3 \
                 WHERE state_hash = $1 AND {MAY_GO_ON} AND expires_at > $4 \
                   AND (CAST($5 AS BYTEA) IS NULL OR (cookie_hash = $5 AND cookie_stage = 'shown'))"
            ),
            claim: format!(
                "UPDATE logins SET status = 'exchanging', claimed_until = $4, claimable_until = $5 \
                 WHERE state_hash = $1 AND {MAY_GO_ON} AND expires_at > $3 \
                   AND cookie_hash = $2 AND cookie_stage = 'authorizing'"
            ),
            finish: changes::telling(database, Topic::Login, FINISH),
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
            refusal: format!(
                "SELECT {COMPLETION_COLUMNS}, ticket_used_at, \
                     EXISTS (SELECT 1 FROM credentials WHERE hash = $3) AS is_kept \
                 FROM logins JOIN accounts ON accounts.id = account_id \
                 WHERE ticket_hash = $1 AND application_id = $2 AND status = 'complete'"
            ),
        }
    }
}

/// `status = 'pending'`, said so that it does not imply what the indexes of pending logins are for ([`IS_PENDING`]):
/// those are small, so a plan would prefer them to the primary key, and read through every login that is pending.
const MAY_GO_ON: &str = "status NOT IN ('exchanging', 'complete', 'failed')";

const FINISH: &str = "UPDATE logins SET status = $2, reason = $3, account_id = $4, account_created = $5, \
         ticket_hash = $6, ticket_until = $7, finished_at = coalesce(finished_at, $8), claimable_until = $9 \
     WHERE state_hash = $1 AND ((status = 'exchanging' AND coalesce(claimed_until, expires_at) > $10) \
         OR (status = $2 AND reason IS NOT DISTINCT FROM $3 AND account_id IS NOT DISTINCT FROM $4)) \
     RETURNING state_hash AS key";

/// Types are said wherever an engine might have to guess.
fn begin() -> String {
    let of_address = pending("client_address = $8", "$11", "$13");
    let of_application = pending("application_id = $3", "$11", "$14");
    format!(
        "INSERT INTO logins (state_hash, version, application_id, mode, provider, user_code, return_to, \
             client_address, cookie_hash, cookie_stage, status, created_at, expires_at) \
         SELECT CAST($1 AS BYTEA), CAST($2 AS TEXT), CAST($3 AS BIGINT), CAST($4 AS TEXT), CAST($5 AS TEXT), \
             CAST($6 AS TEXT), CAST($7 AS TEXT), CAST($8 AS TEXT), CAST($9 AS BYTEA), CAST($10 AS TEXT), 'pending', \
             CAST($11 AS BIGINT), CAST($12 AS BIGINT) \
         WHERE (SELECT count(*) FROM ({of_address}) AS one) < $13 \
           AND (SELECT count(*) FROM ({of_application}) AS one) < $14"
    )
}

fn free_at() -> String {
    let of_address = pending("client_address = $1", "$3", "$4");
    let of_application = pending("application_id = $2", "$3", "$5");
    format!(
        "SELECT max(first_end) AS free_at FROM ( \
             SELECT min(expires_at) AS first_end FROM ({of_address}) AS one HAVING count(*) >= $4 \
             UNION ALL \
             SELECT min(expires_at) AS first_end FROM ({of_application}) AS one HAVING count(*) >= $5) AS full_ones"
    )
}

/// Counts no further than the bound: the cost of saying no stays the same under attack.
fn pending(whose: &str, now: &str, bound: &str) -> String {
    format!(
        "SELECT expires_at FROM logins WHERE {whose} AND {IS_PENDING} AND expires_at > {now} \
         ORDER BY expires_at LIMIT {bound}"
    )
}
