//! `POST /notes` `text`: keeps a note of the user. `GET /notes`: the user's notes.

use std::sync::Arc;

use axum::{Json, extract::State, http::StatusCode};
use login::{
    LoginError, Own, Service,
    description::{Operation, text},
    problem::{OwnProblem, Text, Texts},
    request::{AuthenticatedUser, Parameters},
    store::{from_row, values},
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::V3;

const MAX_BYTES: usize = 4096;

/// A note.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Note {
    /// Its number.
    id: i64,
    /// The user's words.
    text: String,
}

from_row!(Note { id, text });

/// Keeps a note, unless the user has a hundred.
pub(crate) async fn add(
    State(service): State<Arc<Service>>,
    own: Own<V3>,
    user: AuthenticatedUser,
    parameters: Parameters,
) -> Result<Json<Note>, LoginError> {
    let insert = concat!(
        "INSERT INTO v3_notes (account_id, text, expires_at) SELECT $1, $2, $3 ",
        "WHERE (SELECT count(*) FROM v3_notes WHERE account_id = $1) < 100 RETURNING id, text",
    );
    let text = parameters.text("text", MAX_BYTES)?;
    let text = text.ok_or(LoginError::ParamMissing { name: "text" })?;
    let expires_at = service.now().plus(own.settings.keep);
    let values = values![user.account().id.get(), text, expires_at];
    let note = service.store().write(insert, values).await?.pop();
    let note = note.ok_or(LoginError::from(&LIST_FULL))?;
    own.state.notes.add(1);
    Ok(Json(note))
}

/// What the document says of it.
pub(crate) fn add_operation() -> Operation {
    Operation::new("Keeps a note of the user.")
        .user()
        .required("text", text(MAX_BYTES), "The note.")
        .returns::<Note>()
        .problem(&LIST_FULL)
}

/// The user's notes, the oldest first.
pub(crate) async fn list(
    State(service): State<Arc<Service>>,
    user: AuthenticatedUser,
) -> Result<Json<Vec<Note>>, LoginError> {
    let list = "SELECT id, text FROM v3_notes WHERE account_id = $1 ORDER BY id";
    let notes = service.store().rows(list, values![user.account().id.get()]);
    Ok(Json(notes.await?))
}

/// What the document says of it.
pub(crate) fn list_operation() -> Operation {
    let about = "The user's notes, the oldest first.";
    Operation::new(about).user().returns::<Vec<Note>>()
}

static LIST_FULL: OwnProblem = OwnProblem::new(
    "list_full",
    StatusCode::CONFLICT,
    Texts {
        en: Text {
            title: "The list is full",
            detail: "Remove an entry first.",
        },
        zh_cn: Text {
            title: "列表已满",
            detail: "请先删除一个条目。",
        },
        zh_tw: Text {
            title: "清單已滿",
            detail: "請先刪除一個項目。",
        },
        ja: Text {
            title: "リストがいっぱいです",
            detail: "先に項目を削除してください。",
        },
        ko: Text {
            title: "목록이 가득 찼습니다",
            detail: "먼저 항목을 삭제하세요.",
        },
    },
);

#[cfg(test)]
mod both_stores {
    use std::time::Duration;

    use login::testing::TestService;

    use crate::V3;

    #[tokio::test]
    async fn a_note_is_the_users_and_kept_for_its_time() {
        let service = TestService::with::<V3>("own.keep_seconds = 60").await;
        let (ada, grace) = (service.logged_in("ada"), service.logged_in("grace"));
        let note = ada.post("/notes", [("text", "call Grace")]).await;
        assert_eq!(note.json()["text"], "call Grace");
        assert_eq!(ada.get("/notes").await.json()[0]["text"], "call Grace");
        assert_eq!(grace.get("/notes").await.body, "[]");
        assert!(service.metrics().contains("signpost_own_v3_notes_total 1"));
        service.advance(Duration::from_secs(60));
        service.sweep().await;
        assert_eq!(ada.get("/notes").await.body, "[]");
    }
}
