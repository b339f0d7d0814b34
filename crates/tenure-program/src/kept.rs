//! What is kept of all that a program says: how it began, and how it ended.

use std::collections::VecDeque;

/// Lines from the beginning that are kept.
const HEAD_LINES: u32 = 8_000;
/// Bytes from the beginning that are kept.
const HEAD_BYTES: usize = 1_536 * 1024;
/// Lines from the end that are kept.
const TAIL_LINES: usize = 1_000;
/// Bytes from the end that are kept.
const TAIL_BYTES: usize = 256 * 1024;

/// The lines of one run that are kept, and handed on in portions.
#[derive(Debug, Default)]
pub struct Kept {
    ready: VecDeque<String>,
    head_lines: u32,
    head_bytes: usize,
    tail: VecDeque<String>,
    tail_bytes: usize,
    left_out: u64,
    left_out_bytes: u64,
}

impl Kept {
    /// Takes a line. Never waits, and never grows beyond its bounds.
    pub fn push(&mut self, line: String) {
        if self.tail.is_empty()
            && self.left_out == 0
            && self.head_lines < HEAD_LINES
            && self.head_bytes + line.len() <= HEAD_BYTES
        {
            self.head_lines += 1;
            self.head_bytes += line.len();
            self.ready.push_back(line);
            return;
        }
        self.tail_bytes += line.len();
        self.tail.push_back(line);
        while self.tail.len() > TAIL_LINES || self.tail_bytes > TAIL_BYTES {
            let Some(oldest) = self.tail.pop_front() else { return };
            self.tail_bytes -= oldest.len();
            self.left_out += 1;
            self.left_out_bytes += oldest.len() as u64;
        }
    }

    /// No more comes: what was kept of the end is ready as well, behind a line that says what is missing.
    pub fn end(&mut self) {
        if self.left_out > 0 {
            let (lines, bytes) = (self.left_out, self.left_out_bytes);
            self.ready.push_back(format!("run: … {lines} lines ({bytes} bytes) omitted …"));
        }
        self.ready.append(&mut self.tail);
        (self.tail_bytes, self.left_out, self.left_out_bytes) = (0, 0, 0);
    }

    /// The next lines, so many and so many bytes at most; at least one if there is one.
    pub fn next(&mut self, lines: usize, bytes: usize) -> Vec<String> {
        let (mut portion, mut sum) = (Vec::new(), 0);
        while let Some(line) = self.ready.front() {
            if portion.len() == lines || (!portion.is_empty() && sum + line.len() > bytes) {
                break;
            }
            sum += line.len();
            portion.extend(self.ready.pop_front());
        }
        portion
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_below_the_bounds_is_kept_whole() {
        let mut kept = Kept::default();
        (0..2_000).for_each(|number| kept.push(number.to_string()));
        kept.end();
        let all: Vec<String> = std::iter::repeat_with(|| kept.next(999, 1 << 20))
            .take_while(|portion| !portion.is_empty())
            .flatten()
            .collect();
        assert_eq!(all, (0..2_000).map(|number| number.to_string()).collect::<Vec<_>>());
    }

    #[test]
    fn of_too_much_the_beginning_and_the_end_are_kept_and_the_gap_is_told() {
        let mut kept = Kept::default();
        (0..100_000).for_each(|number| kept.push(number.to_string()));
        kept.end();
        let all = kept.next(usize::MAX, usize::MAX);
        assert_eq!(all.len(), HEAD_LINES as usize + 1 + TAIL_LINES);
        assert_eq!((all[0].as_str(), all[all.len() - 1].as_str()), ("0", "99999"));
        assert!(all[HEAD_LINES as usize].contains("91000 lines"), "{}", all[HEAD_LINES as usize]);
    }

    #[test]
    fn few_long_lines_are_bounded_as_well() {
        let mut kept = Kept::default();
        (0..10_000).for_each(|_| kept.push("x".repeat(4_000)));
        kept.end();
        let sum: usize = kept.next(usize::MAX, usize::MAX).iter().map(String::len).sum();
        assert!(sum <= HEAD_BYTES + TAIL_BYTES + 100, "{sum}");
    }
}
