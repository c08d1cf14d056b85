//! Operands that find mistakes.

use crate::Kind;

/// A small generator of numbers that are random enough for tests.
#[derive(Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn next(&mut self) -> u64 {
        // xorshift64*.
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 33) as usize % bound
    }

    /// Returns a scalar's bits: often any pattern, often a small number.
    pub(super) fn scalar(&mut self, kind: Kind) -> u128 {
        let bits = u128::from(self.next()) | u128::from(self.next()) << 64;
        match (kind, self.below(4)) {
            (Kind::Bool, _) => bits & 1,
            (Kind::F32, 0) => u128::from((self.next() as i16 as f32 / 16.0).to_bits()),
            (Kind::F64, 0) => u128::from((self.next() as i32 as f64 / 64.0).to_bits()),
            (_, 0) if kind.is_integer() => (bits >> (128 - kind.bits())) >> (bits as u32 % kind.bits()),
            (_, 1) if kind.is_signed() => kind.mask() & !(bits & 0xf),
            _ => bits & kind.mask(),
        }
    }
}

impl Random {
    /// Returns the bytes of a value: of each scalar an extreme one or a random one.
    pub(super) fn bytes(&mut self, layout: &crate::Layout) -> Vec<u8> {
        let mut bytes = vec![0; layout.size];
        for leaf in &layout.leaves {
            let extremes = extremes(leaf.kind);
            let bits = match self.below(2) {
                0 => extremes[self.below(extremes.len())],
                _ => self.scalar(leaf.kind),
            };
            bytes[leaf.offset..][..leaf.kind.size()].copy_from_slice(&bits.to_le_bytes()[..leaf.kind.size()]);
        }
        bytes
    }
}

/// Returns the extreme values of a kind.
pub(super) fn extremes(kind: Kind) -> Vec<u128> {
    if kind == Kind::Bool {
        return vec![0, 1];
    }
    if kind.is_float() {
        let numbers = [0.0, 1.0, 0.5, 1.5, 2.5, 3.0, 127.5, 128.0, 255.9, 256.0, 32767.5, 32768.0, 65535.0, 65536.0];
        let larger = [8_388_609.0, 16_777_217.0, 2_147_483_647.0, 2_147_483_648.0, 4_294_967_296.0, 1e10];
        let largest = [9.223_372_036_854_776e18, 1.844_674_407_370_955_2e19, 1e-10, 3e-39, 3e38, 1e300, 1e-300];
        let mut bits: Vec<u128> = numbers.iter().chain(&larger).chain(&largest).map(|x| float(kind, *x)).collect();
        let infinity = float(kind, f64::INFINITY);
        // The smallest and the largest subnormal, the smallest normal, the largest number, infinity and two NaNs.
        let last = infinity & infinity.wrapping_neg();
        bits.extend([1, last - 1, last, infinity - 1, infinity, infinity | 1, infinity | last >> 1]);
        let negative: Vec<u128> = bits.iter().map(|bits| bits | 1 << (kind.bits() - 1)).collect();
        bits.extend(negative);
        return bits;
    }
    let mut bits = vec![0, 1, 2, 3, 5, 7, 8, 9, 10, 15, 16, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 255, 256];
    bits.extend([0x1234_5678, 0x8000_0001, 0xdead_beef_cafe_f00d_0123_4567_89ab_cdef]);
    for bit in (7..kind.bits()).step_by(8) {
        bits.extend([1 << bit, (1 << bit) - 1]);
    }
    let negative: Vec<u128> = bits.iter().map(|bits: &u128| bits.wrapping_neg()).collect();
    bits.extend(negative);
    bits.iter_mut().for_each(|bits| *bits &= kind.mask());
    bits.sort_unstable();
    bits.dedup();
    bits
}

/// Returns the bits of the nearest float.
fn float(kind: Kind, value: f64) -> u128 {
    match kind {
        Kind::F64 => u128::from(value.to_bits()),
        Kind::F32 => u128::from((value as f32).to_bits()),
        #[cfg(feature = "half")]
        Kind::F16 => u128::from(half::f16::from_f64(value).to_bits()),
        #[cfg(feature = "half")]
        Kind::Bf16 => u128::from(half::bf16::from_f64(value).to_bits()),
        _ => unreachable!("{kind:?} is no float"),
    }
}

/// Returns the arrays of operands of these kinds: extreme ones with each other, then random ones.
pub(super) fn inputs(kinds: &[Kind], random: usize, generator: &mut Random) -> [Vec<u8>; 3] {
    let mut choices: Vec<Vec<u128>> = kinds.iter().map(|kind| extremes(*kind)).collect();
    if kinds.len() == 3 {
        // Every third: all with each other would be too many.
        choices.iter_mut().for_each(|values| *values = values.iter().copied().step_by(3).collect());
    }
    let mut arrays: [Vec<u8>; 3] = Default::default();
    let mut append = |values: &[u128]| {
        for ((array, kind), value) in arrays.iter_mut().zip(kinds).zip(values) {
            array.extend(&value.to_le_bytes()[..kind.size()]);
        }
    };
    for number in 0..choices.iter().map(Vec::len).product::<usize>() {
        let mut rest = number;
        let values: Vec<u128> = choices
            .iter()
            .map(|values| {
                let value = values[rest % values.len()];
                rest /= values.len();
                value
            })
            .collect();
        append(&values);
    }
    for _ in 0..random {
        let values: Vec<u128> = kinds.iter().map(|kind| generator.scalar(*kind)).collect();
        append(&values);
    }
    arrays
}
