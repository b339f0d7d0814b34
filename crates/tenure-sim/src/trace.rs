//! The trace: what happened, line by line. The same seed gives the same bytes.

use std::collections::VecDeque;

/// Lines that are kept to explain a failure.
const TAIL: usize = 60;

/// The lines of a run: all of them, or the last ones and a digest of all.
#[derive(Debug)]
pub(crate) struct Trace {
    whole: bool,
    lines: VecDeque<String>,
    digest: u64,
}

impl Trace {
    pub(crate) fn new(whole: bool) -> Self {
        Self { whole, lines: VecDeque::new(), digest: 0xcbf2_9ce4_8422_2325 }
    }

    pub(crate) fn push(&mut self, line: String) {
        // FNV-1a: any difference in any line shows, and it is the same on every machine.
        for byte in line.bytes() {
            self.digest = (self.digest ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        if !self.whole && self.lines.len() == TAIL {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    pub(crate) fn digest(&self) -> u64 {
        self.digest
    }

    pub(crate) fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines).into()
    }
}
