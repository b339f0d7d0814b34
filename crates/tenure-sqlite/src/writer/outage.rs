//! Trouble with the whole file, such as a full disk. Every transaction meets it, and the log has room for what matters:
//! it tells the beginning and the end.

use std::time::Duration;

use tenure_store::{Fault, Moment};

/// The trouble that keeps transactions from being written, if there is any.
#[derive(Debug, Default)]
pub(crate) struct Outage(Option<Ongoing>);

#[derive(Debug)]
struct Ongoing {
    fault: Fault,
    began: Moment,
    failed: u64,
}

/// An outage that is over.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    /// Number of transactions that failed.
    pub failed: u64,
    pub lasted: Duration,
}

impl Outage {
    /// Counts a transaction that failed. Returns `true` if this fault was not there before.
    pub(crate) fn failed(&mut self, fault: &Fault, now: Moment) -> bool {
        match &mut self.0 {
            Some(ongoing) if ongoing.fault == *fault => {
                ongoing.failed += 1;
                false
            }
            other => {
                let (began, failed) =
                    other.as_ref().map_or((now, 0), |earlier| (earlier.began, earlier.failed));
                *other = Some(Ongoing { fault: fault.clone(), began, failed: failed + 1 });
                true
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn is_ongoing(&self) -> bool {
        self.0.is_some()
    }

    /// A transaction was written. Returns the outage that has ended with it, if there was one.
    pub(crate) fn ended(&mut self, now: Moment) -> Option<Ended> {
        let Ongoing { began, failed, .. } = self.0.take()?;
        Some(Ended { failed, lasted: now.since(began) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_trouble_is_told_once_and_its_end_with_how_often_it_came() {
        let at = |seconds| Moment::from_start(Duration::from_secs(seconds));
        let [full, broken] = ["disk full", "disk I/O error"].map(|text| Fault::Unavailable(text.to_owned()));
        let mut outage = Outage::default();
        assert_eq!(outage.ended(at(0)), None);
        let told = [(&full, 1), (&full, 2), (&broken, 3), (&broken, 4)]
            .map(|(fault, second)| outage.failed(fault, at(second)));
        assert_eq!(told, [true, false, true, false]);
        assert_eq!(outage.ended(at(9)), Some(Ended { failed: 4, lasted: Duration::from_secs(8) }));
        assert_eq!(outage.ended(at(9)), None);
    }
}
