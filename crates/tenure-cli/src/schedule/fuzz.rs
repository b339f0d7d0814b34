//! Fuzz target of crontabs.

use tenure::schedule::Schedule;
use tenure_fuzz::Target;

use super::crontab::{Crontab, Reading};

#[test]
fn each_line_of_a_crontab_is_an_entry_a_note_or_neither() {
    let words = &[
        "\n",
        "* * * * *",
        " root ",
        "/bin/true",
        "%",
        "\\%",
        "CRON_TZ=",
        "Europe/Berlin",
        "MAILTO=",
        "NAME = \"a\"",
        "@daily ",
        "@reboot ",
        "'",
        "\"",
        "|",
        ">",
        "$HOME",
        "#",
        "\t",
        "PATH=/bin:/usr/bin",
    ];
    Target::new(env!("CARGO_MANIFEST_DIR"), "crontab").words(words).check_text(|text| {
        let mut outcome = String::new();
        for of_system in [false, true] {
            let tab = Crontab::read(text, &Reading { of_system, zone: None });
            let lines = text.lines().count();
            assert!(tab.entries.iter().all(|entry| (1..=lines).contains(&entry.line)));
            assert!(tab.entries.windows(2).all(|two| two[0].line < two[1].line));
            assert!(tab.broken() <= tab.notes.len());
            for entry in &tab.entries {
                assert_eq!(
                    entry.schedule.to_string().parse::<Schedule>().as_ref(),
                    Ok(&entry.schedule),
                    "{}",
                    entry.when
                );
                assert_eq!(entry.user.is_some(), of_system);
            }
            outcome += &format!("{:?} ", tab.notes.first());
            outcome += &tab.entries.first().map_or(String::new(), |entry| format!("{:?}", entry.command));
        }
        outcome
    });
}
