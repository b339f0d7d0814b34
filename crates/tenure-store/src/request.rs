//! The contract as one call: a [`Request`] for each operation, and the [`Reply`] to it.
//!
//! A store implements [`Store::call`]. All other code uses the typed methods of [`Jobs`], [`Leases`], [`Timers`],
//! [`Records`], [`Hosts`], [`Views`] and [`Copies`], which every store has. A wrapper around a store forwards the requests that do
//! not concern it, however many operations there are.

use std::time::Duration;

use tenure_core::{
    AppId, AppUse, Attempt, HostId, Job, JobId, JournalEntry, Key, LeaseName, LeaseOutcome, Limit, LogLine,
    Name, NewJob, NewTimer, QueueName, Record, RecordKey, Serves, Settlement, Standing, Timer, Timestamp,
    UniqueKey,
};

use crate::{
    Answer, Change, Changed, Copies, CopyEnd, Count, Enqueued, EntriesAsk, EntryPage, Fault, Fired, Host,
    Hosts, Item, Jobs, KeyHold, LeaseInfo, LeasePage, LeaseWish, Leases, LeasesAsk, LedgerAsk, LedgerPage,
    LimitInfo, LimitPage, LostHost, Page, PageAsk, Pruned, QueueEdit, QueueEdited, QueueInfo, QueueRemoved,
    QueueSeen, RecordPage, Records, RecordsAsk, Renew, Renewal, Report, Reported, Reservation, Reserve, Rest,
    Rewrite, Selection, Sizes, SlotPage, SlotsAsk, Store, Tended, TimerEdit, TimerEdited, TimerPage,
    TimerSeen, TimerSet, Timers, TimersAsk, Turn, Views, Writes, Written, check_rewrites, check_timers,
    check_wishes, check_writes,
};

/// Makes the requests, their replies and the typed methods from one table, so that an operation is one line.
///
/// A parameter is `own` if its method takes it by value, and `lent` if it takes a reference, of which the request has a
/// copy. A `view` looks something up, and an `act` may change something.
macro_rules! operations {
    (@type own $type:ty) => { $type };
    (@type lent $type:ty) => { &$type };
    (@field own $type:ty) => { $type };
    (@field lent $type:ty) => { <$type as ToOwned>::Owned };
    (@is_view view) => { true };
    (@is_view act) => { false };
    (@value own $value:ident) => { $value };
    (@value lent $value:ident) => { $value.to_owned() };

    ($($trait:ident {
        $($sort:ident $method:ident, $name:ident($($how:ident $field:ident: $type:ty),*) -> $reply:ty;)*
    })*) => {
        /// A request to a store. Each has the method of its name, which says what it does.
        #[derive(Debug, Clone, PartialEq)]
        #[allow(missing_docs, reason = "each is described at its method")]
        pub enum Request {
            $($(
                #[doc = concat!("See [`", stringify!($trait), "::", stringify!($method), "`].")]
                $name { $($field: operations!(@field $how $type)),* },
            )*)*
        }

        /// A store's reply to the request of the same name.
        #[derive(Debug, PartialEq)]
        #[allow(clippy::large_enum_variant, reason = "a reply is moved a few times, which costs less than a box")]
        pub enum Reply {
            $($(
                #[doc = concat!("See [`", stringify!($trait), "::", stringify!($method), "`].")]
                $name($reply),
            )*)*
        }

        /// An operation of the contract.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[allow(missing_docs, reason = "each is described at its method")]
        pub enum Operation {
            $($($name),*),*
        }

        impl Operation {
            /// All operations, in their order.
            pub const ALL: &'static [Self] = &[$($(Self::$name),*),*];

            /// Returns the name of its method.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $($(Self::$name => stringify!($method),)*)*
                }
            }

            /// Returns true if it only looks something up.
            #[must_use]
            pub const fn is_view(self) -> bool {
                match self {
                    $($(Self::$name => operations!(@is_view $sort),)*)*
                }
            }
        }

        impl Request {
            /// Returns the operation that it requests.
            #[must_use]
            pub const fn operation(&self) -> Operation {
                match self {
                    $($(Self::$name { .. } => Operation::$name,)*)*
                }
            }
        }

        $(
            impl<S: Store> $trait for S {
                $(
                    fn $method(&self $(, $field: operations!(@type $how $type))*) -> Answer<'_, $reply> {
                        let call = self.call(Request::$name { $($field: operations!(@value $how $field)),* });
                        Box::pin(async move {
                            match call.await? {
                                Reply::$name(reply) => Ok(reply),
                                other => Err(mismatched(stringify!($method), &other)),
                            }
                        })
                    }
                )*
            }
        )*
    };
}

