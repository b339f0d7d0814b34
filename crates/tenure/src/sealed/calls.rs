//! The requests whose values are encrypted or decrypted on their way. All others pass as they are.

use tenure_core::{
    Attempt, Edit, HostId, Job, JobId, LogLine, Name, NewJob, NewTimer, Settlement, Standing, Timer, TimerJob,
};
use tenure_store::{
    Answer, Change, Changed, Encryption, Enqueued, Fault, Page, PageAsk, Refusal, Reply, Report, Reported,
    Request, Reservation, Reserve, Selection, TimerAct, TimerEdit, TimerEdited, TimerPage, TimerSeen,
    TimerSet, TimersAsk, Turn, replied,
};

use super::claims::open_claim;
use super::{SealedStore, search};

impl SealedStore {
    #[allow(clippy::wildcard_enum_match_arm, reason = "no other request has an encrypted value")]
    pub(super) fn perform(&self, request: Request) -> Answer<'_, Reply> {
        match request {
            Request::Enqueue { batch } => replied(self.enqueue(batch), Reply::Enqueue),
            Request::Reserve { ask } => replied(self.reserve(ask), Reply::Reserve),
            Request::Settle { settlements, then } => replied(self.settle(settlements, then), Reply::Settle),
            Request::Report { reports } => replied(self.report(reports), Reply::Report),
            Request::Change { change, selection } => replied(self.change(change, selection), Reply::Change),
            Request::SetTimers { timers, starts } => {
                replied(self.set_timers(timers, starts), Reply::SetTimers)
            }
            Request::EditTimer { name, seen, edit } => {
                replied(self.edit_timer(&name, seen, edit), Reply::EditTimer)
            }
            Request::Timer { name } => replied(self.timer(&name), Reply::Timer),
            Request::Timers { ask } => replied(self.timers(ask), Reply::Timers),
            Request::Job { id } => replied(self.job(id), Reply::Job),
            Request::Jobs { ask } => replied(self.jobs(ask), Reply::Jobs),
            Request::Attempts { id } => replied(self.attempts(id), Reply::Attempts),
            Request::Logs { id, behind, at_most } => replied(self.logs(id, behind, at_most), Reply::Logs),
            Request::Standing { id } => replied(self.standing(id), Reply::Standing),
            told @ (Request::Tend {} | Request::Fire { .. }) => Box::pin(self.told(self.inner.call(told))),
            other => self.inner.call(other),
        }
    }

    fn enqueue(&self, batch: Vec<NewJob>) -> Answer<'_, Enqueued> {
        if !self.vault.seals() {
            return self.inner.enqueue(batch);
        }
        Box::pin(async move {
            let mut sealed = self.vault.seal_jobs(&batch)?;
            let answer = self.told(self.inner.enqueue(sealed.clone())).await?;
            let Enqueued::Refused { index, refusal: Refusal::IdTaken(_) } = answer else { return Ok(answer) };
            // A repeated job may be stored under another key or plain: enqueue it again with its stored bytes.
            for (sealed, new) in sealed.iter_mut().zip(&batch).skip(index) {
                self.as_stored(sealed, new).await?;
            }
            self.told(self.inner.enqueue(sealed)).await
        })
    }

    fn reserve(&self, ask: Reserve) -> Answer<'_, Reservation> {
        Box::pin(async move {
            let claim = self.inner.reserve(ask).await?;
            self.told(Box::pin(open_claim((&self.inner, &self.vault), claim))).await
        })
    }

    fn settle(&self, settlements: Vec<Settlement>, then: Option<Reserve>) -> Answer<'_, Turn> {
        Box::pin(async move {
            let sealed = match self.vault.seals() {
                true => settlements
                    .into_iter()
                    .map(|settlement| self.vault.seal_settlement(settlement))
                    .collect::<Result<_, _>>()?,
                false => settlements,
            };
            let turn = self.inner.settle(sealed, then).await?;
            let opening = open_claim((&self.inner, &self.vault), turn.reservation);
            let reservation = self.told(Box::pin(opening)).await?;
            Ok(Turn { reservation, ..turn })
        })
    }

    fn report(&self, reports: Vec<Report>) -> Answer<'_, Vec<Reported>> {
        Box::pin(async move {
            let sealed = reports.into_iter().map(|report| self.vault.seal_report(report));
            self.told(self.inner.report(sealed.collect::<Result<_, _>>()?)).await
        })
    }

    fn change(&self, change: Change, selection: Selection) -> Answer<'_, Changed> {
        Box::pin(async move {
            if let Selection::Matching { filter, .. } = &selection {
                self.check_filter(filter).map_err(|wrong| search::fault(&wrong))?;
            }
            let change = match change {
                Change::Edit(edit) => Change::Edit(Box::new(self.seen_as_stored(*edit).await?)),
                other @ (Change::Cancel { .. }
                | Change::Redo
                | Change::Delete
                | Change::Move(_)
                | Change::Reprioritise(_)
                | Change::Reschedule(_)) => other,
            };
            self.told(self.inner.change(change, selection)).await
        })
    }

    fn set_timers(&self, timers: Vec<NewTimer>, starts: Option<HostId>) -> Answer<'_, Vec<TimerSet>> {
        Box::pin(async move {
            let mut sealed = Vec::with_capacity(timers.len());
            for timer in timers {
                sealed.push(self.seal_timer(timer).await?);
            }
            self.told(self.inner.set_timers(sealed, starts)).await
        })
    }

    fn edit_timer(&self, name: &Name, seen: TimerSeen, edit: TimerEdit) -> Answer<'_, TimerEdited> {
        let name = name.clone();
        Box::pin(async move {
            let edit = match edit {
                TimerEdit::Set(new) => TimerEdit::Set(Box::new(self.seal_timer(*new).await?)),
                TimerEdit::Act(act) => TimerEdit::Act(self.seal_act(act)?),
            };
            self.told(self.inner.edit_timer(&name, seen, edit)).await
        })
    }

    fn timer(&self, name: &Name) -> Answer<'_, Option<Timer>> {
        let timer = self.inner.timer(name);
        Box::pin(async move { Ok(timer.await?.map(|timer| self.vault.open_timer(timer))) })
    }

    fn timers(&self, ask: TimersAsk) -> Answer<'_, TimerPage> {
        Box::pin(async move {
            let page = self.inner.timers(ask).await?;
            let timers = page.timers.into_iter().map(|timer| self.vault.open_timer(timer)).collect();
            Ok(TimerPage { timers, ..page })
        })
    }

    fn job(&self, id: JobId) -> Answer<'_, Option<Job>> {
        Box::pin(async move { Ok(self.inner.job(id).await?.map(|job| self.vault.open_job(job).job)) })
    }

    fn jobs(&self, ask: PageAsk) -> Answer<'_, Page> {
        Box::pin(async move {
            self.check_filter(&ask.filter).map_err(|wrong| search::fault(&wrong))?;
            let page = self.inner.jobs(ask).await?;
            let jobs = page.jobs.into_iter().map(|job| self.vault.open_job(job).job).collect();
            Ok(Page { jobs, ..page })
        })
    }

    fn attempts(&self, id: JobId) -> Answer<'_, Vec<Attempt>> {
        Box::pin(async move {
            let attempts = self.inner.attempts(id).await?;
            Ok(attempts.into_iter().map(|attempt| self.vault.open_attempt(&id, attempt)).collect())
        })
    }

    fn logs(&self, id: JobId, behind: (u32, u32), at_most: usize) -> Answer<'_, Vec<LogLine>> {
        Box::pin(async move {
            let lines = self.inner.logs(id, behind, at_most).await?;
            Ok(lines.into_iter().map(|line| self.vault.open_line(&id, line)).collect())
        })
    }

    fn standing(&self, id: JobId) -> Answer<'_, Option<Standing>> {
        Box::pin(async move {
            let standing = self.inner.standing(id).await?;
            Ok(standing.map(|standing| Standing { job: self.vault.open_job(standing.job).job, ..standing }))
        })
    }
}

