//! The compiler wrapper: adds the flag of a bug for the one crate that contains it.

use std::process::{Command, ExitCode};

/// Environment variable with the bug that the compiler wrapper compiles in; empty for none.
pub const PLANT: &str = "XTASK_PLANT";
/// Environment variable with the crate that contains the bug, as rustc spells its name.
pub const PLANT_IN: &str = "XTASK_PLANT_IN";

/// Compiles a crate if this program was started as the compiler wrapper of `mutants`; `args` is rustc and its arguments.
pub fn compile_as_wrapper(args: &[String]) -> Option<ExitCode> {
    let variable = |name| std::env::var(name).ok();
    let (name, bends) = (variable(PLANT)?, variable(PLANT_IN)?);
    let (rustc, args) = args.split_first()?;
    let status = Command::new(rustc).args(args).args(cfg_for(args, &name, &bends)).status();
    let is_compiled = status.is_ok_and(|status| status.success());
    Some(if is_compiled { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The flag that compiles the bug in, if these are the arguments for the crate that contains it.
fn cfg_for(args: &[String], name: &str, bends: &str) -> Vec<String> {
    let is_bent = args.windows(2).any(|pair| pair[0] == "--crate-name" && pair[1] == bends);
    let flag = || vec!["--cfg".to_owned(), format!("mutant=\"{name}\"")];
    if is_bent && !name.is_empty() { flag() } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_crate_with_the_bug_is_compiled_with_it() {
        let args = |line: &str| line.split(' ').map(String::from).collect::<Vec<_>>();
        let of = |line: &str, name: &str| cfg_for(&args(line), name, "tenure_core");
        assert_eq!(of("--crate-name tenure_core src/lib.rs", "a"), ["--cfg", "mutant=\"a\""]);
        assert_eq!(of("--crate-name tenure_core src/lib.rs", ""), [""; 0]);
        assert_eq!(of("--crate-name tenure --extern tenure_core", "a"), [""; 0]);
        assert_eq!(of("-vV", "a"), [""; 0]);
    }
}
