//! A turn: what is settled, then what is granted, with as few round trips as can be.

use std::time::Duration;

use tenure_core::{Reserved, RetryPolicy, Settlement, StateName, Timestamp, Verdict};
use tenure_store::{Fault, Happening, Reservation, Reserve, Settled, Turn};
use tokio_postgres::Row;

use super::grant::{Early, Granted, Read, by_keys, grant};
use super::settle::settle;
use super::succeed::{Success, Successes};
use crate::command::Reply;
use crate::fault::Effect;
use crate::link::Link;
use crate::news::News;
use crate::query::Query;

/// A turn that somebody asked for.
pub(super) struct Asked {
    pub settlements: Vec<Settlement>,
    pub then: Option<Reserve>,
    pub reply: To,
}

/// Who waits for the answer.
pub(super) enum To {
    Turn(Reply<Turn>),
    Reserve(Reply<Reservation>),
}

/// Takes the turns that wait, in order: all that is settled is settled together.
pub(super) async fn take(link: &mut Link, mut turns: Vec<Asked>) {
    if let [Asked { settlements, then: Some(_), .. }] = turns.as_slice()
        && settlements.is_empty()
        && let Some(Asked { then: Some(ask), reply, .. }) = turns.pop()
    {
        return reserve(link, &ask, reply).await;
    }
    if turns.is_empty() {
        return;
    }
    let settlements: Vec<&Settlement> = turns.iter().flat_map(|turn| &turn.settlements).collect();
    let first_ask = turns.iter().position(|turn| turn.then.is_some());
    let ask = first_ask.and_then(|index| turns[index].then.as_ref());
    // What is settled shares the round trip of the first claim.
    let outcome = settle_and_reserve(link, &settlements, ask).await;
    let (settled, mut first) = match outcome {
        Ok((settled, reservation)) => (settled, reservation),
        // One of them may be what cannot be done.
        Err(Fault::Unavailable(_)) if turns.len() > 1 => {
            for turn in turns {
                Box::pin(take(link, vec![turn])).await;
            }
            return;
        }
        Err(fault) => {
            turns.into_iter().for_each(|turn| turn.reply.send(Err(fault.clone())));
            return;
        }
    };
    let mut settled = settled.into_iter();
    for (index, turn) in turns.into_iter().enumerate() {
        let of_turn = settled.by_ref().take(turn.settlements.len()).collect();
        let reservation = match &turn.then {
            None => Ok(Reservation::default()),
            Some(_) if Some(index) == first_ask => Ok(first.take().unwrap_or_default()),
            Some(ask) => {
                settle_and_reserve(link, &[], Some(ask)).await.map(|(_, granted)| granted.unwrap_or_default())
            }
        };
        turn.reply.send(reservation.map(|reservation| Turn { settled: of_turn, reservation }));
    }
}

/// Grants what one asks for who has nothing to settle. He is answered before all is done that is to be done.
async fn reserve(link: &mut Link, ask: &Reserve, reply: To) {
    let mut early = Early::new(link, ask, reply);
    let granted = end_and_claim(link, Some((ask, Some(&mut early))), Vec::new).await;
    let Some(reply) = early.not_yet_answered() else { return };
    let reservation = match granted {
        Ok((granted, _)) => {
            let granted = granted.unwrap_or_default().read(&link.memory, ask);
            by_keys(link, ask, granted).await
        }
        Err(fault) => Err(fault),
    };
    reply.send(reservation.map(|reservation| Turn { settled: Vec::new(), reservation }));
}

impl To {
    /// Whether nobody waits for it any more.
    pub(super) fn is_in_vain(&self) -> bool {
        match self {
            Self::Turn(reply) => reply.is_in_vain(),
            Self::Reserve(reply) => reply.is_in_vain(),
        }
    }

    pub(super) fn send(self, answer: Result<Turn, Fault>) {
        match self {
            Self::Turn(reply) => reply.send(answer),
            Self::Reserve(reply) => reply.send(answer.map(|turn| turn.reservation)),
        }
    }
}

/// Ends ownerships and grants what is asked for.
async fn settle_and_reserve(
    link: &mut Link,
    settlements: &[&Settlement],
    ask: Option<&Reserve>,
) -> Result<(Vec<Settled>, Option<Reservation>), Fault> {
    let mut successes = Successes::default();
    let mut others = Vec::new();
    for (index, settlement) in settlements.iter().enumerate() {
        if !successes.take(&link.memory, index, settlement) {
            others.push(index);
        }
    }
    let mut settled = vec![Settled::Gone; settlements.len()];
    let told = link.database.time.told();
    let ends = || successes.statements(told);
    if others.is_empty() {
        let (granted, rows) = end_and_claim(link, ask.map(|ask| (ask, None)), ends).await?;
        let granted = read(link, ask, granted);
        let noted = note_ends(link, &successes, settlements, &rows, &mut settled).await;
        return go_on(link, noted.map(|()| settled), ask, granted).await;
    }
    let careful: Vec<&Settlement> = others.iter().map(|index| settlements[*index]).collect();
    let (answers, rows) = settle(link, &careful, ends).await?;
    others.iter().zip(answers).for_each(|(index, answer)| settled[*index] = answer);
    note_ends(link, &successes, settlements, &rows, &mut settled).await?;
    let (granted, _) = end_and_claim(link, ask.map(|ask| (ask, None)), Vec::new).await?;
    let granted = read(link, ask, granted);
    go_on(link, Ok(settled), ask, granted).await
}

fn read(link: &Link, ask: Option<&Reserve>, granted: Option<Granted>) -> Option<Read> {
    Some(granted?.read(&link.memory, ask?))
}

