//! A bare pingora proxy: it routes by the version header and does nothing else.
//!
//! Signpost is compared with it. Allocator, runtime without work stealing, timeouts and pool size are those of the
//! gateway. Listener, forwarding and pool are pingora's own.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use async_trait::async_trait;
use clap::Parser;
use http::HeaderName;
use mimalloc::MiMalloc;
use pingora::{
    listeners::{L4BufferSettings, ListenerConfig},
    modules::http::HttpModules,
    protocols::TcpKeepalive,
    proxy::{ProxyHttp, Session, http_proxy_service},
    server::{RunArgs, Server, configuration::ServerConf},
    upstreams::peer::HttpPeer,
};

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

static VERSION: HeaderName = HeaderName::from_static("acme-x-version");

/// Proxies to one of two backends, by the version header.
#[derive(Debug, Parser)]
struct Arguments {
    /// Address to listen on.
    #[arg(long)]
    listen: SocketAddr,
    /// Backend of version v1, and of requests without a version.
    #[arg(long)]
    v1: SocketAddr,
    /// Backend of version v2.
    #[arg(long)]
    v2: SocketAddr,
    /// Worker threads.
    #[arg(long, default_value_t = 1)]
    threads: usize,
}

struct Bare {
    v1: SocketAddr,
    v2: SocketAddr,
}

#[async_trait]
impl ProxyHttp for Bare {
    type CTX = ();

    fn new_ctx(&self) {}

    fn init_downstream_modules(&self, _modules: &mut HttpModules) {}

    async fn upstream_peer(
        &self,
        session: &mut Session,
        (): &mut (),
    ) -> pingora::Result<Box<HttpPeer>> {
        let version = session.req_header().headers.get(&VERSION);
        let names_v2 =
            version.is_some_and(|version| version.as_bytes().eq_ignore_ascii_case(b"v2"));
        let address = if names_v2 { self.v2 } else { self.v1 };
        Ok(Box::new(peer(address)))
    }
}

/// With pingora's own rules for hop-by-hop headers: a proxy that forwarded `Connection: close` would lose its pool.
fn peer(address: SocketAddr) -> HttpPeer {
    let mut peer = HttpPeer::new(address, false, String::new());
    peer.options.connection_timeout = Some(Duration::from_secs(2));
    peer.options.total_connection_timeout = Some(Duration::from_secs(2));
    peer.options.read_timeout = Some(Duration::from_secs(60));
    peer.options.write_timeout = Some(Duration::from_secs(60));
    peer.options.idle_timeout = Some(Duration::from_secs(90));
    peer.options.tcp_keepalive = Some(TcpKeepalive {
        idle: Duration::from_secs(60),
        interval: Duration::from_secs(5),
        count: 5,
        #[cfg(target_os = "linux")]
        user_timeout: Duration::ZERO,
    });
    peer
}

fn main() {
    let arguments = Arguments::parse();
    let conf = ServerConf {
        threads: arguments.threads,
        work_stealing: false,
        upstream_keepalive_pool_size: 1024,
        // It stops immediately: no request is in flight at that time.
        grace_period_seconds: Some(0),
        graceful_shutdown_timeout_seconds: Some(0),
        ..ServerConf::default()
    };
    let mut server = Server::new_with_opt_and_conf(None, conf);
    server.bootstrap();
    let (v1, v2) = (arguments.v1, arguments.v2);
    let mut service = http_proxy_service(&Arc::clone(&server.configuration), Bare { v1, v2 });
    let unbuffered_reads = L4BufferSettings::default().read(0);
    service.add_listener(
        ListenerConfig::tcp(arguments.listen.to_string()).l4_buffer(unbuffered_reads),
    );
    server.add_service(service);
    server.run(RunArgs::default());
}
