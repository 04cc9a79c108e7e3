//! Time, signature and replay, in the contract's order.

use signpost_protocol::sign::{BodyHash, SignCarrier, SignedHead, TimeSlip, sign_head};

use super::{explanation::MAX_SEARCHES, *};
use crate::{
    config::tests::sign_config,
    directory::apps::{PreviousKey, directory::AppDirectory},
    phases::admit::SignFields,
};

const NOW: u64 = 1_732_104_000_000;
const KEY: &str = "4283fefc63f0cd0e873a0000c6d07ef7b77e90d3593ad699fc1f7cd5bb2e35cb";
const OLD_KEY: &str = "00000000000000000000000000000000000000000000000000000000deadbeef";

fn app(replay: ReplayPolicy, previous_until: Option<u64>) -> App {
    let profile = SignProfile {
        replay,
        ..SignProfile::default()
    };
    let AppDirectory::Single(app) = AppDirectory::single(KEY.parse().unwrap()) else {
        unreachable!("single creates a single application")
    };
    let previous_key = previous_until.map(|until| PreviousKey {
        key: OLD_KEY.parse().unwrap(),
        until: SignTime::from_millis(until),
    });
    App {
        previous_key,
        profile: Some(Box::new(profile)),
        ..(*app).clone()
    }
}

fn signed_with(key: &str, query: &str) -> String {
    let params = Params::parse(query.as_bytes(), b"", 99).unwrap();
    let sign = sign(
        &SignProfile::default(),
        &key.parse().unwrap(),
        "POST",
        "/x",
        &params,
    );
    format!("{query}&sign={}", sign.to_hex())
}

struct Case {
    verifier: Verifier,
    app: App,
}

impl Case {
    fn new() -> Self {
        Self {
            verifier: Verifier::new(sign_config("window_seconds = 30")),
            app: app(ReplayPolicy::Allow, None),
        }
    }

    fn verify(
        &self,
        method: Method,
        target: &str,
        body: &str,
    ) -> Result<VerifiedRequest, Rejection> {
        self.verify_with((method, target), body, "Accept")
    }

    /// Of a request with this header, too.
    fn verify_with(
        &self,
        (method, target): (Method, &str),
        body: &str,
        header: &str,
    ) -> Result<VerifiedRequest, Rejection> {
        let headers = [("Host", "a.example"), (header, "1")];
        let target = Target::parse(target.as_bytes()).unwrap();
        let params = Params::parse(target.query.as_bytes(), body.as_bytes(), 99).unwrap();
        let (app, now) = (Arc::new(self.app.clone()), SignTime::from_millis(NOW));
        let headers = (&headers[..], HeaderSign::NONE);
        self.verifier
            .verify(app, method, target, &params, headers, now)
    }

    fn post(&self, body: &str) -> Result<VerifiedRequest, Rejection> {
        self.verify(Method::Post, "/x", body)
    }
}

#[test]
fn parameters_may_be_in_query_or_form() {
    let case = Case::new();
    let signed = signed_with(KEY, &format!("b=2&a=1&time={NOW}"));
    assert!(case.post(&signed).is_ok());
    assert!(
        case.verify(Method::Get, &format!("/x?{signed}"), "")
            .is_ok()
    );
    let (first, rest) = signed.split_once('&').unwrap();
    assert!(
        case.verify(Method::Post, &format!("/x?{first}"), rest)
            .is_ok()
    );
    assert!(
        case.post(
            &signed
                .to_uppercase()
                .replace("B=2&A=1&TIME", "b=2&a=1&time")
                .replace("SIGN", "sign")
        )
        .is_ok()
    );
}

#[test]
fn without_parameters_only_some_requests_need_a_signature() {
    let case = Case::new();
    assert!(case.verify(Method::Get, "/user", "").is_ok());
    assert!(case.verify(Method::Get, "/login", "").is_ok());
    assert!(matches!(
        case.verify(Method::Post, "/login", ""),
        Err(Rejection::SignMissing(_))
    ));
    assert!(matches!(
        case.verify(Method::Post, "/login?&&", "&"),
        Err(Rejection::SignMissing(_))
    ));
}

