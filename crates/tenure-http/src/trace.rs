//! Which trace a job belongs to (W3C Trace Context): it is kept with the job and handed to whoever runs it.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use tenure::{Draft, TraceContext};

/// The header, and the note of the job that keeps it.
pub(crate) const PARENT: &str = "traceparent";

/// The header, and the note, of what systems on the way have to say about the trace.
pub(crate) const STATE: &str = "tracestate";
/// What is longer is left out: so much everybody has to pass on.
const STATE_BYTES: usize = 512;
/// Systems that have something to say.
const STATE_MEMBERS: usize = 32;

/// The trace that a job belongs to, and what systems on the way have to say about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trace {
    parent: String,
    state: Option<String>,
}

impl Trace {
    /// That of a request.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        Some(Self { parent: parent(headers)?.to_owned(), state: state(headers) })
    }

    /// The same trace, in which this comes between.
    pub(crate) fn below(headers: &HeaderMap, parent: String) -> Self {
        // Without a parent of its own nobody knows of which trace a state is.
        Self { parent, state: self::parent(headers).and_then(|_| state(headers)) }
    }

    /// The job, in this trace.
    pub(crate) fn on(&self, draft: Draft) -> Draft {
        let draft = draft.meta(PARENT, &self.parent);
        match &self.state {
            Some(state) => draft.meta(STATE, state),
            None => draft,
        }
    }
}

/// What systems on the way have said, of all headers together; nothing if that is not understood, as the recommendation wants.
fn state(headers: &HeaderMap) -> Option<String> {
    let said: Result<Vec<&str>, _> = headers.get_all(STATE).iter().map(HeaderValue::to_str).collect();
    let said = said.ok()?.join(",");
    let members: Vec<&str> = said.split(',').map(str::trim).filter(|member| !member.is_empty()).collect();
    let is_member = |member: &&str| {
        member.split_once('=').is_some_and(|(key, value)| !key.is_empty() && !value.is_empty())
            && member.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
    };
    let is_good = !members.is_empty() && members.len() <= STATE_MEMBERS && members.iter().all(is_member);
    Some(members.join(",")).filter(|state| is_good && state.len() <= STATE_BYTES)
}

/// The trace that a request belongs to, if it says so in a way that is understood.
pub(crate) fn parent(headers: &HeaderMap) -> Option<&str> {
    let mut said = headers.get_all(PARENT).iter();
    let (Some(said), None) = (said.next()?.to_str().ok(), said.next()) else { return None };
    is_parent(said).then_some(said)
}

/// Middleware for [`axum::middleware::from_fn`]: jobs that your routes enqueue belong to the trace of their request, whichever
/// call enqueues them.
///
/// ```
/// # use axum::{Router, middleware};
/// # fn layered(routes: Router) -> Router {
/// routes.layer(middleware::from_fn(tenure_http::traced))
/// # }
/// ```
pub async fn traced(request: Request, next: Next) -> Response {
    let headers = request.headers();
    match parent(headers).and_then(|parent| TraceContext::new(parent, state(headers).as_deref())) {
        Some(trace) => trace.scope(next.run(request)).await,
        None => next.run(request).await,
    }
}

/// Returns true for a valid `traceparent`.
pub(crate) fn is_parent(text: &str) -> bool {
    TraceContext::new(text, None).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_systems_on_the_way_say_is_kept_as_they_said_it_or_not_at_all() {
        let told = |states: &[&str]| {
            let mut headers = HeaderMap::new();
            for said in states {
                headers.append(STATE, HeaderValue::from_str(said).unwrap());
            }
            state(&headers)
        };
        assert_eq!(
            told(&["rojo=00f067aa0ba902b7, congo=t61rcWkgMzE"]).unwrap(),
            "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"
        );
        assert_eq!(told(&["a=1", "b@x=2"]).unwrap(), "a=1,b@x=2");
        let (long, many) = (format!("a={}", "x".repeat(600)), vec!["a=1"; 33].join(","));
        for bad in ["", " , ", "a", "a=", "=b", "a=1,b", &long, &many] {
            assert_eq!(told(&[bad]), None, "{bad}");
        }
        assert_eq!(told(&[]), None);
    }
}
