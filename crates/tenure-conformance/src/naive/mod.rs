//! A naive checker: it recomputes from all rows of a store what the store derives from them, and compares.
//!
//! All stores may share code, so a mistake in that code would be in all of them, and comparing two stores would not show
//! it. This checker is written from the guide and the glossary and shares no code with a store. It has no index and no
//! cache. Each rule goes over all rows in the plainest way, so that you can see that it is right.

mod counts;
mod jobs;
mod leases;
mod limits;
mod line;
mod looks;
mod past;
mod rows;
mod standing;
pub(crate) mod tests;
mod timers;
mod turns;
mod unique;
mod waits;

use std::fmt::{Debug, Display};

use tenure_store::{Fault, Store};

pub(crate) use looks::Looks;
use past::Past;
pub use rows::{Around, Depth, Rows};

/// Contradictions between the rows of a store and its answers, a sentence each.
type Findings = Vec<String>;

/// The changes to a store since the last look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// At most one call, so that the checker can follow each change.
    OneCall,
    /// Any number of calls.
    ManyCalls,
}

/// Compares a store with its own rows, look by look.
#[derive(Debug, Default)]
pub struct Checker {
    past: Past,
}

impl Checker {
    /// Reads all rows of a store and compares. The store must be at rest.
    ///
    /// # Errors
    /// The store could not answer.
    pub async fn look(
        &mut self,
        store: &dyn Store,
        depth: Depth,
        since: Since,
    ) -> Result<Vec<String>, Fault> {
        Ok(self.judge(Rows::read(store, depth).await?, since))
    }

    /// Compares rows that were read already. It returns a sentence for each contradiction.
    pub fn judge(&mut self, rows: Rows, since: Since) -> Vec<String> {
        let past = &mut self.past;
        past.note(&rows, since);
        let mut findings = of_rows(&rows, past);
        if let Some(before) = &past.rows {
            findings.extend(jobs::grown(before, &rows));
            if since == Since::OneCall {
                findings.extend(limits::numbers(&rows, past));
                findings.extend(turns::passed(before, &rows));
                findings.extend(limits::granted(before, &rows));
                findings.extend(line::moved(before, &rows, past));
                findings.extend(waits::gone_on(before, &rows, past));
            }
        }
        past.remember(rows);
        findings
    }
}

/// The rules that need the present rows only.
fn of_rows(rows: &Rows, past: &Past) -> Findings {
    let rules = [
        counts::totals(rows),
        counts::counters(rows, past),
        counts::queues(rows, past),
        jobs::jobs(rows, past),
        jobs::attempts(rows),
        turns::turns(rows, past),
        limits::keys(rows, past),
        limits::standings(rows, past),
        line::lines(rows),
        waits::waits(rows, past),
        standing::surroundings(rows),
        unique::holds(rows, past),
        leases::leases(rows, past),
        leases::ledger(rows, past),
        timers::timers(rows),
        timers::records(rows),
    ];
    rules.concat()
}

/// A finding, unless the store's answer is the recomputed one.
fn differs<T: Debug + PartialEq>(about: impl Display, answer: &T, recomputed: &T) -> Option<String> {
    (answer != recomputed)
        .then(|| format!("{about}: the store answers {answer:?}, its rows give {recomputed:?}"))
}

/// A finding, unless the condition holds.
fn unless(holds: bool, finding: impl FnOnce() -> String) -> Option<String> {
    (!holds).then(finding)
}
