//! `tenure doctor`: whether the server can be used from here, and what to do if not.

use clap::Args;
use serde::Serialize;
use tenure::schedule::Zone;
use tenure::{Caution, Clock, SystemClock, Timestamp};

use crate::client::{Client, Connect, Looked, Trouble, interruptible};
use crate::db;
use crate::exit::Failure;
use crate::output::{Cell, Out, Output, Shape, Table};
use crate::screen::Tone;
use crate::settings::{Env, Settings};

/// Further apart than this, ages and due times that people read are misleading. The answer tells whole seconds.
const APART_SECONDS: u64 = 5;

/// Arguments of `tenure doctor`.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Check readiness only, for container health checks
    #[arg(long)]
    ready: bool,
    #[command(flatten)]
    connect: Connect,
    #[command(flatten)]
    output: Output,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Check {
    check: &'static str,
    state: Health,
    found: String,
    /// What to do next, if there is anything to do.
    next: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Health {
    Ok,
    Warn,
    Fail,
}

pub(crate) fn run(doctor: Doctor) -> Result<(), Failure> {
    let place = doctor.connect.place()?;
    let (client, found, several) = match &place {
        Some(_) => (doctor.connect.client()?, "database from --db".to_owned(), false),
        None => {
            let settings = Settings::of(&doctor.connect, &Env::real())?;
            let found = format!("{} (from {})", settings.urls.value.join(", "), settings.urls.origin);
            let several = settings.urls.value.len() > 1;
            (settings.client()?, found, several)
        }
    };
    interruptible(move |_| {
        if doctor.ready {
            return is_ready(&client, &mut doctor.output.open());
        }
        let mut checks = vec![good("settings", found), good("sandbox", tenure_program::support())];
        checks.extend(several.then(|| servers(&client)));
        let lost = look(&client, &mut checks).err();
        if let Some(place) = &place {
            let status = db::wait(place.options().status(&place.home.url))?;
            checks.extend(status.cautions.into_iter().map(careful));
        }
        show(&checks, &mut doctor.output.open())?;
        if let Some(trouble) = lost {
            return Err(trouble.into());
        }
        let failed = checks.iter().filter(|check| check.state == Health::Fail).count();
        if failed > 0 {
            Err(Failure::Unsuccessful(format!("{failed} of {} checks failed", checks.len())))
        } else {
            Ok(())
        }
    })
}

/// Nothing else is looked at: whoever asks does so every few seconds, without an access token.
fn is_ready(client: &Client, out: &mut Out) -> Result<(), Failure> {
    let ready = ready_to_work(&client.look("/readyz")?, "its store");
    let is_well = ready.state == Health::Ok;
    let found = ready.found.clone();
    show(&[ready], out)?;
    if is_well { Ok(()) } else { Err(Failure::Unsuccessful(found)) }
}

fn good(check: &'static str, found: String) -> Check {
    Check { check, state: Health::Ok, found, next: None }
}

fn careful(caution: Caution) -> Check {
    Check { check: "access", state: Health::Warn, found: caution.found, next: Some(caution.next) }
}

fn look(client: &Client, checks: &mut Vec<Check>) -> Result<(), Trouble> {
    let alive = match client.look("/livez") {
        Ok(alive) => alive,
        Err(trouble) => {
            checks.push(Check {
                check: "reached",
                state: Health::Fail,
                found: "no answer".to_owned(),
                next: Some(
                    "start a server with `tenure serve`, or set --url or TENURE_URL to its address"
                        .to_owned(),
                ),
            });
            return Err(trouble);
        }
    };
    checks.push(reached(&alive));
    // A store that was opened here has no clock apart, or is asked for its own.
    if client.base().is_some() {
        checks.push(clock(&alive, SystemClock.now()));
    }
    let version = client.look("/v1/version")?;
    checks.push(this_version(&version));
    checks.push(time_zones(version.body["time_zones"].as_str(), Zone::database_version()));
    let ready = client.look("/readyz")?;
    checks.push(ready_to_work(&ready, version.body["store"].as_str().unwrap_or("its store")));
    Ok(())
}

/// Several servers are of use only if each of them answers and they share a store.
fn servers(client: &Client) -> Check {
    let (state, found, next) = match client.check_servers() {
        Ok(silent) if silent.is_empty() => {
            (Health::Ok, "all servers answer and share one store".to_owned(), None)
        }
        Ok(silent) => {
            let found = format!("no answer from {}", silent.join(", "));
            (Health::Warn, found, Some("start these servers, or remove their URLs".to_owned()))
        }
        Err(failure) => (Health::Fail, failure.to_string(), None),
    };
    Check { check: "servers", state, found, next }
}

fn reached(alive: &Looked) -> Check {
    let (state, next) = match alive.status {
        200 => (Health::Ok, None),
        401 | 403 => (Health::Fail, Some("set an access token with TENURE_TOKEN or --token-file")),
        421 => (Health::Fail, Some("allow this host name on the server: `tenure serve --host NAME`")),
        _ => (Health::Fail, Some("this is not a Tenure server: set another --url")),
    };
    let found = if state == Health::Ok {
        "the server answers".to_owned()
    } else {
        format!("the server answers with status {}", alive.status)
    };
    Check { check: "reached", state, found, next: next.map(str::to_owned) }
}

fn this_version(version: &Looked) -> Check {
    let own = env!("CARGO_PKG_VERSION");
    match version.body["version"].as_str() {
        Some(theirs) if theirs == own => good("version", format!("server and program are {own}")),
        Some(theirs) => Check {
            check: "version",
            state: Health::Warn,
            found: format!("the server is {theirs}, this program is {own}"),
            next: Some("install the same version of both".to_owned()),
        },
        None => Check {
            check: "version",
            state: Health::Fail,
            found: "the server reports none".to_owned(),
            next: Some("this is not a Tenure server: set another --url".to_owned()),
        },
    }
}

/// Hosts with different zone databases disagree on the runs of a schedule.
fn time_zones(theirs: Option<&str>, own: &str) -> Check {
    match theirs {
        Some(theirs) if theirs != own => Check {
            check: "time zones",
            state: Health::Warn,
            found: format!("the server has {theirs}, this program has {own}"),
            next: Some(
                "install the same version of both, and set TENURE_ZONEINFO on all hosts or on none"
                    .to_owned(),
            ),
        },
        Some(_) => good("time zones", format!("server and program have {own}")),
        None => good("time zones", format!("this program has {own}")),
    }
}

fn clock(alive: &Looked, now: Timestamp) -> Check {
    let Some(theirs) = alive.date.as_deref().and_then(instant) else {
        return Check {
            check: "clock",
            state: Health::Warn,
            found: "the server sends no time".to_owned(),
            next: None,
        };
    };
    let seconds = theirs.since(now).as_secs().max(now.since(theirs).as_secs());
    if seconds <= APART_SECONDS {
        return good("clock", "the clocks agree within 5 s".to_owned());
    }
    let next =
        Some("synchronize both clocks (NTP); the clock of the database decides when jobs run".to_owned());
    Check { check: "clock", state: Health::Warn, found: format!("the clocks are {seconds} s apart"), next }
}

/// An instant as HTTP says it: Sun, 06 Nov 1994 08:49:37 GMT.
fn instant(date: &str) -> Option<Timestamp> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let parts: Vec<&str> = date.split_whitespace().collect();
    let [_, day, month, year, time, "GMT"] = parts[..] else { return None };
    let month = MONTHS.find(month).filter(|at| month.len() == 3 && at % 3 == 0)? / 3 + 1;
    format!("{year}-{month:02}-{day:0>2}T{time}Z").parse().ok()
}

