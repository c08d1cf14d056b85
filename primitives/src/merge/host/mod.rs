//! Host functions of the merge.

#![deny(unsafe_op_in_unsafe_fn)]

#[doc(hidden)]
pub mod lowered;
mod pieces;
pub(crate) mod splits;

use crate::compare::{Compare, HoleOrder};
use crate::host::repr::expect_repr;
use crate::host::runtime::column::AnySlice;
use crate::host::source::SliceSource;
use crate::{DeviceSliceMut, Error, Stream};
use bytemuck::Pod;
use lowered::Way;

pub(crate) use lowered::place;

/// Merges two sorted sequences.
///
/// # Errors
/// [`Error::LengthMismatch`] if the output is not as long as both inputs together: nothing is written in this case.
/// [`Error::TooLong`] for 2^32 keys or more of over 16 bytes; [`Error::OutOfMemory`]; any launch error.
pub fn keys<'a, 'b, 'c, K: Pod, C: Compare<K>>(
    stream: &Stream,
    a: impl SliceSource<'a, K>,
    b: impl SliceSource<'b, K>,
    out: impl Into<DeviceSliceMut<'c, K>>,
    compare: C,
) -> Result<(), Error> {
    let a = a.into_first().lower();
    let _span = crate::span!(stream, "merge::keys", a.len());
    const { expect_repr::<K>() };
    let runs = [a, b.into_first().lower()];
    lowered::keys(stream, &runs, out.into().into(), HoleOrder::of::<K, C>(compare), Way::Tiles)
}

/// Merges two sorted sequences of keys together with their values.
///
/// # Errors
/// Same as [`keys`], and if there is not one value per key; [`Error::TooLong`] for 2^32 values or more of a size that is
/// [moved by index](super).
pub fn pairs<'a, 'b, 'c, 'd, 'e, 'f, K: Pod, V: Pod, C: Compare<K>>(
    stream: &Stream,
    a: (impl SliceSource<'a, K>, impl SliceSource<'b, V>),
    b: (impl SliceSource<'c, K>, impl SliceSource<'d, V>),
    out: (impl Into<DeviceSliceMut<'e, K>>, impl Into<DeviceSliceMut<'f, V>>),
    compare: C,
) -> Result<(), Error> {
    let (a, b) =
        ((a.0.into_first().lower(), a.1.into_first().lower()), (b.0.into_first().lower(), b.1.into_first().lower()));
    let _span = crate::span!(stream, "merge::pairs", a.0.len());
    const { expect_repr::<K>() };
    lowered::two_pairs(stream, a, b, (out.0.into().into(), out.1.into().into()), HoleOrder::of::<K, C>(compare))
}

/// Merges up to 32 sorted runs in one pass.
///
/// # Errors
/// [`Error::TooMany`] for more runs; otherwise the same as [`keys`].
pub fn runs_keys<'a, 'r, K: Pod, R: SliceSource<'r, K> + Copy, C: Compare<K>>(
    stream: &Stream,
    runs: &[R],
    out: impl Into<DeviceSliceMut<'a, K>>,
    compare: C,
) -> Result<(), Error> {
    let runs: Vec<_> = runs.iter().map(|run| run.into_first().lower()).collect();
    let _span = crate::span!(stream, "merge::runs_keys", runs.iter().map(AnySlice::len).sum::<usize>());
    const { expect_repr::<K>() };
    let order = HoleOrder::of::<K, C>(compare);
    lowered::keys(stream, &runs, out.into().into(), order, Way::Tiles)
}

/// Merges up to 32 sorted runs of keys together with their values, in one pass.
///
/// # Errors
/// [`Error::TooMany`] for more runs; otherwise the same as [`pairs`].
pub fn runs_pairs<
    'a,
    'b,
    'r,
    K: Pod,
    V: Pod,
    R: SliceSource<'r, K> + Copy,
    W: SliceSource<'r, V> + Copy,
    C: Compare<K>,
>(
    stream: &Stream,
    runs: &[(R, W)],
    out: (impl Into<DeviceSliceMut<'a, K>>, impl Into<DeviceSliceMut<'b, V>>),
    compare: C,
) -> Result<(), Error> {
    let runs: Vec<_> = runs.iter().map(|run| (run.0.into_first().lower(), run.1.into_first().lower())).collect();
    let _span = crate::span!(stream, "merge::runs_pairs", runs.iter().map(|run| run.0.len()).sum::<usize>());
    const { expect_repr::<K>() };
    let order = HoleOrder::of::<K, C>(compare);
    lowered::pairs(stream, &runs, (out.0.into().into(), out.1.into().into()), order, Way::Tiles)
}

/// Merges up to [`MAX_PLACED`](super::MAX_PLACED) short runs of keys in a single launch: each item searches the other runs for its own
/// position. For three runs or more of up to about 2^18 items in all, this is faster than [`runs_keys`]. (Keys of more
/// than 8 bytes are merged as [`runs_keys`] does it.)
///
/// The runs must be sorted by a strict weak order. Otherwise items may be lost, and others may appear more than once.
///
/// # Errors
/// [`Error::TooMany`] for more runs; otherwise the same as [`keys`].
pub fn small_runs_keys<'a, 'r, K: Pod, R: SliceSource<'r, K> + Copy, C: Compare<K>>(
    stream: &Stream,
    runs: &[R],
    out: impl Into<DeviceSliceMut<'a, K>>,
    compare: C,
) -> Result<(), Error> {
    let runs: Vec<_> = runs.iter().map(|run| run.into_first().lower()).collect();
    let _span = crate::span!(stream, "merge::small_runs_keys", runs.iter().map(AnySlice::len).sum::<usize>());
    const { expect_repr::<K>() };
    let order = HoleOrder::of::<K, C>(compare);
    lowered::keys(stream, &runs, out.into().into(), order, Way::Places)
}

/// [`small_runs_keys`] with values.
///
/// # Errors
/// The errors of [`small_runs_keys`] and [`pairs`].
pub fn small_runs_pairs<
    'a,
    'b,
    'r,
    K: Pod,
    V: Pod,
    R: SliceSource<'r, K> + Copy,
    W: SliceSource<'r, V> + Copy,
    C: Compare<K>,
>(
    stream: &Stream,
    runs: &[(R, W)],
    out: (impl Into<DeviceSliceMut<'a, K>>, impl Into<DeviceSliceMut<'b, V>>),
    compare: C,
) -> Result<(), Error> {
    let runs: Vec<_> = runs.iter().map(|run| (run.0.into_first().lower(), run.1.into_first().lower())).collect();
    let _span = crate::span!(stream, "merge::small_runs_pairs", runs.iter().map(|run| run.0.len()).sum::<usize>());
    const { expect_repr::<K>() };
    let order = HoleOrder::of::<K, C>(compare);
    lowered::pairs(stream, &runs, (out.0.into().into(), out.1.into().into()), order, Way::Places)
}
