//! The tables and their migrations: Signpost's own, and each version's.
//!
//! Each owner has a history of its own in the table `migrations`, which says who applied what, and which migration a
//! program must have to work with the result. So programs of several releases share a store: one that has fewer
//! migrations than were applied starts nevertheless, as long as all of them were additive.

use crate::{error::SchemaError, from_row};

/// A migration in both dialects.
#[derive(Clone, Copy, Debug)]
pub struct Migration<'a> {
    /// `V`, the number from 1, two underscores, and what it does: `V1__notes`.
    pub name: &'a str,
    /// Statements for SQLite.
    pub sqlite: &'a str,
    /// Statements for Postgres.
    pub postgres: &'a str,
}

/// Embeds migrations by their names: the files `migrations/sqlite/NAME.sql` and `migrations/postgres/NAME.sql` of the
/// crate that calls this.
#[macro_export]
macro_rules! migrations {
    ($($name:literal),* $(,)?) => {
        &[$($crate::Migration {
            name: $name,
            sqlite: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/migrations/sqlite/", $name, ".sql")),
            postgres: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/migrations/postgres/", $name, ".sql")),
        }),*]
    };
}

/// The migrations of an owner, in their order.
#[derive(Clone, Copy, Debug)]
pub struct Schema<'a> {
    pub(crate) owner: &'a str,
    pub(crate) migrations: &'a [Migration<'a>],
    pub(crate) oldest: usize,
}

/// The tables of Signpost itself. A migration that releases without it cannot work with raises [`Schema::needs`].
pub(crate) const SIGNPOST: Schema<'static> = Schema {
    owner: "signpost",
    migrations: migrations!["V1__schema"],
    oldest: 0,
};

impl<'a> Schema<'a> {
    /// The tables of a version. All that they create begins with the version's name and `_`: `v3_notes`, `v3_notes_by_age`.
    ///
    /// # Panics
    ///
    /// The owner is not lower-case letters and then digits, or a migration's name has not its number. In a constant, that
    /// does not compile.
    #[must_use]
    pub const fn new(owner: &'a str, migrations: &'a [Migration<'a>]) -> Self {
        assert!(
            is_owner(owner.as_bytes()),
            "a version with tables is named by lower-case letters, then digits: v3"
        );
        let mut index = 0;
        // A `const fn` has no `for`, and only there a wrong name does not compile.
        while index < migrations.len() {
            assert!(
                has_number(migrations[index].name.as_bytes(), index + 1),
                "migrations are V1__NAME, V2__NAME, … without a gap"
            );
            index += 1;
        }
        Self {
            owner,
            migrations,
            oldest: 0,
        }
    }

    /// Programs need this migration, by its number, to work with the store: older ones no longer start. Without a call,
    /// all migrations are additive.
    #[must_use]
    pub const fn needs(self, oldest: usize) -> Self {
        assert!(
            oldest <= self.migrations.len(),
            "there is no such migration"
        );
        Self { oldest, ..self }
    }

    /// What the names of a version's tables and indexes begin with; `None` for Signpost's own.
    pub(crate) fn prefix(&self) -> Option<String> {
        (self.owner != SIGNPOST.owner).then(|| format!("{}_", self.owner))
    }

    /// The migrations that are yet to be applied. `text` chooses the dialect.
    pub(crate) fn missing(
        &self,
        applied: &[Applied],
        text: impl Fn(&Migration<'a>) -> &'a str,
    ) -> Result<&'a [Migration<'a>], SchemaError> {
        let known = self.migrations.len();
        if let Some(last) = applied.last()
            && let Some(needed) = applied.iter().map(|row| row.oldest).max()
            && usize::try_from(needed).is_ok_and(|needed| needed > known)
        {
            return Err(SchemaError::TooOld {
                owner: self.owner.to_owned(),
                last: last.name.clone(),
                program: last.program.clone(),
                needed,
                known,
            });
        }
        // What a newer release has applied beyond these is unknown here, and additive.
        for (row, own) in applied.iter().zip(self.migrations) {
            if row.name != own.name || row.statements != text(own) {
                return Err(SchemaError::Changed {
                    owner: self.owner.to_owned(),
                    name: own.name.to_owned(),
                    program: row.program.clone(),
                });
            }
        }
        Ok(self.migrations.get(applied.len()..).unwrap_or_default())
    }

    /// Checks what a version's migrations have done: they may create and change only what has its prefix, with columns
    /// that both databases have.
    pub(crate) fn check(
        &self,
        before: Vec<Object>,
        after: Vec<Object>,
        columns: &[Object],
    ) -> Result<(), SchemaError> {
        let Some(prefix) = self.prefix() else {
            return Ok(());
        };
        let of_owner = |column: &&Object| column.table_name.starts_with(&prefix);
        let is_own = |object: &Object| {
            object.name.starts_with(&prefix) && object.table_name.starts_with(&prefix)
        };
        let others = |objects: Vec<Object>| -> Vec<Object> {
            let others = objects.into_iter();
            others.filter(|object| !is_own(object)).collect()
        };
        let (before, after) = (others(before), others(after));
        let is_new = |object: &&Object| !before.contains(object);
        let is_gone = |object: &&Object| !after.contains(object);
        // Both ways: a changed object is new in its present form, a dropped one is only gone.
        if let Some(object) = (after.iter().find(is_new)).or_else(|| before.iter().find(is_gone)) {
            return Err(SchemaError::NotOwn {
                name: object.name.clone(),
                table: object.table_name.clone(),
                prefix,
            });
        }
        for column in columns.iter().filter(of_owner) {
            let name = format!("{}.{}", column.table_name, column.name);
            if !is_portable(&column.definition) {
                let definition = column.definition.clone();
                return Err(SchemaError::Type {
                    column: name,
                    found: definition,
                });
            }
            if !is_name(&column.table_name) || !is_name(&column.name) {
                return Err(SchemaError::Name { name });
            }
        }
        Ok(())
    }

    /// Whether this release needs more of programs than the release that has applied the last migration.
    pub(crate) fn raises_needs(&self, applied: &[Applied]) -> bool {
        let before = applied.iter().map(|row| row.oldest).max();
        u64::try_from(self.oldest).unwrap_or(u64::MAX) > before.unwrap_or(0)
    }
}

/// Records that, for the last migration. Parameters: the owner, and the number of the migration that is needed.
pub(crate) const RAISE_NEEDS: &str = "UPDATE migrations SET oldest = $2 WHERE owner = $1 AND number = \
                           (SELECT max(number) FROM migrations WHERE owner = $1)";

/// Whether both databases have the name as it was written.
fn is_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    name.bytes().all(is_allowed)
}

