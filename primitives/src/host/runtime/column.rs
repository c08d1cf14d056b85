//! Elements whose type is known by its size alone.
//!
//! Kernels exist for sizes, not for types, so the code that launches them need not know types either. A public function
//! turns what it is given into such elements and calls code that is compiled once, with this crate, and not in every
//! program for each of its types.
//!
//! Vectors and slices without a type have all that those with one have, and are as safe: plain data may be read as any
//! other plain data of its size.

use super::call::{Reach, View};
use super::host_blocks::Place;
use super::memory::DeviceVec;
use super::slice::{DeviceSlice, DeviceSliceMut};
use super::stream::Stream;
use crate::host::error::Error;
use crate::input::{Limit, Prefix};
use crate::view::{Global, GlobalMut};
use bytemuck::Pod;
use core::alloc::Layout;
use core::ops::Range;

/// A [`DeviceSlice`] of elements whose type is known by its size alone.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct AnySlice<'a> {
    bytes: DeviceSlice<'a, u8>,
    size: usize,
    /// The number of elements; the most that it can be, if only the device knows it.
    len: usize,
    /// The number of elements, if only the device knows it.
    counted: Option<DeviceSlice<'a, u64>>,
}

/// A [`DeviceSliceMut`] of elements whose type is known by its size alone.
#[doc(hidden)]
#[derive(Debug)]
pub struct AnySliceMut<'a> {
    bytes: DeviceSliceMut<'a, u8>,
    size: usize,
    /// See [`AnySlice`].
    len: usize,
    counted: Option<DeviceSlice<'a, u64>>,
}

/// A [`DeviceVec`] of elements whose type is known by its size alone.
#[doc(hidden)]
#[derive(Debug)]
pub struct AnyVec {
    bytes: DeviceVec<u8>,
    size: usize,
    len: usize,
}

impl<'a, T: Pod> From<DeviceSlice<'a, T>> for AnySlice<'a> {
    fn from(slice: DeviceSlice<'a, T>) -> Self {
        Self { size: size_of::<T>(), len: slice.len(), bytes: slice.bytes(), counted: None }
    }
}

impl<'a, T: Pod> From<DeviceSliceMut<'a, T>> for AnySliceMut<'a> {
    fn from(slice: DeviceSliceMut<'a, T>) -> Self {
        Self { size: size_of::<T>(), len: slice.len(), bytes: slice.bytes(), counted: None }
    }
}

impl<T: Pod> From<DeviceVec<T>> for AnyVec {
    fn from(vector: DeviceVec<T>) -> Self {
        Self { size: size_of::<T>(), len: vector.len(), bytes: vector.into_bytes() }
    }
}

/// The accessors that memory without a type has.
macro_rules! facts {
    () => {
        /// Returns the number of elements.
        #[must_use]
        pub fn len(&self) -> usize {
            self.len
        }

        /// Returns whether there are no elements.
        #[must_use]
        pub fn is_empty(&self) -> bool {
            self.len == 0
        }

        /// Returns the bytes of an element.
        #[must_use]
        pub fn size(&self) -> usize {
            self.size
        }
    };
}

impl<'a> AnySlice<'a> {
    /// Returns slices of one type.
    pub(crate) fn all<T: Pod>(slices: &[DeviceSlice<'a, T>]) -> Vec<Self> {
        slices.iter().map(|&slice| slice.into()).collect()
    }

    facts!();

    /// Returns its first elements, as many as the device says, if only the device knows it.
    pub(crate) fn counted(self, count: Option<DeviceSlice<'a, u64>>) -> Self {
        Self { counted: count, ..self }
    }

    /// Returns a part of it, whose length the host knows.
    ///
    /// # Errors
    /// [`Error::RangeOutside`] if the range is out of bounds.
    pub fn slice(&self, range: Range<usize>) -> Result<Self, Error> {
        expect_range(&range, self.len)?;
        let bytes = self.bytes.slice(range.start * self.size..range.end * self.size)?;
        Ok(Self { bytes, len: range.len(), size: self.size, counted: None })
    }

    /// Returns the length that only the device knows, if there is one.
    pub(crate) fn count(&self) -> Option<DeviceSlice<'a, u64>> {
        self.counted
    }

