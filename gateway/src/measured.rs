//! Items exported to the crate's benchmark, its tests in `tests/`, and the crates `bench` and `fuzz`; not for programs.
//!
//! Everything else is private to the crate, so that the compiler finds unused code.

pub use crate::{
    accounts::{Account, CredentialClaims, directory::AccountDirectory, store::AccountStore},
    apps::{
        App, AppState,
        directory::{AppDirectory, CachedApps},
        open::open_store,
        seal::{Sealer, Slot, new_app_ident, new_app_key},
        store::{
            AppStore, AppStoreError, AppSummary, AppUpdate, ImportOutcome, NewApp, Rotation,
            RotationOutcome,
        },
    },
    backend::answer_head::{AnswerBody, AnswerHead, AnswerScanner, MalformedAnswer},
    client::ConnectionInfo,
    config::{Applications, Config, MasterKey, OwnRate, Versions},
    drain::Drain,
    gateway::Gateway,
    http1::{
        exchange::Http1Exchange,
        head::{HeadFault, ReadHead, RequestScanner, peek_request_line, read_head},
        response::Recipient,
        stream::{ClientConnection, ReceiveOutcome},
    },
    phases::{
        origin::Peer,
        route::{Wanted, route},
        verify::{VerifiedRequest, Verifier},
    },
    replay::{ReplayLimits, ReplayMemory},
    request::{BodyLength, HeadLimits, Headers, Method, RawHeaders, Target},
    routing::{Balancer, attempts::Attempts},
    syntax::chunked::ChunkDecoder,
};
