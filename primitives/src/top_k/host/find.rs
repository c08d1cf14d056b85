//! The launches that find the largest numbers of one input.

#![deny(unsafe_op_in_unsafe_fn)]

use crate::block::lookback;
use crate::host::runtime::column::ColumnMut;
use crate::host::runtime::loading::Upcoming;
use crate::input::Input;
use crate::pairs::Pairs;
use crate::sort::ShortCode;
use crate::top_k::device::code::{Coding, Digit, Position};
use crate::top_k::device::histogram::BINS;
use crate::top_k::device::kernel::{CountDigits, MIN_BLOCKS, Narrow, Search, Step, WARPS, tile_len};
use crate::top_k::device::layout::{RowLayout, Wanted};
use crate::top_k::device::order::{NumberKeys, OrderBest, listable, orderable, per_thread};
use crate::top_k::device::sift::{BLOCK_MAXIMA, FindThreshold, MAX_MAXIMA, SIFT_BLOCKS, SampleMaxima, Sift, Sifted};
use crate::top_k::device::tile::{Candidates, Counts, run_len};
use crate::{DeviceKind, DeviceVec, Error, GlobalMut, Stream, transfer};

/// Numbers and their positions.
pub(crate) struct Memory<C: ShortCode, P: Position> {
    codes: DeviceVec<C>,
    positions: DeviceVec<P>,
}

impl<C: ShortCode, P: Position> Memory<C, P> {
    pub(crate) fn new(stream: &Stream, len: usize) -> Result<Self, Error> {
        Ok(Self { codes: stream.uninit(len)?, positions: stream.uninit(len)? })
    }

    /// Fills the memory with what comes after all elements.
    pub(crate) fn clear(&mut self, stream: &Stream) -> Result<(), Error> {
        self.codes = stream.zeroed(self.codes.len())?;
        transfer::fill(stream, &mut self.positions, P::NONE)
    }

    /// [Clears](Self::clear) the memory if [codes can change](codes_can_change).
    pub(crate) fn clear_if_codes_can_change(&mut self, stream: &Stream) -> Result<(), Error> {
        if codes_can_change(stream) { self.clear(stream) } else { Ok(()) }
    }

    pub(crate) fn pairs(&self, stream: &Stream) -> Result<Pairs<C, P>, Error> {
        Ok(Pairs { keys: self.codes.raw_view(stream)?, values: self.positions.raw_view(stream)? })
    }

    pub(crate) fn view(&mut self, stream: &Stream) -> Result<Candidates<C, P>, Error> {
        Ok(Candidates { codes: self.codes.raw_view_mut(stream)?, positions: self.positions.raw_view_mut(stream)? })
    }
}

/// Returns whether keys can change their codes from one read to the next, and so leave places that nobody writes: on the CPU,
/// where a key's code is a function of the caller. Such places count as missing.
fn codes_can_change(stream: &Stream) -> bool {
    !matches!(stream.device().kind(), DeviceKind::Cuda { .. })
}

/// Sets positions to [`Position::NONE`], of which all bits are set, if [codes can change](codes_can_change).
pub(crate) fn clear_if_codes_can_change(stream: &Stream, positions: ColumnMut) -> Result<(), Error> {
    if codes_can_change(stream) { transfer::fill_column(stream, positions, &[0xFF]) } else { Ok(()) }
}

/// The list of candidates of a sifted input. It has no memory if sifting is not worthwhile.
pub(crate) struct Sieve<C: ShortCode, P: Position> {
    words: DeviceVec<u64>,
    list: Memory<C, P>,
    bits: u32,
}

impl<C: ShortCode, P: Position> Sieve<C, P> {
    /// Creates an empty list for the `wanted` largest of `len` numbers of `bits` bits.
    pub(crate) fn new(stream: &Stream, len: usize, wanted: usize, bits: u32) -> Result<Self, Error> {
        /// Shorter inputs are too few runs for a sample.
        const MIN_LEN: usize = 1 << 17;
        /// Most inputs of numbers with fewer bits have too many equal ones.
        const MIN_BITS: u32 = 16;
        const { assert!(listable::<C>() / 8 <= orderable::<C>()) };
        // Enough groups for the sample, and a list that the candidates do not fill: they are about five times the wanted
        // elements if a quarter of the input is sampled.
        let is_few = wanted <= len / 1024 && wanted <= listable::<C>() / 8;
        let is_worthwhile = len >= MIN_LEN && bits >= MIN_BITS && is_few;
        let (words, room) = if is_worthwhile { (Sifted::WORDS, listable::<C>()) } else { (0, 0) };
        Ok(Self { words: stream.uninit(words)?, list: Memory::new(stream, room)?, bits })
    }

