//! Sources: what a primitive reads its input from, instead of a slice.
//!
//! A slice is a source. So are elements that are computed as they are read: numbers in sequence, a constant, the results
//! of a function of other sources. They go wherever an input slice goes, and take no memory:
//!
//! ```
//! use gpu_primitives::operator::map;
//! use gpu_primitives::source::{counting, map, map2};
//! use gpu_primitives::{Device, Error, reduce};
//!
//! let stream = Device::default()?.stream()?;
//! let (x, y) = (stream.upload(&[1.0f32, 2.0, 3.0])?, stream.upload(&[4.0f32, 5.0, 6.0])?);
//!
//! // A dot product: both inputs are read once, and nothing is written but the result.
//! let products = map2(&x, &y, map!(|x: f32, y: f32| -> f32 { x * y }));
//! assert_eq!(reduce::sum(&stream, products)?.get(&stream)?, 32.0);
//!
//! let squares = map(counting(1u64, 100), map!(|i: u64| -> u64 { i * i }));
//! assert_eq!(reduce::sum(&stream, squares)?.get(&stream)?, 338_350);
//! # Ok::<(), Error>(())
//! ```
//!
//! # Lengths that only the device knows
//!
//! [`counted`] gives a source the length that another call has computed, without waiting for it:
//!
//! ```
//! use gpu_primitives::operator::predicate;
//! use gpu_primitives::source::counted;
//! use gpu_primitives::{Device, Error, reduce, select};
//!
//! let stream = Device::default()?.stream()?;
//! let input = stream.upload(&[5u32, 2, 7, 4])?;
//! let mut odd = stream.uninit::<u32>(4)?;
//! let count = select::select(&stream, &input, &mut odd, predicate!(|x: u32| x % 2 == 1))?;
//! assert_eq!(reduce::sum(&stream, counted(&odd, &count))?.get(&stream)?, 12); // the only wait
//! # Ok::<(), Error>(())
//! ```
//!
//! # Calls that need their elements in memory
//!
//! A merge reads at positions that it has to find, and a sort reads more than once. Such a call evaluates a computed source first: that
//! takes temporary memory for its elements, and one more pass. A slice is read where it is.
//!
//! # Cost
//!
//! Where a source reads slices, it reads them in accesses of up to 16 bytes, as if they were its elements: if their addresses are
//! multiples of 16, and it reads no more than 32 bytes for every 16 bytes of elements. Otherwise elements are read one by one,
//! neighbours by neighbouring threads. The code of a source is compiled by the driver when a kernel is first used with it, once per process.

mod form;

use self::form::{
    AtForm, AtState, ConstantForm, IndexForm, Map2Form, Map2State, Map3Form, Map3State, Map4Form, Map4State, MapForm,
    MapState, Row,
};
use crate::hole::{Hole, RegisterRepr};
use crate::host::computed::{self, Form, ResultForm, ResultState, SliceForm, Unary};
use crate::host::runtime::column::{AnySlice, AnySliceMut, Column, only_one};
use crate::input::{MAX_LEAVES, SourceArg};
use crate::key::{CodeOf, FromCode, KeyOf, RadixKey};
use crate::map::{Map, Map2, Map3, Map4};
use crate::operator::{Record, operator};
use crate::{DeviceSlice, DeviceSliceMut, DeviceValue, Error, Global, Offsets, Stream, expect_len};
use bytemuck::{Pod, Zeroable};
use core::marker::PhantomData;

/// Elements of type `T` that a primitive reads: a slice, or elements that are computed as they are read. See the
/// [module](self).
pub trait Source<'a, T: Pod>: Sized {
    /// What it does to compute an element.
    #[doc(hidden)]
    type Form: Form<Item = T>;

    /// Returns what it is made of.
    #[doc(hidden)]
    fn into_parts(self) -> Result<Parts<'a, Self::Form>, Error>;
}

