//! Why a job is not running: the first question that anybody asks of a queue.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{
    AtWork, Block, End, Failure, Gates, HostId, Job, JobId, Key, Kind, Meter, QueueName, Room, Serving,
    State, Timestamp, Why, invalid, lapse, limits,
};

/// Longest part of a failure's message that a reason repeats, in bytes.
const SHOWN_BYTES: usize = 200;
/// Most jobs or kinds that a reason lists by name.
const SHOWN_NAMES: usize = 5;

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

/// The one reason why a job is where it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Reason {
    /// It has ended; nothing is left to do.
    Finished {
        /// How.
        end: End,
        /// When.
        at: Timestamp,
    },
    /// It is running.
    Running {
        /// Who has it.
        holder: HostId,
        /// Until when, unless renewed.
        until: Timestamp,
        /// Whether its holder has been asked to stop.
        cancelling: bool,
    },
    /// Its holder has lost it and it may not be tried again: the next turn ends it.
    Ending {
        /// Who had it.
        holder: HostId,
        /// How it will end.
        end: End,
    },
    /// Its queue is paused.
    QueuePaused {
        /// The queue.
        queue: QueueName,
    },
    /// Its time has not come.
    DueLater {
        /// When it will.
        due: Timestamp,
        /// What it waits for.
        why: Why,
    },
    /// It failed and waits for its next attempt.
    BackingOff {
        /// When that is.
        due: Timestamp,
        /// Attempts so far.
        attempts: u32,
        /// What went wrong.
        failure: Option<Failure>,
    },
    /// Jobs that it waits for have not ended.
    AfterJobs {
        /// They; at most a page.
        jobs: Vec<JobId>,
    },
    /// A job that it waited for ended badly or is gone: the next turn cancels it.
    Spoiled {
        /// That job.
        job: JobId,
    },
    /// Jobs of its ordering key come before it.
    NotItsTurn {
        /// The key.
        key: Key,
        /// Whose turn it is.
        turn: Option<JobId>,
        /// How many come before it.
        ahead: u32,
    },
    /// As many jobs of its limit run as may.
    LimitFull {
        /// The limit key; the queue's own limit if `None`.
        key: Option<Key>,
        /// How many may.
        most: u32,
        /// The jobs that run, as far as they are known; at most a page.
        running: Vec<JobId>,
    },
    /// As many jobs of its limit have started as may in the time.
    RateReached {
        /// The limit key; the queue's own limit if `None`.
        key: Option<Key>,
        /// When the next may start.
        next: Timestamp,
    },
    /// Its limit has room, but not for all that come before it.
    BehindInLimit {
        /// The limit key.
        key: Key,
        /// How many come before it.
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
        /// The kinds that are served there.
        served: Vec<Kind>,
    },
    /// Every slot is taken of the live workers that have a handler for it.
    SlotsFull {
        /// How many there are.
        slots: u32,
        /// How many of them jobs of other queues have, where the workers' slots in all are short.
        elsewhere: u32,
        /// The jobs that have them; at most a page.
        running: Vec<JobId>,
    },
    /// Nothing stands against it: it is reserved with the next turn of a worker.
    Next {
        /// Due jobs before it in its queue.
        ahead: u32,
    },
}

/// Names the one reason why a job is where it is, by the same predicate as the claim.
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
        Err(Hindrance::Finished { end, at }) => Reason::Finished { end, at },
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
    let State::Finished { end, .. } = lapse(job, job.fence.epoch(), now)?.state else { return None };
    Some(Reason::Ending { holder, end })
}

