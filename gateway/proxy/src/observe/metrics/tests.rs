//! From the outcomes of requests to the samples.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use signpost_protocol::{
    app::AppId,
    malformed::Malformed,
    problem::ProblemCode,
    request_id::RequestId,
    sign::{
        SIGN, SignTime, TIME, TimeSlip, Window,
        explain::{Explanation, Slip},
    },
    version::VersionSource,
};

use super::{
    labels::{status_class, verification_failure},
    *,
};
use crate::{
    config::{BackendIndex, Versions, tests::versions},
    directory::apps::App,
    observe::outcome::{Learnt, Sent, Times},
    phases::route::Route,
    request::{
        ids::RequestIds,
        quotas::RequestLimit,
        rejection::{Hint, Rejection},
    },
};

const TWO: &str =
    "[versions.v1]\nbackend = '127.0.0.1:1'\n[versions.v2]\nbackend = '127.0.0.1:2'\n";

/// The cells of a configuration, and what a request refers to.
struct Counting {
    metrics: Arc<RequestMetrics>,
    cells: RequestCells,
    versions: Versions,
    id: RequestId,
}

impl Counting {
    /// Two versions.
    fn new() -> Self {
        let metrics = Arc::<RequestMetrics>::default();
        Self {
            cells: configured(&metrics, TWO),
            metrics,
            versions: versions(TWO),
            id: RequestIds::default().next(),
        }
    }

    fn route(&self, version: &str, source: VersionSource) -> Route {
        let version = self.versions.named(version.as_bytes()).unwrap();
        Route::new(Arc::clone(version), BackendIndex::OWN, source)
    }

    fn count(&self, outcome: &Outcome<'_>) {
        self.metrics.count(outcome, &self.cells);
    }

    fn outcome(&self) -> Outcome<'_> {
        Outcome::unrouted(&self.id)
    }

    /// Counts a request of an application.
    fn count_of(&self, app: &Arc<App>, status: u16) {
        self.count(&Outcome {
            learnt: Learnt {
                app: Some(app),
                is_signed: true,
                ..Learnt::default()
            },
            sent: Sent {
                status,
                ..Sent::default()
            },
            ..self.outcome()
        });
    }

    /// All numbers of requests, as `version source class problem=number`.
    fn requests(&self) -> Vec<String> {
        let mut all = Vec::new();
        let _ = self.metrics.for_requests(|labels, count| {
            all.push(format!("{}={count}", labels.join(" ")));
            Ok::<_, ()>(())
        });
        all
    }
}

/// The cells of the configuration with these versions.
fn configured(metrics: &RequestMetrics, toml: &str) -> RequestCells {
    metrics.configure(&versions(toml))
}

fn routed(route: Option<&Route>) -> Learnt<'_> {
    Learnt {
        route,
        ..Learnt::default()
    }
}

fn app(id: i64, ident: Option<&str>) -> Arc<App> {
    let key = "4283fefc63f0cd0e873a0000c6d07ef7".parse().unwrap();
    Arc::new(App {
        id: AppId::new(id),
        ident: ident.map(|ident| ident.parse().unwrap()),
        ..App::single(key)
    })
}

#[test]
fn a_request_counts_by_version_source_class_and_problem() {
    let counting = Counting::new();
    let [v1, v2] = [
        counting.route("v1", VersionSource::Header),
        counting.route("v2", VersionSource::State),
    ];
    let count = |route, status, rejection, backend_problem: Option<&str>| {
        counting.count(&Outcome {
            learnt: routed(route),
            sent: Sent {
                status,
                problem: backend_problem.map(Box::from),
                ..Sent::default()
            },
            rejection,
            ..counting.outcome()
        });
    };
    count(Some(&v1), 200, None, None);
    count(Some(&v1), 200, None, None);
    count(Some(&v2), 302, None, None);
    count(Some(&v2), 404, None, None);
    // A code of the contract, one that is not, and one that only looks like a label.
    count(Some(&v1), 409, None, Some("login_pending"));
    count(Some(&v1), 409, None, Some("sold_out"));
    count(Some(&v1), 409, None, Some("other"));
    count(Some(&v1), 504, Some(&Rejection::BackendTimeout), None);
    // A response that was aborted after its head.
    count(Some(&v1), 200, Some(&Rejection::BackendTimeout), None);
    count(Some(&v1), 0, Some(&Rejection::ClientDisconnected), None);
    count(None, 0, Some(&Rejection::ClientDisconnected), None);
    count(None, 400, Some(&Rejection::NotHttp("malformed")), None);
    count(None, 403, Some(&Rejection::SignMissing(None)), None);
    count(None, 204, None, None);
    let expected = [
        "  none =1",
        "  2xx =1",
        "  4xx =1",
        "  4xx sign_missing=1",
        "v1 header none =1",
        "v1 header 2xx =2",
        "v1 header 2xx backend_timeout=1",
        "v1 header 4xx login_pending=1",
        "v1 header 4xx other=2",
        "v1 header 5xx backend_timeout=1",
        "v2 state 3xx =1",
        "v2 state 4xx =1",
    ];
    assert_eq!(counting.requests(), expected);
}

