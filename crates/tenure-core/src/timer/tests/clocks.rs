//! Clocks that are put back or ahead, and instants that pass meanwhile.

use super::*;

/// T055: a host that wakes early, or whose clock is put back, brings nothing twice.
#[test]
fn a_clock_that_is_put_back_brings_no_slot_twice() {
    let mut rig = Rig::every_minute(Policies::default());
    for time in ["00:01:00", "00:00:58", "00:01:00.001", "00:00:00", "00:01:59.999"] {
        rig.fire(on(time));
        rig.end_all(on(time));
    }
    assert_eq!(rig.fire(on("00:02:00")), 1);
    assert_eq!(rig.told(), ["00:01:00 ran", "00:02:00 ran"]);
}

/// The store knows them: a timer was removed and set again while the clock was put back.
#[test]
fn a_slot_stands_for_earlier_ones_in_place_of_those_behind_it_that_are_on_record_without_a_job() {
    let decide = |passed_by| {
        let mut rig = Rig::every_minute(Policies::default());
        let now = on("00:03:59");
        let mut firing = fire(&rig.timer, &rig.open(), now);
        for _ in 0..passed_by {
            firing.pass_by(&rig.timer, now);
        }
        let (into, jobs) = (firing.stands_for_others(), firing.jobs.clone());
        assert_eq!(rig.take(firing), 1);
        let slot = jobs[0].terms.slot.clone().unwrap();
        assert_eq!(jobs[0].id, JobId::of_slot(&slot.timer, slot.at, Origin::Schedule));
        assert_eq!(rig.timer.lateness, Some(now.since(slot.at)));
        assert_eq!(
            (rig.timer.decided, rig.timer.next, rig.timer.runs),
            (Some(on("00:03:00")), Some(on("00:04:00")), 1)
        );
        (into, rig.told(), slot.past_due)
    };
    let told = |records: &[&str]| records.iter().map(|record| (*record).to_owned()).collect::<Vec<_>>();
    let first = told(&["00:01:00-00:02:00 coalesced", "00:03:00 ran"]);
    assert_eq!(decide(0), (Some(on("00:03:00")), first, true));
    let second = told(&["00:01:00 coalesced", "00:02:00 ran"]);
    assert_eq!(decide(1), (Some(on("00:02:00")), second, true));
    assert_eq!(decide(2), (None, told(&["00:01:00 ran"]), true));
    assert_eq!(decide(3), decide(2));
}

#[test]
fn a_timer_that_a_clock_fired_ahead_says_so_and_goes_on_after_a_pause_or_an_edit() {
    let ahead = at("2027-01-01T00:00:00Z");
    let hourly = |schedule| {
        let mut rig = Rig::with(schedule, Policies::default(), on("00:30:00"));
        assert_eq!(rig.fire(ahead), 1);
        rig.end_all(ahead);
        rig
    };
    let mends: [fn(&mut Rig); 2] = [
        |rig| {
            rig.take(pause(&rig.timer, &rig.open(), "", on("00:40:00")));
            rig.take(resume(&rig.timer, &rig.open(), on("00:41:00")));
        },
        |rig| {
            let half_hourly = new("0 */30 * * * *", Policies::default());
            let edited = edit(&rig.timer, &rig.open(), half_hourly, on("00:41:00"));
            let Edited::Changed(firing) = edited else { panic!("{edited:?}") };
            rig.take(*firing);
        },
    ];
    let was_ahead = TimerReason::ClockWasAhead { until: ahead, ends_by_pause: true };
    for mend in mends {
        let mut rig = hourly("0 0 * * * *");
        assert_eq!(explain_timer(&rig.timer, &rig.open(), on("00:40:00"))[0], was_ahead);
        mend(&mut rig);
        assert!(!explain_timer(&rig.timer, &rig.open(), on("00:42:00")).contains(&was_ahead));
        assert_eq!((rig.timer.next, rig.fire(on("01:00:00"))), (Some(on("01:00:00")), 1));
    }
    // Nobody is told to do what does not help.
    let mut rig = Rig::with("0 * * * * *", Policies::default(), on("00:30:00"));
    rig.fire(on("00:39:00"));
    rig.end_all(on("00:39:00"));
    let told = explain_timer(&rig.timer, &rig.open(), on("00:30:00")).remove(0);
    assert_eq!(
        told.to_string(),
        "the store's clock was ahead, so it does not run until 2026-01-01T00:39:00.000000Z"
    );
    // A wait looks no further ahead than that, as soon as anybody looks.
    let mut wait = hourly("delay 1h");
    wait.take(start(&wait.timer, &wait.open(), on("00:40:00"), on("00:40:00")));
    assert_eq!((wait.timer.next, wait.fire(on("01:40:00"))), (Some(on("01:40:00")), 1));
    assert_eq!(wait.records.last().map(|record| record.first), Some(on("01:40:00")));
}

/// Its job runs while the clock is ahead, and ends when that is right again.
#[test]
fn a_wait_that_was_looked_at_by_a_clock_ahead_says_so_and_goes_on_after_a_pause() {
    let mut rig = Rig::with("delay 1m", Policies::default(), on("00:00:00"));
    rig.fire(on("00:01:00"));
    rig.fire(at("2026-01-02T00:01:00Z"));
    let look = rig.timer.next.unwrap();
    rig.end_all(on("00:02:00"));
    let told = explain_timer(&rig.timer, &rig.open(), on("00:07:00"));
    assert_eq!(told[0], TimerReason::ClockWasAhead { until: look, ends_by_pause: true });
    assert!(
        !told.iter().any(|reason| matches!(reason, TimerReason::Open { .. } | TimerReason::AfterRun { .. }))
    );
    rig.take(pause(&rig.timer, &rig.open(), "", on("00:08:00")));
    rig.take(resume(&rig.timer, &rig.open(), on("00:08:00")));
    assert_eq!((rig.timer.next, rig.fire(on("00:09:00"))), (Some(on("00:09:00")), 1));
    rig.end_all(on("00:09:30"));
    let reasons = explain_timer(&rig.timer, &rig.open(), on("00:09:31"));
    let next = TimerReason::NotYet { slot: on("00:10:30"), wake: on("00:10:30") };
    assert_eq!(reasons, [next], "nobody has looked yet whether its job has ended, but whoever asks");
}

