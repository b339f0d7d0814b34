//! What timers promise: each slot has one record and at most one job, whoever fires it, and however often.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{
    Args, CatchUp, Fate, JobId, Name, NewTimer, Origin, Overlap, Policies, Priority, QueueName, Skipped,
    SlotRecord, StateName, Timer, TimerJob, Timestamp, limits,
};

use super::given::{Given, ids, kind, minutes, seconds};
use super::{Test, test};
use crate::{
    Fired, Order, Pruned, SlotCursor, SlotPage, SlotsAsk, TimerAct, TimerOutcome, TimerPage, TimerSet,
    TimersAsk,
};

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(a_timer_that_is_set_is_there_with_its_next_slot),
        test(a_slot_that_is_ripe_brings_one_job_that_tells_of_it),
        test(nothing_is_fired_before_its_time),
        test(firing_again_brings_nothing_new),
        test(a_clock_that_is_put_back_brings_no_slot_twice),
        test(a_slot_that_is_on_record_gets_no_job_again),
        test(missed_slots_are_decided_at_once_and_each_is_on_record),
        test(a_slot_is_skipped_while_the_job_before_has_not_ended),
        test(a_job_that_has_ended_makes_room_however_it_ended),
        test(jobs_of_one_timer_run_one_at_a_time_in_their_order),
        test(so_many_jobs_of_a_timer_run_at_once_as_it_allows),
        test(the_job_before_is_asked_to_stop_and_the_next_waits_for_its_end),
        test(setting_the_same_again_changes_nothing),
        test(a_changed_timer_fires_by_its_new_schedule_and_loses_no_slot),
        test(a_later_version_is_not_changed_by_an_earlier_one),
        test(a_start_brings_one_job_however_many_hosts_start),
        test(a_paused_timer_brings_nothing_until_it_goes_on),
        test(a_trigger_brings_one_job_however_often_it_is_repeated),
        test(of_triggers_at_one_instant_each_has_its_record),
        test(a_trigger_is_refused_while_a_job_runs),
        test(slots_of_the_past_are_brought_once),
        test(a_removed_timer_is_gone_and_its_records_stay),
        test(what_is_wanted_of_no_timer_is_answered_so),
        test(of_many_ripe_timers_the_first_are_fired_first_in_bounded_calls),
        test(timers_are_listed_by_name_page_by_page),
        test(records_are_listed_by_slot_page_by_page),
        test(old_records_are_removed_in_bounded_steps),
        test(a_new_timer_calls_out_that_something_may_be_due),
        test(all_that_was_agreed_about_a_timer_is_kept),
        test(one_call_brings_a_bounded_number_of_jobs_and_the_next_goes_on),
        test(what_a_removed_timer_leaves_is_on_record_as_skipped),
        test(a_record_of_a_slot_long_past_is_kept_for_as_long_as_others),
    ]
}

pub(super) fn name(text: &str) -> Name {
    Name::new("timer", text).unwrap()
}

/// A timer whose jobs are ordinary ones of queue `mail`.
pub(super) fn timer(text: &str, schedule: &str, policies: Policies) -> NewTimer {
    NewTimer {
        name: name(text),
        schedule: schedule.parse().unwrap(),
        job: TimerJob {
            kind: kind("send"),
            queue: QueueName::new("mail").unwrap(),
            args: Args::new(*b"{\"to\":7}").unwrap(),
            priority: Priority::default(),
            terms: Arc::default(),
        },
        policies,
        revision: 0,
    }
}

fn overlapping(overlap: Overlap) -> Policies {
    Policies { overlap, ..Policies::default() }
}

impl Given {
    pub(super) async fn set(&self, timer: NewTimer) -> TimerSet {
        self.store.set_timers(vec![timer], false).await.unwrap()[0]
    }

    /// Sets a timer that fires at each full minute, on a clock that stands at one.
    async fn each_minute(&self, policies: Policies) -> Timestamp {
        let into = self.now().as_micros().rem_euclid(60_000_000);
        self.pass(minutes(1) - Duration::from_micros(into.unsigned_abs()));
        assert_eq!(self.set(timer("a", "0 * * * * *", policies)).await, TimerSet::New);
        self.now()
    }

    pub(super) async fn fire(&self) -> Fired {
        self.store.fire(limits::FIRE_TIMERS).await.unwrap()
    }

    async fn the_timer(&self, text: &str) -> Timer {
        self.store.timer(&name(text)).await.unwrap().expect("the timer is there")
    }

