//! `tenure db vacuum`: a file that is no larger than it has to be.

use clap::Args;

use super::status::size;
use super::target::{Form, Target, wait};
use crate::exit::Failure;
use crate::screen::print;

/// Arguments of `tenure db vacuum`.
#[derive(Debug, Args)]
pub(crate) struct Vacuum {
    #[command(flatten)]
    target: Target,
}

pub(crate) fn run(vacuum: &Vacuum) -> Result<(), Failure> {
    let (before, after) = wait(vacuum.target.options().vacuum(&vacuum.target.url()))?;
    print(&match vacuum.target.output {
        Form::Json => serde_json::json!({ "bytes_before": before, "bytes_after": after }).to_string(),
        Form::Table => format!("{} before, {} now", size(before), size(after)),
    });
    Ok(())
}
