//! One element of each run.

use crate::block::lookback;
use crate::equality::{Equality, HoleEquality};
use crate::hole::RegisterRepr;
use crate::host::repr::{expect_repr, repr_size_or_bytes};
use crate::host::runtime::column::{AnySliceMut, Column, ColumnMut};
use crate::host::source::{AnySource, Elements, Opened, Source};
use crate::input::Input;
use crate::runs::device::compact::{CompactRuns, compact_pairs, compact_runs};
use crate::runs::device::run_outputs::{Marks, RunOutputs, Values};
use crate::transform::InMemory;
use crate::transform::laid_out::ReprOutput;
use crate::{DeviceSliceMut, DeviceValue, DeviceVec, Error, GlobalMut, Stream, expect_len, expect_room, select};
use bytemuck::Pod;

/// Which element of a run is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The first one.
    First,
    /// The last one.
    Last,
}

/// Writes the first element of each run to the front of `output`, in order, and returns the number of runs. Does not wait.
///
/// `output` has at least as many elements as `input`. Elements after the kept ones are not changed.
///
/// Elements of another size than 1, 2, 4, 8, 12, 16 or 32 bytes need temporary memory: a copy of the output in the next
/// larger size.
///
/// # Errors
/// [`Error::LengthMismatch`] if the output is too short; any launch error.
pub fn unique<'a, 'b, T: Pod, E: Equality<T>>(
    stream: &Stream,
    input: impl Source<'a, T>,
    output: impl Into<DeviceSliceMut<'b, T>>,
    equality: E,
) -> Result<DeviceValue<u64>, Error> {
    const { expect_repr::<T>() };
    let (input, output) = (input.into_parts()?.lower(), output.into());
    let _span = crate::span!(stream, "runs::unique", input.len());
    keep(stream, &input, output.into(), HoleEquality::of::<T, E>(equality), Which::First)
}

/// [`unique`], but the last element of each run is kept.
///
/// # Errors
/// Same as [`unique`].
pub fn unique_last<'a, 'b, T: Pod, E: Equality<T>>(
    stream: &Stream,
    input: impl Source<'a, T>,
    output: impl Into<DeviceSliceMut<'b, T>>,
    equality: E,
) -> Result<DeviceValue<u64>, Error> {
    const { expect_repr::<T>() };
    let (input, output) = (input.into_parts()?.lower(), output.into());
    let _span = crate::span!(stream, "runs::unique_last", input.len());
    keep(stream, &input, output.into(), HoleEquality::of::<T, E>(equality), Which::Last)
}

pub(super) fn keep(
    stream: &Stream,
    input: &AnySource<'_>,
    mut output: AnySliceMut<'_>,
    equality: HoleEquality,
    which: Which,
) -> Result<DeviceValue<u64>, Error> {
    expect_room("the output of unique elements", input.len(), output.len())?;
    let (len, input) = (input.len(), input.open(stream)?);
    Kept { len, which, equality }.run(stream, &input, output.raw_view_mut(stream)?, ())
}

/// Writes one pair of each run of equal keys, in order, and returns the number of runs. Does not wait.
///
/// Both outputs have at least as many elements as there are keys. Elements after the kept pairs are not changed.
///
/// Keys and values of 4 and 8 bytes take one pass. Of the values, it reads those that are kept. Otherwise each key is
/// marked first, which takes temporary memory of a byte per key, and the values are [selected](select::flagged) by that.
///
/// # Errors
/// [`Error::LengthMismatch`] if there are not as many values as keys, or an output is too short; [`Error::TooLong`] for
/// 2^32 values or more of other sizes than 4 and 8 bytes; any launch error.
pub fn unique_by_key<'a, 'b, 'c, 'd, K: Pod, V: Pod, E: Equality<K>>(
    stream: &Stream,
    input: (impl Source<'a, K>, impl Source<'b, V>),
    output: (impl Into<DeviceSliceMut<'c, K>>, impl Into<DeviceSliceMut<'d, V>>),
    equality: E,
    which: Which,
) -> Result<DeviceValue<u64>, Error> {
    const { expect_repr::<K>() };
    let (keys, values) = (input.0.into_parts()?.lower(), input.1.into_parts()?.elements());
    let _span = crate::span!(stream, "runs::unique_by_key", keys.len());
    let (output_keys, output_values) = (output.0.into(), output.1.into());
    let output = (output_keys.into(), output_values.into());
    keep_pairs(stream, (keys, values), output, HoleEquality::of::<K, E>(equality), which)
}