#[test]
fn time_is_checked_before_the_signature() {
    let case = Case::new();
    assert!(matches!(case.post("a=1"), Err(Rejection::TimeMissing(_))));
    assert!(matches!(
        case.post("sign=x"),
        Err(Rejection::TimeMissing(_))
    ));
    assert!(matches!(
        case.post("time=x"),
        Err(Rejection::TimeInvalid { slip: None })
    ));
    let seconds = NOW / 1000;
    assert!(matches!(
        case.post(&format!("time={seconds}")),
        Err(Rejection::TimeInvalid {
            slip: Some(TimeSlip::Seconds)
        })
    ));
    assert!(matches!(
        case.post(&format!("time={NOW}&time={NOW}")),
        Err(Rejection::ParamDuplicated { name: "time" })
    ));
    assert!(matches!(
        case.post(&format!("time={NOW}")),
        Err(Rejection::SignMissing(_))
    ));
    assert!(matches!(
        case.post(&format!("time={NOW}&sign=a&%73ign=b")),
        Err(Rejection::ParamDuplicated { name: "sign" })
    ));
}

#[test]
fn the_window_is_inclusive() {
    let case = Case::new();
    for (time, inside) in [
        (NOW - 30_000, true),
        (NOW - 30_001, false),
        (NOW + 30_000, true),
        (NOW + 30_001, false),
    ] {
        let verified = case.post(&signed_with(KEY, &format!("time={time}")));
        match verified {
            Ok(_) => assert!(inside, "{time}"),
            Err(rejection) => {
                assert!(
                    !inside && matches!(rejection, Rejection::TimeOutOfWindow { .. }),
                    "{time}"
                );
            }
        }
    }
}

/// The name of the hint.
fn hint(rejection: &Rejection) -> String {
    rejection.hint().unwrap().name().into_owned()
}

#[test]
fn a_wrong_signature_does_not_match() {
    let case = Case::new();
    let signed = signed_with(KEY, &format!("a=1&time={NOW}"));
    // The form of `sign` alone proves another algorithm, or none.
    for (wrong, expected) in [
        (signed.replace("a=1", "a=2"), "hint_key_or_value"),
        (format!("{signed}&b=1"), "hint_param_not_signed"),
        (
            signed_with(OLD_KEY, &format!("a=1&time={NOW}")),
            "hint_key_or_value",
        ),
        (
            format!("a=1&time={NOW}&sign={}", "0".repeat(40)),
            "hint_algorithm",
        ),
        (
            format!("a=1&time={NOW}&sign={}", "0".repeat(64)),
            "hint_algorithm",
        ),
        (
            format!("a=1&time={NOW}&sign={}", "0".repeat(128)),
            "hint_algorithm",
        ),
        (format!("a=1&time={NOW}&sign="), "hint_sign_form"),
        (format!("a=1&time={NOW}&sign=nonsense"), "hint_sign_form"),
        (format!("{signed}00"), "hint_sign_form"),
    ] {
        let rejection = case.post(&wrong).unwrap_err();
        assert_eq!(hint(&rejection), expected, "{wrong}");
    }
}

#[test]
fn the_canonical_string_is_shown_if_the_configuration_says_so() {
    let mut case = Case::new();
    let wrong = signed_with(KEY, &format!("a=1&time={NOW}")).replace("a=1", "a=2");
    let shown = |case: &Case| match case.post(&wrong).unwrap_err() {
        Rejection::SignMismatch(_, canonical) => canonical.map(|canonical| canonical.0),
        other => panic!("{other}"),
    };
    assert_eq!(shown(&case), Some(format!("a=2&time={NOW}<APP_KEY>")));
    let rejection = case.post(&wrong).unwrap_err();
    assert!(!format!("{rejection:?}").contains("time="), "{rejection:?}");
    let mut config = case.verifier.config().clone();
    config.shows_canonical = false;
    case.verifier = Verifier::new(config);
    assert_eq!(shown(&case), None);
}