#[test]
fn a_wait_brings_no_slot_before_its_instant_though_the_clock_was_put_back() {
    let mut rig = Rig::with("delay 5s", Policies::default(), on("00:02:00"));
    assert_eq!(rig.fire(on("00:02:45")), 1);
    rig.end_all(on("00:01:20"));
    rig.take(start(&rig.timer, &rig.open(), on("00:01:30"), on("00:01:30")));
    let decided = rig.timer.decided.unwrap();
    let mut now = on("00:01:30");
    while rig.records.len() < 2 {
        now = rig.timer.wake().unwrap();
        rig.fire(now);
    }
    assert_eq!((now, rig.records[1].first), (decided.after(Duration::from_micros(1)), now));
}

#[test]
fn a_start_brings_its_job_though_the_clock_was_put_back() {
    let policies = Policies { run_on_start: true, ..Policies::default() };
    let mut rig = Rig::with("0 0 * * * *", policies, on("05:30:00"));
    rig.fire(on("06:00:00"));
    rig.end_all(on("06:00:01"));
    assert_eq!(rig.take(start(&rig.timer, &rig.open(), on("03:10:00"), on("03:10:00"))), 1);
}

#[test]
fn a_one_time_timer_whose_instant_comes_while_it_is_set_fires_once() {
    let once = || new("at 2026-01-01T00:00:01Z", Policies::default());
    let mut rig = Rig::with("at 2026-01-01T00:00:01Z", Policies::default(), on("00:00:01.01"));
    assert_eq!(once().check_left(on("00:00:01.01")), Ok(()));
    assert_eq!(rig.fire(on("00:00:01.02")), 1);
    rig.end_all(on("00:00:02"));
    let later = new("at 2026-01-01T00:00:01Z, 2026-01-01T00:00:05Z", Policies::default());
    let edited = edit(&rig.timer, &rig.open(), later, on("00:00:06"));
    let Edited::Changed(firing) = edited else { panic!("{edited:?}") };
    rig.take(*firing);
    assert_eq!((rig.timer.next, rig.fire(on("00:00:06.1"))), (Some(on("00:00:05")), 1));
    assert_eq!(rig.timer.next, None);
    // One that is over would be silent: whoever sets it is told.
    let over = once().check_left(on("00:01:02")).unwrap_err();
    assert_eq!(over.field, "schedule");
    assert!(over.to_string().contains("2026-01-01T00:00:01.000000Z`, which has ended"), "{over}");
}

#[test]
fn a_schedule_whose_next_runs_take_too_long_is_refused() {
    let rare = "DTSTART:20000229T000000 RRULE:FREQ=YEARLY;BYYEARDAY=60;BYMONTHDAY=29;BYDAY=TU";
    let each_second_or = |rules: usize| {
        let rules = [&["* * * * * *"][..], &vec![rare; rules]].concat().join(" or ");
        new(&rules, Policies::default())
    };
    assert_eq!(each_second_or(2).check_left(on("00:00:00")), Ok(()), "rare runs are no reason");
    // They are near now. Behind them, each firing would look 28 years ahead for each of them.
    let often = each_second_or(15);
    let skipped = crate::schedule::Calendar::of(["02-29"]).unwrap();
    let never = NewTimer { schedule: often.schedule.clone().except(skipped).unwrap(), ..often.clone() };
    for timer in [often, never] {
        let refused = timer.check_left(on("00:00:00")).unwrap_err();
        assert_eq!(refused.field, "schedule");
        assert!(refused.to_string().contains("whose next runs take too long to find"), "{refused}");
    }
}

/// The search for a rare run is the same for all questions of a firing.
#[test]
fn a_firing_takes_one_search_for_rules_that_run_rarely() {
    let rare = "DTSTART:20000229T000000 RRULE:FREQ=YEARLY;BYYEARDAY=60;BYMONTHDAY=29;BYDAY=TU";
    let fired = |rules: usize, now: Timestamp| {
        let rules = [&["* * * * * *"][..], &vec![rare; rules]].concat().join(" or ");
        let rig = Rig::with(&rules, Policies::default(), at("2028-03-01T00:00:00Z"));
        let steps = Steps::new(limits::FIRING_STEPS);
        let firing = fire_within(&rig.timer, &rig.open(), now, &steps);
        assert_eq!((firing.jobs.len(), firing.timer.decided), (1, Some(now)));
        assert_eq!(firing.timer.next, Some(now.after(Duration::from_secs(1))));
        limits::FIRING_STEPS - steps.left()
    };
    for now in ["2028-03-01T00:00:01Z", "2028-03-01T00:00:02Z", "2028-03-20T12:00:00Z"] {
        let used = fired(2, at(now));
        assert!((20_000..=limits::FIRED_RUN_STEPS).contains(&used), "{now}: {used}");
        // A schedule that was stored before this limit fires by the rules that are found.
        assert!(fired(15, at(now)) <= limits::FIRING_STEPS);
    }
}
