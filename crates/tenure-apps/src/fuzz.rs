//! Fuzz target of the settings of a program.

use serde_json::{Map, Value};
use tenure_fuzz::Target;

use crate::app::Sort;
use crate::settings::Settings;

#[test]
fn settings_of_a_program_are_read_or_named() {
    let words = &[
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"schedule\":\"0 */5 * * * *\"",
        "\"is_singleton\":true",
        "\"stopping_wait_time\":",
        "60",
        "\"time_zone\":\"Europe/Berlin\"",
        "\"overlap\":",
        "\"catch_up\":",
        "\"all\"",
        "\"attempts\":",
        "\"permanent_codes\":[1]",
        "\"env\":{\"A\":\"b\"}",
        "\"env_from\":[\"PATH\"]",
        "\"limits\":{",
        "\"memory\":",
        "\"arguments\":[\"a\"]",
        "-1",
        "1e3",
        "null",
        "\\u0000",
    ];
    Target::new(env!("CARGO_MANIFEST_DIR"), "app_settings").words(words).check_text(|text| {
        let Ok(said) = serde_json::from_str::<Map<String, Value>>(text) else {
            return "no object".to_owned();
        };
        let mut outcome = String::new();
        for sort in [Sort::Triggered, Sort::Continuous] {
            let (mut wrong, mut notes) = (Vec::new(), Vec::new());
            let settings = Settings::of(sort, &said, &mut wrong, &mut notes);
            assert!(settings.at_once() >= 1 || !wrong.is_empty(), "{said:?}");
            assert!(notes.len() <= said.len());
            let has_nul = settings.arguments.iter().any(|word| word.contains('\0'))
                || settings.env.iter().any(|(name, value)| name.contains('\0') || value.contains('\0'));
            assert!(!has_nul || !wrong.is_empty(), "the system refuses NUL characters");
            outcome += &format!("{:?} {} ", wrong.first(), notes.len());
        }
        outcome
    });
}