operations! {
    Jobs {
        act enqueue, Enqueue(own batch: Vec<NewJob>) -> Enqueued;
        act reserve, Reserve(own ask: Reserve) -> Reservation;
        act renew, Renew(own ask: Renew) -> Vec<Renewal>;
        act settle, Settle(own settlements: Vec<Settlement>, own then: Option<Reserve>) -> Turn;
        act report, Report(own reports: Vec<Report>) -> Vec<Reported>;
        act rewrite, Rewrite(own rewrites: Vec<Rewrite>) -> Vec<bool>;
        act change, Change(own change: Change, own selection: Selection) -> Changed;
        act tend, Tend() -> Tended;
    }
    Leases {
        act lease, Lease(own wishes: Vec<LeaseWish>) -> Vec<LeaseOutcome>;
        view lease_info, LeaseInfo(lent name: LeaseName) -> Option<LeaseInfo>;
        view leases, Leases(own ask: LeasesAsk) -> LeasePage;
        view ledger, Ledger(own ask: LedgerAsk) -> LedgerPage;
        act prune_ledger, PruneLedger(own before: Timestamp) -> Pruned;
    }
    Timers {
        act set_timers, SetTimers(own timers: Vec<NewTimer>, own starts: Option<HostId>) -> Vec<TimerSet>;
        act fire, Fire(own at_most: usize) -> Fired;
        act edit_timer, EditTimer(lent name: Name, own seen: TimerSeen, own edit: TimerEdit) -> TimerEdited;
        view timer, Timer(lent name: Name) -> Option<Timer>;
        view timers, Timers(own ask: TimersAsk) -> TimerPage;
        view slots, Slots(own ask: SlotsAsk) -> SlotPage;
        act prune_slots, PruneSlots(own before: Timestamp) -> Pruned;
    }
    Records {
        act write_records, WriteRecords(own writes: Writes) -> Written;
        view record, Record(lent shelf: Name, lent key: RecordKey) -> Option<Record>;
        view records, Records(own ask: RecordsAsk) -> RecordPage;
        view entries, Entries(own ask: EntriesAsk) -> EntryPage;
    }
    Hosts {
        act announce, Announce(own id: HostId, lent name: str, own slots: u32, lent serves: [Serves],
            own ttl: Duration) -> ();
        act retire, Retire(own id: HostId) -> ();
        act claim_app, ClaimApp(lent app: AppId, lent program: str, own host: HostId) -> Result<AppUse, AppUse>;
        view apps, Apps() -> Vec<AppUse>;
        view hosts, Hosts() -> Vec<Host>;
        view lost_hosts, LostHosts() -> Vec<LostHost>;
    }
    Views {
        view job, Job(own id: JobId) -> Option<Job>;
        view jobs, Jobs(own ask: PageAsk) -> Page;
        view attempts, Attempts(own id: JobId) -> Vec<Attempt>;
        view logs, Logs(own id: JobId, own behind: (u32, u32), own at_most: usize) -> Vec<LogLine>;
        view counts, Counts() -> Vec<Count>;
        view queues, Queues() -> Vec<QueueInfo>;
        view standing, Standing(own id: JobId) -> Option<Standing>;
        act edit_queue, EditQueue(lent queue: QueueName, own edit: QueueEdit) -> QueueEdited;
        act remove_queue, RemoveQueue(lent queue: QueueName, own seen: QueueSeen) -> QueueRemoved;
        view limit, Limit(lent key: Key) -> Option<LimitInfo>;
        view limits, Limits(own behind: Option<Key>, own at_most: usize) -> LimitPage;
        act set_limit, SetLimit(lent key: Key, own limit: Option<Limit>) -> ();
        view sizes, Sizes() -> Sizes;
    }
    Copies {
        view rest, Rest() -> Rest;
        view unreadable, Unreadable(own at_most: usize) -> Vec<String>;
        view keys_held, KeysHeld(own behind: Option<UniqueKey>, own at_most: usize) -> Vec<KeyHold>;
        view records_kept, RecordsKept(own behind: Option<(Name, RecordKey)>, own at_most: usize) -> Vec<Record>;
        view entries_kept, EntriesKept(own behind: Option<(Name, u64)>, own at_most: usize) -> Vec<JournalEntry>;
        act begin_copy, BeginCopy() -> Option<String>;
        act take_in, TakeIn(own items: Vec<Item>) -> ();
        act end_copy, EndCopy(own end: CopyEnd) -> ();
    }
}

impl Request {
    /// Refuses a request that exceeds a limit of the contract.
    ///
    /// # Errors
    /// A fault that names the limit: the caller has a bug.
    pub fn check(&self) -> Result<(), Fault> {
        if let Self::Lease { wishes } = self {
            return check_wishes(wishes);
        }
        if let Self::SetTimers { timers, .. } = self {
            return check_timers(timers);
        }
        if let Self::WriteRecords { writes } = self {
            return check_writes(writes);
        }
        if let Self::Rewrite { rewrites } = self { check_rewrites(rewrites) } else { Ok(()) }
    }
}

/// Wraps the answer of a typed method into the reply to its request, such as with `Reply::Enqueue`.
pub fn replied<'a, T: Send + 'a>(answer: Answer<'a, T>, reply: fn(T) -> Reply) -> Answer<'a, Reply> {
    Box::pin(async move { answer.await.map(reply) })
}

/// Reports a store that replied to another request than it was sent.
fn mismatched(operation: &str, reply: &Reply) -> Fault {
    Fault::Broken(format!("the store replied to `{operation}` with {reply:?}"))
}
