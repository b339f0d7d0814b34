//! Filters that look into encrypted values.

use tenure_core::{Condition, Invalid};
use tenure_store::{Fault, Filter};

/// Refuses a filter that looks into encrypted values: the inner store sees only envelopes.
pub(super) fn check(filter: &Filter) -> Result<(), Invalid> {
    match filter.conditions.iter().find_map(encrypted_part) {
        Some(what) => Err(Invalid::new("search", what, "use kind, queue, tags or time instead")),
        None => Ok(()),
    }
}

/// Returns the fault of a caller that did not check its filter before.
pub(super) fn fault(wrong: &Invalid) -> Fault {
    Fault::Broken(wrong.to_string())
}

/// Returns a phrase for the encrypted values that a condition searches, if any.
fn encrypted_part(condition: &Condition) -> Option<&'static str> {
    match condition {
        Condition::Not(other) => encrypted_part(other),
        Condition::OneOf(some) => some.iter().find_map(encrypted_part),
        Condition::Arg { .. } => Some("args are encrypted"),
        Condition::FailureHolds(_) => Some("errors are encrypted"),
        Condition::State(_)
        | Condition::Queue(_)
        | Condition::QueueBegins(_)
        | Condition::Kind(_)
        | Condition::KindBegins(_)
        | Condition::KindHolds(_)
        | Condition::Own
        | Condition::Tag(_)
        | Condition::IdBegins(_)
        | Condition::HolderBegins(_)
        | Condition::Meta { .. }
        | Condition::Timer(_)
        | Condition::Attempt(_)
        | Condition::Priority(_)
        | Condition::Created(_)
        | Condition::Ended(_)
        | Condition::Took(_)
        | _ => None,
    }
}
