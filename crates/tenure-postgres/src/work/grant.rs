//! Granting what is asked for: jobs are claimed, and it is looked at what is around them.

use std::time::Duration;

use tenure_core::{Reserved, Timestamp};
use tenure_store::{Fault, Moment, Reservation, Reserve, Turn};
use tokio_postgres::Row;

use super::claim;
use super::claiming::{Claiming, Grants, Look};
use super::turn::To;
use crate::fault::Effect;
use crate::heads::Heads;
use crate::keyed::{self, Around};
use crate::lanes;
use crate::link::Link;
use crate::memory::Memory;
use crate::query::Query;
use crate::value;

/// What a claim has granted, and whether keys have to be asked then.
#[derive(Default)]
pub(super) struct Granted {
    grants: Grants,
    due_in: Option<Duration>,
    /// Whether there may be more by keys, or something is to be taken from its holder.
    by_keys: bool,
}

impl Granted {
    /// Reads what was granted.
    pub(super) fn read(self, memory: &Memory, ask: &Reserve) -> Read {
        let jobs = self.grants.read(memory, ask);
        Read { jobs, due_in: self.due_in, had: self.by_keys.then_some(self.grants.had) }
    }
}

/// What a claim has granted, and was read.
#[derive(Default)]
pub(super) struct Read {
    /// Each with the want that it serves.
    pub jobs: Vec<(usize, Reserved)>,
    pub due_in: Option<Duration>,
    /// How many were granted for each want, if there may be more by keys, or something is to be taken from its holder.
    had: Option<Vec<usize>>,
}

/// Whoever is told what was granted to him as soon as that is certain. What is around is looked at after that: if he has to
/// know of it, he is called.
pub(super) struct Early {
    reply: Option<To>,
    /// In how long he is told to look again, from which moment on: what the looks before have seen. `None` if that is not known.
    due: Option<(Moment, Duration)>,
    /// How often somebody had been called when he asked.
    calls: u64,
}

impl Early {
    pub(super) fn new(link: &Link, ask: &Reserve, reply: To) -> Self {
        let (time, memory) = (&link.database.time, &link.memory);
        let now = time.clock().moment();
        // Before half of the time has passed for which it is granted, what is granted now is nothing to look for.
        let next_in = || {
            let next_in = memory.heads().next_in(ask.ttl / 2, now)?;
            let of_heads = memory.heads().whole_in(now);
            let of_lanes = claim::whole_in(memory, &ask.wants, now);
            [of_heads, of_lanes].into_iter().flatten().chain([next_in]).min()
        };
        let calls = memory.bulletin.calls();
        // Who most likely asks in vain shall not ask twice. A given clock is for those who want to know beforehand what comes.
        let waits = memory.vain().has_asked(ask.holder, calls) && !may_line_up(link);
        let due = if waits || time.told().is_some() { None } else { next_in() };
        Self { reply: Some(reply), due: due.map(|span| (now, span)), calls }
    }

    /// Who is not yet answered.
    pub(super) fn not_yet_answered(self) -> Option<To> {
        self.reply
    }

    fn answer(&mut self, memory: &Memory, ask: &Reserve, grants: &Grants) {
        let Some((_, due_in)) = self.due.filter(|_| !grants.are_none()) else { return };
        if let Some(reply) = self.reply.take() {
            let jobs = grants.read(memory, ask).into_iter().map(|(_, job)| job).collect();
            let reservation = Reservation { jobs, due_in: Some(due_in) };
            reply.send(Ok(Turn { settled: Vec::new(), reservation }));
        }
    }

    /// When he was told to look again, if he was answered.
    fn told(&self) -> Option<Moment> {
        self.due.filter(|_| self.reply.is_none()).map(|(from, span)| from.after(span))
    }
}

/// Grants what is asked for, after statements that are sent along; answers also what these did.
pub(super) async fn grant(
    link: &mut Link,
    ask: &Reserve,
    before: Vec<Query>,
    mut early: Option<&mut Early>,
) -> Result<(Granted, Vec<Vec<Row>>), Fault> {
    let look = Look { lapses: true, lines_up: may_line_up(link) };
    let mut claimed = claim_all(link, ask, before, look, early.as_deref_mut()).await?;
    let rows = std::mem::take(&mut claimed.rows);
    let calls = early.as_ref().map(|early| early.calls);
    if !claimed.is_in_vain() {
        link.memory.vain().forget(ask.holder);
    }
    let Some((around, seen)) = &claimed.around else {
        if early.is_some_and(|early| early.told().is_some()) {
            link.memory.bulletin.call_due();
        }
        return Ok((claimed.granted(false), rows));
    };
    let meets_new = around.last_lane > link.memory.lanes().last();
    let lapses = around.held_until.is_some_and(|until| until <= around.now);
    let met = if meets_new { meet_lanes(link).await } else { Ok(()) };
    if let Some(told) = early.and_then(|early| early.told()) {
        let is_sooner = around.next_in().is_some_and(|span| Heads::is_sooner(seen.after(span), told));
        if meets_new || around.keyed || is_sooner {
            link.memory.bulletin.call_due();
        }
        return Ok((Granted::default(), rows));
    }
    if claimed.is_in_vain() {
        met?;
        // Something has come due of which nobody here had heard.
        let came_due = !look.lines_up && around.due_later == Some(Duration::ZERO);
        if (meets_new || came_due) && !lapses && !around.keyed {
            let look = Look { lapses: came_due, lines_up: came_due };
            claimed = claim_all(link, ask, Vec::new(), look, None).await?;
        }
        match calls {
            Some(calls) if claimed.is_in_vain() => link.memory.vain().note(ask.holder, calls),
            None if claimed.is_in_vain() => {}
            _ => link.memory.vain().forget(ask.holder),
        }
    }
    Ok((claimed.granted(lapses), rows))
}

