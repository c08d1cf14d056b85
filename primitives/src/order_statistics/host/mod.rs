//! Host functions of order statistics.

#![deny(unsafe_op_in_unsafe_fn)]

mod find;
pub(crate) mod rows;

use super::device::cuts::{MAX_RANKS, rank_of_fraction};
use super::device::instances::keep_ranks;
use crate::host::repr::expect_repr;
use crate::host::runtime::column::{AnyVec, ColumnMut, number};
use crate::host::source::Source;
use crate::operator::map;
use crate::sort::host::lowered;
use crate::sort::{Options, RadixKey, ShortCode};
use crate::top_k::device::layout::RowLayout;
use crate::top_k::host::output::AnyOutput;
use crate::top_k::host::{Keys, expect_positions, gather};
use crate::top_k::{Output, Position};
use crate::transform::host::write_column;
use crate::{DeviceValue, DeviceVec, Error, Stream, expect_len};

/// The ranks for which the input is searched as often as needed. For more, it is sorted.
const MAX_SEARCHED: usize = 4 * MAX_RANKS;

/// Writes the elements with these ranks, and their positions if they are wanted: rank 0 is the smallest element. Does not wait.
///
/// The ranks are in any order, and may repeat. Element `i` of the [`Output`] is that of rank `ranks[i]`. Of equal elements,
/// the one with the lowest position has the lowest rank.
///
/// If the source has a length that only the device knows, ranks need only be below the most that it can be. Keys of ranks
/// that no element has are then not written, and their positions are [`Position::NONE`].
///
/// ```
/// use gpu_primitives::{Device, Error, order_statistics};
///
/// let stream = Device::cpu().stream()?;
/// let input = stream.upload(&[30u64, 10, 50, 20, 40])?;
/// let mut keys = stream.uninit::<u64>(3)?;
/// order_statistics::select_kth(&stream, &input, &[1, 4, 1], &mut keys)?;
/// assert_eq!(keys.to_vec(&stream)?, [20, 50, 20]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::InvalidOption`] for a rank that is not below the number of elements; [`Error::LengthMismatch`] if there are not as
/// many keys as ranks, or positions; [`Error::TooLong`] if 32 bits do not hold the positions; [`Error::OutOfMemory`]: nothing is
/// written in these cases. Any launch error.
pub fn select_kth<'a, 'b, K: RadixKey<Code: ShortCode>, P: Position>(
    stream: &Stream,
    input: impl Source<'a, K>,
    ranks: &[usize],
    output: impl Output<'b, K, P>,
) -> Result<(), Error> {
    let (input, output) = (Input::new(input)?, AnyOutput::new(output));
    let _span = crate::span!(stream, "order_statistics::select_kth", input.len());
    select(stream, &input, &Ranks::new(ranks, input.len())?, output)
}

/// Writes quantiles, and their positions if they are wanted: the elements with the ranks `fraction * (n - 1)`, rounded down, of
/// `n` elements. Does not wait.
///
/// So fraction 0 is the smallest element, 1 the largest, and 0.5 the median. Nothing is interpolated. The product is
/// computed in 64-bit floats, as `fraction * (n - 1) as f64`. For another rule, compute the ranks, and call [`select_kth`].
///
/// If the source has a length that only the device knows, `n` is that length. If it is 0, no keys are written, and positions are
/// [`Position::NONE`].
///
/// ```
/// use gpu_primitives::{Device, Error, order_statistics};
///
/// let stream = Device::cpu().stream()?;
/// let latencies = stream.upload(&(1..=100u32).rev().collect::<Vec<_>>())?;
/// let mut keys = stream.uninit::<u32>(3)?;
/// order_statistics::quantiles(&stream, &latencies, &[0.5, 0.95, 1.0], &mut keys)?;
/// assert_eq!(keys.to_vec(&stream)?, [50, 95, 100]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::InvalidOption`] for a fraction that is not from 0 to 1, and for an input without elements;
/// [`Error::LengthMismatch`] if there are not as many keys as fractions, or positions; [`Error::TooLong`] if 32 bits do not
/// hold the positions; [`Error::OutOfMemory`]: nothing is written in these cases. Any launch error.
pub fn quantiles<'a, 'b, K: RadixKey<Code: ShortCode>, P: Position>(
    stream: &Stream,
    input: impl Source<'a, K>,
    fractions: &[f64],
    output: impl Output<'b, K, P>,
) -> Result<(), Error> {
    let (input, output) = (Input::new(input)?, AnyOutput::new(output));
    let _span = crate::span!(stream, "order_statistics::quantiles", input.len());
    select(stream, &input, &Ranks::of_fractions(fractions, input.len())?, output)
}

/// Returns the median: the lower one of the two elements in the middle, if their number is even. Does not wait.
///
/// If the source has a length that only the device knows, and it is 0, the median is a key of zeros.
///
/// ```
/// use gpu_primitives::{Device, Error, order_statistics};
///
/// let stream = Device::cpu().stream()?;
/// let input = stream.upload(&[4i32, -8, 15, -16, 23, 42])?;
/// assert_eq!(order_statistics::median(&stream, &input)?.get(&stream)?, 4);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::InvalidOption`] for an input without elements; [`Error::OutOfMemory`]; any launch error.
pub fn median<'a, K: RadixKey<Code: ShortCode>>(
    stream: &Stream,
    input: impl Source<'a, K>,
) -> Result<DeviceValue<K>, Error> {
    let input = Input::new(input)?;
    let _span = crate::span!(stream, "order_statistics::median", input.len());
    let ranks = Ranks::of_fractions(&[0.5], input.len())?;
    let mut median = DeviceValue::new(stream, K::zeroed())?;
    select(stream, &input, &ranks, AnyOutput::keys(median.as_mut_slice().into()))?;
    Ok(median)
}

