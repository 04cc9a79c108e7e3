//! The tables and their migrations: Signpost's own, and those of each version.
//!
//! Each owner has a history of its own in the table `migrations`, which says who applied what, and which migration a
//! program must have to work with the result. So programs of several releases share a store: one that has fewer
//! migrations than were applied starts nevertheless, as long as all of them were additive.

use crate::from_row;

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
        if let Some(object) = (after.iter().find(is_new)).or_else(|| before.iter().find(is_gone)) {
            return Err(SchemaError::NotOwn {
                name: object.name.clone(),
                table: object.table_name.clone(),
                prefix,
            });
        }
        let mut own = columns.iter();
        match own.find(|one| one.table_name.starts_with(&prefix) && !is_portable(&one.definition)) {
            Some(column) => Err(SchemaError::Type {
                column: format!("{}.{}", column.table_name, column.name),
                found: column.definition.clone(),
            }),
            None => Ok(()),
        }
    }
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
    let (mut index, mut found) = (1, 0);
    while index < name.len() && name[index].is_ascii_digit() {
        found = found * 10 + (name[index] - b'0') as usize;
        index += 1;
    }
    let has_name = name.len() > index + 2 && name[index] == b'_' && name[index + 1] == b'_';
    name[0] == b'V' && found == number && has_name
}

/// A version's tables, as a store has them: another program can create them in another store.
#[derive(Debug, Default)]
pub(crate) struct StoredSchema {
    pub(crate) owner: String,
    /// Name, statements for SQLite, statements for Postgres.
    pub(crate) migrations: Vec<[String; 3]>,
    pub(crate) oldest: usize,
}

impl StoredSchema {
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

/// Why the tables cannot be used or migrated.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// A later release has migrated the store, and this program cannot work with the result.
    #[error(
        "{program} has migrated the store to {last} of {owner}. Programs need at least V{needed} of {owner} now; this one \
         ends with V{known}. Start a release of this program that is as new, or restore the backup"
    )]
    TooOld {
        /// Whose tables: `signpost`, or a version.
        owner: String,
        /// The last migration.
        last: String,
        /// The program that applied it.
        program: String,
        /// The number of the migration that programs need.
        needed: u64,
        /// The number of the last one that this program has.
        known: usize,
    },
    /// A migration was applied in another form than this program has.
    #[error(
        "{name} of {owner} was changed after {program} had applied it. Restore its statements, and add a migration instead"
    )]
    Changed {
        /// Whose tables.
        owner: String,
        /// The migration.
        name: String,
        /// The program that applied it.
        program: String,
    },
    /// A version's migration creates or changes what is not its own.
    #[error(
        "a migration creates, changes or drops {name} (of {table}), which does not begin with {prefix}: nothing was \
         migrated"
    )]
    NotOwn {
        /// The table, index or other object.
        name: String,
        /// Its table.
        table: String,
        /// What all names must begin with.
        prefix: String,
    },
    /// A version's migration has a column that cannot be copied to the other database.
    #[error(
        "{column} is {found}: nothing was migrated. Allowed: INTEGER, TEXT and BLOB in STRICT tables of SQLite; bigint, \
         boolean, text and bytea in Postgres"
    )]
    Type {
        /// Table and column.
        column: String,
        /// Its type.
        found: String,
    },
    /// A statement of a migration failed.
    #[error("{name} of {owner} failed: nothing was migrated")]
    Failed {
        /// Whose tables.
        owner: String,
        /// The migration.
        name: String,
        /// The database's error.
        #[source]
        cause: crate::StoreError,
    },
    /// The database failed.
    #[error(transparent)]
    Store(#[from] crate::StoreError),
}

impl SchemaError {
    pub(crate) fn failed(
        schema: &Schema<'_>,
        migration: &Migration<'_>,
        cause: impl Into<crate::StoreError>,
    ) -> Self {
        Self::Failed {
            owner: schema.owner.to_owned(),
            name: migration.name.to_owned(),
            cause: cause.into(),
        }
    }
}

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
