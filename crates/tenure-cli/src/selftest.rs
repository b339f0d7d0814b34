//! `tenure selftest`: a job and a lease are taken through their lives on a server, and each step is looked at.

use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tenure::{Chance, Clock, JobId, SystemClock};

use crate::client::{Ask, Trouble, escaped};
use crate::exit::Failure;
use crate::output::{Cell, Out, Shape, Table, safe};
use crate::screen::Tone;
use crate::with::{With, text};

/// For how long the job and the lease are held.
const LEASE_SECONDS: u64 = 30;
/// How long the claim waits for the job, which is there.
const WAIT_SECONDS: u64 = 5;
/// The lease of all selftests: a name of its own for each would stay in the list of leases. Another selftest, or what is left of
/// one that was killed, is waited for.
const LEASE: &str = "selftest";
const LEASE_WAIT_SECONDS: u64 = LEASE_SECONDS + WAIT_SECONDS;

/// Arguments of `tenure selftest`.
#[derive(Debug, Args)]
pub(crate) struct Selftest {}

/// Values that a step needs of those before it.
struct Try {
    /// The id of the job, and a part of each name.
    id: String,
    queue: String,
    job_token: String,
    lease_token: String,
    fence: u64,
}

/// A step, and what it finds.
type Step = (&'static str, fn(&mut Try, &With) -> Result<String, Wrong>);

/// The steps, each on the ground of those before it.
const STEPS: [Step; 9] = [
    ("reach", reach),
    ("enqueue", enqueue),
    ("claim", claim),
    ("renew", renew),
    ("settle", settle),
    ("settle once", settle_once),
    ("break lease", lose_a_lease),
    ("larger fence", lease_with_a_larger_fence),
    ("schedule preview", timer_preview),
];

/// Why a step has failed.
enum Wrong {
    Trouble(Trouble),
    Otherwise(String),
}

impl From<Trouble> for Wrong {
    fn from(trouble: Trouble) -> Self {
        Self::Trouble(trouble)
    }
}

pub(crate) fn run(_: &Selftest, with: &mut With) -> Result<(), Failure> {
    let id = JobId::new(SystemClock.now(), Chance::from_system().bits()).to_string();
    let mut it = Try {
        queue: format!("selftest-{id}"),
        id,
        job_token: String::new(),
        lease_token: String::new(),
        fence: 0,
    };
    let (mut lines, mut failed) = (Vec::new(), None);
    for (name, step) in STEPS {
        let went = line(&mut lines, name, || step(&mut it, with));
        if let Err(wrong) = went {
            failed = Some((name, wrong));
            break;
        }
    }
    // What was begun is taken away, however it went.
    if !matches!(failed, Some(("reach", _)))
        && let Err(wrong) = line(&mut lines, "clean up", || clean_up(&it, with))
    {
        failed = failed.or(Some(("clean up", wrong)));
    }
    show(&lines, &mut with.out)?;
    match failed {
        None => Ok(()),
        Some(("reach", Wrong::Trouble(trouble))) => Err(trouble.into()),
        Some((name, wrong)) => {
            Err(Failure::Unsuccessful(format!("step \"{name}\" failed: {}", said(&wrong))))
        }
    }
}

/// Does a step, and notes how it went and how long it took.
fn line(
    lines: &mut Vec<Value>,
    name: &str,
    step: impl FnOnce() -> Result<String, Wrong>,
) -> Result<(), Wrong> {
    let began = SystemClock.moment();
    let went = step();
    let took: Duration = SystemClock.moment().since(began);
    let (state, found) = match &went {
        Ok(found) => ("ok", found.clone()),
        Err(wrong) => ("fail", said(wrong)),
    };
    let milliseconds = (took.as_secs_f64() * 10_000.0).round() / 10.0;
    lines.push(json!({ "step": name, "state": state, "milliseconds": milliseconds, "found": found }));
    went.map(drop)
}

fn said(wrong: &Wrong) -> String {
    match wrong {
        Wrong::Trouble(trouble) => trouble.sentence(),
        Wrong::Otherwise(sentence) => sentence.clone(),
    }
}

fn show(lines: &[Value], out: &mut Out) -> Result<(), Failure> {
    match out.shape() {
        Shape::Json => out.document(&json!({ "steps": lines }).to_string()),
        Shape::Jsonl => lines.iter().try_for_each(|line| out.document(&line.to_string())),
        Shape::Table | Shape::Wide | Shape::Id => {
            let mut table = Table::new(&["state", "step", "took", "found"]);
            for line in lines {
                let state = text(line, "/state");
                let tone = if state == "ok" { Tone::Good } else { Tone::Bad };
                table.row(vec![
                    Cell::from(state).toned(tone),
                    text(line, "/step").into(),
                    format!("{} ms", line["milliseconds"]).into(),
                    text(line, "/found").into(),
                ]);
            }
            out.table(&table, true)
        }
    }
}

fn otherwise<T>(sentence: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong::Otherwise(sentence.into()))
}

impl Try {
    fn job(&self, what: &str) -> String {
        format!("/v1/jobs/{}{what}", escaped(&self.id))
    }
}

fn lease(what: &str) -> String {
    format!("/v1/leases/{LEASE}{what}")
}

fn reach(_: &mut Try, with: &With) -> Result<String, Wrong> {
    let version = with.client.ask(&Ask::get("/v1/version"))?.json()?;
    Ok(format!("version {}", safe::line(text(&version, "/version"))))
}

fn enqueue(it: &mut Try, with: &With) -> Result<String, Wrong> {
    let body = json!({ "id": it.id, "kind": "selftest", "queue": it.queue, "args": { "n": 1 } });
    let job = with.client.ask(&Ask::post("/v1/jobs", &body))?.json()?;
    if job["state"] != "queued" {
        return otherwise(format!("the job is {}; expected queued", job["state"]));
    }
    Ok(format!("job {}", it.id))
}

