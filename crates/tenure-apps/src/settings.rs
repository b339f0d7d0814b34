//! How an app runs: the keys of Kudu's `settings.job`, and ours beside them.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};
use tenure_core::schedule::{Schedule, Zone};
use tenure_core::{CatchUp, Overlap, Policies};

use crate::app::Sort;
use crate::limits::Limits;
use crate::sandbox::Sandbox;

/// How an app runs. What is not said is as Kudu has it, but for the idle limit, which is off.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// When a triggered one runs; only on demand if `None`.
    pub schedule: Option<Schedule>,
    /// What becomes of slots that come too soon or are missed.
    pub policies: Policies,
    /// Whether a continuous one runs on one host at a time.
    pub is_singleton: bool,
    /// How long it has to stop once it was told to.
    pub stopping_wait: Duration,
    /// From when on within that it is also sent SIGTERM; at once if zero.
    pub signal_after: Duration,
    /// Whether it runs in its own folder, and not in a copy of it. As its script host has it if `None`.
    pub is_in_place: Option<bool>,
    /// How often it is run for one job if it fails.
    pub attempts: u32,
    /// How long it may take.
    pub timeout: Option<Duration>,
    /// How long it may be silent and use no processor. No limit if `None`.
    pub idle: Option<Duration>,
    /// Exit codes after which it is not tried again.
    pub permanent: Vec<i32>,
    /// In how long a job is due again whose program ended with 75.
    pub again_after: Duration,
    /// How long a continuous one rests before it is begun again.
    pub restart: Option<Duration>,
    /// How many ended runs are kept.
    pub history: Option<u32>,
    /// Arguments of each run, before those of the job.
    pub arguments: Vec<String>,
    /// What it reads in place of the args of its job.
    pub input: Option<String>,
    /// What stands in its environment beside what each program has there.
    pub env: BTreeMap<String, String>,
    /// Which variables of its host it finds beside what every program needs. All that are not the host's own if `None`.
    pub env_from: Option<Vec<String>>,
    /// What it may use.
    pub limits: Limits,
    /// Whether neither it nor what it starts gets more rights than it has.
    pub no_new_privs: bool,
    /// Files and ports that it may use. All that its user may if `None`.
    pub sandbox: Option<Sandbox>,
    /// User that it runs as. That of its host if `None`.
    pub user: Option<String>,
}

/// Kudu brings a slot that is late by up to so much, and leaves out what is older.
const LATE: Duration = Duration::from_secs(10 * 60);
const AGAIN: Duration = Duration::from_secs(10);
const MOST_HISTORY: u64 = 10_000;

/// Keys, and whether only one sort has them.
const KEYS: [(&str, Option<Sort>); 24] = [
    ("schedule", Some(Sort::Triggered)),
    ("is_singleton", Some(Sort::Continuous)),
    ("stopping_wait_time", None),
    ("is_in_place", None),
    ("time_zone", Some(Sort::Triggered)),
    ("overlap", Some(Sort::Triggered)),
    ("catch_up", Some(Sort::Triggered)),
    ("max_lateness", Some(Sort::Triggered)),
    ("attempts", Some(Sort::Triggered)),
    ("timeout", Some(Sort::Triggered)),
    ("idle_timeout", Some(Sort::Triggered)),
    ("permanent_codes", Some(Sort::Triggered)),
    ("again_after", Some(Sort::Triggered)),
    ("restart_time", Some(Sort::Continuous)),
    ("history", Some(Sort::Triggered)),
    ("signal_after", None),
    ("arguments", None),
    ("input", Some(Sort::Triggered)),
    ("env", None),
    ("env_from", None),
    ("limits", None),
    ("no_new_privs", None),
    ("sandbox", None),
    ("user", None),
];

