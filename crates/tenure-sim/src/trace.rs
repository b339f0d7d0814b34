//! The trace: what happened, line by line. The same seed gives the same bytes.

use std::collections::VecDeque;
use std::fmt;

use tenure_core::{LeaseAct, LeaseOutcome, LeaseRefusal};
use tenure_store::Accepted;

use crate::history::{Entry, Leased, Timed, TimerDoing, What, Who};

/// Lines that are kept to explain a failure.
const TAIL: usize = 60;

/// The lines of a run: all of them, or the last ones and a digest of all.
#[derive(Debug)]
pub(crate) struct Trace {
    whole: bool,
    lines: VecDeque<String>,
    digest: u64,
}

impl Trace {
    pub(crate) fn new(whole: bool) -> Self {
        Self { whole, lines: VecDeque::new(), digest: 0xcbf2_9ce4_8422_2325 }
    }

    pub(crate) fn push(&mut self, line: String) {
        // FNV-1a: any difference in any line shows, and it is the same on every machine.
        for byte in line.bytes() {
            self.digest = (self.digest ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        if !self.whole && self.lines.len() == TAIL {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    pub(crate) fn digest(&self) -> u64 {
        self.digest
    }

    pub(crate) fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines).into()
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::World => f.write_str("world"),
            Self::Host { number, life } => write!(f, "h{number}.{life}"),
        }
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>12.6} {:<6} {}", self.at.as_secs_f64(), self.who.to_string(), self.what)
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asks { ask, id } => {
                write!(f, "asks for job {ask}{}", if id.is_some() { " under an id of its own" } else { "" })
            }
            Self::Told { ask, accepted } => write!(f, "was told of job {ask}: {}", word(*accepted)),
            Self::Waited { row } => write!(f, "was told that #{} has ended: {:?}", row.seq, row.end()),
            Self::Stored { ask, seq, accepted, .. } => {
                write!(f, "store: job {ask} is #{}: {}", seq.unwrap_or(0), word(*accepted))
            }
            Self::Refused(refusal) => write!(f, "store: refused a batch: {refusal:?}"),
            Self::Granted(grant) => write!(
                f,
                "store: granted #{} fence {} attempt {}/{} delivery {} until {}",
                grant.seq, grant.fence, grant.attempt, grant.max_attempts, grant.delivery, grant.until
            ),
            Self::Renewed { seq, fence, answer } => {
                write!(f, "store: renewal of #{seq} fence {fence}: {answer:?}")
            }
            Self::Settled { seq, fence, next, answer, .. } => {
                write!(f, "store: settlement of #{seq} fence {fence}, {next:?}: {answer:?}")
            }
            Self::Reported { seq, fence, kept } => {
                write!(f, "store: report of #{seq} fence {fence}: {}", if *kept { "kept" } else { "fenced" })
            }
            Self::Changed { id, change, outcome } => write!(f, "store: {change:?} of {id}: {outcome:?}"),
            Self::Paused { queue, paused } => write!(f, "store: queue {queue} paused: {paused}"),
            Self::LimitSet { key, limit } => write!(f, "store: limit {key} is {limit:?}"),
            Self::QueueLimitSet { queue, limit } => write!(f, "store: queue {queue} is limited to {limit:?}"),
            Self::Pruned(jobs) => write!(f, "store: pruned {jobs}"),
            Self::Leased(leased) => write!(f, "store: {leased}"),
            Self::Timed(timed) => write!(f, "store: {timed}"),
            Self::Triggers(timer, _) => write!(f, "asks for a job of timer {timer}"),
            Self::Ledger(entries) => write!(f, "ledger: {} more", entries.len()),
            Self::Effect { name, fence, taken, .. } => {
                let word = if *taken { "taken" } else { "refused" };
                write!(f, "writes to what {name} guards under fence {fence}: {word}")
            }
            Self::Row(row) => write!(f, "store has #{}: {:?} fence {}", row.seq, row.state, row.fence),
            Self::Beside(rows) => write!(f, "store has {} jobs beside", rows.len()),
            Self::Audit { rows, .. } => write!(f, "store has {} jobs", rows.len()),
            Self::Began { seq, fence, .. } => write!(f, "handler of #{seq} fence {fence} began"),
            Self::Believes { seq, fence } => {
                write!(f, "handler of #{seq} fence {fence} believes that it holds it")
            }
            Self::KnowsLost { seq, fence } => {
                write!(f, "handler of #{seq} fence {fence} knows that it lost it")
            }
            Self::Writes { name, fence, seqs, before } => {
                write!(
                    f,
                    "writer {name} fence {fence} writes {seqs:?}, before which {before:?} have not ended"
                )
            }
            Self::Work { name, fence, stands } => write!(f, "work under {name} fence {fence}: {stands:?}"),
            Self::Left { seq, fence, done, .. } => {
                write!(f, "handler of #{seq} fence {fence} {}", if *done { "ended" } else { "was dropped" })
            }
            Self::Called(call) => write!(f, "calls {call}"),
            Self::Faulted(call) => write!(f, "got a fault from {call}"),
            Self::Trouble { why, begins } => {
                write!(f, "{} {why:?}", if *begins { "begins:" } else { "is over:" })
            }
            Self::StoreStepped(by_us) => write!(f, "the store's clock steps by {by_us} µs"),
            Self::StopAsked { within } => write!(f, "is told to stop within {within:?}"),
            Self::Stopped { well } => write!(f, "worker ended{}", if *well { "" } else { " with an error" }),
            Self::Healed => f.write_str("all is healed"),
            Self::Over { unfinished, waited, held } => {
                write!(f, "over; not finished: {unfinished:?}, waited for: {waited:?}, held: {held:?}")
            }
        }
    }
}

