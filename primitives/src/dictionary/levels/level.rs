//! A level on the host, and the ways to make one.

#![deny(unsafe_op_in_unsafe_fn)]

use super::find::{LevelBuffers, Levels};
use super::payload::{Marked, MarkedLong, MarkedNone, Payload};
use super::renew::{renew_items, renew_tile};
use super::table::{ENTRY_WORDS, Entry, MAX_LEVELS, THREADS};
use super::tiles::{COUNT, EMIT, KEEP, items, room};
use super::{BuildDirectory, EncodeKeys, LevelTiles, RenewLevel};
use crate::block::lookback;
use crate::dictionary::{Key, KeyCode};
use crate::merge;
use crate::runtime::carrier::Carry;
use crate::runtime::pairs::{Pairs, PairsMut};
use crate::sort::{self, SortedRuns};
use crate::transfer;
use crate::{Device, DeviceSlice, DeviceVec, Error, Global, GlobalMut, Stream};
use bytemuck::Pod;

/// The most elements in a level.
const MAX_LEN: usize = u32::MAX as usize;
/// Up to this many elements, three or more levels are merged faster by computing the position of each element, in a
/// single launch, than by tiles. With two levels, the tiles are found faster.
const FEW: usize = 1 << 18;
/// The same limit for levels and a batch that is sorted in chunks, all of which are merged at once.
const FEW_WITH_BATCH: usize = 1 << 17;

/// Runs an expression with the type that carries values of `V` through the kernels. It has the size of `V`.
macro_rules! with_carrier {
    ($value:ty, $carrier:ident => $body:expr) => {
        match const { size_of::<$value>() } {
            0 => {
                type $carrier = ();
                $body
            }
            4 => {
                type $carrier = u32;
                $body
            }
            _ => {
                type $carrier = u64;
                $body
            }
        }
    };
}
pub(super) use with_carrier;

/// Runs an expression with the payload type: the carrier of values of `V`, and a mark if there are tombstones.
macro_rules! with_payload {
    ($value:ty, $has_tombstones:expr, $payload:ident => $body:expr) => {
        $crate::dictionary::levels::level::with_payload!(
            $value, $has_tombstones, $payload => $body, 0: (), MarkedNone; 4: u32, Marked; _: u64, MarkedLong;
        )
    };
    ($value:ty, $has_tombstones:expr, $payload:ident => $body:expr, $($size:tt: $plain:ty, $marked:ty;)*) => {
        // The size is a constant, so only the code that can run is compiled.
        match const { size_of::<$value>() } {
            $($size => {
                if $has_tombstones {
                    type $payload = $marked;
                    $body
                } else {
                    type $payload = $plain;
                    $body
                }
            })*
        }
    };
}
pub(super) use with_payload;

/// A sorted array of keys, with values and possibly tombstones.
#[derive(Debug)]
pub struct Level<K: Key, V: Pod> {
    /// The codes of the keys, ascending. Of equal ones, the newest is last.
    keys: DeviceVec<K::Code>,
    /// One value per key; empty if values are zero-sized.
    values: DeviceVec<V>,
    /// One bit per element, set for tombstones; `None` if there are none.
    marks: Option<DeviceVec<u32>>,
    /// The number of elements; the vectors may be longer.
    len: usize,
    /// Whether the keys are known to be distinct, without tombstones.
    is_distinct: bool,
}

/// Returns a view of no elements.
pub(super) fn nothing<T: Pod>() -> Global<T> {
    // SAFETY: there are no elements.
    unsafe { Global::from_raw(core::ptr::NonNull::dangling().as_ptr(), 0) }
}

/// Returns a writable view of no elements.
pub(super) fn nothing_mut<T: Pod>() -> GlobalMut<T> {
    // SAFETY: there are no elements.
    unsafe { GlobalMut::from_raw(core::ptr::NonNull::dangling().as_ptr(), 0) }
}

/// Returns the values as their carrier type, which has the same size, or no elements if `W` is zero-sized.
pub(super) fn carried<V: Pod, W: Pod>(values: Global<V>) -> Global<W> {
    if size_of::<W>() == 0 {
        return nothing();
    }
    assert_eq!(size_of::<V>(), size_of::<W>());
    // SAFETY: plain data of the same size; vectors are aligned for all numbers.
    unsafe { Global::from_raw(values.as_ptr().cast(), values.len()) }
}