/// Ends ownerships.
pub(super) async fn end(link: &mut Link, settlements: &[Settlement]) -> Result<Vec<Settled>, Fault> {
    let settlements: Vec<&Settlement> = settlements.iter().collect();
    settle_and_reserve(link, &settlements, None).await.map(|(settled, _)| settled)
}

/// Claims what is asked for.
pub(super) async fn claim(link: &mut Link, ask: &Reserve) -> Result<Granted, Fault> {
    end_and_claim(link, Some((ask, None)), Vec::new).await.map(|(granted, _)| granted.unwrap_or_default())
}

/// Goes on once it is written what was settled: only then is anything taken from its holder, who may just have told of its
/// end, and only then are keys asked. What was granted is given back if nobody can be told what was settled.
pub(super) async fn go_on(
    link: &mut Link,
    settled: Result<Vec<Settled>, Fault>,
    ask: Option<&Reserve>,
    granted: Option<Read>,
) -> Result<(Vec<Settled>, Option<Reservation>), Fault> {
    let settled = match settled {
        Ok(settled) => settled,
        Err(fault) => {
            give_back(link, granted.unwrap_or_default()).await;
            return Err(fault);
        }
    };
    let (Some(ask), Some(granted)) = (ask, granted) else { return Ok((settled, None)) };
    let is_told = settled.is_empty();
    match by_keys(link, ask, granted).await {
        Ok(reservation) => Ok((settled, Some(reservation))),
        Err(fault) if is_told => Err(fault),
        // What was settled is told, whatever went wrong; what else there is to do is done by the next turn.
        Err(fault) => {
            tracing::warn!(%fault, "failed to check ordering keys and limits");
            Ok((settled, Some(next_turn())))
        }
    }
}

/// What whoever is granted nothing is told if there may be something: to ask again.
pub(super) fn next_turn() -> Reservation {
    Reservation { jobs: Vec::new(), due_in: Some(Duration::ZERO) }
}

/// Gives back what was granted to somebody who will not hear of it.
pub(super) async fn give_back(link: &mut Link, granted: Read) {
    if granted.jobs.is_empty() {
        return;
    }
    let policy = RetryPolicy::default();
    let release = |(_, reserved): (usize, Reserved)| reserved.settle(Verdict::Released, &policy, 0.0);
    let released: Vec<Settlement> = granted.jobs.into_iter().map(release).collect();
    if let Err(fault) = settle(link, &released.iter().collect::<Vec<_>>(), Vec::new).await {
        tracing::warn!(%fault, jobs = released.len(), "failed to release undelivered jobs; their leases will expire");
    }
}

/// Writes ordinary ends and grants what is asked for; answers also what came of the ends.
async fn end_and_claim(
    link: &mut Link,
    mut ask: Option<(&Reserve, Option<&mut Early>)>,
    ends: impl Fn() -> Vec<Query>,
) -> Result<(Option<Granted>, Vec<Vec<Row>>), Fault> {
    let mut tries = 0;
    loop {
        let tried = match (&mut ask, ends()) {
            (None, ends) if ends.is_empty() => return Ok((None, Vec::new())),
            (None, ends) => run_alone(link, ends).await.map(|rows| (None, rows)),
            (Some((ask, early)), ends) => {
                let granted = grant(link, ask, ends, early.as_deref_mut()).await;
                granted.map(|(granted, rows)| (Some(granted), rows))
            }
        };
        if tried.is_ok() || !link.may_try_again(&mut tries).await {
            return tried;
        }
    }
}

async fn run_alone(link: &mut Link, queries: Vec<Query>) -> Result<Vec<Vec<Row>>, Fault> {
    let mut all = vec![Query::new("BEGIN")];
    all.extend(queries);
    all.push(Query::new("COMMIT"));
    let connection = link.connection().await?;
    connection.in_transaction = true;
    let answered = connection.run(&all, Effect::Commits).await?;
    connection.in_transaction = false;
    Ok(answered.into_iter().skip(1).map(|answered| answered.rows).collect())
}

/// Notes what came of ordinary ends. Those that were refused are looked at one by one.
async fn note_ends(
    link: &mut Link,
    successes: &Successes,
    settlements: &[&Settlement],
    rows: &[Vec<Row>],
    settled: &mut [Settled],
) -> Result<(), Fault> {
    // A look in vain is no news for anybody.
    if successes.len() == 0 {
        return Ok(());
    }
    let mut refused = Vec::new();
    let mut news = News::for_whom(&link.memory.bulletin);
    let now = link.database.time.now();
    for (group, answer) in successes.groups().zip(rows) {
        let Some(row) = answer.first() else { continue };
        news.due |= row.get::<_, bool>(2);
        let done: Option<Vec<i64>> =
            if row.get(0) { None } else { Some(row.get::<_, Option<_>>(1).unwrap_or_default()) };
        for success in group {
            if done.as_ref().is_none_or(|done| done.contains(&success.named)) {
                settled[success.index] = Settled::Done(StateName::Succeeded);
                tell(link, &mut news, now, success);
            } else {
                refused.push(success.index);
            }
        }
    }
    link.memory.publish(news);
    if refused.is_empty() {
        return Ok(());
    }
    let careful: Vec<&Settlement> = refused.iter().map(|index| settlements[*index]).collect();
    let (answers, _) = settle(link, &careful, Vec::new).await?;
    refused.into_iter().zip(answers).for_each(|(index, answer)| settled[index] = answer);
    Ok(())
}

fn tell(link: &Link, news: &mut News, now: Timestamp, success: &Success) {
    if !news.is_heard() {
        return;
    }
    if let Ok(lane) = link.memory.lanes().get(success.lane) {
        let happening = || Happening::Became { state: StateName::Succeeded, failure: None };
        news.note(now, success.id, (&lane.queue, &lane.kind), happening);
    }
}
