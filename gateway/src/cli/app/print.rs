//! What the commands print.

use serde_json::json;
use signpost_management::{
    administration::summary::AppSummary,
    operations::{apps::WithKey, card::Card},
};
use signpost_protocol::sign::SignProfile;

use super::card;
use crate::cli::{print_error, print_line, table::print_table};

/// In place of a setting that an application does not have.
const GATEWAYS: &str = "the gateway's";
/// Members of an application that its card has, too.
const ON_CARD: [&str; 3] = ["default_version", "return_to", "sign_profile"];

pub(super) fn print_state(ident: &str, state: &str, is_json: bool) {
    if is_json {
        print_line(&json!({ "ident": ident, "state": state }).to_string());
    } else {
        print_line(&format!("{ident} is {state}"));
    }
}

/// Prints a new key: the only time that it is shown.
pub(super) fn show_key(WithKey { app, key }: &WithKey, is_json: bool) {
    let ident = &app.ident;
    if is_json {
        print_line(&json!({ "ident": ident, "key": key }).to_string());
    } else {
        print_line(&format!("APP_IDENT  {ident}\nAPP_KEY    {key}"));
        print_error("The key is shown only once: store it where only the application can read it.");
    }
}

/// Prints a new application: its key and its card.
pub(super) fn show_new(new: &WithKey, card: &Card, is_json: bool) {
    if is_json {
        let new = json!({ "ident": new.app.ident, "key": new.key, "card": card });
        print_line(&new.to_string());
    } else {
        show_key(new, false);
        print_line("");
        card::print(card);
    }
}

/// Prints the card of the only application.
pub(super) fn show_card(card: &Card, is_json: bool) {
    if is_json {
        print_line(&json!({ "card": card }).to_string());
    } else {
        card::print(card);
    }
}

/// Prints an application, with its card if there is one.
pub(super) fn show(app: &AppSummary, card: Option<&Card>, is_json: bool) {
    let mut members = json!(app);
    if is_json {
        if let Some(card) = card {
            members["card"] = json!(card);
        }
        return print_line(&members.to_string());
    }
    for (name, value) in members.as_object().into_iter().flatten() {
        let is_on_card = card.is_some() && ON_CARD.contains(&name.as_str());
        if !value.is_null() && !is_on_card {
            let value = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            print_line(&format!("{name:20}{value}"));
        }
    }
    if let Some(card) = card {
        card::print(card);
    }
}

pub(super) fn table(all: &[AppSummary]) {
    let rows = all.iter().map(|app| {
        [
            app.ident.clone(),
            app.state.clone(),
            app.default_version
                .clone()
                .unwrap_or_else(|| GATEWAYS.to_owned()),
            profile(app),
            app.rate_limit
                .map_or(GATEWAYS.to_owned(), |rate| rate.to_string()),
            app.name.clone(),
        ]
    });
    let heads = [
        "IDENT",
        "STATE",
        "DEFAULT VERSION",
        "PROFILE",
        "RATE",
        "NAME",
    ];
    print_table(heads, rows);
}

/// The name of the application's profile, if it is a preset.
fn profile(app: &AppSummary) -> String {
    let Some(own) = &app.sign_profile else {
        return GATEWAYS.to_owned();
    };
    let is_own = |name: &&str| SignProfile::preset(name).as_ref() == Some(own);
    SignProfile::PRESETS
        .into_iter()
        .find(is_own)
        .unwrap_or("its own")
        .to_owned()
}