/// Does the same as [`carried`] for memory that is written.
pub(super) fn carried_mut<V: Pod, W: Pod>(values: GlobalMut<V>) -> GlobalMut<W> {
    let values = carried::<V, W>(values.as_const());
    // SAFETY: as above, and the memory may be written.
    unsafe { GlobalMut::from_raw(values.as_ptr().cast_mut(), values.len()) }
}

/// Returns the keys as the unsigned integers with the same bits.
pub(super) fn bits<K: Key>(stream: &Stream, keys: DeviceSlice<'_, K>) -> Result<Global<K::Code>, Error> {
    Ok(sort::as_codes(keys.raw_view(stream)?))
}

/// Returns how many values go with `len` keys.
pub(super) const fn values_for<V>(len: usize) -> usize {
    if size_of::<V>() == 0 { 0 } else { len }
}

fn expect_len(len: usize) -> Result<(), Error> {
    if len <= MAX_LEN { Ok(()) } else { Err(Error::TooLong { what: "a level", len, limit: MAX_LEN }) }
}

/// Checks that there is exactly one value per key or, for zero-sized values, none.
fn expect_values<V>(keys: usize, found: usize) -> Result<(), Error> {
    let expected = values_for::<V>(keys);
    if found == expected {
        return Ok(());
    }
    Err(Error::LengthMismatch { what: "the values of a dictionary", expected, found })
}

impl<K: Key, V: Pod> Level<K, V> {
    fn uninit(stream: &Stream, len: usize) -> Result<Self, Error> {
        const { assert!(matches!(size_of::<V>(), 0 | 4 | 8), "values have 0, 4 or 8 bytes") };
        expect_len(len)?;
        // The level counts as sorted right after this call, but recorded work would sort it only later.
        stream.refuse_recording("an update of a dictionary")?;
        Ok(Self {
            keys: stream.uninit(len)?,
            values: stream.uninit(values_for::<V>(len))?,
            marks: None,
            len,
            is_distinct: false,
        })
    }

    /// Makes a level of these pairs. Of equal keys, later ones are newer. For zero-sized values, pass an empty slice.
    /// Does not wait.
    ///
    /// # Errors
    /// - [`Error::LengthMismatch`] if there is not exactly one value per key; for zero-sized values, if `values` is not
    ///   empty.
    /// - [`Error::TooLong`] for 2^32 keys or more.
    /// - Any error of a sort.
    pub fn from_pairs(stream: &Stream, keys: DeviceSlice<'_, K>, values: DeviceSlice<'_, V>) -> Result<Self, Error> {
        expect_values::<V>(keys.len(), values.len())?;
        expect_len(keys.len())?;
        Self::sorted(stream, Codes::of(stream, keys)?.slice(), values)
    }

    /// Makes a level of pairs with these key codes. The caller has checked the number of codes and of values.
    fn sorted(stream: &Stream, codes: DeviceSlice<'_, K::Code>, values: DeviceSlice<'_, V>) -> Result<Self, Error> {
        let mut level = Self::uninit(stream, codes.len())?;
        if const { size_of::<V>() == 0 } {
            sort::keys(stream, codes, &mut level.keys, sort::Options::new())?;
        } else {
            sort::pairs(stream, codes, values, &mut level.keys, &mut level.values, sort::Options::new())?;
        }
        Ok(level)
    }

    /// Makes a level of tombstones for these keys. Does not wait.
    ///
    /// # Errors
    /// The errors of [`from_pairs`](Self::from_pairs).
    pub fn tombstones(stream: &Stream, keys: DeviceSlice<'_, K>) -> Result<Self, Error> {
        expect_len(keys.len())?;
        stream.refuse_recording("an update of a dictionary")?;
        let codes = Codes::of(stream, keys)?;
        let mut sorted = stream.uninit(keys.len())?;
        let values = stream.zeroed(values_for::<V>(keys.len()))?;
        let mut marks = stream.uninit::<u32>(keys.len().div_ceil(32))?;
        sort::keys(stream, codes.slice(), &mut sorted, sort::Options::new())?;
        transfer::fill(stream, &mut marks, u32::MAX)?;
        Ok(Self { keys: sorted, values, marks: Some(marks), len: keys.len(), is_distinct: false })
    }

