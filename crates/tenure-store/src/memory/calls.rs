//! Every request, answered from the rows under their lock.

use tenure_core::{AppUse, Timestamp};

use super::rows::{Row, Rows};
use super::txn::{Txn, run};
use crate::engine::records;
use crate::{Clock, Host, Reply, Request, Sizes, Turn};

impl Rows {
    /// Performs a request.
    pub(super) fn perform(&mut self, request: Request, now: Timestamp, clock: &dyn Clock) -> Reply {
        self.limits.let_in = 0;
        match request {
            Request::Enqueue { batch } => Reply::Enqueue(self.enqueue(&batch, now)),
            Request::Reserve { ask } => Reply::Reserve(self.reserve(&ask, now)),
            Request::Renew { ask } => {
                Reply::Renew(ask.held.iter().map(|held| self.renew(held, ask.ttl, now)).collect())
            }
            Request::Settle { settlements, then } => Reply::Settle(Turn {
                settled: self.settle_all(&settlements, now),
                reservation: then.map(|ask| self.reserve(&ask, now)).unwrap_or_default(),
            }),
            Request::Report { reports } => {
                Reply::Report(reports.into_iter().map(|report| self.report(report, now)).collect())
            }
            Request::Rewrite { rewrites } => {
                Reply::Rewrite(rewrites.into_iter().map(|rewrite| self.rewrite(rewrite)).collect())
            }
            Request::Change { change, selection } => Reply::Change(self.change(&change, &selection, now)),
            Request::Tend {} => {
                let now = self.leases.look(clock);
                Reply::Tend(self.tend(now))
            }
            Request::Lease { wishes } => {
                let now = self.leases.look(clock);
                let Self { leases, news, epoch, .. } = self;
                Reply::Lease(leases.take(&wishes, *epoch, now, news))
            }
            Request::LeaseInfo { name } => Reply::LeaseInfo(self.leases.info(&name, now)),
            Request::Leases { ask } => Reply::Leases(self.leases.page(&ask, now)),
            Request::Ledger { ask } => Reply::Ledger(self.leases.ledger(&ask)),
            Request::PruneLedger { before } => Reply::PruneLedger(self.leases.prune(before)),
            Request::SetTimers { timers, starts } => Reply::SetTimers(self.set_timers(&timers, starts, now)),
            Request::Fire { at_most } => Reply::Fire(self.fire(at_most, now)),
            Request::EditTimer { name, seen, edit } => {
                Reply::EditTimer(self.edit_timer(&name, &seen, &edit, now))
            }
            Request::Timer { name } => Reply::Timer(self.timers.get(&name).cloned()),
            Request::Timers { ask } => Reply::Timers(self.timers.page(&ask, now)),
            Request::Slots { ask } => Reply::Slots(self.timers.slots(&ask)),
            Request::PruneSlots { before } => Reply::PruneSlots(self.timers.prune(before)),
            Request::WriteRecords { writes } => {
                Reply::WriteRecords(run(records::write(&mut Txn { rows: self, now }, &writes)))
            }
            Request::Record { shelf, key } => Reply::Record(self.records.get(&(shelf, key), now).cloned()),
            Request::Records { ask } => Reply::Records(self.records.page(&ask, now)),
            Request::Entries { ask } => Reply::Entries(self.records.journal(&ask, now)),
            Request::Announce { id, name, slots, serves, ttl } => {
                let host = Host { id, name, started: now, heard: now, until: now.after(ttl), slots, serves };
                self.announce(host);
                Reply::Announce(())
            }
            Request::Retire { id } => {
                self.retire(id);
                Reply::Retire(())
            }
            Request::ClaimApp { app, program, host } => {
                Reply::ClaimApp(self.claim_app(AppUse { app, program, host, since: now, seen: now }))
            }
            Request::Apps {} => Reply::Apps(self.apps.values().cloned().collect()),
            Request::Hosts {} => Reply::Hosts(self.live_hosts(now).cloned().collect()),
            Request::LostHosts {} => Reply::LostHosts(self.lost_hosts(now)),
            Request::Job { id } => Reply::Job(self.find(id).map(|row| row.job.clone())),
            Request::Jobs { ask } => Reply::Jobs(self.page(&ask, now)),
            Request::Attempts { id } => Reply::Attempts(self.find(id).map(Row::attempts).unwrap_or_default()),
            Request::Logs { id, behind, at_most } => {
                let row = self.find(id);
                Reply::Logs(row.map(|row| row.lines.behind(behind, at_most)).unwrap_or_default())
            }
            Request::Counts {} => Reply::Counts(self.counts()),
            Request::Queues {} => Reply::Queues(self.queues(now)),
            Request::Standing { id } => Reply::Standing(self.standing(id, now)),
            Request::EditQueue { queue, edit } => Reply::EditQueue(self.edit_queue(&queue, &edit, now)),
            Request::RemoveQueue { queue, seen } => Reply::RemoveQueue(self.remove_queue(&queue, &seen)),
            Request::Limit { key } => Reply::Limit(self.limits.find(&key)),
            Request::Limits { behind, at_most } => Reply::Limits(self.limits.page(behind.as_ref(), at_most)),
            Request::SetLimit { key, limit } => {
                self.set_limit(&key, limit, now);
                Reply::SetLimit(())
            }
            Request::Sizes {} => Reply::Sizes(Sizes::default()),
            Request::Rest {} => Reply::Rest(self.rest()),
            // Memory keeps values of the domain, which are always readable.
            Request::Unreadable { .. } => Reply::Unreadable(Vec::new()),
            Request::KeysHeld { behind, at_most } => Reply::KeysHeld(self.keys_held(behind, at_most)),
            Request::RecordsKept { behind, at_most } => {
                Reply::RecordsKept(self.records.kept(behind).take(at_most).cloned().collect())
            }
            Request::EntriesKept { behind, at_most } => {
                Reply::EntriesKept(self.records.entries_kept(behind).take(at_most).cloned().collect())
            }
            Request::BeginCopy {} => Reply::BeginCopy(self.anything(now).map(str::to_owned)),
            Request::TakeIn { items } => {
                items.into_iter().for_each(|item| self.take_in(item, now));
                Reply::TakeIn(())
            }
            Request::EndCopy { end } => {
                self.end_copy(&end);
                Reply::EndCopy(())
            }
        }
    }
}
