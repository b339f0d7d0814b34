//! Colours that programs give to what they print, as classes of our own; whatever else they tell a terminal is left out.

/// A piece of a line, and its classes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub text: String,
    pub bold: bool,
    /// The number of the colour, 31 to 36 or 90; none for the usual one.
    pub colour: Option<u8>,
}

impl Piece {
    pub(crate) fn classes(&self) -> Option<String> {
        let colour = self.colour.map(|colour| format!("a{colour}"));
        match (self.bold, colour) {
            (false, colour) => colour,
            (true, None) => Some("a1".to_owned()),
            (true, Some(colour)) => Some(format!("a1 {colour}")),
        }
    }
}

/// The pieces of a line. Two that follow one another look different; control characters are left out and divide nothing.
pub(crate) fn pieces(line: &str) -> Vec<Piece> {
    let (mut bold, mut colour) = (false, None);
    let mut found: Vec<Piece> = Vec::new();
    for (at, part) in line.split('\u{1b}').enumerate() {
        let text = if at == 0 { part } else { behind_code(part, &mut bold, &mut colour) };
        let mut letters = text.chars().filter(|letter| !letter.is_control() || *letter == '\t').peekable();
        if letters.peek().is_none() {
            continue;
        }
        match found.last_mut().filter(|last| (last.bold, last.colour) == (bold, colour)) {
            Some(last) => last.text.extend(letters),
            None => found.push(Piece { text: letters.collect(), bold, colour }),
        }
    }
    found
}

/// What stands behind a code. Codes begin with a bracket and end with a letter; one of another sort is a single letter.
fn behind_code<'t>(part: &'t str, bold: &mut bool, colour: &mut Option<u8>) -> &'t str {
    let Some(code) = part.strip_prefix('[') else {
        let mut letters = part.chars();
        letters.next();
        return letters.as_str();
    };
    let Some(end) = code.find(|letter: char| ('@'..='~').contains(&letter)) else { return "" };
    let (numbers, rest) = code.split_at(end);
    if rest.starts_with('m') {
        for number in numbers.split(';') {
            match number.parse::<u8>().unwrap_or(0) {
                0 => (*bold, *colour) = (false, None),
                1 => *bold = true,
                22 => *bold = false,
                dark @ 31..=36 => *colour = Some(dark),
                37 | 39 | 97 => *colour = None,
                2 | 90 => *colour = Some(90),
                bright @ 91..=96 => *colour = Some(bright - 60),
                _ => {}
            }
        }
    }
    let mut letters = rest.chars();
    letters.next();
    letters.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &str) -> Vec<(String, Option<String>)> {
        pieces(line).into_iter().map(|piece| (piece.text.clone(), piece.classes())).collect()
    }

    fn plain(text: &str) -> (String, Option<String>) {
        (text.to_owned(), None)
    }

    #[test]
    fn colours_become_classes_and_everything_else_is_left_out() {
        let colored = |text: &str, classes: &str| (text.to_owned(), Some(classes.to_owned()));
        assert_eq!(shown("plain"), [plain("plain")]);
        assert_eq!(
            shown("a\u{1b}[1;31mred\u{1b}[0m b\u{1b}[96mc"),
            [plain("a"), colored("red", "a1 a31"), plain(" b"), colored("c", "a36")]
        );
        assert_eq!(shown("\u{1b}[2J\u{1b}]0;title\u{7}x\u{1b}[999;;999mé"), [plain("0;titlexé")]);
        assert_eq!(shown("\u{1b}[31ma\u{7f}b\u{1b}[31mc"), [colored("abc", "a31")]);
        assert_eq!(shown("\u{1b}["), []);
        assert_eq!(shown("\u{1b}"), []);
    }
}
