//! A client that speaks HTTP/2: without TLS by prior knowledge (RFC 9113 section 3.3), or with TLS by ALPN.

use std::{io, net::SocketAddr, sync::Arc};

use h2::{
    Reason,
    client::{self, SendRequest},
};
use http::{HeaderMap, Request, Response};
use rustls::pki_types::ServerName;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    task::JoinHandle,
};
use tokio_rustls::TlsConnector;

use crate::signed_client::Call;

/// A connection. Closed when dropped.
#[derive(Debug)]
pub struct Http2Client {
    sender: SendRequest<Body>,
    driver: JoinHandle<Result<(), h2::Error>>,
}

/// A piece of a request's body.
type Body = io::Cursor<Vec<u8>>;

/// A response, as received.
#[derive(Clone, Debug)]
pub struct Http2Response {
    /// Its status.
    pub status: u16,
    /// Its fields.
    pub fields: HeaderMap,
    /// Its body.
    pub body: Vec<u8>,
}

impl Http2Response {
    /// The problem code in the body, if any.
    #[must_use]
    pub fn code(&self) -> Option<String> {
        let body: serde_json::Value = serde_json::from_slice(&self.body).ok()?;
        body["code"].as_str().map(str::to_owned)
    }
}

impl Http2Client {
    /// Connects.
    ///
    /// # Panics
    ///
    /// When the server does not accept the connection.
    pub async fn open(address: SocketAddr) -> Self {
        let opened = Self::try_open(address).await;
        opened.expect("the gateway accepts connections of HTTP/2")
    }

    /// As [`Self::open`].
    ///
    /// # Errors
    ///
    /// The connection is refused or ends.
    pub async fn try_open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Self::begin(stream).await
    }

    /// Connects by TLS, and verifies the server as `name`. `tls` offers `h2` by ALPN.
    ///
    /// # Errors
    ///
    /// The connection is refused, the TLS handshake fails, or the server does not choose `h2`.
    ///
    /// # Panics
    ///
    /// When `name` is not a host name.
    pub async fn try_open_tls(
        address: SocketAddr,
        name: &'static str,
        tls: Arc<rustls::ClientConfig>,
    ) -> io::Result<Self> {
        let name = ServerName::try_from(name).expect("a host name");
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let stream = TlsConnector::from(tls).connect(name, stream).await?;
        if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
            return Err(io::Error::other("the server did not choose h2"));
        }
        Self::begin(stream).await
    }

    async fn begin<S>(stream: S) -> io::Result<Self>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let handshake = client::Builder::new().handshake(stream).await;
        let (sender, connection) = handshake.map_err(io::Error::other)?;
        Ok(Self {
            sender,
            driver: tokio::spawn(connection),
        })
    }

    /// Sends a call, and reads its response.
    ///
    /// # Errors
    ///
    /// The connection ended, or the stream was reset.
    pub async fn send(&self, call: &Call<'_>) -> Result<Http2Response, h2::Error> {
        read(self.begin_call(call).await?).await
    }

    /// Sends a call, and reads the head of its response. The body can be read piece by piece.
    ///
    /// # Errors
    ///
    /// The connection ended, or the stream was reset.
    ///
    /// # Panics
    ///
    /// When the call is no valid request.
    pub async fn begin_call(&self, call: &Call<'_>) -> Result<Response<h2::RecvStream>, h2::Error> {
        let (target, headers, body) = call.message();
        let mut request = Request::builder()
            .method(call.method())
            .uri(format!("http://gateway.example{target}"));
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let request = request.body(()).expect("a call is a valid request");
        self.begin_request(request, body).await
    }

    /// Sends a request with this body, and reads its response.
    ///
    /// # Errors
    ///
    /// The connection ended, or the stream was reset.
    pub async fn send_request(
        &self,
        request: Request<()>,
        body: Vec<u8>,
    ) -> Result<Http2Response, h2::Error> {
        read(self.begin_request(request, body).await?).await
    }

    async fn begin_request(
        &self,
        request: Request<()>,
        body: Vec<u8>,
    ) -> Result<Response<h2::RecvStream>, h2::Error> {
        let mut sender = self.sender.clone().ready().await?;
        let (response, mut stream) = sender.send_request(request, body.is_empty())?;
        if !body.is_empty() {
            // Fails if the response came first.
            let _ = stream.send_data(Body::new(body), true);
        }
        response.await
    }

    /// Whether the server has closed the connection, or asked for that.
    pub async fn is_closed(&self) -> bool {
        self.driver.is_finished() || self.sender.clone().ready().await.is_err()
    }
}

impl Drop for Http2Client {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

async fn read(response: Response<h2::RecvStream>) -> Result<Http2Response, h2::Error> {
    let (head, mut stream) = response.into_parts();
    let mut body = Vec::new();
    while let Some(piece) = stream.data().await {
        match piece {
            Ok(piece) => {
                body.extend_from_slice(&piece);
                // Fails only if the stream was reset, which the next read notices.
                let _ = stream.flow_control().release_capacity(piece.len());
            }
            // The response is complete, but the request was not.
            Err(error) if error.reason() == Some(Reason::NO_ERROR) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(Http2Response {
        status: head.status.as_u16(),
        fields: head.headers,
        body,
    })
}

/// Whether the server did not begin the request, so that it is safe to send again.
#[must_use]
pub fn is_refused(error: &h2::Error) -> bool {
    error.is_go_away() && error.reason() == Some(Reason::NO_ERROR)
        || error.reason() == Some(Reason::REFUSED_STREAM)
}
