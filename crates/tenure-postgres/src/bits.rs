//! Jobs of a block, which is 256 jobs whose seqs lie side by side: a bit each, as the database keeps them.

/// How many jobs a block has.
const JOBS: usize = 256;

/// Some jobs of one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Bits([u64; JOBS / 64]);

/// The block of a job.
pub(crate) fn block_of(seq: i64) -> i64 {
    seq >> JOBS.trailing_zeros()
}

impl Bits {
    /// Adds a job; it has to be of the same block.
    pub(crate) fn add(&mut self, seq: i64) {
        let place = (seq & (JOBS as i64 - 1)) as usize;
        self.0[place / 64] |= 1 << (place % 64);
    }

    pub(crate) fn has(self, seq: i64) -> bool {
        let place = (seq & (JOBS as i64 - 1)) as usize;
        self.0[place / 64] & (1 << (place % 64)) != 0
    }

    /// As the database reads it: `bit(256)`, the first job first.
    pub(crate) fn text(self) -> String {
        (0..JOBS as i64).map(|place| if self.has(place) { '1' } else { '0' }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_job_of_a_block_has_its_own_bit() {
        let mut bits = Bits::default();
        for seq in [768, 769, 1023] {
            assert_eq!(block_of(seq), 3);
            bits.add(seq);
        }
        let text = bits.text();
        assert_eq!((text.len(), &text[..3], &text[253..]), (256, "110", "001"));
        assert!(bits.has(1023) && !bits.has(770));
    }
}
