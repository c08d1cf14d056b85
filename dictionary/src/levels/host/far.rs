//! Lookups where some levels are in host memory.
//!
//! A kernel reads such a level over the link, which is slow for reads at random places: an H200 has 42 million of them per second, and
//! 35,000 million in its own memory. So a large batch of keys goes another way than through all levels at once:
//! 1. The levels on the device are searched for all keys.
//! 2. The filters of the levels on the host say which keys may be there. They are on the device, too.
//! 3. Only these keys are sorted, with their positions in the batch, and searched for in all levels: neighbouring threads read
//!    neighbouring elements, so every part of a level that has some of the keys is read about once, in order.
//! 4. Their answers replace those of step 1. A key that passes no filter is in no level on the host, so its answer is complete.
//!
//! Tombstones and operands are elements with a key like all others, and are in the filters.

#![deny(unsafe_op_in_unsafe_fn)]

use super::stack::AnyStack;
use crate::filter::host::options::Options;
use crate::filter::host::raw::RawFilter;
use crate::levels::host::level::AnyLevel;
use gpu_primitives::code::{Sign, U256};
use gpu_primitives::lowered::{self, AnySlice, AnySliceMut, AnyVec, Place};
use gpu_primitives::{Bits, DeviceKind, DeviceSliceMut, DeviceVec, Error, Stream, bits, permute, sized};

/// The bits that a filter has per key of a level. Together with the fingerprints of the directory, one absent key in about 300 is looked
/// for in a level on the host.
const BITS_PER_KEY: f64 = 8.0;
/// As many keys are sorted, and answered, at a time: more would take more memory, and would not be denser to speak of.
const PIECE: usize = 1 << 26;
/// As many elements of a level are added to its filter at a time: a filter orders them in temporary memory.
const ADDED: usize = 1 << 24;

/// Returns the number of keys from which on sorting them takes less time than reading levels on the host at random.
fn many_keys(stream: &Stream) -> usize {
    match stream.device().kind() {
        // At 42 million reads per second, 4096 keys take as long as ten launches and a wait.
        DeviceKind::Cuda { .. } => 1 << 12,
        // There is no link. So few keys that tests take both ways.
        DeviceKind::Cpu | DeviceKind::CpuChecked => 1 << 5,
    }
}

/// Builds the filter of a level. Does not wait.
pub(crate) fn filter_of(stream: &Stream, level: &AnyLevel) -> Result<RawFilter, Error> {
    let codes = level.run().0;
    let shape = Options::new().bits_per_key(BITS_PER_KEY).shape(codes.len())?;
    let mut filter = RawFilter::new(stream, shape, codes.size())?;
    let mut done = 0;
    while done < codes.len() {
        let end = codes.len().min(done + ADDED);
        filter.insert(stream, codes.slice(done..end)?)?;
        done = end;
    }
    Ok(filter)
}

impl AnyStack {
    /// Returns whether so many keys are sorted before they are looked up. A wait cannot be recorded.
    pub(crate) fn sorts_lookups(&self, stream: &Stream, keys: usize) -> bool {
        keys >= many_keys(stream)
            && self.place_of_copies() == Place::Host
            && stream.refuse_recording("a lookup in host memory").is_ok()
    }

    /// Finds keys and, if they are wanted, their values. There is at least one level on the host. Waits for the stream, to learn how many
    /// keys may be there.
    pub(crate) fn find_far(
        &self,
        stream: &Stream,
        keys: AnySlice<'_>,
        mut values: Option<AnySliceMut<'_>>,
        found: &mut DeviceVec<u8>,
    ) -> Result<(), Error> {
        let codes = self.types.codes(stream, keys)?;
        let mut done = 0;
        while done < keys.len() {
            let piece = done..keys.len().min(done + PIECE);
            let codes = codes.slice().slice(piece.clone())?;
            let values = values.as_mut().map(|values| {
                let of_piece = self.types.values_for(piece.start)..self.types.values_for(piece.end);
                values.reborrow().slice_mut(of_piece)
            });
            self.find_piece(stream, codes, values.transpose()?, found.slice_mut(piece.clone())?)?;
            done = piece.end;
        }
        Ok(())
    }

    /// Finds keys, which are given as codes: not more than 2^32.
    fn find_piece(
        &self,
        stream: &Stream,
        codes: AnySlice<'_>,
        mut values: Option<AnySliceMut<'_>>,
        mut found: DeviceSliceMut<'_, u8>,
    ) -> Result<(), Error> {
        let with_values = values.is_some();
        let near = self.view_of(stream, with_values, Sign::NONE, |level: &AnyLevel| level.place() == Place::Device)?;
        self.search(stream, near, codes, values.as_mut().map(AnySliceMut::reborrow), found.reborrow())?;
        let passed = self.pass_filters(stream, codes)?;
        let mut positions = stream.uninit::<u32>(codes.len())?;
        let count = bits::positions(stream, Bits::new(&passed, 0, codes.len())?, &mut positions)?.get(stream)? as usize;
        if count == 0 {
            return Ok(());
        }
        positions.truncate(count);
        let (mut asked, mut sorted) =
            (AnyVec::uninit(stream, codes.size(), count)?, AnyVec::uninit(stream, codes.size(), count)?);
        sized!(codes.size() => C in u32 | u64 | u128 | U256, {
            let (from, to) = codes.typed::<C>().zip(asked.as_mut_slice().typed::<C>()).expect("these are their types");
            // SAFETY: these are positions of codes.
            unsafe { permute::gather_unchecked(stream, from, &positions, to)? };
        }, else unreachable!("codes have 4, 8, 16 or 32 bytes"));
        let mut places = stream.uninit::<u32>(count)?;
        let to = (sorted.as_mut_slice(), places.as_mut_slice().into());
        lowered::sort::codes(stream, (asked.as_slice(), positions.as_slice().into()), to, self.types.bits)?;
        drop((asked, positions));

        let all = self.view_of(stream, with_values, Sign::NONE, |_| true)?;
        let mut far_found = stream.uninit::<u8>(count)?;
        let mut far_values = if with_values { Some(self.types.room_for_values(stream, count)?) } else { None };
        let to = far_values.as_mut().map(AnyVec::as_mut_slice);
        self.search(stream, all, sorted.as_slice(), to, far_found.as_mut_slice())?;
        // SAFETY: a sort only moves the positions, which are in range and distinct.
        unsafe { permute::scatter_unchecked(stream, &far_found, &places, found)? };
        if let (Some(from), Some(to)) = (far_values, values) {
            sized!(self.types.value => W in u32 | u64, {
                let (from, to) = from.as_slice().typed::<W>().zip(to.typed::<W>()).expect("vectors are aligned");
                // SAFETY: the same.
                unsafe { permute::scatter_unchecked(stream, from, &places, to)? };
            }, else {});
        }
        Ok(())
    }

    /// Returns a bit for each code: whether a level on the host may have it.
    fn pass_filters(&self, stream: &Stream, codes: AnySlice<'_>) -> Result<DeviceVec<u8>, Error> {
        let mut passed: Option<DeviceVec<u8>> = None;
        for filter in self.filters(stream)? {
            let bits = filter.contains_bits(stream, codes)?;
            passed = Some(match passed {
                None => bits,
                Some(before) => {
                    let (one, other) = (Bits::new(&before, 0, codes.len())?, Bits::new(&bits, 0, codes.len())?);
                    let mut either = stream.uninit(bits.len())?;
                    bits::or(stream, one, other, &mut either)?;
                    either
                }
            });
        }
        Ok(passed.expect("there is a level on the host"))
    }
}
