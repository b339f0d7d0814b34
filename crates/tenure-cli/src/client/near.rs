//! What may have been meant by a name that is not there.

use super::{Ask, Client};
use crate::near::nearest;

/// Things that are known by names that people give.
const NAMED: [&str; 4] = ["queues", "schedules", "leases", "kinds"];

impl Client {
    /// The name nearest to the one at this path of which there is nothing.
    pub(super) fn nearest(&self, path: &str) -> Option<String> {
        let rest = path.strip_prefix("/v1/")?;
        let (things, rest) = rest.split_once('/')?;
        let things = NAMED.into_iter().find(|named| *named == things)?;
        let name = rest.split(['/', '?']).next()?;
        let page = self.ask(&Ask::get(format!("/v1/{things}"))).ok()?.json().ok()?;
        let names = page["items"]
            .as_array()?
            .iter()
            .filter_map(|item| item["name"].as_str().or(item["kind"].as_str()));
        nearest(name, names).map(str::to_owned)
    }
}
