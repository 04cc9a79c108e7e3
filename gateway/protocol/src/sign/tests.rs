//! The contract's vectors, and rules that they do not cover.

mod naive;

use serde::{Deserialize, de::DeserializeOwned};

use super::{
    explain::{GivenSign, ShortText, Slip, StringChange, explain},
    *,
};
use crate::{language::Language, text::find};

/// The cases of a file of vectors.
fn cases<C: DeserializeOwned>(json: &str) -> Vec<C> {
    #[derive(Deserialize)]
    struct Vectors<C> {
        cases: Vec<C>,
    }
    serde_json::from_str::<Vectors<C>>(json).unwrap().cases
}

#[derive(Deserialize)]
struct Case {
    name: String,
    /// Who published it, if others did.
    source: Option<String>,
    query: String,
    body: String,
    app_key: String,
    profile: serde_json::Map<String, serde_json::Value>,
    canonical: String,
    sign: String,
}

const KEY: &str = "4283fefc63f0cd0e873a0000c6d07ef7b77e90d3593ad699fc1f7cd5bb2e35cb";

fn key() -> AppKey {
    KEY.parse().unwrap()
}

fn params(query: &str) -> Params<'_> {
    Params::parse(query.as_bytes(), b"", 256).unwrap()
}

#[test]
fn every_vector_of_the_contract_passes() {
    let vectors = include_str!("../../../../tests/vectors/sign-vectors.json");
    let vectors: Vec<Case> = cases(vectors);
    assert_eq!(vectors.len(), 287);
    for mut case in vectors {
        let is_published = case.name.starts_with("published");
        assert_eq!(case.source.is_some(), is_published, "{}", case.name);
        let head = case
            .profile
            .remove("head")
            .map(|head| head.as_str().unwrap().to_owned());
        let (method, path) = match &head {
            Some(head) => head.trim_end().split_once('\n').unwrap(),
            None => ("GET", "/"),
        };
        let profile: SignProfile = serde_json::from_value(case.profile.into()).unwrap();
        let params = Params::parse(case.query.as_bytes(), case.body.as_bytes(), 256).unwrap();
        let key: AppKey = case.app_key.parse().unwrap();
        let canonical = canonical_for_display(&profile, method, path, &params);
        assert_eq!(
            String::from_utf8(canonical).unwrap(),
            case.canonical,
            "{} {profile:?}",
            case.name
        );
        let sign = sign(&profile, &key, method, path, &params);
        assert_eq!(sign.to_hex(), case.sign, "{} {profile:?}", case.name);
    }
}

#[test]
fn a_sign_is_hex_of_either_letter_case() {
    let upper = Sign::from_hex(b"276CCB47170331107383D2610F232076").unwrap();
    let lower = Sign::from_hex(b"276ccb47170331107383d2610f232076").unwrap();
    assert!(upper.matches(&lower));
    assert_eq!(upper.to_hex(), "276ccb47170331107383d2610f232076");
}

#[test]
fn hex_that_no_algorithm_produces_is_rejected() {
    for bad in [
        &b""[..],
        b"27",
        b"276ccb47170331107383d2610f23207",
        b"276ccb47170331107383d2610f23207g",
        &[b'a'; 48],
        &[b'a'; 66],
        &[b'a'; 4096],
    ] {
        assert!(Sign::from_hex(bad).is_none());
    }
}

#[test]
fn signatures_of_different_length_do_not_match() {
    let short = Sign::from_hex(&[b'0'; 32]).unwrap();
    let long = Sign::from_hex(&[b'0'; 64]).unwrap();
    assert!(!short.matches(&long));
}

#[test]
fn with_hmac_only_pairs_key_puts_the_key_into_the_string() {
    for (layout, query, canonical) in [
        (SignLayout::Pairs, "b=2&a=1", "a=1&b=2"),
        (SignLayout::PairsKey, "b=2&a=1", "a=1&b=2&key=<APP_KEY>"),
        (SignLayout::PairsKey, "sign=1", "key=<APP_KEY>"),
        (SignLayout::Concat, "b=2&a=1", "a1b2"),
        (SignLayout::ConcatBoth, "b=2&a=1", "a1b2"),
    ] {
        let profile = SignProfile {
            layout,
            algorithm: SignAlgorithm::HmacSha256,
            ..SignProfile::default()
        };
        let shown = canonical_for_display(&profile, "GET", "/", &params(query));
        assert_eq!(String::from_utf8(shown).unwrap(), canonical, "{layout:?}");
    }
}