/// Why a job that may be reserved has not been.
fn unclaimed(standing: &Standing, now: Timestamp) -> Reason {
    let job = &standing.job;
    if standing.serving.is_empty() {
        return Reason::QueueNotServed { queue: job.queue.clone() };
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
    Some(Reason::SlotsFull { slots: all, elsewhere, running })
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finished { end, at } => write!(f, "it has {} at {at}", end_words(*end)),
            Self::Running { holder, until, cancelling: false } => {
                write!(f, "it is running on host {holder}, which holds it until {until}")
            }
            Self::Running { holder, .. } => {
                write!(f, "it is running on host {holder}, which has been asked to stop")
            }
            Self::Ending { holder, end: End::Cancelled } => {
                write!(
                    f,
                    "host {holder} was asked to stop it and never said that it did; the next turn ends it"
                )
            }
            Self::Ending { holder, end: End::Failed | End::Succeeded } => {
                write!(f, "host {holder} fell silent and its attempts are spent; the next turn ends it")
            }
            Self::QueuePaused { queue } => write!(f, "queue {queue} is paused"),
            Self::DueLater { due, why } => write!(f, "it is due at {due} ({})", why_words(*why)),
            Self::BackingOff { due, attempts, failure } => {
                write!(f, "attempt {attempts} failed and the next is due at {due}")?;
                failure.as_ref().map_or(Ok(()), |failure| write!(f, ": {}", first_line(failure)))
            }
            Self::AfterJobs { jobs } => write!(f, "it waits for {} to end", list(jobs)),
            Self::Spoiled { job } => {
                write!(f, "job {job}, for which it waited, did not succeed; the next turn cancels it")
            }
            Self::NotItsTurn { key, turn: Some(turn), ahead: 0 | 1 } => {
                write!(f, "job {turn} of its ordering key {key} comes first")
            }
            Self::NotItsTurn { key, turn: Some(turn), ahead } => {
                let many = counted(*ahead);
                write!(f, "job {turn} of its ordering key {key} comes first; {many} in all come before it")
            }
            Self::NotItsTurn { key, turn: None, ahead: 1 } => {
                write!(f, "1 job of its ordering key {key} comes before it")
            }
            Self::NotItsTurn { key, turn: None, ahead } => {
                write!(f, "{} jobs of its ordering key {key} come before it", counted(*ahead))
            }
            Self::LimitFull { key, most: 1, running } => {
                write!(f, "{} lets one run at once, and one does", limit_words(key.as_ref()))?;
                f.write_str(&told(running))
            }
            Self::LimitFull { key, most, running } => {
                write!(f, "{} lets {most} run at once, and they do", limit_words(key.as_ref()))?;
                f.write_str(&told(running))
            }
            Self::RateReached { key, next } => {
                write!(f, "{} lets the next start at {next}", limit_words(key.as_ref()))
            }
            Self::BehindInLimit { key, ahead: 1 } => {
                write!(f, "{} has room, but 1 comes before it", limit_words(Some(key)))
            }
            Self::BehindInLimit { key, ahead } => {
                write!(f, "{} has room, but {} come before it", limit_words(Some(key)), counted(*ahead))
            }
            Self::QueueNotServed { queue } => write!(f, "no live worker serves queue {queue}"),
            Self::KindNotServed { kind, served } => {
                write!(f, "no live worker has a handler for kind {kind}; ")?;
                if served.is_empty() {
                    return f.write_str("no kind at all is served in its queue");
                }
                write!(f, "the kinds served in its queue are: {}", list(served))
            }
            Self::SlotsFull { slots: 0, .. } => f.write_str("the workers of its queue have no slots"),
            Self::SlotsFull { slots: 1, elsewhere: 0, running } => {
                write!(f, "the one slot of its queue is taken by {}", list(running))
            }
            Self::SlotsFull { slots, elsewhere: 0, running } => {
                write!(f, "all {slots} slots of its queue are taken by {}", list(running))
            }
            Self::SlotsFull { slots: 1, running, .. } => {
                write!(f, "the one slot of its worker is taken by a job of another queue: {}", list(running))
            }
            Self::SlotsFull { slots, elsewhere, running } if elsewhere == slots => {
                write!(
                    f,
                    "all {slots} slots of its workers are taken by jobs of other queues: {}",
                    list(running)
                )
            }
            Self::SlotsFull { slots, elsewhere, running } => {
                write!(
                    f,
                    "all {slots} slots of its workers are taken, {elsewhere} by jobs of other queues: {}",
                    list(running)
                )
            }
            Self::Next { ahead: 0 } => f.write_str("it is next in line"),
            Self::Next { ahead: 1 } => f.write_str("it waits in line behind 1 job"),
            Self::Next { ahead } => {
                let or_more = if is_page(*ahead) { " or more" } else { "" };
                write!(f, "it waits in line behind {ahead} jobs{or_more}")
            }
        }
    }
}

/// The start of a failure, so that a reason stays one sentence on one line.
fn first_line(failure: &Failure) -> String {
    let whole = failure.to_string();
    let mut lines = whole.lines();
    let first = invalid::cut(lines.next().unwrap_or_default(), SHOWN_BYTES);
    if lines.next().is_some() { format!("{first} …") } else { first }
}

/// The first few, and how many more there are.
fn list(names: &[impl fmt::Display]) -> String {
    let shown: Vec<String> = names.iter().take(SHOWN_NAMES).map(ToString::to_string).collect();
    let more = names.len() - shown.len();
    let shown = shown.join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

/// What follows a sentence that can do without it.
fn told(jobs: &[JobId]) -> String {
    if jobs.is_empty() { String::new() } else { format!(": {}", list(jobs)) }
}

/// A number that was counted up to a page.
fn counted(number: u32) -> String {
    let or_more = if is_page(number) { " or more" } else { "" };
    format!("{number}{or_more}")
}

fn is_page(number: u32) -> bool {
    number as usize >= limits::PAGE_JOBS
}

fn limit_words(key: Option<&Key>) -> String {
    key.map_or_else(|| "the limit of its queue".to_owned(), |key| format!("its limit {key}"))
}

fn end_words(end: End) -> &'static str {
    match end {
        End::Succeeded => "succeeded",
        End::Failed => "failed",
        End::Cancelled => "been cancelled",
    }
}

fn why_words(why: Why) -> &'static str {
    match why {
        Why::Enqueued => "enqueued for later",
        Why::Retry => "waiting to be tried again",
        Why::Snoozed => "snoozed by its handler",
        Why::Released => "given back by its holder",
        Why::Lost => "its holder fell silent",
        Why::Asked => "asked to be done again",
    }
}
