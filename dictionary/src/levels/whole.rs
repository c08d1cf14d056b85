//! Merges of whole levels on the host: all elements, the live ones, or only their number.

#![deny(unsafe_op_in_unsafe_fn)]

use super::elements::{Elements, ElementsMut};
use super::find::{LevelBuffers, Levels};
use super::level::Level;
use super::payload::Payload;
use super::renew::{Batch, RenewLevel, renew_items, renew_tile};
use super::table::{ENTRY_WORDS, MAX_LEVELS};
use super::tiles::{CountLive, Cuts, EmitLive, MergeMarked, count_items, items, room};
use crate::{Carrier, Key, KeyCode, Value, values_for};
use bytemuck::Pod;
use gpu_primitives::block::lookback;
use gpu_primitives::code::Sign;
use gpu_primitives::kernel::View;
use gpu_primitives::merge::{RunsSplits, Splits};
use gpu_primitives::{DeviceVec, Error, GlobalMut, Stream, with_shape};

/// The live elements of levels. The vectors may be longer.
pub(super) struct Live<C: Pod, W: Pod> {
    pub keys: DeviceVec<C>,
    pub values: DeviceVec<W>,
    pub len: usize,
}

impl<C: KeyCode, W: Carrier> Live<C, W> {
    /// Merges levels, oldest first, and keeps the live elements. Keys are decoded by `sign`. `W` is the carrier of the
    /// values or, to leave them out, `()`. Waits for the stream.
    pub fn of<K: Key<Code = C>, V: Value>(stream: &Stream, levels: &[&Level<K, V>], sign: Sign) -> Result<Self, Error> {
        if size_of::<W>() > 0 && levels.len() > 1 && levels.iter().any(|level| level.has_operands()) {
            // Merged levels have the combined values.
            return Self::of(stream, &[&Level::merge(stream, levels)?], sign);
        }
        let total = levels.iter().map(|level| level.len()).sum::<usize>();
        let renewed = match levels {
            [level, batch @ ..] => {
                let batch_is_small = total - level.len() <= level.len() / 2;
                (level.is_distinct() && !batch.is_empty() && batch_is_small).then_some((*level, batch))
            }
            [] => None,
        };
        let room = renewed.map_or(total, |(level, _)| growing(total, total - level.len()));
        let allocate = |len: usize| Ok((stream.uninit(len)?, stream.uninit(values_for::<W>(len))?));
        let (mut keys, mut values) = match allocate(room) {
            Err(Error::OutOfMemory { .. }) if room > total => allocate(total)?,
            allocated => allocated?,
        };
        if total == 0 {
            return Ok(Self { keys, values, len: 0 });
        }
        let mut offsets = stream.uninit::<u64>(2)?;
        let out = ElementsMut::view(keys.view_mut(stream)?, values.view_mut(stream)?);
        if let Some((level, batch)) = renewed {
            let mut last = offsets.slice_mut(1..)?;
            let live = last.view_mut(stream)?;
            match batch {
                [batch] => renew(stream, level, batch, sign, out, live)?,
                batches => renew(stream, level, &Level::merge(stream, batches)?, sign, out, live)?,
            }
        } else {
            let offsets = offsets.view_mut(stream)?;
            if levels.iter().any(|level| level.has_tombstones()) {
                emit::<K, V, W::Marked>(stream, levels, sign, out, offsets)?;
            } else {
                emit::<K, V, W>(stream, levels, sign, out, offsets)?;
            }
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

/// Merges whole levels, oldest first, some of which have tombstones. Keeps all elements, with marks. There must be at
/// least one element, and the outputs must have room for all. Does not wait.
pub(super) fn keep_all<K: Key, V: Value>(
    stream: &Stream,
    levels: &[&Level<K, V>],
    out: View<'_, ElementsMut<K::Code, V::Carrier>>,
    marks: View<'_, GlobalMut<u32>>,
) -> Result<(), Error> {
    keep::<K, V, <V::Carrier as Carrier>::Marked>(stream, levels, out, marks)
}

/// Counts the live elements of whole levels, oldest first. The result is one number on the device. Does not wait.
pub(super) fn count_live<K: Key, V: Value>(stream: &Stream, levels: &[&Level<K, V>]) -> Result<DeviceVec<u64>, Error> {
    let mut counts = stream.zeroed::<u64>(1)?;
    if levels.iter().any(|level| !level.is_empty()) {
        if levels.iter().any(|level| level.has_tombstones()) {
            count::<K, V, <() as Carrier>::Marked>(stream, levels, counts.view_mut(stream)?)?;
        } else {
            count::<K, V, ()>(stream, levels, counts.view_mut(stream)?)?;
        }
    }
    Ok(counts)
}

/// Merges a batch into a level of distinct keys and drops stale elements. `W` is the carrier of the values, or `()`.
/// There must be at least one element, and `out` must have room for all.
fn renew<K: Key, V: Value, W: Carrier>(
    stream: &Stream,
    level: &Level<K, V>,
    batch: &Level<K, V>,
    sign: Sign,
    out: View<'_, ElementsMut<K::Code, W>>,
    live: View<'_, GlobalMut<u64>>,
) -> Result<(), Error> {
    with_shape!(ITEMS in 15 | 9 | 5 | 3 = renew_items::<K::Code, W>(), {
        let splits = Splits::find(
            stream,
            level.parts().codes,
            batch.parts().codes,
            K::Code::ORDER,
            renew_tile(ITEMS),
        )?;
        let (level, batch) = (level.buffers::<W>(stream, 0)?, batch.buffers::<W>(stream, 0)?);
        let tiles = splits.tiles();
        let kernel = RenewLevel::<K::Code, W, ITEMS>::new(
            Elements::view(level.keys, level.values),
            Batch::view(Elements::view(batch.keys, batch.values), batch.marks),
            sign,
            splits.boundaries(stream)?,
            splits.verdicts(stream)?,
            out,
            live,
            stream.lookback_words(lookback::scratch_words::<u64>(tiles))?,
        );
        // SAFETY: there is a block per tile of the partition. The outputs have room for all elements.
        unsafe { stream.launch(kernel, tiles) }
    })
}

/// Counts the live elements of whole levels, oldest first. There must be at least one element. `counts` is one zero.
fn count<K: Key, V: Value, P: Payload<Value = ()>>(
    stream: &Stream,
    levels: &[&Level<K, V>],
    counts: View<'_, GlobalMut<u64>>,
) -> Result<(), Error> {
    with_shape!(ITEMS in 13 | 9 | 7 | 5 | 3 = count_items::<K::Code, P>(), {
        let whole = Whole::split(stream, levels, room(ITEMS))?;
        let view = whole.levels(stream, Sign::NONE)?;
        let kernel = CountLive::<K::Code, P, ITEMS>::new(view, whole.cuts(stream)?, counts);
        // SAFETY: the cuts are those of these levels. Any number of blocks will do.
        unsafe { stream.launch(kernel, whole.tiles()) }
    })
}

/// Merges whole levels, oldest first, and writes the live elements. There must be at least one element, and `out` must
/// have room for all. `offsets` receives a zero and the number of live elements.
fn emit<K: Key, V: Value, P: Payload<Value: Carrier>>(
    stream: &Stream,
    levels: &[&Level<K, V>],
    sign: Sign,
    out: View<'_, ElementsMut<K::Code, P::Value>>,
    offsets: View<'_, GlobalMut<u64>>,
) -> Result<(), Error> {
    with_shape!(ITEMS in 13 | 9 | 7 | 5 | 3 | 1 = items::<K::Code, P>(), {
        let whole = Whole::split(stream, levels, room(ITEMS))?;
        let scratch = stream.lookback_words(lookback::scratch_words::<u64>(whole.tiles()))?;
        let view = whole.levels(stream, sign)?;
        let kernel = EmitLive::<K::Code, P, ITEMS>::new(view, whole.cuts(stream)?, out, offsets, scratch);
        // SAFETY: there is a block per tile. The cuts are those of these levels. The outputs have room for all elements.
        unsafe { stream.launch(kernel, whole.tiles()) }
    })
}

/// Merges whole levels, oldest first, and writes all elements and their marks. There must be at least one element, and
/// the outputs must have room for all.
fn keep<K: Key, V: Value, P: Payload<Value: Carrier>>(
    stream: &Stream,
    levels: &[&Level<K, V>],
    out: View<'_, ElementsMut<K::Code, P::Value>>,
    marks: View<'_, GlobalMut<u32>>,
) -> Result<(), Error> {
    with_shape!(ITEMS in 13 | 9 | 7 | 5 | 3 | 1 = items::<K::Code, P>(), {
        let whole = Whole::split(stream, levels, room(ITEMS))?;
        let view = whole.levels(stream, Sign::NONE)?;
        let kernel = MergeMarked::<K::Code, P, ITEMS>::new(view, whole.cuts(stream)?, out, marks);
        // SAFETY: there is a block per tile. The cuts are splits of these levels, and the room is a multiple of 32. The
        // outputs have room for all elements.
        unsafe { stream.launch(kernel, whole.tiles()) }
    })
}

/// Whole levels that were split into tiles.
struct Whole<'a, C: Pod, W: Pod> {
    buffers: Vec<LevelBuffers<'a, C, W>>,
    table: DeviceVec<u64>,
    splits: RunsSplits,
    total: usize,
    tile: usize,
}

impl<'a, C: KeyCode, W: Carrier> Whole<'a, C, W> {
    /// Splits levels, oldest first, into tiles of `tile` elements. `W` is the carrier of the values, or `()`.
    fn split<K: Key<Code = C>, V: Value>(
        stream: &Stream,
        levels: &[&'a Level<K, V>],
        tile: usize,
    ) -> Result<Self, Error> {
        if levels.len() > MAX_LEVELS {
            return Err(Error::TooMany { what: "levels to merge", asked: levels.len(), limit: MAX_LEVELS });
        }
        let mut buffers = Vec::with_capacity(levels.len());
        for (i, level) in levels.iter().enumerate() {
            buffers.push(level.buffers::<W>(stream, levels.len() - 1 - i)?);
        }
        let table = stream.upload(&entries(&buffers))?;
        let runs: Vec<_> = levels.iter().map(|level| level.parts().codes).collect();
        let splits = RunsSplits::find(stream, &runs, C::ORDER, tile)?;
        let total = levels.iter().map(|level| level.len()).sum();
        Ok(Self { buffers, table, splits, total, tile })
    }

    /// Returns the number of tiles.
    fn tiles(&self) -> usize {
        self.total.div_ceil(self.tile)
    }

    fn levels(&self, stream: &Stream, sign: Sign) -> Result<View<'_, Levels<C, W>>, Error> {
        Ok(Levels::view(stream, self.table.view(stream)?, sign, &self.buffers))
    }

    fn cuts(&self, stream: &Stream) -> Result<View<'_, Cuts>, Error> {
        let log_pieces = self.buffers.len().next_power_of_two().ilog2();
        Ok(Cuts::by_splits(self.splits.boundaries(stream)?, self.total, self.tile, log_pieces))
    }
}

/// Returns the table of levels that have no directories.
fn entries<C: KeyCode, W: Pod>(levels: &[LevelBuffers<'_, C, W>]) -> Vec<u64> {
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
