//! Bodies of two versions: what changes one into the other, and what differs between them.
//!
//! No I/O, no async, no clock. Bodies are private: no error, path or count of this crate has a value of one.
//!
//! | module | subject |
//! | --- | --- |
//! | [`path`] | the place of values in JSON bodies: `$.items[].id` |
//! | [`operation`] | the closed list of changes, and what each may say |
//! | [`apply()`] | changes a body; all that no operation touches keeps its bytes |
//! | [`compare()`] | compares two JSON bodies |
//! | [`comparison`] | what differs between two responses: paths and shapes, no values |
//! | [`tally`] | counts of many comparisons |
//! | [`draft`] | the changes that these suggest |

mod apply;
mod compare;
pub mod comparison;
mod document;
pub mod draft;
mod not_applied;
pub mod operation;
pub mod path;
mod raw;
mod shown;
pub mod tally;
mod walk;

pub use self::{
    apply::apply,
    compare::compare,
    comparison::{Comparison, Finding, Kind, Kinds},
    draft::{Advice, Draft},
    not_applied::NotApplied,
    operation::{Container, Effect, Operation, Otherwise},
    path::{JsonPath, ParsePathError},
    tally::{AppTally, PathTally, Rename, Tally},
};
