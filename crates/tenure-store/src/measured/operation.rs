//! What a store can be asked, by name.

/// What a store can be asked: one for each method of the contract that waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    Enqueue,
    Reserve,
    Renew,
    Settle,
    Report,
    Rewrite,
    Change,
    Tend,
    Lease,
    LeaseInfo,
    Leases,
    Ledger,
    PruneLedger,
    SetTimers,
    Fire,
    ChangeTimer,
    EditTimer,
    Timer,
    Timers,
    Slots,
    PruneSlots,
    WriteRecords,
    Record,
    Records,
    Entries,
    Announce,
    Retire,
    ClaimApp,
    Apps,
    Hosts,
    LostHosts,
    Job,
    Jobs,
    Attempts,
    Logs,
    Counts,
    Queues,
    Standing,
    SetPaused,
    SetQueueLimit,
    EditQueue,
    RemoveQueue,
    Limits,
    SetLimit,
    Sizes,
}

impl Operation {
    /// All of them, with their names, in their order.
    pub(super) const ALL: [(Self, &'static str); 45] = [
        (Self::Enqueue, "enqueue"),
        (Self::Reserve, "reserve"),
        (Self::Renew, "renew"),
        (Self::Settle, "settle"),
        (Self::Report, "report"),
        (Self::Rewrite, "rewrite"),
        (Self::Change, "change"),
        (Self::Tend, "tend"),
        (Self::Lease, "lease"),
        (Self::LeaseInfo, "lease_info"),
        (Self::Leases, "leases"),
        (Self::Ledger, "ledger"),
        (Self::PruneLedger, "prune_ledger"),
        (Self::SetTimers, "set_timers"),
        (Self::Fire, "fire"),
        (Self::ChangeTimer, "change_timer"),
        (Self::EditTimer, "edit_timer"),
        (Self::Timer, "timer"),
        (Self::Timers, "timers"),
        (Self::Slots, "slots"),
        (Self::PruneSlots, "prune_slots"),
        (Self::WriteRecords, "write_records"),
        (Self::Record, "record"),
        (Self::Records, "records"),
        (Self::Entries, "entries"),
        (Self::Announce, "announce"),
        (Self::Retire, "retire"),
        (Self::ClaimApp, "claim_app"),
        (Self::Apps, "apps"),
        (Self::Hosts, "hosts"),
        (Self::LostHosts, "lost_hosts"),
        (Self::Job, "job"),
        (Self::Jobs, "jobs"),
        (Self::Attempts, "attempts"),
        (Self::Logs, "logs"),
        (Self::Counts, "counts"),
        (Self::Queues, "queues"),
        (Self::Standing, "standing"),
        (Self::SetPaused, "set_paused"),
        (Self::SetQueueLimit, "set_queue_limit"),
        (Self::EditQueue, "edit_queue"),
        (Self::RemoveQueue, "remove_queue"),
        (Self::Limits, "limits"),
        (Self::SetLimit, "set_limit"),
        (Self::Sizes, "sizes"),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stands_at_its_own_place() {
        for (place, (operation, name)) in Operation::ALL.iter().enumerate() {
            assert_eq!(*operation as usize, place, "{name}");
        }
    }
}
