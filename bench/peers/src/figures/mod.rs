//! What is measured.

mod hard;
mod latency;
mod life;
mod single;
mod steady;

use std::time::Duration;

use clap::ValueEnum;

use crate::Outcome;
use crate::field::{Contestant, History, Role};
use crate::install::Installer;
use crate::line::Line;
use crate::options::Options;
use crate::program::{PATIENCE, Program};
use crate::stores::{Database, Store, Stores};
use crate::workers::Workers;

/// One figure, or several that come of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Figure {
    /// Enqueueing in bulk, then draining, by one process.
    Life,
    /// The same, drained by four processes.
    Processes,
    /// The same, drained by sixteen.
    Sixteen,
    /// Enqueueing one by one, by 1 and by 16 clients.
    Single,
    /// From enqueueing to the start of the handler, at 20 jobs a second.
    Latency,
    /// Enqueueing in batches of 100 and working at once.
    Steady,
    /// Draining beside very many that wait.
    Waiting,
    /// Draining beside very many that have ended.
    Finished,
    /// A steady pace while an old snapshot keeps every dead row.
    Pinned,
    /// All three at once.
    Together,
}

impl Figure {
    /// Those that do not take long.
    pub const QUICK: [Self; 5] = [Self::Life, Self::Processes, Self::Single, Self::Latency, Self::Steady];

    /// Whether it says anything about this contestant.
    pub fn suits(self, contestant: &Contestant) -> bool {
        let floor = contestant.role == Role::Floor;
        match self {
            Self::Life | Self::Processes | Self::Sixteen | Self::Waiting => true,
            Self::Single => !floor || contestant.history == History::Kept,
            Self::Finished => contestant.history == History::Kept,
            // The floor looks again and again, with a plan that was made while its table was empty: nobody would
            // have it so.
            Self::Latency | Self::Steady => !floor,
            Self::Pinned => !floor && contestant.store == Store::Postgres,
            Self::Together => Self::Finished.suits(contestant) && Self::Pinned.suits(contestant),
        }
    }

    pub fn measure(self, ground: &Ground, contestant: &Contestant) -> Outcome<Vec<Line>> {
        let mut stage = Stage::set(ground, contestant)?;
        match self {
            Self::Life => life::measure(&mut stage, 1),
            Self::Processes => life::measure(&mut stage, 4),
            Self::Sixteen => life::measure(&mut stage, 16),
            Self::Single => single::measure(&mut stage),
            Self::Latency => latency::measure(&mut stage),
            Self::Steady => steady::measure(&mut stage),
            Self::Waiting => hard::waiting(&mut stage),
            Self::Finished => hard::finished(&mut stage),
            Self::Pinned => hard::pinned(&mut stage),
            Self::Together => hard::together(&mut stage),
        }
    }
}

/// What all figures stand on.
pub struct Ground<'g> {
    pub stores: &'g Stores,
    pub installer: &'g Installer,
    pub options: &'g Options,
}

/// A contestant with its tables in a database of its own.
struct Stage<'g> {
    ground: &'g Ground<'g>,
    contestant: &'g Contestant,
    database: Box<dyn Database>,
}

impl<'g> Stage<'g> {
    fn set(ground: &'g Ground<'g>, contestant: &'g Contestant) -> Outcome<Self> {
        let stage = Self { ground, contestant, database: ground.stores.empty(contestant.store)? };
        stage.program()?.ask("setup", PATIENCE)?;
        Ok(stage)
    }

    fn line(&self, figure: &'static str) -> Line {
        Line::new(figure, self.contestant.name)
    }

    fn program(&self) -> Outcome<Program> {
        Program::start(self.ground.installer, self.contestant, self.database.url())
    }

    /// A program that so many clients enqueue through.
    fn producer(&self, clients: u64) -> Outcome<Program> {
        let mut program = self.program()?;
        program.ask(&format!("open {clients}"), PATIENCE)?;
        Ok(program)
    }

    fn workers(&self, processes: usize) -> Outcome<Workers> {
        Ok(Workers::new((0..processes).map(|_| self.program()).collect::<Outcome<_>>()?))
    }

    /// Its part of the jobs that a fast contestant drains.
    fn jobs(&self) -> u64 {
        self.contestant.part_of(self.ground.options.jobs)
    }

    /// Enqueues so many jobs in bulk, without a look at the cost.
    fn fill(&self, jobs: u64) -> Outcome {
        let put = format!("put {jobs} {}", self.contestant.bulk);
        self.producer(1)?.ask(&put, long(jobs))?;
        Ok(())
    }

    fn seconds(&self) -> Duration {
        Duration::from_secs(self.ground.options.seconds)
    }
}

/// How long so many jobs may take whom they take longest.
fn long(jobs: u64) -> Duration {
    PATIENCE + Duration::from_millis(10) * u32::try_from(jobs).unwrap_or(u32::MAX)
}
