//! What was said by others, as a page shows it.

use maud::{Markup, html};
use tenure::schedule::Zone;
use tenure::{JobId, Timestamp};

use crate::likes::by_clock;
use crate::parts::{short, time_in};
use crate::visit::Visit;

/// A sentence of the contract: its instants by the clocks that somebody likes, its jobs as ways to them.
pub(crate) fn sentence(visit: &Visit, zone: &Zone, says: &str) -> Markup {
    html! { @for (at, word) in says.split(' ').enumerate() { @if at > 0 { " " } (shown(visit, zone, word)) } }
}

fn shown(visit: &Visit, zone: &Zone, word: &str) -> Markup {
    let bare = word.trim_end_matches([',', ';', ':', '.', ')']);
    let begin = bare.len() - bare.trim_start_matches('(').len();
    let (before, bare, behind) = (&word[..begin], &bare[begin..], &word[bare.len()..]);
    if bare.ends_with('Z') && bare.parse::<Timestamp>().is_ok() {
        return html! { (before) (by_clock(zone, bare)) " (" (time_in(visit, zone, bare)) ")" (behind) };
    }
    // Hosts have ids that look the same; where a sentence names one, it says so.
    if bare.len() == ID && bare.parse::<JobId>().is_ok() {
        return html! { (before) span.id { (short(bare)) } (behind) };
    }
    html! { (word) }
}

/// Letters of an id.
const ID: usize = 36;

/// A page in which nothing turns around what stands beside it: the signs that do so are shown by their numbers. Inside of tags,
/// where no text is shown, and in fields that somebody writes in, they stay as they are.
pub(crate) fn upright(page: String) -> String {
    if !page.chars().any(turns) {
        return page;
    }
    let mut shown = String::with_capacity(page.len() + 64);
    let (mut in_tag, mut in_field) = (false, false);
    for (at, letter) in page.char_indices() {
        match letter {
            '<' => {
                in_tag = true;
                in_field = page[at..].starts_with("<textarea");
            }
            '>' => in_tag = false,
            _ => {}
        }
        if turns(letter) && !in_tag && !in_field {
            shown.push_str(&format!("\u{27e8}U+{:04X}\u{27e9}", u32::from(letter)));
        } else {
            shown.push(letter);
        }
    }
    shown
}

/// Returns the bytes by which [`upright`] makes a page longer at most.
pub(crate) fn longer_by(page: &str) -> usize {
    const NAME: usize = "\u{27e8}U+202E\u{27e9}".len();
    page.chars().filter(|letter| turns(*letter)).count() * NAME
}

/// Whether a sign changes the direction in which letters stand.
fn turns(letter: char) -> bool {
    matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_turns_letters_around_is_shown_and_turns_nothing() {
        let page = "<td title=\"a\u{202e}b\">a\u{202e}b</td><textarea>\u{2066}</textarea>\u{200f}";
        let wanted = "<td title=\"a\u{202e}b\">a⟨U+202E⟩b</td><textarea>\u{2066}</textarea>⟨U+200F⟩";
        assert_eq!(upright(page.to_owned()), wanted);
        assert!(wanted.len() - page.len() <= longer_by(page) && longer_by(page) == 48 && longer_by("a") == 0);
    }
}
