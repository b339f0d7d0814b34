//! Every bound of the system that a user can meet, in one place.
//!
//! A loop, queue, batch, payload or retry that is not bounded here is a defect.

use std::time::Duration;

/// Longest name of a queue, kind or tag, in bytes.
pub const NAME_BYTES: usize = 128;
/// Largest encoded arguments of a job, in bytes.
pub const ARGS_BYTES: usize = 256 * 1024;
/// Deepest nesting of arguments and outputs. Parsers commonly stop at 128; half of that leaves room
/// for wrapping.
pub const JSON_DEPTH: usize = 64;
/// Longest number in arguments and outputs, in characters. A double has at most 309 digits before its point.
pub const NUMBER_BYTES: usize = 400;
/// Largest stored output of a job, in bytes.
pub const OUTPUT_BYTES: usize = 256 * 1024;
/// Longest place (such as `/stars/7`) where a job's result lives, in bytes.
pub const PLACE_BYTES: usize = 2048;
/// Longest stored message of a failure, in bytes; longer ones are cut and marked.
pub const FAILURE_BYTES: usize = 8 * 1024;
/// Most tags of a job.
pub const TAGS: usize = 32;
/// Most metadata entries of a job.
pub const META_ENTRIES: usize = 64;
/// Longest metadata key or value, in bytes.
pub const META_BYTES: usize = 1024;
/// Longest metadata as JSON text, in bytes. JSON writes a control character with six bytes, and stores keep the text.
pub const META_JSON_BYTES: usize = 256 * 1024;
/// Longest unique key given by a user, in bytes.
pub const UNIQUE_KEY_BYTES: usize = 512;
/// Longest reason given for cancelling, in bytes.
pub const REASON_BYTES: usize = 1024;

/// Most jobs in one atomic batch.
pub const BATCH_JOBS: usize = 100_000;
/// Most bytes of arguments in one atomic batch, so that a batch cannot exhaust memory.
pub const BATCH_BYTES: usize = 256 * 1024 * 1024;
/// Most jobs that one reserve call hands out.
pub const RESERVE_JOBS: usize = 1_000;
/// Retention of a worker that stopped without saying so, so that people can see that it was lost.
pub const LOST_HOSTS_KEPT: Duration = Duration::from_secs(24 * 3600);
/// Most lost workers that are kept; older ones make room.
pub const LOST_HOSTS: usize = 200;
/// Most jobs that are listed of a lost worker.
pub const LOST_JOBS: usize = 20;
/// Most jobs that one page of a listing returns.
pub const PAGE_JOBS: usize = 1_000;
/// Characters of a search.
pub const SEARCH_CHARS: usize = 2_000;
/// Values in all terms of a search together.
pub const SEARCH_VALUES: usize = 32;
/// Most rows that one page of a listing looks at; a page that stops there is short and carries a cursor.
pub const PAGE_EXAMINED: usize = 10_000;
/// Bytes of args, results and errors that one page of a listing examines; a page that stops there is short and carries a
/// cursor.
pub const PAGE_EXAMINED_BYTES: usize = 16 * 1024 * 1024;
/// Unreadable jobs that a page of jobs names. The next page names the following ones.
pub const PAGE_UNREADABLE: usize = 100;
/// Most jobs that one step of a change over a filter touches.
pub const CHANGE_JOBS: usize = 1_000;
/// Most values that one call stores in another form.
pub const REWRITES: usize = 1_000;
/// Most lapsed or due rows that one step moves.
pub const SWEEP_ROWS: usize = 1_000;
/// Most finished jobs that one step of pruning removes.
pub const PRUNE_JOBS: usize = 1_000;
/// Shortest time for which pruning passes by a finished job that unfinished jobs depend on.
pub const NEEDED_LEAST: Duration = Duration::from_secs(60);
/// Longest time for which pruning passes by a finished job that unfinished jobs depend on.
pub const NEEDED_MOST: Duration = Duration::from_secs(3600);

