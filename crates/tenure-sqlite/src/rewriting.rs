//! Replaces stored values with another form, if each is still the one that the caller has read.

use rusqlite::{Result, params};
use tenure_store::{Rewrite, StoredValue};

use crate::value;
use crate::writing::Writing;

const ARGS: &str = "UPDATE job SET args = ?3 WHERE seq = ?1 AND id = ?4 AND args = ?2";
const OUTPUT: &str = "UPDATE standing SET output = ?3, place = ?6
     WHERE seq = ?1 AND output = ?2 AND place IS ?5 AND EXISTS (SELECT 1 FROM job WHERE seq = ?1 AND id = ?4)";
const FAILURE: &str = "UPDATE standing SET failure = ?3
     WHERE seq = ?1 AND failure = ?2 AND EXISTS (SELECT 1 FROM job WHERE seq = ?1 AND id = ?4)";
const PROGRESS: &str = "UPDATE standing SET progress = ?3
     WHERE seq = ?1 AND progress = ?2 AND EXISTS (SELECT 1 FROM job WHERE seq = ?1 AND id = ?4)";
const ATTEMPT: &str = "UPDATE attempt SET failure = ?3
     WHERE seq = ?1 AND delivery = ?5 AND failure = ?2 AND EXISTS (SELECT 1 FROM job WHERE seq = ?1 AND id = ?4)";
const LINE: &str = "UPDATE log SET text = ?3 WHERE seq = ?1 AND delivery = ?5 AND number = ?6 AND text = ?2
     AND EXISTS (SELECT 1 FROM job WHERE seq = ?1 AND id = ?4)";

impl Writing<'_> {
    /// Replaces values, and returns for each if it was replaced.
    pub(crate) fn rewrite_values(&mut self, rewrites: &[Rewrite]) -> Result<Vec<bool>> {
        rewrites.iter().map(|rewrite| self.rewrite_value(rewrite)).collect()
    }

    fn rewrite_value(&mut self, rewrite: &Rewrite) -> Result<bool> {
        let (seq, id) = (value::signed(rewrite.seq), rewrite.id.as_bytes());
        let prepared = |sql| self.conn.prepare_cached(sql);
        let changed = match &rewrite.value {
            StoredValue::Args { from, to } => {
                prepared(ARGS)?.execute(params![seq, from.as_bytes(), to.as_bytes(), id])?
            }
            StoredValue::Output { from, to } => {
                prepared(OUTPUT)?.execute(params![seq, from.value, to.value, id, from.place, to.place])?
            }
            StoredValue::Failure { from, to } => {
                prepared(FAILURE)?.execute(params![seq, value::to_json(from)?, value::to_json(to)?, id])?
            }
            StoredValue::Progress { from, to } => {
                prepared(PROGRESS)?.execute(params![seq, value::to_json(from)?, value::to_json(to)?, id])?
            }
            StoredValue::AttemptFailure { delivery, from, to } => prepared(ATTEMPT)?.execute(params![
                seq,
                value::to_json(from)?,
                value::to_json(to)?,
                id,
                delivery
            ])?,
            StoredValue::Line { delivery, number, from, to } => {
                prepared(LINE)?.execute(params![seq, from, to, id, delivery, number])?
            }
        };
        Ok(changed > 0)
    }
}
