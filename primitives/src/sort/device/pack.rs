//! The kernel that packs the codes of several columns into one number per row.

// Unrolled loops index register arrays by their counters; iterators would force the arrays into memory.
#![allow(clippy::needless_range_loop)]

use crate::arch::thread;
use crate::code::Sign;
use crate::form::{Buffer, Param, kernel};
use crate::view::{Global, GlobalMut};
use bytemuck::Pod;

/// The threads per block.
pub(crate) const THREADS: u32 = 256;

/// The rows per thread: their loads are in flight at once.
const ROWS: usize = 4;

/// The rows of a block.
pub(crate) const TILE: usize = THREADS as usize * ROWS;

/// The most fields of a packed number.
pub(crate) const MAX_FIELDS: usize = 8;

/// A part of a packed number: some bits of the codes of a column, or whether its elements are null.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// The elements of the column. Empty, if the field says which of them are null.
    pub keys: Global<u8>,
    /// The bits of the elements that are not null, if some are. Otherwise empty.
    pub valid: Global<u8>,
    /// The number of bits before the first of `valid`.
    pub valid_start: u64,
    /// How the bits of an element become its code.
    pub sign: Sign,
    /// The bits of the field that are flipped.
    pub flip: u64,
    /// All bits of the field, as its lowest ones.
    pub mask: u64,
    /// The bytes of an element: 1, 2, 4, 8, 16 or 32.
    pub size: u32,
    /// The eight bytes of an element of more than eight that the field belongs to.
    pub word: u32,
    /// The bits of the code that are lower than those of the field.
    pub low: u32,
    /// The bits of the packed number that are lower than the field.
    pub shift: u32,
}

impl Field {
    /// A field of no bits.
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) const NONE: Self = Self {
        keys: Global::empty(),
        valid: Global::empty(),
        valid_start: 0,
        sign: Sign::NONE,
        flip: 0,
        mask: 0,
        size: 1,
        word: 0,
        low: 0,
        shift: 0,
    };

    /// Returns one of the column's elements, or eight bytes of it, as another type.
    ///
    /// # Safety
    /// The column has these bytes, aligned for the type, and nothing writes them.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn element<T: Pod>(&self, index: usize) -> T {
        Global::<T>::from_raw(self.keys.as_ptr().cast(), self.keys.len() / size_of::<T>()).get(index)
    }

    /// Returns the field of a row, where it belongs in the packed number.
    ///
    /// # Safety
    /// The column has this row, and nothing writes it.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(crate) unsafe fn of_row(&self, row: usize) -> u64 {
        let mut is_valid = true;
        if !self.valid.is_empty() {
            let bit = self.valid_start as usize + row;
            is_valid = self.valid.get(bit / 8) >> (bit % 8) & 1 != 0;
        }
        let field = if self.keys.is_empty() {
            is_valid as u64 ^ self.flip
        } else if is_valid {
            let code = match self.size {
                1 => self.sign.encode(self.element::<u8>(row) as u32) as u64,
                2 => self.sign.encode(self.element::<u16>(row) as u32) as u64,
                4 => self.sign.encode(self.element::<u32>(row)) as u64,
                8 => self.sign.encode(self.element::<u64>(row)),
                size => self.sign.encode(self.element::<u64>(row * (size / 8) as usize + self.word as usize)),
            };
            (code >> self.low & self.mask) ^ self.flip
        } else {
            // All nulls are equal.
            0
        };
        field << self.shift
    }
}

/// The fields of a packed number. Those that are not used have no bits.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Fields(pub [Field; MAX_FIELDS]);

// SAFETY: `repr(C)` without padding: views, and numbers whose sizes add up to multiples of eight bytes.
unsafe impl Param for Fields {
    fn buffers(&self, _: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        for field in &self.0 {
            field.keys.buffers("column", visit);
            field.valid.buffers("bits", visit);
        }
    }
}

/// A packed number: `u32` or `u64`.
pub trait Packed: Pod {
    /// Returns the lowest bits.
    fn lowest(number: u64) -> Self;
}

impl Packed for u32 {
    #[inline(always)]
    fn lowest(number: u64) -> Self {
        number as u32
    }
}

impl Packed for u64 {
    #[inline(always)]
    fn lowest(number: u64) -> Self {
        number
    }
}

/// Writes a number per row: the fields of row `order[i]`, or of row `i` if there is no order.
///
/// Cost: each column is read once, and each number is written once. With an order, an element costs at least a sector of 32 bytes
/// to read.
///
/// # Safety
/// The launch has one block per tile of [`TILE`] rows. Columns and bits have all rows. `order` is empty, or has a row for each
/// number. The fields have no bits beyond those of a `C`. While the kernel runs, nothing writes the columns, their bits and the
/// order, and nothing else uses the numbers.
#[kernel(listed, threads = THREADS, native = crate::sort::native::pack_codes)]
pub unsafe fn pack_codes<C: Packed>(fields: Fields, count: u32, order: Global<u32>, numbers: GlobalMut<C>) {
    let start = thread::block_idx_x() as usize * TILE + thread::thread_idx_x() as usize;
    let len = numbers.len();
    let mut rows = [0; ROWS];
    for i in 0..ROWS {
        let at = start + i * THREADS as usize;
        // Beyond the last row, the first one is read again.
        let at = if at < len { at } else { 0 };
        rows[i] = if order.is_empty() { at } else { order.get(at) as usize };
    }
    let mut packed = [0u64; ROWS];
    // Written out: an index that is known only at run time would force the arguments into memory.
    macro_rules! each {
        ($($field:literal)*) => { $(
            if $field < count {
                for i in 0..ROWS {
                    packed[i] |= fields.0[$field].of_row(rows[i]);
                }
            }
        )* };
    }
    each!(0 1 2 3 4 5 6 7);
    for i in 0..ROWS {
        let at = start + i * THREADS as usize;
        if at < len {
            numbers.set(at, C::lowest(packed[i]));
        }
    }
}

crate::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    family pack_codes(C) {
        for C in [u32, u64]: PackCodes<C>;
    }
}
