//! Problems of a version's own: a code, a status, and texts in all languages.

use http::StatusCode;
use serde::Serialize;
use signpost_protocol::{language::Language, problem::ProblemCode};

/// A problem that only one version has. Define it as a constant; a handler returns it as
/// [`LoginError`](crate::LoginError).
///
/// What is wrong with its definition is an error of the compiler, since errors can only be made of a `&'static` one:
///
/// ```
/// use axum::http::StatusCode;
/// use login::problem::{OwnProblem, Text, Texts};
///
/// static LIST_FULL: OwnProblem = OwnProblem::new(
///     "list_full",
///     StatusCode::CONFLICT,
///     Texts {
///         en: Text { title: "The list is full", detail: "Remove an entry first." },
///         zh_cn: Text { title: "列表已满", detail: "请先删除一个条目。" },
///         zh_tw: Text { title: "清單已滿", detail: "請先刪除一個項目。" },
///         ja: Text { title: "リストがいっぱいです", detail: "先に項目を削除してください。" },
///         ko: Text { title: "목록이 가득 찼습니다", detail: "먼저 항목을 삭제하세요." },
///     },
/// );
/// ```
///
/// A code of the contract cannot be taken:
///
/// ```compile_fail
/// # use axum::http::StatusCode;
/// # use login::problem::{OwnProblem, Text, Texts};
/// # const TEXT: Text = Text { title: "x", detail: "x" };
/// # const TEXTS: Texts = Texts { en: TEXT, zh_cn: TEXT, zh_tw: TEXT, ja: TEXT, ko: TEXT };
/// static NOT_FOUND: OwnProblem = OwnProblem::new("not_found", StatusCode::NOT_FOUND, TEXTS);
/// ```
#[derive(Debug)]
pub struct OwnProblem {
    /// The word in the body's `code`.
    pub(crate) code: &'static str,
    pub(crate) status: StatusCode,
    pub(crate) texts: Texts,
}

/// The texts of a problem, in every language.
#[derive(Debug)]
pub struct Texts {
    /// English.
    pub en: Text,
    /// Chinese, simplified.
    pub zh_cn: Text,
    /// Chinese, traditional.
    pub zh_tw: Text,
    /// Japanese.
    pub ja: Text,
    /// Korean.
    pub ko: Text,
}

/// The text of a problem in one language.
#[derive(Clone, Copy, Debug)]
pub struct Text {
    /// What went wrong, in a few words.
    pub title: &'static str,
    /// What to do about it, in whole sentences.
    pub detail: &'static str,
}

/// Longest code: the gateway logs no longer one. CONTRACT 9.
const MAX_CODE_BYTES: usize = 64;

impl OwnProblem {
    /// Defines a problem.
    ///
    /// # Panics
    ///
    /// In a constant, these stop the compiler: `code` is not 1 to 64 of `[a-z0-9_]`, or one of the contract; `status`
    /// is not an error (400 to 599); a text is empty.
    #[must_use]
    pub const fn new(code: &'static str, status: StatusCode, texts: Texts) -> Self {
        assert!(
            is_code(code.as_bytes()),
            "a problem's code is 1 to 64 of [a-z0-9_]"
        );
        assert!(
            !is_of_contract(code.as_bytes()),
            "the contract has this code: it means the same everywhere"
        );
        assert!(
            matches!(status.as_u16(), 400..=599),
            "a problem's status is 400 to 599"
        );
        let mut index = 0;
        while index < Language::ALL.len() {
            let text = texts.of(Language::ALL[index]);
            assert!(
                !text.title.is_empty() && !text.detail.is_empty(),
                "a problem's texts exist in every language"
            );
            index += 1;
        }
        Self {
            code,
            status,
            texts,
        }
    }

    /// The response body: the members of [`signpost_protocol::problem::Problem`], in the same order. CONTRACT 7.
    pub(crate) fn to_json(&self, language: Language, request_id: &str) -> Vec<u8> {
        #[derive(Serialize)]
        struct Body<'a> {
            r#type: String,
            title: &'static str,
            status: u16,
            code: &'static str,
            detail: &'static str,
            request_id: &'a str,
        }
        let Text { title, detail } = self.texts.of(language);
        let body = Body {
            r#type: format!("/problems/{}", self.code),
            title,
            status: self.status.as_u16(),
            code: self.code,
            detail,
            request_id,
        };
        serde_json::to_vec(&body).expect("strings and a number always serialize")
    }
}

