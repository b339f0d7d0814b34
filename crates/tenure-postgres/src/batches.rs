//! Reading the jobs that a step changes, a bounded number of bytes at a time.
//!
//! PostgreSQL sends all rows of a query at once, and the terms of a job may have hundreds of kilobytes.

use std::collections::BTreeMap;

use tenure_core::JobId;
use tenure_store::{Fault, Values};
use tokio_postgres::Row;

use crate::query::Query;
use crate::writing::Writing;
use crate::{rows, value};

/// Most jobs of a batch. Their last errors and their progress have kilobytes.
const JOBS: usize = 128;
/// Most bytes of terms in a batch of more than one job.
const BYTES: usize = 4 * 1024 * 1024;
/// A batch of at most this many jobs may have any size.
const FEW: usize = 8;
/// PostgreSQL knows the length of a text without reading it.
const SIZES: &str = "SELECT j.id, coalesce(octet_length(j.terms), 0) FROM unnest($1::uuid[]) u (id)
     CROSS JOIN LATERAL (SELECT id, terms FROM job WHERE id = u.id LIMIT 1) j";

impl Writing<'_> {
    /// Splits jobs into batches, in this order.
    pub(crate) async fn batches(&mut self, ids: Vec<JobId>) -> Result<Vec<Vec<JobId>>, Fault> {
        if ids.len() <= FEW {
            return Ok(if ids.is_empty() { Vec::new() } else { vec![ids] });
        }
        let sizes = Query::new(SIZES).with(ids.iter().copied().map(value::of_job).collect::<Vec<_>>());
        let read = self.read(vec![sizes]).await?;
        let size = |row: &Row| (value::job_id(row, 0), usize::try_from(row.get::<_, i32>(1)).unwrap_or(0));
        Ok(split(ids, &read.iter().flatten().map(size).collect()))
    }

    /// Reads a batch of jobs without args and results.
    pub(crate) async fn read_batch(&mut self, ids: &[JobId]) -> Result<Vec<Row>, Fault> {
        let read = self.read(vec![rows::by_ids_with(Values::Omitted, ids.iter().copied())]).await?;
        Ok(read.into_iter().flatten().collect())
    }
}

fn split(ids: Vec<JobId>, sizes: &BTreeMap<JobId, usize>) -> Vec<Vec<JobId>> {
    let (mut batches, mut bytes): (Vec<Vec<JobId>>, usize) = (Vec::new(), 0);
    for id in ids {
        let size = sizes.get(&id).copied().unwrap_or(0);
        match batches.last_mut().filter(|batch| batch.len() < JOBS && bytes + size <= BYTES) {
            Some(batch) => {
                batch.push(id);
                bytes += size;
            }
            None => {
                batches.push(vec![id]);
                bytes = size;
            }
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use own_postgres::Server;
    use tenure_core::Timestamp;

    use super::*;
    use crate::plans::{assert_found_by_an_index, fresh};

    #[test]
    fn a_batch_has_a_bounded_number_of_jobs_and_bytes() {
        let ids: Vec<JobId> = (0..300).map(|number| JobId::new(Timestamp::EPOCH, number)).collect();
        let lengths = |sizes: BTreeMap<JobId, usize>| {
            let batches = split(ids.clone(), &sizes);
            assert_eq!(batches.concat(), ids);
            batches.iter().map(Vec::len).collect::<Vec<_>>()
        };
        assert_eq!(lengths(BTreeMap::new()), [128, 128, 44]);
        let mut sizes = BTreeMap::from([(ids[0], 2 * BYTES), (ids[3], BYTES)]);
        assert_eq!(lengths(sizes.clone()), [1, 128, 128, 43]);
        sizes.extend(ids[4..].iter().map(|id| (*id, BYTES / 100)));
        assert_eq!(lengths(sizes), [1, 3, 100, 100, 96]);
    }

    #[tokio::test]
    async fn sizes_are_found_by_an_index() {
        let server = Server::start_hasty().unwrap();
        let mut link = fresh(&server).await;
        assert_found_by_an_index(&mut link, [SIZES].into_iter()).await;
    }
}
