//! What holders do with what they hold, each under its own fence.

use std::time::Duration;

use tenure_core::{Job, Settlement, State, Timestamp};

use super::rows::Rows;
use super::step::Step;
use crate::{Held, Holds, Renewal, Report, Reported, Settled};

impl Rows {
    /// Extends one ownership, unless it has lapsed.
    pub fn renew(&mut self, held: &Held, ttl: Duration, now: Timestamp) -> Renewal {
        let by_fence = !cfg!(mutant = "renew-unfenced");
        let Some((job, until)) = self.owned(held, by_fence) else { return Renewal::Lost };
        if until <= now && !cfg!(mutant = "job-renewed-late") {
            return Renewal::Lapsed;
        }
        let cancel = job.cancel.clone();
        let until = now.after(ttl);
        self.write(held.seq, Step::Renewed(until), now);
        Renewal::Held(Holds { until, cancel })
    }

    /// Ends ownerships; each answer tells where its job stands when all of them are written.
    pub fn settle_all(&mut self, settlements: &[Settlement], now: Timestamp) -> Vec<Settled> {
        let mut settled: Vec<Settled> = settlements.iter().map(|one| self.settle(one, now)).collect();
        for (settled, settlement) in settled.iter_mut().zip(settlements) {
            if let Settled::Done(name) = settled
                && let Some(job) = self.job_at(settlement.seq(), settlement.id())
            {
                *name = job.state.name(now);
            }
        }
        settled
    }

    /// Ends one ownership. Until somebody has noticed that it lapsed, its holder may still do so.
    fn settle(&mut self, settlement: &Settlement, now: Timestamp) -> Settled {
        let Some(job) = self.job_at(settlement.seq(), settlement.id()) else { return Settled::Gone };
        if job.fence != settlement.fence() && !cfg!(mutant = "settle-unfenced") {
            return Settled::Fenced;
        }
        match job.state {
            State::Waiting { .. } | State::Blocked { .. } | State::Finished { .. } => Settled::Repeated,
            State::Running { .. } => {
                let asked = job.cancel.as_ref().map(|cancel| cancel.reason.as_str());
                let transition = settlement.resolve(now, asked);
                let name = transition.state.name(now);
                self.write(settlement.seq(), Step::Became(Box::new(transition)), now);
                Settled::Done(name)
            }
        }
    }

    /// Keeps what one running attempt tells.
    pub fn report(&mut self, report: Report, now: Timestamp) -> Reported {
        let by_fence = !cfg!(mutant = "report-unfenced");
        if self.owned(&report.held, by_fence).is_none() {
            return Reported::Fenced;
        }
        if let Some(row) = self.jobs.get_mut(&report.held.seq) {
            report.lines.into_iter().for_each(|line| row.lines.keep(line));
        }
        if let Some(progress) = report.progress {
            self.write(report.held.seq, Step::Progressed(progress), now);
        }
        Reported::Kept
    }

    /// The job of an ownership that is still the present one, and until when it is. `by_fence` is true,
    /// unless a bug is planted.
    fn owned(&self, held: &Held, by_fence: bool) -> Option<(&Job, Timestamp)> {
        let job = self.job_at(held.seq, held.id).filter(|job| !by_fence || job.fence == held.fence)?;
        match job.state {
            State::Running { until, .. } => Some((job, until)),
            State::Waiting { .. } | State::Blocked { .. } | State::Finished { .. } => None,
        }
    }
}
