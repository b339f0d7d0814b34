//! The place of a record of slots among all, as text for whoever goes on behind it.

use std::str::FromStr;

use tenure::{Invalid, Name, Origin, SlotCursor, Timestamp};

use crate::wire::origin;

/// The place of a record.
pub(crate) struct Place(pub SlotCursor);

const ORIGINS: [Origin; 4] = [Origin::Schedule, Origin::Start, Origin::Trigger, Origin::Backfill];

/// As text: nothing to be understood by anybody else.
pub(crate) fn text(cursor: &SlotCursor) -> String {
    format!("{}.{}.{}", cursor.slot.as_micros(), origin(cursor.origin), cursor.timer)
}

impl FromStr for Place {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let read = || {
            let mut parts = text.splitn(3, '.');
            let slot = Timestamp::from_micros(parts.next()?.parse().ok()?).ok()?;
            let from = parts.next()?;
            let origin = ORIGINS.into_iter().find(|one| origin(*one) == from)?;
            Some(Self(SlotCursor { slot, timer: Name::new("cursor", parts.next()?).ok()?, origin }))
        };
        read().ok_or_else(|| Invalid::new("cursor", "invalid value", "a cursor of an earlier page"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_is_written() {
        for origin in ORIGINS {
            let timer = Name::new("timer", "a.b-1").unwrap();
            let cursor = SlotCursor { slot: Timestamp::from_micros(7).unwrap(), timer, origin };
            assert_eq!(text(&cursor).parse::<Place>().unwrap().0, cursor);
        }
        for bad in ["", "7", "7.schedule", "7.noon.a", "x.schedule.a", "7.schedule.a b", "-1.schedule.a"] {
            assert!(bad.parse::<Place>().is_err(), "{bad}");
        }
    }
}
