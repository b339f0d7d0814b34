//! Keeping what running attempts tell.

use rusqlite::{OptionalExtension, Result, params};
use tenure_core::{LogLine, limits};
use tenure_store::{Happening, Report, Reported};

use crate::value;
use crate::writing::Writing;

const TOLD_BY: &str = "SELECT s.lane FROM job j CROSS JOIN standing s ON s.seq = j.seq
     WHERE j.seq = ?1 AND j.id = ?2 AND s.fence = ?3 AND s.state = 1";
const LAST_LINE: &str = "SELECT ifnull(max(number), 0) FROM log WHERE seq = ?1 AND delivery = ?2";
const COUNT_LINES: &str = "SELECT count(*) FROM log WHERE seq = ?1 AND delivery = ?2";

impl Writing<'_> {
    /// Keeps each report whose fence is the running one.
    pub(crate) fn report(&mut self, reports: &[Report]) -> Result<Vec<Reported>> {
        reports.iter().map(|report| self.report_one(report)).collect()
    }

    fn report_one(&mut self, report: &Report) -> Result<Reported> {
        let held = report.held;
        let seq = value::signed(held.seq);
        let told_by: Option<i64> = self
            .conn
            .prepare_cached(TOLD_BY)?
            .query_row(params![seq, held.id.as_bytes(), value::signed(held.fence.number())], |row| row.get(0))
            .optional()?;
        let Some(lane) = told_by else { return Ok(Reported::Fenced) };
        if let Some(progress) = &report.progress {
            self.conn
                .prepare_cached(
                    "UPDATE standing SET progress = ?3 WHERE seq = ?1 AND fence = ?2 AND state = 1",
                )?
                .execute(params![seq, value::signed(held.fence.number()), value::to_json(progress)?])?;
            let (fraction, message) = (progress.fraction, progress.message.clone());
            self.tell(lane, held.id, || Happening::Progressed { fraction, message })?;
        }
        for lines in report.lines.chunk_by(|line, next| line.delivery == next.delivery) {
            self.keep_lines(seq, lines)?;
        }
        Ok(Reported::Kept)
    }

    /// Keeps lines of one delivery.
    fn keep_lines(&self, seq: i64, lines: &[LogLine]) -> Result<()> {
        let Some(LogLine { delivery, .. }) = lines.first() else { return Ok(()) };
        let number = |sql| {
            self.conn.prepare_cached(sql)?.query_row(params![seq, delivery], |row| row.get::<_, u32>(0))
        };
        let mut last = number(LAST_LINE)?;
        // Numbers start at 1, so there are at most as many lines as the last one's number says.
        let room = limits::LOG_LINES.saturating_sub(last);
        let fits = u32::try_from(lines.len()).is_ok_and(|lines| lines <= room);
        let mut kept = if fits { last } else { number(COUNT_LINES)? };
        let mut insert = self.conn.prepare_cached(
            "INSERT INTO log (seq, delivery, number, at, text) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?;
        for line in lines {
            let Some(number) = line.number_behind(last).filter(|_| kept < limits::LOG_LINES) else {
                continue;
            };
            insert.execute(params![seq, delivery, number, line.at.as_micros(), line.text])?;
            last = number;
            kept += 1;
        }
        Ok(())
    }
}
