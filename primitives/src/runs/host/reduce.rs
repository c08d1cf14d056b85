//! The totals of runs.

use super::compact::{Kept, Which};
#[cfg(feature = "testing")]
use crate::DeviceSlice;
use crate::block::lookback;
use crate::equality::{Equality, HoleEquality};
use crate::hole::RegisterRepr;
use crate::host::repr::{expect_repr, repr_size};
use crate::host::runtime::column::{AnySliceMut, ColumnMut};
use crate::host::source::{AnySource, Opened, Source};
use crate::input::{Count, Input};
use crate::monoid::{HoleMonoid, Monoid};
use crate::runs::device::open::Open;
use crate::runs::device::reduce::{Heads, Keys, Marked, ReduceRuns, reduce_by_keys, reduce_marked};
use crate::transform::laid_out::ReprOutput;
use crate::{DeviceSliceMut, DeviceValue, DeviceVec, Error, GlobalMut, Stream, expect_len, expect_room};
use bytemuck::Pod;

/// Combines the values of each run of equal keys. Writes the first key and the total of each run, in order, and returns the
/// number of runs. Does not wait.
///
/// Both outputs have at least as many elements as there are keys. What follows the last run is not changed. If only the
/// device knows the number of keys, count the keys, the values or both; in the last case, both numbers must be equal.
///
/// Keys of a slice and values, of 4 and 8 bytes both, take one pass. Otherwise the keys are marked first, which takes
/// temporary memory of a byte per key, and the values are combined by that. Values of another size than 4, 8, 12, 16 or 32
/// bytes also need a copy of the totals in the next larger size. Zero-sized values have no totals: only the keys are written.
///
/// # Errors
/// [`Error::LengthMismatch`] if there are not as many values as keys, or an output is too short; any launch error.
pub fn reduce_by_key<'a, 'b, 'c, 'd, K: Pod, V: Pod, E: Equality<K>, M: Monoid<V>>(
    stream: &Stream,
    (keys, values): (impl Source<'a, K>, impl Source<'b, V>),
    (output_keys, totals): (impl Into<DeviceSliceMut<'c, K>>, impl Into<DeviceSliceMut<'d, V>>),
    equality: E,
    operation: M,
) -> Result<DeviceValue<u64>, Error> {
    const {
        expect_repr::<K>();
        if size_of::<V>() > 0 {
            expect_repr::<V>();
        }
    };
    let from = (keys.into_parts()?.lower(), values.into_parts()?.lower());
    let _span = crate::span!(stream, "runs::reduce_by_key", from.0.len());
    let (keys, totals) = (output_keys.into(), totals.into());
    let operators = (HoleEquality::of::<K, E>(equality), HoleMonoid::of::<V, M>(operation));
    reduce_runs(stream, from, (keys.into(), totals.into()), operators)
}

fn reduce_runs(
    stream: &Stream,
    (keys, values): (AnySource<'_>, AnySource<'_>),
    (mut output_keys, mut totals): (AnySliceMut<'_>, AnySliceMut<'_>),
    (equality, operation): (HoleEquality, HoleMonoid<[u64; 4]>),
) -> Result<DeviceValue<u64>, Error> {
    expect_len("the values of keys", keys.len(), values.len())?;
    expect_room("the output keys of a reduction", keys.len(), output_keys.len())?;
    expect_room("the totals of a reduction", keys.len(), totals.len())?;
    let (keys, values) = keys.in_step(values)?;
    let (len, counted) = (keys.len(), keys.counted(stream)?);
    let keys = keys.open(stream)?;
    if totals.size() == 0 {
        let mut marks = stream.uninit(len)?;
        let output = output_keys.raw_view_mut(stream)?;
        return Kept { len, which: Which::First, equality }.mark(stream, &keys, output, &mut marks);
    }
    let values = values.open(stream)?;
    let (output, totals) = (output_keys.raw_view_mut(stream)?, totals.raw_view_mut(stream)?);
    let values = Values { len, input: &values, totals, operation };
    if let Some(count) = values.reduce_by(stream, &keys, output, equality)? {
        return Ok(count);
    }
    let mut marks = stream.uninit(len)?;
    Kept { len, which: Which::First, equality }.mark(stream, &keys, output, &mut marks)?;
    values.reduce(stream, &marks, Count::new(len, counted))
}

/// Values, how they are combined, and where the totals are written.
pub(super) struct Values<'a> {
    /// The number of values; the most that it can be, if only the device knows it.
    pub len: usize,
    pub input: &'a Opened,
    /// Has room for all values.
    pub totals: ColumnMut,
    pub operation: HoleMonoid<[u64; 4]>,
}

