//! Who has a job, who had it, and who may have it next.

use std::collections::BTreeSet;
use std::time::Duration;

use tenure::{Clock, Error, Fault, LeaseRefusal, Loss, OpenOptions, Tenure, What};
use tenure_core::limits;

use crate::common::fleet::{Fleet, fleet};
use crate::common::memory;

const SECOND: Duration = Duration::from_secs(1);
const PERIOD: Duration = Duration::from_secs(60);

/// Polls something to its end while time passes.
async fn in_time<T>(fleet: &Fleet, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    for _ in 0..5_000 {
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = fleet.pass(Duration::from_millis(100)) => {}
        }
    }
    panic!("it came to no end");
}

async fn two(fleet: &Fleet) -> (Tenure, Tenure) {
    (fleet.handle(1).await.0, fleet.handle(2).await.0)
}

/// T110: two starters on an empty store: one record, of the winner, made when it was reserved.
#[tokio::test]
async fn of_two_starters_one_has_the_job_and_is_on_record() {
    let fleet = fleet();
    let (one, other) = two(&fleet).await;
    let (one, other) = (one.reservations().named("one"), other.reservations().named("other"));
    let (first, second) = tokio::join!(one.reserve("report", PERIOD), other.reserve("report", PERIOD));
    let (first, second) = (first.unwrap(), second.unwrap());
    assert!(first.is_ok() != second.is_ok(), "{first:?} {second:?}");
    let winner = if first.is_ok() { "one" } else { "other" };
    let refusal = first.as_ref().err().or(second.as_ref().err()).unwrap();
    let LeaseRefusal::Held { by, since, until, .. } = refusal else { panic!("{refusal:?}") };
    assert_eq!((by.who.as_str(), *since), (winner, fleet.clock.now()));
    assert_eq!(until.unwrap(), fleet.clock.now().after(PERIOD));

    let record = one.reservers("report").await.unwrap();
    assert_eq!(record.len(), 1);
    assert_eq!((record[0].by.who.as_str(), record[0].from, record[0].to), (winner, fleet.clock.now(), None));
    assert_eq!((one.has("report"), other.has("report")), (winner == "one", winner == "other"));
}

/// T111: each time is on record, even of the same reserver; the last ten, the latest first.
#[tokio::test]
async fn the_last_ten_reservers_are_told_in_their_order_with_their_ends() {
    let fleet = fleet();
    let (tenure, _) = two(&fleet).await;
    let same = tenure.reservations().named("same");
    let mut began = Vec::new();
    for _ in 0..3 {
        fleet.clock.advance(SECOND);
        began.push(fleet.clock.now());
        let reservation = same.reserve("report", PERIOD).await.unwrap().unwrap();
        fleet.clock.advance(SECOND);
        in_time(&fleet, reservation.cancel()).await.unwrap();
    }
    let record = same.reservers("report").await.unwrap();
    assert_eq!(record.iter().map(|holding| holding.from).collect::<Vec<_>>(), [began[2], began[1], began[0]]);
    assert!(record.iter().all(|holding| holding.to == Some(holding.from.after(SECOND))));
    assert!(record.iter().all(|holding| holding.end == Some(What::Released)));

    for number in 0..12 {
        let who = tenure.reservations().named(&format!("number {number}"));
        let reservation = who.reserve("report", PERIOD).await.unwrap().unwrap();
        in_time(&fleet, reservation.cancel()).await.unwrap();
    }
    let record = same.reservers("report").await.unwrap();
    let names: Vec<_> = record.iter().map(|holding| holding.by.who.clone()).collect();
    let expected: Vec<_> = (2..12).rev().map(|number| format!("number {number}")).collect();
    assert_eq!(names, expected);
    assert!(record.windows(2).all(|pair| pair[0].fence > pair[1].fence));
}

