//! The lines that stay visible at a terminal while `tenure dev` runs: job counts, the dashboard's URL, and next commands.

use tenure::{Event, Happening, JobId};

use super::line::{bar, short};
use crate::screen::{self, Screen, Tone};

/// Jobs whose progress is shown.
const SHOWN: usize = 3;

/// The lines that stay.
#[derive(Debug)]
pub(crate) struct Board {
    /// Where it is and what to type.
    block: Vec<String>,
    /// Jobs that run, the first ones first.
    running: Vec<Running>,
}

#[derive(Debug)]
struct Running {
    id: JobId,
    kind: String,
    progress: Option<(f64, String)>,
}

impl Board {
    pub(crate) fn new(block: Vec<String>) -> Self {
        Self { block, running: Vec::new() }
    }

    /// Takes note of an event.
    pub(crate) fn note(&mut self, event: &Event) {
        match &event.what {
            Happening::Started { .. } => {
                self.running.retain(|job| job.id != event.id);
                let kind = event.kind.as_str().to_owned();
                self.running.push(Running { id: event.id, kind, progress: None });
            }
            Happening::Progressed { fraction, message } => {
                if let Some(job) = self.running.iter_mut().find(|job| job.id == event.id) {
                    job.progress = Some((*fraction, message.clone()));
                }
            }
            Happening::Became { .. } | Happening::Deleted => self.running.retain(|job| job.id != event.id),
            Happening::Enqueued | Happening::AskedToStop => {}
        }
    }

    /// Draws it anew, with how jobs stand.
    pub(crate) fn draw(&self, standings: &str, screen: &Screen) {
        screen::pin(&self.lines(standings), screen.is_coloured());
    }

    fn lines(&self, standings: &str) -> Vec<(Tone, String)> {
        let mut lines = vec![(Tone::Faint, format!("── {standings} ──"))];
        let with_progress = self.running.iter().filter_map(|job| Some((job, job.progress.as_ref()?)));
        lines.extend(with_progress.take(SHOWN).map(|(job, (fraction, message))| {
            let message = crate::output::safe::line(message);
            let percent = fraction * 100.0;
            (
                Tone::Busy,
                format!(
                    "{}  {:<10}  {} {percent:>3.0} %  {message}",
                    short(job.id),
                    job.kind,
                    bar(*fraction)
                ),
            )
        }));
        lines.extend(self.block.iter().map(|line| (Tone::Plain, line.clone())));
        lines
    }
}

#[cfg(test)]
mod tests {
    use tenure::{Kind, QueueName, StateName};

    use super::*;

    fn event(id: &str, what: Happening) -> Event {
        Event {
            at: "2026-03-29T07:43:59Z".parse().unwrap(),
            id: id.parse().unwrap(),
            kind: Kind::new("build_star").unwrap(),
            queue: QueueName::new("stars").unwrap(),
            what,
        }
    }

    #[test]
    fn progress_is_shown_in_its_place_until_the_job_ends() {
        let id = "0190f5c2-7b1e-7c3a-9f02-6a2d8c4e5b10";
        let mut board = Board::new(vec!["Dashboard  http://here/ui/".to_owned()]);
        let texts =
            |board: &Board| board.lines("1 running").into_iter().map(|(_, text)| text).collect::<Vec<_>>();
        board.note(&event(id, Happening::Started { attempt: 1 }));
        assert_eq!(texts(&board), ["── 1 running ──", "Dashboard  http://here/ui/"]);
        for fraction in [0.2, 0.6] {
            let message = "igniting\u{1b}[2J".to_owned();
            board.note(&event(id, Happening::Progressed { fraction, message }));
        }
        assert_eq!(texts(&board)[1], "8c4e5b10  build_star  ██████░░░░  60 %  igniting\\u{1b}[2J");
        board.note(&event(id, Happening::Became { state: StateName::Succeeded, failure: None }));
        assert_eq!(texts(&board).len(), 2);
    }
}