impl Values<'_> {
    /// Combines the values of runs that begin where there are marks.
    pub fn reduce(self, stream: &Stream, marks: &DeviceVec<u8>, count: Count) -> Result<DeviceValue<u64>, Error> {
        let heads = Marked { marks: marks.raw_view(stream)?, count };
        reduce_marked!(repr_size(self.totals.size()) => (H, VEC, ROWS), {
            let totals = ReprOutput::<H>::new(stream, self.totals.slice(0, self.len))?;
            let count = self.launch::<_, H, VEC, ROWS>(stream, heads, totals.view)?;
            totals.finish_first(stream, Some(count.as_slice().raw_view(stream)?))?;
            Ok(count)
        })
    }

    /// Combines the values of runs of equal keys, if there is a kernel that reads both.
    fn reduce_by(
        &self,
        stream: &Stream,
        keys: &Opened,
        output: ColumnMut,
        equality: HoleEquality,
    ) -> Result<Option<DeviceValue<u64>>, Error> {
        reduce_by_keys!((output.size(), self.totals.size()) => (K, V, VEC, ROWS), {
            let (Ok(input), Some(output)) = (keys.held::<K>(), output.typed()) else { return Ok(None) };
            let Some(totals) = self.totals.typed::<V>() else { return Ok(None) };
            self.launch::<_, V, VEC, ROWS>(stream, Keys { equality, input, output }, totals).map(Some)
        }, else Ok(None))
    }

    fn launch<S: Heads, H: RegisterRepr, const VEC: usize, const ROWS: usize>(
        &self,
        stream: &Stream,
        heads: S,
        totals: GlobalMut<H>,
    ) -> Result<DeviceValue<u64>, Error> {
        let reduction = Reduction { len: self.len, totals, op: self.operation.held_in() };
        match self.input.held::<H>() {
            Ok(view) => reduction.launch::<S, _, 256, VEC, ROWS>(stream, heads, view),
            Err(source) => reduction.launch::<S, _, 256, VEC, ROWS>(stream, heads, source),
        }
    }
}

/// A reduction, except for its inputs.
struct Reduction<H> {
    len: usize,
    totals: GlobalMut<H>,
    op: HoleMonoid<H>,
}

impl<H: RegisterRepr> Reduction<H> {
    fn launch<S: Heads, I: Input<H>, const THREADS: u32, const VEC: usize, const ROWS: usize>(
        self,
        stream: &Stream,
        heads: S,
        values: I,
    ) -> Result<DeviceValue<u64>, Error> {
        let tiles = self.len.div_ceil(THREADS as usize * VEC * ROWS);
        if tiles == 0 {
            return DeviceValue::new(stream, 0);
        }
        let mut count = DeviceValue::uninit(stream)?;
        let scratch = stream.lookback_words(lookback::scratch_words::<Open<H>>(tiles))?;
        let kernel = ReduceRuns::<S, H, I, HoleMonoid<H>, THREADS, VEC, ROWS>::new(
            heads,
            values,
            self.totals,
            self.op,
            count.as_mut_slice().raw_view_mut(stream)?,
            scratch,
        );
        // SAFETY: one block per tile; there are as many keys or marks as values, and room for as many totals; the scratch
        // memory has the words that the tiles need.
        unsafe { stream.launch(kernel, tiles)? };
        Ok(count)
    }
}

/// [`reduce_by_key`] with a given tile shape.
///
/// # Errors
/// Those of [`reduce_by_key`].
#[cfg(feature = "testing")]
pub fn reduce_by_key_shaped<K, V, E, M, const THREADS: u32, const VEC: usize, const ROWS: usize>(
    stream: &Stream,
    (keys, values): (DeviceSlice<'_, K>, DeviceSlice<'_, V>),
    (mut output_keys, mut totals): (DeviceSliceMut<'_, K>, DeviceSliceMut<'_, V>),
    equality: E,
    operation: M,
) -> Result<DeviceValue<u64>, Error>
where
    K: RegisterRepr,
    V: RegisterRepr,
    E: Equality<K>,
    M: Monoid<V>,
{
    expect_len("the values of keys", keys.len(), values.len())?;
    expect_room("the output keys of a reduction", keys.len(), output_keys.len())?;
    expect_room("the totals of a reduction", keys.len(), totals.len())?;
    let heads = Keys {
        equality: HoleEquality::of::<K, E>(equality),
        input: keys.raw_view(stream)?,
        output: output_keys.raw_view_mut(stream)?,
    };
    let op = HoleMonoid::<V>::of::<V, M>(operation);
    let reduction = Reduction { len: keys.len(), totals: totals.raw_view_mut(stream)?, op };
    reduction.launch::<_, _, THREADS, VEC, ROWS>(stream, heads, values.raw_view(stream)?)
}
