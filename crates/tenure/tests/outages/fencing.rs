//! Each fence is somebody's, fences grow, nobody believes in what is somebody else's, and who is late writes nothing.

use std::collections::BTreeMap;

use tenure::Fence;
use tenure_store::Moment;

use super::history::{Grant, History};

/// What contradicts that. It may have been forgotten by whoever granted it: no promotion excuses anything here.
pub fn violations(history: &History) -> Vec<String> {
    let mut found = Vec::new();
    for grants in by_name(history).values() {
        found.extend(granted_twice(grants));
        found.extend(went_back(grants));
        found.extend(believed_by_two(grants));
    }
    found.extend(late_writes(history));
    found.extend(kept_out_of_order(history));
    found
}

fn by_name(history: &History) -> BTreeMap<&str, Vec<&Grant>> {
    let mut names: BTreeMap<&str, Vec<&Grant>> = BTreeMap::new();
    for grant in &history.grants {
        names.entry(&grant.what).or_default().push(grant);
    }
    names
}

/// One fence of two holders. Who asks again is told the same again.
fn granted_twice(grants: &[&Grant]) -> Vec<String> {
    let mut holders: BTreeMap<Fence, &Grant> = BTreeMap::new();
    let mut found = Vec::new();
    for grant in grants {
        let first = holders.entry(grant.fence).or_insert(grant);
        if first.holder != grant.holder {
            found.push(format!("one fence was granted twice: {first:?} and {grant:?}"));
        }
    }
    found
}

/// A grant that was asked for when a greater fence had been heard of.
fn went_back(grants: &[&Grant]) -> Vec<String> {
    let greatest = Greatest::of(grants);
    let mut found = Vec::new();
    for grant in grants {
        if let Some(before) = greatest.before(grant.call.asked)
            && before.fence > grant.fence
        {
            found.push(format!("a fence went back: {grant:?} after {before:?}"));
        }
    }
    found
}

/// Two that believe at one moment.
fn believed_by_two(grants: &[&Grant]) -> Vec<String> {
    let believed = |grant: &&Grant| grant.believed.is_some_and(|until| until > grant.call.heard);
    let mut in_turn: Vec<&Grant> = grants.iter().copied().filter(believed).collect();
    in_turn.sort_by_key(|grant| grant.call.heard);
    let mut found = Vec::new();
    let mut longest: Option<&Grant> = None;
    for grant in in_turn {
        if let Some(before) = longest
            && before.holder != grant.holder
            && before.believed > Some(grant.call.heard)
        {
            found.push(format!("two believed at once: {before:?} and {grant:?}"));
        }
        if longest.is_none_or(|before| before.believed < grant.believed) {
            longest = Some(grant);
        }
    }
    found
}

/// A write, or the end of a job, that was accepted although it was begun when a greater fence had been heard of.
fn late_writes(history: &History) -> Vec<String> {
    let names = by_name(history);
    let greatest: BTreeMap<&str, Greatest> =
        names.iter().map(|(name, grants)| (*name, Greatest::of(grants))).collect();
    let ends = history.succeeded.iter().map(|end| (Grant::of_job(end.id), end.fence, end.call));
    let writes = history.writes.iter().map(|write| (write.what.clone(), write.fence, write.call));
    let mut found = Vec::new();
    for (what, fence, call) in writes.chain(ends) {
        let before = greatest.get(&*what).and_then(|greatest| greatest.before(call.asked));
        if let Some(before) = before
            && before.fence > fence
        {
            found.push(format!(
                "a late write to {what} under {fence} was accepted ({call:?}) after {before:?}"
            ));
        }
    }
    found
}

/// A write that stands behind one under a greater fence.
fn kept_out_of_order(history: &History) -> Vec<String> {
    let mut last: BTreeMap<&str, Fence> = BTreeMap::new();
    let mut found = Vec::new();
    for (name, fence) in &history.left.writes {
        let before = last.entry(name).or_insert(*fence);
        if *before > *fence {
            found.push(format!("a write to {name} under {fence} was kept behind one under {before}"));
        }
        *before = (*before).max(*fence);
    }
    found
}

/// The grants of one name as they were heard of, each with the greatest fence until then.
struct Greatest<'a>(Vec<(Moment, &'a Grant)>);