#[test]
fn the_document_shows_the_signature_of_each_preset() {
    let document = include_str!("../../SIGNING.md");
    let (_, query) = document.split_once("\nThe `sign` of `").unwrap();
    let (query, _) = query.split_once('`').unwrap();
    let with = |name, change: fn(&mut SignProfile)| {
        let mut profile = SignProfile::preset(name).unwrap();
        change(&mut profile);
        profile
    };
    let presets = SignProfile::PRESETS.map(|name| with(name, |_| ()));
    let further = [
        with("wechat", |one| one.algorithm = SignAlgorithm::HmacSha256),
        with("plain", |one| one.cover = SignCover::Request),
    ];
    for profile in presets.into_iter().chain(further) {
        let sign = sign(&profile, &key(), "GET", "/search", &params(query)).to_hex();
        assert!(document.contains(&format!("\n{sign} ")), "{profile:?}");
    }
}

#[test]
fn every_preset_exists() {
    let contract = include_str!("../../SIGNING.md");
    let example = include_str!("../../../../conf/gateway.toml");
    let (_, contract) = contract.split_once("\nA preset sets several.").unwrap();
    let (contract, _) = contract.split_once("\n```").unwrap();
    let (example, _) = example.split_once("\n# preset = ").unwrap();
    let (_, example) = example.rsplit_once("\n\n[sign]\n").unwrap();
    for name in SignProfile::PRESETS {
        assert!(SignProfile::preset(name).is_some(), "{name}");
        assert!(contract.contains(&format!("`{name}`")), "{name}");
        assert!(example.contains(&format!("\"{name}\"")), "{name}");
    }
    assert_eq!(
        SignProfile::preset("bilibili"),
        SignProfile::preset("plain")
    );
    assert_eq!(SignProfile::preset("other"), None);
}

const TARGET: (&str, &str, &str) = ("GET", "api.example", "/user");

/// Explains the MD5 hash of `string` as the signature of a query under a profile.
fn explained(profile: &SignProfile, query: &str, string: &str) -> &'static str {
    let given = digest(SignAlgorithm::Md5, &key(), |sink| sink(string.as_bytes()));
    let previous: AppKey = "previous-key-0123456789".parse().unwrap();
    explain(
        &given.into(),
        profile,
        &key(),
        Some(&previous),
        TARGET,
        &params(query),
        || true,
    )
    .slip
    .as_str()
}

#[test]
fn a_mistake_with_the_right_key_is_explained() {
    let plain = SignProfile::default();
    let query = "b=2&a=%E5&empty=&c=x+y&time=1732104000000";
    // `%E5` alone is not UTF-8.
    let query = query.replace("%E5", "%E5%BC%A0");
    for (string, slip) in [
        (
            format!("b=2&a=%E5%BC%A0&empty=&c=x+y&time=1732104000000{KEY}"),
            "hint_unsorted",
        ),
        (
            format!("a=%E5%BC%A0&b=2&c=x+y&time=1732104000000{KEY}"),
            "hint_empty_dropped",
        ),
        (
            format!("a=张&b=2&c=x y&empty=&time=1732104000000{KEY}"),
            "hint_decoded",
        ),
        (
            format!("a=%E5%BC%A0&b=2&c=x+y&empty=&time=1732104000000&key={KEY}"),
            "hint_key_labelled",
        ),
        (
            format!("{KEY}a=%E5%BC%A0&b=2&c=x+y&empty=&time=1732104000000"),
            "hint_key_in_front",
        ),
        (
            format!("a%E5%BC%A0b2cx+yemptytime1732104000000{KEY}"),
            "hint_layout",
        ),
        (
            format!("a=%E5%BC%A0&b=2&c=x+y&empty=&time=1732104000000{KEY}\n"),
            "hint_trailing_newline",
        ),
        (
            format!("a=%e5%bc%a0&b=2&c=x+y&empty=&time=1732104000000{KEY}"),
            "hint_escape_case",
        ),
        (
            format!("GET\n/user\na=%E5%BC%A0&b=2&c=x+y&empty=&time=1732104000000{KEY}"),
            "hint_cover",
        ),
        (
            format!("a=张&b=2&c=x y&time=1732104000000&key={KEY}"),
            "hint_preset",
        ),
        (
            format!("{KEY}a张b2cx ytime1732104000000{KEY}"),
            "hint_preset",
        ),
        (
            "a=%E5%BC%A0&b=2&c=x+y&empty=&time=1732104000000previous-key-0123456789".to_owned(),
            "hint_previous_key",
        ),
    ] {
        assert_eq!(explained(&plain, &query, &string), slip, "{string}");
    }
}

