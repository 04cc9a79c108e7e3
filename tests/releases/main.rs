//! What takes long. The mutants and the packages of the client libraries. And what the documents tell people to do: the commands that they show,
//! and the life of a version, which is made by `backends/README.md`, tagged, deployed, and replaced without downtime. It all
//! happens in copies.
//!
//! A test program of its own, which `scripts/test --all` runs: its builds load the processors.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot continue fails at that line"
)]

mod commands;
mod life;
mod mutants;
mod packages;
mod scripts;
mod session;
