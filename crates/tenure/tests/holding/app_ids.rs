//! App ids: what keeps two programs apart on one store.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{Rig, rigs};
use tenure::{
    AppId, Chance, Clock, Error, LeasesAsk, ManualClock, Message, OpenOptions, Roster, Tenure, Worker,
    Writer, app,
};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// T032: MD5, printed in the byte order of a .NET GUID.
#[test]
fn a_derived_app_id_is_the_one_that_webjobs_derive() {
    let project = |version: &str| {
        format!("Examples.Jobs.Project, Version={version}, Culture=neutral, PublicKeyToken=null")
    };
    let known = [
        ("Unknown".to_owned(), "943b1888c56ce8f0c96b2e66e1c74a7e"),
        ("Keeper-Unknown".to_owned(), "2024f7e209f7de4409577480fff110e2"),
        (project("1.0.0.0"), "54a9565ed50a9ccc3d41e4a7b9e819f8"),
        (project("1.0.0.1"), "1f42e158f44228a1ae97bcffaa2906cd"),
    ];
    for (text, id) in known {
        assert_eq!(app::derived(&text).as_str(), id, "{text}");
    }
}

/// T032: the rules of an explicit app id, stricter than the old ones in that letters are ASCII.
#[test]
fn an_app_id_is_small_letters_digits_and_single_dashes() {
    for good in ["a", "billing", "billing-2", "0", &"x".repeat(32), "943b1888c56ce8f0c96b2e66e1c74a7e"] {
        assert_eq!(AppId::new(good).unwrap().as_str(), good);
    }
    let long = "x".repeat(33);
    for bad in ["", "Billing", "-a", "a-", "a--b", "a_b", "a b", "a/b", "æøå", "a\n", long.as_str()] {
        let told = AppId::new(bad).unwrap_err();
        assert_eq!(told.field, "app id", "{bad:?}");
        assert!(told.allowed.contains("1 to 32"), "{told}");
    }
}

/// T032: the rows of the Functions host.
#[test]
fn the_app_id_of_a_site_is_cut_and_made_small_and_says_when_it_was_cut() {
    let of = |name: &str| {
        let made = app::of_site(name).unwrap();
        (made.app.to_string(), made.is_cut)
    };
    assert_eq!(of("TEST-FUNCTIONS--"), ("test-functions".to_owned(), false));
    let long = format!("TEST-FUNCTIONS-{}", "X".repeat(60));
    assert_eq!(of(&long), ("test-functions-xxxxxxxxxxxxxxxxx".to_owned(), true));
    assert_eq!(of("Shop.azurewebsites.net"), ("shop".to_owned(), false));
    let dashes = format!("{}-{}", "x".repeat(31), "y".repeat(9));
    assert_eq!(of(&dashes), ("x".repeat(31), true));
    assert!(app::of_site("--").is_err());
    assert!(app::of_site("").is_err());
}

/// T034: two different programs with one app id on one store.
#[tokio::test]
async fn a_second_program_with_the_same_app_id_is_refused_with_the_names_of_both() {
    for rig in rigs() {
        a_second_program_with_the_same_app_id_is_refused_with_the_names_of_both_on(&rig).await;
    }
}

async fn a_second_program_with_the_same_app_id_is_refused_with_the_names_of_both_on(rig: &Rig) {
    let shop = rig.tenure.clone().as_app("orders", "shop").await.unwrap();
    assert_eq!(shop.app().unwrap().as_str(), "orders");
    let since = rig.clock.now();
    rig.clock.advance(DAY);
    shop.clone().as_app("orders", "shop").await.unwrap();
    let seen = rig.clock.now();
    rig.clock.advance(DAY);

    let error = rig.tenure.clone().as_app("orders", "warehouse").await.unwrap_err();
    let told = error.to_string();
    for part in ["orders", "\"shop\"", "\"warehouse\"", &since.to_string(), &seen.to_string(), "30 days"] {
        assert!(told.contains(part), "{part} is missing: {told}");
    }
    let Error::AppTaken { by, .. } = error else { panic!("{error:?}") };
    assert_eq!((by.since, by.seen), (since, seen));
    rig.tenure.clone().as_app("stock", "warehouse").await.unwrap();
}

/// T034: what nobody has used for a month may be had by another.
#[tokio::test]
async fn an_app_id_that_was_given_up_goes_to_another_program() {
    for rig in rigs() {
        an_app_id_that_was_given_up_goes_to_another_program_on(&rig).await;
    }
}

async fn an_app_id_that_was_given_up_goes_to_another_program_on(rig: &Rig) {
    rig.tenure.clone().as_app("orders", "shop").await.unwrap();
    rig.clock.advance(DAY * 30 - Duration::from_secs(1));
    assert!(rig.tenure.clone().as_app("orders", "warehouse").await.is_err());
    rig.clock.advance(Duration::from_secs(1));
    rig.tenure.clone().as_app("orders", "warehouse").await.unwrap();
    assert!(rig.tenure.clone().as_app("orders", "shop").await.is_err());
}

/// T035: what tells programs apart is their name, not their version or where they are installed.
#[tokio::test]
async fn a_new_version_keeps_its_app_id() {
    for rig in rigs() {
        a_new_version_keeps_its_app_id_on(&rig).await;
    }
}

