//! Setting timers: what is kept of them, what a change leaves alone, and what a start brings.

use std::sync::Arc;

use tenure_core::{Args, CatchUp, NewTimer, Origin, Overlap, Policies, limits};

use super::super::given::{Given, host, minutes, seconds};
use super::super::races::{CALLERS, all_at_once};
use super::super::{Test, race, test};
use super::{name, overlapping, timer};
use tenure_store::{Store, TimerAct, TimerEdit, TimerEdited, TimerOutcome, TimerSeen, TimerSet, TimersAsk};

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(a_timer_that_is_set_is_there_with_its_next_slot),
        test(setting_the_same_again_changes_nothing),
        test(an_edit_of_a_timer_that_is_not_as_it_was_seen_does_nothing),
        test(what_a_timer_has_fired_is_no_other_agreement),
        race(of_many_who_edit_the_same_timer_as_they_saw_it_one_does),
        race(of_many_who_make_a_timer_of_one_name_one_does),
        test(a_changed_timer_fires_by_its_new_schedule_and_loses_no_slot),
        test(a_later_version_is_not_changed_by_an_earlier_one),
        test(a_start_brings_one_job_however_many_hosts_start),
        test(a_start_that_is_asked_for_again_brings_nothing_however_late),
        test(one_call_sets_timers_until_they_have_brought_enough_and_the_next_goes_on),
        test(more_timers_than_a_call_may_set_are_refused_and_none_is_set),
        test(a_schedule_that_is_over_is_refused_but_for_a_program_that_starts),
        test(a_new_timer_calls_out_that_something_may_be_due),
        test(all_that_was_agreed_about_a_timer_is_kept),
        test(no_more_run_at_once_than_was_agreed_on_either_side_of_an_edit),
        test(jobs_of_the_past_that_run_count_on_either_side_of_an_edit),
    ]
}

async fn a_timer_that_is_set_is_there_with_its_next_slot(given: Given) {
    assert_eq!(given.store.timer(&name("a")).await, Ok(None));
    let since = given.each_minute(Policies::default()).await;
    let there = given.the_timer("a").await;
    assert_eq!(*there.agreed, timer("a", "0 * * * * *", Policies::default()));
    assert_eq!((there.version, there.created, there.changed), (1, since, since));
    assert_eq!((there.next, there.wake()), (Some(since.after(minutes(1))), Some(since.after(minutes(1)))));
    assert_eq!((there.decided, there.fired, there.runs, there.paused), (None, None, 0, None));
    assert_eq!(given.records().await, []);
}

async fn setting_the_same_again_changes_nothing(given: Given) {
    given.each_minute(Policies::default()).await;
    let before = given.the_timer("a").await;
    given.pass(seconds(7));
    assert_eq!(given.set(timer("a", "0 * * * * *", Policies::default())).await, TimerSet::Same);
    assert_eq!(given.the_timer("a").await, before);
}

async fn edited(store: &dyn Store, seen: TimerSeen, edit: TimerEdit) -> TimerEdited {
    store.edit_timer(&name("a"), seen, edit).await.unwrap()
}

fn every(schedule: &str) -> TimerEdit {
    TimerEdit::Set(Box::new(timer("a", schedule, Policies::default())))
}

