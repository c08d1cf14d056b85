//! Where the rows of an input are, and how many elements of each are wanted.

use crate::form::{Buffer, Param};
use crate::view::Global;

/// The rows of an input: all of the same length, or from one offset to the next. It is a kernel argument.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RowLayout {
    /// The length of each row, if there are no offsets.
    row_len: u64,
    /// Where the rows start, and the end of the last one. Empty if they have the same length.
    starts: Global<u32>,
}

// SAFETY: `repr(C)`, plain data and a `Param`.
unsafe impl Param for RowLayout {
    fn buffers(&self, _: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.starts.buffers("offsets", visit);
    }
}

/// A row of an input.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// The index of the first element.
    pub first: usize,
    pub len: usize,
}

impl Row {
    /// Returns the row between two indices, as far as an input of `all` elements has it.
    #[inline(always)]
    fn between(start: usize, end: usize, all: usize) -> Self {
        let first = start.min(all);
        Self { first, len: end.min(all).saturating_sub(first) }
    }
}

impl RowLayout {
    /// Returns a row of an input of `all` elements.
    ///
    /// # Safety
    /// There are so many rows, and nothing writes the offsets.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(crate) unsafe fn row(self, row: usize, all: usize) -> Row {
        if self.starts.is_empty() {
            let row_len = self.row_len as usize;
            Row::between(row * row_len, (row + 1) * row_len, all)
        } else {
            Row::between(self.starts.get(row) as usize, self.starts.get(row + 1) as usize, all)
        }
    }
}

/// How many elements of each row are wanted: the same number of all rows, or a number for each. It is a kernel argument.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// The most elements of a row. All rows have room for so many results.
    most: u64,
    /// The number for each row. Empty if it is the most for all.
    each: Global<u32>,
}

// SAFETY: `repr(C)`, plain data and a `Param`.
unsafe impl Param for Wanted {
    fn buffers(&self, _: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.each.buffers("wanted", visit);
    }
}

impl Wanted {
    /// Returns the results that a row has room for.
    #[inline(always)]
    pub(crate) fn most(self) -> usize {
        self.most as usize
    }

    /// Returns how many elements of a row are wanted.
    ///
    /// # Safety
    /// There is a number for this row, and nothing writes it.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(crate) unsafe fn of(self, row: usize) -> usize {
        if self.each.is_empty() { self.most() } else { self.most().min(self.each.get(row) as usize) }
    }
}

#[cfg(not(target_arch = "nvptx64"))]
impl Wanted {
    /// The same number of all rows.
    pub(crate) fn all(most: usize) -> Self {
        Self { most: most as u64, each: Global::empty() }
    }

    /// A number for each row. Larger ones than `most` count as this.
    pub(crate) fn each(each: Global<u32>, most: usize) -> Self {
        Self { most: most as u64, each }
    }

    /// [`of`](Self::of) for a native body.
    ///
    /// # Safety
    /// Same as [`of`](Self::of).
    pub(crate) unsafe fn of_natively(self, row: usize) -> usize {
        // SAFETY: nothing writes the numbers.
        match unsafe { self.each.as_slice() } {
            [] => self.most(),
            each => self.most().min(each[row] as usize),
        }
    }
}

#[cfg(not(target_arch = "nvptx64"))]
impl RowLayout {
    /// Rows of the same length.
    pub(crate) fn equal(row_len: usize) -> Self {
        Self { row_len: row_len as u64, starts: Global::empty() }
    }

    /// Rows from one offset to the next.
    pub(crate) fn at(starts: Global<u32>) -> Self {
        Self { row_len: 0, starts }
    }

    /// [`row`](Self::row) for a native body.
    ///
    /// # Safety
    /// Same as [`row`](Self::row).
    pub(crate) unsafe fn row_natively(self, row: usize, all: usize) -> Row {
        // SAFETY: nothing writes the offsets.
        match unsafe { self.starts.as_slice() } {
            [] => Row::between(row * self.row_len as usize, (row + 1) * self.row_len as usize, all),
            starts => Row::between(starts[row] as usize, starts[row + 1] as usize, all),
        }
    }
}
