//! The files in `conf/observe`: the table of metrics, the dashboard and the rules, and what these use of the table.

mod dashboard;
pub mod promql;
mod rules;
mod table;

use std::fs;

pub use self::{
    dashboard::{Panel, Query, dashboard},
    rules::{Rule, rules},
    table::{Documented, Owner, documented},
};
use crate::documents::root;

/// A file of `conf/observe`.
///
/// # Panics
///
/// When it does not exist.
#[must_use]
pub fn read(name: &str) -> String {
    let path = root().join("conf/observe").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
