//! The published sign vectors. Every signer must match them.

use serde::Deserialize;

use crate::signer::Profile;

/// One vector: request, key and profile, with the expected canonical string and signature.
#[derive(Debug, Deserialize)]
pub struct Case {
    /// What it tests.
    pub name: String,
    /// The query as sent.
    pub query: String,
    /// The form body as sent.
    pub body: String,
    /// The application's key.
    pub app_key: String,
    /// The sign profile; its `head` is the method and path if the request is covered.
    pub profile: Profile,
    /// The canonical string, with `<APP_KEY>` in place of the key.
    pub canonical: String,
    /// The signature, in lower-case hex.
    pub sign: String,
}

/// All 287 vectors.
///
/// # Panics
///
/// When the file is not the published one.
#[must_use]
pub fn cases() -> Vec<Case> {
    #[derive(Deserialize)]
    struct Vectors {
        cases: Vec<Case>,
    }
    let vectors = include_str!("../vectors/sign-vectors.json");
    let vectors: Vectors = serde_json::from_str(vectors).expect("the vectors are JSON");
    assert_eq!(vectors.cases.len(), 287);
    vectors.cases
}
