//! A job has one holder at a time, and loses it only to silence.

use std::collections::BTreeMap;
use std::time::Duration;

use tenure_core::{Fence, JobId, Timestamp};
use tenure_store::{ChangeOutcome, Settled};

use super::Check;
use crate::history::{Changing, Entry, Grant, Renewed, What, Who, Why};

/// A job is granted again only after its holder settled it, was silent past its lease, or did not
/// heed a wish to cancel. Once its lease has lapsed it is not renewed. A holder is silent only if it is in
/// trouble or a clock stepped. A handler believes that it holds its job only while nobody else was granted it.
#[derive(Default)]
pub(super) struct Holders {
    owned: BTreeMap<(u64, Fence), Owned>,
    last: BTreeMap<u64, Fence>,
    places: BTreeMap<JobId, u64>,
    trouble: BTreeMap<Who, Trouble>,
    stepped: Option<Duration>,
    /// What the store's clock had shown before each step, and when that was.
    peaks: Vec<(Duration, Timestamp)>,
}

/// An ownership.
struct Owned {
    by: Who,
    until: Timestamp,
    ttl: Duration,
    heard: Duration,
    cancel_by: Option<Timestamp>,
    settled: bool,
}

/// What troubles a host now, and when something last did.
#[derive(Default)]
struct Trouble {
    now: Vec<Why>,
    last: Option<Duration>,
}

impl Check for Holders {
    fn rule(&self) -> &'static str {
        "one holder at a time, lost only to silence"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        self.note_trouble(entry);
        if let What::Row(row) = &entry.what {
            self.places.insert(row.id, row.seq);
        }
        if let What::Granted(grant) = &entry.what {
            return self.granted(grant, entry);
        }
        if let What::Renewed { seq, fence, answer: Renewed::Until(until) } = &entry.what
            && let Some(owned) = self.owned.get_mut(&(*seq, *fence))
        {
            if owned.until <= entry.store_now {
                let lapsed = owned.until;
                return Err(format!(
                    "#{seq} fence {fence} was renewed at {}, but had lapsed at {lapsed}",
                    entry.store_now
                ));
            }
            (owned.until, owned.heard) = (*until, entry.at);
        }
        if let What::Settled { seq, fence, answer: Settled::Done(_), .. } = &entry.what
            && let Some(owned) = self.owned.get_mut(&(*seq, *fence))
        {
            owned.settled = true;
        }
        if let What::Changed { id, change: Changing::Cancel(grace), outcome: ChangeOutcome::Asked } =
            &entry.what
        {
            let last = self.places.get(id).and_then(|seq| Some((*seq, *self.last.get(seq)?)));
            if let Some(owned) = last.and_then(|last| self.owned.get_mut(&last)) {
                owned.cancel_by = Some(entry.store_now.after(*grace));
            }
        }
        if let What::Believes { seq, fence } = &entry.what {
            return self.believes(*seq, *fence);
        }
        Ok(())
    }
}

impl Holders {
    fn note_trouble(&mut self, entry: &Entry) {
        if let What::StoreStepped(by_us) = &entry.what {
            self.stepped = Some(entry.at);
            let before_us = entry.store_now.as_micros().saturating_sub(*by_us);
            let before = Timestamp::from_micros(before_us).unwrap_or(Timestamp::EPOCH);
            self.peaks.push((entry.at, before));
        }
        if let What::Faulted(_) = &entry.what {
            self.trouble.entry(entry.who).or_default().last = Some(entry.at);
        }
        if let What::StopAsked { .. } = &entry.what {
            self.trouble.entry(entry.who).or_default().now.push(Why::Stops);
        }
        if let What::Trouble { why, begins } = &entry.what {
            let trouble = self.trouble.entry(entry.who).or_default();
            trouble.last = Some(entry.at);
            match begins {
                true => trouble.now.push(*why),
                false => trouble.now.retain(|now| now != why),
            }
        }
    }

    fn granted(&mut self, grant: &Grant, entry: &Entry) -> Result<(), String> {
        let before = self.last.insert(grant.seq, grant.fence);
        let owned = before.and_then(|fence| self.owned.get(&(grant.seq, fence)));
        let verdict = owned.map_or(Ok(()), |owned| self.may_go(grant.seq, owned, entry));
        let (by, until, heard) = (entry.who, grant.until, entry.at);
        let ttl = until.since(entry.store_now);
        let owned = Owned { by, until, ttl, heard, cancel_by: None, settled: false };
        self.owned.insert((grant.seq, grant.fence), owned);
        verdict
    }

