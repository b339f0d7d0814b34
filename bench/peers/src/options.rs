//! What can be chosen.

use clap::Parser;

use crate::field::{self, Contestant, Role};
use crate::figures::Figure;

/// Names no peer.
const NOBODY: &str = "none";

/// Tenure on PostgreSQL beside its peers and the bare floor, in one run on one machine.
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
    /// Only these peers, beside Tenure and the floor. `none` for no peer.
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

    /// Tenure and the floor always take part, peers if they are wanted.
    pub fn wants(&self, contestant: &Contestant) -> bool {
        contestant.role != Role::Peer
            || self.peers.is_empty()
            || self.peers.iter().any(|name| name == contestant.name)
    }

    /// The figures to measure, in order.
    pub fn figures(&self) -> Vec<Figure> {
        if self.figures.is_empty() { Figure::QUICK.to_vec() } else { self.figures.clone() }
    }
}
