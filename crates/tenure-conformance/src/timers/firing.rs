//! Firing: each slot that is ripe is decided once, by what was agreed.

use std::time::Duration;

use tenure_core::{
    CatchUp, Fate, JobId, Name, NewJob, NewTimer, Origin, Overlap, Policies, Skipped, SlotRecord, StateName,
    Timestamp, limits,
};

use super::super::given::{Given, ids, kind, minutes, seconds};
use super::super::{Test, test};
use super::{name, overlapping, timer};
use tenure_store::{Fired, TimerAct, TimerOutcome, TimerSet};

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(a_slot_that_is_ripe_brings_one_job_that_tells_of_it),
        test(nothing_is_fired_before_its_time),
        test(firing_again_brings_nothing_new),
        test(a_clock_that_is_put_back_brings_no_slot_twice),
        test(a_slot_that_is_on_record_gets_no_job_again),
        test(a_slot_that_is_on_record_does_not_count_again),
        test(of_slots_that_share_a_record_those_before_one_on_record_keep_it),
        test(no_slot_is_left_to_one_that_is_on_record_without_a_job),
        test(a_slot_whose_job_keeps_one_on_record_from_running_has_its_job),
        test(a_slot_whose_job_id_another_job_has_is_skipped_and_says_so),
        test(of_slots_whose_one_job_finds_its_id_taken_none_counts_as_run),
        test(a_job_of_the_slot_itself_does_not_take_its_id),
        test(missed_slots_are_decided_at_once_and_each_is_on_record),
        test(a_slot_is_skipped_while_the_job_before_has_not_ended),
        test(a_job_that_has_ended_makes_room_however_it_ended),
        test(jobs_of_one_timer_run_one_at_a_time_in_their_order),
        test(so_many_jobs_of_a_timer_run_at_once_as_it_allows),
        test(the_job_before_is_asked_to_stop_and_the_next_waits_for_its_end),
        test(of_many_ripe_timers_the_first_are_fired_first_in_bounded_calls),
        test(one_call_brings_a_bounded_number_of_jobs_and_the_next_goes_on),
        test(one_call_takes_a_bounded_number_of_steps_and_the_next_goes_on),
        test(one_call_makes_a_bounded_number_of_records_however_many_slots_were_busy),
    ]
}

async fn a_slot_that_is_ripe_brings_one_job_that_tells_of_it(given: Given) {
    let since = given.each_minute(Policies::default()).await;
    given.pass(seconds(61));
    let (next, ripe_in) = (Some(since.after(minutes(2))), Some(seconds(59)));
    let fired = given.fire().await;
    let job = given.all().await.remove(0);
    let slot = job.terms.slot.clone().unwrap();
    let minute = since.after(minutes(1));
    assert_eq!((slot.timer, slot.at, slot.fired), (name("a"), minute, given.now()));
    assert_eq!((slot.origin, slot.past_due), (Origin::Schedule, false));
    assert_eq!(job.id, JobId::of_slot(&name("a"), minute, Origin::Schedule));
    assert_eq!(
        (job.kind, job.queue.as_str(), job.args.as_bytes()),
        (kind("send"), "mail", b"{\"to\":7}".as_slice())
    );
    let fate = Fate::Ran { job: job.id };
    let record = SlotRecord::of_one(&name("a"), minute, Origin::Schedule, fate, given.now());
    assert_eq!(given.records().await, std::slice::from_ref(&record));
    assert_eq!(fired, Fired { timers: 1, jobs: 1, records: vec![record], ripe_in });
    let after = given.the_timer("a").await;
    assert_eq!((after.next, after.decided, after.fired), (next, Some(minute), Some(given.now())));
    assert_eq!((after.runs, after.open, after.lateness), (1, vec![job.id], Some(seconds(1))));
    given.finish_one().await;
}

