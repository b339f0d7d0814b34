//! Fuzz targets of the domain: text and JSON that clients send.

mod schedules;
mod values;

use tenure_fuzz::Target;

fn target(name: &'static str) -> Target {
    Target::new(env!("CARGO_MANIFEST_DIR"), name)
}
