//! The largest elements of rows.

use super::find::{Memory, clear_if_codes_can_change};
use super::output::{AnyOutput, Output};
use super::{Keys, expect_positions, gather};
use crate::host::runtime::offsets::expect_offsets;
use crate::host::source::{Source, counting};
use crate::input::Input;
use crate::operator::map;
use crate::pairs::PairsMut;
use crate::sort::{RadixKey, ShortCode};
use crate::top_k::device::best_of_rows::{BestOfRows, Parts, RESIDENT, ROWS};
use crate::top_k::device::code::Coding;
use crate::top_k::device::instances::{best_of_rows, select_rows};
use crate::top_k::device::kernel::tile_len;
use crate::top_k::device::layout::{RowLayout, Wanted};
use crate::top_k::device::order::{NumberKeys, OrderBest, listable, per_thread};
use crate::top_k::device::rows::{SelectRows, room};
use crate::top_k::device::sample_rows::{SampleRows, WARPS, run_len};
use crate::top_k::device::sift::{SIFT_BLOCKS, Sift, Sifted};
use crate::top_k::device::tile::{Candidates, run_of};
use crate::{DeviceSlice, Error, GlobalMut, Stream, expect_len};
use crate::{segmented_sort, transform};

/// The threads of a block that finds the best elements of a row, or of a part of one. More elements than these are not few.
const LARGE: u32 = 256;

/// The threads of a block for short rows.
const SMALL: u32 = 64;

/// The lanes of a warp.
const WARP: usize = 32;

/// The shortest rows that are sifted. Shorter ones are read once, into the cache, by one block.
const MIN_SIFTED: usize = 1 << 13;

/// The rows of an input.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    form: Form<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Form<'a> {
    Equal(usize),
    Offsets(DeviceSlice<'a, u32>),
}

impl<'a> Rows<'a> {
    /// Rows of `len` elements each: a matrix, row by row.
    #[must_use]
    pub const fn of_len(len: usize) -> Self {
        Self { form: Form::Equal(len) }
    }

    /// Rows of any length: row `i` has the elements `offsets[i] .. offsets[i + 1]`. Offsets beyond the input count as its
    /// end, and a row whose end lies before its start is empty.
    pub fn at(offsets: impl Into<DeviceSlice<'a, u32>>) -> Self {
        Self { form: Form::Offsets(offsets.into()) }
    }

    /// Returns the number of rows of `len` elements.
    pub(crate) fn count(self, len: usize) -> Result<usize, Error> {
        match self.form {
            Form::Equal(row) => {
                expect_positions::<u32>(row)?;
                let rows = len.checked_div(row).unwrap_or(0);
                expect_len("an input of equal rows", rows * row, len)?;
                Ok(rows)
            }
            Form::Offsets(offsets) => {
                expect_offsets(offsets.len())?;
                Ok(offsets.len() - 1)
            }
        }
    }

    pub(crate) fn layout(self, stream: &Stream) -> Result<RowLayout, Error> {
        Ok(match self.form {
            Form::Equal(row) => RowLayout::equal(row),
            Form::Offsets(offsets) => RowLayout::at(offsets.raw_view(stream)?),
        })
    }
}

/// How many elements of each row are wanted: the same number of all rows, which is a `usize`, or [a number](Self::each) for each.
///
/// ```
/// use gpu_primitives::top_k::{self, RowCounts, Rows};
/// use gpu_primitives::{Device, Error};
///
/// let stream = Device::default()?.stream()?;
/// let logits = stream.upload(&[0.5f32, 2.0, -1.0, 3.5, 0.0, 3.5])?; // two rows of three
/// let wanted = stream.upload(&[1u32, 2])?; // one of the first row, two of the second
/// let (mut best, mut tokens) = (stream.zeroed::<f32>(4)?, stream.uninit::<u32>(4)?);
/// top_k::segmented_largest(&stream, &logits, Rows::of_len(3), RowCounts::each(&wanted, 2), (&mut best, &mut tokens))?;
/// assert_eq!(best.to_vec(&stream)?, [2.0, 0.0, 3.5, 3.5]); // the second place of the first row is not written
/// assert_eq!(tokens.to_vec(&stream)?, [1, u32::MAX, 0, 2]); // and has no position
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct RowCounts<'a> {
    most: usize,
    each: Option<DeviceSlice<'a, u32>>,
}

impl<'a> RowCounts<'a> {
    /// A number for each row, in memory of the device. Numbers above `most` count as `most`. All rows of the result have room for
    /// `most` elements.
    pub fn each(counts: impl Into<DeviceSlice<'a, u32>>, most: usize) -> Self {
        Self { most, each: Some(counts.into()) }
    }

