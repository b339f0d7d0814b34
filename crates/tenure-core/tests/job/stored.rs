//! What stores and wires keep as JSON reads back as it was.

use std::fmt::Debug;
use std::time::Duration;

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;
use tenure_core::{
    AfterJobs, Backoff, Block, CancelRequest, Cause, End, Failure, Head, HostId, IfFailed, JobId, Keep, Key,
    Kind, Limit, LimitKey, Name, OnConflict, OrderingKey, Priority, Progress, QueueName, Rate, Reason,
    Retention, RetryPolicy, State, Terms, Timestamp, Unique, UniqueKey, Why, Window, limits,
};

fn reads_back<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) {
    let text = serde_json::to_string(value).expect("it can be written");
    let read: T = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(read, *value, "{text}");
}

fn spans() -> impl Strategy<Value = Duration> {
    (0..=limits::LONGEST.as_secs(), 0..1_000_000_000_u32)
        .prop_map(|(whole, nanos)| Duration::new(whole, nanos))
}

fn instants() -> impl Strategy<Value = Timestamp> {
    (0..=Timestamp::LAST.as_micros()).prop_map(|micros| Timestamp::from_micros(micros).expect("in range"))
}

fn names() -> impl Strategy<Value = Name> {
    "[A-Za-z0-9._:-]{1,128}".prop_map(|text| Name::new("tag", &text).expect("a name"))
}

fn queues() -> impl Strategy<Value = QueueName> {
    names().prop_map(|name| QueueName::new(name.as_str()).expect("a name"))
}

fn kinds() -> impl Strategy<Value = Kind> {
    names().prop_map(|name| Kind::new(name.as_str()).expect("a name"))
}

fn ends() -> impl Strategy<Value = End> {
    select(vec![End::Succeeded, End::Failed, End::Cancelled])
}

fn whys() -> impl Strategy<Value = Why> {
    select(vec![Why::Enqueued, Why::Retry, Why::Snoozed, Why::Released, Why::Lost, Why::Asked])
}

fn hosts() -> impl Strategy<Value = HostId> {
    any::<[u8; 16]>().prop_map(HostId::from_bytes)
}

fn policies() -> impl Strategy<Value = RetryPolicy> {
    let backoff = prop_oneof![
        (spans(), spans()).prop_map(|(first, ceiling)| Backoff::Exponential { first, ceiling }),
        spans().prop_map(Backoff::Fixed),
        vec(spans(), 1..9).prop_map(Backoff::Steps),
    ];
    (backoff, 1..=limits::MAX_ATTEMPTS, 1..=limits::MAX_DELIVERIES).prop_map(
        |(backoff, max_attempts, max_deliveries)| RetryPolicy { backoff, max_attempts, max_deliveries },
    )
}

fn uniques() -> impl Strategy<Value = Unique> {
    let window = prop_oneof![Just(Window::WhileUnfinished), spans().prop_map(Window::For)];
    let on_conflict = select(vec![OnConflict::Return, OnConflict::Reject, OnConflict::Replace]);
    (any::<[u8; 16]>(), window, on_conflict).prop_map(|(key, window, on_conflict)| Unique {
        key: UniqueKey(key),
        window,
        on_conflict,
    })
}

/// Any text that may be a key, among it what looks like another.
fn keys() -> impl Strategy<Value = Key> {
    "[^\\p{Cc}]{1,60}".prop_map(|text| Key::new("key", &text).expect("a key"))
}

fn jobs() -> impl Strategy<Value = JobId> {
    any::<[u8; 16]>().prop_map(JobId::from_bytes)
}

fn orderings() -> impl Strategy<Value = OrderingKey> {
    let heads = select(vec![Head::Block, Head::StepAside]);
    (keys(), heads).prop_map(|(key, head)| OrderingKey { key, head })
}

fn limit_keys() -> impl Strategy<Value = LimitKey> {
    (keys(), option::of(1..=limits::LIMIT_MOST)).prop_map(|(key, most)| LimitKey { key, most })
}

fn afters() -> impl Strategy<Value = AfterJobs> {
    let if_failed = select(vec![IfFailed::Cancel, IfFailed::Run]);
    (vec(jobs(), 1..5), if_failed).prop_map(|(jobs, if_failed)| AfterJobs { jobs, if_failed })
}

/// What a job shares with others, over its other terms.
fn gated(terms: impl Strategy<Value = Terms>) -> impl Strategy<Value = Terms> {
    let keys = (option::of(orderings()), option::of(limit_keys()), option::of(keys()), option::of(afters()));
    (terms, keys).prop_map(|(terms, (ordering, limit, share, after))| Terms {
        ordering,
        limit,
        share,
        after,
        ..terms
    })
}

