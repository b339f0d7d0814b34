//! A contestant: SQL text, and which values its statements take.

use std::error::Error;

use bytes::{BufMut, BytesMut};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use uuid::Uuid;

/// A way to keep jobs in tables.
pub struct Shape {
    pub name: String,
    /// Run once for each connection.
    pub settings: String,
    pub schema: String,
    /// For vacuum.
    pub tables: Vec<&'static str>,
    pub put: Put,
    /// Answers seq, id, fence, args, due, and where the job's standing is, if it says so.
    pub claim: Statement,
    /// Counts the jobs that were settled.
    pub settle: Statement,
    /// Whether a second settlement of the same grant is refused. The floor does not look.
    pub guarded: bool,
}

/// How jobs get in.
pub enum Put {
    /// One statement a batch.
    Unnest(Statement),
    /// `COPY` into job and ready, under numbers from a reserved block.
    Copy { job: String, ready: String },
}

pub struct Statement {
    pub sql: String,
    pub takes: Vec<Arg>,
}

pub fn statement(sql: impl Into<String>, takes: &[Arg]) -> Statement {
    Statement { sql: sql.into(), takes: takes.to_vec() }
}

/// What a parameter is.
#[derive(Clone, Copy)]
pub enum Arg {
    Ids,
    Args,
    ArgsAsText,
    Lane,
    Limit,
    Now,
    Until,
    Holder,
    /// The due and the seq behind which a claim looks.
    MarkDue,
    MarkSeq,
    Seqs,
    Fences,
    /// The one fence of a batch.
    Fence,
    Places,
    Expires,
}

/// What the parameters stand for, by [`Arg`].
#[derive(Default)]
pub struct Values {
    pub ids: Vec<Uuid>,
    pub args: Vec<Vec<u8>>,
    pub args_as_text: Vec<String>,
    pub lane: i32,
    pub limit: i64,
    pub now: i64,
    pub until: i64,
    pub holder: Uuid,
    pub mark: (i64, i64),
    pub seqs: Vec<i64>,
    pub fences: Vec<i64>,
    pub fence: i64,
    pub places: Vec<Tid>,
    pub expires: i64,
}

impl Values {
    pub fn bind(&self, takes: &[Arg]) -> Vec<&(dyn ToSql + Sync)> {
        takes.iter().map(|arg| self.of(*arg)).collect()
    }

    fn of(&self, arg: Arg) -> &(dyn ToSql + Sync) {
        match arg {
            Arg::Ids => &self.ids,
            Arg::Args => &self.args,
            Arg::ArgsAsText => &self.args_as_text,
            Arg::Lane => &self.lane,
            Arg::Limit => &self.limit,
            Arg::Now => &self.now,
            Arg::Until => &self.until,
            Arg::Holder => &self.holder,
            Arg::MarkDue => &self.mark.0,
            Arg::MarkSeq => &self.mark.1,
            Arg::Seqs => &self.seqs,
            Arg::Fences => &self.fences,
            Arg::Fence => &self.fence,
            Arg::Places => &self.places,
            Arg::Expires => &self.expires,
        }
    }
}

/// Where a row is: PostgreSQL's `tid`.
#[derive(Clone, Copy, Debug)]
pub struct Tid {
    block: u32,
    item: u16,
}

impl ToSql for Tid {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.put_u32(self.block);
        out.put_u16(self.item);
        Ok(IsNull::No)
    }

    fn accepts(of: &Type) -> bool {
        *of == Type::TID
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Tid {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Tid, Box<dyn Error + Sync + Send>> {
        let [a, b, c, d, e, f] = raw.try_into()?;
        Ok(Tid { block: u32::from_be_bytes([a, b, c, d]), item: u16::from_be_bytes([e, f]) })
    }

    fn accepts(of: &Type) -> bool {
        *of == Type::TID
    }
}
