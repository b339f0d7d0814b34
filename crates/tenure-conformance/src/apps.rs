//! What app ids promise: two programs never share one unawares.

use tenure_core::{AppId, AppUse, limits};

use super::given::{Given, host, minutes, seconds};
use super::{Test, test};

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(a_claimed_app_id_is_listed_with_who_uses_it),
        test(instances_and_versions_of_one_program_share_an_app_id),
        test(another_program_is_told_whose_it_is),
        test(an_app_id_that_was_given_up_can_be_claimed_by_another),
        test(app_ids_are_listed_by_id_and_do_not_disturb_each_other),
    ]
}

fn app(text: &str) -> AppId {
    AppId::new(text).unwrap()
}

async fn claim(given: &Given, id: &str, program: &str, number: u8) -> Result<AppUse, AppUse> {
    given.store.claim_app(&app(id), program, host(number)).await.unwrap()
}

async fn listed(given: &Given) -> Vec<AppUse> {
    given.store.apps().await.unwrap()
}

async fn a_claimed_app_id_is_listed_with_who_uses_it(given: Given) {
    assert_eq!(listed(&given).await, []);
    let (since, seen) = (given.now(), given.now());
    let expected =
        AppUse { app: app("billing"), program: "billing ø 'x' %".to_owned(), host: host(1), since, seen };
    assert_eq!(claim(&given, "billing", "billing ø 'x' %", 1).await, Ok(expected.clone()));
    assert_eq!(listed(&given).await, [expected]);
}

async fn instances_and_versions_of_one_program_share_an_app_id(given: Given) {
    let since = given.now();
    claim(&given, "billing", "billing", 1).await.unwrap();
    for number in [2, 1, 3] {
        given.pass(limits::APP_GIVEN_UP);
        let seen = given.now();
        let expected =
            AppUse { app: app("billing"), program: "billing".to_owned(), host: host(number), since, seen };
        assert_eq!(claim(&given, "billing", "billing", number).await, Ok(expected.clone()));
        assert_eq!(listed(&given).await, [expected]);
    }
}

async fn another_program_is_told_whose_it_is(given: Given) {
    let known = claim(&given, "billing", "billing", 1).await.unwrap();
    given.pass(minutes(1));
    for program in ["reports", "Billing", "billing ", ""] {
        assert_eq!(claim(&given, "billing", program, 2).await, Err(known.clone()), "{program:?}");
    }
    assert_eq!(listed(&given).await, [known]);
    given.pass(minutes(1));
    let again = claim(&given, "billing", "billing", 3).await.unwrap();
    assert_eq!((again.host, again.seen), (host(3), given.now()));
}

async fn an_app_id_that_was_given_up_can_be_claimed_by_another(given: Given) {
    claim(&given, "billing", "billing", 1).await.unwrap();
    given.pass(minutes(60));
    claim(&given, "billing", "billing", 1).await.unwrap();
    given.pass(limits::APP_GIVEN_UP - seconds(1));
    assert!(claim(&given, "billing", "reports", 2).await.is_err(), "it was seen within the month");
    given.pass(seconds(1));
    let (since, seen) = (given.now(), given.now());
    let expected = AppUse { app: app("billing"), program: "reports".to_owned(), host: host(2), since, seen };
    assert_eq!(claim(&given, "billing", "reports", 2).await, Ok(expected.clone()));
    assert!(claim(&given, "billing", "billing", 1).await.is_err());
    given.tend().await;
    assert_eq!(listed(&given).await, [expected]);
}

async fn app_ids_are_listed_by_id_and_do_not_disturb_each_other(given: Given) {
    for id in ["reports", "billing", "billing-2", "a", "b"] {
        claim(&given, id, id, 1).await.unwrap();
    }
    assert!(claim(&given, "a", "b", 2).await.is_err());
    let ids: Vec<String> = listed(&given).await.into_iter().map(|used| used.app.to_string()).collect();
    assert_eq!(ids, ["a", "b", "billing", "billing-2", "reports"]);
}
