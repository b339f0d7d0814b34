//! Moving stored values to the current key, and counting values by key.

use tenure_core::{Invalid, Job, Name, NewTimer, Timer, TimerJob, limits};
use tenure_store::{
    Answer, Cursor, Encryption, Fault, Filter, KeyCounts, KeyCursor, Order, Page, PageAsk, Rewrite, Rotated,
    Store, StoredValue, TimerEdit, TimerEdited, TimerSeen, TimersAsk,
};

use super::envelope::Shut;
use super::vault::key_of;
use super::{SealedStore, search};

/// Jobs of one page: their args and outputs are in memory together.
const JOBS: usize = 100;
const TIMERS: usize = 100;
/// Log lines that are read together.
const LINES: usize = limits::REWRITES;

/// The reason for which a value is not moved to the current key.
#[derive(thiserror::Error, Debug)]
enum Stuck {
    #[error("{0}")]
    Shut(Shut),
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl From<Shut> for Stuck {
    fn from(shut: Shut) -> Self {
        Self::Shut(shut)
    }
}

impl Encryption for SealedStore {
    fn beneath(&self) -> &dyn Store {
        &*self.inner
    }

    fn key_names(&self) -> Vec<String> {
        self.vault.keys.ids().map(str::to_owned).collect()
    }

    fn check_filter(&self, filter: &Filter) -> Result<(), Invalid> {
        if self.vault.seals() { search::check(filter) } else { Ok(()) }
    }

    fn rotate_jobs(&self, after: Option<Cursor>) -> Answer<'_, Rotated<Cursor>> {
        Box::pin(async move {
            let ask = PageAsk { order: Order::OldestFirst, after, at_most: JOBS, ..PageAsk::default() };
            let Page { jobs, next, .. } = self.inner.jobs(ask).await?;
            let mut rotated = Rotated { looked_at: 0, encrypted: 0, skipped: 0, next };
            for job in jobs {
                rotated.looked_at += 1;
                self.rotate_values(&job, self.values_of(&job).await?, &mut rotated).await?;
                let mut behind = Some((0, 0)).filter(|_| job.delivery > 0);
                while let Some(last) = behind {
                    let (lines, next) = self.lines_of(&job, last).await?;
                    self.rotate_values(&job, lines, &mut rotated).await?;
                    behind = next;
                }
            }
            Ok(rotated)
        })
    }

    fn rotate_timers(&self, behind: Option<Name>) -> Answer<'_, Rotated<Name>> {
        Box::pin(async move {
            let ask = TimersAsk { behind, at_most: TIMERS, ..TimersAsk::default() };
            let page = self.inner.timers(ask).await?;
            let mut rotated = Rotated { looked_at: 0, encrypted: 0, skipped: 0, next: page.next };
            if page.timers.iter().any(|timer| timer.next.is_some_and(|next| next <= page.now)) {
                // Fire due runs before the schedule is replaced.
                self.inner.fire(limits::FIRE_TIMERS).await?;
            }
            for timer in page.timers {
                rotated.looked_at += 1;
                self.rotate_timer(timer, &mut rotated).await?;
            }
            Ok(rotated)
        })
    }

    fn count_keys(&self, after: Option<KeyCursor>) -> Answer<'_, KeyCounts> {
        Box::pin(async move {
            let mut counts = KeyCounts::default();
            let (behind, after) = match after {
                None => (Some(None), None),
                Some(KeyCursor::Schedules(name)) => (Some(Some(name)), None),
                Some(KeyCursor::Jobs(cursor)) => (None, Some(cursor)),
            };
            if let Some(behind) = behind {
                let ask = TimersAsk { behind, at_most: TIMERS, ..TimersAsk::default() };
                let page = self.inner.timers(ask).await?;
                for timer in page.timers {
                    counts.schedules += 1;
                    count(&mut counts, timer.agreed.job.args.as_bytes());
                }
                if page.next.is_some() {
                    return Ok(KeyCounts { next: page.next.map(KeyCursor::Schedules), ..counts });
                }
            }
            let ask = PageAsk { after, at_most: JOBS, ..PageAsk::default() };
            let Page { jobs, next, .. } = self.inner.jobs(ask).await?;
            counts.next = next.map(KeyCursor::Jobs);
            for job in jobs {
                counts.jobs += 1;
                self.values_of(&job).await?.iter().for_each(|value| count(&mut counts, stored(value)));
                let mut behind = Some((0, 0)).filter(|_| job.delivery > 0);
                while let Some(last) = behind {
                    let (lines, next) = self.lines_of(&job, last).await?;
                    lines.iter().for_each(|line| count(&mut counts, stored(line)));
                    behind = next;
                }
            }
            Ok(counts)
        })
    }
}

impl SealedStore {
    /// Returns the values of a job as they are stored, except its log lines.
    async fn values_of(&self, job: &Job) -> Result<Vec<StoredValue>, Fault> {
        let args = Some(StoredValue::Args { from: job.args.clone(), to: job.args.clone() });
        let output = job.output.clone().map(|from| StoredValue::Output { to: from.clone(), from });
        let failure = job.failure.clone().map(|from| StoredValue::Failure { to: from.clone(), from });
        let progress = job.progress.clone().map(|from| StoredValue::Progress { to: from.clone(), from });
        let attempts = if job.delivery > 0 { self.inner.attempts(job.id).await? } else { Vec::new() };
        let of_attempt =
            attempts.into_iter().filter(|attempt| attempt.ended.is_some()).filter_map(|attempt| {
                let (delivery, from) = (attempt.delivery, attempt.failure?);
                Some(StoredValue::AttemptFailure { delivery, to: from.clone(), from })
            });
        Ok([args, output, failure, progress].into_iter().flatten().chain(of_attempt).collect())
    }

