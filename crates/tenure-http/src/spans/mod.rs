//! Spans: what a job went through, told to a collector of OpenTelemetry. Off unless the operator names one; what is told never
//! waits for whoever is told.

pub(crate) mod attempt;
mod context;
mod export;
pub(crate) mod firing;
mod span;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tenure::{Clock, Invalid};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) use crate::otlp::Value;
pub(crate) use context::Context;
pub(crate) use span::{Kind, Span};

use crate::otlp::Collector;

/// Spans that wait to be told; what comes beyond that is left out.
const WAITING: usize = 8_192;

/// Settings of trace export.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Traces {
    /// The collector.
    pub collector: Collector,
    /// Share of traces that are sampled, from 0 to 1, for traces that begin here.
    pub share: f64,
    /// Follows the sampling decision of the parent trace, whatever the share.
    pub as_parent: bool,
}

impl Traces {
    /// Sends all traces to this URL of a collector, such as `http://127.0.0.1:4318/v1/traces`.
    ///
    /// # Errors
    /// An invalid URL.
    pub fn to(endpoint: &str) -> Result<Self, Invalid> {
        Ok(Self { collector: Collector::at(endpoint)?, share: 1.0, as_parent: true })
    }
}

/// Tells spans, or nothing at all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spans(Option<Arc<On>>);

#[derive(Debug)]
struct On {
    to: mpsc::Sender<Span>,
    share: f64,
    as_parent: bool,
    told: Arc<Told>,
}

/// How many were told, and how many were not.
#[derive(Debug, Default)]
pub(crate) struct Told {
    sent: AtomicU64,
    dropped: AtomicU64,
}

/// What tells them, to be ended.
pub(crate) struct Telling {
    closing: CancellationToken,
    task: Option<JoinHandle<()>>,
}

impl Spans {
    /// Begins to tell, if somebody wants it.
    pub(crate) fn start(traces: Option<&Traces>, clock: &Arc<dyn Clock>) -> (Self, Telling) {
        let closing = CancellationToken::new();
        let Some(traces) = traces else { return (Self::default(), Telling { closing, task: None }) };
        let ((to, from), told) = (mpsc::channel(WAITING), Arc::new(Told::default()));
        let export = export::Export::new(traces.collector.clone(), Arc::clone(clock), Arc::clone(&told));
        let task = Some(tokio::spawn(export.run(from, closing.clone())));
        let on = On { to, share: traces.share, as_parent: traces.as_parent, told };
        (Self(Some(Arc::new(on))), Telling { closing, task })
    }

    /// A span of a trace that a request belongs to, or of one that begins; `None` if nothing is told.
    pub(crate) fn begin(&self, parent: Option<&str>) -> Option<Begun> {
        let on = self.0.as_ref()?;
        let parent = parent.and_then(Context::read);
        let trace = parent.map_or_else(Context::draw, |parent| Some(parent.in_trace()))?;
        let is_told = match parent {
            Some(parent) if on.as_parent => parent.is_told,
            Some(_) | None => trace.is_among(on.share),
        };
        Some(Begun { context: Context { is_told, ..trace }, parent: parent.map(|parent| parent.span) })
    }

    /// The context of an attempt of a job: whoever runs it goes on from there.
    pub(crate) fn of_attempt(&self, job: &tenure::JobRecord) -> Option<Begun> {
        let on = self.0.as_ref()?;
        let named = job.terms.meta.get(crate::trace::PARENT).and_then(|text| Context::read(text));
        let fired = || job.terms.slot.as_ref().and_then(|_| self.of_firing(job.id));
        let parent = named.or_else(fired);
        let trace = parent.unwrap_or_else(|| Context::of_job(job.id));
        let is_told = match parent {
            Some(parent) if on.as_parent => parent.is_told,
            Some(_) | None => trace.is_among(on.share),
        };
        let context = Context { is_told, ..trace.for_attempt(job.id, job.fence) };
        Some(Begun { context, parent: parent.map(|parent| parent.span) })
    }

    /// The context of the firing that brought a job of a timer, which belongs to no other trace.
    pub(crate) fn of_firing(&self, job: tenure::JobId) -> Option<Context> {
        let context = Context::of_firing(job);
        self.0.as_ref().map(|on| Context { is_told: context.is_among(on.share), ..context })
    }

    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Tells a span, unless too many wait to be told.
    pub(crate) fn tell(&self, span: Span) {
        let Some(on) = self.0.as_ref().filter(|_| span.context.is_told) else { return };
        if on.to.try_send(span).is_err() {
            on.told.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many were told and how many were left out; `None` if nothing is told.
    pub(crate) fn counts(&self) -> Option<(u64, u64)> {
        let told = &self.0.as_ref()?.told;
        Some((told.sent.load(Ordering::Relaxed), told.dropped.load(Ordering::Relaxed)))
    }
}

/// A span that has begun.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Begun {
    pub context: Context,
    pub parent: Option<[u8; 8]>,
}

impl Telling {
    /// Tells what is still to be told, for a moment.
    pub(crate) async fn end(self, clock: &dyn Clock) {
        const WITHIN: Duration = Duration::from_secs(2);
        self.closing.cancel();
        let Some(task) = self.task else { return };
        tokio::select! {
            biased;
            _ = task => {}
            () = clock.sleep(WITHIN) => {}
        }
    }
}
