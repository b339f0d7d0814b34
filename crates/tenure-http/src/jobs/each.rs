//! Enqueueing many jobs, each by itself: one that is refused keeps no other from coming in.

use std::collections::BTreeMap;

use tenure::{Accepted, Draft, Error, Tenure};

use crate::jobs::told;
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
    let tried = match admitted.iter().any(told::is_told) {
        false => tenure.enqueue_each(admitted).await?,
        true => one_by_one(tenure, admitted).await?,
    };
    let told = tried.into_iter().map(|told| told.map_err(|error| told::in_wire_names(error).into()));
    answers.extend(places.into_iter().zip(told));
    Ok(answers.into_values().collect())
}

/// Each in a transaction of its own, with the job that tells of its end.
async fn one_by_one(tenure: &Tenure, drafts: Vec<Draft>) -> Result<Vec<Result<Accepted, Error>>, Error> {
    let mut all = Vec::with_capacity(drafts.len());
    for draft in drafts {
        match told::enqueue_one(tenure, draft).await {
            Err(fault @ Error::Fault(_)) => return Err(fault),
            told => all.push(told),
        }
    }
    Ok(all)
}
