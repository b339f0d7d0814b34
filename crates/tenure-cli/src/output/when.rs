//! Instants and spans, as people say and read them.

use std::time::Duration;

use tenure::Timestamp;

/// How long ago, or in how long.
pub(super) fn relative(at: Timestamp, now: Timestamp) -> String {
    if at > now { format!("in {}", span(at.since(now))) } else { format!("{} ago", span(now.since(at))) }
}

/// Seconds since 1970.
pub(super) fn unix(at: Timestamp) -> String {
    let micros = at.as_micros();
    format!("{}.{:06}", micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000))
}

/// A span in the unit that reads best.
fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7_199 => format!("{} m", seconds / 60),
        7_200..=172_799 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_told_by_their_distance() {
        let at = |seconds: u64| Timestamp::EPOCH.after(Duration::from_secs(seconds));
        assert_eq!(relative(at(10), at(15)), "5 s ago");
        assert_eq!(relative(at(9_000), at(15)), "in 2 h");
        assert_eq!(relative(at(0), at(400_000)), "4 d ago");
        assert_eq!(unix(at(7)), "7.000000");
    }
}
