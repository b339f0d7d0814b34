//! Extending ownerships.

use std::collections::BTreeMap;

use tenure_core::{CancelRequest, HostId, Timestamp};
use tenure_store::{Fault, Held, Holds, Renew, Renewal};
use tokio_postgres::Row;

use super::claiming::TELL_TTL;
use crate::fault::unreadable;
use crate::link::Link;
use crate::query::Query;
use crate::sheet::Alone;
use crate::transaction::Gate;
use crate::value;
use crate::writing::Writing;

/// Locked in the order of their fences, then those with standings in the order of their places. A job goes from its
/// grant to a standing and never back, so who asks in this order misses none.
const IN_GRANTS: &str = "SELECT u.nth, g.lane, g.until, NULL::text, g.started, g.holder
     FROM (SELECT * FROM unnest($1::bigint[], $2::uuid[], $3::bigint[]) WITH ORDINALITY u (seq, id, fence, nth)
         ORDER BY fence, seq) u
     CROSS JOIN LATERAL (SELECT lane, until, started, holder FROM granted
         WHERE fence = u.fence AND block = u.seq >> 8 AND has_bit(seqs, u.seq) FOR NO KEY UPDATE) g
     CROSS JOIN LATERAL (SELECT FROM job WHERE lane = g.lane AND seq = u.seq AND id = u.id LIMIT 1) j";
const STANDING: &str = "SELECT u.nth, s.lane, s.until, s.cancel, NULL::bigint, NULL::uuid
     FROM (SELECT * FROM unnest($1::bigint[], $2::uuid[], $3::bigint[]) WITH ORDINALITY u (seq, id, fence, nth)
         ORDER BY seq) u
     CROSS JOIN LATERAL (SELECT lane, until, cancel FROM standing
         WHERE seq = u.seq AND fence = u.fence AND state > 0 AND state < 2 FOR NO KEY UPDATE) s
     CROSS JOIN LATERAL (SELECT FROM job WHERE lane = s.lane AND seq = u.seq AND id = u.id LIMIT 1) j";
const EXTEND: &str = "UPDATE standing SET until = $2, lapse = $3 WHERE seq = ANY ($1)";

/// Which of these ownerships are current: asked for, and locked.
pub(super) fn current(held: &[Held]) -> [Query; 2] {
    [IN_GRANTS, STANDING].map(|sql| {
        Query::new(sql)
            .with(held.iter().map(|held| value::signed(held.seq)).collect::<Vec<_>>())
            .with(held.iter().map(|held| value::of_job(held.id)).collect::<Vec<_>>())
            .with(held.iter().map(|held| value::signed(held.fence.number())).collect::<Vec<_>>())
    })
}

/// An ownership that is current.
#[derive(Debug, Clone)]
pub(super) struct Current {
    pub held: Held,
    pub lane: i32,
    pub until: Timestamp,
    pub cancel: Option<CancelRequest>,
    /// What tells of a job that has no standing: since when it runs, and for whom.
    in_grant: Option<(i64, HostId)>,
}

impl Current {
    /// Reads what [`current`] has found, by the places of what was asked.
    pub(super) fn read(held: &[Held], read: &[Vec<Row>]) -> Result<BTreeMap<usize, Self>, Fault> {
        let mut found = BTreeMap::new();
        for row in read.iter().flatten() {
            let nth = usize::try_from(row.get::<_, i64>(0)).map_err(unreadable)?.saturating_sub(1);
            let Some(held) = held.get(nth).copied() else { continue };
            let current = Self {
                held,
                lane: row.get(1),
                until: value::instant(row, 2)?,
                cancel: value::maybe_json(row, 3)?,
                in_grant: row.get::<_, Option<i64>>(4).zip(value::host_id(row, 5)),
            };
            found.insert(nth, current);
        }
        Ok(found)
    }
}

/// Extends each ownership that is still held.
pub(super) async fn renew(link: &mut Link, ask: &Renew) -> Result<Vec<Renewal>, Fault> {
    let mut tries = 0;
    loop {
        let tried = try_renew(link, ask).await;
        if tried.is_ok() || !link.may_try_again(&mut tries).await {
            return tried;
        }
    }
}

async fn try_renew(link: &mut Link, ask: &Renew) -> Result<Vec<Renewal>, Fault> {
    let ttl = value::micros(ask.ttl);
    let tells = link.connection().await?.ttl_told < ttl;
    let (mut writing, read) = Writing::begin(link, Gate::Open, current(&ask.held).into()).await?;
    let (now, until) = (writing.now, writing.now.after(ask.ttl));
    let mut renewals = vec![Renewal::Lost; ask.held.len()];
    // Those that share their lapse are written together.
    let mut extended: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    let mut alone = Vec::new();
    for (nth, current) in Current::read(&ask.held, &read)? {
        if current.until <= now {
            renewals[nth] = Renewal::Lapsed;
            continue;
        }
        let lapse = current.cancel.as_ref().map_or(until, |request| until.min(request.deadline));
        if writing.stands_alone(&current, until) {
            alone.push(current.held);
        } else {
            extended.entry(lapse.as_micros()).or_default().push(value::signed(current.held.seq));
        }
        renewals[nth] = Renewal::Held(Holds { until, cancel: current.cancel });
    }
    if extended.is_empty() && alone.is_empty() {
        writing.roll_back().await?;
        return Ok(renewals);
    }
    if tells {
        writing.write(Query::new(TELL_TTL).with(ttl))?;
    }
    for (lapse, seqs) in extended {
        writing.write(Query::new(EXTEND).with(seqs).with(until.as_micros()).with(lapse))?;
    }
    writing.commit().await?;
    link.told_ttl(ttl);
    note_alone(link, &alone);
    Ok(renewals)
}

/// Gives these jobs, if they run and have none, standings.
pub(super) async fn stand_alone(link: &mut Link, held: &[Held]) -> Result<(), Fault> {
    let mut tries = 0;
    loop {
        let tried = try_stand_alone(link, held).await;
        if tried.is_ok() || !link.may_try_again(&mut tries).await {
            return tried;
        }
    }
}

async fn try_stand_alone(link: &mut Link, held: &[Held]) -> Result<(), Fault> {
    let (mut writing, read) = Writing::begin(link, Gate::Open, current(held).into()).await?;
    let mut alone = Vec::new();
    for current in Current::read(held, &read)?.into_values() {
        if writing.stands_alone(&current, current.until) {
            alone.push(current.held);
        }
    }
    writing.commit().await?;
    note_alone(link, &alone);
    Ok(())
}

pub(super) fn note_alone(link: &Link, alone: &[Held]) {
    let mut grants = link.memory.grants();
    alone.iter().for_each(|held| grants.stands_alone(held.fence, held.seq));
}

impl Writing<'_> {
    /// Gives a running job that has none a standing, and says whether it did.
    pub(super) fn stands_alone(&mut self, current: &Current, until: Timestamp) -> bool {
        let Some((started, holder)) = current.in_grant else { return false };
        let until = until.as_micros();
        self.sheet.stands_alone(Alone {
            seq: value::signed(current.held.seq),
            lane: current.lane,
            fence: value::signed(current.held.fence.number()),
            started,
            until,
            lapse: until,
            holder,
        });
        true
    }
}

#[cfg(test)]
pub(super) const STATEMENTS: [&str; 3] = [IN_GRANTS, STANDING, EXTEND];
