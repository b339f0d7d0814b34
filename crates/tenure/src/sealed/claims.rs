//! Claimed jobs: a worker gets only those whose args can be decrypted.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{Cause, Due, Failure, Reserved, RetryPolicy, Settlement, Verdict};
use tenure_store::{Fault, Reservation, Store};

use super::envelope::Shut;
use super::vault::{Opened, Vault};

/// First delay of a job whose args cannot be decrypted. The delay doubles with each delivery.
const SHORTEST_WAIT: Duration = Duration::from_secs(60);
const DOUBLINGS: u32 = 6;

/// Decrypts claimed jobs, and gives back those that cannot be decrypted.
pub(super) async fn open_claim(
    (inner, vault): (&Arc<dyn Store>, &Vault),
    claim: Reservation,
) -> Result<Reservation, Fault> {
    let (mut jobs, mut given_back) = (Vec::with_capacity(claim.jobs.len()), Vec::new());
    for reserved in claim.jobs {
        if Vault::is_plain(reserved.job()) {
            jobs.push(reserved);
            continue;
        }
        let Opened { job, shut } = vault.open_job(reserved.into_job());
        match shut {
            None => jobs.push(Reserved::granted(job)),
            Some(shut) => {
                tracing::warn!(job = %job.id, kind = %job.kind, "the job cannot run here: args {shut}");
                given_back.push(give_back(Reserved::granted(job), &shut));
            }
        }
    }
    let gave_back = !given_back.is_empty();
    if gave_back && let Err(fault) = inner.settle(given_back, None).await {
        // The jobs of this host return when their leases expire.
        tracing::warn!(%fault, "cannot give back unreadable jobs; they return when their leases expire");
    }
    // Behind the jobs that were given back there may be others.
    let due_in = if gave_back { Some(Duration::ZERO) } else { claim.due_in };
    Ok(Reservation { jobs, due_in })
}

/// Gives a job back. It waits for a key that may be loaded later, keeps its attempts and shows the reason.
fn give_back(reserved: Reserved, shut: &Shut) -> Settlement {
    let doublings = reserved.job().delivery.saturating_sub(1).min(DOUBLINGS);
    let later = Verdict::Snoozed(Due::In(SHORTEST_WAIT * 2_u32.pow(doublings)));
    let why = Failure::new(Cause::Undecodable, &shut.to_string());
    reserved.settle(later, &RetryPolicy::default(), 0.0).because(why)
}
