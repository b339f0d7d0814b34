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
/// Most jobs that one page of a listing returns.
pub const PAGE_JOBS: usize = 1_000;
/// Most rows that one page of a listing looks at; a page that stops there is short and carries a cursor.
pub const PAGE_EXAMINED: usize = 10_000;
/// Most jobs that one step of a change over a filter touches.
pub const CHANGE_JOBS: usize = 1_000;
/// Most lapsed or due rows that one step moves.
pub const SWEEP_ROWS: usize = 1_000;
/// Most finished jobs that one step of pruning removes.
pub const PRUNE_JOBS: usize = 1_000;

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
/// Shortest lease of a reservation.
pub const SHORTEST_LEASE: Duration = Duration::from_secs(1);
/// Longest lease of a reservation.
pub const LONGEST_LEASE: Duration = Duration::from_secs(24 * 3600);
/// Most slots of one queue in one worker.
pub const SLOTS: usize = 100_000;
/// Most queues that one worker serves.
pub const QUEUES: usize = 1_000;
