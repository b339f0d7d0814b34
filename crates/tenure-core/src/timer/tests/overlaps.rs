//! Slots that were missed, come late, or meet a job that has not ended.

use super::*;

/// T056: nobody was there over ten slots.
#[test]
fn what_was_missed_is_made_up_for_as_was_agreed_and_each_slot_is_on_record() {
    let told = |policies| {
        let mut rig = Rig::every_minute(policies);
        rig.fire(on("00:10:30"));
        assert_eq!(rig.timer.next, Some(on("00:11:00")));
        let slots: u64 = rig.records.iter().map(|record| record.count.unwrap()).sum();
        assert_eq!(slots, 10);
        rig.told()
    };
    let overlap = Overlap::QueueAll;
    let given = |catch_up| Policies { catch_up, overlap, ..Policies::default() };
    assert_eq!(told(given(CatchUp::Skip)), ["00:01:00-00:09:00 missed", "00:10:00 ran"]);
    assert_eq!(told(given(CatchUp::One)), ["00:01:00-00:09:00 coalesced", "00:10:00 ran"]);
    let last_two = ["00:01:00-00:08:00 toomany", "00:09:00 ran", "00:10:00 ran"];
    assert_eq!(told(given(CatchUp::All { most: 2 })), last_two);
    assert_eq!(told(given(CatchUp::All { most: 1_000 })).len(), 10);
    let max_lateness = Some(Duration::from_secs(150));
    let late = ["00:01:00-00:07:00 toolate", "00:08:00-00:09:00 coalesced", "00:10:00 ran"];
    assert_eq!(told(Policies { max_lateness, ..given(CatchUp::One) }), late);
}

/// As the guide says: five seconds without a worker.
#[test]
fn one_job_covers_occurrences_that_are_only_seconds_late() {
    let jobs = |catch_up| {
        let policies = Policies { catch_up, overlap: Overlap::QueueAll, ..Policies::default() };
        Rig::with("every 1s", policies, on("00:00:00")).fire(on("00:00:05"))
    };
    assert_eq!(jobs(CatchUp::One), 1);
    assert_eq!(jobs(CatchUp::Skip), 5);
    assert_eq!(jobs(CatchUp::All { most: 1_000 }), 5);
}

/// No job stands for missed slots if there was no room for one.
#[test]
fn missed_slots_are_busy_together_while_the_job_before_has_not_ended() {
    let mut rig = Rig::every_minute(Policies::default());
    rig.fire(on("00:01:00"));
    assert_eq!(rig.fire(on("00:10:30")), 0);
    rig.end_all(on("00:10:40"));
    assert_eq!(rig.fire(on("00:12:00")), 1);
    let told = ["00:01:00 ran", "00:02:00-00:10:00 busy", "00:11:00 coalesced", "00:12:00 ran"];
    assert_eq!(rig.told(), told);
}

/// However many they are, they share a record with the reason.
#[test]
fn slots_that_find_no_room_behind_those_that_did_are_busy_together() {
    let policies =
        |overlap| Policies { catch_up: CatchUp::All { most: 1_000 }, overlap, ..Policies::default() };
    let told = |overlap| {
        let mut rig = Rig::every_minute(policies(overlap));
        rig.fire(on("00:09:30"));
        assert_eq!(rig.timer.last_skip.as_ref().map(|(slot, _)| *slot), Some(on("00:09:00")));
        rig.told()
    };
    assert_eq!(told(Overlap::Skip), ["00:01:00 ran", "00:02:00-00:09:00 busy"]);
    let two = ["00:01:00 ran", "00:02:00 ran", "00:03:00-00:09:00 busy"];
    assert_eq!(told(Overlap::QueueOne), two);
    assert_eq!(told(Overlap::Allow { most: 2 }), two);
    let given = Policies { max_lateness: Some(Duration::from_secs(7_200)), ..policies(Overlap::Skip) };
    let mut rig = Rig::with("* * * * * *", given, on("00:00:00"));
    let firing = fire(&rig.timer, &rig.open(), on("09:00:00"));
    assert!(firing.records.len() <= firing.jobs.len() + limits::TIMER_RECORDS - limits::CATCH_UP_JOBS);
    rig.take(firing);
    assert_eq!(rig.records.len(), 4);
}

