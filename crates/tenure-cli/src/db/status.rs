//! `tenure db status`: how a store stands.

use clap::Args;
use tenure::{Hearing, Oldest, Status as Standing};

use super::target::{Form, Target, wait};
use crate::exit::Failure;
use crate::output::{counted, safe};
use crate::screen::print;

/// Arguments of `tenure db status`.
#[derive(Debug, Args)]
pub(crate) struct Status {
    #[command(flatten)]
    target: Target,
}

pub(crate) fn run(status: Status) -> Result<(), Failure> {
    let standing = wait(status.target.options().status(&status.target.url()))?;
    match status.target.output {
        // Numbers and texts are always JSON.
        Form::Json => print(&serde_json::to_string(&standing).unwrap_or_default()),
        Form::Table => lines(&standing).iter().for_each(|line| print(&safe::line(line))),
    }
    Ok(())
}

fn lines(standing: &Standing) -> Vec<String> {
    let line = |name: &str, value: &str| format!("{name:<8} {value}").trim_end().to_owned();
    let mut lines = vec![
        line("store", &standing.place),
        line("engine", &standing.engine),
        line("schema", &schema(standing)),
        line("size", &size(standing.bytes)),
    ];
    lines.extend(standing.cautions.iter().map(|caution| line("warning", &caution.to_string())));
    let Some(epoch) = standing.epoch else { return lines };
    lines.push(line("epoch", &epoch.to_string()));
    let jobs: Vec<String> = standing.jobs.iter().map(|(state, jobs)| format!("{jobs} {state}")).collect();
    lines.push(line("jobs", if jobs.is_empty() { "none".to_owned() } else { jobs.join(", ") }.as_str()));
    if standing.hosts.is_empty() {
        lines.push(line("hosts", "none alive"));
    }
    for host in &standing.hosts {
        let alive = format!(
            "{}, {}, alive until at least {}",
            host.name,
            counted(host.slots.into(), "slot"),
            host.until
        );
        lines.push(line("host", &alive));
    }
    lines.push(line("notify", hearing(standing.hearing)));
    lines.extend(standing.oldest.as_ref().and_then(old).map(|old| line("old", &old)));
    lines
}

fn schema(standing: &Standing) -> String {
    let (here, known) = (standing.schema, standing.known);
    match here {
        0 => format!("none yet; `tenure db migrate` creates version {known}, and so does the first use"),
        here if here < known => {
            format!("version {here}; this program needs {known}: run `tenure db migrate` as the owner")
        }
        here => format!("version {here}, up to date"),
    }
}

fn hearing(hearing: Hearing) -> &'static str {
    match hearing {
        Hearing::Hints => "LISTEN/NOTIFY works: workers are notified of new jobs",
        Hearing::Looks => "no LISTEN/NOTIFY, perhaps because of a connection pooler: workers poll",
        Hearing::Watches => "not needed: workers watch the file",
    }
}

/// What to say of the oldest transaction, once it is one that somebody should know of.
fn old(oldest: &Oldest) -> Option<String> {
    let (who, minutes) = (&oldest.who, oldest.seconds / 60);
    let text = format!("{who}: transaction open for {minutes} min, which keeps old rows from being removed");
    (minutes > 0).then_some(text)
}

/// In the unit that a person reads best.
pub(super) fn size(bytes: u64) -> String {
    let (mut number, mut left) = (bytes as f64, ["KiB", "MiB", "GiB", "TiB"].into_iter());
    let mut unit = "bytes";
    while number >= 1024.0 {
        let Some(next) = left.next() else { break };
        (number, unit) = (number / 1024.0, next);
    }
    if unit == "bytes" { format!("{bytes} bytes") } else { format!("{number:.1} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_told_in_the_unit_that_fits() {
        assert_eq!(size(17), "17 bytes");
        assert_eq!(size(1536), "1.5 KiB");
        assert_eq!(size(3 << 30), "3.0 GiB");
    }

    #[test]
    fn a_transaction_is_told_of_once_it_is_old() {
        let open_for = |seconds| old(&Oldest { who: "psql of me".to_owned(), seconds });
        assert_eq!(open_for(59), None);
        assert!(open_for(720).unwrap().starts_with("psql of me: transaction open for 12 min"));
    }
}