    /// Returns the same elements without automatic ordering.
    ///
    /// # Safety
    /// That of [`DeviceSlice::unordered`].
    pub(crate) unsafe fn unordered(self) -> Self {
        // SAFETY: guaranteed by the caller.
        Self { bytes: unsafe { self.bytes.unordered() }, ..self }
    }

    /// Returns the bytes of all elements.
    #[must_use]
    pub fn bytes(self) -> DeviceSlice<'a, u8> {
        self.bytes
    }

    /// Returns the elements as a type of their size. Returns `None` if it has another size, or if the memory is misaligned
    /// for it.
    #[must_use]
    pub fn typed<T: Pod>(self) -> Option<DeviceSlice<'a, T>> {
        if size_of::<T>() == self.size { self.bytes.elements(self.len) } else { None }
    }

    /// Returns a view that kernels on `stream` can read through.
    ///
    /// # Errors
    /// Those of [`DeviceSlice::view`].
    ///
    /// # Panics
    /// If the elements have another size, or are misaligned for the type.
    pub fn view<T: Pod>(&self, stream: &Stream) -> Result<View<'a, Global<T>>, Error> {
        self.typed::<T>().unwrap_or_else(|| no_type::<T>(self.size)).view(stream)
    }

    /// Returns a view of the bytes.
    ///
    /// # Errors
    /// Those of [`DeviceSlice::view`].
    pub fn bytes_view(&self, stream: &Stream) -> Result<View<'a, Global<u8>>, Error> {
        self.bytes.view(stream)
    }

    /// Returns a view for kernels on `stream`: the caller keeps the memory alive until its work is done.
    pub(crate) fn raw_view(&self, stream: &Stream) -> Result<Column, Error> {
        let address = self.bytes.raw_view(stream)?.as_ptr();
        Ok(Column { address, len: self.len, size: self.size, limit: limit(self.counted, stream)? })
    }
}

impl<'a> AnySliceMut<'a> {
    facts!();