/// Takes from its holder what lapsed, and grants what keys let go, if there is anything of it.
pub(super) async fn by_keys(link: &mut Link, ask: &Reserve, granted: Read) -> Result<Reservation, Fault> {
    let Read { mut jobs, mut due_in, had } = granted;
    let keyed = match had {
        None => Ok(None),
        Some(had) => keyed::reserve(link, ask, &had).await.map(Some),
    };
    match keyed {
        Ok(None) => {}
        Ok(Some((keyed, keyed_due_in))) => {
            if !keyed.is_empty() {
                link.memory.vain().forget(ask.holder);
            }
            let started = keyed.first().and_then(|(_, reserved)| reserved.job().started);
            let until = |started: Timestamp| started.as_micros().saturating_add(value::micros(ask.ttl));
            started.into_iter().for_each(|started| link.memory.heads().holds(until(started)));
            jobs.extend(keyed);
            // What was granted for the first want comes first.
            jobs.sort_by_key(|(want, _)| *want);
            due_in = keyed_due_in;
        }
        Err(fault) if jobs.is_empty() => return Err(fault),
        // What was granted is told, whatever went wrong; what else there is to do is done by the next turn.
        Err(fault) => {
            tracing::warn!(%fault, "failed to check ordering keys and limits");
            due_in = Some(Duration::ZERO);
        }
    }
    Ok(Reservation { jobs: jobs.into_iter().map(|(_, job)| job).collect(), due_in })
}

async fn meet_lanes(link: &mut Link) -> Result<(), Fault> {
    let last = link.memory.lanes().last();
    let new = link.connection().await?.read(lanes::behind(last)).await?;
    link.memory.lanes().meet_rows(&new);
    Ok(())
}

/// Whether something may have come due. To look for that costs about as much as a claim does. A given clock is for those who
/// want to know beforehand what comes.
fn may_line_up(link: &Link) -> bool {
    let time = &link.database.time;
    time.told().is_some() || link.memory.heads().may_be_due(time.clock().moment())
}

/// What a claim did.
struct Claimed {
    grants: Grants,
    /// What is around, by a look that set out at that moment; `None` if it could not be seen.
    around: Option<(Around, Moment)>,
    /// What was sent along did.
    rows: Vec<Vec<Row>>,
}

impl Claimed {
    fn is_in_vain(&self) -> bool {
        self.grants.are_none()
    }

    fn granted(self, lapses: bool) -> Granted {
        let unseen = (Some(Duration::ZERO), false);
        let (due_in, keyed) = self.around.map_or(unseen, |(around, _)| (around.due_in(), around.keyed));
        // What lapsed is taken from its holder by the same turn: who waits for its end hears of it at the next.
        Granted { grants: self.grants, due_in, by_keys: keyed || lapses }
    }
}

