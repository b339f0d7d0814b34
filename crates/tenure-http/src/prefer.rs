//! What a client would rather have (RFC 7240): to be answered at once, to wait, to hear little.

use std::time::Duration;

use axum::http::header::HeaderMap;

/// The longest wait that is granted: intermediaries give up after a minute.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(55);

/// What a client would rather have, as far as it is known here. What is not known is passed over, as the standard asks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Prefer {
    /// To wait so long for the end, counted from when the request came.
    pub wait: Option<Duration>,
    /// To be told as little as will do.
    pub minimal: bool,
    /// To be told of what was made as if the request had made it, if it is there within the wait, and else where to look.
    pub respond_async: bool,
}

impl Prefer {
    /// Reads what the headers say; the first that is said of a thing counts.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let (mut prefer, mut returns) = (Self::default(), false);
        let values = headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
        for wish in values.flat_map(|value| value.split(',')) {
            // Parameters of a wish come behind a semicolon; none is known.
            let wish = wish.split(';').next().unwrap_or_default();
            let (name, value) = wish.split_once('=').unwrap_or((wish, ""));
            let value = value.trim().trim_matches('"');
            match name.trim().to_ascii_lowercase().as_str() {
                "wait" if prefer.wait.is_none() => {
                    prefer.wait = value.parse().ok().map(|span| Duration::from_secs(span).min(LONGEST_WAIT));
                }
                "return" if !returns => {
                    (returns, prefer.minimal) = (true, value.eq_ignore_ascii_case("minimal"))
                }
                "respond-async" => prefer.respond_async = true,
                _ => {}
            }
        }
        prefer
    }

    /// What was granted of it, for `Preference-Applied`: something that is only accepted is answered later.
    pub(crate) fn applied(self, is_accepted: bool) -> Option<String> {
        let wait = self.wait.map(|span| format!("wait={}", span.as_secs()));
        let minimal = self.minimal.then(|| "return=minimal".to_owned());
        let later = (self.respond_async && is_accepted).then(|| "respond-async".to_owned());
        let applied: Vec<String> = later.into_iter().chain(wait).chain(minimal).collect();
        (!applied.is_empty()).then(|| applied.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[&str]) -> Prefer {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append("prefer", value.parse().unwrap());
        }
        Prefer::of(&headers)
    }

    #[test]
    fn wishes_are_read_in_every_form_in_which_they_are_sent() {
        let ten = Prefer { wait: Some(Duration::from_secs(10)), ..Prefer::default() };
        let later = Prefer { respond_async: true, ..ten };
        assert_eq!(read(&["respond-async, wait=10"]), later);
        assert_eq!(read(&["Respond-Async", "Wait=\"10\""]), later);
        assert_eq!(read(&["wait=10; foo=bar, wait=20"]), ten);
        assert_eq!(read(&["return=minimal"]), Prefer { minimal: true, ..Prefer::default() });
    }

    #[test]
    fn what_makes_no_sense_is_passed_over_and_no_wait_is_endless() {
        assert_eq!(read(&["wait=soon", "wait=-1", "colour=blue", "", "=;,"]), Prefer::default());
        assert_eq!(read(&["wait=99999999"]).wait, Some(LONGEST_WAIT));
        assert_eq!(read(&["wait=10, return=minimal"]).applied(true).unwrap(), "wait=10, return=minimal");
        let later = read(&["respond-async, wait=10"]);
        assert_eq!(later.applied(true).unwrap(), "respond-async, wait=10");
        assert_eq!(later.applied(false).unwrap(), "wait=10", "it was answered with what came of it");
    }
}
