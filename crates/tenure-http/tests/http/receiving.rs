//! Servers that tell, and somebody who is told.

#![allow(clippy::disallowed_methods, reason = "a real connection is waited for in real time")]

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tenure::{Chance, Keyring, ManualClock, MemoryStore, SealedStore, Tenure};
use tenure_http::{Egress, Network, Options, Server, deliveries};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

/// A store on a clock that is moved by hand.
pub struct Place {
    pub clock: ManualClock,
    pub tenure: Tenure,
}

/// A server of it, and what delivers for it.
pub struct Serving {
    pub address: SocketAddr,
    stops: Vec<oneshot::Sender<()>>,
}

/// Somebody who is told, and answers as he was asked to.
#[derive(Clone, Default)]
pub struct Receiver {
    inner: Arc<Mutex<Received>>,
    pub url: String,
}

#[derive(Default)]
struct Received {
    got: Vec<Got>,
    answers: VecDeque<Answer>,
}

/// What he is to answer: a status, headers and a body.
type Answer = (u16, Vec<(&'static str, String)>, String);

/// What he was told.
#[derive(Debug, Clone)]
pub struct Got {
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Got {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).unwrap_or_else(|| panic!("no {name}: {self:?}")).to_str().unwrap()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Which of the signatures is that of this secret.
    pub fn signed_by(&self, secret: &str) -> Option<usize> {
        let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
        let said = format!("{}.{}.", self.header("webhook-id"), self.header("webhook-timestamp"));
        let expected = hmac(&key, &[said.as_bytes(), &self.body].concat());
        let signatures = self.header("webhook-signature").split(' ');
        let mut read =
            signatures.map(|signature| STANDARD.decode(signature.strip_prefix("v1,").unwrap()).unwrap());
        read.position(|signature| signature == expected)
    }
}

/// The digest by its definition (RFC 2104), beside the one that is tested.
fn hmac(key: &[u8], text: &[u8]) -> Vec<u8> {
    assert!(key.len() <= 64);
    let padded =
        |with: u8| -> Vec<u8> { (0..64).map(|at| key.get(at).copied().unwrap_or(0) ^ with).collect() };
    let inner = Sha256::digest([padded(0x36), text.to_vec()].concat());
    Sha256::digest([padded(0x5c), inner.to_vec()].concat()).to_vec()
}

impl Receiver {
    pub async fn new() -> Self {
        async fn told(
            State(receiver): State<Receiver>,
            uri: Uri,
            headers: HeaderMap,
            body: Bytes,
        ) -> Response {
            let mut inner = receiver.inner.lock().unwrap();
            inner.got.push(Got { path: uri.path().to_owned(), headers, body });
            let (status, headers, text) =
                inner.answers.pop_front().unwrap_or((204, Vec::new(), String::new()));
            let mut response = (StatusCode::from_u16(status).unwrap(), Body::from(text)).into_response();
            for (name, value) in headers {
                response.headers_mut().insert(name, value.parse().unwrap());
            }
            response
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let receiver = Self { url, ..Self::default() };
        let app = Router::new().fallback(told).with_state(receiver.clone());
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        receiver
    }

    pub fn answer(&self, status: u16, headers: &[(&'static str, &str)], text: &str) {
        let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        self.inner.lock().unwrap().answers.push_back((status, headers, text.to_owned()));
    }

    pub fn got(&self) -> Vec<Got> {
        self.inner.lock().unwrap().got.clone()
    }

    /// What he was told, once it is so much, and no more.
    pub async fn has(&self, count: usize) -> Vec<Got> {
        until(|| async { self.got().len() >= count }).await;
        settled().await;
        let got = self.got();
        assert_eq!(got.len(), count, "{got:?}");
        got
    }
}

/// Ends once it is so.
pub async fn until<Fut: Future<Output = bool>>(is_so: impl Fn() -> Fut) {
    for _ in 0..12_000 {
        if is_so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it never came to that");
}

/// Gives what is under way time to come to its end.
pub async fn settled() {
    tokio::time::sleep(Duration::from_millis(60)).await;
}

impl Place {
    pub fn new() -> Self {
        let clock = ManualClock::new();
        let tenure = Tenure::on(Arc::new(MemoryStore::new(Arc::new(clock.clone()))), Chance::seeded(7));
        Self { clock, tenure }
    }

    /// A store that is encrypted with these keys.
    pub fn encrypted(keys: &str) -> Self {
        let clock = ManualClock::new();
        let memory = Arc::new(MemoryStore::new(Arc::new(clock.clone())));
        let store = SealedStore::new(memory, Keyring::parse(keys).unwrap());
        Self { clock, tenure: Tenure::on(Arc::new(store), Chance::seeded(7)) }
    }

    /// A server that may call this machine, with what delivers.
    pub async fn serve(&self) -> Serving {
        let mut serving = self.serve_only(&Network::loopback()).await;
        serving.stops.push(self.deliver(&Network::loopback()));
        serving
    }

    pub async fn serve_only(&self, allowed: &[Network]) -> Serving {
        self.serve_so(allowed, Options::default()).await
    }

    /// The same with more to say of the server.
    pub async fn serve_so(&self, allowed: &[Network], mut options: Options) -> Serving {
        options.bind = "127.0.0.1:0".parse().unwrap();
        options.egress = Egress::to(allowed);
        let server = Server::bind(&self.tenure, options).await.unwrap();
        let (address, (stop, stopped)) = (server.address(), oneshot::channel::<()>());
        tokio::spawn(server.run(async { drop(stopped.await) }));
        Serving { address, stops: vec![stop] }
    }

    /// What delivers, until the answer is dropped.
    pub fn deliver(&self, allowed: &[Network]) -> oneshot::Sender<()> {
        let (stop, stopped) = oneshot::channel::<()>();
        let worker = deliveries(&self.tenure, allowed).keeper_on_runtime();
        tokio::spawn(async move { worker.run(stopped).await.unwrap() });
        stop
    }

    /// Moves the clock, step by step, as it would move by itself.
    pub async fn pass(&self, span: Duration) {
        let step = (span / 20).max(Duration::from_millis(1));
        for _ in 0..20 {
            self.clock.advance(step);
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    }

    /// A job that has ended.
    pub async fn ended(&self, kind: &str) -> String {
        let draft = tenure::Draft::raw(kind, &Value::Null).tag("invoice");
        let id = self.tenure.enqueue_draft(draft).await.unwrap().id();
        self.tenure.jobs().cancel(id, Duration::from_secs(1), "not wanted").await.unwrap();
        id.to_string()
    }
}

impl Serving {
    /// Asks, and reads the answer: its status and its JSON, if it is that.
    pub async fn ask(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let (status, _, text) = self.ask_with(method, path, &[], body).await;
        (status, serde_json::from_str(&text).unwrap_or(Value::Null))
    }

    pub async fn ask_with(
        &self,
        method: &str,
        path: &str,
        headers: &[&str],
        body: &str,
    ) -> (u16, String, String) {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let mut said = format!("{method} {path} HTTP/1.0\r\nhost: localhost\r\n");
        headers.iter().for_each(|header| said.push_str(&format!("{header}\r\n")));
        if !body.is_empty() {
            said.push_str(&format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len()));
        }
        said.push_str(&format!("\r\n{body}"));
        stream.write_all(said.as_bytes()).await.unwrap();
        let mut told = Vec::new();
        stream.read_to_end(&mut told).await.unwrap();
        let told = String::from_utf8(told).unwrap();
        let (head, text) = told.split_once("\r\n\r\n").unwrap();
        (head[9..12].parse().unwrap(), head.to_owned(), text.to_owned())
    }

    /// A webhook: its id and its secret.
    pub async fn webhook(&self, url: &str, types: &[&str]) -> (String, String) {
        let body = serde_json::json!({ "url": url, "types": types }).to_string();
        let (status, told) = self.ask("POST", "/v1/webhooks", &body).await;
        assert_eq!(status, 201, "{told}");
        (told["id"].as_str().unwrap().to_owned(), told["secret"].as_str().unwrap().to_owned())
    }
}
