//! Two `OpenAPI` documents: what differs, and what of it breaks clients.
//!
//! No I/O, no async, no clock. Documents are 3.0 or 3.1, JSON or YAML, and may be hostile: size, depth, references and
//! work have bounds.
//!
//! | module | subject |
//! | --- | --- |
//! | [`document`] | reads a document, JSON or YAML, and follows its references |
//! | `schema` | a schema with all that `$ref` and `allOf` add to it |
//! | `schemas` | compares two schemas; `hint` has the step of a bridge that makes up for a difference |
//! | [`compare()`] | compares two documents: operations, parameters, bodies, responses |
//! | [`finding`] | what differs |

mod compare;
pub mod document;
pub mod finding;
mod schema;
mod schemas;

pub use self::{
    compare::compare,
    document::{Document, Unreadable},
    finding::{Finding, Known, Report, Step},
};