    /// Returns the length that only the device knows, if there is one.
    pub(crate) fn count(&self) -> Option<DeviceSlice<'a, u64>> {
        self.counted
    }

    /// Reborrows the elements for a shorter time.
    #[must_use]
    pub fn reborrow(&mut self) -> AnySliceMut<'_> {
        AnySliceMut { bytes: self.bytes.reborrow(), size: self.size, len: self.len, counted: self.counted }
    }

    /// Returns the same elements, for reading.
    #[must_use]
    pub fn as_slice(&self) -> AnySlice<'_> {
        AnySlice { bytes: self.bytes.as_slice(), size: self.size, len: self.len, counted: self.counted }
    }

    /// Returns its first elements, as many as the device says, if only the device knows it.
    pub(crate) fn counted(self, count: Option<DeviceSlice<'a, u64>>) -> Self {
        Self { counted: count, ..self }
    }

    /// Returns the same elements without automatic ordering.
    ///
    /// # Safety
    /// That of [`DeviceSliceMut::unordered`].
    pub(crate) unsafe fn unordered(self) -> Self {
        // SAFETY: guaranteed by the caller.
        Self { bytes: unsafe { self.bytes.unordered() }, ..self }
    }

    /// Returns the bytes of all elements.
    #[must_use]
    pub fn bytes_mut(self) -> DeviceSliceMut<'a, u8> {
        self.bytes
    }

    /// Returns a part of it, whose length the host knows. Call [`reborrow`](Self::reborrow) first to keep the whole slice.
    ///
    /// # Errors
    /// [`Error::RangeOutside`] if the range is out of bounds.
    pub fn slice_mut(self, range: Range<usize>) -> Result<Self, Error> {
        expect_range(&range, self.len)?;
        let bytes = self.bytes.slice_mut(range.start * self.size..range.end * self.size)?;
        Ok(Self { bytes, size: self.size, len: range.len(), counted: None })
    }

    /// Returns the elements as a type of their size: see [`AnySlice::typed`].
    #[must_use]
    pub fn typed<T: Pod>(self) -> Option<DeviceSliceMut<'a, T>> {
        if size_of::<T>() == self.size { self.bytes.elements(self.len) } else { None }
    }

    /// Returns a view that kernels on `stream` can read and write through.
    ///
    /// # Errors
    /// Those of [`DeviceSliceMut::view_mut`].
    ///
    /// # Panics
    /// If the elements have another size, or are misaligned for the type.
    pub fn view_mut<T: Pod>(&mut self, stream: &Stream) -> Result<View<'_, GlobalMut<T>>, Error> {
        let size = self.size;
        let memory = self.reborrow().typed::<T>().unwrap_or_else(|| no_type::<T>(size)).raw_view_mut(stream)?;
        // SAFETY: the memory is borrowed as long as the view lives.
        Ok(unsafe { View::new(memory, Reach::made_for(stream)) })
    }

    /// Writes zeros. Does not wait.
    ///
    /// # Errors
    /// [`Error::WrongDevice`], and other driver errors.
    pub fn zero(&mut self, stream: &Stream) -> Result<(), Error> {
        let bytes = self.bytes.raw_view_mut(stream)?;
        // SAFETY: the view has that many bytes, which may be written.
        unsafe { stream.queue().zero(bytes.as_const().as_ptr().cast_mut(), bytes.len()) }
    }

    /// Copies elements of the same size from memory of the same device. Does not wait.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there is another number of bytes; [`Error::WrongDevice`]; other driver errors.
    pub fn copy_from(&mut self, stream: &Stream, from: AnySlice<'_>) -> Result<(), Error> {
        self.bytes.copy_from(stream, from.bytes)
    }

    /// Returns a view for kernels on `stream`: the caller keeps the memory alive until its work is done.
    pub(crate) fn raw_view_mut(&mut self, stream: &Stream) -> Result<ColumnMut, Error> {
        let address = self.bytes.raw_view_mut(stream)?.as_const().as_ptr().cast_mut();
        Ok(ColumnMut { address, len: self.len, size: self.size, limit: limit(self.counted, stream)? })
    }
}

impl AnyVec {
    /// Creates a vector of `len` elements of `size` bytes, with unspecified contents. Does not wait.
    ///
    /// # Errors
    /// Those of [`Stream::uninit`].
    #[track_caller]
    pub fn uninit(stream: &Stream, size: usize, len: usize) -> Result<Self, Error> {
        Ok(Self { bytes: stream.uninit(len.saturating_mul(size))?, size, len })
    }

    /// Creates a vector of `len` elements of `size` bytes in a place, with unspecified contents. Does not wait.
    ///
    /// # Errors
    /// Those of [`Stream::uninit_in`].
    #[track_caller]
    pub fn uninit_in(stream: &Stream, place: Place, size: usize, len: usize) -> Result<Self, Error> {
        Ok(Self { bytes: stream.uninit_in(place, len.saturating_mul(size))?, size, len })
    }

    /// Creates a vector of `len` elements of `size` zero bytes. Does not wait.
    ///
    /// # Errors
    /// Those of [`Stream::zeroed`].
    pub fn zeroed(stream: &Stream, size: usize, len: usize) -> Result<Self, Error> {
        Ok(Self { bytes: stream.zeroed(len.saturating_mul(size))?, size, len })
    }

    facts!();

    /// Returns the device that holds the memory.
    #[must_use]
    pub fn device(&self) -> &super::device::Device {
        self.bytes.device()
    }

