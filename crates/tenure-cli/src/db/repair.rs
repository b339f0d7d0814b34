//! `tenure db repair`: moves unreadable rows into quarantine.

use clap::Args;
use tenure::Quarantined;

use super::target::{Form, Target, wait};
use crate::exit::Failure;
use crate::output::{counted, safe};
use crate::screen::print;

/// Arguments of `tenure db repair`.
#[derive(Debug, Args)]
pub(crate) struct Repair {
    #[command(flatten)]
    target: Target,
    /// List the damaged data and change nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(repair: &Repair) -> Result<(), Failure> {
    let Repair { target, dry_run } = repair;
    let mut moved = Vec::new();
    loop {
        let step = wait(target.options().repair(&target.url(), *dry_run))?;
        let goes_on = step.more && !dry_run && !step.moved.is_empty();
        moved.extend(step.moved);
        if !goes_on {
            break;
        }
    }
    let left = if *dry_run { Vec::new() } else { wait(target.options().check(&target.url()))? };
    match target.output {
        // Texts are always JSON.
        Form::Json => print(&serde_json::json!({ "moved": &moved, "findings": &left }).to_string()),
        Form::Table => {
            lines(&moved, *dry_run).iter().for_each(|line| print(line));
            left.iter().for_each(|found| print(&safe::line(&format!("{:<12} {}", found.about, found.what))));
        }
    }
    if left.is_empty() { Ok(()) } else { Err(Failure::NotRepaired(left.len())) }
}

fn lines(moved: &[Quarantined], dry_run: bool) -> Vec<String> {
    if moved.is_empty() {
        return vec!["nothing to repair".to_owned()];
    }
    let told = moved.iter().map(|moved| safe::line(&moved.what));
    let rows = moved.iter().map(|moved| moved.rows).sum();
    let last = match dry_run {
        true => format!(
            "{} to move; run without --dry-run to move them",
            counted(moved.len() as u64, "unreadable item")
        ),
        false => format!("moved {} into the table quarantine", counted(rows, "row")),
    };
    told.chain([last]).collect()
}
