//! Something outside of the store that leases guard: it takes a write only from the present owner.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{Access, Fence, LeaseId, LeaseName, may_use};
use tenure_store::Clock;

use crate::history::{What, Who};
use crate::world::World;

/// A write that names the ownership under which it is made.
#[derive(Debug, Clone)]
pub(crate) struct Write {
    pub(crate) name: LeaseName,
    pub(crate) id: LeaseId,
    pub(crate) fence: Fence,
}

/// Sends a write. It arrives after a while, whatever becomes of its sender meanwhile.
pub(crate) fn send(world: &Arc<World>, who: Who, write: Write, under_way: Duration) {
    let world = Arc::clone(world);
    tokio::spawn(async move {
        world.time.sleep(under_way).await;
        arrive(&world, who, write).await;
    });
}

/// The look at the lease and the write are one: nothing else happens in between.
async fn arrive(world: &World, who: Who, Write { name, id, fence }: Write) {
    let Ok(info) = world.store.lease_info(&name).await else { return };
    let now = world.store_clock_now();
    let taken = info.is_some_and(|info| may_use(&info.lease, Access::Write, Some((id, fence)), now).is_ok());
    world.book.note(who, What::Effect { name, id, fence, taken });
}
