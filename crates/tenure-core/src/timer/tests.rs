//! What timers do, told in slots: when they are late, when jobs run long, when somebody changes them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::schedule::{Bounds, Calendar, Jitter};

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// An instant of the first of January.
fn on(time: &str) -> Timestamp {
    at(&format!("2026-01-01T{time}Z"))
}

pub(super) fn new(schedule: &str, policies: Policies) -> NewTimer {
    NewTimer {
        name: Name::new("timer", "nightly").unwrap(),
        schedule: schedule.parse().unwrap(),
        job: TimerJob {
            kind: Kind::new("report").unwrap(),
            queue: QueueName::default(),
            args: Args::new(*b"{}").unwrap(),
            priority: Priority::default(),
            terms: Arc::default(),
        },
        policies,
        revision: 0,
    }
}

/// A timer, its jobs as a store has them, and the records of its slots.
struct Rig {
    timer: Timer,
    unfinished: Vec<JobId>,
    ended: BTreeMap<JobId, Timestamp>,
    records: Vec<SlotRecord>,
    cancelled: Vec<JobId>,
}

impl Rig {
    fn with(schedule: &str, policies: Policies, now: Timestamp) -> Self {
        let timer = Timer::accepted(new(schedule, policies), now);
        let (unfinished, ended) = (Vec::new(), BTreeMap::new());
        Self { timer, unfinished, ended, records: Vec::new(), cancelled: Vec::new() }
    }

    fn every_minute(policies: Policies) -> Self {
        Self::with("0 * * * * *", policies, on("00:00:00"))
    }

    /// What a store tells: of the jobs that the row names, and of no others.
    fn open(&self) -> Open {
        let named = || self.timer.open.iter();
        Open {
            unfinished: named().filter(|id| self.unfinished.contains(id)).copied().collect(),
            ended: named().filter_map(|id| self.ended.get(id)).max().copied(),
        }
    }

    /// Writes what was decided; answers how many jobs that brought.
    fn take(&mut self, firing: Firing) -> usize {
        let brought = firing.jobs.len();
        self.unfinished.extend(firing.jobs.iter().map(|job| job.id));
        self.cancelled.extend(firing.cancel);
        self.records.extend(firing.records);
        self.timer = firing.timer;
        assert_eq!(self.timer.open, self.unfinished);
        brought
    }

    fn fire(&mut self, now: Timestamp) -> usize {
        self.take(fire(&self.timer, &self.open(), now))
    }

    fn end_first(&mut self, now: Timestamp) {
        let first = self.unfinished.remove(0);
        self.ended.insert(first, now);
    }

    fn end_all(&mut self, now: Timestamp) {
        while !self.unfinished.is_empty() {
            self.end_first(now);
        }
    }

    /// The slots and what became of them, such as `00:01 ran`.
    fn told(&self) -> Vec<String> {
        let time = |at: Timestamp| at.to_string()[11..19].to_owned();
        let fate = |record: &SlotRecord| match &record.fate {
            Fate::Ran { .. } => "ran".to_owned(),
            Fate::Coalesced { into } => {
                assert!(self.records.iter().any(|other| other.first == *into && other.job().is_some()));
                "coalesced".to_owned()
            }
            Fate::Skipped { why: Skipped::Busy { .. } } => "busy".to_owned(),
            Fate::Skipped { why } => format!("{why:?}").to_lowercase(),
        };
        let row = |record: &SlotRecord| {
            let until =
                if record.first == record.last { String::new() } else { format!("-{}", time(record.last)) };
            format!("{}{until} {}", time(record.first), fate(record))
        };
        self.records.iter().map(row).collect()
    }
}

#[test]
fn a_slot_has_one_job_and_one_record_however_often_somebody_looks() {
    let mut rig = Rig::every_minute(Policies::default());
    assert_eq!(rig.fire(on("00:00:59.999999")), 0);
    assert_eq!(rig.fire(on("00:01:00")), 1);
    rig.end_all(on("00:01:01"));
    assert_eq!(rig.fire(on("00:01:02")), 0);
    assert_eq!(rig.timer.next, Some(on("00:02:00")));
    assert_eq!(rig.told(), ["00:01:00 ran"]);
}

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
        "the clock was ahead once, so that it is silent until 2026-01-01T00:39:00.000000Z"
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
fn a_job_that_has_ended_is_no_reason_though_nobody_has_decided_a_slot_since() {
    let mut rig = Rig::with("0 0 * * * *", Policies::default(), on("00:00:00"));
    rig.fire(on("01:00:00"));
    let job = rig.unfinished[0];
    let told = |rig: &Rig| explain_timer(&rig.timer, &rig.open(), on("01:30:00"));
    let next = TimerReason::NotYet { slot: on("02:00:00"), wake: on("02:00:00") };
    assert_eq!(told(&rig), [next.clone(), TimerReason::Open { job, jobs: 1 }]);
    rig.end_all(on("01:00:01"));
    assert_eq!((told(&rig), &rig.timer.open), (vec![next], &vec![job]));
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
    assert!(over.to_string().contains("2026-01-01T00:00:01.000000Z`, which is over"), "{over}");
}