fn keep_pairs(
    stream: &Stream,
    (keys, values): (AnySource<'_>, Elements<'_>),
    (mut output_keys, mut output_values): (AnySliceMut<'_>, AnySliceMut<'_>),
    equality: HoleEquality,
    which: Which,
) -> Result<DeviceValue<u64>, Error> {
    expect_len("the values of unique keys", keys.len(), values.len())?;
    expect_room("the output of unique keys", keys.len(), output_keys.len())?;
    expect_room("the output of values of unique keys", keys.len(), output_values.len())?;
    let (keys, values) = keys.in_step_with(values)?;
    let values = InMemory::new(stream, values)?;
    // No value beyond those of the keys is read.
    let values = values.as_slice().counted(None);
    let (len, is_counted) = (keys.len(), keys.is_counted());
    let (keys, to) = (keys.open(stream)?, output_keys.raw_view_mut(stream)?);
    let kept = Kept { len, which, equality };
    let moved = (values.raw_view(stream)?, output_values.raw_view_mut(stream)?);
    if let Some(count) = kept.move_pairs(stream, &keys, to, moved)? {
        return Ok(count);
    }
    let mut marks = if is_counted { stream.zeroed(len)? } else { stream.uninit(len)? };
    let count = kept.mark(stream, &keys, to, &mut marks)?;
    select::flagged_any(stream, values, marks.as_slice(), output_values)?;
    Ok(count)
}

/// What is kept of which elements.
#[derive(Clone, Copy)]
pub(super) struct Kept {
    /// The number of elements; the most that it can be, if only the device knows it.
    pub len: usize,
    pub which: Which,
    pub equality: HoleEquality,
}

impl Kept {
    /// Writes the kept elements, and marks them with a byte each. Bytes after the last element are not changed.
    pub fn mark(
        self,
        stream: &Stream,
        input: &Opened,
        output: ColumnMut,
        marks: &mut DeviceVec<u8>,
    ) -> Result<DeviceValue<u64>, Error> {
        let marks = Marks(marks.raw_view_mut(stream)?);
        self.run(stream, input, output, marks)
    }

    /// Writes the kept elements with their values, if there is a kernel that moves both.
    fn move_pairs(
        self,
        stream: &Stream,
        keys: &Opened,
        to: ColumnMut,
        (values, to_values): (Column, ColumnMut),
    ) -> Result<Option<DeviceValue<u64>>, Error> {
        compact_pairs!((to.size(), values.size()) => (K, V, VEC, ROWS), {
            let Some(to) = to.typed::<K>() else { return Ok(None) };
            let (Some(input), Some(output)) = (values.typed::<V>(), to_values.typed()) else { return Ok(None) };
            self.launch_from::<K, _, VEC, ROWS>(stream, keys, to, Values { input, output }).map(Some)
        }, else Ok(None))
    }

    /// Writes the kept elements. What is written in addition works with elements of every size.
    fn run<X: RunOutputs>(
        self,
        stream: &Stream,
        input: &Opened,
        output: ColumnMut,
        beside: X,
    ) -> Result<DeviceValue<u64>, Error> {
        compact_runs!(repr_size_or_bytes(output.size()) => (H, VEC, ROWS), {
            let output = ReprOutput::<H>::new(stream, output.slice(0, self.len))?;
            let count = self.launch_from::<H, X, VEC, ROWS>(stream, input, output.view, beside)?;
            output.finish_first(stream, Some(count.as_slice().raw_view(stream)?))?;
            Ok(count)
        })
    }

    /// Writes the kept elements of a source.
    pub fn launch_from<H: RegisterRepr, X: RunOutputs, const VEC: usize, const ROWS: usize>(
        self,
        stream: &Stream,
        input: &Opened,
        output: GlobalMut<H>,
        beside: X,
    ) -> Result<DeviceValue<u64>, Error> {
        self.launch::<H, _, X, 256, VEC, ROWS>(stream, input.fused(), output, beside)
    }

    /// Writes the kept elements, in the form in which kernels exist.
    pub fn launch<
        H: RegisterRepr,
        I: Input<H>,
        X: RunOutputs,
        const THREADS: u32,
        const VEC: usize,
        const ROWS: usize,
    >(
        self,
        stream: &Stream,
        input: I,
        output: GlobalMut<H>,
        beside: X,
    ) -> Result<DeviceValue<u64>, Error> {
        let tiles = self.len.div_ceil(THREADS as usize * VEC * ROWS);
        if tiles == 0 {
            return DeviceValue::new(stream, 0);
        }
        let mut count = DeviceValue::uninit(stream)?;
        let scratch = stream.lookback_words(lookback::scratch_words::<X::Tally>(tiles))?;
        let kernel = CompactRuns::<H, I, X, THREADS, VEC, ROWS>::new(
            input,
            self.equality,
            u32::from(self.which == Which::Last),
            output,
            beside,
            count.as_mut_slice().raw_view_mut(stream)?,
            scratch,
        );
        // SAFETY: one block per tile; the outputs have room for all elements; the scratch memory has the words that the
        // tiles need.
        unsafe { stream.launch(kernel, tiles)? };
        Ok(count)
    }
}
