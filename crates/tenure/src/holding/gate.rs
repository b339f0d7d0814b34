//! Keeping late holders away from what is outside of the store.

use std::sync::{Mutex, PoisonError};

use tenure_core::Fence;

/// A guard for a resource outside the store: it accepts a write only if no greater fencing token was seen before.
///
/// A holder that is suspended past the end of its lease continues in the middle of a line of code. No check of a
/// clock can stop it. Only the resource can, by remembering the greatest fencing token:
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
/// If the resource is another program, send the fence along with the request, over HTTP in the header
/// [`FENCE_HEADER`]. If it is a database, store the fence in a column and add one condition to the statement: `UPDATE
/// shelf SET goods = $1, fence = $2 WHERE id = $3 AND fence <= $2`. If no row changes, the writer came too late.
#[derive(Debug, Default)]
pub struct FenceGate {
    greatest: Mutex<Fence>,
}

/// The HTTP header that carries a fencing token to a resource.
pub const FENCE_HEADER: &str = "X-Fencing-Token";

/// A write was rejected because its fencing token is older than one already seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("stale fencing token {found}; a write with {greatest} was already accepted")]
pub struct Stale {
    /// The fence of the write.
    pub found: Fence,
    /// The greatest fence seen.
    pub greatest: Fence,
}

impl FenceGate {
    /// Creates a gate from the greatest fence that was stored with the resource.
    #[must_use]
    pub fn new(greatest: Fence) -> Self {
        Self { greatest: Mutex::new(greatest) }
    }

    /// Accepts a write if no greater fence was seen, and remembers its fence.
    ///
    /// Use it only if one thread at a time writes to the resource. Otherwise a write with a greater fence can come
    /// between this call and yours; use [`FenceGate::write`] then.
    ///
    /// # Errors
    /// [`Stale`] if the write comes too late.
    pub fn admit(&self, fence: Fence) -> Result<(), Stale> {
        self.write(fence, || ())
    }

    /// Runs a write if no greater fence was seen. No other write passes the gate until it is done.
    ///
    /// # Errors
    /// [`Stale`] if the write comes too late; it is not run then.
    pub fn write<T>(&self, fence: Fence, write: impl FnOnce() -> T) -> Result<T, Stale> {
        let mut greatest = self.greatest.lock().unwrap_or_else(PoisonError::into_inner);
        if fence < *greatest {
            return Err(Stale { found: fence, greatest: *greatest });
        }
        *greatest = fence;
        Ok(write())
    }

    /// Returns the greatest fence seen, for storing with the resource.
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
