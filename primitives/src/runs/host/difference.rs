//! Functions of neighbours.

use crate::host::source::Source;
use crate::map::Map2;
use crate::transform::InMemory;
use crate::{DeviceSliceMut, Error, Stream, expect_len, transfer, transform};
use bytemuck::Pod;

/// Computes `output[i] = function(input[i], input[i - 1])`, with `output[0] = input[0]`. So a sum is undone by a difference:
/// the inclusive scan of the differences is the input.
///
/// For results of another type, or without the first element, use [`transform::map2`] of `input[1..]` and
/// `input[..len - 1]`: this is what happens here. Each element is read from memory once, the second time from a cache.
///
/// # Errors
/// [`Error::LengthMismatch`] if the slices differ in length; any launch error.
pub fn adjacent_difference<'a, 'b, T: Pod, F: Map2<T, T, Output = T>>(
    stream: &Stream,
    input: impl Source<'a, T>,
    output: impl Into<DeviceSliceMut<'b, T>>,
    function: F,
) -> Result<(), Error> {
    let (input, output) = (input.into_parts()?.elements().of_known_len("the input of differences")?, output.into());
    let _span = crate::span!(stream, "runs::adjacent_difference", input.len());
    expect_len("the output of differences", input.len(), output.len())?;
    let input = InMemory::new(stream, input)?;
    let input = input.as_slice().typed::<T>().expect("the door has this type");
    if input.is_empty() {
        return Ok(());
    }
    let (first, rest) = output.split_at_mut(1)?;
    transfer::copy(stream, input.slice(..1)?, first)?;
    transform::map2(stream, input.slice(1..)?, input.slice(..input.len() - 1)?, rest, function)
}

/// [`adjacent_difference`] in place. Copies the input first, to temporary memory.
///
/// # Errors
/// [`Error::OutOfMemory`]; any launch error.
pub fn adjacent_difference_in_place<'a, T: Pod, F: Map2<T, T, Output = T>>(
    stream: &Stream,
    data: impl Into<DeviceSliceMut<'a, T>>,
    function: F,
) -> Result<(), Error> {
    let data = data.into();
    let _span = crate::span!(stream, "runs::adjacent_difference_in_place", data.len());
    let mut input = stream.uninit::<T>(data.len())?;
    transfer::copy(stream, data.as_slice(), &mut input)?;
    adjacent_difference(stream, &input, data, function)
}
