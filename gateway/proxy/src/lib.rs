//! What a request meets: Signpost's gateway from a client's connection to the backend's, without what operators meet.
//!
//! The folders stand in the order in which they import each other: each uses those above it only
//! (`../tests/structure.rs`).
//!
//! | folder | subject |
//! | --- | --- |
//! | [`wire`] | syntax of HTTP/1.1; reads, writes and timers of both sides |
//! | [`tls`] | certificates, server names, client certificates; the listeners' and the backends' side |
//! | [`request`] | the nouns of a request: head, ids, rejection, quotas, the client |
//! | [`config`] | the configuration file, parsed and checked |
//! | [`directory`] | who may call: applications, accounts |
//! | [`limits`] | rates, the replay memory, connections |
//! | [`phases`] | one file for each phase, in the contract's order |
//! | [`upstream`] | chooses an address, sends, retries, relays |
//! | [`convert`] | converters, which change requests and responses of bridges |
//! | [`observe`] | outcome, access log, spans, metrics of requests, usage |
//! | [`shadow`] | copies of requests to another version |
//! | [`serve`] | a request from its head to its end: receive, forward, relay, respond, record |
//! | [`downstream`] | the clients' side: listeners, HTTP/1.1, HTTP/2 |
//! | [`scrape`] | what `/metrics` shows of it |
//!
//! The names below are the facade: what management and the program may use of it. `tests/structure.rs` of the gateway
//! keeps it small.

#![allow(
    rustdoc::private_intra_doc_links,
    reason = "its modules are private, and its documentation is for its developers"
)]

mod config;
mod convert;
mod directory {
    //! Who may call: applications, and the users whose credentials the login service stored.

    pub(crate) mod accounts;
    pub(crate) mod apps;
}
mod downstream {
    //! The clients' side: listeners and connections.

    pub(crate) mod current;
    pub(crate) mod http1 {
        //! The client's side: strict HTTP/1.1. CONTRACT 2.
        //!
        //! | module | subject |
        //! | --- | --- |
        //! | [`connection`] | the connection loop: read a head, serve the request, read the next head |
        //! | [`head`] | strict parser for the head of a request |
        //! | [`body`] | reads the whole body of a request |
        //! | [`exchange`] | one request: its body, its response, and whether the connection is kept alive |
        //! | [`response`] | the only writer of response heads and framing |
        //! | [`stream`] | the socket, the bytes read ahead, and a timer |

        pub(crate) mod body;
        pub(crate) mod connection;
        pub(crate) mod exchange;
        pub(crate) mod head;
        pub(crate) mod response;
        pub(crate) mod stream;
    }
    pub(crate) mod http2;
    pub(crate) mod listeners;
    pub(crate) mod sockets;
}
mod limits;
mod observe {
    //! Observability: one [`Outcome`](outcome::Outcome) per request, and its consumers.
    //!
    //! | module | subject |
    //! | --- | --- |
    //! | [`outcome`] | the outcome of a request |
    //! | [`access_log`] | one log line per request, and one a minute for each kind of failure |
    //! | [`metrics`] | counts requests for `/metrics` |
    //! | [`spans`] | the spans of a sampled request |
    //! | [`watch`] | requests that operators watch, and the last ones that were rejected |
    //! | [`usage`] | counts requests by application and version |
    //! | [`per_thread`] | what each thread counts on its own |

    pub(crate) mod access_log;
    pub(crate) mod metrics;
    pub(crate) mod outcome;
    pub(crate) mod per_thread;
    pub(crate) mod spans;
    pub(crate) mod usage;
    pub(crate) mod watch;
}
mod phases;
mod request;
mod scrape;
mod serve;
mod shadow;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod tls;
mod upstream {
    //! The backends' side: chooses an address, sends the request, retries it, relays the response.

    pub(crate) mod backend {
        //! The backend's side: takes a pooled or new connection, sends the request, and reads the head and body of the response.
        //!
        //! | module | subject |
        //! | --- | --- |
        //! | [`upstream`] | sends one request, with retries on other addresses, and returns the head of the response |
        //! | [`retry`] | decides whether a failed request is retried, and where |
        //! | [`failure`] | failures by cause |
        //! | [`connector`] | new connections |
        //! | [`stream`] | a connection, with or without TLS |
        //! | [`pool`] | idle connections |
        //! | [`exchange`] | writes a request and reads the head of its response |
        //! | [`backend_head`] | strict parser for the head of a response |
        //! | [`relay`] | relays the body of a response as it arrives |

        pub(crate) mod backend_head;
        pub(crate) mod connector;
        pub(crate) mod exchange;
        pub(crate) mod failure;
        pub(crate) mod pool;
        pub(crate) mod relay;
        pub(crate) mod retry;
        pub(crate) mod stream;
        pub(crate) mod upstream;
    }
    pub(crate) mod routing;
    pub(crate) mod secret_rejections;
}
mod wire {
    //! HTTP/1.1 on the wire, without its meaning: syntax, and reads, writes and timers of both sides.

    pub(crate) mod io;
    pub(crate) mod syntax {
        //! The HTTP/1.1 syntax that both sides share: bytes, lines and fields, parsed strictly by RFC 9112. No I/O.
        //!
        //! | module | subject |
        //! | --- | --- |
        //! | [`bytes`] | byte classes |
        //! | [`field`] | finds the end of a head as it arrives; a field line, and the offsets of its parts |
        //! | [`path`] | what a path means, however it is written |
        //! | [`framing`] | the fields that frame a body |
        //! | [`chunked`] | decodes a chunked body |