/// Claims, in one transaction with what is sent along, and looks at what is around. Whoever can be answered early is as soon
/// as that has committed: what is around is looked at when he has been.
async fn claim_all(
    link: &mut Link,
    ask: &Reserve,
    before: Vec<Query>,
    first: Look,
    early: Option<&mut Early>,
) -> Result<Claimed, Fault> {
    let mut early = early.filter(|early| early.due.is_some());
    let mut claiming = Claiming::new(link, ask, first);
    let clock = link.database.time.clock();
    let connection = link.connection().await?;
    connection.in_transaction = true;
    let mut rows = vec![Vec::new(); before.len()];
    let mut queries = claiming.opening(before, connection.ttl_told);
    let mut from = 0;
    loop {
        let wants = from..ask.wants.len().min(from + claiming.together);
        let is_last = wants.end == ask.wants.len();
        let is_lone = early.is_some() && is_last && from == 0 && queries.is_empty() && wants.len() == 1;
        let fresh = is_lone && !claiming.may_be_begun();
        let (claims, of): (Vec<_>, Vec<_>) = claiming.claims(wants.clone(), fresh).into_iter().unzip();
        let mut claimed = queries.len()..queries.len() + claims.len();
        queries.extend(claims);
        if is_last {
            queries.extend(early.is_none().then(|| claiming.look_around()));
        }
        // One that claims and no more is a transaction by itself: to begin and end one takes as long as much of the claim.
        let is_alone = is_lone && queries.len() == 1;
        if from == 0 && !is_alone {
            queries.insert(0, Query::new("BEGIN"));
            claimed = claimed.start + 1..claimed.end + 1;
        }
        if is_last && !is_alone {
            queries.push(Query::new("COMMIT"));
        }
        let effect = if is_last { Effect::Commits } else { Effect::None };
        let sent = clock.moment();
        let connection = link.in_transaction()?;
        connection.in_transaction = !is_alone;
        let mut done = connection.run(&queries, effect).await?;
        connection.in_transaction = !is_last;
        let behind = done.split_off(claimed.end);
        if !claiming.take_in(done.split_off(claimed.start), &of) {
            return Box::pin(claim_all(link, ask, Vec::new(), first, early)).await;
        }
        let look = behind.into_iter().next().map(|answered| answered.rows).unwrap_or_default();
        let mut done: Vec<Vec<Row>> = done.into_iter().map(|answered| answered.rows).collect();
        if from == 0 {
            rows.iter_mut().zip(done.drain(usize::from(!is_alone)..)).for_each(|(rows, done)| *rows = done);
        }
        if is_last {
            link.told_ttl(value::micros(ask.ttl));
            let around = match &mut early {
                None => claiming.around(&look, sent).map(|around| (around, sent)),
                Some(early) => {
                    early.answer(&link.memory, ask, &claiming.granted);
                    look_around(link, &claiming).await
                }
            };
            let did_nothing = rows.is_empty() && claiming.granted.are_none();
            let around = if did_nothing { Some(around?) } else { seen(around) };
            return Ok(Claimed { grants: claiming.granted, around, rows });
        }
        from = wants.end;
        queries.clear();
    }
}

/// Looks at what is around what was claimed.
async fn look_around(link: &mut Link, claiming: &Claiming<'_>) -> Result<(Around, Moment), Fault> {
    let sent = link.database.time.clock().moment();
    let rows = link.connection().await?.read(claiming.look_around()).await?;
    claiming.around(&rows, sent).map(|around| (around, sent))
}

/// What was seen. What was done is told, whatever went wrong; what else there is to do is done by the next turn.
fn seen(around: Result<(Around, Moment), Fault>) -> Option<(Around, Moment)> {
    let told = around.inspect_err(|fault| {
        tracing::warn!(%fault, "failed to read the next due time; the next poll finds it");
    });
    told.ok()
}

#[cfg(test)]
mod tests {
    use own_postgres::Server;
    use tenure_core::{HostId, QueueName};
    use tenure_store::{Kinds, Want};

    use super::*;
    use crate::plans::fresh;

    /// What was there before, and is dead: it comes first in each line.
    const MUCH: &str = "INSERT INTO ready (due, round, seq, lane, priority, begun)
         SELECT 1000000, 0, -g, l.id, 0, false FROM generate_series(1, 60000) g CROSS JOIN lane l";
    const LANES: &str = "SELECT enqueue('mail', '{}'), enqueue('print', '{}'), enqueue('mail', '{}')";

    fn ask(at_most: usize) -> Reserve {
        let want = Want { queue: QueueName::default(), kinds: Kinds::All, at_most };
        Reserve {
            holder: HostId::from_bytes([1; 16]),
            ttl: Duration::from_secs(60),
            wants: vec![want],
            at_most,
        }
    }

    /// Whoever looked at whole lines with his second claim as well would keep all that he was granted waiting while what is dead is
    /// passed once more.
    #[tokio::test]
    async fn the_first_claim_of_a_program_finds_out_that_much_is_dead_in_each_of_its_lines() {
        let server = Server::start_hasty().unwrap();
        let (mut link, mut other) = (fresh(&server).await, fresh(&server).await);
        let connection = link.connection().await.unwrap();
        connection.execute_text(LANES).await.unwrap();
        connection.execute_text(MUCH).await.unwrap();
        let reading = other.connection().await.unwrap();
        let snapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM ready LIMIT 1";
        reading.execute_text(snapshot).await.unwrap();
        connection.execute_text("DELETE FROM ready WHERE seq < 0").await.unwrap();
        meet_lanes(&mut link).await.unwrap();
        // The first of the lines has the first job, and the other has none that comes before it.
        let (granted, _) = grant(&mut link, &ask(1), Vec::new(), None).await.unwrap();
        assert_eq!(granted.grants.had, [1]);
        let now = link.database.time.clock().moment();
        let begun = link.memory.marks().begin(vec![1, 2], now).from;
        assert!(begun.iter().all(|from| *from > crate::marks::START), "{begun:?}");
        let (granted, _) = grant(&mut link, &ask(5), Vec::new(), None).await.unwrap();
        assert_eq!(granted.grants.had, [2], "nothing that waits is passed");
    }
}