    /// Returns the elements, for reading.
    #[must_use]
    pub fn as_slice(&self) -> AnySlice<'_> {
        AnySlice { bytes: self.bytes.as_slice(), size: self.size, len: self.len, counted: None }
    }

    /// Returns the elements, for writing.
    #[must_use]
    pub fn as_mut_slice(&mut self) -> AnySliceMut<'_> {
        AnySliceMut { bytes: self.bytes.as_mut_slice(), size: self.size, len: self.len, counted: None }
    }

    /// Returns a view for kernels on `stream`: the caller keeps the memory alive until its work is done.
    pub(crate) fn raw_view_mut(&mut self, stream: &Stream) -> Result<ColumnMut, Error> {
        self.as_mut_slice().raw_view_mut(stream)
    }

    /// Shortens the vector to its first `len` elements; does nothing if it has no more. The memory stays allocated.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
        self.bytes.truncate(self.len * self.size);
    }

    /// Returns the elements as a type of their size.
    ///
    /// # Panics
    /// If the type has another size.
    #[must_use]
    pub fn into_typed<T: Pod>(self) -> DeviceVec<T> {
        assert_eq!(size_of::<T>(), self.size, "elements of another size are not a `{}`", core::any::type_name::<T>());
        self.bytes.into_elements(self.len)
    }
}

/// Elements that kernels read, of a type that is known by its size alone: a [`Global`] without a type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    address: *const u8,
    len: usize,
    size: usize,
    /// Which of the elements count. Only a [`prefix`](Self::prefix) tells a kernel.
    limit: Limit,
}

/// Elements that kernels write, of a type that is known by its size alone: a [`GlobalMut`] without a type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ColumnMut {
    address: *mut u8,
    len: usize,
    size: usize,
    /// Which of the elements count, when they are read.
    limit: Limit,
}

impl<T: Pod> From<Global<T>> for Column {
    fn from(view: Global<T>) -> Self {
        Self { address: view.as_ptr().cast(), len: view.len(), size: size_of::<T>(), limit: Limit::NONE }
    }
}

impl<T: Pod> From<GlobalMut<T>> for ColumnMut {
    fn from(view: GlobalMut<T>) -> Self {
        let address = view.as_const().as_ptr().cast_mut().cast();
        Self { address, len: view.len(), size: size_of::<T>(), limit: Limit::NONE }
    }
}

/// Returns the length that only the device knows, if there is one. Two are one if they are the same value.
pub(crate) fn only_one<'a>(
    a: Option<DeviceSlice<'a, u64>>,
    b: Option<DeviceSlice<'a, u64>>,
) -> Result<Option<DeviceSlice<'a, u64>>, Error> {
    if let (Some(a), Some(b)) = (a, b)
        && a.as_ptr() != b.as_ptr()
    {
        return Err(Error::InvalidOption {
            what: "the number of lengths of an input that only the device knows",
            asked: "2 that differ".into(),
            allowed: "1: count the whole input, or its parts by the same value",
        });
    }
    Ok(a.or(b))
}

/// Returns what limits elements whose number perhaps only the device knows.
fn limit(counted: Option<DeviceSlice<'_, u64>>, stream: &Stream) -> Result<Limit, Error> {
    counted.map_or(Ok(Limit::NONE), |count| Ok(Limit::new(count.raw_view(stream)?)))
}

impl Column {
    /// Returns the number of elements; the most that it can be, if only the device knows it.
    pub fn len(self) -> usize {
        self.len
    }

    /// Returns what limits the number of elements that count.
    pub fn limit(self) -> Limit {
        self.limit
    }

    /// Returns the elements with another limit.
    pub fn limited(self, limit: Limit) -> Self {
        Self { limit, ..self }
    }

    /// Returns the elements that count, as a type that they are known to fit.
    ///
    /// # Panics
    /// If they do not.
    pub fn prefix<T: Pod>(self) -> Prefix<T> {
        Prefix::new(self.as_type(), self.limit)
    }

    /// Returns the bytes of an element.
    pub fn size(self) -> usize {
        self.size
    }

    /// Returns the address of the first element.
    pub fn address(self) -> *const u8 {
        self.address
    }