    /// Returns the numbers as kernels read them.
    fn open(self, stream: &Stream) -> Result<Wanted, Error> {
        Ok(match self.each {
            Some(each) => Wanted::each(each.raw_view(stream)?, self.most),
            None => Wanted::all(self.most),
        })
    }
}

impl From<usize> for RowCounts<'_> {
    /// The same number of all rows.
    fn from(most: usize) -> Self {
        Self { most, each: None }
    }
}

/// Writes the `k` largest elements of each row, the largest first, and their positions in the row. Does not wait.
///
/// Row `i` of the result has the elements `i * k .. (i + 1) * k` of `keys` and `positions`. If a row has fewer than `k`
/// elements, the positions after them are [`Position::NONE`](crate::top_k::Position::NONE), and the keys after them are not written.
///
/// `k` is a number, or [`RowCounts`]: a number for each row, with the most that it can be as `k`. What is not wanted of a row is as if
/// the row had no more elements. A call takes as long as if the most were wanted of all rows.
///
/// Rows of 2^13 elements and more, of which not more than 1024 are wanted (512 of 8 bytes, 256 of 16), are read by many blocks
/// each, about 1.2 times. Of other rows, each is read by one block, twice or more: for a few rows of many millions of elements
/// of which more are wanted, call [`largest`](super::largest) for each.
///
/// # Errors
/// [`Error::LengthMismatch`] if there are not `k` keys and positions per row, or one of the [`RowCounts`] per row, or the input does
/// not consist of whole rows;
/// [`Error::TooLong`] for rows of 2^32 - 1 elements or more; [`Error::OutOfMemory`]: nothing is written in these cases. Any
/// launch error.
pub fn segmented_largest<'a, 'b, 'c, K: RadixKey<Code: ShortCode>>(
    stream: &Stream,
    input: impl Source<'a, K>,
    rows: Rows<'_>,
    k: impl Into<RowCounts<'c>>,
    output: impl Output<'b, K, u32>,
) -> Result<(), Error> {
    let (input, output) = (Keys::new(input, false)?, AnyOutput::new(output));
    let _span = crate::span!(stream, "top_k::segmented_largest", input.len());
    select_rows(stream, &input, rows, k.into(), output)
}

/// Writes the `k` smallest elements of each row, the smallest first, and their positions in the row: see
/// [`segmented_largest`].
///
/// # Errors
/// Same as [`segmented_largest`].
pub fn segmented_smallest<'a, 'b, 'c, K: RadixKey<Code: ShortCode>>(
    stream: &Stream,
    input: impl Source<'a, K>,
    rows: Rows<'_>,
    k: impl Into<RowCounts<'c>>,
    output: impl Output<'b, K, u32>,
) -> Result<(), Error> {
    let (input, output) = (Keys::new(input, true)?, AnyOutput::new(output));
    let _span = crate::span!(stream, "top_k::segmented_smallest", input.len());
    select_rows(stream, &input, rows, k.into(), output)
}

fn select_rows(
    stream: &Stream,
    input: &Keys<'_>,
    rows: Rows<'_>,
    wanted: RowCounts<'_>,
    output: AnyOutput<'_>,
) -> Result<(), Error> {
    let (count, per_row) = (rows.count(input.len())?, wanted.most);
    let all = count.saturating_mul(per_row);
    if let Some(each) = wanted.each {
        expect_len("the numbers of wanted elements (one per row)", count, each.len())?;
    }
    expect_len("the wanted elements of all rows", all, output.keys.len())?;
    output.expect_positions("the positions of the wanted elements")?;
    if all == 0 {
        return Ok(());
    }
    // Positions in a row have 32 bits, however long the input is.
    let (mut keys, mut positions) = output.open(stream, 0)?;
    // Before anything is written: a view can be refused.
    let to_keys = keys.raw_view_mut(stream)?;
    let (opened, layout, wanted) = (input.open(stream)?, rows.layout(stream)?, wanted.open(stream)?);
    let to = positions.raw_view_mut(stream)?.as_type::<u32>();
    let &Keys { coding, bits, .. } = input;
    let keys = input.number_keys(to_keys);
    let find = FindRows { stream, len: input.len(), count, per_row, wanted, layout, coding, bits, keys };
    let has_keys = if find.are_few() {
        best_of_rows!(input.size => (C, VEC), find.run_best::<C, _, VEC>(opened.fused(), to)?)
    } else {
        select_rows!(input.size => (C, VEC, PER), find.run::<C, _, VEC, PER>(opened.fused(), to)?)
    };
    if has_keys {
        return Ok(());
    }
    gather(stream, opened.plain.fused(), to.as_const().into(), to_keys, per_row, layout)
}