#[test]
fn every_status_and_every_code_has_a_cell() {
    for (status, class) in [(0, "none"), (101, "1xx"), (204, "2xx"), (599, "5xx")] {
        assert_eq!(STATUS_CLASSES[status_class(status)], class);
    }
    assert_eq!(status_class(u16::MAX), 5);
    for code in ProblemCode::ALL {
        assert_eq!(
            PROBLEMS[labels::problem(None, Some(code.as_str()))],
            code.as_str()
        );
        assert_eq!(PROBLEMS[1 + *code as usize], code.as_str());
    }
    assert_eq!(PROBLEMS[labels::problem(None, None)], "");
    for name in ["", "Sold_out", "other"] {
        assert_eq!(PROBLEMS[labels::problem(None, Some(name))], "other");
    }
    let last = cell(
        SOURCES.len() - 1,
        STATUS_CLASSES.len() - 1,
        PROBLEMS.len() - 1,
    );
    let cells = SOURCES.len() * STATUS_CLASSES.len() * PROBLEMS.len();
    assert_eq!(last + 1, cells);
}

#[test]
fn a_failed_verification_counts_by_its_cause() {
    let window = Window::default();
    let now = SignTime::from_millis(1_732_104_000_000);
    let out_of_window = |time| Rejection::TimeOutOfWindow {
        time: SignTime::from_millis(time),
        now,
        window,
    };
    let duplicated = |name| Rejection::ParamDuplicated { name };
    let mut cases = vec![
        (Rejection::TimeMissing(None), Some("time_missing")),
        (Rejection::TimeInvalid { slip: None }, Some("time_invalid")),
        (out_of_window(1_732_104_100_000), Some("time_out_of_window")),
        (
            out_of_window(1_732_104_000_000_000),
            Some("hint_microseconds"),
        ),
        (Rejection::SignMissing(None), Some("sign_missing")),
        (Rejection::RequestReplayed, Some("request_replayed")),
        (duplicated(TIME), Some("param_duplicated")),
        (duplicated(SIGN), Some("param_duplicated")),
        (duplicated("app"), None),
        (Rejection::BackendTimeout, None),
        (
            Rejection::ParamsMalformed(Malformed::of_params(b"a=%", b"").into()),
            None,
        ),
    ];
    let retry_after = Duration::from_secs(1);
    cases.push((
        Rejection::RateLimited {
            limit: RequestLimit::ReplayMemory,
            retry_after,
            quota: None,
        },
        None,
    ));
    for slip in TimeSlip::ALL {
        let rejection = Rejection::TimeInvalid { slip: Some(slip) };
        cases.push((rejection, Some(slip.as_str())));
    }
    for slip in Slip::ALL {
        let rejection = Explanation::from(slip).into();
        cases.push((rejection, Some(slip.as_str())));
    }
    let preset = Explanation::from(Slip::Preset("wechat"));
    cases.push((preset.into(), Some("hint_preset")));
    for (rejection, cause) in cases {
        let found = verification_failure(&rejection).map(|index| CAUSES[index]);
        assert_eq!(found, cause, "{rejection}");
        // The cause is what the access log names, without the preset.
        let logged = rejection.hint().map(Hint::name);
        let hint = found.filter(|cause| cause.starts_with("hint"));
        let logged = logged.as_deref().and_then(|hint| hint.split(':').next());
        assert_eq!(hint, logged, "{rejection}");
    }
    let unique: BTreeSet<_> = CAUSES.into_iter().collect();
    assert_eq!(unique.len(), CAUSES.len());
}

