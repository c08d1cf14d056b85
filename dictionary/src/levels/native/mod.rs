//! The bodies of kernels for the CPU: plain loops over the data. The kernels say what they do and have the contracts.
//!
//! What depends on keys alone is compiled once per key type: the searches and the merges say where elements are. Only the
//! loops that read and write values are compiled for each type of values.

#![deny(unsafe_op_in_unsafe_fn)]

mod append;
mod batch;
mod combine;
mod copy;
mod directory;
mod except;
mod intervals;
mod level;
mod lookup;
mod merge;
mod neighbour;
mod tiles;

pub(crate) use append::append_pairs;
pub(crate) use batch::merge_batch;
pub(crate) use combine::combine_runs;
pub(crate) use copy::{copy_windows, gather_windows};
pub(crate) use directory::build_directory;
pub(crate) use except::flag_others;
pub(crate) use intervals::{count_few, find_windows};
pub(crate) use lookup::{lookup_combined, lookup_few, lookup_keys};
pub(crate) use neighbour::find_neighbours;
pub(crate) use tiles::{count_live, emit_live, merge_marked};

use gpu_primitives::kernel::Team;
use std::ops::Range;

/// Divides `len` things among the workers, of which each is as much work as `weight` elements of a plain loop. Calls `body`
/// with the range of each part.
///
/// # Safety
/// Same as [`Team::each`].
unsafe fn divide(team: Team, len: usize, weight: usize, body: impl Fn(Range<usize>)) {
    let parts = team.parts(len.saturating_mul(weight));
    // SAFETY: guaranteed by the caller.
    unsafe { team.each(parts, |part| body(len * part / parts..len * (part + 1) / parts)) };
}

/// Divides a range into ranges of up to `most`.
fn chunks(range: Range<usize>, most: usize) -> impl Iterator<Item = Range<usize>> {
    range.clone().step_by(most).map(move |start| start..range.end.min(start + most))
}
