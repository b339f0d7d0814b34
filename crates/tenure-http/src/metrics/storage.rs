//! What was measured of the calls to the store.

use tenure::Store;

use super::seen::OTHER;
use super::table;
use super::text::Text;

/// Of a store that nobody measures nothing is told but that there are such metrics.
pub(super) fn write(text: &mut Text, store: &dyn Store) {
    let (measures, backend) = (store.extras().measures, store.about().engine);
    let claims = measures.map(|measures| measures.claims());
    text.begin(&table::CLAIM);
    claims.iter().for_each(|claims| text.histogram(&[], &claims.took));
    text.begin(&table::CLAIM_JOBS);
    claims.iter().for_each(|claims| text.histogram(&[], &claims.jobs));
    text.begin(&table::CLAIM_EMPTY);
    for (queue, count) in claims.iter().flat_map(|claims| &claims.empty) {
        text.value(&[queue.as_ref().map_or(OTHER, |queue| queue.as_str())], *count as f64);
    }
    let leases = measures.map(|measures| measures.leases());
    text.begin(&table::LEASE_ACQUIRE);
    for (outcome, count) in leases.iter().flat_map(|leases| leases.acquired) {
        text.value(&[outcome], count as f64);
    }
    text.begin(&table::LEASE_RENEW);
    leases.iter().for_each(|leases| text.histogram(&[], &leases.renewed));
    let calls = measures.map(|measures| measures.calls()).unwrap_or_default();
    text.begin(&table::STORAGE_CALLS);
    for call in &calls {
        text.histogram(&[backend, call.operation], &call.took);
    }
    text.begin(&table::STORAGE_ERRORS);
    for kind in 0..calls.first().map_or(0, |call| call.faults.len()) {
        let count: u64 = calls.iter().map(|call| call.faults[kind].1).sum();
        text.value(&[backend, calls[0].faults[kind].0], count as f64);
    }
}
