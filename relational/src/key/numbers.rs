//! The numbers of rows in memory, and how those of elements are made.

use crate::rows::Rows;
use bytemuck::Pod;
use gpu_primitives::operator::{map, monoid};
use gpu_primitives::sort::RadixKey;
use gpu_primitives::source::{Source, at, map as mapped, map2};
use gpu_primitives::{DeviceSlice, DeviceValue, DeviceVec, Error, Stream, reduce, transform};

/// A number for each row: of 32 bits in memory if that is enough.
#[derive(Debug)]
pub(crate) enum Numbers {
    /// Numbers of [few](is_few) groups, where it was asked for them. They are not sorted.
    Tiny(DeviceVec<u16>),
    Short(DeviceVec<u32>),
    Long(DeviceVec<u64>),
}

/// Numbers of so many bits are few: a block of a kernel has room for the sums of all of them.
const FEW_BITS: u32 = 12;

/// Returns whether numbers of so many bits are few, for so many rows: there is a table of them.
pub(super) const fn is_few(bits: u32, rows: usize) -> bool {
    const SMALL_TABLE: usize = 256;
    bits <= FEW_BITS && (1 << bits <= SMALL_TABLE || 1 << bits <= rows)
}

/// Returns whether numbers of so many bits are counted in a table in global memory, which stays in the L2 cache. With fewer of them, more rows
/// meet at an address; with more, the sums leave the cache: then a sort is as fast.
pub(crate) const fn fit_caches(bits: u32, rows: usize) -> bool {
    const ROWS_OF_A_NUMBER: usize = 16;
    bits >= 16 && bits <= 21 && (1 << bits) * ROWS_OF_A_NUMBER <= rows
}

/// A type that [`Numbers`] have in memory.
pub(crate) trait Width: RadixKey + gpu_cuckoo::Key {
    /// Returns numbers of this type.
    fn of(numbers: &Numbers) -> &DeviceVec<Self>;

    fn wrap(numbers: DeviceVec<Self>) -> Numbers;
}

macro_rules! widths {
    ($($type:ident $variant:ident)*) => { $(
        impl Width for $type {
            fn of(numbers: &Numbers) -> &DeviceVec<Self> {
                match numbers {
                    Numbers::$variant(numbers) => numbers,
                    _ => unreachable!("numbers that are compared have the same bits"),
                }
            }

            fn wrap(numbers: DeviceVec<Self>) -> Numbers {
                Numbers::$variant(numbers)
            }
        }
    )* };
}

widths!(u32 Short u64 Long);

/// Evaluates an expression with numbers in the type that they have in memory.
macro_rules! with_width {
    ($numbers:expr => $name:ident: $type:ident, $body:expr) => {
        match $numbers {
            $crate::key::Numbers::Short($name) => {
                type $type = u32;
                $body
            }
            $crate::key::Numbers::Long($name) => {
                type $type = u64;
                $body
            }
            $crate::key::Numbers::Tiny(_) => unreachable!("numbers of few groups are neither sorted nor packed"),
        }
    };
}
pub(crate) use with_width;

/// Evaluates an expression with numbers of 16 or 32 bits, in the type that they have in memory.
macro_rules! with_short {
    ($numbers:expr => $name:ident: $type:ident, $body:expr) => {
        match $numbers {
            $crate::key::Numbers::Tiny($name) => {
                type $type = u16;
                $body
            }
            $crate::key::Numbers::Short($name) => {
                type $type = u32;
                $body
            }
            $crate::key::Numbers::Long(_) => unreachable!("a table of them would be too long"),
        }
    };
}
pub(crate) use with_short;

