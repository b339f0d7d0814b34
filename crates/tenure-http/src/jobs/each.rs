//! Enqueueing many jobs, each by itself: one that is refused keeps no other from coming in.

use std::collections::BTreeMap;

use tenure::{Accepted, Draft, Tenure};

use crate::problem::Problem;

/// What became of each of them.
pub(crate) type Each = Vec<Result<Accepted, Problem>>;

/// Enqueues each of these that was admitted, in their order.
///
/// # Errors
/// A fault of the store: what became of some of them is not known.
pub(crate) async fn enqueue_each(
    tenure: &Tenure,
    drafts: Vec<Result<Draft, Problem>>,
) -> Result<Each, Problem> {
    let (mut answers, mut places, mut admitted) = (BTreeMap::new(), Vec::new(), Vec::new());
    for (place, draft) in drafts.into_iter().enumerate() {
        match draft {
            Ok(draft) => {
                places.push(place);
                admitted.push(draft);
            }
            Err(problem) => _ = answers.insert(place, Err(problem)),
        }
    }
    let tried = tenure.enqueue_each(admitted).await?;
    answers.extend(places.into_iter().zip(tried.into_iter().map(|told| told.map_err(Problem::from))));
    Ok(answers.into_values().collect())
}
