//! Long-running jobs over HTTP, as two real servers on one store keep them when one of them is killed (-9).
//!
//! Each test is run on a file of SQLite and on a database of PostgreSQL. Nothing in it waits for a fixed time: it waits for
//! what has to come, with a bound. What an older system of this kind got wrong is told by the numbers that the tests of this
//! project name (T130 to T147). Where each of them is proved:
//!
//! | | what | here | elsewhere |
//! |---|---|---|---|
//! | T130 | accepted, then killed: the job runs as soon as any other | `accepting` | `tenure-http` `submitting`, `tenure` `kill` |
//! | T131 | the same key twice is one job | `accepting`: sent again to the other server | `tenure-http` `once`, `serve`, conformance `enqueue` and `races` |
//! | T132 | what is told in each state | `watching`: both servers tell the same | `tenure-http` `item`, `ends` |
//! | T133 | ten recoveries do not hand out a backlog | `recovering` | |
//! | T134 | what is wrong with one job stops no recovery, two recoveries do not overlap | `recovering` | conformance `races` |
//! | T135 | a dead holder's job goes on elsewhere, measured | `recovering` | `serve`, example `stars` |
//! | T136 | attempts are limited, the end has the error, and can be undone by hand | `ending` | `tenure` `outcomes`, conformance `settle` |
//! | T137 | a job that nobody knows | the queue is the job's own row, so none is queued that is not there | conformance `settle`, `tenure` `outcomes` |
//! | T138 | whoever comes too late changes nothing | `holding` | `tenure-http` `workers`, conformance `settle` |
//! | T139 | killed between what it did and saying so | `recovering` | `tenure` `origins`, example `stars` |
//! | T140 | a job that is longer than any lease, and one that is longer than it may be | `holding` | `tenure-http` `workers` and `crew` |
//! | T141 | the store is away | `outage` | `tenure` `outage` and `outages` |
//! | T142 | a limit is exact, and no slot leaks | `holding` | `tenure` `worker`, conformance `limits` |
//! | T143 | pages are stable while jobs come | `watching` | `tenure-http` `listing` and `retention`, conformance `views` |
//! | T144 | what has ended goes after its retention | `ending` | `tenure-http` `retention`, conformance `tend` |
//! | T145 | a server that stops, and a worker that does | `holding` | `serve`, `workers`, `tenure` `worker` |
//! | T146 | ids are unique and grow, whoever writes and whoever is killed | `accepting` | conformance `races` |
//! | T147 | cancelling: at once, or by asking and then bounded; too late is a conflict | `ending` | `tenure-http` `item`, `tenure` `worker` |

#![allow(missing_docs, clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]
#![expect(clippy::disallowed_methods, reason = "real processes run in real time")]

mod accepting;
mod ending;
mod holding;
mod outage;
mod recovering;
mod stand;
mod watching;