impl Numbers {
    /// Computes numbers of so many bits; tiny ones, if that is said.
    pub(super) fn collect<'a>(
        stream: &Stream,
        source: impl Source<'a, u64>,
        bits: u32,
        tiny: bool,
    ) -> Result<Self, Error> {
        Ok(if tiny {
            Self::Tiny(transform::collect(stream, mapped(source, map!(|number: u64| -> u16 { number as u16 })))?)
        } else if bits <= u32::BITS {
            Self::Short(transform::collect(stream, mapped(source, map!(|number: u64| -> u32 { number as u32 })))?)
        } else {
            Self::Long(transform::collect(stream, source)?)
        })
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Tiny(numbers) => numbers.len(),
            Self::Short(numbers) => numbers.len(),
            Self::Long(numbers) => numbers.len(),
        }
    }

    /// Returns the numbers at these rows, all of which exist.
    pub fn take(&self, stream: &Stream, rows: &Rows) -> Result<Self, Error> {
        with_width!(self => numbers: K, Ok(K::wrap(transform::collect(stream, at(numbers, rows.positions()))?)))
    }
}

/// The numbers of rows, and the bits that they have.
pub(crate) struct Codes {
    pub numbers: Numbers,
    pub bits: u32,
}

/// How the number of an element becomes that of its row. Public in name only, as the sealed trait is.
#[derive(Clone, Copy)]
pub struct Shape {
    /// What is subtracted from all numbers.
    pub(super) least: u64,
    /// The bits of the number of a row.
    pub(super) bits: u32,
    /// What is added to the numbers of valid elements, so that they are greater than that of a null, which is 0.
    pub(super) is_valid: u64,
    /// The bits that are flipped at last, for a descending order.
    pub(super) flip: u64,
    /// Whether the numbers are [tiny](Numbers::Tiny).
    pub(super) tiny: bool,
}

/// The type of elements that keys are made of: all integers, and floats, whose `-0.0` equals `0.0` and whose NaN are equal and the
/// greatest.
pub trait Key: Pod + sealed::Key {}

mod sealed {
    use super::Part;

    pub trait Key: bytemuck::Pod {
        /// The numbers of an element, the most important one first.
        const PARTS: &'static [Part<Self>];
    }
}

/// Finds the range of the numbers of elements, of which some may be null.
type FindRange<T> =
    fn(&Stream, DeviceSlice<'_, T>, Option<DeviceSlice<'_, u8>>) -> Result<DeviceValue<[u64; 2]>, Error>;

/// Computes the numbers of rows.
type MakeNumbers<T> = fn(&Stream, DeviceSlice<'_, T>, Option<DeviceSlice<'_, u8>>, Shape) -> Result<Numbers, Error>;

/// A number of an element. Public in name only, as the sealed trait is.
pub struct Part<T: Pod> {
    /// The bits of the number.
    pub(super) bits: u32,
    range: FindRange<T>,
    numbers: MakeNumbers<T>,
}

macro_rules! keys {
    ($($type:ident: $($bits:literal |$x:ident| $code:expr),+;)*) => { $(
        impl Key for $type {}

        impl sealed::Key for $type {
            const PARTS: &'static [Part<Self>] = &[$(Part {
                bits: $bits,
                range: |stream, elements, valid| range(stream, mapped(elements, map!(|$x: $type| -> u64 { $code })), valid),
                numbers: |stream, elements, valid, shape| {
                    shaped(stream, mapped(elements, map!(|$x: $type| -> u64 { $code })), valid, shape)
                },
            }),+];
        }
    )* };
}

keys! {
    u8: 8 |x| x as u64;
    u16: 16 |x| x as u64;
    u32: 32 |x| x as u64;
    u64: 64 |x| x;
    i8: 8 |x| ((x as u8) ^ 0x80) as u64;
    i16: 16 |x| ((x as u16) ^ 0x8000) as u64;
    i32: 32 |x| ((x as u32) ^ 0x8000_0000) as u64;
    i64: 64 |x| (x as u64) ^ 0x8000_0000_0000_0000;
    u128: 64 |x| (x >> 64) as u64, 64 |x| x as u64;
    i128: 64 |x| ((x >> 64) as u64) ^ 0x8000_0000_0000_0000, 64 |x| x as u64;
    f32: 32 |x| {
        let bits = (x + 0.0).to_bits();
        let code = if bits >> 31 != 0 { !bits } else { bits | 0x8000_0000 };
        (if x.is_nan() { 0xFFFF_FFFF } else { code }) as u64
    };
    f64: 64 |x| {
        let bits = (x + 0.0).to_bits();
        let code = if bits >> 63 != 0 { !bits } else { bits | 0x8000_0000_0000_0000 };
        if x.is_nan() { 0xFFFF_FFFF_FFFF_FFFF } else { code }
    };
}

