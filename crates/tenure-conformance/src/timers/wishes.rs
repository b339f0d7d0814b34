//! What people want of timers: that they pause, go on or end, and jobs beside the schedule.

use tenure_core::{Args, Origin, Overlap, Policies};

use super::super::given::{Given, ids, minutes, seconds};
use super::super::{Test, test};
use super::{name, overlapping, timer};
use tenure_store::{Change, ChangeOutcome, Fired, TimerAct, TimerOutcome, TimerSet};

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(a_paused_timer_brings_nothing_until_it_goes_on),
        test(a_trigger_brings_one_job_however_often_it_is_repeated),
        test(a_trigger_under_the_id_of_another_job_is_refused),
        test(of_triggers_at_one_instant_each_has_its_record),
        test(a_trigger_is_refused_while_a_job_runs),
        test(slots_of_the_past_are_brought_once),
        test(slots_that_have_had_a_job_by_schedule_are_left_out_unless_they_are_asked_for_again),
        test(slots_are_neither_skipped_nor_late_because_a_backfill_runs),
        test(a_job_that_is_done_again_runs_beside_no_slot),
        test(a_removed_timer_is_gone_and_its_records_stay),
        test(what_a_removed_timer_leaves_is_on_record_as_skipped),
        test(what_is_wanted_of_no_timer_is_answered_so),
    ]
}

async fn a_paused_timer_brings_nothing_until_it_goes_on(given: Given) {
    let since = given.each_minute(Policies::default()).await;
    let reason = "the mail server moves ø 'x' %".to_owned();
    assert_eq!(given.act("a", TimerAct::Pause { reason: reason.clone() }).await, TimerOutcome::Done);
    let pause = given.the_timer("a").await.paused.unwrap();
    assert_eq!((pause.since, pause.reason), (given.now(), reason));
    given.pass(seconds(150));
    assert_eq!(given.fire().await, Fired::default());
    assert_eq!(given.act("a", TimerAct::Resume).await, TimerOutcome::Done);
    assert_eq!(given.fire().await.ripe_in, Some(seconds(30)));
    given.pass(minutes(1));
    given.fire().await;
    assert_eq!(given.told(since).await, [(1, 2, "paused"), (3, 3, "ran")]);
}

async fn a_trigger_brings_one_job_however_often_it_is_repeated(given: Given) {
    given.each_minute(Policies::default()).await;
    let (id, args) = (given.id(), Args::new(*b"[8]").unwrap());
    for _ in 0..3 {
        let act = TimerAct::Trigger { id, args: Some(args.clone()), owner: None };
        assert_eq!(given.act("a", act).await, TimerOutcome::Triggered(id));
    }
    let job = given.all().await.remove(0);
    assert_eq!((job.id, &job.args, given.all().await.len()), (id, &args, 1));
    assert_eq!(job.terms.slot.as_ref().unwrap().origin, Origin::Trigger);
    assert_eq!(given.records().await.len(), 1);
    assert_eq!(given.the_timer("a").await.runs, 0);
}

async fn a_trigger_under_the_id_of_another_job_is_refused(given: Given) {
    given.each_minute(overlapping(Overlap::QueueAll)).await;
    given.set(timer("b", "every 1h", Policies::default())).await;
    let foreign = given.enqueue("reports", 1).await[0];
    given.pass(minutes(1));
    given.fire().await;
    let by_schedule = given.records().await[0].job().unwrap();
    let of_another = given.id();
    given.act("b", TimerAct::Trigger { id: of_another, args: None, owner: None }).await;
    let before = (given.the_timer("a").await, given.all().await.len(), given.records().await.len());
    for id in [foreign, by_schedule, of_another] {
        let act = TimerAct::Trigger { id, args: None, owner: None };
        assert_eq!(given.act("a", act).await, TimerOutcome::IdTaken(id));
    }
    let after = (given.the_timer("a").await, given.all().await.len(), given.records().await.len());
    assert_eq!(after, before, "nothing was brought");
}