async fn an_edit_of_a_timer_that_is_not_as_it_was_seen_does_nothing(given: Given) {
    let store = &*given.store;
    let never = TimerSeen::As { created: given.now(), version: 1, paused: None };
    assert_eq!(edited(store, never.clone(), every("every 1h")).await, TimerEdited::Otherwise);
    assert_eq!(edited(store, never, TimerEdit::Act(TimerAct::Remove)).await, TimerEdited::Otherwise);
    assert_eq!(given.store.timer(&name("a")).await, Ok(None), "nor is it made by that");
    assert_eq!(edited(store, TimerSeen::Absent, every("every 1h")).await, TimerEdited::Set(TimerSet::New));
    assert_eq!(edited(store, TimerSeen::Absent, every("every 2h")).await, TimerEdited::Otherwise);
    let seen = TimerSeen::of(&given.the_timer("a").await);
    let pause = || TimerEdit::Act(TimerAct::Pause { reason: "holidays".to_owned() });
    assert_eq!(edited(store, seen.clone(), pause()).await, TimerEdited::Acted(TimerOutcome::Done));
    let there = given.the_timer("a").await;
    for edit in [every("every 3h"), TimerEdit::Act(TimerAct::Resume), TimerEdit::Act(TimerAct::Remove)] {
        assert_eq!(edited(store, seen.clone(), edit).await, TimerEdited::Otherwise);
    }
    assert_eq!(given.the_timer("a").await, there);
    let seen = TimerSeen::of(&there);
    assert_eq!(edited(store, seen, every("every 3h")).await, TimerEdited::Set(TimerSet::Changed));
    assert_eq!(edited(store, TimerSeen::Never, every("every 3h")).await, TimerEdited::Set(TimerSet::Same));
    let seen = TimerSeen::of(&given.the_timer("a").await);
    let removed = edited(store, seen, TimerEdit::Act(TimerAct::Remove)).await;
    assert_eq!(removed, TimerEdited::Acted(TimerOutcome::Done));
    let nothing = edited(store, TimerSeen::Never, TimerEdit::Act(TimerAct::Resume)).await;
    assert_eq!(nothing, TimerEdited::Acted(TimerOutcome::NotFound));
}

async fn what_a_timer_has_fired_is_no_other_agreement(given: Given) {
    given.each_minute(Policies::default()).await;
    let seen = TimerSeen::of(&given.the_timer("a").await);
    given.pass(minutes(1));
    assert_eq!(given.fire().await.jobs, 1);
    let set = edited(&*given.store, seen, every("every 1h")).await;
    assert_eq!(set, TimerEdited::Set(TimerSet::Changed));
}

async fn of_many_who_edit_the_same_timer_as_they_saw_it_one_does(given: Given) {
    given.set(timer("a", "every 1h", Policies::default())).await;
    let seen = TimerSeen::of(&given.the_timer("a").await);
    let results = all_at_once(CALLERS, |caller| {
        let (store, seen) = (Arc::clone(&given.store), seen.clone());
        async move { edited(&*store, seen, every(&format!("every {}m", caller + 2))).await }
    })
    .await;
    let done = results.iter().filter(|edited| **edited == TimerEdited::Set(TimerSet::Changed)).count();
    let refused = results.iter().filter(|edited| **edited == TimerEdited::Otherwise).count();
    assert_eq!((done, refused), (1, CALLERS - 1));
    assert_eq!(given.the_timer("a").await.version, 2);
}

async fn of_many_who_make_a_timer_of_one_name_one_does(given: Given) {
    let results = all_at_once(CALLERS, |caller| {
        let store = Arc::clone(&given.store);
        async move { edited(&*store, TimerSeen::Absent, every(&format!("every {}m", caller + 2))).await }
    })
    .await;
    let new = results.iter().filter(|edited| **edited == TimerEdited::Set(TimerSet::New)).count();
    let refused = results.iter().filter(|edited| **edited == TimerEdited::Otherwise).count();
    assert_eq!((new, refused), (1, CALLERS - 1));
    assert_eq!(given.the_timer("a").await.version, 1);
}

/// T057
async fn a_changed_timer_fires_by_its_new_schedule_and_loses_no_slot(given: Given) {
    let since = given.each_minute(Policies::default()).await;
    given.pass(seconds(150));
    let hourly = timer("a", "every 1h", Policies::default());
    assert_eq!(given.set(hourly.clone()).await, TimerSet::Changed);
    assert_eq!(given.told(since).await, [(1, 1, "coalesced"), (2, 2, "ran")]);
    let there = given.the_timer("a").await;
    assert_eq!((there.version, &*there.agreed, there.created), (2, &hourly, since));
    assert!(there.next.unwrap() > given.now());
    assert_eq!(given.fire().await.timers, 0);
}

async fn a_later_version_is_not_changed_by_an_earlier_one(given: Given) {
    let (earlier, later) =
        (timer("a", "every 1h", Policies::default()), timer("a", "every 2h", Policies::default()));
    assert_eq!(given.set(NewTimer { revision: 2, ..later.clone() }).await, TimerSet::New);
    assert_eq!(given.set(earlier.clone()).await, TimerSet::Outdated { by: 2 });
    assert_eq!(given.the_timer("a").await.agreed.schedule, later.schedule);
    assert_eq!(given.set(NewTimer { revision: 3, ..earlier }).await, TimerSet::Changed);
}

