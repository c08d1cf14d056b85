//! Aggregates: what [`Groups::agg`] computes, several in one call.
//!
//! ```
//! use gpu_primitives::{Device, Error};
//! use gpu_relational::agg::{count, max, mean, sum};
//! use gpu_relational::{Column, group_by};
//!
//! let stream = &Device::default()?.stream()?;
//! let (shop, sales) = (Column::upload(stream, b"baab")?, Column::upload(stream, &[1i32, 2, 3, 5])?);
//! let shops = group_by(stream, &shop)?;
//! let (total, number, average, best) = shops.agg(stream, (sum(&sales), count(), mean(&sales), max(&sales)))?;
//! assert_eq!(total.to_vec(stream)?, [5i64, 6]);
//! assert_eq!(number.to_vec(stream)?, [2u64, 2]);
//! assert_eq!(average.to_vec(stream)?, [2.5, 3.0]);
//! assert_eq!(best.to_vec(stream)?, [3, 5]);
//! # Ok::<(), Error>(())
//! ```
//!
//! # What is shared
//! Where rows are in the order of their groups, an aggregate gathers the elements of its column: at random positions, which costs a sector of
//! 32 bytes for each. If several aggregates of a call have the same column, its nulls are left out once, and its elements are
//! gathered once, into memory for them. Where there are few groups, exact sums and means of a column are added up once.
//!
//! Each function here is also a method of [`Groups`], for one aggregate alone. The results are the same.

use crate::Column;
use crate::column::expect_len;
use crate::group::{Groups, Present};
use crate::key::Key;
use crate::number::{Aggregate, Amount, Number, SortedRows, Summable};
use crate::rows::Take;
use bytemuck::Pod;
use gpu_primitives::operator::map;
use gpu_primitives::scan::Monoid;
use gpu_primitives::source::{at, counting, map as mapped, map2, map3};
use gpu_primitives::{DeviceSlice, DeviceVec, Error, Stream, reduce, transform};
use std::any::Any;
use std::cell::RefCell;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::rc::Rc;

/// Returns the sum of each group: see [`Groups::sum`].
pub fn sum<'a, A: Amount<'a>>(column: A) -> impl Aggregates<Columns = A::Sums> {
    Sum(column, PhantomData)
}

/// Returns the mean of each group: see [`Groups::mean`].
pub fn mean<'a, A: Amount<'a>>(column: A) -> impl Aggregates<Columns = Column<f64>> {
    Mean(column, PhantomData)
}

/// Returns the variance of each group, as of a sample or of the whole: see [`Groups::variance`].
pub fn variance<'a, A: Amount<'a>>(column: A, sample: bool) -> impl Aggregates<Columns = Column<f64>> {
    Variance(column, sample, PhantomData)
}

/// Returns the smallest element of each group: see [`Groups::min`].
pub fn min<'a, A: Aggregate<'a>>(column: A) -> impl Aggregates<Columns = A::Same> {
    Least(column, PhantomData)
}

/// Returns the largest element of each group: see [`Groups::max`].
pub fn max<'a, A: Aggregate<'a>>(column: A) -> impl Aggregates<Columns = A::Same> {
    Greatest(column, PhantomData)
}

/// Returns the combination of each group by any operation: see [`Groups::fold`].
pub fn fold<T: Pod>(column: &Column<T>, operation: impl Monoid<T>) -> impl Aggregates<Columns = Column<T>> {
    Fold(column, operation)
}

/// Returns the number of rows of each group: see [`Groups::count`].
pub fn count() -> impl Aggregates<Columns = Column<u64>> {
    Call(|groups: &Groups, stream: &Stream| groups.count_rows(stream))
}

/// Returns the number of elements of each group that are not null: see [`Groups::count_valid`].
pub fn count_valid<T: Pod>(column: &Column<T>) -> impl Aggregates<Columns = Column<u64>> {
    CountValid(column)
}

/// Returns how many different elements each group has, without nulls: see [`Groups::count_distinct`].
pub fn count_distinct<T: Key>(column: &Column<T>) -> impl Aggregates<Columns = Column<u64>> {
    Call(move |groups: &Groups, stream: &Stream| groups.count_distinct_elements(stream, column))
}

/// Returns what the first row of each group has: a column, or a tuple of columns. It may be null.
pub fn first<T: Take>(columns: T) -> impl Aggregates<Columns = T::Taken> {
    Call(move |groups: &Groups, stream: &Stream| groups.rows().take(stream, columns))
}

