//! Leases: states, fences, and the history that they have to agree with.

use std::collections::BTreeMap;

use tenure_core::{Fence, Lease, LeaseName, LeaseState, LedgerNote, Ownership, Phase, What};

use super::{Findings, Past, Rows, differs, unless};

/// Names are unique, states follow from time, and fences never go down: a new ownership has a greater one.
pub(super) fn leases(rows: &Rows, past: &Past) -> Findings {
    let mut findings: Findings =
        unless(rows.leases.is_sorted_by(|one, other| one.lease.name < other.lease.name), || {
            "leases are not listed by name".to_owned()
        })
        .into_iter()
        .collect();
    let before = past.rows.iter().flat_map(|rows| &rows.leases);
    let before: BTreeMap<&LeaseName, &Lease> = before.map(|info| (&info.lease.name, &info.lease)).collect();
    for info in &rows.leases {
        let lease = &info.lease;
        findings.extend(differs(format_args!("state of {lease:?}"), &info.state, &state(lease, rows)));
        let floor = rows.rest.as_ref().map_or(0, |rest| rest.epoch.number());
        findings.extend(unless(lease.fence == Fence::NONE || lease.fence.number() > floor, || {
            format!("fence below the floor: {lease:?}")
        }));
        let known = past.fences.get(&lease.name).copied().unwrap_or(Fence::NONE);
        findings.extend(unless(lease.fence >= known, || format!("fence after {known}: {lease:?}")));
        let began = |held: &Option<Ownership>| held.as_ref().map(|held| held.since);
        let is_new = before.get(&lease.name).is_none_or(|was| began(&was.held) != began(&lease.held));
        findings.extend(unless(!is_new || lease.held.is_none() || lease.fence > known, || {
            format!("granted again under fence {known}: {lease:?}")
        }));
    }
    findings
}

/// At the very time of its end, an ownership has ended.
fn state(lease: &Lease, rows: &Rows) -> LeaseState {
    match lease.held.as_ref().map(|held| held.phase) {
        None => LeaseState::Free,
        Some(Phase::Held { until: Some(until) }) if until <= rows.now => LeaseState::Lapsed,
        Some(Phase::Held { .. }) => LeaseState::Held,
        Some(Phase::Breaking { until }) if until <= rows.now => LeaseState::Broken,
        Some(Phase::Breaking { .. }) => LeaseState::Breaking,
        Some(Phase::Broken) => LeaseState::Broken,
        Some(Phase::Lapsed { .. }) => LeaseState::Lapsed,
    }
}

/// The history numbers its entries, grants each fence of a name once, and ends with the present ownership.
pub(super) fn ledger(rows: &Rows, past: &Past) -> Findings {
    let mut findings: Findings =
        unless(rows.ledger.is_sorted_by(|one, next| one.number < next.number), || {
            "entries of the history have one number".to_owned()
        })
        .into_iter()
        .collect();
    let mut notes: BTreeMap<&LeaseName, Vec<&LedgerNote>> = BTreeMap::new();
    for entry in &rows.ledger {
        notes.entry(&entry.note.name).or_default().push(&entry.note);
    }
    for (name, notes) in &notes {
        let begins = |note: &&&LedgerNote| matches!(note.what, What::Acquired | What::TookOver);
        let granted: Vec<Fence> = notes.iter().filter(begins).map(|note| note.fence).collect();
        findings.extend(unless(granted.is_sorted_by(|one, next| one < next), || {
            format!("history of {name}: fences {granted:?} were granted")
        }));
    }
    for info in rows.leases.iter().filter(|info| info.lease.held.is_some()) {
        let mut notes = notes.get(&info.lease.name).into_iter().flatten();
        let last = notes.rfind(|note| note.fence == info.lease.fence && turns(note.what));
        // The beginning of a present ownership is never removed.
        let is_cut =
            |last: &LedgerNote| past.is_pruned && matches!(last.what, What::Acquired | What::TookOver);
        let is_right = last.is_some_and(|last| agrees(&info.lease, last) || is_cut(last));
        findings.extend(unless(is_right, || format!("{:?} and its history {last:?}", info.lease)));
    }
    findings
}

/// Returns true if this entry marks a phase of an ownership.
fn turns(what: What) -> bool {
    match what {
        What::Acquired | What::TookOver | What::RenewedLate | What::Broke | What::Lapsed | What::Released => {
            true
        }
        What::Changed | What::Refused | What::Forgotten => false,
    }
}

fn agrees(lease: &Lease, last: &LedgerNote) -> bool {
    match lease.held.as_ref().map(|held| held.phase) {
        Some(Phase::Held { .. }) => matches!(last.what, What::Acquired | What::TookOver | What::RenewedLate),
        Some(Phase::Breaking { .. }) => last.what == What::Broke,
        Some(Phase::Broken) => matches!(last.what, What::Broke | What::Lapsed),
        Some(Phase::Lapsed { .. }) => last.what == What::Lapsed,
        None => true,
    }
}
