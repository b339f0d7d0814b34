//! One connection that drives a shape.

use std::pin::pin;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Statement};
use uuid::Uuid;

use crate::shape::{Put, Shape, Tid, Values};

/// The arguments of every job: 100 bytes of JSON.
pub const ARGS: &str =
    r#"{"t":12345678.123,"i":12345,"pad":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}"#;
const RESERVATION: i64 = 30_000_000;
const RETENTION: i64 = 86_400_000_000;

/// A plan that was made while tables were empty outlives that by far. With these only index scans and nested loops are
/// left, which are right for every statement here at every size; compiling never pays.
const PLANS: &str = "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off;
    SET enable_mergejoin = off; SET jit = off; SET plan_cache_mode = force_generic_plan;";

/// How large a block of numbers is.
const BLOCK: i64 = 4096;

pub struct Driver<'a> {
    pub client: Client,
    shape: &'a Shape,
    put: Option<Statement>,
    claim: Statement,
    settle: Statement,
    lane: i32,
    made: u64,
    holder: Uuid,
}

/// The jobs of one claim.
#[derive(Default)]
pub struct Claimed {
    pub seqs: Vec<i64>,
    pub fences: Vec<i64>,
    pub places: Vec<Tid>,
    /// Due and seq of the last one.
    pub last: (i64, i64),
}

impl<'a> Driver<'a> {
    /// Prepares the statements on a connection. The tables are there.
    pub async fn open(shape: &'a Shape, client: Client, number: u64) -> Result<Driver<'a>, Error> {
        client.batch_execute("SET search_path = bench").await?;
        client.batch_execute(if shape.settings.is_empty() { PLANS } else { &shape.settings }).await?;
        let put = match &shape.put {
            Put::Unnest(statement) => Some(client.prepare(&statement.sql).await?),
            Put::Copy { .. } => None,
        };
        let claim = client.prepare(&shape.claim.sql).await?;
        let settle = client.prepare(&shape.settle.sql).await?;
        let holder = Uuid::from_u64_pair(number, 9);
        Ok(Driver { shape, put, claim, settle, lane: 1, made: number << 40, holder, client })
    }

    /// Whether a second settlement has to be refused.
    pub fn is_guarded(&self) -> bool {
        self.shape.guarded
    }

    /// Enqueues so many jobs in one transaction.
    pub async fn enqueue(&mut self, jobs: usize) -> Result<(), Error> {
        let now = now();
        let mut values = Values { lane: self.lane, now, ..Values::default() };
        for _ in 0..jobs {
            self.made += 1;
            values.ids.push(id(now, self.made));
        }
        match (&self.shape.put, &self.put) {
            (Put::Unnest(statement), Some(prepared)) => {
                values.args = vec![ARGS.as_bytes().to_vec(); jobs];
                values.args_as_text = vec![ARGS.to_owned(); jobs];
                self.client.execute(prepared, &values.bind(&statement.takes)).await?;
            }
            (Put::Copy { job, ready }, _) => self.copy(job, ready, &values).await?,
            (Put::Unnest(_), None) => {}
        }
        Ok(())
    }

    async fn copy(&self, job: &str, ready: &str, values: &Values) -> Result<(), Error> {
        let block: i64 = self.client.query_one("SELECT nextval('block')", &[]).await?.get(0);
        self.client.batch_execute("BEGIN").await?;
        let types = [Type::INT8, Type::INT8, Type::UUID, Type::INT4, Type::INT2, Type::BYTEA];
        let mut rows = pin!(BinaryCopyInWriter::new(self.client.copy_in(job).await?, &types));
        let seqs = (block * BLOCK..).zip(&values.ids);
        for (seq, id) in seqs.clone() {
            let row: [&(dyn ToSql + Sync); 6] =
                [&seq, &values.now, id, &values.lane, &0_i16, &ARGS.as_bytes()];
            rows.as_mut().write(&row).await?;
        }
        rows.finish().await?;
        let has_id = ready.contains("begun, id");
        let types = [Type::INT8, Type::INT8, Type::INT8, Type::INT4, Type::INT2, Type::BOOL, Type::UUID];
        let types = if has_id { &types[..] } else { &types[..6] };
        let mut rows = pin!(BinaryCopyInWriter::new(self.client.copy_in(ready).await?, types));
        for (seq, id) in seqs {
            let row: [&(dyn ToSql + Sync); 7] = [&values.now, &0_i64, &seq, &values.lane, &0_i16, &false, id];
            rows.as_mut().write(&row[..types.len()]).await?;
        }
        rows.finish().await?;
        self.client.batch_execute("COMMIT").await
    }

    /// Claims up to so many jobs, behind a mark.
    pub async fn claim(&self, limit: usize, mark: (i64, i64)) -> Result<Claimed, Error> {
        let now = now();
        let values = Values {
            lane: self.lane,
            limit: limit as i64,
            now,
            until: now + RESERVATION,
            holder: self.holder,
            mark,
            ..Values::default()
        };
        let rows = self.client.query(&self.claim, &values.bind(&self.shape.claim.takes)).await?;
        let mut claimed = Claimed::default();
        for row in &rows {
            std::hint::black_box(row.get::<_, &[u8]>(3).len());
            claimed.seqs.push(row.get(0));
            claimed.fences.push(row.get(2));
            claimed.last = claimed.last.max((row.get(4), row.get(0)));
            if row.len() > 5 {
                claimed.places.push(row.get(5));
            }
        }
        Ok(claimed)
    }

    /// Settles all of them as succeeded; answers how many were held.
    pub async fn settle(&self, claimed: &Claimed) -> Result<usize, Error> {
        let now = now();
        let values = Values {
            lane: self.lane,
            now,
            expires: now + RETENTION,
            seqs: claimed.seqs.clone(),
            fence: claimed.fences.first().copied().unwrap_or_default(),
            fences: claimed.fences.clone(),
            places: claimed.places.clone(),
            ..Values::default()
        };
        let parameters = values.bind(&self.shape.settle.takes);
        if self.settle.columns().is_empty() {
            return Ok(self.client.execute(&self.settle, &parameters).await? as usize);
        }
        let counted: i64 = self.client.query_one(&self.settle, &parameters).await?.get(0);
        Ok(counted as usize)
    }
}

/// Microseconds since 1970.
pub fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as i64)
}

/// A UUIDv7: ascending by millisecond, the rest well mixed.
fn id(now: i64, made: u64) -> Uuid {
    let mixed = made.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let upper = ((now as u64 / 1000) << 16) | 0x7000 | (mixed >> 52);
    Uuid::from_u64_pair(upper, (mixed.rotate_left(32) & (u64::MAX >> 2)) | (1 << 63))
}
