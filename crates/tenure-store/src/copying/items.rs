//! What a copy is made of, in words of the domain.

use std::fmt;

use tenure_core::{
    AppUse, Attempt, Bucket, Epoch, Fence, Job, JobId, JournalEntry, Key, Lease, LedgerEntry, Limit, LogLine,
    QueueName, QueueTerms, Record, SlotRecord, Timer, Timestamp, UniqueKey,
};

/// Something that a copy takes along.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// A queue.
    Queue(CopiedQueue),
    /// A job that does not run, and its attempts.
    Job(Box<CopiedJob>),
    /// Some log lines of a job, which came before, in order.
    Lines(u64, Vec<LogLine>),
    /// A unique key that is held.
    Key(KeyHold),
    /// A limit key.
    Limit(CopiedLimit),
    /// A lease.
    Lease(Lease),
    /// An entry of the ledger.
    Entry(LedgerEntry),
    /// A timer.
    Timer(Box<Timer>),
    /// What became of a slot.
    Slot(SlotRecord),
    /// A record.
    Record(Record),
    /// An entry of a journal.
    JournalEntry(JournalEntry),
    /// Which program uses an app id.
    App(AppUse),
}

/// A queue, as a copy takes it along.
#[derive(Debug, Clone, PartialEq)]
pub struct CopiedQueue {
    /// Its name.
    pub name: QueueName,
    /// Whether it hands out no jobs.
    pub paused: bool,
    /// The limit of all its jobs together.
    pub limit: Limit,
    /// What is left of its rate.
    pub bucket: Bucket,
    /// How many jobs may wait in it, and what holds for those that say nothing of their own.
    pub terms: QueueTerms,
}

/// A job, as a copy takes it along.
#[derive(Debug, Clone, PartialEq)]
pub struct CopiedJob {
    /// The job. It does not run.
    pub job: Job,
    /// Its attempts, oldest first; all of them have ended.
    pub attempts: Vec<Attempt>,
    /// For which jobs it still has to wait. They came before it.
    pub waits: Vec<JobId>,
}

/// Which job holds a unique key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyHold {
    /// The key.
    pub key: UniqueKey,
    /// The job; it may be gone.
    pub job: JobId,
    /// Its place in the order of acceptance; 0 if that is not known any more.
    pub seq: u64,
    /// Until then, even if the job ends sooner; until the job ends if `None`.
    pub until: Option<Timestamp>,
}

/// A limit key, as a copy takes it along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopiedLimit {
    /// The key.
    pub key: Key,
    /// The limit: as somebody set it, or as the last job said it.
    pub limit: Limit,
    /// Whether somebody set it.
    pub set: bool,
    /// What is left of its rate.
    pub bucket: Bucket,
}

/// What no view shows of a store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rest {
    /// The floor of the fences that it grants.
    pub epoch: Epoch,
    /// The last place that it gave in the order of acceptance.
    pub last_seq: u64,
    /// The last version that a record got.
    pub last_version: u64,
    /// The last number that an entry of a journal got.
    pub last_number: u64,
    /// What is left of the rates of queues that have a limit.
    pub buckets: Vec<(QueueName, Bucket)>,
    /// `true` if it is a backup that this program is the first to open: no other uses it, although its jobs and leases look as if.
    pub is_new_backup: bool,
    /// How much there is in it.
    pub totals: Totals,
}

/// How much there is in a store, or was copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Jobs, ended ones included.
    pub jobs: u64,
    /// Unique keys that are held.
    pub keys: u64,
    /// Leases that are shown.
    pub leases: u64,
    /// Entries of the ledger.
    pub entries: u64,
    /// Timers.
    pub timers: u64,
    /// Records of slots.
    pub slots: u64,
    /// Records, expired ones included.
    pub records: u64,
    /// Entries of journals, expired ones included.
    pub journal_entries: u64,
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { jobs, keys, leases, entries, timers, slots, records, journal_entries } = self;
        let of =
            |count: &u64, one: &str, many: &str| format!("{count} {}", if *count == 1 { one } else { many });
        write!(
            f,
            "{}, {}, {}, {}, {}, {}, {} and {}",
            of(jobs, "job", "jobs"),
            of(keys, "unique key", "unique keys"),
            of(leases, "lease", "leases"),
            of(entries, "lease history entry", "lease history entries"),
            of(timers, "timer", "timers"),
            of(slots, "scheduled run", "scheduled runs"),
            of(records, "record", "records"),
            of(journal_entries, "journal entry", "journal entries"),
        )
    }
}

