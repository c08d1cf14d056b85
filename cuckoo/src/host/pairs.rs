//! Pairs on the host: keys and values whose types are known by their sizes alone. Kernels see a key as the unsigned integer
//! with the same bits, and a value as its carrier.
//!
//! Pairs have as many values as keys, even if values are zero-sized.

use crate::device::{Pairs, PairsMut};
use bytemuck::Pod;
use gpu_primitives::kernel::{Reach, View};
use gpu_primitives::lowered::{self, AnySlice, AnySliceMut, AnyVec};
use gpu_primitives::{DeviceSlice, DeviceSliceMut, Error, Stream, expect_len, sized};

/// The bytes of a key, and of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    pub key: usize,
    pub value: usize,
}

/// Evaluates an expression with the type of keys and the type of values.
macro_rules! with_types {
    ($sizes:expr => $code:ident, $carrier:ident, $body:expr) => {
        $crate::host::pairs::with_types!($sizes => $code, $carrier in () | u32 | u64, $body)
    };
    ($sizes:expr => $code:ident, $carrier:ident in $($listed:ty)|+, $body:expr) => {{
        let sizes: $crate::host::pairs::Sizes = $sizes;
        gpu_primitives::sized!(sizes.key => $code in u32 | u64, {
            gpu_primitives::sized!(sizes.value => $carrier in $($listed)|+, $body, else unreachable!("{sizes:?}"))
        }, else unreachable!("{sizes:?}"))
    }};
}

pub(super) use with_types;

/// Keys and as many values, to read.
pub type PairSlices<'a> = (AnySlice<'a>, AnySlice<'a>);

/// Keys and as many values.
#[derive(Debug)]
pub struct PairVec {
    pub keys: AnyVec,
    pub values: AnyVec,
}

const SAME: &str = "the type has the size of the elements, which are aligned";

/// Returns elements as a type of their size.
pub fn typed<T: Pod>(slice: AnySlice<'_>) -> DeviceSlice<'_, T> {
    slice.typed().expect(SAME)
}

/// Returns elements as a type of their size.
pub fn typed_mut<T: Pod>(vector: &mut AnyVec) -> DeviceSliceMut<'_, T> {
    vector.as_mut_slice().typed().expect(SAME)
}

/// Returns the sizes of keys and values.
pub fn sizes_of(pairs: PairSlices<'_>) -> Sizes {
    Sizes { key: pairs.0.size(), value: pairs.1.size() }
}

/// Returns pairs as an argument for kernels on `stream`.
pub fn view<'a, C: Pod, V: Pod>(stream: &Stream, pairs: PairSlices<'a>) -> Result<View<'a, Pairs<C, V>>, Error> {
    let (keys, values) = (typed(pairs.0).view(stream)?, typed(pairs.1).view(stream)?);
    // SAFETY: the result borrows the same memory as the two views.
    Ok(unsafe { View::new(Pairs { keys: keys.into_param(), values: values.into_param() }, Reach::none()) })
}

impl PairVec {
    /// Allocates room for `len` pairs.
    pub fn uninit(stream: &Stream, sizes: Sizes, len: usize) -> Result<Self, Error> {
        Ok(Self { keys: AnyVec::uninit(stream, sizes.key, len)?, values: AnyVec::uninit(stream, sizes.value, len)? })
    }

    /// Returns the number of pairs.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns the size in bytes.
    pub fn bytes(&self) -> usize {
        self.len() * (self.keys.size() + self.values.size())
    }

    /// Makes room for `len` pairs. What was in it is lost where it grows.
    pub fn reserve(&mut self, stream: &Stream, len: usize) -> Result<(), Error> {
        if self.len() < len {
            *self = Self::uninit(stream, sizes_of(self.slices()), len)?;
        }
        Ok(())
    }

