//! An application's card, for people.

use serde_json::{Value, json};
use signpost_management::operations::card::{Card, CardVersion};
use signpost_protocol::sign::SignAlgorithm;

use crate::cli::{print_line, table::printable};

/// Prints it.
pub(super) fn print(card: &Card) {
    let version = |version: &CardVersion| {
        let marks = [
            (version.is_default, " (default)"),
            (version.is_retired, " (retired)"),
        ];
        let marks = marks.map(|(applies, mark)| if applies { mark } else { "" });
        format!("{}{}", version.version, marks.concat())
    };
    let versions: Vec<_> = card.versions.iter().map(version).collect();
    let digits = match card.sign_profile.algorithm {
        SignAlgorithm::Md5 => 32,
        SignAlgorithm::HmacSha256 => 64,
    };
    let mut rows = vec![
        ("address", card.address.clone()),
        ("headers", card.headers.join(", ")),
        ("versions", versions.join(", ")),
        ("preset", card.presets.join(", ")),
    ];
    let profile = json!(card.sign_profile);
    let settings = profile.as_object().into_iter().flatten();
    rows.extend(settings.map(|(name, value)| (name.as_str(), text(value))));
    let time = format!("UTC milliseconds, within {} s", card.window_seconds);
    rows.extend([
        ("time", time),
        ("sign", format!("{digits} hex digits")),
        ("return_to", card.return_to.join(", ")),
        ("cors_origins", card.cors_origins.join(", ")),
    ]);
    for (name, value) in rows {
        let value = if value.is_empty() { "none" } else { &value };
        print_line(&format!("{name:20}{}", printable(value)));
    }
    print_line(
        "\nA first call, for bash. The file app.key, which only you can read, has the key:\n",
    );
    card.first_call.iter().for_each(|line| print_line(line));
}

fn text(setting: &Value) -> String {
    match setting {
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(", "),
        other => other
            .as_str()
            .map_or_else(|| other.to_string(), str::to_owned),
    }
}