/// T058: with a maximum lateness of ten minutes, as Kudu has it, a job comes at 9:59, at 10:00, and not at 10:01.
#[test]
fn a_slot_later_than_allowed_is_skipped() {
    let policies = Policies { max_lateness: Some(Duration::from_secs(600)), ..Policies::default() };
    for (now, brought) in [("01:09:59", 1), ("01:10:00", 1), ("01:10:01", 0)] {
        let mut rig = Rig::with("0 0 * * * *", policies, on("00:30:00"));
        assert_eq!(rig.fire(on(now)), brought, "{now}");
        assert_eq!(rig.records.len(), 1);
    }
}

/// T059: each job takes a minute and a half.
#[test]
fn a_job_that_takes_longer_than_the_interval_meets_the_policy_of_overlap() {
    let run = |overlap| {
        let mut rig = Rig::every_minute(Policies { overlap, ..Policies::default() });
        for half_minutes in 2..=10_u64 {
            let now = on("00:00:00").after(Duration::from_secs(30 * half_minutes));
            // The first of the line ends when it has had three half minutes since its turn began.
            if half_minutes > 2 && (half_minutes - 2).is_multiple_of(3) && !rig.unfinished.is_empty() {
                rig.end_first(now);
            }
            rig.fire(now);
        }
        rig.told()
    };
    let skip = ["00:01:00 ran", "00:02:00 busy", "00:03:00 ran", "00:04:00 ran", "00:05:00 busy"];
    assert_eq!(run(Overlap::Skip), skip);
    let queue_one = ["00:01:00 ran", "00:02:00 ran", "00:03:00 ran", "00:04:00 ran", "00:05:00 busy"];
    assert_eq!(run(Overlap::QueueOne), queue_one);
    assert!(run(Overlap::QueueAll).iter().all(|row| row.ends_with("ran")));
    assert!(run(Overlap::Allow { most: 2 }).iter().filter(|row| row.ends_with("busy")).count() == 1);
}

#[test]
fn a_timer_that_cancels_asks_all_earlier_jobs_to_stop_and_waits_for_them() {
    let mut rig = Rig::every_minute(Policies { overlap: Overlap::CancelPrevious, ..Policies::default() });
    rig.fire(on("00:01:00"));
    let first = rig.unfinished[0];
    let firing = fire(&rig.timer, &rig.open(), on("00:02:00"));
    assert_eq!(firing.cancel, [first]);
    assert!(firing.jobs[0].terms.ordering.is_some(), "it waits for its turn");
}

#[test]
fn jobs_that_may_not_overlap_share_an_ordering_key_and_others_a_limit() {
    let job = |overlap| {
        let timer = new("0 * * * * *", Policies { overlap, ..Policies::default() });
        let slot = TimerSlot {
            timer: timer.name.clone(),
            at: on("00:01:00"),
            fired: on("00:01:00.25"),
            origin: Origin::Schedule,
            past_due: false,
        };
        assert_eq!(slot.lateness(), Duration::from_millis(250));
        timer.job_for(&slot)
    };
    for overlap in [Overlap::Skip, Overlap::QueueOne, Overlap::QueueAll, Overlap::CancelPrevious] {
        let terms = job(overlap).terms;
        assert_eq!(terms.ordering.as_ref().unwrap().key.as_str(), "timer/nightly");
        // Those of before an edit may have nothing but the limit in common with them.
        assert_eq!(
            terms.limit,
            Some(LimitKey { key: Key::of_timer(&Name::new("timer", "nightly").unwrap()), most: Some(1) })
        );
    }
    let beside = job(Overlap::Allow { most: 3 });
    assert_eq!(beside.terms.limit.as_ref().unwrap().most, Some(3));
    assert_eq!(beside.terms.slot.as_ref().unwrap().at, on("00:01:00"));
}
