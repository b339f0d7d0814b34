//! Working until told to stop.

use std::time::Duration;

use serde_json::json;

use crate::lines::{Lines, say};
use crate::tally::tally;
use crate::{Contestant, Outcome};

/// How often the driver hears how far it is.
const TELLS_EVERY: Duration = Duration::from_millis(10);

/// Works until the driver says `stop`, and tells it meanwhile how many jobs have begun.
pub async fn work(contestant: &impl Contestant, lines: &mut Lines) -> Outcome {
    let ending = contestant.work().await?;
    let (mut ticks, mut told) = (tokio::time::interval(TELLS_EVERY), 0);
    loop {
        tokio::select! {
            biased;
            _ = lines.next() => break,
            _ = ticks.tick() => {
                let begun = tally().begun;
                if begun != told {
                    told = begun;
                    say(&json!({ "done": begun }));
                }
            }
        }
    }
    ending.await?;
    say(&tally().to_json());
    Ok(())
}
