//! Pauses, starts, triggers and slots of the past.

use super::*;

#[test]
fn a_paused_timer_is_silent_and_its_slots_are_on_record_when_it_goes_on() {
    let mut rig = Rig::every_minute(Policies::default());
    rig.take(pause(&rig.timer, &rig.open(), "the mail server moves", on("00:01:30")));
    rig.end_all(on("00:01:31"));
    assert_eq!((rig.timer.wake(), rig.fire(on("00:05:00"))), (None, 0));
    rig.take(resume(&rig.timer, &rig.open(), on("00:05:10")));
    assert_eq!(rig.fire(on("00:06:00")), 1);
    assert_eq!(rig.told(), ["00:01:00 ran", "00:02:00-00:05:00 paused", "00:06:00 ran"]);
    assert_eq!(rig.take(resume(&rig.timer, &rig.open(), on("00:06:10"))), 0);
}

#[test]
fn a_start_brings_one_job_and_the_next_one_within_a_minute_none() {
    let mut rig =
        Rig::with("0 0 * * * *", Policies { run_on_start: true, ..Policies::default() }, on("00:10:00"));
    assert_eq!(rig.take(start(&rig.timer, &rig.open(), on("00:10:00"), on("00:10:00"))), 1);
    rig.end_all(on("00:10:01"));
    assert_eq!(rig.take(start(&rig.timer, &rig.open(), on("00:10:02"), on("00:10:02"))), 0);
    assert_eq!(rig.take(start(&rig.timer, &rig.open(), on("00:20:00"), on("00:20:00"))), 1);
    rig.end_all(on("00:20:01"));
    // What was missed comes first, and is enough.
    assert_eq!(rig.take(start(&rig.timer, &rig.open(), on("01:00:05"), on("01:00:05"))), 1);
    assert_eq!(rig.told(), ["00:10:00 ran", "00:20:00 ran", "01:00:00 ran"]);
}

#[test]
fn a_start_before_the_beginning_of_a_schedule_or_after_its_end_brings_none() {
    let mut timer = new("0 0 * * * *", Policies { run_on_start: true, ..Policies::default() });
    let bounds =
        Bounds { starts_at: Some(on("01:00:00")), ends_at: Some(on("02:00:00")), ..Bounds::default() };
    timer.schedule = timer.schedule.within(bounds).unwrap();
    let mut rig = Rig::with("0 0 * * * *", Policies::default(), on("00:00:00"));
    rig.timer = Timer::accepted(timer, on("00:00:00"));
    assert_eq!(rig.take(start(&rig.timer, &rig.open(), on("00:30:00"), on("00:30:00"))), 0);
    assert_eq!(rig.fire(on("01:00:00")), 1);
    rig.end_all(on("01:00:01"));
    assert_eq!(rig.take(start(&rig.timer, &rig.open(), on("01:30:00"), on("01:30:00"))), 1);
    rig.end_all(on("01:30:01"));
    assert_eq!(rig.fire(on("02:00:00")), 1);
    rig.end_all(on("02:00:01"));
    assert_eq!(rig.take(start(&rig.timer, &rig.open(), on("02:30:00"), on("02:30:00"))), 0);
}

#[test]
fn a_trigger_brings_a_job_beside_the_schedule_unless_one_runs_already() {
    let mut rig = Rig::with("0 0 * * * *", Policies::default(), on("00:10:00"));
    let args = Args::new(*b"{\"for\":\"you\"}").unwrap();
    let id = JobId::new(on("00:11:00"), 1);
    let firing = trigger(&rig.timer, &rig.open(), id, Some(args.clone()), on("00:11:00")).unwrap();
    assert_eq!((firing.jobs[0].id, &firing.jobs[0].args), (id, &args));
    rig.take(firing);
    let refused = trigger(&rig.timer, &rig.open(), JobId::new(on("00:11:01"), 2), None, on("00:11:01"));
    assert_eq!(refused, Err(Refused::Busy { job: id }));
    assert_eq!((rig.timer.next, rig.timer.runs), (Some(on("01:00:00")), 0));
    assert_eq!(rig.fire(on("01:00:00")), 0);
    assert_eq!(rig.told(), ["00:11:00 ran", "01:00:00 busy"]);
}

