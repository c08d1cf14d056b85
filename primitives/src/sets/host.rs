//! Host functions of set operations.

#![deny(unsafe_op_in_unsafe_fn)]

use super::device::{Keep, SetTiles, THREADS, set_tiles};
use crate::block::lookback;
use crate::compare::{Compare, HoleOrder};
use crate::host::repr::{expect_repr, repr_layout};
use crate::host::runtime::column::{AnySliceMut, Column};
use crate::host::runtime::loading::{Next, Upcoming};
use crate::host::runtime::pairs::{Columns, ColumnsMut};
use crate::host::source::{Elements, Source};
use crate::merge::partition;
use crate::transform::InMemory;
use crate::transform::laid_out::{Indices, LaidOut, LaidOutMut};
use crate::{DeviceSliceMut, DeviceValue, Error, Stream, expect_room};
use bytemuck::Pod;

/// A set operation.
#[derive(Clone, Copy)]
enum Operation {
    Union,
    Intersection,
    Difference,
    SymmetricDifference,
}

impl Operation {
    /// Returns which items are kept.
    fn keep(self) -> Keep {
        let (matched, unmatched, second) = match self {
            Self::Union => (1, 1, 1),
            Self::Intersection => (1, 0, 0),
            Self::Difference => (0, 1, 0),
            Self::SymmetricDifference => (0, 1, 1),
        };
        Keep { matched, unmatched, second }
    }

    /// Returns the most items that the result can have.
    fn most(self, a: usize, b: usize) -> usize {
        match self {
            Self::Union | Self::SymmetricDifference => a + b,
            Self::Intersection => a.min(b),
            Self::Difference => a,
        }
    }
}

/// Writes the items of either sequence to the front of `out`, and returns their number. Does not wait.
///
/// `out` has room for the items of both inputs. Elements after the result are not changed.
///
/// # Errors
/// [`Error::LengthMismatch`] if the output is too short: nothing is written in this case. [`Error::TooLong`] for 2^32 keys
/// or more of over 16 bytes; [`Error::OutOfMemory`]; any launch error.
pub fn union<'a, 'b, 'c, K: Pod, C: Compare<K>>(
    stream: &Stream,
    a: impl Source<'a, K>,
    b: impl Source<'b, K>,
    out: impl Into<DeviceSliceMut<'c, K>>,
    order: C,
) -> Result<DeviceValue<u64>, Error> {
    const { expect_repr::<K>() };
    let a = a.into_parts()?.elements();
    let _span = crate::span!(stream, "sets::union", a.len());
    of_keys(stream, Operation::Union, a, b.into_parts()?.elements(), out.into().into(), HoleOrder::of::<K, C>(order))
}

/// Writes the items of the first sequence that are also in the second to the front of `out`, and returns their number.
/// Does not wait.
///
/// `out` has room for the items of the shorter input. Elements after the result are not changed.
///
/// # Errors
/// Same as [`union`].
pub fn intersection<'a, 'b, 'c, K: Pod, C: Compare<K>>(
    stream: &Stream,
    a: impl Source<'a, K>,
    b: impl Source<'b, K>,
    out: impl Into<DeviceSliceMut<'c, K>>,
    order: C,
) -> Result<DeviceValue<u64>, Error> {
    const { expect_repr::<K>() };
    let a = a.into_parts()?.elements();
    let _span = crate::span!(stream, "sets::intersection", a.len());
    of_keys(
        stream,
        Operation::Intersection,
        a,
        b.into_parts()?.elements(),
        out.into().into(),
        HoleOrder::of::<K, C>(order),
    )
}

/// Writes the items of the first sequence that are not in the second to the front of `out`, and returns their number.
/// Does not wait.
///
/// `out` has room for the items of the first input. Elements after the result are not changed.
///
/// # Errors
/// Same as [`union`].
pub fn difference<'a, 'b, 'c, K: Pod, C: Compare<K>>(
    stream: &Stream,
    a: impl Source<'a, K>,
    b: impl Source<'b, K>,
    out: impl Into<DeviceSliceMut<'c, K>>,
    order: C,
) -> Result<DeviceValue<u64>, Error> {
    const { expect_repr::<K>() };
    let a = a.into_parts()?.elements();
    let _span = crate::span!(stream, "sets::difference", a.len());
    of_keys(
        stream,
        Operation::Difference,
        a,
        b.into_parts()?.elements(),
        out.into().into(),
        HoleOrder::of::<K, C>(order),
    )
}

