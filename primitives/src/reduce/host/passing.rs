//! Elements that pass a test: whether there are any, how many, and the first one.

#![deny(unsafe_op_in_unsafe_fn)]

use crate::host::repr::{expect_repr, repr_size_or_bytes};
use crate::host::source::{AnySource, Source};
use crate::reduce::device::passing::{
    BLOCKS, CountPassing, FindPassing, Found, Progress, THREADS, count_passing, find_passing,
};
use crate::select::{HolePredicate, Predicate};
use crate::{DeviceValue, Error, GlobalMut, Stream};
use bytemuck::Pod;

/// What [`find_first`] returns if no element passes. An input cannot have so many elements.
pub const NOT_FOUND: u64 = u64::MAX;

/// Returns the position of the first element that passes; [`NOT_FOUND`] if none does. Does not wait.
///
/// It ends early: what lies far behind the first element that passes is not read.
///
/// ```
/// use gpu_primitives::operator::predicate;
/// use gpu_primitives::{Device, Error, reduce};
///
/// let stream = Device::default()?.stream()?;
/// let input = stream.upload(&[3u32, 1, 4, 1, 5, 9])?;
/// let found = reduce::find_first(&stream, &input, predicate!(|x: u32| x > 3))?;
/// assert_eq!(found.get(&stream)?, 2);
/// let found = reduce::find_first(&stream, &input, predicate!(|x: u32| x > 9))?;
/// assert_eq!(found.get(&stream)?, reduce::NOT_FOUND);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::OutOfMemory`]; any launch error.
pub fn find_first<'a, T: Pod, P: Predicate<T>>(
    stream: &Stream,
    input: impl Source<'a, T>,
    predicate: P,
) -> Result<DeviceValue<u64>, Error> {
    const { expect_repr::<T>() };
    let input = input.into_parts()?.lower();
    let _span = crate::span!(stream, "reduce::find_first", input.len());
    position(stream, &input, HolePredicate::of::<T, P>(predicate))
}

/// Returns 1 if an element passes, else 0. An empty input gives 0. Does not wait.
///
/// It ends early, as [`find_first`] does.
///
/// ```
/// use gpu_primitives::operator::predicate;
/// use gpu_primitives::{Device, Error, reduce};
///
/// let stream = Device::default()?.stream()?;
/// let input = stream.upload(&[1.5f64, f64::NAN, 2.5])?;
/// let has_nan = reduce::any(&stream, &input, predicate!(|x: f64| x.is_nan()))?;
/// let is_small = reduce::all(&stream, &input, predicate!(|x: f64| x < 3.0))?;
/// assert_eq!((has_nan.get(&stream)?, is_small.get(&stream)?), (1, 0));
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Same as [`find_first`].
pub fn any<'a, T: Pod, P: Predicate<T>>(
    stream: &Stream,
    input: impl Source<'a, T>,
    predicate: P,
) -> Result<DeviceValue<u8>, Error> {
    const { expect_repr::<T>() };
    let input = input.into_parts()?.lower();
    let _span = crate::span!(stream, "reduce::any", input.len());
    has_any(stream, &input, HolePredicate::of::<T, P>(predicate))
}

/// Returns 1 if all elements pass, else 0. An empty input gives 1. Does not wait. See [`any`].
///
/// # Errors
/// Same as [`find_first`].
pub fn all<'a, T: Pod, P: Predicate<T>>(
    stream: &Stream,
    input: impl Source<'a, T>,
    predicate: P,
) -> Result<DeviceValue<u8>, Error> {
    const { expect_repr::<T>() };
    let input = input.into_parts()?.lower();
    let _span = crate::span!(stream, "reduce::all", input.len());
    has_all(stream, &input, HolePredicate::of::<T, P>(predicate))
}

