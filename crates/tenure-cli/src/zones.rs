//! The zone database of this program: its own, or the one that `TENURE_ZONEINFO` names.

use std::path::{Path, PathBuf};

use tenure::schedule::Zone;

use crate::exit::Failure;

pub(crate) const VARIABLE: &str = "TENURE_ZONEINFO";

/// Reads the zones of the directory that the environment names, if any.
pub(crate) fn choose() -> Result<(), Failure> {
    let named = std::env::var_os(VARIABLE).filter(|directory| !directory.is_empty()).map(PathBuf::from);
    let Some(directory) = named else { return Ok(()) };
    let version = version_in(&directory).unwrap_or_else(|| "of unknown version".to_owned());
    Zone::read_from(&directory, &format!("{version} from {}", directory.display()))
        .map_err(|bad| Failure::Usage(format!("{VARIABLE}: {bad}")))
}

/// Returns the version that distributions leave in the first line of a file.
fn version_in(directory: &Path) -> Option<String> {
    ["tzdata.zi", "+VERSION"].iter().find_map(|name| {
        let text = std::fs::read_to_string(directory.join(name)).ok()?;
        let version = text.lines().next()?.trim_start_matches("# version ").trim();
        (!version.is_empty() && version.len() <= 32).then(|| version.to_owned())
    })
}
