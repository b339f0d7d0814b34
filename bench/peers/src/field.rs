//! Who takes part.

/// One contestant.
#[derive(Clone, Debug)]
pub struct Contestant {
    pub name: &'static str,
    pub role: Role,
    pub made: Made,
    /// What its program is told at its start.
    pub args: &'static [&'static str],
    pub history: History,
    /// Jobs of one call where they come in bulk.
    pub bulk: u64,
    /// Which part of the jobs it gets: a slow one would take all day for all of them. It flatters those whose cost
    /// grows with what waits.
    pub share: f64,
    /// Counts the jobs that have not ended: what was begun shall also be on record. Not all tables can tell.
    pub unfinished: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Tenure,
    Floor,
    Peer,
}

/// What is left of a job that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum History {
    Kept,
    Nothing,
}

/// How its program comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// A package of this name below `contestants`.
    Rust(&'static str),
    /// A script in `contestants/node`.
    Node(&'static str),
    /// A script in `contestants/python`.
    Python(&'static str),
}

const ALL: f64 = 1.0;

/// All of them, the floor first: ratios are to it.
pub fn all() -> Vec<Contestant> {
    use History::{Kept, Nothing};
    let floor = Contestant {
        name: "floor",
        role: Role::Floor,
        made: Made::Rust("floor"),
        args: &[],
        history: Kept,
        bulk: 5_000,
        share: ALL,
        unfinished: Some("SELECT count(*) FROM job WHERE state <> 2"),
    };
    let peer = Contestant { role: Role::Peer, ..floor.clone() };
    let graphile = Contestant {
        name: "graphile-worker",
        made: Made::Node("graphile-worker.js"),
        history: Nothing,
        unfinished: Some("SELECT count(*) FROM graphile_worker._private_jobs"),
        ..peer.clone()
    };
    let awa = Contestant { name: "awa", made: Made::Rust("awa"), unfinished: None, ..peer.clone() };
    vec![
        floor.clone(),
        Contestant { name: "floor, forgetting", args: &["forget"], history: Nothing, ..floor.clone() },
        Contestant {
            name: "tenure",
            role: Role::Tenure,
            made: Made::Rust("tenure"),
            unfinished: Some(
                "SELECT sum(coalesce(scheduled, 0) + coalesce(queued, 0) + coalesce(running, 0))::bigint FROM tenure.tally",
            ),
            ..floor
        },
        graphile.clone(),
        Contestant {
            name: "graphile-worker, as it comes",
            args: &["as-it-comes"],
            share: 0.05,
            ..graphile.clone()
        },
        Contestant { name: "graphile_worker (Rust)", made: Made::Rust("graphile-worker-rs"), ..graphile },
        Contestant {
            name: "pg-boss",
            made: Made::Node("pg-boss.js"),
            unfinished: Some("SELECT count(*) FROM pgboss.job WHERE state < 'completed' AND name = 'noop'"),
            ..peer.clone()
        },
        Contestant {
            name: "river",
            made: Made::Rust("river"),
            share: 0.5,
            unfinished: Some("SELECT count(*) FROM river.river_job WHERE state <> 'completed'"),
            ..peer.clone()
        },
        awa.clone(),
        Contestant { name: "awa, as it comes", args: &["as-it-comes"], share: 0.2, ..awa },
        Contestant {
            name: "apalis",
            made: Made::Rust("apalis"),
            bulk: 1_000,
            share: 0.2,
            unfinished: Some("SELECT count(*) FROM apalis.jobs WHERE status <> 'Done'"),
            ..peer.clone()
        },
        Contestant {
            name: "procrastinate",
            made: Made::Python("on_procrastinate.py"),
            bulk: 1_000,
            share: 0.02,
            unfinished: Some("SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"),
            ..peer
        },
    ]
}

impl Contestant {
    /// Its part of so many jobs.
    pub fn part_of(&self, jobs: u64) -> u64 {
        ((jobs as f64 * self.share) as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart_and_the_floor_comes_first() {
        let all = all();
        let names: std::collections::BTreeSet<_> = all.iter().map(|contestant| contestant.name).collect();
        assert_eq!(names.len(), all.len());
        assert_eq!(all[0].role, Role::Floor);
    }
}