    pub(crate) fn view(&mut self, stream: &Stream) -> Result<SieveView<C, P>, Error> {
        let list = self.list.view(stream)?;
        Ok(SieveView { sifted: Sifted::new(self.words.raw_view_mut(stream)?, list.codes.len()), list })
    }

    /// Puts the best numbers in order: those of the list if it has all of them, otherwise those that were selected.
    pub(crate) fn order<const PER: usize>(
        &mut self,
        stream: &Stream,
        selected: Candidates<C, P>,
        positions: GlobalMut<P>,
        coding: Coding,
        keys: NumberKeys,
    ) -> Result<(), Error> {
        const { assert!(PER == per_thread::<C>()) };
        let SieveView { sifted, list } = self.view(stream)?;
        let wanted = Wanted::all(positions.len());
        let kernel = OrderBest::<C, P, PER>::new(self.bits, wanted, sifted, list, selected, positions, coding, keys);
        // SAFETY: one row; the caller wants so few, and has found them. The list is no longer than the block can hold.
        unsafe { stream.launch(kernel, 1) }
    }
}

/// The list of candidates, as kernels use it.
#[derive(Clone, Copy)]
pub(crate) struct SieveView<C, P> {
    sifted: Sifted,
    list: Candidates<C, P>,
}

/// A search for the largest numbers, except for its input.
pub(crate) struct Find<'a, C, P> {
    pub stream: &'a Stream,
    /// The number of elements; the most that it can be, if only the device knows it.
    pub len: usize,
    pub coding: Coding,
    pub bits: u32,
    pub sieve: SieveView<C, P>,
    pub selected: Candidates<C, P>,
}

impl<C: ShortCode, P: Position> Find<'_, C, P> {
    /// Puts the largest numbers into the list of candidates, or selects them.
    pub(crate) fn run<I: Input<C::Repr>, const VEC: usize>(self, input: I) -> Result<(), Error> {
        if !self.sieve.list.codes.is_empty() {
            self.sift::<I, VEC>(input)?;
        }
        self.narrow::<I, VEC>(input)
    }

    /// Samples the input, and moves all numbers that may be wanted to the list of candidates.
    fn sift<I: Input<C::Repr>, const VEC: usize>(&self, input: I) -> Result<(), Error> {
        let Self { stream, coding, bits, sieve: SieveView { sifted, list }, .. } = *self;
        let wanted = self.selected.codes.len();
        let stride = stride::<C>(self.len.div_ceil(run_len(VEC)), wanted);
        let samples = self.len.div_ceil(run_len(VEC) * stride);
        let blocks = samples.div_ceil(WARPS).min(MAX_MAXIMA / BLOCK_MAXIMA);
        let mut maxima = stream.uninit::<C>(blocks * BLOCK_MAXIMA)?;
        let maxima = maxima.raw_view_mut(stream)?;
        let kernel = SampleMaxima::<C, I, VEC>::new(input, coding, stride as u32, maxima).followed_by(|next| {
            next.kernel::<FindThreshold<C>>();
            next.kernel::<Sift<C, I, P, VEC>>();
            next.kernel::<CountDigits<C, I, VEC>>();
            next.kernel::<Narrow<C, I, P, VEC>>();
        });
        // SAFETY: as many maxima per block.
        unsafe { stream.launch(kernel, blocks)? };
        let kernel = FindThreshold::<C>::new(maxima.as_const(), bits, wanted as u64, stride as u32, sifted);
        // SAFETY: one block. For each 384 elements or fewer there is a maximum, until there are `MAX_MAXIMA`: more than are
        // wanted in both cases.
        unsafe { stream.launch(kernel, 1)? };
        let blocks = SIFT_BLOCKS as usize * stream.device().limits().multiprocessors as usize;
        let blocks = self.len.div_ceil(tile_len(VEC)).min(blocks);
        let layout = RowLayout::equal(self.len);
        let kernel = Sift::<C, I, P, VEC>::new(input, coding, layout, blocks as u32, sifted, list);
        // SAFETY: one row; the launch before has found the threshold, and the list has room.
        unsafe { stream.launch(kernel, blocks) }
    }

    /// Selects the largest numbers, unless the list of candidates has all of them: counts the highest digits, and then
    /// narrows the input down, digit by digit.
    fn narrow<I: Input<C::Repr>, const VEC: usize>(self, input: I) -> Result<(), Error> {
        let Self { stream, len, coding, bits, sieve: SieveView { sifted, .. }, selected } = self;
        let levels = Digit::levels(bits) as usize;
        let spare = if levels > 1 { selected.codes.len().max(len / 16).max(len.min(tile_len(VEC))) } else { 0 };
        let mut spares = [Memory::<C, P>::new(stream, spare)?, Memory::new(stream, spare)?];
        let [first, second] = &mut spares;
        let (first, second) = (first.view(stream)?, second.view(stream)?);
        let mut steps = stream.uninit::<Step>(levels + 1)?;
        let mut counts = stream.zeroed::<u64>((levels + 1) * BINS)?;
        let search = Search {
            steps: steps.raw_view_mut(stream)?,
            counts: counts.raw_view_mut(stream)?,
            first_spare: first,
            second_spare: second,
            selected,
        };

        let tiles = len.div_ceil(tile_len(VEC));
        let blocks = tiles.min(MIN_BLOCKS as usize * stream.device().limits().multiprocessors as usize);
        let wanted = selected.codes.len() as u64;
        // SAFETY: there are counts of all digits.
        let first = unsafe { search.counts(0) };
        let kernel = CountDigits::<C, I, VEC>::new(input, coding, Digit::of(bits, 0), wanted, first, sifted)
            .followed_by(Upcoming::kernel::<Narrow<C, I, P, VEC>>);
        // SAFETY: something is wanted, and the counts are zero.
        unsafe { stream.launch(kernel, blocks)? };
        for level in 0..levels {
            let scratch = stream.lookback_words(lookback::scratch_words::<Counts>(tiles))?;
            let kernel = Narrow::<C, I, P, VEC>::new(input, coding, bits, level as u32, search, scratch, sifted);
            // SAFETY: the counts and the step before are those of the launch before; the spare memory is shorter than the
            // input, so that the look-back has words for its tiles.
            unsafe { stream.launch(kernel, blocks)? };
        }
        Ok(())
    }
}