async fn nothing_is_fired_before_its_time(given: Given) {
    given.each_minute(Policies::default()).await;
    let just = Duration::from_micros(1);
    given.pass(minutes(1) - just);
    assert_eq!(given.fire().await, Fired { ripe_in: Some(just), ..Fired::default() });
    assert_eq!((given.all().await.len(), given.records().await.len()), (0, 0));
}

/// T053
async fn firing_again_brings_nothing_new(given: Given) {
    given.each_minute(Policies::default()).await;
    given.pass(minutes(1));
    given.fire().await;
    given.finish_one().await;
    for _ in 0..3 {
        assert_eq!((given.fire().await.timers, given.all().await.len()), (0, 1));
    }
}

/// T055, T060
async fn a_clock_that_is_put_back_brings_no_slot_twice(given: Given) {
    let since = given.each_minute(overlapping(Overlap::QueueAll)).await;
    for minute in [1, 2, 0, 1, 2, 3, 1, 3] {
        given.clock.step_to(since.after(minutes(minute)));
        given.fire().await;
    }
    assert_eq!(given.told(since).await, [(1, 1, "ran"), (2, 2, "ran"), (3, 3, "ran")]);
    assert_eq!(given.all().await.len(), 3);
}

impl Given {
    /// Puts a job there that has the ID of the job of this minute.
    async fn take_id_of(&self, minute: Timestamp) -> JobId {
        let id = JobId::of_slot(&name("a"), minute, Origin::Schedule);
        self.put(NewJob { id, ..self.new_job("mail") }).await
    }
}

async fn a_slot_whose_job_id_another_job_has_is_skipped_and_says_so(given: Given) {
    let since = given.each_minute(overlapping(Overlap::QueueAll)).await;
    let (first, third) = (since.after(minutes(1)), since.after(minutes(3)));
    let [id, other] = [given.take_id_of(first).await, given.take_id_of(third).await];
    given.pass(minutes(1));
    let fired = given.fire().await;
    let skipped = |job| Fate::Skipped { why: Skipped::IdTaken { job } };
    let record = |at, job| SlotRecord::of_one(&name("a"), at, Origin::Schedule, skipped(job), given.now());
    assert_eq!((fired.jobs, fired.records), (0, vec![record(first, id)]));
    assert_eq!(given.records().await, [record(first, id)]);
    let there = given.the_timer("a").await;
    assert_eq!((there.runs, there.fired, there.open), (0, None, vec![]));
    assert_eq!(there.last_skip, Some((first, Skipped::IdTaken { job: id })));
    given.pass(minutes(1));
    assert_eq!(given.fire().await.jobs, 1, "the next one runs");
    // Asking for it anew does not help.
    let backfill = TimerAct::Backfill { from: first, to: first, again: false };
    let took = JobId::of_slot(&name("a"), first, Origin::Backfill);
    given.put(NewJob { id: took, ..given.new_job("mail") }).await;
    assert_eq!(given.act("a", backfill).await, TimerOutcome::Backfilled { jobs: 0, next: None });
    given.clock.step_to(third);
    assert_eq!(given.fire().await.jobs, 0);
    let told = given.told(since).await;
    assert_eq!(told, [(1, 1, "id taken"), (1, 1, "id taken"), (2, 2, "ran"), (3, 3, "id taken")]);
    assert!(given.is_there(id).await && given.is_there(other).await);
}

async fn of_slots_whose_one_job_finds_its_id_taken_none_counts_as_run(given: Given) {
    let once = Policies { catch_up: CatchUp::One, ..Policies::default() };
    let since = given.each_minute(once).await;
    let id = given.take_id_of(since.after(minutes(3))).await;
    given.pass(minutes(3));
    assert_eq!(given.fire().await.jobs, 0);
    assert_eq!(given.told(since).await, [(1, 2, "id taken"), (3, 3, "id taken")]);
    let why = Fate::Skipped { why: Skipped::IdTaken { job: id } };
    assert!(given.records().await.iter().all(|record| record.fate == why));
}

