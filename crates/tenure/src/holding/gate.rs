//! Keeping late holders away from what is outside of the store.

use std::sync::{Mutex, PoisonError};

use tenure_core::Fence;

/// A gate before something outside of the store: it remembers the greatest fence that it has seen and
/// refuses smaller ones.
///
/// A holder that was suspended past its lease wakes up in the middle of a line of code and goes on. No
/// look at a clock stops it; only the resource itself can, by keeping the greatest fence it has seen:
///
/// ```
/// use tenure::{Fence, FenceGate};
///
/// let gate = FenceGate::default();
/// let (late, present) = (Fence::from_number(1), Fence::from_number(2));
/// gate.admit(present)?;
/// gate.admit(present)?;                       // as often as it likes
/// assert_eq!(gate.admit(late).unwrap_err().greatest, present);
/// # Ok::<(), tenure::Stale>(())
/// ```
///
/// Where the resource is a program of its own, the fence travels with the request, over HTTP as the header
/// [`FENCE_HEADER`]; where it is a database, the gate is a column, and one condition in the statement that
/// writes: `UPDATE shelf SET goods = $1, fence = $2 WHERE id = $3 AND fence <= $2`. No row changed means
/// that the writer came too late.
#[derive(Debug, Default)]
pub struct FenceGate {
    greatest: Mutex<Fence>,
}

/// The header in which a fence travels to a resource that is reached over HTTP.
pub const FENCE_HEADER: &str = "X-Fencing-Token";

/// A write came under a fence that is older than one that was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("fence {found} comes too late: fence {greatest} was seen")]
pub struct Stale {
    /// The fence of the write.
    pub found: Fence,
    /// The greatest that was seen.
    pub greatest: Fence,
}

impl FenceGate {
    /// A gate that has seen this fence, as it was kept with the resource.
    #[must_use]
    pub fn new(greatest: Fence) -> Self {
        Self { greatest: Mutex::new(greatest) }
    }

    /// Lets a write pass if no greater fence was seen, and remembers its fence.
    ///
    /// Only for a resource that one thread at a time writes: between this and the write another may come
    /// with a greater fence. Otherwise [`FenceGate::write`].
    ///
    /// # Errors
    /// [`Stale`] if the write comes too late.
    pub fn admit(&self, fence: Fence) -> Result<(), Stale> {
        self.write(fence, || ())
    }

    /// Does a write if no greater fence was seen. No other passes the gate before it is done.
    ///
    /// # Errors
    /// [`Stale`] if it comes too late; then it is not done.
    pub fn write<T>(&self, fence: Fence, write: impl FnOnce() -> T) -> Result<T, Stale> {
        let mut greatest = self.greatest.lock().unwrap_or_else(PoisonError::into_inner);
        if fence < *greatest {
            return Err(Stale { found: fence, greatest: *greatest });
        }
        *greatest = fence;
        Ok(write())
    }

    /// The greatest fence that was seen, to be kept with the resource.
    #[must_use]
    pub fn greatest(&self) -> Fence {
        *self.greatest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_panics_has_still_shown_its_fence() {
        let gate = FenceGate::default();
        let write = || gate.write(Fence::from_number(7), || panic!("the disk is full"));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(write)).is_err());
        assert_eq!(gate.greatest(), Fence::from_number(7));
        assert!(gate.admit(Fence::from_number(6)).is_err());
        assert_eq!(gate.write(Fence::from_number(7), || "done"), Ok("done"));
    }
}
