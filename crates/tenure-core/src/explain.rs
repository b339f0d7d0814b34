//! Why a job is not running: the first question that anybody asks of a queue.

mod words;

use serde::{Deserialize, Serialize};

use crate::{
    AtWork, Block, End, Epoch, Failure, Gates, HostId, Job, JobId, Key, Kind, Meter, QueueName, Room,
    Serving, State, Timestamp, Why, lapse,
};

/// The one predicate of the claim: whether a job may be reserved now by somebody who serves it.
///
/// # Errors
/// Answers what stands against it.
pub fn claimable(state: &State, paused: bool, now: Timestamp) -> Result<(), Hindrance> {
    match state {
        State::Finished { end, at } => Err(Hindrance::Finished { end: *end, at: *at }),
        State::Blocked { on, .. } => Err(Hindrance::Blocked { on: *on }),
        State::Running { holder, until, .. } if *until > now => {
            Err(Hindrance::Running { holder: *holder, until: *until })
        }
        State::Running { .. } | State::Waiting { .. } if paused => Err(Hindrance::Paused),
        State::Waiting { due, why } if *due > now => Err(Hindrance::NotDue { due: *due, why: *why }),
        State::Running { .. } | State::Waiting { .. } => Ok(()),
    }
}

/// What stands against reserving a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hindrance {
    /// It has ended.
    Finished {
        /// How.
        end: End,
        /// When.
        at: Timestamp,
    },
    /// It runs.
    Running {
        /// Who has it.
        holder: HostId,
        /// Until when.
        until: Timestamp,
    },
    /// It waits for something else than time.
    Blocked {
        /// What.
        on: Block,
    },
    /// Its queue is paused.
    Paused,
    /// Its time has not come.
    NotDue {
        /// When it will.
        due: Timestamp,
        /// What it waits for.
        why: Why,
    },
}

/// What a store knows about the surroundings of one job.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// The job.
    pub job: Job,
    /// Whether its queue is paused.
    pub paused: bool,
    /// The live hosts that serve its queue, by id.
    pub serving: Vec<Serving>,
    /// Jobs that run on those of them that serve its kind: those of its queue, then those of others,
    /// both oldest first; at most a page.
    pub running: Vec<AtWork>,
    /// Due jobs that come before it in its queue; counted up to a page.
    pub ahead: u32,
    /// The jobs that it has to wait for and that have not ended, as it named them.
    pub after: Vec<JobId>,
    /// The first job that it waited for and that ended badly or is gone, if the next turn cancels it for that.
    pub spoiled_by: Option<JobId>,
    /// Unfinished jobs that depend on it, oldest first; only if it has ended, and at most a page.
    pub needed_by: Vec<JobId>,
    /// Its place among the jobs of its ordering key, if it has one and has not ended.
    pub turn: Option<Ordered>,
    /// The limit of its limit key, if it has one.
    pub limit: Option<Limited>,
    /// The limit of its queue, and what the next turn would find it to be used for.
    pub queue: Meter,
}

/// A job's place among the jobs of its ordering key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ordered {
    /// Whose turn it is: perhaps its own. Nobody's while the first of them waits for other jobs.
    pub of: Option<JobId>,
    /// How many of them, that have not ended, were accepted before it; counted up to a page.
    pub ahead: u32,
}

/// A job's limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limited {
    /// The limit, and what the next turn would find it to be used for.
    pub meter: Meter,
    /// Jobs of the limit that run; at most a page, oldest first.
    pub running: Vec<JobId>,
    /// Due jobs of the limit, of its queue and kind, that come before it; counted up to a page.
    pub ahead: u32,
}

