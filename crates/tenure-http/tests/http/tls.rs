//! A server that speaks TLS, and clients with certificates.
//!
//! `tests/certificates` was made once with openssl: P-256 keys, and `openssl ca -startdate 20000101000000Z -enddate
//! 21200101000000Z` with a CA whose key was then deleted. `expired.pem` ended in 2001, and `stranger.pem` is by another CA.
//! `worker.pem` is by `names-ca.pem`: it has a URI and a DNS name, and the common name `spiffe://corp/admin`.

#![allow(clippy::disallowed_methods, reason = "a real connection is waited for in real time")]

use std::io::Result;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tenure::{ManualClock, Tenure};
use tenure_http::{Access, Grants, NewAccessToken, Options, Reach, Scope, Server, TlsFiles, Tokens};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::serving::{Served, say, served_on};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/certificates").join(name)
}

fn certificates(name: &str) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_file_iter(file(name)).unwrap().map(|found| found.unwrap()).collect()
}

/// Connects to a server, and shows the certificate of this name.
async fn connect(address: SocketAddr, identity: Option<&str>) -> Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(certificates("ca.pem").remove(0)).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots);
    let config = match identity {
        None => config.with_no_client_auth(),
        Some(name) => {
            let key = PrivateKeyDer::from_pem_file(file(&format!("{name}.key"))).unwrap();
            config.with_client_auth_cert(certificates(&format!("{name}.pem")), key).unwrap()
        }
    };
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

/// Sends one request and reads the response.
async fn ask(address: SocketAddr, identity: Option<&str>, line: &str, more: &str) -> Result<String> {
    let mut stream = connect(address, identity).await?;
    let (line, body) = line.split_once('\n').unwrap_or((line, ""));
    let request = format!(
        "{line} HTTP/1.1\r\nhost: tenure.test\r\nconnection: close\r\ncontent-type: application/json\r\n{more}\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await?;
    let mut told = Vec::new();
    stream.read_to_end(&mut told).await?;
    Ok(String::from_utf8(told).unwrap())
}

fn options(files: TlsFiles) -> Options {
    let mut options = Options::default();
    (options.tls, options.hosts) = (Some(files), vec!["tenure.test".to_owned()]);
    options
}

fn usual() -> TlsFiles {
    TlsFiles::new(file("server.pem"), file("server.key"))
}

async fn served(clock: &ManualClock, options: Options) -> Served {
    served_on(Arc::new(clock.clone()), options).await
}

#[tokio::test]
async fn requests_over_tls_are_answered_with_https_urls() {
    let served = served(&ManualClock::new(), options(usual())).await;
    let told = ask(served.address, None, "POST /v1/jobs\n{\"kind\":\"k\"}", "").await.unwrap().to_lowercase();
    assert!(told.starts_with("http/1.1 202"), "{told}");
    assert!(told.contains("\r\nlocation: https://tenure.test/queue/"), "{told}");
    assert!(told.contains("\r\nstrict-transport-security: max-age=31536000\r\n"), "{told}");
    let mut stream = connect(served.address, None).await.unwrap();
    stream.write_all(b"GET /livez HTTP/1.1\r\nhost: localhost:1\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut told = String::new();
    stream.read_to_string(&mut told).await.unwrap();
    assert!(told.starts_with("HTTP/1.1 200") && !told.contains("strict-transport"), "other ports: {told}");
}

#[tokio::test]
async fn plain_http_on_a_tls_port_is_told_so() {
    let served = served(&ManualClock::new(), options(usual())).await;
    let told = say(served.address, "GET /livez HTTP/1.1\r\nhost: tenure.test\r\n\r\n").await;
    assert!(told.starts_with("HTTP/1.1 400") && told.contains("this port speaks TLS"), "{told}");
}

#[tokio::test]
async fn clients_that_finish_no_handshake_are_let_go_and_hold_up_no_other() {
    let clock = ManualClock::new();
    let served = served(&clock, options(usual())).await;
    let mut silent = Vec::new();
    for said in [&b""[..], &[0x16], &[0x16, 3, 1, 0, 200, 1]] {
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        stream.write_all(said).await.unwrap();
        silent.push(stream);
    }
    let told = ask(served.address, None, "GET /livez", "").await.unwrap();
    assert!(told.starts_with("HTTP/1.1 200"), "{told}");
    for mut stream in silent {
        let mut byte = [0];
        let mut read = async || tokio::time::timeout(Duration::from_millis(20), stream.read(&mut byte)).await;
        let mut is_closed = false;
        for _ in 0..50 {
            clock.advance(Duration::from_secs(10));
            is_closed = read().await.is_ok();
            if is_closed {
                break;
            }
        }
        assert!(is_closed, "it holds its connection for ever");
    }
}

/// Copies these files into a folder.
fn copied(folder: &Path, name: &str) {
    std::fs::copy(file(&format!("{name}.pem")), folder.join("tls.pem")).unwrap();
    std::fs::copy(file(&format!("{name}.key")), folder.join("tls.key")).unwrap();
}

/// Waits until a server shows this certificate, and returns the last one that it showed.
async fn shown(clock: &ManualClock, address: SocketAddr, wanted: &str) -> CertificateDer<'static> {
    let wanted = certificates(wanted).remove(0);
    let mut shown = wanted.clone();
    for _ in 0..50 {
        clock.advance(Duration::from_secs(10));
        let stream = connect(address, None).await.unwrap();
        shown = stream.get_ref().1.peer_certificates().unwrap()[0].clone().into_owned();
        if shown == wanted {
            break;
        }
    }
    shown
}

#[tokio::test]
async fn a_renewed_certificate_is_used_without_a_restart_and_a_broken_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    copied(folder.path(), "server");
    let clock = ManualClock::new();
    let files = TlsFiles::new(folder.path().join("tls.pem"), folder.path().join("tls.key"));
    let served = served(&clock, options(files)).await;
    let (old, new) = (certificates("server.pem").remove(0), certificates("renewed.pem").remove(0));
    assert_eq!(shown(&clock, served.address, "server.pem").await, old);
    // The key of another certificate.
    std::fs::copy(file("renewed.key"), folder.path().join("tls.key")).unwrap();
    for _ in 0..3 {
        assert_eq!(shown(&clock, served.address, "server.pem").await, old);
    }
    copied(folder.path(), "renewed");
    assert_eq!(shown(&clock, served.address, "renewed.pem").await, new);
}

