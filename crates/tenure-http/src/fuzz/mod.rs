//! Fuzz targets of the HTTP API: whole requests, headers, cursors, tokens and texts with secrets.

mod cursors;
mod headers;
mod hidden;
mod requests;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use tenure_fuzz::Target;

/// Returns a target of this crate.
pub(crate) fn target(name: &'static str) -> Target {
    Target::new(env!("CARGO_MANIFEST_DIR"), name)
}

/// Reads `name: value` lines. Lines that are no header are skipped, as they never reach the routes.
pub(crate) fn header_map<'t>(lines: impl Iterator<Item = &'t str>) -> HeaderMap {
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.parse::<HeaderName>().ok()?, HeaderValue::from_bytes(value.trim().as_bytes()).ok()?))
    };
    let mut headers = HeaderMap::new();
    for (name, value) in lines.filter_map(header).take(100) {
        headers.append(name, value);
    }
    headers
}