/// Returns what the last row of each group has: a column, or a tuple of columns. It may be null.
pub fn last<T: Take>(columns: T) -> impl Aggregates<Columns = T::Taken> {
    Call(move |groups: &Groups, stream: &Stream| groups.last_rows(stream)?.take(stream, columns))
}

/// Aggregates: one that a function of [this module](self) returns, or a tuple of up to twelve.
pub trait Aggregates: sealed::Aggregates {
    /// The column of results, or a tuple of columns.
    type Columns;

    #[doc(hidden)]
    fn compute(self, stream: &Stream, shared: &Shared<'_>) -> Result<Self::Columns, Error>;
}

mod sealed {
    pub trait Aggregates {
        /// Notes which columns are gathered.
        fn note(&self, shared: &mut super::Shared<'_>);
    }
}

/// What the aggregates of a call share, by the addresses of their columns.
#[doc(hidden)]
#[derive(Debug)]
pub struct Shared<'g> {
    groups: &'g Groups,
    /// How many aggregates need this of a column.
    readers: HashMap<(usize, Part), usize>,
    ready: RefCell<HashMap<(usize, Part), Rc<dyn Any>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Part {
    Ordered,
    Totals,
}

impl<'g> Shared<'g> {
    pub(crate) fn new(groups: &'g Groups, aggregates: &impl Aggregates) -> Self {
        let mut shared = Self { groups, readers: HashMap::new(), ready: RefCell::default() };
        aggregates.note(&mut shared);
        shared
    }

    /// Notes that an aggregate reads a column in the order of the groups.
    fn orders<T: Pod>(&mut self, column: &Column<T>) {
        *self.readers.entry((address(column), Part::Ordered)).or_default() += 1;
    }

    /// Notes that an aggregate needs the sums of a column.
    fn sums<T: Summable>(&mut self, column: &Column<T>) {
        let part = if self.groups.is_numbered() && T::HAS_TOTALS { Part::Totals } else { Part::Ordered };
        *self.readers.entry((address(column), part)).or_default() += 1;
    }

    /// Returns whether several aggregates need this of a column.
    fn is_shared<T: Pod>(&self, column: &Column<T>, part: Part) -> bool {
        self.readers.get(&(address(column), part)).is_some_and(|readers| *readers > 1)
    }

    /// Returns what was made of a column, or makes it, and keeps it if it is shared.
    fn part<T: Pod, R: 'static>(
        &self,
        column: &Column<T>,
        part: Part,
        make: impl FnOnce() -> Result<R, Error>,
    ) -> Result<Rc<R>, Error> {
        let ready = self.ready.borrow().get(&(address(column), part)).cloned();
        if let Some(ready) = ready.and_then(|ready| ready.downcast::<R>().ok()) {
            return Ok(ready);
        }
        let made = Rc::new(make()?);
        if self.is_shared(column, part) {
            self.ready.borrow_mut().insert((address(column), part), Rc::<R>::clone(&made));
        }
        Ok(made)
    }

    /// Returns the elements of a column that are not null, group after group.
    fn ordered<T: Pod>(&self, stream: &Stream, column: &Column<T>) -> Result<Rc<Ordered<T>>, Error> {
        self.part(column, Part::Ordered, || {
            let present = self.groups.present(stream, column)?;
            if !self.is_shared(column, Part::Ordered) {
                return Ok(Ordered { present, gathered: None });
            }
            let order = present.sorted(self.groups, stream)?.order;
            let elements = transform::collect(stream, at(column.values(), order))?;
            let places = transform::collect(stream, counting(0u32, elements.len()))?;
            Ok(Ordered { present, gathered: Some((elements, places)) })
        })
    }

    /// Returns the sum of each group and how many elements it has that are not null, if this needs no order of the rows.
    fn totals<T: Summable>(&self, stream: &Stream, column: &Column<T>) -> Result<Rc<Option<Totals<T>>>, Error> {
        self.part(column, Part::Totals, || self.groups.sums_by_number(stream, column))
    }
}

/// The address of a column, which it keeps during a call.
fn address<T: Pod>(column: &Column<T>) -> usize {
    std::ptr::from_ref(column).addr()
}

/// The elements of a column that are not null, group after group.
struct Ordered<T: Pod> {
    present: Present,
    /// The elements in this order, if several aggregates read them; and their places.
    gathered: Option<(DeviceVec<T>, DeviceVec<u32>)>,
}

impl<T: Pod> Ordered<T> {
    /// Returns elements, and in which order they are read.
    fn sorted<'s>(
        &'s self,
        stream: &Stream,
        groups: &'s Groups,
        column: &'s Column<T>,
    ) -> Result<(DeviceSlice<'s, T>, SortedRows<'s>), Error> {
        let sorted = self.present.sorted(groups, stream)?;
        Ok(match &self.gathered {
            Some((elements, places)) => (elements.as_slice(), SortedRows { order: places.as_slice(), ..sorted }),
            None => (column.values(), sorted),
        })
    }
}

