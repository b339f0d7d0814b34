//! What a server refuses, and what becomes of a request that is not answered.

use serde_json::Value;

use super::is_socket;
use crate::exit::Failure;
use crate::output::safe;

/// Why a request came to nothing.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The server said no.
    Refused(Box<Refused>),
    /// Nobody answered.
    Lost(Lost),
    /// Nothing was asked: nothing may be changed from here.
    ReadOnly(ReadOnly),
    /// What answered does not speak as a server of this kind does.
    Strange(String),
}

/// Why nothing may be changed.
#[derive(Debug, Clone)]
pub(crate) enum ReadOnly {
    /// The context with this name lets nothing be changed.
    Context(String),
    /// The store with this name was opened without `--write`.
    Store(String),
}

/// Nobody answered.
#[derive(Debug)]
pub(crate) struct Lost {
    /// Whether the request may have come to the server all the same.
    pub(crate) may_have_come: bool,
    sentence: String,
}

/// A problem document, as far as it matters here.
#[derive(Debug)]
pub(crate) struct Refused {
    status: u16,
    name: String,
    sentence: String,
    /// The line of what was sent, if there are lines.
    pub(crate) line: Option<u64>,
    /// The place of the job in what was sent.
    pub(crate) index: Option<u64>,
    /// What a worker is told to do.
    pub(crate) command: Option<Box<str>>,
    /// The job that stands in the way.
    pub(crate) job: Option<Box<str>>,
}

impl Trouble {
    /// What a failed request says of where it stopped.
    pub(super) fn lost(url: &str, error: &ureq::Error) -> Self {
        use ureq::Timeout;
        let refused = |error: &std::io::Error| error.kind() == std::io::ErrorKind::ConnectionRefused;
        let is_no_socket = |error: &std::io::Error| {
            use std::io::ErrorKind::{NotFound, PermissionDenied};
            matches!(error.kind(), NotFound | PermissionDenied)
        };
        let never_came = matches!(
            error,
            ureq::Error::HostNotFound
                | ureq::Error::ConnectionFailed
                | ureq::Error::Tls(_)
                | ureq::Error::Rustls(_)
                | ureq::Error::Timeout(Timeout::Connect | Timeout::Resolve)
        ) || matches!(error, ureq::Error::Io(error) if refused(error) || is_socket(url) && is_no_socket(error));
        // A plain HTTP answer is not a TLS record.
        let is_plain = error.to_string().contains("InvalidContentType");
        if let (true, Some(rest)) = (is_plain, url.strip_prefix("https://")) {
            let sentence = format!("{url} does not speak TLS; try http://{rest}");
            return Self::Lost(Lost { may_have_come: false, sentence });
        }
        let sentence = if never_came {
            format!("no server answers at {url} ({error}); start one with `tenure serve` or pass --url")
        } else {
            format!("lost the connection to {url} before it answered ({error})")
        };
        Self::Lost(Lost { may_have_come: !never_came, sentence })
    }

    /// A store that was opened here does not answer.
    pub(super) fn silent(sentence: &str, may_have_come: bool) -> Self {
        Self::Lost(Lost { may_have_come, sentence: sentence.to_owned() })
    }

    /// The trouble with the last of several servers, none of which has answered.
    pub(super) fn of_several(self, may_have_come: bool) -> Self {
        match self {
            Self::Lost(Lost { sentence, .. }) => Self::Lost(Lost {
                may_have_come,
                sentence: format!("{sentence}; no other server answers either"),
            }),
            kept @ (Self::Refused(_) | Self::ReadOnly(_) | Self::Strange(_)) => kept,
        }
    }

    /// An answer that makes no sense.
    pub(crate) fn strange(what: &str) -> Self {
        Self::Strange(format!("unexpected answer ({what}); is this a Tenure server?"))
    }

    /// What is told of it.
    pub(crate) fn sentence(&self) -> String {
        match self {
            Self::Refused(refused) => refused.sentence.clone(),
            Self::Lost(lost) => lost.sentence.clone(),
            Self::ReadOnly(why) => why.sentence(),
            Self::Strange(sentence) => sentence.clone(),
        }
    }

    /// Whether to ask again may help.
    pub(crate) fn passes(&self) -> bool {
        match self {
            Self::Lost(_) => true,
            Self::Refused(refused) => matches!(refused.status, 408 | 429 | 502..=504),
            Self::Strange(_) | Self::ReadOnly(_) => false,
        }
    }
}

