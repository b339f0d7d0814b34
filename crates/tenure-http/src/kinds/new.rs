//! Kinds that are new in a queue, by the access tokens that first used them. A store keeps each kind of a queue, every program
//! on the store remembers it, and claims of all kinds look at it. So a token could slow them all down.

use tenure::{Filter, Kind, PageAsk, QueueName, Tenure, Values};

use crate::creators::{Creator, Creators, Share};
use crate::lasting::{LastingNames, digest};
use crate::problem::Problem;
use crate::secret::hex;

/// Kinds of a queue that access tokens add.
static ADDED: Share = Share {
    shelf: "kind_creators",
    quota: "kinds_per_token",
    about: "the kind is new in this queue, and access tokens of this name have added too many new kinds; use a kind that the queue has",
    setting: "--kinds-per-token",
    field: "kind",
};

/// Kinds of queues that exist, and those that tokens have added.
#[derive(Debug)]
pub(crate) struct NewKinds {
    known: LastingNames,
    creators: Creators,
}

impl Default for NewKinds {
    fn default() -> Self {
        Self { known: LastingNames::default(), creators: Creators::new(&ADDED) }
    }
}

impl NewKinds {
    /// Refuses a kind that is new in a queue if tokens of the caller's name have added too many. Otherwise, counts it. A kind
    /// counts once, also after all its jobs are gone.
    pub(crate) async fn admit(
        &self,
        tenure: &Tenure,
        creator: Creator<'_>,
        queue: &QueueName,
        kind: &Kind,
    ) -> Result<(), Problem> {
        let short = digest(&format!("{queue}/{kind}"));
        if self.known.has(&short) {
            return Ok(());
        }
        if !has_jobs(tenure, queue, kind).await? {
            // A store never forgets a kind, so none makes room for another.
            self.creators.admit(tenure, creator, &hex(&short), |_| true).await?;
        }
        self.known.note(short);
        Ok(())
    }
}

async fn has_jobs(tenure: &Tenure, queue: &QueueName, kind: &Kind) -> Result<bool, Problem> {
    let filter = Filter { queues: vec![queue.clone()], kinds: vec![kind.clone()], ..Filter::default() };
    let ask = PageAsk { filter, at_most: 1, values: Values::Omitted, ..PageAsk::default() };
    let page = tenure.jobs().page(ask).await?;
    Ok(!page.jobs.is_empty() || !page.unreadable.is_empty())
}