/// T111: one that ended because its reserver died says so, and until when it lasted.
#[tokio::test]
async fn a_reservation_that_lapsed_is_on_record_with_its_end() {
    let fleet = fleet();
    let (one, other) = two(&fleet).await;
    let (tenure, way) = fleet.handle(3).await;
    let dead = tenure.reservations().named("dead");
    let kept = dead.reserve("report", PERIOD).await.unwrap().unwrap();
    let until = fleet.clock.now().after(PERIOD);
    way.down(true);
    fleet.pass(PERIOD + SECOND).await;
    assert!(!kept.is_held());
    let next = one.reservations().named("next");
    let reservation = next.reserve("report", PERIOD).await.unwrap().unwrap();
    let record = other.reservations().reservers("report").await.unwrap();
    let told: Vec<_> = record.iter().map(|h| (h.by.who.as_str(), h.to, h.end)).collect();
    assert_eq!(told, [("next", None, None), ("dead", Some(until), Some(What::Lapsed))]);
    drop(reservation);
}

/// T112: the record is not read to reserve.
#[tokio::test]
async fn a_ledger_that_cannot_be_read_keeps_nobody_from_reserving() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.db");
    let url = format!("sqlite://{}", path.display());
    let open = || OpenOptions::new().untended().app("fleet").program("program").open(&url);
    let tenure = open().await.unwrap();
    let reservations = tenure.reservations().named("first");
    for _ in 0..3 {
        reservations.reserve("report", PERIOD).await.unwrap().unwrap().cancel().await.unwrap();
    }
    let conn = rusqlite::Connection::open(&path).unwrap();
    // Some columns do not even let garbage in.
    let spoil = |garbage: &str| conn.execute(&format!("UPDATE ledger SET {garbage}"), []).unwrap_or(0);
    let spoilt: usize = ["who = x'ff00'", "meta = '[{'", "at = NULL", "what = 99"].map(spoil).iter().sum();
    assert!(spoilt > 0, "every column refused garbage");
    let held = reservations.reserve("report", PERIOD).await.unwrap().unwrap();
    assert!(held.is_held() && reservations.has("report"));
    assert_eq!(reservations.holder("report").await.unwrap().unwrap().lease.fence, held.fence());
    held.cancel().await.unwrap();
    assert!(reservations.holder("report").await.unwrap().is_none(), "and it is given back");
    assert!(reservations.reserve("report", PERIOD).await.unwrap().is_ok());
}

/// What stands before the name in that of its lease is nothing that its user gave.
#[tokio::test]
async fn a_name_that_is_too_long_is_refused_with_the_bytes_that_are_left_for_it() {
    let fleet = fleet();
    let reservations = two(&fleet).await.0.reservations();
    let longest = limits::LEASE_NAME_BYTES - "reservation/fleet/".len();
    let told = reservations.reserve(&"x".repeat(longest + 1), PERIOD).await.unwrap_err().to_string();
    let counted = format!("job: {} bytes; expected 1 to {longest} bytes without", longest + 1);
    assert!(told.starts_with(&counted), "{told}");
    assert!(reservations.reserve(&"x".repeat(longest), PERIOD).await.unwrap().is_ok());
}

