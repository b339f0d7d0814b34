//! Which span of which trace (W3C Trace Context).

use std::fmt;

use sha2::{Digest, Sha256};
use tenure::{Fence, JobId};

use crate::secret::{drawn, hex};
use crate::trace::is_parent;

/// A span of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Context {
    pub trace: [u8; 16],
    pub span: [u8; 8],
    /// Whether it is told to a collector.
    pub is_told: bool,
}

impl Context {
    /// As it stands in `traceparent`.
    pub(crate) fn read(text: &str) -> Option<Self> {
        if !is_parent(text) {
            return None;
        }
        let (mut trace, mut span) = ([0; 16], [0; 8]);
        unhex(&text[3..35], &mut trace)?;
        unhex(&text[36..52], &mut span)?;
        let flags = u8::from_str_radix(&text[53..55], 16).ok()?;
        Some(Self { trace, span, is_told: flags & 1 == 1 })
    }

    /// A trace that begins; `None` if the system has no chance for it.
    pub(crate) fn draw() -> Option<Self> {
        Some(Self { trace: drawn().ok()?, span: drawn().ok()?, is_told: true })
    }

    /// Another span of this trace.
    pub(crate) fn in_trace(self) -> Self {
        Self { span: drawn().unwrap_or(self.span), ..self }
    }

    /// The trace of a job that belongs to none: whoever asks finds the same.
    pub(crate) fn of_job(job: JobId) -> Self {
        Self { trace: *job.as_bytes(), span: [0; 8], is_told: true }
    }

    /// The span of an attempt: whoever asks finds the same, whichever server granted it.
    pub(crate) fn for_attempt(self, job: JobId, fence: Fence) -> Self {
        let digest = Sha256::new().chain_update(job.as_bytes()).chain_update(fence.number().to_be_bytes());
        let digest = digest.finalize();
        Self { span: std::array::from_fn(|at| digest[at]), ..self }
    }

    /// The span of the firing that brought a job: whoever asks finds the same, whichever program fired.
    pub(crate) fn of_firing(job: JobId) -> Self {
        let digest = Sha256::new().chain_update(job.as_bytes()).chain_update(b"fire").finalize();
        Self { span: std::array::from_fn(|at| digest[at]), ..Self::of_job(job) }
    }

    /// Whether it is among this share of all traces: by its trace, so that all who ask find the same.
    pub(crate) fn is_among(self, share: f64) -> bool {
        let last: [u8; 8] = std::array::from_fn(|at| self.trace[8 + at]);
        let place = (u64::from_be_bytes(last) >> 1) as f64 / (u64::MAX >> 1) as f64;
        share >= 1.0 || place < share
    }
}

impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-{:02x}", hex(&self.trace), hex(&self.span), u8::from(self.is_told))
    }
}

fn unhex(text: &str, bytes: &mut [u8]) -> Option<()> {
    for (byte, at) in bytes.iter_mut().zip((0..text.len()).step_by(2)) {
        *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn it_is_written_as_it_was_read() {
        let context = Context::read(TEXT).unwrap();
        assert!(context.is_told);
        assert_eq!(context.to_string(), TEXT);
        let untold = TEXT.replace("-01", "-00");
        assert_eq!(Context::read(&untold).unwrap().to_string(), untold);
        assert_eq!(Context::read("00-00-00-00"), None);
    }

    #[test]
    fn the_span_of_an_attempt_is_its_own_and_found_again() {
        let (trace, job) = (Context::read(TEXT).unwrap(), JobId::from_bytes([7; 16]));
        let span = |fence| trace.for_attempt(job, Fence::from_number(fence)).span;
        assert_eq!(span(1), span(1));
        assert_ne!(span(1), span(2));
    }

    #[test]
    fn a_share_is_of_traces_and_not_of_spans() {
        let among = |share: f64| {
            let all = (0..1_000_u32).map(|number| {
                let digest = Sha256::digest(number.to_be_bytes());
                Context { trace: std::array::from_fn(|at| digest[at]), span: [1; 8], is_told: true }
            });
            all.filter(|context| context.is_among(share)).count()
        };
        assert_eq!((among(0.0), among(1.0)), (0, 1_000));
        assert!((200..300).contains(&among(0.25)), "{}", among(0.25));
    }
}
