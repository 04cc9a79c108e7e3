//! What a program prints by `--version`, and shows in its log and at `/metrics`. A crate of its own, since each commit builds
//! it again, and the crates that depend on it: those of programs, and the proxy's, for its metrics, its spans and its
//! connections to the store.

/// Release, commit and Cargo's profile, for example `v3/1.3.0 (0123456789ab, dist)`.
///
/// Tag and commit of a release come from `SIGNPOST_RELEASE` at the build, which `scripts/deploy`, `dist` and `image` set.
/// Otherwise it is the workspace's version and the commit of the checkout, whose files may have changed since:
/// `0.1.0 (0123456789ab or later, debug)`. Without git there is no commit.
pub const RELEASE: &str = env!("SIGNPOST_RELEASE_TEXT");
