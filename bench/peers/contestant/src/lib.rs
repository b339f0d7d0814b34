//! What every contestant written in Rust shares: the lines that it and the driver say to each other.
//!
//! The driver starts a contestant with the URL of an empty database in `DATABASE_URL`, says one command a line, and
//! gets lines of JSON back. The README has the commands.
#![forbid(unsafe_code)]

mod args;
mod clock;
mod enqueueing;
mod lines;
mod tally;
mod working;

use std::error::Error;
use std::pin::Pin;
use std::process::ExitCode;

pub use args::Args;
pub use tally::begun;

use enqueueing::Producers;
use lines::Lines;

/// What went well or did not.
pub type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// What ends a worker, once all that it has begun is on record.
pub type Ending = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// A job system that takes part.
pub trait Contestant {
    /// What enqueues.
    type Producer: Producer;
    /// Makes its tables in an empty database.
    fn lay_out(&self) -> impl Future<Output = Outcome>;
    /// Connects so that so many clients can enqueue at once.
    fn producer(&self, clients: usize) -> impl Future<Output = Outcome<Self::Producer>>;
    /// Starts to work. The handler does nothing but call [`begun`].
    fn work(&self) -> impl Future<Output = Outcome<Ending>>;
}

/// What enqueues. Its clones share their connections.
pub trait Producer: Clone + Send + Sync + 'static {
    /// Enqueues one job, as somebody would who has one.
    fn one(&self, args: Args) -> impl Future<Output = Outcome> + Send;
    /// Enqueues a batch, in the best way that the system offers.
    fn many(&self, all: Vec<Args>) -> impl Future<Output = Outcome> + Send;
}

/// The URL of the database.
pub fn url() -> String {
    std::env::var("DATABASE_URL").unwrap_or_default()
}

/// Does what the driver says until it says no more.
pub fn compete(contestant: impl Contestant) -> ExitCode {
    let obeyed = tokio::runtime::Runtime::new()
        .map_err(Into::into)
        .and_then(|runtime| runtime.block_on(obey(&contestant, Lines::of_stdin())));
    match obeyed {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:?}");
            ExitCode::FAILURE
        }
    }
}

async fn obey<C: Contestant>(contestant: &C, mut lines: Lines) -> Outcome {
    let mut producers: Option<Producers<C::Producer>> = None;
    while let Some(line) = lines.next().await {
        let (word, numbers) = line;
        match (word.as_str(), numbers.as_slice(), &producers) {
            ("setup", [], _) => {
                contestant.lay_out().await?;
                lines::say(&serde_json::json!({ "ok": true }));
            }
            ("open", [clients], _) => {
                let clients = *clients as usize;
                producers = Some(Producers::new(contestant.producer(clients).await?, clients));
                lines::say(&serde_json::json!({ "ok": true }));
            }
            ("warm", [jobs], Some(producers)) => producers.warm(*jobs).await?,
            ("put", [jobs, batch], Some(producers)) => producers.put(*jobs, *batch).await?,
            ("pace", [rate, seconds, batch], Some(producers)) => {
                producers.pace(*rate, *seconds, *batch).await?;
            }
            ("flow", [seconds, batch, ahead], Some(producers)) => {
                producers.flow(*seconds, *batch, *ahead, &mut lines).await?;
            }
            ("work", [], _) => working::work(contestant, &mut lines).await?,
            // Said while what it was meant for came to its end.
            ("done", _, _) => {}
            _ => return Err(format!("what is {word} {numbers:?}?").into()),
        }
    }
    Ok(())
}
