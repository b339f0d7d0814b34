//! What Tenure is to reach on PostgreSQL, and what it has reached here.

use crate::field::{Contestant, History, Role};
use crate::line::{Line, by_round};
use crate::samples::{median, ratio};
use crate::stores::Store;

/// Writes less log than anybody, at several times the CPU.
const LEAST_LOG: &str = "awa";

#[derive(Clone, Copy, Debug, PartialEq)]
enum Bar {
    AtMost(f64),
    AtLeast(f64),
}

/// A table of all bars that can be judged by these lines; nothing if none can.
pub fn table(contestants: &[Contestant], lines: &[Line]) -> String {
    let mut rows = String::new();
    for (what, beside, bar, here) in (Judge { contestants, lines }).all() {
        let Some(here) = here else { continue };
        let (said, met) = match bar {
            Bar::AtMost(most) => (format!("≤ {most}"), here <= most),
            Bar::AtLeast(least) => (format!("≥ {least}"), here >= least),
        };
        let reached = if met { "yes" } else { "**no**" };
        rows += &format!("| {what} | {beside} | {said} | {here:.2} | {reached} |\n");
    }
    if rows.is_empty() {
        return rows;
    }
    format!("| what Tenure is to reach | beside | bar | here | reached |\n|---|---|--:|--:|---|\n{rows}")
}

struct Judge<'l> {
    contestants: &'l [Contestant],
    lines: &'l [Line],
}

type Judged = (&'static str, &'static str, Bar, Option<f64>);
type Rounds = Vec<(usize, f64)>;

impl Judge<'_> {
    fn all(&self) -> Vec<Judged> {
        use Bar::{AtLeast, AtMost};
        let tenure = "tenure";
        let own = |figure, name| by_round(self.lines, figure, tenure, name);
        let keeps = |peer: &Contestant| peer.history == History::Kept;
        let forgets = |peer: &Contestant| peer.history == History::Nothing;
        let any = |_: &Contestant| true;
        let mut judged = Vec::new();
        let mut to_best = |what, figure, name, bar: Bar, of: &dyn Fn(&Contestant) -> bool| {
            if let Some((peer, rounds)) = self.best(figure, name, bar, of) {
                judged.push((what, peer, bar, ratio(&own(figure, name), &rounds)));
            }
        };
        to_best("drain, CPU, × best that keeps history", "drain", "cpu_us", AtMost(0.5), &keeps);
        to_best("drain, CPU, × best that forgets", "drain", "cpu_us", AtMost(0.7), &forgets);
        to_best("drain, jobs/s, × best", "drain", "jobs_per_s", AtLeast(2.0), &any);
        to_best("WAL of a life, × least but awa's", "drain", "life_wal_bytes", AtMost(1.0), &|peer| {
            !peer.name.starts_with(LEAST_LOG)
        });
        to_best("enqueue to start, p50, × best", "latency", "p50_ms", AtMost(1.0), &any);
        to_best("enqueue to start, p99, × best", "latency", "p99_ms", AtMost(1.0), &any);
        to_best("steady in batches of 100, jobs/s, × best", "steady", "jobs_per_s", AtLeast(3.0), &any);
        let floor = |figure, name| ratio(&own(figure, name), &by_round(self.lines, figure, "floor", name));
        judged.push(("drain, CPU, × floor", "floor", AtMost(1.5), floor("drain", "cpu_us")));
        judged.push(("bulk, jobs/s, × floor", "floor", AtLeast(0.7), floor("bulk", "jobs_per_s")));
        let single = "single, 16 clients";
        judged.push((
            "single, 16 clients, jobs/s, × floor",
            "floor",
            AtLeast(2.0),
            floor(single, "jobs_per_s"),
        ));
        let alone = |figure, name| {
            let figures: Vec<f64> = own(figure, name).into_iter().map(|(_, figure)| figure).collect();
            median(&figures)
        };
        judged.push(("WAL of a life, B", "", AtMost(1_000.0), alone("drain", "life_wal_bytes")));
        judged.push(("enqueue to start, p50 ms", "", AtMost(3.0), alone("latency", "p50_ms")));
        judged.push(("enqueue to start, p99 ms", "", AtMost(15.0), alone("latency", "p99_ms")));
        let against = |figure, name, to, to_name| Some(alone(figure, name)? / alone(to, to_name)?);
        let four = against("drain by 4", "jobs_per_s", "drain", "jobs_per_s");
        judged.push(("four processes, jobs/s, × one", tenure, AtLeast(1.0), four));
        let sixteen = against("drain by 16", "jobs_per_s", "drain", "jobs_per_s");
        judged.push(("sixteen processes, jobs/s, × one", tenure, AtLeast(1.0), sixteen));
        let pause = "pause_p99_ms";
        let waiting = against("waiting", pause, "drain", pause);
        judged.push(("many waiting, pause p99, × empty", tenure, AtMost(2.0), waiting));
        let finished = against("finished", pause, "drain", pause);
        judged.push(("many finished, pause p99, × empty", tenure, AtMost(2.0), finished));
        let pinned = against("pinned", "late_p99_ms", "unpinned", "p99_ms");
        judged.push(("pinned horizon, p99, × unpinned", tenure, AtMost(2.0), pinned));
        let together = against("together, paced", "late_p99_ms", "unpinned", "p99_ms");
        judged.push(("pinned beside many finished, p99, × unpinned", tenure, AtMost(2.0), together));
        let drained = against("together, drained", pause, "drain", pause);
        judged.push(("many waiting, many finished, pinned, pause p99, × empty", tenure, AtMost(2.0), drained));
        judged
    }

    /// The peer of this sort that does best in a figure, with its rounds.
    fn best(
        &self,
        figure: &str,
        name: &str,
        bar: Bar,
        of: &dyn Fn(&Contestant) -> bool,
    ) -> Option<(&'static str, Rounds)> {
        let peers = self
            .contestants
            .iter()
            .filter(|peer| peer.role == Role::Peer && peer.store == Store::Postgres && of(peer));
        let measured = peers.filter_map(|peer| {
            let rounds = by_round(self.lines, figure, peer.name, name);
            let figures: Vec<f64> = rounds.iter().map(|(_, figure)| *figure).collect();
            Some((median(&figures)?, peer.name, rounds))
        });
        let by_median = |a: &(f64, _, _), b: &(f64, _, _)| a.0.total_cmp(&b.0);
        let best = match bar {
            Bar::AtMost(_) => measured.min_by(by_median),
            Bar::AtLeast(_) => measured.max_by(by_median),
        };
        best.map(|(_, name, rounds)| (name, rounds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field;

    #[test]
    fn a_bar_compares_with_the_best_peer_of_its_sort() {
        let line = |name, cpu| Line::new("drain", name).with("cpu_us", cpu);
        let lines = [
            line("tenure", 30.0),
            line("graphile-worker", 40.0),
            line("pg-boss", 70.0),
            line("apalis", 200.0),
            line("river-sqlite", 20.0),
        ];
        let told = table(&field::all(), &lines);
        assert!(
            told.contains("| drain, CPU, × best that keeps history | pg-boss | ≤ 0.5 | 0.43 | yes |"),
            "{told}"
        );
        assert!(
            told.contains("| drain, CPU, × best that forgets | graphile-worker | ≤ 0.7 | 0.75 | **no** |"),
            "{told}"
        );
        assert_eq!(told.lines().count(), 4, "{told}");
        assert_eq!(table(&field::all(), &lines[4..]), "", "there are no bars on SQLite");
    }
}
