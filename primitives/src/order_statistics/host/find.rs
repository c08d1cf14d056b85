//! The launches that find some ranks of one input.

#![deny(unsafe_op_in_unsafe_fn)]

use super::Ranks;
use crate::host::runtime::column::ColumnMut;
use crate::input::SourceArg;
use crate::order_statistics::device::cuts::{Cuts, MAX_RANKS, Wanted};
use crate::order_statistics::device::kernel::{KeepRanks, MIN_BLOCKS, Search, Step, tile_len};
use crate::sort::ShortCode;
use crate::top_k::device::code::{Coding, Digit};
use crate::top_k::device::histogram::BINS;
use crate::top_k::device::kernel::{CountDigits, MIN_BLOCKS as COUNT_BLOCKS, tile_len as count_tile};
use crate::top_k::device::sift::Sifted;
use crate::top_k::device::tile::Candidates;
use crate::top_k::host::find::{Memory, clear_if_codes_can_change};
use crate::top_k::host::{Keys, OpenedKeys};
use crate::{DeviceVec, Error, GlobalMut, Stream, transfer};

/// Writes the positions of the ranks. There is at least one, and the input has elements.
pub(super) fn find<C: ShortCode, const VEC: usize>(
    stream: &Stream,
    keys: &Keys<'_>,
    opened: &OpenedKeys,
    ranks: &Ranks,
    to: ColumnMut,
) -> Result<(), Error> {
    let (len, coding) = (keys.len(), keys.coding);
    // All memory is allocated before anything is written.
    let room = (len / 16).max(len.min(tile_len(4)));
    let mut spares = [Memory::<C, u64>::new(stream, room)?, Memory::new(stream, room)?];
    let [first, second] = &mut spares;
    let spares = [first.view(stream)?, second.view(stream)?];
    let mut batches = Vec::new();
    for words in ranks.words.chunks(MAX_RANKS) {
        batches.push(Batch::new(stream, Cuts::new(keys.bits, len, words.len()), words)?);
    }
    clear_if_codes_can_change(stream, to)?;
    let counts = batches[0].counts.raw_view_mut(stream)?;
    count::<C, VEC>(stream, opened.fused(), coding, keys.bits, len, counts)?;
    let (counted, others) = batches.split_first_mut().expect("there are ranks");
    for batch in others.iter_mut() {
        let first = counted.counts.slice(..BINS)?;
        transfer::copy(stream, first, batch.counts.slice_mut(..BINS)?)?;
    }
    for (number, batch) in batches.iter_mut().enumerate() {
        let to = to.slice(number * MAX_RANKS, batch.ranks);
        batch.run::<C, VEC>(stream, opened.fused(), (coding, len), ranks.fractions, spares, to)?;
    }
    Ok(())
}

/// Counts the highest digits of the input, which has `len` elements at most.
fn count<C: ShortCode, const VEC: usize>(
    stream: &Stream,
    input: SourceArg,
    coding: Coding,
    bits: u32,
    len: usize,
    counts: GlobalMut<u64>,
) -> Result<(), Error> {
    let not_sifted = Sifted::new(GlobalMut::empty(), 0);
    // SAFETY: there are counts for several digits.
    let counts = unsafe { counts.slice(0, BINS) };
    let kernel = CountDigits::<C, SourceArg, VEC>::new(input, coding, Digit::of(bits, 0), u64::MAX, counts, not_sifted)
        .followed_by(|next| next.kernel::<KeepRanks<C, SourceArg, VEC>>());
    let blocks = COUNT_BLOCKS as usize * stream.device().limits().multiprocessors as usize;
    // SAFETY: all are wanted, and the counts are zero.
    unsafe { stream.launch(kernel, len.div_ceil(count_tile(VEC)).min(blocks)) }
}

/// The memory for ranks that are searched for at the same time.
struct Batch {
    cuts: Cuts,
    ranks: usize,
    steps: DeviceVec<Step>,
    /// The numbers in each bin, per digit.
    counts: DeviceVec<u64>,
    moved: DeviceVec<u64>,
    words: DeviceVec<u64>,
    slots: DeviceVec<u32>,
}

impl Batch {
    fn new(stream: &Stream, cuts: Cuts, words: &[u64]) -> Result<Self, Error> {
        let levels = cuts.levels() as usize;
        let mut all = stream.uninit(words.len() * (levels + 1))?;
        all.slice_mut(..words.len())?.copy_from_host(stream, words)?;
        Ok(Self {
            cuts,
            ranks: words.len(),
            steps: stream.uninit(levels + 1)?,
            counts: stream.zeroed(levels * BINS)?,
            moved: stream.zeroed(levels)?,
            words: all,
            slots: stream.uninit(levels * BINS)?,
        })
    }

    /// Finds the ranks. The digits of the input are counted.
    fn run<C: ShortCode, const VEC: usize>(
        &mut self,
        stream: &Stream,
        input: SourceArg,
        (coding, len): (Coding, usize),
        fractions: bool,
        [first_spare, second_spare]: [Candidates<C, u64>; 2],
        to: ColumnMut,
    ) -> Result<(), Error> {
        let search = Search {
            steps: self.steps.raw_view_mut(stream)?,
            counts: self.counts.raw_view_mut(stream)?,
            moved: self.moved.raw_view_mut(stream)?,
            ranks: self.words.raw_view_mut(stream)?,
            slots: self.slots.raw_view_mut(stream)?,
            first_spare,
            second_spare,
            narrow: to.typed().unwrap_or(GlobalMut::empty()),
            wide: to.typed().unwrap_or(GlobalMut::empty()),
        };
        let wanted = Wanted { count: self.ranks as u32, fractions: u32::from(fractions) };
        let blocks = MIN_BLOCKS as usize * stream.device().limits().multiprocessors as usize;
        for level in 0..self.cuts.levels() {
            let kernel = KeepRanks::<C, SourceArg, VEC>::new(input, coding, self.cuts, level, wanted, search);
            // SAFETY: the memory was made for these digits and ranks. The launches before have left what this one needs.
            unsafe { stream.launch(kernel, len.div_ceil(tile_len(VEC)).min(blocks))? };
        }
        Ok(())
    }
}
