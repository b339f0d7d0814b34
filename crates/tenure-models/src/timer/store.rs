//! The store of a timer: it asks `tenure-core` what follows. Bugs bend what is asked, or what is answered.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{
    Args, Edited, Fate, Firing, Invalid, JobId, Kind, Name, NewTimer, Open, Origin, Pause, Policies,
    Priority, QueueName, Refused, SlotRecord, Timer, TimerJob, TimerSlot, Timestamp, edit, fire, pause,
    resume, start, trigger,
};

use super::Bug;
use super::setting::{SLOTS, Setting};
use super::state::{JOBS, Row, State, Thought};

/// The minutes of a model begin at a full hour.
const BEGIN: Duration = Duration::from_secs(1_800_000);
const MINUTE: Duration = Duration::from_secs(60);
/// The number of the job that somebody asks for.
pub const ASKED_FOR: usize = SLOTS;

/// The store.
#[derive(Debug, Clone)]
pub struct Store {
    pub(super) setting: Setting,
    /// What programs of the first and of the second version declare.
    agreed: [Arc<NewTimer>; 2],
    /// The jobs by their numbers.
    ids: [JobId; JOBS],
    /// How many of its jobs the key lets run at once.
    pub(super) at_once: usize,
}

impl Store {
    /// The store of a model.
    ///
    /// # Errors
    /// None: the names are within the limits.
    pub fn new(setting: Setting) -> Result<Self, Invalid> {
        let agreed = [declared(&setting, "0 * * * * *", 1)?, declared(&setting, "0 */2 * * * *", 2)?];
        let name = &agreed[0].name;
        let ids = std::array::from_fn(|number| match number {
            ASKED_FOR => JobId::of_slot(name, at(0), Origin::Trigger),
            number => JobId::of_slot(name, at(minute_of(number)), Origin::Schedule),
        });
        let at_once = if setting.has(Bug::NoOrderingKey) { JOBS } else { at_once(&agreed[0]) };
        Ok(Self { setting, agreed: agreed.map(Arc::new), ids, at_once })
    }

    /// The timer has just been set.
    #[must_use]
    pub fn first(&self) -> State {
        let timer = Timer::accepted(NewTimer::clone(&self.agreed[0]), at(0));
        State {
            clock: 0,
            row: self.row(&timer),
            records: [None; SLOTS],
            jobs: [None; JOBS],
            second_from: None,
            thought: None,
            broken: None,
        }
    }

    /// What whoever fires reads.
    #[must_use]
    pub fn read(&self, state: &State) -> Thought {
        let runs_only = self.setting.has(Bug::CountsRunsOnly);
        let counted = |number: &usize| {
            state.jobs[*number].is_some_and(|job| if runs_only { job.is_running() } else { job.is_open() })
        };
        let unfinished = (0..JOBS).filter(counted).fold(0, |bits, number| bits | 1 << number);
        Thought { clock: state.clock, row: state.row, unfinished }
    }

    /// A host fires.
    #[must_use]
    pub fn fire(&self, read: &Thought) -> Firing {
        let (timer, now) = (self.timer(read.row), at(read.clock));
        let mut firing = fire(&timer, &self.open(read), now);
        self.bend(&mut firing, read);
        firing
    }

    fn bend(&self, firing: &mut Firing, read: &Thought) {
        let coalesced = |record: &SlotRecord| matches!(record.fate, Fate::Coalesced { .. });
        match self.setting.bug {
            Some(Bug::SlotIsNow) if !firing.jobs.is_empty() => self.slot_is_now(firing, read),
            Some(Bug::GivesUp) if read.row.next.is_some_and(|next| next + 2 <= read.clock) => {
                *firing = Firing { timer: Timer { next: None, ..self.timer(read.row) }, ..nothing(firing) };
            }
            Some(Bug::CoalescesTheLast) if firing.records.iter().any(coalesced) => {
                let into = at(read.clock).after(MINUTE);
                firing.records.iter_mut().for_each(|record| record.fate = Fate::Coalesced { into });
                firing.jobs.clear();
            }
            Some(Bug::CancelsNobody) => firing.cancel.clear(),
            Some(_) | None => {}
        }
    }

    fn slot_is_now(&self, firing: &mut Firing, read: &Thought) {
        let now = at(read.clock);
        let timer = firing.timer.name().clone();
        let slot = TimerSlot {
            timer: timer.clone(),
            at: now,
            fired: now,
            origin: Origin::Schedule,
            past_due: false,
        };
        let job = firing.timer.agreed.job_for(&slot);
        let fate = Fate::Ran { job: job.id };
        firing.timer.next = firing.timer.agreed.schedule.next_after(now);
        firing.timer.decided = Some(now);
        firing.records = vec![SlotRecord::of_one(&timer, now, Origin::Schedule, fate, now)];
        firing.jobs = vec![job];
    }

