//! What a program prints by `--version`, and shows in its log and at `/metrics`. A crate of its own: each commit
//! rebuilds it and the crates that depend on it. These are the programs, and the proxy, for its metrics, its spans and
//! its connections to the store.

/// The workspace's version, the commit and Cargo's profile, for example `0.9.0 (0123456789ab, dist)`.
///
/// Version and commit of a release come from `SIGNPOST_RELEASE` at the build, which `scripts/dist` sets. Otherwise the
/// checkout's files may have changed since the commit: `0.9.0 (0123456789ab or later, debug)`. Without git there is no
/// commit.
pub const RELEASE: &str = env!("SIGNPOST_RELEASE_TEXT");