/// A search for the largest numbers of rows, except for its input.
struct FindRows<'a> {
    stream: &'a Stream,
    len: usize,
    /// The number of rows.
    count: usize,
    /// The most elements that are wanted of a row.
    per_row: usize,
    wanted: Wanted,
    layout: RowLayout,
    coding: Coding,
    bits: u32,
    /// Where keys go that are numbers.
    keys: Option<NumberKeys>,
}

impl FindRows<'_> {
    /// Writes the positions of the largest numbers of each row. Returns whether the keys are also written.
    fn run<C: ShortCode, I: Input<C::Repr>, const VEC: usize, const PER: usize>(
        self,
        input: I,
        to: GlobalMut<u32>,
    ) -> Result<bool, Error> {
        if let Some(sample) = Sample::new::<C>(self.len / self.count, self.per_row, self.bits, VEC) {
            self.sift::<C, I, VEC, PER>(input, sample, to)?;
            return Ok(self.keys.is_some());
        }
        let mut codes = self.stream.uninit::<C>(self.per_row * self.count)?;
        clear_if_codes_can_change(self.stream, to.into())?;
        let selected = Candidates { codes: codes.raw_view_mut(self.stream)?, positions: to };
        self.select::<C, I, VEC>(input, selected, Sifted::new(GlobalMut::empty(), 0))?;
        if self.per_row > room::<C>() {
            self.sort(selected)?;
        }
        Ok(false)
    }

    /// Returns whether so few are wanted that one launch finds them: [`run_best`](Self::run_best).
    fn are_few(&self) -> bool {
        /// Rows that are longer are read by the launches for many wanted elements, in fewer steps between barriers.
        const LONGEST: usize = 1 << 15;
        /// The most that are wanted of rows that could be sifted. Ranking more takes longer than sifting.
        const OF_LONG: usize = 64;

        let (row_len, most) = (self.len / self.count, self.per_row);
        most <= LARGE as usize && (row_len < MIN_SIFTED || row_len <= LONGEST && most <= OF_LONG)
    }

    /// [`run`](Self::run) for few wanted numbers.
    fn run_best<C: ShortCode, I: Input<C::Repr>, const VEC: usize>(
        self,
        input: I,
        to: GlobalMut<u32>,
    ) -> Result<bool, Error> {
        let small_tile = SMALL as usize / WARP * run_of(VEC, ROWS);
        if self.per_row <= SMALL as usize && self.len / self.count <= 2 * small_tile {
            self.launch_best::<C, I, VEC, SMALL>(input, to)?;
        } else {
            self.launch_best::<C, I, VEC, LARGE>(input, to)?;
        }
        Ok(self.keys.is_some())
    }

    fn launch_best<C: ShortCode, I: Input<C::Repr>, const VEC: usize, const THREADS: u32>(
        &self,
        input: I,
        to: GlobalMut<u32>,
    ) -> Result<(), Error> {
        let &Self { stream, count, per_row, layout, coding, wanted, .. } = self;
        // As many blocks as run at once, if there are so many tiles. More parts would have more of the best elements.
        let tiles = (self.len / count).div_ceil(THREADS as usize / WARP * run_of(VEC, ROWS));
        let blocks = (RESIDENT / THREADS) as usize * stream.device().limits().multiprocessors as usize;
        let parts = blocks.div_ceil(count).min(tiles).max(1);
        let room = if parts == 1 { 0 } else { count * parts * per_row };
        let mut lists = Memory::<C, u32>::new(stream, room)?;
        let finished = if parts == 1 { GlobalMut::empty() } else { stream.zero_words(count)? };
        let parts_of_rows = Parts::new(parts, finished, lists.view(stream)?);
        let keys = self.keys.unwrap_or(NumberKeys::none());
        let kernel = BestOfRows::<C, I, VEC, THREADS>::new(input, coding, layout, wanted, parts_of_rows, to, keys);
        // SAFETY: a block per part of each row; so many are wanted at most; the words are zeros of the stream, one per row, and the
        // lists have room.
        unsafe { stream.launch(kernel, count * parts) }
    }

    /// Moves the numbers of each row that may be wanted to a list, and orders the best of them. Rows whose list is of no use
    /// are selected from.
    fn sift<C: ShortCode, I: Input<C::Repr>, const VEC: usize, const PER: usize>(
        &self,
        input: I,
        Sample { runs, room }: Sample,
        to: GlobalMut<u32>,
    ) -> Result<(), Error> {
        let &Self { stream, count, per_row, layout, coding, bits, .. } = self;
        let mut words = stream.uninit::<u64>(count * Sifted::WORDS)?;
        let (mut lists, mut selected) =
            (Memory::<C, u32>::new(stream, count * room)?, Memory::new(stream, count * per_row)?);
        selected.clear_if_codes_can_change(stream)?;
        let (lists, selected) = (lists.view(stream)?, selected.view(stream)?);
        let sifted = Sifted::new(words.raw_view_mut(stream)?, room);

        let kernel =
            SampleRows::<C, I, VEC, PER>::new(input, coding, bits, layout, per_row as u64, runs as u32, sifted)
                .followed_by(|next| {
                    next.kernel::<Sift<C, I, u32, VEC>>();
                    next.kernel::<OrderBest<C, u32, PER>>();
                });
        // SAFETY: one block per row, which has registers for so many runs.
        unsafe { stream.launch(kernel, count)? };
        // Several waves of blocks, so that the last one costs little; and at least two tiles for each.
        let tiles = (self.len / count).div_ceil(tile_len(VEC));
        let waves = 4 * SIFT_BLOCKS as usize * stream.device().limits().multiprocessors as usize;
        let blocks_per_row = waves.div_ceil(count).min(tiles.div_ceil(2)).max(1);
        let kernel = Sift::<C, I, u32, VEC>::new(input, coding, layout, blocks_per_row as u32, sifted, lists);
        // SAFETY: as many blocks per row. The launch before has found the thresholds, and the lists have room.
        unsafe { stream.launch(kernel, count * blocks_per_row)? };
        self.select::<C, I, VEC>(input, selected, sifted)?;
        let keys = self.keys.unwrap_or(NumberKeys::none());
        let kernel = OrderBest::<C, u32, PER>::new(bits, self.wanted, sifted, lists, selected, to, coding, keys);
        // SAFETY: one block per row, which can order so many. The lists are no longer than a block can hold.
        unsafe { stream.launch(kernel, count) }
    }

    /// Selects the largest numbers of each row whose list is of no use.
    fn select<C: ShortCode, I: Input<C::Repr>, const VEC: usize>(
        &self,
        input: I,
        selected: Candidates<C, u32>,
        sifted: Sifted,
    ) -> Result<(), Error> {
        let &Self { coding, bits, layout, wanted, .. } = self;
        let kernel = SelectRows::<C, I, VEC>::new(input, coding, bits, layout, wanted, selected, sifted);
        // SAFETY: one block per row, and as many selected numbers per row as are wanted at most.
        unsafe { self.stream.launch(kernel, self.count) }
    }

    /// Orders the numbers of each row, the largest first. Equal ones stay in order.
    fn sort<C: ShortCode>(&self, rows: Candidates<C, u32>) -> Result<(), Error> {
        let (len, codes, limit) = (rows.codes.len(), rows.codes, u32::MAX as usize);
        if len > limit {
            return Err(Error::TooLong { what: "the wanted elements of all rows", len, limit });
        }
        let mut offsets = self.stream.uninit::<u32>(self.count + 1)?;
        let row_start = map!(per_row: u32 = self.per_row as u32; |row: u32| -> u32 { row * per_row });
        transform::map(self.stream, counting(0u32, offsets.len()), &mut offsets, row_start)?;
        // SAFETY: a code is loaded as this type, which has the same size and no stricter alignment.
        let keys = unsafe { GlobalMut::from_raw(codes.as_const().as_ptr().cast_mut().cast::<C::Repr>(), len) };
        let pairs = PairsMut { keys, values: rows.positions };
        segmented_sort::sort_promised(self.stream, offsets.as_slice(), pairs.into(), C::descending())
    }
}

