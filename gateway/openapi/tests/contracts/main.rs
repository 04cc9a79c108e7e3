//! What is found between two documents.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot continue fails at that line"
)]

mod bounds;
mod judge;
mod public;
mod seeded;
mod support;
