//! Slots that are put off.

use super::*;

#[test]
fn jitter_puts_off_what_is_due_and_loses_nothing() {
    let mut timer = new("0 * * * * *", Policies { overlap: Overlap::QueueAll, ..Policies::default() });
    timer.schedule = timer.schedule.with_jitter(Jitter::within(Duration::from_secs(3600)).unwrap());
    let mut rig = Rig::with("0 * * * * *", Policies::default(), on("00:00:00"));
    rig.timer = Timer::accepted(timer, on("00:00:00"));
    let mut now = on("00:00:00");
    while now < on("06:00:00") {
        rig.fire(now);
        rig.end_all(now);
        now = now.after(Duration::from_secs(20));
    }
    let slots: u64 = rig.records.iter().map(|record| record.count.unwrap()).sum();
    let (first, last) = (rig.records[0].first, rig.timer.decided.unwrap());
    assert_eq!((first, slots), (on("00:01:00"), last.since(on("00:00:00")).as_secs() / 60));
    assert!(last >= on("04:59:00"), "{last}");
}

/// A timer of one o'clock with a jitter of an hour, and when its slot is due.
fn put_off(policies: Policies) -> (Rig, Timestamp) {
    let mut timer = new("0 0 1 * * *", policies);
    timer.schedule = timer.schedule.with_jitter(Jitter::within(Duration::from_secs(3600)).unwrap());
    let due = timer.due(on("01:00:00"));
    assert!(due > on("01:01:00"));
    let mut rig = Rig::with("0 0 1 * * *", policies, on("00:00:00"));
    rig.timer = Timer::accepted(timer, on("00:00:00"));
    (rig, due)
}

#[test]
fn how_late_a_slot_is_counts_from_where_its_own_jitter_puts_it() {
    let second = Duration::from_secs(1);
    let late = Policies { max_lateness: Some(Duration::from_secs(60)), ..Policies::default() };
    let missed = Policies { catch_up: CatchUp::Skip, ..Policies::default() };
    for (policies, why) in [(late, Skipped::TooLate), (missed, Skipped::Missed)] {
        let (mut rig, due) = put_off(policies);
        assert_eq!(rig.fire(due.after(second * 60)), 1);
        let (mut rig, due) = put_off(policies);
        assert_eq!(rig.fire(due.after(second * 61)), 0);
        assert_eq!(rig.timer.last_skip, Some((on("01:00:00"), why)));
    }
}

#[test]
fn a_slot_that_its_jitter_puts_off_behind_the_end_of_a_pause_is_not_skipped() {
    let (mut rig, due) = put_off(Policies::default());
    rig.take(pause(&rig.timer, &rig.open(), "", on("01:00:01")));
    rig.take(resume(&rig.timer, &rig.open(), on("01:00:03")));
    assert_eq!((rig.records.len(), rig.fire(due)), (0, 1));
}

#[test]
fn a_slot_that_its_jitter_puts_off_is_on_record_when_its_timer_is_removed() {
    let (mut rig, _) = put_off(Policies::default());
    let left = |rig: &Rig| remove(&rig.timer, &rig.open(), on("01:00:01"));
    let why = |left: Vec<SlotRecord>| left.into_iter().map(|left| (left.last, left.fate)).collect::<Vec<_>>();
    let skipped = |why| [(on("01:00:00"), Fate::Skipped { why })];
    assert_eq!(why(left(&rig)), skipped(Skipped::Edited));
    rig.take(pause(&rig.timer, &rig.open(), "", on("00:59:00")));
    assert_eq!(why(left(&rig)), skipped(Skipped::Paused));
    assert_eq!(remove(&rig.timer, &rig.open(), on("00:59:59")), []);
}

#[test]
fn a_slot_that_its_jitter_puts_off_behind_an_edit_keeps_its_time() {
    for on_edit in [OnEdit::Keep, OnEdit::Drop] {
        let (mut rig, due) = put_off(Policies { on_edit, ..Policies::default() });
        let mut twice = new("0 0 1,13 * * *", Policies { on_edit, ..Policies::default() });
        twice.schedule = twice.schedule.with_jitter(Jitter::within(Duration::from_secs(3600)).unwrap());
        let edited = edit(&rig.timer, &rig.open(), twice, on("01:00:01"));
        let Edited::Changed(firing) = edited else { panic!("{edited:?}") };
        assert_eq!(rig.take(*firing), 0);
        assert_eq!((rig.records.len(), rig.timer.wake(), rig.fire(due)), (0, Some(due), 1));
        assert_eq!(rig.timer.next, Some(on("13:00:00")));
    }
}