impl ReadOnly {
    fn sentence(&self) -> String {
        match self {
            Self::Context(context) => {
                format!("context {context} is read-only; choose another with --context to change anything")
            }
            Self::Store(name) => {
                format!("{name} is open read-only; pass --write to change it")
            }
        }
    }
}

impl Refused {
    /// Whether there is nothing of this name.
    pub(crate) fn is_not_there(&self) -> bool {
        self.status == 404
    }

    /// Reads a problem document; whatever else it is, something is said of it.
    pub(crate) fn of(status: u16, body: &[u8]) -> Self {
        let document: Value = serde_json::from_slice(body).unwrap_or_default();
        let said = |name: &str| document[name].as_str().filter(|text| !text.is_empty());
        let name = said("type").and_then(|kind| kind.rsplit(':').next()).unwrap_or_default().to_owned();
        let mut sentence = match said("detail").or_else(|| said("title")) {
            Some(detail) => detail.to_owned(),
            None => format!("the server answered with status {status} without a reason"),
        };
        if let Some(field) = said("field").filter(|field| !sentence.contains(field)) {
            sentence = format!("{field}: {sentence}");
        }
        if let Some(allowed) = said("allowed").filter(|allowed| !sentence.contains(allowed)) {
            sentence = format!("{sentence}; expected {allowed}");
        }
        let number = |name: &str| document[name].as_u64();
        // A value is named with the place of its job, such as `jobs[3].priority`.
        let in_field =
            said("field").and_then(|field| field.strip_prefix("jobs[")?.split(']').next()?.parse().ok());
        let index = number("index").or(in_field);
        let (command, job) = (said("command").map(Box::from), said("job_id").map(|id| safe::line(id).into()));
        Self { status, name, sentence: safe::line(&sentence), line: number("line"), index, command, job }
    }

    /// Says what may have been meant.
    pub(super) fn suggest(&mut self, name: &str) {
        self.sentence = format!("{}; did you mean {}?", self.sentence, safe::line(name));
    }

    /// Whether it is a problem of this kind.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.name == name
    }

    /// The status with which the program ends.
    fn code(&self) -> u8 {
        match (self.name.as_str(), self.status) {
            ("job-failed" | "job-cancelled", _) => 1,
            (_, 401 | 403 | 421) => 4,
            (_, 404 | 410) => 5,
            (_, 409 | 412 | 428) => 6,
            (_, 400 | 413 | 415 | 422) => 7,
            (_, 408 | 429 | 502..=504) => 3,
            _ => 1,
        }
    }
}

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Refused(refused) => Self::Refused { code: refused.code(), sentence: refused.sentence },
            Trouble::Lost(lost) => Self::Unreachable(lost.sentence),
            Trouble::ReadOnly(why) => Self::Refused { code: 4, sentence: why.sentence() },
            Trouble::Strange(sentence) => Self::Refused { code: 1, sentence },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(status: u16, body: &str) -> (u8, String) {
        let failure = Failure::from(Trouble::Refused(Refused::of(status, body.as_bytes()).into()));
        (failure.code(), failure.to_string())
    }

    #[test]
    fn a_problem_is_one_sentence_with_its_field_and_limit() {
        let body = r#"{"type":"urn:tenure:problem:validation","detail":"200 is too much","field":"priority","allowed":"-100 to 100"}"#;
        assert_eq!(told(422, body), (7, "priority: 200 is too much; expected -100 to 100".to_owned()));
        let body =
            r#"{"detail":"priority: 200; allowed: -100 to 100","field":"priority","allowed":"-100 to 100"}"#;
        assert_eq!(told(422, body), (7, "priority: 200; allowed: -100 to 100".to_owned()));
    }

    #[test]
    fn what_is_no_problem_document_is_told_by_its_status() {
        assert_eq!(told(500, "<html>").0, 1);
        assert!(told(502, "").1.contains("502"));
        assert_eq!(told(401, "[]").0, 4);
    }

    #[test]
    fn what_a_server_says_cannot_steer_a_terminal() {
        let (_, sentence) = told(404, r#"{"detail":"there is no \u001b]0;owned\u0007job"}"#);
        assert!(!sentence.contains('\x1b') && !sentence.contains('\x07'), "{sentence:?}");
    }
}
