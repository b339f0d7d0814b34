//! How a program came to its end.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How a program came to its end, as its supervisor saw it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct End {
    /// The code with which it ended by itself.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Whether it was killed with all its children because somebody wanted that.
    pub killed: bool,
    /// Whether its supervisor was ended before it could tell how it went: what the program had started may be there still.
    #[serde(default)]
    pub is_lost: bool,
    /// Beyond which limit it was, in words, if it was ended for that.
    #[serde(default)]
    pub beyond: Option<String>,
    /// True if the supervisor killed the program because its host, paused, did not extend the deadline.
    #[serde(default)]
    pub is_expired: bool,
    /// Processes that it had left behind, which were ended.
    pub left_behind: u32,
    /// What it has used, with its children.
    pub usage: Usage,
}

/// What a program has used, with those of its children that have ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Usage {
    /// Time of processors for the program.
    pub user: Duration,
    /// Time of processors for the system on its behalf.
    pub system: Duration,
    /// The most memory that the largest of its processes has had, in bytes.
    pub max_rss: u64,
}

impl End {
    /// The code as shells say it: that of the program, or 128 and the number of the signal.
    #[must_use]
    pub fn shell_code(&self) -> u8 {
        let code = self.code.unwrap_or_else(|| 128 + self.signal.unwrap_or(0));
        u8::try_from(code).unwrap_or(1)
    }

    /// In words, such as `ended by signal 9 (SIGKILL)`.
    #[must_use]
    pub fn words(&self) -> String {
        let ended = self.ended();
        if self.is_lost {
            return format!("was lost: its supervisor {ended}, and its children may still run");
        }
        if self.is_expired {
            return format!("{ended}, because its host did not extend its deadline");
        }
        match &self.beyond {
            Some(beyond) => format!("{ended}, for {beyond}"),
            None => ended,
        }
    }

    fn ended(&self) -> String {
        match (self.code, self.signal) {
            (Some(code), _) => format!("ended with {code}"),
            (None, Some(signal)) => match name(signal) {
                Some(name) => format!("ended by signal {signal} ({name})"),
                None => format!("ended by signal {signal}"),
            },
            (None, None) => "was lost with its supervisor".to_owned(),
        }
    }
}

fn name(signal: i32) -> Option<&'static str> {
    signal_hook::low_level::signal_name(signal)
}

impl Usage {
    /// In words, such as `0.12 s user, 0.03 s system, 14 MiB`.
    #[must_use]
    pub fn words(&self) -> String {
        let (user, system) = (self.user.as_secs_f64(), self.system.as_secs_f64());
        format!("{user:.2} s user, {system:.2} s system, {} MiB", self.max_rss.div_ceil(1 << 20))
    }

    /// Of all children of this process that it has waited for.
    pub(crate) fn of_children() -> Self {
        use nix::sys::resource::{UsageWho, getrusage};
        use nix::sys::time::TimeVal;
        let Ok(used) = getrusage(UsageWho::RUSAGE_CHILDREN) else { return Self::default() };
        let span = |time: TimeVal| {
            Duration::from_secs(time.tv_sec().try_into().unwrap_or(0))
                + Duration::from_micros(time.tv_usec().try_into().unwrap_or(0))
        };
        // Linux counts kibibytes, Apple's systems count bytes.
        let unit = if cfg!(target_vendor = "apple") { 1 } else { 1024 };
        let max_rss = u64::try_from(used.max_rss()).unwrap_or(0).saturating_mul(unit);
        Self { user: span(used.user_time()), system: span(used.system_time()), max_rss }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_told_as_shells_tell_it() {
        let by_code = End { code: Some(7), ..End::default() };
        let by_signal = End { signal: Some(9), ..End::default() };
        assert_eq!((by_code.shell_code(), by_code.words().as_str()), (7, "ended with 7"));
        assert_eq!(
            (by_signal.shell_code(), by_signal.words().as_str()),
            (137, "ended by signal 9 (SIGKILL)")
        );
    }
}
