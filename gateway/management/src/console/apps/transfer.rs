//! The import of applications.

use axum::response::Response;
use maud::{Markup, html};
use zeroize::Zeroizing;

use crate::{
    console::{
        failure::Failure,
        fields::Fields,
        page::{Section, page},
        parts::{Field, of_change},
        visitor::Visitor,
    },
    operations::import::{IMPORT, ImportFile, ImportInput},
};

/// The form.
pub(in crate::console) async fn form(visitor: Visitor) -> Response {
    import_page(&visitor, &html! {}, "")
}

fn import_page(visitor: &Visitor, banner: &Markup, file: &str) -> Response {
    let reader = &visitor.reader;
    let content = html! {
        (banner)
        p { (reader.text("console_import_how")) }
        pre { code { "ident,key,name\nshop,4283fefc63f0cd0e873a0000c6d07ef7,The shop" } }
        form.fields method="post" action="/apps/import" {
            (Field::lines("file", file).required().show(reader))
            label.check {
                input type="checkbox" name="allow_weak_key" value="true";
                span { (reader.text("console_allow_weak_key")) }
            }
            (of_change(reader))
            button { (reader.text("console_import")) }
        }
    };
    page(
        reader,
        Some(Section::Apps),
        &reader.text("console_import"),
        &content,
    )
}

/// Imports all of a file; or none, and says what is wrong with which line.
pub(in crate::console) async fn import(
    visitor: Visitor,
    fields: Fields,
) -> Result<Response, Failure> {
    let file = fields.get("file");
    let input = || {
        Ok(ImportInput {
            allow_weak_key: fields.get("allow_weak_key") == "true",
            reason: fields.value("reason")?,
            file: ImportFile(Zeroizing::new(file.as_bytes().to_vec())),
            place: None,
        })
    };
    let reader = &visitor.reader;
    match visitor.submit(&IMPORT, (), input()).await {
        Ok(imported) => {
            let number = imported.applications.to_string();
            let content = html! {
                p.done role="status" { (reader.tell("console_imported", &[("number", &number)])) }
                p { a href="/apps" { (reader.text("console_apps")) } }
            };
            Ok(page(
                reader,
                Some(Section::Apps),
                &reader.text("console_import"),
                &content,
            ))
        }
        Err(failure) => {
            let failure = failure.of_input()?;
            let page = import_page(&visitor, &failure.banner(), file);
            Ok(failure.with_page(page))
        }
    }
}