/// What a source is made of.
#[doc(hidden)]
pub struct Parts<'a, F: Form> {
    state: F::State,
    reads: Reads<'a>,
}

/// What a source reads, without the types of the elements.
#[derive(Clone, Copy, Default)]
struct Reads<'a> {
    leaves: Leaves<'a>,
    /// The number of elements; the most that it can be, if only the device knows it.
    len: usize,
    /// The length that only the device knows.
    counted: Option<DeviceSlice<'a, u64>>,
    /// The slice that it is, if it is one.
    slice: Option<AnySlice<'a>>,
}

impl<'a> Reads<'a> {
    /// What computes `len` elements from nothing.
    fn nothing(len: usize) -> Self {
        Self { len, ..Self::default() }
    }

    /// What a function of several sources reads. They have the same length.
    fn all(parts: &[Self]) -> Result<Self, Error> {
        let mut all = Self::nothing(parts[0].len);
        for part in parts {
            expect_len("a source beside others", all.len, part.len)?;
            all.counted = only_one(all.counted, part.counted)?;
            for slice in part.leaves.slices.into_iter().flatten() {
                all.leaves.push(slice);
            }
        }
        Ok(all)
    }
}

/// The slices that a source reads.
#[derive(Clone, Copy, Default)]
struct Leaves<'a> {
    /// The bytes, and the size of an element.
    slices: [Option<(DeviceSlice<'a, u8>, usize)>; MAX_LEAVES],
    len: usize,
}

impl<'a> Leaves<'a> {
    fn push(&mut self, slice: (DeviceSlice<'a, u8>, usize)) {
        // There are no more: `form::hole` does not compile.
        self.slices[self.len] = Some(slice);
        self.len += 1;
    }
}

impl<'a, F: Form> Parts<'a, F> {
    /// Returns the source without the types of its elements, for code that is compiled once.
    pub(crate) fn lower(self) -> AnySource<'a> {
        let hole =
            self.reads.slice.and(form::slice_hole::<F::Item>()).unwrap_or_else(|| computed::hole::<F>(self.state));
        AnySource { hole, size: size_of::<F::Item>(), reads: self.reads }
    }

    /// Returns where the elements are, if they lie in memory, or else what computes them.
    pub(crate) fn elements(self) -> Elements<'a> {
        if const { F::IS_SLICE } {
            let slice = self.reads.slice.expect("a source of this form is a slice");
            return Elements::Slice(slice.counted(self.reads.counted));
        }
        const { assert!(F::IS_SLICE || is_held(size_of::<F::Item>()), "computed elements have 1 to 32 bytes") };
        Elements::Computed(self.lower())
    }

    /// Returns the number of elements; the most that it can be, if only the device knows it.
    #[doc(hidden)]
    #[allow(clippy::len_without_is_empty, reason = "for other crates of this workspace")]
    pub fn len(&self) -> usize {
        self.reads.len
    }

    /// Returns whether only the device knows the number of elements.
    pub(crate) fn is_counted(&self) -> bool {
        self.reads.counted.is_some()
    }
}

/// Returns whether a type that kernels compute with has room for elements of a size.
const fn is_held(size: usize) -> bool {
    size >= 1 && size <= 32
}

