//! Host functions of the merge.

#![deny(unsafe_op_in_unsafe_fn)]

#[doc(hidden)]
pub mod lowered;
mod pieces;
pub(crate) mod splits;

use crate::compare::{Compare, HoleOrder};
use crate::host::repr::expect_repr;
use crate::host::runtime::column::AnySliceMut;
use crate::host::source::{Elements, Source};
use crate::transform::InMemory;
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
    a: impl Source<'a, K>,
    b: impl Source<'b, K>,
    out: impl Into<DeviceSliceMut<'c, K>>,
    compare: C,
) -> Result<(), Error> {
    let runs = vec![a.into_parts()?.elements(), b.into_parts()?.elements()];
    let _span = crate::span!(stream, "merge::keys", runs[0].len());
    const { expect_repr::<K>() };
    of_keys(stream, runs, out.into().into(), HoleOrder::of::<K, C>(compare), Way::Tiles)
}

/// Merges two sorted sequences of keys together with their values.
///
/// # Errors
/// Same as [`keys`], and if there is not one value per key; [`Error::TooLong`] for 2^32 values or more of a size that is
/// [moved by index](super).
pub fn pairs<'a, 'b, 'c, 'd, 'e, 'f, K: Pod, V: Pod, C: Compare<K>>(
    stream: &Stream,
    a: (impl Source<'a, K>, impl Source<'b, V>),
    b: (impl Source<'c, K>, impl Source<'d, V>),
    out: (impl Into<DeviceSliceMut<'e, K>>, impl Into<DeviceSliceMut<'f, V>>),
    compare: C,
) -> Result<(), Error> {
    let a = (a.0.into_parts()?.elements(), a.1.into_parts()?.elements());
    let b = (b.0.into_parts()?.elements(), b.1.into_parts()?.elements());
    let _span = crate::span!(stream, "merge::pairs", a.0.len());
    const { expect_repr::<K>() };
    of_two_pairs(stream, a, b, (out.0.into().into(), out.1.into().into()), HoleOrder::of::<K, C>(compare))
}

/// Merges up to 32 sorted runs in one pass.
///
/// # Errors
/// [`Error::TooMany`] for more runs; otherwise the same as [`keys`].
pub fn runs_keys<'a, 'r, K: Pod, R: Source<'r, K> + Copy, C: Compare<K>>(
    stream: &Stream,
    runs: &[R],
    out: impl Into<DeviceSliceMut<'a, K>>,
    compare: C,
) -> Result<(), Error> {
    let runs = runs.iter().map(|run| Ok(run.into_parts()?.elements())).collect::<Result<Vec<_>, Error>>()?;
    let _span = crate::span!(stream, "merge::runs_keys", runs.iter().map(Elements::len).sum::<usize>());
    const { expect_repr::<K>() };
    let order = HoleOrder::of::<K, C>(compare);
    of_keys(stream, runs, out.into().into(), order, Way::Tiles)
}

/// Merges up to 32 sorted runs of keys together with their values, in one pass.
///
/// # Errors
/// [`Error::TooMany`] for more runs; otherwise the same as [`pairs`].
pub fn runs_pairs<'a, 'b, 'r, K: Pod, V: Pod, R: Source<'r, K> + Copy, W: Source<'r, V> + Copy, C: Compare<K>>(
    stream: &Stream,
    runs: &[(R, W)],
    out: (impl Into<DeviceSliceMut<'a, K>>, impl Into<DeviceSliceMut<'b, V>>),
    compare: C,
) -> Result<(), Error> {
    let lower = |run: &(R, W)| Ok((run.0.into_parts()?.elements(), run.1.into_parts()?.elements()));
    let runs = runs.iter().map(lower).collect::<Result<Vec<_>, Error>>()?;
    let _span = crate::span!(stream, "merge::runs_pairs", runs.iter().map(|run| run.0.len()).sum::<usize>());
    const { expect_repr::<K>() };
    let order = HoleOrder::of::<K, C>(compare);
    of_pairs(stream, runs, (out.0.into().into(), out.1.into().into()), order, Way::Tiles)
}

