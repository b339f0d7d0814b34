//! The servers of one store, and failover between them: a request goes to the next server if one does not answer.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;
use tenure::{Clock, Moment, SystemClock};
use ureq::Agent;
use ureq::http::Response;
use ureq::tls::TlsConfig;

use super::socket::origin_of;
use super::{ANSWER_BYTES, Ask, Refused, Secret, Trouble, agent};
use crate::exit::Failure;
use crate::screen::complain;

/// Time to connect to a server while there are others.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);
/// Longest time for the first byte of an answer while there are others, beyond the wait that was asked for.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);
/// Time to find out which store a server has.
const LOOK_WITHIN: Duration = Duration::from_secs(2);

/// The servers that a client may use, in order of preference.
#[derive(Debug)]
pub(super) struct Servers {
    all: Vec<Server>,
    token: Option<Secret>,
    /// Place of the server that answered last.
    current: AtomicUsize,
    /// Identity of their store, once it is known.
    store: OnceLock<String>,
}

#[derive(Debug)]
struct Server {
    agent: Agent,
    base: String,
    /// `true` once its store was compared with that of the others.
    is_checked: AtomicBool,
    /// `true` if it has another store. Then it is not used.
    is_foreign: AtomicBool,
}

/// An attempt at one server.
enum Tried {
    /// The answer, also if it is a refusal.
    Answered(Response<ureq::Body>),
    /// No answer, or one that says that the server cannot answer now.
    Failed { answer: Result<Response<ureq::Body>, Trouble>, may_be_done: bool },
}

impl Servers {
    pub(super) fn new(bases: &[String], token: Option<Secret>, tls: &TlsConfig) -> Self {
        let connect_within = if bases.len() > 1 { CONNECT_WITHIN } else { super::CONNECT_WITHIN };
        let server = |base: &String| Server {
            agent: agent(base, connect_within, tls),
            base: base.clone(),
            is_checked: AtomicBool::new(false),
            is_foreign: AtomicBool::new(false),
        };
        let all = bases.iter().map(server).collect();
        Self { all, token, current: AtomicUsize::new(0), store: OnceLock::new() }
    }

    /// URL of the server that is used now.
    pub(super) fn base(&self) -> &str {
        self.all.get(self.current.load(Ordering::Relaxed)).map_or("", |server| &server.base)
    }

    /// Compares the stores of all servers, and returns the URLs of those that do not answer.
    ///
    /// # Errors
    /// Two of them have different stores.
    pub(super) fn check(&self) -> Result<Vec<&str>, Failure> {
        if self.all.len() < 2 {
            return Ok(Vec::new());
        }
        let mut silent = Vec::new();
        std::thread::scope(|scope| {
            let compared: Vec<_> =
                self.all.iter().map(|server| (server, scope.spawn(|| self.compare(server)))).collect();
            for (server, answered) in compared {
                if !answered.join().unwrap_or_default() {
                    silent.push(server.base.as_str());
                }
            }
        });
        let first_that = |is_foreign: bool| {
            let is_checked = |server: &&Server| server.is_checked.load(Ordering::Relaxed);
            let mut checked = self.all.iter().filter(is_checked);
            checked.find(|server| server.is_foreign.load(Ordering::Relaxed) == is_foreign)
        };
        match first_that(false).zip(first_that(true)) {
            None => Ok(silent),
            Some((one, foreign)) => Err(Failure::Usage(format!(
                "{} and {} are servers of different stores; pass URLs of servers that share one store",
                one.base, foreign.base
            ))),
        }
    }

    /// Notes whether this server has the store of the others; returns false if it does not answer.
    fn compare(&self, server: &Server) -> bool {
        let ask = Ask::get("/v1/version").within(LOOK_WITHIN);
        let Ok(answer) = server.send(&ask, self.token.as_ref(), (LOOK_WITHIN, LOOK_WITHIN)) else {
            return false;
        };
        let body = answer.into_body().into_with_config().limit(ANSWER_BYTES).read_to_vec();
        let version: Value = serde_json::from_slice(&body.unwrap_or_default()).unwrap_or_default();
        // An older server does not say which store it has.
        if let Some(store) = version["store_id"].as_str() {
            let known = self.store.get_or_init(|| store.to_owned());
            server.is_foreign.store(known != store, Ordering::Relaxed);
            server.is_checked.store(true, Ordering::Relaxed);
        }
        true
    }

