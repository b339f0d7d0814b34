//! What an answer to a job that was pushed means.

use std::time::Duration;

use axum::http::header::LOCATION;
use tenure::{Cause, Due, Failure, Output, Timestamp, Verdict, limits};

use crate::callbacks::caller::{Heard, NoAnswer};

/// With this whoever was called says that no other attempt will help.
const NO_RETRY: &str = "job-no-retry";
/// A job rests for so long if whoever was called may be called no more, and at least so long if he would have it called
/// again at once.
const RELEASED_FOR: Duration = Duration::from_secs(1);
/// Nobody is left alone for longer than this because he would have it so.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 3600);

/// What comes of an answer.
#[derive(Debug, PartialEq)]
pub(super) enum Meaning {
    /// The job has gone so.
    Ends(Verdict),
    /// It goes on there, and its end is told later.
    GoesOn,
    /// Nothing more is sent there, and why. The job is given back.
    Disabled(String),
}

impl Meaning {
    /// What an answer means, or that there was none.
    pub(super) fn of(heard: Result<Heard, NoAnswer>, now: Timestamp) -> Self {
        let heard = match heard {
            Ok(heard) => heard,
            // Nothing is wrong with the job.
            Err(refused @ NoAnswer::Refused) => return Self::Disabled(refused.to_string()),
            Err(late @ NoAnswer::TooLate(_)) => return Self::Ends(again(Cause::TimedOut, &late.to_string())),
            Err(none @ NoAnswer::Unreachable(_)) => {
                return Self::Ends(again(Cause::Error, &none.to_string()));
            }
        };
        let status = heard.status.as_u16();
        let said = format!("received status {status}");
        let rest = heard.retry_after(now).map(|span| span.clamp(RELEASED_FOR, LONGEST_WAIT));
        match (status, rest) {
            (202, _) => Self::GoesOn,
            (200..=299, _) => Self::Ends(done(heard)),
            (410, _) => Self::Disabled("received 410 Gone".to_owned()),
            (429 | 503, Some(rest)) => Self::Ends(Verdict::Snoozed(Due::In(rest))),
            (422, _) => Self::Ends(for_good(Cause::Error, &said)),
            (_, _) if no_retry(&heard) => Self::Ends(for_good(Cause::Error, &said)),
            (_, _) => Self::Ends(again(Cause::Error, &said)),
        }
    }

    /// How a job is given back without a trace.
    pub(super) fn given_back() -> Verdict {
        Verdict::Snoozed(Due::In(RELEASED_FOR))
    }
}

fn no_retry(heard: &Heard) -> bool {
    heard.headers.get(NO_RETRY).is_some_and(|said| said.as_bytes().eq_ignore_ascii_case(b"true"))
}

fn again(cause: Cause, why: &str) -> Verdict {
    Verdict::Retry { failure: Failure::new(cause, why), due: None }
}

fn for_good(cause: Cause, why: &str) -> Verdict {
    Verdict::Failed(Failure::new(cause, why))
}

/// The job is done, and the body is what it returns: JSON as it is, other text as text. One that cannot be kept is a
/// failure for good: doing the work again would not make it smaller.
fn done(heard: Heard) -> Verdict {
    let unstorable = |why: &str| for_good(Cause::Unstorable, why);
    if !heard.whole {
        let most = limits::OUTPUT_BYTES;
        return unstorable(&format!("the response is larger than {most} bytes"));
    }
    let place = heard.headers.get(LOCATION).and_then(|place| place.to_str().ok()).map(str::to_owned);
    let body = heard.body.trim_ascii();
    let value = if body.is_empty() || body == b"null" {
        Vec::new()
    } else if serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok() {
        body.to_vec()
    } else {
        match std::str::from_utf8(body) {
            Ok(text) => serde_json::Value::String(text.replace('\0', " ")).to_string().into_bytes(),
            Err(_) => return unstorable("the response is neither JSON nor text"),
        }
    };
    if value.is_empty() && place.is_none() {
        return Verdict::Succeeded(None);
    }
    match Output::new(value, place) {
        Ok(output) => Verdict::Succeeded(Some(output)),
        Err(wrong) => unstorable(&wrong.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderMap, HeaderName, StatusCode};

    fn heard(status: u16, headers: &[(&'static str, &str)], body: &[u8]) -> Meaning {
        let headers =
            headers.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
        let headers = HeaderMap::from_iter(headers);
        let status = StatusCode::from_u16(status).unwrap();
        Meaning::of(Ok(Heard { status, headers, body: body.to_vec(), whole: true }), Timestamp::EPOCH)
    }

    fn returned(body: &[u8]) -> String {
        let Meaning::Ends(Verdict::Succeeded(output)) = heard(200, &[], body) else { panic!("{body:?}") };
        output.map_or_else(String::new, |output| String::from_utf8(output.value).unwrap())
    }

    #[test]
    fn the_body_of_a_good_answer_is_what_the_job_returns() {
        assert_eq!(returned(b" {\"a\": 1}\n"), "{\"a\": 1}");
        assert_eq!(returned(b"not JSON"), "\"not JSON\"");
        assert_eq!((returned(b"").as_str(), returned(b"null").as_str()), ("", ""));
        let Meaning::Ends(Verdict::Succeeded(Some(output))) = heard(201, &[("location", "/stars/7")], b"")
        else {
            panic!()
        };
        assert_eq!(output.place.as_deref(), Some("/stars/7"));
        let unfit = heard(200, &[], &[0xff, 0xfe]);
        assert!(
            matches!(unfit, Meaning::Ends(Verdict::Failed(failure)) if failure.cause == Cause::Unstorable)
        );
    }

    #[test]
    fn each_answer_means_what_is_written_about_it() {
        assert_eq!(heard(202, &[], b""), Meaning::GoesOn);
        assert!(matches!(heard(410, &[], b""), Meaning::Disabled(_)));
        let rest = Verdict::Snoozed(Due::In(Duration::from_secs(7)));
        assert_eq!(heard(503, &[("retry-after", "7")], b""), Meaning::Ends(rest));
        let soonest = Verdict::Snoozed(Due::In(RELEASED_FOR));
        assert_eq!(heard(429, &[("retry-after", "0")], b""), Meaning::Ends(soonest));
        for status in [429, 503, 500, 502, 404, 302, 400] {
            let Meaning::Ends(Verdict::Retry { failure, due: None }) = heard(status, &[], b"secret") else {
                panic!("{status}")
            };
            assert!(failure.message.contains(&status.to_string()) && !failure.message.contains("secret"));
        }
        assert!(matches!(heard(422, &[], b""), Meaning::Ends(Verdict::Failed(_))));
        assert!(matches!(heard(500, &[("job-no-retry", "True")], b""), Meaning::Ends(Verdict::Failed(_))));
        assert!(matches!(heard(500, &[("job-no-retry", "0")], b""), Meaning::Ends(Verdict::Retry { .. })));
        let late = Meaning::of(Err(NoAnswer::TooLate(Duration::from_secs(1))), Timestamp::EPOCH);
        assert!(
            matches!(late, Meaning::Ends(Verdict::Retry { failure, .. }) if failure.cause == Cause::TimedOut)
        );
    }
}