/// Merges up to [`MAX_PLACED`](super::MAX_PLACED) short runs of keys in a single launch: each item searches the other runs for its own
/// position. For three runs or more of up to about 2^18 items in all, this is faster than [`runs_keys`]. (Keys of more
/// than 8 bytes are merged as [`runs_keys`] does it.)
///
/// The runs must be sorted by a strict weak order. Otherwise items may be lost, and others may appear more than once.
///
/// # Errors
/// [`Error::TooMany`] for more runs; otherwise the same as [`keys`].
pub fn small_runs_keys<'a, 'r, K: Pod, R: Source<'r, K> + Copy, C: Compare<K>>(
    stream: &Stream,
    runs: &[R],
    out: impl Into<DeviceSliceMut<'a, K>>,
    compare: C,
) -> Result<(), Error> {
    let runs = runs.iter().map(|run| Ok(run.into_parts()?.elements())).collect::<Result<Vec<_>, Error>>()?;
    let _span = crate::span!(stream, "merge::small_runs_keys", runs.iter().map(Elements::len).sum::<usize>());
    const { expect_repr::<K>() };
    let order = HoleOrder::of::<K, C>(compare);
    of_keys(stream, runs, out.into().into(), order, Way::Places)
}

/// [`small_runs_keys`] with values.
///
/// # Errors
/// The errors of [`small_runs_keys`] and [`pairs`].
pub fn small_runs_pairs<'a, 'b, 'r, K: Pod, V: Pod, R: Source<'r, K> + Copy, W: Source<'r, V> + Copy, C: Compare<K>>(
    stream: &Stream,
    runs: &[(R, W)],
    out: (impl Into<DeviceSliceMut<'a, K>>, impl Into<DeviceSliceMut<'b, V>>),
    compare: C,
) -> Result<(), Error> {
    let lower = |run: &(R, W)| Ok((run.0.into_parts()?.elements(), run.1.into_parts()?.elements()));
    let runs = runs.iter().map(lower).collect::<Result<Vec<_>, Error>>()?;
    let _span = crate::span!(stream, "merge::small_runs_pairs", runs.iter().map(|run| run.0.len()).sum::<usize>());
    const { expect_repr::<K>() };
    let order = HoleOrder::of::<K, C>(compare);
    of_pairs(stream, runs, (out.0.into().into(), out.1.into().into()), order, Way::Places)
}

/// A sorted run: keys, and values.
type Run<'a> = (Elements<'a>, Elements<'a>);

fn of_keys(
    stream: &Stream,
    runs: Vec<Elements<'_>>,
    out: AnySliceMut<'_>,
    order: HoleOrder,
    way: Way,
) -> Result<(), Error> {
    let runs = runs.into_iter().map(|run| InMemory::new(stream, run)).collect::<Result<Vec<_>, _>>()?;
    let runs: Vec<_> = runs.iter().map(InMemory::as_slice).collect();
    lowered::keys(stream, &runs, out, order, way)
}

fn of_pairs(
    stream: &Stream,
    runs: Vec<Run<'_>>,
    out: (AnySliceMut<'_>, AnySliceMut<'_>),
    order: HoleOrder,
    way: Way,
) -> Result<(), Error> {
    let runs = runs.into_iter().map(|run| InMemory::pairs(stream, run)).collect::<Result<Vec<_>, _>>()?;
    let runs: Vec<_> = runs.iter().map(|(keys, values)| (keys.as_slice(), values.as_slice())).collect();
    lowered::pairs(stream, &runs, out, order, way)
}

fn of_two_pairs(
    stream: &Stream,
    a: Run<'_>,
    b: Run<'_>,
    out: (AnySliceMut<'_>, AnySliceMut<'_>),
    order: HoleOrder,
) -> Result<(), Error> {
    let (a, b) = (InMemory::pairs(stream, a)?, InMemory::pairs(stream, b)?);
    lowered::two_pairs(stream, (a.0.as_slice(), a.1.as_slice()), (b.0.as_slice(), b.1.as_slice()), out, order)
}