/// T113: names that are none are refused with the limits; all others are different jobs.
#[tokio::test]
async fn names_of_jobs_are_refused_or_distinct() {
    let fleet = fleet();
    let (tenure, other) = two(&fleet).await;
    let reservations = tenure.reservations();
    for bad in ["", ".", "..", "../report", "a/../b", "a\u{0}b", "a\nb", &"x".repeat(1025), &"x".repeat(1020)]
    {
        let error = reservations.reserve(bad, PERIOD).await.unwrap_err();
        assert!(matches!(&error, Error::Invalid(wrong) if wrong.field == "job"), "{bad:?}: {error}");
        assert!(!reservations.has(bad));
    }
    let told = reservations.reserve(&"x".repeat(1020), PERIOD).await.unwrap_err().to_string();
    assert!(told.contains("1020 bytes") && told.contains("1 to 1006 bytes"), "{told}");
    let good =
        ["report", "Report", "a/b", "a.b", "a b", "æ", "ae", "é", "e\u{301}", "%2F", "a%2Fb", " report"];
    let mut held = Vec::new();
    for job in good {
        held.push(reservations.reserve(job, PERIOD).await.unwrap().unwrap());
    }
    assert!(good.iter().all(|job| reservations.has(job)));
    let leases = tenure.leases().list(tenure::LeasesAsk::default()).await.unwrap().leases;
    let names: BTreeSet<_> = leases.iter().map(|info| info.lease.name.to_string()).collect();
    assert_eq!(names.len(), good.len());
    for job in good {
        assert!(other.reservations().reserve(job, PERIOD).await.unwrap().is_err(), "{job}");
    }
    let elsewhere = other.as_app("elsewhere", "another program").await.unwrap();
    assert!(elsewhere.reservations().reserve("report", PERIOD).await.unwrap().is_ok());
}

/// T010: the periods of Azure blob leases, for a program that may still run against them.
#[tokio::test]
async fn a_compatible_reserver_takes_15_to_60_whole_seconds_only() {
    let fleet = fleet();
    let (tenure, _) = two(&fleet).await;
    let compatible = tenure.reservations().compatible();
    for period in [14 * SECOND, SECOND * 31 / 2, 61 * SECOND, Duration::from_secs(86_400)] {
        let error = compatible.reserve("report", period).await.unwrap_err();
        let Error::Invalid(wrong) = &error else { panic!("{period:?}: {error}") };
        assert!(wrong.field == "period" && wrong.allowed.contains("15 to 60 whole seconds"), "{error}");
    }
    for period in [15 * SECOND, 60 * SECOND] {
        compatible.reserve("report", period).await.unwrap().unwrap().cancel().await.unwrap();
    }
}

/// V-R2: busy, invalid, unavailable and lost are four different answers.
#[tokio::test]
async fn busy_invalid_unavailable_and_lost_are_told_apart() {
    let fleet = fleet();
    let (one, _) = two(&fleet).await;
    let (other, way) = fleet.handle(3).await;
    let (one, other) = (one.reservations(), other.reservations());
    let held = one.reserve("report", PERIOD).await.unwrap().unwrap();
    assert!(matches!(other.reserve("report", PERIOD).await, Ok(Err(LeaseRefusal::Held { .. }))));
    for period in [Duration::ZERO, SECOND / 2, Duration::from_secs(86_401), Duration::MAX] {
        let error = other.reserve("report", period).await.unwrap_err();
        let Error::Invalid(wrong) = &error else { panic!("{error}") };
        assert!(wrong.field == "period" && wrong.allowed.contains("86400"), "{error}");
    }
    way.down(true);
    let error = in_time(&fleet, other.reserve("stock", PERIOD)).await.unwrap_err();
    assert!(matches!(error, Error::Fault(Fault::Unavailable(_))), "{error}");
    way.down(false);

    let (operator, _) = fleet.handle(4).await;
    let lease = "reservation/fleet/report";
    operator.leases().break_it(lease, Some(Duration::ZERO), "a test").await.unwrap();
    fleet.pass(PERIOD / 2).await;
    assert_eq!(held.guard().unwrap_err().loss, Loss::Broken);
    assert!(!one.has("report"));
    assert!(!one.cancel("report").await.unwrap());

    let nameless = memory().tenure.reservations();
    assert!(matches!(nameless.reserve("report", PERIOD).await, Err(Error::NoApp { .. })));
}

/// B-2, T014: whether it is had is answered by the clock, even if nothing else goes on.
#[tokio::test]
async fn a_reserver_that_cannot_renew_stops_believing_in_time() {
    let fleet = fleet();
    let (tenure, way) = fleet.handle(1).await;
    let reservations = tenure.reservations();
    let _held = reservations.reserve("report", PERIOD).await.unwrap().unwrap();
    way.down(true);
    // No task runs between the two looks.
    assert!(reservations.has("report"));
    fleet.clock.advance(PERIOD);
    assert!(!reservations.has("report"));
}

