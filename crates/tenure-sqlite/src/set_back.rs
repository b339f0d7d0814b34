//! A clock that was put back, as the writer notices it.

use tenure_core::Timestamp;

/// What the writer knows of the clock. Limits say when time makes room in them; if the clock is put back, those
/// instants are further away than any rate says, and each limit that blocks jobs has to be looked at again.
#[derive(Debug, Default)]
pub(crate) struct SetBack {
    /// When it was looked at last; the writer before this one may have gone by a clock that was ahead.
    looked: Option<Timestamp>,
    /// The last limit that was looked at again; `None` if there are no more to look at.
    behind: Option<i64>,
}

impl SetBack {
    /// Whether there are limits to look at again.
    pub(crate) fn is_noticed(&mut self, now: Timestamp) -> bool {
        if self.looked.replace(now).is_none_or(|looked| now < looked) {
            self.behind = Some(0);
        }
        self.behind.is_some()
    }

    /// Whether some of them are left for the next turn.
    pub(crate) fn is_unfinished(&self) -> bool {
        self.behind.is_some()
    }

    /// Behind which limit to go on.
    pub(crate) fn behind(&self) -> i64 {
        self.behind.unwrap_or(0)
    }

    /// Those up to this limit have been looked at, or all.
    pub(crate) fn looked_behind(&mut self, last: Option<i64>) {
        self.behind = last;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_noticed_at_the_first_look_and_whenever_time_goes_back() {
        let at = |seconds| Timestamp::EPOCH.after(std::time::Duration::from_secs(seconds));
        let mut set_back = SetBack::default();
        assert!(set_back.is_noticed(at(5)));
        set_back.looked_behind(Some(7));
        assert!(set_back.is_noticed(at(6)) && set_back.behind() == 7);
        set_back.looked_behind(None);
        assert!(!set_back.is_noticed(at(6)));
        assert!(set_back.is_noticed(at(4)) && set_back.behind() == 0);
    }
}
