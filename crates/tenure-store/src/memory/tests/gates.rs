//! What has to be true of turns and limits at any time, told from the rows alone.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{Block, Head, Key, State};

use super::*;
use crate::memory::rows::{Place, Row, Rows};

/// At most one job of an ordering key is under way, and nobody waits for a turn that somebody could have.
pub fn assert_turns_are_right(rows: &Rows, seed: u64) {
    let mut keys: BTreeMap<&Key, Vec<&Row>> = BTreeMap::new();
    for row in rows.jobs.values().filter(|row| !row.job.state.is_finished()) {
        let waits = matches!(row.job.state, State::Blocked { on: Block::Jobs, .. });
        assert_eq!(rows.waits.holds(row.job.seq), waits, "seed {seed}");
        if let Some(ordering) = &row.job.terms.ordering {
            keys.entry(&ordering.key).or_default().push(row);
        }
    }
    for (key, rows) in keys {
        let steps_aside = |row: &&Row| row.job.terms.ordering.as_ref().unwrap().head == Head::StepAside;
        let is_under_way = |row: &&Row| match row.job.state {
            State::Blocked { on: Block::Order | Block::Jobs, .. } => false,
            State::Waiting { .. } => !(steps_aside(row) && row.counted == StateName::Scheduled),
            State::Blocked { on: Block::Limit, .. } | State::Running { .. } => true,
            State::Finished { .. } => unreachable!(),
        };
        let under_way = rows.iter().copied().filter(is_under_way).count();
        assert!(under_way <= 1, "seed {seed}, key {key}: {under_way} at once");
        let first = rows.iter().copied().find(|row| {
            !steps_aside(row) || matches!(row.job.state, State::Blocked { on: Block::Order, .. })
        });
        let is_free =
            first.is_some_and(|row| matches!(row.job.state, State::Blocked { on: Block::Order, .. }));
        assert!(under_way == 1 || !is_free, "seed {seed}, key {key}: the turn is nobody's");
    }
}

/// Of each line of a limit the first ones are queued, as many as there is room for.
pub fn assert_limits_are_kept(rows: &Rows, now: Timestamp, seed: u64) {
    let mut lines: BTreeMap<(Key, QueueName, Kind), Vec<(Place, bool)>> = Default::default();
    let mut running: BTreeMap<Key, u32> = Default::default();
    let mut needed = BTreeSet::new();
    for row in rows.jobs.values() {
        let Some(limit) = row.job.terms.limit.as_ref().filter(|_| !row.job.state.is_finished()) else {
            continue;
        };
        let key = limit.key.clone();
        needed.insert(key.clone());
        *running.entry(key.clone()).or_default() += u32::from(matches!(row.job.state, State::Running { .. }));
        let is_queued = matches!(row.job.state, State::Waiting { .. });
        assert_eq!(row.round.is_some(), row.counted == StateName::Queued || on_limit(row), "seed {seed}");
        if let Some(place) = row.place_in_line() {
            lines
                .entry((key, row.job.queue.clone(), row.job.kind.clone()))
                .or_default()
                .push((place, is_queued));
        }
    }
    let known = rows.limits.page(None, 1_000).limits;
    for info in &known {
        assert!(info.set || needed.contains(&info.key), "seed {seed}: nobody needs {}", info.key);
        assert_eq!(info.meter.running, running.get(&info.key).copied().unwrap_or(0), "seed {seed}");
    }
    for ((key, ..), mut line) in lines {
        let info = known.iter().find(|info| info.key == key).expect("a limit in use is there");
        line.sort();
        let queued = line.iter().filter(|(_, queued)| *queued).count();
        assert!(line[..queued].iter().all(|(_, queued)| *queued), "seed {seed}, limit {key}: {line:?}");
        let room = info.meter.room(now) as usize;
        assert!(queued <= room, "seed {seed}, limit {key}");
        assert!(
            info.meter.limit.rate.is_some() || queued == room.min(line.len()),
            "seed {seed}, limit {key}"
        );
    }
}

fn on_limit(row: &Row) -> bool {
    matches!(row.job.state, State::Blocked { on: Block::Limit, .. })
}