/// Most attempts that a policy may allow.
pub const MAX_ATTEMPTS: u32 = 10_000;
/// Most waits that a policy may list.
pub const BACKOFF_STEPS: usize = 100;
/// Most deliveries (grants to a holder) that a policy may allow.
pub const MAX_DELIVERIES: u32 = 1_000_000;
/// Attempts of one job whose record is kept; older ones make room.
pub const ATTEMPTS_KEPT: u32 = 100;
/// Log lines kept of one attempt; later ones are counted, not kept.
pub const LOG_LINES: u32 = 10_000;
/// Longest log line or progress message, in bytes; longer ones are cut and marked.
pub const LINE_BYTES: usize = 4 * 1024;

/// Longest delay, timeout or retention: a hundred years.
pub const LONGEST: Duration = Duration::from_secs(100 * 366 * 24 * 3600);
/// Shortest lease, of a name or of a reservation.
pub const SHORTEST_LEASE: Duration = Duration::from_secs(1);
/// Longest lease that ends by itself, of a name or of a reservation.
pub const LONGEST_LEASE: Duration = Duration::from_secs(24 * 3600);
/// Most slots of one queue in one worker.
pub const SLOTS: usize = 100_000;
/// Most queues that one worker serves.
pub const QUEUES: usize = 1_000;

/// Longest name of a lease, in bytes.
pub const LEASE_NAME_BYTES: usize = 1024;
/// Longest words by which the holder of a lease is known to people, in bytes.
pub const HOLDER_BYTES: usize = 256;
/// Longest note in the ledger, in bytes; longer ones are cut and marked.
pub const NOTE_BYTES: usize = 1024;
/// Most steps of leases in one call.
pub const LEASE_STEPS: usize = 20_000;
/// Most leases that one page of a listing returns.
pub const PAGE_LEASES: usize = 1_000;
/// Most entries of the ledger that one page returns.
pub const PAGE_LEDGER: usize = 1_000;
/// Most entries of the ledger that one step of pruning removes.
pub const PRUNE_LEDGER: usize = 1_000;
/// Most leases that one handle holds and waits for at once.
pub const HELD_LEASES: usize = 100_000;
/// Most that wait for one lease in the order in which they came; later ones wait unheard.
pub const LEASE_WAITERS: usize = 1_000;

/// Longest key of a record, in bytes.
pub const RECORD_KEY_BYTES: usize = 255;
/// Largest value of a record, in bytes.
pub const RECORD_BYTES: usize = 64 * 1024;
/// Longest subject of a journal's entry, in bytes.
pub const SUBJECT_BYTES: usize = 255;
/// Largest value of a journal's entry, in bytes.
pub const ENTRY_BYTES: usize = 16 * 1024;
/// Most records that one call puts or removes.
pub const WRITE_RECORDS: usize = 100;
/// Most entries that one call appends to journals.
pub const WRITE_ENTRIES: usize = 100;
/// Most records that one page returns: they may be large.
pub const PAGE_RECORDS: usize = 200;
/// Most entries of a journal that one page returns.
pub const PAGE_ENTRIES: usize = 500;
/// Most expired records, and as many entries, that one step of tending removes.
pub const PRUNE_RECORDS: usize = 1_000;

/// Longest ordering, limit or share key, in bytes.
pub const KEY_BYTES: usize = 256;
/// Most jobs that one job waits for.
pub const AFTER_JOBS: usize = 1_000;
/// Most jobs that may wait in a queue whose depth is bounded.
pub const QUEUE_DEPTH: u64 = 1_000_000_000;
/// Most jobs of a limit that run at once.
pub const LIMIT_MOST: u32 = 1_000_000;
/// Most starts, and most at once, of a rate.
pub const RATE_TIMES: u32 = 1_000_000;
/// Shortest time of a rate.
pub const SHORTEST_RATE: Duration = Duration::from_millis(1);
/// Longest time of a rate.
pub const LONGEST_RATE: Duration = Duration::from_secs(31 * 24 * 3600);
/// Most blocked jobs that one call, and one sweep, let into line because their limits have room.
pub const LET_IN_JOBS: usize = 1_000;
/// Most limits that one page of a listing returns.
pub const PAGE_LIMITS: usize = 1_000;

/// Longest app id, in bytes.
pub const APP_ID_BYTES: usize = 32;
/// Longest name of a program, in bytes.
pub const PROGRAM_BYTES: usize = 256;
/// An app id that no instance of its program was seen with for so long may be claimed by another.
pub const APP_GIVEN_UP: Duration = Duration::from_secs(30 * 24 * 3600);

