//! `tenure worker --http`: each job is sent to a service, whose answer says how it went.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::{Value, json};
use tenure::{Clock, SystemClock, limits};
use tenure_program::End;

use super::LEASE;
use super::attend::{LOOK, Manners, Went, located};
use super::board::{Post, Why};
use super::result::kept;
use crate::client::{agent_config, base, is_exposed};

/// How long a service has for an answer if its job says nothing else.
const USUAL: Duration = Duration::from_secs(15 * 60);
/// With this a service says when it can take a job that it cannot take now.
const REST_HEADER: &str = "retry-after";
/// With this a service says that no other attempt will help.
const NO_RETRY: &str = "job-no-retry";

/// Where jobs are sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Service(pub(super) String);

impl FromStr for Service {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        base(text).map(|_| Self(text.to_owned())).map_err(|wrong| wrong.to_string())
    }
}

impl Service {
    /// Returns true if jobs would reach another machine unencrypted, with their args and tokens.
    pub(super) fn is_exposed(&self) -> bool {
        is_exposed(&self.0)
    }
}

/// What was answered, or why nothing was.
type Answered = Result<(u16, Head, Vec<u8>), String>;

/// What counts of the head of an answer.
#[derive(Debug, Default)]
struct Head {
    rest: Option<f64>,
    no_retry: bool,
    /// Of the resource that the service created.
    location: Option<String>,
}

/// Sends this job; none if its end is told by somebody else, or not at all any more.
pub(super) fn forward(post: &Arc<Post>, service: &Service, server: &str, manners: &Manners) -> Option<Went> {
    let (tell, told) = channel();
    let (_kept, never) = channel::<()>();
    let (theirs, url, api) = (Arc::clone(post), service.0.clone(), server.to_owned());
    std::thread::spawn(move || {
        // Nobody listens any more to an answer that comes too late.
        let _ = tell.send(call(&theirs, &url, &api));
    });
    let clock = SystemClock;
    let (mut stop_at, mut goes_on) = (None, false);
    loop {
        match told.recv_timeout(LOOK) {
            Ok(answered) => match meaning(answered, manners) {
                Some(verdict) => {
                    post.end_of_lines(format!("http: {}", verdict.1));
                    return Some(went(post, verdict.0));
                }
                None => goes_on = true,
            },
            Err(RecvTimeoutError::Timeout) => {}
            // Whoever answers has done so: it is looked at again whether there is a reason to end.
            Err(RecvTimeoutError::Disconnected) => {
                let _ = never.recv_timeout(LOOK);
            }
        }
        let now = clock.moment();
        if post.time_over.is_some_and(|over| now >= over) {
            post.stop(Why::TimedOut);
        }
        if post.until().since(now) <= LEASE / 6 {
            post.stop(Why::Lost("its lease could not be renewed".to_owned()));
        }
        match post.why() {
            None => {}
            Some(Why::TimedOut) => {
                return Some(went(
                    post,
                    failed("timed_out", "exceeded its timeout before the service answered", true),
                ));
            }
            Some(Why::Lost(_)) => return None,
            // Whoever has said that he tells its end can still do so.
            Some(Why::Stopping) if goes_on => return None,
            Some(Why::Cancelled(_) | Why::Stopping) => {
                let at = *stop_at.get_or_insert_with(|| now.after(manners.grace));
                if now >= at || post.is_to_be_killed() {
                    return Some(went(post, ("release", json!({}))));
                }
            }
        }
    }
}