#[test]
fn a_key_that_was_sent_is_worse_than_a_wrong_signature() {
    let mut case = Case::new();
    case.app = app(ReplayPolicy::Allow, Some(NOW));
    for key in [KEY, OLD_KEY] {
        for sent in [
            format!("key={key}&time={NOW}&sign={}", "0".repeat(32)),
            format!("time={NOW}&sign={key}"),
        ] {
            let rejection = case.post(&sent).unwrap_err();
            assert_eq!(hint(&rejection), "hint_key_sent", "{sent}");
            assert!(matches!(rejection, Rejection::SignMismatch(_, None)));
        }
    }
}

#[test]
fn of_a_weak_key_a_stranger_learns_nothing() {
    let mut case = Case::new();
    case.app.key = "swordfish".parse().unwrap();
    for sent in ["a", "swordfish"] {
        let sent = format!("a={sent}&time={NOW}&sign={}", "0".repeat(32));
        let rejection = case.post(&sent).unwrap_err();
        assert_eq!(hint(&rejection), "hint_key_or_value", "{sent}");
        assert!(matches!(rejection, Rejection::SignMismatch(_, None)));
    }
}

/// The hint about what is missing of a request with these parameters and this header.
fn missing(case: &Case, params: &str, header: &str) -> Option<String> {
    let sent = case.verify_with((Method::Post, "/x"), params, header);
    let rejection = sent.unwrap_err();
    rejection.hint().map(|hint| hint.name().into_owned())
}

#[test]
fn what_was_sent_instead_of_a_missing_parameter_is_named() {
    let case = Case::new();
    let with_time = format!("a=1&time={NOW}");
    for (params, header, expected) in [
        ("a=1", "time", Some("hint_in_header")),
        ("a=1", "X-Timestamp", Some("hint_in_header")),
        ("a=1", "Acme-X-Time", Some("hint_in_header")),
        ("a=1", "X-Sign", None),
        ("a=1", "Date", None),
        (&with_time, "X-Sign", Some("hint_in_header")),
        (&with_time, "Signature", Some("hint_in_header")),
        (&with_time, "X-Timestamp", None),
        ("a=1&Time=3", "time", Some("hint_misnamed")),
        ("a=1&amp;time=3", "Accept", Some("hint_misnamed")),
        ("a=1&timestamp=3", "Accept", Some("hint_misnamed")),
        ("a=1&timer=3", "Accept", None),
        (
            &format!("{with_time}&Signature=0"),
            "Accept",
            Some("hint_misnamed"),
        ),
        (&format!("key={KEY}"), "time", Some("hint_key_sent")),
        (
            &format!("{with_time}&key={KEY}"),
            "Accept",
            Some("hint_key_sent"),
        ),
    ] {
        let found = missing(&case, params, header);
        assert_eq!(found.as_deref(), expected, "{params} {header}");
    }
}

#[test]
fn the_previous_key_is_valid_to_the_end_of_its_overlap() {
    let mut case = Case::new();
    let signed = signed_with(OLD_KEY, &format!("a=1&time={NOW}"));
    case.app = app(ReplayPolicy::Allow, Some(NOW));
    assert!(case.post(&signed).is_ok());
    assert!(
        case.post(&signed_with(KEY, &format!("a=1&time={NOW}")))
            .is_ok()
    );
    case.app = app(ReplayPolicy::Allow, Some(NOW - 1));
    let rejection = case.post(&signed).unwrap_err();
    assert_eq!(hint(&rejection), "hint_previous_key");
}

