//! A server on a Unix socket, and the users at its other end.

#![allow(clippy::disallowed_methods, reason = "a real connection is waited for in real time")]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;
use tenure::{Chance, ManualClock, MemoryStore, Tenure};
use tenure_http::{
    Access, Grants, NewAccessToken, Options, Reach, Scope, ServeError, Server, SocketFile, Tokens,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

struct Served {
    folder: TempDir,
    tenure: Tenure,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<()>,
}

fn options(path: PathBuf, grants: &[&str]) -> Options {
    let mut options = Options::default();
    (options.access, options.only_socket) = (Access::Tokens, true);
    options.socket = Some(SocketFile::new(path));
    options.grants = Grants::new(grants.iter().map(|grant| grant.parse().unwrap()).collect());
    options
}

fn tenure() -> Tenure {
    Tenure::on(Arc::new(MemoryStore::new(Arc::new(ManualClock::new()))), Chance::seeded(1))
}

async fn served(grants: &[&str]) -> Served {
    let (folder, tenure) = (tempfile::tempdir().unwrap(), tenure());
    let server = Server::bind(&tenure, options(folder.path().join("s"), grants)).await.unwrap();
    let (stop, stopped) = oneshot::channel();
    let ended = tokio::spawn(server.run(async { drop(stopped.await) }));
    Served { folder, tenure, stop, ended }
}

impl Served {
    fn path(&self) -> PathBuf {
        self.folder.path().join("s")
    }

    async fn ask(&self, line: &str, more: &str) -> String {
        ask(&self.path(), line, more).await
    }
}

/// Sends one request and reads the response.
async fn ask(path: &Path, line: &str, more: &str) -> String {
    let mut stream = UnixStream::connect(path).await.unwrap();
    let (line, body) = line.split_once('\n').unwrap_or((line, ""));
    let request = format!(
        "{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n{more}\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut told = String::new();
    stream.read_to_string(&mut told).await.unwrap();
    told
}

/// The user that runs this test: the owner of a file that it has made.
fn own(folder: &Path) -> u32 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(folder).unwrap().uid()
}

const ENQUEUE: &str = "POST /v1/jobs\n{\"kind\":\"k\"}";

#[tokio::test]
async fn the_servers_own_user_is_admin_and_acts_under_its_name() {
    let served = served(&[]).await;
    let create = "POST /v1/tokens\n{\"name\":\"ci\",\"scopes\":[\"read\"]}";
    let told = served.ask(create, "").await;
    assert!(told.starts_with("HTTP/1.1 201"), "{told}");
    let who = served.ask("GET /v1/whoami", "").await;
    assert!(
        who.contains("\"principal\":{\"name\":\"unix:") && who.contains("\"scopes\":[\"admin\"]"),
        "{who}"
    );
    let name = who.split("\"name\":\"").nth(1).unwrap().split('"').next().unwrap();
    let audit = served.ask("GET /v1/audit", "").await;
    let actor = format!("\"who\":\"{name}\",\"token_id\":null,\"source\":\"http\",\"address\":null");
    assert!(audit.contains(&actor) && audit.contains("/v1/tokens"), "{audit}");
}

#[tokio::test]
async fn a_user_without_a_grant_is_refused_and_needs_a_token() {
    let folder = tempfile::tempdir().unwrap();
    let none = format!("unix-user:{}=none", own(folder.path()));
    let served = served(&[&none, "unix-user:4294967294=admin"]).await;
    assert!(served.ask("GET /livez", "").await.starts_with("HTTP/1.1 200"));
    let told = served.ask(ENQUEUE, "").await;
    assert!(told.starts_with("HTTP/1.1 401") && told.contains("has no grant"), "{told}");
    let new = NewAccessToken {
        name: "ci".to_owned(),
        scopes: vec![Scope::Enqueue],
        reach: Reach::default(),
        keep: None,
        quotas: tenure_http::TokenQuotas::default(),
    };
    let (token, text) = Tokens::of(&served.tenure).create(new).await.unwrap();
    let bearer = format!("authorization: Bearer {text}\r\n");
    assert!(served.ask(ENQUEUE, &bearer).await.starts_with("HTTP/1.1 202"));
    assert!(served.ask("GET /v1/whoami", &bearer).await.contains(&token.id));
    let audit = Tokens::of(&served.tenure);
    assert_eq!(audit.page(None, 10).await.unwrap().0.len(), 1);
}

#[tokio::test]
async fn a_grant_gives_its_scopes_and_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let reader = format!("unix-user:{}=read+enqueue", own(folder.path()));
    let served = served(&[&reader]).await;
    assert!(served.ask(ENQUEUE, "").await.starts_with("HTTP/1.1 202"));
    assert!(served.ask("GET /v1/jobs", "").await.starts_with("HTTP/1.1 200"));
    let told = served.ask("POST /v1/queues/default/pause", "").await;
    assert!(told.starts_with("HTTP/1.1 403") && told.contains("which unix:"), "{told}");
    let told = served.ask("POST /v1/tokens\n{\"name\":\"a\",\"scopes\":[\"admin\"]}", "").await;
    assert!(told.starts_with("HTTP/1.1 403"), "{told}");
    // A token counts first, even a wrong one: the client wants to be that client and no other.
    let told = served.ask(ENQUEUE, "authorization: Bearer tenure_000000000000_00\r\n").await;
    assert!(told.starts_with("HTTP/1.1 401"), "{told}");
}

#[tokio::test]
async fn a_proxy_does_not_lend_its_identity_to_browsers_and_other_clients() {
    let served = served(&[]).await;
    for header in [
        "x-forwarded-for: 192.0.2.1",
        "forwarded: for=192.0.2.1",
        "via: 1.1 proxy",
        "cookie: a=b",
        "sec-fetch-site: none",
        "sec-fetch-mode: navigate",
    ] {
        let told = served.ask("GET /v1/jobs", &format!("{header}\r\n")).await;
        assert!(told.starts_with("HTTP/1.1 401") && told.contains("bearer token"), "{header}: {told}");
    }
    let told = served.ask(ENQUEUE, "origin: http://localhost\r\n").await;
    assert!(told.starts_with("HTTP/1.1 401"), "a page: {told}");
    let told = served.ask(ENQUEUE, "origin: http://evil.example\r\n").await;
    assert!(told.starts_with("HTTP/1.1 403") && told.contains("cross-site"), "a foreign page: {told}");
}

#[tokio::test]
async fn a_socket_needs_authentication_and_ends_with_its_server() {
    let folder = tempfile::tempdir().unwrap();
    let mut open = options(folder.path().join("s"), &[]);
    open.access = Access::Open;
    assert!(matches!(Server::bind(&tenure(), open).await, Err(ServeError::OpenSocket)));
    let mut nowhere = options(folder.path().join("s"), &[]);
    nowhere.socket = None;
    assert!(matches!(Server::bind(&tenure(), nowhere).await, Err(ServeError::Nowhere)));
    let served = served(&[]).await;
    assert_eq!(std::fs::metadata(served.path()).unwrap().permissions().mode() & 0o777, 0o600);
    let taken = Server::bind(&tenure(), options(served.path(), &[])).await.unwrap_err();
    assert!(taken.to_string().contains("a running server"), "{taken}");
    let path = served.path();
    served.stop.send(()).unwrap();
    served.ended.await.unwrap();
    assert!(!path.exists());
}
