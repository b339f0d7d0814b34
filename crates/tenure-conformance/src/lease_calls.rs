//! What a call about leases promises: many wishes at once, of any name and by anybody.

use tenure_core::{Fence, Holder, HostId, LeaseAct, LeaseOutcome, LeaseRefusal, Ttl, limits};

use super::given::{Given, TTL, host, seconds};
use super::wishes::{
    Mine, acquire, break_within, by, change_to, forget, granted, id, leases, leave, refused, release, renew,
    renew_late, wish,
};
use super::{Test, test};

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(acts_on_a_name_that_nobody_held_leave_nothing_behind),
        test(what_a_holder_says_of_itself_is_kept_exactly),
        test(names_that_look_alike_are_different_leases),
        test(a_call_takes_many_wishes_each_by_itself),
        test(a_call_takes_more_wishes_than_a_statement_has_places),
        test(wishes_about_one_name_are_taken_in_their_order),
        test(a_call_without_wishes_answers_nothing),
        test(a_call_with_too_many_wishes_takes_none_of_them),
    ]
}

async fn acts_on_a_name_that_nobody_held_leave_nothing_behind(given: Given) {
    let nobody = Mine { id: id(1), fence: Fence::NONE };
    let somebody = Mine { id: id(1), fence: Fence::from_number(7) };
    for mine in [nobody, somebody] {
        for act in [renew(mine), renew_late(mine), release(mine), change_to(mine, 2), break_within(None)] {
            assert_eq!(given.refusal("x", act).await, LeaseRefusal::NotHeld);
        }
    }
    given.wish("x", leave(1)).await;
    given.wish("x", forget()).await;
    assert_eq!(given.info("x").await, None);
    assert_eq!(given.all_notes().await, []);
    assert_eq!(leases(&*given.store, "", 10).await, []);
    assert_eq!(given.hold("x", 1).await.fence.number(), 1);
}

async fn what_a_holder_says_of_itself_is_kept_exactly(given: Given) {
    let meta = |rows: &[(&str, &str)]| rows.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let odd = [("", ""), ("note", "a\n\"b\"\\ \u{1}"), ("Note", " "), ("øæ", "🦀\u{202e}"), ("0", "1e400")];
    let holders = [
        Holder::default(),
        Holder { host: Some(host(7)), who: String::new(), meta: meta(&[]) },
        Holder { host: None, who: "web-3 (pid 4711) 'x' %s ø🦀".to_owned(), meta: meta(&odd) },
        Holder { host: Some(HostId::from_bytes([255; 16])), who: "x".repeat(256), meta: meta(&odd[1..]) },
    ];
    for (number, by) in holders.into_iter().enumerate() {
        let name = format!("x-{number}");
        by.check().unwrap();
        let act = LeaseAct::Acquire { id: id(1), by: by.clone(), ttl: Ttl::For(TTL), wait: None };
        assert!(granted(&given.wish(&name, act).await).is_some());
        assert_eq!(given.lease(&name).await.lease.held.unwrap().by, by);
        assert_eq!(given.notes(&name).await[0].by, by);
        let LeaseRefusal::Held { by: told, .. } = given.refusal(&name, acquire(2)).await else {
            panic!("it is held");
        };
        assert_eq!(told, by);
    }
}

/// T113, T020
async fn names_that_look_alike_are_different_leases(given: Given) {
    let long = "x".repeat(1023);
    let names = [
        "month-end",
        "Month-End",
        "month-end ",
        " month-end",
        "month_end",
        "month%end",
        "caf\u{e9}",
        "cafe\u{301}",
        "CAF\u{c9}",
        "🦀",
        "🦀\u{fe0f}",
        "\u{202e}dne",
        "a/b",
        "a//b",
        "a/b/",
        "/",
        "0",
        "00",
        "0.0",
        "null",
        "'; drop table leases; --",
        &format!("{long}a"),
        &format!("{long}b"),
    ];
    for (number, text) in names.iter().enumerate() {
        let mine = given.hold(text, number as u64).await;
        assert_eq!(mine.fence.number(), 1, "{text:?} is nobody else's");
    }
    for (number, text) in names.iter().enumerate() {
        let info = given.lease(text).await;
        assert_eq!((info.lease.name.as_str(), info.lease.held.unwrap().id), (*text, id(number as u64)));
        assert_eq!(given.notes(text).await.len(), 1);
    }
}