async fn of_triggers_at_one_instant_each_has_its_record(given: Given) {
    given.each_minute(overlapping(Overlap::QueueAll)).await;
    given.pass(minutes(1));
    given.fire().await;
    let wanted = [given.id(), given.id(), given.id()];
    for id in wanted {
        given.act("a", TimerAct::Trigger { id, args: None, owner: None }).await;
    }
    let records = given.records().await;
    let brought: Vec<_> = records.iter().filter(|record| record.origin == Origin::Trigger).collect();
    assert_eq!(brought.iter().filter_map(|record| record.job()).collect::<Vec<_>>(), wanted);
    assert!(brought.iter().all(|record| record.at == given.now()));
}

/// T075
async fn a_trigger_is_refused_while_a_job_runs(given: Given) {
    given.each_minute(Policies::default()).await;
    given.pass(minutes(1));
    given.fire().await;
    let running = given.all().await[0].id;
    let before = given.the_timer("a").await;
    let act = TimerAct::Trigger { id: given.id(), args: None, owner: None };
    assert_eq!(given.act("a", act).await, TimerOutcome::Busy(running));
    assert_eq!((given.the_timer("a").await, given.all().await.len()), (before, 1));
}

async fn slots_of_the_past_are_brought_once(given: Given) {
    let since = given.each_minute(Policies::default()).await;
    let act =
        || TimerAct::Backfill { from: since.before(minutes(4)), to: since.after(minutes(9)), again: false };
    let brought = |jobs| TimerOutcome::Backfilled { jobs, next: None };
    assert_eq!(given.act("a", act()).await, brought(5), "until now and no further");
    assert_eq!(given.act("a", act()).await, brought(0));
    let records = given.records().await;
    assert!(records.iter().all(|record| record.origin == Origin::Backfill && record.at == given.now()));
    assert_eq!((records.len(), records[0].first), (5, since.before(minutes(4))));
    let mut reserved = given.reserve("mail", 9).await;
    assert_eq!(ids(&reserved), [records[0].job().unwrap()], "one at a time, the oldest first");
    given.succeed(reserved.remove(0)).await;
}

/// What is wanted most is to fill the gaps.
async fn slots_that_have_had_a_job_by_schedule_are_left_out_unless_they_are_asked_for_again(given: Given) {
    let since = given.each_minute(Policies::default()).await;
    for _ in 1..=3 {
        given.pass(minutes(1));
        given.fire().await;
        if given.now() != since.after(minutes(1)) {
            given.finish_one().await;
        }
    }
    assert_eq!(given.told(since).await, [(1, 1, "ran"), (2, 2, "busy"), (3, 3, "ran")]);
    let act = |again| TimerAct::Backfill { from: since.after(minutes(1)), to: given.now(), again };
    let brought = |jobs| TimerOutcome::Backfilled { jobs, next: None };
    assert_eq!(given.act("a", act(false)).await, brought(1));
    let filled = given.records().await.into_iter().find(|record| record.origin == Origin::Backfill).unwrap();
    assert_eq!((filled.first, filled.last), (since.after(minutes(2)), since.after(minutes(2))));
    assert_eq!(given.act("a", act(false)).await, brought(0));
    assert_eq!(given.act("a", act(true)).await, brought(2));
    assert_eq!(given.act("a", act(true)).await, brought(0));
}

