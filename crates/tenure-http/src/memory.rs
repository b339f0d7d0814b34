//! Memory for the bodies of requests and responses in transit: a bound for all clients together, and a share for each.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use axum::http::Extensions;

use crate::access::{Access, Who};
use crate::audit::Origin;
use crate::problem::{Problem, ProblemType};
use crate::quota::Exceeded;

/// Memory for the request bodies of all clients, and as much for their responses, unless the operator sets another number.
pub(crate) const TRANSFER_MIB: usize = 256;
/// Part of the memory that one client can hold: one in ten.
const SHARES: usize = 10;
/// Least share of a client. The largest request body and the largest page fit into it.
const LEAST_SHARE: usize = 16 * MIB;
const MIB: usize = 1024 * 1024;
/// Bytes of each body that do not count: a connection needs as much without a body. So small requests always succeed.
pub(crate) const FREE_BYTES: usize = 8 * 1024;
/// Setting that raises the bounds.
const SETTING: &str = "--transfer-memory-mib";
/// Delay after which a refused client should retry.
const AGAIN: Duration = Duration::from_secs(5);

/// A client, as the bounds of memory count it.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Client {
    /// The program itself, and every client of a server without authentication: there is no share.
    #[default]
    Trusted,
    /// An access token or a principal, by the ID that quotas use.
    Named(Arc<str>),
    /// A client that has not proved its identity.
    Stranger(Origin),
}

impl Client {
    pub(crate) fn of(access: Access, who: &Who, extensions: &Extensions) -> Self {
        match (access, who.counted_by()) {
            (Access::Open, _) => Self::Trusted,
            (Access::Tokens, Some(id)) => Self::Named(id.into()),
            (Access::Tokens, None) => Self::Stranger(Origin::of(extensions)),
        }
    }
}

/// Request extension for routes outside the API. The API routes that serve a part of the request record its client here.
#[derive(Debug, Clone, Default)]
pub struct ClientSlot(Arc<OnceLock<Client>>);

impl ClientSlot {
    /// Notes a client. A client that has proved its identity once stays the client of the request.
    pub(crate) fn note(&self, client: &Client) {
        if matches!(client, Client::Named(_)) {
            let _ = self.0.set(client.clone());
        }
    }

    pub(crate) fn client(&self) -> Option<Client> {
        self.0.get().cloned()
    }
}

/// Memory for one direction of transfer, shared by all routes of a server.
#[derive(Debug, Clone)]
pub(crate) struct Memory(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    direction: Direction,
    /// Bytes of all clients together.
    all: usize,
    /// Bytes of one client.
    share: usize,
    used: Mutex<Used>,
}

#[derive(Debug, Clone, Copy)]
enum Direction {
    Requests,
    Responses,
}

#[derive(Debug, Default)]
struct Used {
    all: usize,
    of: BTreeMap<Client, usize>,
}

/// Memory in both directions.
#[derive(Debug, Clone)]
pub(crate) struct Transfer {
    pub requests: Memory,
    pub responses: Memory,
}

impl Transfer {
    /// Creates the memory of a server: so many MiB in each direction.
    pub(crate) fn of(mib: usize) -> Self {
        let memory = |direction| Memory::of(direction, mib.saturating_mul(MIB));
        Self { requests: memory(Direction::Requests), responses: memory(Direction::Responses) }
    }
}

impl Default for Transfer {
    fn default() -> Self {
        Self::of(TRANSFER_MIB)
    }
}

/// The reason why a body gets no memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lack {
    direction: Direction,
    limit: usize,
    of_client: bool,
}

impl From<Lack> for Problem {
    fn from(Lack { direction, limit, of_client }: Lack) -> Self {
        let (quota, about, doing) = match direction {
            Direction::Requests => (
                "request_bytes_per_client",
                "this client is already sending request bodies of the maximum size in bytes",
                "reading",
            ),
            Direction::Responses => (
                "response_bytes_per_client",
                "this client has not read responses of the maximum size in bytes",
                "sending",
            ),
        };
        if of_client {
            return Exceeded { quota, about, limit, setting: Some(SETTING), retry_after: Some(AGAIN) }.into();
        }
        let bodies = if matches!(direction, Direction::Requests) { "request bodies" } else { "responses" };
        let detail = format!(
            "the server is already {doing} {} MiB of {bodies}, the limit set by {SETTING}; retry later",
            limit / MIB
        );
        Self::new(ProblemType::Overloaded, detail).with("limit", limit).retry_after(AGAIN)
    }
}

/// Memory that a client has, until this is dropped.
#[derive(Debug)]
pub(crate) struct Loan {
    memory: Memory,
    client: Client,
    bytes: usize,
}

impl Memory {
    fn of(direction: Direction, all: usize) -> Self {
        let share = (all / SHARES).max(LEAST_SHARE);
        Self(Arc::new(Inner { direction, all, share, used: Mutex::default() }))
    }

    /// Returns a loan of nothing, which can grow.
    pub(crate) fn lend(&self, client: Client) -> Loan {
        Loan { memory: self.clone(), client, bytes: 0 }
    }

    /// Refuses a client that holds its share, before it causes another large body.
    pub(crate) fn check(&self, client: &Client) -> Result<(), Lack> {
        self.check_below(client, self.0.share, self.0.all)
    }

