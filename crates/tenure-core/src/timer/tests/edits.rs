//! What an edit keeps, and what it counts anew.

use super::*;

/// T057: the schedule is changed while slots have passed that nobody has decided.
#[test]
fn a_changed_schedule_neither_loses_nor_doubles_a_slot() {
    for (on_edit, expected) in [
        (OnEdit::Keep, ["00:01:00-00:02:00 coalesced", "00:03:00 ran"].as_slice()),
        (OnEdit::Drop, ["00:01:00-00:03:00 edited"].as_slice()),
    ] {
        let mut rig = Rig::every_minute(Policies { on_edit, ..Policies::default() });
        let half_hourly = new("0 */30 * * * *", Policies { on_edit, ..Policies::default() });
        let edited = edit(&rig.timer, &rig.open(), half_hourly.clone(), on("00:03:30"));
        let Edited::Changed(firing) = edited else { panic!("{edited:?}") };
        rig.take(*firing);
        assert_eq!(
            (rig.told(), rig.timer.next),
            (expected.iter().map(ToString::to_string).collect(), Some(on("00:30:00")))
        );
        assert_eq!(edit(&rig.timer, &rig.open(), half_hourly, on("00:03:31")), Edited::Same);
        assert_eq!(rig.timer.version, 2);
    }
}

#[test]
fn a_schedule_that_is_changed_to_and_fro_at_a_slot_brings_it_once() {
    let mut rig = Rig::every_minute(Policies::default());
    for schedule in ["*/30 * * * * *", "0 * * * * *", "0,30 * * * * *"] {
        let edited = edit(&rig.timer, &rig.open(), new(schedule, Policies::default()), on("00:01:00"));
        let Edited::Changed(firing) = edited else { panic!("{edited:?}") };
        rig.take(*firing);
        rig.end_all(on("00:01:00"));
    }
    assert_eq!(rig.told(), ["00:01:00 ran"]);
    assert_eq!(rig.timer.next, Some(on("00:01:30")));
}

#[test]
fn an_older_version_of_a_program_does_not_change_what_a_newer_one_declared() {
    let rig = Rig::every_minute(Policies::default());
    let mut newer = new("0 0 * * * *", Policies::default());
    newer.revision = 7;
    let Edited::Changed(firing) = edit(&rig.timer, &rig.open(), newer, on("00:00:10")) else { panic!() };
    let older = new("0 * * * * *", Policies::default());
    assert_eq!(edit(&firing.timer, &rig.open(), older, on("00:00:11")), Edited::Outdated { by: 7 });
}

#[test]
fn other_arguments_and_policies_take_effect_with_the_next_slot_and_no_slot_moves() {
    let mut rig = Rig::every_minute(Policies { overlap: Overlap::QueueAll, ..Policies::default() });
    let mut other = new("0 * * * * *", Policies { catch_up: CatchUp::Skip, ..rig.timer.agreed.policies });
    other.job.args = Args::new(*b"{\"a\":1}").unwrap();
    let Edited::Changed(firing) = edit(&rig.timer, &rig.open(), other, on("00:03:20")) else { panic!() };
    assert_eq!(firing.jobs[0].args.as_bytes(), b"{}", "what was ripe is decided by what was agreed then");
    rig.take(*firing);
    assert_eq!(rig.told(), ["00:01:00-00:02:00 coalesced", "00:03:00 ran"]);
    let firing = fire(&rig.timer, &rig.open(), on("00:04:00"));
    assert_eq!(
        (firing.jobs[0].args.as_bytes(), firing.records[0].first),
        (b"{\"a\":1}".as_slice(), on("00:04:00"))
    );
}