#[tokio::test]
async fn a_server_with_files_that_it_cannot_use_does_not_start() {
    let tenure = Tenure::open("memory:").await.unwrap();
    let refused = async |files: TlsFiles| {
        let mut options = options(files);
        options.bind = "127.0.0.1:0".parse().unwrap();
        Server::bind(&tenure, options).await.unwrap_err().to_string()
    };
    let (pem, key) = (file("server.pem"), file("server.key"));
    let missing = refused(TlsFiles::new(file("none.pem"), &key)).await;
    assert!(missing.contains("none.pem") && missing.contains("No such file"), "{missing}");
    let mixed = refused(TlsFiles::new(&pem, file("renewed.key"))).await;
    assert!(mixed.contains("server.pem") && mixed.contains("renewed.key"), "{mixed}");
    let swapped = refused(TlsFiles::new(&key, &pem)).await;
    assert!(swapped.contains("server.key") && swapped.contains("no certificate"), "{swapped}");
    let keyless = refused(TlsFiles::new(&pem, &pem)).await;
    assert!(keyless.contains("server.pem") && keyless.contains("no private key"), "{keyless}");
    let mut files = usual();
    files.client_ca = Some(key);
    let no_ca = refused(files).await;
    assert!(no_ca.contains("server.key") && no_ca.contains("no certificate"), "{no_ca}");
}

/// A server with tokens that asks for client certificates.
async fn guarded(clock: &ManualClock, is_optional: bool) -> Served {
    let mut files = usual();
    (files.client_ca, files.is_client_certificate_optional) = (Some(file("ca.pem")), is_optional);
    guarded_by(clock, files, &[]).await
}

/// Starts a server with these files and grants.
async fn guarded_by(clock: &ManualClock, files: TlsFiles, grants: &[&str]) -> Served {
    let mut options = options(files);
    options.access = Access::Tokens;
    options.grants = Grants::new(grants.iter().map(|grant| grant.parse().unwrap()).collect());
    served(clock, options).await
}

fn new_token(scopes: &[Scope]) -> NewAccessToken {
    NewAccessToken {
        name: "billing".to_owned(),
        scopes: scopes.to_vec(),
        reach: Reach::default(),
        keep: None,
        quotas: tenure_http::TokenQuotas::default(),
    }
}