#[test]
fn slots_of_the_past_are_brought_once_in_bounded_steps() {
    let rig = Rig::with("* * * * * *", Policies::default(), on("01:00:00"));
    let range = (on("00:00:00"), on("02:00:00"));
    let mut ids = std::collections::BTreeSet::new();
    let mut from = Some(range.0);
    let mut steps = 0;
    while let Some(start) = from {
        let Past { slots, next } = past_slots(&rig.timer, (start, range.1), on("01:00:00"));
        let firing = backfill(&rig.timer, &rig.open(), &slots, on("01:00:00"));
        assert!(firing.jobs.len() <= limits::CATCH_UP_JOBS);
        ids.extend(firing.jobs.iter().map(|job| job.id));
        (from, steps) = (next, steps + 1);
    }
    assert_eq!((ids.len(), steps), (3_601, 4), "until now, and no further");
}

/// The jobs of its slots wait for what runs of it, and not for its line.
#[test]
fn jobs_of_a_backfill_stand_in_a_line_of_their_own_behind_those_of_slots() {
    let keys = |origin, terms: &Terms, overlap, priority| {
        let mut timer = new("0 * * * * *", Policies { overlap, ..Policies::default() });
        (timer.job.terms, timer.job.priority) = (Arc::new(terms.clone()), Priority::new(priority).unwrap());
        assert_eq!(timer.check(), Ok(()));
        let (at, fired) = (on("00:01:00"), on("00:02:00"));
        let job = timer.job_for(&TimerSlot { timer: timer.name.clone(), at, fired, origin, past_due: true });
        let ordering = job.terms.ordering.as_ref().map(|ordering| ordering.key.as_str().to_owned());
        let limit = job.terms.limit.as_ref().map(|limit| (limit.key.as_str().to_owned(), limit.most));
        (ordering, limit, job.priority.number())
    };
    let (line, backlog) = (Some("timer/nightly".to_owned()), Some("timer/nightly/backfill".to_owned()));
    let limit = |most| Some(("timer/nightly".to_owned(), Some(most)));
    let none = Terms::default();
    for overlap in [Overlap::Skip, Overlap::QueueOne, Overlap::QueueAll, Overlap::CancelPrevious] {
        assert_eq!(keys(Origin::Schedule, &none, overlap, 7), (line.clone(), limit(1), 7));
        assert_eq!(keys(Origin::Backfill, &none, overlap, 7), (backlog.clone(), limit(1), 8));
        assert_eq!(keys(Origin::Backfill, &none, overlap, 100), (backlog.clone(), limit(1), 100));
    }
    let allow = Overlap::Allow { most: 2 };
    assert_eq!(keys(Origin::Schedule, &none, allow, 7), (None, limit(2), 7));
    assert_eq!(keys(Origin::Backfill, &none, allow, 7), (None, limit(2), 8));
    // Nothing else would keep them apart where a key of its own is in the place of the timer's.
    let own = Some(LimitKey { key: Key::new("limit_key", "smtp").unwrap(), most: Some(50) });
    let own = Terms { limit: own, ..Terms::default() };
    let shared = (line, Some(("smtp".to_owned(), Some(50))), 7);
    assert_eq!(keys(Origin::Backfill, &own, Overlap::Skip, 7), shared);
}

#[test]
fn slots_that_come_during_a_backfill_neither_cancel_it_nor_are_skipped_for_it() {
    for overlap in [Overlap::Skip, Overlap::CancelPrevious] {
        let mut rig = Rig::every_minute(Policies { overlap, ..Policies::default() });
        let range = (on("00:00:00").before(Duration::from_secs(600)), on("00:00:00"));
        let past = past_slots(&rig.timer, range, on("00:00:30"));
        let brought = backfill(&rig.timer, &rig.open(), &past.slots, on("00:00:30"));
        assert_eq!((brought.jobs.len(), &brought.timer.open), (11, &Vec::new()));
        rig.timer = brought.timer;
        assert_eq!(rig.fire(on("00:01:00")), 1);
        assert_eq!(rig.cancelled, []);
    }
    let wait = Rig::with("delay 10m", Policies::default(), on("01:00:00"));
    let none = past_slots(&wait.timer, (on("00:00:00"), on("01:00:00")), on("01:00:00"));
    assert_eq!(none, Past::default());
}