/// What a primitive reads that needs its elements in memory.
#[derive(Clone, Copy)]
#[expect(clippy::large_enum_variant, reason = "there are a few per call, on the stack")]
pub(crate) enum Elements<'a> {
    /// They lie there.
    Slice(AnySlice<'a>),
    /// They are computed.
    Computed(AnySource<'a>),
}

impl<'a> Elements<'a> {
    /// Returns the number of elements; the most that it can be, if only the device knows it.
    pub fn len(&self) -> usize {
        match self {
            Self::Slice(slice) => slice.len(),
            Self::Computed(source) => source.len(),
        }
    }

    /// Returns the bytes of an element.
    pub fn size(&self) -> usize {
        match self {
            Self::Slice(slice) => slice.size(),
            Self::Computed(source) => source.size,
        }
    }

    /// Returns the length that only the device knows, if there is one.
    pub fn count(&self) -> Option<DeviceSlice<'a, u64>> {
        match self {
            Self::Slice(slice) => slice.count(),
            Self::Computed(source) => source.reads.counted,
        }
    }

    /// Returns the elements with the length that only the device knows, if there is one.
    pub fn counted(self, count: Option<DeviceSlice<'a, u64>>) -> Result<Self, Error> {
        let count = only_one(self.count(), count)?;
        Ok(match self {
            Self::Slice(slice) => Self::Slice(slice.counted(count)),
            Self::Computed(mut source) => {
                source.reads.counted = count;
                Self::Computed(source)
            }
        })
    }

    /// Returns the elements if the host knows their number.
    pub fn of_known_len(self, what: &'static str) -> Result<Self, Error> {
        match self.count() {
            None => Ok(self),
            Some(_) => Err(Error::InvalidOption {
                what,
                asked: "a length that only the device knows".into(),
                allowed: "a length that the host knows: wait for it with `DeviceValue::get`, and take so many elements",
            }),
        }
    }
}

impl<'a> core::convert::From<AnySlice<'a>> for Elements<'a> {
    fn from(slice: AnySlice<'a>) -> Self {
        Self::Slice(slice)
    }
}

impl<'a, T: Pod> core::convert::From<DeviceSlice<'a, T>> for Elements<'a> {
    fn from(slice: DeviceSlice<'a, T>) -> Self {
        Self::Slice(slice.into())
    }
}

/// A source of elements whose type is known by its size alone. What computes them fills a hole.
#[derive(Clone, Copy)]
pub(crate) struct AnySource<'a> {
    hole: Hole,
    /// The bytes of an element.
    size: usize,
    reads: Reads<'a>,
}

impl<'a> AnySource<'a> {
    /// Returns the number of elements; the most that it can be, if only the device knows it.
    pub fn len(&self) -> usize {
        self.reads.len
    }

    /// Returns whether only the device knows the number of elements.
    pub fn is_counted(&self) -> bool {
        self.reads.counted.is_some()
    }

    /// Returns the view of the length that only the device knows, if there is one.
    pub fn counted(&self, stream: &Stream) -> Result<Option<Global<u64>>, Error> {
        self.reads.counted.map(|count| count.raw_view(stream)).transpose()
    }

    /// Returns these elements and those of another source that are read in step. If only the device knows the number of one,
    /// it is that of both.
    pub fn in_step(mut self, mut other: Self) -> Result<(Self, Self), Error> {
        let counted = only_one(self.reads.counted, other.reads.counted)?;
        (self.reads.counted, other.reads.counted) = (counted, counted);
        Ok((self, other))
    }

    /// [`in_step`](AnySource::in_step) with elements that are needed in memory.
    pub fn in_step_with(mut self, other: Elements<'a>) -> Result<(Self, Elements<'a>), Error> {
        self.reads.counted = only_one(self.reads.counted, other.count())?;
        let other = other.counted(self.reads.counted)?;
        Ok((self, other))
    }

    /// Returns the elements in the form in which kernels read them.
    pub fn open(&self, stream: &Stream) -> Result<Opened, Error> {
        let Reads { leaves, len, counted, slice } = &self.reads;
        let view = match (slice, counted) {
            (Some(slice), None) => Some(slice.raw_view(stream)?),
            _ => None,
        };
        let mut views = [(Global::empty(), 0); MAX_LEAVES];
        for (view, (slice, size)) in views.iter_mut().zip(leaves.slices.iter().flatten()) {
            *view = (slice.raw_view(stream)?, *size);
        }
        let count = self.counted(stream)?;
        Ok(Opened { view, fused: SourceArg::new(self.hole, &views[..leaves.len], *len, count), size: self.size, count })
    }
}

