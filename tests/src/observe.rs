//! The metrics that the programs describe; the dashboard and the rules in `conf/observe`, and what these use of them.

mod dashboard;
mod documented;
pub mod promql;
mod rules;

use std::fs;

pub use self::{
    dashboard::{Panel, Query, dashboard},
    documented::{Documented, documented, documented_by},
    rules::{Rule, rules},
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