    async fn act(&self, text: &str, act: TimerAct) -> TimerOutcome {
        self.store.change_timer(&name(text), act).await.unwrap()
    }

    /// Every record, the oldest slot first.
    pub(super) async fn records(&self) -> Vec<SlotRecord> {
        let ask = SlotsAsk { order: Order::OldestFirst, at_most: 1_000, ..SlotsAsk::default() };
        self.store.slots(ask).await.unwrap().slots
    }

    /// The minutes after an instant of which there are records, and what became of each.
    async fn told(&self, since: Timestamp) -> Vec<(u64, u64, &'static str)> {
        let minute = |slot: Timestamp| slot.since(since).as_secs() / 60;
        let told = |record: &SlotRecord| (minute(record.first), minute(record.last), word(&record.fate));
        self.records().await.iter().map(told).collect()
    }

    async fn finish_one(&self) {
        let reserved = self.take("mail").await;
        self.succeed(reserved).await;
    }
}

fn word(fate: &Fate) -> &'static str {
    match fate {
        Fate::Ran { .. } => "ran",
        Fate::Coalesced => "coalesced",
        Fate::Skipped { why: Skipped::Busy { .. } } => "busy",
        Fate::Skipped { why: Skipped::Missed } => "missed",
        Fate::Skipped { why: Skipped::TooMany } => "too many",
        Fate::Skipped { why: Skipped::TooLate } => "too late",
        Fate::Skipped { why: Skipped::Paused } => "paused",
        Fate::Skipped { why: Skipped::Edited } => "edited",
    }
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

async fn a_slot_that_is_ripe_brings_one_job_that_tells_of_it(given: Given) {
    let since = given.each_minute(Policies::default()).await;
    given.pass(seconds(61));
    let next = Some(since.after(minutes(2)));
    assert_eq!(given.fire().await, Fired { timers: 1, jobs: 1, next });
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
    assert_eq!(given.records().await, [record]);
    let after = given.the_timer("a").await;
    assert_eq!((after.next, after.decided, after.fired), (next, Some(minute), Some(given.now())));
    assert_eq!((after.runs, after.open), (1, vec![job.id]));
    given.finish_one().await;
}

