//! A run of a triggered app: a job whose handler is a program.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tenure::apps::{LOST_HOSTS, Standing, is_run};
use tenure::{Failed, Run, Stopping, json_value};
use tenure_apps::{App, Environment, Manners, RunWords, Said};
use tenure_program::{Input, Kept, Program};

use super::desk::{Desk, Lines, Terms, Went, Why};
use super::host::Host;
use super::passing::{PASS_ON, has_passed_on_the_last, pass_on};
use super::place::ready;
use crate::program::kept;
use crate::screen::complain;

/// The largest number of arguments of a run.
const MOST_ARGUMENTS: usize = 1_000;

/// Runs the program for this job. Whatever becomes of it is an outcome.
pub(super) async fn run(run: Run<Arc<Host>>, app: Arc<App>) -> Result<Value, Failed> {
    let host = Arc::clone(run.app());
    if !is_run(run.job()) {
        return Err(Failed::for_good(
            "the job was enqueued directly: use `tenure app run` or POST /v1/apps/triggered/{name}/run",
        ));
    }
    let lost = may_begin(&run, &host, &app).await?;
    forget_old_runs(&host, &app).await;
    let arguments = arguments_of(run.job().args.as_bytes()).map_err(Failed::for_good)?;
    let placed = ready(&host, &app, run.id().to_string(), run.stopped()).await;
    if run.stopping().is_some() {
        // Its files have taken their time, and nothing has begun.
        return Err(Failed::release());
    }
    let (copy, data) = placed.map_err(Failed::retry)?;
    let confinement =
        host.bounds.confinement(&app, (&copy, &data), &host.places.state).map_err(Failed::retry)?;
    let program = Program {
        command: command_of(&app, &arguments),
        env: environment(&run, &app, &copy.path, data, arguments).of(&app),
        inherits: host.bounds.inherits(&app),
        limits: host.bounds.limits(&app),
        rights: host.bounds.rights(&app),
        confinement,
        folder: Some(copy.path.clone()),
        input: Input::Bytes(input_of(&run, &app)),
        ..Program::default()
    };
    host.stands(&app, Standing::Running, &format!("job {}", run.id()));
    let (lines, held) = (Lines::OfARun(Kept::default()), run.clone());
    let held_until = Box::new(move || Some(held.held_until()));
    let (desk, mut went, guard) = Desk::begin(lines, program, terms_of(&host, &app), held_until)
        .map_err(|error| Failed::retry(format_args!("cannot start a thread: {error}")))?;
    let clock = run.tenure().store().clock();
    let (mut is_told, mut is_killed) = (false, false);
    let went = 'ended: loop {
        let passing = async {
            clock.sleep(PASS_ON).await;
            pass_on(&run, &desk).await
        };
        tokio::pin!(passing);
        loop {
            tokio::select! {
                biased;
                went = &mut went => break 'ended went?,
                // It is heard while the store does not answer, too: then most of all.
                why = run.stopped(), if !is_told => {
                    is_told = true;
                    desk.stop(why_of(why));
                }
                () = host.kill.cancelled(), if !is_killed => {
                    is_killed = true;
                    desk.kill_with_its_host();
                }
                _ = &mut passing => break,
            }
        }
    };
    drop(guard);
    if !has_passed_on_the_last(&run, host.lease, &desk).await {
        complain(&format!(
            "the last output of {} in run {} may be missing: the database was away for too long",
            app.name,
            run.id()
        ));
    }
    host.ended(&app, &went.words);
    let result = verdict(&went, &app, run.attempt().saturating_sub(lost))?;
    if let Some(location) = &went.location
        && let Err(wrong) = run.place(location)
    {
        return failed(&format!("its location cannot be stored: {wrong}"), true);
    }
    Ok(result)
}

/// Looks whether it may begin now, and answers how many hosts this run has lost. What cannot be seen now is looked for
/// later, and no attempt is spent.
async fn may_begin(run: &Run<Arc<Host>>, host: &Host, app: &App) -> Result<u32, Failed> {
    let look = async {
        // What somebody has stopped since this host last looked does not begin either.
        host.look_what_is_stopped().await?;
        match run.attempt() {
            0 | 1 => Ok(0),
            _ => host.apps()?.lost_hosts(run.id()).await,
        }
    };
    let lost = look.await.map_err(|error: tenure::Error| {
        tracing::warn!(%error, app = app.name, "cannot see whether it may start; released");
        Failed::release()
    })?;
    if host.is_stopped(app).is_some() {
        return Err(Failed::release());
    }
    if lost > LOST_HOSTS {
        return Err(Failed::for_good(format_args!("{lost} hosts died while running it")));
    }
    Ok(lost)
}

/// The store keeps the last runs only. A run does not fail because old ones are there.
async fn forget_old_runs(host: &Host, app: &App) {
    let last = app.settings.history.unwrap_or(host.overall.history);
    let Ok(apps) = host.apps() else { return };
    let last = usize::try_from(last).unwrap_or(usize::MAX).saturating_sub(1);
    if let Err(error) = apps.forget_runs_but(&app.name, last).await {
        tracing::warn!(%error, app = app.name, "cannot delete old runs yet");
    }
}

