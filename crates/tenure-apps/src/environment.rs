//! What a program of a folder finds in its environment.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::app::{App, Sort};

/// What only a run knows.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// Where it runs.
    pub place: PathBuf,
    /// Where it keeps what is to be there for the next run.
    pub data: PathBuf,
    /// The job, for a triggered one.
    pub run: Option<RunWords>,
    /// The arguments of this run.
    pub arguments: Vec<String>,
    /// The lease and the fence of a singleton.
    pub lease: Option<(String, u64)>,
    /// A port that is free on this machine, for a continuous one that listens.
    pub port: Option<u16>,
}

/// What a triggered run is known by.
#[derive(Debug, Clone)]
pub struct RunWords {
    /// The id of the job.
    pub id: String,
    /// Its kind.
    pub kind: String,
    /// Its queue.
    pub queue: String,
    /// Which attempt this is.
    pub attempt: u32,
    /// Its fence.
    pub fence: u64,
    /// Why it runs: `Schedule - …` or `External - …`.
    pub trigger: String,
}

impl Environment {
    /// The variables, those of the app's own settings before ours: nobody can pretend to be another run.
    #[must_use]
    pub fn of(&self, app: &App) -> Vec<(String, OsString)> {
        let mut env: Vec<(String, OsString)> =
            app.settings.env.iter().map(|(name, value)| (name.clone(), value.into())).collect();
        let mut say = |name: &str, value: OsString| env.push((name.to_owned(), value));
        for prefix in ["JOB", "WEBJOBS"] {
            say(&format!("{prefix}_PATH"), self.place.clone().into());
            say(&format!("{prefix}_NAME"), app.name.clone().into());
            say(&format!("{prefix}_TYPE"), app.sort.word().into());
            say(&format!("{prefix}_DATA_PATH"), self.data.clone().into());
            say(&format!("{prefix}_COMMAND_ARGUMENTS"), quoted(&self.arguments).into());
        }
        // Empty for a continuous one, as Kudu has it.
        say("WEBJOBS_RUN_ID", self.run.as_ref().map_or_else(String::new, |run| run.id.clone()).into());
        let marker = match app.sort {
            Sort::Triggered => "WEBSITE_TRIGGERED_JOB_RUNNING_",
            Sort::Continuous => "WEBSITE_ALWAYS_ON_JOB_RUNNING_",
        };
        say(&format!("{marker}{}", app.name), "true".into());
        if let Some(run) = &self.run {
            say("JOB_ID", run.id.clone().into());
            say("JOB_KIND", run.kind.clone().into());
            say("JOB_QUEUE", run.queue.clone().into());
            say("JOB_ATTEMPT", run.attempt.to_string().into());
            say("JOB_FENCE", run.fence.to_string().into());
            say("JOB_TRIGGER", run.trigger.clone().into());
        }
        if let Some((lease, fence)) = &self.lease {
            say("TENURE_LEASE", lease.clone().into());
            say("TENURE_FENCE", fence.to_string().into());
        }
        if let Some(port) = self.port {
            say("WEBJOBS_PORT", port.to_string().into());
        }
        env
    }
}

/// Arguments as a shell would have to read them to have the same again. Nobody here gives them to one.
#[must_use]
pub fn quoted(words: &[String]) -> String {
    let plain = |sign: char| sign.is_ascii_alphanumeric() || "_-./:=,@%+".contains(sign);
    let quote = |word: &String| {
        if !word.is_empty() && word.chars().all(plain) {
            return word.clone();
        }
        format!("'{}'", word.replace('\'', r"'\''"))
    };
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Settings;

    fn app(sort: Sort) -> App {
        App {
            name: "a".to_owned(),
            sort,
            folder: PathBuf::new(),
            command: Vec::new(),
            settings: Settings::usual(sort),
            wrong: Vec::new(),
            notes: Vec::new(),
            is_disabled: false,
        }
    }

    fn value<'a>(env: &'a [(String, OsString)], name: &str) -> Option<&'a str> {
        // Of two the later counts, as for a process that is started.
        env.iter().rev().find(|(known, _)| known == name).and_then(|(_, value)| value.to_str())
    }

    /// T072: the names that Kudu has, with what they say there.
    #[test]
    fn t072_every_name_of_kudu_is_there() {
        let run = RunWords {
            id: "7".to_owned(),
            kind: "apps.a".to_owned(),
            queue: "apps".to_owned(),
            attempt: 1,
            fence: 5,
            trigger: "External - me".to_owned(),
        };
        let environment = Environment {
            place: "here".into(),
            data: "there".into(),
            run: Some(run),
            arguments: vec!["a b".to_owned(), "c".to_owned()],
            ..Environment::default()
        };
        let env = environment.of(&app(Sort::Triggered));
        for (name, expected) in [
            ("WEBJOBS_PATH", "here"),
            ("WEBJOBS_NAME", "a"),
            ("WEBJOBS_TYPE", "triggered"),
            ("WEBJOBS_DATA_PATH", "there"),
            ("WEBJOBS_RUN_ID", "7"),
            ("WEBJOBS_COMMAND_ARGUMENTS", "'a b' c"),
            ("WEBSITE_TRIGGERED_JOB_RUNNING_a", "true"),
            ("JOB_ID", "7"),
            ("JOB_FENCE", "5"),
        ] {
            assert_eq!(value(&env, name), Some(expected), "{name}");
        }
        let continuous =
            Environment { port: Some(9), lease: Some(("l".to_owned(), 3)), ..Environment::default() };
        let env = continuous.of(&app(Sort::Continuous));
        assert_eq!(value(&env, "WEBJOBS_RUN_ID"), Some(""));
        assert_eq!(value(&env, "WEBJOBS_PORT"), Some("9"));
        assert_eq!(value(&env, "TENURE_FENCE"), Some("3"));
        assert_eq!(value(&env, "WEBSITE_ALWAYS_ON_JOB_RUNNING_a"), Some("true"));
    }

    #[test]
    fn settings_cannot_pretend_to_be_another_run() {
        let mut app = app(Sort::Triggered);
        app.settings.env.insert("WEBJOBS_NAME".to_owned(), "other".to_owned());
        assert_eq!(value(&Environment::default().of(&app), "WEBJOBS_NAME"), Some("a"));
    }

    #[test]
    fn arguments_are_quoted_so_that_nothing_of_them_is_read() {
        let words = ["a'b", "$(id)", "", "x=1"].map(str::to_owned);
        assert_eq!(quoted(&words), r"'a'\''b' '$(id)' '' x=1");
    }
}