async fn a_start_brings_one_job_however_many_hosts_start(given: Given) {
    let policies = Policies { run_on_start: true, ..Policies::default() };
    let start = |host| given.store.set_timers(vec![timer("a", "every 1h", policies)], Some(host));
    for (number, expected) in [(1, TimerSet::New), (2, TimerSet::Same), (3, TimerSet::Same)] {
        assert_eq!(start(host(number)).await.unwrap(), [expected]);
        given.pass(seconds(2));
    }
    assert_eq!(given.all().await.len(), 1);
    assert_eq!(given.records().await[0].origin, Origin::Start);
    given.finish_one().await;
    given.pass(minutes(5));
    start(host(4)).await.unwrap();
    assert_eq!(given.records().await.iter().filter(|record| record.origin == Origin::Start).count(), 2);
}

/// Its reply was lost, and nobody knows when the one who asks again began. By then the first job may be gone.
async fn a_start_that_is_asked_for_again_brings_nothing_however_late(given: Given) {
    for overlap in [Overlap::QueueAll, Overlap::CancelPrevious, Overlap::Skip] {
        let given = given.anew(7).await;
        let policies = Policies { run_on_start: true, ..overlapping(overlap) };
        let start = |host| given.store.set_timers(vec![timer("a", "every 1d", policies)], Some(host));
        start(host(1)).await.unwrap();
        let first = given.records().await[0].job().unwrap();
        for _ in 0..3 {
            given.pass(minutes(30));
            let (before, jobs) = (given.the_timer("a").await, given.all().await);
            assert_eq!(start(host(1)).await.unwrap(), [TimerSet::Same]);
            assert_eq!((given.the_timer("a").await, given.all().await), (before, jobs), "{overlap:?}");
            if !given.all().await.is_empty() {
                given.finish_one().await;
                given.change(first, tenure_store::Change::Delete).await;
            }
        }
        start(host(2)).await.unwrap();
        assert_eq!(given.records().await.len(), 2);
        assert_eq!(given.all().await.len(), 1);
        given.store.close().await.unwrap();
    }
}

/// A store is not held up for long, however much there is to be decided before timers change.
async fn one_call_sets_timers_until_they_have_brought_enough_and_the_next_goes_on(given: Given) {
    const EACH: u32 = 1_000;
    let policies = Policies { catch_up: CatchUp::All { most: EACH }, ..overlapping(Overlap::QueueAll) };
    let timers = |every: &str| -> Vec<NewTimer> {
        (0..12).map(|n| timer(&format!("t{n:02}"), every, policies)).collect()
    };
    given.store.set_timers(timers("every 1s"), None).await.unwrap();
    given.pass(minutes(20));
    let mut left = timers("every 2s");
    for expected in [10, 2] {
        let set = given.store.set_timers(left.clone(), None).await.unwrap();
        assert_eq!(set, vec![TimerSet::Changed; expected]);
        left.drain(..expected);
    }
    assert_eq!(given.records().await.len(), 1_000, "a page of them");
}

async fn more_timers_than_a_call_may_set_are_refused_and_none_is_set(given: Given) {
    let timers = (0..=limits::SET_TIMERS).map(|n| timer(&format!("t{n}"), "every 1h", Policies::default()));
    let mut timers: Vec<NewTimer> = timers.collect();
    let refused = given.store.set_timers(timers.clone(), None).await.unwrap_err();
    assert!(refused.to_string().contains("the maximum is 100"), "{refused}");
    assert_eq!(given.store.timers(TimersAsk::default()).await.unwrap().timers, []);
    timers.pop();
    assert_eq!(given.store.set_timers(timers, None).await.unwrap().len(), limits::SET_TIMERS);
}

