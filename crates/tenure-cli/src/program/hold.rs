//! For how long a job is held while its program runs, and while it ends.

use std::time::Duration;

use tenure::limits;

use super::LEASE;

/// So often all jobs are renewed.
pub(super) const BEAT: Duration = Duration::from_secs(5);
/// A server takes a job whose time is over from whoever renews it, and gives it to somebody else while its program still has its
/// grace. So it is renewed for the last time when it has this much left, and held until its program has ended.
const LAST_BEAT: Duration = BEAT;
/// From then on it is renewed for its grace as well: early enough for a beat of that sort, and another if that one is lost.
pub(super) const LONG_BEATS: Duration = Duration::from_secs(3 * BEAT.as_secs());
/// A program may take so long to end without that.
pub(super) const SHORT_GRACE: Duration = Duration::from_secs(10);

/// For how long a job is to be held that has so much of its time left; none if it is not renewed any more.
pub(super) fn lease(left: Option<Duration>, grace: Duration) -> Option<Duration> {
    match left {
        Some(left) if left <= LAST_BEAT => None,
        Some(left) if left <= LONG_BEATS => Some(long_lease(grace)),
        Some(_) | None => Some(LEASE),
    }
}

/// Until the end of the grace, and a little: not all of a lease is counted on.
pub(super) fn long_lease(grace: Duration) -> Duration {
    (LEASE + grace.mul_f64(1.2)).min(limits::LONGEST_LEASE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is left of a lease when the time is over, at the worst: from the last beat but one, and nine tenths of it.
    #[test]
    fn a_job_is_held_for_the_grace_of_its_program_after_its_time_and_not_renewed_then() {
        assert_eq!(lease(None, Duration::ZERO), Some(LEASE));
        for seconds in [0, 1, 10, 60, 600, 3_600] {
            let grace = Duration::from_secs(seconds);
            assert_eq!(
                lease(Some(Duration::from_secs(3_600)), grace),
                Some(LEASE),
                "a host that dies is missed soon"
            );
            let long = lease(Some(LAST_BEAT + BEAT), grace).unwrap();
            assert!(long.mul_f64(0.9) - (LAST_BEAT + BEAT) - LEASE / 6 >= grace, "{grace:?}: {long:?}");
            assert_eq!(lease(Some(LAST_BEAT), grace), None);
            assert_eq!(lease(Some(Duration::ZERO), grace), None);
        }
    }
}
