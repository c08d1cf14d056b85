//! Windows: numbers of rows that depend on the other rows of their partition.

use crate::column::expect_len;
use crate::group::Groups;
use crate::key::{Codes, Keys};
use crate::rows::Rows;
use crate::{Column, sort_by};
use bytemuck::Pod;
use gpu_primitives::operator::map;
use gpu_primitives::scan::{self, Monoid};
use gpu_primitives::source::{at, counting, map2};
use gpu_primitives::{DeviceVec, Error, Stream, permute, transform};

/// The rows of a table in partitions, and in order within each. Results are in step with the table.
///
/// ```
/// use gpu_primitives::scan::Sum;
/// use gpu_primitives::{Device, Error};
/// use gpu_relational::{Column, Window};
///
/// let stream = &Device::default()?.stream()?;
/// let (shop, day) = (Column::upload(stream, b"aba")?, Column::upload(stream, &[2i32, 1, 1])?);
/// let sales = Column::upload(stream, &[10i64, 20, 30])?;
/// let window = Window::new(stream, &shop, &day)?;
/// assert_eq!(window.row_number(stream)?.to_vec(stream)?, [2, 1, 1]);
/// assert_eq!(window.running(stream, &sales, Sum)?.to_vec(stream)?, [40, 20, 30]);
/// assert_eq!(window.lag(stream, &sales, 1)?.to_options(stream)?, [Some(30), None, None]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct Window {
    /// The rows, partition after partition, in order.
    order: Rows,
    /// For each place in the order, the first place of its partition, and of the next one.
    starts: DeviceVec<u32>,
    ends: DeviceVec<u32>,
    /// The partition of each place.
    partitions: DeviceVec<u32>,
}

impl Window {
    /// Orders the rows of each partition. Waits once, for the number of partitions.
    ///
    /// # Errors
    /// Those of [`group_by`](crate::group_by) and of [`sort_by`]; [`Error::LengthMismatch`] if the keys have different lengths.
    pub fn new<'a, 'b>(
        stream: &Stream,
        partition: impl Into<Keys<'a>>,
        order: impl Into<Keys<'b>>,
    ) -> Result<Self, Error> {
        let (partition, order) = (partition.into(), order.into());
        expect_len("the keys of an order in partitions", partition.len(), order.len())?;
        let order = sort_by(stream, order)?;
        // Stable: rows of a partition stay in order.
        let Codes { numbers, bits } = partition.codes(stream)?;
        let groups = Groups::ordered(stream, Codes { numbers: numbers.take(stream, &order)?, bits })?;
        let partitions = groups.group_of_order(stream)?;
        let starts = transform::collect(stream, at(groups.offsets(), &partitions))?;
        let ends = transform::collect(stream, at(groups.offsets().slice(1..)?, &partitions))?;
        let len = order.len();
        let order = Rows::existing(transform::collect(stream, at(order.positions(), groups.order(stream)?))?, len);
        Ok(Self { order, starts, ends, partitions })
    }

    /// Returns what places in the order have, as a column of the table.
    fn of_rows<T: Pod>(&self, stream: &Stream, places: &DeviceVec<T>) -> Result<DeviceVec<T>, Error> {
        let mut rows = stream.uninit::<T>(places.len())?;
        // SAFETY: the order has each row once.
        unsafe { permute::scatter_unchecked(stream, places, self.order.positions(), &mut rows)? };
        Ok(rows)
    }

    /// Returns the number of each row in its partition, from 1 on.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; any launch error.
    pub fn row_number(&self, stream: &Stream) -> Result<Column<u32>, Error> {
        let number = map!(|place: u32, start: u32| -> u32 { place - start + 1 });
        let numbers = transform::collect(stream, map2(counting(0u32, self.starts.len()), &self.starts, number))?;
        Column::new(self.of_rows(stream, &numbers)?)
    }

    /// Returns for each row the combination of the elements of its partition up to its own, by any operation. A null is what [lies
    /// there](Column#what-lies-under-a-null).
    ///
    /// Results have the type of the elements: unlike [`Groups::sum`], a running [`Sum`](gpu_primitives::scan::Sum) of integers wraps
    /// around if it needs more bits. [`Column::compute`] makes a wider column.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the column does not have as many rows; same as [`row_number`](Self::row_number).
    pub fn running<T: Pod>(
        &self,
        stream: &Stream,
        column: &Column<T>,
        operation: impl Monoid<T>,
    ) -> Result<Column<T>, Error> {
        expect_len("a column of a window", self.order.len(), column.len())?;
        let mut running = stream.uninit::<T>(self.order.len())?;
        let (values, same) = (at(column, self.order.positions()), gpu_primitives::equality::Same);
        scan::inclusive_by_key(stream, (&self.partitions, values), &mut running, same, operation)?;
        Column::new(self.of_rows(stream, &running)?)
    }

    /// Returns for each row the element of the row that is `by` places before it; null if there is none in its partition.
    ///
    /// # Errors
    /// Same as [`running`](Self::running).
    pub fn lag<T: Pod>(&self, stream: &Stream, column: &Column<T>, by: u32) -> Result<Column<T>, Error> {
        let before = map!(by: u32 = by; |place: u32, start: u32| -> u32 {
            if place - start >= by { place - by } else { 0xFFFF_FFFF }
        });
        let places = transform::collect(stream, map2(counting(0u32, self.starts.len()), &self.starts, before))?;
        self.shifted(stream, column, places)
    }

    /// Returns for each row the element of the row that is `by` places after it; null if there is none in its partition.
    ///
    /// # Errors
    /// Same as [`running`](Self::running).
    pub fn lead<T: Pod>(&self, stream: &Stream, column: &Column<T>, by: u32) -> Result<Column<T>, Error> {
        let after = map!(by: u32 = by; |place: u32, end: u32| -> u32 {
            if end - place > by { place + by } else { 0xFFFF_FFFF }
        });
        let places = transform::collect(stream, map2(counting(0u32, self.ends.len()), &self.ends, after))?;
        self.shifted(stream, column, places)
    }

    /// Returns for each row the element of another place.
    fn shifted<T: Pod>(&self, stream: &Stream, column: &Column<T>, places: DeviceVec<u32>) -> Result<Column<T>, Error> {
        expect_len("a column of a window", self.order.len(), column.len())?;
        let rows = Rows::new(places)?.take(stream, &self.order)?;
        let of_rows = Rows::new(self.of_rows(stream, &transform::collect(stream, rows.positions())?)?)?;
        of_rows.take(stream, column)
    }
}
