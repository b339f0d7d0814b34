//! How long a continuous app rests before it is begun again.

use std::time::Duration;

/// What ran for so long was no crash.
pub const STEADY: Duration = Duration::from_secs(120);
/// The longest rest, unless the ordinary one is longer.
const LONGEST: Duration = Duration::from_secs(30 * 60);

/// The rest after a run of so long, the `crashes`th in a row that was too short (from 1 on). Nothing after a steady run; else
/// the ordinary rest, which is doubled with each further crash.
#[must_use]
pub fn rest(ordinary: Duration, ran: Duration, crashes: u32) -> Duration {
    if ran >= STEADY {
        return Duration::ZERO;
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
        assert_eq!(rest(Duration::ZERO, short, 9), Duration::ZERO);
        let hour = Duration::from_secs(3600);
        assert_eq!([rest(hour, short, 1), rest(hour, short, u32::MAX)], [hour, hour]);
    }
}
