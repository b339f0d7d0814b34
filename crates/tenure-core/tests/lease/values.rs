//! What leases are asked for: names, spans, ids and holders.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tenure_core::{Holder, HostId, Invalid, LeaseAct, LeaseId, LeaseName, Timestamp, Ttl, limits};

use crate::lease::given::*;

fn refused<T>(answer: Result<T, Invalid>) -> Invalid {
    answer.err().expect("a bad value is refused")
}

/// T010: an argument error that names the field and the range, never "busy".
#[test]
fn spans_that_nobody_can_mean_are_refused_with_the_range() {
    let endless: f64 = "infinity".parse().expect("a number of a kind");
    let bad = [0.0, -1.0, -15.0, f64::NAN, endless, -endless, 0.999_999_9, 86_400.1, 9.3e18, 1e300];
    for value in bad {
        let complaint = refused(Ttl::of_seconds(value));
        assert_eq!((complaint.field.as_str(), complaint.allowed.as_str()), ("ttl", "1 to 86400 seconds"));
        assert_eq!(complaint.found, format!("{value:?} seconds"));
    }
    let two_to_63 = Duration::from_secs(1 << 63);
    for span in [Duration::ZERO, Duration::from_millis(999), seconds(86_401), two_to_63, Duration::MAX] {
        let complaint = refused(Ttl::new(span));
        assert_eq!((complaint.field.as_str(), complaint.allowed.as_str()), ("ttl", "1 to 86400 seconds"));
    }
    for value in [1.0, 1.5, 15.0, 60.001, 86_400.0] {
        assert_eq!(Ttl::of_seconds(value), Ok(Ttl::For(Duration::from_secs_f64(value))));
    }
}

/// T010, for those who come from blob leases.
#[test]
fn the_compatible_range_is_15_to_60_whole_seconds_or_endless() {
    let bad = [
        0.0,
        -0.0,
        -2.0,
        -1.5,
        1.0,
        14.0,
        14.999,
        15.000_000_000_1,
        15.5,
        60.001,
        61.0,
        86_400.0,
        9_223_372_036_854_775_808.0,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
    ];
    for value in bad {
        let complaint = refused(Ttl::compatible(value));
        assert_eq!(complaint.field, "ttl", "{value}");
        assert_eq!(complaint.found, format!("{value:?} seconds"));
        assert_eq!(complaint.allowed, "15 to 60 whole seconds, or -1 for a lease without expiry");
    }
    for whole in 15..=60_u32 {
        let span = Duration::from_secs(whole.into());
        assert_eq!(Ttl::compatible(whole.into()), Ok(Ttl::For(span)));
    }
    assert_eq!(Ttl::compatible(-1.0), Ok(Ttl::Endless));
}