/// Writes the items that are in one sequence and not in the other to the front of `out`, and returns their number. Does
/// not wait.
///
/// `out` has room for the items of both inputs. Elements after the result are not changed.
///
/// # Errors
/// Same as [`union`].
pub fn symmetric_difference<'a, 'b, 'c, K: Pod, C: Compare<K>>(
    stream: &Stream,
    a: impl Source<'a, K>,
    b: impl Source<'b, K>,
    out: impl Into<DeviceSliceMut<'c, K>>,
    order: C,
) -> Result<DeviceValue<u64>, Error> {
    const { expect_repr::<K>() };
    let a = a.into_parts()?.elements();
    let _span = crate::span!(stream, "sets::symmetric_difference", a.len());
    of_keys(
        stream,
        Operation::SymmetricDifference,
        a,
        b.into_parts()?.elements(),
        out.into().into(),
        HoleOrder::of::<K, C>(order),
    )
}

/// [`union`] of pairs, by their keys: a value comes from where its key came from.
///
/// # Errors
/// Same as [`union`], and if there is not one value per key. [`Error::TooLong`] for 2^32 values or more of a size that is
/// [moved by index](super).
pub fn union_pairs<'a, 'b, 'c, 'd, 'e, 'f, K: Pod, V: Pod, C: Compare<K>>(
    stream: &Stream,
    a: (impl Source<'a, K>, impl Source<'b, V>),
    b: (impl Source<'c, K>, impl Source<'d, V>),
    out: (impl Into<DeviceSliceMut<'e, K>>, impl Into<DeviceSliceMut<'f, V>>),
    order: C,
) -> Result<DeviceValue<u64>, Error> {
    const { expect_repr::<K>() };
    let a = (a.0.into_parts()?.elements(), a.1.into_parts()?.elements());
    let _span = crate::span!(stream, "sets::union_pairs", a.0.len());
    let b = (b.0.into_parts()?.elements(), Some(b.1.into_parts()?.elements()));
    let out = (out.0.into().into(), out.1.into().into());
    of_pairs(stream, Operation::Union, a, b, out, HoleOrder::of::<K, C>(order))
}

/// [`intersection`] of pairs, by their keys, with the values of the first sequence.
///
/// # Errors
/// Same as [`union_pairs`].
pub fn intersection_pairs<'a, 'b, 'c, 'd, 'e, K: Pod, V: Pod, C: Compare<K>>(
    stream: &Stream,
    a: (impl Source<'a, K>, impl Source<'b, V>),
    b: impl Source<'c, K>,
    out: (impl Into<DeviceSliceMut<'d, K>>, impl Into<DeviceSliceMut<'e, V>>),
    order: C,
) -> Result<DeviceValue<u64>, Error> {
    const { expect_repr::<K>() };
    let a = (a.0.into_parts()?.elements(), a.1.into_parts()?.elements());
    let _span = crate::span!(stream, "sets::intersection_pairs", a.0.len());
    let b = (b.into_parts()?.elements(), None);
    let out = (out.0.into().into(), out.1.into().into());
    of_pairs(stream, Operation::Intersection, a, b, out, HoleOrder::of::<K, C>(order))
}

/// [`difference`] of pairs, by their keys, with the values of the first sequence.
///
/// # Errors
/// Same as [`union_pairs`].
pub fn difference_pairs<'a, 'b, 'c, 'd, 'e, K: Pod, V: Pod, C: Compare<K>>(
    stream: &Stream,
    a: (impl Source<'a, K>, impl Source<'b, V>),
    b: impl Source<'c, K>,
    out: (impl Into<DeviceSliceMut<'d, K>>, impl Into<DeviceSliceMut<'e, V>>),
    order: C,
) -> Result<DeviceValue<u64>, Error> {
    const { expect_repr::<K>() };
    let a = (a.0.into_parts()?.elements(), a.1.into_parts()?.elements());
    let _span = crate::span!(stream, "sets::difference_pairs", a.0.len());
    let b = (b.into_parts()?.elements(), None);
    let out = (out.0.into().into(), out.1.into().into());
    of_pairs(stream, Operation::Difference, a, b, out, HoleOrder::of::<K, C>(order))
}

