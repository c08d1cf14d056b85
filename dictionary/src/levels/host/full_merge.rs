//! Merges of whole levels on the host: all elements, the live ones, or only their number.

#![deny(unsafe_op_in_unsafe_fn)]

use super::level::{AnyLevel, total};
use super::types::{Types, with_code, with_value};
use super::view::{AnyLevels, LevelBuffers};
use crate::Carrier;
use crate::levels::device::merge::batch::{Batch, MergeBatch, batch_items, batch_tile};
use crate::levels::device::table::{ENTRY_WORDS, MAX_LEVELS};
use crate::levels::device::tiles::{CountLive, Cuts, EmitLive, MergeMarked, count_items, items, room};
use gpu_primitives::block::lookback;
use gpu_primitives::code::Sign;
use gpu_primitives::kernel::View;
use gpu_primitives::kernel::{Pairs, PairsMut};
use gpu_primitives::lowered::{self, AnySliceMut, AnyVec, Place};
use gpu_primitives::merge::RunsSplits;
use gpu_primitives::{DeviceVec, Error, GlobalMut, Stream};

/// The live elements of levels. The vectors may be longer.
pub(crate) struct Live {
    pub keys: AnyVec,
    pub values: AnyVec,
    pub len: usize,
}

/// Room for elements.
pub(crate) struct Out<'a> {
    pub keys: AnySliceMut<'a>,
    pub values: AnySliceMut<'a>,
}

impl Live {
    /// Merges levels, oldest first, and keeps the live elements. Keys are decoded by `sign`. `types` are those of the levels
    /// or, to leave the values out, those without values. The vectors are in a place. Waits for the stream.
    pub fn of(
        types: &'static Types,
        stream: &Stream,
        place: Place,
        levels: &[&AnyLevel],
        sign: Sign,
    ) -> Result<Self, Error> {
        if types.value > 0 && levels.len() > 1 && levels.iter().any(|level| level.has_operands()) {
            // Merged levels have the combined values. What does not fit the device must not pass through it.
            let is_far = levels.iter().any(|level| level.place() == Place::Host);
            let between = if is_far { Place::Host } else { place };
            return Self::of(types, stream, place, &[&AnyLevel::merge(types, stream, between, levels)?], sign);
        }
        let total = total(levels);
        let batched = match levels {
            [level, batch @ ..] => {
                let batch_is_small = total - level.len() <= level.len() / 2;
                (level.is_distinct() && !batch.is_empty() && batch_is_small).then_some((*level, batch))
            }
            [] => None,
        };
        let room = batched.map_or(total, |(level, _)| growing(total, total - level.len()));
        let allocate = |len: usize| {
            let keys = AnyVec::uninit_in(stream, place, types.code, len)?;
            Ok((keys, AnyVec::uninit_in(stream, place, types.value, types.values_for(len))?))
        };
        let (mut keys, mut values) = match allocate(room) {
            Err(Error::OutOfMemory { .. }) if room > total => allocate(total)?,
            allocated => allocated?,
        };
        if total == 0 {
            return Ok(Self { keys, values, len: 0 });
        }
        let mut offsets = stream.uninit::<u64>(2)?;
        let out = Out { keys: keys.as_mut_slice(), values: values.as_mut_slice() };
        if let Some((level, batch)) = batched {
            let mut last = offsets.slice_mut(1..)?;
            let live = last.view_mut(stream)?;
            match batch {
                [batch] => merge_batch(types, stream, level, batch, sign, out, live)?,
                batches => {
                    let batch = AnyLevel::merge(level.types, stream, place, batches)?;
                    merge_batch(types, stream, level, &batch, sign, out, live)?;
                }
            }
        } else {
            emit(types, stream, levels, sign, out, offsets.view_mut(stream)?)?;
        }
        let mut len = [0];
        offsets.slice(1..)?.copy_to_host(stream, &mut len)?;
        Ok(Self { keys, values, len: len[0] as usize })
    }
}

/// Returns the number of elements to allocate for a level of `len` elements that replaces one without the `added` ones.
///
/// Long levels come in few lengths, four to each power of two, so that a level that grows finds memory that an earlier one
/// has left. Otherwise the device's pool maps new memory for almost every update, which takes as long as the update itself.
/// Where an update adds so much that few would share a length, this would not help.
const fn growing(len: usize, added: usize) -> usize {
    const LONG: usize = 1 << 24;
    const UPDATES: usize = 16;
    if len < LONG {
        return len;
    }
    let step = 1 << (len.ilog2() - 2);
    if added > step / UPDATES { len } else { len.next_multiple_of(step) }
}

