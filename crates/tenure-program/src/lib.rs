//! Running one program well: told how to begin, heard while it runs, stopped when it has to stop, and nothing of it left behind.
//!
//! Each program runs below a *supervisor*, a small process of our own between the host and the program. It adopts whatever the
//! program leaves behind, ends all of it when the program has ended, and sees the host die: then it ends everything at once. So
//! a host may be killed without leaving anybody behind. The supervisor is the host's own binary, started anew; its `main` hands
//! itself over to [`entered`] first of all.
//!
//! A host that stands still cannot stop its program. A program with a [`Deadline`] is killed by its supervisor unless the
//! host extends it in time ([`Reins::extend`]).
//!
//! Host and supervisor may be killed together. What is left then is ended by the next host: [`end_orphans`].
//!
//! On Linux that holds for whatever a program starts, also in what leaves it by `setsid`. On other systems what leaves the
//! program's process group is out of reach.

mod begin;
mod deadline;
mod end;
#[cfg(test)]
mod fuzz;
mod inherited;
mod kept;
mod launch;
mod limits;
mod lines;
mod orphans;
mod progress;
mod removal;
mod rights;
mod running;
mod sandbox;
mod supervisor;
mod tree;

pub use begin::{Input, Output, Program, StartError};
pub use deadline::Deadline;
pub use end::{End, Usage};
pub use inherited::Inherited;
pub use kept::Kept;
pub use limits::Limits;
pub use lines::{LINE_BYTES, Line, Source};
pub use orphans::end_orphans;
pub use progress::Progress;
pub use removal::{ScratchFolder, remove_folder};
pub use rights::{Rights, hide_this_process};
pub use running::{Event, Notice, Reins, Running, TooLarge};
pub use sandbox::{Account, Confinement, Enforcement, GroupLimits, Groups, Sandbox, real_path, support};
pub use supervisor::entered;
