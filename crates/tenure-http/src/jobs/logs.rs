//! What the attempts of a job have logged: page by page, the end of it, or as it is written.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use axum::body::Body;
use axum::extract::OriginalUri;
use axum::http::header::{CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use tenure::{Invalid, JobId, LogLine, limits};

use super::followers::Follower;
use crate::accept;
use crate::answer::{go_on, json};
use crate::api::Api;
use crate::filling::{Filling, PAGE_BYTES};
use crate::hide::View;
use crate::id::Id;
use crate::prefer::Prefer;
use crate::problem::Problem;
use crate::query::Query;
use crate::watchers::Watcher;
use crate::wire::{LogLineDocument, LogPage};

/// So often whoever follows looks himself although nothing was told, and is sent something where that disturbs nobody.
const ALIVE: Duration = Duration::from_secs(25);
/// Lines that are looked for together.
const AT_ONCE: usize = limits::PAGE_JOBS;
/// Lines of one piece of a stream, which waits in memory for its reader.
const STREAMED: usize = 250;

/// What may stand behind the question mark.
pub(crate) const KNOWN: [&str; 6] = ["after", "limit", "delivery", "tail", "follow", "reveal"];

/// In which form lines are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A page of them.
    Page,
    /// Text alone, a line each.
    Plain,
    /// A document a line.
    Lines,
    /// Server-sent events.
    Events,
}

/// Which lines are wanted.
#[derive(Debug, Clone, Copy)]
struct Ask {
    behind: Behind,
    /// Of this attempt only.
    delivery: Option<u32>,
    /// Only so many of the last ones.
    tail: Option<usize>,
    most: usize,
    /// Whether he has said how many: then he is given so many and no more.
    is_page: bool,
    follow: bool,
}

/// `GET /v1/jobs/{id}/logs`
pub(crate) async fn get(
    api: Api,
    Id(id): Id,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let form = Form::of(&headers);
    let ask = Ask::read(&Query::read(uri.query(), &KNOWN)?, &headers, form)?;
    // Before the job is looked at: an end in between is not missed.
    let watcher = api.watchers().watch(id);
    let job = api.job(id).await?;
    let last = job.delivery;
    // Counted until the response counts itself.
    let mut filling = Filling::new(&api);
    let lines = match ask.tail {
        Some(tail) => ending(&mut filling, &api, id, (ask.delivery.unwrap_or(last), tail)).await?,
        None => {
            let lines = filling.read(some(&api, id, ask, ask.most)).await?;
            filling.set(lines.iter().map(|line| line.text.len()).sum())?;
            lines
        }
    };
    let nothing = if ask.tail.is_some() { Behind(ask.delivery.unwrap_or(last), 0) } else { ask.behind };
    let after = lines.last().map_or(nothing, Behind::the);
    let has_ended = job.state.is_finished();
    if form == Form::Events && has_ended && lines.is_empty() {
        // He has seen all of it: this keeps him from coming back.
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    if form == Form::Page {
        let next_after = lines.last().map(|line| Behind::the(line).to_string());
        let items = lines.iter().map(|line| shown(&api, line)).collect();
        return Ok(json(StatusCode::OK, &LogPage { items, next_after }));
    }
    let first = form.write(&api, &lines);
    drop(filling);
    let is_cut = ask.tail.is_none() && lines.len() >= ask.most;
    let goes_on = ask.follow || (is_cut && !ask.is_page);
    let body = if goes_on {
        let over = Prefer::of(&headers).wait;
        let ask = Ask { behind: after, ..ask };
        // Who does not follow is given what there is, to its end.
        let has_ended = has_ended || !ask.follow;
        let follower = api.followers().follow(id, (after.0, after.1));
        let quiet = Duration::ZERO;
        let following = Following { api, id, form, ask, over, quiet, watcher, follower, has_ended };
        Body::from_stream(stream::unfold((Some(first), following), next))
    } else {
        Body::from(first)
    };
    let mut response = body.into_response();
    let headers = response.headers_mut();
    if is_cut && !goes_on {
        go_on(headers, &uri, ("after", &after.to_string()));
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(form.content_type()));
    headers.insert(VARY, HeaderValue::from_static("Accept, Authorization"));
    // Some intermediaries gather what they pass on.
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    Ok(response)
}

impl Ask {
    fn read(query: &Query, headers: &HeaderMap, form: Form) -> Result<Self, Problem> {
        let seen = headers.get("last-event-id").and_then(|seen| seen.to_str().ok());
        let seen = seen.filter(|_| form == Form::Events).and_then(|seen| seen.trim().parse().ok());
        let behind = seen.or(query.one::<Behind>("after")?).unwrap_or(Behind(0, 0));
        let delivery = query.maybe_number("delivery", (1, u64::from(u32::MAX)))?;
        let tail = query.maybe_number("tail", (1, u64::from(limits::LOG_LINES)))?;
        let usual = if form == Form::Page { 100 } else { AT_ONCE as u64 };
        let limit = query.maybe_number("limit", (1, AT_ONCE as u64))?;
        let most = limit.unwrap_or(usual);
        Ok(Self {
            behind,
            delivery: delivery.and_then(|delivery| u32::try_from(delivery).ok()),
            tail: tail.and_then(|tail| usize::try_from(tail).ok()),
            most: usize::try_from(most).unwrap_or(AT_ONCE),
            is_page: form == Form::Page || limit.is_some(),
            follow: form == Form::Events || query.flag("follow")?,
        })
    }
}

impl Form {
    fn of(headers: &HeaderMap) -> Self {
        let forms = [
            ("application/json", Self::Page),
            ("text/event-stream", Self::Events),
            ("application/x-ndjson", Self::Lines),
            ("text/plain", Self::Plain),
        ];
        accept::best(headers, &forms, Self::Page)
    }

    fn content_type(self) -> &'static str {
        match self {
            Self::Page => "application/json",
            Self::Plain => "text/plain; charset=utf-8",
            Self::Lines => "application/x-ndjson",
            Self::Events => "text/event-stream",
        }
    }

    fn write(self, api: &Api, lines: &[LogLine]) -> Bytes {
        let mut text = String::new();
        for line in lines {
            let document = shown(api, line);
            let written = serde_json::to_string(&document).unwrap_or_default();
            match self {
                Self::Page | Self::Lines => text.push_str(&written),
                Self::Plain => text.push_str(&document.text.replace(['\n', '\r'], " ")),
                Self::Events => {
                    text.push_str(&format!("id: {}\nevent: line\ndata: {written}\n", Behind::the(line)));
                }
            }
            text.push('\n');
        }
        Bytes::from(text)
    }
}

