//! Many leases on one handle.

use std::time::Duration;

use crate::common::{leased, settle_down};
use tenure::Held;

const TTL: Duration = Duration::from_secs(15);
const MANY: usize = 10_000;

#[tokio::test]
async fn ten_thousand_leases_are_renewed_with_at_most_one_call_for_each_third_of_their_time() {
    let rig = leased();
    let asks: Vec<_> = (0..MANY)
        .map(|number| {
            let tenure = rig.tenure.clone();
            tokio::spawn(async move {
                tenure.leases().hold(&format!("lease-{number}")).ttl(TTL).try_now().await.unwrap()
            })
        })
        .collect();
    let mut held: Vec<Held> = Vec::with_capacity(MANY);
    for ask in asks {
        held.push(ask.await.unwrap());
    }
    assert!(rig.calls() < 20, "{} calls to take them", rig.calls());

    let (calls, rounds) = (rig.calls(), 15);
    for _ in 0..rounds * 10 {
        rig.clock.advance(TTL / 30);
        settle_down().await;
    }
    let calls = rig.calls() - calls;
    assert!((rounds - 3..=rounds).contains(&calls), "{calls} calls in {rounds} thirds");
    assert!(held.iter().all(Held::is_held));
    assert_eq!(rig.tenure.leases().tally().held, MANY);

    let calls = rig.calls();
    drop(held);
    settle_down().await;
    assert_eq!((rig.calls() - calls, rig.tenure.leases().tally().held), (1, 0), "given back in one call");
}