/// The one reason for which a job is in its current state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Reason {
    /// It has ended.
    Finished {
        /// How it ended.
        end: End,
        /// End time.
        at: Timestamp,
        /// Unfinished jobs that depend on it, for which it is kept; at most a page.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        needed_by: Vec<JobId>,
    },
    /// It is running.
    Running {
        /// The host.
        holder: HostId,
        /// Expiry of its lease, unless renewed.
        until: Timestamp,
        /// `true` if the host was asked to stop it.
        cancelling: bool,
    },
    /// Its host has lost it and no attempts are left; the next maintenance turn ends it.
    Ending {
        /// The host.
        holder: HostId,
        /// How it will end.
        end: End,
    },
    /// Its queue is paused.
    QueuePaused {
        /// The queue.
        queue: QueueName,
    },
    /// It is not due yet.
    DueLater {
        /// Due time.
        due: Timestamp,
        /// Reason for waiting.
        why: Why,
    },
    /// An attempt failed and it waits for the next one.
    BackingOff {
        /// Due time of the next attempt.
        due: Timestamp,
        /// Number of attempts so far.
        attempts: u32,
        /// The error.
        failure: Option<Failure>,
    },
    /// Jobs that it depends on have not ended.
    AfterJobs {
        /// These jobs; at most a page.
        jobs: Vec<JobId>,
    },
    /// A job that it depends on did not succeed; the next maintenance turn cancels it.
    Spoiled {
        /// That job.
        job: JobId,
    },
    /// Other jobs with the same ordering key are ahead of it.
    NotItsTurn {
        /// The ordering key.
        key: Key,
        /// The job whose turn it is.
        turn: Option<JobId>,
        /// Number of jobs ahead.
        ahead: u32,
    },
    /// Its limit is reached.
    LimitFull {
        /// The limit key; `None` for the limit of the queue.
        key: Option<Key>,
        /// The limit.
        most: u32,
        /// The running jobs, as far as known; at most a page.
        running: Vec<JobId>,
    },
    /// Its rate limit is reached.
    RateReached {
        /// The limit key; `None` for the limit of the queue.
        key: Option<Key>,
        /// Time of the next start.
        next: Timestamp,
    },
    /// Its limit has room, but other jobs are ahead of it.
    BehindInLimit {
        /// The limit key.
        key: Key,
        /// Number of jobs ahead.
        ahead: u32,
    },
    /// No live worker serves its queue.
    QueueNotServed {
        /// The queue.
        queue: QueueName,
    },
    /// Live workers serve its queue, but none has a handler for its kind.
    KindNotServed {
        /// The kind.
        kind: Kind,
        /// The kinds that have handlers.
        served: Vec<Kind>,
    },
    /// All slots of the live workers that have a handler are busy.
    SlotsFull {
        /// Number of slots.
        slots: u32,
        /// Number of slots that are busy with jobs of other queues.
        elsewhere: u32,
        /// The jobs in these slots; at most a page.
        running: Vec<JobId>,
        /// `true` if all of these jobs wait for other jobs, according to the workers' last heartbeats.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        waiting: bool,
    },
    /// The next free worker claims it.
    Next {
        /// Number of due jobs ahead of it in its queue.
        ahead: u32,
    },
}

/// Returns the one reason for which a job is in its current state, by the same rules as the claim.
#[must_use]
pub fn explain(standing: &Standing, now: Timestamp) -> Reason {
    let job = &standing.job;
    if let Some(ending) = ending(job, now) {
        return ending;
    }
    if let Some(job) = standing.spoiled_by {
        return Reason::Spoiled { job };
    }
    let state = settled(standing, now);
    match claimable(&state, standing.paused, now) {
        Err(Hindrance::Finished { end, at }) => {
            Reason::Finished { end, at, needed_by: standing.needed_by.clone() }
        }
        Err(Hindrance::Running { holder, until }) => {
            Reason::Running { holder, until, cancelling: job.cancel.is_some() }
        }
        Err(Hindrance::Blocked { on }) => blocked(standing, on, now),
        Err(Hindrance::Paused) => Reason::QueuePaused { queue: job.queue.clone() },
        Err(Hindrance::NotDue { due, why: Why::Retry }) => {
            Reason::BackingOff { due, attempts: job.attempt, failure: job.failure.clone() }
        }
        Err(Hindrance::NotDue { due, why }) => Reason::DueLater { due, why },
        Ok(()) => unclaimed(standing, now),
    }
}

/// The state of a blocked job as the next turn would find it: what blocked it may have gone.
fn settled(standing: &Standing, now: Timestamp) -> State {
    let State::Blocked { due, why, .. } = standing.job.state else { return standing.job.state };
    let gates = Gates {
        jobs_ended: standing.after.is_empty(),
        has_turn: standing
            .turn
            .is_none_or(|turn| turn.of.map_or(turn.ahead == 0, |of| of == standing.job.id)),
        has_room: standing.limit.as_ref().is_none_or(|limit| limit.meter.room(now) > limit.ahead),
    };
    gates.state(&standing.job.terms, due, why, now)
}

