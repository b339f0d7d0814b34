//! For how long a job is held while its program runs, and while it ends.

use std::time::Duration;

use tenure::limits;

use super::LEASE;

/// So often all jobs are renewed.
pub(super) const BEAT: Duration = Duration::from_secs(5);
/// How long such a request may take.
pub(super) const WITHIN: Duration = Duration::from_secs(8);
/// A server takes a job whose time is over from whoever renews it, and gives it to somebody else while its program still has its
/// grace. So it is renewed for the last time when it has this much left, which is more than a beat takes, and held until its program
/// has ended.
const LAST_BEAT: Duration = WITHIN.saturating_add(Duration::from_secs(2));
/// From then on it is renewed for its grace as well: early enough for a beat of that sort, and another if that one is lost.
const LONG_BEATS: Duration = LAST_BEAT.saturating_add(BEAT.saturating_add(WITHIN).saturating_mul(2));
/// A program of ours is told that its job is lost when it is held for no longer than this.
const MARGIN: Duration = Duration::from_secs(LEASE.as_secs() / 6);

/// For how long a job is to be held that has so much of its time left; none if it is not renewed any more.
pub(super) fn lease(left: Option<Duration>, grace: Duration) -> Option<Duration> {
    match left {
        Some(left) if left <= LAST_BEAT => None,
        Some(left) if left <= LONG_BEATS => Some(long_lease(grace)),
        Some(_) | None => Some(LEASE),
    }
}

/// Until the end of the grace, and a little, wherever in its last beats it is asked for: not all of a lease is counted on.
pub(super) fn long_lease(grace: Duration) -> Duration {
    (LEASE + 2 * LAST_BEAT + grace.mul_f64(1.2)).min(limits::LONGEST_LEASE)
}

/// Whether the time of a job that has so much of it left, and is held for so long, is over so soon that it has to be held for its grace
/// before there is any beat.
pub(super) fn is_soon(left: Duration, held: Duration, grace: Duration) -> bool {
    left <= LONG_BEATS && held < left + grace + MARGIN
}

/// So much of a span that its end here is told before its end there.
pub(super) fn a_little_less(span: Duration) -> Duration {
    span.saturating_sub(span.mul_f64(0.02).min(Duration::from_secs(2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_renewed_for_long_in_the_last_of_its_time_and_not_when_a_beat_may_come_too_late() {
        assert_eq!(lease(None, Duration::ZERO), Some(LEASE));
        for seconds in [0, 1, 10, 60, 600, 3_600] {
            let grace = Duration::from_secs(seconds);
            assert_eq!(
                lease(Some(Duration::from_secs(3_600)), grace),
                Some(LEASE),
                "a host that dies is missed soon"
            );
            assert_eq!(lease(Some(LONG_BEATS), grace), Some(long_lease(grace)));
            assert_eq!(lease(Some(WITHIN), grace), None, "it may reach the server when the time is over");
            assert_eq!(lease(Some(Duration::ZERO), grace), None);
        }
    }

    /// Whatever the time, the grace, how long each beat takes, and which of them is lost; nine tenths of a lease are counted on.
    #[test]
    fn a_job_is_held_until_its_program_has_had_its_grace() {
        let counted = |lease: Duration| lease.mul_f64(0.9);
        for (time, grace, takes, lost) in (1..120).flat_map(|time| {
            let of = move |grace| {
                (0..=8).flat_map(move |takes| (0..12).map(move |lost| (time, grace, takes, lost)))
            };
            [0, 1, 10, 12, 60, 3_600].into_iter().flat_map(of)
        }) {
            let [time, grace, takes] = [time, grace, takes].map(Duration::from_secs);
            let mut held = counted(LEASE);
            if is_soon(time, held, grace) {
                held = counted(long_lease(grace));
            }
            let mut at = BEAT;
            for beat in 0.. {
                let Some(lease) = lease(Some(time.saturating_sub(at)), grace) else { break };
                assert!(at + WITHIN < time);
                // One that is lost takes as long as it may.
                let is_lost = beat == lost;
                held = if is_lost { held } else { held.max(at + counted(lease)) };
                at += BEAT + if is_lost { WITHIN } else { takes };
            }
            assert!(held >= time + grace + MARGIN, "{time:?} {grace:?} {takes:?} {lost}: {held:?}");
        }
    }
}
