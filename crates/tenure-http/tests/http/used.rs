//! The last use of access tokens.

#![allow(clippy::disallowed_methods, reason = "a real connection is waited for in real time")]

use std::sync::Arc;
use std::time::Duration;

use tenure::{Chance, Clock, ManualClock, MeasuredStore, MemoryStore, Tenure, Timestamp};
use tenure_http::{Access, NewAccessToken, Options, Reach, Scope, Server, Tokens};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::serving::say;

const MINUTE: Duration = Duration::from_secs(60);

struct Served {
    clock: ManualClock,
    tenure: Tenure,
    address: std::net::SocketAddr,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<()>,
}

async fn served(read_only: bool) -> Served {
    let clock = ManualClock::new();
    let memory = MemoryStore::new(Arc::new(clock.clone()) as Arc<dyn Clock>);
    let tenure = Tenure::on(Arc::new(MeasuredStore::new(Arc::new(memory))), Chance::seeded(1));
    let mut options = Options::default();
    options.bind = "127.0.0.1:0".parse().unwrap();
    (options.access, options.read_only) = (Access::Tokens, read_only);
    let server = Server::bind(&tenure, options).await.unwrap();
    let (address, (stop, stopped)) = (server.address(), oneshot::channel());
    let ended = tokio::spawn(server.run(async { drop(stopped.await) }));
    Served { clock, tenure, address, stop, ended }
}

impl Served {
    async fn token(&self, scope: Scope) -> (String, String) {
        let new = NewAccessToken {
            name: "ci".to_owned(),
            scopes: vec![scope],
            reach: Reach::default(),
            keep: None,
            quotas: tenure_http::TokenQuotas::default(),
        };
        let (token, text) = Tokens::of(&self.tenure).create(new).await.unwrap();
        (token.id, text)
    }

    async fn ask(&self, line: &str, text: &str) -> String {
        let bearer = format!("authorization: Bearer {text}");
        let request = format!("{line} HTTP/1.1\r\nhost: localhost\r\n{bearer}\r\nconnection: close\r\n\r\n");
        say(self.address, &request).await
    }

    async fn last_used(&self, id: &str) -> Option<Timestamp> {
        let (tokens, _) = Tokens::of(&self.tenure).page(None, 100).await.unwrap();
        tokens.iter().find(|token| token.id == id).unwrap().last_used
    }

    /// Lets time pass until the use of a token is written.
    async fn written(&self, id: &str) -> Timestamp {
        for _ in 0..100 {
            if let Some(used) = self.last_used(id).await {
                return used;
            }
            self.clock.advance(MINUTE);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("the use of {id} was not written");
    }

    fn writes(&self) -> u64 {
        let calls = self.tenure.store().extras().measures.unwrap().calls();
        let writes = calls.iter().filter(|call| call.operation == "write_records");
        writes.map(|call| call.took.count()).sum()
    }
}

#[tokio::test]
async fn many_requests_of_a_token_are_one_write_and_no_audit_entry() {
    let served = served(false).await;
    let (id, text) = served.token(Scope::Admin).await;
    let (unused, _) = served.token(Scope::Read).await;
    served.clock.advance(Duration::from_secs(30));
    let (before, at) = (served.writes(), served.tenure.now());
    for _ in 0..20 {
        assert!(served.ask("GET /v1/queues", &text).await.starts_with("HTTP/1.1 200"));
    }
    assert!(served.ask("GET /v1/kinds", "tenure_000000000000_00").await.starts_with("HTTP/1.1 401"));
    assert_eq!(served.last_used(&id).await, None, "no request writes");
    let used = served.written(&id).await;
    assert!(used <= at && at.since(used) < MINUTE, "{used} is {at}, rounded down to a minute");
    assert_eq!(served.last_used(&unused).await, None);
    let listed = served.ask("GET /v1/tokens", &text).await;
    assert!(listed.contains(&format!("\"last_used_at\":\"{used}\"")), "{listed}");
    assert_eq!(listed.matches("last_used_at").count(), 1, "{listed}");
    let audit = served.ask("GET /v1/audit", &text).await;
    assert!(!audit.contains("/v1/queues"), "{audit}");
    // All uses are one write, and the refused client is one in the audit log.
    assert!(served.writes() - before <= 3, "{} writes", served.writes() - before);
}

#[tokio::test]
async fn a_use_that_is_written_late_brings_no_revoked_token_back() {
    let served = served(false).await;
    let (id, text) = served.token(Scope::Admin).await;
    assert!(served.ask("GET /v1/queues", &text).await.starts_with("HTTP/1.1 200"));
    assert!(Tokens::of(&served.tenure).revoke(&id).await.unwrap());
    served.stop.send(()).unwrap();
    served.ended.await.unwrap();
    assert_eq!(Tokens::of(&served.tenure).page(None, 10).await.unwrap(), (Vec::new(), None));
}

#[tokio::test]
async fn a_server_that_ends_writes_the_uses_and_a_read_only_one_writes_none() {
    for (read_only, is_written) in [(false, true), (true, false)] {
        let served = served(read_only).await;
        let (id, text) = served.token(Scope::Admin).await;
        let before = served.writes();
        assert!(served.ask("GET /v1/queues", &text).await.starts_with("HTTP/1.1 200"));
        let Served { tenure, stop, ended, clock, address } = served;
        stop.send(()).unwrap();
        ended.await.unwrap();
        let (stop, _) = oneshot::channel();
        let served = Served { tenure, stop, ended: tokio::spawn(async {}), clock, address };
        assert_eq!(served.last_used(&id).await.is_some(), is_written);
        assert_eq!(served.writes() > before, is_written);
    }
}
