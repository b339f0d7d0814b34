//! App ids and who uses them.

use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use tenure_core::{AppId, AppUse, HostId, claim_app};

use crate::fault::unreadable;
use crate::value;
use crate::writing::Writing;

/// The use of an app id from now on, or the other program's.
pub(crate) type Claimed = std::result::Result<AppUse, AppUse>;

impl Writing<'_> {
    /// Keeps that a program uses an app id, unless another does.
    pub(crate) fn claim_app(&self, app: &AppId, program: &str, host: HostId) -> Result<Claimed> {
        let known = self
            .conn
            .prepare_cached("SELECT app, program, host, since, seen FROM app WHERE app = ?1")?
            .query_row([app.as_str()], read)
            .optional()?;
        let (app, program) = (app.clone(), program.to_owned());
        let claim = AppUse { app, program, host, since: self.now, seen: self.now };
        let claimed = claim_app(known.as_ref(), claim);
        if let Ok(claimed) = &claimed {
            self.keep_app(claimed)?;
        }
        Ok(claimed)
    }

    pub(crate) fn keep_app(&self, claimed: &AppUse) -> Result<()> {
        self.conn
            .prepare_cached(
                "INSERT INTO app (app, program, host, since, seen) VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT (app) DO UPDATE SET
                     program = excluded.program, host = excluded.host, since = excluded.since,
                     seen = excluded.seen",
            )?
            .execute(params![
                claimed.app.as_str(),
                claimed.program,
                claimed.host.as_bytes(),
                claimed.since.as_micros(),
                claimed.seen.as_micros(),
            ])?;
        Ok(())
    }
}

/// The app ids that were ever claimed, by id.
pub(crate) fn all(conn: &Connection) -> Result<Vec<AppUse>> {
    let mut statement =
        conn.prepare_cached("SELECT app, program, host, since, seen FROM app ORDER BY app")?;
    statement.query_map([], read)?.collect()
}

fn read(row: &Row<'_>) -> Result<AppUse> {
    Ok(AppUse {
        app: AppId::new(row.get_ref(0)?.as_str()?).map_err(unreadable)?,
        program: row.get(1)?,
        host: value::host_id(row, 2)?.ok_or_else(|| unreadable("an app id without a host"))?,
        since: value::instant(row, 3)?,
        seen: value::instant(row, 4)?,
    })
}
