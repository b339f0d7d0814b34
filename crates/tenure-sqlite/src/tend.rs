//! A bounded step of upkeep.

use rusqlite::{Result, params};
use tenure_core::limits;
use tenure_store::Tended;

use crate::fault::is_unreadable;
use crate::rows::row_of;
use crate::value;
use crate::writing::Writing;

pub(crate) const EXPIRED: &str =
    "SELECT seq FROM standing WHERE expires IS NOT NULL AND expires <= ?1 ORDER BY expires LIMIT ?2 + 0";
pub(crate) const FREE_KEYS: &str = "DELETE FROM unique_key WHERE until IS NOT NULL AND until <= ?1";
/// Lost hosts over their time (?1), and the oldest beyond so many (?3) of those that are lost by now (?2).
pub(crate) const GONE_HOSTS: &str = "DELETE FROM host WHERE until <= ?1
     OR id IN (SELECT id FROM host WHERE until <= ?2 ORDER BY until DESC, id LIMIT -1 OFFSET ?3 + 0)";

/// The result of a step of pruning.
struct Pruned {
    jobs: usize,
    /// `true` if a bound stopped it.
    is_cut_short: bool,
}

impl Writing<'_> {
    /// Sweeps, and removes what nobody needs any more.
    pub(crate) fn tend(&mut self) -> Result<Tended> {
        let swept = self.sweep()?;
        let pruned = self.prune()?;
        let now = self.now.as_micros();
        self.conn.prepare_cached(FREE_KEYS)?.execute([now])?;
        let oldest = self.now.before(limits::LOST_HOSTS_KEPT).as_micros();
        let most = value::bound(limits::LOST_HOSTS);
        self.conn.prepare_cached(GONE_HOSTS)?.execute([oldest, now, most])?;
        self.prune_shares()?;
        let gone = self.clear_line(limits::SWEEP_ROWS)?;
        let records_left = self.prune_records()?;
        let lapses_left = self.notice_lapses()?;
        let more =
            swept.more || pruned.is_cut_short || gone >= limits::SWEEP_ROWS || records_left || lapses_left;
        Ok(Tended { lapsed: swept.lapsed, due: swept.due, pruned: pruned.jobs, more })
    }

    /// Removes finished jobs whose retention is over and that no unfinished job depends on.
    fn prune(&mut self) -> Result<Pruned> {
        let seqs = self
            .conn
            .prepare_cached(EXPIRED)?
            .query_map(params![self.now.as_micros(), value::bound(limits::PRUNE_JOBS)], |row| row.get(0))?
            .collect::<Result<Vec<i64>>>()?;
        let mut pruned = Pruned { jobs: 0, is_cut_short: seqs.len() >= limits::PRUNE_JOBS };
        for seq in &seqs {
            match row_of(self.conn, *seq) {
                Ok(Some(stored)) if self.is_needed(*seq)? => self.keep_on(&stored)?,
                Ok(Some(stored)) => {
                    self.remove(&stored)?;
                    pruned.jobs += 1;
                }
                Ok(None) => {}
                Err(error) if is_unreadable(&error) => self.set_expired_aside(*seq, &error)?,
                Err(error) => return Err(error),
            }
        }
        Ok(pruned)
    }
}
