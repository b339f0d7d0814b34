//! How many connections come from one address: nobody takes all that there are.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::worded::message;
use crate::access::strangers::{Remote, whose};
use crate::problem::{Problem, ProblemType, whole_seconds};

/// When somebody who has too many should come again.
const AGAIN: std::time::Duration = std::time::Duration::from_secs(5);

/// The connections that are open, by where they come from.
#[derive(Debug, Clone, Default)]
pub(super) struct Crowd {
    open: Arc<Mutex<BTreeMap<Origin, usize>>>,
}

/// Origin of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Origin {
    Address(IpAddr),
    /// A user of this machine, by number.
    User(u32),
}

impl Origin {
    pub(super) fn of(remote: Remote) -> Self {
        Self::Address(whose(remote))
    }
}

/// The place of one connection, which is free again when this is dropped.
pub(super) struct Place {
    crowd: Crowd,
    origin: Origin,
}

impl Crowd {
    /// A place for one more, if so many may be open from one address.
    pub(super) fn enter(&self, origin: Origin, most: usize) -> Option<Place> {
        let mut open = self.lock();
        let count = open.entry(origin).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        drop(open);
        Some(Place { crowd: self.clone(), origin })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Origin, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.crowd.lock();
        if let Some(count) = open.get_mut(&self.origin) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.origin);
            }
        }
    }
}

/// Closes a connection of an address with too many, with an answer if the client expects plain HTTP.
pub(super) fn turn_away(mut stream: impl AsyncWrite + Send + Unpin + 'static, expects_tls: bool) {
    if expects_tls {
        return;
    }
    let detail = "too many open connections from this address";
    let retry_after = format!("retry-after: {}\r\n", whole_seconds(AGAIN));
    let problem = Problem::new(ProblemType::RateLimited, detail);
    let text = message("HTTP/1.1 429 Too Many Requests", &retry_after, &problem);
    tokio::spawn(async move {
        // It fits into what the system keeps for a connection. Whoever does not hear it has hung up.
        let _ = stream.write_all(text.as_bytes()).await;
        let _ = stream.shutdown().await;
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_free_again_once_its_connection_is_over() {
        let of = |last| Origin::of(Remote([192, 0, 2, last].into()));
        let (crowd, one, other) = (Crowd::default(), of(1), of(2));
        let first = crowd.enter(one, 2).unwrap();
        let _second = crowd.enter(one, 2).unwrap();
        assert!(crowd.enter(one, 2).is_none() && crowd.enter(other, 2).is_some());
        drop(first);
        assert!(crowd.enter(one, 2).is_some());
        assert_eq!(crowd.lock().len(), 1, "nobody is remembered who has no connection");
    }
}
