//! Random numbers that depend only on their seed (SplitMix64).

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        // Seeds that differ in one bit must not give similar first numbers.
        let mut random = Self(seed);
        Self(random.next())
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// Returns a number below `end`, which must not be 0.
    pub fn below(&mut self, end: u32) -> u32 {
        (((self.next() >> 32) * u64::from(end)) >> 32) as u32
    }

    pub fn one_in(&mut self, n: u32) -> bool {
        self.below(n) == 0
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (2..=items.len()).rev() {
            items.swap(end - 1, self.below(end as u32) as usize);
        }
    }

    /// Returns the index of a random set bit.
    pub fn bit(&mut self, mask: u32) -> u32 {
        let skip = self.below(mask.count_ones());
        (0..skip).fold(mask, |mask, _| mask & (mask - 1)).trailing_zeros()
    }
}