/// By the store's clock, which whoever sets it need not have.
async fn a_schedule_that_is_over_is_refused_but_for_a_program_that_starts(given: Given) {
    let now = given.now();
    let over = timer("a", &format!("at {}", now.before(minutes(5))), Policies::default());
    assert_eq!(given.set(over.clone()).await, TimerSet::Over { now });
    assert_eq!(given.store.timer(&name("a")).await, Ok(None));
    let hourly = timer("a", "every 1h", Policies::default());
    given.set(hourly.clone()).await;
    assert_eq!(given.set(over.clone()).await, TimerSet::Over { now });
    assert_eq!(*given.the_timer("a").await.agreed, hourly);
    let set = given.store.set_timers(vec![over.clone()], Some(host(1))).await.unwrap();
    assert_eq!((set, given.the_timer("a").await.next), (vec![TimerSet::Changed], None));
    assert_eq!(
        given.set(over).await,
        TimerSet::Same,
        "whoever sets the same again need not know that it is over"
    );
}

async fn a_new_timer_calls_out_that_something_may_be_due(given: Given) {
    let mut due = given.store.due();
    due.mark_unchanged();
    given.each_minute(Policies::default()).await;
    assert!(due.has_changed().unwrap());
}

async fn all_that_was_agreed_about_a_timer_is_kept(given: Given) {
    let mut rich = timer("a", "30 9 * * MON-FRI in Europe/Berlin", Policies::default());
    rich.policies = Policies {
        catch_up: CatchUp::All { most: 7 },
        max_lateness: Some(minutes(10)),
        overlap: Overlap::Allow { most: 3 },
        on_edit: tenure_core::OnEdit::Drop,
        run_on_start: true,
    };
    rich.revision = u64::try_from(i64::MAX).unwrap();
    rich.job.args = Args::new("{\"ø\":\"'x' %\"}".as_bytes()).unwrap();
    rich.job.priority = super::super::given::priority(-3);
    let tags = vec![name("nightly"), name("mail")];
    rich.job.terms = Arc::new(tenure_core::Terms { tags, timeout: Some(minutes(3)), ..Default::default() });
    given.set(rich.clone()).await;
    assert_eq!(*given.the_timer("a").await.agreed, rich);
    assert_eq!(given.store.timers(TimersAsk::default()).await.unwrap().timers[0].agreed.job, rich.job);
}

async fn no_more_run_at_once_than_was_agreed_on_either_side_of_an_edit(given: Given) {
    for (seed, (before, after, most)) in [
        (Overlap::Allow { most: 2 }, Overlap::QueueAll, 1),
        (Overlap::QueueAll, Overlap::Allow { most: 2 }, 2),
    ]
    .into_iter()
    .enumerate()
    {
        let given = given.anew(seed as u64).await;
        given.each_minute(overlapping(before)).await;
        given.pass(minutes(1));
        given.fire().await;
        let running = given.take("mail").await;
        assert_eq!(given.set(timer("a", "0 * * * * *", overlapping(after))).await, TimerSet::Changed);
        given.renew(super::super::given::held(&running), minutes(5)).await;
        given.pass(minutes(1));
        assert_eq!(given.fire().await.jobs, 1);
        assert_eq!(given.reserve("mail", 5).await.len(), most - 1, "beside the one that runs");
        given.store.close().await.unwrap();
    }
}

async fn jobs_of_the_past_that_run_count_on_either_side_of_an_edit(given: Given) {
    for (seed, (before, after, left)) in [
        (Overlap::Allow { most: 2 }, Overlap::QueueAll, [0, 0, 1]),
        // Jobs of the past that were brought before it are in a line: none runs beside another of them.
        (Overlap::QueueAll, Overlap::Allow { most: 2 }, [1, 1, 0]),
    ]
    .into_iter()
    .enumerate()
    {
        let given = given.anew(seed as u64).await;
        let since = given.each_minute(overlapping(before)).await;
        let act = TimerAct::Backfill { from: since.before(minutes(5)), to: since, again: false };
        given.act("a", act).await;
        let mut running = given.reserve("mail", 9).await;
        assert_eq!(given.set(timer("a", "0 * * * * *", overlapping(after))).await, TimerSet::Changed);
        for held in &running {
            given.renew(super::super::given::held(held), minutes(5)).await;
        }
        given.pass(minutes(1));
        assert_eq!(given.fire().await.jobs, 1);
        for expected in left {
            let more = given.reserve("mail", 9).await;
            assert_eq!(more.len(), expected, "{before:?} -> {after:?}, {} run", running.len());
            running.extend(more);
            given.succeed(running.remove(0)).await;
        }
        given.store.close().await.unwrap();
    }
}