impl SealedStore {
    /// Replaces the args of a repeated job with the stored bytes, if both are the same args.
    pub(super) async fn as_stored(&self, sealed: &mut NewJob, new: &NewJob) -> Result<(), Fault> {
        let Some(stored) = self.inner.job(new.id).await? else { return Ok(()) };
        let args = stored.args.clone();
        if new.repeats(&self.vault.open_job(stored).job) {
            sealed.args = args;
        }
        Ok(())
    }

    /// Replaces the job that the caller has seen with the same job as it is stored, so that the store can compare them.
    async fn seen_as_stored(&self, mut edit: Edit) -> Result<Edit, Fault> {
        let Some(seen) = &edit.seen else { return Ok(edit) };
        let Some(stored) = self.inner.job(seen.id).await? else { return Ok(edit) };
        if !edit.comes_too_late(&self.vault.open_job(stored.clone()).job) {
            edit.seen = Some(Box::new(stored));
        }
        Ok(edit)
    }

    /// Encrypts the args of a schedule, unless the same args are stored: setting it again changes nothing.
    async fn seal_timer(&self, new: NewTimer) -> Result<NewTimer, Fault> {
        let Some(stored) = self.inner.timer(&new.name).await? else { return self.vault.seal_timer(new) };
        let args = stored.agreed.job.args.clone();
        if self.vault.open_timer(stored).agreed.job.args != new.job.args {
            return self.vault.seal_timer(new);
        }
        Ok(NewTimer { job: TimerJob { args, ..new.job }, ..new })
    }

    fn seal_act(&self, act: TimerAct) -> Result<TimerAct, Fault> {
        match act {
            TimerAct::Trigger { id, args, owner } => {
                let args = args.map(|args| self.vault.seal_args(&id, args)).transpose()?;
                Ok(TimerAct::Trigger { id, args, owner })
            }
            other @ (TimerAct::Pause { .. }
            | TimerAct::Resume
            | TimerAct::Backfill { .. }
            | TimerAct::Remove) => Ok(other),
        }
    }
}
