//! Enqueueing many jobs, each by itself: one that is refused keeps no other from coming in.

use tenure::{Accepted, Draft, Tenure};

use crate::problem::Problem;

/// What became of each of them.
pub(crate) type Each = Vec<Result<Accepted, Problem>>;

/// Enqueues each of these, in their order.
///
/// # Errors
/// A fault of the store: what became of some of them is not known.
pub(crate) async fn enqueue_each(tenure: &Tenure, drafts: Vec<Draft>) -> Result<Each, Problem> {
    let each = tenure.enqueue_each(drafts).await?;
    Ok(each.into_iter().map(|told| told.map_err(Problem::from)).collect())
}
