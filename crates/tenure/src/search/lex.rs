//! The words of a search.

use super::BadSearch;

/// A word of a search.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// The place of its first character, counted from 1.
    pub at: usize,
    /// Whether it shall not hold.
    pub is_not: bool,
    /// What stands before the colon.
    pub field: Option<String>,
    /// What stands behind it, or without one.
    pub values: Vec<Text>,
}

/// One of the values.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Text {
    /// The place of its first character.
    pub at: usize,
    pub text: String,
    /// Whether it stands in quotes: then it is text and nothing else.
    pub is_quoted: bool,
}

/// The words of a search, in order.
pub(super) fn words(text: &str) -> Result<Vec<Word>, BadSearch> {
    let mut reader = Reader { chars: text.chars().collect(), at: 0 };
    let mut words = Vec::new();
    loop {
        reader.skip_space();
        if reader.peek().is_none() {
            return Ok(words);
        }
        words.push(reader.word()?);
    }
}

struct Reader {
    chars: Vec<char>,
    at: usize,
}

impl Reader {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    /// Goes on if this is next.
    fn took(&mut self, wanted: char) -> bool {
        let is_next = self.peek() == Some(wanted);
        self.at += usize::from(is_next);
        is_next
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    fn word(&mut self) -> Result<Word, BadSearch> {
        let at = self.at + 1;
        let is_not = self.took('-');
        let field = self.field();
        let mut values = vec![self.value()?];
        while self.took(',') {
            values.push(self.value()?);
        }
        Ok(Word { at, is_not, field, values })
    }

    /// What stands before a colon, if what comes is of that form.
    fn field(&mut self) -> Option<String> {
        let is_part = |sign: &char| !sign.is_whitespace() && !matches!(sign, ':' | '"' | ',');
        let name: String = self.chars[self.at..].iter().take_while(|sign| is_part(sign)).collect();
        let colon = self.at + name.chars().count();
        if name.is_empty() || self.chars.get(colon) != Some(&':') {
            return None;
        }
        self.at = colon + 1;
        Some(name)
    }

    fn value(&mut self) -> Result<Text, BadSearch> {
        let at = self.at + 1;
        if self.took('"') {
            return self.quoted(at);
        }
        let mut text = String::new();
        while let Some(sign) = self.peek() {
            if sign.is_whitespace() || sign == ',' {
                break;
            }
            if sign == '"' {
                let allowed = "quotes around the whole value, with \\\" for a quote inside it";
                return Err(BadSearch::new(self.at + 1, "a quote in the middle of a value", allowed));
            }
            text.push(sign);
            self.at += 1;
        }
        if text.is_empty() {
            return Err(BadSearch::new(at, "nothing", "a value, or \"\" for the empty one"));
        }
        Ok(Text { at, text, is_quoted: false })
    }

    fn quoted(&mut self, at: usize) -> Result<Text, BadSearch> {
        let mut text = String::new();
        while let Some(sign) = self.peek() {
            self.at += 1;
            match sign {
                '"' => return Ok(Text { at, text, is_quoted: true }),
                '\\' => {
                    text.extend(self.peek());
                    self.at += 1;
                }
                sign => text.push(sign),
            }
        }
        Err(BadSearch::new(at, "an unclosed quote", "a closing quote after the value"))
    }
}
