//! Placeholder until the client's side of HTTP/2 is merged.
use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::{client::ConnectionInfo, gateway::Gateway, io::Stream};

pub(crate) struct Http2Connections {
    pub current: Arc<ArcSwap<Gateway>>,
}

pub(crate) enum Preface {
    Yes,
    No,
    Maybe,
}

pub(crate) fn is_preface(prefix: &[u8]) -> Preface {
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    if prefix.starts_with(preface) {
        Preface::Yes
    } else if preface.starts_with(prefix) {
        Preface::Maybe
    } else {
        Preface::No
    }
}

impl Http2Connections {
    pub(crate) async fn serve<S: Stream + 'static>(&self, stream: S, client: ConnectionInfo) {
        let _ = (&self.current, client);
        drop(stream);
    }
}
