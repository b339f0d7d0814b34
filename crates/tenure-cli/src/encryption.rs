//! `tenure encryption`: the keys of a store that is encrypted at rest.

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use serde_json::json;
use tenure::{Error, KeyCounts, KeyCursor, OpenOptions, Reseal, Resealed, Tenure, Worker};

use crate::db::{Form, Target, wait};
use crate::exit::Failure;
use crate::keys::Keys;
use crate::output::counted;
use crate::screen::{print, tell};

/// Commands for the encryption of a store.
#[derive(Debug, Subcommand)]
pub(crate) enum Encryption {
    /// Show the loaded keys, and count values by key
    Status(Status),
    /// Encrypt all values with the current key, as a job
    Rotate(Rotate),
}

#[derive(Debug, Args)]
pub(crate) struct Status {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    keys: Keys,
    /// Maximum number of jobs to examine, newest first, after all schedules
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    most: u64,
}

#[derive(Debug, Args)]
pub(crate) struct Rotate {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    keys: Keys,
}

pub(crate) fn run(encryption: Encryption) -> Result<(), Failure> {
    match encryption {
        Encryption::Status(status) => show(&status),
        Encryption::Rotate(rotate) => move_all(&rotate),
    }
}

/// Opens a store that is there.
async fn open(target: &Target, options: OpenOptions) -> Result<Tenure, Error> {
    // Opening a file that is not there would create it.
    target.options().status(&target.url()).await?;
    options.untended().open(&target.url()).await
}

fn show(status: &Status) -> Result<(), Failure> {
    // This command only reads, so an encrypted store needs no keys.
    let options = status.keys.at_rest()?.apply(status.target.options()).allow_plaintext();
    let (keys, counts) = wait(async {
        let tenure = open(&status.target, options).await?;
        let counts = counts(&tenure, status.most).await?;
        let keys = tenure.encryption_keys();
        tenure.close().await?;
        Ok((keys, counts))
    })?;
    match status.target.output {
        Form::Json => print(&document(&keys, &counts).to_string()),
        Form::Table => lines(&keys, &counts).iter().for_each(|line| print(line)),
    }
    Ok(())
}

/// Counts all schedules and then jobs, page by page, until the end or this number of jobs.
async fn counts(tenure: &Tenure, most: u64) -> Result<KeyCounts, Error> {
    let mut all = KeyCounts::default();
    let mut after: Option<KeyCursor> = None;
    loop {
        let page = tenure.count_by_encryption_key(after).await?;
        all.schedules += page.schedules;
        all.jobs += page.jobs;
        all.plain += page.plain;
        page.by_key.into_iter().for_each(|(key, values)| *all.by_key.entry(key).or_default() += values);
        (after, all.next) = (page.next.clone(), page.next);
        if after.is_none() || all.jobs >= most {
            return Ok(all);
        }
    }
}

fn document(keys: &[String], counts: &KeyCounts) -> serde_json::Value {
    json!({
        "keys": keys,
        "schedules_examined": counts.schedules,
        "jobs_examined": counts.jobs,
        "is_complete": counts.next.is_none(),
        "plain_values": counts.plain,
        "values_by_key": counts.by_key,
    })
}

fn lines(keys: &[String], counts: &KeyCounts) -> Vec<String> {
    let line = |name: &str, value: &str| format!("{name:<10} {value}");
    let loaded = match keys.split_first() {
        None => "none loaded; new values are not encrypted".to_owned(),
        Some((current, [])) => format!("{current} (current)"),
        Some((current, others)) => format!("{current} (current), {}", others.join(", ")),
    };
    let scope = if counts.next.is_none() { "" } else { ", newest first; raise --most to see more" };
    let (schedules, jobs) = (counted(counts.schedules, "schedule"), counted(counts.jobs, "job"));
    let examined = format!("{schedules}, {jobs}{scope}");
    let mut lines = vec![line("keys", &loaded), line("examined", &examined)];
    let by_key: &BTreeMap<String, u64> = &counts.by_key;
    for (key, values) in by_key {
        let named = if key.is_empty() { "damaged" } else { key };
        let missing = if key.is_empty() || keys.contains(key) { "" } else { "; this key is not loaded" };
        lines.push(line(named, &format!("{}{missing}", counted(*values, "value"))));
    }
    lines.push(line("plain", &counted(counts.plain, "value")));
    lines
}

fn move_all(rotate: &Rotate) -> Result<(), Failure> {
    let options = rotate.keys.at_rest()?.apply(rotate.target.options());
    let done = wait(async {
        let tenure = open(&rotate.target, options).await?;
        let id = tenure.rotate_encryption()?.await?.id();
        tell(&format!("job {id} encrypts all values; if this command ends first, a server continues it"));
        // No server may be running, so the job may run here.
        let worker =
            Worker::new(&tenure, ()).bulk_operations(1).heeds_nobody().no_timers().name("tenure encryption");
        let mut done = None;
        worker
            .run(async {
                tokio::select! {
                    _ = tenure::shutdown_signal() => {}
                    ended = tenure.wait_for::<Reseal>(id) => done = Some(ended),
                }
            })
            .await?;
        tenure.close().await?;
        Ok(done)
    })?;
    match done {
        Some(done) => {
            told(rotate.target.output, done?);
            Ok(())
        }
        None => Err(Failure::Interrupted),
    }
}

fn told(form: Form, done: Resealed) {
    match form {
        Form::Json => print(&json!(done).to_string()),
        Form::Table => {
            print(&format!("{done}, {} jobs and schedules examined", done.examined));
            if done.skipped > 0 {
                tell("load the keys of skipped values, then rotate again; see `tenure encryption status`");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tenure::Cursor;

    use super::*;

    #[test]
    fn a_key_that_is_in_use_and_not_loaded_is_shown() {
        let by_key = [("k1".to_owned(), 3), (String::new(), 1)].into();
        let counts = KeyCounts {
            schedules: 1,
            jobs: 2,
            plain: 1,
            by_key,
            next: Some(KeyCursor::Jobs(Cursor::behind(7))),
        };
        let shown = lines(&["k2".to_owned()], &counts);
        assert_eq!(
            shown,
            [
                "keys       k2 (current)",
                "examined   1 schedule, 2 jobs, newest first; raise --most to see more",
                "damaged    1 value",
                "k1         3 values; this key is not loaded",
                "plain      1 value",
            ]
        );
        assert_eq!(document(&[], &counts)["is_complete"], false);
        assert!(lines(&[], &KeyCounts::default())[0].contains("not encrypted"));
    }
}
