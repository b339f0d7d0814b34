//! Following all that happens, whatever happens to the connection.

use super::follow::{AGAIN, pause};
use super::{Client, Patience};
use crate::exit::Failure;

/// What was told.
pub(crate) enum Told<'a> {
    /// An event: its document.
    Event(&'a str),
    /// Some are missing: the server does not keep them any more.
    Gap,
}

/// Follows what happens from now on, until `each` has enough of it.
pub(crate) fn tail(
    client: &Client,
    path: &str,
    mut each: impl FnMut(Told<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (mut seen, mut patience) = (None::<String>, Patience::new());
    loop {
        let events = match client.events(path, seen.as_deref(), None) {
            Ok(Some(events)) => events,
            Ok(None) => return Ok(()),
            Err(trouble) => {
                patience.endure(trouble)?;
                continue;
            }
        };
        patience.heard();
        for event in events {
            patience.heard();
            match event.name.as_str() {
                "reset" => each(Told::Gap)?,
                // Where it begins: nothing has happened.
                "" if event.data.is_empty() => {}
                _ => each(Told::Event(&event.data))?,
            }
            seen = event.id.or(seen);
        }
        // Cut off: the server ends, or somebody on the way has had enough.
        pause(AGAIN);
    }
}
