//! The ledger tells what happened.

use std::collections::{BTreeSet, VecDeque};

use tenure_core::{
    Fence, Holder, LeaseAct, LeaseName, LeaseOutcome, LeaseRefusal, LedgerEntry, Timestamp, What as Noted,
};

use super::Check;
use super::owners::{Owned, Owners, Stands};
use crate::history::{Entry, Leased, What};

/// Every change of an owner is in the ledger as soon as it is answered, under its fence and with its time;
/// nothing else is, and its numbers only grow.
#[derive(Default)]
pub(super) struct Ledger {
    owners: Owners,
    expected: VecDeque<Note>,
    /// Whose refusals have been told: once for each ownership.
    told: BTreeSet<(LeaseName, Fence, Option<tenure_core::HostId>, String)>,
    /// Lapses that have been told.
    lapsed: BTreeSet<(LeaseName, Fence, Timestamp)>,
    last: u64,
}

/// What a note has to say.
#[derive(Debug, Clone, PartialEq)]
struct Note {
    name: LeaseName,
    fence: Fence,
    what: Noted,
    at: Timestamp,
    by: Option<Holder>,
}

impl Check for Ledger {
    fn rule(&self) -> &'static str {
        "the ledger tells what happened"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        if let What::Leased(leased) = &entry.what {
            let owned = self.owners.of(&leased.name, entry.store_now);
            self.expect(leased, &owned, entry.store_now);
            self.owners.see(entry);
            return Ok(());
        }
        if let What::Ledger(entries) = &entry.what {
            entries.iter().try_for_each(|told| self.read(told, entry.store_now))?;
            self.owners.see(entry);
        }
        // Between the answers and the look at the ledger nothing else happens.
        match self.expected.front() {
            Some(missing) => Err(format!("the ledger does not tell {missing:?}")),
            None => Ok(()),
        }
    }
}

impl Ledger {
    fn read(&mut self, entry: &LedgerEntry, now: Timestamp) -> Result<(), String> {
        if entry.number <= self.last {
            return Err(format!("entry {} came after entry {}", entry.number, self.last));
        }
        self.last = entry.number;
        let told = &entry.note;
        let matches = |note: &Note| {
            (&note.name, note.fence, note.what, note.at) == (&told.name, told.fence, told.what, told.at)
                && note.by.as_ref().is_none_or(|by| *by == told.by)
        };
        if self.expected.front().is_some_and(matches) {
            self.expected.pop_front();
            return Ok(());
        }
        // A lapse may be noticed by somebody who wants nothing.
        let owned = self.owners.of(&told.name, now);
        let has_lapsed = owned.fence == told.fence
            && owned
                .owner
                .as_ref()
                .is_some_and(|owner| owner.stands(now) == Stands::Lapsed && owner.until == Some(told.at));
        if told.what == Noted::Lapsed
            && has_lapsed
            && self.lapsed.insert((told.name.clone(), told.fence, told.at))
        {
            return Ok(());
        }
        Err(format!("the ledger tells {told:?}, expected {:?}", self.expected.front()))
    }

    /// What the ledger has to tell of an answer.
    fn expect(&mut self, leased: &Leased, owned: &Owned, now: Timestamp) {
        let note = |fence, what, at, by: Option<&Holder>| Note {
            name: leased.name.clone(),
            fence,
            what,
            at,
            by: by.cloned(),
        };
        let stands = owned.owner.as_ref().map(|owner| owner.stands(now));
        let owner = owned.owner.as_ref().map(|owner| &owner.by);
        let present = |what| note(owned.fence, what, now, owner);
        match (&leased.act, &leased.outcome) {
            (LeaseAct::Acquire { by, .. }, LeaseOutcome::Granted { fence, .. })
                if owned.live(now).is_none() =>
            {
                self.expect_lapse(leased, owned, now);
                let what = if owner.is_some() { Noted::TookOver } else { Noted::Acquired };
                self.expected.push_back(note(*fence, what, now, Some(by)));
            }
            (
                LeaseAct::Acquire { by, .. },
                LeaseOutcome::Refused(LeaseRefusal::Held { .. } | LeaseRefusal::Breaking { .. }),
            ) => {
                let is_new = self.told.insert((leased.name.clone(), owned.fence, by.host, by.who.clone()));
                self.expected.extend(is_new.then(|| note(owned.fence, Noted::Refused, now, Some(by))));
            }
            (_, LeaseOutcome::RenewedLate { .. }) => self.expected.push_back(present(Noted::RenewedLate)),
            (LeaseAct::Change { to, .. }, LeaseOutcome::Changed { .. }) => {
                let is_new = owned.owner.as_ref().is_some_and(|owner| owner.id != *to);
                self.expected.extend(is_new.then(|| present(Noted::Changed)));
            }
            (LeaseAct::Leave { id }, LeaseOutcome::Left)
                if owned.owner.as_ref().is_none_or(|owner| owner.id != *id) => {}
            (_, LeaseOutcome::Released | LeaseOutcome::Left) => match stands {
                Some(Stands::Held | Stands::Breaking) => self.expected.push_back(present(Noted::Released)),
                Some(Stands::Lapsed) => self.expect_lapse(leased, owned, now),
                Some(Stands::Broken) | None => {}
            },
            (LeaseAct::Break { by, .. }, LeaseOutcome::Breaks { free }) => match stands {
                Some(Stands::Held) => self.expected.push_back(note(owned.fence, Noted::Broke, now, Some(by))),
                Some(Stands::Breaking) if owned.live(now).and_then(|owner| owner.until) != Some(*free) => {
                    self.expected.push_back(note(owned.fence, Noted::Broke, now, Some(by)));
                }
                Some(Stands::Lapsed) => self.expect_lapse(leased, owned, now),
                Some(Stands::Breaking | Stands::Broken) | None => {}
            },
            (LeaseAct::Forget { by }, LeaseOutcome::Forgotten)
                if !owned.forgotten && owned.fence > Fence::NONE =>
            {
                self.expect_lapse(leased, owned, now);
                self.expected.push_back(note(owned.fence, Noted::Forgotten, now, Some(by)));
            }
            _ => {}
        }
    }