#[test]
fn a_replayed_request_is_rejected_if_the_profile_says_so() {
    let mut case = Case::new();
    let signed = signed_with(KEY, &format!("a=1&time={NOW}"));
    assert!(case.post(&signed).is_ok() && case.post(&signed).is_ok());
    case.app = app(ReplayPolicy::Reject, None);
    assert!(case.post(&signed).is_ok());
    assert!(matches!(
        case.post(&signed),
        Err(Rejection::RequestReplayed)
    ));
    let upper = signed.replace(
        signed.rsplit('=').next().unwrap(),
        &signed.rsplit('=').next().unwrap().to_uppercase(),
    );
    assert!(
        matches!(case.post(&upper), Err(Rejection::RequestReplayed)),
        "the same hash in upper case"
    );
}

#[test]
fn a_replay_with_another_time_is_rejected() {
    let mut case = Case::new();
    let profile = SignProfile {
        replay: ReplayPolicy::Reject,
        ..SignProfile::preset("top").unwrap()
    };
    // Without separators both requests sign the same text, so only the signature identifies the second as a replay.
    let updated = NOW + 1_000;
    let original = format!("time={NOW}&update_time={updated}");
    let replay = format!("t=ime{NOW}update_&time={updated}");
    let params = Params::parse(original.as_bytes(), b"", 99).unwrap();
    let sign = sign(&profile, &case.app.key, "POST", "/x", &params).to_hex();
    case.app.profile = Some(Box::new(profile));
    assert!(case.post(&format!("{original}&sign={sign}")).is_ok());
    assert!(matches!(
        case.post(&format!("{replay}&sign={sign}")),
        Err(Rejection::RequestReplayed)
    ));
}

#[tokio::test]
async fn without_the_memory_of_all_gateways_a_key_decides() {
    let client = IpAddr::from([127, 0, 0, 1]);
    let signed = signed_with(KEY, &format!("a=1&time={NOW}"));
    let mut case = Case::new();
    case.app = app(ReplayPolicy::Reject, None);
    assert!(!case.post(&signed).unwrap().is_unshared());
    for (fallback, is_accepted) in [("reject", false), ("gateway", true)] {
        let keys = format!("replay_scope = 'all'\nreplay_fallback = '{fallback}'");
        case.verifier = Verifier::new(sign_config(&keys));
        let mut request = case.post(&signed).unwrap();
        assert!(request.is_unshared());
        let shared = case.verifier.share(&mut request, client, None).await;
        assert_eq!(shared.is_ok(), is_accepted);
        assert!(!request.is_unshared());
        // The gateway's own memory comes first.
        let again = case.post(&signed);
        assert!(matches!(again, Err(Rejection::RequestReplayed)));
        let judge = |verdict| case.verifier.judge_shared(verdict);
        let replayed = judge(Err(ShareError::Replayed));
        assert!(matches!(replayed, Err(Rejection::RequestReplayed)));
        let full = judge(Err(ShareError::Full));
        assert!(matches!(full, Err(Rejection::StoreUnavailable(_))));
        assert_eq!(judge(Err(ShareError::Lost)).is_ok(), is_accepted);
        assert!(judge(Ok(())).is_ok());
        let outcomes = [
            ShareOutcome::Accepted,
            ShareOutcome::Replayed,
            ShareOutcome::Unavailable,
            ShareOutcome::Full,
        ];
        let counts = outcomes.map(|outcome| case.verifier.shared_signatures().value(outcome));
        assert_eq!(counts, [1, 1, 2, 1]);
    }
}

#[test]
fn an_application_without_a_profile_uses_the_gateways() {
    let mut case = Case::new();
    case.app.profile = None;
    let signed = signed_with(KEY, &format!("a=1&time={NOW}"));
    assert!(case.post(&signed).is_ok() && case.post(&signed).is_ok());
    case.verifier = Verifier::new(sign_config("window_seconds = 30\nreplay = 'reject'"));
    assert!(case.post(&signed).is_ok());
    assert!(matches!(
        case.post(&signed),
        Err(Rejection::RequestReplayed)
    ));
    case.verifier = Verifier::new(sign_config("preset = 'wechat'"));
    assert!(matches!(
        case.post(&signed),
        Err(Rejection::SignMismatch(..))
    ));
}