impl Totals {
    /// Counts something that was copied.
    pub(super) fn count(&mut self, item: &Item) {
        let count = match item {
            Item::Job(_) => &mut self.jobs,
            Item::Key(_) => &mut self.keys,
            Item::Lease(_) => &mut self.leases,
            Item::Entry(_) => &mut self.entries,
            Item::Timer(_) => &mut self.timers,
            Item::Slot(_) => &mut self.slots,
            Item::Record(_) => &mut self.records,
            Item::JournalEntry(_) => &mut self.journal_entries,
            Item::Queue(_) | Item::Lines(..) | Item::Limit(_) | Item::App(_) => return,
        };
        *count += 1;
    }

    /// What there is, in a word; `None` if there is nothing.
    #[must_use]
    pub fn anything(&self) -> Option<&'static str> {
        let all = [
            (self.jobs, "jobs"),
            (self.keys, "unique keys"),
            (self.leases, "leases"),
            (self.entries, "lease history entries"),
            (self.timers, "timers"),
            (self.slots, "scheduled runs"),
            (self.records, "records"),
            (self.journal_entries, "journal entries"),
        ];
        all.into_iter().find(|(count, _)| *count > 0).map(|(_, what)| what)
    }
}

impl CopiedJob {
    /// Whether anything has ever happened to it but its enqueueing.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        let job = &self.job;
        let as_enqueued = match job.state {
            tenure_core::State::Waiting { why, .. } | tenure_core::State::Blocked { why, .. } => {
                why == tenure_core::Why::Enqueued
            }
            tenure_core::State::Running { .. } | tenure_core::State::Finished { .. } => false,
        };
        !as_enqueued || job.delivery > 0 || job.fence > Fence::NONE || job.failure.is_some()
    }
}

impl Item {
    /// About how many bytes it has.
    pub(super) fn weight(&self) -> usize {
        /// What anything weighs.
        const LEAST: usize = 256;
        LEAST
            + match self {
                Self::Job(copied) => {
                    let output = copied.job.output.as_ref().map_or(0, |output| output.value.len());
                    let told = copied.attempts.iter().filter_map(|attempt| attempt.failure.as_ref());
                    copied.job.args.as_bytes().len()
                        + output
                        + told.map(|failure| failure.message.len()).sum::<usize>()
                        + copied.attempts.len() * LEAST
                }
                Self::Lines(_, lines) => lines.iter().map(|line| line.text.len() + LEAST).sum(),
                Self::Timer(timer) => timer.agreed.job.args.as_bytes().len() + timer.open.len() * 16,
                Self::Record(record) => record.value.as_bytes().len(),
                Self::JournalEntry(entry) => entry.value.as_bytes().len(),
                Self::Queue(_)
                | Self::Key(_)
                | Self::Limit(_)
                | Self::Lease(_)
                | Self::Entry(_)
                | Self::Slot(_)
                | Self::App(_) => LEAST,
            }
    }

    /// The greatest fence in it.
    pub(super) fn fence(&self) -> Fence {
        match self {
            Self::Job(copied) => copied.job.fence,
            Self::Lease(lease) => lease.fence,
            Self::Entry(entry) => entry.note.fence,
            Self::Queue(_)
            | Self::Lines(..)
            | Self::Key(_)
            | Self::Limit(_)
            | Self::Timer(_)
            | Self::Slot(_)
            | Self::Record(_)
            | Self::JournalEntry(_)
            | Self::App(_) => Fence::NONE,
        }
    }
}
