//! How somebody likes the pages: kept in cookies of the browser, and on no server.

use axum::http::HeaderMap;
use tenure::Timestamp;
use tenure::schedule::Zone;

use crate::visit::cookie;

/// Names of the cookies, and what stands in them until somebody says otherwise.
pub(crate) const THEME: &str = "tenure_theme";
pub(crate) const ZONE: &str = "tenure_zone";
pub(crate) const DENSITY: &str = "tenure_density";
pub(crate) const KEYS: &str = "tenure_keys";
pub(crate) const LIVE: &str = "tenure_live";

/// What the cookie of the zone says where times of schedules are those of their own clocks.
pub(crate) const BY_SCHEDULE: &str = "schedule";

pub(crate) const THEMES: [&str; 3] = ["system", "light", "dark"];
pub(crate) const DENSITIES: [&str; 2] = ["roomy", "dense"];
pub(crate) const SWITCH: [&str; 2] = ["on", "off"];

/// How somebody likes the pages.
#[derive(Debug, Clone)]
pub(crate) struct Likes {
    /// The colours: `system`, `light` or `dark`.
    pub theme: &'static str,
    /// By which clocks times are shown.
    pub zone: Zone,
    /// Whether times of a schedule are shown by its own clocks instead.
    pub by_schedule: bool,
    /// How much room there is: `roomy` or `dense`.
    pub density: &'static str,
    /// Whether single keys do something: `on` or `off`.
    pub keys: &'static str,
    /// Whether pages keep themselves up to date: `on` or `off`.
    pub live: &'static str,
}

impl Likes {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let one = |name: &str, allowed: &'static [&'static str]| {
            let said = cookie(headers, name).unwrap_or_default();
            among(&said, allowed)
        };
        let zone = cookie(headers, ZONE).unwrap_or_default();
        Self {
            theme: one(THEME, &THEMES),
            zone: Zone::named(&zone).unwrap_or_else(|_| Zone::utc()),
            by_schedule: zone == BY_SCHEDULE,
            density: one(DENSITY, &DENSITIES),
            keys: one(KEYS, &SWITCH),
            live: one(LIVE, &SWITCH),
        }
    }

    /// The clocks by which times of a schedule in this zone are shown.
    pub(crate) fn zone_of(&self, schedule: &str) -> Zone {
        let own = self.by_schedule.then(|| Zone::named(schedule).ok()).flatten();
        own.unwrap_or_else(|| self.zone.clone())
    }

    /// What is said of the clocks in a few words.
    pub(crate) fn clocks(&self) -> &str {
        if self.by_schedule { "each schedule's own time zone, elsewhere UTC" } else { self.zone.name() }
    }
}

/// The one that is said, or the usual one, which is the first.
pub(crate) fn among(said: &str, allowed: &'static [&'static str]) -> &'static str {
    allowed.iter().find(|one| **one == said).or(allowed.first()).copied().unwrap_or_default()
}

/// An instant to the second, by the clocks of a zone.
pub(crate) fn by_clock(zone: &Zone, at: &str) -> String {
    let Ok(instant) = at.parse::<Timestamp>() else { return at.to_owned() };
    format!("{} {}", wall(zone, instant), zone.name())
}

/// What the clocks of a zone show, to the second.
pub(crate) fn wall(zone: &Zone, at: Timestamp) -> String {
    zone.show(at).chars().take(19).map(|letter| if letter == 'T' { ' ' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn likes(cookies: &str) -> Likes {
        let mut headers = HeaderMap::new();
        headers.insert("cookie", cookies.parse().unwrap());
        Likes::of(&headers)
    }

    #[test]
    fn what_nobody_has_offered_is_as_if_nothing_were_said() {
        let odd = likes("tenure_theme=neon; tenure_zone=Mars/Olympus; tenure_keys=");
        assert_eq!((odd.theme, odd.zone.name(), odd.by_schedule, odd.keys), ("system", "UTC", false, "on"));
    }

    #[test]
    fn times_are_shown_by_the_clocks_that_somebody_likes() {
        let at = "2026-07-01T12:00:00Z";
        let there = likes("tenure_zone=Asia/Kolkata");
        assert_eq!(by_clock(&there.zone, at), "2026-07-01 17:30:00 Asia/Kolkata");
        assert_eq!(there.zone_of("Europe/Berlin").name(), "Asia/Kolkata");
        let own = likes("tenure_zone=schedule");
        assert_eq!(by_clock(&own.zone_of("Europe/Berlin"), at), "2026-07-01 14:00:00 Europe/Berlin");
        assert_eq!(own.zone.name(), "UTC");
    }
}
