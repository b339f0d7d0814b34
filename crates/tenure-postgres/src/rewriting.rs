//! Replaces stored values with another form, if each is still the one that the caller has read.

use tenure_store::{Fault, Rewrite, StoredValue};

use crate::link::Link;
use crate::query::Query;
use crate::transaction::Gate;
use crate::value;
use crate::writing::Writing;

const ARGS: &str = "UPDATE job SET args = $4 WHERE seq = $1 AND id = $2 AND args = $3";
const OUTPUT: &str = "UPDATE standing SET output = $4, place = $6 WHERE seq = $1 AND output = $3
     AND place IS NOT DISTINCT FROM $5 AND EXISTS (SELECT FROM job WHERE seq = $1 AND id = $2)";
const FAILURE: &str = "UPDATE standing SET failure = $4 WHERE seq = $1 AND failure = $3
     AND EXISTS (SELECT FROM job WHERE seq = $1 AND id = $2)";
const PROGRESS: &str = "UPDATE standing SET progress = $4 WHERE seq = $1 AND progress = $3
     AND EXISTS (SELECT FROM job WHERE seq = $1 AND id = $2)";
const ATTEMPT: &str = "UPDATE attempt SET failure = $4 WHERE seq = $1 AND delivery = $5 AND failure = $3
     AND EXISTS (SELECT FROM job WHERE seq = $1 AND id = $2)";
const LINE: &str = "UPDATE log SET line = $4 WHERE seq = $1 AND delivery = $5 AND number = $6 AND line = $3
     AND EXISTS (SELECT FROM job WHERE seq = $1 AND id = $2)";

/// Replaces values, and returns for each if it was replaced.
pub(crate) async fn rewrite(link: &mut Link, rewrites: &[Rewrite]) -> Result<Vec<bool>, Fault> {
    let mut tries = 0;
    loop {
        let tried = try_rewrite(link, rewrites).await;
        if tried.is_ok() || !link.may_try_again(&mut tries).await {
            return tried;
        }
    }
}

async fn try_rewrite(link: &mut Link, rewrites: &[Rewrite]) -> Result<Vec<bool>, Fault> {
    let queries = rewrites.iter().map(query).collect::<Result<Vec<_>, _>>()?;
    let (mut writing, _) = Writing::begin(link, Gate::Open, Vec::new()).await?;
    let answered = writing.run(queries).await?;
    writing.commit().await?;
    Ok(answered.into_iter().map(|answered| answered.changed > 0).collect())
}

fn query(rewrite: &Rewrite) -> Result<Query, Fault> {
    let of = |sql| Query::new(sql).with(value::signed(rewrite.seq)).with(value::of_job(rewrite.id));
    Ok(match &rewrite.value {
        StoredValue::Args { from, to } => {
            of(ARGS).with(from.as_bytes().to_vec()).with(to.as_bytes().to_vec())
        }
        StoredValue::Output { from, to } => of(OUTPUT)
            .with(from.value.clone())
            .with(to.value.clone())
            .with(from.place.clone())
            .with(to.place.clone()),
        StoredValue::Failure { from, to } => {
            of(FAILURE).with(value::to_json(from)?).with(value::to_json(to)?)
        }
        StoredValue::Progress { from, to } => {
            of(PROGRESS).with(value::to_json(from)?).with(value::to_json(to)?)
        }
        StoredValue::AttemptFailure { delivery, from, to } => {
            of(ATTEMPT).with(value::to_json(from)?).with(value::to_json(to)?).with(value::small(*delivery))
        }
        StoredValue::Line { delivery, number, from, to } => of(LINE)
            .with(from.clone())
            .with(to.clone())
            .with(value::small(*delivery))
            .with(value::small(*number)),
    })
}