/// Most slots with which a timer catches up.
pub const CATCH_UP: u64 = 1_000;
/// Most jobs that one decision about a timer brings: who catches up, and one step of a backfill.
pub const CATCH_UP_JOBS: usize = 1_000;
const _: () = assert!(CATCH_UP_JOBS as u64 == CATCH_UP, "both are of one decision");
/// Most jobs of one timer that may not have ended before slots are skipped.
pub const OPEN_JOBS: usize = 1_000;
/// How long the job of an earlier slot has to stop when the next one cancels it.
pub const TIMER_GRACE: Duration = Duration::from_secs(30);
/// Slots that were decided so far ahead of now were decided by a clock that was wrong: who begins anew does not wait
/// for their time.
pub const CLOCK_AHEAD: Duration = Duration::from_secs(10 * 60);
/// Most slots of one record that are counted.
pub const SLOTS_COUNTED: u64 = 1_000;
/// Most timers that one call sets.
pub const SET_TIMERS: usize = 100;
/// Most timers that one call fires.
pub const FIRE_TIMERS: usize = 1_000;
/// Most jobs that one call of firing brings, over all timers: what is ripe beyond that is left for the next call.
pub const FIRE_JOBS: usize = 10_000;
/// Most records of slots that one timer gets when it is fired: one a job, and one each for slots that were too late,
/// missed or too many, and those for which there was no room.
pub const TIMER_RECORDS: usize = CATCH_UP_JOBS + 4;
/// Most records of slots that one call of firing makes, over all timers: what is ripe beyond that is left for the next
/// call.
pub const FIRE_RECORDS: usize = 12_000;
/// Most timers that one page of a listing returns.
pub const PAGE_TIMERS: usize = 1_000;
/// Most records of slots that one page returns.
pub const PAGE_SLOTS: usize = 1_000;
/// Most records of slots that one step of pruning removes.
pub const PRUNE_SLOTS: usize = 1_000;
/// Longest schedule as text, in bytes.
pub const SCHEDULE_BYTES: usize = 4 * 1024;
/// Shortest interval of a schedule.
pub const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);
/// Longest jitter of a schedule.
pub const LONGEST_JITTER: Duration = Duration::from_secs(24 * 3600);
/// Most instants, or times in a day, that a schedule lists.
pub const SCHEDULE_TIMES: usize = 1_000;
/// Most rules in one schedule.
pub const SCHEDULE_RULES: usize = 16;
/// Most days that a schedule leaves out by name.
pub const CALENDAR_DAYS: usize = 10_000;
/// Most days in a row that are looked at and left out before a schedule counts as ended.
pub const LEFT_OUT_IN_A_ROW: usize = 20_000;
/// Most slots that one question about a schedule answers.
pub const SLOTS_ASKED: usize = 10_000;
/// Longest interval of a recurrence rule, in its own unit.
pub const RRULE_INTERVAL: u32 = 100_000;
/// Maximum number of steps for one question about a schedule, for all its rules and runs together. A step is a day that a
/// recurrence rule examines, or a skipped day.
pub const SCHEDULE_STEPS: u32 = 500_000;
/// Maximum number of steps of the scheduler for all runs of a schedule that it decides in one go, about 5 ms. On time it takes
/// one search for a run. The rest is for the runs that it missed: 20 looks for each of 1,000 days take 40,000.
pub const FIRING_STEPS: u32 = 100_000;
/// Maximum number of steps in which the scheduler must find one run before a store accepts the schedule. Two rules for
/// February 29 on a Tuesday, which is usually every 28 years, take 20,000.
pub const FIRED_RUN_STEPS: u32 = 25_000;
/// Number of steps for all schedules of one call that fires them: the others are left for the next call.
pub const FIRE_STEPS: u32 = 5 * FIRING_STEPS;
/// Most slots that a recurrence rule counts.
pub const RRULE_COUNT: u32 = 10_000;
/// Most days of a recurrence rule that are looked at for its next slot: more than a thousand years of them.
pub const RRULE_STEPS: u32 = 400_000;
/// Maximum number of days that Tenure examines for the last occurrences of all recurrence rules with COUNT in one schedule,
/// each time it reads the schedule.
pub const RRULE_COUNT_STEPS: u32 = 100_000;
