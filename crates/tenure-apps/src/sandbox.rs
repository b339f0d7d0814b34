//! Files and ports that a program may use, as its settings name them.

use serde_json::{Map, Value};

/// Files and ports that a program may use, in addition to what every program needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sandbox {
    /// Starts the program without it where the kernel cannot enforce it.
    pub is_best_effort: bool,
    /// Files and folders to read, as absolute paths.
    pub read: Vec<String>,
    /// Files and folders to change, as absolute paths.
    pub write: Vec<String>,
    /// TCP ports to connect to. All of them if `None`.
    pub connect: Option<Vec<u16>>,
    /// TCP ports to bind. All of them if `None`.
    pub bind: Option<Vec<u16>>,
}

const KNOWN: &str = "mode, read, write, connect, bind";
const MODES: &str = "\"required\" or \"best_effort\"";

impl Sandbox {
    /// Reads `"required"`, `"best_effort"`, or an object with a `mode` and lists.
    ///
    /// # Errors
    /// In words, the value that is wrong, and what is allowed.
    pub fn of(said: &Value) -> Result<Self, String> {
        match said {
            Value::String(mode) => Ok(Self { is_best_effort: is_best_effort(mode)?, ..Self::default() }),
            Value::Object(parts) => Self::of_parts(parts),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
                Err(format!("expected {MODES}, or an object with {KNOWN}"))
            }
        }
    }

    fn of_parts(parts: &Map<String, Value>) -> Result<Self, String> {
        let mut sandbox = Self::default();
        for (name, value) in parts {
            match name.as_str() {
                "mode" => sandbox.is_best_effort = is_best_effort(value.as_str().unwrap_or_default())?,
                "read" => sandbox.read = paths(name, value)?,
                "write" => sandbox.write = paths(name, value)?,
                "connect" => sandbox.connect = Some(ports(name, value)?),
                "bind" => sandbox.bind = Some(ports(name, value)?),
                _ => return Err(format!("unknown key {name:?}; expected {KNOWN}")),
            }
        }
        Ok(sandbox)
    }
}

fn is_best_effort(mode: &str) -> Result<bool, String> {
    match mode {
        "required" => Ok(false),
        "best_effort" => Ok(true),
        _ => Err(format!("invalid mode {mode:?}; expected {MODES}")),
    }
}

fn paths(name: &str, value: &Value) -> Result<Vec<String>, String> {
    let paths: Option<Vec<String>> = serde_json::from_value(value.clone()).ok();
    let is_whole = |path: &String| path.starts_with('/') && !path.contains('\0');
    paths
        .filter(|paths| paths.iter().all(is_whole))
        .ok_or_else(|| format!("{name}: expected a list of absolute paths, such as [\"/srv/data\"]"))
}

fn ports(name: &str, value: &Value) -> Result<Vec<u16>, String> {
    serde_json::from_value(value.clone())
        .map_err(|_| format!("{name}: expected a list of port numbers, such as [443, 5432]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(json: &str) -> Result<Sandbox, String> {
        Sandbox::of(&serde_json::from_str(json).unwrap())
    }

    #[test]
    fn a_sandbox_is_a_word_or_lists() {
        assert_eq!(of("\"required\""), Ok(Sandbox::default()));
        assert!(of("\"best_effort\"").unwrap().is_best_effort);
        let said = of(r#"{"mode":"best_effort","read":["/srv"],"write":["/out"],"connect":[443],"bind":[]}"#);
        let expected = Sandbox {
            is_best_effort: true,
            read: vec!["/srv".to_owned()],
            write: vec!["/out".to_owned()],
            connect: Some(vec![443]),
            bind: Some(Vec::new()),
        };
        assert_eq!(said, Ok(expected));
    }

    #[test]
    fn a_sandbox_that_is_not_understood_is_refused_with_what_is_allowed() {
        for json in [
            "true",
            "\"off\"",
            r#"{"mode":1}"#,
            r#"{"read":"/srv"}"#,
            r#"{"write":["srv"]}"#,
            r#"{"connect":[70000]}"#,
            r#"{"bind":["http"]}"#,
            r#"{"reads":["/srv"]}"#,
        ] {
            assert!(of(json).is_err_and(|why| why.contains("expected")), "{json}");
        }
    }
}