#[test]
fn a_span_from_outside_is_checked_wherever_it_comes_in() {
    assert_eq!(serde_json::to_string(&Ttl::For(TTL)).expect("text"), r#"{"for":{"secs":30,"nanos":0}}"#);
    assert_eq!(serde_json::to_string(&Ttl::Endless).expect("text"), r#""endless""#);
    let read = |text: &str| serde_json::from_str::<Ttl>(text);
    assert_eq!(read(r#"{"for":{"secs":30,"nanos":0}}"#).expect("a span"), Ttl::For(TTL));
    assert_eq!(read(r#""endless""#).expect("a span"), Ttl::Endless);
    for text in [r#"{"for":{"secs":0,"nanos":999999999}}"#, r#"{"for":{"secs":86401,"nanos":0}}"#, "null"] {
        assert!(read(text).is_err(), "{text}");
    }
    // What stores keep, so that a lease is the same before and after.
    assert_eq!(Ttl::new(Duration::new(2, 1_999)), Ok(Ttl::For(Duration::new(2, 1_000))));
    assert_eq!(Ttl::new(Duration::new(1, 1)), Ok(Ttl::For(seconds(1))));
}

#[test]
fn an_instant_that_a_span_leads_beyond_is_the_last_one() {
    assert_eq!(Ttl::For(seconds(86_400)).until(Timestamp::LAST), Some(Timestamp::LAST));
    assert_eq!(Ttl::Endless.until(Timestamp::LAST), None);
}

/// T113: refused, with the limit.
#[test]
fn names_that_could_be_mistaken_for_others_on_their_way_are_refused() {
    let long = "x".repeat(1_025);
    let wide = "ø".repeat(513);
    #[rustfmt::skip]
    let rows = [
        ("",            "empty"),
        (&long,         "1025 bytes"),
        (&wide,         "1026 bytes"),
        (".",           "path segment \".\""),
        ("..",          "path segment \"..\""),
        ("a/../b",      "path segment \"..\""),
        ("../b",        "path segment \"..\""),
        ("a/..",        "path segment \"..\""),
        ("a/./b",       "path segment \".\""),
        ("a/.",         "path segment \".\""),
        ("a\0b",        "invalid character '\\0'"),
        ("a\nb",        "invalid character '\\n'"),
        ("a\tb",        "invalid character '\\t'"),
        ("\u{7f}",      "invalid character '\\u{7f}'"),
        ("\u{85}",      "invalid character '\\u{85}'"),
    ];
    for (text, found) in rows {
        let complaint = refused(LeaseName::new(text));
        assert_eq!((complaint.field.as_str(), complaint.found.as_str()), ("lease name", found));
        assert!(complaint.allowed.contains("1 to 1024 bytes"), "{complaint}");
        assert!(complaint.to_string().len() < 300);
        assert!(serde_json::from_value::<LeaseName>(text.into()).is_err(), "as text from outside, too");
    }
    assert_eq!(refused(LeaseName::in_field("singleton", "")).field, "singleton");
}

/// T113: what is not refused is kept as it is, and is itself alone.
#[test]
fn names_that_look_alike_are_different_names() {
    let long = "x".repeat(1_023);
    let texts = [
        "month-end",
        "Month-End",
        "month-end ",
        "month\u{a0}end",
        "caf\u{e9}",
        "cafe\u{301}",
        "CAF\u{c9}",
        "ß",
        "ss",
        "İ",
        "i",
        "🦀",
        "🦀\u{fe0f}",
        "👩\u{200d}🔬",
        "\u{202e}dne-htnom",
        "\u{200b}",
        "\u{feff}month-end",
        "/",
        "//",
        "a/b",
        "a//b",
        "/a/b",
        "a/b/",
        "a\\..\\b",
        "...",
        ".a",
        "a..b",
        "%2e%2e",
        "%",
        "_",
        &format!("{long}a"),
        &format!("{long}b"),
    ];
    let names: BTreeSet<LeaseName> = texts.iter().map(|text| text.parse().expect("a name")).collect();
    assert_eq!(names.len(), texts.len());
    for text in texts {
        let name = LeaseName::new(text).expect("a name");
        assert_eq!((name.as_str(), name.to_string().as_str()), (text, text));
        let written = serde_json::to_string(&name).expect("text");
        assert_eq!(serde_json::from_str::<LeaseName>(&written).expect("a name"), name);
    }
}

#[test]
fn an_id_is_a_number_whatever_its_letters() {
    let forms = [
        "0190f5c2-7b1e-4c3a-9f02-6a2d8c4e5b10",
        "0190F5C2-7B1E-4C3A-9F02-6A2D8C4E5B10",
        "0190f5c27b1e4c3a9f026a2d8c4e5b10",
        "{0190f5c2-7b1e-4c3a-9f02-6a2d8c4e5b10}",
        "urn:uuid:0190f5c2-7b1e-4c3a-9f02-6a2d8c4e5b10",
    ];
    let ids: BTreeSet<LeaseId> = forms.iter().map(|form| form.parse().expect("an id")).collect();
    assert_eq!(ids.len(), 1);
    for text in ["", "7", "0190f5c2-7b1e-4c3a-9f02-6a2d8c4e5b1", "month-end", &"f".repeat(10_000)] {
        let complaint = refused(text.parse::<LeaseId>());
        assert_eq!(complaint.field, "lease id");
        assert!(complaint.to_string().len() < 300, "{complaint}");
    }
    let (one, other) = (LeaseId::new([1, 2]), LeaseId::new([1, 3]));
    assert_ne!(one, other);
    assert_eq!(LeaseId::from_bytes(*one.as_bytes()), one);
}

#[test]
fn a_holder_is_shown_by_what_is_known_of_it() {
    let host = HostId::from_bytes([7; 16]);
    assert_eq!(Holder::default().to_string(), "an unnamed holder");
    assert_eq!(Holder { host: Some(host), ..Holder::default() }.to_string(), format!("host {host}"));
    assert_eq!(Holder { host: Some(host), ..Holder::named("web-3") }.to_string(), "web-3");
}

#[test]
fn wishes_beyond_a_limit_are_refused_by_field() {
    let acquire =
        |by: Holder| refused(LeaseAct::Acquire { by, id: id(A), ttl: Ttl::For(TTL), wait: None }.check());
    let meta = |key: &str, value: &str| {
        let meta = BTreeMap::from([(key.to_owned(), value.to_owned())]);
        Holder { meta, ..Holder::default() }
    };
    let many = (0..65).map(|n| (n.to_string(), String::new())).collect();
    let found = |complaint: Invalid| (complaint.field, complaint.found, complaint.allowed);
    let row =
        |field: &str, found: &str, allowed: &str| (field.to_owned(), found.to_owned(), allowed.to_owned());
    let long = Holder::named(&"x".repeat(257));
    assert_eq!(found(acquire(long.clone())), row("holder", "257 bytes", "at most 256 bytes"));
    let odd = row("holder", "invalid character '\\u{1b}'", "text without control characters");
    assert_eq!(found(acquire(Holder::named("\u{1b}[2J"))), odd);
    assert_eq!(
        found(acquire(meta("k", &"x".repeat(1_025)))),
        row("meta", "1025 bytes", "at most 1024 bytes")
    );
    assert_eq!(found(acquire(meta("a\0", ""))).0, "meta");
    let crowded = Holder { meta: many, ..Holder::default() };
    assert_eq!(found(acquire(crowded)), row("meta", "65 entries", "at most 64"));

    let most = "at most 3162240000 seconds";
    let endless = row("wait", "18446744073709551615 seconds", most);
    assert_eq!(found(refused(queue_up(A, Duration::MAX).check())), endless);
    let short = acquire_for(A, Ttl::For(Duration::from_millis(1)));
    assert_eq!(found(refused(short.check())), row("ttl", "0.001 seconds", "1 to 86400 seconds"));
    let breaks = |within, by| LeaseAct::Break { within, by, reason: "x".repeat(100_000) };
    let endless = row("within", "18446744073709551615 seconds", most);
    assert_eq!(found(refused(breaks(Some(Duration::MAX), by(A)).check())), endless);
    assert_eq!(found(refused(breaks(None, long).check())).0, "holder");

    let full =
        Holder { who: "x".repeat(limits::HOLDER_BYTES), ..meta(&"k".repeat(1_024), &"v".repeat(1_024)) };
    let act = LeaseAct::Acquire { id: id(A), by: full, ttl: Ttl::Endless, wait: Some(limits::LONGEST) };
    assert_eq!(act.check(), Ok(()));
    // A long reason is cut, not refused: what matters is that the lease is broken.
    assert_eq!(breaks(Some(Duration::ZERO), by(A)).check(), Ok(()));
    for act in [renew(A, FENCE, tenure_core::Late::Counts), change(A, FENCE, B), release(A, FENCE), leave(A)]
    {
        assert_eq!(act.check(), Ok(()));
    }
}

#[test]
fn a_refusal_is_told_in_a_sentence() {
    use tenure_core::LeaseRefusal::{Awaited, Breaking, Broken, Held, Lapsed, Lost, NotHeld, WrongId};
    let (since, until) = (at(900), Some(at(NOW + 30)));
    let held = |until| Held { by: by(A), fence: FENCE, since, until, waiting: 3 };
    let (then, later) = ("1970-01-01T00:15:00.000000Z", "1970-01-01T00:17:10.000000Z");
    let rows = [
        (held(until), format!("held by web-1 since {then}, until {later} unless renewed")),
        (held(None), format!("held by web-1 since {then}, without expiry")),
        (Breaking { until: at(NOW + 30) }, format!("being broken; free at {later}")),
        (
            Awaited { ahead: 2, again: at(NOW + 30) },
            format!("free, but reserved for 2 earlier waiters; retry at {later}"),
        ),
        (WrongId, "not held under this ID".to_owned()),
        (Lost { fence: FENCE }, "lost; it was granted again under fencing token 7".to_owned()),
        (Lapsed { at: since }, format!("lapsed at {then}")),
        (Broken, "it was broken".to_owned()),
        (NotHeld, "not held".to_owned()),
    ];
    for (refusal, sentence) in rows {
        assert_eq!(refusal.to_string(), sentence);
    }
}
