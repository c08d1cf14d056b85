//! The bodies of the kernels for the CPU. See [`device`](super::device) for what they do and for their contracts.

#![deny(unsafe_op_in_unsafe_fn)]

use super::device::{BitPositions, BitView, CombineBits, CountBits, PackBits, combined};
use crate::hole::RegisterRepr;
use crate::input::Input;
use crate::kernel::Team;
use crate::search::IndexOut;
use crate::select::device::predicate::Keep;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The bytes of packed bits that a worker writes at a time.
const BLOCK: usize = 128;

/// # Safety
/// The contract of [`pack_bits`](super::device::PackBits).
pub(super) unsafe fn pack_bits<H: RegisterRepr>(kernel: PackBits<H>, team: Team) {
    let PackBits { input, keep, output, .. } = kernel;
    // SAFETY: nothing writes the length.
    let len = unsafe { Input::<H>::count(&input) };
    let pack = |_: usize, blocks: Range<usize>| {
        let (mut room, mut flags): (Vec<H>, _) = (Vec::new(), [0u8; 8 * BLOCK]);
        for block in blocks {
            let bytes = block * BLOCK..output.len().min((block + 1) * BLOCK);
            let items = (bytes.start * 8).min(len)..(bytes.end * 8).min(len);
            let flags = &mut flags[..items.len()];
            // SAFETY: the items exist, and nothing writes what the source reads. Each byte is written by one call.
            unsafe {
                keep.items(items.start, input.elements(items.start, items.len(), &mut room), flags);
                for byte in bytes.clone() {
                    let of_byte = flags.iter().skip((byte - bytes.start) * 8).take(8);
                    let bits = of_byte.rev().fold(0, |bits, &flag| bits << 1 | flag);
                    output.as_mut_ptr().add(byte).write(bits);
                }
            }
        }
    };
    // SAFETY: the body captures arguments, and each call writes bytes of its own.
    unsafe { team.divide(output.len().div_ceil(BLOCK), pack) };
}

/// Returns the number of words of bits.
fn words(bits: &BitView) -> usize {
    (bits.len as usize).div_ceil(32)
}

/// # Safety
/// The contract of [`count_bits`](super::device::CountBits).
pub(super) unsafe fn count_bits(kernel: CountBits, team: Team) {
    let CountBits { bits, count, .. } = kernel;
    let total = AtomicU64::new(0);
    let add = |_: usize, range: Range<usize>| {
        // SAFETY: nothing writes the bits.
        let own = range.map(|word| u64::from(unsafe { bits.word(word * 32) }.count_ones())).sum();
        total.fetch_add(own, Ordering::Relaxed);
    };
    // SAFETY: the body captures arguments, and an atomic number.
    unsafe { team.divide(words(&bits), add) };
    // SAFETY: there is one count.
    unsafe { *count.as_mut_ptr() += total.into_inner() };
}

/// # Safety
/// The contract of [`bit_positions`](super::device::BitPositions).
pub(super) unsafe fn bit_positions<P: IndexOut>(kernel: BitPositions<P>, team: Team) {
    let BitPositions { bits, output, count, .. } = kernel;
    let words = words(&bits);
    let starts: Vec<AtomicUsize> = (0..team.parts(words)).map(|_| AtomicUsize::new(0)).collect();
    let tally = |part: usize, range: Range<usize>| {
        // SAFETY: nothing writes the bits.
        let own = range.map(|word| unsafe { bits.word(word * 32) }.count_ones() as usize).sum();
        starts[part].store(own, Ordering::Relaxed);
    };
    // SAFETY: the body captures arguments, and atomic numbers.
    unsafe { team.divide(words, tally) };
    let mut total = 0;
    for start in &starts {
        total += start.swap(total, Ordering::Relaxed);
    }
    let write = |part: usize, range: Range<usize>| {
        let mut place = starts[part].load(Ordering::Relaxed);
        for word in range {
            // SAFETY: nothing writes the bits.
            let mut left = unsafe { bits.word(word * 32) };
            while left != 0 {
                let position = P::from_position(word * 32 + left.trailing_zeros() as usize);
                // SAFETY: there is room for a position per bit, and the places of the parts differ.
                unsafe { output.as_mut_ptr().add(place).write(position) };
                place += 1;
                left &= left - 1;
            }
        }
    };
    // SAFETY: the body captures arguments, and each call writes places of its own.
    unsafe { team.divide(words, write) };
    // SAFETY: there is one count.
    unsafe { count.as_mut_ptr().write(total as u64) };
}

/// # Safety
/// The contract of [`combine_bits`](super::device::CombineBits).
pub(super) unsafe fn combine_bits(kernel: CombineBits, team: Team) {
    let CombineBits { a, b, table, output, .. } = kernel;
    let combine = |_: usize, range: Range<usize>| {
        for byte in range {
            let left = a.len as usize - byte * 8;
            let mask = if left < 8 { (1 << left) - 1 } else { 0xff };
            // SAFETY: nothing writes the bits. Each byte is written by one call.
            unsafe {
                let bits = combined(table, a.word(byte * 8), b.word(byte * 8)) & mask;
                output.as_mut_ptr().add(byte).write(bits as u8);
            }
        }
    };
    // SAFETY: the body captures arguments, and each call writes bytes of its own.
    unsafe { team.divide(output.len(), combine) };
}