    /// Sends a request to the current server. If that one does not answer and a repetition is safe, the next is asked.
    pub(super) fn send(&self, ask: &Ask, within: Duration) -> Result<Response<ureq::Body>, Trouble> {
        let until = SystemClock.moment().after(within);
        let first = self.current.load(Ordering::Relaxed);
        let (mut last, mut may_be_done) = (None, false);
        for (tries, place) in (first..first + self.all.len()).enumerate() {
            let place = place % self.all.len();
            let Some(server) = self.all.get(place) else { break };
            if self.is_unusable(place, first) {
                continue;
            }
            match server.attempt(ask, self.token.as_ref(), until, self.all.len() - 1 - tries) {
                Tried::Answered(answer) => {
                    self.stay_with(first, place);
                    return Ok(answer);
                }
                Tried::Failed { answer, may_be_done: this_one } => {
                    may_be_done |= this_one;
                    // A refusal says more than silence.
                    if !matches!((&last, &answer), (Some(Ok(_)), Err(_))) {
                        last = Some(answer);
                    }
                }
            }
            if may_be_done && !ask.is_repeatable {
                // The caller decides, and asks another server then.
                self.stay_with(first, (place + 1) % self.all.len());
                break;
            }
            if until.since(SystemClock.moment()).is_zero() {
                self.stay_with(first, (place + 1) % self.all.len());
                break;
            }
        }
        last.unwrap_or_else(|| Err(Trouble::strange("no server"))).map_err(|trouble| match self.all.len() {
            1 => trouble,
            _ => trouble.of_several(may_be_done),
        })
    }

    /// Returns `true` if a server must not be used because it has another store.
    fn is_unusable(&self, place: usize, first: usize) -> bool {
        let Some(server) = self.all.get(place) else { return true };
        if place != first && self.store.get().is_some() && !server.is_checked.load(Ordering::Relaxed) {
            self.compare(server);
            if server.is_foreign.load(Ordering::Relaxed) {
                complain(&format!("{} is not used: its store is not that of the other servers", server.base));
            }
        }
        server.is_foreign.load(Ordering::Relaxed)
    }

    /// Uses another server from now on, and says so, unless another thread has changed the server meanwhile.
    fn stay_with(&self, before: usize, place: usize) {
        let changed = self.current.compare_exchange(before, place, Ordering::Relaxed, Ordering::Relaxed);
        if let (true, Ok(_), Some(from), Some(to)) =
            (before != place, changed, self.all.get(before), self.all.get(place))
        {
            complain(&format!("{} does not answer; using {}", from.base, to.base));
        }
    }
}

impl Server {
    /// Tries this server, with so many others left if it does not answer.
    fn attempt(&self, ask: &Ask, token: Option<&Secret>, until: Moment, others: usize) -> Tried {
        let left = until.since(SystemClock.moment());
        let answer = self.send(ask, token, (left, first_byte_within(left, ask.waits, others)));
        match answer {
            Ok(answer) if others > 0 && matches!(answer.status().as_u16(), 502..=504) => unavailable(answer),
            Ok(answer) => Tried::Answered(answer),
            Err(trouble) => {
                let may_be_done = matches!(&trouble, Trouble::Lost(lost) if lost.may_have_come);
                Tried::Failed { answer: Err(trouble), may_be_done }
            }
        }
    }

    fn send(
        &self,
        ask: &Ask,
        token: Option<&Secret>,
        (within, first_byte): (Duration, Duration),
    ) -> Result<Response<ureq::Body>, Trouble> {
        let mut request = ask.head(origin_of(&self.base));
        if let Some(Secret(token)) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let agent = &self.agent;
        let sent = match &ask.body {
            Some((_, body)) => request.body(&body[..]).map_err(ureq::Error::from).and_then(|request| {
                let request = agent.configure_request(request).timeout_global(Some(within));
                agent.run(request.timeout_recv_response(Some(first_byte)).build())
            }),
            None => request.body(()).map_err(ureq::Error::from).and_then(|request| {
                let request = agent.configure_request(request).timeout_global(Some(within));
                agent.run(request.timeout_recv_response(Some(first_byte)).build())
            }),
        };
        sent.map_err(|error| Trouble::lost(&self.base, &error))
    }
}

/// Time until the first byte of an answer. Other servers need a part of the time that is left.
fn first_byte_within(left: Duration, waits: Duration, others: usize) -> Duration {
    if others == 0 {
        return left;
    }
    let servers = u32::try_from(others + 1).unwrap_or(u32::MAX);
    waits + (left.saturating_sub(waits) / servers).min(ANSWER_WITHIN)
}

/// An answer that says that the server cannot answer now. One that shuts down has done nothing.
fn unavailable(answer: Response<ureq::Body>) -> Tried {
    let (head, body) = answer.into_parts();
    let body = body.into_with_config().limit(ANSWER_BYTES).read_to_vec().unwrap_or_default();
    let is_draining = Refused::of(head.status.as_u16(), &body).is("draining");
    let answer = Response::from_parts(head, ureq::Body::builder().data(body));
    Tried::Failed { answer: Ok(answer), may_be_done: !is_draining }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_server_leaves_time_for_the_others() {
        let seconds = Duration::from_secs;
        assert_eq!(first_byte_within(seconds(8), Duration::ZERO, 0), seconds(8));
        assert_eq!(first_byte_within(seconds(8), Duration::ZERO, 1), seconds(4));
        assert_eq!(first_byte_within(seconds(13), seconds(3), 1), seconds(8), "a long poll has its wait");
        assert_eq!(first_byte_within(seconds(24 * 3_600), Duration::ZERO, 1), ANSWER_WITHIN);
    }
}
