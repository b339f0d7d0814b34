//! Which jobs to ask for next: a pure function of what is free.

use std::collections::BTreeSet;

use tenure_core::Kind;
use tenure_store::{Chance, Kinds, Want};

use super::settings::{QueueOrder, Settings};

/// How many more jobs a worker can take now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Room {
    /// Of each queue, in the order of the settings.
    pub(crate) of_queue: Vec<usize>,
    /// In all.
    pub(crate) in_all: usize,
}

/// What to ask for, the queue to be served first at the front; empty if there is no room.
pub(crate) fn wants(settings: &Settings, kinds: &Kinds, room: &Room, chance: &Chance) -> Vec<Want> {
    if room.in_all == 0 {
        return Vec::new();
    }
    let with_room = (0..settings.queues.len()).filter(|index| room.of_queue[*index] > 0).collect();
    let order = match settings.order {
        QueueOrder::Strict => with_room,
        QueueOrder::Weighted => by_weight(settings, with_room, chance),
    };
    let want = |index: usize| Want {
        queue: settings.queues[index].name.clone(),
        kinds: kinds.clone(),
        at_most: room.of_queue[index].min(room.in_all),
    };
    order.into_iter().map(want).collect()
}

/// Which of these kinds are asked for while some are left to others; `None` if all are.
pub(crate) fn kinds_but(kinds: &Kinds, left: &BTreeSet<Kind>) -> Option<Kinds> {
    match kinds {
        Kinds::Only(known) if !left.is_empty() => {
            let asked: Vec<Kind> = known.iter().filter(|kind| !left.contains(kind)).cloned().collect();
            (!asked.is_empty()).then(|| Kinds::Only(asked.into()))
        }
        Kinds::Only(_) | Kinds::All => Some(kinds.clone()),
    }
}

/// Draws the queues one after the other, each with a chance in proportion to its weight.
fn by_weight(settings: &Settings, mut left: Vec<usize>, chance: &Chance) -> Vec<usize> {
    let mut order = Vec::with_capacity(left.len());
    while left.len() > 1 {
        let weights = left.iter().map(|index| u64::from(settings.queues[*index].weight));
        let mut drawn = chance.below(weights.clone().sum());
        let position = weights.into_iter().position(|weight| {
            let hit = drawn < weight;
            drawn = drawn.saturating_sub(weight);
            hit
        });
        order.push(left.remove(position.unwrap_or(0)));
    }
    order.append(&mut left);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(order: QueueOrder) -> Settings {
        let mut settings = Settings { order, ..Settings::default() };
        settings.queue("rare", 10, 1).unwrap();
        settings.queue("often", 10, 3).unwrap();
        settings
    }

    fn first(settings: &Settings, room: &Room, chance: &Chance) -> String {
        wants(settings, &Kinds::All, room, chance)
            .first()
            .map_or(String::new(), |want| want.queue.to_string())
    }

    #[test]
    fn strict_order_names_queues_as_they_were_given() {
        let settings = settings(QueueOrder::Strict);
        let room = Room { of_queue: vec![2, 5], in_all: 4 };
        let wants = wants(&settings, &Kinds::All, &room, &Chance::seeded(1));
        assert_eq!(wants.iter().map(|want| want.at_most).collect::<Vec<_>>(), [2, 4]);
        assert_eq!(wants[0].queue.as_str(), "rare");
    }

    #[test]
    fn weights_decide_how_often_a_queue_comes_first() {
        let (settings, chance) = (settings(QueueOrder::Weighted), Chance::seeded(7));
        let room = Room { of_queue: vec![1, 1], in_all: 1 };
        let often = (0..10_000).filter(|_| first(&settings, &room, &chance) == "often").count();
        assert!((7_300..7_700).contains(&often), "{often}");
    }

    #[test]
    fn a_full_queue_and_a_full_worker_ask_for_nothing() {
        let settings = settings(QueueOrder::Weighted);
        let chance = Chance::seeded(1);
        assert_eq!(first(&settings, &Room { of_queue: vec![0, 1], in_all: 1 }, &chance), "often");
        assert_eq!(first(&settings, &Room { of_queue: vec![1, 1], in_all: 0 }, &chance), "");
    }
}
