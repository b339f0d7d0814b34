//! App ids: what may be one, and who may use it.

use std::time::Duration;

use tenure_core::{AppId, AppUse, HostId, Timestamp, check_program, claim_app, limits};

/// The rules of the oldest ancestor, as it meant them: letters are ASCII.
#[test]
fn an_app_id_is_1_to_32_small_letters_digits_and_single_dashes_within() {
    let long = "x".repeat(32);
    for text in ["a", "0", "billing", "billing-2", "a-b-c", "943b1888c56ce8f0c96b2e66e1c74a7e", &long] {
        let id = AppId::new(text).expect("an app id");
        assert_eq!((id.as_str(), id.to_string().as_str()), (text, text));
        assert_eq!(text.parse(), Ok(id.clone()));
        let written = serde_json::to_string(&id).expect("text");
        assert_eq!(serde_json::from_str::<AppId>(&written).expect("an app id"), id);
    }
    let too_long = "x".repeat(33);
    let bad = [
        "", "-", "-a", "a-", "a--b", "Billing", "billing ", " ", "a_b", "a.b", "a/b", "a\nb", "a\0", "é",
        "ß", "ａ", "٣", "🦀", &too_long,
    ];
    for text in bad {
        let complaint = AppId::new(text).expect_err("it is none");
        assert_eq!((complaint.field.as_str(), complaint.found), ("app id", format!("{text:?}")));
        assert_eq!(
            complaint.allowed,
            "1 to 32 characters of a-z, 0-9 and -, with no dash at either end and no two dashes in a row"
        );
        assert!(serde_json::from_value::<AppId>(text.into()).is_err(), "as text from outside, too");
    }
    let huge = AppId::new(&"x".repeat(100_000)).expect_err("it is none");
    assert!(huge.to_string().len() < 300, "{huge}");
}

const DAY: Duration = Duration::from_secs(24 * 3600);

fn used(program: &str, host: u8, since: u32, seen: u32) -> AppUse {
    let day = |number: u32| Timestamp::EPOCH.after(DAY * number);
    AppUse {
        app: AppId::new("billing").expect("an app id"),
        program: program.to_owned(),
        host: HostId::from_bytes([host; 16]),
        since: day(since),
        seen: day(seen),
    }
}

#[test]
fn whoever_comes_first_has_an_app_id() {
    assert_eq!(claim_app(None, used("billing", 1, 100, 100)), Ok(used("billing", 1, 100, 100)));
}

/// Whatever its version, and however long it was away.
#[test]
fn the_same_program_goes_on_using_it() {
    let known = used("billing", 1, 10, 20);
    for day in [20, 21, 5_000] {
        let claimed = claim_app(Some(&known), used("billing", 2, day, day));
        assert_eq!(claimed, Ok(used("billing", 2, 10, day)), "since when stays, who and when do not");
    }
}

#[test]
fn another_program_is_refused_until_the_first_has_been_away_for_a_month() {
    let known = used("billing", 1, 10, 20);
    assert_eq!(limits::APP_GIVEN_UP, DAY * 30);
    for day in [5, 20, 21, 49] {
        assert_eq!(claim_app(Some(&known), used("reports", 2, day, day)), Err(known.clone()), "day {day}");
    }
    let taken = used("reports", 2, 50, 50);
    assert_eq!(claim_app(Some(&known), taken.clone()), Ok(taken));
    let differs_in_case = claim_app(Some(&known), used("Billing", 2, 21, 21));
    assert_eq!(differs_in_case, Err(known));
}

#[test]
fn a_program_is_named_within_the_limits() {
    for fine in ["x", "Zahlläufe 2", &"x".repeat(limits::PROGRAM_BYTES)] {
        assert_eq!(check_program(fine), Ok(()));
    }
    let long = "x".repeat(limits::PROGRAM_BYTES + 1);
    for (bad, found) in [("", "empty"), (long.as_str(), "257 bytes"), ("a\nb", "invalid character '\\n'")] {
        let told = check_program(bad).expect_err("it is none").to_string();
        assert_eq!(told, format!("program: {found}; expected 1 to 256 bytes without control characters"));
    }
}
