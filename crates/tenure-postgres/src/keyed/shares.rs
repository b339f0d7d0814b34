//! Fair shares of queues: who is served in which round.

use tenure_core::{State, Why, round_of};
use tenure_store::Fault;

use super::row::share_of;
use crate::query::Query;
use crate::rows::Stored;
use crate::value;
use crate::writing::Writing;

const ROUNDS: &str =
    "SELECT coalesce((SELECT round FROM present_round WHERE queue = $1 AND priority = $2), 0),
         (SELECT max(round) FROM keyed WHERE fair_queue = $1 AND priority = $2 AND share = $3),
         (SELECT round FROM served WHERE queue = $1 AND priority = $2 AND share = $3)";
const MAKE_FAIR: [&str; 2] = [
    "INSERT INTO queue (name, fair) VALUES ($1, true) ON CONFLICT (name) DO UPDATE SET fair = true",
    "UPDATE later SET gated = true WHERE NOT gated
         AND lane = ANY (ARRAY(SELECT id FROM lane WHERE queue = $1))",
];
const ADVANCE: &str = "INSERT INTO present_round (queue, priority, round) VALUES ($1, $2, $3)
     ON CONFLICT (queue, priority) DO UPDATE SET round = excluded.round WHERE present_round.round < excluded.round";
const SERVE: &str = "INSERT INTO served (queue, priority, share, round) VALUES ($1, $2, $3, $4)
     ON CONFLICT (queue, priority, share) DO UPDATE SET round = excluded.round WHERE served.round < excluded.round";

/// What of the line a grant tells of shares.
pub(super) struct Served {
    pub queue: String,
    pub priority: i16,
    pub share: String,
    pub round: i64,
}

impl Writing<'_> {
    /// The round of a job that joins the line; `None` in a queue where everybody is served in the same.
    pub(super) async fn round_for(&mut self, stored: &mut Stored) -> Result<Option<i64>, Fault> {
        let queue = stored.job.queue.as_str().to_owned();
        stored.ties.fair |= self.keys.fair.contains(&stored.job.queue);
        if !stored.ties.fair {
            if stored.job.terms.share.is_none() {
                return Ok(None);
            }
            stored.ties.fair = true;
            self.keys.fair.insert(stored.job.queue.clone());
            for sql in MAKE_FAIR {
                self.write(Query::new(sql).with(queue.clone()))?;
            }
        }
        let look = Query::new(ROUNDS)
            .with(queue)
            .with(value::of_priority(stored.job.priority))
            .with(share_of(stored));
        let read = self.read(vec![look]).await?;
        let Some(row) = read.first().and_then(|rows| rows.first()) else { return Ok(Some(0)) };
        let present: i64 = row.get(0);
        let round = match stored.job.state {
            State::Waiting { why: Why::Released | Why::Lost, .. }
            | State::Blocked { why: Why::Released | Why::Lost, .. } => present,
            State::Waiting { .. }
            | State::Blocked { .. }
            | State::Running { .. }
            | State::Finished { .. } => {
                let served = row.get::<_, Option<i64>>(2).filter(|round| *round == present);
                let last = row.get::<_, Option<i64>>(1).max(served).map(value::seq).transpose()?;
                value::signed(round_of(last, value::seq(present)?))
            }
        };
        Ok(Some(round))
    }

    /// Notes that a job of this round was granted.
    pub(super) fn serve(&mut self, served: Served) -> Result<(), Fault> {
        let Served { queue, priority, share, round } = served;
        self.write(Query::new(ADVANCE).with(queue.clone()).with(priority).with(round))?;
        self.write(Query::new(SERVE).with(queue).with(priority).with(share).with(round))
    }
}
