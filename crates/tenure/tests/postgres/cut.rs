//! Connections that are cut at random: an answer "not done" is never given for a job that is stored.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tenure::{Error, JobId, OpenOptions};
use tenure_store::Fault;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::common::{Plain, postgres_options, server};

/// The state of a random sequence; nothing is cut while it is zero.
type Chance = Arc<AtomicU64>;

/// Starts a proxy that cuts a connection instead of passing on one of about thirty messages of the server.
async fn proxy(chance: Chance) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((here, _)) = listener.accept().await {
            let there = TcpStream::connect((Ipv4Addr::LOCALHOST, server().port())).await.unwrap();
            tokio::spawn(carry(here, there, Arc::clone(&chance)));
        }
    });
    port
}

async fn carry(mut here: TcpStream, mut there: TcpStream, chance: Chance) {
    let (mut from_here, mut to_here) = here.split();
    let (mut from_there, mut to_there) = there.split();
    let answers = async {
        let mut bytes = [0; 4096];
        loop {
            match from_there.read(&mut bytes).await {
                Ok(count) if count > 0 && !is_cut(&chance) => {
                    to_here.write_all(&bytes[..count]).await.unwrap_or(())
                }
                _ => return,
            }
        }
    };
    tokio::select! {
        _ = tokio::io::copy(&mut from_here, &mut to_there) => {}
        () = answers => {}
    }
}

fn is_cut(chance: &AtomicU64) -> bool {
    let step = |now: u64| now.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let drawn =
        chance.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| (now != 0).then(|| step(now)));
    drawn.is_ok_and(|drawn| (drawn >> 33) % 30 == 0)
}

#[tokio::test]
async fn a_job_whose_enqueueing_failed_for_sure_is_not_stored() {
    let chance = Chance::default();
    let port = proxy(Arc::clone(&chance)).await;
    let mut options = postgres_options();
    options.connecting = std::time::Duration::from_secs(1);
    let url = format!("postgres://postgres@127.0.0.1:{port}/postgres");
    let tenure = OpenOptions::new().untended().postgres(options).open(&url).await.unwrap();
    chance.store(41, Ordering::Relaxed);
    let (mut refused, mut unknown) = (Vec::new(), 0);
    for number in 0..300 {
        let id = JobId::new(tenure.now(), number);
        match tenure.enqueue(Plain { number: 1 }).id(id).await {
            Ok(_) => {}
            Err(Error::Fault(Fault::Unknown(_))) => unknown += 1,
            Err(Error::Fault(Fault::Unavailable(_))) => refused.push(id),
            Err(other) => panic!("{other}"),
        }
    }
    chance.store(0, Ordering::Relaxed);
    for id in refused.iter().copied() {
        assert!(matches!(tenure.jobs().get(id).await, Err(Error::NotFound(_))), "{id} is stored");
    }
    assert!(unknown > 0, "a reply to a commit was lost; {} were refused", refused.len());
}