impl fmt::Display for Leased {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match &self.act {
            LeaseAct::Acquire { id, ttl, wait, .. } => {
                write!(f, "{name} wanted by {} for {ttl:?}, waiting {wait:?}: ", short(id))?;
            }
            LeaseAct::Renew { id, fence, late } => {
                write!(f, "{name} renewed by {} fence {fence}, late {late:?}: ", short(id))?;
            }
            LeaseAct::Change { id, fence, to } => {
                write!(f, "{name} changed by {} fence {fence} to {}: ", short(id), short(to))?;
            }
            LeaseAct::Release { id, fence } => write!(f, "{name} released by {} fence {fence}: ", short(id))?,
            LeaseAct::Break { within, .. } => write!(f, "{name} broken within {within:?}: ")?,
            LeaseAct::Leave { id } => write!(f, "{name} left by {}: ", short(id))?,
            LeaseAct::Forget { .. } => write!(f, "{name} forgotten: ")?,
        }
        match &self.outcome {
            LeaseOutcome::Refused(LeaseRefusal::Held { fence, until, waiting, .. }) => {
                write!(f, "refused, held under fence {fence} until {until:?}, {waiting} waiting")
            }
            outcome => write!(f, "{outcome:?}"),
        }
    }
}

/// Enough of an id to know it again.
fn short(id: &tenure_core::LeaseId) -> String {
    id.to_string().chars().take(8).collect()
}

fn word(accepted: Accepted) -> String {
    match accepted {
        Accepted::New(_) => "new".into(),
        Accepted::Repeated(_) => "repeated".into(),
        Accepted::Existing(id) => format!("{id} is there"),
        Accepted::Replaced { old, .. } => format!("in place of {old}"),
    }
}

impl fmt::Display for Timed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.doing {
            TimerDoing::Fires => f.write_str("fired")?,
            TimerDoing::Sets { timers, starts } => {
                f.write_str(if *starts { "declared" } else { "set" })?;
                for (timer, set) in timers {
                    write!(
                        f,
                        " {} to {} v{} {:?}: {set:?};",
                        timer.name, timer.schedule, timer.revision, timer.policies
                    )?;
                }
            }
            TimerDoing::Changes { name, act, outcome } => write!(f, "{act:?} of {name}: {outcome:?}")?,
            TimerDoing::Looks { timers, .. } => write!(f, "has {} timers", timers.len())?,
        }
        for seen in &self.slots {
            let record = &seen.record;
            write!(f, "; {} {:?} {}", record.timer, record.origin, record.first)?;
            if record.last != record.first {
                write!(f, " to {}", record.last)?;
            }
            write!(f, ": {:?}", record.fate)?;
            if let Some(job) = &seen.job {
                write!(f, " #{}", job.seq)?;
            }
        }
        Ok(())
    }
}
