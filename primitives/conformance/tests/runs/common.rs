//! What the tests of runs share: inputs, patterns, comparisons.

use bytemuck::Pod;
use gpu_conformance::data::{edge_sizes, random};
use gpu_conformance::is_checked;
use gpu_primitives::equality::Equality;
use gpu_primitives::{Device, Stream};
use std::fmt::Debug;

/// The elements of a tile of 32-bit elements, and of pairs of 32-bit keys and values.
pub const TILE: usize = 256 * 4 * 8;

pub const TILE_PAIRS: usize = 256 * 4 * 5;

/// `assert_eq!` that names the first difference instead of printing everything.
pub fn assert_same<T: Debug + PartialEq>(found: &[T], expected: &[T], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    if let Some(i) = (0..found.len()).find(|&i| found[i] != expected[i]) {
        panic!("{what} of {} elements, at {i}: found {:?}, expected {:?}", found.len(), found[i], expected[i]);
    }
}

/// Returns the first position of each run, and the number of elements.
pub fn heads<T: Pod, E: Equality<T>>(host: &[T], equality: E) -> Vec<usize> {
    (0..host.len()).filter(|&i| i == 0 || !equality.equal(host[i - 1], host[i])).chain([host.len()]).collect()
}

/// Returns the elements, then what was there before.
pub fn front<T: Pod>(elements: impl Iterator<Item = T>, filler: T, len: usize) -> Vec<T> {
    let mut all: Vec<T> = elements.collect();
    all.resize(len, filler);
    all
}

pub fn filler<T: Pod>() -> T {
    let mut filler = T::zeroed();
    bytemuck::bytes_of_mut(&mut filler).fill(0xa5);
    filler
}

/// Returns numbers in runs of up to `longest`, neighbours different.
pub fn in_runs(seed: u64, len: usize, longest: u64) -> Vec<u32> {
    let mut numbers = Vec::with_capacity(len);
    for x in random(seed) {
        if numbers.len() == len {
            break;
        }
        let number = numbers.last().copied().unwrap_or(0u32).wrapping_add(1 + (x >> 32) as u32 % 5);
        numbers.extend(std::iter::repeat_n(number, ((x % longest) as usize + 1).min(len - numbers.len())));
    }
    numbers
}

/// Returns an element whose bytes are those of the number, repeated.
pub fn spread<T: Pod>(number: u32) -> T {
    let mut element = T::zeroed();
    for (i, byte) in bytemuck::bytes_of_mut(&mut element).iter_mut().enumerate() {
        *byte = (number >> (8 * (i % 4))) as u8 ^ (i / 4) as u8;
    }
    element
}

/// All different, all equal, short runs and long ones, and runs that begin where tiles and rows do.
pub fn patterns(len: usize) -> Vec<Vec<u32>> {
    vec![
        (0..len as u32).collect(),
        vec![7; len],
        in_runs(11, len, 16),
        in_runs(12, len, 9000),
        (0..len as u32).map(|i| i / 128).collect(),
        (0..len as u32).map(|i| i / 1024).collect(),
        (0..len as u32).map(|i| (i + 1) / 1024).collect(),
        (0..len).map(|i| (i + 1 == len) as u32).collect(),
    ]
}

/// Calls `check` with patterns at the edges of tiles.
pub fn at_edges(device: &Device, tile: usize, check: impl Fn(&Stream, &[u32])) {
    let stream = device.stream().unwrap();
    for len in edge_sizes(tile).into_iter().filter(|&len| len > 33) {
        let patterns = patterns(len);
        let few = if is_checked(device) { if len > tile + 1 { 0..1 } else { 2..4 } } else { 0..patterns.len() };
        patterns[few].iter().for_each(|host| check(&stream, host));
    }
}
