//! Canonical strings, signatures, and the search for a client's mistake in signing.

use signpost_protocol::param::Params;
use signpost_protocol::sign::explain::{GivenSign, MAX_CANONICAL_BYTES, Slip, explain};
use signpost_protocol::sign::{AppKey, ReplayPolicy, Sign, canonical_for_display, sign};
use signpost_protocol::sign::{
    SignAlgorithm, SignCover, SignEmpty, SignLayout, SignProfile, SignValues,
};

use crate::{
    naive::{canonical as naive, params},
    query_and_body,
};

const KEY: &str = "4283fefc63f0cd0e873a0000c6d07ef7";
const METHOD: &str = "POST";
const PATH: &str = "/event/send";
const LIMIT: usize = 256;

/// Compares the canonical string and the signature of a request, by the profile in the input's first line.
///
/// # Panics
///
/// When two results differ.
pub fn canonical(input: &[u8]) -> bool {
    let (settings, request) = query_and_body(input);
    let (query, body) = query_and_body(request);
    let profile = profile(settings);
    let pairs = params::read(query, body, LIMIT);
    let params = Params::parse(query, body, LIMIT);
    // Malformed parameters are compared by the target `params`.
    let (Ok(pairs), Ok(params)) = (pairs, params) else {
        return false;
    };

    let shown = canonical_for_display(&profile, METHOD, PATH, &params);
    let expected = naive::canonical(&profile, "<APP_KEY>", (METHOD, PATH), &pairs);
    assert_eq!(
        shown.escape_ascii().to_string(),
        expected.escape_ascii().to_string()
    );

    let key: AppKey = KEY.parse().expect("the key is valid");
    let expected = naive_sign(&profile, &pairs);
    let sign = sign(&profile, &key, METHOD, PATH, &params);
    assert_eq!(sign.to_hex(), expected);
    let given = Sign::from_hex(expected.to_uppercase().as_bytes());
    assert!(given.is_some_and(|given| given.matches(&sign)));

    let other = naive_sign(&with_other_values(&profile), &pairs);
    let given = GivenSign::new(other.as_bytes());
    let given = given.expect("the signature is valid");
    let target = (METHOD, "", PATH);
    let found = explain(&given, &profile, &key, None, target, &params, || true);
    let is_searched = query.len() + body.len() < MAX_CANONICAL_BYTES / 2;
    assert!(
        found.slip != Slip::KeyOrValue || other == expected,
        "the other `values` setting is not found"
    );
    assert!(
        found.slip != Slip::TooLarge || !is_searched,
        "the search was skipped"
    );
    true
}

fn naive_sign(profile: &SignProfile, pairs: &[params::Pair]) -> String {
    let canonical = naive::canonical(profile, KEY, (METHOD, PATH), pairs);
    naive::sign(profile.algorithm, KEY, &canonical)
}

/// One byte for each setting: values, layout, empty, cover, algorithm, left-out keys. The digit 0 is the default.
fn profile(settings: &[u8]) -> SignProfile {
    const LEAVE_OUT: [&[&str]; 4] = [
        &[],
        &["sign_type"],
        &["a", "abcdefghi", "张"],
        &["", "time"],
    ];
    let setting = |index: usize| usize::from(settings.get(index).map_or(0, |byte| byte % 4));
    let is_set = |index| setting(index) % 2 == 1;
    SignProfile {
        values: if is_set(0) {
            SignValues::Decoded
        } else {
            SignValues::Wire
        },
        layout: SignLayout::ALL[setting(1)],
        empty: if is_set(2) {
            SignEmpty::Drop
        } else {
            SignEmpty::Keep
        },
        cover: if is_set(3) {
            SignCover::Request
        } else {
            SignCover::Parameters
        },
        algorithm: if is_set(4) {
            SignAlgorithm::HmacSha256
        } else {
            SignAlgorithm::Md5
        },
        leave_out: LEAVE_OUT[setting(5)]
            .iter()
            .map(ToString::to_string)
            .collect(),
        replay: ReplayPolicy::Allow,
        ..SignProfile::default()
    }
}

fn with_other_values(profile: &SignProfile) -> SignProfile {
    let values = match profile.values {
        SignValues::Wire => SignValues::Decoded,
        SignValues::Decoded => SignValues::Wire,
    };
    SignProfile {
        values,
        ..profile.clone()
    }
}