fn fingerprint(name: &str) -> String {
    use sha2::Digest;
    let digest = sha2::Sha256::digest(&certificates(&format!("{name}.pem"))[0]);
    digest.iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(":")
}

#[tokio::test]
async fn only_clients_with_a_valid_certificate_of_the_ca_are_let_in() {
    let clock = ManualClock::new();
    let required = guarded(&clock, false).await;
    for (identity, is_known) in
        [(None, false), (Some("stranger"), false), (Some("expired"), false), (Some("billing"), true)]
    {
        let told = ask(required.address, identity, "GET /livez", "").await;
        assert_eq!(told.is_ok_and(|told| told.starts_with("HTTP/1.1 200")), is_known, "{identity:?}");
    }
    let optional = guarded(&clock, true).await;
    assert!(ask(optional.address, None, "GET /livez", "").await.unwrap().starts_with("HTTP/1.1 200"));
    assert!(ask(optional.address, Some("stranger"), "GET /livez", "").await.is_err());
    // By the server's clock, the certificate has expired now.
    clock.step_to("2120-01-02T00:00:00Z".parse().unwrap());
    assert!(ask(required.address, Some("billing"), "GET /livez", "").await.is_err());
}

#[tokio::test]
async fn a_certificate_acts_with_the_scopes_of_its_token_until_that_is_revoked() {
    let clock = ManualClock::new();
    let served = guarded(&clock, true).await;
    let tokens = Tokens::of(&served.tenure);
    let bound = tokens.bind(new_token(&[Scope::Enqueue]), &fingerprint("billing")).await.unwrap();
    let ask = async |identity: Option<&str>, line: &str, more: &str| {
        ask(served.address, identity, line, more).await.unwrap()
    };
    let enqueue = "POST /v1/jobs\n{\"kind\":\"k\"}";
    let told = ask(Some("billing"), enqueue, "").await;
    assert!(told.starts_with("HTTP/1.1 202"), "{told}");
    let id = told.split("\"id\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let mine = ask(Some("billing"), &format!("GET /v1/jobs/{id}"), "").await;
    assert!(mine.starts_with("HTTP/1.1 200"), "it owns the job: {mine}");
    let who = ask(Some("billing"), "GET /v1/whoami", "").await;
    assert!(who.contains(&bound.id) && who.contains("\"name\":\"billing\""), "{who}");
    let denied = ask(Some("billing"), "GET /v1/queues", "").await;
    assert!(denied.starts_with("HTTP/1.1 403"), "{denied}");
    for (identity, why) in [(None, "missing"), (Some("unbound"), "no access token is bound")] {
        let told = ask(identity, enqueue, "").await;
        assert!(told.starts_with("HTTP/1.1 401") && told.contains(why), "{identity:?}: {told}");
    }
    // The fingerprint is public: it must be no secret of the token.
    let forged =
        format!("authorization: Bearer tenure_{}_{}\r\n", bound.id, bound.certificate_sha256.unwrap());
    assert!(ask(None, enqueue, &forged).await.starts_with("HTTP/1.1 401"));
    let (reader, text) = tokens.create(new_token(&[Scope::Read])).await.unwrap();
    let bearer = format!("authorization: Bearer {text}\r\n");
    let told = ask(Some("billing"), "GET /v1/whoami", &bearer).await;
    assert!(told.contains(&reader.id), "a bearer token counts first: {told}");
    assert!(tokens.revoke(&bound.id).await.unwrap());
    clock.advance(Duration::from_secs(5));
    let told = ask(Some("billing"), enqueue, "").await;
    assert!(told.starts_with("HTTP/1.1 401"), "{told}");
}

/// Clients with certificates send no `Authorization` header, by which their idempotency keys could be told apart.
#[tokio::test]
async fn clients_with_certificates_share_no_idempotency_keys() {
    let served = guarded(&ManualClock::new(), true).await;
    let tokens = Tokens::of(&served.tenure);
    tokens.bind(new_token(&[Scope::Enqueue]), &fingerprint("billing")).await.unwrap();
    let other = NewAccessToken { name: "shipping".to_owned(), ..new_token(&[Scope::Enqueue]) };
    tokens.bind(other, &fingerprint("unbound")).await.unwrap();
    let send = async |identity: &str, kind: &str| {
        let line = format!("POST /v1/jobs\n{{\"kind\":\"{kind}\"}}");
        ask(served.address, Some(identity), &line, "idempotency-key: order-7\r\n").await.unwrap()
    };
    let id = |told: &str| told.split("\"id\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let first = send("billing", "pay").await;
    let swallowed = send("unbound", "pay").await;
    assert!(swallowed.starts_with("HTTP/1.1 202") && id(&swallowed) != id(&first), "{swallowed}");
    assert_eq!(id(&send("billing", "pay").await), id(&first));
    assert!(send("billing", "bill").await.starts_with("HTTP/1.1 422"));
}

#[tokio::test]
async fn a_certificate_has_one_token_and_its_actions_are_audited_under_the_name() {
    let served = guarded(&ManualClock::new(), false).await;
    let tokens = Tokens::of(&served.tenure);
    let bound = tokens.bind(new_token(&[Scope::Admin]), &fingerprint("billing")).await.unwrap();
    let again = tokens.bind(new_token(&[Scope::Read]), &fingerprint("billing")).await.unwrap_err();
    assert!(again.to_string().contains(&bound.id), "{again}");
    for bad in ["", "ab", &"g".repeat(64)] {
        let told = tokens.bind(new_token(&[Scope::Read]), bad).await.unwrap_err().to_string();
        assert!(told.contains("certificate_sha256"), "{told}");
    }
    let sha256 = fingerprint("unbound");
    let create = format!(
        "POST /v1/tokens\n{{\"name\":\"b\",\"scopes\":[\"read\"],\"certificate_sha256\":\"{sha256}\"}}"
    );
    let told = ask(served.address, Some("billing"), &create, "").await.unwrap();
    assert!(told.starts_with("HTTP/1.1 201") && told.contains("\"token\":null"), "{told}");
    let plain = sha256.replace(':', "").to_lowercase();
    assert!(told.contains(&format!("\"certificate_sha256\":\"{plain}\"")), "{told}");
    let rotated = tokens.rotate(&bound.id, Duration::ZERO).await.unwrap_err().to_string();
    assert!(rotated.contains("bound to a certificate"), "{rotated}");
    let audit = ask(served.address, Some("billing"), "GET /v1/audit", "").await.unwrap();
    let actor = format!("\"who\":\"billing\",\"token_id\":\"{}\"", bound.id);
    assert!(audit.contains(&actor) && audit.contains("/v1/tokens"), "{audit}");
    assert!(
        ask(served.address, Some("unbound"), "GET /v1/queues", "").await.unwrap().starts_with("HTTP/1.1 200")
    );
}

/// A server that trusts both CAs, with these grants.
async fn granting(folder: &Path, clock: &ManualClock, grants: &[&str]) -> Served {
    let both = ["ca.pem", "names-ca.pem"].map(|name| std::fs::read_to_string(file(name)).unwrap()).concat();
    let mut files = usual();
    files.client_ca = Some(folder.join("both.pem"));
    std::fs::write(folder.join("both.pem"), both).unwrap();
    files.is_client_certificate_optional = true;
    guarded_by(clock, files, grants).await
}

#[tokio::test]
async fn a_grant_for_a_name_serves_certificates_that_have_it_in_the_right_place() {
    let folder = tempfile::tempdir().unwrap();
    let enqueue = "POST /v1/jobs\n{\"kind\":\"k\"}";
    let jobs = "GET /v1/jobs";
    for (grant, identity, line, status, why) in [
        ("cert:spiffe://corp/worker/*=enqueue", "worker", enqueue, "202", "its URI"),
        ("cert:spiffe://corp/worker/*=enqueue", "worker", jobs, "403", "another scope"),
        ("cert:worker-1.corp.example=read", "worker", jobs, "200", "its DNS name"),
        ("cert:CN=spiffe://corp/admin=read", "worker", jobs, "200", "its common name"),
        ("cert:spiffe://corp/admin=read", "worker", jobs, "401", "a common name is no URI"),
        ("cert:CN=spiffe://corp/worker/*=read", "worker", jobs, "401", "a URI is no common name"),
        ("cert:worker/*=read", "worker", jobs, "401", "in the middle of a URI"),
        ("cert:corp.example=read", "worker", jobs, "401", "the end of a DNS name"),
        ("cert:spiffe://corp/worker=read", "worker", jobs, "401", "the beginning without a star"),
        ("cert:billing=read", "billing", jobs, "200", "another CA's"),
        ("group:billing=read", "billing", jobs, "401", "a group"),
        ("unix-user:billing=read", "billing", jobs, "401", "a user"),
    ] {
        let served = granting(folder.path(), &ManualClock::new(), &[grant]).await;
        let told = ask(served.address, Some(identity), line, "").await.unwrap();
        assert!(told.starts_with(&format!("HTTP/1.1 {status}")), "{grant}: {why}: {told}");
    }
    let served = granting(folder.path(), &ManualClock::new(), &["cert:*=admin"]).await;
    let spoofed = ask(served.address, Some("stranger"), jobs, "").await;
    assert!(spoofed.is_err(), "a certificate for `billing` by a CA that is not trusted: {spoofed:?}");
    let told = ask(served.address, None, jobs, "").await.unwrap();
    assert!(told.starts_with("HTTP/1.1 401"), "no certificate: {told}");
}

#[tokio::test]
async fn a_certificate_with_a_token_has_the_scopes_of_the_token_and_others_are_audited_by_name() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), ManualClock::new());
    let served = granting(folder.path(), &clock, &["cert:*=admin"]).await;
    let tokens = Tokens::of(&served.tenure);
    let bound = tokens.bind(new_token(&[Scope::Read]), &fingerprint("worker")).await.unwrap();
    served.tenure.queues().pause("default").await.unwrap();
    let pause = "POST /v1/queues/default/resume\n{}";
    let told = ask(served.address, Some("worker"), pause, "").await.unwrap();
    assert!(told.starts_with("HTTP/1.1 403") && told.contains(&bound.id), "{told}");
    let told = ask(served.address, Some("billing"), pause, "").await.unwrap();
    assert!(told.starts_with("HTTP/1.1 2"), "{told}");
    let audit = ask(served.address, Some("billing"), "GET /v1/audit", "").await.unwrap();
    assert!(audit.contains("\"who\":\"cert:billing\",\"token_id\":null"), "{audit}");
}

