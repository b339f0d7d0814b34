//! What will happen to one call, drawn from a seed.

use std::time::Duration;

use crate::Chance;

/// How a [`FaultyStore`](super::FaultyStore) misbehaves. Probabilities lie between 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Faults {
    /// The same seed and the same calls in the same order give the same faults.
    pub seed: u64,
    /// How likely a call is delayed, on its way there or on its way back.
    pub delay: f64,
    /// The longest delay.
    pub longest_delay: Duration,
    /// How likely a call fails before anything is done, and says so.
    pub fail: f64,
    /// How likely a request is lost: nothing is done, and the caller cannot know.
    pub drop_request: f64,
    /// How likely a reply is lost: all is done, and the caller cannot know.
    pub drop_reply: f64,
    /// So long every reply takes on its way back, besides.
    pub reply_takes: Duration,
}

impl Faults {
    /// No faults.
    #[must_use]
    pub fn none(seed: u64) -> Self {
        Self {
            seed,
            delay: 0.0,
            longest_delay: Duration::ZERO,
            fail: 0.0,
            drop_request: 0.0,
            drop_reply: 0.0,
            reply_takes: Duration::ZERO,
        }
    }

    /// Some of each: a bad network, but one that gets things done. One call in five is delayed by up
    /// to two seconds, and one in twenty meets each of the other faults.
    #[must_use]
    pub fn some(seed: u64) -> Self {
        let longest_delay = Duration::from_secs(2);
        let likely = 0.05;
        Self {
            delay: 0.2,
            longest_delay,
            fail: likely,
            drop_request: likely,
            drop_reply: likely,
            ..Self::none(seed)
        }
    }
}

/// What will happen to one call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Fate {
    /// How long its request takes.
    pub there: Duration,
    /// How long its reply takes.
    pub back: Duration,
    pub trouble: Option<Trouble>,
}

/// What goes wrong with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    Fails,
    RequestIsLost,
    ReplyIsLost,
}

impl Fate {
    /// The fate of the next call. Every call draws equally often, so that one fault more or less does
    /// not shift those of all later calls.
    pub fn draw(faults: &Faults, chance: &Chance) -> Self {
        let meets = |probability: f64| chance.fraction() < probability;
        let delayed = meets(faults.delay);
        let delay = faults.longest_delay.mul_f64(chance.fraction());
        let on_its_way_back = meets(0.5);
        let fails = meets(faults.fail);
        let request_is_lost = meets(faults.drop_request);
        let reply_is_lost = meets(faults.drop_reply);
        let (there, back) = match (delayed, on_its_way_back) {
            (false, _) => (Duration::ZERO, Duration::ZERO),
            (true, false) => (delay, Duration::ZERO),
            (true, true) => (Duration::ZERO, delay),
        };
        let trouble = fails
            .then_some(Trouble::Fails)
            .or(request_is_lost.then_some(Trouble::RequestIsLost))
            .or(reply_is_lost.then_some(Trouble::ReplyIsLost));
        Self { there, back: back + faults.reply_takes, trouble }
    }

    /// Whether it takes any time.
    pub fn is_delayed(&self) -> bool {
        !(self.there + self.back).is_zero()
    }
}