/// A line as whoever asks is shown it.
fn shown(api: &Api, line: &LogLine) -> LogLineDocument {
    let mut document = LogLineDocument::of(line);
    if api.view() == View::Hidden {
        document.text = api.hiding().text(&document.text);
    }
    document
}

/// Lines behind one, of one attempt if that is said.
async fn some(api: &Api, id: JobId, ask: Ask, most: usize) -> Result<Vec<LogLine>, Problem> {
    let Behind(delivery, number) = ask.behind;
    let from = match ask.delivery {
        Some(only) if only > delivery => (only, 0),
        Some(_) | None => (delivery, number),
    };
    let mut lines = api.tenure().jobs().logs(id, from, most).await?;
    lines.retain(|line| ask.delivery.is_none_or(|only| line.delivery == only));
    Ok(lines)
}

/// Returns the last lines of an attempt, up to 8 MiB. It reads all lines of the attempt page by page: their number is
/// bounded.
async fn ending(
    filling: &mut Filling<'_>,
    api: &Api,
    id: JobId,
    (delivery, tail): (u32, usize),
) -> Result<Vec<LogLine>, Problem> {
    let (mut kept, mut behind) = (VecDeque::new(), (delivery, 0));
    let mut bytes = 0;
    loop {
        let lines = filling.read(api.tenure().jobs().logs(id, behind, AT_ONCE)).await?;
        let of_it = lines.iter().filter(|line| line.delivery == delivery).count();
        let is_over = of_it < AT_ONCE;
        behind = lines.get(of_it.wrapping_sub(1)).map_or(behind, |line| (line.delivery, line.number));
        for line in lines.into_iter().take(of_it) {
            bytes += line.text.len();
            kept.push_back(line);
            while kept.len() > tail || (bytes > PAGE_BYTES && kept.len() > 1) {
                bytes -= kept.pop_front().map_or(0, |line: LogLine| line.text.len());
            }
        }
        filling.set(bytes)?;
        if is_over {
            return Ok(kept.into());
        }
    }
}

/// Somebody who follows.
struct Following {
    api: Api,
    id: JobId,
    form: Form,
    ask: Ask,
    /// For how long he would follow at most.
    over: Option<Duration>,
    /// For how long nothing was sent.
    quiet: Duration,
    watcher: Watcher,
    follower: Follower,
    /// Whether the job has ended: what it has written by then is all.
    has_ended: bool,
}

type Step = (Option<Bytes>, Following);

/// What is written next, and how it goes on after it. Once the job has ended and all was sent, it ends.
async fn next((first, mut following): Step) -> Option<(io::Result<Bytes>, Step)> {
    if let Some(first) = first {
        return Some((Ok(first), (None, following)));
    }
    let clock = following.api.tenure().store().clock();
    loop {
        let has_ended = following.has_ended;
        if following.form == Form::Page {
            return None;
        }
        let Ok(lines) = some(&following.api, following.id, following.ask, STREAMED).await else {
            // Cut off, not brought to an end: he is not to take it for all.
            following.form = Form::Page;
            return Some((Err(io::Error::other("store unavailable")), (None, following)));
        };
        if let Some(last) = lines.last() {
            following.ask.behind = Behind::the(last);
            following.quiet = Duration::ZERO;
            return Some((Ok(following.form.write(&following.api, &lines)), (None, following)));
        }
        if has_ended || following.over.is_some_and(|over| over.is_zero()) {
            return None;
        }
        let began = clock.moment();
        let at_most = ALIVE.saturating_sub(following.quiet).min(following.over.unwrap_or(ALIVE));
        tokio::select! {
            biased;
            // He comes back with what he has seen last, to another server.
            () = following.api.ended() => return None,
            () = following.watcher.changed() => {
                // One that was removed has ended as well.
                let job = following.api.job(following.id).await;
                following.has_ended = job.map_or(true, |job| job.state.is_finished());
            }
            () = following.follower.grown() => {}
            () = clock.sleep(at_most) => {}
        }
        let passed = clock.moment().since(began);
        following.over = following.over.map(|over| over.saturating_sub(passed));
        following.quiet += passed;
        if following.quiet >= ALIVE {
            following.quiet = Duration::ZERO;
            if following.form == Form::Events {
                return Some((Ok(Bytes::from_static(b":\n\n")), (None, following)));
            }
        }
    }
}

/// Behind which line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Behind(u32, u32);

impl Behind {
    fn the(line: &LogLine) -> Self {
        Self(line.delivery, line.number)
    }
}

impl std::fmt::Display for Behind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

impl std::str::FromStr for Behind {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let read = || {
            let (delivery, number) = text.split_once('.')?;
            Some(Self(delivery.parse().ok()?, number.parse().ok()?))
        };
        read().ok_or_else(|| {
            Invalid::new("after", "invalid value", "`next_after` of an earlier page, such as 1.20")
        })
    }
}