#[test]
fn a_rejected_request_is_not_stored_in_the_replay_memory() {
    let mut case = Case::new();
    case.app = app(ReplayPolicy::Reject, None);
    let signed = signed_with(KEY, &format!("a=1&time={NOW}"));
    assert!(case.post(&signed.replace("a=1", "a=2")).is_err());
    assert!(case.post(&signed).is_ok());
}

#[test]
fn the_number_of_searches_is_limited() {
    let case = Case::new();
    let unsorted = format!("b=1&a=1&time={NOW}{KEY}");
    let sign = hex::encode(<md5::Md5 as md5::Digest>::digest(unsorted));
    let wrong = format!("b=1&a=1&time={NOW}&sign={sign}");
    let explained = (0..MAX_SEARCHES + 10)
        .filter(|_| {
            let rejection = case.post(&wrong).unwrap_err();
            hint(&rejection) == "hint_unsorted"
        })
        .count();
    assert_eq!(explained as u64, MAX_SEARCHES);
    // Without a search, the response says so.
    let other_key = signed_with(OLD_KEY, &format!("a=1&time={NOW}"));
    let rejection = case.post(&other_key).unwrap_err();
    assert_eq!(hint(&rejection), "hint_not_searched");
    // Nor is the canonical string written for it, or for a `sign` in no form.
    assert!(matches!(rejection, Rejection::SignMismatch(_, None)));
    let formless = case.post(&format!("a=1&time={NOW}&sign=xyz")).unwrap_err();
    assert!(matches!(formless, Rejection::SignMismatch(_, None)));
    // Nor is it looked up whether a request without `sign` has the key.
    let without_sign = format!("time={NOW}&key={KEY}");
    assert_eq!(missing(&case, &without_sign, "Accept"), None);
    let later = Case::new();
    assert!(missing(&later, &without_sign, "Accept").is_some());
}

#[test]
fn the_clock_of_a_client_is_observed() {
    let clock_skew = Arc::new(ClockSkew::default());
    let mut case = Case::new();
    case.verifier = case.verifier.observing(Arc::clone(&clock_skew));
    case.app = app(ReplayPolicy::Reject, None);
    let count = |is_verified, is_behind| clock_skew.observed(is_verified, is_behind).count();
    let counts = || [true, false].map(|one| count(one, true) + count(one, false));
    let signed = |time: u64| signed_with(KEY, &format!("a=1&time={time}"));
    let good = signed(NOW + 2000);
    assert!(case.post(&good).is_ok());
    assert_eq!(counts(), [1, 0]);
    assert!((clock_skew.observed(true, false).sum - 2.0).abs() < 1e-9);
    // Its signature is right, too.
    let replayed = case.post(&good);
    assert!(matches!(replayed, Err(Rejection::RequestReplayed)));
    assert_eq!(counts(), [2, 0]);
    // Not readable, or without a time.
    for unread in [
        format!("a=1&time={}", NOW / 1000),
        "a=1&time=x".to_owned(),
        "a=1".to_owned(),
    ] {
        assert!(case.post(&unread).is_err());
    }
    assert_eq!(counts(), [2, 0]);
    for (number, unverified) in [
        signed(NOW - 31_000),
        format!("a=1&time={NOW}"),
        format!("a=1&time={NOW}&sign=0"),
        signed_with(OLD_KEY, &format!("a=1&time={NOW}")),
    ]
    .iter()
    .enumerate()
    {
        assert!(case.post(unverified).is_err());
        assert_eq!(counts(), [2, number as u64 + 1]);
    }
    let sum = clock_skew.observed(false, true).sum;
    assert!((sum - 31.0).abs() < 1e-9, "{sum}");
    // Another configuration is told anew whether to observe.
    let later = SignTime::from_millis(NOW);
    case.verifier = case
        .verifier
        .with_config(sign_config(""), later, Duration::ZERO);
    assert!(case.post(&signed(NOW)).is_ok());
    assert_eq!(counts(), [2, 4]);
}