/// [`symmetric_difference`] of pairs, by their keys: a value comes from where its key came from.
///
/// # Errors
/// Same as [`union_pairs`].
pub fn symmetric_difference_pairs<'a, 'b, 'c, 'd, 'e, 'f, K: Pod, V: Pod, C: Compare<K>>(
    stream: &Stream,
    a: (impl Source<'a, K>, impl Source<'b, V>),
    b: (impl Source<'c, K>, impl Source<'d, V>),
    out: (impl Into<DeviceSliceMut<'e, K>>, impl Into<DeviceSliceMut<'f, V>>),
    order: C,
) -> Result<DeviceValue<u64>, Error> {
    const { expect_repr::<K>() };
    let a = (a.0.into_parts()?.elements(), a.1.into_parts()?.elements());
    let _span = crate::span!(stream, "sets::symmetric_difference_pairs", a.0.len());
    let b = (b.0.into_parts()?.elements(), Some(b.1.into_parts()?.elements()));
    let out = (out.0.into().into(), out.1.into().into());
    of_pairs(stream, Operation::SymmetricDifference, a, b, out, HoleOrder::of::<K, C>(order))
}

fn of_keys(
    stream: &Stream,
    operation: Operation,
    a: Elements<'_>,
    b: Elements<'_>,
    out: AnySliceMut<'_>,
    order: HoleOrder,
) -> Result<DeviceValue<u64>, Error> {
    expect_room("the output of a set operation", operation.most(a.len(), b.len()), out.len())?;
    let (a, b) = (InMemory::new(stream, a)?, InMemory::new(stream, b)?);
    let (a, b) = (Columns::keys(stream, a.as_slice())?, Columns::keys(stream, b.as_slice())?);
    Sets { stream, operation, order }.run(a, b, ColumnsMut::keys(stream, out)?)
}

/// The second sequence needs no values if none of it is kept.
fn of_pairs(
    stream: &Stream,
    operation: Operation,
    a: (Elements<'_>, Elements<'_>),
    (b_keys, b_values): (Elements<'_>, Option<Elements<'_>>),
    (mut keys, mut values): (AnySliceMut<'_>, AnySliceMut<'_>),
    order: HoleOrder,
) -> Result<DeviceValue<u64>, Error> {
    let a = InMemory::pairs(stream, a)?;
    let a = Columns::new(stream, (a.0.as_slice(), a.1.as_slice()), "the first values of a set operation")?;
    let b = match b_values {
        Some(values) => InMemory::pairs(stream, (b_keys, values)).map(|(keys, values)| (keys, Some(values)))?,
        None => (InMemory::new(stream, b_keys)?, None),
    };
    let b = match &b {
        (keys, Some(values)) => {
            Columns::new(stream, (keys.as_slice(), values.as_slice()), "the second values of a set operation")?
        }
        (keys, None) => Columns { keys: keys.as_slice().raw_view(stream)?, values: a.values.slice(0, 0) },
    };
    let most = operation.most(a.keys.len(), b.keys.len());
    expect_room("the output keys of a set operation", most, keys.len())?;
    expect_room("the output values of a set operation", most, values.len())?;
    let out = ColumnsMut { keys: keys.raw_view_mut(stream)?, values: values.raw_view_mut(stream)? };
    Sets { stream, operation, order }.run(a, b, out)
}

#[derive(Clone, Copy)]
struct Sets<'a> {
    stream: &'a Stream,
    operation: Operation,
    order: HoleOrder,
}

