//! Batches of several calls, as a store decides them together.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tenure_core::{
    Epoch, Fence, Holder, Lease, LeaseAct, LeaseId, LeaseName, LeaseOutcome, LeaseRefusal, Timestamp, Ttl,
    What,
};

use super::{Batch, Now, Row};
use crate::{LeaseWish, Steps};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(seconds * 1_000_000).unwrap()
}

fn name(text: &str) -> LeaseName {
    LeaseName::new(text).unwrap()
}

fn acquire(text: &str, id: u8) -> LeaseWish {
    let by = Holder { host: None, who: format!("holder {id}"), meta: BTreeMap::default() };
    let act = LeaseAct::Acquire {
        id: LeaseId::from_bytes([id; 16]),
        by,
        ttl: Ttl::For(Duration::from_secs(30)),
        wait: None,
    };
    LeaseWish { name: name(text), act }
}

fn batch<'s>(steps: &'s Steps, bar: Timestamp, rows: Vec<(&str, Row<String>)>) -> Batch<'s, String> {
    let rows = rows.into_iter().map(|(text, row)| (name(text), row)).collect();
    Batch::new(Now { at: at(100), epoch: Epoch::default(), bar, steps }, rows, BTreeSet::new())
}

#[test]
fn each_call_about_an_unreadable_lease_fails() {
    let steps = Steps::default();
    let mut batch = batch(&steps, at(0), vec![("x", Row::new(Err("bad row".to_owned())))]);
    for id in 1..=2 {
        assert_eq!(batch.call(&[acquire("x", id)]), Err("bad row".to_owned()));
    }
    let both = batch.call(&[acquire("x", 3), acquire("y", 3)]).unwrap();
    assert!(matches!(both[0], LeaseOutcome::Refused(LeaseRefusal::Breaking { .. })), "{both:?}");
    assert!(batch.is_idle());
}

#[test]
fn of_two_calls_in_a_batch_one_gets_the_lease() {
    let steps = Steps::default();
    let mut batch = batch(&steps, at(0), vec![("x", Row::new(Ok(None)))]);
    let outcomes = [1, 2].map(|id| batch.call(&[acquire("x", id)]).unwrap().pop().unwrap());
    let LeaseOutcome::Granted { fence, .. } = outcomes[0] else { panic!("{outcomes:?}") };
    assert!(
        matches!(&outcomes[1], LeaseOutcome::Refused(LeaseRefusal::Held { fence: other, .. }) if *other == fence),
        "{outcomes:?}"
    );
    assert_eq!(batch.notes.iter().map(|note| note.what).collect::<Vec<_>>(), [What::Acquired, What::Refused]);
    assert!(batch.lasts(&batch.notes[0]) && !batch.rows[&name("x")].is_taken_over());
}

#[test]
fn a_lease_with_an_earlier_owner_is_not_granted_before_the_bar() {
    let steps = Steps::default();
    let free = |fence| Lease { fence: Fence::from_number(fence), ..Lease::fresh(name("x"), at(50)) };
    let mut held_back = batch(&steps, at(200), vec![("x", Row::new(Ok(Some(free(7)))))]);
    let outcome = held_back.call(&[acquire("x", 1)]).unwrap();
    let expected = LeaseOutcome::Refused(LeaseRefusal::Awaited { ahead: 1, again: at(200) });
    assert_eq!((outcome, held_back.is_idle()), (vec![expected], true));
    let mut granted = batch(&steps, at(100), vec![("x", Row::new(Ok(Some(free(7)))))]);
    assert!(matches!(granted.call(&[acquire("x", 1)]).unwrap()[0], LeaseOutcome::Granted { .. }));
    assert!(granted.rows[&name("x")].is_taken_over());
}
