//! The steps of a job's model.

use super::row::Saying;

/// The number of a host.
pub type Number = usize;

/// One thing that can happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A host asks for a job.
    Reserves(Number),
    /// A holder asks for more time.
    Renews(Number),
    /// A handler has ended so, and its host sends the settlement; or sends it again.
    Settles(Number, Saying),
    /// The request that a host waits for reaches the store.
    Arrives(Number),
    /// The network repeats that request.
    Repeats(Number),
    /// The request, or the answer to it, is lost, and the host gives up.
    Loses(Number),
    /// A host gives up while its request is still under way.
    GivesUp(Number),
    /// The answer reaches the host.
    Hears(Number),
    /// A request that nobody waits for reaches the store.
    LateArrives(Number),
    /// A request that nobody waits for is lost.
    LateLost(Number),
    /// A handler starts an effect.
    Acts(Number),
    /// The effect reaches the store.
    EffectArrives(Number),
    /// The effect is lost.
    EffectLost(Number),
    /// A host dies and starts again.
    Crashes(Number),
    /// Whoever tends the store looks for holders that are silent or do not stop.
    Notices,
    /// What was decided by looking is written, whatever happened since: only where that is the bug.
    WritesHearsay,
    /// Somebody wants the job to stop.
    Cancels,
    /// Somebody wants the job to be done again.
    Redoes,
    /// A tick of the store's clock.
    Tick,
}

/// What has to occur in a search, or it proves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probe {
    /// A silent holder was noticed.
    Noticed,
    /// A job was done by another host after its holder had fallen silent.
    DoneByAnother,
    /// The settlement of an earlier holder was refused.
    SettlementFenced,
    /// A settlement came after the lease, before anybody had noticed, and counted.
    LateSettlementCounted,
    /// A settlement came again.
    SettlementRepeated,
    /// An effect of an earlier holder was refused.
    StaleEffectRefused,
    /// A renewal of an earlier holder was refused.
    StaleRenewalRefused,
    /// A renewal came too late.
    LapsedRenewalRefused,
    /// A host that waited for nothing was granted the job.
    GhostGranted,
    /// A waiting job was cancelled.
    CancelledWaiting,
    /// A job was taken from a holder that did not stop.
    TakenFromTheDeaf,
    /// A holder heard that it is to stop.
    ToldToStop,
    /// A job succeeded though somebody had cancelled it.
    DoneThoughCancelled,
    /// A job failed because its holders fell silent too often.
    SilentTooOften,
    /// A job failed because it was granted too often.
    GrantedTooOften,
    /// A job was done again.
    DoneAgain,
}