impl<'a, F: Form> Source<'a, F::Item> for Parts<'a, F> {
    type Form = F;

    fn into_parts(self) -> Result<Self, Error> {
        Ok(self)
    }
}

impl<'a, F: Form> Parts<'a, F>
where
    F::Item: RadixKey,
{
    /// Returns the codes of the elements.
    pub(crate) fn codes(&self) -> Parts<'a, ResultForm<F, CodeOf<F::Item>>> {
        self.results(CodeOf::new())
    }
}

impl<'a, F: Form> Parts<'a, F> {
    /// Returns the keys of the elements, which are codes.
    pub(crate) fn keys<K: FromCode<Code = F::Item>>(&self) -> Parts<'a, ResultForm<F, KeyOf<K>>> {
        self.results(KeyOf::new())
    }

    /// Returns the results of a function.
    fn results<U: Unary<Item = F::Item>>(&self, function: U) -> Parts<'a, ResultForm<F, U>> {
        Parts { state: ResultState { elements: self.state, function }, reads: Reads { slice: None, ..self.reads } }
    }
}

/// A source as kernels read it.
pub(crate) struct Opened {
    /// The view of a slice.
    view: Option<Column>,
    fused: SourceArg,
    /// The bytes of an element.
    size: usize,
    count: Option<Global<u64>>,
}

/// Returns the elements of a view as a source.
pub(crate) fn of_view<H: RegisterRepr>(view: Global<H>) -> SourceArg {
    let bytes = Column::from(view).words();
    SourceArg::new(computed::hole::<SliceForm<H>>(()), &[(bytes, size_of::<H>())], view.len(), None)
}

/// Returns the results of a function for the elements of a column, as a source. The hole was made of a [`Unary`] for elements of
/// the column's type, and the column begins where its slice does.
pub(crate) fn results_of(function: &Hole, column: Column) -> SourceArg {
    let results = function.filling().results.expect("a function of one element");
    let count = column.limit().counted();
    SourceArg::new(function.filled_with(results), &[(column.words(), column.size())], column.len(), count)
}

/// Returns the indices of the first elements, as many as the device says, of `len` at most.
pub(crate) fn first_indices(len: usize, count: Global<u64>) -> SourceArg {
    let state = MapState { a: (), function: From { start: 0u32 } };
    SourceArg::new(computed::hole::<MapForm<IndexForm, From<u32>>>(state), &[], len, Some(count))
}

/// Returns the first elements of a view as a source, as many as the device says.
pub(crate) fn first_of_view<H: RegisterRepr>(view: Global<H>, count: Global<u64>) -> SourceArg {
    let bytes = Column::from(view).words();
    SourceArg::new(computed::hole::<SliceForm<H>>(()), &[(bytes, size_of::<H>())], view.len(), Some(count))
}

impl Opened {
    /// Returns the number of elements, if only the device knows it.
    pub fn count(&self) -> Option<Global<u64>> {
        self.count
    }

    /// Returns the bytes of an element.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the elements as a source.
    pub fn fused(&self) -> SourceArg {
        self.fused
    }

    /// Returns the elements as they are held in an `H`: as a view if they lie in memory like that, else as a source.
    #[allow(clippy::result_large_err, reason = "no error: the other form, which a kernel's arguments hold as it is")]
    pub fn held<H: RegisterRepr>(&self) -> Result<Global<H>, SourceArg> {
        self.view.and_then(Column::typed).ok_or(self.fused)
    }
}

impl<'a, T: Pod, S: Into<DeviceSlice<'a, T>>> Source<'a, T> for S {
    type Form = SliceForm<T>;

    fn into_parts(self) -> Result<Parts<'a, SliceForm<T>>, Error> {
        let slice = self.into();
        let mut reads = Reads { slice: Some(slice.into()), ..Reads::nothing(slice.len()) };
        reads.leaves.push((slice.bytes(), size_of::<T>()));
        Ok(Parts { state: (), reads })
    }
}

