//! What the contestants keep their jobs in. Each figure of a contestant gets an empty one.

mod kept;
mod postgres;
mod redis;
mod sqlite;

use std::any::Any;
use std::path::PathBuf;

use clap::ValueEnum;
use serde_json::{Value, json};

use crate::Outcome;

/// Which of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Store {
    Postgres,
    Sqlite,
    Redis,
}

impl Store {
    pub const ALL: [Self; 3] = [Self::Postgres, Self::Sqlite, Self::Redis];

    pub fn name(self) -> &'static str {
        match self {
            Self::Postgres => "PostgreSQL",
            Self::Sqlite => "SQLite",
            Self::Redis => "Redis",
        }
    }

    /// Answers why it cannot be had here.
    pub fn look(self) -> Outcome {
        match self {
            // It is installed when it starts; SQLite comes with the programs.
            Self::Postgres | Self::Sqlite => Ok(()),
            Self::Redis => redis::look(),
        }
    }
}

/// What a database says of itself. What it does not know is `None`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Meters {
    /// CPU seconds of its processes, ended ones too; `None` if it has none of its own.
    pub cpu: Option<f64>,
    /// Bytes of log.
    pub log: Option<f64>,
}

/// The database of one figure.
pub trait Database {
    fn url(&self) -> &str;
    /// Statistics up to date and pages on disk, alike for all before anything is timed.
    fn rest(&mut self) -> Outcome;
    fn meters(&mut self) -> Outcome<Meters>;
    /// Answers one number. The statement is in the language of the store.
    fn count(&mut self, statement: &str) -> Outcome<i64>;
    /// Somebody whose snapshot keeps every dead row in its place until this is dropped.
    fn pin(&self) -> Outcome<Box<dyn Any>> {
        Err("it cannot be pinned".into())
    }
    /// Tells which statements cost most since this was last asked, if it knows.
    fn tell_statements(&mut self, _of: &str) -> Outcome {
        Ok(())
    }
}

/// The stores of one run, gone with it.
pub struct Stores {
    postgres: Option<postgres::Server>,
    /// Where files are kept.
    directory: PathBuf,
}

impl Stores {
    /// Those that somebody needs.
    pub fn start(needed: &[Store], directory: PathBuf, tells_statements: bool) -> Outcome<Self> {
        std::fs::create_dir_all(&directory)?;
        let start = || postgres::Server::start(tells_statements);
        let postgres = needed.contains(&Store::Postgres).then(start).transpose()?;
        Ok(Self { postgres, directory })
    }

    /// An empty database: nobody inherits what another has left.
    pub fn empty(&self, store: Store) -> Outcome<Box<dyn Database>> {
        Ok(match store {
            Store::Postgres => {
                Box::new(self.postgres.as_ref().ok_or("it was not started")?.empty_database()?)
            }
            Store::Sqlite => Box::new(sqlite::File::new(&self.directory)?),
            Store::Redis => Box::new(redis::Server::start(&self.directory)?),
        })
    }

    /// What is used, and how.
    pub fn describe(&self) -> Outcome<Value> {
        let postgres = self.postgres.as_ref().map(postgres::Server::describe).transpose()?;
        Ok(json!({ "postgres": postgres, "redis": redis::describe(), "sqlite": sqlite::SETTINGS }))
    }
}
