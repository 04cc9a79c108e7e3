//! The import of applications.

use maud::html;
use zeroize::Zeroizing;

use crate::{
    console::{
        failure::Page,
        fields::Fields,
        page::{Section, page},
        parts::{check, field, of_change},
        visitor::Visitor,
    },
    operations::import::{IMPORT, ImportFile, ImportInput},
};

/// Serves the form of an import.
pub(in crate::console) async fn form(visitor: Visitor) -> Page {
    visitor.check(&IMPORT, &())?;
    let reader = &visitor.reader;
    let content = html! {
        p { (reader.text("console_import_how")) }
        pre { code { "ident,key,name\nshop,4283fefc63f0cd0e873a0000c6d07ef7,The shop" } }
        form.fields method="post" action="/apps/import" {
            (field(reader, "file", ""))
            (check(reader, "allow_weak_key"))
            (of_change(reader))
            button { (reader.text("console_import")) }
        }
    };
    let title = reader.text("console_import");
    Ok(page(reader, Some(Section::Apps), &title, &content))
}

/// Imports all of a file; or none, and says what is wrong with which line.
pub(in crate::console) async fn import(visitor: Visitor, fields: Fields) -> Page {
    let input = || {
        Ok(ImportInput {
            allow_weak_key: fields.get("allow_weak_key") == "true",
            reason: fields.value("reason")?,
            file: ImportFile(Zeroizing::new(fields.get("file").as_bytes().to_vec())),
            place: None,
        })
    };
    let imported = visitor.submit(&IMPORT, (), input()).await;
    let done = imported.map(|imported| {
        let (reader, number) = (&visitor.reader, imported.applications.to_string());
        let content = html! {
            p.done role="status" { (reader.tell("console_imported", &[("number", &number)])) }
            p { a href="/apps" { (reader.text("console_apps")) } }
        };
        let title = reader.text("console_import");
        page(reader, Some(Section::Apps), &title, &content)
    });
    visitor.or_again(done, fields, form).await
}
