//! Jobs that a server lists and cannot read.

use serde_json::Value;

use crate::output::{Out, counted, safe};

/// Maximum number of jobs in the message.
const NAMED: usize = 5;

/// Names the unreadable jobs of a listing on stderr.
pub(crate) fn tell(jobs: &[Value], out: &Out) {
    if let Some(sentence) = sentence(jobs) {
        out.tell(&sentence);
    }
}

fn sentence(jobs: &[Value]) -> Option<String> {
    if jobs.is_empty() {
        return None;
    }
    let mut named: Vec<String> = jobs.iter().take(NAMED).map(named).collect();
    if let Some(more @ 1..) = jobs.len().checked_sub(NAMED) {
        named.push(format!("{more} more"));
    }
    Some(format!(
        "{} cannot be read: {}; see `tenure db check` and `tenure db repair`",
        counted(jobs.len() as u64, "job"),
        named.join(", ")
    ))
}

fn named(job: &Value) -> String {
    let name = job["id"].as_str().map_or_else(|| format!("number {}", job["number"]), str::to_owned);
    let reason = job["reason"].as_str().map(|reason| format!(" ({reason})")).unwrap_or_default();
    safe::line(&format!("{name}{reason}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_few_are_named_with_their_reasons_and_the_rest_is_counted() {
        let job = json!({ "id": "0199", "number": 1, "reason": "column terms: expected value" });
        let without_id = json!({ "number": 7 });
        assert_eq!(sentence(&[]), None);
        assert_eq!(
            sentence(&[job, without_id]).unwrap(),
            "2 jobs cannot be read: 0199 (column terms: expected value), number 7; see `tenure db check` and `tenure db repair`"
        );
        let many: Vec<Value> = (0..7).map(|number| json!({ "number": number })).collect();
        assert!(sentence(&many).unwrap().contains("number 4, 2 more;"));
    }
}
