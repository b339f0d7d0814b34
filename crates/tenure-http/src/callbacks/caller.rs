//! Calling somebody: one request on a connection of its own, to an address that was looked at after its name was resolved,
//! so that no name can lead elsewhere between the look and the call.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CONTENT_LENGTH, HOST, RETRY_AFTER, USER_AGENT};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tenure::{Clock, Timestamp};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

use super::egress::Egress;
use super::target::Target;
use crate::push::budget::{LargeResponse, SMALL_RESPONSE};

/// Whoever is called is told who calls.
const AGENT: &str = concat!("tenure/", env!("CARGO_PKG_VERSION"));
/// Memory for the head of a response, and for the part of its body that is not read yet.
const BUFFER_BYTES: usize = 32 * 1024;

/// What is sent.
pub(crate) struct Call {
    pub method: Method,
    pub target: Target,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub body: Bytes,
    /// How long all of it may take.
    pub within: Duration,
    /// As much of the answer is read.
    pub most: usize,
    /// Memory for a large response, if such responses count.
    pub large: Option<Arc<LargeResponse>>,
}

/// What was answered.
#[derive(Debug)]
pub(crate) struct Heard {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    /// Whether all of the body was read.
    pub whole: bool,
}

/// Why there is no answer. The words name nothing of what was found there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoAnswer {
    /// The address may not be called. It is in the server's log only: otherwise clients could resolve internal names.
    #[error(
        "the host's address is not allowed; expected a public address over https on port 443, or one that \
         --egress-allow allows; see the server's log for the address"
    )]
    Refused,
    /// Nobody was reached, or nobody answered.
    #[error("{0}")]
    Unreachable(String),
    /// It took too long.
    #[error("no response within {} s", .0.as_secs_f64())]
    TooLate(Duration),
}

/// What calls.
#[derive(Clone)]
pub(crate) struct Caller {
    egress: Arc<Egress>,
    clock: Arc<dyn Clock>,
    tls: Arc<OnceLock<Option<Arc<ClientConfig>>>>,
}

impl Caller {
    pub(crate) fn new(egress: Egress, clock: Arc<dyn Clock>) -> Self {
        Self { egress: Arc::new(egress), clock, tls: Arc::default() }
    }

    /// One that calls what the operator has named himself, wherever that is.
    pub(crate) fn of_operator(clock: Arc<dyn Clock>) -> Self {
        Self::new(Egress::everywhere(), clock)
    }

    /// Sends a request and reads the answer. To drop it is to hang up. Redirects are answers like others: nobody follows.
    pub(crate) async fn call(&self, call: Call) -> Result<Heard, NoAnswer> {
        let within = call.within;
        tokio::select! {
            biased;
            heard = self.exchange(call) => heard,
            () = self.clock.sleep(within) => Err(NoAnswer::TooLate(within)),
        }
    }

    async fn exchange(&self, call: Call) -> Result<Heard, NoAnswer> {
        let stream = self.connect(&call.target).await?;
        if !call.target.encrypted {
            return ask(stream, call).await;
        }
        let no_tls = || NoAnswer::Unreachable("no trusted CA certificates found".to_owned());
        let config = self.tls.get_or_init(tls).clone().ok_or_else(no_tls)?;
        let name = ServerName::try_from(call.target.host.clone())
            .map_err(|_| NoAnswer::Unreachable("the host name cannot be used in a certificate".to_owned()))?;
        let stream = TlsConnector::from(config).connect(name, stream).await;
        ask(stream.map_err(|error| NoAnswer::Unreachable(format!("TLS handshake failed: {error}")))?, call)
            .await
    }