impl Settings {
    /// What counts if nothing is said.
    #[must_use]
    pub fn usual(sort: Sort) -> Self {
        let stopping_wait = match sort {
            Sort::Triggered => Duration::from_secs(30),
            Sort::Continuous => Duration::from_secs(5),
        };
        Self {
            schedule: None,
            policies: Policies { catch_up: CatchUp::One, max_lateness: Some(LATE), ..Policies::default() },
            is_singleton: false,
            stopping_wait,
            signal_after: stopping_wait / 2,
            is_in_place: None,
            attempts: 1,
            timeout: None,
            idle: None,
            permanent: Vec::new(),
            again_after: AGAIN,
            restart: None,
            history: None,
            arguments: Vec::new(),
            input: None,
            env: BTreeMap::new(),
            env_from: None,
            limits: Limits::default(),
            no_new_privs: false,
            sandbox: None,
            user: None,
        }
    }

    /// Reads what was said, key by key. A wrong value is told in `wrong`, and what nobody knows in `notes`.
    #[must_use]
    pub fn of(
        sort: Sort,
        said: &Map<String, Value>,
        wrong: &mut Vec<String>,
        notes: &mut Vec<String>,
    ) -> Self {
        let mut read = Reading { said, wrong };
        let usual = Self::usual(sort);
        let stopping_wait = read.seconds("stopping_wait_time", 0).unwrap_or(usual.stopping_wait);
        let settings = Self {
            schedule: read.schedule(),
            policies: Policies {
                overlap: read.shaped("overlap").unwrap_or_default(),
                catch_up: read.shaped("catch_up").unwrap_or(usual.policies.catch_up),
                max_lateness: read.seconds("max_lateness", 0).or(usual.policies.max_lateness),
                ..usual.policies
            },
            is_singleton: read.flag("is_singleton").unwrap_or_default(),
            stopping_wait,
            signal_after: read.seconds("signal_after", 0).unwrap_or(stopping_wait / 2),
            is_in_place: read.flag("is_in_place"),
            attempts: read.number("attempts", 1, 1_000).unwrap_or(usual.attempts),
            timeout: read.seconds("timeout", 1),
            idle: read.seconds("idle_timeout", 1),
            permanent: read.shaped("permanent_codes").unwrap_or_default(),
            again_after: read.seconds("again_after", 1).unwrap_or(usual.again_after),
            restart: read.seconds("restart_time", 0),
            history: read.number("history", 1, MOST_HISTORY),
            arguments: read.words("arguments"),
            input: read.shaped("input"),
            env: read.env(),
            env_from: read.shaped("env_from"),
            limits: read.limits(),
            no_new_privs: read.flag("no_new_privs").unwrap_or_default(),
            sandbox: read.sandbox(),
            user: read.shaped("user"),
        };
        if let Err(bad) = settings.policies.check() {
            wrong.push(bad.to_string());
        }
        notes.extend(said.keys().filter_map(|key| note(sort, key)));
        settings
    }

    /// Whether runs of it may overlap, and how many.
    #[must_use]
    pub fn at_once(&self) -> u32 {
        match self.policies.overlap {
            Overlap::Allow { most } => most,
            Overlap::Skip | Overlap::QueueOne | Overlap::QueueAll | Overlap::CancelPrevious => 1,
        }
    }
}

/// What is said of a key that has no meaning here.
fn note(sort: Sort, key: &str) -> Option<String> {
    match KEYS.iter().find(|(known, _)| *known == key) {
        None => Some(format!("ignored unknown setting {key:?}")),
        Some((_, Some(of))) if *of != sort => Some(format!("ignored {key:?}: no setting of {sort} programs")),
        Some(_) => None,
    }
}

struct Reading<'a> {
    said: &'a Map<String, Value>,
    wrong: &'a mut Vec<String>,
}