impl Texts {
    pub(crate) const fn of(&self, language: Language) -> Text {
        match language {
            Language::En => self.en,
            Language::ZhCn => self.zh_cn,
            Language::ZhTw => self.zh_tw,
            Language::Ja => self.ja,
            Language::Ko => self.ko,
        }
    }
}

const fn is_code(code: &[u8]) -> bool {
    let mut index = 0;
    while index < code.len() {
        if !matches!(code[index], b'a'..=b'z' | b'0'..=b'9' | b'_') {
            return false;
        }
        index += 1;
    }
    !code.is_empty() && code.len() <= MAX_CODE_BYTES
}

const fn is_of_contract(code: &[u8]) -> bool {
    let mut index = 0;
    while index < ProblemCode::ALL.len() {
        if is_equal(code, ProblemCode::ALL[index].as_str().as_bytes()) {
            return true;
        }
        index += 1;
    }
    false
}

/// `==`, which a constant cannot use yet.
const fn is_equal(code: &[u8], other: &[u8]) -> bool {
    if code.len() != other.len() {
        return false;
    }
    let mut index = 0;
    while index < code.len() {
        if code[index] != other[index] {
            return false;
        }
        index += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use signpost_protocol::problem::Problem;

    use super::*;

    const TEXT: Text = Text {
        title: "a \"title\"",
        detail: "a detail",
    };

    fn texts() -> Texts {
        Texts {
            en: TEXT,
            zh_cn: TEXT,
            zh_tw: TEXT,
            ja: TEXT,
            ko: TEXT,
        }
    }

    /// The names of the members, in order. No value in these tests contains `":`.
    fn members(json: &[u8]) -> Vec<String> {
        let json = std::str::from_utf8(json).unwrap();
        let before_values = json
            .split("\":")
            .map(|part| part.rsplit('"').next().unwrap());
        let mut names: Vec<_> = before_values.map(str::to_owned).collect();
        names.pop();
        names
    }

    #[test]
    fn its_body_has_the_members_of_the_contracts_problems() {
        let own = OwnProblem::new("list_full", StatusCode::CONFLICT, texts());
        let json = own.to_json(Language::Ja, "r-1");
        let shared = Problem::new(ProblemCode::NotFound, Language::Ja, "r-1");
        assert_eq!(members(&json), members(&shared.to_json()));
        let body: serde_json::Value = serde_json::from_slice(&json).unwrap();
        assert_eq!(
            body,
            serde_json::json!({
                "type": "/problems/list_full",
                "title": TEXT.title,
                "status": 409,
                "code": "list_full",
                "detail": TEXT.detail,
                "request_id": "r-1",
            })
        );
    }

    #[test]
    fn a_wrong_definition_is_refused() {
        let long = "x".repeat(65).leak();
        for code in ["", "Full", "list-full", "ä", long, "not_found", "internal"] {
            let define = || OwnProblem::new(code, StatusCode::CONFLICT, texts());
            assert!(catch_unwind(define).is_err(), "{code}");
        }
        for status in [StatusCode::OK, StatusCode::FOUND] {
            let define = || OwnProblem::new("list_full", status, texts());
            assert!(catch_unwind(define).is_err(), "{status}");
        }
        let empty = |change: fn(&mut Texts)| {
            let define = move || {
                let mut texts = texts();
                change(&mut texts);
                OwnProblem::new("list_full", StatusCode::CONFLICT, texts)
            };
            assert!(catch_unwind(define).is_err());
        };
        empty(|texts| texts.en.title = "");
        empty(|texts| texts.zh_cn.detail = "");
        empty(|texts| texts.zh_tw.title = "");
        empty(|texts| texts.ja.detail = "");
        empty(|texts| texts.ko.title = "");
    }
}