/// The record is gone, and its job is not: that job is the one of the slot.
async fn a_job_of_the_slot_itself_does_not_take_its_id(given: Given) {
    let since = given.each_minute(Policies::default()).await;
    given.pass(minutes(1));
    given.fire().await;
    assert_eq!(given.act("a", TimerAct::Remove).await, TimerOutcome::Done);
    given.store.prune_slots(given.now().after(seconds(1))).await.unwrap();
    assert_eq!(given.records().await, []);
    given.clock.step_to(since);
    given.set(timer("a", "0 * * * * *", Policies::default())).await;
    given.pass(minutes(1));
    assert_eq!(given.fire().await.jobs, 0);
    assert_eq!(given.told(since).await, [(1, 1, "ran")]);
}

/// The record outlives the job and the timer.
async fn a_slot_that_is_on_record_gets_no_job_again(given: Given) {
    let since = given.each_minute(Policies::default()).await;
    given.pass(minutes(1));
    given.fire().await;
    let backfill = || TimerAct::Backfill { from: since, to: since.after(minutes(1)), again: true };
    let brought = |jobs| TimerOutcome::Backfilled { jobs, next: None };
    assert_eq!(given.act("a", backfill()).await, brought(2));
    for _ in 0..3 {
        given.finish_one().await;
    }
    for job in given.all().await {
        given.change(job.id, tenure_store::Change::Delete).await;
    }
    let records = given.records().await;
    assert_eq!(given.act("a", backfill()).await, brought(0));
    assert_eq!(given.act("a", TimerAct::Remove).await, TimerOutcome::Done);
    given.clock.step_to(since);
    assert_eq!(given.set(timer("a", "0 * * * * *", Policies::default())).await, TimerSet::New);
    given.pass(minutes(1));
    assert_eq!(given.fire().await.jobs, 0);
    assert_eq!((given.records().await, given.all().await.len()), (records, 0));
}

/// What is not enqueued because its slot is on record counts for nothing: the slots behind it get their jobs.
async fn a_slot_that_is_on_record_does_not_count_again(given: Given) {
    let since = given.each_minute(Policies::default()).await;
    given.pass(minutes(1));
    given.fire().await;
    given.finish_one().await;
    assert_eq!(given.act("a", TimerAct::Remove).await, TimerOutcome::Done);
    given.clock.step_to(since);
    let bounds = tenure_core::schedule::Bounds { most_runs: Some(1), ..Default::default() };
    let once = timer("a", "0 * * * * *", Policies::default());
    let once = NewTimer { schedule: once.schedule.within(bounds).unwrap(), ..once };
    given.set(once).await;
    given.pass(minutes(1));
    assert_eq!(given.fire().await.jobs, 0);
    let there = given.the_timer("a").await;
    assert_eq!((there.runs, there.fired, there.open), (0, None, vec![]));
    given.pass(minutes(1));
    assert_eq!(given.fire().await.jobs, 1);
    assert_eq!(given.told(since).await, [(1, 1, "ran"), (2, 2, "ran")]);
    assert_eq!(given.the_timer("a").await.next, None, "it has brought its one");
}

/// Of slots that share a fate the last is on record from before: the others have theirs.
async fn of_slots_that_share_a_record_those_before_one_on_record_keep_it(given: Given) {
    let since = given.each_minute(Policies::default()).await;
    let every_third = format!("every 3m from {since}");
    given.set(timer("a", &every_third, Policies::default())).await;
    given.pass(minutes(3));
    given.fire().await;
    assert_eq!(given.act("a", TimerAct::Remove).await, TimerOutcome::Done);
    given.clock.step_to(since);
    given.set(timer("a", "0 * * * * *", Policies::default())).await;
    given.act("a", TimerAct::Pause { reason: String::new() }).await;
    given.pass(minutes(3));
    given.act("a", TimerAct::Resume).await;
    assert_eq!(given.told(since).await, [(1, 2, "paused"), (3, 3, "ran")]);
    assert_eq!(given.records().await[0].count, Some(2));
}

