//! `cargo xtask prose`: the prose rule on all files or on some of them.

use crate::failure::Failure;
use crate::files;
use crate::rules::prose;

/// Prints each mistake, and fails if there is one.
pub fn run(paths: &[String]) -> Result<(), Failure> {
    let texts = files::texts(&files::root()).map_err(|error| Failure::check(error.to_string()))?;
    let is_wanted =
        |path: &str| paths.is_empty() || paths.iter().any(|wanted| path.starts_with(wanted.as_str()));
    let findings: Vec<String> =
        texts.iter().filter(|file| is_wanted(&file.path)).flat_map(prose::refused).collect();
    for finding in &findings {
        println!("{finding}");
    }
    if findings.is_empty() {
        return Ok(());
    }
    Err(Failure::check(format!("{} mistakes", findings.len())))
}