/// Sends a request over an open connection, and returns the beginning of the response; `None` if the connection is closed.
async fn again(stream: &mut TlsStream<TcpStream>, line: &str) -> Option<String> {
    let request = format!("{line} HTTP/1.1\r\nhost: tenure.test\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut told = vec![0; 4096];
    let read = tokio::time::timeout(Duration::from_secs(60), stream.read(&mut told)).await.unwrap().ok()?;
    (read > 0).then(|| String::from_utf8_lossy(&told[..read]).into_owned())
}

/// Moves the clock to the next checks of certificates, and lets the server look.
async fn checked(clock: &ManualClock) {
    for _ in 0..2 {
        clock.advance(Duration::from_secs(10));
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test]
async fn an_open_connection_ends_with_its_certificate() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), ManualClock::new());
    let served = granting(folder.path(), &clock, &["cert:*=admin"]).await;
    let mut stream = connect(served.address, Some("worker")).await.unwrap();
    let tokens = "HEAD /v1/tokens";
    assert!(again(&mut stream, tokens).await.unwrap().starts_with("HTTP/1.1 200"));
    checked(&clock).await;
    assert!(again(&mut stream, tokens).await.unwrap().starts_with("HTTP/1.1 200"), "it is still valid");
    clock.step_to("2120-01-02T00:00:00Z".parse().unwrap());
    checked(&clock).await;
    assert_eq!(again(&mut stream, tokens).await, None, "it has expired");
}

#[tokio::test]
async fn an_open_connection_ends_when_the_ca_of_its_client_is_removed() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), ManualClock::new());
    let served = granting(folder.path(), &clock, &["cert:*=admin"]).await;
    let mut stream = connect(served.address, Some("worker")).await.unwrap();
    let mut other = connect(served.address, Some("billing")).await.unwrap();
    assert!(again(&mut stream, "HEAD /v1/tokens").await.unwrap().starts_with("HTTP/1.1 200"));
    assert!(again(&mut other, "HEAD /v1/tokens").await.unwrap().starts_with("HTTP/1.1 200"));
    std::fs::copy(file("ca.pem"), folder.path().join("both.pem")).unwrap();
    checked(&clock).await;
    checked(&clock).await;
    assert_eq!(again(&mut stream, "HEAD /v1/tokens").await, None);
    assert!(
        again(&mut other, "HEAD /v1/tokens").await.unwrap().starts_with("HTTP/1.1 200"),
        "of the other CA"
    );
}
