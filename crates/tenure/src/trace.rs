//! The trace to which jobs belong (W3C Trace Context).

use std::sync::Arc;

use tenure_core::{Job, limits};

use crate::Draft;

/// The metadata entry for the trace and the span above the job.
const PARENT: &str = "traceparent";
/// The metadata entry for the data of tracing systems.
const STATE: &str = "tracestate";

tokio::task_local! {
    static CURRENT: TraceContext;
}

/// A position in a distributed trace, as in the headers `traceparent` and `tracestate` of the W3C Trace Context.
///
/// Jobs that are enqueued within its [`scope`](Self::scope) keep it as metadata, whichever call enqueues them. A worker
/// runs each handler within the scope of its job, so follow-up jobs belong to the same trace.
///
/// ```
/// # use tenure::{Draft, Tenure, TraceContext};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), tenure::Error> {
/// # let tenure = Tenure::open("memory:").await?;
/// let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
/// let trace = TraceContext::new(header, None).expect("a valid header");
/// let draft = Draft::raw("mail", &serde_json::json!({}));
/// let id = trace.scope(tenure.enqueue_draft(draft).into_future()).await?.id();
/// assert_eq!(tenure.jobs().get(id).await?.terms.meta["traceparent"], header);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    parent: Arc<str>,
    state: Option<Arc<str>>,
}

impl TraceContext {
    /// Reads the two headers; `None` if `traceparent` is invalid.
    #[must_use]
    pub fn new(traceparent: &str, tracestate: Option<&str>) -> Option<Self> {
        is_parent(traceparent).then(|| Self { parent: traceparent.into(), state: tracestate.map(Into::into) })
    }

    /// Returns the trace of the current task: that of the scope it runs in.
    #[must_use]
    pub fn current() -> Option<Self> {
        CURRENT.try_with(Clone::clone).ok()
    }

    /// Returns the trace of a job, from its metadata.
    #[must_use]
    pub fn of(job: &Job) -> Option<Self> {
        let meta = &job.terms.meta;
        Self::new(meta.get(PARENT)?, meta.get(STATE).map(String::as_str))
    }

    /// Returns the value for the header `traceparent`.
    #[must_use]
    pub fn traceparent(&self) -> &str {
        &self.parent
    }

    /// Returns the value for the header `tracestate`.
    #[must_use]
    pub fn tracestate(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// Runs a future in this trace. Tasks that it spawns are not in the trace.
    pub async fn scope<F: Future>(self, future: F) -> F::Output {
        CURRENT.scope(self, future).await
    }

    /// Runs a function in this trace.
    pub fn sync_scope<T>(self, call: impl FnOnce() -> T) -> T {
        CURRENT.sync_scope(self, call)
    }
}

/// The draft, in the trace of the current task. A trace that the draft names itself stays, and so do other entries if
/// there is no room for one more.
pub(crate) fn in_current(draft: Draft) -> Draft {
    if draft.note(PARENT).is_some() || draft.notes() + 2 > limits::META_ENTRIES {
        return draft;
    }
    let Some(trace) = TraceContext::current() else { return draft };
    let draft = draft.meta(PARENT, trace.traceparent());
    match trace.tracestate().filter(|state| state.len() <= limits::META_BYTES) {
        Some(state) => draft.meta(STATE, state),
        None => draft,
    }
}

/// `00-`, a trace, a span and flags, in hex; neither trace nor span is all zeros.
fn is_parent(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [version, trace, span, flags] = parts[..] else { return false };
    let is_hex = |text: &str, length: usize| {
        text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let is_any = |text: &str| text.bytes().any(|byte| byte != b'0');
    version == "00"
        && is_hex(trace, 32)
        && is_hex(span, 16)
        && is_hex(flags, 2)
        && is_any(trace)
        && is_any(span)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_understood_is_kept() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert!(TraceContext::new(good, None).is_some());
        for bad in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00F067AA0BA902B7-01",
            &good.replace('-', "_"),
        ] {
            assert!(TraceContext::new(bad, None).is_none(), "{bad}");
        }
    }
}