fn claim(it: &mut Try, with: &With) -> Result<String, Wrong> {
    let body = json!({ "queues": [it.queue], "limit": 1, "lease_seconds": LEASE_SECONDS });
    let ask = Ask::post("/v1/claim", &body).or_wait(WAIT_SECONDS, None);
    let claimed = with.client.ask(&ask)?.json()?;
    let job = &claimed["jobs"][0];
    if job["id"] != it.id.as_str() || job["args"]["n"] != 1 {
        return otherwise("the claim did not return the job");
    }
    text(job, "/token").clone_into(&mut it.job_token);
    Ok(format!("attempt {}", job["attempt"]))
}

fn renew(it: &mut Try, with: &With) -> Result<String, Wrong> {
    let body = json!({ "token": it.job_token, "lease_seconds": LEASE_SECONDS });
    with.client.ask(&Ask::post(it.job("/heartbeat"), &body))?;
    Ok(format!("renewed for {LEASE_SECONDS} s"))
}

fn settle(it: &mut Try, with: &With) -> Result<String, Wrong> {
    let body = json!({ "token": it.job_token, "result": { "n": 2 } });
    with.client.ask(&Ask::post(it.job("/complete"), &body))?;
    let job = with.client.ask(&Ask::get(it.job("")))?.json()?;
    if job["state"] != "succeeded" {
        return otherwise(format!("the job is {}; expected succeeded", job["state"]));
    }
    Ok("succeeded".to_owned())
}

/// Whoever has settled a job cannot settle it otherwise: he is refused, or told how it has ended.
fn settle_once(it: &mut Try, with: &With) -> Result<String, Wrong> {
    let body = json!({ "token": it.job_token, "error": { "type": "selftest", "detail": "too late" } });
    match with.client.ask(&Ask::post(it.job("/fail"), &body)) {
        Ok(_) => {}
        Err(Trouble::Refused(refused)) if refused.is("lease-lost") => {}
        Err(trouble) => return Err(trouble.into()),
    }
    let job = with.client.ask(&Ask::get(it.job("")))?.json()?;
    if job["state"] != "succeeded" || job["result"]["n"] != 2 {
        return otherwise(format!("the job is {}; expected it to stay succeeded", job["state"]));
    }
    Ok("a second settle is rejected".to_owned())
}

fn lose_a_lease(it: &mut Try, with: &With) -> Result<String, Wrong> {
    acquire(it, with)?;
    with.client.ask(&Ask::post(lease("/break"), &json!({ "reason": "selftest", "after_seconds": 0 })))?;
    let renewed = with.client.ask(&Ask::post(lease("/renew"), &json!({ "token": it.lease_token })));
    refused(renewed.map(drop), "a broken lease was renewed")
}

fn lease_with_a_larger_fence(it: &mut Try, with: &With) -> Result<String, Wrong> {
    let before = it.fence;
    acquire(it, with)?;
    if it.fence <= before {
        return otherwise(format!("the fencing token is {}; expected more than {before}", it.fence));
    }
    with.client.ask(&Ask::post(lease("/release"), &json!({ "token": it.lease_token })))?;
    Ok(format!("{before}, then {}", it.fence))
}

fn timer_preview(_: &mut Try, with: &With) -> Result<String, Wrong> {
    let body = json!({ "spec": { "text": "30 2 * * *" }, "count": 3 });
    let preview = with.client.ask(&Ask::post("/v1/schedules/preview", &body))?.json()?;
    let slots = preview["next"].as_array().map_or(0, Vec::len);
    if slots != 3 {
        return otherwise(format!("the preview lists {slots} runs; expected 3"));
    }
    Ok(safe::line(text(&preview, "/description")))
}

fn clean_up(it: &Try, with: &With) -> Result<String, Wrong> {
    let delete = |path: String| match with.client.ask(&Ask::delete(path)) {
        Ok(_) => Ok(true),
        // It was never there.
        Err(Trouble::Refused(refused)) if refused.is("not-found") => Ok(false),
        Err(trouble) => Err(trouble),
    };
    let has_job = delete(it.job(""))?;
    // A token that may only work keeps an empty queue, and that is no fault of the server.
    let has_queue = delete(format!("/v1/queues/{}", escaped(&it.queue))).unwrap_or(false);
    let deleted = match (has_job, has_queue) {
        (true, true) => "deleted the job and its queue",
        (true, false) => "deleted the job",
        (false, true) => "deleted the queue",
        (false, false) => "nothing to delete",
    };
    Ok(deleted.to_owned())
}

fn acquire(it: &mut Try, with: &With) -> Result<(), Wrong> {
    let body = json!({ "ttl_seconds": LEASE_SECONDS, "owner": "tenure selftest" });
    let ask = Ask::post(lease("/acquire"), &body).or_wait(LEASE_WAIT_SECONDS, None);
    let granted = with.client.ask(&ask)?.json()?;
    text(&granted, "/token").clone_into(&mut it.lease_token);
    let fence = text(&granted, "/fence").parse();
    it.fence = fence.map_err(|_| Wrong::Otherwise(format!("invalid fencing token {}", granted["fence"])))?;
    Ok(())
}

/// The server has to say no.
fn refused(answer: Result<(), Trouble>, otherwise: &str) -> Result<String, Wrong> {
    match answer {
        Ok(()) => Err(Wrong::Otherwise(otherwise.to_owned())),
        Err(Trouble::Refused(refused)) if refused.is("lease-lost") => Ok("rejected, as expected".to_owned()),
        Err(trouble) => Err(trouble.into()),
    }
}
