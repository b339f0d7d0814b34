//! What people are told of an app's settings, as this host has read them. Secrets stand in arguments, inputs and environments:
//! of those it is only told that they are there.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tenure_apps::{App, Limits, Overall, Settings, Sort};

use super::bounds::Bounds;

/// The settings of an app by their names, those included that nobody has said.
pub(super) fn settings(app: &App, overall: &Overall, bounds: &Bounds) -> BTreeMap<String, Value> {
    let said = &app.settings;
    let of_sort = match app.sort {
        Sort::Triggered => of_triggered(said, overall),
        Sort::Continuous => vec![
            ("is_singleton", json!(said.is_singleton)),
            ("restart_time", seconds(said.restart.or(Some(overall.restart)))),
        ],
    };
    let of_all = [
        ("stopping_wait_time", seconds(Some(said.stopping_wait))),
        ("signal_after", seconds(Some(said.signal_after))),
        ("is_in_place", json!(said.is_in_place.unwrap_or_default())),
        ("arguments", json!(format!("{} words", said.arguments.len()))),
        ("env", json!(said.env.keys().collect::<Vec<_>>())),
        (
            "env_from",
            said.env_from
                .as_ref()
                .map_or_else(|| json!("all except those of the host"), |names| json!(names)),
        ),
        ("limits", limits(bounds.all_limits(app))),
        ("no_new_privs", json!(bounds.rights(app).no_new_privs)),
        ("sandbox", json!(bounds.mode(app))),
        ("user", json!(bounds.confinement.user.as_ref().map(|user| &user.name).or(said.user.as_ref()))),
    ];
    of_sort.into_iter().chain(of_all).map(|(name, value)| (name.to_owned(), value)).collect()
}

fn of_triggered(said: &Settings, overall: &Overall) -> Vec<(&'static str, Value)> {
    vec![
        ("schedule", json!(said.schedule.as_ref().map(ToString::to_string))),
        ("overlap", json!(said.policies.overlap)),
        ("catch_up", json!(said.policies.catch_up)),
        ("max_lateness", seconds(said.policies.max_lateness)),
        ("attempts", json!(said.attempts)),
        ("timeout", seconds(said.timeout)),
        ("idle_timeout", seconds(said.idle.or(overall.idle))),
        ("permanent_codes", json!(said.permanent)),
        ("again_after", seconds(Some(said.again_after))),
        ("history", json!(said.history.unwrap_or(overall.history))),
        ("input", json!(if said.input.is_some() { "set" } else { "args of the job" })),
    ]
}

/// Those that there are, the operator's included.
fn limits(limits: Limits) -> Value {
    let said = [
        ("memory", limits.memory),
        ("processes", limits.processes),
        ("cpu", limits.cpu),
        ("file", limits.file),
        ("open_files", limits.open_files),
        ("total_memory", limits.total_memory),
        ("tasks", limits.tasks),
    ];
    let cpus = limits.milli_cpus.map(|milli| ("cpus".to_owned(), json!(milli as f64 / 1000.0)));
    said.into_iter()
        .filter_map(|(name, most)| Some((name.to_owned(), json!(most?))))
        .chain(cpus)
        .collect::<Map<_, _>>()
        .into()
}

/// As they are said in the settings: whole seconds, none if there is no limit.
fn seconds(span: Option<Duration>) -> Value {
    json!(span.map(|span| span.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(file: &str, text: &str) -> App {
        let folder = tempfile::tempdir().unwrap();
        let files = folder.path().join(file);
        std::fs::create_dir_all(&files).unwrap();
        std::fs::write(files.join("run.sh"), "true").unwrap();
        std::fs::write(files.join("settings.job"), text).unwrap();
        let mut read = tenure_apps::read(folder.path(), None, &|_| true).unwrap();
        read.apps.remove(0)
    }

    #[test]
    fn settings_are_told_as_they_were_read_and_nothing_secret_with_them() {
        let app = read(
            "triggered/report",
            r#"{"schedule":"0 */5 * * * *","timeout":60,"arguments":["--password","hunter2"],
                "env":{"API_KEY":"hunter3"},"input":"hunter4"}"#,
        );
        let told = settings(&app, &Overall::of(|_| None), &Bounds::default());
        assert_eq!((&told["schedule"], &told["timeout"]), (&json!("0 */5 * * * *"), &json!(60)));
        assert_eq!((&told["attempts"], &told["idle_timeout"]), (&json!(1), &Value::Null));
        assert_eq!((&told["env"], &told["arguments"]), (&json!(["API_KEY"]), &json!("2 words")));
        assert!(!json!(told).to_string().contains("hunter"), "{told:?}");
    }

    #[test]
    fn each_sort_tells_what_has_a_meaning_for_it() {
        let told = settings(
            &read("continuous/mailer", r#"{"is_singleton":true}"#),
            &Overall::of(|_| None),
            &Bounds::default(),
        );
        assert_eq!((&told["is_singleton"], &told["stopping_wait_time"]), (&json!(true), &json!(5)));
        assert_eq!(told["limits"], json!({}));
        assert!(told["restart_time"].is_u64() && !told.contains_key("schedule"), "{told:?}");
    }
}
