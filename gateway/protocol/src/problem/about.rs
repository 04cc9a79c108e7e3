//! What a problem's `type` refers to: the contract's text about a code, in short. CONTRACT 7.

use serde::Serialize;

use super::{ProblemCode, Retry, detail_of};
use crate::{
    header::HeaderNames,
    language::Language,
    text::{find, text},
};

/// What all problems of a code have in common: `{"type","title","status","code","detail","retry"}`.
#[derive(Debug, Serialize)]
pub struct About {
    r#type: &'static str,
    /// The title of its problems.
    pub title: String,
    /// The status of its problems.
    pub status: u16,
    /// The code.
    pub code: ProblemCode,
    /// What to do about such a problem.
    pub detail: String,
    /// Whether the same call can succeed later.
    pub retry: Retry,
    /// The language of the texts.
    #[serde(skip)]
    pub language: Language,
}

impl About {
    /// The text about `code`, with the names that the headers have.
    #[must_use]
    pub fn new(code: ProblemCode, language: Language, names: &HeaderNames) -> Self {
        let name = names.spelled(match code {
            ProblemCode::AppMissing => &names.app,
            _ => &names.authorization,
        });
        let args: &[(&str, &str)] = &[("name", &name)];
        let about = find(language, &format!("{}.about", code.as_str()), args);
        Self {
            r#type: code.type_uri(),
            title: text(language, code.as_str(), &[]),
            status: code.status().as_u16(),
            code,
            detail: about.unwrap_or_else(|| detail_of(code, language, args)),
            retry: code.retry(),
            language,
        }
    }

    /// In JSON.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("strings and numbers always serialize")
    }
}

impl ProblemCode {
    /// The code whose problems have this `type`; `None` if the contract has no such code.
    #[must_use]
    pub fn of_type_uri(path: &str) -> Option<Self> {
        Self::of_word(path.strip_prefix("/problems/")?)
    }

    /// The code that is written so; `None` if the contract has no such code.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        let mut codes = Self::ALL.iter().copied();
        codes.find(|code| code.as_str() == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::HeaderOverrides;

    fn names() -> HeaderNames {
        HeaderNames::new(&"Acme".parse().unwrap(), &HeaderOverrides::default()).unwrap()
    }

    #[test]
    fn every_code_has_a_text_without_open_arguments_in_every_language() {
        for language in Language::ALL {
            for &code in ProblemCode::ALL {
                let about = About::new(code, language, &names());
                let name = format!("{} in {}", code.as_str(), language.tag());
                assert!(!about.detail.contains("{$"), "{name}: {}", about.detail);
                assert_eq!(ProblemCode::of_type_uri(about.r#type), Some(code));
                let retry = text(language, code.retry().as_str(), &[]);
                assert!(!retry.contains("page_"), "{name}: {retry}");
            }
        }
    }

    #[test]
    fn only_the_whole_path_of_a_code_names_it() {
        for path in [
            "/problems/",
            "/problems/unknown",
            "/problems/not_found/",
            "/problems/Not_Found",
            "/problems/not_foun",
            "problems/not_found",
        ] {
            assert_eq!(ProblemCode::of_type_uri(path), None, "{path}");
        }
    }

    #[test]
    fn its_json_has_the_words_of_the_contract() {
        let about = About::new(ProblemCode::LoginPending, Language::En, &names());
        let json: serde_json::Value = serde_json::from_slice(&about.to_json()).unwrap();
        let expected = serde_json::json!({
            "type": "/problems/login_pending",
            "title": "The login is not finished yet",
            "status": 409,
            "code": "login_pending",
            "detail": "Finish it in the browser first.",
            "retry": "yes",
        });
        assert_eq!(json, expected);
    }
}
