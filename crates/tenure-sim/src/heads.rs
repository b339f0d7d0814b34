//! Jobs that are removed while others wait for them to have had their turn.

use std::collections::BTreeSet;

use tenure_core::{Block, JobId, Kind, State, StateName};
use tenure_store::{Change, Fault, Filter, Jobs, Order, PageAsk, Selection};

use crate::world::World;

/// So many at most.
const MOST: usize = 4;

impl World {
    /// Deletes some jobs that have the turn of an ordering key for which others wait. To be called when nobody
    /// enqueues any more: whatever else happens to a job of the key would pass the turn on as well.
    pub(crate) async fn delete_heads(&self) -> Result<(), Fault> {
        let heads: Vec<JobId> = self.heads().await?.into_iter().take(MOST).collect();
        self.store_seen().change(Change::Delete, Selection::Ids(heads)).await?;
        Ok(())
    }

    async fn heads(&self) -> Result<BTreeSet<JobId>, Fault> {
        // What is for the single writer is its own.
        let kinds = ["work", "chore", "sole"].into_iter().filter_map(|kind| Kind::new(kind).ok()).collect();
        let filter = Filter { states: vec![StateName::Blocked], kinds, ..Filter::default() };
        let ask =
            PageAsk { filter, order: Order::OldestFirst, after: None, at_most: 1_000, ..PageAsk::default() };
        let mut heads = BTreeSet::new();
        for job in self.store.jobs(ask).await?.jobs {
            if !matches!(job.state, State::Blocked { on: Block::Order, .. }) {
                continue;
            }
            let standing = self.store.standing(job.id).await?;
            heads.extend(standing.and_then(|standing| standing.turn).and_then(|turn| turn.of));
        }
        Ok(heads)
    }
}