/// The latest that gets a job stands for those before it.
async fn no_slot_is_left_to_one_that_is_on_record_without_a_job(given: Given) {
    let since = given.each_minute(Policies::default()).await;
    let every_third = format!("every 3m from {since}");
    given.set(timer("a", &every_third, Policies::default())).await;
    given.act("a", TimerAct::Pause { reason: String::new() }).await;
    given.pass(minutes(3));
    given.act("a", TimerAct::Resume).await;
    let set_again = || async {
        assert_eq!(given.act("a", TimerAct::Remove).await, TimerOutcome::Done);
        given.clock.step_to(since);
        assert_eq!(given.set(timer("a", "0 * * * * *", Policies::default())).await, TimerSet::New);
        given.pass(minutes(3));
    };
    set_again().await;
    let fired = given.fire().await;
    let told = [(1, 1, "coalesced"), (2, 2, "ran"), (3, 3, "paused")];
    assert_eq!((fired.jobs, given.told(since).await), (1, told.to_vec()));
    let second = since.after(minutes(2));
    let records = given.records().await;
    assert_eq!((&records[0].fate, &fired.records[..]), (&Fate::Coalesced { into: second }, &records[..2]));
    let job = given.all().await.remove(0);
    assert_eq!(job.id, JobId::of_slot(&name("a"), second, Origin::Schedule));
    let there = given.the_timer("a").await;
    assert_eq!((there.decided, there.open), (Some(since.after(minutes(3))), vec![job.id]));
    given.finish_one().await;
    // One that has run stands for them by that.
    set_again().await;
    assert_eq!((given.fire().await.jobs, given.records().await), (0, records));
}

/// The record of before says as little of that job as of any other.
async fn a_slot_whose_job_keeps_one_on_record_from_running_has_its_job(given: Given) {
    let since = given.each_minute(Policies::default()).await;
    let every_third = format!("every 3m from {since}");
    given.set(timer("a", &every_third, Policies::default())).await;
    given.pass(minutes(3));
    assert_eq!(given.fire().await.jobs, 1);
    given.finish_one().await;
    assert_eq!(given.act("a", TimerAct::Remove).await, TimerOutcome::Done);
    given.clock.step_to(since);
    let policies = Policies { catch_up: CatchUp::All { most: 3 }, ..Policies::default() };
    given.set(timer("a", "0 * * * * *", policies)).await;
    given.pass(minutes(3));
    assert_eq!(given.fire().await.jobs, 1);
    assert_eq!(given.told(since).await, [(1, 1, "ran"), (2, 2, "busy"), (3, 3, "ran")]);
    let first = given.records().await[0].job().unwrap();
    assert_eq!(given.state(first).await, StateName::Queued);
}

/// T056
async fn missed_slots_are_decided_at_once_and_each_is_on_record(given: Given) {
    let policies = [
        (CatchUp::Skip, vec![(1, 9, "missed"), (10, 10, "ran")]),
        (CatchUp::One, vec![(1, 9, "coalesced"), (10, 10, "ran")]),
        (CatchUp::All { most: 2 }, vec![(1, 8, "too many"), (9, 9, "ran"), (10, 10, "ran")]),
    ];
    for (seed, (catch_up, expected)) in policies.into_iter().enumerate() {
        let given = given.anew(seed as u64).await;
        let since = given.each_minute(Policies { catch_up, ..overlapping(Overlap::QueueAll) }).await;
        given.pass(seconds(10 * 60 + 5));
        given.fire().await;
        assert_eq!(given.told(since).await, expected);
        let counted: Option<u64> = given.records().await.iter().map(|record| record.count).sum();
        assert_eq!(counted, Some(10));
        let jobs = expected.iter().filter(|(.., fate)| *fate == "ran").count();
        assert_eq!(given.all().await.len(), jobs);
        given.store.close().await.unwrap();
    }
}