/// The same element, several times. [`constant`] creates it.
#[derive(Clone, Copy, Debug)]
pub struct Constant<T> {
    value: T,
    len: usize,
}

/// Returns a source of `len` times the same element.
pub const fn constant<T: Pod>(value: T, len: usize) -> Constant<T> {
    Constant { value, len }
}

impl<'a, T: Pod> Source<'a, T> for Constant<T> {
    type Form = ConstantForm<T>;

    fn into_parts(self) -> Result<Parts<'a, ConstantForm<T>>, Error> {
        Ok(Parts { state: self.value, reads: Reads::nothing(self.len) })
    }
}

/// The numbers 0, 1, 2, …
#[derive(Clone, Copy, Debug)]
struct Index {
    len: usize,
}

impl<'a> Source<'a, u64> for Index {
    type Form = IndexForm;

    fn into_parts(self) -> Result<Parts<'a, IndexForm>, Error> {
        Ok(Parts { state: (), reads: Reads::nothing(self.len) })
    }
}

/// Numbers in sequence. [`counting`] creates it.
#[derive(Clone, Copy, Debug)]
pub struct Counting<T> {
    start: T,
    len: usize,
}

/// Returns a source of `len` numbers in sequence: `start`, `start + 1`, … They wrap.
pub const fn counting<T: Number>(start: T, len: usize) -> Counting<T> {
    Counting { start, len }
}

/// An integer that can be [counted](counting).
pub trait Number: Pod {
    /// The numbers from one of them on.
    #[doc(hidden)]
    type From: Map<u64, Output = Self>;

    #[doc(hidden)]
    fn from(self) -> Self::From;
}

/// The numbers from `start` on, by their indices.
#[doc(hidden)]
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Zeroable, Record)]
pub struct From<T> {
    start: T,
}

// SAFETY: transparent.
unsafe impl<T: Pod> Pod for From<T> {}

macro_rules! numbers {
    ($($type:ty)*) => { $(
        #[operator]
        impl Map<u64> for From<$type> {
            type Output = $type;

            #[inline(always)]
            fn map(&self, index: u64) -> $type {
                self.start.wrapping_add(index as $type)
            }
        }

        impl Number for $type {
            type From = From<$type>;

            fn from(self) -> From<$type> {
                From { start: self }
            }
        }
    )* };
}

numbers!(u8 u16 u32 u64 i8 i16 i32 i64);

impl<'a, T: Number> Source<'a, T> for Counting<T> {
    type Form = MapForm<IndexForm, T::From>;

    fn into_parts(self) -> Result<Parts<'a, Self::Form>, Error> {
        map(Index { len: self.len }, self.start.from()).into_parts()
    }
}

/// Elements of a slice at given rows. [`at`] creates it.
#[derive(Clone, Copy, Debug)]
pub struct At<'a, T, R, P> {
    column: DeviceSlice<'a, T>,
    rows: R,
    row: PhantomData<P>,
}

/// Returns a source of the elements of a slice at rows that another source has: element `i` is `column[rows[i]]`. Rows are `u32` or
/// `u64`. The element of a row beyond the slice is all zeros.
///
/// ```
/// use gpu_primitives::source::at;
/// use gpu_primitives::{Device, Error, reduce};
///
/// let stream = Device::default()?.stream()?;
/// let (prices, rows) = (stream.upload(&[30u64, 10, 20])?, stream.upload(&[2u32, 0, 2, 7])?);
/// assert_eq!(reduce::sum(&stream, at(&prices, &rows))?.get(&stream)?, 70);
/// # Ok::<(), Error>(())
/// ```
pub fn at<'a, T: Pod, P: Row, R: Source<'a, P>>(column: impl Into<DeviceSlice<'a, T>>, rows: R) -> At<'a, T, R, P> {
    At { column: column.into(), rows, row: PhantomData }
}

impl<'a, T: Pod, P: Row, R: Source<'a, P>> Source<'a, T> for At<'a, T, R, P> {
    type Form = AtForm<T, R::Form>;

    fn into_parts(self) -> Result<Parts<'a, Self::Form>, Error> {
        let Parts { state, reads } = self.rows.into_parts()?;
        let mut reads = Reads { slice: None, ..reads };
        // It is read anywhere, so its address says nothing about rows of elements.
        reads.leaves.push((self.column.bytes(), 0));
        Ok(Parts { state: AtState { rows: state, len: self.column.len() as u64 }, reads })
    }
}

