//! Host functions of set operations.

#![deny(unsafe_op_in_unsafe_fn)]

use super::kernel::{Keep, SetTiles, THREADS, items};
use crate::block::lookback;
use crate::compare::{Compare, HoleOrder, KeyOrder};
use crate::hole::Held;
use crate::merge::partition;
use crate::runtime::carrier::carried_with;
use crate::runtime::held::{HeldIn, HeldOut, Indices, held};
use crate::runtime::pairs::{Pairs, PairsMut, no_values};
use crate::with_shape;
use crate::{DeviceSlice, DeviceSliceMut, DeviceValue, Error, Global, Stream, expect_room};
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
pub fn union<'a, K: Pod, C: Compare<K>>(
    stream: &Stream,
    a: impl Into<DeviceSlice<'a, K>>,
    b: impl Into<DeviceSlice<'a, K>>,
    out: impl Into<DeviceSliceMut<'a, K>>,
    order: C,
) -> Result<DeviceValue<u64>, Error> {
    let a: DeviceSlice<'a, K> = a.into();
    let _span = crate::span!(stream, "sets::union", a.len());
    of_keys(stream, Operation::Union, a, b.into(), out.into(), order)
}

/// Writes the items of the first sequence that are also in the second to the front of `out`, and returns their number.
/// Does not wait.
///
/// `out` has room for the items of the shorter input. Elements after the result are not changed.
///
/// # Errors
/// Same as [`union`].
pub fn intersection<'a, K: Pod, C: Compare<K>>(
    stream: &Stream,
    a: impl Into<DeviceSlice<'a, K>>,
    b: impl Into<DeviceSlice<'a, K>>,
    out: impl Into<DeviceSliceMut<'a, K>>,
    order: C,
) -> Result<DeviceValue<u64>, Error> {
    let a: DeviceSlice<'a, K> = a.into();
    let _span = crate::span!(stream, "sets::intersection", a.len());
    of_keys(stream, Operation::Intersection, a, b.into(), out.into(), order)
}

/// Writes the items of the first sequence that are not in the second to the front of `out`, and returns their number.
/// Does not wait.
///
/// `out` has room for the items of the first input. Elements after the result are not changed.
///
/// # Errors
/// Same as [`union`].
pub fn difference<'a, K: Pod, C: Compare<K>>(
    stream: &Stream,
    a: impl Into<DeviceSlice<'a, K>>,
    b: impl Into<DeviceSlice<'a, K>>,
    out: impl Into<DeviceSliceMut<'a, K>>,
    order: C,
) -> Result<DeviceValue<u64>, Error> {
    let a: DeviceSlice<'a, K> = a.into();
    let _span = crate::span!(stream, "sets::difference", a.len());
    of_keys(stream, Operation::Difference, a, b.into(), out.into(), order)
}

/// Writes the items that are in one sequence and not in the other to the front of `out`, and returns their number. Does
/// not wait.
///
/// `out` has room for the items of both inputs. Elements after the result are not changed.
///
/// # Errors
/// Same as [`union`].
pub fn symmetric_difference<'a, K: Pod, C: Compare<K>>(
    stream: &Stream,
    a: impl Into<DeviceSlice<'a, K>>,
    b: impl Into<DeviceSlice<'a, K>>,
    out: impl Into<DeviceSliceMut<'a, K>>,
    order: C,
) -> Result<DeviceValue<u64>, Error> {
    let a: DeviceSlice<'a, K> = a.into();
    let _span = crate::span!(stream, "sets::symmetric_difference", a.len());
    of_keys(stream, Operation::SymmetricDifference, a, b.into(), out.into(), order)
}

