//! The arithmetic of holding: when to renew, how long to wait for an answer, how long to believe.

use std::time::Duration;

use tenure_core::Ttl;
use tenure_store::Moment;

/// A lease without end is asked about as often as one of this length is renewed.
const ENDLESS: Duration = Duration::from_secs(60);
/// No request is waited for longer, however long the lease.
const LONGEST_TRY: Duration = Duration::from_secs(10);
/// The first pause after a try that came to nothing, and the longest however long the lease.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Kept back in the belief for clocks that run at different rates.
const DRIFT: f64 = 0.1;

/// What follows from for how long a lease is taken.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Beat {
    ttl: Ttl,
    span: Duration,
}

impl Beat {
    pub(super) fn of(ttl: Ttl) -> Self {
        let span = match ttl {
            Ttl::For(span) => span,
            Ttl::Endless => ENDLESS,
        };
        Self { ttl, span }
    }

    pub(super) fn ttl(self) -> Ttl {
        self.ttl
    }

    /// A third: two more tries fit in before the deadline. Never sooner, so that all leases of a program are
    /// renewed with one request for each third; a little later by chance, so that programs that started
    /// together do not go on together.
    pub(super) fn renew_after(self, chance: f64) -> Duration {
        (self.span / 3).mul_f64(1.0 + 0.1 * chance)
    }

    /// From this age on a lease is renewed along with one that has to be.
    pub(super) fn ripe_after(self) -> Duration {
        self.span / 6
    }

    /// How long a renewal waits for its answer.
    pub(super) fn try_for(self) -> Duration {
        (self.span / 6).min(LONGEST_TRY)
    }

    /// How long an acquisition waits for its answer: when that comes, the first renewal is still ahead.
    pub(super) fn ask_for(self) -> Duration {
        (self.span / 3).min(LONGEST_TRY)
    }

    /// Until when this host may believe in a good answer to a request that it sent at `sent`; without end if
    /// `None`.
    pub(super) fn deadline(self, sent: Moment) -> Option<Moment> {
        match self.ttl {
            Ttl::For(span) => {
                let margin = (span / 20).max(Duration::from_secs(1).min(span / 10));
                Some(sent.after(span.mul_f64(1.0 - DRIFT).saturating_sub(margin)))
            }
            Ttl::Endless => None,
        }
    }

    /// When the lease has surely lapsed of which the last request was sent at `sent`, if nobody asks for it
    /// again; never if `None`.
    pub(super) fn lapsed(self, sent: Moment) -> Option<Moment> {
        match self.ttl {
            Ttl::For(span) => Some(sent.after(span.mul_f64(1.0 + DRIFT))),
            Ttl::Endless => None,
        }
    }

    /// How long to pause after so many tries in a row that came to nothing.
    pub(super) fn pause(self, tries: u32, chance: f64) -> Duration {
        let most = (self.span / 12).min(LONGEST_PAUSE);
        let plain = FIRST_PAUSE.saturating_mul(1 << tries.saturating_sub(1).min(16)).min(most);
        plain.mul_f64(0.5 + 0.5 * chance)
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::limits;

    use super::*;

    const START: Moment = Moment::from_start(Duration::ZERO);

    fn lengths() -> impl Iterator<Item = Duration> {
        [1, 2, 5, 9, 10, 11, 15, 19, 20, 21, 30, 60, 3_600, 86_400].into_iter().map(Duration::from_secs)
    }

    /// T012: the next try starts within half a period of the sending of the last good one, and there is
    /// time for another before the deadline.
    #[test]
    fn a_renewal_and_one_more_with_their_timeouts_fit_in_before_the_deadline() {
        assert_eq!(lengths().next(), Some(limits::SHORTEST_LEASE));
        assert_eq!(lengths().last(), Some(limits::LONGEST_LEASE));
        for span in lengths() {
            let beat = Beat::of(Ttl::For(span));
            let deadline = beat.deadline(START).unwrap().since(START);
            assert!(beat.renew_after(1.0) < span / 2, "{span:?}");
            assert!(beat.renew_after(1.0) + 2 * beat.try_for() + beat.pause(1, 1.0) < deadline, "{span:?}");
            assert!(deadline < span.mul_f64(0.9), "{span:?}");
            assert!(beat.ask_for() < beat.renew_after(0.0) + Duration::from_millis(1), "{span:?}");
        }
    }

    #[test]
    fn the_margin_is_a_second_where_there_is_room_for_it() {
        let believed = |secs| Beat::of(Ttl::For(Duration::from_secs(secs))).deadline(START).unwrap();
        assert_eq!(believed(1), START.after(Duration::from_millis(800)));
        assert_eq!(believed(15), START.after(Duration::from_millis(12_500)));
        assert_eq!(believed(60), START.after(Duration::from_millis(51_000)));
        assert_eq!(Beat::of(Ttl::Endless).deadline(START), None);
    }
}