/// Rows of a slice, some elements apart. [`strided`] creates it.
#[derive(Clone, Copy, Debug)]
pub struct Strided<'a, T> {
    matrix: DeviceSlice<'a, T>,
    row_len: usize,
    stride: usize,
}

/// Returns a source of the first `row_len` elements from each multiple of `stride` on: the rows of a part of a matrix, one after the
/// other. It has as many rows as the slice has whole ones. Rows overlap if the stride is less than their length: with a stride
/// of 1 they are all windows of the slice.
///
/// Calls for rows take it as they take a matrix: [`reduce::rows`](crate::reduce::rows), [`scan::row_inclusive`](crate::scan::row_inclusive),
/// [`top_k::Rows::of_len`](crate::top_k::Rows::of_len).
///
/// ```
/// use gpu_primitives::reduce::{self, Max};
/// use gpu_primitives::source::strided;
/// use gpu_primitives::{Device, Error};
///
/// let stream = Device::default()?.stream()?;
/// let matrix = stream.upload(&[1u32, 5, 2, 9, 3, 4, 6, 9])?; // two rows of four
/// let mut largest = stream.uninit::<u32>(2)?;
/// let columns = strided(matrix.slice(..)?, 3, 4); // without the last column
/// reduce::rows(&stream, columns, 3, &mut largest, Max)?;
/// assert_eq!(largest.to_vec(&stream)?, [5, 6]);
///
/// let mut in_windows = stream.uninit::<u32>(7)?;
/// reduce::rows(&stream, strided(&matrix, 2, 1), 2, &mut in_windows, Max)?;
/// assert_eq!(in_windows.to_vec(&stream)?, [5, 5, 9, 9, 4, 6, 9]);
/// # Ok::<(), Error>(())
/// ```
///
/// A stride of 0 is [`Error::InvalidOption`] of the call that takes the source.
pub fn strided<'a, T: Pod>(matrix: impl Into<DeviceSlice<'a, T>>, row_len: usize, stride: usize) -> Strided<'a, T> {
    Strided { matrix: matrix.into(), row_len, stride }
}

/// The index in a matrix of an element of its [rows](strided).
#[doc(hidden)]
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable, Record)]
pub struct InMatrix {
    row_len: u64,
    /// What is left out after each row. It wraps if rows overlap.
    skipped: u64,
    /// 2^64 divided by the length of a row, rounded down: a multiplication is shorter than a division.
    reciprocal: u64,
}

#[operator]
impl Map<u64> for InMatrix {
    type Output = u64;

    #[inline(always)]
    fn map(&self, index: u64) -> u64 {
        // The row, or the one before it.
        let estimate = ((index as u128 * self.reciprocal as u128) >> 64) as u64;
        let rest = index.wrapping_sub(estimate.wrapping_mul(self.row_len));
        let row = if rest >= self.row_len { estimate.wrapping_add(1) } else { estimate };
        index.wrapping_add(row.wrapping_mul(self.skipped))
    }
}

impl InMatrix {
    /// The length of a row is not 0.
    fn new(row_len: u64, stride: u64) -> Self {
        Self { row_len, skipped: stride.wrapping_sub(row_len), reciprocal: u64::MAX / row_len }
    }
}