    /// Returns the elements as a run to merge, with values as their carrier type.
    fn run<W: Pod>(&self, stream: &Stream) -> Result<Pairs<K::Code, W>, Error> {
        let (keys, values, _) = self.parts()?;
        Ok(Pairs { keys: keys.raw_view(stream)?, values: carried::<V, W>(values.raw_view(stream)?) })
    }

    /// Merges levels, oldest first, with these pairs, which are newer than all of them. Does not wait.
    ///
    /// # Errors
    /// The errors of [`from_pairs`](Self::from_pairs) and [`merge`](Self::merge).
    pub fn merge_pairs(
        stream: &Stream,
        older: &[&Self],
        keys: DeviceSlice<'_, K>,
        values: DeviceSlice<'_, V>,
    ) -> Result<Self, Error> {
        expect_values::<V>(keys.len(), values.len())?;
        let len = keys.len() + older.iter().map(|level| level.len).sum::<usize>();
        expect_len(len)?;
        let codes = Codes::of(stream, keys)?;
        let is_plain = !older.iter().any(|level| level.has_tombstones());
        if (1..merge::MAX_PLACED).contains(&older.len()) && is_plain && len <= FEW_WITH_BATCH {
            // The batch need not be a single run before it is merged with the others.
            let (keys, values) = (codes.slice().raw_view(stream)?, values.raw_view(stream)?);
            with_carrier!(V, W => {
                let most = merge::MAX_PLACED - older.len();
                // Values that are misaligned for their carrier are left to the sort.
                if let Some(values) = values.carried::<W>()
                    && let Some(batch) = SortedRuns::new(stream, keys, values, most)?
                {
                    let older = older.iter().map(|level| level.run::<W>(stream));
                    let runs = older.chain(batch.runs(stream)?.map(Ok)).collect::<Result<Vec<_>, _>>()?;
                    let mut merged = Self::uninit(stream, len)?;
                    merged.place(stream, &runs)?;
                    return Ok(merged);
                }
            });
        }
        let batch = Self::sorted(stream, codes.slice(), values)?;
        if older.is_empty() {
            return Ok(batch);
        }
        let all: Vec<&Self> = older.iter().copied().chain([&batch]).collect();
        Self::merge(stream, &all)
    }

    /// Fills the level by merging runs of few elements in all, with values as their carrier type.
    fn place<W: Pod>(&mut self, stream: &Stream, runs: &[Pairs<K::Code, W>]) -> Result<(), Error> {
        let (keys, values) = (self.keys.raw_view_mut(stream)?, self.values.raw_view_mut(stream)?);
        merge::place(stream, runs, PairsMut { keys, values: carried_mut::<V, W>(values) }, K::Code::ORDER)
    }

    /// Merges levels, oldest first. Keeps all elements. Does not wait.
    ///
    /// # Errors
    /// [`Error::TooMany`] for more than 32 levels, or the errors of [`from_pairs`](Self::from_pairs).
    pub fn merge(stream: &Stream, levels: &[&Self]) -> Result<Self, Error> {
        let len = levels.iter().map(|level| level.len).sum();
        let mut merged = Self::uninit(stream, len)?;
        let has_marks = levels.iter().any(|level| level.has_tombstones());
        if !has_marks && len <= FEW && (3..=merge::MAX_PLACED).contains(&levels.len()) {
            with_carrier!(V, W => {
                let runs = levels.iter().map(|level| level.run::<W>(stream)).collect::<Result<Vec<_>, _>>()?;
                merged.place(stream, &runs)?;
            });
        } else if !has_marks {
            if const { size_of::<V>() == 0 } {
                let runs = levels.iter().map(|level| level.keys.slice(..level.len)).collect::<Result<Vec<_>, _>>()?;
                merge::runs_keys(stream, &runs, &mut merged.keys, K::Code::ORDER)?;
            } else {
                let mut runs = Vec::with_capacity(levels.len());
                for level in levels {
                    runs.push((level.keys.slice(..level.len)?, level.values.slice(..level.len)?));
                }
                merge::runs_pairs(stream, &runs, (&mut merged.keys, &mut merged.values), K::Code::ORDER)?;
            }
        } else {
            let mut marks = stream.uninit::<u32>(len.div_ceil(32))?;
            if len > 0 {
                let out = Output {
                    keys: merged.keys.raw_view_mut(stream)?,
                    values: merged.values.raw_view_mut(stream)?,
                    marks: marks.raw_view_mut(stream)?,
                    counts: nothing_mut(),
                };
                match const { size_of::<V>() } {
                    0 => whole::<K, V, MarkedNone, KEEP>(stream, levels, out)?,
                    4 => whole::<K, V, Marked, KEEP>(stream, levels, out)?,
                    _ => whole::<K, V, MarkedLong, KEEP>(stream, levels, out)?,
                }
            }
            merged.marks = Some(marks);
        }
        Ok(merged)
    }