/// Whether `store copy` and the statements of programs know a column of this type, in either dialect.
fn is_portable(definition: &str) -> bool {
    [
        "INTEGER", "TEXT", "BLOB", "bigint", "boolean", "text", "bytea",
    ]
    .contains(&definition)
}

/// Lower-case letters, then digits. No prefix is the beginning of another one then, nor of a table of Signpost's own.
const fn is_owner(name: &[u8]) -> bool {
    let mut letters = 0;
    while letters < name.len() && name[letters].is_ascii_lowercase() {
        letters += 1;
    }
    let mut index = letters;
    while index < name.len() && name[index].is_ascii_digit() {
        index += 1;
    }
    letters > 0 && index > letters && index == name.len()
}

/// Whether the name begins with `V`, this number and `__`.
const fn has_number(name: &[u8], number: usize) -> bool {
    let (mut index, mut parsed) = (1, 0);
    while index < name.len() && name[index].is_ascii_digit() {
        parsed = parsed * 10 + (name[index] - b'0') as usize;
        index += 1;
    }
    let has_name = name.len() > index + 2 && name[index] == b'_' && name[index + 1] == b'_';
    name[0] == b'V' && parsed == number && has_name
}

/// The tables of an owner, as a store has them: another program can create them in another store.
#[derive(Debug, Default)]
pub(crate) struct StoredSchema {
    pub(crate) owner: String,
    /// Name, statements for SQLite, statements for Postgres.
    pub(crate) migrations: Vec<[String; 3]>,
    pub(crate) oldest: usize,
    /// The program that applied the last one.
    pub(crate) program: String,
}

impl StoredSchema {
    /// Whether it is Signpost's own, and has more than this release.
    pub(crate) fn is_newer(&self) -> bool {
        self.owner == SIGNPOST.owner && self.migrations.len() > SIGNPOST.migrations.len()
    }

    pub(crate) fn migrations(&self) -> Vec<Migration<'_>> {
        let all = self.migrations.iter();
        let all = all.map(|[name, sqlite, postgres]| Migration {
            name,
            sqlite,
            postgres,
        });
        all.collect()
    }

    /// The schema of its [`Self::migrations`].
    pub(crate) fn with<'a>(&'a self, migrations: &'a [Migration<'a>]) -> Schema<'a> {
        let Self { owner, oldest, .. } = self;
        Schema {
            owner,
            migrations,
            oldest: *oldest,
        }
    }

    /// Whether the table is this version's.
    pub(crate) fn has(&self, table: &str) -> bool {
        let prefix = self.with(&[]).prefix();
        prefix.is_some_and(|prefix| table.starts_with(&prefix))
    }
}

/// A migration that was applied; the numbers have no gap.
#[derive(Debug)]
pub(crate) struct Applied {
    name: String,
    statements: String,
    oldest: u64,
    program: String,
}

from_row!(Applied {
    name,
    statements,
    oldest,
    program
});

/// A table, an index or a column, as the database describes it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Object {
    table_name: String,
    name: String,
    definition: String,
}

from_row!(Object {
    table_name,
    name,
    definition
});

#[cfg(test)]
mod both_stores;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_letters_and_then_digits() {
        for owner in ["v1", "v20", "login3"] {
            assert!(is_owner(owner.as_bytes()), "{owner}");
        }
        for owner in ["", "v", "3", "V3", "v3_", "v2.1", "v3a", "signpost"] {
            assert!(!is_owner(owner.as_bytes()), "{owner}");
        }
    }

    #[test]
    fn a_migration_has_its_number() {
        assert!(has_number(b"V1__notes", 1) && has_number(b"V12__a", 12));
        for name in ["V1__notes", "V2_notes", "v2__notes", "V2__", "V__notes"] {
            assert!(!has_number(name.as_bytes(), 2), "{name}");
        }
    }
}