#[test]
fn a_timer_ends_after_as_many_jobs_as_were_wanted() {
    let mut rig = Rig::every_minute(Policies { catch_up: CatchUp::All { most: 5 }, ..Policies::default() });
    let mut bounded =
        new("0 * * * * *", Policies { overlap: Overlap::QueueAll, ..rig.timer.agreed.policies });
    let mut bounds = bounded.schedule.bounds();
    bounds.most_runs = Some(3);
    bounded.schedule = bounded.schedule.within(bounds).unwrap();
    rig.timer = Timer::accepted(bounded, on("00:00:00"));
    assert_eq!(rig.fire(on("00:02:00")), 2);
    assert_eq!(rig.fire(on("00:09:00")), 1);
    assert_eq!((rig.timer.next, rig.timer.is_spent()), (None, true));
    assert_eq!(explain_timer(&rig.timer, &rig.open(), on("00:10:00"))[0], TimerReason::Spent { runs: 3 });
}

#[test]
fn a_timer_that_is_given_another_schedule_counts_its_jobs_anew() {
    let mut rig = Rig::every_minute(Policies::default());
    for time in ["00:01:00", "00:02:00", "00:03:00"] {
        rig.fire(on(time));
        rig.end_all(on(time));
    }
    let mut thrice = new("0 0 * * * *", Policies::default());
    let bounds = Bounds { most_runs: Some(3), ..Bounds::default() };
    thrice.schedule = thrice.schedule.within(bounds).unwrap();
    let Edited::Changed(firing) = edit(&rig.timer, &rig.open(), thrice, on("00:10:00")) else { panic!() };
    rig.take(*firing);
    rig.end_all(on("00:10:01"));
    for time in ["01:00:00", "02:00:00", "03:00:00"] {
        assert_eq!((rig.timer.next, rig.fire(on(time))), (Some(on(time)), 1));
        rig.end_all(on(time));
    }
    assert_eq!((rig.timer.next, rig.timer.is_spent()), (None, true));
}

/// A deploy that adds a jitter sends no mail a second time.
#[test]
fn a_timer_that_is_spent_stays_so_unless_it_gets_other_slots_or_another_number() {
    let once = |line: &str, most_runs, change: fn(Schedule) -> Schedule| {
        let mut timer = new(line, Policies::default());
        let bounds = Bounds { most_runs: Some(most_runs), ..Bounds::default() };
        timer.schedule = change(timer.schedule.within(bounds).unwrap());
        timer
    };
    let spent = || {
        let mut rig = Rig::every_minute(Policies::default());
        rig.timer = Timer::accepted(once("0 * * * * *", 1, |schedule| schedule), on("00:00:00"));
        rig.fire(on("00:01:00"));
        rig.end_all(on("00:01:01"));
        assert!(rig.timer.is_spent());
        rig
    };
    let next_after = |edited: NewTimer| {
        let mut rig = spent();
        let edited = edit(&rig.timer, &rig.open(), edited, on("00:02:00"));
        let Edited::Changed(firing) = edited else { panic!("{edited:?}") };
        rig.take(*firing);
        rig.timer.next
    };
    let details: [fn(Schedule) -> Schedule; 4] = [
        |schedule| schedule.with_jitter(Jitter::within(Duration::from_secs(1)).unwrap()),
        |schedule| schedule.except(Calendar::of(["sat"]).unwrap()).unwrap(),
        |schedule| {
            let bounds = Bounds { starts_at: Some(on("00:00:30")), ..schedule.bounds() };
            schedule.within(bounds).unwrap()
        },
        |schedule| {
            let bounds = Bounds { ends_at: Some(on("09:00:00")), ..schedule.bounds() };
            schedule.within(bounds).unwrap()
        },
    ];
    for detail in details {
        assert_eq!(next_after(once("0 * * * * *", 1, detail)), None);
    }
    let as_it_is = |schedule| schedule;
    assert_eq!(next_after(once("0 */5 * * * *", 1, as_it_is)), Some(on("00:05:00")));
    assert_eq!(next_after(once("0 * * * * *", 2, as_it_is)), Some(on("00:03:00")));
    let elsewhere = next_after(once("0 * * * * * in Europe/Berlin", 1, as_it_is));
    assert_eq!(elsewhere, Some(on("00:03:00")));
}