/// What a blocked job waits for, in particular.
fn blocked(standing: &Standing, on: Block, now: Timestamp) -> Reason {
    let terms = &standing.job.terms;
    let next = Reason::Next { ahead: standing.ahead };
    match on {
        Block::Jobs => Reason::AfterJobs { jobs: standing.after.clone() },
        Block::Order => terms.ordering.as_ref().zip(standing.turn).map_or(next, |(ordering, turn)| {
            Reason::NotItsTurn { key: ordering.key.clone(), turn: turn.of, ahead: turn.ahead }
        }),
        Block::Limit => terms.limit.as_ref().zip(standing.limit.as_ref()).map_or(next, |(limit, limited)| {
            let behind = Reason::BehindInLimit { key: limit.key.clone(), ahead: limited.ahead };
            no_room(Some(&limit.key), &limited.meter, &limited.running, now).unwrap_or(behind)
        }),
    }
}

/// Why a limit has no room, if it has none.
fn no_room(key: Option<&Key>, meter: &Meter, running: &[JobId], now: Timestamp) -> Option<Reason> {
    if let Some(most) = meter.limit.most.filter(|most| meter.running >= *most) {
        return Some(Reason::LimitFull { key: key.cloned(), most, running: running.to_vec() });
    }
    meter.next_room(now).map(|next| Reason::RateReached { key: key.cloned(), next })
}

/// What time alone makes of a running job, if that is its end. It is so in a paused queue, too.
fn ending(job: &Job, now: Timestamp) -> Option<Reason> {
    let State::Running { holder, .. } = job.state else { return None };
    let State::Finished { end, .. } = lapse(job, Epoch::default(), now)?.state else { return None };
    Some(Reason::Ending { holder, end })
}

/// Why a job that may be reserved has not been.
fn unclaimed(standing: &Standing, now: Timestamp) -> Reason {
    let job = &standing.job;
    if standing.serving.is_empty() {
        // Workers that claim without an id are not listed. A rate that is used up shows that the queue is served.
        let unserved = Reason::QueueNotServed { queue: job.queue.clone() };
        return match standing.queue.next_room(now) {
            Some(next) => Reason::RateReached { key: None, next },
            None => unserved,
        };
    }
    let covering: Vec<&Serving> = standing.serving.iter().filter(|host| host.covers(job)).collect();
    if covering.is_empty() {
        let serves = standing.serving.iter().flat_map(|host| &host.serves);
        let mut served: Vec<Kind> =
            serves.flat_map(|serves| serves.kinds.iter().flatten().cloned()).collect();
        served.sort();
        served.dedup();
        return Reason::KindNotServed { kind: job.kind.clone(), served };
    }
    let of_queue: Vec<JobId> =
        standing.running.iter().filter(|at_work| !at_work.elsewhere).map(|at_work| at_work.id).collect();
    if let Some(full) = no_room(None, &standing.queue, &of_queue, now) {
        return full;
    }
    slots_full(standing, &covering).unwrap_or(Reason::Next { ahead: standing.ahead })
}

/// Who has the slots of these hosts, if none of them has room for the job.
fn slots_full(standing: &Standing, covering: &[&Serving]) -> Option<Reason> {
    let (mut all, mut elsewhere) = (0_u32, 0_u32);
    for host in covering {
        match host.room(&standing.job) {
            Room::Free { .. } => return None,
            Room::QueueFull { slots } => all = all.saturating_add(slots),
            Room::HostFull { slots } => {
                all = all.saturating_add(slots);
                elsewhere = elsewhere.saturating_add(host.elsewhere.min(slots));
            }
        }
    }
    let stands_in_the_way = |at_work: &&AtWork| {
        covering.iter().any(|host| {
            host.host == at_work.holder
                && (!at_work.elsewhere || matches!(host.room(&standing.job), Room::HostFull { .. }))
        })
    };
    let running = standing.running.iter().filter(stands_in_the_way).map(|at_work| at_work.id).collect();
    let waiting = covering.iter().all(|host| host.is_all_waiting(&standing.job));
    Some(Reason::SlotsFull { slots: all, elsewhere, running, waiting })
}