    fn may_go(&self, seq: u64, owned: &Owned, entry: &Entry) -> Result<(), String> {
        // A job may have been taken while the store's clock showed more than it does now.
        let peaks = self.peaks.iter().filter(|(at, _)| *at >= owned.heard).map(|(_, shown)| *shown);
        let latest = peaks.fold(entry.store_now, Timestamp::max);
        if owned.settled || owned.cancel_by.is_some_and(|by| by <= latest) {
            return Ok(());
        }
        if owned.until > latest {
            return Err(format!("#{seq} was taken from {}, which holds it until {}", owned.by, owned.until));
        }
        // A holder that heard no answer for most of its lease gives up, even if a request that it has
        // long abandoned then arrives and renews.
        let from = owned.heard.saturating_sub(owned.ttl);
        let troubled = |trouble: &Trouble| !trouble.now.is_empty() || trouble.last >= Some(from);
        if self.stepped >= Some(owned.heard) || self.trouble.get(&owned.by).is_some_and(troubled) {
            return Ok(());
        }
        let silent = entry.at.saturating_sub(owned.heard);
        Err(format!(
            "{} lost #{seq} after {silent:?} without renewal, though nothing kept it from it",
            owned.by
        ))
    }

    fn believes(&self, seq: u64, fence: Fence) -> Result<(), String> {
        let (Some(last), Some(owned)) = (self.last.get(&seq), self.owned.get(&(seq, fence))) else {
            return Ok(());
        };
        // A store whose clock steps takes early, and so does somebody who cancels: the fence is what
        // protects then.
        if *last == fence || self.stepped >= Some(owned.heard) || owned.cancel_by.is_some() {
            return Ok(());
        }
        Err(format!("a handler of #{seq} believes in fence {fence}, but fence {last} was granted"))
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::{Next, StateName};

    use super::super::made::{H0, H1, at, fence, grant, second, verdict};
    use super::*;

    fn says(history: impl IntoIterator<Item = Entry>) -> Result<(), String> {
        verdict(Holders::default(), history)
    }

    fn crash() -> Entry {
        at(3, H0, What::Trouble { why: Why::Crashed, begins: true })
    }

    #[test]
    fn a_job_that_is_taken_before_its_time_is_found() {
        assert!(says([at(1, H0, grant(1, 9)), crash(), at(5, H1, grant(2, 15))]).is_err());
        let renewed = What::Renewed { seq: 1, fence: fence(1), answer: Renewed::Until(second(20)) };
        assert!(
            says([at(1, H0, grant(1, 9)), at(2, H0, renewed), crash(), at(15, H1, grant(2, 25))]).is_err()
        );
    }

    #[test]
    fn a_job_that_is_renewed_after_its_lease_has_lapsed_is_found() {
        let renewed =
            |until| What::Renewed { seq: 1, fence: fence(1), answer: Renewed::Until(second(until)) };
        assert_eq!(says([at(1, H0, grant(1, 9)), at(8, H0, renewed(17)), at(16, H0, renewed(25))]), Ok(()));
        assert!(says([at(1, H0, grant(1, 9)), at(9, H0, renewed(17))]).is_err());
    }

    #[test]
    fn a_healthy_holder_that_loses_its_job_is_found() {
        assert!(says([at(1, H0, grant(1, 9)), at(10, H1, grant(2, 19))]).is_err());
    }

    #[test]
    fn two_believers_are_found() {
        let believes = What::Believes { seq: 1, fence: fence(1) };
        assert!(
            says([at(1, H0, grant(1, 9)), crash(), at(10, H1, grant(2, 19)), at(11, H0, believes)]).is_err()
        );
    }

    #[test]
    fn a_settled_a_silent_and_a_cancelled_holder_may_lose_its_job() {
        let answer = Settled::Done(StateName::Queued);
        let settled =
            What::Settled { seq: 1, fence: fence(1), next: Next::Succeed, answer, fence_then: None };
        assert_eq!(says([at(1, H0, grant(1, 9)), at(2, H0, settled), at(2, H1, grant(2, 19))]), Ok(()));
        assert_eq!(says([at(1, H0, grant(1, 9)), crash(), at(9, H1, grant(2, 19))]), Ok(()));
        let faulted = at(5, H0, What::Faulted("renew"));
        assert_eq!(says([at(1, H0, grant(1, 9)), faulted, at(9, H1, grant(2, 19))]), Ok(()));
    }
}
