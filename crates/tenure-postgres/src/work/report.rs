//! Keeping what running attempts tell.

use std::collections::BTreeMap;

use tenure_core::{LogLine, limits};
use tenure_store::{Fault, Happening, Held, Report, Reported};

use super::renew::{self, Current};
use crate::link::Link;
use crate::query::Query;
use crate::transaction::Gate;
use crate::value;
use crate::writing::Writing;

/// The last line of each log, and how many there are. Numbers start at 1, so there are at most as many as the last one's
/// number says: they are counted only if it matters.
const LAST_LINES: &str = "SELECT u.seq, u.delivery, l.last,
         CASE WHEN l.last + u.more <= $4 THEN l.last
             ELSE (SELECT count(*)::int FROM log WHERE seq = u.seq AND delivery = u.delivery) END
     FROM unnest($1::bigint[], $2::int[], $3::int[]) u (seq, delivery, more) CROSS JOIN LATERAL (
         SELECT coalesce(max(number), 0) AS last FROM log WHERE seq = u.seq AND delivery = u.delivery) l";
const KEEP: &str = "INSERT INTO log (seq, delivery, number, at, line)
     SELECT * FROM unnest($1::bigint[], $2::int[], $3::int[], $4::bigint[], $5::text[])";
const PROGRESS: &str = "UPDATE standing SET progress = $2 WHERE seq = $1";

/// How far a log has come.
#[derive(Clone, Copy, Default)]
struct Log {
    last: u32,
    /// How many lines are kept.
    kept: u32,
}

/// Keeps each report whose fence is the running one.
pub(super) async fn report(link: &mut Link, reports: &[Report]) -> Result<Vec<Reported>, Fault> {
    let mut tries = 0;
    loop {
        let tried = try_report(link, reports).await;
        if tried.is_ok() || !link.may_try_again(&mut tries).await {
            return tried;
        }
    }
}

async fn try_report(link: &mut Link, reports: &[Report]) -> Result<Vec<Reported>, Fault> {
    let held: Vec<Held> = reports.iter().map(|report| report.held).collect();
    let mut more: BTreeMap<(i64, i32), i32> = BTreeMap::new();
    for report in reports {
        for line in &report.lines {
            *more.entry((value::signed(report.held.seq), value::small(line.delivery))).or_default() += 1;
        }
    }
    let (seqs, deliveries): (Vec<i64>, Vec<i32>) = more.keys().copied().unzip();
    let last_lines = Query::new(LAST_LINES)
        .with(seqs)
        .with(deliveries)
        .with(more.into_values().collect::<Vec<_>>())
        .with(value::small(limits::LOG_LINES));
    let reads = renew::current(&held).into_iter().chain([last_lines]).collect();
    let (mut writing, mut read) = Writing::begin(link, Gate::Open, reads).await?;
    let logs = read.pop().unwrap_or_default();
    let current = Current::read(&held, &read)?;
    let mut known: BTreeMap<(i64, u32), Log> = BTreeMap::new();
    for row in &logs {
        let log = Log { last: value::number(row.get(2))?, kept: value::number(row.get(3))? };
        known.insert((row.get(0), value::number(row.get(1))?), log);
    }
    let mut reported = Vec::with_capacity(reports.len());
    let mut alone: Vec<Held> = Vec::new();
    for (nth, report) in reports.iter().enumerate() {
        let Some(current) = current.get(&nth) else {
            reported.push(Reported::Fenced);
            continue;
        };
        // Progress has its place in a standing.
        if report.progress.is_some()
            && !alone.contains(&report.held)
            && writing.stands_alone(current, current.until)
        {
            alone.push(report.held);
        }
        writing.keep(current.lane, report, &mut known)?;
        reported.push(Reported::Kept);
    }
    writing.commit().await?;
    renew::note_alone(link, &alone);
    Ok(reported)
}

impl Writing<'_> {
    fn keep(
        &mut self,
        lane: i32,
        report: &Report,
        known: &mut BTreeMap<(i64, u32), Log>,
    ) -> Result<(), Fault> {
        let (seq, id) = (value::signed(report.held.seq), report.held.id);
        if let Some(progress) = &report.progress {
            self.write(Query::new(PROGRESS).with(seq).with(value::to_json(progress)?))?;
            let (fraction, message) = (progress.fraction, progress.message.clone());
            let lane = self.memory().lanes().get(lane).cloned();
            if let Ok(lane) = lane {
                let happening = || Happening::Progressed { fraction, message };
                self.news.note(self.now, id, (&lane.queue, &lane.kind), happening);
            }
        }
        let mut kept: Vec<(u32, &LogLine)> = Vec::new();
        for line in &report.lines {
            let log = known.entry((seq, line.delivery)).or_default();
            let number = line.number_behind(log.last).filter(|_| log.kept < limits::LOG_LINES);
            if let Some(number) = number {
                *log = Log { last: number, kept: log.kept + 1 };
                kept.push((number, line));
            }
        }
        if kept.is_empty() {
            return Ok(());
        }
        let query = Query::new(KEEP)
            .with(vec![seq; kept.len()])
            .with(kept.iter().map(|(_, line)| value::small(line.delivery)).collect::<Vec<_>>())
            .with(kept.iter().map(|(number, _)| value::small(*number)).collect::<Vec<_>>())
            .with(kept.iter().map(|(_, line)| line.at.as_micros()).collect::<Vec<_>>())
            .with(kept.iter().map(|(_, line)| line.text.clone()).collect::<Vec<_>>());
        self.write(query)
    }
}
