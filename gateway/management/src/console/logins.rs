//! The end of an account's logins. Those of an application are ended on its page.

use maud::html;

use super::{
    failure::Page,
    fields::Fields,
    page::{Section, page},
    parts::{done, field, of_change},
    visitor::Visitor,
};
use crate::{
    api::ApiError,
    operations::accounts::{AccountLogout, LOGOUT},
};

/// Serves the form that finds and ends logins.
pub(super) async fn form(visitor: Visitor) -> Page {
    visitor.check(&LOGOUT, &())?;
    let reader = &visitor.reader;
    let content = html! {
        p { (reader.text("console_logins_how")) }
        form.fields method="post" action="/logins" {
            (field(reader, "provider", ""))
            (field(reader, "username", ""))
            (field(reader, "ident", ""))
            (of_change(reader))
            button.danger { (reader.word("change", "logout")) }
        }
    };
    let title = reader.text("console_logins");
    Ok(page(reader, Some(Section::Apps), &title, &content))
}

/// Ends them.
pub(super) async fn end(visitor: Visitor, fields: Fields) -> Page {
    let ended = visitor.submit(&LOGOUT, (), account_of(&fields)).await;
    let ended = ended.map(|_| done("/logins", "logout"));
    visitor.or_again(ended, fields, form).await
}

fn account_of(fields: &Fields) -> Result<AccountLogout, ApiError> {
    Ok(AccountLogout {
        provider: fields.get("provider").to_owned(),
        username: fields.get("username").to_owned(),
        app: fields.value("ident")?,
        reason: fields.value("reason")?,
    })
}
