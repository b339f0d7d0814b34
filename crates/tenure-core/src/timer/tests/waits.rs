//! Timers that wait for the end of their last job.

use super::*;

#[test]
fn a_wait_is_counted_from_the_end_of_the_last_job() {
    let mut rig = Rig::with("delay 10m", Policies::default(), on("00:00:00"));
    assert_eq!(rig.fire(on("00:10:00")), 1);
    assert_eq!(rig.timer.wake(), Some(on("00:20:00")), "it cannot be sooner");
    for minute in ["00:20:00", "00:25:00"] {
        assert_eq!(rig.fire(on(minute)), 0);
        assert!(rig.timer.wake().unwrap() <= on(minute).after(Duration::from_secs(60)));
    }
    rig.end_all(on("00:25:30"));
    assert_eq!(rig.fire(on("00:26:00")), 0);
    assert_eq!((rig.timer.next, rig.fire(on("00:35:29"))), (Some(on("00:35:30")), 0));
    assert_eq!(rig.fire(on("00:35:30")), 1);
    assert_eq!(rig.told(), ["00:10:00 ran", "00:35:30 ran"]);
}

/// Whoever looks at the timer in between, for whatever reason, forgets nothing.
#[test]
fn a_wait_is_counted_from_the_end_of_the_last_job_though_a_program_starts_meanwhile() {
    let looks: [fn(&mut Rig); 4] = [
        |rig| _ = rig.take(start(&rig.timer, &rig.open(), on("01:55:00"), on("01:55:00"))),
        |rig| {
            rig.take(pause(&rig.timer, &rig.open(), "", on("01:55:00")));
            rig.take(resume(&rig.timer, &rig.open(), on("01:56:00")));
        },
        |rig| {
            let mut other = new("delay 1h", Policies::default());
            other.revision = 1;
            let edited = edit(&rig.timer, &rig.open(), other, on("01:55:00"));
            let Edited::Changed(firing) = edited else { panic!("{edited:?}") };
            rig.take(*firing);
        },
        // Its job was removed: it has ended, and nobody knows when.
        |rig| {
            rig.ended.clear();
            rig.take(start(&rig.timer, &rig.open(), on("01:50:00"), on("01:50:00")));
        },
    ];
    for look in looks {
        let mut rig = Rig::with("delay 1h", Policies::default(), on("00:00:00"));
        assert_eq!(rig.fire(on("01:00:00")), 1);
        rig.end_all(on("01:50:00"));
        look(&mut rig);
        assert_eq!(rig.fire(on("02:49:59")), 0);
        assert_eq!((rig.timer.next, rig.fire(on("02:50:00"))), (Some(on("02:50:00")), 1));
    }
}

#[test]
fn a_jitter_puts_off_the_slots_of_a_wait_and_not_the_looks_at_its_jobs() {
    let mut timer = new("delay 1m", Policies::default());
    timer.schedule = timer.schedule.with_jitter(Jitter::within(Duration::from_secs(3_600)).unwrap());
    let mut rig = Rig::with("delay 1m", Policies::default(), on("00:00:00"));
    rig.timer = Timer::accepted(timer, on("00:00:00"));
    let due = |rig: &Rig, slot| rig.timer.agreed.due(slot);
    let first = rig.timer.wake().unwrap();
    assert!(first == due(&rig, on("00:01:00")) && first > on("00:02:00"));
    assert_eq!(rig.fire(first), 1);
    for _ in 0..9 {
        let look = rig.timer.wake().unwrap();
        assert!(look.since(first) <= Duration::from_secs(600), "{look}");
        rig.fire(look);
    }
    let ended = rig.timer.wake().unwrap();
    rig.end_all(ended);
    let slot = ended.after(Duration::from_secs(60));
    // Whoever looks so late that the wait is over waits for the jitter all the same.
    for look in [ended, slot, due(&rig, slot).before(Duration::from_micros(1))] {
        assert_eq!((rig.fire(look), rig.timer.wake()), (0, Some(due(&rig, slot))));
    }
    assert_eq!((rig.fire(due(&rig, slot)), rig.records[1].first), (1, slot));
}

#[test]
fn a_job_that_blocks_for_ever_is_looked_at_less_and_less_often() {
    let mut rig = Rig::with("delay 1s", Policies::default(), on("00:00:00"));
    let (mut looks, mut now) = (0, on("00:00:01"));
    while now < on("02:00:00") {
        rig.fire(now);
        (looks, now) = (looks + 1, rig.timer.wake().unwrap());
    }
    assert_eq!(rig.records.len(), 1);
    assert!(looks < 500, "{looks}");
}

#[test]
fn a_wait_that_has_not_begun_is_explained_by_the_job_whose_end_it_is_counted_from() {
    let mut rig = Rig::with("delay 10m", Policies::default(), on("00:00:00"));
    let told = |rig: &Rig, now| {
        explain_timer(&rig.timer, &rig.open(), on(now)).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(told(&rig, "00:05:00"), ["its next run is 2026-01-01T00:10:00.000000Z"]);
    rig.fire(on("00:10:00"));
    let job = rig.unfinished[0];
    let counted = format!("its next run is counted from the end of job {job}");
    for (look, soon, late) in [("00:10:00", "00:10:01", "00:20:07"), ("00:20:10", "00:21:00", "00:21:17")] {
        rig.fire(on(look));
        assert_eq!(told(&rig, soon)[0], counted, "an instant at which it is looked for is no slot");
        let overdue = "; that has not been checked for 7 s: no worker or server is running schedules";
        assert_eq!(told(&rig, late)[0], format!("{counted}{overdue}"));
    }
    rig.end_all(on("00:25:30"));
    rig.fire(on("00:26:10"));
    assert_eq!(told(&rig, "00:26:10"), ["its next run is 2026-01-01T00:35:30.000000Z"]);
}

#[test]
fn a_wait_takes_no_policies_about_slots_that_it_does_not_have() {
    let field = |policies| new("delay 10m", policies).check().map_err(|invalid| invalid.field);
    let given = Policies::default();
    let refused = |field: &str| Err(field.to_owned());
    assert_eq!(field(Policies { run_on_start: true, ..given }), Ok(()));
    assert_eq!(field(Policies { catch_up: CatchUp::Skip, ..given }), refused("catch_up"));
    assert_eq!(field(Policies { overlap: Overlap::QueueOne, ..given }), refused("overlap"));
    assert_eq!(
        field(Policies { max_lateness: Some(Duration::from_secs(9)), ..given }),
        refused("max_lateness")
    );
    assert_eq!(field(Policies { on_edit: OnEdit::Drop, ..given }), refused("on_edit"));
}