    /// Returns log lines of a job as they are stored, and the last one if there may be more.
    async fn lines_of(
        &self,
        job: &Job,
        behind: (u32, u32),
    ) -> Result<(Vec<StoredValue>, Option<(u32, u32)>), Fault> {
        let lines = self.inner.logs(job.id, behind, LINES).await?;
        let next = lines.last().map(|line| (line.delivery, line.number)).filter(|_| lines.len() >= LINES);
        let of_line = lines.into_iter().map(|line| StoredValue::Line {
            delivery: line.delivery,
            number: line.number,
            to: line.text.clone(),
            from: line.text,
        });
        Ok((of_line.collect(), next))
    }

    async fn rotate_values<P>(
        &self,
        job: &Job,
        values: Vec<StoredValue>,
        rotated: &mut Rotated<P>,
    ) -> Result<(), Fault> {
        let mut rewrites = Vec::with_capacity(values.len());
        for value in values.into_iter().filter(|value| self.is_old(value)) {
            match self.with_current_key(job, value) {
                Ok(value) => rewrites.push(Rewrite { id: job.id, seq: job.seq, value }),
                Err(Stuck::Shut(_)) => rotated.skipped += 1,
                Err(Stuck::Fault(fault)) => return Err(fault),
            }
        }
        for some in rewrites.chunks(limits::REWRITES) {
            let done = self.inner.rewrite(some.to_vec()).await?;
            let encrypted = done.iter().filter(|done| **done).count();
            rotated.encrypted += encrypted as u64;
            // A value that has changed since may be under an older key of its writer.
            rotated.skipped += (done.len() - encrypted) as u64;
        }
        Ok(())
    }

    /// Returns `true` if a value is not encrypted with the current key. Empty text stays empty.
    fn is_old(&self, value: &StoredValue) -> bool {
        let stored = stored(value);
        !stored.is_empty() && key_of(stored).as_deref() != self.vault.keys.current()
    }

    fn with_current_key(&self, job: &Job, value: StoredValue) -> Result<StoredValue, Stuck> {
        let (vault, id) = (&self.vault, &job.id);
        Ok(match value {
            StoredValue::Args { from, .. } => {
                let plain = vault.args(job).unwrap_or_else(|| Ok(from.clone()))?;
                StoredValue::Args { to: vault.seal_args(id, plain)?, from }
            }
            StoredValue::Output { from, .. } => {
                let plain = vault.output(id, &from).unwrap_or_else(|| Ok(from.clone()))?;
                StoredValue::Output { to: vault.seal_output(id, plain)?, from }
            }
            StoredValue::Failure { from, .. } => {
                let plain = vault.failure(id, &from).unwrap_or_else(|| Ok(from.clone()))?;
                StoredValue::Failure { to: vault.seal_failure(id, plain)?, from }
            }
            StoredValue::AttemptFailure { delivery, from, .. } => {
                let plain = vault.failure(id, &from).unwrap_or_else(|| Ok(from.clone()))?;
                StoredValue::AttemptFailure { delivery, to: vault.seal_failure(id, plain)?, from }
            }
            StoredValue::Progress { from, .. } => {
                let plain = vault.progress(id, &from).unwrap_or_else(|| Ok(from.clone()))?;
                StoredValue::Progress { to: vault.seal_progress(id, plain)?, from }
            }
            StoredValue::Line { delivery, number, from, .. } => {
                let plain = vault.line(id, &from).unwrap_or_else(|| Ok(from.clone()))?;
                StoredValue::Line { delivery, number, to: vault.seal_line_text(id, plain)?, from }
            }
        })
    }

    async fn rotate_timer(&self, timer: Timer, rotated: &mut Rotated<Name>) -> Result<(), Fault> {
        if key_of(timer.agreed.job.args.as_bytes()).as_deref() == self.vault.keys.current() {
            return Ok(());
        }
        let stored = timer.agreed.job.args.clone();
        let Ok(args) = self.vault.timer(&timer).unwrap_or(Ok(stored)) else {
            rotated.skipped += 1;
            return Ok(());
        };
        let seen = TimerSeen::of(&timer);
        let agreed = NewTimer::clone(&timer.agreed);
        let plain = NewTimer { job: TimerJob { args, ..agreed.job }, ..agreed };
        let set = TimerEdit::Set(Box::new(self.vault.seal_timer(plain)?));
        match self.inner.edit_timer(timer.name(), seen, set).await? {
            TimerEdited::Set(_) => rotated.encrypted += 1,
            // Another program has changed it meanwhile, perhaps with an older key.
            TimerEdited::Acted(_) | TimerEdited::Otherwise => rotated.skipped += 1,
        }
        Ok(())
    }
}

/// Returns the stored form of a value.
fn stored(value: &StoredValue) -> &[u8] {
    match value {
        StoredValue::Args { from, .. } => from.as_bytes(),
        StoredValue::Output { from, .. } if from.value.is_empty() => {
            from.place.as_deref().unwrap_or_default().as_bytes()
        }
        StoredValue::Output { from, .. } => &from.value,
        StoredValue::Failure { from, .. } | StoredValue::AttemptFailure { from, .. } => {
            from.message.as_bytes()
        }
        StoredValue::Progress { from, .. } => from.message.as_bytes(),
        StoredValue::Line { from, .. } => from.as_bytes(),
    }
}

fn count(counts: &mut KeyCounts, stored: &[u8]) {
    match key_of(stored) {
        _ if stored.is_empty() => {}
        Some(key) => *counts.by_key.entry(key).or_default() += 1,
        None => counts.plain += 1,
    }
}