impl<'a, T: Pod> Source<'a, T> for Strided<'a, T> {
    type Form = AtForm<T, MapForm<IndexForm, InMatrix>>;

    fn into_parts(self) -> Result<Parts<'a, Self::Form>, Error> {
        let Self { matrix, row_len, stride } = self;
        if stride == 0 {
            return Err(Error::InvalidOption {
                what: "the stride of rows",
                asked: "0".into(),
                allowed: "1 or more: the elements from the beginning of a row to that of the next one",
            });
        }
        let rows = matrix.len().checked_sub(row_len).map_or(0, |rest| rest / stride + 1);
        let Some(len) = rows.checked_mul(row_len) else {
            return Err(Error::TooLong { what: "rows that overlap", len: usize::MAX, limit: usize::MAX / row_len });
        };
        at(matrix, map(Index { len }, InMatrix::new(row_len.max(1) as u64, stride as u64))).into_parts()
    }
}

/// A source whose length only the device knows. [`counted`] creates it.
#[derive(Clone, Copy, Debug)]
pub struct Counted<'a, S> {
    source: S,
    count: Option<DeviceSlice<'a, u64>>,
}

impl<'a, S> Counted<'a, S> {
    /// Returns a source with the length that only the device knows, if there is one.
    pub(crate) fn by(source: S, count: Option<DeviceSlice<'a, u64>>) -> Self {
        Self { source, count }
    }
}

/// Returns the first elements of a source: as many as `count` says when they are read. If the source has fewer, these are
/// all.
///
/// A primitive that works in place takes the first elements of a mutable slice: see [`SliceTarget`].
pub fn counted<S>(source: S, count: &DeviceValue<u64>) -> Counted<'_, S> {
    Counted::by(source, Some(count.as_slice()))
}

/// The first elements of a slice. Only this module creates it, so the elements have the type that it says.
#[doc(hidden)]
#[derive(Debug)]
pub struct First<'a, S> {
    slice: S,
    count: Option<DeviceSlice<'a, u64>>,
}

impl<'a, T: Pod> First<'a, DeviceSliceMut<'a, T>> {
    /// Returns the elements without their type, for code that is compiled once.
    pub(crate) fn lower(self) -> AnySliceMut<'a> {
        AnySliceMut::from(self.slice).counted(self.count)
    }
}

/// Elements that a primitive changes in place: a mutable slice, or its first elements, as many as [`counted`] says.
///
/// ```
/// use gpu_primitives::source::counted;
/// use gpu_primitives::{Device, DeviceValue, Error, sort};
///
/// let stream = Device::default()?.stream()?;
/// let mut keys = stream.upload(&[5u32, 2, 7, 4])?;
/// let count = DeviceValue::new(&stream, 3u64)?;
/// sort::keys_in_place(&stream, counted(&mut keys, &count), sort::Options::new())?;
/// assert_eq!(keys.to_vec(&stream)?, [2, 5, 7, 4]);
/// # Ok::<(), Error>(())
/// ```
pub trait SliceTarget<'a, T: Pod>: Sized {
    /// Returns the slice, and its length if only the device knows it.
    #[doc(hidden)]
    fn into_first(self) -> First<'a, DeviceSliceMut<'a, T>>;
}

impl<'a, T: Pod, S: Into<DeviceSliceMut<'a, T>>> SliceTarget<'a, T> for S {
    fn into_first(self) -> First<'a, DeviceSliceMut<'a, T>> {
        First { slice: self.into(), count: None }
    }
}

impl<'a, T: Pod, S: Into<DeviceSliceMut<'a, T>>> SliceTarget<'a, T> for Counted<'a, S> {
    fn into_first(self) -> First<'a, DeviceSliceMut<'a, T>> {
        First { slice: self.source.into(), count: self.count }
    }
}

impl<'a, T: Pod, S: Source<'a, T>> Source<'a, T> for Counted<'a, S> {
    type Form = S::Form;

    fn into_parts(self) -> Result<Parts<'a, S::Form>, Error> {
        let mut parts = self.source.into_parts()?;
        parts.reads.counted = only_one(parts.reads.counted, self.count)?;
        Ok(parts)
    }
}