    /// Returns whether the elements can be read as a `T` where they are.
    pub fn fits<T>(self) -> bool {
        self.has_layout(Layout::new::<T>())
    }

    /// Returns whether the elements are of this size, and aligned.
    pub fn has_layout(self, layout: Layout) -> bool {
        self.size == layout.size() && self.address.addr().is_multiple_of(layout.align())
    }

    /// Returns the elements as a type of their size that they are aligned for.
    pub fn typed<T: Pod>(self) -> Option<Global<T>> {
        // SAFETY: plain data may be read as other plain data of its size, which is aligned for it.
        self.fits::<T>().then(|| unsafe { Global::from_raw(self.address.cast(), self.len) })
    }

    /// Returns the elements as a type that they are known to fit.
    ///
    /// # Panics
    /// If they do not.
    pub fn as_type<T: Pod>(self) -> Global<T> {
        self.typed().unwrap_or_else(|| self.refuse())
    }

    #[cold]
    fn refuse(self) -> ! {
        panic!("{self:?} was not made for this kernel")
    }

    /// Returns the elements as words of which each has a whole number.
    ///
    /// # Panics
    /// If the words do not divide the elements, or if they are misaligned.
    pub fn words<W: Pod>(self) -> Global<W> {
        let bytes = self.len * self.size;
        assert!((self.address.addr() | self.size).is_multiple_of(size_of::<W>().max(align_of::<W>())));
        // SAFETY: this is the same memory, in words.
        unsafe { Global::from_raw(self.address.cast(), bytes / size_of::<W>()) }
    }

    /// Returns the `len` elements that start at `start`. Elements without a size have any number of parts.
    ///
    /// # Panics
    /// If there are no such elements.
    pub fn slice(self, start: usize, len: usize) -> Self {
        let is_inside = start.checked_add(len).is_some_and(|end| end <= self.len);
        assert!(is_inside || self.size == 0, "{start}..{start}+{len} of {} elements", self.len);
        let limit = if self.limit.is_some() { self.limit.from(start) } else { self.limit };
        Self { address: self.address.wrapping_add(start * self.size), len, size: self.size, limit }
    }
}

impl ColumnMut {
    pub fn len(self) -> usize {
        self.len
    }

    /// Returns the bytes of an element.
    pub fn size(self) -> usize {
        self.size
    }

    /// Returns the same elements, for reading.
    pub fn as_const(self) -> Column {
        Column { address: self.address, len: self.len, size: self.size, limit: self.limit }
    }

    /// Returns whether the elements can be written as a `T` where they are.
    pub fn fits<T>(self) -> bool {
        self.as_const().fits::<T>()
    }

    /// Returns the elements as a type of their size that they are aligned for.
    pub fn typed<T: Pod>(self) -> Option<GlobalMut<T>> {
        // SAFETY: plain data may be written as other plain data of its size, which is aligned for it.
        self.fits::<T>().then(|| unsafe { GlobalMut::from_raw(self.address.cast(), self.len) })
    }

    /// Returns the elements as a type that they are known to fit: see [`Column::as_type`].
    pub fn as_type<T: Pod>(self) -> GlobalMut<T> {
        self.typed().unwrap_or_else(|| self.as_const().refuse())
    }

    /// Returns the elements as words: see [`Column::words`].
    pub fn words<W: Pod>(self) -> GlobalMut<W> {
        let words = self.as_const().words::<W>();
        // SAFETY: as the view of which the column was made, this one may be written.
        unsafe { GlobalMut::from_raw(words.as_ptr().cast_mut(), words.len()) }
    }

    /// Returns the `len` elements that start at `start`: see [`Column::slice`].
    pub fn slice(self, start: usize, len: usize) -> Self {
        let part = self.as_const().slice(start, len);
        Self { address: part.address.cast_mut(), len, size: self.size, limit: part.limit }
    }
}

