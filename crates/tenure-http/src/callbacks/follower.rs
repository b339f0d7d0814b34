//! Clients that follow `GET /v1/events` as a stream.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream};

use super::feed::{Ask, Found, RETRY, Until, misses_some, more, some};
use super::journal::{Place, Told};
use super::recorder::Follow;
use super::webhook::last_number;
use crate::api::Api;
use crate::memory::{FREE_BYTES, Lack, Loan};
use crate::prefer::Prefer;
use crate::problem::Problem;

/// Interval after which a silent stream sends a comment, so that no intermediary takes the connection for dead.
const ALIVE: Duration = Duration::from_secs(25);
/// Events that a stream reads at once. It keeps them while its client does not read.
const AT_ONCE: usize = 20;
/// Bytes of an unsent event besides its text.
const LINE_BYTES: usize = 128;

type Over = Pin<Box<dyn Future<Output = ()> + Send>>;
type Events = Pin<Box<dyn Stream<Item = Result<Event, Infallible>> + Send>>;

/// Events that were read and not yet sent. They count as response memory of the client.
struct Unsent {
    lines: VecDeque<Line>,
    loan: Loan,
}

/// An event as it is sent.
struct Line {
    at: Place,
    event_type: String,
    text: Vec<u8>,
}

impl Unsent {
    fn of(api: &Api) -> Self {
        Self { lines: VecDeque::new(), loan: api.transfer().responses.lend(api.client().clone()) }
    }

    fn add(&mut self, found: Vec<Told>) -> Result<(), Lack> {
        let line = |told: Told| Line { at: told.at, event_type: told.event.event_type, text: told.text };
        self.lines.extend(found.into_iter().map(line));
        self.loan.grow(self.counted())
    }

    fn pop(&mut self) -> Option<Line> {
        let line = self.lines.pop_front()?;
        self.loan.set(self.counted());
        Some(line)
    }

    /// Returns the bytes that count. As for each response, the first few do not.
    fn counted(&self) -> usize {
        let all: usize = self.lines.iter().map(|line| line.text.len() + LINE_BYTES).sum();
        all.saturating_sub(FREE_BYTES)
    }
}

/// A client that follows.
struct Following {
    api: Api,
    ask: Ask,
    at: Place,
    follow: Option<Follow>,
    unsent: Unsent,
    /// The message before the first event.
    first: Option<First>,
    over: Over,
}

/// The first message of a stream.
enum First {
    /// The place where it begins: a client that is cut off before the first event comes back to it. It has data, because
    /// some clients hand on messages without.
    Place,
    /// Events after the place of the client are no longer kept.
    Reset,
}

/// Returns a stream of the events after a place.
pub(super) async fn stream(
    api: Api,
    ask: Ask,
    since: Option<Place>,
    follow: Option<Follow>,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let tenure = api.tenure();
    let here = Place::new(last_number(tenure).await?, tenure.now());
    let reset = match since {
        Some(since) => misses_some(&api, since, follow.as_ref()).await?,
        None => false,
    };
    let at = since.filter(|_| !reset).unwrap_or(here);
    let over: Over = match Prefer::of(headers).wait {
        Some(wait) => tenure.store().clock().sleep(wait),
        None => Box::pin(std::future::pending()),
    };
    let first = Some(if reset { First::Reset } else { First::Place });
    let unsent = Unsent::of(&api);
    let following = Following { api, ask, at, follow, unsent, first, over };
    let events: Events = Box::pin(stream::unfold(following, Following::next));
    let mut response = Sse::new(events).keep_alive(KeepAlive::new().interval(ALIVE)).into_response();
    // Some intermediaries gather what they pass on.
    let unbuffered = HeaderName::from_static("x-accel-buffering");
    response.headers_mut().insert(unbuffered, HeaderValue::from_static("no"));
    Ok(response)
}

impl Following {
    /// Ends when another server could go on at this place: it is written down that what happens is. None if it is over before.
    async fn is_good_elsewhere(&mut self) -> Option<()> {
        let Some(follow) = &self.follow else { return Some(()) };
        tokio::select! {
            biased;
            _ = follow.began() => Some(()),
            () = self.api.ended() => None,
            () = &mut self.over => None,
        }
    }

