//! Which form of an answer a client would rather have.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;

/// What a client says of one range of types.
struct Range<'a> {
    kind: &'a str,
    sub: &'a str,
    quality: f32,
}

/// The one of these types that a client would rather have: the one it gives most weight, of equal ones the one whose range it
/// names first, and of those that are in one range the first that is offered. Whoever accepts none of them is given the first: an
/// answer in another form is of more use than none.
pub(crate) fn best<T: Copy>(headers: &HeaderMap, offers: &[(&str, T)], otherwise: T) -> T {
    let said = headers.get_all(ACCEPT).iter().filter_map(|said| said.to_str().ok());
    let ranges: Vec<Range> = said.flat_map(|said| said.split(',')).filter_map(Range::read).collect();
    let wanted = offers.iter().filter_map(|(name, form)| {
        let (at, quality) = wish(&ranges, name)?;
        Some((quality, at, *form))
    });
    // The first of the best: what comes later has to be better.
    wanted
        .reduce(|best, next| if (next.0, best.1) > (best.0, next.1) { next } else { best })
        .map_or(otherwise, |(_, _, form)| form)
}

/// What is said of a type by the range that names it most closely: where that stands, and its weight; nothing if it is not wanted.
fn wish(ranges: &[Range], name: &str) -> Option<(usize, f32)> {
    let closest =
        ranges.iter().enumerate().rev().filter_map(|(at, range)| Some((range.fits(name)?, at, range)));
    // The last of equals is the first that was named.
    let (_, at, range) = closest.max_by_key(|(close, _, _)| *close)?;
    (range.quality > 0.0).then_some((at, range.quality))
}

impl<'a> Range<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let (kind, sub) = parts.next()?.split_once('/')?;
        let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
        let quality = weight.map_or(Some(1.0), |weight| weight.trim().parse().ok())?;
        Some(Self { kind, sub, quality })
    }

    /// How closely it names a type: itself, all of its sort, or all; nothing if it does not.
    fn fits(&self, name: &str) -> Option<u8> {
        let (kind, sub) = name.split_once('/')?;
        match (self.kind, self.sub) {
            ("*", "*") => Some(0),
            (said, "*") => said.eq_ignore_ascii_case(kind).then_some(1),
            (said, other) => {
                (said.eq_ignore_ascii_case(kind) && other.eq_ignore_ascii_case(sub)).then_some(2)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(said: &[&str]) -> &'static str {
        let said = said.iter().map(|said| (ACCEPT, said.parse().unwrap()));
        let offers = ["application/json", "text/event-stream", "application/x-ndjson", "text/plain"];
        best(&HeaderMap::from_iter(said), &offers.map(|name| (name, name)), "application/json")
    }

    #[test]
    fn what_is_given_most_weight_is_chosen_and_then_what_is_named_first() {
        for (said, expected) in [
            (&[][..], "application/json"),
            (&["*/*"], "application/json"),
            (&["application/json, text/plain, */*"], "application/json"),
            (&["text/plain"], "text/plain"),
            (&["text/plain, application/json"], "text/plain"),
            (&["text/plain, */*"], "text/plain"),
            (&["text/plain;q=0.5, application/json"], "application/json"),
            (&["text/plain; q=0.9, application/json;q=0.8"], "text/plain"),
            (&["text/plain;q=0"], "application/json"),
            (&["text/plain;q=0, */*"], "application/json"),
            (&["application/json;q=0, */*"], "text/event-stream"),
            (&["text/*, text/event-stream;q=0"], "text/plain"),
            (&["TEXT/Plain;charset=utf-8;q=1.0"], "text/plain"),
            (&["application/x-ndjson;q=0.5", "text/plain;q=0.7"], "text/plain"),
            (&["image/png"], "application/json"),
            (&["nonsense, text/plain;q=much"], "application/json"),
        ] {
            assert_eq!(chosen(said), expected, "{said:?}");
        }
    }
}
