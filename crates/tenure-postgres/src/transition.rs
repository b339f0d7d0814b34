//! Writing a transition: the one way by which a job leaves a state, but for ordinary grants and ends.

use tenure_core::{AttemptEnd, End, Job, State, StateName, Timestamp, Transition, Unique, Window};
use tenure_store::{Fault, Values};

use crate::query::Query;
use crate::rows::{Kept, Stored};
use crate::sheet::Place;
use crate::writing::Writing;
use crate::{code, value};

impl Writing<'_> {
    /// Writes what a job becomes; answers the job then.
    pub(crate) async fn enter(&mut self, stored: Stored, transition: Transition) -> Result<Stored, Fault> {
        let was_finished = stored.job.state.is_finished();
        self.sheet.leaves_others(&stored);
        self.unindex(&stored).await?;
        match (transition.ended, stored.job.state) {
            (Some(AttemptEnd::Succeeded), _) => {}
            (Some(ended), _) => self.record(&stored.job, ended, transition.failure.as_ref(), self.now)?,
            // The attempt by which it succeeded, before its standing forgets it.
            (None, State::Finished { at, end: End::Succeeded }) => {
                self.record(&stored.job, AttemptEnd::Succeeded, None, at)?;
            }
            (None, _) => {}
        }
        let failure = transition.failure.clone();
        let Stored { job, lane, ties, .. } = stored;
        // A transition tells the result.
        let (job, values) = (job.after(transition), Values::Read);
        let mut stored = Stored { job, lane, begun: true, kept: Kept::Nowhere, ties, values };
        stored.ties.round = None;
        match stored.job.state {
            State::Waiting { .. } | State::Blocked { .. } => {
                if was_finished {
                    self.trouble_is_over(&stored);
                    self.is_done_again(&stored).await?;
                }
                self.stand(&mut stored).await?;
                self.news.due = true;
            }
            State::Running { .. } => self.sheet.count(lane, StateName::Running, 1),
            State::Finished { end, .. } => {
                self.end(&stored, end)?;
                self.no_more_waits(&stored, Some(end))?;
                self.news.due |= stored.ties.bounded && self.has_line(&stored).await?;
            }
        }
        self.sheet.standing(&stored);
        self.tell_became(&stored.job, stored.job.state.name(self.now), failure.as_ref());
        self.pass_on(&stored.job.terms).await?;
        Ok(stored)
    }

    /// Whether anything is in line in the queue of a job.
    async fn has_line(&mut self, stored: &Stored) -> Result<bool, Fault> {
        let look = "SELECT EXISTS (SELECT FROM lane l
             CROSS JOIN LATERAL (SELECT FROM ready WHERE lane = l.id LIMIT 1) r WHERE l.queue = $1)";
        let read = self.read(vec![Query::new(look).with(stored.job.queue.as_str().to_owned())]).await?;
        Ok(read.iter().flatten().next().is_some_and(|row| row.get(0)))
    }

    /// A job that had ended waits again.
    async fn is_done_again(&mut self, stored: &Stored) -> Result<(), Fault> {
        self.goes_on(stored)?;
        self.keep_for(&stored.job)?;
        if let Some(limit) = &stored.job.terms.limit {
            self.load_limits(std::slice::from_ref(&limit.key)).await?;
            self.limit(&limit.key).hear_again(limit.most);
        }
        Ok(())
    }

    fn end(&mut self, stored: &Stored, end: End) -> Result<(), Fault> {
        self.free_key_at_end(&stored.job)?;
        self.count_end(stored, end);
        Ok(())
    }

    /// Counts a job among those that have ended, and notes when it is to be looked at and where people find it.
    pub(crate) fn count_end(&mut self, stored: &Stored, end: End) {
        let (lane, seq) = (stored.lane, value::signed(stored.job.seq));
        self.sheet.count(lane, end.name(), 1);
        match end {
            End::Succeeded => {}
            End::Failed | End::Cancelled => self.sheet.trouble(lane, code::of_end(end), seq),
        }
    }

    fn trouble_is_over(&mut self, stored: &Stored) {
        for end in [End::Failed, End::Cancelled] {
            self.sheet.trouble_is_over(stored.lane, code::of_end(end), value::signed(stored.job.seq));
        }
    }

    /// Gives a waiting job its place and counts it there.
    pub(crate) fn place(&mut self, stored: &mut Stored, due: Timestamp) {
        let kept = if due <= self.now { Kept::InLine } else { Kept::InDiary };
        self.place_again(kept, stored, due);
        self.news.due = true;
    }

    /// Gives a waiting job a place as it had before it was changed: what no turn has found due waits on.
    pub(crate) fn place_again(&mut self, kept: Kept, stored: &mut Stored, due: Timestamp) {
        stored.kept = kept;
        let place = place_of(stored, due);
        match kept {
            Kept::InLine => {
                self.goes_into_line(place);
                self.sheet.count(stored.lane, StateName::Queued, 1);
            }
            Kept::InDiary => {
                self.sheet.joins_diary(place);
                self.sheet.count(stored.lane, StateName::Scheduled, 1);
            }
            Kept::Behind | Kept::InGrant | Kept::InReceipt | Kept::Nowhere => {}
        }
    }

    /// Gives a job its place in line, where no claim overlooks it.
    pub(crate) fn goes_into_line(&mut self, place: Place) {
        self.memory().marks().joined(place.lane, place.priority, Some(place.due));
        self.sheet.joins_line(place);
    }

    /// Takes a waiting job out of its place.
    pub(crate) fn unplace(&mut self, stored: &Stored, due: Timestamp) {
        let place = place_of(stored, due);
        match stored.kept {
            Kept::InLine => {
                self.sheet.leaves_line(place);
                self.sheet.count(stored.lane, StateName::Queued, -1);
            }
            Kept::InDiary => {
                self.sheet.leaves_diary(place);
                self.sheet.count(stored.lane, StateName::Scheduled, -1);
            }
            Kept::Behind => self.sheet.count(stored.lane, StateName::Blocked, -1),
            Kept::InGrant | Kept::InReceipt | Kept::Nowhere => {}
        }
    }

    /// Takes a job out of what it is counted as: its place if it waits.
    pub(crate) fn uncount(&mut self, stored: &Stored) {
        match stored.job.state {
            State::Waiting { due, .. } | State::Blocked { due, .. } => self.unplace(stored, due),
            State::Running { .. } => self.sheet.count(stored.lane, StateName::Running, -1),
            State::Finished { end, .. } => self.sheet.count(stored.lane, end.name(), -1),
        }
    }

    /// Frees the key of a job that has ended, unless it is held for a time.
    pub(crate) fn free_key_at_end(&mut self, job: &Job) -> Result<(), Fault> {
        match job.terms.unique {
            Some(Unique { window: Window::WhileUnfinished, .. }) => self.free_key(job),
            Some(Unique { window: Window::For(_), .. }) | None => Ok(()),
        }
    }

    /// Frees the key of a job, if it still holds it.
    pub(crate) fn free_key(&mut self, job: &Job) -> Result<(), Fault> {
        let Some(unique) = &job.terms.unique else { return Ok(()) };
        let free = "DELETE FROM unique_key WHERE key = $1 AND seq = $2";
        self.write(Query::new(free).with(unique.key.0.to_vec()).with(value::signed(job.seq)))
    }

    /// Removes jobs, which are counted nowhere any more, and all that is kept of them, but for unique keys.
    pub(crate) fn remove(&mut self, gone: &[Stored]) -> Result<(), Fault> {
        gone.iter().for_each(|stored| {
            self.trouble_is_over(stored);
            self.sheet.leaves_others(stored);
        });
        let seqs: Vec<i64> = gone.iter().map(|stored| value::signed(stored.job.seq)).collect();
        for sql in [
            "DELETE FROM standing WHERE seq = ANY ($1)",
            "DELETE FROM attempt WHERE seq = ANY ($1)",
            "DELETE FROM log WHERE seq = ANY ($1)",
        ] {
            self.write(Query::new(sql).with(seqs.clone()))?;
        }
        let ids: Vec<_> = gone.iter().map(|stored| value::of_job(stored.job.id)).collect();
        self.write(Query::new("DELETE FROM job WHERE id = ANY ($1)").with(ids))?;
        for stored in gone {
            for tag in &stored.job.terms.tags {
                let untag = Query::new("DELETE FROM tag WHERE tag = $1 AND seq = $2");
                self.write(untag.with(tag.as_str().to_owned()).with(value::signed(stored.job.seq)))?;
            }
        }
        Ok(())
    }
}

/// The place of a job in its lane's line, or in the diary.
pub(crate) fn place_of(stored: &Stored, due: Timestamp) -> Place {
    let Stored { job, lane, begun, ties, .. } = stored;
    let (priority, seq) = (value::of_priority(job.priority), value::signed(job.seq));
    Place {
        lane: *lane,
        priority,
        due: due.as_micros(),
        seq,
        begun: *begun,
        round: ties.round.unwrap_or(0),
        limited: job.terms.limit.is_some(),
        gated: stored.is_keyed(),
    }
}
