//! A turn: what is settled, then what is granted, with as few round trips as can be.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::{Reserved, RetryPolicy, Settlement, StateName, Timestamp, Verdict, limits};
use tenure_store::{Fault, Happening, Reservation, Reserve, Settled, Turn};
use tokio_postgres::Row;

use super::claim;
use super::settle::settle;
use super::succeed::{Success, Successes};
use crate::command::Reply;
use crate::fault::Effect;
use crate::heads::{self, Head};
use crate::keyed::{self, Around};
use crate::lanes;
use crate::link::Link;
use crate::news::News;
use crate::query::Query;
use crate::sweep;
use crate::value;

/// So many ordinary ends are worth a transaction of their own.
const MANY: usize = 100;

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
pub(super) async fn take(link: &mut Link, beside: &mut Link, turns: Vec<Asked>) {
    if turns.is_empty() {
        return;
    }
    let settlements: Vec<&Settlement> = turns.iter().flat_map(|turn| &turn.settlements).collect();
    let first_ask = turns.iter().position(|turn| turn.then.is_some());
    let ask = first_ask.and_then(|index| turns[index].then.as_ref());
    // What is settled shares the round trip of the first claim.
    let outcome = settle_and_reserve(link, beside, &settlements, ask).await;
    let (settled, mut first) = match outcome {
        Ok((settled, reservation)) => (settled, reservation),
        // One of them may be what cannot be done.
        Err(Fault::Unavailable(_)) if turns.len() > 1 => {
            for turn in turns {
                Box::pin(take(link, beside, vec![turn])).await;
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
            Some(ask) => settle_and_reserve(link, beside, &[], Some(ask))
                .await
                .map(|(_, granted)| granted.unwrap_or_default()),
        };
        turn.reply.send(reservation.map(|reservation| Turn { settled: of_turn, reservation }));
    }
}

impl To {
    fn send(self, answer: Result<Turn, Fault>) {
        match self {
            Self::Turn(reply) => reply.send(answer),
            Self::Reserve(reply) => reply.send(answer.map(|turn| turn.reservation)),
        }
    }
}

async fn settle_and_reserve(
    link: &mut Link,
    beside: &mut Link,
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
    if let (true, Some(ask), true) = (others.is_empty(), ask, successes.len() >= MANY) {
        let (granted, rows) = end_beside(link, beside, ask, ends).await?;
        let noted = note_ends(link, &successes, settlements, &rows, &mut settled).await;
        return go_on(link, noted.map(|()| settled), Some(ask), Some(granted)).await;
    }
    if others.is_empty() {
        let (granted, rows) = end_and_claim(link, ask, ends).await?;
        let noted = note_ends(link, &successes, settlements, &rows, &mut settled).await;
        return go_on(link, noted.map(|()| settled), ask, granted).await;
    }
    let careful: Vec<&Settlement> = others.iter().map(|index| settlements[*index]).collect();
    let (answers, rows) = settle(link, &careful, ends).await?;
    others.iter().zip(answers).for_each(|(index, answer)| settled[*index] = answer);
    note_ends(link, &successes, settlements, &rows, &mut settled).await?;
    let (granted, _) = end_and_claim(link, ask, Vec::new).await?;
    go_on(link, Ok(settled), ask, granted).await
}

/// What a claim has granted, and whether keys have to be asked then.
#[derive(Default)]
struct Granted {
    reservation: Reservation,
    /// How many were granted for each want, if there may be more by keys, or something is to be taken from its holder.
    had: Option<Vec<usize>>,
}

/// Writes ordinary ends, and at the same time grants what is asked for: the server has more than one processor.
async fn end_beside(
    link: &mut Link,
    beside: &mut Link,
    ask: &Reserve,
    ends: impl Fn() -> Vec<Query>,
) -> Result<(Granted, Vec<Vec<Row>>), Fault> {
    let ending = end_and_claim(beside, None, ends);
    let reserving = end_and_claim(link, Some(ask), Vec::new);
    let (ended, reserved) = tokio::join!(ending, reserving);
    match (ended, reserved) {
        (Ok((_, rows)), Ok((granted, _))) => Ok((granted.unwrap_or_default(), rows)),
        // What was settled is told; what else there is to do is done by the next turn.
        (Ok((_, rows)), Err(fault)) => {
            tracing::warn!(%fault, "nothing could be granted");
            let reservation = Reservation { jobs: Vec::new(), due_in: Some(Duration::ZERO) };
            Ok((Granted { reservation, had: None }, rows))
        }
        (Err(fault), Ok((granted, _))) => {
            give_back(link, granted.unwrap_or_default().reservation).await;
            Err(fault)
        }
        (Err(fault), Err(_)) => Err(fault),
    }
}

/// Goes on once it is written what was settled: only then is anything taken from its holder, who may just have told of its
/// end, and only then are keys asked. What was granted is given back if nobody can be told what was settled.
async fn go_on(
    link: &mut Link,
    settled: Result<Vec<Settled>, Fault>,
    ask: Option<&Reserve>,
    granted: Option<Granted>,
) -> Result<(Vec<Settled>, Option<Reservation>), Fault> {
    let settled = match settled {
        Ok(settled) => settled,
        Err(fault) => {
            give_back(link, granted.unwrap_or_default().reservation).await;
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
            tracing::warn!(%fault, "keys could not be asked");
            Ok((settled, Some(Reservation { jobs: Vec::new(), due_in: Some(Duration::ZERO) })))
        }
    }
}

/// Gives back what was granted to somebody who will not hear of it.
async fn give_back(link: &mut Link, reservation: Reservation) {
    if reservation.jobs.is_empty() {
        return;
    }
    let policy = RetryPolicy::default();
    let release = |reserved: Reserved| reserved.settle(Verdict::Released, &policy, 0.0);
    let released: Vec<Settlement> = reservation.jobs.into_iter().map(release).collect();
    if let Err(fault) = settle(link, &released.iter().collect::<Vec<_>>(), Vec::new).await {
        tracing::warn!(%fault, jobs = released.len(), "what was granted to nobody could not be given back; it lapses");
    }
}

/// Writes ordinary ends and grants what is asked for; answers also what came of the ends.
async fn end_and_claim(
    link: &mut Link,
    ask: Option<&Reserve>,
    ends: impl Fn() -> Vec<Query>,
) -> Result<(Option<Granted>, Vec<Vec<Row>>), Fault> {
    let mut tries = 0;
    loop {
        let tried = match (ask, ends()) {
            (None, ends) if ends.is_empty() => return Ok((None, Vec::new())),
            (None, ends) => run_alone(link, ends).await.map(|rows| (None, rows)),
            (Some(ask), ends) => grant(link, ask, ends).await.map(|(granted, rows)| (Some(granted), rows)),
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
    Ok(run(link, &all, Effect::Commits).await?.into_iter().skip(1).collect())
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

/// Grants what is asked for, after statements that are sent along; answers also what these did.
async fn grant(
    link: &mut Link,
    ask: &Reserve,
    before: Vec<Query>,
) -> Result<(Granted, Vec<Vec<Row>>), Fault> {
    let look = Look { lapses: true, lines_up: may_line_up(link) };
    let (mut reservation, mut around, rows, mut had) = claim_all(link, ask, before, look).await?;
    let meets_new = around.last_lane > link.memory.lanes().last();
    let lapses = around.held_until.is_some_and(|until| until <= around.now);
    let met = if meets_new { meet_lanes(link).await } else { Ok(()) };
    if reservation.jobs.is_empty() {
        met?;
        // Something has come due of which nobody here had heard.
        let came_due = !look.lines_up && around.due_later == Some(Duration::ZERO);
        if (meets_new || came_due) && !lapses && !around.keyed {
            let look = Look { lapses: came_due, lines_up: came_due };
            (reservation, around, _, had) = claim_all(link, ask, Vec::new(), look).await?;
        }
    }
    reservation.due_in = around.due_in();
    // What lapsed is taken from its holder by the same turn: who waits for its end hears of it at the next.
    let had = (around.keyed || lapses).then_some(had);
    Ok((Granted { reservation, had }, rows))
}

/// Takes from its holder what lapsed, and grants what keys let go, if there is anything of it.
async fn by_keys(link: &mut Link, ask: &Reserve, granted: Granted) -> Result<Reservation, Fault> {
    let Granted { mut reservation, had } = granted;
    let Some(had) = had else { return Ok(reservation) };
    match keyed::reserve(link, ask, &had).await {
        Ok((keyed, due_in)) => {
            // What was granted for the first want comes first.
            let wants = had.iter().enumerate().flat_map(|(want, had)| std::iter::repeat_n(want, *had));
            let mut jobs: Vec<_> = wants.zip(reservation.jobs).chain(keyed).collect();
            jobs.sort_by_key(|(want, _)| *want);
            reservation.jobs = jobs.into_iter().map(|(_, job)| job).collect();
            reservation.due_in = due_in;
        }
        Err(fault) if reservation.jobs.is_empty() => return Err(fault),
        // What was granted is told, whatever went wrong; what else there is to do is done by the next turn.
        Err(fault) => {
            tracing::warn!(%fault, "keys could not be asked");
            reservation.due_in = Some(Duration::ZERO);
        }
    }
    Ok(reservation)
}

async fn meet_lanes(link: &mut Link) -> Result<(), Fault> {
    let last = link.memory.lanes().last();
    let new = lanes::read(&link.connection().await?.read(lanes::behind(last)).await?)?;
    link.memory.lanes().meet(new);
    Ok(())
}

/// What was granted, what was around, what was sent along did, and how many were granted for each want.
type Claimed = (Reservation, Around, Vec<Vec<Row>>, Vec<usize>);

/// Whoever begins an epoch waits for as long as anything may be held of which it has not heard.
pub(super) const TELL_TTL: &str = "UPDATE meta SET value = $1 WHERE name = 'ttl' AND value < $1";

/// What a claim looks for first.
#[derive(Clone, Copy)]
struct Look {
    /// What has lapsed: nothing is granted then.
    lapses: bool,
    /// What has come due, and is to be lined up.
    lines_up: bool,
}

/// Whether something may have come due. To look for that costs about as much as a claim does. A given clock is for those who
/// want to know beforehand what comes.
fn may_line_up(link: &Link) -> bool {
    let time = &link.database.time;
    time.told().is_some() || link.memory.heads().may_be_due(time.clock().moment())
}

/// Claims, in one transaction with what is sent along; answers also what that did.
async fn claim_all(
    link: &mut Link,
    ask: &Reserve,
    before: Vec<Query>,
    first: Look,
) -> Result<Claimed, Fault> {
    let (time, memory) = (link.database.time.clone(), Arc::clone(&link.memory));
    let told = time.told();
    // A given clock is for those who want to know beforehand what comes.
    let head = if told.is_some() { heads::START } else { memory.heads().begin(time.clock().moment()) };
    let lapses_behind = first.lapses.then_some(head);
    let mut left = ask.at_most.min(limits::RESERVE_JOBS);
    let wanted: usize = ask.wants.iter().map(|want| want.at_most.min(left)).sum();
    // If each want may have all that it wants, none has to wait for another.
    let together = if wanted <= left { ask.wants.len().max(1) } else { 1 };
    let (mut jobs, mut news) = (Vec::new(), News::for_whom(&memory.bulletin));
    let all = claim::meant(&memory, &ask.wants);
    let mut had = vec![0; ask.wants.len()];
    let mut queries = vec![Query::new("BEGIN")];
    let of_others = before.len();
    queries.extend(before);
    let ttl = value::micros(ask.ttl);
    if link.connection().await?.ttl_told < ttl {
        queries.push(Query::new(TELL_TTL).with(ttl));
    }
    if first.lines_up {
        queries.push(sweep::line_up(told, head));
    }
    if !ask.wants.is_empty() {
        queries.push(Query::new(keyed::CLAIM).with(all.0.clone()));
    }
    let queues: BTreeSet<_> = ask.wants.iter().map(|want| &want.queue).collect();
    let apart = queues.len() == ask.wants.len();
    let mut done = 0;
    let mut chunks = ask.wants.chunks(together);
    // What lies before a mark is found by the next look at the whole line.
    let (mut rows_of_others, mut whole_in) = (None, None);
    loop {
        let chunk = chunks.next().unwrap_or_default();
        let is_last = chunks.len() == 0;
        let first_claim = queries.len();
        let mut claiming = Vec::new();
        for (index, want) in (done..).zip(chunk) {
            // If no want has to wait for another, or may take what another wants, each is asked about by itself.
            let meant = if together > 1 && apart {
                claim::meant(&memory, std::slice::from_ref(want))
            } else {
                all.clone()
            };
            let most = want.at_most.min(left);
            if let Some(claim) = claim::claim(&memory, ask, want, most, &time, lapses_behind, &meant) {
                queries.push(claim.query);
                claiming.push((index, claim.of));
            }
        }
        done += chunk.len();
        let look = queries.len();
        if is_last {
            queries.extend([look_around(told, &all, head), Query::new("COMMIT")]);
        }
        let effect = if is_last { Effect::Commits } else { Effect::None };
        let sent = time.clock().moment();
        let mut rows = run(link, &queries, effect).await?;
        for (claimed, (index, of)) in rows[first_claim..look].iter().zip(claiming) {
            let granted = claim::granted(&memory, &mut news, ask, claimed);
            if let Some((lane, from)) = of {
                let (mut marks, now) = (memory.marks(), time.clock().moment());
                whole_in = whole_in.into_iter().chain(marks.whole_in(lane, now)).min();
                marks.looked(lane, from, granted.took, &granted.places, now);
            }
            if granted.jobs.len() < ask.wants[index].at_most {
                memory.look_closely();
            }
            had[index] = granted.jobs.len();
            left = left.saturating_sub(granted.jobs.len());
            jobs.extend(granted.jobs);
        }
        if is_last {
            link.told_ttl(ttl);
        }
        let around = if is_last {
            let heads_whole_in = memory.heads().whole_in(time.clock().moment()).filter(|_| told.is_none());
            let whole_in = whole_in.into_iter().chain(heads_whole_in).min();
            let around = keyed::around(rows[look].first(), whole_in)?;
            if told.is_none() {
                let mut heads = memory.heads();
                heads.comes_due(around.due_later, sent);
                heads.looked(head, around.took, around.head, time.clock().moment());
                heads.holds(around.now.as_micros().saturating_add(ttl));
            }
            Some(around)
        } else {
            None
        };
        rows_of_others.get_or_insert_with(|| rows.drain(1..=of_others).collect::<Vec<_>>());
        if let Some(around) = around {
            // Whoever asked in vain has nothing to tell.
            if !jobs.is_empty() || of_others > 0 {
                memory.publish(news);
            }
            let reservation = Reservation { jobs, due_in: None };
            return Ok((reservation, around, rows_of_others.unwrap_or_default(), had));
        }
        queries.clear();
    }
}

fn look_around(now: Option<i64>, (queues, lanes): &(Vec<String>, Vec<i32>), from: Head) -> Query {
    let look = Query::new(keyed::AROUND).with(now).with(queues.clone()).with(lanes.clone());
    look.with(from.held).with(from.later)
}

/// Runs a transaction, or a part of one; the part that commits is the last.
async fn run(link: &mut Link, queries: &[Query], effect: Effect) -> Result<Vec<Vec<Row>>, Fault> {
    let begins = queries.first().is_some_and(|query| query.sql == "BEGIN");
    let connection = if begins { link.connection().await? } else { link.in_transaction()? };
    connection.in_transaction = true;
    let answered = connection.run(queries, effect).await?;
    connection.in_transaction = effect == Effect::None;
    Ok(answered.into_iter().map(|answered| answered.rows).collect())
}
