//! Programs as jobs: `tenure exec` records one run, `tenure worker` runs a program for each job of its queues.

mod attend;
mod board;
mod brake;
mod confine;
mod exec;
mod forward;
mod hands;
mod hold;
mod presses;
mod result;
mod roll;
mod stops;
mod worker;

pub(crate) use brake::{Brake, GRACE};
pub(crate) use confine::{BEST_EFFORT, Confine, Hidden, confinement, exposed, of_processes};
pub(crate) use exec::{Exec, run as exec};
pub(crate) use presses::{Press, Presses};
pub(crate) use result::kept;
pub(crate) use worker::{WorkerArgs, run as worker};

use std::ffi::OsString;
use std::fmt;
use std::sync::mpsc::channel;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tenure::Moment;
use tenure_program::Rights;

use crate::client::{Answer, Trouble};
use crate::screen::tell;

/// For how long jobs are held unless that is renewed.
const LEASE: Duration = Duration::from_secs(30);
/// Most that were killed are gone by then, on a machine with much to do, too.
const ONCE_MORE: Duration = Duration::from_secs(5);

/// Ends what hosts of this machine have left that were killed together with the supervisors of their programs.
pub(crate) fn end_orphans() {
    let ended = tenure_program::end_orphans();
    if ended > 0 {
        let what = if ended == 1 { "process" } else { "processes" };
        tell(&format!("ended {ended} {what} left behind by a killed host"));
    }
}

/// Returns the rights of programs that a host runs for others. Only Linux can keep a program from gaining privileges.
pub(crate) fn rights(allows_new_privs: bool) -> Rights {
    Rights { no_new_privs: cfg!(target_os = "linux") && !allows_new_privs, closes_descriptors: true }
}

/// The same for whoever stays, and once more later: a supervisor that is being killed just now may not be gone yet.
pub(crate) fn end_orphans_twice() {
    end_orphans();
    let later = || {
        let (_nobody, never) = channel::<()>();
        let _ = never.recv_timeout(ONCE_MORE);
        end_orphans();
    };
    // Whoever gets no thread has looked once, as whoever begins next will.
    let _ = std::thread::Builder::new().spawn(later);
}

/// What a claim is answered.
#[derive(Deserialize)]
struct Claimed {
    jobs: Vec<Granted>,
}

/// A job that was granted.
#[derive(Deserialize)]
struct Granted {
    token: String,
    expires_in_seconds: f64,
    id: String,
    kind: String,
    queue: String,
    attempt: u32,
    #[serde(default)]
    args: Option<Box<RawValue>>,
    lease: Held,
    #[serde(default)]
    traceparent: Option<String>,
    #[serde(default)]
    tracestate: Option<String>,
    #[serde(default)]
    timeout_seconds: Option<f64>,
}

/// Omits the token and the args, which may be secret.
impl fmt::Debug for Granted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Granted").field("id", &self.id).field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// The lease of a granted job.
#[derive(Debug, Deserialize)]
struct Held {
    fence: String,
}

impl Granted {
    /// The jobs of an answer.
    fn all(answer: &Answer) -> Result<Vec<Self>, Trouble> {
        let claimed: Claimed =
            serde_json::from_slice(&answer.body).map_err(|error| Trouble::strange(&error.to_string()))?;
        Ok(claimed.jobs)
    }

    /// What the program finds in its environment.
    fn env(&self, server: Option<&str>) -> Vec<(String, OsString)> {
        let mut env = vec![
            ("JOB_ID", self.id.clone()),
            ("JOB_KIND", self.kind.clone()),
            ("JOB_QUEUE", self.queue.clone()),
            ("JOB_ATTEMPT", self.attempt.to_string()),
            ("JOB_FENCE", self.lease.fence.clone()),
            ("WEBJOBS_NAME", self.kind.clone()),
            ("WEBJOBS_RUN_ID", self.id.clone()),
        ];
        // Without a server there is nobody whom the program could tell something by that token.
        if let Some(server) = server {
            env.extend([("JOB_TOKEN", self.token.clone()), ("JOB_API", server.to_owned())]);
        }
        env.extend(self.traceparent.clone().map(|trace| ("TRACEPARENT", trace)));
        env.extend(self.tracestate.clone().map(|state| ("TRACESTATE", state)));
        env.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect()
    }
}

/// Until when something is surely held that was asked for then: what an answer takes on its way is left out.
fn surely(sent: Moment, seconds: f64) -> Moment {
    sent.after(Duration::try_from_secs_f64(seconds * 0.9).unwrap_or_default())
}

/// How far a program has come, as a server is told.
fn shown(progress: Option<&tenure_program::Progress>) -> Value {
    progress.map_or(Value::Null, |it| json!({ "fraction": it.fraction, "message": it.message }))
}