    /// Merges levels, oldest first, into a level of their live elements. Waits for the stream, to learn how many there
    /// are.
    ///
    /// # Errors
    /// The errors of [`merge`](Self::merge).
    pub fn live(stream: &Stream, levels: &[&Self]) -> Result<Self, Error> {
        let mut level = Self::live_with_room(stream, levels)?;
        let len = level.len;
        // Free the memory allocated for dead elements if that is worth a copy.
        if len < level.keys.len() - level.keys.len() / 8 {
            let mut exact = Self::uninit(stream, len)?;
            exact.is_distinct = true;
            exact.keys.copy_from(stream, level.keys.slice(..len)?)?;
            if size_of::<V>() > 0 {
                exact.values.copy_from(stream, level.values.slice(..len)?)?;
            }
            level = exact;
        }
        Ok(level)
    }

    /// Merges levels, oldest first, into a level of their live elements, with their values or without. The vectors keep
    /// the room allocated for dead elements. Waits for the stream.
    pub(super) fn live_with_room<W: Pod>(stream: &Stream, levels: &[&Level<K, W>]) -> Result<Self, Error> {
        let (keys, values, len) = Self::live_as(stream, levels, sort::Sign::NONE)?;
        expect_len(len)?;
        Ok(Self { keys, values, marks: None, len, is_distinct: true })
    }

    /// Returns the keys and values of the live elements of levels, oldest first, and their number. Keys are decoded by
    /// `sign`. The values may be left out. The vectors may be longer.
    #[allow(clippy::type_complexity)]
    pub(super) fn live_as<W: Pod>(
        stream: &Stream,
        levels: &[&Level<K, W>],
        sign: sort::Sign,
    ) -> Result<(DeviceVec<K::Code>, DeviceVec<V>, usize), Error> {
        let total = levels.iter().map(|level| level.len).sum::<usize>();
        let mut keys = stream.uninit(total)?;
        let mut values = stream.uninit(values_for::<V>(total))?;
        if total == 0 {
            return Ok((keys, values, 0));
        }
        let mut counts = stream.uninit::<u64>(2)?;
        let mut out = Output {
            keys: keys.raw_view_mut(stream)?,
            values: values.raw_view_mut(stream)?,
            marks: nothing_mut(),
            counts: counts.raw_view_mut(stream)?,
        };
        if let [level, batch @ ..] = levels
            && level.is_distinct
            && !batch.is_empty()
            && total - level.len <= level.len / 2
        {
            // The caller reads the second count.
            // SAFETY: there are two counts.
            out.counts = unsafe { out.counts.slice(1, 1) };
            match batch {
                [batch] => renew::<K, W, V>(stream, level, batch, out, sign)?,
                batches => renew::<K, W, V>(stream, level, &Level::merge(stream, batches)?, out, sign)?,
            }
            return Ok((keys, values, count_of(stream, &counts)?));
        }
        let has_tombstones = levels.iter().any(|level| level.has_tombstones());
        with_payload!(V, has_tombstones, P => whole_as::<K, W, V, P, EMIT>(stream, levels, out, sign)?);
        Ok((keys, values, count_of(stream, &counts)?))
    }

    /// Returns the device of the level.
    #[must_use]
    pub fn device(&self) -> &Device {
        self.keys.device()
    }