/// T059, T064
async fn a_slot_is_skipped_while_the_job_before_has_not_ended(given: Given) {
    let since = given.each_minute(Policies::default()).await;
    given.pass(minutes(1));
    given.fire().await;
    let first = given.all().await[0].id;
    let reserved = given.take("mail").await;
    given.pass(minutes(1));
    assert_eq!(given.fire().await.jobs, 0);
    let busy = Fate::Skipped { why: Skipped::Busy { job: first } };
    assert_eq!(given.records().await[1].fate, busy);
    given.succeed(reserved).await;
    given.pass(minutes(1));
    assert_eq!(given.fire().await.jobs, 1);
    assert_eq!(given.told(since).await, [(1, 1, "ran"), (2, 2, "busy"), (3, 3, "ran")]);
}

/// T054
async fn a_job_that_has_ended_makes_room_however_it_ended(given: Given) {
    given.each_minute(Policies::default()).await;
    for end in ["succeeded", "failed", "cancelled", "removed"] {
        given.pass(minutes(1));
        assert_eq!(given.fire().await.jobs, 1, "before it {end}");
        let open = given.the_timer("a").await.open;
        assert_eq!(open.len(), 1);
        match end {
            "cancelled" => _ = given.cancel(open[0]).await,
            "removed" => _ = given.change(open[0], tenure_store::Change::Delete).await,
            "failed" => {
                let reserved = given.take("mail").await;
                given.fail(reserved).await;
            }
            _ => given.finish_one().await,
        }
    }
}

async fn jobs_of_one_timer_run_one_at_a_time_in_their_order(given: Given) {
    given.each_minute(overlapping(Overlap::QueueAll)).await;
    let mut expected = Vec::new();
    for _ in 0..3 {
        given.pass(minutes(1));
        given.fire().await;
        expected.push(*given.the_timer("a").await.open.last().unwrap());
    }
    assert_eq!(given.state(expected[1]).await, StateName::Blocked);
    for id in expected {
        let mut reserved = given.reserve("mail", 5).await;
        assert_eq!(ids(&reserved), [id]);
        given.succeed(reserved.remove(0)).await;
    }
}

async fn so_many_jobs_of_a_timer_run_at_once_as_it_allows(given: Given) {
    let since = given.each_minute(overlapping(Overlap::Allow { most: 2 })).await;
    for _ in 0..3 {
        given.pass(minutes(1));
        given.fire().await;
    }
    assert_eq!(given.told(since).await, [(1, 1, "ran"), (2, 2, "ran"), (3, 3, "busy")]);
    assert_eq!(given.reserve("mail", 5).await.len(), 2);
}

async fn the_job_before_is_asked_to_stop_and_the_next_waits_for_its_end(given: Given) {
    given.each_minute(overlapping(Overlap::CancelPrevious)).await;
    given.pass(minutes(1));
    given.fire().await;
    let running = given.take("mail").await;
    given.pass(seconds(60));
    given.renew(super::super::given::held(&running), minutes(5)).await;
    given.fire().await;
    let asked = given.job(running.job().id).await.cancel.expect("it was asked to stop");
    assert!(asked.reason.contains("timer a"), "{}", asked.reason);
    let next = *given.the_timer("a").await.open.last().unwrap();
    assert_eq!(given.state(next).await, StateName::Blocked);
    given.succeed(running).await;
    assert_eq!(ids(&given.reserve("mail", 5).await), [next]);
}

async fn of_many_ripe_timers_the_first_are_fired_first_in_bounded_calls(given: Given) {
    let timers = (1..=9).map(|n| timer(&format!("t{n}"), &format!("every {}s", 10 - n), Policies::default()));
    given.store.set_timers(timers.collect(), None).await.unwrap();
    given.pass(minutes(1));
    let mut fired = Vec::new();
    for expected in [4, 4, 1, 0] {
        assert_eq!(given.store.fire(4).await.unwrap().timers, expected);
        let known = given.records().await.into_iter().filter(|record| record.job().is_some());
        let new: Vec<Name> =
            known.map(|record| record.timer).filter(|timer| !fired.contains(timer)).collect();
        assert_eq!(new.len(), expected);
        fired.extend(new);
    }
}