/// Returns the least and the greatest number that is valid; the greatest and the least of all if there is none.
fn range<'a>(
    stream: &Stream,
    numbers: impl Source<'a, u64>,
    valid: Option<DeviceSlice<'a, u8>>,
) -> Result<DeviceValue<[u64; 2]>, Error> {
    let union = monoid!(exact, commutative; [0xFFFF_FFFF_FFFF_FFFF, 0], |a: [u64; 2], b: [u64; 2]| {
        [a[0].min(b[0]), a[1].max(b[1])]
    });
    match valid {
        Some(valid) => {
            let range = map!(|number: u64, valid: u8| -> [u64; 2] {
                if valid != 0 { [number, number] } else { [0xFFFF_FFFF_FFFF_FFFF, 0] }
            });
            reduce::reduce(stream, map2(numbers, valid, range), union)
        }
        None => reduce::reduce(stream, mapped(numbers, map!(|number: u64| -> [u64; 2] { [number, number] })), union),
    }
}

/// Returns the numbers of rows, in one pass over the elements.
fn shaped<'a>(
    stream: &Stream,
    numbers: impl Source<'a, u64>,
    valid: Option<DeviceSlice<'a, u8>>,
    Shape { least, bits, is_valid, flip, tiny }: Shape,
) -> Result<Numbers, Error> {
    match valid {
        Some(valid) => {
            let shaped = map!(least: u64 = least, is_valid: u64 = is_valid, flip: u64 = flip; |number: u64, valid: u8| -> u64 {
                (if valid != 0 { number.wrapping_sub(least) | is_valid } else { 0 }) ^ flip
            });
            Numbers::collect(stream, map2(numbers, valid, shaped), bits, tiny)
        }
        None => {
            let shaped = map!(least: u64 = least, is_valid: u64 = is_valid, flip: u64 = flip; |number: u64| -> u64 {
                (number.wrapping_sub(least) | is_valid) ^ flip
            });
            Numbers::collect(stream, mapped(numbers, shaped), bits, tiny)
        }
    }
}

/// The elements of a key column, without their type.
pub(super) struct Elements<'a> {
    /// The bits of the numbers of an element, the most important one first.
    pub bits: Vec<u32>,
    pub parts: Box<dyn AnyParts + 'a>,
}

/// The [parts](Part) of elements, by their index.
pub(super) trait AnyParts {
    fn range(
        &self,
        stream: &Stream,
        part: usize,
        valid: Option<DeviceSlice<'_, u8>>,
    ) -> Result<DeviceValue<[u64; 2]>, Error>;

    fn numbers(
        &self,
        stream: &Stream,
        part: usize,
        valid: Option<DeviceSlice<'_, u8>>,
        shape: Shape,
    ) -> Result<Numbers, Error>;
}

/// Elements of a column: all of them, or those that were taken.
pub(super) enum Parts<'a, T: Key> {
    All(DeviceSlice<'a, T>),
    Taken(DeviceVec<T>),
}

impl<T: Key> Parts<'_, T> {
    fn elements(&self) -> DeviceSlice<'_, T> {
        match self {
            Self::All(elements) => *elements,
            Self::Taken(elements) => elements.as_slice(),
        }
    }
}

impl<T: Key> AnyParts for Parts<'_, T> {
    fn range(
        &self,
        stream: &Stream,
        part: usize,
        valid: Option<DeviceSlice<'_, u8>>,
    ) -> Result<DeviceValue<[u64; 2]>, Error> {
        (T::PARTS[part].range)(stream, self.elements(), valid)
    }

    fn numbers(
        &self,
        stream: &Stream,
        part: usize,
        valid: Option<DeviceSlice<'_, u8>>,
        shape: Shape,
    ) -> Result<Numbers, Error> {
        (T::PARTS[part].numbers)(stream, self.elements(), valid, shape)
    }
}