fn limits_of_jobs() -> impl Strategy<Value = Limit> {
    let times = || 1..=limits::RATE_TIMES;
    let rate = (times(), spans(), times()).prop_map(|(times, per, burst)| Rate { times, per, burst });
    (option::of(1..=limits::LIMIT_MOST), option::of(rate)).prop_map(|(most, rate)| Limit { most, rate })
}

fn terms() -> impl Strategy<Value = Terms> {
    let keep = || prop_oneof![spans().prop_map(Keep::For), Just(Keep::Forever)];
    let retention = (keep(), keep()).prop_map(|(succeeded, failed)| Retention { succeeded, failed });
    let meta = btree_map(any::<String>(), any::<String>(), 0..4);
    (option::of(policies()), option::of(spans()), retention, vec(names(), 0..4), meta, option::of(uniques()))
        .prop_map(|(retry, timeout, retention, tags, meta, unique)| Terms {
            attempts: retry.as_ref().map(|policy: &RetryPolicy| policy.max_attempts),
            retry,
            timeout,
            retention,
            tags,
            meta,
            unique,
            ..Terms::default()
        })
}

fn states() -> impl Strategy<Value = State> {
    prop_oneof![
        (instants(), whys()).prop_map(|(due, why)| State::Waiting { due, why }),
        (select(vec![Block::Jobs, Block::Order, Block::Limit]), instants(), whys())
            .prop_map(|(on, due, why)| State::Blocked { on, due, why }),
        (hosts(), instants(), instants()).prop_map(|(holder, until, due)| State::Running {
            holder,
            until,
            due
        }),
        (instants(), ends()).prop_map(|(at, end)| State::Finished { at, end }),
    ]
}

fn failures() -> impl Strategy<Value = Failure> {
    let cause = select(vec![
        Cause::Error,
        Cause::Panic,
        Cause::TimedOut,
        Cause::Undecodable,
        Cause::Unstorable,
        Cause::UnknownKind,
        Cause::Lost,
        Cause::Cancelled,
        Cause::Deaf,
        Cause::Deliveries,
    ]);
    (cause, any::<String>()).prop_map(|(cause, message)| Failure::new(cause, &message))
}

fn reasons() -> impl Strategy<Value = Reason> {
    let running = || vec(jobs(), 0..4);
    let shared =
        prop_oneof![
            running().prop_map(|jobs| Reason::AfterJobs { jobs }),
            jobs().prop_map(|job| Reason::Spoiled { job }),
            (keys(), option::of(jobs()), any::<u32>()).prop_map(|(key, turn, ahead)| Reason::NotItsTurn {
                key,
                turn,
                ahead
            }),
            (option::of(keys()), any::<u32>(), running())
                .prop_map(|(key, most, running)| Reason::LimitFull { key, most, running }),
            (option::of(keys()), instants()).prop_map(|(key, next)| Reason::RateReached { key, next }),
            (keys(), any::<u32>()).prop_map(|(key, ahead)| Reason::BehindInLimit { key, ahead }),
        ];
    prop_oneof![
        (ends(), instants(), vec(jobs(), 0..4)).prop_map(|(end, at, needed_by)| Reason::Finished {
            end,
            at,
            needed_by
        }),
        (hosts(), instants(), any::<bool>()).prop_map(|(holder, until, cancelling)| Reason::Running {
            holder,
            until,
            cancelling
        }),
        (hosts(), ends()).prop_map(|(holder, end)| Reason::Ending { holder, end }),
        queues().prop_map(|queue| Reason::QueuePaused { queue }),
        (instants(), whys()).prop_map(|(due, why)| Reason::DueLater { due, why }),
        (instants(), any::<u32>(), option::of(failures()))
            .prop_map(|(due, attempts, failure)| Reason::BackingOff { due, attempts, failure }),
        queues().prop_map(|queue| Reason::QueueNotServed { queue }),
        (kinds(), vec(kinds(), 0..4)).prop_map(|(kind, served)| Reason::KindNotServed { kind, served }),
        (any::<u32>(), any::<u32>(), running(), any::<bool>()).prop_map(
            |(slots, elsewhere, running, waiting)| Reason::SlotsFull { slots, elsewhere, running, waiting }
        ),
        any::<u32>().prop_map(|ahead| Reason::Next { ahead }),
        shared,
    ]
}

