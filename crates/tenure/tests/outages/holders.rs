//! Those who hold leases and write under them: orderly ones, one that falls silent, and a singleton.

use std::sync::Arc;
use std::time::Duration;

use tenure::{Clock, Duty, Failed, Fence, Holder, LeaseId, LeaseName, Singleton, SystemClock, Ttl};
use tenure_core::{LeaseAct, LeaseOutcome};
use tenure_store::{LeaseWish, Moment};

use super::MOMENT;
use super::history::{Call, Grant, Write};
use super::host::Program;

const NAMES: u64 = 3;
const LEASE: Duration = Duration::from_secs(2);
/// The longest turn of an orderly holder.
const TURN: u64 = 400;

/// An ownership, in the hands of somebody who may have lost it.
struct Owned {
    name: LeaseName,
    id: LeaseId,
    fence: Fence,
    place: usize,
}

impl Program {
    fn some_name(&self) -> LeaseName {
        LeaseName::new(&format!("pen {}", self.chance.below(NAMES))).unwrap()
    }

    fn owns(
        &self,
        name: &LeaseName,
        id: LeaseId,
        fence: Fence,
        call: Call,
        believed: Option<Moment>,
    ) -> Owned {
        let (what, holder) = (name.as_str().to_owned(), id.to_string());
        let place = self.book.granted(Grant { what, fence, holder, call, believed });
        Owned { name: name.clone(), id, fence, place }
    }

    /// Writes without asking itself whether it still may.
    async fn write(&self, owned: &Owned) {
        let asked = self.now();
        if self.effects.write(&self.tenure, &owned.name, owned.id, owned.fence).await.is_ok() {
            let what = owned.name.as_str().to_owned();
            let write = Write { what, fence: owned.fence, call: self.since(asked) };
            self.book.open().writes.push(write);
        }
    }
}

/// Holds one lease after another, writes under it, gives it back, and writes once more.
pub async fn hold(program: Arc<Program>) {
    while !program.stop.is_cancelled() {
        let (name, asked) = (program.some_name(), program.now());
        let wanted = program.tenure.leases().hold(name.as_str()).ttl(LEASE).within(LEASE);
        let Ok(held) = wanted.await else {
            SystemClock.sleep(MOMENT).await;
            continue;
        };
        let owned = program.owns(&name, held.id(), held.fence(), program.since(asked), None);
        let enough = program.now().after(Duration::from_millis(program.chance.below(TURN)));
        loop {
            let at = program.now();
            if !held.is_held() || at > enough {
                break;
            }
            program.book.believes(owned.place, at);
            program.write(&owned).await;
            SystemClock.sleep(MOMENT).await;
        }
        // Whether that was heard of or not.
        drop(held.release().await);
        SystemClock.sleep(MOMENT).await;
        program.write(&owned).await;
    }
}

/// Takes one lease after another, renews none and gives none back, and goes on writing when its time is over.
pub async fn fall_silent(program: Arc<Program>) {
    for number in 0.. {
        if program.stop.is_cancelled() {
            return;
        }
        let (name, asked) = (program.some_name(), program.now());
        let (id, by) = (LeaseId::new([program.chance.bits(), number]), Holder::named(&program.name));
        let act = LeaseAct::Acquire { id, by, ttl: Ttl::new(LEASE).unwrap(), wait: None };
        let outcomes = program.tenure.store().lease(vec![LeaseWish { name: name.clone(), act }]).await;
        let Ok([LeaseOutcome::Granted { fence, .. }]) = outcomes.as_deref() else {
            SystemClock.sleep(Duration::from_millis(50)).await;
            continue;
        };
        let over = asked.after(LEASE);
        let owned = program.owns(&name, id, *fence, program.since(asked), Some(over));
        while program.now() < over.after(LEASE / 2) && !program.stop.is_cancelled() {
            program.write(&owned).await;
            SystemClock.sleep(MOMENT * 4).await;
        }
    }
}

pub fn scribe_alone() -> Singleton {
    Singleton::function().lease(LEASE)
}

/// The only one of its fleet, for a while.
pub async fn scribe(duty: Duty<Arc<Program>>) -> Result<(), Failed> {
    let (program, pass, at) = (duty.app(), duty.pass(), duty.app().now());
    // When it was asked for is not known here. Who believes in it as it begins could as well have asked just then.
    let asked = if pass.is_held() { at } else { Moment::from_start(Duration::ZERO) };
    let call = Call { asked, heard: at };
    let owned = program.owns(pass.name(), pass.id(), pass.fence(), call, None);
    for _ in 0..program.chance.below(40) {
        let at = program.now();
        if pass.is_held() {
            program.book.believes(owned.place, at);
        }
        program.write(&owned).await;
        if duty.sleep(MOMENT).await.is_err() {
            break;
        }
    }
    Ok(())
}
