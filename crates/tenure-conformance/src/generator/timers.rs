//! Drawing what happens to a handful of timers.

use std::sync::Arc;

use tenure_core::schedule::{Bounds, Jitter, Schedule};
use tenure_core::{
    Args, CatchUp, HostId, Name, NewTimer, OnEdit, Overlap, Policies, Terms, TimerJob, Timestamp, limits,
};

use super::super::given::{kind, priority, seconds};
use super::super::operation::Operation;
use super::Generator;
use tenure_store::TimerAct;

const NAMES: [&str; 5] = ["daily-mail", "dial", "dial.2", "fax-all", "x"];

/// Short ones, so that a history of minutes meets their slots; two of them have the same slots now and then.
const SCHEDULES: [&str; 8] = [
    "every 5s",
    "every 10s",
    "*/7 * * * * *",
    "*/10 * * * * *",
    "10,11,12 * * * * *",
    "every 1h",
    "delay 8s",
    "at 2026-01-01T00:01:40Z",
];

impl Generator {
    /// Whether the next operation is one on timers.
    pub(super) fn is_about_timers(&self) -> bool {
        self.timers.is_some() && self.below(5) < 2
    }

    pub(super) fn about_timers(&mut self, now: Timestamp) -> Operation {
        if self.put_back && self.one_in(20) {
            let span = self.span(3_600);
            return if self.one_in(2) { Operation::Pass(span) } else { Operation::PutBack(span) };
        }
        match self.below(20) {
            0..5 => {
                let timers = (0..=self.below(2)).map(|_| self.timer(now)).collect();
                // Of the same start once more now and then: its reply was lost.
                let host = HostId::new(now.before(seconds(self.below(3) as u64)), self.below(4) as u64);
                Operation::SetTimers(timers, self.one_in(3).then_some(host))
            }
            5..13 => Operation::Fire(self.of(&[1, 2, 3, limits::FIRE_TIMERS, usize::MAX])),
            19 => Operation::PruneSlots(now.before(self.span(100))),
            _ => Operation::ChangeTimer(self.timer_name(), self.act(now)),
        }
    }

    fn timer_name(&self) -> Name {
        Name::new("timer", self.of(&NAMES)).unwrap()
    }

    /// A timer, or one that was set before.
    fn timer(&mut self, now: Timestamp) -> NewTimer {
        let known = self.timers.take().unwrap_or_default();
        let timer = match self.one_in(3) && !known.is_empty() {
            true => self.of(&known),
            false => self.new_timer(now),
        };
        self.timers = Some(known.into_iter().chain([timer.clone()]).collect());
        timer
    }

    fn new_timer(&self, now: Timestamp) -> NewTimer {
        let policies = self.policies();
        NewTimer {
            name: self.timer_name(),
            schedule: self.schedule(now),
            job: TimerJob {
                kind: kind(self.kind_name()),
                queue: self.queue(),
                args: Args::new(format!("{{\"to\":{}}}", self.below(3)).into_bytes()).unwrap(),
                priority: priority(self.of(&[-5, 0, 0, 0, 5])),
                terms: Arc::new(self.terms_of_timer(policies.overlap)),
            },
            policies,
            revision: self.of(&[0, 0, 1, u64::MAX]) / (1 + self.below(2) as u64),
        }
    }

    fn schedule(&self, now: Timestamp) -> Schedule {
        let schedule: Schedule = self.of(&SCHEDULES).parse().unwrap();
        let bounds = Bounds {
            starts_at: self.one_in(6).then(|| now.before(self.span(30))),
            ends_at: self.one_in(6).then(|| now.after(self.span(90))),
            most_runs: self.one_in(4).then(|| 1 + self.below(3) as u64),
        };
        // One that would never fire goes without bounds.
        let schedule = schedule.clone().within(bounds).unwrap_or(schedule);
        match self.one_in(4) {
            true => schedule.with_jitter(Jitter::within(self.span(6)).unwrap()),
            false => schedule,
        }
    }

    fn terms_of_timer(&self, overlap: Overlap) -> Terms {
        // A unique key and jobs to wait for are refused before a store sees them; so is an ordering key or a limit key,
        // but for some.
        let terms = Terms { unique: None, after: None, ordering: None, ..self.terms() };
        let limit = terms.limit.clone().filter(|_| overlap.at_once().is_none());
        Terms { limit, ..terms }
    }

    fn policies(&self) -> Policies {
        let most = 1 + self.below(3) as u32;
        Policies {
            catch_up: self.of(&[CatchUp::Skip, CatchUp::One, CatchUp::All { most }]),
            max_lateness: self.one_in(4).then(|| self.span(60)),
            overlap: self.of(&[
                Overlap::Skip,
                Overlap::QueueOne,
                Overlap::QueueAll,
                Overlap::CancelPrevious,
                Overlap::Allow { most },
            ]),
            on_edit: self.of(&[OnEdit::Keep, OnEdit::Drop]),
            run_on_start: self.one_in(3),
        }
    }

    fn act(&mut self, now: Timestamp) -> TimerAct {
        match self.below(12) {
            0..2 => TimerAct::Pause { reason: "not now".to_owned() },
            2..5 => TimerAct::Resume,
            5..8 => {
                let args = self.one_in(2).then(|| Args::new(*b"[8]").unwrap());
                TimerAct::Trigger { id: self.known(now), args, owner: None }
            }
            8..11 => {
                let (from, to) = (now.before(self.span(50)), now.after(seconds(5)));
                TimerAct::Backfill { from, to, again: self.one_in(3) }
            }
            _ => TimerAct::Remove,
        }
    }
}
