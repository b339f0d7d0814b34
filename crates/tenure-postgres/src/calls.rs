//! Performs the requests of the contract, each on the task that has a connection for it.

use tenure_store::{Answer, Reply, Request, replied};

use crate::store::PostgresStore;

impl PostgresStore {
    pub(crate) fn perform(&self, request: Request) -> Answer<'_, Reply> {
        match request {
            Request::Enqueue { batch } => replied(self.enqueue(batch), Reply::Enqueue),
            Request::Reserve { ask } => replied(self.reserve(ask), Reply::Reserve),
            Request::Renew { ask } => replied(self.renew(ask), Reply::Renew),
            Request::Settle { settlements, then } => replied(self.settle(settlements, then), Reply::Settle),
            Request::Report { reports } => replied(self.report(reports), Reply::Report),
            Request::Rewrite { rewrites } => replied(self.rewrite(rewrites), Reply::Rewrite),
            Request::Change { change, selection } => replied(self.change(change, selection), Reply::Change),
            Request::Tend {} => replied(self.tend(), Reply::Tend),
            Request::Lease { wishes } => replied(self.lease(wishes), Reply::Lease),
            Request::LeaseInfo { name } => replied(self.lease_info(&name), Reply::LeaseInfo),
            Request::Leases { ask } => replied(self.leases(ask), Reply::Leases),
            Request::Ledger { ask } => replied(self.ledger(ask), Reply::Ledger),
            Request::PruneLedger { before } => replied(self.prune_ledger(before), Reply::PruneLedger),
            Request::SetTimers { timers, starts } => {
                replied(self.set_timers(timers, starts), Reply::SetTimers)
            }
            Request::Fire { at_most } => replied(self.fire(at_most), Reply::Fire),
            Request::EditTimer { name, seen, edit } => {
                replied(self.edit_timer(&name, seen, edit), Reply::EditTimer)
            }
            Request::Timer { name } => replied(self.timer(&name), Reply::Timer),
            Request::Timers { ask } => replied(self.timers(ask), Reply::Timers),
            Request::Slots { ask } => replied(self.slots(ask), Reply::Slots),
            Request::PruneSlots { before } => replied(self.prune_slots(before), Reply::PruneSlots),
            Request::WriteRecords { writes } => replied(self.write_records(writes), Reply::WriteRecords),
            Request::Record { shelf, key } => replied(self.record(&shelf, &key), Reply::Record),
            Request::Records { ask } => replied(self.records(ask), Reply::Records),
            Request::Entries { ask } => replied(self.entries(ask), Reply::Entries),
            Request::Announce { id, name, slots, serves, ttl } => {
                replied(self.announce(id, &name, slots, &serves, ttl), Reply::Announce)
            }
            Request::Retire { id } => replied(self.retire(id), Reply::Retire),
            Request::ClaimApp { app, program, host } => {
                replied(self.claim_app(&app, &program, host), Reply::ClaimApp)
            }
            Request::Apps {} => replied(self.apps(), Reply::Apps),
            Request::Hosts {} => replied(self.hosts(), Reply::Hosts),
            Request::LostHosts {} => replied(self.lost_hosts(), Reply::LostHosts),
            Request::Job { id } => replied(self.job(id), Reply::Job),
            Request::Jobs { ask } => replied(self.jobs(ask), Reply::Jobs),
            Request::Attempts { id } => replied(self.attempts(id), Reply::Attempts),
            Request::Logs { id, behind, at_most } => replied(self.logs(id, behind, at_most), Reply::Logs),
            Request::Counts {} => replied(self.counts(), Reply::Counts),
            Request::Queues {} => replied(self.queues(), Reply::Queues),
            Request::Standing { id } => replied(self.standing(id), Reply::Standing),
            Request::EditQueue { queue, edit } => replied(self.edit_queue(&queue, edit), Reply::EditQueue),
            Request::RemoveQueue { queue, seen } => {
                replied(self.remove_queue(&queue, seen), Reply::RemoveQueue)
            }
            Request::Limit { key } => replied(self.limit(&key), Reply::Limit),
            Request::Limits { behind, at_most } => replied(self.limits(behind, at_most), Reply::Limits),
            Request::SetLimit { key, limit } => replied(self.set_limit(&key, limit), Reply::SetLimit),
            Request::Sizes {} => replied(self.sizes(), Reply::Sizes),
            Request::Rest {} => replied(self.rest(), Reply::Rest),
            Request::Unreadable { at_most } => replied(self.unreadable(at_most), Reply::Unreadable),
            Request::KeysHeld { behind, at_most } => {
                replied(self.keys_held(behind, at_most), Reply::KeysHeld)
            }
            Request::RecordsKept { behind, at_most } => {
                replied(self.records_kept(behind, at_most), Reply::RecordsKept)
            }
            Request::EntriesKept { behind, at_most } => {
                replied(self.entries_kept(behind, at_most), Reply::EntriesKept)
            }
            Request::BeginCopy {} => replied(self.begin_copy(), Reply::BeginCopy),
            Request::TakeIn { items } => replied(self.take_in(items), Reply::TakeIn),
            Request::EndCopy { end } => replied(self.end_copy(end), Reply::EndCopy),
        }
    }
}