async fn a_new_version_keeps_its_app_id_on(rig: &Rig) {
    let old = rig.tenure.clone().as_app("orders", "shop").await.unwrap();
    // Another process, of another version: another handle, another host.
    let new = Tenure::on(Arc::clone(&rig.store), Chance::seeded(9)).as_app("orders", "shop").await.unwrap();
    assert_eq!(new.app(), old.app());
    // Both live for a while, as in a rolling deployment.
    rig.clock.advance(DAY);
    old.as_app("orders", "shop").await.unwrap();
    let apps = rig.store.apps().await.unwrap();
    assert_eq!(apps.len(), 1, "{apps:?}");
}

/// T034: it is a start-up error, whoever opens the store.
#[tokio::test]
async fn opening_a_store_claims_the_app_id() {
    let opened = OpenOptions::new().untended().app("orders").program("shop").open("memory:").await.unwrap();
    let apps = opened.store().apps().await.unwrap();
    assert_eq!((apps[0].app.as_str(), apps[0].program.as_str()), ("orders", "shop"));
    for (id, program, field) in [("Or ders", "shop", "app id"), ("orders", "", "program")] {
        let refused = OpenOptions::new().app(id).program(program).open("memory:").await.unwrap_err();
        assert!(matches!(&refused, Error::Invalid(wrong) if wrong.field == field), "{refused}");
    }
}

/// T035: without a name the executable's counts, and not its folder.
#[tokio::test]
async fn a_program_that_says_no_name_has_that_of_its_executable() {
    let opened = OpenOptions::new().untended().app("orders").open("memory:").await.unwrap();
    let program = opened.store().apps().await.unwrap()[0].program.clone();
    let executable = std::env::current_exe().unwrap();
    assert_eq!(Some(program.as_str()), executable.file_name().and_then(|name| name.to_str()));
}

/// A program that runs for longer than a month does not lose its app id meanwhile.
#[tokio::test]
async fn a_program_that_runs_on_is_seen_again_and_again() {
    let clock = ManualClock::new();
    let tended = OpenOptions::new().clock(Arc::new(clock.clone())).app("orders").program("shop");
    let opened = tended.open("memory:").await.unwrap();
    let start = clock.now();
    for _ in 0..1_500 {
        crate::common::settle_down().await;
        clock.advance(Duration::from_secs(6));
    }
    let seen = opened.store().apps().await.unwrap()[0].seen;
    assert!(seen.since(start) > Duration::from_secs(3600), "{seen}");
}

/// What each service says to a program that has no app id.
async fn refusals(tenure: &Tenure) -> Vec<Error> {
    let singleton = Worker::new(tenure, ()).singleton("compactor", async |_| Ok(()));
    let writer =
        Worker::new(tenure, ()).writer(Writer::new("ledger"), async |_, _: Vec<Message<u64>>| Ok(()));
    let roster = Roster::new(tenure, "nightly", ()).role("mailer", async |_, _| Ok(()));
    let never = std::future::pending::<()>;
    vec![
        singleton.run(never()).await.unwrap_err(),
        writer.run(never()).await.unwrap_err(),
        roster.run(never()).await.unwrap_err(),
        tenure.writer("ledger").unwrap_err(),
        tenure.reservations().reserve("report", DAY).await.unwrap_err(),
    ]
}

async fn of_program(url: &str, program: &str) -> Tenure {
    OpenOptions::new().untended().program(program).open(url).await.unwrap()
}

/// T033, T034: two programs share a store, and one of them did not say who it is.
#[tokio::test]
async fn a_program_without_an_app_id_is_told_at_its_start_which_programs_are_there_and_what_to_say() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", folder.path().join("jobs.db").display());
    let shop = OpenOptions::new().untended().app("orders").program("shop").open(&url).await.unwrap();
    let _compactor = shop.reservations().reserve("report", DAY).await.unwrap().unwrap();

    let warehouse = of_program(&url, "warehouse").await;
    for error in refusals(&warehouse).await {
        let told = error.to_string();
        for part in ["\"warehouse\"", "program \"shop\" has \"orders\"", "OpenOptions::new().app("] {
            assert!(told.contains(part), "{part} is missing: {told}");
        }
        assert!(matches!(error, Error::NoApp { others, .. } if others.len() == 1));
    }
    // An instance that forgot to say it.
    for error in refusals(&of_program(&url, "shop").await).await {
        assert!(error.to_string().contains("here this program \"shop\" has \"orders\""), "{error}");
    }
    let all = LeasesAsk { prefix: String::new(), behind: None, at_most: 10 };
    assert_eq!(shop.leases().list(all).await.unwrap().leases.len(), 1, "nobody else has held anything");
}

/// T033: neither of them is the first, whose locks the other would share.
#[tokio::test]
async fn of_two_programs_without_app_ids_both_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", folder.path().join("jobs.db").display());
    let (shop, warehouse) = (of_program(&url, "shop").await, of_program(&url, "warehouse").await);
    for (tenure, program) in [(&shop, "\"shop\""), (&warehouse, "\"warehouse\"")] {
        for error in refusals(tenure).await {
            assert!(matches!(error, Error::NoApp { .. }) && error.to_string().contains(program), "{error}");
        }
    }
    // What does not name a lock for them goes on without one.
    let held = shop.leases().try_hold("month-end", DAY).await.unwrap();
    assert!(held.is_some() && warehouse.leases().try_hold("month-end", DAY).await.unwrap().is_none());
}
