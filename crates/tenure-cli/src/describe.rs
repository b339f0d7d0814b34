//! What the program and its server tell of themselves: OpenAPI, completions of shells, manual pages.

use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use clap::{Args, Command};
use clap_complete::Shell;
use tenure_http::{Words, description};

use crate::exit::Failure;

/// Arguments of `tenure openapi`.
#[derive(Debug, Args)]
pub(crate) struct OpenApi {
    /// Print version 3.0 instead of 3.1, for older generators
    #[arg(long = "3.0")]
    old: bool,
}

/// Arguments of `tenure completions`.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// Shell to complete in
    shell: Shell,
}

/// Arguments of `tenure man`.
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Write a page for each command into this folder
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
}

pub(crate) fn openapi(openapi: &OpenApi) -> Result<(), Failure> {
    let words = if openapi.old { Words::Old } else { Words::New };
    print(format!("{:#}\n", description(words)).as_bytes())
}

pub(crate) fn completions(completions: &Completions, mut program: Command) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(completions.shell, &mut program, "tenure", &mut text);
    print(&text)
}

pub(crate) fn man(man: &Man, program: Command) -> Result<(), Failure> {
    if let Some(folder) = &man.dir {
        return clap_mangen::generate_to(program, folder)
            .map_err(|source| Failure::Output { path: folder.clone(), source });
    }
    let mut text = Vec::new();
    clap_mangen::Man::new(program)
        .render(&mut text)
        .map_err(|source| Failure::System { what: "cannot render the manual page", source })?;
    print(&text)
}

fn print(text: &[u8]) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(text).and_then(|()| out.flush()).map_err(|source| {
        if source.kind() == ErrorKind::BrokenPipe {
            return Failure::NobodyReads;
        }
        Failure::System { what: "cannot write to standard output", source }
    })
}
