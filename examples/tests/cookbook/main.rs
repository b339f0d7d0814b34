//! The recipes of the book's cookbook, one module for each page. The blocks of the pages stand here, line for line.

mod before_and_after;
mod debounce;
mod fan_out;
mod import;
mod outbox;
mod payment;
mod progress;
mod rate_limit;
mod tenants;

use tenure::JobId;

/// What a test returns.
type Outcome = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// Derives the ID of a child job. It is the same in every attempt of the parent.
fn child(parent: JobId, number: u32) -> JobId {
    let mut bytes = *parent.as_bytes();
    for (byte, part) in bytes[12..].iter_mut().zip(number.to_be_bytes()) {
        *byte ^= part;
    }
    JobId::derived(bytes)
}

#[test]
fn children_have_ids_of_their_own() {
    let parent: JobId = "0190f5c2-7b1e-7c3a-9f02-6a2d8c4e5b10".parse().unwrap();
    let ids: std::collections::BTreeSet<JobId> = (0..1_000).map(|number| child(parent, number)).collect();
    assert_eq!(ids.len(), 1_000);
    assert_eq!(child(child(parent, 7), 0), child(parent, 7));
}