/// However often somebody has asked for a job since.
#[test]
fn a_timer_keeps_why_its_last_slot_was_skipped_until_one_is_not() {
    let mut rig = Rig::every_minute(Policies::default());
    rig.fire(on("00:01:00"));
    let job = rig.unfinished[0];
    rig.fire(on("00:02:00"));
    rig.end_all(on("00:02:01"));
    let id = JobId::new(on("00:02:02"), 1);
    rig.take(trigger(&rig.timer, &rig.open(), id, None, on("00:02:02")).unwrap());
    let why = Skipped::Busy { job };
    let reason = TimerReason::LastSkipped { slot: on("00:02:00"), why: why.clone() };
    assert!(explain_timer(&rig.timer, &rig.open(), on("00:02:03")).contains(&reason));
    rig.end_all(on("00:02:04"));
    rig.fire(on("00:03:00"));
    assert!(!explain_timer(&rig.timer, &rig.open(), on("00:03:01")).contains(&reason));
    assert_eq!(rig.timer.last_skip, Some((on("00:02:00"), why)));
}

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
    assert_eq!(told(&rig, "00:05:00"), ["its next slot is 2026-01-01T00:10:00.000000Z"]);
    rig.fire(on("00:10:00"));
    let job = rig.unfinished[0];
    let counted = format!("its next slot is counted from the end of job {job}");
    for (look, soon, late) in [("00:10:00", "00:10:01", "00:20:07"), ("00:20:10", "00:21:00", "00:21:17")] {
        rig.fire(on(look));
        assert_eq!(told(&rig, soon)[0], counted, "an instant at which it is looked for is no slot");
        let overdue =
            ", and nobody has looked for 7 s whether that has ended: no host that fires timers is at work";
        assert_eq!(told(&rig, late)[0], format!("{counted}{overdue}"));
    }
    rig.end_all(on("00:25:30"));
    rig.fire(on("00:26:10"));
    assert_eq!(told(&rig, "00:26:10"), ["its next slot is 2026-01-01T00:35:30.000000Z"]);
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

#[test]
fn a_schedule_that_waits_for_years_costs_one_answer() {
    let each_second = Policies {
        catch_up: CatchUp::All { most: 1_000 },
        overlap: Overlap::QueueAll,
        ..Policies::default()
    };
    let mut rig = Rig::with("* * * * * *", each_second, at("2026-01-01T00:00:00Z"));
    assert_eq!(rig.fire(at("2036-01-01T00:00:00Z")), 1_000);
    assert_eq!(rig.records[0].count, None);
    assert_eq!(rig.timer.next, Some(at("2036-01-01T00:00:01Z")));
}

#[test]
fn the_jobs_of_a_timer_take_no_terms_that_its_slots_decide() {
    let field = |terms: Terms, overlap| {
        let mut timer = new("0 * * * * *", Policies { overlap, ..Policies::default() });
        timer.job.terms = Arc::new(terms);
        timer.check().map_err(|invalid| invalid.field)
    };
    let ordering = Some(OrderingKey { key: Key::new("ordering_key", "a").unwrap(), head: Head::Block });
    let ordered = Terms { ordering, ..Terms::default() };
    assert_eq!(field(ordered.clone(), Overlap::Skip), Err("job.ordering_key".to_owned()));
    assert_eq!(field(ordered, Overlap::Allow { most: 1 }), Ok(()));
    assert_eq!(field(Terms::default(), Overlap::QueueAll), Ok(()));
    let limit = Some(LimitKey { key: Key::new("limit_key", "smtp").unwrap(), most: Some(50) });
    let limited = Terms { limit, ..Terms::default() };
    assert_eq!(field(limited.clone(), Overlap::Allow { most: 2 }), Err("job.limit_key".to_owned()));
    assert_eq!(field(limited, Overlap::Skip), Ok(()));
}
