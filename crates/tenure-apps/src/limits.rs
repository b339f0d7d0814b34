//! What a program may use.

use serde_json::{Map, Value};

/// What a program may use. No limit but the system's where none is said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of memory that each of its processes may have for itself.
    pub memory: Option<u64>,
    /// Processes, children and theirs together.
    pub processes: Option<u64>,
    /// Seconds of processors, for all of them together.
    pub cpu: Option<u64>,
    /// Bytes of the largest file that it may write.
    pub file: Option<u64>,
    /// Files that each of its processes may have open.
    pub open_files: Option<u64>,
}

/// A limit: its name, the least that makes sense, and whether it is said in bytes.
const KNOWN: [(&str, u64, bool); 5] = [
    // Below that no interpreter begins.
    ("memory", 16 << 20, true),
    ("processes", 1, false),
    ("cpu", 1, false),
    // What it says goes through pipes, its result does not.
    ("file", 1 << 20, true),
    // Its own three, and what a loader needs.
    ("open_files", 16, false),
];
/// The greatest that is understood: what is beyond is no limit.
const MOST: u64 = 1 << 50;

impl Limits {
    /// Reads what was said, name by name; what is wrong is told in `wrong`.
    #[must_use]
    pub fn of(said: &Map<String, Value>, wrong: &mut Vec<String>) -> Self {
        let mut limits = Self::default();
        for (name, value) in said {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            if let Err(why) = limits.set(name, &text) {
                wrong.push(format!("limits.{why}"));
            }
        }
        limits
    }

    /// Sets one of them, as in `memory` and `512MiB`.
    ///
    /// # Errors
    /// In words, what is allowed.
    pub fn set(&mut self, name: &str, said: &str) -> Result<(), String> {
        let Some((_, least, in_bytes)) = KNOWN.into_iter().find(|(known, _, _)| *known == name) else {
            let known = KNOWN.map(|(known, _, _)| known).join(", ");
            return Err(format!("{name}: unknown limit; expected {known}"));
        };
        let number = if in_bytes { bytes(said) } else { said.parse().ok() };
        let Some(number) = number.filter(|number| (least..=MOST).contains(number)) else {
            let said: String = said.chars().take(40).collect();
            let allowed = if in_bytes {
                format!("{} MiB or more, as a number of bytes or such as \"512MiB\"", least >> 20)
            } else {
                format!("a whole number, {least} or more")
            };
            return Err(format!("{name}: invalid value {said:?}; expected {allowed}"));
        };
        *self.place(name) = Some(number);
        Ok(())
    }

    /// The tighter of both, limit by limit.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let tighter = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
        Self {
            memory: tighter(self.memory, other.memory),
            processes: tighter(self.processes, other.processes),
            cpu: tighter(self.cpu, other.cpu),
            file: tighter(self.file, other.file),
            open_files: tighter(self.open_files, other.open_files),
        }
    }

    fn place(&mut self, name: &str) -> &mut Option<u64> {
        match name {
            "memory" => &mut self.memory,
            "processes" => &mut self.processes,
            "cpu" => &mut self.cpu,
            "file" => &mut self.file,
            _ => &mut self.open_files,
        }
    }
}

/// Such as `512MiB`, `1GiB` or `1048576`.
fn bytes(said: &str) -> Option<u64> {
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40)];
    let unit = units.into_iter().find_map(|(unit, bits)| Some((said.strip_suffix(unit)?, bits)));
    let (number, bits) = unit.unwrap_or((said, 0));
    number.trim_end().parse::<u64>().ok()?.checked_mul(1 << bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(json: &str) -> (Limits, Vec<String>) {
        let (said, mut wrong) = (serde_json::from_str(json).unwrap(), Vec::new());
        let limits = Limits::of(&said, &mut wrong);
        (limits, wrong)
    }

    #[test]
    fn limits_are_numbers_and_sizes() {
        let (limits, wrong) =
            of(r#"{"memory":"512MiB","processes":64,"cpu":600,"file":"1GiB","open_files":256}"#);
        assert!(wrong.is_empty(), "{wrong:?}");
        let expected = Limits {
            memory: Some(512 << 20),
            processes: Some(64),
            cpu: Some(600),
            file: Some(1 << 30),
            open_files: Some(256),
        };
        assert_eq!(limits, expected);
        assert_eq!(of(r#"{"memory":16777216}"#).0.memory, Some(16 << 20));
    }

    #[test]
    fn what_is_no_limit_is_told_with_its_name_and_what_is_allowed() {
        for (json, name) in [
            (r#"{"memory":"1MiB"}"#, "limits.memory"),
            (r#"{"memory":"512 megabytes"}"#, "limits.memory"),
            (r#"{"memory":"99999999TiB"}"#, "limits.memory"),
            (r#"{"processes":-1}"#, "limits.processes"),
            (r#"{"cpu":0.5}"#, "limits.cpu"),
            (r#"{"file":null}"#, "limits.file"),
            (r#"{"open_files":3}"#, "limits.open_files"),
            (r#"{"disk":3}"#, "limits.disk"),
        ] {
            let (_, wrong) = of(json);
            assert!(
                wrong.len() == 1 && wrong[0].starts_with(name) && wrong[0].contains("expected"),
                "{json}: {wrong:?}"
            );
        }
    }

    #[test]
    fn of_two_limits_the_tighter_counts() {
        let host = Limits { memory: Some(100), processes: Some(5), ..Limits::default() };
        let own = Limits { memory: Some(200), cpu: Some(7), ..Limits::default() };
        let both = Limits { memory: Some(100), processes: Some(5), cpu: Some(7), ..Limits::default() };
        assert_eq!((own.and(host), host.and(own)), (both, both));
    }
}
