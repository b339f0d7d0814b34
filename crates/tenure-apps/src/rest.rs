//! How long a continuous app rests before it is begun again.

use std::time::Duration;

/// What ran for so long was no crash.
pub const STEADY: Duration = Duration::from_secs(120);
/// The longest rest, unless the ordinary one is longer.
const LONGEST: Duration = Duration::from_secs(30 * 60);

/// After a second crash of what need not rest after the first.
const SHORTEST: Duration = Duration::from_secs(1);

/// The rest after a run of so long, the `crashes`th in a row that was too short (from 1 on). Nothing after a steady run; else
/// the ordinary rest, which is doubled with each further crash. If the ordinary one is none, it is a second from the second
/// crash on: who wants a program back at once does not want a machine that does nothing but begin it.
#[must_use]
pub fn rest(ordinary: Duration, ran: Duration, crashes: u32) -> Duration {
    if ran >= STEADY {
        return Duration::ZERO;
    }
    if ordinary.is_zero() {
        return if crashes <= 1 { Duration::ZERO } else { rest(SHORTEST, ran, crashes - 1) };
    }
    let doubled = 1_u32.checked_shl(crashes.saturating_sub(1).min(20)).unwrap_or(u32::MAX);
    ordinary.saturating_mul(doubled).min(LONGEST.max(ordinary))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// T082: 60 s, nothing after two minutes, and more and more for what crashes again and again.
    #[test]
    fn t082_crashes_rest_longer_and_longer_and_a_steady_run_not_at_all() {
        let (minute, short) = (Duration::from_secs(60), Duration::from_secs(1));
        let rests: Vec<u64> = (1..=7).map(|crash| rest(minute, short, crash).as_secs()).collect();
        assert_eq!(rests, [60, 120, 240, 480, 960, 1800, 1800]);
        assert_eq!(rest(minute, STEADY, 1), Duration::ZERO);
        assert_eq!(rest(minute, STEADY - Duration::from_millis(1), 1), minute);
        let rests: Vec<u64> = (1..=14).map(|crash| rest(Duration::ZERO, short, crash).as_secs()).collect();
        assert_eq!(rests, [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1800, 1800]);
        assert_eq!(rest(Duration::ZERO, short, u32::MAX).as_secs(), 1800);
        assert_eq!(rest(Duration::ZERO, STEADY, 9), Duration::ZERO);
        let hour = Duration::from_secs(3600);
        assert_eq!([rest(hour, short, 1), rest(hour, short, u32::MAX)], [hour, hour]);
    }
}
