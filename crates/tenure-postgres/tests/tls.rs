//! What TLS promises: who cannot be trusted as the URL asks is not talked to.

#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use own_postgres::Server;
use tenure_postgres::{Options, PostgresStore};
use tenure_store::{Fault, Store};
use tokio_postgres::NoTls;

/// Who signed the certificates of the server; they last for a hundred years, and are used nowhere else.
const MINE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tls_files/mine.pem");
/// Somebody else.
const OTHER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tls_files/other.pem");
const KEY: &str = include_str!("tls_files/server.key");
const LOCALHOST: &str = include_str!("tls_files/localhost.pem");
/// Who signed the certificate by which a program is known, that certificate and the key to it.
const CLIENTS: &str = include_str!("tls_files/clients.pem");
const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tls_files/program.pem");
const PROGRAM_KEY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tls_files/program.key");
const ELSEWHERE: &str = include_str!("tls_files/db.example.pem");

/// Lets a server show this certificate.
fn show(server: &Server, certificate: &str) {
    server.put("server.key", KEY).unwrap();
    server.put("server.crt", certificate).unwrap();
    server.set("ssl=on").unwrap();
    server.stop().unwrap();
    server.start_again().unwrap();
}

async fn open(server: &Server, asked: &str) -> Result<(), Fault> {
    let mut options = Options::default();
    options.application_name = "tls".to_owned();
    let url = format!("postgres://postgres@localhost:{}/postgres?hostaddr=127.0.0.1&{asked}", server.port());
    PostgresStore::open(&url, options, None).await?.close().await
}

/// Whether the connections of a store are encrypted.
async fn is_encrypted(server: &Server, asked: &str) -> bool {
    let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    let url = format!("postgres://postgres@localhost:{}/postgres?hostaddr=127.0.0.1&{asked}", server.port());
    let mut options = Options::default();
    options.application_name = "looked_at".to_owned();
    let store = PostgresStore::open(&url, options, None).await.unwrap();
    let look = "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
        WHERE application_name = 'looked_at'";
    let encrypted = client.query_one(look, &[]).await.unwrap().get(0);
    store.close().await.unwrap();
    encrypted
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_trusted_as_far_as_its_url_asks() {
    let server = Server::start_hasty().unwrap();
    // It has no TLS yet.
    assert!(!is_encrypted(&server, "").await);
    let refused = open(&server, "sslmode=require").await.unwrap_err();
    assert!(matches!(refused, Fault::Broken(_)), "{refused}");

    show(&server, LOCALHOST);
    let trusting = |mode: &str, roots: &str| format!("sslmode={mode}&sslrootcert={roots}");
    assert!(!is_encrypted(&server, "sslmode=disable").await);
    for asked in ["", "sslmode=prefer", "sslmode=require"] {
        assert!(is_encrypted(&server, asked).await, "{asked}");
    }
    for mode in ["require", "verify-ca", "verify-full"] {
        open(&server, &trusting(mode, MINE)).await.unwrap();
        let refused = open(&server, &trusting(mode, OTHER)).await.unwrap_err();
        assert!(matches!(refused, Fault::Broken(_)), "{mode}: {refused}");
    }
    for mode in ["verify-ca", "verify-full"] {
        let refused = open(&server, &format!("sslmode={mode}")).await.unwrap_err();
        assert!(matches!(refused, Fault::Broken(_)), "the system does not know it: {refused}");
    }
    let missing = open(&server, &trusting("verify-ca", "/no/such/file")).await.unwrap_err();
    assert!(missing.to_string().contains("/no/such/file"), "{missing}");

    // The certificate of another host.
    show(&server, ELSEWHERE);
    open(&server, &trusting("verify-ca", MINE)).await.unwrap();
    let refused = open(&server, &trusting("verify-full", MINE)).await.unwrap_err();
    assert!(matches!(refused, Fault::Broken(_)), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_asks_for_a_certificate_is_shown_that_of_the_url() {
    let server = Server::start_hasty().unwrap();
    let rules =
        "local all all trust\nhostnossl all all all reject\nhostssl all all all trust clientcert=verify-ca\n";
    server.put("clients.pem", CLIENTS).unwrap();
    server.put("pg_hba.conf", rules).unwrap();
    server.set("ssl_ca_file=clients.pem").unwrap();
    show(&server, LOCALHOST);
    let shown = |certificate: &str, key: &str| format!("sslmode=require&sslcert={certificate}&sslkey={key}");
    open(&server, &shown(PROGRAM, PROGRAM_KEY)).await.unwrap();
    for asked in ["sslmode=disable", "sslmode=require"] {
        let refused = open(&server, asked).await.unwrap_err();
        assert!(matches!(refused, Fault::Broken(_)), "{asked}: {refused}");
    }
    for (certificate, key, told) in [
        ("/no/such/file", PROGRAM_KEY, "sslcert \"/no/such/file\""),
        (PROGRAM, "/no/such/key", "sslkey \"/no/such/key\""),
        (PROGRAM, MINE, "sslkey"),
    ] {
        let refused = open(&server, &shown(certificate, key)).await.unwrap_err();
        assert!(matches!(&refused, Fault::Broken(text) if text.contains(told)), "{refused}");
    }
}
