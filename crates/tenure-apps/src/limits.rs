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
    /// Bytes of memory of all its processes together. It needs a cgroup, as the next two do.
    pub total_memory: Option<u64>,
    /// Processes and threads together.
    pub tasks: Option<u64>,
    /// Thousandths of a processor that all its processes may use at any time.
    pub milli_cpus: Option<u64>,
}

/// Notation of a limit.
#[derive(Clone, Copy)]
enum Unit {
    Bytes,
    Number,
    /// A number with up to three decimals, kept as thousandths.
    Thousandths,
}

/// A limit: its name, the least that makes sense, and its notation.
const KNOWN: [(&str, u64, Unit); 8] = [
    // Below that no interpreter begins.
    ("memory", 16 << 20, Unit::Bytes),
    ("processes", 1, Unit::Number),
    ("cpu", 1, Unit::Number),
    // What it says goes through pipes, its result does not.
    ("file", 1 << 20, Unit::Bytes),
    // Its own three, and what a loader needs.
    ("open_files", 16, Unit::Number),
    ("total_memory", 16 << 20, Unit::Bytes),
    ("tasks", 1, Unit::Number),
    // The kernel grants no less.
    ("cpus", 10, Unit::Thousandths),
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
        let Some((_, least, unit)) = KNOWN.into_iter().find(|(known, _, _)| *known == name) else {
            let known = KNOWN.map(|(known, _, _)| known).join(", ");
            return Err(format!("{name}: unknown limit; expected {known}"));
        };
        let number = match unit {
            Unit::Bytes => bytes(said),
            Unit::Number => said.parse().ok(),
            Unit::Thousandths => thousandths(said),
        };
        let Some(number) = number.filter(|number| (least..=MOST).contains(number)) else {
            let said: String = said.chars().take(40).collect();
            let allowed = match unit {
                Unit::Bytes => {
                    format!("{} MiB or more, as a number of bytes or such as \"512MiB\"", least >> 20)
                }
                Unit::Number => format!("a whole number, {least} or more"),
                Unit::Thousandths => "a number such as 2 or 0.5, 0.01 or more".to_owned(),
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
            total_memory: tighter(self.total_memory, other.total_memory),
            tasks: tighter(self.tasks, other.tasks),
            milli_cpus: tighter(self.milli_cpus, other.milli_cpus),
        }
    }

    fn place(&mut self, name: &str) -> &mut Option<u64> {
        match name {
            "memory" => &mut self.memory,
            "processes" => &mut self.processes,
            "cpu" => &mut self.cpu,
            "file" => &mut self.file,
            "total_memory" => &mut self.total_memory,
            "tasks" => &mut self.tasks,
            "cpus" => &mut self.milli_cpus,
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

/// Such as `2`, `0.5` or `1.125`.
fn thousandths(said: &str) -> Option<u64> {
    let (whole, rest) = said.split_once('.').unwrap_or((said, "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    if !is_number(whole) || !is_number(rest) || rest.len() > 3 {
        return None;
    }
    let rest: u64 = format!("{rest:0<3}").parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(1000)?.checked_add(rest)
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
            of(r#"{"memory":"512MiB","processes":64,"cpu":600,"file":"1GiB","open_files":256,
                   "total_memory":"1GiB","tasks":100,"cpus":1.5}"#);
        assert!(wrong.is_empty(), "{wrong:?}");
        let expected = Limits {
            memory: Some(512 << 20),
            processes: Some(64),
            cpu: Some(600),
            file: Some(1 << 30),
            open_files: Some(256),
            total_memory: Some(1 << 30),
            tasks: Some(100),
            milli_cpus: Some(1_500),
        };
        assert_eq!(limits, expected);
        assert_eq!(of(r#"{"memory":16777216}"#).0.memory, Some(16 << 20));
        assert_eq!(of(r#"{"cpus":"0.01"}"#).0.milli_cpus, Some(10));
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
            (r#"{"total_memory":"1MiB"}"#, "limits.total_memory"),
            (r#"{"tasks":0}"#, "limits.tasks"),
            (r#"{"cpus":0.001}"#, "limits.cpus"),
            (r#"{"cpus":"1.2345"}"#, "limits.cpus"),
            (r#"{"cpus":"-1"}"#, "limits.cpus"),
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