/// The sums of groups, which of them are of any elements, and of how many.
pub(crate) struct Totals<T: Summable> {
    pub sums: DeviceVec<T::Sum>,
    /// Nothing if each group has elements.
    pub valid: Option<DeviceVec<u8>>,
    pub counts: DeviceVec<u32>,
}

impl<T: Summable> Totals<T> {
    fn try_clone(&self, stream: &Stream) -> Result<Self, Error> {
        let valid = self.valid.as_ref().map(|valid| copy(stream, valid)).transpose()?;
        Ok(Self { sums: copy(stream, &self.sums)?, valid, counts: copy(stream, &self.counts)? })
    }
}

/// Copies memory of the device.
fn copy<T: Pod>(stream: &Stream, from: &DeviceVec<T>) -> Result<DeviceVec<T>, Error> {
    let mut copy = stream.uninit(from.len())?;
    copy.copy_from(stream, from)?;
    Ok(copy)
}

struct Sum<'a, A>(A, PhantomData<&'a ()>);

impl<'a, A: Amount<'a>> sealed::Aggregates for Sum<'a, A> {
    fn note(&self, shared: &mut Shared<'_>) {
        shared.sums(self.0.elements());
    }
}

impl<'a, A: Amount<'a>> Aggregates for Sum<'a, A> {
    type Columns = A::Sums;

    fn compute(self, stream: &Stream, shared: &Shared<'_>) -> Result<A::Sums, Error> {
        let column = self.0.elements();
        let totals = shared.totals(stream, column)?;
        let totals = match Rc::try_unwrap(totals) {
            Ok(own) => own,
            Err(shared) => shared.as_ref().as_ref().map(|totals| totals.try_clone(stream)).transpose()?,
        };
        if let Some(Totals { sums, valid, .. }) = totals {
            return self.0.sums(Column::of_parts(sums, valid)?);
        }
        let ordered = shared.ordered(stream, column)?;
        let (values, sorted) = ordered.sorted(stream, shared.groups, column)?;
        let sums = A::Element::sums(stream, values, sorted)?;
        self.0.sums(ordered.present.column(shared.groups, stream, sums)?)
    }
}

struct Mean<'a, A>(A, PhantomData<&'a ()>);

impl<'a, A: Amount<'a>> sealed::Aggregates for Mean<'a, A> {
    fn note(&self, shared: &mut Shared<'_>) {
        shared.sums(self.0.elements());
    }
}

impl<'a, A: Amount<'a>> Aggregates for Mean<'a, A> {
    type Columns = Column<f64>;

    fn compute(self, stream: &Stream, shared: &Shared<'_>) -> Result<Column<f64>, Error> {
        let (column, unit) = (self.0.elements(), self.0.unit());
        if let Some(totals) = &*shared.totals(stream, column)? {
            let floats = <A::Element as Summable>::Sum::to_floats(stream, totals.sums.as_slice())?;
            let mean = map!(unit: f64 = unit; |total: f64, count: u32| -> f64 {
                if count > 0 { total / count as f64 / unit } else { 0.0 }
            });
            let valid = totals.valid.as_ref().map(|valid| copy(stream, valid)).transpose()?;
            return Column::of_parts(transform::collect(stream, map2(&floats, &totals.counts, mean))?, valid);
        }
        let ordered = shared.ordered(stream, column)?;
        let (values, sorted) = ordered.sorted(stream, shared.groups, column)?;
        let totals = A::Element::totals(stream, values, sorted)?;
        let mean = map!(unit: f64 = unit; |total: f64, start: u32, end: u32| -> f64 {
            total / (end - start) as f64 / unit
        });
        let (starts, ends) = sorted.bounds()?;
        let means = transform::collect(stream, map3(&totals, starts, ends, mean))?;
        ordered.present.column(shared.groups, stream, means)
    }
}

struct Variance<'a, A>(A, bool, PhantomData<&'a ()>);

impl<'a, A: Amount<'a>> sealed::Aggregates for Variance<'a, A> {
    fn note(&self, shared: &mut Shared<'_>) {
        shared.orders(self.0.elements());
    }
}