proptest! {
    #[test]
    fn terms_and_policies_read_back_as_they_were(
        terms in gated(terms()),
        policy in policies(),
        limit in limits_of_jobs(),
    ) {
        reads_back(&terms);
        reads_back(&policy);
        reads_back(&limit);
    }

    #[test]
    fn states_failures_and_reasons_read_back_as_they_were(
        state in states(),
        failure in failures(),
        reason in reasons(),
    ) {
        reads_back(&state);
        reads_back(&failure);
        reads_back(&reason);
    }

    #[test]
    fn wishes_and_progress_read_back_as_they_were(
        at in instants(),
        grace in spans(),
        fraction in 0.0..=1.0_f64,
        text in any::<String>(),
    ) {
        reads_back(&CancelRequest::new(at, grace, &text));
        reads_back(&Progress::new(fraction, &text).expect("a fraction"));
    }

    #[test]
    fn an_instant_keeps_its_order_when_it_is_text_or_an_id(one in instants(), other in instants()) {
        let (id, later) = (JobId::new(one, u64::MAX), JobId::new(other, 0));
        if one < other {
            prop_assert!(id < later);
            prop_assert!(one.to_string() < other.to_string());
        }
        prop_assert_eq!(one.to_string().parse(), Ok(one));
    }

    #[test]
    fn priorities_keep_their_order(one in -100..=100_i64, other in -100..=100_i64) {
        let (a, b) = (Priority::new(one).expect("in range"), Priority::new(other).expect("in range"));
        prop_assert_eq!(a.cmp(&b), one.cmp(&other));
        reads_back(&a);
    }
}

/// Rows and messages outlive the program that wrote them: their words must not change by accident.
#[test]
fn the_words_of_stored_values_are_these() {
    let (at, holder) = (crate::common::at(1), HostId::from_bytes([7; 16]));
    let instant = "1970-01-01T00:00:01.000000Z";
    let same = |written: serde_json::Result<serde_json::Value>, expected: serde_json::Value| {
        assert_eq!(written.expect("it can be written"), expected);
    };
    same(
        serde_json::to_value(State::Waiting { due: at, why: Why::Retry }),
        json!({"state": "waiting", "due": instant, "why": "retry"}),
    );
    same(
        serde_json::to_value(State::Blocked { on: Block::Limit, due: at, why: Why::Enqueued }),
        json!({"state": "blocked", "on": "limit", "due": instant, "why": "enqueued"}),
    );
    same(
        serde_json::to_value(State::Running { holder, until: at, due: at }),
        json!({"state": "running", "holder": holder.to_string(), "until": instant, "due": instant}),
    );
    same(
        serde_json::to_value(State::Finished { at, end: End::Cancelled }),
        json!({"state": "finished", "at": instant, "end": "cancelled"}),
    );
    same(
        serde_json::to_value(crate::common::terms()),
        json!({
            "retry": {
                "backoff": {"fixed": {"secs": 5, "nanos": 0}},
                "max_attempts": 3,
                "max_deliveries": 7,
            },
            "retention": {
                "succeeded": {"for": {"secs": 60, "nanos": 0}},
                "failed": {"for": {"secs": 600, "nanos": 0}},
            },
        }),
    );
    let key = |text: &str| Key::new("key", text).expect("a key");
    let job = JobId::from_bytes([7; 16]);
    let gated = |head, most, if_failed| Terms {
        ordering: Some(OrderingKey { key: key("cart 7/ø"), head }),
        limit: Some(LimitKey { key: key("smtp"), most }),
        share: Some(key("tenant-7")),
        after: Some(AfterJobs { jobs: vec![job], if_failed }),
        ..Terms::default()
    };
    same(
        serde_json::to_value(gated(Head::Block, None, IfFailed::Cancel)),
        json!({
            "ordering": {"key": "cart 7/ø"},
            "limit": {"key": "smtp"},
            "share": "tenant-7",
            "after": {"jobs": [job.to_string()]},
        }),
    );
    same(
        serde_json::to_value(gated(Head::StepAside, Some(2), IfFailed::Run)),
        json!({
            "ordering": {"key": "cart 7/ø", "head": "step_aside"},
            "limit": {"key": "smtp", "most": 2},
            "share": "tenant-7",
            "after": {"jobs": [job.to_string()], "if_failed": "run"},
        }),
    );
    same(
        serde_json::to_value(Limit {
            most: Some(2),
            rate: Some(Rate::new(10, Duration::from_secs(60)).burst(3)),
        }),
        json!({"most": 2, "rate": {"times": 10, "per": {"secs": 60, "nanos": 0}, "burst": 3}}),
    );
    same(
        serde_json::to_value(Failure::new(Cause::TimedOut, "after 5 s")),
        json!({"cause": "timed_out", "message": "after 5 s"}),
    );
    same(serde_json::to_value(Reason::Next { ahead: 2 }), json!({"reason": "next", "ahead": 2}));
    same(serde_json::to_value(Progress::new(0.5, "").expect("a fraction")), json!({"fraction": 0.5}));
}