async fn a_call_takes_many_wishes_each_by_itself(given: Given) {
    let mine = given.hold("held", 1).await;
    let since = given.now();
    let wishes = vec![
        wish("one", acquire(2)),
        wish("held", acquire(2)),
        wish("two", release(mine)),
        wish("held", renew(mine)),
        wish("three", acquire(2)),
    ];
    let outcomes = given.wishes(wishes).await;
    let until = Some(given.soon(TTL));
    let held = LeaseRefusal::Held { by: by(1), fence: mine.fence, since, until, waiting: 0 };
    assert!(granted(&outcomes[0]).is_some() && granted(&outcomes[4]).is_some(), "{outcomes:?}");
    assert_eq!(outcomes[1], refused(held));
    assert_eq!(outcomes[2], refused(LeaseRefusal::NotHeld));
    assert_eq!(outcomes[3], LeaseOutcome::Renewed { until });
}

async fn a_call_takes_more_wishes_than_a_statement_has_places(given: Given) {
    let text = |number: u64| format!("lease-{number:05}");
    let many = 0..5_000_u64;
    let outcomes = given.wishes(many.clone().map(|n| wish(&text(n), acquire(n))).collect()).await;
    let fences: Vec<Fence> = outcomes.iter().filter_map(granted).collect();
    assert_eq!(fences.len(), 5_000);
    given.pass(seconds(10));
    let mine = |n: u64| Mine { id: id(n), fence: fences[n as usize] };
    let until = Some(given.soon(TTL));
    let outcomes = given.wishes(many.clone().map(|n| wish(&text(n), renew(mine(n)))).collect()).await;
    assert!(outcomes.iter().all(|outcome| *outcome == LeaseOutcome::Renewed { until }));
    let outcomes = given.wishes(many.map(|n| wish(&text(n), release(mine(n)))).collect()).await;
    assert!(outcomes.iter().all(|outcome| *outcome == LeaseOutcome::Released));
}

async fn wishes_about_one_name_are_taken_in_their_order(given: Given) {
    let first = given.hold("x", 1).await;
    let wishes = vec![
        wish("x", acquire(2)),
        wish("x", release(first)),
        wish("x", acquire(2)),
        wish("x", acquire(3)),
        wish("x", break_within(seconds(0))),
        wish("x", acquire(3)),
        wish("x", renew(first)),
    ];
    let outcomes = given.wishes(wishes).await;
    assert!(matches!(outcomes[0], LeaseOutcome::Refused(LeaseRefusal::Held { .. })), "{outcomes:?}");
    assert_eq!(outcomes[1], LeaseOutcome::Released);
    let second = granted(&outcomes[2]).unwrap();
    assert!(second > first.fence);
    let LeaseOutcome::Refused(LeaseRefusal::Held { fence, .. }) = outcomes[3] else {
        panic!("{outcomes:?}");
    };
    assert_eq!(fence, second);
    assert_eq!(outcomes[4], LeaseOutcome::Breaks { free: given.now() });
    let third = granted(&outcomes[5]).unwrap();
    assert!(third > second);
    assert_eq!(outcomes[6], refused(LeaseRefusal::Lost { fence: third }));
    assert_eq!(given.lease("x").await.lease.fence, third);
}

async fn a_call_without_wishes_answers_nothing(given: Given) {
    assert_eq!(given.wishes(vec![]).await, []);
}

async fn a_call_with_too_many_wishes_takes_none_of_them(given: Given) {
    let many = |count: usize| (0..count).map(|_| wish("x", forget())).collect::<Vec<_>>();
    assert_eq!(given.wishes(many(limits::LEASE_STEPS)).await.len(), limits::LEASE_STEPS);
    let mut wishes = many(limits::LEASE_STEPS);
    wishes.insert(0, wish("y", acquire(1)));
    let fault = given.store.lease(wishes).await.unwrap_err();
    assert!(!fault.is_passing() && fault.to_string().contains("the maximum is 20000"), "{fault}");
    assert_eq!(given.info("y").await, None);
}
