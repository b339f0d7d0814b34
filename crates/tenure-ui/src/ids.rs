//! Job ids as people shorten them: by their first or last eight characters.

use tenure::JobId;

use crate::asking::encoded;
use crate::parts::{list, text};
use crate::visit::Visit;

/// Fewest characters of a shortened id.
const SHORTEST: usize = 8;
/// Characters of a whole id.
const WHOLE: usize = 36;
/// Pages of jobs that are searched for an id at most.
const PAGES: usize = 10;

fn is_short(word: &str) -> bool {
    let is_of_id = |letter: char| letter.is_ascii_hexdigit() || letter == '-';
    (SHORTEST..WHOLE).contains(&word.len())
        && word.chars().all(is_of_id)
        && !word.starts_with('-')
        && word.parse::<JobId>().is_err()
}

/// Returns the ids of the jobs that a shortened id may mean, at most two; none if it is not one.
pub(crate) async fn meant(visit: &Visit, id: &str) -> Vec<String> {
    let mut path = format!("/v1/jobs?limit=2&q={}", encoded(&format!("id:{id}")));
    if !is_short(id) {
        return Vec::new();
    }
    for _ in 0..PAGES {
        let Ok(page) = visit.get(&path).await else { return Vec::new() };
        let found: Vec<String> = list(&page, "items").iter().map(|job| text(job, "id").to_owned()).collect();
        let Some(next) = page["next_cursor"].as_str().filter(|_| found.is_empty()) else { return found };
        let first = path.split_once("&cursor=").map_or(path.as_str(), |(first, _)| first);
        path = format!("{first}&cursor={}", encoded(next));
    }
    Vec::new()
}

/// Returns the whole id if a shortened one means a single job, and the text as it is otherwise.
pub(crate) async fn whole(visit: &Visit, id: String) -> String {
    match meant(visit, &id).await.as_slice() {
        [only] => only.clone(),
        _ => id,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortened_id_has_eight_characters_or_more_and_is_no_whole_one() {
        for short in ["1bfa451a", "01a20712-29aa", "76d9-85bf-1bfa769b451a"] {
            assert!(is_short(short), "{short}");
        }
        for other in [
            "",
            "1bfa451",
            "-1bfa451a",
            "mail-address",
            "01a20712-29aa-76d9-85bf-1bfa769b451a",
            "01a20712-29aa…451a",
        ] {
            assert!(!is_short(other), "{other}");
        }
    }
}