/// Counts the live elements of whole levels, oldest first. The result is one number on the device. Does not wait.
pub(crate) fn count_live(
    types: &'static Types,
    stream: &Stream,
    levels: &[&AnyLevel],
) -> Result<DeviceVec<u64>, Error> {
    let mut counts = stream.zeroed::<u64>(1)?;
    macro_rules! count {
        ($code:ty, $payload:ty) => {{
            const ITEMS: usize = count_items::<$code, $payload>();
            let whole = Whole::split(types, stream, levels, room(ITEMS), false)?;
            let view = whole.levels(stream, Sign::NONE)?.typed();
            let kernel = CountLive::<$code, $payload, ITEMS>::new(view, whole.cuts(stream)?, counts.view_mut(stream)?);
            // SAFETY: the cuts are those of these levels. Any number of blocks will do.
            unsafe { stream.launch(kernel, whole.tiles()) }
        }};
    }
    if total(levels) > 0 {
        let is_marked = levels.iter().any(|level| level.has_tombstones());
        with_code!(types.code => C, if is_marked {
            type P = <() as Carrier>::Marked;
            count!(C, P)
        } else {
            count!(C, ())
        })?;
    }
    Ok(counts)
}

/// Merges a batch into a level of distinct keys and drops stale elements. `types` may have no values. There must be at least
/// one element, and `out` must have room for all.
fn merge_batch(
    types: &'static Types,
    stream: &Stream,
    level: &AnyLevel,
    batch: &AnyLevel,
    sign: Sign,
    mut out: Out<'_>,
    live: View<'_, GlobalMut<u64>>,
) -> Result<(), Error> {
    let (codes, values) = level.run();
    let (batch_codes, batch_values) = batch.run();
    let marks = batch.all_marks(stream)?;
    with_code!(types.code => C, with_value!(types.value => W, {
        const ITEMS: usize = batch_items::<C, W>();
        let splits = lowered::merge::splits(stream, codes, batch_codes, batch_tile(ITEMS))?;
        let tiles = splits.tiles();
        let [values, batch_values] = [values, batch_values].map(|values| match size_of::<W>() {
            0 => Ok(View::empty()),
            _ => values.view::<W>(stream),
        });
        let kernel = MergeBatch::<C, W, ITEMS>::new(
            Pairs::view(codes.view(stream)?, values?),
            Batch::view(Pairs::view(batch_codes.view(stream)?, batch_values?), marks),
            sign,
            splits.boundaries(stream)?,
            splits.verdicts(stream)?,
            PairsMut::view(out.keys.view_mut(stream)?, out.values.view_mut(stream)?),
            live,
            stream.lookback_words(lookback::scratch_words::<u64>(tiles))?,
        );
        // SAFETY: there is a block per tile of the partition. The outputs have room for all elements.
        unsafe { stream.launch(kernel, tiles) }
    }))
}

/// Merges whole levels, oldest first, and writes the live elements. There must be at least one element, and `out` must
/// have room for all. `offsets` receives a zero and the number of live elements. `types` may have no values.
fn emit(
    types: &'static Types,
    stream: &Stream,
    levels: &[&AnyLevel],
    sign: Sign,
    mut out: Out<'_>,
    offsets: View<'_, GlobalMut<u64>>,
) -> Result<(), Error> {
    macro_rules! emit {
        ($code:ty, $payload:ty) => {{
            const ITEMS: usize = items::<$code, $payload>();
            let whole = Whole::split(types, stream, levels, room(ITEMS), true)?;
            let scratch = stream.lookback_words(lookback::scratch_words::<u64>(whole.tiles()))?;
            let view = whole.levels(stream, sign)?.typed();
            let out = PairsMut::view(out.keys.view_mut(stream)?, out.values.view_mut(stream)?);
            let kernel = EmitLive::<$code, $payload, ITEMS>::new(view, whole.cuts(stream)?, out, offsets, scratch);
            // SAFETY: there is a block per tile. The cuts are those of these levels. The outputs have room for all.
            unsafe { stream.launch(kernel, whole.tiles()) }
        }};
    }
    let is_marked = levels.iter().any(|level| level.has_tombstones());
    with_code!(types.code => C, with_value!(types.value => W, if is_marked {
        type P = <W as Carrier>::Marked;
        emit!(C, P)
    } else {
        emit!(C, W)
    }))
}