impl<'a> Greatest<'a> {
    fn of(grants: &[&'a Grant]) -> Self {
        let mut heard: Vec<&Grant> = grants.to_vec();
        heard.sort_by_key(|grant| grant.call.heard);
        let mut greatest: Option<&Grant> = None;
        let mut line = Vec::new();
        for grant in heard {
            if greatest.is_none_or(|before| before.fence < grant.fence) {
                greatest = Some(grant);
            }
            line.extend(greatest.map(|greatest| (grant.call.heard, greatest)));
        }
        Self(line)
    }

    /// The greatest that somebody had heard of before this moment.
    fn before(&self, moment: Moment) -> Option<&'a Grant> {
        let known = self.0.partition_point(|(heard, _)| *heard < moment);
        known.checked_sub(1).map(|last| self.0[last].1)
    }
}

mod tests {
    use tenure::{JobId, Timestamp};

    use super::super::given::{at, call, fence};
    use super::super::history::{Grant, History, Success, Write};
    use super::violations;

    fn grant(number: u64, holder: &str, asked: u64, believed: u64) -> Grant {
        Grant {
            what: "pen".to_owned(),
            fence: fence(number),
            holder: holder.to_owned(),
            call: call(asked, asked + 2),
            believed: Some(at(believed)),
        }
    }

    fn write(number: u64, asked: u64) -> Write {
        Write { what: "pen".to_owned(), fence: fence(number), call: call(asked, asked + 2) }
    }

    /// One holder after another, and each writes.
    fn good() -> History {
        let mut history = History::default();
        history.grants.extend([grant(1, "a", 0, 10), grant(2, "b", 12, 20), grant(3, "a again", 30, 40)]);
        history.writes.extend([write(1, 5), write(2, 16)]);
        history.left.writes.extend([1, 1, 2].map(|number| ("pen".to_owned(), fence(number))));
        history
    }

    /// Exactly one thing is wrong with it.
    fn finds(history: &History, what: &str) {
        let found = violations(history);
        assert!(found.len() == 1 && found[0].contains(what), "{what}: {found:?}");
    }

    #[test]
    fn a_history_in_which_one_holder_follows_another_is_clean() {
        assert_eq!(violations(&good()), [""; 0]);
    }

    #[test]
    fn who_asks_again_is_told_the_same_fence() {
        let mut history = good();
        history.grants.push(grant(3, "a again", 33, 39));
        assert_eq!(violations(&history), [""; 0]);
    }

    #[test]
    fn a_fence_of_two_holders_is_found() {
        let mut history = good();
        history.grants.push(grant(3, "c", 50, 60));
        finds(&history, "granted twice");
    }

    #[test]
    fn a_fence_that_goes_back_is_found() {
        let mut history = good();
        history.grants[2].fence = fence(4);
        history.grants.push(grant(3, "c", 50, 60));
        finds(&history, "went back");
    }

    #[test]
    fn who_believes_beside_somebody_else_is_found() {
        let mut history = good();
        history.grants[0].believed = Some(at(15));
        finds(&history, "two believed");
    }

    /// The answers of two that asked at once may come in any order.
    #[test]
    fn grants_under_way_at_one_time_have_no_order() {
        let mut history = good();
        history.grants.extend([grant(5, "d", 50, 50), grant(4, "c", 51, 51)]);
        assert_eq!(violations(&history), [""; 0]);
    }

    #[test]
    fn a_late_write_that_was_accepted_is_found() {
        let mut history = good();
        history.writes.push(write(1, 15));
        finds(&history, "late write");
    }

    #[test]
    fn a_late_end_of_a_job_that_was_accepted_is_found() {
        let (mut history, id) = (good(), JobId::new(Timestamp::EPOCH, 1));
        let granted =
            |number, holder, asked| Grant { what: Grant::of_job(id), ..grant(number, holder, asked, asked) };
        history.grants.extend([granted(1, "host 1", 0), granted(2, "host 2", 20)]);
        history.succeeded.push(Success { id, fence: fence(1), call: call(21, 30) });
        assert_eq!(violations(&history), [""; 0]);
        history.succeeded.push(Success { id, fence: fence(1), call: call(25, 30) });
        finds(&history, "late write");
    }

    #[test]
    fn a_write_that_was_kept_behind_one_under_a_greater_fence_is_found() {
        let mut history = good();
        history.left.writes.push(("pen".to_owned(), fence(1)));
        finds(&history, "kept behind");
    }

    #[test]
    fn names_have_nothing_to_do_with_each_other() {
        let mut history = good();
        history.grants.push(Grant { what: "ink".to_owned(), ..grant(1, "c", 50, 60) });
        history.left.writes.push(("ink".to_owned(), fence(1)));
        assert_eq!(violations(&history), [""; 0]);
    }
}
