//! A server with the dashboard, and how a browser asks it.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]
#![allow(dead_code, reason = "each test uses a part of it")]

use std::net::SocketAddr;

use tenure::Tenure;
use tenure_http::{NewAccessToken, Options, Reach, Scope, Server, Tokens};
use tenure_ui::Dashboard;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub const ID: &str = "01a20712-29aa-76d9-85bf-1bfa769b451a";
pub const HOSTILE: &str = "</pre><script>alert(1)</script><img src=x onerror=alert(2)>";

pub struct Site {
    pub tenure: Tenure,
    pub at: SocketAddr,
    /// The API of the server, without a connection.
    pub api: axum::Router,
}

impl Site {
    pub async fn open(options: Options) -> Self {
        Self::on(Tenure::open("memory:").await.unwrap(), options).await
    }

    /// Over a store that is there.
    pub async fn on(tenure: Tenure, options: Options) -> Self {
        let read_only = options.read_only;
        let mut options = options;
        options.bind = SocketAddr::from(([127, 0, 0, 1], 0));
        let server = Server::bind(&tenure, options).await.unwrap();
        let pages = Dashboard::over(&tenure, server.contract()).read_only(read_only).mounted();
        let api = server.contract();
        let server = server.merge(pages);
        let at = server.address();
        tokio::spawn(server.run(std::future::pending()));
        Self { tenure, at, api }
    }

    /// Head and body of the answer.
    pub async fn ask(&self, first: &str, headers: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(self.at).await.unwrap();
        let (at, length) = (self.at, body.len());
        let request = format!(
            "{first} HTTP/1.1\r\nhost: {at}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        String::from_utf8(answer).unwrap()
    }

    pub async fn get(&self, path: &str) -> String {
        self.ask(&format!("GET {path}"), "", "").await
    }

    pub async fn enqueue(&self, kind: &str) {
        let body = serde_json::json!({"kind": kind, "args": {"text": HOSTILE}, "delay_seconds": 3600.0, "queue": "mail"});
        let json = "content-type: application/json\r\n";
        let answer = self.ask(&format!("PUT /v1/jobs/{ID}"), json, &body.to_string()).await;
        assert!(answer.starts_with("HTTP/1.1 201") || answer.starts_with("HTTP/1.1 202"), "{answer}");
    }

    /// Sends a form as a browser does that shows a page of ours.
    pub async fn act(&self, path: &str, more: &str, fields: &str) -> String {
        let headers = format!("{FORM}sec-fetch-site: same-origin\r\n{more}");
        self.ask(&format!("POST {path}"), &headers, fields).await
    }

    pub async fn token(&self) -> String {
        token(&self.get("/ui/sign-in").await)
    }

    /// Creates an access token with these scopes.
    pub async fn access_token(&self, scopes: &[Scope]) -> String {
        let new = NewAccessToken {
            name: "a person".to_owned(),
            scopes: scopes.to_vec(),
            reach: Reach::default(),
            keep: None,
            quotas: tenure_http::TokenQuotas::default(),
        };
        Tokens::of(&self.tenure).create(new).await.unwrap().1
    }

    /// The cookie of somebody who has signed in with a token that has these scopes.
    pub async fn signed_in(&self, scopes: &[Scope]) -> String {
        let text = self.access_token(scopes).await;
        let body = format!("token={}&access_token={text}", self.token().await);
        let answer = self.act("/ui/sign-in", "", &body).await;
        let (_, cookie) = answer.split_once("set-cookie: ").unwrap();
        format!("cookie: {}\r\n", cookie.split_once(';').unwrap().0)
    }
}

pub const FORM: &str = "content-type: application/x-www-form-urlencoded\r\n";

/// What stands in the forms of a page.
pub fn token(page: &str) -> String {
    let (_, rest) = page.split_once("name=\"token\" value=\"").unwrap();
    rest.split_once('"').unwrap().0.to_owned()
}