/// The input, without the type of its keys.
struct Input<'a> {
    keys: Keys<'a>,
    /// How it is sorted.
    sorting: lowered::Coding,
    /// The bytes of a key.
    bytes: usize,
}

impl<'a> Input<'a> {
    fn new<K: RadixKey<Code: ShortCode>>(input: impl Source<'a, K>) -> Result<Self, Error> {
        const { expect_repr::<K>() };
        Ok(Self { keys: Keys::new(input, false)?, sorting: lowered::Coding::of::<K>(), bytes: size_of::<K>() })
    }

    fn len(&self) -> usize {
        self.keys.len()
    }
}

/// The wanted ranks.
struct Ranks {
    /// The ranks, or the bits of fractions.
    words: Vec<u64>,
    fractions: bool,
}

impl Ranks {
    /// Checks ranks among at most `len` elements.
    fn new(ranks: &[usize], len: usize) -> Result<Self, Error> {
        if let Some(rank) = ranks.iter().find(|&&rank| rank >= len) {
            let asked = format!("{rank}, of {len} elements");
            return Err(Error::InvalidOption { what: "a rank", asked, allowed: "less than the number of elements" });
        }
        Ok(Self { words: ranks.iter().map(|&rank| rank as u64).collect(), fractions: false })
    }

    /// Checks fractions of at most `len` elements.
    fn of_fractions(fractions: &[f64], len: usize) -> Result<Self, Error> {
        let words = bits_of_fractions(fractions)?;
        if len == 0 && !words.is_empty() {
            let (what, asked) = ("the number of elements of which quantiles are wanted", "0".into());
            return Err(Error::InvalidOption { what, asked, allowed: "at least 1: pass elements, or ask for none" });
        }
        Ok(Self { words, fractions: true })
    }

    fn len(&self) -> usize {
        self.words.len()
    }

    /// Returns the ranks among `len` elements.
    fn among(&self, len: usize) -> Vec<u32> {
        let rank = |&word: &u64| if self.fractions { rank_of_fraction(word, len as u64) } else { word };
        self.words.iter().map(|word| rank(word) as u32).collect()
    }
}

/// Checks fractions, and returns their bits.
fn bits_of_fractions(fractions: &[f64]) -> Result<Vec<u64>, Error> {
    if let Some(fraction) = fractions.iter().find(|fraction| !(0.0..=1.0).contains(*fraction)) {
        let asked = fraction.to_string();
        return Err(Error::InvalidOption { what: "the fraction of a quantile", asked, allowed: "from 0 to 1" });
    }
    Ok(fractions.iter().map(|fraction| fraction.to_bits()).collect())
}

fn select(stream: &Stream, input: &Input<'_>, ranks: &Ranks, output: AnyOutput<'_>) -> Result<(), Error> {
    let (len, wanted) = (input.len(), ranks.len());
    expect_len("the keys of the wanted ranks", wanted, output.keys.len())?;
    output.expect_positions("the positions of the wanted ranks")?;
    if wanted == 0 {
        return Ok(());
    }
    let (mut keys, mut positions) = output.open(stream, len)?;
    // Before anything is written: a view can be refused.
    let (to, to_keys) = (positions.raw_view_mut(stream)?, keys.raw_view_mut(stream)?);
    number!(to.size() => P, expect_positions::<P>(len)?);
    let opened = input.keys.open(stream)?;
    if wanted > MAX_SEARCHED && !input.keys.plain.is_counted() && expect_positions::<u32>(len).is_ok() {
        sort(stream, input, ranks, to)?;
    } else {
        keep_ranks!(input.keys.size => (C, VEC), {
            find::find::<C, VEC>(stream, &input.keys, &opened, ranks, to)?;
        });
    }
    gather(stream, opened.plain.fused(), to.as_const(), to_keys, wanted, RowLayout::equal(len))
}

/// Writes the positions of the ranks: sorts the positions of all elements.
fn sort(stream: &Stream, input: &Input<'_>, ranks: &Ranks, to: ColumnMut) -> Result<(), Error> {
    let ranks = stream.upload(&ranks.among(input.len()))?;
    let order = {
        let mut keys = AnyVec::uninit(stream, input.bytes, input.len())?;
        write_column(stream, &input.keys.plain, keys.raw_view_mut(stream)?)?;
        lowered::argsort(stream, keys.as_slice().into(), &input.sorting, &Options::new())?
    };
    let from = order.as_slice().into_parts()?.lower().open(stream)?;
    let ranks = ranks.raw_view(stream)?.into();
    let (wanted, layout) = (to.len(), RowLayout::equal(input.len()));
    if to.size() == size_of::<u32>() {
        return gather(stream, from.fused(), ranks, to, wanted, layout);
    }
    let mut positions: DeviceVec<u32> = stream.uninit(to.len())?;
    gather(stream, from.fused(), ranks, positions.raw_view_mut(stream)?.into(), wanted, layout)?;
    let wide = crate::host::source::map(&positions, map!(|position: u32| -> u64 { position as u64 }));
    write_column(stream, &wide.into_parts()?.lower(), to)
}