    /// Returns the number of elements, live or stale.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns whether some elements may be tombstones.
    #[must_use]
    pub fn has_tombstones(&self) -> bool {
        self.marks.is_some()
    }

    /// Returns whether the keys are known to be distinct, without tombstones. Then an element is live unless a newer
    /// level has its key.
    #[must_use]
    pub fn is_distinct(&self) -> bool {
        self.is_distinct
    }

    /// Declares that the keys are distinct. Has no effect on a level with tombstones. If the keys are not distinct,
    /// queries may count too many.
    pub fn set_distinct(&mut self) {
        self.is_distinct = self.marks.is_none();
    }

    /// Returns the device memory in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.keys.len() * size_of::<K::Code>()
            + self.values.len() * size_of::<V>()
            + self.marks.as_ref().map_or(0, |marks| marks.len() * 4)
    }

    /// Returns the key codes, the values, and the words of marks, for reading.
    ///
    /// # Errors
    /// None in practice: the lengths are always valid.
    #[allow(clippy::type_complexity)]
    pub fn parts(&self) -> Result<(DeviceSlice<'_, K::Code>, DeviceSlice<'_, V>, Option<DeviceSlice<'_, u32>>), Error> {
        let marks = self.marks.as_ref().map(|marks| marks.slice(..self.len.div_ceil(32))).transpose()?;
        Ok((self.keys.slice(..self.len)?, self.values.slice(..values_for::<V>(self.len))?, marks))
    }

    /// Makes a level of parts in the form that [`parts`](Self::parts) returns.
    ///
    /// # Errors
    /// - [`Error::LengthMismatch`] if the lengths do not match.
    /// - [`Error::TooLong`] for 2^32 elements or more.
    ///
    /// # Safety
    /// The codes ascend, and all parts are on one device. The work that writes them has been enqueued on a stream, not
    /// recorded.
    pub unsafe fn from_parts(
        keys: DeviceVec<K::Code>,
        values: DeviceVec<V>,
        marks: Option<DeviceVec<u32>>,
    ) -> Result<Self, Error> {
        let len = keys.len();
        expect_len(len)?;
        let lengths = [("the values of a level", values_for::<V>(len), values.len())]
            .into_iter()
            .chain(marks.as_ref().map(|marks| ("the marks of a level", len.div_ceil(32), marks.len())));
        for (what, expected, found) in lengths {
            if expected != found {
                return Err(Error::LengthMismatch { what, expected, found });
            }
        }
        Ok(Self { keys, values, marks, len, is_distinct: false })
    }

    pub(super) fn buffers<W: Pod>(&self, stream: &Stream, slot: usize) -> Result<LevelBuffers<K::Code, W>, Error> {
        let (keys, values, marks) = self.parts()?;
        Ok(LevelBuffers {
            slot,
            keys: keys.raw_view(stream)?,
            values: carried(values.raw_view(stream)?),
            marks: marks.map_or(Ok(nothing()), |marks| marks.raw_view(stream))?,
            directory: nothing(),
        })
    }

    /// Builds the directory, with one bucket per `bucket` elements, and the level's entry in the table. There must be
    /// at least one element. Does not wait.
    pub(super) fn build_directory(
        &self,
        stream: &Stream,
        table: &mut DeviceVec<u64>,
        slot: usize,
        bucket: usize,
    ) -> Result<DeviceVec<u64>, Error> {
        let mut directory = stream.uninit::<u64>((self.len / bucket).max(2) + 1)?;
        let (keys, values, marks) = self.parts()?;
        let values = values.raw_view(stream)?;
        // SAFETY: this is the same memory, as bytes.
        let values = unsafe { Global::from_raw(values.as_ptr().cast(), values.len() * size_of::<V>()) };
        let kernel = BuildDirectory::new(
            keys.raw_view(stream)?,
            values,
            marks.map_or(Ok(nothing()), |marks| marks.raw_view(stream))?,
            directory.raw_view_mut(stream)?,
            table.raw_view_mut(stream)?,
            slot as u32,
        );
        // SAFETY: there is a thread per element and at least one element. The directory has room for the buckets.
        unsafe { stream.launch(kernel, self.len.div_ceil(THREADS as usize))? };
        Ok(directory)
    }
}