    /// The next event, and how it goes on after it.
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Self)> {
        if let Some(first) = self.first.take() {
            let event = Event::default().id(self.at.to_string()).retry(RETRY);
            let event = match first {
                First::Reset => event.event("reset").data("{}"),
                First::Place => {
                    self.is_good_elsewhere().await?;
                    event.event("start").data("{}")
                }
            };
            return Some((Ok(event), self));
        }
        loop {
            if let Some(Line { at, event_type, text }) = self.unsent.pop() {
                let data = String::from_utf8_lossy(&text);
                let event = Event::default().id(at.to_string()).event(event_type).retry(RETRY).data(data);
                return Some((Ok(event), self));
            }
            // If the store cannot answer, the client comes back with the ID of its last event, perhaps to another server.
            let some = some(&self.api, &self.ask, self.at, (AT_ONCE, Until::Found)).await.ok()?;
            let Found { found, at, is_cut } = some;
            self.at = at;
            let is_empty = found.is_empty();
            // The client has not read enough of its responses.
            self.unsent.add(found).ok()?;
            if is_cut || !is_empty {
                continue;
            }
            tokio::select! {
                biased;
                () = self.api.ended() => return None,
                () = &mut self.over => return None,
                () = more(&self.api, self.follow.as_mut()) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tenure::Tenure;

    use super::super::event::EventDocument;
    use super::super::journal;
    use super::*;
    use crate::access::{Access, Who};
    use crate::api::Rules;
    use crate::memory::Transfer;

    fn following(api: &Api) -> Following {
        let (api, at) = (api.clone(), Place::new(0, api.tenure().now()));
        let (unsent, over) = (Unsent::of(&api), Box::pin(std::future::pending()));
        Following { api, ask: Ask::default(), at, follow: None, unsent, first: None, over }
    }

    #[tokio::test]
    async fn streams_that_are_not_read_hold_the_share_of_their_client_at_most() {
        let tenure = Tenure::open("memory:").await.unwrap();
        let rules = Rules { access: Access::Tokens, transfer: Transfer::of(16), ..Rules::default() };
        let api = Api::new(&tenure, rules).for_client(Who::auditor());
        let text = "x".repeat(15_000);
        let event = |number: usize| {
            let of = EventDocument::of("job.failed", number.to_string(), "a", tenure.now());
            EventDocument { data: json!({ "text": text }), ..of }
        };
        let events: Vec<_> = (0..50).map(event).collect();
        assert_eq!(journal::append(&tenure, &events).await.unwrap(), 50);
        let (mut open, mut ended) = (Vec::new(), 0);
        for _ in 0..70 {
            match following(&api).next().await {
                Some((_, rest)) => open.push(rest),
                None => ended += 1,
            }
        }
        let held = open.iter().map(|one| one.unsent.counted()).sum::<usize>();
        assert_eq!(api.transfer().responses.used(), held);
        assert!((12 << 20..=16 << 20).contains(&held) && ended > 0, "{held} bytes, {ended} streams ended");
        assert!(open.iter().all(|one| one.unsent.lines.len() < AT_ONCE));
        // A stream whose client reads goes on to the last event.
        open.truncate(1);
        let mut rest = open.pop().unwrap();
        for _ in 1..50 {
            rest = rest.next().await.unwrap().1;
        }
        assert_eq!((rest.at.number, api.transfer().responses.used()), (50, 0));
    }

    #[tokio::test]
    async fn a_stream_of_few_events_keeps_none_while_it_searches_for_more() {
        let tenure = Tenure::open("memory:").await.unwrap();
        let api = Api::new(&tenure, Rules::default()).for_client(Who::auditor());
        let event = |number: usize| {
            let event_type = if number.is_multiple_of(299) { "job.failed" } else { "job.succeeded" };
            EventDocument::of(event_type, number.to_string(), "a", tenure.now())
        };
        let events: Vec<_> = (0..300).map(event).collect();
        assert_eq!(journal::append(&tenure, &events).await.unwrap(), 300);
        let ask = Ask::of_types(&["job.failed"]);
        let (_, rest) = Following { ask, ..following(&api) }.next().await.unwrap();
        assert!(rest.at.number <= 20 && rest.unsent.lines.is_empty(), "{:?}", rest.at);
        let (_, rest) = rest.next().await.unwrap();
        assert_eq!(rest.at.number, 300);
    }
}