#[test]
fn the_reverse_mistakes_are_explained_too() {
    let wechat = SignProfile::preset("wechat").unwrap();
    let query = "b=2&a=%E5%BC%A0&empty=&time=1732104000000";
    for (string, slip) in [
        (
            format!("a=张&b=2&empty=&time=1732104000000&key={KEY}"),
            "hint_empty_kept",
        ),
        (
            format!("a=%E5%BC%A0&b=2&time=1732104000000&key={KEY}"),
            "hint_encoded",
        ),
        (
            format!("a=张&b=2&time=1732104000000{KEY}"),
            "hint_key_not_labelled",
        ),
    ] {
        assert_eq!(explained(&wechat, query, &string), slip, "{string}");
    }
}

/// What explains the signature of `string` under a preset with an algorithm; the arguments of each slip's text are its own.
fn slips(preset: &str, rule: SignAlgorithm, by: SignAlgorithm, string: &str) -> Vec<Slip> {
    let profile = SignProfile {
        algorithm: rule,
        ..SignProfile::preset(preset).unwrap()
    };
    let given = digest(by, &key(), |sink| sink(string.as_bytes())).into();
    let (key, params) = (key(), params("b=2&a=1&time=3"));
    let found = explain(&given, &profile, &key, None, TARGET, &params, || true);
    [Some(found.slip), found.second]
        .into_iter()
        .flatten()
        .filter(|slip| !matches!(slip, Slip::Algorithm(_)))
        .collect()
}

#[test]
fn a_hint_about_the_joining_shows_that_of_the_profile() {
    use SignAlgorithm::{HmacSha256 as Hmac, Md5};
    let change = |found: &str, rule: &str| StringChange {
        rule: ShortText::new(rule.as_bytes()),
        found: ShortText::new(found.as_bytes()),
    };
    let label = "&key=";
    let text = "a=1&b=2&time=3";
    let [end, labelled, front] = ["a=1&b=2KEY", "a=1&b=2&key=KEY", "KEYa=1&b=2"];
    for (preset, rule, by, string, slip) in [
        // Both the hash and the key's place differ from the profile. The place is judged by the profile, not by the
        // used hash.
        (
            "plain",
            Hmac,
            Md5,
            format!("{text}{label}{KEY}"),
            Some(Slip::KeyInText(change(labelled, "a=1&b=2"))),
        ),
        (
            "plain",
            Hmac,
            Md5,
            format!("{KEY}{text}"),
            Some(Slip::KeyInText(change(front, "a=1&b=2"))),
        ),
        (
            "plain",
            Md5,
            Hmac,
            format!("{text}{label}{KEY}"),
            Some(Slip::KeyLabelled(change(labelled, end))),
        ),
        (
            "plain",
            Md5,
            Hmac,
            format!("{KEY}{text}"),
            Some(Slip::KeyInFront(change(front, end))),
        ),
        (
            "wechat",
            Md5,
            Hmac,
            format!("{text}{KEY}"),
            Some(Slip::KeyNotLabelled(change(end, labelled))),
        ),
        (
            "wechat",
            Md5,
            Hmac,
            text.to_owned(),
            Some(Slip::KeyNotLabelled(change("a=1&b=2", labelled))),
        ),
        (
            "wechat",
            Hmac,
            Md5,
            format!("{text}{KEY}"),
            Some(Slip::KeyNotLabelled(change(end, labelled))),
        ),
        (
            "top",
            Md5,
            Hmac,
            format!("a1b2time3{KEY}"),
            Some(Slip::Layout(change("a1b2KEY", "KEYa1b2KEY"))),
        ),
        // Only the hash is off.
        ("plain", Md5, Hmac, format!("{text}{KEY}"), None),
        ("plain", Hmac, Md5, format!("{text}{KEY}"), None),
        ("wechat", Hmac, Md5, format!("{text}{label}{KEY}"), None),
        // This HMAC has the key in its text.
        (
            "wechat",
            Hmac,
            Hmac,
            format!("{text}{KEY}"),
            Some(Slip::KeyNotLabelled(change(end, labelled))),
        ),
        (
            "wechat",
            Hmac,
            Hmac,
            text.to_owned(),
            Some(Slip::KeyNotLabelled(change("a=1&b=2", labelled))),
        ),
        (
            "wechat",
            Hmac,
            Hmac,
            format!("{KEY}{text}"),
            Some(Slip::KeyInFront(change(front, labelled))),
        ),
        (
            "wechat",
            Hmac,
            Hmac,
            format!("{KEY}{text}{KEY}"),
            Some(Slip::KeyInFront(change("KEYa=1&b=2KEY", labelled))),
        ),
        (
            "plain",
            Hmac,
            Hmac,
            format!("{text}{KEY}"),
            Some(Slip::KeyInText(change(end, "a=1&b=2"))),
        ),
        (
            "top",
            Md5,
            Md5,
            format!("{KEY}a1b2time3"),
            Some(Slip::Layout(change("KEYa1b2", "KEYa1b2KEY"))),
        ),
    ] {
        let expected: Vec<Slip> = slip.into_iter().collect();
        assert_eq!(
            slips(preset, rule, by, &string),
            expected,
            "{preset} {rule:?} {by:?} {string}"
        );
    }
}