/// The codes of keys: the memory of the keys themselves, or a vector of codes.
enum Codes<'a, C: Pod> {
    Same(DeviceSlice<'a, C>),
    Encoded(DeviceVec<C>),
}

impl<'a, C: KeyCode> Codes<'a, C> {
    fn of<K: Key<Code = C>>(stream: &'a Stream, keys: DeviceSlice<'_, K>) -> Result<Self, Error> {
        let view = bits(stream, keys)?;
        if K::IS_CODE {
            // SAFETY: this is the memory of the keys, which stay borrowed until the sort that reads them is enqueued.
            return Ok(Self::Same(unsafe { DeviceSlice::from_raw_parts(stream.device(), view.as_ptr(), view.len()) }));
        }
        let mut codes = stream.uninit(view.len())?;
        if !view.is_empty() {
            let kernel = EncodeKeys::new(view, codes.raw_view_mut(stream)?, K::SIGN);
            // SAFETY: there is a thread per key.
            unsafe { stream.launch(kernel, view.len().div_ceil(THREADS as usize))? };
        }
        Ok(Self::Encoded(codes))
    }

    fn slice(&self) -> DeviceSlice<'_, C> {
        match self {
            Self::Same(slice) => *slice,
            Self::Encoded(codes) => codes.as_slice(),
        }
    }
}

/// Where a merge of whole levels writes its elements.
#[derive(Clone, Copy)]
struct Output<C, V> {
    keys: GlobalMut<C>,
    values: GlobalMut<V>,
    marks: GlobalMut<u32>,
    counts: GlobalMut<u64>,
}

fn whole<K: Key, V: Pod, P: Payload, const MODE: u32>(
    stream: &Stream,
    levels: &[&Level<K, V>],
    out: Output<K::Code, V>,
) -> Result<(), Error> {
    whole_as::<K, V, V, P, MODE>(stream, levels, out, sort::Sign::NONE)
}

/// Returns the second of two counts. Waits.
fn count_of(stream: &Stream, counts: &DeviceVec<u64>) -> Result<usize, Error> {
    let mut count = [0];
    counts.slice(1..)?.copy_to_host(stream, &mut count)?;
    Ok(count[0] as usize)
}

/// Merges a batch into a level of distinct keys and drops stale elements. Values `W` become `V`: the same type, or
/// none. There must be at least one element.
fn renew<K: Key, W: Pod, V: Pod>(
    stream: &Stream,
    level: &Level<K, W>,
    batch: &Level<K, W>,
    out: Output<K::Code, V>,
    sign: sort::Sign,
) -> Result<(), Error> {
    with_carrier!(V, P => match const { renew_items::<K::Code, P>() } {
        15 => renew_shaped::<K, W, V, P, 15>(stream, level, batch, out, sign),
        _ => renew_shaped::<K, W, V, P, 9>(stream, level, batch, out, sign),
    })
}

fn renew_shaped<K: Key, W: Pod, V: Pod, P: Pod, const ITEMS: usize>(
    stream: &Stream,
    level: &Level<K, W>,
    batch: &Level<K, W>,
    out: Output<K::Code, V>,
    sign: sort::Sign,
) -> Result<(), Error> {
    let (level, batch) = (level.buffers::<P>(stream, 0)?, batch.buffers::<P>(stream, 0)?);
    let tile = renew_tile(ITEMS);
    let tiles = (level.keys.len() + batch.keys.len()).div_ceil(tile);
    let partition = merge::partition(stream, level.keys, batch.keys, K::Code::ORDER, tile)?;
    let kernel = RenewLevel::<K::Code, P, ITEMS>::new(
        level.keys,
        level.values,
        batch.keys,
        batch.values,
        batch.marks,
        sign,
        partition.splits,
        partition.verdicts,
        out.keys,
        carried_mut(out.values),
        out.counts,
        stream.lookback_words(lookback::scratch_words::<u64>(tiles))?,
    );
    // SAFETY: there is a block per tile of the partition. The outputs have room for all elements.
    unsafe { stream.launch(kernel, tiles) }
}

