//! What listing leases promises.

use tenure_core::{LeaseState, limits};

use super::given::{Given, TTL, seconds};
use super::wishes::{acquire, break_within, forget, leases, name, queue_up, wish};
use super::{Test, test};
use tenure_store::{LeaseInfo, LeasePage, LeasesAsk};

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(leases_are_listed_by_name_byte_by_byte),
        test(a_prefix_means_itself_and_no_pattern),
        test(a_page_goes_on_where_the_last_one_ended),
        test(the_last_page_says_that_it_is_the_last),
        test(a_page_is_bounded_and_never_empty_for_want_of_room),
        test(a_listing_tells_how_each_lease_stands_now),
        test(forgotten_names_are_not_listed_and_leave_no_gap),
    ]
}

const NAMES: [&str; 14] = [
    "100%",
    "100 percent",
    "MAIL/out",
    "Mail/out",
    "a",
    "a%b",
    "a_b",
    "a\u{10ffff}",
    "a\u{10ffff}b",
    "axb",
    "b*",
    "mail/",
    "mail/out",
    "mail[1]",
];

async fn hold_all(given: &Given) {
    // In no particular order.
    let shuffled = (0..NAMES.len()).map(|n| NAMES[(n * 5 + 3) % NAMES.len()]);
    given.wishes(shuffled.map(|name| wish(name, acquire(1))).collect()).await;
}

fn names_of(infos: &[LeaseInfo]) -> Vec<String> {
    infos.iter().map(|info| info.lease.name.to_string()).collect()
}

async fn page(given: &Given, ask: LeasesAsk) -> LeasePage {
    given.store.leases(ask).await.unwrap()
}

async fn leases_are_listed_by_name_byte_by_byte(given: Given) {
    hold_all(&given).await;
    let mut expected = NAMES.map(str::to_owned);
    expected.sort();
    assert_eq!(names_of(&leases(&*given.store, "", 100).await), expected);
}

async fn a_prefix_means_itself_and_no_pattern(given: Given) {
    hold_all(&given).await;
    let mut sorted = NAMES;
    sorted.sort_unstable();
    let prefixes = [
        "",
        "1",
        "100%",
        "a",
        "a%",
        "a_",
        "a_b",
        "a\u{10ffff}",
        "mail",
        "Mail",
        "MAIL",
        "mail/",
        "mail[",
        "b*",
        "*",
        "%",
        "_",
        "mail/out",
        "mail/out/",
        "z",
        "\\",
        "'",
        "\u{10ffff}",
    ];
    for prefix in prefixes {
        let expected: Vec<&str> = sorted.into_iter().filter(|name| name.starts_with(prefix)).collect();
        for size in [1, 2, 100] {
            assert_eq!(names_of(&leases(&*given.store, prefix, size).await), expected, "{prefix:?}");
        }
    }
}

async fn a_page_goes_on_where_the_last_one_ended(given: Given) {
    hold_all(&given).await;
    let whole = leases(&*given.store, "", 100).await;
    for size in 1..=NAMES.len() + 1 {
        assert_eq!(leases(&*given.store, "", size).await, whole, "pages of {size}");
    }
    // Behind a name that is not there, as behind any other.
    let behind = Some(name("a_a"));
    let ask = LeasesAsk { prefix: "a".to_owned(), behind, at_most: 2 };
    let found = page(&given, ask).await;
    assert_eq!(names_of(&found.leases), ["a_b", "axb"]);
    assert_eq!(found.next, Some(name("axb")));
    // A name outside of the prefix leads nowhere else.
    let ask = LeasesAsk { prefix: "b".to_owned(), behind: Some(name("a")), at_most: 9 };
    assert_eq!(names_of(&page(&given, ask).await.leases), ["b*"]);
    let ask = LeasesAsk { prefix: "b".to_owned(), behind: Some(name("c")), at_most: 9 };
    assert_eq!(page(&given, ask).await, LeasePage::default());
}

async fn the_last_page_says_that_it_is_the_last(given: Given) {
    assert_eq!(page(&given, LeasesAsk::default()).await, LeasePage::default());
    hold_all(&given).await;
    for (prefix, count) in [("", NAMES.len()), ("a", 6), ("mail", 3)] {
        for at_most in [count, count + 1] {
            let ask = LeasesAsk { prefix: prefix.to_owned(), behind: None, at_most };
            let found = page(&given, ask).await;
            assert_eq!((found.leases.len(), found.next), (count, None), "{prefix:?} in pages of {at_most}");
        }
    }
}

async fn a_page_is_bounded_and_never_empty_for_want_of_room(given: Given) {
    let many = limits::PAGE_LEASES + 1;
    given.wishes((0..many).map(|n| wish(&format!("x-{n:05}"), acquire(1))).collect()).await;
    let found = page(&given, LeasesAsk { at_most: usize::MAX, ..LeasesAsk::default() }).await;
    assert_eq!(found.leases.len(), limits::PAGE_LEASES);
    assert_eq!(found.next, found.leases.last().map(|info| info.lease.name.clone()));
    let found = page(&given, LeasesAsk { at_most: 0, ..LeasesAsk::default() }).await;
    assert_eq!((found.leases.len(), found.next), (1, Some(name("x-00000"))));
}

async fn a_listing_tells_how_each_lease_stands_now(given: Given) {
    let free = given.hold("free", 1).await;
    given.give_back("free", free).await;
    given.hold("lapsed", 1).await;
    given.pass(TTL);
    for name in ["breaking", "broken", "held"] {
        given.hold(name, 1).await;
    }
    given.refusal("held", queue_up(2, TTL)).await;
    given.refusal("held", queue_up(3, TTL)).await;
    given.wish("breaking", break_within(seconds(9))).await;
    given.wish("broken", break_within(seconds(0))).await;
    let found = leases(&*given.store, "", 2).await;
    let told: Vec<(String, LeaseState, u32)> =
        found.iter().map(|info| (info.lease.name.to_string(), info.state, info.waiting)).collect();
    let expected = [
        ("breaking", LeaseState::Breaking, 0),
        ("broken", LeaseState::Broken, 0),
        ("free", LeaseState::Free, 0),
        ("held", LeaseState::Held, 2),
        ("lapsed", LeaseState::Lapsed, 0),
    ];
    assert_eq!(told, expected.map(|(name, state, waiting)| (name.to_owned(), state, waiting)));
    for info in found {
        assert_eq!(given.info(info.lease.name.as_str()).await, Some(info), "one lease, one tale");
    }
}

async fn forgotten_names_are_not_listed_and_leave_no_gap(given: Given) {
    for number in 0..9 {
        let name = format!("x-{number}");
        let mine = given.hold(&name, 1).await;
        given.give_back(&name, mine).await;
        if number % 3 != 1 {
            given.wish(&name, forget()).await;
        }
    }
    assert_eq!(names_of(&leases(&*given.store, "", 1).await), ["x-1", "x-4", "x-7"]);
    let found = page(&given, LeasesAsk { at_most: 3, ..LeasesAsk::default() }).await;
    assert_eq!((names_of(&found.leases).len(), found.next), (3, None));
    given.hold("x-0", 2).await;
    assert_eq!(names_of(&leases(&*given.store, "x", 2).await), ["x-0", "x-1", "x-4", "x-7"]);
}
