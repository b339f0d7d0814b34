//! What can be chosen.

use clap::Parser;

use crate::field::{self, Contestant, Role};
use crate::figures::Figure;
use crate::stores::Store;

/// Names no peer.
const NOBODY: &str = "none";

/// Tenure beside its peers and the bare floor, in one run on one machine.
#[derive(Parser, Debug)]
pub struct Options {
    /// How often each figure is measured of each contestant; five or more for figures to be quoted.
    #[arg(long, default_value_t = 5)]
    pub rounds: usize,
    /// Jobs that a fast contestant drains in one go; slow ones get a part of them.
    #[arg(long, default_value_t = 100_000)]
    pub jobs: u64,
    /// How long the latency and the steady state are looked at.
    #[arg(long, default_value_t = 15)]
    pub seconds: u64,
    /// Only on these stores.
    #[arg(long = "store", value_name = "NAME")]
    pub stores: Vec<Store>,
    /// Only these peers, beside Tenure and the floor on their stores. `none` for no peer.
    #[arg(long = "peer", value_name = "NAME")]
    pub peers: Vec<String>,
    /// Only these figures. Without it, all that do not take long.
    #[arg(long = "figure", value_name = "NAME")]
    pub figures: Vec<Figure>,
    /// How many jobs wait in `waiting`.
    #[arg(long, default_value_t = 1_000_000)]
    pub waiting: u64,
    /// How many jobs have ended in `finished`.
    #[arg(long, default_value_t = 10_000_000)]
    pub finished: u64,
    /// For how long somebody pins the horizon in `pinned`, in seconds.
    #[arg(long, default_value_t = 600)]
    pub pinned: u64,
    /// Also tells, after each figure, which statements cost the server most. This costs something itself.
    #[arg(long)]
    pub statements: bool,
}

impl Options {
    /// A name that nobody has is a mistake.
    pub fn check(&self) -> Result<(), String> {
        let is_known = |name: &str| name == NOBODY || field::all().iter().any(|known| known.name == name);
        let unknown = self.peers.iter().find(|name| !is_known(name));
        unknown.map_or(Ok(()), |name| Err(format!("there is no peer {name}")))
    }

    /// Peers take part if they are wanted; Tenure and the floor where one of them does.
    pub fn wants(&self, contestant: &Contestant) -> bool {
        let is_named = |name: &str| self.peers.iter().any(|wanted| wanted == name);
        let everybody = self.peers.is_empty();
        let takes_part = match contestant.role {
            Role::Peer => everybody || is_named(contestant.name),
            Role::Tenure | Role::Floor => {
                let beside = |peer: &Contestant| peer.store == contestant.store && is_named(peer.name);
                everybody || is_named(NOBODY) || field::all().iter().any(beside)
            }
        };
        takes_part && (self.stores.is_empty() || self.stores.contains(&contestant.store))
    }

    /// The figures to measure, in order.
    pub fn figures(&self) -> Vec<Figure> {
        if self.figures.is_empty() { Figure::QUICK.to_vec() } else { self.figures.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(args: &[&str]) -> Vec<&'static str> {
        let options = Options::parse_from([&["peers"], args].concat());
        field::all().iter().filter(|contestant| options.wants(contestant)).map(|one| one.name).collect()
    }

    #[test]
    fn tenure_and_the_floor_stand_beside_the_peers_that_are_wanted_on_their_stores_only() {
        assert_eq!(wanted(&["--peer", "apalis-sqlite"]), ["floor-sqlite", "tenure-sqlite", "apalis-sqlite"]);
        assert_eq!(wanted(&["--peer", "fang"]), ["floor", "floor, forgetting", "tenure", "fang"]);
        assert_eq!(wanted(&["--peer", "none", "--store", "sqlite"]), ["floor-sqlite", "tenure-sqlite"]);
        assert_eq!(wanted(&[]).len(), field::all().len());
    }
}
