//! Lookups: see [`lookup`](crate::levels::device::query::lookup), [`few`](crate::levels::device::query::small) and [`combine`](crate::levels::device::merge::combine).

use super::level::{CHUNK, NativeLevel, bits, first_bits, newest_first};
use super::{chunks, divide};
use crate::KeyCode;
use crate::levels::device::find::Levels;
use crate::levels::device::merge::combine::LookupCombined;
use crate::levels::device::payload::{PUT, TOMBSTONE};
use crate::levels::device::query::lookup::LookupKeys;
use crate::levels::device::query::small::LookupFew;
use bytemuck::Pod;
use gpu_primitives::code::Sign;
use gpu_primitives::kernel::{RegisterRepr, Team};
use gpu_primitives::monoid::Combine;
use gpu_primitives::view::{Global, GlobalMut};
use std::ops::Range;

/// The work of a query in one level, in elements of a plain loop.
pub const QUERY: usize = 8;

/// # Safety
/// The contract of [`lookup_keys`](LookupKeys).
pub unsafe fn lookup_keys<C: KeyCode, V: Pod>(kernel: LookupKeys<C, V>, team: Team) {
    let LookupKeys { levels, keys, values, found, .. } = kernel;
    // SAFETY: guaranteed by the caller.
    unsafe { look_up(levels, keys, values, found, team) };
}

/// # Safety
/// The contract of [`lookup_few`](LookupFew).
pub unsafe fn lookup_few<C: KeyCode, V: Pod>(kernel: LookupFew<C, V>, team: Team) {
    let LookupFew { levels, keys, values, found, .. } = kernel;
    // SAFETY: guaranteed by the caller.
    unsafe { look_up(levels, keys, values, found, team) };
}

/// The codes of some queries.
pub struct Codes<C> {
    codes: [C; CHUNK],
    len: usize,
}

impl<C: KeyCode> Codes<C> {
    /// Encodes up to [`CHUNK`] keys.
    pub fn new(keys: &[C], sign: Sign) -> Self {
        let mut codes = [C::MIN; CHUNK];
        codes.iter_mut().zip(keys).for_each(|(code, &key)| *code = sign.encode(key));
        Self { codes, len: keys.len() }
    }

    /// Returns the codes.
    pub fn as_slice(&self) -> &[C] {
        &self.codes[..self.len]
    }

    /// Returns a bit for each code.
    pub fn all(&self) -> u32 {
        first_bits(self.len)
    }
}

/// The elements that answer some queries.
pub struct Answers {
    /// One bit per query that has an answer.
    pub found: u32,
    /// The levels of the answers.
    pub levels: [u8; CHUNK],
    /// Their positions.
    pub positions: [u32; CHUNK],
}

impl Answers {
    /// No answers.
    pub const NONE: Self = Self { found: 0, levels: [0; CHUNK], positions: [0; CHUNK] };

    /// Writes for each query of the range 1 if it has an answer, else 0, and the value of the answer or zero, unless there are
    /// no `values`.
    ///
    /// # Safety
    /// The outputs have the elements of the range, and nobody else uses them. The answers are positions in these levels, which
    /// have values of this type.
    pub unsafe fn write<C: KeyCode, V: Pod>(
        &self,
        levels: &[NativeLevel<'_, C>],
        range: Range<usize>,
        values: GlobalMut<V>,
        found: GlobalMut<u8>,
    ) {
        for (i, at) in range.enumerate() {
            let is_found = self.found >> i & 1 == 1;
            // SAFETY: guaranteed by the caller.
            unsafe {
                found.as_mut_ptr().add(at).write(is_found.into());
                if size_of::<V>() > 0 && !values.is_empty() {
                    let value = match is_found {
                        true => levels[self.levels[i] as usize].value(self.positions[i]),
                        false => V::zeroed(),
                    };
                    values.as_mut_ptr().add(at).write(value);
                }
            }
        }
    }
}

/// Finds the live element of each code.
fn locate<C: KeyCode>(levels: &[NativeLevel<'_, C>], codes: &Codes<C>) -> Answers {
    let mut answers = Answers::NONE;
    let mut asked = codes.all();
    for (index, level) in levels.iter().enumerate() {
        let here = level.newest(codes.as_slice(), asked, &mut answers.positions);
        asked ^= here;
        for i in bits(here) {
            answers.levels[i] = index as u8;
            answers.found |= u32::from(!level.is_dead(answers.positions[i])) << i;
        }
        if asked == 0 {
            break;
        }
    }
    answers
}

/// # Safety
/// The contract of [`lookup_keys`](LookupKeys).
unsafe fn look_up<C: KeyCode, V: Pod>(
    levels: Levels<C, V>,
    keys: Global<C>,
    values: GlobalMut<V>,
    found: GlobalMut<u8>,
    team: Team,
) {
    let sign = levels.sign();
    // SAFETY: nobody changes the levels or writes the keys.
    let (levels, keys) = unsafe { (newest_first(levels), keys.as_slice()) };
    let work = |range: Range<usize>| {
        for chunk in chunks(range, CHUNK) {
            let answers = locate(&levels, &Codes::new(&keys[chunk.clone()], sign));
            // SAFETY: the outputs are as long as the keys, and each query is in one chunk.
            unsafe { answers.write(&levels, chunk, values, found) };
        }
    };
    // SAFETY: the body captures arguments and plain data. Each call writes outputs of its own.
    unsafe { divide(team, keys.len(), QUERY * levels.len().max(1), work) };
}

/// # Safety
/// The contract of [`lookup_combined`](LookupCombined).
pub unsafe fn lookup_combined<C: KeyCode, V: RegisterRepr>(kernel: LookupCombined<C, V>, team: Team) {
    let LookupCombined { levels, operation, keys, values, found, .. } = kernel;
    let sign = levels.sign();
    // SAFETY: nobody changes the levels or writes the keys.
    let (levels, keys) = unsafe { (newest_first(levels), keys.as_slice()) };
    let work = |range: Range<usize>| {
        for chunk in chunks(range, CHUNK) {
            let codes = Codes::new(&keys[chunk.clone()], sign);
            let mut positions = [0; CHUNK];
            let mut combined = [V::zeroed(); CHUNK];
            let (mut asked, mut present) = (codes.all(), 0);
            for level in &levels {
                for i in bits(level.newest(codes.as_slice(), asked, &mut positions)) {
                    let (kind, bit) = (level.kind(positions[i]), 1 << i);
                    if kind == TOMBSTONE || kind == PUT {
                        asked ^= bit;
                    }
                    if kind != TOMBSTONE {
                        // SAFETY: the level has this element.
                        let value = unsafe { level.value(positions[i]) };
                        let is_first = present & bit == 0;
                        combined[i] = if is_first { value } else { operation.combine(value, combined[i]) };
                        present |= bit;
                    }
                }
                if asked == 0 {
                    break;
                }
            }
            for (i, at) in chunk.enumerate() {
                // SAFETY: the outputs are as long as the keys, and each query is in one chunk.
                unsafe {
                    found.as_mut_ptr().add(at).write((present >> i & 1) as u8);
                    values.as_mut_ptr().add(at).write(combined[i]);
                }
            }
        }
    };
    // SAFETY: the body captures arguments and plain data. Each call writes outputs of its own.
    unsafe { divide(team, keys.len(), QUERY * levels.len().max(1), work) };
}
