//! What workers ask: reserving, renewing, settling and reporting.

mod aside;
mod beside;
mod claim;
mod claiming;
mod grant;
#[cfg(test)]
mod plans;
mod renew;
mod report;
mod settle;
mod succeed;
mod turn;

use tenure_core::{Settlement, limits};
use tenure_store::{Held, Renew, Renewal, Report, Reported, Reservation, Reserve, Turn};

use tokio::sync::mpsc;

use crate::command::{Errand, Reply};
use crate::inbox::Inbox;
use crate::link::Link;

pub(crate) use beside::{Beside, work_up};

/// What a worker asks.
pub(crate) enum Ask {
    Turn(Vec<Settlement>, Option<Reserve>, Reply<Turn>),
    Reserve(Reserve, Reply<Reservation>),
    Renew(Renew, Reply<Vec<Renewal>>),
    Report(Vec<Report>, Reply<Vec<Reported>>),
}

/// Who wants a running job to have a standing.
pub(crate) type Alone = (Held, Reply<()>);

/// About how many rows are written together, if so many wait.
const TOGETHER: usize = 2_000;

impl Ask {
    fn weight(&self) -> usize {
        match self {
            Self::Turn(settlements, then, _) => {
                1 + settlements.len() + then.as_ref().map_or(0, granted_at_most)
            }
            Self::Reserve(ask, _) => 1 + granted_at_most(ask),
            Self::Renew(ask, _) => 1 + ask.held.len(),
            Self::Report(reports, _) => 1 + reports.len(),
        }
    }
}

fn granted_at_most(ask: &Reserve) -> usize {
    ask.at_most.min(limits::RESERVE_JOBS)
}

/// Does what is asked, as much at once as waits. Turns with much to do are worked up `beside` it; what nobody has to wait for is left
/// to whoever `reads`.
pub(crate) async fn work(
    mut link: Link,
    mut beside: Beside,
    mut inbox: Inbox<Ask>,
    reads: mpsc::Sender<Errand>,
) {
    while let Some(asks) = link.rest(inbox.gather(TOGETHER, Ask::weight)).await {
        let mut turns = Vec::new();
        for ask in asks {
            match ask {
                Ask::Renew(ask, reply) => {
                    beside.rest().await;
                    reply.send(renew::renew(&mut link, &ask).await);
                }
                Ask::Report(reports, reply) => {
                    beside.rest().await;
                    reply.send(report::report(&mut link, &reports).await);
                }
                Ask::Turn(settlements, then, reply) => {
                    turns.push(turn::Asked { settlements, then, reply: turn::To::Turn(reply) });
                }
                // What was granted to him, and he does not hear of, would wait until it lapses.
                Ask::Reserve(_, reply) if reply.is_in_vain() => {}
                Ask::Reserve(ask, reply) => {
                    let reply = turn::To::Reserve(reply);
                    turns.push(turn::Asked { settlements: Vec::new(), then: Some(ask), reply });
                }
            }
        }
        // Two tasks that wait for each other cannot share one connection.
        let much = match link.database.is_short() {
            true => None,
            false => beside::take_out_much(&link.memory, &mut turns),
        };
        if let Some(much) = much {
            if beside.take(&mut link, much).await.is_err() {
                return;
            }
        } else if !turns.is_empty() {
            beside.rest().await;
            turn::take(&mut link, turns).await;
        }
        aside::look(&link.memory, &link.database.time, &reads);
    }
}

/// Lets running jobs have standings, as many at once as wait. Whoever asks has a transaction of its own open, for which a
/// turn may be waiting: so nobody who asks waits for a turn.
pub(crate) async fn stand_alone(mut link: Link, mut inbox: Inbox<Alone>) {
    while let Some(asked) = link.rest(inbox.gather(TOGETHER, |_| 1)).await {
        let held: Vec<Held> = asked.iter().map(|(held, _)| *held).collect();
        let answer = renew::stand_alone(&mut link, &held).await;
        asked.into_iter().for_each(|(_, reply)| reply.send(answer.clone()));
    }
}