    /// Returns all pairs, to read.
    pub fn slices(&self) -> PairSlices<'_> {
        (self.keys.as_slice(), self.values.as_slice())
    }

    /// Returns the first `len` pairs, to read.
    pub fn first(&self, len: usize) -> Result<PairSlices<'_>, Error> {
        Ok((self.keys.as_slice().slice(0..len)?, self.values.as_slice().slice(0..len)?))
    }

    /// Returns the room for pairs as an argument for kernels on `stream`.
    pub fn view_mut<C: Pod, V: Pod>(&mut self, stream: &Stream) -> Result<View<'_, PairsMut<C, V>>, Error> {
        let (mut keys, mut values) = (typed_mut(&mut self.keys), typed_mut(&mut self.values));
        let (keys, values) = (keys.view_mut(stream)?, values.view_mut(stream)?);
        // SAFETY: the result borrows the same memory as the two views.
        Ok(unsafe { View::new(PairsMut { keys: keys.into_param(), values: values.into_param() }, Reach::none()) })
    }

    /// Copies pairs of the host to the first positions. Waits.
    pub fn fill_from_host(&mut self, stream: &Stream, pairs: Vec<(u64, u64)>) -> Result<(), Error> {
        let (keys, values): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        upload(stream, self.keys.as_mut_slice(), &keys)?;
        upload(stream, self.values.as_mut_slice(), &values)
    }

    /// Copies pairs to the positions from `at` on.
    pub fn copy_from(&mut self, stream: &Stream, at: usize, (keys, values): PairSlices<'_>) -> Result<(), Error> {
        let range = at..at + keys.len();
        self.keys.as_mut_slice().slice_mut(range.clone())?.copy_from(stream, keys)?;
        self.values.as_mut_slice().slice_mut(range)?.copy_from(stream, values)
    }
}

/// Copies elements of up to 8 bytes to the host, as numbers with the same bits. Waits.
pub fn download(stream: &Stream, from: AnySlice<'_>) -> Result<Vec<u64>, Error> {
    if from.size() == size_of::<u64>() {
        return typed::<u64>(from).to_vec(stream);
    }
    sized!(from.size() => T in u8 | u32, {
        Ok(typed::<T>(from).to_vec(stream)?.into_iter().map(u64::from).collect())
    }, else Ok(vec![0; from.len()]))
}

/// Copies numbers of the host to the first elements, of which each has the lower bits of one. Waits.
pub fn upload(stream: &Stream, to: AnySliceMut<'_>, numbers: &[u64]) -> Result<(), Error> {
    let to = to.slice_mut(0..numbers.len())?;
    sized!(to.size() => T in u32 | u64, {
        let elements: Vec<T> = numbers.iter().map(|&number| number as T).collect();
        to.typed::<T>().expect(SAME).copy_from_host(stream, &elements)
    }, else Ok(()))
}

/// Pairs of the caller, in the form that the table uses.
pub struct Given<'a> {
    keys: AnySlice<'a>,
    values: Values<'a>,
}

enum Values<'a> {
    Same(AnySlice<'a>),
    Copy(AnyVec),
}

impl<'a> Given<'a> {
    /// Takes pairs of the caller. Zero-sized values are not given: there must be none.
    ///
    /// # Errors
    /// - [`Error::LengthMismatch`] if there is not exactly one value per key; for zero-sized values, if there are any.
    /// - [`Error::OutOfMemory`] for a copy of misaligned values.
    pub fn new(stream: &Stream, (keys, values): PairSlices<'a>) -> Result<Self, Error> {
        let (len, size) = (keys.len(), values.size());
        expect_len("the slice of values", if size == 0 { 0 } else { len }, values.len())?;
        let is_aligned = sized!(size => V in u32 | u64, values.typed::<V>().is_some(), else false);
        if is_aligned {
            return Ok(Self { keys, values: Values::Same(values) });
        }
        // Vectors are aligned for all types. Zero-sized values become as many as keys, and take no memory.
        let mut copy = AnyVec::uninit(stream, size, len)?;
        if size > 0 {
            copy.as_mut_slice().copy_from(stream, values)?;
        }
        Ok(Self { keys, values: Values::Copy(copy) })
    }

    /// Returns the pairs.
    pub fn slices(&self) -> PairSlices<'_> {
        let values = match &self.values {
            Values::Same(slice) => *slice,
            Values::Copy(vector) => vector.as_slice(),
        };
        (self.keys, values)
    }
}

/// Sorts pairs by the bits of their keys, so that equal keys are next to each other, in the order that they had. Does not wait.
pub fn sort_by_key(stream: &Stream, from: PairSlices<'_>) -> Result<PairVec, Error> {
    let mut to = PairVec::uninit(stream, sizes_of(from), from.0.len())?;
    let bits = 8 * from.0.size() as u32;
    lowered::sort::codes(stream, from, (to.keys.as_mut_slice(), to.values.as_mut_slice()), bits)?;
    Ok(to)
}
