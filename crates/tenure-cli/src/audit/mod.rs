//! `tenure audit`: the changes that people made through a server.

use crate::exit::Failure;
use crate::output::Cell;
use crate::screen::Tone;
use crate::with::{Asked, Latest, Named, done, text};

const ENTRIES: Named = Named {
    path: "/v1/audit",
    columns: &["at", "who", "method", "path", "status"],
    cells: |entry, out| {
        let status = entry["status"].as_u64().unwrap_or_default();
        let tone = if status >= 400 { Tone::Bad } else { Tone::Plain };
        vec![
            out.when(entry["at"].as_str()).into(),
            text(entry, "/who").into(),
            text(entry, "/method").into(),
            text(entry, "/path").into(),
            Cell::from(status.to_string()).toned(tone),
        ]
    },
};

pub(crate) fn run(asked: Asked<Latest>) -> Result<(), Failure> {
    let Asked { connect, output, what } = asked;
    done(&connect, output, move |with| ENTRIES.first_at(with, ENTRIES.path, what.limit))
}
