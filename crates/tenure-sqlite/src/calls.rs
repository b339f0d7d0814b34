//! Performs the requests of the contract: views on a connection that reads, all others in a transaction that writes.

use std::path::Path;

use rusqlite::{Connection, Result};
use tenure_core::{Settlement, Timestamp};
use tenure_store::engine::{self, at_once};
use tenure_store::{Reply, Request, Reservation, Reserve, Turn};

use crate::fault::unreadable;
use crate::writing::Writing;
use crate::{apps, copying, hosts, key_views, leases, ledger, records, repair, sizes, timers, views};

/// Looks up the reply to a view.
#[allow(clippy::wildcard_enum_match_arm, reason = "callers send only views")]
pub(crate) fn look_up(
    conn: &Connection,
    (path, is_new_backup): (&Path, bool),
    request: &Request,
    now: Timestamp,
) -> Result<Reply> {
    Ok(match request {
        Request::LeaseInfo { name } => Reply::LeaseInfo(leases::info(conn, name, now)?),
        Request::Leases { ask } => Reply::Leases(leases::page(conn, ask, now)?),
        Request::Ledger { ask } => Reply::Ledger(ledger::page(conn, ask)?),
        Request::Timer { name } => Reply::Timer(timers::one(conn, name)?),
        Request::Timers { ask } => Reply::Timers(timers::page(conn, ask, now)?),
        Request::Slots { ask } => Reply::Slots(timers::slots(conn, ask)?),
        Request::Record { shelf, key } => Reply::Record(records::one(conn, shelf, key, now)?),
        Request::Records { ask } => Reply::Records(records::page(conn, ask, now)?),
        Request::Entries { ask } => Reply::Entries(records::entries(conn, ask, now)?),
        Request::Apps {} => Reply::Apps(apps::all(conn)?),
        Request::Hosts {} => Reply::Hosts(hosts::alive(conn, now)?),
        Request::LostHosts {} => Reply::LostHosts(hosts::lost(conn, now)?),
        Request::Job { id } => Reply::Job(views::job(conn, *id)?),
        Request::Jobs { ask } => Reply::Jobs(views::page(conn, ask, now)?),
        Request::Attempts { id } => Reply::Attempts(views::attempts(conn, *id)?),
        Request::Logs { id, behind, at_most } => Reply::Logs(views::logs(conn, *id, *behind, *at_most)?),
        Request::Counts {} => Reply::Counts(views::counts(conn)?),
        Request::Queues {} => Reply::Queues(views::queues(conn, now)?),
        Request::Standing { id } => Reply::Standing(views::standing(conn, *id, now)?),
        Request::Limit { key } => Reply::Limit(key_views::limit(conn, key)?),
        Request::Limits { behind, at_most } => {
            Reply::Limits(key_views::limits(conn, behind.as_ref(), *at_most)?)
        }
        Request::Sizes {} => Reply::Sizes(sizes::look(conn, path)?),
        Request::Rest {} => Reply::Rest(copying::rest(conn, is_new_backup)?),
        Request::Unreadable { at_most } => Reply::Unreadable(repair::sentences(conn, *at_most)?),
        Request::KeysHeld { behind, at_most } => {
            Reply::KeysHeld(copying::keys_held(conn, *behind, *at_most)?)
        }
        Request::RecordsKept { behind, at_most } => {
            Reply::RecordsKept(records::records_kept(conn, behind.as_ref(), *at_most)?)
        }
        Request::EntriesKept { behind, at_most } => {
            Reply::EntriesKept(records::entries_kept(conn, behind.as_ref(), *at_most)?)
        }
        other => return Err(unreadable(format_args!("`{}` is not a view", other.operation().name()))),
    })
}

impl Writing<'_> {
    /// Performs a request that may write. It lets a bounded number of blocked jobs into line, which all batches of a
    /// transaction share. Otherwise many batches of one job could keep the writer busy for as long as one batch may not.
    pub(crate) fn perform(&mut self, request: &Request) -> Result<Reply> {
        if matches!(request, Request::Enqueue { .. }) {
            return self.reply_to(request);
        }
        let by_batches = std::mem::take(&mut self.jobs_let_in);
        let reply = self.reply_to(request);
        self.jobs_let_in = by_batches;
        reply
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "all others are views")]
    fn reply_to(&mut self, request: &Request) -> Result<Reply> {
        Ok(match request {
            Request::Enqueue { batch } => Reply::Enqueue(self.enqueue(batch)?),
            Request::Reserve { ask } => Reply::Reserve(self.reserve(ask)?),
            Request::Renew { ask } => Reply::Renew(self.renew(ask)?),
            Request::Settle { settlements, then } => Reply::Settle(self.turn(settlements, then.as_ref())?),
            Request::Report { reports } => Reply::Report(self.report(reports)?),
            Request::Rewrite { rewrites } => Reply::Rewrite(self.rewrite_values(rewrites)?),
            Request::Change { change, selection } => Reply::Change(self.change(change, selection)?),
            Request::Tend {} => Reply::Tend(self.tend()?),
            Request::EditQueue { queue, edit } => Reply::EditQueue(self.edit_queue(queue, edit)?),
            Request::RemoveQueue { queue, seen } => Reply::RemoveQueue(self.remove_queue(queue, seen)?),
            Request::SetLimit { key, limit } => {
                self.set_limit(key, *limit)?;
                Reply::SetLimit(())
            }
            Request::Announce { id, name, slots, serves, ttl } => {
                self.announce(*id, name, *slots, serves, *ttl)?;
                Reply::Announce(())
            }
            Request::Retire { id } => {
                self.retire(*id)?;
                Reply::Retire(())
            }
            Request::Lease { wishes } => Reply::Lease(self.lease(wishes)?),
            Request::PruneLedger { before } => Reply::PruneLedger(self.prune_ledger(*before)?),
            Request::SetTimers { timers, starts } => Reply::SetTimers(self.set_timers(timers, *starts)?),
            Request::Fire { at_most } => Reply::Fire(self.fire(*at_most)?),
            Request::EditTimer { name, seen, edit } => Reply::EditTimer(self.edit_timer(name, seen, edit)?),
            Request::PruneSlots { before } => Reply::PruneSlots(self.prune_slots(*before)?),
            Request::WriteRecords { writes } => {
                Reply::WriteRecords(at_once(engine::records::write(self, writes))?)
            }
            Request::ClaimApp { app, program, host } => Reply::ClaimApp(self.claim_app(app, program, *host)?),
            Request::BeginCopy {} => Reply::BeginCopy(self.begin_copy()?),
            Request::TakeIn { items } => {
                self.take_in(items)?;
                Reply::TakeIn(())
            }
            Request::EndCopy { end } => {
                self.end_copy(*end)?;
                Reply::EndCopy(())
            }
            view => return Err(unreadable(format_args!("`{}` writes nothing", view.operation().name()))),
        })
    }

    fn turn(&mut self, settlements: &[Settlement], then: Option<&Reserve>) -> Result<Turn> {
        let settled = self.settle(settlements)?;
        let reservation = then.map_or(Ok(Reservation::default()), |ask| self.reserve(ask))?;
        Ok(Turn { settled, reservation })
    }
}