/// [`union`] of pairs, by their keys: a value comes from where its key came from.
///
/// # Errors
/// Same as [`union`], and if there is not one value per key. [`Error::TooLong`] for 2^32 values or more of a size that is
/// [moved by index](super).
pub fn union_pairs<'a, K: Pod, V: Pod, C: Compare<K>>(
    stream: &Stream,
    a: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
    b: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
    out: (impl Into<DeviceSliceMut<'a, K>>, impl Into<DeviceSliceMut<'a, V>>),
    order: C,
) -> Result<DeviceValue<u64>, Error> {
    let a: (DeviceSlice<'a, K>, _) = (a.0.into(), a.1);
    let _span = crate::span!(stream, "sets::union_pairs", a.0.len());
    let (a, b) = (first_side(stream, a.0, a.1.into())?, second_side(stream, b.0.into(), b.1.into())?);
    of_pairs(stream, Operation::Union, a, b, (out.0.into(), out.1.into()), order)
}

/// [`intersection`] of pairs, by their keys, with the values of the first sequence.
///
/// # Errors
/// Same as [`union_pairs`].
pub fn intersection_pairs<'a, K: Pod, V: Pod, C: Compare<K>>(
    stream: &Stream,
    a: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
    b: impl Into<DeviceSlice<'a, K>>,
    out: (impl Into<DeviceSliceMut<'a, K>>, impl Into<DeviceSliceMut<'a, V>>),
    order: C,
) -> Result<DeviceValue<u64>, Error> {
    let a: (DeviceSlice<'a, K>, _) = (a.0.into(), a.1);
    let _span = crate::span!(stream, "sets::intersection_pairs", a.0.len());
    let (a, b) = (first_side(stream, a.0, a.1.into())?, without_values(stream, b.into())?);
    of_pairs(stream, Operation::Intersection, a, b, (out.0.into(), out.1.into()), order)
}

/// [`difference`] of pairs, by their keys, with the values of the first sequence.
///
/// # Errors
/// Same as [`union_pairs`].
pub fn difference_pairs<'a, K: Pod, V: Pod, C: Compare<K>>(
    stream: &Stream,
    a: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
    b: impl Into<DeviceSlice<'a, K>>,
    out: (impl Into<DeviceSliceMut<'a, K>>, impl Into<DeviceSliceMut<'a, V>>),
    order: C,
) -> Result<DeviceValue<u64>, Error> {
    let a: (DeviceSlice<'a, K>, _) = (a.0.into(), a.1);
    let _span = crate::span!(stream, "sets::difference_pairs", a.0.len());
    let (a, b) = (first_side(stream, a.0, a.1.into())?, without_values(stream, b.into())?);
    of_pairs(stream, Operation::Difference, a, b, (out.0.into(), out.1.into()), order)
}

/// [`symmetric_difference`] of pairs, by their keys: a value comes from where its key came from.
///
/// # Errors
/// Same as [`union_pairs`].
pub fn symmetric_difference_pairs<'a, K: Pod, V: Pod, C: Compare<K>>(
    stream: &Stream,
    a: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
    b: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
    out: (impl Into<DeviceSliceMut<'a, K>>, impl Into<DeviceSliceMut<'a, V>>),
    order: C,
) -> Result<DeviceValue<u64>, Error> {
    let a: (DeviceSlice<'a, K>, _) = (a.0.into(), a.1);
    let _span = crate::span!(stream, "sets::symmetric_difference_pairs", a.0.len());
    let (a, b) = (first_side(stream, a.0, a.1.into())?, second_side(stream, b.0.into(), b.1.into())?);
    of_pairs(stream, Operation::SymmetricDifference, a, b, (out.0.into(), out.1.into()), order)
}

fn first_side<K: Pod, V: Pod>(
    stream: &Stream,
    keys: DeviceSlice<'_, K>,
    values: DeviceSlice<'_, V>,
) -> Result<Pairs<K, V>, Error> {
    Pairs::new(stream, keys, values, "the first values of a set operation")
}

fn second_side<K: Pod, V: Pod>(
    stream: &Stream,
    keys: DeviceSlice<'_, K>,
    values: DeviceSlice<'_, V>,
) -> Result<Pairs<K, V>, Error> {
    Pairs::new(stream, keys, values, "the second values of a set operation")
}

/// Keys of which none is kept.
fn without_values<K: Pod, V: Pod>(stream: &Stream, keys: DeviceSlice<'_, K>) -> Result<Pairs<K, V>, Error> {
    Ok(Pairs { keys: keys.raw_view(stream)?, values: Global::empty() })
}

fn of_keys<K: Pod, C: Compare<K>>(
    stream: &Stream,
    operation: Operation,
    a: DeviceSlice<'_, K>,
    b: DeviceSlice<'_, K>,
    mut out: DeviceSliceMut<'_, K>,
    order: C,
) -> Result<DeviceValue<u64>, Error> {
    expect_room("the output of a set operation", operation.most(a.len(), b.len()), out.len())?;
    let out = PairsMut { keys: out.raw_view_mut(stream)?, values: no_values(out.len()) };
    Sets { stream, operation }.run(Pairs::keys(stream, a)?, Pairs::keys(stream, b)?, out, order)
}

fn of_pairs<K: Pod, V: Pod, C: Compare<K>>(
    stream: &Stream,
    operation: Operation,
    a: Pairs<K, V>,
    b: Pairs<K, V>,
    (mut keys, mut values): (DeviceSliceMut<'_, K>, DeviceSliceMut<'_, V>),
    order: C,
) -> Result<DeviceValue<u64>, Error> {
    let most = operation.most(a.keys.len(), b.keys.len());
    expect_room("the output keys of a set operation", most, keys.len())?;
    expect_room("the output values of a set operation", most, values.len())?;
    let out = PairsMut { keys: keys.raw_view_mut(stream)?, values: values.raw_view_mut(stream)? };
    Sets { stream, operation }.run(a, b, out, order)
}

#[derive(Clone, Copy)]
struct Sets<'a> {
    stream: &'a Stream,
    operation: Operation,
}