/// What the program reads: the args of its job, unless its settings say something else.
fn input_of(run: &Run<Arc<Host>>, app: &App) -> Vec<u8> {
    match &app.settings.input {
        Some(input) => input.clone().into_bytes(),
        None => run.job().args.as_bytes().to_vec(),
    }
}

/// The words of the job that go behind those of the app.
fn arguments_of(args: &[u8]) -> Result<Vec<String>, String> {
    let Ok(Value::Object(mut args)) = json_value(args) else { return Ok(Vec::new()) };
    let Some(said) = args.remove("arguments") else { return Ok(Vec::new()) };
    let words: Vec<String> = serde_json::from_value(said).map_err(|error| format!("arguments: {error}"))?;
    if words.len() > MOST_ARGUMENTS || words.iter().any(|word| word.contains('\0')) {
        return Err(format!("invalid arguments: more than {MOST_ARGUMENTS}, or one with a NUL character"));
    }
    Ok(words)
}

fn command_of(app: &App, arguments: &[String]) -> Vec<std::ffi::OsString> {
    let said = app.settings.arguments.iter().chain(arguments).map(Into::into);
    app.command.iter().cloned().chain(said).collect()
}

fn environment(
    run: &Run<Arc<Host>>,
    app: &App,
    place: &std::path::Path,
    data: std::path::PathBuf,
    arguments: Vec<String>,
) -> Environment {
    let job = run.job();
    let words = RunWords {
        id: run.id().to_string(),
        kind: job.kind.as_str().to_owned(),
        queue: job.queue.as_str().to_owned(),
        attempt: run.attempt(),
        fence: run.fence().number(),
        trigger: trigger_of(run, app),
    };
    Environment { place: place.to_owned(), data, run: Some(words), arguments, ..Environment::default() }
}

/// Why it runs, in Kudu's words.
fn trigger_of(run: &Run<Arc<Host>>, app: &App) -> String {
    let by_schedule = run.slot().is_some_and(|slot| slot.origin == tenure::Origin::Schedule);
    if let (true, Some(schedule)) = (by_schedule, &app.settings.schedule) {
        return format!("Schedule - {schedule}");
    }
    let args = json_value(run.job().args.as_bytes()).unwrap_or_default();
    format!("External - {}", args["by"].as_str().unwrap_or("unknown"))
}

fn terms_of(host: &Host, app: &App) -> Terms {
    let settings = &app.settings;
    Terms {
        stopping_wait: settings.stopping_wait,
        last_words: host.last_words(),
        signal_after: settings.signal_after,
        timeout: settings.timeout,
        idle: settings.idle.or(host.overall.idle),
    }
}

fn why_of(why: Stopping) -> Why {
    match why {
        Stopping::Cancelled { reason, .. } => Why::Cancelled(reason),
        Stopping::Lost | Stopping::SingletonLost => Why::Lost,
        Stopping::HostStops => Why::HostStops,
        Stopping::TimedOut => Why::TimedOut(Duration::ZERO),
    }
}

/// What is said of the job, after so many attempts of its program: those in which its host was lost are not among them.
fn verdict(went: &Went, app: &App, attempt: u32) -> Result<Value, Failed> {
    let Some(end) = &went.end else { return failed(&went.words, attempt >= app.settings.attempts) };
    match (Manners::of(&app.settings).said(end.code, attempt), &went.why) {
        // Whatever it says: it was not done when it was told to stop.
        (_, Some(Why::TimedOut(_) | Why::Idle(_))) => failed(&went.words, attempt >= app.settings.attempts),
        (Said::Done, _) => match &went.result {
            Ok(bytes) => {
                let put_into = |result| json!({ "exit": 0, "usage": usage(end), "result": result });
                kept(bytes.as_deref().unwrap_or(b"null"), put_into).or_else(|why| failed(&why, true))
            }
            Err(why) => failed(why, true),
        },
        // Another host does it, or nobody any more.
        (_, Some(Why::HostStops | Why::Lost | Why::Cancelled(_) | Why::Stopped(_))) => Err(Failed::release()),
        (Said::Again(after), None) => Err(Failed::snooze(after)),
        (Said::Failed { is_for_good }, None) => {
            let words = match end.code {
                Some(code) => format!("Job failed due to exit code {code}"),
                None => format!("Job failed: it {}", went.words),
            };
            failed(&words, is_for_good)
        }
    }
}

fn failed(why: &str, is_for_good: bool) -> Result<Value, Failed> {
    Err(if is_for_good { Failed::for_good(why) } else { Failed::retry(why) })
}

fn usage(end: &tenure_program::End) -> Value {
    json!({
        "user_seconds": end.usage.user.as_secs_f64(), "system_seconds": end.usage.system.as_secs_f64(),
        "max_rss_bytes": end.usage.max_rss,
    })
}
