//! One table a figure and store: medians of the rounds, and ratios to the floor of the store.

use crate::field::{Contestant, History, Role};
use crate::line::{Line, by_round};
use crate::samples::{median, range, ratio};
use crate::stores::Store;

/// A column: its heading, the value, and the digits after the point.
type Column = (&'static str, &'static str, usize);

const DRAINED: &[Column] = &[
    ("jobs/s", "jobs_per_s", 0),
    ("worker µs", "client_us", 1),
    ("database µs", "database_us", 1),
    ("CPU µs/job", "cpu_us", 1),
    ("WAL B", "wal_bytes", 0),
    ("life WAL B", "life_wal_bytes", 0),
    ("pause p50 ms", "pause_p50_ms", 1),
    ("pause p99 ms", "pause_p99_ms", 1),
    ("MiB", "memory_mib", 0),
    ("left", "left", 0),
];
const PUT: &[Column] = &[
    ("jobs/s", "jobs_per_s", 0),
    ("client µs", "client_us", 1),
    ("database µs", "database_us", 1),
    ("CPU µs/job", "cpu_us", 1),
    ("WAL B", "wal_bytes", 0),
    ("p50 ms", "p50_ms", 2),
    ("p99 ms", "p99_ms", 2),
];
const WAITED: &[Column] = &[
    ("p50 ms", "p50_ms", 2),
    ("p99 ms", "p99_ms", 2),
    ("p99 ms, last third", "late_p99_ms", 2),
    ("jobs/s", "jobs_per_s", 0),
    ("CPU µs/job", "cpu_us", 1),
    ("WAL B", "wal_bytes", 0),
];
const FLOWED: &[Column] = &[
    ("jobs/s", "jobs_per_s", 0),
    ("CPU µs/job, all parts", "cpu_us", 1),
    ("WAL B", "wal_bytes", 0),
    ("p50 ms", "p50_ms", 1),
    ("p99 ms", "p99_ms", 1),
];

/// The figures in the order of their tables.
const TABLES: &[(&str, &[Column])] = &[
    ("drain", DRAINED),
    ("drain by 4", DRAINED),
    ("drain by 16", DRAINED),
    ("bulk", PUT),
    ("single", PUT),
    ("single, 16 clients", PUT),
    ("latency", WAITED),
    ("steady", FLOWED),
    ("waiting", DRAINED),
    ("finished", DRAINED),
    ("unpinned", WAITED),
    ("pinned", WAITED),
    ("together, paced", WAITED),
    ("together, drained", DRAINED),
];

/// All tables that there is something to say in.
pub fn tables(contestants: &[Contestant], lines: &[Line]) -> String {
    let mut tables = String::new();
    for (figure, columns) in TABLES {
        for store in Store::ALL {
            let on_it: Vec<&Contestant> = contestants.iter().filter(|one| one.store == store).collect();
            let measured =
                |line: &&Line| line.figure == *figure && on_it.iter().any(|one| one.name == line.contestant);
            let lines: Vec<Line> = lines.iter().filter(measured).cloned().collect();
            if !lines.is_empty() {
                tables += &(table(figure, store, columns, &on_it, &lines) + "\n");
            }
        }
    }
    tables
}

/// Of lines of this figure and store.
fn table(
    figure: &str,
    store: Store,
    columns: &[Column],
    contestants: &[&Contestant],
    lines: &[Line],
) -> String {
    let columns: Vec<&Column> =
        columns.iter().filter(|(_, name, _)| lines.iter().any(|line| line.get(name).is_some())).collect();
    let headings: Vec<&str> = columns.iter().map(|(heading, ..)| *heading).collect();
    let mut text = format!("| {figure}, {} | history | {}", store.name(), headings.join(" | "));
    text +=
        &format!(" | jobs/s × floor | CPU × floor |\n|---|---|{}--:|--:|\n", "--:|".repeat(columns.len()));
    let floor = contestants.iter().find(|contestant| contestant.role == Role::Floor);
    for contestant in contestants {
        let of = |name: &str| by_round(lines, figure, contestant.name, name);
        if of("jobs").is_empty() {
            continue;
        }
        let cells: Vec<String> = columns
            .iter()
            .enumerate()
            .map(|(at, (_, name, digits))| cell(&of(name), *digits, at == 0))
            .collect();
        let times = |name: &str| {
            let floor = by_round(lines, figure, floor?.name, name);
            ratio(&of(name), &floor).map(|ratio| format!("{ratio:.2}"))
        };
        let history = match contestant.history {
            History::Kept => "kept",
            History::Nothing => "no",
        };
        let (rate, cpu) = (times("jobs_per_s").unwrap_or_default(), times("cpu_us").unwrap_or_default());
        text += &format!("| {} | {history} | {} | {rate} | {cpu} |\n", contestant.name, cells.join(" | "));
    }
    text
}

/// The median, for the first column with the least and the most.
fn cell(rounds: &[(usize, f64)], digits: usize, with_range: bool) -> String {
    let figures: Vec<f64> = rounds.iter().map(|(_, figure)| *figure).collect();
    match (median(&figures), range(&figures)) {
        (Some(median), Some((least, most))) if with_range => {
            format!("{median:.digits$} [{least:.digits$}–{most:.digits$}]")
        }
        (Some(median), _) => format!("{median:.digits$}"),
        (None, _) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field;

    #[test]
    fn a_table_has_a_row_for_each_that_was_measured_with_its_ratio_to_the_floor() {
        let line = |name, round, rate: f64| {
            Line::new("bulk", name).of_round(round).with("jobs", 10.0).with("jobs_per_s", rate)
        };
        let lines = [
            line("floor", 0, 100.0),
            line("floor", 1, 300.0),
            line("tenure", 0, 80.0),
            line("tenure", 1, 180.0),
        ];
        let told = tables(&field::all(), &lines);
        let rows: Vec<&str> = told.lines().collect();
        assert_eq!(rows[0], "| bulk, PostgreSQL | history | jobs/s | jobs/s × floor | CPU × floor |");
        assert_eq!(rows[2], "| floor | kept | 200 [100–300] | 1.00 |  |");
        assert_eq!(rows[3], "| tenure | kept | 130 [80–180] | 0.70 |  |");
        assert_eq!(rows.len(), 5, "{told}");
    }

    #[test]
    fn a_table_compares_those_of_one_store_with_the_floor_of_that_store() {
        let line = |name, rate: f64| Line::new("bulk", name).with("jobs", 10.0).with("jobs_per_s", rate);
        let lines = [
            line("floor", 100.0),
            line("river", 50.0),
            line("floor-sqlite", 400.0),
            line("river-sqlite", 100.0),
        ];
        let told = tables(&field::all(), &lines);
        let rows: Vec<&str> = told.lines().collect();
        assert_eq!(rows[3], "| river | kept | 50 [50–50] | 0.50 |  |");
        assert!(rows[5].starts_with("| bulk, SQLite |"), "{told}");
        assert_eq!(rows[8], "| river-sqlite | kept | 100 [100–100] | 0.25 |  |");
    }
}
