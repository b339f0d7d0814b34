//! `tenure open`: where a server, or a job of it, is looked at.

use std::io::IsTerminal;
use std::process::{Command, Stdio};

use clap::Args;

use crate::client::{Ask, escaped, is_socket};
use crate::exit::Failure;
use crate::ids;
use crate::with::With;

/// The pages for people.
const PAGES: &str = "/ui/";
/// What shows a URL to a person, in the order in which it is tried.
const SHOWS: [&str; 2] = ["xdg-open", "open"];

/// Arguments of `tenure open`.
#[derive(Debug, Args)]
pub(crate) struct Open {
    /// Job to open [default: the dashboard]
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// Print the URL only
    #[arg(long)]
    print: bool,
}

pub(crate) fn run(open: &Open, with: &mut With) -> Result<(), Failure> {
    let Some(base) = with.client.base().map(str::to_owned) else {
        return Err(Failure::Usage(
            "--db: a database has no dashboard; start one with `tenure serve --db …`".to_owned(),
        ));
    };
    if is_socket(&base) {
        let why = format!("{base}: a browser cannot open a Unix socket; pass --url http://…");
        return Err(Failure::Usage(why));
    }
    let url = match &open.id {
        Some(id) => {
            let id = escaped(&ids::job(&with.client, id)?);
            // A page of what is not there is of no use.
            with.client.ask(&Ask::get(format!("/v1/jobs/{id}")))?;
            // A server without pages still has the document.
            let page = format!("{PAGES}jobs/{id}");
            if has_pages(with)? { format!("{base}{page}") } else { format!("{base}/v1/jobs/{id}") }
        }
        None if has_pages(with)? => format!("{base}{PAGES}"),
        None => format!("{base}/openapi.json"),
    };
    with.out.line(&url)?;
    with.out.flush()?;
    // A program that reads the URL wants no browser.
    if open.print || !std::io::stdout().is_terminal() {
        return Ok(());
    }
    if !shown_in_browser(&url) {
        with.out.tell("found no browser; open the URL yourself");
    }
    Ok(())
}

/// Shows a page to the person at this machine; whether there is anything that shows one.
pub(crate) fn shown_in_browser(url: &str) -> bool {
    SHOWS.iter().any(|program| {
        let mut quiet = Command::new(program);
        quiet.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        quiet.spawn().is_ok()
    })
}

fn has_pages(with: &With) -> Result<bool, Failure> {
    Ok(with.client.look(PAGES)?.status < 400)
}