/// Evaluates an expression with the first of the listed types that has a size, which is computed when the program runs:
/// `sized!(size => C in u32 | u64, …, else …)`.
///
/// All listed types are compiled, where the macro stands: so it stands in functions without type parameters.
#[doc(hidden)]
#[macro_export]
macro_rules! sized {
    ($size:expr => $name:ident in $($listed:ty)|+, $body:expr, else $other:expr) => {{
        let size: usize = $size;
        $(
            if size == size_of::<$listed>() {
                type $name = $listed;
                $body
            } else
        )+
        {
            $other
        }
    }};
}

#[cold]
fn no_type<T>(size: usize) -> ! {
    panic!("elements of {size} bytes are not a `{}`, or misaligned for it", core::any::type_name::<T>())
}

/// [`sized!`] for positions, offsets, lengths and counts, which are a `u32` or a `u64`: `number!(size => P, …)`.
macro_rules! number {
    ($size:expr => $name:ident, $body:expr) => {
        $crate::sized!($size => $name in u32 | u64, $body, else unreachable!("such numbers have 4 or 8 bytes"))
    };
}

pub(crate) use number;

fn expect_range(range: &Range<usize>, len: usize) -> Result<(), Error> {
    let Range { start, end } = *range;
    if start <= end && end <= len { Ok(()) } else { Err(Error::RangeOutside { start, end, len }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;

    #[test]
    fn types_come_back() {
        let stream = Device::cpu_checked().stream().unwrap();
        let vector = stream.upload(&[[1u16, 2], [3, 4], [5, 6]]).unwrap();
        let any = AnySlice::from(vector.as_slice());
        assert_eq!((any.len(), any.size()), (3, 4));
        let words = any.slice(1..3).unwrap().typed::<u32>().unwrap();
        assert_eq!(words.to_vec(&stream).unwrap(), [0x4_0003, 0x6_0005]);
        assert!(any.typed::<u64>().is_none() && any.typed::<[u8; 3]>().is_none());
        assert!(matches!(any.slice(2..4), Err(Error::RangeOutside { start: 2, end: 4, len: 3 })));
        let any = AnyVec::from(vector);
        assert_eq!(any.into_typed::<u32>().to_vec(&stream).unwrap(), [0x2_0001, 0x4_0003, 0x6_0005]);
    }

    /// Half of a vector of bytes is not aligned for larger types, whatever their size.
    #[test]
    fn misaligned_elements_have_no_such_type() {
        let stream = Device::cpu_checked().stream().unwrap();
        let mut vector = stream.upload(&[[0u8; 4]; 3]).unwrap();
        let odd = vector.as_slice().bytes().slice(1..9).unwrap();
        let odd: DeviceSlice<'_, [u8; 4]> = odd.elements(2).unwrap();
        assert!(AnySlice::from(odd).typed::<u32>().is_none());
        assert!(AnySlice::from(odd).raw_view(&stream).unwrap().typed::<u32>().is_none());
        let mut whole = AnySliceMut::from(vector.as_mut_slice());
        assert!(whole.reborrow().typed::<u32>().is_some() && whole.reborrow().typed::<u64>().is_none());
        assert_eq!(whole.raw_view_mut(&stream).unwrap().words::<u16>().len(), 6);
    }

    #[test]
    fn elements_without_a_size_have_a_number() {
        let stream = Device::cpu().stream().unwrap();
        let units = AnyVec::from(stream.upload(&[(); 7]).unwrap());
        assert_eq!((units.len(), units.size(), units.as_slice().slice(2..5).unwrap().len()), (7, 0, 3));
        assert_eq!(units.as_slice().typed::<()>().unwrap().len(), 7);
        assert_eq!(units.into_typed::<()>().len(), 7);
        let huge = AnyVec::uninit(&stream, 16, usize::MAX / 2);
        assert!(matches!(huge, Err(Error::OutOfMemory { .. })));
    }

    #[test]
    fn sizes_choose_types() {
        let name = |size| sized!(size => T in u32 | u64, std::any::type_name::<T>(), else "none");
        assert_eq!([4, 8, 12].map(name), ["u32", "u64", "none"]);
    }
}
