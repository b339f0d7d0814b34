//! Identities: of jobs and of hosts.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Invalid, Name, Origin, Timestamp};

/// Identifies a job: a UUID. It has version 7 unless the user chose another, and version 8 if Tenure
/// [derived](JobId::derived) it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobId(Uuid);

/// Identifies a host: one running program that uses the store. It is generated at start and never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HostId(Uuid);

impl JobId {
    /// A version 7 id for this instant and this chance.
    #[must_use]
    pub fn new(now: Timestamp, chance: u64) -> Self {
        Self(version_7(now, chance))
    }

    /// Returns the ID that a program derives from these bytes: always the same one, of version 8. Clients cannot choose
    /// such an ID, so no client's job can take it.
    #[must_use]
    pub fn derived(bytes: [u8; 16]) -> Self {
        Self(uuid::Builder::from_custom_bytes(bytes).into_uuid())
    }

    /// Returns `true` if the ID has version 8, which is reserved for [derived](Self::derived) IDs.
    #[must_use]
    pub fn is_derived(&self) -> bool {
        self.0.get_version_num() == 8
    }

    /// Accepts an ID that a client chose, and names `field` if it refuses the ID.
    ///
    /// # Errors
    /// Refuses derived IDs.
    pub fn chosen(self, field: &str) -> Result<Self, Invalid> {
        if self.is_derived() {
            let allowed = "a UUID of another version, such as 4 or 7; version 8 is reserved";
            return Err(Invalid::new(field, self, allowed));
        }
        Ok(self)
    }

    /// Returns the ID of the job for a slot of a timer, which is the same on every host and sorts by the slot's time.
    #[must_use]
    pub fn of_slot(timer: &Name, at: Timestamp, origin: Origin) -> Self {
        Self::derived(*slot_before_version_8(timer, at, origin).as_bytes())
    }

    /// Returns the ID that the job of a slot had before derived IDs got a version of their own. Run history that was
    /// recorded then refers to it.
    #[must_use]
    pub fn of_slot_before_version_8(timer: &Name, at: Timestamp, origin: Origin) -> Self {
        Self(slot_before_version_8(timer, at, origin))
    }

    /// The id that is stored as these bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }

    /// The sixteen bytes of this id.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    /// When this id was made, if it tells (version 7 does).
    #[must_use]
    pub fn made_at(&self) -> Option<Timestamp> {
        if self.0.get_version_num() != 7 {
            return None;
        }
        let bytes = self.0.as_bytes();
        let millis = bytes[..6].iter().fold(0_i64, |sum, byte| sum << 8 | i64::from(*byte));
        Timestamp::from_micros(millis.checked_mul(1000)?).ok()
    }
}

impl HostId {
    /// A host id for this instant and this chance.
    #[must_use]
    pub fn new(now: Timestamp, chance: u64) -> Self {
        Self(version_7(now, chance))
    }

    /// The instant of which it tells: when it was drawn, by the clock of that host, to the millisecond. What is finer is
    /// drawn by chance, so that hardly two of them tell of the same instant.
    #[must_use]
    pub fn drawn_at(&self) -> Timestamp {
        let bytes = self.0.as_bytes();
        let millis = bytes[..6].iter().fold(0_i64, |sum, byte| sum << 8 | i64::from(*byte));
        let finer = bytes[8..].iter().fold(0_i64, |sum, byte| (sum << 8 | i64::from(*byte)) % 1000);
        Timestamp::from_micros(millis * 1000 + finer).unwrap_or(Timestamp::LAST)
    }

    /// The id that is stored as these bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }

    /// The sixteen bytes of this id.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }
}

impl From<Uuid> for JobId {
    fn from(id: Uuid) -> Self {
        Self(id)
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for HostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for JobId {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        parse("job id", text).map(Self)
    }
}

impl FromStr for HostId {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        parse("host id", text).map(Self)
    }
}

/// Gives ids that only grow: each at least a microsecond after the last, so that a store's index of
/// ids is written at its end only.
#[derive(Debug, Default)]
pub struct IdSequence {
    last_micros: i64,
}

impl IdSequence {
    /// The next id, not before `now`.
    pub fn next(&mut self, now: Timestamp, chance: u64) -> JobId {
        let micros = now.as_micros().max(self.last_micros.saturating_add(1));
        self.last_micros = micros;
        JobId::new(Timestamp::from_micros(micros).unwrap_or(Timestamp::LAST), chance)
    }
}

fn parse(field: &str, text: &str) -> Result<Uuid, Invalid> {
    Uuid::try_parse(text).map_err(|_| {
        let shown = crate::invalid::cut(text, 64);
        Invalid::new(field, format_args!("{shown:?}"), "a UUID such as 0190f5c2-7b1e-7c3a-9f02-6a2d8c4e5b10")
    })
}

/// Milliseconds in the first 48 bits, microseconds within the millisecond in the next 12 (RFC 9562,
/// method 3), chance in the rest.
fn version_7(now: Timestamp, chance: u64) -> Uuid {
    let micros = now.as_micros().unsigned_abs();
    let (millis, within) = (micros / 1000, micros % 1000);
    let mut bytes = [0_u8; 16];
    bytes[..6].copy_from_slice(&millis.to_be_bytes()[2..]);
    let fraction = u16::try_from(within * 4096 / 1000).unwrap_or(0);
    bytes[6..8].copy_from_slice(&(0x7000 | fraction).to_be_bytes());
    bytes[8..].copy_from_slice(&(chance & !(0b11 << 62) | 0b10 << 62).to_be_bytes());
    Uuid::from_bytes(bytes)
}