fn went(post: &Post, verdict: (&'static str, Value)) -> Went {
    Went { end: End::default(), why: post.why(), verdict, not_started: None }
}

fn call(post: &Post, url: &str, server: &str) -> Answered {
    let job = &post.job;
    let within = job.timeout_seconds.and_then(|span| Duration::try_from_secs_f64(span).ok());
    let config = agent_config(url).timeout_global(Some(within.unwrap_or(USUAL)));
    let mut request = config.build().new_agent().post(url).header("content-type", "application/json");
    let attempt = job.attempt.to_string();
    let said = [
        ("job-id", job.id.as_str()),
        ("job-kind", &job.kind),
        ("job-queue", &job.queue),
        ("job-attempt", &attempt),
        ("job-token", &job.token),
        ("job-callback", &format!("{server}/v1/jobs/{}", job.id)),
        ("traceparent", job.traceparent.as_deref().unwrap_or_default()),
        ("tracestate", job.tracestate.as_deref().unwrap_or_default()),
    ];
    for (name, value) in said.into_iter().filter(|(_, value)| !value.is_empty()) {
        request = request.header(name, value);
    }
    let args = job.args.as_ref().map_or("null", |args| args.get());
    let (head, body) = request.send(args).map_err(|error| error.to_string())?.into_parts();
    let named = |name: &str| head.headers.get(name)?.to_str().ok();
    let answer = Head {
        rest: named(REST_HEADER).and_then(|rest| rest.parse().ok()),
        location: named("location").filter(|_| head.status == 201).map(str::to_owned),
        no_retry: named(NO_RETRY).is_some_and(|said| said.eq_ignore_ascii_case("true")),
    };
    let most = u64::try_from(limits::OUTPUT_BYTES).unwrap_or(u64::MAX);
    let body = body.into_with_config().limit(most).read_to_vec().map_err(|error| error.to_string())?;
    Ok((head.status.as_u16(), answer, body))
}

/// What an answer means for the job, and in a sentence; none if its end is told later.
fn meaning(answered: Answered, manners: &Manners) -> Option<((&'static str, Value), String)> {
    let (status, head, body) = match answered {
        Ok(answered) => answered,
        Err(why) => return Some((failed("unreachable", &why, true), why)),
    };
    let said = format!("the service answered with status {status}");
    let verdict = match status {
        202 => return None,
        200..=299 if body.is_empty() => ("complete", json!({})),
        200..=299 => match kept(&body, |result| result) {
            Ok(result) => ("complete", json!({ "result": result })),
            Err(why) => failed("result", &why, false),
        },
        429 | 503 => {
            let rest = head.rest.unwrap_or(manners.again_after.as_secs_f64());
            ("release", json!({ "delay_seconds": rest.clamp(0.0, 86_400.0) }))
        }
        status => failed("http", &said, status != 422 && !head.no_retry),
    };
    Some((located(verdict, head.location), said))
}

fn failed(kind: &str, detail: &str, retryable: bool) -> (&'static str, Value) {
    ("fail", json!({ "error": { "type": kind, "detail": detail }, "retryable": retryable }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(status: u16, head: Head, body: &str) -> Option<(&'static str, Value)> {
        let manners =
            Manners { permanent: Vec::new(), again_after: Duration::from_secs(10), grace: Duration::ZERO };
        meaning(Ok((status, head, body.into())), &manners).map(|(verdict, _)| verdict)
    }

    #[test]
    fn a_service_on_another_machine_without_tls_is_exposed() {
        let is_exposed = |url: &str| url.parse::<Service>().unwrap().is_exposed();
        for url in ["http://other-host/jobs", "HTTP://10.0.0.1:8080/jobs", "http://127.0.0.1.evil/"] {
            assert!(is_exposed(url), "{url}");
        }
        for url in
            ["http://127.0.0.1:8080/jobs", "http://[::1]/jobs", "http://localhost/", "https://other-host/"]
        {
            assert!(!is_exposed(url), "{url}");
        }
    }

    #[test]
    fn an_answer_says_how_the_job_went() {
        let plain = Head::default;
        assert_eq!(verdict(200, plain(), "[1]"), Some(("complete", json!({ "result": [1] }))));
        assert_eq!(verdict(204, plain(), ""), Some(("complete", json!({}))));
        assert_eq!(verdict(202, plain(), ""), None);
        assert_eq!(verdict(503, plain(), ""), Some(("release", json!({ "delay_seconds": 10.0 }))));
        let made = Head { location: Some("/stars/7".to_owned()), ..Head::default() };
        let is_at = Some(("complete", json!({ "resource_location": "/stars/7" })));
        assert_eq!(verdict(201, made, ""), is_at);
        let rest = Head { rest: Some(3.0), ..Head::default() };
        assert_eq!(verdict(429, rest, ""), Some(("release", json!({ "delay_seconds": 3.0 }))));
        let retryable = |status, head| verdict(status, head, "").unwrap().1["retryable"] == true;
        assert!(retryable(500, plain()) && retryable(302, plain()) && !retryable(422, plain()));
        assert!(!retryable(500, Head { no_retry: true, ..Head::default() }));
    }
}