/// Returns how many runs of the input there are per run of the sample.
///
/// There are some `stride * wanted` candidates. They should fill half of the list, but a quarter of the input is the most
/// that a sample is worth. For a sample of up to 2048 runs, each warp reads one: a smaller one would
/// not be faster.
fn stride<C>(runs: usize, wanted: usize) -> usize {
    const MAX_WARPS: usize = MAX_MAXIMA / BLOCK_MAXIMA * WARPS;
    (listable::<C>() / 2 / wanted).min(runs / MAX_WARPS).clamp(4, 32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::Sign;
    use crate::host::source::of_view;
    use crate::{Device, DeviceSlice};

    /// Returns the number of candidates, and the room for them.
    fn sifted(input: &[u32], wanted: usize) -> (usize, usize) {
        let stream = Device::cpu().stream().unwrap();
        let (len, bits) = (input.len(), 32);
        let input = stream.upload(input).unwrap();
        let mut sieve = Sieve::<u32, u32>::new(&stream, len, wanted, bits).unwrap();
        let mut selected = Memory::new(&stream, wanted).unwrap();
        let (view, selected) = (sieve.view(&stream).unwrap(), selected.view(&stream).unwrap());
        let coding = Coding::new(Sign::NONE, bits, false);
        let find = Find { stream: &stream, len, coding, bits, sieve: view, selected };
        find.sift::<_, 4>(of_view(DeviceSlice::from(&input).raw_view(&stream).unwrap())).unwrap();
        (sieve.words.to_vec(&stream).unwrap()[0] as usize, view.list.codes.len())
    }

    /// The tests of results do not see which way they were found.
    #[test]
    fn few_candidates_are_left() {
        let len = 1 << 17;
        for wanted in [1, 20, 128] {
            let (kept, _) = sifted(&(0..len as u32).map(|i| i.wrapping_mul(0x9E37_79B1)).collect::<Vec<_>>(), wanted);
            assert!((wanted..10 * wanted + 20).contains(&kept), "{kept} candidates for {wanted}");
        }
        let (kept, room) = sifted(&vec![7; len], 100);
        assert!(kept > room);
    }
}