async fn nothing_is_fired_before_its_time(given: Given) {
    let since = given.each_minute(Policies::default()).await;
    given.pass(minutes(1) - Duration::from_micros(1));
    assert_eq!(given.fire().await, Fired { timers: 0, jobs: 0, next: Some(since.after(minutes(1))) });
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

/// The record outlives the job and the timer.
async fn a_slot_that_is_on_record_gets_no_job_again(given: Given) {
    let since = given.each_minute(Policies::default()).await;
    given.pass(minutes(1));
    given.fire().await;
    let backfill = || TimerAct::Backfill { from: since, to: since.after(minutes(1)) };
    let brought = |jobs| TimerOutcome::Backfilled { jobs, next: None };
    assert_eq!(given.act("a", backfill()).await, brought(2));
    for _ in 0..3 {
        given.finish_one().await;
    }
    for job in given.all().await {
        given.change(job.id, crate::Change::Delete).await;
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
            "removed" => _ = given.change(open[0], crate::Change::Delete).await,
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
    given.renew(super::given::held(&running), minutes(5)).await;
    given.fire().await;
    let asked = given.job(running.job().id).await.cancel.expect("it was asked to stop");
    assert!(asked.reason.contains("timer a"), "{}", asked.reason);
    let next = *given.the_timer("a").await.open.last().unwrap();
    assert_eq!(given.state(next).await, StateName::Blocked);
    given.succeed(running).await;
    assert_eq!(ids(&given.reserve("mail", 5).await), [next]);
}

async fn setting_the_same_again_changes_nothing(given: Given) {
    given.each_minute(Policies::default()).await;
    let before = given.the_timer("a").await;
    given.pass(seconds(7));
    assert_eq!(given.set(timer("a", "0 * * * * *", Policies::default())).await, TimerSet::Same);
    assert_eq!(given.the_timer("a").await, before);
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
    let start = || given.store.set_timers(vec![timer("a", "every 1h", policies)], true);
    for expected in [TimerSet::New, TimerSet::Same, TimerSet::Same] {
        assert_eq!(start().await.unwrap(), [expected]);
        given.pass(seconds(2));
    }
    assert_eq!(given.all().await.len(), 1);
    assert_eq!(given.records().await[0].origin, Origin::Start);
    given.finish_one().await;
    given.pass(minutes(5));
    start().await.unwrap();
    assert_eq!(given.records().await.iter().filter(|record| record.origin == Origin::Start).count(), 2);
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
    assert_eq!(given.fire().await.next, Some(since.after(minutes(3))));
    given.pass(minutes(1));
    given.fire().await;
    assert_eq!(given.told(since).await, [(1, 2, "paused"), (3, 3, "ran")]);
}

async fn a_trigger_brings_one_job_however_often_it_is_repeated(given: Given) {
    given.each_minute(Policies::default()).await;
    let (id, args) = (given.id(), Args::new(*b"[8]").unwrap());
    for _ in 0..3 {
        let act = TimerAct::Trigger { id, args: Some(args.clone()) };
        assert_eq!(given.act("a", act).await, TimerOutcome::Triggered(id));
    }
    let job = given.all().await.remove(0);
    assert_eq!((job.id, &job.args, given.all().await.len()), (id, &args, 1));
    assert_eq!(job.terms.slot.as_ref().unwrap().origin, Origin::Trigger);
    assert_eq!(given.records().await.len(), 1);
    assert_eq!(given.the_timer("a").await.runs, 0);
}

async fn of_triggers_at_one_instant_each_has_its_record(given: Given) {
    given.each_minute(overlapping(Overlap::QueueAll)).await;
    given.pass(minutes(1));
    given.fire().await;
    let wanted = [given.id(), given.id(), given.id()];
    for id in wanted {
        given.act("a", TimerAct::Trigger { id, args: None }).await;
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
    let act = TimerAct::Trigger { id: given.id(), args: None };
    assert_eq!(given.act("a", act).await, TimerOutcome::Busy(running));
    assert_eq!((given.the_timer("a").await, given.all().await.len()), (before, 1));
}

async fn slots_of_the_past_are_brought_once(given: Given) {
    let since = given.each_minute(Policies::default()).await;
    let act = || TimerAct::Backfill { from: since.before(minutes(4)), to: since.after(minutes(9)) };
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

async fn what_is_wanted_of_no_timer_is_answered_so(given: Given) {
    let now = given.now();
    let acts = [
        TimerAct::Pause { reason: String::new() },
        TimerAct::Resume,
        TimerAct::Trigger { id: given.id(), args: None },
        TimerAct::Backfill { from: now, to: now },
        TimerAct::Remove,
    ];
    for act in acts {
        assert_eq!(given.act("nobody", act).await, TimerOutcome::NotFound);
    }
}

async fn of_many_ripe_timers_the_first_are_fired_first_in_bounded_calls(given: Given) {
    let timers = (1..=9).map(|n| timer(&format!("t{n}"), &format!("every {}s", 10 - n), Policies::default()));
    given.store.set_timers(timers.collect(), false).await.unwrap();
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

async fn timers_are_listed_by_name_page_by_page(given: Given) {
    let names = ["b", "a.2", "a.1", "a-9", "c"];
    let timers = names.iter().map(|text| timer(text, "every 1h", Policies::default())).collect();
    given.store.set_timers(timers, false).await.unwrap();
    let page = async |prefix: &str, behind: Option<&str>, at_most| {
        let ask = TimersAsk { prefix: prefix.to_owned(), behind: behind.map(name), at_most };
        let TimerPage { timers, next } = given.store.timers(ask).await.unwrap();
        let names: Vec<String> = timers.iter().map(|timer| timer.name().to_string()).collect();
        (names.join(" "), next.map(|next| next.to_string()))
    };
    assert_eq!(page("", None, 100).await, ("a-9 a.1 a.2 b c".to_owned(), None));
    assert_eq!(page("a.", None, 1).await, ("a.1".to_owned(), Some("a.1".to_owned())));
    assert_eq!(page("a.", Some("a.1"), 1).await, ("a.2".to_owned(), None));
    assert_eq!(page("", Some("a.2"), 2).await, ("b c".to_owned(), None));
    assert_eq!(page("x", None, 2).await, (String::new(), None));
}

async fn records_are_listed_by_slot_page_by_page(given: Given) {
    let policies = Policies { catch_up: CatchUp::All { most: 9 }, ..overlapping(Overlap::QueueAll) };
    let since = given.each_minute(policies).await;
    given.set(timer("b", "30 * * * * *", policies)).await;
    given.pass(minutes(3));
    given.fire().await;
    let second = |record: &SlotRecord| record.last.since(since).as_secs();
    let listed = async |ask: SlotsAsk| {
        let (mut all, mut behind) = (Vec::new(), None);
        loop {
            let ask = SlotsAsk { at_most: 2, behind, ..ask.clone() };
            let SlotPage { slots, next } = given.store.slots(ask).await.unwrap();
            assert!(slots.len() <= 2);
            assert_eq!(next.is_some() && !slots.is_empty(), next.is_some(), "no page is empty and goes on");
            all.extend(slots.iter().map(second));
            behind = next;
            if behind.is_none() {
                return all;
            }
        }
    };
    let ask = SlotsAsk { order: Order::OldestFirst, ..SlotsAsk::default() };
    assert_eq!(listed(ask.clone()).await, [30, 60, 90, 120, 150, 180]);
    assert_eq!(listed(SlotsAsk::default()).await, [180, 150, 120, 90, 60, 30]);
    let of_b = SlotsAsk { timer: Some(name("b")), ..ask.clone() };
    assert_eq!(listed(of_b).await, [30, 90, 150]);
    let (from, before) = (Some(since.after(minutes(1))), Some(since.after(minutes(2))));
    assert_eq!(listed(SlotsAsk { from, before, ..ask.clone() }).await, [60, 90]);
    let of_a = SlotsAsk { timer: Some(name("a")), from, before, ..SlotsAsk::default() };
    assert_eq!(listed(of_a).await, [60]);
    let third = given.records().await.get(2).map(SlotCursor::of);
    let behind = given.store.slots(SlotsAsk { behind: third, ..ask }).await.unwrap();
    assert_eq!(behind.slots.iter().map(second).collect::<Vec<_>>(), [120, 150, 180]);
}

async fn old_records_are_removed_in_bounded_steps(given: Given) {
    let policies = Policies { catch_up: CatchUp::All { most: 9 }, ..overlapping(Overlap::QueueAll) };
    let since = given.each_minute(policies).await;
    for _ in 0..9 {
        given.pass(minutes(1));
        given.fire().await;
    }
    let pruned = given.store.prune_slots(since.after(minutes(4))).await.unwrap();
    assert_eq!(pruned, Pruned { removed: 3, more: false });
    assert_eq!(given.told(since).await.first(), Some(&(4, 4, "ran")));
    assert_eq!(given.store.prune_slots(since).await.unwrap(), Pruned::default());
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
    rich.job.priority = super::given::priority(-3);
    let tags = vec![name("nightly"), name("mail")];
    rich.job.terms = Arc::new(tenure_core::Terms { tags, timeout: Some(minutes(3)), ..Default::default() });
    given.set(rich.clone()).await;
    assert_eq!(*given.the_timer("a").await.agreed, rich);
    assert_eq!(given.store.timers(TimersAsk::default()).await.unwrap().timers[0].agreed.job, rich.job);
}

/// A store is not held up for long, however much its timers have to catch up with.
async fn one_call_brings_a_bounded_number_of_jobs_and_the_next_goes_on(given: Given) {
    const EACH: usize = limits::CATCH_UP_JOBS;
    let most = u32::try_from(EACH).unwrap();
    let policies = Policies { catch_up: CatchUp::All { most }, ..overlapping(Overlap::QueueAll) };
    let timers = (0..12).map(|n| timer(&format!("t{n:02}"), "every 1s", policies));
    given.store.set_timers(timers.collect(), false).await.unwrap();
    given.pass(minutes(20));
    let first = given.fire().await;
    assert_eq!((first.timers, first.jobs), (10, limits::FIRE_JOBS));
    assert!(first.next.is_some_and(|next| next <= given.now()), "the others are ripe as before: {first:?}");
    let second = given.fire().await;
    assert_eq!((second.timers, second.jobs), (2, 2 * EACH));
    assert!(second.next.is_some_and(|next| next > given.now()), "{second:?}");
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

async fn a_record_of_a_slot_long_past_is_kept_for_as_long_as_others(given: Given) {
    let since = given.each_minute(overlapping(Overlap::QueueAll)).await;
    given.pass(minutes(60));
    let act = TimerAct::Backfill { from: since.after(minutes(1)), to: since.after(minutes(3)) };
    given.store.change_timer(&name("a"), act).await.unwrap();
    let made = given.now();
    assert_eq!(given.store.prune_slots(made).await.unwrap(), Pruned::default());
    assert_eq!(given.told(since).await, [(1, 1, "ran"), (2, 2, "ran"), (3, 3, "ran")]);
    given.pass(minutes(1));
    let pruned = given.store.prune_slots(given.now()).await.unwrap();
    assert_eq!(pruned, Pruned { removed: 3, more: false });
}