    /// Refuses a client that holds twice its share. The response to a change may exceed the share, because the change is done.
    pub(crate) fn check_debt(&self, client: &Client) -> Result<(), Lack> {
        self.check_below(client, self.0.share.saturating_mul(2), usize::MAX)
    }

    fn check_below(&self, client: &Client, share: usize, all: usize) -> Result<(), Lack> {
        let used = self.lock();
        if used.by(client) >= share {
            return Err(self.lack(true));
        }
        if used.all >= all { Err(self.lack(false)) } else { Ok(()) }
    }

    fn lack(&self, of_client: bool) -> Lack {
        let limit = if of_client { self.0.share } else { self.0.all };
        Lack { direction: self.0.direction, limit, of_client }
    }

    /// Returns the bytes that all clients hold together.
    #[cfg(test)]
    pub(crate) fn used(&self) -> usize {
        self.lock().all
    }

    fn lock(&self) -> MutexGuard<'_, Used> {
        self.0.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Used {
    /// Returns the bytes that count against the share of a client.
    fn by(&self, client: &Client) -> usize {
        self.of.get(client).copied().unwrap_or_default()
    }

    fn change(&mut self, client: &Client, from: usize, to: usize) {
        self.all = self.all.saturating_sub(from).saturating_add(to);
        if *client == Client::Trusted {
            return;
        }
        let bytes = self.by(client).saturating_sub(from).saturating_add(to);
        if bytes == 0 {
            self.of.remove(client);
        } else if let Some(used) = self.of.get_mut(client) {
            *used = bytes;
        } else {
            self.of.insert(client.clone(), bytes);
        }
    }
}

impl Loan {
    /// Takes memory up to so many bytes, if the client and all clients together stay within their bounds. A client with
    /// nothing else in transit is within its share.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), Lack> {
        let share = self.memory.0.share;
        self.grow_if(bytes, |by, more| by.saturating_add(more) <= share)
    }

    /// Takes memory for the response to a change, also beyond the share, unless the client already holds twice its share.
    pub(crate) fn grow_for_change(&mut self, bytes: usize) -> Result<(), Lack> {
        let most = self.memory.0.share.saturating_mul(2);
        self.grow_if(bytes, |by, _| by < most)
    }

    fn grow_if(&mut self, bytes: usize, is_within: impl Fn(usize, usize) -> bool) -> Result<(), Lack> {
        let more = bytes.saturating_sub(self.bytes);
        if more == 0 {
            return Ok(());
        }
        let all = self.memory.0.all;
        let mut used = self.memory.lock();
        let by = used.by(&self.client);
        if by > self.bytes && !is_within(by, more) {
            return Err(self.memory.lack(true));
        }
        if used.all > self.bytes && used.all.saturating_add(more) > all {
            return Err(self.memory.lack(false));
        }
        used.change(&self.client, self.bytes, bytes);
        drop(used);
        self.bytes = bytes;
        Ok(())
    }

    /// Gives bytes back, if the loan has more than so many.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        if bytes < self.bytes {
            self.set(bytes);
        }
    }

    /// Sets the loan to exactly this many bytes, even beyond the bounds. The response has taken about as many before its
    /// body was made.
    pub(crate) fn set(&mut self, bytes: usize) {
        self.memory.lock().change(&self.client, self.bytes, bytes);
        self.bytes = bytes;
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.memory.lock().change(&self.client, self.bytes, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Client {
        Client::Named(name.into())
    }

    #[test]
    fn a_client_has_its_share_and_all_together_have_the_whole() {
        let memory = Transfer::of(200).responses;
        let of = |client: Client, mib: usize| {
            let mut loan = memory.lend(client);
            loan.grow(mib * MIB).map(|()| loan)
        };
        let mut held = vec![of(named("a"), 19).unwrap()];
        assert!(of(named("a"), 2).unwrap_err().of_client);
        held.extend((0..9).map(|number| of(named(&number.to_string()), 20).unwrap()));
        assert!(!of(named("z"), 2).unwrap_err().of_client);
        assert!(!of(Client::Trusted, 2).unwrap_err().of_client);
        held.remove(0);
        assert!(of(named("a"), 2).is_ok() && of(Client::Trusted, 2).is_ok());
        held.clear();
        assert_eq!((memory.used(), memory.lock().of.len()), (0, 0), "it forgets clients that hold nothing");
    }

    #[test]
    fn the_response_to_a_change_counts_and_holds_up_later_requests() {
        let memory = Transfer::of(200).responses;
        let (one, other) = (named("a"), named("b"));
        let mut held: Vec<_> = (0..2).map(|_| memory.lend(one.clone())).collect();
        held.iter_mut().for_each(|loan| loan.set(15 * MIB));
        assert!(memory.check(&one).is_err() && memory.check_debt(&one).is_ok());
        held[0].set(25 * MIB);
        assert!(memory.check_debt(&one).is_err() && memory.check(&other).is_ok());
        let problem = Problem::from(memory.check(&one).unwrap_err()).document();
        assert_eq!(problem["quota"], "response_bytes_per_client");
        assert_eq!((problem["limit"].as_u64(), problem["setting"].as_str()), (Some(20 << 20), Some(SETTING)));
    }
}
