//! Cost of verifying a request without a network: parameters, canonical string and hash, the digits of the signature.
//!
//! Run `cargo bench -p signpost-protocol`; add `--profile dist` to measure the release build. Allocations are printed if
//! there are any; an ordinary request has none.

use divan::{AllocProfiler, Bencher, black_box};
use signpost_protocol::{
    param::Params,
    sign::{AppKey, SIGN, Sign, SignAlgorithm, SignProfile, SignTime, SignValues, TIME, sign},
};

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

const KEY: &str = "4283fefc63f0cd0e873a0000c6d07ef7b77e90d3593ad699fc1f7cd5bb2e35cb";

/// A form of five parameters and their signature, about 150 bytes.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// As most clients send it.
    Plain,
    /// With escapes in a value.
    Escaped,
}

impl Form {
    const BOTH: [Self; 2] = [Self::Plain, Self::Escaped];

    const fn text(self) -> &'static str {
        match self {
            Self::Plain => {
                "event=page.opened&data=0123456789abcdef0123456789abcdef&device=a1b2c3d4&\
                 nonce=9f8e7d6c5b4a&time=1732104000000&sign=276ccb47170331107383d2610f232076"
            }
            Self::Escaped => {
                "event=page.opened&data=%E5%BC%A0%E4%B8%89+%26+%7B%22n%22%3A1%7D&device=a1b2c3d4&\
                 nonce=9f8e7d6c5b4a&time=1732104000000&sign=276ccb47170331107383d2610f232076"
            }
        }
    }
}

fn main() {
    divan::main();
}

fn key() -> AppKey {
    KEY.parse().expect("a key")
}

fn parsed(form: &str) -> Params<'_> {
    Params::parse(b"", form.as_bytes(), 256).expect("a good form")
}

fn profile(name: &str) -> SignProfile {
    let hmac = SignProfile {
        algorithm: SignAlgorithm::HmacSha256,
        ..SignProfile::default()
    };
    SignProfile::preset(name).unwrap_or(hmac)
}

#[divan::bench(args = Form::BOTH)]
fn parameters(bencher: Bencher<'_, '_>, form: Form) {
    bencher.bench(|| black_box(parsed(black_box(form.text()))).is_empty());
}

/// 40 pairs: more than are stored without the heap.
#[divan::bench]
fn parameters_40(bencher: Bencher<'_, '_>) {
    let form = "name=value&".repeat(40);
    bencher.bench(|| black_box(parsed(black_box(&form))).is_empty());
}

/// A body of 64 KiB in which every byte is escaped, as an attacker would send it.
#[divan::bench]
fn parameters_all_escaped(bencher: Bencher<'_, '_>) {
    let form = format!("a={}", "%e5%bc%a0".repeat(64 * 1024 / 9));
    bencher.bench(|| black_box(parsed(black_box(&form))).is_empty());
}

#[divan::bench(args = ["plain", "decoded", "wechat", "top", "hmac-sha256"])]
fn canonical_and_hash(bencher: Bencher<'_, '_>, name: &str) {
    let (profile, key, params) = (profile(name), key(), parsed(Form::Plain.text()));
    bencher.bench(|| sign(&profile, &key, "POST", "/event/send", black_box(&params)));
}

#[divan::bench(args = ["plain", "decoded"])]
fn canonical_and_hash_escaped(bencher: Bencher<'_, '_>, name: &str) {
    let (profile, key, params) = (profile(name), key(), parsed(Form::Escaped.text()));
    bencher.bench(|| sign(&profile, &key, "POST", "/event/send", black_box(&params)));
}

#[divan::bench]
fn sign_from_hex() -> Option<Sign> {
    Sign::from_hex(black_box(b"276ccb47170331107383d2610f232076"))
}

/// The whole verification, from the bytes of a request to the result.
#[divan::bench(args = Form::BOTH)]
fn whole_verification(bencher: Bencher<'_, '_>, form: Form) {
    let (profile, key) = (SignProfile::default(), key());
    bencher.bench(|| is_genuine(black_box(form.text()), &profile, &key));
}

#[divan::bench]
fn whole_verification_decoded(bencher: Bencher<'_, '_>) {
    let (key, profile) = (
        key(),
        SignProfile {
            values: SignValues::Decoded,
            ..SignProfile::default()
        },
    );
    bencher.bench(|| is_genuine(black_box(Form::Escaped.text()), &profile, &key));
}

fn is_genuine(form: &str, profile: &SignProfile, key: &AppKey) -> Option<(SignTime, bool)> {
    let params = Params::parse(b"", form.as_bytes(), 256).ok()?;
    let time = params.single(TIME).ok()??.value();
    let time = SignTime::try_from(&*time).ok()?;
    let given = Sign::from_hex(&params.single(SIGN).ok()??.value())?;
    Some((
        time,
        sign(profile, key, "POST", "/event/send", &params).matches(&given),
    ))
}