/// Merges whole levels, oldest first, some of which have tombstones, and writes all elements and their marks. There must be
/// at least one element, and the outputs must have room for all. Does not wait.
pub(crate) fn keep(
    types: &'static Types,
    stream: &Stream,
    levels: &[&AnyLevel],
    mut out: Out<'_>,
    marks: View<'_, GlobalMut<u32>>,
) -> Result<(), Error> {
    with_code!(types.code => C, with_value!(types.value => W, {
        type P = <W as Carrier>::Marked;
        const ITEMS: usize = items::<C, P>();
        let whole = Whole::split(types, stream, levels, room(ITEMS), true)?;
        let view = whole.levels(stream, Sign::NONE)?.typed();
        let out = PairsMut::view(out.keys.view_mut(stream)?, out.values.view_mut(stream)?);
        let kernel = MergeMarked::<C, P, ITEMS>::new(view, whole.cuts(stream)?, out, marks);
        // SAFETY: there is a block per tile. The cuts are splits of these levels, and the room is a multiple of 32. The
        // outputs have room for all elements.
        unsafe { stream.launch(kernel, whole.tiles()) }
    }))
}

/// Whole levels that were split into tiles.
struct Whole<'a> {
    types: &'static Types,
    buffers: Vec<LevelBuffers<'a>>,
    table: DeviceVec<u64>,
    splits: RunsSplits,
    total: usize,
    tile: usize,
}

impl<'a> Whole<'a> {
    /// Splits levels, oldest first, into tiles of `tile` elements. Without values, kernels do not find them.
    fn split(
        types: &'static Types,
        stream: &Stream,
        levels: &[&'a AnyLevel],
        tile: usize,
        with_values: bool,
    ) -> Result<Self, Error> {
        if levels.len() > MAX_LEVELS {
            return Err(Error::TooMany { what: "levels to merge", asked: levels.len(), limit: MAX_LEVELS });
        }
        let with_values = with_values && types.value > 0;
        let mut buffers = Vec::with_capacity(levels.len());
        for (i, level) in levels.iter().enumerate() {
            // The kernel reads keys and values of these sizes.
            assert!(level.types.code == types.code && (!with_values || level.types.value == types.value));
            buffers.push(level.buffers(stream, levels.len() - 1 - i, with_values)?);
        }
        let table = stream.upload(&entries(&buffers))?;
        let runs: Vec<_> = levels.iter().map(|level| level.run().0).collect();
        let splits = lowered::merge::runs_splits(stream, &runs, tile)?;
        Ok(Self { types, buffers, table, splits, total: total(levels), tile })
    }

    /// Returns the number of tiles.
    fn tiles(&self) -> usize {
        self.total.div_ceil(self.tile)
    }

    fn levels(&self, stream: &Stream, sign: Sign) -> Result<AnyLevels<'_>, Error> {
        Ok(AnyLevels::new(self.types, stream, self.table.view(stream)?, sign, &self.buffers))
    }

    fn cuts(&self, stream: &Stream) -> Result<View<'_, Cuts>, Error> {
        let log_pieces = self.buffers.len().next_power_of_two().ilog2();
        Ok(Cuts::by_splits(self.splits.boundaries(stream)?, self.total, self.tile, log_pieces))
    }
}

/// Returns the table of levels that have no directories.
fn entries(levels: &[LevelBuffers<'_>]) -> Vec<u64> {
    let mut words = vec![0u64; levels.len() * ENTRY_WORDS];
    for level in levels {
        let entry = level.entry();
        words[level.slot * ENTRY_WORDS..][..ENTRY_WORDS]
            .copy_from_slice(bytemuck::cast_ref::<_, [u64; ENTRY_WORDS]>(&entry));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::growing;

    #[test]
    fn long_levels_have_few_lengths() {
        assert_eq!([0, 1, 1000, (1 << 24) - 1].map(|len| growing(len, 0)), [0, 1, 1000, (1 << 24) - 1]);
        let lengths: Vec<usize> = (1 << 24..1 << 26).step_by(1 << 18).map(|len| growing(len, 1 << 18)).collect();
        assert_eq!(lengths.iter().zip((1usize << 24..).step_by(1 << 18)).find(|(room, len)| *room < len), None);
        let different: std::collections::BTreeSet<usize> = lengths.into_iter().collect();
        assert_eq!(different.len(), 9, "{different:?}");
        assert_eq!([1 << 21, (1 << 21) + 1].map(|added| growing((1 << 27) + 1, added)), [5 << 25, (1 << 27) + 1]);
    }
}
