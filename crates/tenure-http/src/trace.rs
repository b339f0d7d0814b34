//! Which trace a job belongs to (W3C Trace Context): it is kept with the job and handed to whoever runs it.

use axum::http::HeaderMap;

/// The header, and the note of the job that keeps it.
pub(crate) const PARENT: &str = "traceparent";

/// The trace that a request belongs to, if it says so in a way that is understood.
pub(crate) fn parent(headers: &HeaderMap) -> Option<&str> {
    let mut said = headers.get_all(PARENT).iter();
    let (Some(said), None) = (said.next()?.to_str().ok(), said.next()) else { return None };
    is_parent(said).then_some(said)
}

/// `00-`, a trace, a span and flags, in hex; neither trace nor span is all zeros.
pub(crate) fn is_parent(text: &str) -> bool {
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
        assert!(is_parent(good));
        for bad in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            &good.replace('-', "_"),
        ] {
            assert!(!is_parent(bad), "{bad}");
        }
    }
}
