//! What the operator says of all apps at once, by the names that Kudu has for it.

use std::time::Duration;

/// What counts for all apps of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overall {
    /// How long a continuous app rests before it is begun again.
    pub restart: Duration,
    /// How long a triggered one may be idle. Off unless somebody says it: a program that waits for another is not stuck.
    pub idle: Option<Duration>,
    /// How many ended runs of each are kept.
    pub history: u32,
    /// Nothing runs.
    pub is_stopped: bool,
    /// Triggered ones run on demand only.
    pub is_schedule_off: bool,
    /// Where the jobs are, below the folder or elsewhere.
    pub root: Option<String>,
    /// What was said and is not understood.
    pub wrong: Vec<String>,
}

impl Overall {
    /// From variables such as `WEBJOBS_RESTART_TIME`.
    #[must_use]
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Self {
        let mut wrong = Vec::new();
        let mut number = |name: &str| {
            let said = variable(name)?;
            match said.trim().parse::<i64>() {
                // As Kudu has it, what is below nothing is nothing.
                Ok(number) => Some(number.max(0).unsigned_abs()),
                Err(_) => {
                    wrong.push(format!("invalid {name} {said:?}; expected a whole number"));
                    None
                }
            }
        };
        let restart = number("WEBJOBS_RESTART_TIME").map_or(Duration::from_secs(60), Duration::from_secs);
        let idle = number("WEBJOBS_IDLE_TIMEOUT").map(Duration::from_secs);
        let history = number("WEBJOBS_HISTORY_SIZE");
        if history == Some(0) {
            wrong.push("invalid WEBJOBS_HISTORY_SIZE 0; expected 1 or more".to_owned());
        }
        let history = history.filter(|history| *history > 0).unwrap_or(50);
        let mut flag = |name: &str| {
            let said = variable(name).unwrap_or_default();
            match said.trim().to_ascii_lowercase().as_str() {
                "1" | "true" | "yes" | "on" => true,
                "" | "0" | "false" | "no" | "off" => false,
                _ => {
                    wrong.push(format!(
                        "invalid {name} {said:?}, taken as false; expected 1, true, 0 or false"
                    ));
                    false
                }
            }
        };
        let (is_stopped, is_schedule_off) = (flag("WEBJOBS_STOPPED"), flag("WEBJOBS_DISABLE_SCHEDULE"));
        Self {
            restart,
            // Nothing at all would end each program before it has begun.
            idle: idle.filter(|idle| !idle.is_zero()),
            history: u32::try_from(history).unwrap_or(u32::MAX),
            is_stopped,
            is_schedule_off,
            root: variable("WEBJOBS_ROOT_PATH").filter(|root| !root.is_empty()),
            wrong,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_kudu_knows_counts_and_what_it_would_swallow_is_told() {
        let nothing = Overall::of(|_| None);
        assert_eq!((nothing.restart.as_secs(), nothing.idle, nothing.history), (60, None, 50));
        let said = Overall::of(|name| {
            let value = match name {
                "WEBJOBS_RESTART_TIME" => "-5",
                "WEBJOBS_IDLE_TIMEOUT" => "120",
                "WEBJOBS_HISTORY_SIZE" => "many",
                "WEBJOBS_STOPPED" => "True",
                _ => return None,
            };
            Some(value.to_owned())
        });
        assert_eq!((said.restart, said.idle), (Duration::ZERO, Some(Duration::from_secs(120))));
        assert!(said.is_stopped && !said.is_schedule_off && said.wrong[0].contains("WEBJOBS_HISTORY_SIZE"));
    }
    #[test]
    fn a_switch_is_known_in_the_usual_words_and_told_in_others() {
        let stopped = |value: &str| {
            let said = Overall::of(|name| (name == "WEBJOBS_STOPPED").then(|| value.to_owned()));
            (said.is_stopped, said.wrong.len())
        };
        for yes in ["1", "true", "True ", "yes", "ON"] {
            assert_eq!(stopped(yes), (true, 0), "{yes}");
        }
        for no in ["", "0", "false", "no", "Off"] {
            assert_eq!(stopped(no), (false, 0), "{no}");
        }
        assert_eq!(stopped("stop"), (false, 1));
    }
}