/// A verifier whose application signs in headers, or in either way.
fn in_headers(carrier: SignCarrier, previous_until: Option<u64>, replay: ReplayPolicy) -> Case {
    let mut case = Case::new();
    let profile = SignProfile {
        carrier,
        replay,
        ..SignProfile::default()
    };
    case.app = App {
        profile: Some(Box::new(profile)),
        ..app(replay, previous_until)
    };
    case
}

const BODY: &[u8] = b"{}";

fn head_sign(case: &Case, key: &str, time: &str) -> String {
    let head = SignedHead {
        method: "PUT",
        target: "/x?time=noon",
        time: time.as_bytes(),
        nonce: b"",
    };
    let algorithm = case.verifier.profile_of(&case.app).header_algorithm();
    let key = key.parse().unwrap();
    sign_head(algorithm, &key, head, &BodyHash::of(BODY)).to_hex()
}

/// A PUT of JSON to `/x?time=noon` with these headers.
fn put(case: &Case, time: &str, sign: &str) -> Result<VerifiedRequest, Rejection> {
    let target = Target::parse(b"/x?time=noon").unwrap();
    let params = Params::parse(target.query.as_bytes(), b"", 99).unwrap();
    let hash = BodyHash::of(BODY);
    let in_headers = HeaderSign {
        fields: SignFields {
            time: Some(time.as_bytes()),
            sign: Some(sign.as_bytes()),
            nonce: None,
        },
        body: SignedBody::Hashed(&hash),
    };
    let (app, now) = (Arc::new(case.app.clone()), SignTime::from_millis(NOW));
    let headers = (&[("", ""); 0][..], in_headers);
    case.verifier
        .verify(app, Method::Put, target, &params, headers, now)
}

#[test]
fn before_a_body_is_read_its_headers_must_be_a_signatures() {
    let fields = |time: &'static str, sign: &'static str| SignFields {
        time: Some(time.as_bytes()),
        sign: Some(sign.as_bytes()),
        nonce: None,
    };
    const SIGN: &str = "0123456789abcdefABCDEF0123456789";
    const TIME: &str = "1732104000000";
    for carrier in [SignCarrier::Headers, SignCarrier::Both] {
        let case = in_headers(carrier, None, ReplayPolicy::Reject);
        let check = |fields, now| {
            let now = SignTime::from_millis(now);
            case.verifier.check_before_body(&case.app, fields, now)
        };
        // How long its time stays in the window: of 30 s, behind it and before it.
        for (now, left) in [
            (NOW, 30_000),
            (NOW + 29_999, 1),
            (NOW + 30_000, 0),
            (NOW - 30_000, 60_000),
        ] {
            let valid = check(fields(TIME, SIGN), now).unwrap();
            assert_eq!(valid, Some(Duration::from_millis(left)));
        }
        // Without replay memory, it matters only when the head arrives.
        let allowing = in_headers(carrier, None, ReplayPolicy::Allow);
        let now = SignTime::from_millis(NOW);
        let valid = allowing
            .verifier
            .check_before_body(&allowing.app, fields(TIME, SIGN), now);
        assert_eq!(valid.unwrap(), None);
        for now in [NOW + 30_001, NOW - 30_001] {
            let rejection = check(fields(TIME, SIGN), now).unwrap_err();
            assert!(matches!(rejection, Rejection::TimeOutOfWindow { .. }));
        }
        let rejected = |time, sign| check(fields(time, sign), NOW).unwrap_err();
        assert!(matches!(rejected("", SIGN), Rejection::TimeMissing(_)));
        assert!(matches!(rejected("x", SIGN), Rejection::TimeInvalid { .. }));
        assert!(matches!(rejected(TIME, ""), Rejection::SignMissing(None)));
        for malformed in ["x", "0123", "0123456789abcdefABCDEF012345678g"] {
            let rejection = rejected(TIME, malformed);
            assert!(
                matches!(rejection, Rejection::SignMismatch(..)),
                "{malformed}"
            );
        }
    }
    let case = in_headers(SignCarrier::Parameters, None, ReplayPolicy::Allow);
    let now = SignTime::from_millis(NOW);
    let rejection = case
        .verifier
        .check_before_body(&case.app, fields(TIME, SIGN), now);
    assert!(matches!(rejection, Err(Rejection::SignMissing(Some(_)))));
}