impl Sets<'_> {
    /// Works in the form in which kernels exist: keys in the type that holds them, values by a carrier or by index.
    fn run<K: Pod, V: Pod, C: Compare<K>>(
        self,
        a: Pairs<K, V>,
        b: Pairs<K, V>,
        out: PairsMut<K, V>,
        order: C,
    ) -> Result<DeviceValue<u64>, Error> {
        if a.keys.len() + b.keys.len() == 0 {
            return DeviceValue::new(self.stream, 0);
        }
        let most = self.operation.most(a.keys.len(), b.keys.len());
        // SAFETY: there is room for them. The kernel then writes no more, whatever the order is.
        let out = unsafe { PairsMut { keys: out.keys.slice(0, most), values: out.values.slice(0, most) } };
        let order = HoleOrder::of::<K, C>(order);
        held!(K as H, {
            let (a_keys, b_keys) = (HeldIn::<H>::new(self.stream, a.keys)?, HeldIn::<H>::new(self.stream, b.keys)?);
            // What follows the result stays as it is.
            let out_keys = HeldOut::<H>::with_contents(self.stream, out.keys)?;
            let (a, b) = (Pairs { keys: a_keys.view, values: a.values }, Pairs { keys: b_keys.view, values: b.values });
            let count = self.run_held(a, b, PairsMut { keys: out_keys.view, values: out.values }, order)?;
            out_keys.finish(self.stream)?;
            Ok(count)
        })
    }

    fn run_held<H: Held, V: Pod>(
        self,
        a: Pairs<H, V>,
        b: Pairs<H, V>,
        out: PairsMut<H, V>,
        order: HoleOrder,
    ) -> Result<DeviceValue<u64>, Error> {
        // A carrier looks at the addresses of all values. Where there are none, any aligned one will do.
        let b = if b.values.is_empty() { Pairs { keys: b.keys, values: none_at(a.values) } } else { b };
        carried_with!(
            H, V, ((a, b), out),
            |((a, b), out)| self.shaped(a, b, out, order),
            else |((a, b), out)| self.run_indexed(a, b, out, order)
        )
    }

    /// Moves the indices of the values, and then the values.
    fn run_indexed<H: Held, V: Pod>(
        self,
        a: Pairs<H, V>,
        b: Pairs<H, V>,
        out: PairsMut<H, V>,
        order: HoleOrder,
    ) -> Result<DeviceValue<u64>, Error> {
        let stream = self.stream;
        let mut indices = Indices::new(stream, a.keys.len() + b.keys.len(), out.keys.len())?;
        let from = indices.from.raw_view(stream)?;
        // SAFETY: there is an index for each key.
        let (of_a, of_b) = unsafe { (from.slice(0, a.keys.len()), from.slice(a.keys.len(), b.keys.len())) };
        let (indexed_a, indexed_b) = (Pairs { keys: a.keys, values: of_a }, Pairs { keys: b.keys, values: of_b });
        let moved = PairsMut { keys: out.keys, values: indices.to.raw_view_mut(stream)? };
        let count = self.shaped(indexed_a, indexed_b, moved, order)?;
        if self.operation.keep().second == 0 {
            indices.gather_held(stream, a.values, out.values)?;
        } else {
            indices.gather(stream, &[a.values.into(), b.values.into()], out.values.into())?;
        }
        Ok(count)
    }

    fn shaped<K: Pod, V: Pod, C: KeyOrder<K>>(
        self,
        a: Pairs<K, V>,
        b: Pairs<K, V>,
        out: PairsMut<K, V>,
        order: C,
    ) -> Result<DeviceValue<u64>, Error> {
        with_shape!(ITEMS in 15 | 9 | 5 = items::<K>(), self.launch::<K, V, C, ITEMS>(a, b, out, order))
    }

    fn launch<K: Pod, V: Pod, C: KeyOrder<K>, const ITEMS: usize>(
        self,
        a: Pairs<K, V>,
        b: Pairs<K, V>,
        out: PairsMut<K, V>,
        order: C,
    ) -> Result<DeviceValue<u64>, Error> {
        let stream = self.stream;
        let tile = THREADS as usize * ITEMS;
        let tiles = (a.keys.len() + b.keys.len()).div_ceil(tile);
        let splits = partition(stream, a.keys, b.keys, order, tile)?;
        let (boundaries, verdicts) = (splits.boundaries(stream)?, splits.verdicts(stream)?);
        let mut count = DeviceValue::uninit(stream)?;
        let count_view = count.as_mut_slice().raw_view_mut(stream)?;
        let scratch = stream.lookback_words(lookback::scratch_words::<u64>(tiles))?;
        let kernel = SetTiles::<K, V, C, THREADS, ITEMS>::new(
            a.keys,
            a.values,
            b.keys,
            b.values,
            out.keys,
            out.values,
            order,
            self.operation.keep(),
            boundaries,
            verdicts,
            count_view,
            scratch,
        );
        // SAFETY: one block per tile, and the splits were computed for this tile size. There are as many values as keys, if
        // there are any, except on a side of which nothing is kept. The scratch memory has the words that the tiles need.
        unsafe { stream.launch(kernel, tiles)? };
        Ok(count)
    }
}

/// Returns a view of no values, at the address of these.
fn none_at<V: Pod>(values: Global<V>) -> Global<V> {
    // SAFETY: the view is empty.
    unsafe { Global::from_raw(values.as_ptr(), 0) }
}
