//! A copy of the memory that a launch was given, as the views of the kernel have written it. Where the memory differs
//! from the copy, the kernel has written it through a raw pointer.

use crate::host::executor::memory::{Given, Known};

/// The most bytes that are copied. A launch with more memory is not compared.
const MOST_BYTES: usize = 64 << 20;

#[derive(Default)]
pub(super) struct Mirror {
    /// In ascending order and disjoint.
    pieces: Vec<Copied>,
}

struct Copied {
    start: *mut u8,
    /// The bytes before the launch.
    before: Box<[u8]>,
    /// The bytes that views have left.
    now: Box<[u8]>,
}

impl Mirror {
    /// Copies the given memory that the device has allocated.
    pub fn new(known: &Known, given: &Given) -> Self {
        let pieces: Vec<(*mut u8, usize)> = given.allocated(known).collect();
        if pieces.iter().map(|&(_, bytes)| bytes).sum::<usize>() > MOST_BYTES {
            return Self::default();
        }
        let copy = |(start, bytes): (*mut u8, usize)| {
            // SAFETY: allocated memory of the device, which only the launch uses now.
            let before: Box<[u8]> = unsafe { std::slice::from_raw_parts(start, bytes) }.into();
            Copied { start, now: before.clone(), before }
        };
        Self { pieces: pieces.into_iter().map(copy).collect() }
    }

    /// Copies bytes that a view has just written.
    pub fn update(&mut self, address: usize, bytes: usize) {
        if let Some((piece, at)) = find(&self.pieces, address) {
            let piece = &mut self.pieces[piece];
            let bytes = bytes.min(piece.now.len() - at);
            // SAFETY: the piece is allocated memory of the device.
            unsafe { piece.start.add(at).copy_to_nonoverlapping(piece.now[at..].as_mut_ptr(), bytes) };
        }
    }

    /// Returns the first byte that was not written by a view.
    pub fn first_difference(&self) -> Option<usize> {
        self.pieces.iter().find_map(|Copied { start, now, .. }| {
            // SAFETY: as in `new`.
            let memory = unsafe { std::slice::from_raw_parts(*start, now.len()) };
            if memory == &**now {
                return None;
            }
            memory.iter().zip(now).position(|(a, b)| a != b).map(|at| start.addr() + at)
        })
    }

    /// Returns whether a byte was not written by a view.
    pub fn differs(&self, address: usize) -> bool {
        find(&self.pieces, address).is_some_and(|(piece, at)| {
            let piece = &self.pieces[piece];
            // SAFETY: as in `update`.
            unsafe { piece.start.add(at).read_volatile() != piece.now[at] }
        })
    }

    /// Makes the memory and the copy what they were before the launch.
    pub fn rewind(&mut self) {
        for Copied { start, before, now } in &mut self.pieces {
            now.copy_from_slice(before);
            // SAFETY: as in `new`.
            unsafe { start.copy_from_nonoverlapping(before.as_ptr(), before.len()) };
        }
    }
}

/// Returns the piece that holds a byte, and its position there.
fn find(pieces: &[Copied], address: usize) -> Option<(usize, usize)> {
    let piece = pieces.partition_point(|piece| piece.start.addr() <= address).checked_sub(1)?;
    let at = address - pieces[piece].start.addr();
    (at < pieces[piece].now.len()).then_some((piece, at))
}
