//! How many files this program may have open: each connection is one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Lets this program have as many files open as its system allows it to allow itself: what is usual is too little for a
/// server.
pub(crate) fn allow_many() {
    let limits = getrlimit(Resource::Nofile);
    // Whoever may not have more gets along with what he has.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limits.maximum, maximum: limits.maximum });
}