/// Returns how many elements pass. Does not wait.
///
/// ```
/// use gpu_primitives::operator::predicate;
/// use gpu_primitives::{Device, Error, reduce};
///
/// let stream = Device::default()?.stream()?;
/// let input = stream.upload(&[3u32, 1, 4, 1, 5, 9])?;
/// let odd = reduce::count_if(&stream, &input, predicate!(|x: u32| x % 2 == 1))?;
/// assert_eq!(odd.get(&stream)?, 5);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::OutOfMemory`]; any launch error.
pub fn count_if<'a, T: Pod, P: Predicate<T>>(
    stream: &Stream,
    input: impl Source<'a, T>,
    predicate: P,
) -> Result<DeviceValue<u64>, Error> {
    const { expect_repr::<T>() };
    let input = input.into_parts()?.lower();
    let _span = crate::span!(stream, "reduce::count_if", input.len());
    count(stream, &input, HolePredicate::of::<T, P>(predicate))
}

fn has_any(stream: &Stream, input: &AnySource<'_>, keep: HolePredicate) -> Result<DeviceValue<u8>, Error> {
    has(stream, input, keep, true)
}

fn has_all(stream: &Stream, input: &AnySource<'_>, keep: HolePredicate) -> Result<DeviceValue<u8>, Error> {
    has(stream, input, keep, false)
}

/// Returns 1 if there is an element whose test has the result `wanted`, for true; or if there is none, for false.
fn has(stream: &Stream, input: &AnySource<'_>, keep: HolePredicate, wanted: bool) -> Result<DeviceValue<u8>, Error> {
    let mut flag = DeviceValue::uninit(stream)?;
    let to = Found { position: GlobalMut::empty(), flag: flag.as_mut_slice().raw_view_mut(stream)? };
    find(stream, input, keep, wanted, to)?;
    Ok(flag)
}

/// Returns the position of the first element that passes.
fn position(stream: &Stream, input: &AnySource<'_>, keep: HolePredicate) -> Result<DeviceValue<u64>, Error> {
    let mut position = DeviceValue::uninit(stream)?;
    let to = Found { position: position.as_mut_slice().raw_view_mut(stream)?, flag: GlobalMut::empty() };
    find(stream, input, keep, true, to)?;
    Ok(position)
}

/// Finds the first element whose test has the result `wanted`.
fn find(stream: &Stream, input: &AnySource<'_>, keep: HolePredicate, wanted: bool, to: Found) -> Result<(), Error> {
    let (len, input) = (input.len(), input.open(stream)?);
    let progress = Progress::new(stream.zero_words(Progress::WORDS)?);
    find_passing!(repr_size_or_bytes(input.size()) => (H, ROWS), {
        let kernel = FindPassing::<H, ROWS>::new(input.fused(), keep, u32::from(wanted), progress, to);
        // SAFETY: there is a block, and one result. The words are zeros of the stream.
        unsafe { stream.launch(kernel, blocks(stream, len, ROWS)) }
    })
}

fn count(stream: &Stream, input: &AnySource<'_>, keep: HolePredicate) -> Result<DeviceValue<u64>, Error> {
    let mut total = DeviceValue::uninit(stream)?;
    let (len, input) = (input.len(), input.open(stream)?);
    let progress = Progress::new(stream.zero_words(Progress::WORDS)?);
    let to = total.as_mut_slice().raw_view_mut(stream)?;
    count_passing!(repr_size_or_bytes(input.size()) => (H, ROWS), {
        let kernel = CountPassing::<H, ROWS>::new(input.fused(), keep, progress, to);
        // SAFETY: there is a block, and one count. The words are zeros of the stream.
        unsafe { stream.launch(kernel, blocks(stream, len, ROWS))? };
    });
    Ok(total)
}

/// Returns the blocks that run at once, or fewer if there are fewer runs: one at least, which writes the result.
fn blocks(stream: &Stream, len: usize, rows: usize) -> usize {
    len.div_ceil(THREADS as usize * rows).clamp(1, BLOCKS * stream.device().limits().multiprocessors as usize)
}
