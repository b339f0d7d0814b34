//! Every job that was accepted ends once, with success, or is still there.

use std::collections::{BTreeMap, BTreeSet};

use tenure::StateName;

use super::history::{History, Success};

/// What contradicts that.
pub fn violations(history: &History) -> Vec<String> {
    let mut found = Vec::new();
    found.extend(lost(history));
    found.extend(strange(history));
    found.extend(ended_twice(history));
    found.extend(forgotten_ends(history));
    found
}

/// A job that was accepted and is not there. If a replica was promoted that had fallen behind, those may be missing
/// that were accepted since it had, and only those.
fn lost(history: &History) -> Vec<String> {
    let missing = history.accepted.iter().filter(|(id, _)| !history.left.jobs.contains_key(id));
    missing
        .filter(|(_, call)| !history.may_be_forgotten(**call))
        .map(|(id, call)| format!("job {id} was accepted ({call:?}) and is lost"))
        .collect()
}

/// A job that nobody has enqueued, or that came to an end which nobody has asked for.
fn strange(history: &History) -> Vec<String> {
    let mut found = Vec::new();
    for (id, state) in &history.left.jobs {
        if !history.wanted.contains(id) {
            found.push(format!("job {id} was enqueued by nobody"));
        }
        if matches!(state, StateName::Failed | StateName::Cancelled) {
            found.push(format!("job {id} is {state}"));
        }
    }
    found
}

/// A job with two accepted ends, of which neither can have been forgotten; or two effects of one.
fn ended_twice(history: &History) -> Vec<String> {
    let mut ends: BTreeMap<_, Vec<&Success>> = BTreeMap::new();
    for success in &history.succeeded {
        if !history.may_be_forgotten(success.call) {
            ends.entry(success.id).or_default().push(success);
        }
    }
    let twice = ends.into_iter().filter(|(_, ends)| ends.len() > 1);
    let mut found: Vec<String> = twice.map(|(id, ends)| format!("job {id} ended twice: {ends:?}")).collect();
    let mut seen = BTreeSet::new();
    let again = history.left.effects.iter().filter(|id| !seen.insert(**id));
    found.extend(again.map(|id| format!("the effect of job {id} was kept twice")));
    found
}

/// A job whose success was acknowledged or whose effect is there, and which has not succeeded.
fn forgotten_ends(history: &History) -> Vec<String> {
    let acknowledged =
        history.succeeded.iter().filter(|one| !history.may_be_forgotten(one.call)).map(|one| one.id);
    let ended: BTreeSet<_> = acknowledged.chain(history.left.effects.iter().copied()).collect();
    ended
        .into_iter()
        .filter(|id| history.left.jobs.get(id) != Some(&StateName::Succeeded))
        .map(|id| format!("job {id} has ended, and is {:?}", history.left.jobs.get(&id)))
        .collect()
}

mod tests {
    use tenure::{Fence, JobId, StateName, Timestamp};

    use super::super::given::{call, fence};
    use super::super::history::{History, Success};
    use super::violations;

    fn id(number: u64) -> JobId {
        JobId::new(Timestamp::EPOCH, number)
    }

    fn success(number: u64, fence: Fence, asked: u64) -> Success {
        Success { id: id(number), fence, call: call(asked, asked + 2) }
    }

    /// Two jobs were accepted and have ended, one of them in a transaction; somebody does not know whether a third was.
    fn good() -> History {
        let mut history = History::default();
        history.wanted.extend([id(1), id(2), id(3)]);
        history.accepted.extend([(id(1), call(0, 2)), (id(2), call(1, 4))]);
        history.succeeded.extend([success(1, fence(1), 10), success(2, fence(1), 12)]);
        history.left.jobs.extend([(id(1), StateName::Succeeded), (id(2), StateName::Succeeded)]);
        history.left.effects.push(id(1));
        history
    }

    /// Exactly one thing is wrong with it.
    fn finds(history: &History, what: &str) {
        let found = violations(history);
        assert!(found.len() == 1 && found[0].contains(what), "{what}: {found:?}");
    }

    #[test]
    fn a_history_in_which_every_accepted_job_ended_once_is_clean() {
        assert_eq!(violations(&good()), [""; 0]);
    }

    #[test]
    fn a_job_that_still_waits_is_not_lost() {
        let mut history = good();
        history.left.jobs.insert(id(2), StateName::Queued);
        history.succeeded.truncate(1);
        assert_eq!(violations(&history), [""; 0]);
    }

    #[test]
    fn an_accepted_job_that_is_missing_is_found() {
        let mut history = good();
        history.succeeded.truncate(1);
        history.left.jobs.remove(&id(2));
        finds(&history, "lost");
    }

    #[test]
    fn only_what_was_accepted_while_the_replica_lagged_may_be_missing() {
        for (lag, clean) in [(call(3, 8), true), (call(5, 8), false)] {
            let mut history = good();
            history.succeeded.truncate(1);
            history.left.jobs.remove(&id(2));
            history.lags.push(lag);
            assert_eq!(violations(&history).is_empty(), clean);
        }
    }

    #[test]
    fn a_job_that_nobody_enqueued_is_found() {
        let mut history = good();
        history.left.jobs.insert(id(9), StateName::Queued);
        finds(&history, "by nobody");
    }

    #[test]
    fn a_job_that_failed_although_it_could_be_done_is_found() {
        let mut history = good();
        history.succeeded.truncate(1);
        history.left.jobs.insert(id(2), StateName::Failed);
        finds(&history, "failed");
    }

    #[test]
    fn two_accepted_ends_of_one_job_are_found() {
        let mut history = good();
        history.succeeded.push(success(1, fence(2), 20));
        finds(&history, "ended twice");
    }

    #[test]
    fn an_end_that_the_promoted_server_never_heard_of_does_not_count() {
        let mut history = good();
        history.lags.push(call(9, 15));
        history.succeeded.push(success(1, fence(2), 20));
        assert_eq!(violations(&history), [""; 0]);
    }

    #[test]
    fn an_effect_that_was_kept_twice_is_found() {
        let mut history = good();
        history.left.effects.push(id(1));
        finds(&history, "kept twice");
    }

    #[test]
    fn an_acknowledged_end_that_is_gone_is_found() {
        let mut history = good();
        history.left.jobs.insert(id(2), StateName::Queued);
        finds(&history, "has ended, and is");
    }
}