    /// A program of this version declares the timer; `None` if a later version has.
    #[must_use]
    pub fn declare(&self, state: &State, is_second: bool) -> Option<Firing> {
        let read = self.read(state);
        let (timer, now) = (self.timer(state.row), at(state.clock));
        let mut new = NewTimer::clone(&self.agreed[usize::from(is_second)]);
        let is_other = is_second != state.row.is_second;
        match self.setting.bug {
            Some(Bug::StartsFromNow) if !is_other => {
                let accepted = Timer::accepted(new, now);
                return Some(Firing { timer: accepted, ..nothing(&fire(&timer, &self.open(&read), at(0))) });
            }
            Some(Bug::EditForgetsThePassed) if is_other && is_second => {
                let timer = Timer { next: new.schedule.next_after(now), agreed: Arc::new(new), ..timer };
                return Some(Firing {
                    timer,
                    ..nothing(&fire(&self.timer(state.row), &Open::default(), at(0)))
                });
            }
            Some(Bug::OldProgramWins) if is_other => new.revision = u64::MAX,
            Some(_) | None => {}
        }
        match edit(&timer, &self.open(&read), new, now) {
            Edited::Same => Some(start(&timer, &self.open(&read), now, now)),
            Edited::Outdated { .. } => None,
            Edited::Changed(firing) => Some(*firing),
        }
    }

    /// Somebody pauses it.
    #[must_use]
    pub fn pause(&self, state: &State) -> Firing {
        pause(&self.timer(state.row), &self.open(&self.read(state)), "", at(state.clock))
    }

    /// Somebody lets it go on.
    #[must_use]
    pub fn resume(&self, state: &State) -> Firing {
        let timer = self.timer(state.row);
        if self.setting.has(Bug::ResumeForgetsThePause) {
            let next = timer.agreed.schedule.next_after(at(state.clock));
            let timer = Timer { next, paused: None, ..timer };
            return Firing { timer, records: Vec::new(), jobs: Vec::new(), cancel: Vec::new() };
        }
        resume(&timer, &self.open(&self.read(state)), at(state.clock))
    }

    /// Somebody asks for a job.
    ///
    /// # Errors
    /// There is no room for it.
    pub fn trigger(&self, state: &State) -> Result<Firing, Refused> {
        let open = self.open(&self.read(state));
        trigger(&self.timer(state.row), &open, self.ids[ASKED_FOR], None, at(state.clock))
    }

    /// The number of a job.
    #[must_use]
    pub fn number(&self, id: JobId) -> Option<usize> {
        self.ids.iter().position(|other| *other == id)
    }

    /// The row of a timer.
    #[must_use]
    pub fn row(&self, timer: &Timer) -> Row {
        Row {
            next: timer.next.map(minute),
            decided: timer.decided.map(minute),
            open: timer.open.iter().filter_map(|id| self.number(*id)).fold(0, |bits, job| bits | 1 << job),
            is_paused: timer.paused.is_some(),
            is_second: timer.agreed.schedule == self.agreed[1].schedule,
        }
    }

    fn timer(&self, row: Row) -> Timer {
        let paused = Pause { since: at(0), reason: String::new() };
        Timer {
            agreed: Arc::clone(&self.agreed[usize::from(row.is_second)]),
            version: 1,
            created: at(0),
            changed: at(0),
            next: row.next.map(at),
            decided: row.decided.map(at),
            fired: None,
            lateness: None,
            runs: 0,
            last_skip: None,
            open: self.jobs_of(row.open),
            paused: row.is_paused.then_some(paused),
        }
    }

    /// What the store knows of the jobs that the row has open.
    fn open(&self, read: &Thought) -> Open {
        Open { unfinished: self.jobs_of(read.row.open & read.unfinished), ended: None }
    }

    fn jobs_of(&self, bits: u8) -> Vec<JobId> {
        self.ids
            .iter()
            .enumerate()
            .filter(|(number, _)| bits & (1 << number) != 0)
            .map(|(_, id)| *id)
            .collect()
    }
}

fn declared(setting: &Setting, schedule: &str, revision: u64) -> Result<NewTimer, Invalid> {
    let forgets = setting.has(Bug::ForgetsLateness);
    let max_lateness = setting.policies.max_lateness.filter(|_| !forgets);
    Ok(NewTimer {
        name: Name::new("timer", "timer")?,
        schedule: schedule.parse()?,
        job: TimerJob {
            kind: Kind::new("job")?,
            queue: QueueName::default(),
            args: Args::new(*b"{}")?,
            priority: Priority::default(),
            terms: Arc::default(),
        },
        policies: Policies { max_lateness, ..setting.policies },
        revision,
    })
}

/// How many jobs of a timer the keys of its jobs let run at once.
fn at_once(agreed: &NewTimer) -> usize {
    let slot = TimerSlot {
        timer: agreed.name.clone(),
        at: at(1),
        fired: at(1),
        origin: Origin::Schedule,
        past_due: false,
    };
    let terms = &agreed.job_for(&slot).terms;
    let most = terms.limit.as_ref().and_then(|limit| limit.most).map(usize::try_from);
    match (&terms.ordering, most) {
        (Some(_), _) => 1,
        (None, Some(Ok(most))) => most,
        (None, Some(Err(_)) | None) => JOBS,
    }
}

/// The same without anything to be written.
fn nothing(firing: &Firing) -> Firing {
    Firing { timer: firing.timer.clone(), records: Vec::new(), jobs: Vec::new(), cancel: Vec::new() }
}

fn minute_of(number: usize) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX).saturating_add(1)
}

/// The instant of a minute.
fn at(minute: u8) -> Timestamp {
    Timestamp::EPOCH.after(BEGIN + MINUTE * u32::from(minute))
}

/// The minute of an instant.
pub fn minute(at: Timestamp) -> u8 {
    let minutes = at.since(Timestamp::EPOCH.after(BEGIN)).as_secs() / MINUTE.as_secs();
    u8::try_from(minutes).unwrap_or(u8::MAX)
}