#[test]
fn the_times_of_a_request_are_apart() {
    let counting = Counting::new();
    let route = counting.route("v2", VersionSource::Default);
    let begin = Instant::now();
    let at = |milliseconds| begin + Duration::from_millis(milliseconds);
    // 3 ms of the gateway's own, 20 ms of the client's form, 40 ms of the backend, 100 ms of the relay.
    let times = Times {
        received: begin,
        form_wait: Duration::from_millis(20),
        forwarded: Some(at(23)),
        responded: Some(at(63)),
        ended: at(163),
    };
    let route = Some(&route);
    counting.count(&Outcome {
        learnt: routed(route),
        times,
        ..counting.outcome()
    });
    // A rejection after 5 ms, of a backend that did not answer, and before a route.
    let failed = Times {
        responded: None,
        ..times
    };
    counting.count(&Outcome {
        learnt: routed(route),
        times: failed,
        ..counting.outcome()
    });
    // Then its client takes the response slowly.
    let rejected = Times {
        form_wait: Duration::ZERO,
        forwarded: None,
        responded: Some(at(5)),
        ended: at(905),
        ..times
    };
    counting.count(&Outcome {
        times: rejected,
        ..counting.outcome()
    });
    let sums = |durations: Vec<(Box<str>, Observed)>| -> Vec<(String, u64, f64)> {
        let durations = durations.into_iter();
        durations
            .map(|(name, observed)| (name.into(), observed.count(), observed.sum))
            .collect()
    };
    let whole = sums(counting.metrics.request_durations());
    let of = |name: &str, count, sum| (name.to_owned(), count, sum);
    assert_eq!(
        whole,
        [of("", 1, 0.905), of("v1", 0, 0.0), of("v2", 2, 0.326)]
    );
    let own = counting.metrics.own_durations();
    assert_eq!((own.count(), own.sum), (3, 0.011));
    let backends = sums(counting.metrics.backend_durations());
    assert_eq!(backends, [of("v1", 0, 0.0), of("v2", 1, 0.04)]);
}

#[test]
fn counts_outlive_their_configuration() {
    let counting = Counting::new();
    let route = counting.route("v2", VersionSource::Header);
    let route = Some(&route);
    let responded = || Outcome {
        learnt: routed(route),
        ..counting.outcome()
    };
    counting.count(&responded());
    let with_route = "[versions.v2]\nbackend = '127.0.0.1:3'\nroutes = [{ path = '/x', backend = '127.0.0.1:4' }]\n";
    let only_v2 = format!("default_version = 'v2'\n{with_route}");
    let after = configured(&counting.metrics, &only_v2);
    // A request that began before.
    counting.count(&responded());
    let versions = versions(&only_v2);
    let version = versions.default();
    let index = version.routed("/x").unwrap();
    let route = Route::new(Arc::clone(version), index, VersionSource::Header);
    let outcome = Outcome {
        learnt: routed(Some(&route)),
        ..counting.outcome()
    };
    counting.metrics.count(&outcome, &after);
    assert_eq!(counting.requests(), ["v2 header 2xx =3"]);
    let backends = counting.metrics.backend_durations();
    let names: Vec<_> = backends.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["v1", "v2", "v2 /x"]);
}

#[test]
fn requests_without_an_application_of_the_store_have_labels_of_their_own() {
    let counting = Counting::new();
    counting.count_of(&app(0, None), 200);
    counting.count_of(&app(1, Some("app-1")), 200);
    counting.count(&counting.outcome());
    counting.count(&counting.outcome());
    let unnamed: Vec<_> = counting.metrics.unnamed().collect();
    let expected = [
        ("none".into(), [0, 0, 2, 0, 0, 0]),
        ("default".into(), [0, 0, 1, 0, 0, 0]),
    ];
    assert_eq!(unnamed, expected);
}

#[test]
fn threads_lose_no_request() {
    const THREADS: u64 = 80;
    let counting = Counting::new();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..100 {
                    counting.count(&counting.outcome());
                }
            });
        }
    });
    assert_eq!(counting.requests(), [format!("  2xx ={}", THREADS * 100)]);
}

fn name_cells(registry: &mut Registry<AtomicU64>, names: &[&str]) {
    registry.configure(names.iter().map(|name| (*name).to_owned()));
}

fn cell_names(registry: &Registry<AtomicU64>) -> Vec<Box<str>> {
    registry.all().into_iter().map(|(name, _)| name).collect()
}

#[test]
fn a_name_keeps_its_cells_even_while_it_is_removed() {
    let mut registry = Registry::default();
    name_cells(&mut registry, &["v2", "v1", "v1"]);
    assert_eq!(cell_names(&registry), ["v1".into(), "v2".into()]);
    registry.cells("v1").store(7, Ordering::Relaxed);
    for further in [&["v2"][..], &["v1", "v3"]] {
        name_cells(&mut registry, further);
        assert_eq!(registry.cells("v1").load(Ordering::Relaxed), 7);
    }
    assert_eq!(cell_names(&registry).len(), 3);
}

#[test]
fn removed_names_are_limited() {
    let mut registry = Registry::default();
    let name = |number: usize| format!("v{number}");
    for number in 0..100 {
        registry.configure([name(number), "stays".to_owned()].into_iter());
    }
    let kept = cell_names(&registry);
    // Two names are configured: the last one, and `stays`.
    assert_eq!(kept.len(), MAX_REMOVED + 2);
    for number in 99 - MAX_REMOVED..100 {
        assert!(kept.contains(&name(number).into_boxed_str()), "{kept:?}");
    }
}