#[test]
fn a_hint_that_needs_no_key_shows_no_joining() {
    for preset in ["decoded", "wechat"] {
        let found = slips(
            preset,
            SignAlgorithm::Md5,
            SignAlgorithm::Md5,
            "a=1&b=2&time=3",
        );
        assert_eq!(found, [Slip::KeyMissing], "{preset}");
        assert!(found[0].arguments().is_empty());
    }
}

#[test]
fn without_the_key_nothing_is_explained() {
    let string = "b=2&a=1&time=1732104000000some-other-key";
    assert_eq!(
        explained(
            &SignProfile::default(),
            "b=2&a=1&time=1732104000000",
            string
        ),
        "hint_key_or_value"
    );
}

/// The vectors were generated by a program that shares no code with this one.
#[test]
fn every_hint_vector_passes() {
    #[derive(Deserialize)]
    struct Case {
        name: String,
        method: String,
        path: String,
        query: String,
        body: String,
        app_key: String,
        profile: SignProfile,
        sign: String,
        hint: String,
    }
    let vectors = include_str!("../../../../tests/vectors/hint-vectors.json");
    let vectors: Vec<Case> = cases(vectors);
    assert_eq!(vectors.len(), 119);
    for case in vectors {
        let found = explain(
            &GivenSign::new(case.sign.as_bytes()).unwrap(),
            &case.profile,
            &case.app_key.parse().unwrap(),
            None,
            (&case.method, "api.example", &case.path),
            &Params::parse(case.query.as_bytes(), case.body.as_bytes(), 99).unwrap(),
            || true,
        );
        let slips = [Some(found.slip), found.second].into_iter().flatten();
        let mut names: Vec<_> = slips.map(Slip::as_str).collect();
        let mut expected: Vec<_> = case.hint.split('+').collect();
        names.sort_unstable();
        expected.sort_unstable();
        assert_eq!(names, expected, "{}", case.name);
    }
}

#[test]
fn every_mistake_has_a_text_in_every_language() {
    for language in Language::ALL {
        for slip in Slip::ALL {
            let text = find(language, slip.as_str(), &[]);
            assert!(text.is_some(), "{} in {}", slip.as_str(), language.tag());
        }
    }
}

fn shown(query: &str) -> Option<String> {
    let previous: AppKey = "previous-key-0123456789".parse().unwrap();
    let (profile, key) = (SignProfile::default(), key());
    canonical_for_client(
        &profile,
        ("GET", "/user"),
        &params(query),
        &[&key, &previous],
    )
}

#[test]
fn a_client_sees_what_was_signed_but_no_secret() {
    let credential = "a".repeat(42) + "A";
    for (query, expected) in [
        (
            "b=x+y&a=1&time=3&sign=0",
            "a=1&b=x+y&time=3<APP_KEY>".to_owned(),
        ),
        ("token=v1.x&time=3", "time=3&token=***<APP_KEY>".to_owned()),
        (
            "Ticket=x&%63ode=y&time=3",
            "Ticket=***&%63ode=***&time=3<APP_KEY>".to_owned(),
        ),
        ("token=&time=3", "time=3&token=<APP_KEY>".to_owned()),
        (
            &format!("x={credential}&time=3"),
            "time=3&x=***<APP_KEY>".to_owned(),
        ),
    ] {
        assert_eq!(shown(query), Some(expected), "{query}");
    }
}