impl<'a, O: Pod, S: Into<DeviceSlice<'a, O>>> core::convert::From<Counted<'a, S>> for Offsets<'a, O> {
    /// The [checked](Offsets::checked) offsets of the first segments, as many as the device says.
    fn from(counted: Counted<'a, S>) -> Self {
        Self::checked(counted.source).counted(counted.count)
    }
}

impl<'a, O: Pod> core::convert::From<Counted<'a, Self>> for Offsets<'a, O> {
    /// The offsets of the first segments, as many as the device says.
    fn from(counted: Counted<'a, Self>) -> Self {
        counted.source.counted(counted.count)
    }
}

macro_rules! maps {
    ($($(#[$doc:meta])* $function:ident $name:ident $form:ident $state:ident $map:ident(
        $($part:ident: $source:ident $type:ident),+
    );)*) => { $(
        /// The results of a function, computed as they are read.
        #[derive(Clone, Copy, Debug)]
        pub struct $name<$($source, $type,)+ F> {
            $($part: $source,)+
            function: F,
            elements: PhantomData<($($type,)+)>,
        }

        $(#[$doc])*
        pub fn $function<'a, $($source: Source<'a, $type>, $type: Pod,)+ F: $map<$($type),+>>(
            $($part: $source,)+
            function: F,
        ) -> $name<$($source, $type,)+ F> {
            $name { $($part,)+ function, elements: PhantomData }
        }

        impl<'a, $($source: Source<'a, $type>, $type: Pod,)+ F> Source<'a, F::Output> for $name<$($source, $type,)+ F>
        where
            F: $map<$($type),+>,
            F::Output: Pod,
        {
            type Form = $form<$($source::Form,)+ F>;

            fn into_parts(self) -> Result<Parts<'a, Self::Form>, Error> {
                $(let $part = self.$part.into_parts()?;)+
                let reads = Reads::all(&[$($part.reads),+])?;
                Ok(Parts { state: $state { $($part: $part.state,)+ function: self.function }, reads })
            }
        }
    )* };
}

maps! {
    /// Returns a source of the results of a function of each element.
    map Mapped MapForm MapState Map(a: S T);
    /// Returns a source of the results of a function of two elements, one of each source. The sources have the same length.
    map2 Mapped2 Map2Form Map2State Map2(a: S T, b: S2 T2);
    /// Returns a source of the results of a function of three elements: see [`map2`].
    map3 Mapped3 Map3Form Map3State Map3(a: S T, b: S2 T2, c: S3 T3);
    /// Returns a source of the results of a function of four elements: see [`map2`].
    map4 Mapped4 Map4Form Map4State Map4(a: S T, b: S2 T2, c: S3 T3, d: S4 T4);
}

#[cfg(test)]
mod tests {
    use super::InMatrix;
    use crate::map::Map;

    /// The multiplication by the reciprocal is as exact as a division.
    #[test]
    fn indices_in_a_matrix_are_those_of_a_division() {
        let edges = [1, 2, 3, 5, 7, 10, 641, 1 << 20, (1 << 31) - 1, (1 << 32) + 1, (1 << 63) + 5, u64::MAX];
        let lens = edges.into_iter().chain(edges.map(|x| x - x / 3));
        for row_len in lens {
            for stride in [1, row_len, row_len.wrapping_add(4), 1 << 33] {
                let map = InMatrix::new(row_len, stride);
                for quotient in edges.into_iter().chain([0]) {
                    let first = quotient.wrapping_mul(row_len);
                    for index in [first.wrapping_sub(1), first, first.wrapping_add(1), first.wrapping_add(row_len - 1)]
                    {
                        let expected = (index / row_len).wrapping_mul(stride).wrapping_add(index % row_len);
                        assert_eq!(map.map(index), expected, "{index} in rows of {row_len}, {stride} apart");
                    }
                }
            }
        }
    }
}