/// Merges whole levels, oldest first. Values `W` become `V`: the same type, or none. There must be at least one
/// element.
fn whole_as<K: Key, W: Pod, V: Pod, P: Payload, const MODE: u32>(
    stream: &Stream,
    levels: &[&Level<K, W>],
    out: Output<K::Code, V>,
    sign: sort::Sign,
) -> Result<(), Error> {
    match const { items::<K::Code, P>(MODE) } {
        13 => whole_shaped::<K, W, V, P, MODE, 13>(stream, levels, out, sign),
        9 => whole_shaped::<K, W, V, P, MODE, 9>(stream, levels, out, sign),
        7 => whole_shaped::<K, W, V, P, MODE, 7>(stream, levels, out, sign),
        _ => whole_shaped::<K, W, V, P, MODE, 5>(stream, levels, out, sign),
    }
}

fn whole_shaped<K: Key, W: Pod, V: Pod, P: Payload, const MODE: u32, const ITEMS: usize>(
    stream: &Stream,
    levels: &[&Level<K, W>],
    out: Output<K::Code, V>,
    sign: sort::Sign,
) -> Result<(), Error> {
    if levels.len() > MAX_LEVELS {
        return Err(Error::TooMany { what: "levels to merge", asked: levels.len(), limit: MAX_LEVELS });
    }
    let total = levels.iter().map(|level| level.len).sum::<usize>();
    let tile = room(ITEMS);
    let tiles = total.div_ceil(tile);

    let mut buffers = Vec::with_capacity(levels.len());
    let mut entries = vec![0u64; levels.len() * ENTRY_WORDS];
    for (i, level) in levels.iter().enumerate() {
        let slot = levels.len() - 1 - i;
        let level = level.buffers::<P::Value>(stream, slot)?;
        let entry = Entry {
            keys: level.keys.as_ptr().expose_provenance() as u64,
            values: level.values.as_ptr().expose_provenance() as u64,
            marks: if level.marks.is_empty() { 0 } else { level.marks.as_ptr().expose_provenance() as u64 },
            directory: 0,
            first: 0,
            last: 0,
            len: level.keys.len() as u32,
            shift: 0,
            padding: 0,
        };
        entries[slot * ENTRY_WORDS..][..ENTRY_WORDS]
            .copy_from_slice(bytemuck::cast_ref::<_, [u64; ENTRY_WORDS]>(&entry));
        buffers.push(level);
    }
    let table = stream.upload(&entries)?;
    let table_view = table.raw_view(stream)?;
    // SAFETY: the table and the levels are freed or changed only after the launch, in stream order.
    let view = unsafe { Levels::view(stream, table_view, sign, &buffers) };

    let log_pieces = levels.len().next_power_of_two().ilog2();
    let runs: Vec<_> = buffers.iter().map(|level| Pairs { keys: level.keys, values: nothing::<()>() }).collect();
    let partition = merge::split_runs(stream, &runs, tile, 0, K::Code::ORDER)?;
    let scratch =
        if MODE == EMIT { stream.lookback_words(lookback::scratch_words::<u64>(tiles))? } else { nothing_mut() };
    let kernel = LevelTiles::<K::Code, P, MODE, ITEMS>::new(
        view,
        log_pieces,
        nothing(),
        nothing(),
        partition.splits(),
        total as u64,
        tile as u32,
        out.keys,
        carried_mut(out.values),
        out.marks,
        out.counts,
        scratch,
    );
    // SAFETY: there is a block per tile. The splits are those of these levels in this order. The outputs have room for
    // all elements.
    unsafe { stream.launch(kernel, tiles) }
}

/// Counts the live elements of whole levels, oldest first. The result is one number on the device. Does not wait.
pub(super) fn count_live<K: Key, V: Pod>(stream: &Stream, levels: &[&Level<K, V>]) -> Result<DeviceVec<u64>, Error> {
    let mut counts = stream.zeroed::<u64>(1)?;
    if levels.iter().any(|level| !level.is_empty()) {
        let out = Output {
            keys: nothing_mut(),
            values: nothing_mut(),
            marks: nothing_mut(),
            counts: counts.raw_view_mut(stream)?,
        };
        if levels.iter().any(|level| level.marks.is_some()) {
            whole::<K, V, MarkedNone, COUNT>(stream, levels, out)?;
        } else {
            whole::<K, V, (), COUNT>(stream, levels, out)?;
        }
    }
    Ok(counts)
}
