//! Servers behind the gateway that report what they read of each request, and how many requests.

use std::{
    convert::Infallible,
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use end_to_end::{
    documents::root,
    folder::Folder,
    framework::{self, Server},
    port::free_address,
    signed_client::fetch,
    signer::sha256_hex,
};
use http_body_util::{BodyExt as _, Full};
use hyper::{
    Request, Response,
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpListener, task::JoinHandle};

/// A server that reports in `X-Read`: method, target, length and SHA-256 of the body, the decoded path in hex or `-`.
pub(crate) struct Reader {
    pub(crate) address: SocketAddr,
    /// Requests for `/total`, if the server counts them, too.
    polls: Option<AtomicUsize>,
    /// Requests before the first one of the gateway.
    before: usize,
    _server: Option<Server>,
    _hyper: Option<Hyper>,
    // Behind the servers that use it.
    _folder: Folder,
}

impl Reader {
    /// `None` if it cannot be installed here.
    pub(crate) async fn start(name: &str) -> Option<Self> {
        let (folder, address) = (Folder::create(), free_address());
        let (host, port) = (address.ip().to_string(), address.port().to_string());
        let files = root().join("tests/gateway/read_alike");
        let files = files.canonicalize().expect("the folder is there");
        let hyper = match name {
            "hyper" => Some(Hyper::start(address).await),
            "nginx" => Some(Hyper::start(free_address()).await),
            _ => None,
        };
        let command = match name {
            "hyper" => None,
            "nginx" => {
                let reader = hyper.as_ref().expect("it is started").address;
                Some(nginx(&files, folder.path(), address, reader))
            }
            "node" => {
                let mut command = Command::new("node");
                command.arg(files.join("reader.mjs")).args([host, port]);
                Some(command)
            }
            "go" => {
                let mut command = framework::go(&files.join("reader.go"), folder.path());
                command.arg(address.to_string());
                Some(command)
            }
            _ => {
                let frameworks = framework::frameworks()?;
                let mut command = framework::python(&frameworks, "uvicorn", &files);
                command.args([
                    "--no-access-log",
                    "--lifespan",
                    "off",
                    "--timeout-keep-alive",
                ]);
                command.args(["120", "--host", &host, "--port", &port, "reader:app"]);
                Some(command)
            }
        };
        let server = match command {
            Some(command) => Some(Server::start(command, address, "/total").await),
            None => None,
        };
        let mut reader = Self {
            address,
            polls: (name == "nginx").then(AtomicUsize::default),
            before: 0,
            _server: server,
            _hyper: hyper,
            _folder: folder,
        };
        reader.before = reader.total().await;
        Some(reader)
    }

    /// How many requests it has read of the gateway.
    pub(crate) async fn total(&self) -> usize {
        let text = fetch(&format!("http://{}/total", self.address))
            .await
            .text();
        let number = match &self.polls {
            None => text.trim(),
            // "Active connections: 1", the names of the numbers, and: accepted, handled, requests.
            Some(_) => text.split_whitespace().nth(9).expect("nginx counts"),
        };
        let number: usize = number.parse().expect("a number");
        let polls = self
            .polls
            .as_ref()
            .map_or(0, |polls| polls.fetch_add(1, Ordering::Relaxed));
        number - polls - self.before
    }
}

fn nginx(files: &Path, folder: &Path, listen: SocketAddr, reader: SocketAddr) -> Command {
    let text = fs::read_to_string(files.join("nginx.conf")).expect("the file is there");
    let text = text
        .replace("$FOLDER", &folder.display().to_string())
        .replace("$LISTEN", &listen.to_string())
        .replace("$READER", &reader.to_string());
    let config: PathBuf = folder.join("nginx.conf");
    fs::write(&config, text).expect("temporary files can be written");
    let mut command = Command::new("/usr/sbin/nginx");
    command.arg("-c").arg(config).args(["-e", "stderr"]);
    command
}

/// A server by hyper, in this process.
struct Hyper {
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

impl Hyper {
    async fn start(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).await.expect("a free port");
        let total = Arc::new(AtomicUsize::new(0));
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let total = Arc::clone(&total);
                let service = service_fn(move |request| read(request, Arc::clone(&total)));
                let serving = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                tokio::spawn(serving);
            }
        });
        Self { address, accepting }
    }
}

impl Drop for Hyper {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn read(
    request: Request<Incoming>,
    total: Arc<AtomicUsize>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    if request.uri() == "/total" {
        let total = total.load(Ordering::Relaxed).to_string();
        return Ok(Response::new(Full::from(total)));
    }
    total.fetch_add(1, Ordering::Relaxed);
    let (head, body) = request.into_parts();
    let body = body.collect().await.expect("a whole body").to_bytes();
    let path = head
        .headers
        .get("x-path")
        .map_or("-".to_owned(), hex::encode);
    let (method, target) = (head.method, head.uri);
    let read = format!(
        "{method} {target} {} {} {path}",
        body.len(),
        sha256_hex(&body)
    );
    let response = Response::builder().header("X-Read", read);
    Ok(response.body(Full::default()).expect("a valid response"))
}