        pub(crate) mod bytes;
        pub(crate) mod chunked;
        pub(crate) mod field;
        pub(crate) mod framing;
        pub(crate) mod path;
    }
}

pub use crate::{
    config::{
        Backend, Changes, Config, ConsoleAccount, ConsoleSettings, Endpoint, Extension, LifeCycle,
        Limits, MasterKey, MultiApplications, OTHER_PATHS, OwnRate, Part, PathPattern, Role,
        ServedVersion, Shadow, Stage, Timeouts, UnknownVersion, Upstream, Versions, as_rfc3339,
        parse_short_duration, parse_since, rfc3339, weaknesses,
    },
    directory::apps::{
        App, AppState, AppStore, AppStoreError,
        defaults::{default_version_warnings, unusable_defaults},
        directory::AppDirectory,
        seal::{MasterKeyId, SealError, Sealer, Slot, new_app_ident, new_app_key},
        stored::{StoredApps, previous_slot},
    },
    downstream::http1::connection::examine,
    observe::{
        metrics::RequestMetrics,
        outcome::Outcome,
        usage::{
            Counts, Day, KEEP_DAYS as KEEP_USAGE_DAYS, MAX_PATTERNS, NO_APPLICATION,
            OTHER_APPLICATIONS,
        },
        watch::{Filter, SeenRequest, Watch, Watched, Watching},
    },
    phases::{error_response::problem_of, verify::Verifier},
    request::{
        Head, Headers, Method, Target,
        drain::{Beginning, Drain},
        rejection::{Hint, Rejection},
    },
    serve::{
        Gateway,
        examine::{Examined, StepName},
    },
    shadow::{
        store::{
            KEEP_DAYS as KEEP_SHADOW_DAYS, read as read_tallies, read_start as proof_start,
            restart as restart_proof,
        },
        tallies::hour_of as hour_of_tallies,
    },
    upstream::routing::{
        drained::DrainedAddress,
        status::{AddressHealth, AddressStatus, BackendStatus, availability},
    },
};

/// What the program needs besides: to start, reload and stop what serves requests.
pub mod program {
    pub use crate::{
        config::{Applications, BackendAddress, HostPort, ListenerSettings},
        directory::{
            accounts::open::open_accounts,
            apps::{
                directory::CachedApps,
                open::{
                    OpenApps, open_apps, open_store, raise_statement_timeout,
                    warn_of_unusable_defaults,
                },
            },
        },
        downstream::{
            listeners::{Clients, WorkerSocket},
            sockets::{
                ListeningSockets, OpenSockets, bound_socket, probe as probe_listener,
                start_listening,
            },
        },
        observe::usage::writer::UsageWriter,
        request::quotas::RequestLimit,
        scrape::{FAMILIES, metrics},
        serve::{Policy, State, VersionEnd},
        shadow::{
            store::{MAX_DELETED as MAX_DELETED_TALLIES, delete_old as delete_old_tallies},
            writer::ShadowWriter,
        },
        tls::Tls,
        upstream::routing::{
            check::probe as probe_address,
            monitor::{BackendMonitor, resolve_all},
            status::GatewayStatus,
        },
    };
}

/// Items exported to benchmarks, fuzzing and tests of other crates; not for programs.
///
/// Everything else is private to the crate, so that the compiler finds unused code.
#[doc(hidden)]
pub mod measured {
    pub use crate::{
        config::{Applications, Config, MasterKey, Placed, ResponseHeaders, Versions},
        directory::{
            accounts::{Account, AccountStore, CredentialClaims, directory::AccountDirectory},
            apps::{
                App, AppState, AppStore, AppStoreError,
                directory::{AppDirectory, CachedApps},
                seal::{Sealer, Slot, new_app_ident, new_app_key},
            },
        },
        downstream::{
            http1::{
                exchange::Http1Exchange,
                head::{HeadFault, ReadHead, RequestScanner, peek_request_line, read_head},
                response::Recipient,
                stream::{ClientConnection, ReceiveOutcome},
            },
            http2::{
                frames::{Frames, Output, To},
                head::{StreamFault, StreamHead},
                meter::Meter,
            },
            listeners::proxy_protocol::{ProxyHeader, ProxyHeaderError, read_header},
        },
        limits::{
            replay::{ReplayLimits, ReplayMemory},
            spool::{Spool, SpoolReader},
        },
        phases::{
            origin::Peer,
            route::{Wanted, route},
            verify::{HeaderSign, VerifiedRequest, Verifier},
        },
        request::{
            BodyLength, Head, HeadLimits, Headers, Method, RawHeaders, Target,
            client::{BodyLimits, Client, ConnectionInfo},
            drain::Drain,
        },
        serve::{Gateway, State, receive::receive, request::Received},
        upstream::{
            backend::backend_head::{
                BackendHead, MalformedResponse, ResponseBody, ResponseScanner,
            },
            routing::{Balancer, attempts::Attempts},
        },
        wire::{io::SendLimits, syntax::chunked::ChunkDecoder},
    };
}
