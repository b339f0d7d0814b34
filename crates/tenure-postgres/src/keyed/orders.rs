//! Whose turn it is among the jobs of an ordering key.

use tenure_core::{JobId, Key};
use tenure_store::Fault;

use super::row::READY;
use crate::query::Query;
use crate::value;
use crate::writing::Writing;

const GIVES: &str = "SELECT (SELECT seq FROM turn WHERE key = $1),
         (SELECT seq FROM keyed WHERE ordering = $1 AND stand > 0 AND seq <> $2 ORDER BY seq LIMIT 1)";
/// Whose turn it is, whether that job still has use for it, and who would be next.
const LOOK: &str = "SELECT t.seq, t.seq IS NOT NULL AND EXISTS (
             SELECT FROM keyed WHERE seq = t.seq AND ordering = $1 AND stand > 0), f.seq, f.stand, f.id, f.at
     FROM (SELECT 1) one LEFT JOIN LATERAL (SELECT seq FROM turn WHERE key = $1 LIMIT 1) t ON true
     LEFT JOIN LATERAL (SELECT seq, stand, id, at FROM keyed WHERE ordering = $1 AND stand > 0
         ORDER BY seq LIMIT 1) f ON true";
const GIVE: &str =
    "INSERT INTO turn (key, seq) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET seq = excluded.seq";
const TAKE: &str = "DELETE FROM turn WHERE key = $1";

/// Who got the turn.
pub(super) struct Next {
    pub id: JobId,
    pub seq: i64,
    pub at: i16,
}

impl Writing<'_> {
    /// Whether a job that is ready, and stands nowhere at the moment, has the turn or would be the first to take it.
    pub(super) async fn gives_turn(&mut self, key: &Key, seq: u64) -> Result<bool, Fault> {
        let seq = value::signed(seq);
        let look = Query::new(GIVES).with(key.as_str().to_owned()).with(seq);
        let read = self.read(vec![look]).await?;
        let Some(row) = read.first().and_then(|rows| rows.first()) else { return Ok(true) };
        Ok(match row.get::<_, Option<i64>>(0) {
            Some(turn) => turn == seq,
            None => row.get::<_, Option<i64>>(1).is_none_or(|first| first >= seq),
        })
    }

    /// Gives the turn to whom it belongs, unless somebody has it; answers who got it.
    pub(super) async fn pass_turn(&mut self, key: &Key) -> Result<Option<Next>, Fault> {
        let text = key.as_str().to_owned();
        let read = self.read(vec![Query::new(LOOK).with(text.clone())]).await?;
        let Some(row) = read.first().and_then(|rows| rows.first()) else { return Ok(None) };
        if row.get(1) {
            return Ok(None);
        }
        let first: Option<i64> = row.get(2);
        match first.filter(|_| row.get::<_, Option<i16>>(3) == Some(READY)) {
            Some(seq) => {
                self.write(Query::new(GIVE).with(text).with(seq))?;
                Ok(Some(Next { id: value::job_id(row, 4), seq, at: row.get(5) }))
            }
            None => {
                if row.get::<_, Option<i64>>(0).is_some() {
                    self.write(Query::new(TAKE).with(text))?;
                }
                Ok(None)
            }
        }
    }
}
