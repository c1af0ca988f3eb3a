//! Numbers that look random and are the same on every machine.

/// SplitMix64: small, fast, and good enough to make test data.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`. The bias is one in 2^64 / `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }

    pub(crate) fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// `count` different entries of `from`, in any order.
    pub(crate) fn sample<T: Copy>(&mut self, from: &[T], count: usize) -> Vec<T> {
        let mut left = from.to_vec();
        (0..count)
            .map(|_| left.swap_remove(self.below(left.len())))
            .collect()
    }

    /// A length from 300 to 8,000, each octave as likely as the next.
    pub(crate) fn length(&mut self) -> usize {
        match self.below(474) / 100 {
            4 => 4800 + self.below(3200),
            octave => {
                let least = 300 << octave;
                least + self.below(least)
            }
        }
    }
}