/// The layout of version 7, so that it sorts by the time of its slot; chance is what the names amount to.
fn slot_before_version_8(timer: &Name, at: Timestamp, origin: Origin) -> Uuid {
    let from: &[u8] = match origin {
        Origin::Schedule => b"/s",
        Origin::Start => b"/i",
        Origin::Trigger => b"/t",
        Origin::Backfill => b"/b",
    };
    let bytes = timer.as_str().bytes().chain(from.iter().copied());
    version_7(at, spread(bytes))
}

/// A number that changes all over with each byte (FNV-1a, then the last steps of SplitMix64).
fn spread(bytes: impl Iterator<Item = u8>) -> u64 {
    let sum = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let mixed = (sum ^ sum >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_job_of_a_slot_has_one_id_and_no_other_has_it() {
        let slot: Timestamp = "2026-03-29T00:30:00Z".parse().unwrap();
        let mut seen = std::collections::BTreeSet::new();
        for number in 0..100_000 {
            let timer = Name::new("timer", &format!("timer-{number}")).unwrap();
            let id = JobId::of_slot(&timer, slot, Origin::Schedule);
            assert_eq!(id, JobId::of_slot(&timer, slot, Origin::Schedule));
            assert!(id.is_derived() && id.made_at().is_none());
            assert!(seen.insert(id) && seen.insert(JobId::of_slot(&timer, slot, Origin::Backfill)));
        }
    }

    #[test]
    fn ids_of_slots_sort_by_time_and_keep_their_layout_of_before() {
        let timer = Name::new("timer", "backup").unwrap();
        let [one, next] = ["2026-03-29T00:30:00Z", "2026-03-29T00:30:00.001Z"].map(|at| at.parse().unwrap());
        let (id, later) =
            (JobId::of_slot(&timer, one, Origin::Schedule), JobId::of_slot(&timer, next, Origin::Schedule));
        assert!(id < later);
        let before = JobId::of_slot_before_version_8(&timer, one, Origin::Schedule);
        assert_eq!(before.made_at(), Some(one));
        assert_eq!(id.to_string(), before.to_string().replacen("-7", "-8", 1));
        // Histories on disk refer to it.
        assert_eq!(before.to_string(), "019d36ff-6340-7000-a61a-adf0faad524b");
    }

    #[test]
    fn a_client_may_choose_ids_of_all_versions_but_the_derived_one() {
        let chosen = |version: u8| {
            let mut bytes = [0xff; 16];
            bytes[6] = version << 4;
            JobId::from_bytes(bytes).chosen("id")
        };
        assert!((0..16).filter(|version| *version != 8).all(|version| chosen(version).is_ok()));
        let refused = chosen(8).unwrap_err().to_string();
        assert!(refused.starts_with("id: ffffffff-ffff-80ff-"), "{refused}");
        assert!(refused.contains("version 8 is reserved"), "{refused}");
    }

    #[test]
    fn an_id_tells_its_version_variant_and_time() {
        let now: Timestamp = "2026-03-29T00:30:00.123456Z".parse().unwrap();
        let id = JobId::new(now, u64::MAX);
        assert_eq!(id.0.get_version_num(), 7);
        assert_eq!(id.0.get_variant(), uuid::Variant::RFC4122);
        assert_eq!(id.made_at().unwrap().to_string(), "2026-03-29T00:30:00.123000Z");
        assert_eq!(id.to_string().parse::<JobId>().unwrap(), id);
    }

    #[test]
    fn hosts_that_start_within_one_millisecond_tell_of_instants_of_their_own() {
        let now: Timestamp = "2026-03-29T00:30:00.123456Z".parse().unwrap();
        let told = |chance: u64| HostId::new(now, chance.wrapping_mul(0x9E37_79B9_7F4A_7C15)).drawn_at();
        let all: std::collections::BTreeSet<Timestamp> = (0..20).map(told).collect();
        assert!(all.len() > 15, "{all:?}");
        assert!(all.iter().all(|at| at.to_string().starts_with("2026-03-29T00:30:00.123")), "{all:?}");
        assert_eq!(HostId::from_bytes([255; 16]).drawn_at(), Timestamp::LAST);
    }

    #[test]
    fn ids_of_one_sequence_only_grow_even_if_the_clock_steps_back() {
        let mut ids = IdSequence::default();
        let start = Timestamp::from_micros(1_000_000_000_000).unwrap();
        let mut last = ids.next(start, 0);
        for step in 0..10_000_u64 {
            let now = if step % 3 == 0 { Timestamp::EPOCH } else { start };
            let id = ids.next(now, u64::MAX - step);
            assert!(id > last, "step {step}");
            last = id;
        }
    }

    #[test]
    fn a_bad_id_is_refused_with_an_example() {
        let complaint = "job-7".parse::<JobId>().unwrap_err();
        assert_eq!(complaint.field, "job id");
        assert!(complaint.allowed.contains("UUID"));
    }
}