#[test]
fn what_a_client_sees_is_cut_at_a_character() {
    for extra in 0..3 {
        let query = format!("a={}{}", "x".repeat(extra), "\u{5f20}".repeat(3000));
        let decoded = SignProfile::preset("decoded").unwrap();
        let params = Params::parse(b"", query.as_bytes(), 9).unwrap();
        let shown = canonical_for_client(&decoded, ("GET", "/"), &params, &[&key()]).unwrap();
        assert!(shown.ends_with("\u{5f20}…") && shown.len() <= MAX_SHOWN_BYTES);
        assert!(shown.len() > MAX_SHOWN_BYTES - 4);
    }
}

#[test]
fn a_client_that_has_sent_a_key_sees_nothing() {
    let escaped: String = KEY.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let twice = escaped.replace('%', "%25");
    for sent in [
        format!("key={KEY}&time=3"),
        format!("time=3&sign={KEY}"),
        format!("secret={KEY}&time=3"),
        format!("{KEY}&time=3"),
        format!("key=x{KEY}x&time=3"),
        format!("key={}&time=3", KEY.to_uppercase()),
        format!("key={escaped}&time=3"),
        format!("key={twice}&time=3"),
        format!("a={}&key={KEY}&time=3", "x".repeat(MAX_SHOWN_BYTES - 30)),
        format!("z={}&a={KEY}&time=3", "x".repeat(9000)),
        "key=previous-key-0123456789&time=3".to_owned(),
    ] {
        assert_eq!(shown(&sent), None, "{}", &sent[..40]);
    }
    let most = &KEY[..KEY.len() - 1];
    assert!(shown(&format!("key={most}&time=3")).is_some());
    assert!(shown(&format!("key={most}%00{}&time=3", &KEY[1..])).is_some());
}

#[test]
fn a_given_signature_has_the_length_of_a_known_algorithm() {
    for (digits, is_possible) in [
        ("0".repeat(32), true),
        ("A".repeat(40), true),
        ("f".repeat(64), true),
        ("0".repeat(128), true),
        (String::new(), false),
        ("0".repeat(31), true),
        ("0".repeat(23), false),
        ("0".repeat(48), false),
        ("g".repeat(32), false),
    ] {
        let given = GivenSign::new(digits.as_bytes());
        assert_eq!(given.is_some(), is_possible, "{digits}");
        assert!(!format!("{given:?}").contains('0'));
    }
}

#[test]
fn a_large_request_is_not_searched() {
    let query = format!(
        "b={}&a=1&time=1732104000000",
        "x".repeat(explain::MAX_CANONICAL_BYTES)
    );
    let string = format!("{query}{KEY}");
    assert_eq!(
        explained(&SignProfile::default(), &query, &string),
        "hint_too_large"
    );
}

#[test]
fn what_a_client_library_sends_has_the_right_signature() {
    #[derive(Deserialize)]
    struct Case {
        name: String,
        method: String,
        path: String,
        app_key: String,
        profile: serde_json::Map<String, serde_json::Value>,
        text: String,
    }
    let vectors = include_str!("../../../../tests/vectors/client-vectors.json");
    let vectors: Vec<Case> = cases(vectors);
    for case in vectors {
        let mut members = case.profile;
        let preset = members.remove("preset");
        let preset = preset
            .as_ref()
            .and_then(|name| name.as_str())
            .unwrap_or("plain");
        let mut profile = serde_json::json!(SignProfile::preset(preset).unwrap());
        profile.as_object_mut().unwrap().extend(members);
        let profile: SignProfile = serde_json::from_value(profile).unwrap();
        let params = Params::parse(case.text.as_bytes(), b"", 9999).unwrap();
        let key = case.app_key.parse().unwrap();
        let right = sign(&profile, &key, &case.method, &case.path, &params);
        assert_eq!(
            params.single(SIGN).unwrap().unwrap().value(),
            right.to_hex().as_bytes(),
            "{}",
            case.name
        );
    }
}