/// A store is not held up for long, however much its timers have to catch up with.
async fn one_call_brings_a_bounded_number_of_jobs_and_the_next_goes_on(given: Given) {
    const EACH: usize = limits::CATCH_UP_JOBS;
    let most = u32::try_from(EACH).unwrap();
    let policies = Policies { catch_up: CatchUp::All { most }, ..overlapping(Overlap::QueueAll) };
    let timers = (0..12).map(|n| timer(&format!("t{n:02}"), "every 1s", policies));
    given.store.set_timers(timers.collect(), None).await.unwrap();
    given.pass(minutes(20));
    let first = given.fire().await;
    assert_eq!((first.timers, first.jobs), (10, limits::FIRE_JOBS));
    assert!(first.ripe_in.is_some_and(|span| span.is_zero()), "the others are ripe as before: {first:?}");
    let second = given.fire().await;
    assert_eq!((second.timers, second.jobs), (2, 2 * EACH));
    assert!(second.ripe_in.is_some_and(|span| !span.is_zero()), "{second:?}");
}

/// The next run of two of the rules is 28 years away, and each timer looks for it when it fires.
async fn one_call_takes_a_bounded_number_of_steps_and_the_next_goes_on(given: Given) {
    const TIMERS: usize = 24;
    let rare = "DTSTART:20000229T000000 RRULE:FREQ=YEARLY;BYYEARDAY=60;BYMONTHDAY=29;BYDAY=TU";
    let start: Timestamp = "2028-03-01T00:00:00Z".parse().unwrap();
    given.pass(start.since(given.now()));
    let rules = format!("* * * * * * or {rare} or {rare}");
    let timers = (0..TIMERS).map(|n| timer(&format!("t{n:02}"), &rules, Policies::default()));
    let set = given.store.set_timers(timers.collect(), None).await.unwrap();
    assert_eq!(set, vec![TimerSet::New; TIMERS]);
    given.pass(seconds(1));
    let first = given.fire().await;
    assert!(first.timers > 15 && first.timers < TIMERS, "{first:?}");
    assert!(first.ripe_in.is_some_and(|span| span.is_zero()), "the others are ripe as before: {first:?}");
    let second = given.fire().await;
    assert_eq!((first.timers + second.timers, first.jobs + second.jobs), (TIMERS, TIMERS));
    assert!(second.ripe_in.is_some_and(|span| !span.is_zero()), "{second:?}");
}

/// What was missed and met a job that had not ended shares a record.
async fn one_call_makes_a_bounded_number_of_records_however_many_slots_were_busy(given: Given) {
    let policies = Policies { catch_up: CatchUp::All { most: 1_000 }, ..Policies::default() };
    let timers = (0..20).map(|n| timer(&format!("t{n:02}"), "every 1s", policies));
    given.store.set_timers(timers.collect(), None).await.unwrap();
    given.pass(minutes(20));
    let fired = given.fire().await;
    assert_eq!((fired.timers, fired.jobs), (20, 20));
    let records = given.records().await;
    assert_eq!(records.len(), 3 * 20, "too many, one ran, the others were busy");
    let told = |records: &[SlotRecord]| {
        let mut told: Vec<_> = records.iter().map(|record| (record.timer.clone(), record.last)).collect();
        told.sort();
        told
    };
    assert_eq!(told(&fired.records), told(&records), "whoever fires is told what became of each slot");
    let slots: Option<u64> = records.iter().map(|record| record.count).sum();
    assert_eq!(slots, Some(20 * 20 * 60));
}