fn ready_to_work(ready: &Looked, store: &str) -> Check {
    let status = ready.body["status"].as_str().unwrap_or("not ready");
    if ready.status == 200 {
        return good("ready", format!("the server is ready; database: {store}"));
    }
    let next = if status == "draining" {
        "the server is shutting down: wait for its successor or use another one"
    } else {
        "check the log of the server, and its database with `tenure db status`"
    };
    Check { check: "ready", state: Health::Fail, found: status.to_owned(), next: Some(next.to_owned()) }
}

fn show(checks: &[Check], out: &mut Out) -> Result<(), Failure> {
    match out.shape() {
        Shape::Json => out.document(&serde_json::json!({ "checks": checks }).to_string())?,
        Shape::Jsonl => {
            checks.iter().try_for_each(|check| out.document(&serde_json::json!(check).to_string()))?
        }
        Shape::Table | Shape::Wide | Shape::Id => {
            let mut table = Table::new(&["state", "check", "found", "next"]);
            for check in checks {
                let (word, tone) = match check.state {
                    Health::Ok => ("ok", Tone::Good),
                    Health::Warn => ("warn", Tone::Careful),
                    Health::Fail => ("fail", Tone::Bad),
                };
                table.row(vec![
                    Cell::from(word).toned(tone),
                    check.check.into(),
                    check.found.as_str().into(),
                    check.next.as_deref().unwrap_or_default().into(),
                ]);
            }
            out.table(&table, true)?;
        }
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looked(status: u16, body: serde_json::Value) -> Looked {
        Looked { status, date: Some("Sun, 06 Nov 1994 08:49:37 GMT".to_owned()), body }
    }

    #[test]
    fn the_clock_of_a_server_is_compared_with_ones_own() {
        let there: Timestamp = "1994-11-06T08:49:37Z".parse().unwrap();
        assert_eq!(instant("Sun, 06 Nov 1994 08:49:37 GMT"), Some(there));
        assert!(
            ["", "Sun, 06 nov 1994 08:49:37 GMT", "Sunday", "a b anF 1 2 GMT"]
                .map(instant)
                .iter()
                .all(Option::is_none)
        );
        let alive = looked(200, serde_json::Value::Null);
        let after = |seconds| clock(&alive, there.after(std::time::Duration::from_secs(seconds)));
        assert_eq!(after(3).state, Health::Ok);
        let apart = after(3_600);
        assert!(apart.state == Health::Warn && apart.found.contains("3600 s") && apart.next.is_some());
    }

    #[test]
    fn whatever_does_not_work_comes_with_what_to_do_next() {
        let said = |status: &str| serde_json::json!({ "status": status });
        assert_eq!(ready_to_work(&looked(200, said("ready")), "store").state, Health::Ok);
        for check in [
            ready_to_work(&looked(503, said("draining")), "store"),
            ready_to_work(&looked(503, said("the store cannot answer")), "store"),
            reached(&looked(401, said(""))),
            reached(&looked(421, said(""))),
            reached(&looked(404, said(""))),
            this_version(&looked(200, said(""))),
        ] {
            assert!(check.state == Health::Fail && check.next.is_some(), "{check:?}");
        }
    }
}