impl<'a, A: Amount<'a>> Aggregates for Variance<'a, A> {
    type Columns = Column<f64>;

    fn compute(self, stream: &Stream, shared: &Shared<'_>) -> Result<Column<f64>, Error> {
        let column = self.0.elements();
        let ordered = shared.ordered(stream, column)?;
        let (values, sorted) = ordered.sorted(stream, shared.groups, column)?;
        let moments = A::Element::moments(stream, values, sorted)?;
        let (less, unit) = (f64::from(u8::from(self.1)), self.0.unit());
        let variance = map!(less: f64 = less, unit: f64 = unit; |moments: [f64; 3]| -> f64 {
            if moments[0] > less { moments[2] / (moments[0] - less) / unit / unit } else { 0.0 }
        });
        let enough = map!(less: f64 = less; |moments: [f64; 3]| -> u8 { if moments[0] > less { 1 } else { 0 } });
        let values = transform::collect(stream, mapped(&moments, variance))?;
        Column::with_valid(values, transform::collect(stream, mapped(&moments, enough))?)
    }
}

/// The smallest and the largest element.
macro_rules! extremes {
    ($($name:ident $monoid:ident)*) => { $(
        struct $name<'a, A>(A, PhantomData<&'a ()>);

        impl<'a, A: Aggregate<'a>> sealed::Aggregates for $name<'a, A> {
            fn note(&self, shared: &mut Shared<'_>) {
                shared.orders(self.0.elements());
            }
        }

        impl<'a, A: Aggregate<'a>> Aggregates for $name<'a, A> {
            type Columns = A::Same;

            fn compute(self, stream: &Stream, shared: &Shared<'_>) -> Result<A::Same, Error> {
                let elements = Fold(self.0.elements(), A::Element::$monoid()).compute(stream, shared)?;
                Ok(self.0.same(elements))
            }
        }
    )* };
}

extremes! { Least least Greatest greatest }

struct Fold<'a, T: Pod, M>(&'a Column<T>, M);

impl<T: Pod, M: Monoid<T>> sealed::Aggregates for Fold<'_, T, M> {
    fn note(&self, shared: &mut Shared<'_>) {
        shared.orders(self.0);
    }
}

impl<T: Pod, M: Monoid<T>> Aggregates for Fold<'_, T, M> {
    type Columns = Column<T>;

    fn compute(self, stream: &Stream, shared: &Shared<'_>) -> Result<Column<T>, Error> {
        let ordered = shared.ordered(stream, self.0)?;
        let (values, sorted) = ordered.sorted(stream, shared.groups, self.0)?;
        let mut totals = stream.uninit::<T>(shared.groups.len())?;
        reduce::segmented(stream, at(values, sorted.order), sorted.offsets, &mut totals, self.1)?;
        ordered.present.column(shared.groups, stream, totals)
    }
}

struct CountValid<'a, T: Pod>(&'a Column<T>);

impl<T: Pod> sealed::Aggregates for CountValid<'_, T> {
    fn note(&self, _: &mut Shared<'_>) {}
}

impl<T: Pod> Aggregates for CountValid<'_, T> {
    type Columns = Column<u64>;

    fn compute(self, stream: &Stream, shared: &Shared<'_>) -> Result<Column<u64>, Error> {
        expect_len("a column of grouped rows", shared.groups.table_len(), self.0.len())?;
        match shared.groups.counts_by_number(stream, self.0)? {
            Some(counts) => Ok(counts),
            None => shared.ordered(stream, self.0)?.present.count(shared.groups, stream),
        }
    }
}

/// An aggregate that shares nothing.
struct Call<F>(F);

impl<F> sealed::Aggregates for Call<F> {
    fn note(&self, _: &mut Shared<'_>) {}
}

impl<R, F: FnOnce(&Groups, &Stream) -> Result<R, Error>> Aggregates for Call<F> {
    type Columns = R;

    fn compute(self, stream: &Stream, shared: &Shared<'_>) -> Result<R, Error> {
        (self.0)(shared.groups, stream)
    }
}

macro_rules! tuples {
    ($(($($name:ident $number:tt),+))*) => { $(
        impl<$($name: Aggregates),+> sealed::Aggregates for ($($name,)+) {
            fn note(&self, shared: &mut Shared<'_>) {
                $( self.$number.note(shared); )+
            }
        }

        impl<$($name: Aggregates),+> Aggregates for ($($name,)+) {
            type Columns = ($($name::Columns,)+);

            fn compute(self, stream: &Stream, shared: &Shared<'_>) -> Result<Self::Columns, Error> {
                Ok(($( self.$number.compute(stream, shared)?, )+))
            }
        }
    )* };
}

tuples! {
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11)
}