/// Each job takes a third of the time between two slots.
async fn slots_are_neither_skipped_nor_late_because_a_backfill_runs(given: Given) {
    let overlaps = [Overlap::Skip, Overlap::QueueOne, Overlap::CancelPrevious, Overlap::Allow { most: 1 }];
    for (seed, overlap) in overlaps.into_iter().enumerate() {
        let given = given.anew(seed as u64).await;
        let since = given.each_minute(overlapping(overlap)).await;
        let act = TimerAct::Backfill { from: since.before(minutes(30)), to: since, again: false };
        assert_eq!(given.act("a", act).await, TimerOutcome::Backfilled { jobs: 31, next: None });
        let mut origins = Vec::new();
        for _ in 0..12 {
            given.fire().await;
            let mut reserved = given.reserve("mail", 9).await;
            assert_eq!(reserved.len(), 1, "one at a time: {overlap:?}");
            origins.extend(reserved[0].job().terms.slot.as_ref().map(|slot| slot.origin));
            given.pass(seconds(20));
            given.succeed(reserved.remove(0)).await;
        }
        let (slot, past) = (Origin::Schedule, Origin::Backfill);
        let minute = |first| [first, past, past];
        let expected = [minute(past), minute(slot), minute(slot), minute(slot)].concat();
        assert_eq!(origins, expected, "{overlap:?}");
        let told = given.told(since).await;
        assert_eq!(told[told.len() - 3..], [(1, 1, "ran"), (2, 2, "ran"), (3, 3, "ran")]);
        given.store.close().await.unwrap();
    }
}

/// Whether the slot is decided before it is done again or after.
async fn a_job_that_is_done_again_runs_beside_no_slot(given: Given) {
    let since = given.each_minute(Policies::default()).await;
    let fire = async || {
        given.pass(minutes(1));
        given.fire().await;
    };
    fire().await;
    let first = given.all().await[0].id;
    given.finish_one().await;
    fire().await;
    assert_eq!(given.change(first, Change::Redo).await, ChangeOutcome::Done);
    let mut running = given.reserve("mail", 9).await;
    assert_eq!(running.len(), 1);
    given.succeed(running.remove(0)).await;
    given.finish_one().await;
    fire().await;
    given.finish_one().await;
    let third = given.records().await[2].job().unwrap();
    assert_eq!(given.change(third, Change::Redo).await, ChangeOutcome::Done);
    fire().await;
    assert_eq!(ids(&given.reserve("mail", 9).await), [third]);
    assert_eq!(given.told(since).await, [(1, 1, "ran"), (2, 2, "ran"), (3, 3, "ran"), (4, 4, "busy")]);
}

async fn a_removed_timer_is_gone_and_its_records_stay(given: Given) {
    given.each_minute(Policies::default()).await;
    given.pass(minutes(1));
    given.fire().await;
    assert_eq!(given.act("a", TimerAct::Remove).await, TimerOutcome::Done);
    given.pass(minutes(5));
    assert_eq!(given.fire().await, Fired::default());
    assert_eq!(given.store.timer(&name("a")).await, Ok(None));
    assert_eq!((given.records().await.len(), given.all().await.len()), (1, 1));
    assert_eq!(given.set(timer("a", "0 * * * * *", Policies::default())).await, TimerSet::New);
}

async fn what_a_removed_timer_leaves_is_on_record_as_skipped(given: Given) {
    let since = given.each_minute(Policies::default()).await;
    given.pass(minutes(1));
    given.fire().await;
    given.pass(seconds(150));
    assert_eq!(given.act("a", TimerAct::Remove).await, TimerOutcome::Done);
    assert_eq!(given.told(since).await, [(1, 1, "ran"), (2, 3, "edited")]);
    assert_eq!(given.records().await[1].count, Some(2));
    assert_eq!(given.all().await.len(), 1);
    // One that is paused says so.
    given.set(timer("b", "0 * * * * *", Policies::default())).await;
    given.act("b", TimerAct::Pause { reason: String::new() }).await;
    given.pass(minutes(2));
    assert_eq!(given.act("b", TimerAct::Remove).await, TimerOutcome::Done);
    assert_eq!(given.told(since).await[2], (4, 5, "paused"));
}

async fn what_is_wanted_of_no_timer_is_answered_so(given: Given) {
    let now = given.now();
    let acts = [
        TimerAct::Pause { reason: String::new() },
        TimerAct::Resume,
        TimerAct::Trigger { id: given.id(), args: None, owner: None },
        TimerAct::Backfill { from: now, to: now, again: false },
        TimerAct::Remove,
    ];
    for act in acts {
        assert_eq!(given.act("nobody", act).await, TimerOutcome::NotFound);
    }
}
