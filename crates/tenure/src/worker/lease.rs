//! The arithmetic of holding: when to renew, how long to wait for an answer, how long to believe.

use std::time::Duration;

use tenure_core::limits;
use tenure_store::Moment;

use super::control::Trust;
use crate::Error;

/// How long reservations are taken for, and what follows from it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Lease {
    ttl: Duration,
}

impl Lease {
    /// A worker's reservations by default.
    pub(crate) const DEFAULT: Duration = Duration::from_secs(30);

    pub(crate) fn new(ttl: Duration) -> Result<Self, Error> {
        if ttl < limits::SHORTEST_LEASE || ttl > limits::LONGEST_LEASE {
            return Err(Error::Settings(format!(
                "the lease is {} s; expected {} s to {} s",
                ttl.as_secs_f64(),
                limits::SHORTEST_LEASE.as_secs(),
                limits::LONGEST_LEASE.as_secs()
            )));
        }
        Ok(Self { ttl })
    }

    pub(crate) fn ttl(self) -> Duration {
        self.ttl
    }

    /// A third of the lease: two more renewals fit in before it is over.
    pub(crate) fn renew_every(self) -> Duration {
        self.ttl / 3
    }

    /// How long one request may take, so that at least two tries fit in before the deadline.
    pub(crate) fn request_timeout(self) -> Duration {
        self.ttl / 6
    }

    /// What this host may believe from a good answer to a request that it sent at `sent`. A tenth is
    /// kept back for clocks that run at different rates, and a twentieth as a margin.
    pub(crate) fn trust_from(self, sent: Moment) -> Trust {
        Trust { sent, deadline: sent.after(self.ttl.mul_f64(0.85)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// T012: attempts start early enough that one failed request does not lose the lease.
    #[test]
    fn two_renewals_and_their_timeouts_fit_in_before_the_deadline() {
        for ttl in [1, 2, 15, 30, 3600].map(Duration::from_secs) {
            let lease = Lease::new(ttl).unwrap();
            let latest = lease.renew_every().mul_f64(1.1) + 2 * lease.request_timeout();
            assert!(
                latest
                    < lease
                        .trust_from(Moment::from_start(Duration::ZERO))
                        .deadline
                        .since(Moment::from_start(Duration::ZERO)),
                "{ttl:?}"
            );
        }
    }

    #[test]
    fn leases_that_cannot_work_are_refused_with_the_range() {
        for ttl in [Duration::ZERO, Duration::from_millis(999), Duration::from_secs(86_401)] {
            let told = Lease::new(ttl).unwrap_err().to_string();
            assert!(told.contains("1 s to 86400 s"), "{told}");
        }
    }
}