impl Sets<'_> {
    /// Works in the form in which kernels exist: keys in the type that holds them, values by a carrier or by index.
    fn run(self, a: Columns, b: Columns, out: ColumnsMut) -> Result<DeviceValue<u64>, Error> {
        let stream = self.stream;
        if a.keys.len() + b.keys.len() == 0 {
            return DeviceValue::new(stream, 0);
        }
        // The kernel writes no more, whatever the order is.
        let out = out.slice(0, self.operation.most(a.keys.len(), b.keys.len()));
        let layout = repr_layout(out.keys.size());
        let (a_keys, b_keys) = (LaidOut::new(stream, a.keys, layout)?, LaidOut::new(stream, b.keys, layout)?);
        let out_keys = LaidOutMut::new(stream, out.keys, layout)?;
        let (a, b) = (Columns { keys: a_keys.view, ..a }, Columns { keys: b_keys.view, ..b });
        let count = self.run_held(a, b, ColumnsMut { keys: out_keys.view, ..out })?;
        // What follows the result stays as it is.
        out_keys.finish_first(stream, Some(count.as_slice().raw_view(stream)?))?;
        Ok(count)
    }

    /// Works with keys that are held. Where no kernel moves the values, it moves their indices, and then the values.
    fn run_held(self, a: Columns, b: Columns, out: ColumnsMut) -> Result<DeviceValue<u64>, Error> {
        // Kernels need aligned values. Where there are none, any aligned address will do.
        let b = if b.values.len() == 0 { Columns { values: a.values.slice(0, 0), ..b } } else { b };
        let is_moved = |values: &Column| set_tiles!((a.keys.size(), values.size()) => (K, V, ITEMS), values.fits::<V>(), else false);
        if [a.values, b.values, out.values.as_const()].iter().all(is_moved) {
            return self.launch(a, b, out);
        }
        let stream = self.stream;
        let mut indices = Indices::new(stream, a.keys.len() + b.keys.len(), out.keys.len())?;
        let from = indices.from.raw_view(stream)?;
        // SAFETY: there is an index for each key.
        let (of_a, of_b) = unsafe { (from.slice(0, a.keys.len()), from.slice(a.keys.len(), b.keys.len())) };
        let indexed_a = Columns { values: of_a.into(), ..a };
        let indexed_b = Columns { values: of_b.into(), ..b };
        let moved = ColumnsMut { values: indices.to.raw_view_mut(stream)?.into(), ..out };
        let count = self.launch(indexed_a, indexed_b, moved)?;
        if self.operation.keep().second == 0 {
            indices.gather_held(stream, a.values, out.values)?;
        } else {
            let sources = [a.values.limited(a.limit()), b.values.limited(b.limit())];
            indices.gather(stream, &sources, out.values)?;
        }
        Ok(count)
    }

    fn launch(self, a: Columns, b: Columns, out: ColumnsMut) -> Result<DeviceValue<u64>, Error> {
        let Self { stream, order, .. } = self;
        let (per_thread, next): (_, Next) = set_tiles!(out.sizes() => (K, V, ITEMS), {
            (ITEMS, Upcoming::kernel::<SetTiles<K, V, HoleOrder, THREADS, ITEMS>>)
        });
        let tile = THREADS as usize * per_thread;
        let tiles = (a.keys.len() + b.keys.len()).div_ceil(tile);
        let splits = partition(stream, a.keys, b.keys, order, tile, next)?;
        let splits = splits.view(stream)?;
        let mut count = DeviceValue::uninit(stream)?;
        let count_view = count.as_mut_slice().raw_view_mut(stream)?;
        let scratch = stream.lookback_words(lookback::scratch_words::<u64>(tiles))?;
        set_tiles!(out.sizes() => (K, V, ITEMS), {
            let kernel = SetTiles::<K, V, HoleOrder, THREADS, ITEMS>::new(
                a.prefix(),
                b.prefix(),
                out.as_types(),
                order,
                self.operation.keep(),
                splits,
                count_view,
                scratch,
            );
            // SAFETY: one block per tile, and the splits were computed for this tile size. There are as many values as
            // keys, if there are any, except on a side of which nothing is kept. The scratch memory has the words that the
            // tiles need.
            unsafe { stream.launch(kernel, tiles)? };
        });
        Ok(count)
    }
}
