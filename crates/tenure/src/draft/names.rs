//! The names of a draft. Most jobs are of the same kind and queue as the one before: its names serve again.

use std::cell::RefCell;

use tenure_core::{Invalid, Kind, QueueName};

thread_local! {
    static KIND: RefCell<Option<Kind>> = const { RefCell::new(None) };
    static QUEUE: RefCell<Option<QueueName>> = const { RefCell::new(None) };
}

pub(super) fn kind(text: &str) -> Result<Kind, Invalid> {
    KIND.with_borrow_mut(|last| match last {
        Some(kind) if kind.as_str() == text => Ok(kind.clone()),
        _ => Kind::new(text).inspect(|kind| *last = Some(kind.clone())),
    })
}

pub(super) fn queue(text: &str) -> Result<QueueName, Invalid> {
    QUEUE.with_borrow_mut(|last| match last {
        Some(queue) if queue.as_str() == text => Ok(queue.clone()),
        _ => QueueName::new(text).inspect(|queue| *last = Some(queue.clone())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_that_which_was_asked_for_whatever_was_before() {
        for text in ["one", "one", "other", "one"] {
            assert_eq!(kind(text), Kind::new(text));
            assert_eq!(queue(text), QueueName::new(text));
        }
        for wrong in ["", "a b"] {
            assert_eq!(kind(wrong), Kind::new(wrong));
            assert_eq!(queue(wrong), QueueName::new(wrong));
            assert_eq!(kind("one"), Kind::new("one"));
        }
    }
}
