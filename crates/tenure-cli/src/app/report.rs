//! What was understood of a folder, and what not.

use tenure_apps::{App, Folder, Sort};

use crate::output::safe;
use crate::screen::{Screen, Tone};

/// One line for each app, and one for each thing that was not understood.
pub(super) fn tell(folder: &Folder, screen: &Screen) {
    for app in &folder.apps {
        let name = screen.paint(Tone::Busy, &format!("{} {}", app.sort, safe::line(&app.name)));
        screen.line(&format!("{name}: {}", safe::line(&words(app))));
        for note in &app.notes {
            screen.line(&format!("  {}", screen.paint(Tone::Careful, &safe::line(note))));
        }
        for wrong in &app.wrong {
            screen.line(&format!(
                "  {}",
                screen.paint(Tone::Bad, &format!("cannot run: {}", safe::line(wrong)))
            ));
        }
    }
    for note in folder.notes.iter().chain(&folder.strays) {
        screen.line(&screen.paint(Tone::Careful, &safe::line(note)));
    }
}

fn words(app: &App) -> String {
    let command: Vec<String> = app.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let command = tenure_apps::quoted(&command);
    let when = match (app.sort, &app.settings.schedule) {
        (Sort::Continuous, _) if app.is_disabled => "stopped by its disable.job".to_owned(),
        (Sort::Continuous, _) if app.settings.is_singleton => "continuous, on one host".to_owned(),
        (Sort::Continuous, _) => "continuous, on every host".to_owned(),
        (Sort::Triggered, Some(schedule)) => schedule.describe(),
        (Sort::Triggered, None) => "on demand".to_owned(),
    };
    let place = if app.settings.is_in_place == Some(true) { "in place" } else { "in a copy" };
    if command.is_empty() { when } else { format!("{when}; {command}, {place}") }
}
