//! `tenure queue drain`: a queue is paused, and what runs in it comes to its end.

use std::sync::mpsc::channel;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use tenure::{Clock, SystemClock};

use super::QUEUES;
use crate::client::{Ask, Patience};
use crate::exit::Failure;
use crate::output::{counted, safe};
use crate::span::span;
use crate::with::With;

/// Between two looks.
const EVERY: Duration = Duration::from_millis(500);

/// Arguments of `tenure queue drain`.
#[derive(Debug, Args)]
pub(crate) struct Drain {
    /// Name of the queue
    name: String,
    /// Stop waiting after this time, with exit code 124
    #[arg(long, value_name = "SPAN", value_parser = span)]
    timeout: Option<Duration>,
}

pub(super) fn run(drain: &Drain, with: &mut With) -> Result<(), Failure> {
    let name = safe::line(&drain.name);
    let until = drain.timeout.map(|timeout| SystemClock.moment().after(timeout));
    with.client.ask(&Ask::post(format!("{}/pause", QUEUES.of(&drain.name)), &json!({})))?;
    with.goes.on(format!("queue {name} stays paused; resume it with `tenure queue resume {name}`"));
    let ask = Ask::get(format!("{}/stats", QUEUES.of(&drain.name)));
    let (mut patience, mut said) = (Patience::new(), None);
    loop {
        match with.client.ask(&ask) {
            Ok(answer) => {
                patience.heard();
                let stats = answer.json()?;
                let running = stats["jobs"]["running"].as_u64().unwrap_or_default();
                if running == 0 {
                    return QUEUES.told(
                        with,
                        &paused(with, drain)?,
                        &format!("queue {name} is paused and drained"),
                    );
                }
                if said.replace(running) != Some(running) {
                    with.out.tell(&format!(
                        "queue {name} is paused; waiting for {}",
                        counted(running, "running job")
                    ));
                }
            }
            Err(trouble) => patience.endure(trouble)?,
        }
        if until.is_some_and(|until| until.since(SystemClock.moment()).is_zero()) {
            return Err(Failure::WaitOver(format!(
                "queue {name} is paused, but jobs are still running after the timeout"
            )));
        }
        let (_kept, never) = channel::<()>();
        let _ = never.recv_timeout(EVERY);
    }
}

fn paused(with: &With, drain: &Drain) -> Result<String, Failure> {
    Ok(with.client.ask(&Ask::get(QUEUES.of(&drain.name)))?.text())
}
