//! The published sign vectors, for every signer that must meet them.

use serde::Deserialize;

use crate::signer::Profile;

/// One vector: what is signed, how, with what, and what must come out.
#[derive(Debug, Deserialize)]
pub struct Case {
    /// What it is about.
    pub name: String,
    /// The query as sent.
    pub query: String,
    /// The form body as sent.
    pub body: String,
    /// The application's key.
    pub app_key: String,
    /// The sign profile; `head` in it says which request is covered.
    pub profile: Profile,
    /// The canonical string, `<APP_KEY>` where the key goes.
    pub canonical: String,
    /// The sign, in lower-case hex.
    pub sign: String,
}

/// All 282 of them.
///
/// # Panics
///
/// The file is not the one that was published.
#[must_use]
pub fn cases() -> Vec<Case> {
    #[derive(Deserialize)]
    struct Vectors {
        cases: Vec<Case>,
    }
    let vectors = include_str!("../vectors/sign-vectors.json");
    let vectors: Vectors = serde_json::from_str(vectors).expect("the vectors are JSON");
    assert_eq!(vectors.cases.len(), 282);
    vectors.cases
}