/// How rows are sampled for a threshold.
#[derive(Clone, Copy, Debug)]
struct Sample {
    /// The runs of a row that are sampled, if it has so many.
    runs: usize,
    /// The candidates that a row has room for.
    room: usize,
}

impl Sample {
    /// Returns the sample for rows of about `row_len` numbers of `bits` bits; nothing if sifting is not worthwhile.
    fn new<C: ShortCode>(row_len: usize, wanted: usize, bits: u32, vec: usize) -> Option<Self> {
        /// Most rows of numbers with fewer bits have too many equal ones.
        const MIN_BITS: u32 = 16;
        if row_len < MIN_SIFTED || bits < MIN_BITS || wanted > listable::<C>() / 8 || wanted > row_len / 32 {
            return None;
        }
        let all = per_thread::<C>();
        // Half of the sample is enough if the list stays short.
        [all / 2, all].into_iter().find_map(|per_thread| {
            let runs = (per_thread * WARPS).min(row_len / run_len(vec));
            let stride = row_len / run_len(vec) / runs;
            // Some more reach the threshold: it is not exact, and a maximum may stand for several elements.
            let expected = 2 * wanted * stride;
            let most = if per_thread == all { listable::<C>() } else { listable::<C>() / 4 };
            (expected <= most)
                .then(|| Self { runs, room: (2 * expected).next_power_of_two().clamp(1024, listable::<C>()) })
        })
    }
}