    /// A lapse is told by whoever notices it, once.
    fn expect_lapse(&mut self, leased: &Leased, owned: &Owned, now: Timestamp) {
        let Some(owner) = owned.owner.as_ref().filter(|owner| owner.stands(now) == Stands::Lapsed) else {
            return;
        };
        let Some(at) = owner.until else { return };
        if self.lapsed.insert((leased.name.clone(), owned.fence, at)) {
            let (name, by) = (leased.name.clone(), Some(owner.by.clone()));
            self.expected.push_back(Note { name, fence: owned.fence, what: Noted::Lapsed, at, by });
        }
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::LedgerNote;

    use super::super::made::{
        H0, acquire, at, fence, granted, holder, lease_name, leased, release, second, verdict,
    };
    use super::*;

    fn says(history: impl IntoIterator<Item = Entry>) -> Result<(), String> {
        verdict(Ledger::default(), history)
    }

    fn told(secs: u64, number: u64, notes: &[(u64, Noted, u64, u8)]) -> Entry {
        let entry = |(index, (under, what, at, by)): (usize, &(u64, Noted, u64, u8))| LedgerEntry {
            number: number + index as u64,
            note: LedgerNote {
                at: second(*at),
                name: lease_name(),
                fence: fence(*under),
                what: *what,
                by: holder(*by),
                since: None,
                until: None,
                note: String::new(),
            },
        };
        at(secs, H0, What::Ledger(notes.iter().enumerate().map(entry).collect()))
    }

    fn first() -> [Entry; 2] {
        [at(1, H0, leased(acquire(1, 10), granted(1, 11))), told(1, 1, &[(1, Noted::Acquired, 1, 1)])]
    }

    fn then(rest: impl IntoIterator<Item = Entry>) -> Result<(), String> {
        says(first().into_iter().chain(rest))
    }

    #[test]
    fn a_grant_that_is_not_on_record_is_found() {
        let [grant, _] = first();
        assert!(says([grant.clone(), at(2, H0, What::Healed)]).is_err());
        assert!(says([grant.clone(), told(1, 1, &[])]).is_err());
        assert!(says([grant, told(1, 1, &[(1, Noted::Acquired, 1, 2)])]).is_err());
    }

    #[test]
    fn a_lapse_that_is_not_on_record_is_found() {
        let taken = at(15, H0, leased(acquire(2, 10), granted(2, 25)));
        assert!(then([taken.clone(), told(15, 2, &[(2, Noted::TookOver, 15, 2)])]).is_err());
        let late = [(1, Noted::Lapsed, 15, 1), (2, Noted::TookOver, 15, 2)];
        assert!(then([taken, told(15, 2, &late)]).is_err());
    }

    #[test]
    fn a_record_of_what_did_not_happen_is_found() {
        assert!(then([told(5, 2, &[(1, Noted::Released, 5, 1)])]).is_err());
        assert!(then([told(5, 2, &[(1, Noted::Lapsed, 11, 1)])]).is_err());
        let twice = [told(12, 2, &[(1, Noted::Lapsed, 11, 1)]), told(13, 3, &[(1, Noted::Lapsed, 11, 1)])];
        assert!(then(twice).is_err());
    }

    #[test]
    fn numbers_that_do_not_grow_are_found() {
        let released = at(5, H0, leased(release(1, 1), LeaseOutcome::Released));
        assert!(then([released, told(5, 1, &[(1, Noted::Released, 5, 1)])]).is_err());
    }

    #[test]
    fn a_release_and_another_owner_are_accepted() {
        let good = [
            at(5, H0, leased(release(1, 1), LeaseOutcome::Released)),
            told(5, 2, &[(1, Noted::Released, 5, 1)]),
            at(6, H0, leased(acquire(2, 10), granted(2, 16))),
            told(6, 3, &[(2, Noted::Acquired, 6, 2)]),
        ];
        assert_eq!(then(good), Ok(()));
    }

    #[test]
    fn a_lapse_that_is_noticed_by_a_successor_is_accepted() {
        let good = [
            at(15, H0, leased(acquire(2, 10), granted(2, 25))),
            told(15, 2, &[(1, Noted::Lapsed, 11, 1), (2, Noted::TookOver, 15, 2)]),
        ];
        assert_eq!(then(good), Ok(()));
    }

    #[test]
    fn a_lapse_that_is_noticed_by_itself_is_accepted() {
        let good = [
            told(12, 2, &[(1, Noted::Lapsed, 11, 1)]),
            at(15, H0, leased(acquire(2, 10), granted(2, 25))),
            told(15, 3, &[(2, Noted::TookOver, 15, 2)]),
        ];
        assert_eq!(then(good), Ok(()));
    }
}
