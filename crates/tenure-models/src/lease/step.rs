//! The steps of the leases' model.

use super::party::Pace;
use super::state::MOST_PARTIES;

/// The number of a party.
pub type Number = usize;

/// One thing that can happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A party asks for the name.
    Acquires(Number),
    /// A party that has watched for long enough asks for the name in spite of its holder.
    TakesOver(Number),
    /// A holder asks for more time.
    Renews(Number),
    /// A holder gives back.
    Releases(Number),
    /// A party that does not know what came of its acquisition gives it up.
    Leaves(Number),
    /// The request that a party waits for reaches the store.
    Arrives(Number),
    /// The network repeats that request.
    Repeats(Number),
    /// The request, or the answer to it, is lost, and the party gives up.
    Loses(Number),
    /// A party gives up while its request is still under way.
    GivesUp(Number),
    /// The answer reaches the party.
    Hears(Number),
    /// A request that nobody waits for reaches the store.
    LateArrives(Number, usize),
    /// A request that nobody waits for is lost.
    LateLost(Number, usize),
    /// A believer starts an effect of its work.
    Acts(Number),
    /// The effect reaches its resources.
    EffectArrives(Number),
    /// The effect is lost.
    EffectLost(Number),
    /// A party dies and starts again.
    Crashes(Number),
    /// A party looks at the row, to see later whether it has changed.
    Looks(Number),
    /// Somebody breaks the lease: within so many ticks, or at its end.
    Breaks(Option<u8>),
    /// Whoever tends the store puts on record that the lease has lapsed.
    Notices,
    /// The store's clock steps forward or back.
    ClockSteps {
        /// Whether forward.
        forward: bool,
    },
    /// A tick of the store's clock, and how the parties' clocks go meanwhile.
    Tick([Pace; MOST_PARTIES]),
}

/// What has to occur in a search, or it proves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probe {
    /// A name that was given back went to another party.
    HandedOver,
    /// A name went to another party because its holder was silent.
    TakenOver,
    /// That happened while a renewal of the earlier holder was under way.
    TakenOverDuringRenewal,
    /// A renewal came too late and was refused though nobody had come.
    LateRenewalRefused,
    /// A renewal was refused because somebody else had come.
    LostRenewalRefused,
    /// The store refused an effect of an earlier holder.
    StaleEffectRefused,
    /// The resource outside refused an effect of an earlier holder.
    StaleEffectRefusedOutside,
    /// A holder that had lost the reply asked again and learned of its grant.
    LearnsOfItsGrant,
    /// An answer came when its deadline was over.
    AnswerTooLate,
    /// A request that nobody waited for made the store grant the name.
    GhostGranted,
    /// A party gave up an acquisition that it had been granted without knowing.
    LeftWhatItHad,
    /// A release of an earlier ownership was refused.
    StaleReleaseRefused,
    /// A holder believed to its last tick though its clock was slow.
    SlowBeliever,
    /// A holder went on believing while its lease was broken.
    BelievesThoughBroken,
    /// A renewal was refused because the lease was being broken.
    BrokenRenewalRefused,
    /// Somebody who had watched took over.
    WatcherTookOver,
    /// Somebody who had watched came too late: the holder had renewed.
    WatcherRefused,
    /// Two believed at once because the store's clock stepped.
    TwoBelieversByClock,
}

impl Probe {
    /// All.
    pub const ALL: [Self; 18] = [
        Self::HandedOver,
        Self::TakenOver,
        Self::TakenOverDuringRenewal,
        Self::LateRenewalRefused,
        Self::LostRenewalRefused,
        Self::StaleEffectRefused,
        Self::StaleEffectRefusedOutside,
        Self::LearnsOfItsGrant,
        Self::AnswerTooLate,
        Self::GhostGranted,
        Self::LeftWhatItHad,
        Self::StaleReleaseRefused,
        Self::SlowBeliever,
        Self::BelievesThoughBroken,
        Self::BrokenRenewalRefused,
        Self::WatcherTookOver,
        Self::WatcherRefused,
        Self::TwoBelieversByClock,
    ];
}
