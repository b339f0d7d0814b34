//! Bad input: what is refused at the edge names the field, what was found and the limit, and never
//! repeats a huge value.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::common::{at, new_job, policy, terms};
use tenure_core::{
    AfterJobs, Args, Backoff, CancelRequest, Cause, Due, Failure, HostId, IfFailed, Invalid, JobId, Keep,
    Key, Kind, Limit, LimitKey, LogLine, Meter, Name, NewJob, OnConflict, Output, Priority, Progress,
    QueueName, Rate, Retention, RetryPolicy, StateName, Terms, Timestamp, Unique, UniqueKey, Window,
    delay_of, limits, seconds,
};

/// Who refuses, how, in which words.
type Row = (Invalid, &'static str, &'static str, &'static str);

/// Checks that each complaint names its field, what was found, and the limit.
fn check(rows: impl IntoIterator<Item = Row>) {
    for (complaint, field, found, allowed) in rows {
        assert_eq!(complaint.field, field, "{complaint}");
        assert_eq!(complaint.found, found, "{complaint}");
        assert_eq!(complaint.allowed, allowed, "{complaint}");
        assert!(complaint.to_string().len() < 300, "a complaint never repeats a huge value: {complaint}");
    }
}

fn refused<T>(answer: Result<T, Invalid>) -> Invalid {
    answer.err().expect("a bad value is refused")
}

fn nested(depth: usize) -> Vec<u8> {
    ["[".repeat(depth), "]".repeat(depth)].concat().into_bytes()
}

fn json_string(bytes: usize) -> Vec<u8> {
    format!("\"{}\"", "x".repeat(bytes - 2)).into_bytes()
}

/// Regression of peers: JSON deeper than the parser allows blocks a queue.
#[test]
fn args_that_are_too_long_too_deep_or_no_text_are_refused() {
    let text = "JSON in UTF-8";
    check([
        (refused(Args::new(json_string(262_145))), "args", "262145 bytes", "at most 262144 bytes"),
        (refused(Args::new(nested(65))), "args", "JSON nested 65 levels deep", "at most 64 levels"),
        (refused(Args::new(nested(100_000))), "args", "JSON nested 100000 levels deep", "at most 64 levels"),
        (refused(Args::new(b"\"caf\xe9\"".to_vec())), "args", "invalid UTF-8 at byte 4", text),
        (refused(Args::new(b"\xff\xfe{}".to_vec())), "args", "invalid UTF-8 at byte 0", text),
        (
            refused(Args::new(b"{\"a\":\"\0\"}".to_vec())),
            "args",
            "a NUL character at 6",
            "JSON without NUL characters",
        ),
    ]);
}

#[test]
fn args_at_the_limit_pass_and_are_kept_byte_for_byte() {
    for json in [json_string(262_144), nested(64), br#" {"a" : "\u0000 caf\u00e9 \ud83d\ude00" } "#.to_vec()]
    {
        assert_eq!(Args::new(json.clone()).expect("within the limits").as_bytes(), json);
    }
}

/// T098: what is no JSON is told apart by its handler, with a record; it does not stop a whole batch.
#[test]
fn args_are_not_parsed_before_their_handler_reads_them() {
    assert!(Args::new(b"{\"user\":".to_vec()).is_ok());
}

#[test]
fn outputs_and_places_beyond_the_limits_are_refused() {
    let place = |place: &str| refused(Output::new(Vec::new(), Some(place.to_owned())));
    let output = |value: Vec<u8>| refused(Output::new(value, None));
    let path = "a path such as /stars/7";
    check([
        (output(json_string(262_145)), "output", "262145 bytes", "at most 262144 bytes"),
        (output(nested(65)), "output", "JSON nested 65 levels deep", "at most 64 levels"),
        (output(vec![0xc3]), "output", "invalid UTF-8 at byte 0", "JSON in UTF-8"),
        (
            output(br#"{"$sealed":"VE5SRx"}"#.to_vec()),
            "output",
            "the form of an encrypted result",
            "a result in plain JSON",
        ),
        (place(&"x".repeat(2_049)), "place", "2049 bytes", "at most 2048 bytes"),
        (place(""), "place", "empty", path),
        (place("/stars\r\nSet-Cookie: a"), "place", "invalid character '\\r'", path),
    ]);
    assert!(Output::new(json_string(262_144), Some("x".repeat(2_048))).is_ok());
}

#[test]
fn names_that_are_empty_huge_or_hold_odd_characters_are_refused() {
    let long = "x".repeat(10_000);
    let allowed = "1 to 128 characters of A-Z a-z 0-9 . _ : -";
    check([
        (refused(QueueName::new("")), "queue", "empty", allowed),
        (refused(QueueName::new(&long)), "queue", "10000 bytes", allowed),
        (refused(Kind::new("mail\0")), "kind", "invalid character '\\0'", allowed),
        (refused(Kind::new("mail\u{1b}[2J")), "kind", "invalid character '\\u{1b}'", allowed),
        (refused(Kind::new("mail out")), "kind", "invalid character ' '", allowed),
        (refused(Name::new("tag", "a/b")), "tag", "invalid character '/'", allowed),
        (refused(Name::new("tag", "\u{202e}gat")), "tag", "invalid character '\\u{202e}'", allowed),
        (refused(Name::new("tag", &"ø".repeat(65))), "tag", "130 bytes", allowed),
    ]);
    assert!(serde_json::from_str::<QueueName>("\"\"").is_err(), "text from outside is checked as well");
    assert!(serde_json::from_str::<Kind>("\"a b\"").is_err());
}

#[test]
fn priorities_outside_their_range_are_refused() {
    let allowed = "-100 (first) to 100 (last)";
    check([
        (refused(Priority::new(-101)), "priority", "-101", allowed),
        (refused(Priority::new(101)), "priority", "101", allowed),
        (refused(Priority::new(i64::MIN)), "priority", "-9223372036854775808", allowed),
    ]);
    assert!(serde_json::from_str::<Priority>("101").is_err());
    assert!(Priority::FIRST < Priority::default() && Priority::default() < Priority::LAST);
}

/// T102: far past and far future; local time is refused.
#[test]
fn instants_that_nobody_can_mean_are_refused() {
    let text = |text: &str| refused(text.parse::<Timestamp>());
    let range = "a time from 1970-01-01T00:00:00Z to 9998-12-31T23:59:59Z";
    let rfc = "RFC 3339 with an offset up to ±14:00, such as 2026-03-29T02:30:00Z, in the years 1970 to 9998";
    let cut = format!("{:?}", format!("{} … (cut)", "x".repeat(54)));
    check([
        (text("9999-12-31T23:59:59Z"), "timestamp", "\"9999-12-31T23:59:59Z\"", rfc),
        (text("9999-01-01T00:00:00Z"), "timestamp", "\"9999-01-01T00:00:00Z\"", rfc),
        (text("1969-12-31T23:59:59.999999Z"), "timestamp", "\"1969-12-31T23:59:59.999999Z\"", rfc),
        (refused(Timestamp::from_micros(-1)), "timestamp", "-1 µs since 1970", range),
        (
            refused(Timestamp::from_micros(253_370_764_800_000_000)),
            "timestamp",
            "253370764800000000 µs since 1970",
            range,
        ),
        (refused(Timestamp::from_micros(i64::MAX)), "timestamp", "9223372036854775807 µs since 1970", range),
        (text("2026-03-29T02:30:00"), "timestamp", "\"2026-03-29T02:30:00\"", rfc),
        (text("+010000-01-01T00:00:00Z"), "timestamp", "\"+010000-01-01T00:00:00Z\"", rfc),
        (text("tomorrow\u{7}"), "timestamp", "\"tomorrow\\u{7}\"", rfc),
    ]);
    let huge = text(&"x".repeat(10_000));
    assert_eq!(huge.found, cut);
    assert!(Timestamp::try_from(std::time::SystemTime::UNIX_EPOCH - Duration::from_secs(1)).is_err());
    assert!(serde_json::from_str::<Timestamp>("\"9999-01-01T00:00:00Z\"").is_err());
}

/// Every way to an instant ends within the range: hence [`Due::At`] needs no check of its own.
#[test]
fn no_arithmetic_leads_out_of_the_range_of_instants() {
    assert_eq!(Timestamp::LAST.after(Duration::MAX), Timestamp::LAST);
    assert_eq!(Timestamp::EPOCH.before(Duration::MAX), Timestamp::EPOCH);
    assert_eq!(Due::In(Duration::MAX).at(Timestamp::LAST), Timestamp::LAST);
    for end in [Timestamp::EPOCH, Timestamp::LAST] {
        assert_eq!(Timestamp::from_micros(end.as_micros()), Ok(end));
        assert_eq!(end.to_string().parse(), Ok(end));
    }
}

#[test]
fn lengths_of_time_that_are_negative_endless_or_no_number_are_refused() {
    let allowed = "0 to 3162240000 seconds";
    check([
        (refused(seconds("delay", f64::NAN)), "delay", "NaN seconds", allowed),
        (refused(seconds("delay", f64::INFINITY)), "delay", "inf seconds", allowed),
        (refused(seconds("delay", f64::NEG_INFINITY)), "delay", "-inf seconds", allowed),
        (refused(seconds("delay", -1.5)), "delay", "-1.5 seconds", allowed),
        (refused(seconds("delay", 3_162_240_001.0)), "delay", "3162240001.0 seconds", allowed),
        (refused(seconds("delay", f64::MAX)), "delay", "1.7976931348623157e308 seconds", allowed),
        (
            refused(delay_of("delay", Duration::MAX)),
            "delay",
            "18446744073709551615 seconds",
            "at most 3162240000 seconds",
        ),
    ]);
    assert_eq!(seconds("delay", 3_162_240_000.0), Ok(limits::LONGEST));
    assert_eq!(seconds("delay", -0.0), Ok(Duration::ZERO));
}

#[test]
fn ids_that_are_none_are_refused_with_an_example() {
    let example = "a UUID such as 0190f5c2-7b1e-7c3a-9f02-6a2d8c4e5b10";
    check([
        (refused("job-7".parse::<JobId>()), "job id", "\"job-7\"", example),
        (refused("".parse::<HostId>()), "host id", "\"\"", example),
    ]);
    assert!(refused("7".repeat(10_000).parse::<JobId>()).found.ends_with("(cut)\""));
    assert!(refused("x".repeat(10_000).parse::<StateName>()).found.ends_with("(cut)\""));
}

#[test]
fn policies_without_a_bound_are_refused() {
    let of = |policy: RetryPolicy| refused(policy.check());
    let wait = |backoff: Backoff| of(RetryPolicy { backoff, ..policy() });
    let (fine, endless) = (Duration::from_secs(1), Duration::from_secs(3_162_240_001));
    let (found, most) = ("3162240001 seconds", "at most 3162240000 seconds");
    let first = Backoff::Exponential { first: endless, ceiling: fine };
    let ceiling = Backoff::Exponential { first: fine, ceiling: endless };
    check([
        (of(RetryPolicy { max_attempts: 0, ..policy() }), "attempts", "0", "1 to 10000"),
        (of(RetryPolicy { max_attempts: 10_001, ..policy() }), "attempts", "10001", "1 to 10000"),
        (of(RetryPolicy { max_deliveries: 0, ..policy() }), "deliveries", "0", "1 to 1000000"),
        (
            of(RetryPolicy { max_deliveries: u32::MAX, ..policy() }),
            "deliveries",
            "4294967295",
            "1 to 1000000",
        ),
        (wait(first), "backoff.first", found, most),
        (wait(ceiling), "backoff.ceiling", found, most),
        (wait(Backoff::Fixed(endless)), "backoff", found, most),
        (wait(Backoff::Steps(Vec::new())), "backoff.steps", "0 waits", "1 to 100 delays"),
        (wait(Backoff::Steps(vec![fine; 101])), "backoff.steps", "101 waits", "1 to 100 delays"),
        (wait(Backoff::Steps(vec![fine, endless])), "backoff.steps", found, most),
    ]);
    let most = RetryPolicy {
        backoff: Backoff::Steps(vec![limits::LONGEST; 100]),
        max_attempts: 10_000,
        max_deliveries: 1_000_000,
    };
    assert_eq!(most.check(), Ok(()));
}

#[test]
fn terms_beyond_a_limit_are_refused() {
    let of = |terms: Terms| refused(terms.check());
    let meta = |key: &str, value: &str| Terms {
        meta: BTreeMap::from([(key.to_owned(), value.to_owned())]),
        ..terms()
    };
    let many = |number: usize| (0..number).map(|n| (n.to_string(), String::new())).collect();
    let tags = |number: usize| vec![Name::new("tag", "x").unwrap(); number];
    let keep = |span| Retention { failed: Keep::For(span), ..Retention::default() };
    let unique = |span| {
        let window = Window::For(span);
        Some(Unique { key: UniqueKey([0; 16]), window, on_conflict: OnConflict::Return })
    };
    let endless = Duration::MAX;
    let (found, most) = ("18446744073709551615 seconds", "at most 3162240000 seconds");
    let (none, some) = ("0 seconds", "more than 0 seconds");
    check([
        (of(Terms { timeout: Some(Duration::ZERO), ..terms() }), "timeout", none, some),
        (of(Terms { timeout: Some(endless), ..terms() }), "timeout", found, most),
        (of(Terms { retention: keep(endless), ..terms() }), "retention", found, most),
        (of(Terms { unique: unique(Duration::ZERO), ..terms() }), "unique.window", none, some),
        (of(Terms { unique: unique(endless), ..terms() }), "unique.window", found, most),
        (of(Terms { tags: tags(33), ..terms() }), "tags", "33 tags", "at most 32"),
        (of(Terms { meta: many(65), ..terms() }), "meta", "65 entries", "at most 64"),
        (of(meta("note", &"x".repeat(1_025))), "meta", "1025 bytes", "at most 1024 bytes"),
        (of(meta(&"x".repeat(1_025), "")), "meta", "1025 bytes", "at most 1024 bytes"),
        (of(meta("note", "a\0b")), "meta", "a NUL character", "text without NUL"),
    ]);
    let full = Terms { tags: tags(32), meta: many(64), timeout: Some(limits::LONGEST), ..terms() };
    assert_eq!(full.check(), Ok(()));
}

#[test]
fn a_job_is_checked_whole_and_a_bad_item_of_a_batch_is_named() {
    let late = NewJob { due: Due::In(Duration::MAX), ..new_job(terms()) };
    let never = new_job(Terms { retry: Some(RetryPolicy { max_attempts: 0, ..policy() }), ..terms() });
    let most = "at most 3162240000 seconds";
    check([
        (refused(late.check()), "due", "18446744073709551615 seconds", most),
        (refused(never.check()).in_item(99_999), "jobs[99999].attempts", "0", "1 to 10000"),
    ]);
    assert_eq!(new_job(terms()).check(), Ok(()));
    assert_eq!(NewJob { due: Due::At(Timestamp::LAST), ..new_job(terms()) }.check(), Ok(()));
}

#[test]
fn a_cancelling_without_end_or_with_a_huge_reason_is_refused() {
    let of = |grace, reason: &str| refused(CancelRequest::check(grace, reason));
    let long = "x".repeat(1_025);
    let most = "at most 3162240000 seconds";
    check([
        (of(Duration::ZERO, &long), "reason", "1025 bytes", "at most 1024 bytes"),
        (of(Duration::MAX, ""), "grace", "18446744073709551615 seconds", most),
    ]);
}

#[test]
fn progress_that_is_no_fraction_is_refused() {
    let of = |fraction| refused(Progress::new(fraction, ""));
    check([
        (of(f64::NAN), "progress", "NaN", "0 to 1"),
        (of(-0.5), "progress", "-0.5", "0 to 1"),
        (of(1.5), "progress", "1.5", "0 to 1"),
        (of(f64::MAX), "progress", "1.7976931348623157e308", "0 to 1"),
    ]);
}

/// What a handler says of its failure must never be the reason that its failure cannot be recorded.
#[test]
fn what_a_handler_says_is_cut_and_freed_of_nul_but_never_refused() {
    let (now, long) = (Timestamp::EPOCH, "ø\0".repeat(10_000));
    let texts = [
        (Failure::new(Cause::Panic, &long).message, limits::FAILURE_BYTES),
        (CancelRequest::new(now, Duration::ZERO, &long).reason, limits::REASON_BYTES),
        (Progress::new(0.5, &long).expect("a fraction").message, limits::LINE_BYTES),
        (LogLine::new(1, 1, now, &long).text, limits::LINE_BYTES),
    ];
    for (text, most) in texts {
        assert!(text.len() <= most && text.len() > most - 4, "{} of {most}", text.len());
        assert!(text.ends_with("… (cut)") && !text.contains('\0'));
    }
    assert_eq!(Failure::new(Cause::Error, "as it is").message, "as it is");
}

/// Ordering, limit and share keys.
#[test]
fn keys_that_are_empty_huge_or_hold_control_characters_are_refused() {
    let of = |text: &str| refused(Key::new("ordering_key", text));
    let allowed = "1 to 256 bytes without control characters";
    check([
        (of(""), "ordering_key", "empty", allowed),
        (of(&"x".repeat(257)), "ordering_key", "257 bytes", allowed),
        (of(&"ø".repeat(129)), "ordering_key", "258 bytes", allowed),
        (of("a\0b"), "ordering_key", "invalid character '\\0'", allowed),
        (of("a\nb"), "ordering_key", "invalid character '\\n'", allowed),
        (of("\u{9b}"), "ordering_key", "invalid character '\\u{9b}'", allowed),
        (refused("".parse::<Key>()), "key", "empty", allowed),
    ]);
    assert!(serde_json::from_str::<Key>("\"\"").is_err(), "text from outside is checked as well");
    let texts =
        ["cart-7", "Cart-7", "cart-7 ", "caf\u{e9}", "cafe\u{301}", "🦀", "\u{202e}7", "/", "..", "%"];
    let keys: std::collections::BTreeSet<Key> =
        texts.iter().map(|text| Key::new("key", text).expect("a key")).collect();
    assert_eq!(keys.len(), texts.len(), "what looks alike is different all the same");
    assert!(Key::new("key", &"x".repeat(256)).is_ok());
}

#[test]
fn limits_and_rates_that_are_none_or_without_a_bound_are_refused() {
    let of = |limit: Limit| refused(limit.check());
    let rate = |rate: Rate| of(Limit { most: None, rate: Some(rate) });
    let (second, month) = (Duration::from_secs(1), Duration::from_secs(31 * 24 * 3600));
    let per = "0.001 to 2678400 seconds";
    check([
        (of(Limit::of(0)), "limit.most", "0", "1 to 1000000"),
        (of(Limit::of(1_000_001)), "limit.most", "1000001", "1 to 1000000"),
        (rate(Rate::new(0, second)), "limit.rate.times", "0", "1 to 1000000"),
        (rate(Rate::new(u32::MAX, second)), "limit.rate.times", "4294967295", "1 to 1000000"),
        (rate(Rate::new(1, second).burst(0)), "limit.rate.burst", "0", "1 to 1000000"),
        (rate(Rate::new(1, second).burst(1_000_001)), "limit.rate.burst", "1000001", "1 to 1000000"),
        (rate(Rate::new(1, Duration::ZERO)), "limit.rate.per", "0.0 seconds", per),
        (rate(Rate::new(1, Duration::from_micros(999))), "limit.rate.per", "0.000999 seconds", per),
        (rate(Rate::new(1, month + second)), "limit.rate.per", "2678401.0 seconds", per),
        (rate(Rate::new(1, Duration::MAX)), "limit.rate.per", "1.8446744073709552e19 seconds", per),
        (
            rate(Rate::new(1, month).burst(1_000_000)),
            "limit.rate.burst",
            "1000000, which takes 2678400000000 seconds to refill",
            "a burst that refills within 3162240000 seconds",
        ),
    ]);
    let most = Rate { times: 1_000_000, per: Duration::from_millis(1), burst: 1_000_000 };
    for rate in [most, Rate::new(1, month).burst(1_180), Rate::new(1_000_000, month)] {
        assert_eq!(Limit { most: Some(1_000_000), rate: Some(rate) }.check(), Ok(()));
    }
    assert_eq!(Limit::default().check(), Ok(()), "no limit is one, too");
}

/// Whatever a rate within the limits is asked, it stays within what a number can hold.
#[test]
fn no_rate_within_the_limits_leads_out_of_the_range_of_instants() {
    let month = Duration::from_secs(31 * 24 * 3600);
    for rate in [Rate::new(1, month).burst(1_180), Rate::new(1_000_000, Duration::from_millis(1))] {
        assert_eq!(rate.check(), Ok(()));
        for now in [Timestamp::EPOCH, at(1), Timestamp::LAST.before(limits::LONGEST)] {
            let meter = Meter::new(Limit { most: None, rate: Some(rate) });
            assert_eq!(meter.room(now), rate.burst);
            let spent = meter.started(rate.burst, now);
            assert_eq!(spent.room(now), 0, "{rate:?} at {now}");
            assert!(spent.next_room(now).is_some_and(|next| next > now && next <= Timestamp::LAST));
            assert_eq!(spent.started(u32::MAX, now).room(now), 0, "more than there were");
        }
    }
}

#[test]
fn terms_of_jobs_that_share_keys_or_wait_for_others_are_checked() {
    let of = |terms: Terms| refused(terms.check());
    let limit = |most| {
        let key = Key::new("limit_key", "smtp").expect("a key");
        Terms { limit: Some(LimitKey { key, most: Some(most) }), ..terms() }
    };
    let after = |number: usize| {
        let jobs = vec![JobId::from_bytes([1; 16]); number];
        Terms { after: Some(AfterJobs { jobs, if_failed: IfFailed::Cancel }), ..terms() }
    };
    check([
        (of(limit(0)), "limit", "0", "1 to 1000000"),
        (of(limit(1_000_001)), "limit", "1000001", "1 to 1000000"),
        (of(after(0)), "after_jobs", "0 jobs", "1 to 1000 jobs"),
        (of(after(1_001)), "after_jobs", "1001 jobs", "1 to 1000 jobs"),
        (refused(new_job(after(0)).check()).in_item(3), "jobs[3].after_jobs", "0 jobs", "1 to 1000 jobs"),
    ]);
    for fine in [limit(1), limit(1_000_000), after(1), after(1_000)] {
        assert_eq!(fine.check(), Ok(()));
    }
}
