//! The life of a version: made by a script, tagged, deployed, and replaced without downtime, in a copy of the project.
//!
//! A test program of its own: its builds load the processors, so no other test runs beside it.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot continue fails at that line"
)]

mod life;
mod scripts;