impl Reading<'_> {
    fn get(&self, key: &str) -> Option<Value> {
        self.said.get(key).filter(|value| !value.is_null()).cloned()
    }

    fn refuse<T>(&mut self, key: &str, found: &Value, allowed: &str) -> Option<T> {
        let found: String = found.to_string().chars().take(80).collect();
        self.wrong.push(format!("{key}: invalid value {found}; expected {allowed}"));
        None
    }

    fn flag(&mut self, key: &str) -> Option<bool> {
        let value = self.get(key)?;
        value.as_bool().or_else(|| self.refuse(key, &value, "true or false"))
    }

    fn number(&mut self, key: &str, least: u64, most: u64) -> Option<u32> {
        let value = self.get(key)?;
        let fits = value.as_u64().filter(|number| (least..=most).contains(number));
        match fits.and_then(|number| u32::try_from(number).ok()) {
            Some(number) => Some(number),
            None => self.refuse(key, &value, &format!("a whole number from {least} to {most}")),
        }
    }

    fn seconds(&mut self, key: &str, least: u64) -> Option<Duration> {
        let value = self.get(key)?;
        let most = tenure_core::limits::LONGEST.as_secs();
        match value.as_u64().filter(|seconds| (least..=most).contains(seconds)) {
            Some(seconds) => Some(Duration::from_secs(seconds)),
            None => self.refuse(key, &value, &format!("a whole number of seconds, {least} or more")),
        }
    }

    fn shaped<T: serde::de::DeserializeOwned>(&mut self, key: &str) -> Option<T> {
        let value = self.get(key)?;
        match serde_json::from_value(value.clone()) {
            Ok(shaped) => Some(shaped),
            Err(error) => self.refuse(key, &value, &error.to_string()),
        }
    }

    fn words(&mut self, key: &str) -> Vec<String> {
        let words: Vec<String> = self.shaped(key).unwrap_or_default();
        if words.iter().any(|word| word.contains('\0')) {
            self.wrong.push(format!("{key} contains a NUL character"));
        }
        words
    }

    fn env(&mut self) -> BTreeMap<String, String> {
        let env: BTreeMap<String, String> = self.shaped("env").unwrap_or_default();
        for (name, value) in &env {
            if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
                self.wrong.push(format!("env: invalid variable {name:?}"));
            }
        }
        env
    }

    fn limits(&mut self) -> Limits {
        let Some(value) = self.get("limits") else { return Limits::default() };
        let Value::Object(said) = &value else {
            return self.refuse("limits", &value, "an object").unwrap_or_default();
        };
        Limits::of(said, self.wrong)
    }

    fn sandbox(&mut self) -> Option<Sandbox> {
        let value = self.get("sandbox")?;
        match Sandbox::of(&value) {
            Ok(sandbox) => Some(sandbox),
            Err(why) => {
                self.wrong.push(format!("sandbox: {why}"));
                None
            }
        }
    }

    fn schedule(&mut self) -> Option<Schedule> {
        let value = self.get("schedule")?;
        let Some(text) = value.as_str() else {
            return self.refuse("schedule", &value, "a text such as \"0 */5 * * * *\"");
        };
        let parsed = Schedule::parse(text).and_then(|schedule| match self.get("time_zone") {
            None => Ok(schedule),
            Some(zone) => schedule.in_zone(Zone::named(zone.as_str().unwrap_or_default())?),
        });
        match parsed {
            Ok(schedule) => Some(schedule),
            Err(bad) => {
                self.wrong.push(format!("Failed to parse schedule {text:?}: {bad}"));
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(sort: Sort, json: &str) -> (Settings, Vec<String>, Vec<String>) {
        let Value::Object(said) = serde_json::from_str(json).unwrap() else { panic!("no object") };
        let (mut wrong, mut notes) = (Vec::new(), Vec::new());
        let settings = Settings::of(sort, &said, &mut wrong, &mut notes);
        (settings, wrong, notes)
    }

    /// T071: each key, with Kudu's defaults.
    #[test]
    fn t071_each_key_is_read_and_has_its_default() {
        let (nothing, wrong, notes) = read(Sort::Triggered, "{}");
        assert_eq!(nothing, Settings::usual(Sort::Triggered));
        assert!(wrong.is_empty() && notes.is_empty());
        assert_eq!(nothing.stopping_wait, Duration::from_secs(30));
        assert_eq!(Settings::usual(Sort::Continuous).stopping_wait, Duration::from_secs(5));
        let (said, wrong, _) = read(
            Sort::Triggered,
            r#"{"schedule":"0 */5 * * * *","stopping_wait_time":60,"is_in_place":true,"overlap":"queue_one"}"#,
        );
        assert!(wrong.is_empty(), "{wrong:?}");
        assert_eq!(said.schedule.unwrap().to_string(), "0 */5 * * * *");
        assert_eq!((said.stopping_wait, said.is_in_place), (Duration::from_secs(60), Some(true)));
        assert_eq!(said.policies.overlap, Overlap::QueueOne);
        let (said, wrong, _) = read(Sort::Continuous, r#"{"is_singleton":true,"restart_time":0}"#);
        assert!(wrong.is_empty() && said.is_singleton && said.restart == Some(Duration::ZERO));
    }

    /// T071: Kudu takes the default in place of a value of a wrong type, and says nothing.
    #[test]
    fn t071_a_wrong_type_is_told_with_its_key() {
        for (json, key) in [
            (r#"{"stopping_wait_time":"60"}"#, "stopping_wait_time"),
            (r#"{"stopping_wait_time":60.0}"#, "stopping_wait_time"),
            (r#"{"stopping_wait_time":-1}"#, "stopping_wait_time"),
            (r#"{"is_in_place":"true"}"#, "is_in_place"),
            (r#"{"schedule":5}"#, "schedule"),
            (r#"{"overlap":"whatever"}"#, "overlap"),
            (r#"{"overlap":{"allow":{"most":0}}}"#, "overlap"),
            (r#"{"history":0}"#, "history"),
            (r#"{"arguments":["a\u0000b"]}"#, "arguments"),
            (r#"{"env":{"A=B":"1"}}"#, "env"),
            (r#"{"env_from":"PATH"}"#, "env_from"),
            (r#"{"limits":7}"#, "limits"),
            (r#"{"limits":{"processes":0}}"#, "limits.processes"),
            (r#"{"limits":{"memory":"much"}}"#, "limits.memory"),
            (r#"{"limits":{"size":1}}"#, "limits.size"),
            (r#"{"no_new_privs":1}"#, "no_new_privs"),
            (r#"{"sandbox":"on"}"#, "sandbox: invalid mode"),
            (r#"{"user":1000}"#, "user"),
        ] {
            let (_, wrong, _) = read(Sort::Triggered, json);
            assert!(wrong.len() == 1 && wrong[0].contains(key), "{json}: {wrong:?}");
        }
    }

    /// T071: with Kudu such an app has no schedule, and nobody is told.
    #[test]
    fn t071_a_bad_schedule_is_told_in_kudus_words() {
        let (settings, wrong, _) = read(Sort::Triggered, r#"{"schedule":"0 61 * * * *"}"#);
        assert!(settings.schedule.is_none());
        assert!(wrong[0].starts_with("Failed to parse schedule \"0 61 * * * *\""), "{wrong:?}");
        let (_, wrong, _) = read(Sort::Triggered, r#"{"schedule":"0 0 2 * * *","time_zone":"Mars/Port"}"#);
        assert!(wrong[0].contains("Mars/Port"), "{wrong:?}");
    }

    #[test]
    fn what_has_no_meaning_is_noted_and_keeps_nothing_from_running() {
        let (_, wrong, notes) = read(Sort::Continuous, r#"{"schedule":"0 0 2 * * *","Is_Singleton":true}"#);
        assert!(wrong.is_empty(), "{wrong:?}");
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert!(notes.iter().any(|note| note.contains("schedule")));
        assert!(notes.iter().any(|note| note.contains("Is_Singleton")), "keys are case-sensitive: {notes:?}");
    }
}