#[test]
fn headers_sign_by_the_previous_key_to_the_end_of_its_overlap() {
    for carrier in [SignCarrier::Headers, SignCarrier::Both] {
        for (until, is_valid) in [(None, false), (Some(NOW), true), (Some(NOW - 1), false)] {
            let case = in_headers(carrier, until, ReplayPolicy::Allow);
            let time = NOW.to_string();
            let sign = head_sign(&case, OLD_KEY, &time);
            assert_eq!(put(&case, &time, &sign).is_ok(), is_valid, "{until:?}");
            let sign = head_sign(&case, KEY, &time);
            assert!(put(&case, &time, &sign).is_ok());
        }
    }
}

#[test]
fn a_request_signed_in_headers_cannot_be_replayed_nor_moved_to_another_carrier() {
    let case = in_headers(SignCarrier::Both, None, ReplayPolicy::Reject);
    let time = NOW.to_string();
    let sign = head_sign(&case, KEY, &time);
    let verified = put(&case, &time, &sign).unwrap();
    assert!(verified.is_signed_in_headers());
    for again in [sign.clone(), sign.to_uppercase()] {
        assert!(matches!(
            put(&case, &time, &again),
            Err(Rejection::RequestReplayed)
        ));
    }
    // As a parameter, the same digits sign nothing, nor do a parameter's digits in the header.
    let moved = format!("time={time}&sign={sign}");
    assert!(case.post(&moved).is_err());
    let query = format!("time={time}");
    let params = Params::parse(query.as_bytes(), b"", 9).unwrap();
    let profile = case.verifier.profile_of(&case.app);
    let of_params =
        signpost_protocol::sign::sign(profile, &KEY.parse().unwrap(), "PUT", "/x", &params);
    assert!(put(&case, &time, &of_params.to_hex()).is_err());
    // A header that is there decides, whatever the parameters are.
    for (time, sign) in [(&*time, ""), ("", &*sign), (&*time, "x")] {
        assert!(put(&case, time, sign).is_err());
    }
}

#[test]
fn a_large_head_with_a_wrong_signature_costs_no_search() {
    let case = in_headers(SignCarrier::Headers, None, ReplayPolicy::Allow);
    let (time, nonce) = (NOW.to_string(), vec![b'n'; 8192]);
    let fields = SignFields {
        time: Some(time.as_bytes()),
        sign: Some(&[b'0'; 64]),
        nonce: Some(&nonce),
    };
    let target = Target::parse(b"/x?a=1").unwrap();
    let params = Params::parse(b"a=1", b"", 9).unwrap();
    let body = SignedBody::Bytes(b"");
    let headers = (&[("", ""); 0][..], HeaderSign { fields, body });
    let (app, now) = (Arc::new(case.app.clone()), SignTime::from_millis(NOW));
    let verified = case
        .verifier
        .verify(app, Method::Get, target, &params, headers, now);
    let rejection = verified.unwrap_err();
    assert_eq!(hint(&rejection), "hint_too_large");
    assert!(matches!(rejection, Rejection::SignMismatch(_, None)));
}