/// It is renewed for as long as its handle lives, and not a moment longer.
#[tokio::test]
async fn a_reservation_lasts_as_long_as_its_handle() {
    let fleet = fleet();
    let (one, other) = two(&fleet).await;
    let (one, other) = (one.reservations().named("one"), other.reservations());
    let held = one.reserve("report", PERIOD).await.unwrap().unwrap();
    fleet.pass(PERIOD * 5).await;
    assert!(held.is_held() && one.has("report"));
    assert_eq!(other.holder("report").await.unwrap().unwrap().lease.held.unwrap().by.who, "one");
    drop(held);
    fleet.pass(SECOND).await;
    assert!(!one.has("report"));
    assert!(other.holder("report").await.unwrap().is_none());
    assert!(other.reserve("report", PERIOD).await.unwrap().is_ok());
}

/// V-R3: cancelling tells the work, waits for it, and only then is the job free.
#[tokio::test]
async fn cancelling_tells_the_work_and_frees_the_job_when_that_has_ended() {
    let fleet = fleet();
    let (one, other) = two(&fleet).await;
    let (one, other) = (one.reservations(), other.reservations());
    let held = one.reserve("report", PERIOD).await.unwrap().unwrap();
    let clock = fleet.clock.clone();
    let work = tokio::spawn(held.run(async move |pass| {
        pass.lost().await;
        clock.sleep(SECOND * 2).await;
    }));
    fleet.pass(SECOND).await;
    let cancelling = {
        let one = one.clone();
        tokio::spawn(async move { one.cancel("report").await })
    };
    fleet.pass(SECOND).await;
    assert!(!work.is_finished() && !one.has("report"));
    assert!(other.reserve("report", PERIOD).await.unwrap().is_err(), "the work still runs");
    fleet.pass(SECOND * 2).await;
    assert_eq!(work.await.unwrap().unwrap_err().loss, Loss::Released);
    assert!(cancelling.await.unwrap().unwrap());
    assert!(other.reserve("report", PERIOD).await.unwrap().is_ok());
    assert!(!one.cancel("report").await.unwrap(), "there is nothing left to cancel");
}

/// T114: work that panics frees the job.
#[tokio::test]
async fn work_that_panics_frees_the_job() {
    let fleet = fleet();
    let (one, other) = two(&fleet).await;
    let held = one.reservations().reserve("report", PERIOD).await.unwrap().unwrap();
    let work = tokio::spawn(held.run(async |_pass| panic!("the printer is on fire")));
    assert!(work.await.unwrap_err().is_panic());
    fleet.pass(SECOND).await;
    assert!(other.reservations().reserve("report", PERIOD).await.unwrap().is_ok());
}

/// T120: two reservers of one program share nothing.
#[tokio::test]
async fn two_reservers_in_one_program_do_not_know_of_each_other() {
    let fleet = fleet();
    let (tenure, _) = two(&fleet).await;
    let (one, other) = (tenure.reservations(), tenure.reservations());
    assert!(one.name().starts_with("Reserver-") && one.name() != other.name());
    let held = one.reserve("report", PERIOD).await.unwrap().unwrap();
    let LeaseRefusal::Held { by, .. } = other.reserve("report", PERIOD).await.unwrap().unwrap_err() else {
        panic!("it is held");
    };
    assert_eq!(by.who, one.name());
    assert!(!other.has("report"));
    assert!(!other.cancel("report").await.unwrap());
    assert!(one.has("report") && held.is_held());
    let own = one.reserve("report", PERIOD).await.unwrap().unwrap_err();
    assert!(matches!(own, LeaseRefusal::Held { .. }), "twice is once: {own}");
    assert!(one.has("report"));
}
