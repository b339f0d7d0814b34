//! The schedules of triggered apps, as timers of the store.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tenure::TimerDraft;
use tenure::apps::Apps;
use tenure::schedule::Schedule;
use tenure_apps::{App, Sort};
use tokio_util::sync::CancellationToken;

use super::host::Host;
use crate::exit::Failure;
use crate::screen::complain;

/// It is looked so often whether they are still there.
const AGAIN: Duration = Duration::from_secs(15);

/// Sets the timers of apps that have a schedule, and ends those of apps that nobody has any more; answers their names. The
/// timers are all hosts': one whose own environment stops it, or switches schedules off, leaves them as they are.
pub(super) async fn set_timers(host: &Host, apps: &[Arc<App>]) -> Result<Vec<String>, Failure> {
    let store = host.apps()?;
    let mut offered = Vec::new();
    for app in apps.iter().filter(|app| app.sort == Sort::Triggered) {
        let kind = kind(host, app);
        offered.push(kind.clone());
        if !app.runs() {
            // Perhaps another host can.
            continue;
        }
        if is_silent(host) {
            continue;
        }
        match &app.settings.schedule {
            Some(schedule) => set(host, app, schedule).await?,
            None => {
                host.tenure.timers().remove(&kind).await?;
            }
        }
    }
    Ok(store.end_timers_but(&offered).await?)
}

/// Whether schedules mean nothing to this host.
fn is_silent(host: &Host) -> bool {
    host.overall.is_stopped || host.overall.is_schedule_off
}

/// Sets a timer, paused if somebody has stopped its app.
async fn set(host: &Host, app: &App, schedule: &Schedule) -> Result<(), Failure> {
    host.tenure.timers().set(timer(&host.apps()?, app, schedule.clone())?).await?;
    if let Some(reason) = host.is_stopped(app) {
        host.tenure.timers().pause(&kind(host, app), &reason).await?;
    }
    Ok(())
}

/// Sets timers again that somebody has ended who did not know that this host has their programs: it was away for a while.
pub(super) async fn keep_timers(host: Arc<Host>, apps: Vec<Arc<App>>, stop: CancellationToken) {
    let clock = host.tenure.store().clock();
    let is_timed = |app: &&Arc<App>| app.sort == Sort::Triggered && app.runs() && !is_silent(&host);
    let timed: Vec<_> = apps.iter().filter(is_timed).collect();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = clock.sleep(AGAIN) => {}
        }
        for app in &timed {
            let Some(schedule) = &app.settings.schedule else { continue };
            if let Err(error) = set_again(&host, app, schedule).await {
                tracing::warn!(%error, app = app.name, "cannot read its schedule");
            }
        }
    }
}

async fn set_again(host: &Host, app: &App, schedule: &Schedule) -> Result<(), Failure> {
    let kind = kind(host, app);
    let found = host.tenure.timers().get(&kind).await;
    if matches!(found, Err(tenure::Error::NoTimer(_))) {
        complain(&format!("schedule {kind} was deleted by another host; restored it"));
        return set(host, app, schedule).await;
    }
    found?;
    Ok(())
}

/// The kind of an app's jobs, which is the name of its timer as well.
pub(super) fn kind(host: &Host, app: &App) -> String {
    format!("{}.{}", host.set, app.name)
}

/// The timer of an app.
fn timer(store: &Apps<'_>, app: &App, schedule: Schedule) -> Result<TimerDraft, Failure> {
    let job = store.draft(&app.name, app.settings.attempts, &json!({}))?;
    let policies = app.settings.policies;
    let timer = TimerDraft::of(&store.kind(&app.name)?, schedule, job)
        .catch_up(policies.catch_up)
        .overlap(policies.overlap)
        .runs_elsewhere();
    Ok(match policies.max_lateness {
        Some(late) => timer.max_lateness(late),
        None => timer,
    })
}

#[cfg(test)]
mod tests {
    use tenure::{
        Chance, Clock, Ending, Fate, Kinds, ManualClock, MemoryStore, QueueName, Reserve, Skipped, Store,
        Tenure, Timestamp, Verdict, Want,
    };

    use super::*;

    /// When runs of 90 seconds begin that are due every minute, in seconds, and the slots that were skipped because one ran.
    async fn of_ninety_seconds(settings: &str) -> (Vec<u64>, Vec<u64>) {
        let folder = tempfile::tempdir().unwrap();
        let files = folder.path().join("triggered/minutely");
        std::fs::create_dir_all(&files).unwrap();
        std::fs::write(files.join("run.sh"), "sleep 90").unwrap();
        std::fs::write(files.join("settings.job"), settings).unwrap();
        let read = tenure_apps::read(folder.path(), None, &|_| true).unwrap();
        let app = &read.apps[0];
        assert!(app.runs(), "{:?}", app.wrong);
        let clock = ManualClock::new();
        let zero: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        clock.step_to("2025-12-31T23:59:30Z".parse().unwrap());
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::new(clock.clone())));
        let tenure = Tenure::on(store, Chance::seeded(1));
        let apps = tenure.apps("apps").unwrap();
        let draft = timer(&apps, app, app.settings.schedule.clone().unwrap()).unwrap();
        tenure.timers().set(draft).await.unwrap();
        let (mut running, mut begun) = (None, Vec::new());
        let holder = tenure.remote().draw_worker();
        for _ in 0..11 {
            clock.advance(Duration::from_secs(30));
            let now = clock.now().since(zero).as_secs();
            if let Some((job, since)) = running.take() {
                if now - since < 90 {
                    running = Some((job, since));
                } else {
                    let ending = Ending { job, verdict: Verdict::Succeeded(None) };
                    tenure.remote().settle(vec![ending], None).await.unwrap();
                }
            }
            tenure.store().fire(10).await.unwrap();
            let want = Want { queue: QueueName::new("apps").unwrap(), kinds: Kinds::All, at_most: 5 };
            let reserve = Reserve { holder, ttl: Duration::from_secs(3600), wants: vec![want], at_most: 5 };
            let (_, claimed) = tenure.remote().settle(Vec::new(), Some(reserve)).await.unwrap();
            assert!(
                claimed.jobs.len() <= 1 && (running.is_none() || claimed.jobs.is_empty()),
                "one at a time"
            );
            for job in claimed.jobs {
                begun.push(now);
                running = Some((job, now));
            }
        }
        let records = tenure.timers().last_slots("apps.minutely", 50).await.unwrap();
        let skipped = records.iter().rev().filter_map(|record| {
            let Fate::Skipped { why: Skipped::Busy { .. } } = &record.fate else { return None };
            Some(record.first.since(zero).as_secs())
        });
        (begun, skipped.collect())
    }

    /// The single writer's table: Kudu leaves out what comes while one runs, the SDK brings one as soon as it has ended.
    #[tokio::test]
    async fn ninety_seconds_every_minute_begin_at_0_2_4_as_with_kudu_or_0_130_3_as_with_the_sdk() {
        let (begun, skipped) = of_ninety_seconds(r#"{"schedule":"0 * * * * *"}"#).await;
        assert_eq!((begun, skipped), (vec![0, 120, 240], vec![60, 180, 300]));
        let of_sdk = r#"{"schedule":"0 * * * * *","overlap":"queue_one"}"#;
        let (begun, skipped) = of_ninety_seconds(of_sdk).await;
        assert_eq!((begun, skipped), (vec![0, 90, 180, 270], vec![240]));
    }
}