    /// A connection to the first of its addresses that takes one. If one of them may not be called, none is.
    async fn connect(&self, target: &Target) -> Result<TcpStream, NoAnswer> {
        let refuse = |address: Option<IpAddr>, why: &str| {
            tracing::warn!(
                host = target.host,
                port = target.port,
                ?address,
                why,
                "callback refused by the egress rules"
            );
            NoAnswer::Refused
        };
        self.egress.check_name(target).map_err(|why| refuse(None, why))?;
        let unknown = |_| NoAnswer::Unreachable(format!("host name {} does not resolve", target.host));
        let found = tokio::net::lookup_host((target.host.as_str(), target.port)).await.map_err(unknown)?;
        let found: Vec<SocketAddr> = found.collect();
        for address in found.iter().map(SocketAddr::ip) {
            self.egress.check(target, address).map_err(|why| refuse(Some(address), why))?;
        }
        let mut last = NoAnswer::Unreachable(format!("host name {} does not resolve", target.host));
        for address in found {
            match TcpStream::connect(address).await {
                Ok(stream) => {
                    // What is sent is whole: to wait for more of it only makes it late.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Err(error) => last = NoAnswer::Unreachable(format!("connection failed: {}", error.kind())),
            }
        }
        Err(last)
    }
}

/// The certificates that the system trusts; `None` if it trusts nobody.
fn tls() -> Option<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if added == 0 {
        return None;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().ok()?;
    Some(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
}

/// The connection goes when it is no more needed.
struct Connection(JoinHandle<()>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn ask<S>(stream: S, call: Call) -> Result<Heard, NoAnswer>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let broken = |error: hyper::Error| NoAnswer::Unreachable(format!("no response: {error}"));
    let mut http = http1::Builder::new();
    http.max_buf_size(BUFFER_BYTES);
    let (mut sender, connection) = http.handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let _connection = Connection(tokio::spawn(async move { drop(connection.await) }));
    let mut response = sender.send_request(request(&call)?).await.map_err(broken)?;
    let (mut body, mut whole) = (Vec::new(), true);
    while let Some(frame) = response.body_mut().frame().await {
        let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
        let room = call.most.saturating_sub(body.len());
        if let Some(large) = &call.large
            && body.len() + data.len().min(room) > SMALL_RESPONSE
        {
            large.admit().await;
        }
        body.extend_from_slice(&data[..data.len().min(room)]);
        if data.len() > room {
            whole = false;
            break;
        }
    }
    let (parts, _) = response.into_parts();
    Ok(Heard { status: parts.status, headers: parts.headers, body, whole })
}

fn request(call: &Call) -> Result<Request<Body>, NoAnswer> {
    let mut request = Request::builder()
        .method(call.method.clone())
        .uri(call.target.path.as_str())
        .header(HOST, call.target.authority.as_str())
        .header(USER_AGENT, AGENT);
    if call.method != Method::GET {
        request = request.header(CONTENT_LENGTH, call.body.len());
    }
    for (name, value) in &call.headers {
        request = request.header(name, value);
    }
    let unfit = |error: axum::http::Error| NoAnswer::Unreachable(format!("invalid request: {error}"));
    request.body(Body::from(call.body.clone())).map_err(unfit)
}

impl Heard {
    /// For how long whoever was called would have it left alone: seconds, or until a date.
    pub(crate) fn retry_after(&self, now: Timestamp) -> Option<Duration> {
        let said = self.headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
        if let Ok(seconds) = said.parse() {
            return Some(Duration::from_secs(seconds));
        }
        let date = Timestamp::try_from(httpdate::parse_http_date(said).ok()?).ok()?;
        Some(date.since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::header::LOCATION;
    use tenure::SystemClock;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use crate::callbacks::address::Network;

    fn call(url: &str) -> Call {
        let target = Target::read(url).unwrap();
        let (within, body) = (Duration::from_secs(5), Bytes::from_static(b"{}"));
        Call { method: Method::POST, target, headers: Vec::new(), body, within, most: 10, large: None }
    }

    fn caller(allowed: &[Network]) -> Caller {
        Caller::new(Egress::to(allowed), Arc::new(SystemClock))
    }

    /// Listens, and answers the first who asks with this text.
    async fn answering(text: &'static str) -> (u16, JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut asked = vec![0; 4096];
            let read = stream.read(&mut asked).await.unwrap();
            stream.write_all(text.as_bytes()).await.unwrap();
            asked.truncate(read);
            String::from_utf8(asked).unwrap()
        });
        (port, asked)
    }

    #[tokio::test]
    async fn a_name_that_leads_to_this_machine_is_refused_however_it_is_written() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        for host in [
            "localhost",
            "127.0.0.1",
            "127.1",
            "2130706433",
            "0x7f000001",
            "0177.0.0.1",
            "0x7f.1",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "0.0.0.0",
            "0",
            "[::]",
            "LOCALHOST",
        ] {
            let told = caller(&[]).call(call(&format!("http://{host}:{port}/"))).await.unwrap_err();
            assert!(matches!(told, NoAnswer::Refused | NoAnswer::Unreachable(_)), "{host}: {told:?}");
            // Clients see this. It must not tell them to which address a name leads from here.
            let words = told.to_string();
            assert!(
                !words.contains("127.0.0.1") && !words.contains("::1") && !words.contains("loopback"),
                "{words}"
            );
        }
        // Nobody has even connected.
        assert!(futures_util::FutureExt::now_or_never(listener.accept()).is_none());
    }

    #[tokio::test]
    async fn a_redirect_is_an_answer_and_a_large_one_is_cut() {
        let (port, asked) = answering(
            "HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/\r\nretry-after: 7\r\ncontent-length: 20\r\n\r\n01234567890123456789",
        )
        .await;
        let heard =
            caller(&Network::loopback()).call(call(&format!("http://127.0.0.1:{port}/a?b"))).await.unwrap();
        assert_eq!(
            (heard.status.as_u16(), heard.body.as_slice(), heard.whole),
            (302, &b"0123456789"[..], false)
        );
        assert!(heard.headers.contains_key(LOCATION));
        assert_eq!(heard.retry_after(Timestamp::EPOCH), Some(Duration::from_secs(7)));
        let asked = asked.await.unwrap();
        assert!(
            asked.starts_with("POST /a?b HTTP/1.1\r\n") && asked.contains("user-agent: tenure/"),
            "{asked}"
        );
    }

    #[test]
    fn a_date_is_understood_as_well_as_seconds() {
        let heard = |said: &str| {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, said.parse().unwrap())]);
            let heard = Heard { status: StatusCode::OK, headers, body: Vec::new(), whole: true };
            heard.retry_after("2026-01-01T00:00:00Z".parse().unwrap())
        };
        assert_eq!(heard("Thu, 01 Jan 2026 00:01:00 GMT"), Some(Duration::from_secs(60)));
        assert_eq!(heard("Wed, 01 Jan 2025 00:01:00 GMT"), Some(Duration::ZERO));
        assert_eq!(heard("soon"), None);
    }
}
