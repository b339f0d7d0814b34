//! Who takes part.

use crate::stores::Store;

/// One contestant.
#[derive(Clone, Debug)]
pub struct Contestant {
    pub name: &'static str,
    /// What it keeps its jobs in. It is compared with those only that keep theirs in the same.
    pub store: Store,
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
    /// Counts the jobs that have not ended, in the language of the store: what was begun shall also be on record. Not
    /// all can tell.
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
    /// A script in `contestants/python`, and the file beside it with the packages that it needs: not all of theirs go
    /// together.
    Python(&'static str, &'static str),
}

const ALL: f64 = 1.0;
/// The packages of most scripts in Python.
const REQUIREMENTS: &str = "requirements.txt";

/// All of them, store by store, and the floor of a store first: ratios are to it.
pub fn all() -> Vec<Contestant> {
    [on_postgres(), on_sqlite(), on_redis()].concat()
}

fn on_postgres() -> Vec<Contestant> {
    use History::{Kept, Nothing};
    let floor = Contestant {
        name: "floor",
        store: Store::Postgres,
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
            name: "sqlxmq",
            made: Made::Rust("sqlxmq"),
            history: Nothing,
            bulk: 1_000,
            share: 0.1,
            unfinished: Some("SELECT count(*) FROM mq_msgs WHERE id <> uuid_nil()"),
            ..peer.clone()
        },
        Contestant {
            name: "fang",
            made: Made::Rust("fang"),
            history: Nothing,
            bulk: 1_000,
            share: 0.01,
            unfinished: Some("SELECT count(*) FROM fang_tasks WHERE state IN ('new', 'in_progress')"),
            ..peer.clone()
        },
        Contestant {
            name: "underway",
            made: Made::Rust("underway"),
            bulk: 1_000,
            share: 0.01,
            unfinished: Some("SELECT count(*) FROM underway.task WHERE state IN ('pending', 'in_progress')"),
            ..peer.clone()
        },
        Contestant {
            name: "procrastinate",
            made: Made::Python("on_procrastinate.py", REQUIREMENTS),
            bulk: 1_000,
            share: 0.02,
            unfinished: Some("SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"),
            ..peer
        },
    ]
}

fn on_sqlite() -> Vec<Contestant> {
    let floor = Contestant {
        name: "floor-sqlite",
        store: Store::Sqlite,
        role: Role::Floor,
        made: Made::Rust("floor-sqlite"),
        args: &[],
        history: History::Kept,
        bulk: 1_000,
        share: ALL,
        unfinished: Some("SELECT count(*) FROM job WHERE state <> 2"),
    };
    let peer = Contestant { role: Role::Peer, ..floor.clone() };
    vec![
        floor.clone(),
        Contestant {
            name: "tenure-sqlite",
            role: Role::Tenure,
            made: Made::Rust("tenure"),
            unfinished: Some(
                "SELECT (SELECT count(*) FROM ready) + (SELECT count(*) FROM later)
                    + (SELECT count(*) FROM standing WHERE state = 1)",
            ),
            ..floor
        },
        Contestant {
            name: "river-sqlite",
            made: Made::Rust("river"),
            share: 0.2,
            unfinished: Some("SELECT count(*) FROM river_job WHERE state <> 'completed'"),
            ..peer.clone()
        },
        Contestant {
            name: "apalis-sqlite",
            made: Made::Rust("apalis-sqlite"),
            share: 0.05,
            unfinished: Some("SELECT count(*) FROM Jobs WHERE status <> 'Done'"),
            ..peer.clone()
        },
        Contestant {
            name: "huey",
            made: Made::Python("on_huey.py", REQUIREMENTS),
            history: History::Nothing,
            share: 0.1,
            unfinished: Some("SELECT count(*) FROM task"),
            ..peer
        },
    ]
}

/// Nobody has a floor here: they are compared with each other.
fn on_redis() -> Vec<Contestant> {
    let peer = Contestant {
        name: "bullmq",
        store: Store::Redis,
        role: Role::Peer,
        made: Made::Node("bullmq.js"),
        args: &[],
        history: History::Nothing,
        bulk: 1_000,
        share: 0.3,
        unfinished: Some(
            "return redis.call('LLEN', 'bull:noop:wait') + redis.call('LLEN', 'bull:noop:active')",
        ),
    };
    vec![
        peer.clone(),
        Contestant {
            name: "dramatiq",
            made: Made::Python("on_dramatiq.py", REQUIREMENTS),
            share: 0.1,
            unfinished: Some("return redis.call('HLEN', 'dramatiq:default.msgs')"),
            ..peer.clone()
        },
        Contestant {
            name: "arq",
            made: Made::Python("on_arq.py", REQUIREMENTS),
            share: 0.05,
            unfinished: Some("return redis.call('ZCARD', 'arq:queue')"),
            ..peer.clone()
        },
        Contestant {
            name: "celery",
            made: Made::Python("on_celery.py", "requirements-celery.txt"),
            share: 0.05,
            unfinished: Some("return redis.call('LLEN', 'celery') + redis.call('HLEN', 'unacked')"),
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
    fn names_are_told_apart_and_the_floor_of_a_store_comes_first() {
        let all = all();
        let names: std::collections::BTreeSet<_> = all.iter().map(|contestant| contestant.name).collect();
        assert_eq!(names.len(), all.len());
        for store in [Store::Postgres, Store::Sqlite] {
            let first = all.iter().find(|contestant| contestant.store == store);
            assert_eq!(first.map(|first| first.role), Some(Role::Floor));
        }
    }
}
