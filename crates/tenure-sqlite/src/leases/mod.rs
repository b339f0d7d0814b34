//! Leases: what is asked of them, decided by the domain and swapped here.

mod line;
mod row;
mod views;

use std::time::Duration;

use rusqlite::{Error, OptionalExtension, Result, params};
use tenure_core::{
    Fence, Lease, LeaseAct, LeaseId, LeaseName, LeaseOutcome, LeaseRefusal, LedgerNote, Stepped, Timestamp,
    What, limits, step,
};
use tenure_store::LeaseWish;

use crate::fault::{is_unreadable, of_lease};
use crate::value;
use crate::writing::Writing;
use line::acquisition;
use row::Stored;

#[cfg(test)]
pub(crate) use line::{GONE, LINE, SIT, STAND_UP, STAY};
#[cfg(test)]
pub(crate) use row::BY_NAME;
pub(crate) use row::{holder, keep_copied, meta};
#[cfg(test)]
pub(crate) use views::{INFO, PAGE};
pub(crate) use views::{info, page};

/// Repeats one decision of the domain, that of a renewal in time, because nearly all wishes are such: it
/// needs not read the row. Whatever it does not touch goes the long way.
pub(crate) const PROLONG: &str = "UPDATE lease SET until = min(?4 + ttl, ?5)
     WHERE name = ?1 AND id = ?2 AND fence = ?3 AND phase = 0 AND (until > ?4 OR until IS NULL)
     RETURNING until";
pub(crate) const LAPSED: &str = "SELECT name FROM lease WHERE phase = 0 AND until <= ?1
     ORDER BY until, name LIMIT ?2 + 0";

/// How long a lease that this version cannot read is left alone by those who want it.
const SET_ASIDE: Duration = Duration::from_secs(60);

impl Writing<'_> {
    /// Takes wishes about leases, each by itself.
    ///
    /// A lease that cannot be read is a fault for whoever asks for it alone. Among others it is answered
    /// like one that is being broken: nobody can take, renew or change it for now, and the others have
    /// their answers.
    pub(crate) fn lease(&mut self, wishes: &[LeaseWish]) -> Result<Vec<LeaseOutcome>> {
        let mut outcomes = Vec::with_capacity(wishes.len());
        for wish in wishes {
            let outcome = match self.take(wish) {
                Err(error) if is_unreadable(&error) && wishes.len() > 1 => self.pass_by(wish, &error),
                taken => taken?,
            };
            outcomes.push(outcome);
        }
        Ok(outcomes)
    }

    fn take(&mut self, LeaseWish { name, act }: &LeaseWish) -> Result<LeaseOutcome> {
        if let LeaseAct::Renew { id, fence, .. } = act
            && let Some(outcome) = self.prolong(name, *id, *fence)?
        {
            return Ok(outcome);
        }
        let stored = self.find_lease(name)?;
        let waiting = acquisition(act);
        let stand = stored.as_ref().map(|stored| self.stand(stored.number, waiting)).transpose()?;
        let before = stored.as_ref().map(|stored| &stored.lease);
        let line = stand.unwrap_or_default().line;
        let stepped = step(name, before, act, line, self.memory.epoch, self.now);
        if stepped.frees(before, self.now) {
            self.call_freed();
        }
        let Stepped { outcome, lease, notes, ticket } = stepped;
        if notes.iter().any(|note| note.what == What::Broke) {
            self.call_asked()?;
        }
        // Who waits, waits for somebody: a name without a row has no line.
        if let (Some(stored), Some(id), Some(stand)) = (&stored, waiting, stand) {
            self.seat(stored.number, id, stand, ticket)?;
        }
        match (stored, lease) {
            (Some(stored), Some(lease)) => self.swap(stored, lease, &notes)?,
            (Some(stored), None) => self.note_all(stored.number, &notes).map(drop)?,
            (None, Some(lease)) => {
                let number = row::insert(self.conn, name, self.now)?;
                let fresh = Lease::fresh(name.clone(), self.now);
                self.swap(Stored { number, lease: fresh, began: None }, lease, &notes)?;
            }
            (None, None) => {}
        }
        Ok(outcome)
    }

    /// Renews a lease that is held so; `None` if it is not, or not simply.
    fn prolong(&self, name: &LeaseName, id: LeaseId, fence: Fence) -> Result<Option<LeaseOutcome>> {
        let (now, last) = (self.now.as_micros(), Timestamp::LAST.as_micros());
        let held = params![name.as_str(), id.as_bytes(), value::signed(fence.number()), now, last];
        let until = |row: &rusqlite::Row<'_>| value::maybe_instant(row, 0);
        let renewed = self.conn.prepare_cached(PROLONG)?.query_row(held, until).optional()?;
        Ok(renewed.map(|until| LeaseOutcome::Renewed { until }))
    }

    fn find_lease(&self, name: &LeaseName) -> Result<Option<Stored>> {
        let found = row::by_name(self.conn)?.query_row([name.as_str()], row::read).optional();
        let found = found.map_err(|error| of_lease(name, error))?;
        Ok(found.map(|stored| self.steady(stored)))
    }

    /// A lease, as it would stand if the clock had not stepped.
    fn steady(&self, stored: Stored) -> Stored {
        Stored { lease: self.memory.steps.steady(stored.lease), ..stored }
    }

    /// Writes what a lease has become, and what is to be told of it.
    fn swap(&self, before: Stored, lease: Lease, notes: &[LedgerNote]) -> Result<()> {
        let goes_on = lease.held.is_some() && lease.fence == before.lease.fence;
        if let (Some(began), false) = (before.began, goes_on) {
            self.set_past(began)?;
        }
        let begins = self.note_all(before.number, notes)?;
        let began = begins.or(before.began.filter(|_| goes_on));
        row::update(self.conn, before.lease.fence, &Stored { number: before.number, lease, began })
    }

    /// What to answer about a lease that cannot be read, among wishes about others.
    fn pass_by(&self, wish: &LeaseWish, error: &Error) -> LeaseOutcome {
        tracing::error!(lease = %wish.name, %error, "unreadable lease; update this program");
        LeaseOutcome::Refused(LeaseRefusal::Breaking { until: self.now.after(SET_ASIDE) })
    }

    /// Writes down which leases have lapsed, the first first; answers whether there are more.
    pub(crate) fn notice_lapses(&mut self) -> Result<bool> {
        let most = value::bound(limits::SWEEP_ROWS + 1);
        let names = self
            .conn
            .prepare_cached(LAPSED)?
            .query_map([self.now.as_micros(), most], |row| row.get(0))?
            .collect::<Result<Vec<String>>>()?;
        let mut noticed = 0;
        for name in names.iter().take(limits::SWEEP_ROWS) {
            let stored = match row::by_name(self.conn)?.query_row([name], row::read) {
                Err(error) if is_unreadable(&error) => {
                    tracing::error!(lease = %name, %error, "unreadable lease; update this program");
                    continue;
                }
                found => found?,
            };
            let stored = self.steady(stored);
            let Some((lease, note)) = stored.lease.noticed(self.now) else { continue };
            self.swap(stored, lease, &[note])?;
            noticed += 1;
        }
        // If none of them could be read, to call again would not help.
        Ok(noticed > 0 && names.len() > limits::SWEEP_ROWS)
    }
}
