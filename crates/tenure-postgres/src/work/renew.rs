//! Extending ownerships.

use std::collections::BTreeMap;

use tenure_core::CancelRequest;
use tenure_store::{Fault, Held, Holds, Renew, Renewal};

use crate::link::Link;
use crate::query::Query;
use crate::transaction::Gate;
use crate::value;
use crate::writing::Writing;

/// Locked in the order of their places: nobody else locks many.
pub(super) const HELD: &str = "SELECT u.nth, s.lane, coalesce(s.until, g.until), s.cancel
     FROM (SELECT * FROM unnest($1::bigint[], $2::uuid[], $3::bigint[]) WITH ORDINALITY u (seq, id, fence, nth)
         ORDER BY seq) u
     CROSS JOIN LATERAL (SELECT lane, until, cancel FROM standing
         WHERE seq = u.seq AND fence = u.fence AND state > 0 AND state < 2 FOR NO KEY UPDATE) s
     CROSS JOIN LATERAL (SELECT until FROM granted WHERE fence = u.fence LIMIT 1) g
     CROSS JOIN LATERAL (SELECT FROM job WHERE lane = s.lane AND seq = u.seq AND id = u.id LIMIT 1) j";
const EXTEND: &str = "UPDATE standing SET until = $2, lapse = $3 WHERE seq = ANY ($1)";

/// Which of these ownerships are current: asked for, and locked.
pub(super) fn held(held: &[Held]) -> Query {
    Query::new(HELD)
        .with(held.iter().map(|held| value::signed(held.seq)).collect::<Vec<_>>())
        .with(held.iter().map(|held| value::of_job(held.id)).collect::<Vec<_>>())
        .with(held.iter().map(|held| value::signed(held.fence.number())).collect::<Vec<_>>())
}

/// Extends each ownership that is still held.
pub(super) async fn renew(link: &mut Link, ask: &Renew) -> Result<Vec<Renewal>, Fault> {
    let (mut writing, read) = Writing::begin(link, Gate::Open, vec![held(&ask.held)]).await?;
    let (now, until) = (writing.now, writing.now.after(ask.ttl));
    let mut renewals = vec![Renewal::Lost; ask.held.len()];
    // Those that share their lapse are written together.
    let mut extended: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for row in read.iter().flatten() {
        let Some(index) = usize::try_from(row.get::<_, i64>(0)).ok().and_then(|nth| nth.checked_sub(1))
        else {
            continue;
        };
        let (Some(renewal), Some(held)) = (renewals.get_mut(index), ask.held.get(index)) else { continue };
        if value::instant(row, 2)? <= now {
            *renewal = Renewal::Lapsed;
            continue;
        }
        let cancel: Option<CancelRequest> = value::maybe_json(row, 3)?;
        let lapse = cancel.as_ref().map_or(until, |request| until.min(request.deadline));
        extended.entry(lapse.as_micros()).or_default().push(value::signed(held.seq));
        *renewal = Renewal::Held(Holds { until, cancel });
    }
    if extended.is_empty() {
        writing.roll_back().await?;
        return Ok(renewals);
    }
    for (lapse, seqs) in extended {
        writing.write(Query::new(EXTEND).with(seqs).with(until.as_micros()).with(lapse))?;
    }
    writing.commit().await?;
    Ok(renewals)
}
