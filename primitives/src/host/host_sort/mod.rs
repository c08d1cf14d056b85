//! Sorts slices in host memory that may be longer than what the device holds.
//!
//! Two passes. The first sorts chunks on the device, while others are copied to it and from it. The second cuts the sorted chunks
//! at the same keys into pieces that fit the device, sorts each piece, and copies it to its place. So everything crosses the link
//! four times, twice in each direction, and both directions work at the same time.
//!
//! - **Stable, deterministic**: as [`sort`](mod@crate::sort). Any length, any key, any order that it takes.
//! - **Synchronisation**: the calls wait until everything is sorted. They take a [`Device`] and make streams of their own.
//! - **Memory**: of the device, as much as the [options](Options::memory) allow; of the host, a second slice as long as the first,
//!   which the `in_place` calls are given and the others allocate.
//! - **Page-locked memory** ([`Device::pinned`]) is copied at the rate of the link. Other memory works too: the driver copies it a
//!   second time.
//! - **Errors**: no element is ever lost. Inputs of [`keys`], [`pairs`], [`keys_by`] and [`pairs_by`] are not changed. After an
//!   error of an `in_place` call, the slices have all of their elements, in some order, and pairs are still pairs. What an output
//!   or a second slice holds then is not said.
//!
//! ```
//! use gpu_primitives::{Device, Error, host_sort};
//!
//! let device = Device::default()?;
//! let mut keys: Vec<u32> = (0..100_000u32).map(|i| i.wrapping_mul(2_654_435_769)).collect();
//! let mut second = vec![0; keys.len()];
//! // At most 1 MiB of device memory.
//! let options = host_sort::Options::new().memory(1 << 20);
//! host_sort::keys_in_place(&device, &mut keys, &mut second, options)?;
//! assert!(keys.is_sorted());
//! # Ok::<(), Error>(())
//! ```

#![deny(unsafe_op_in_unsafe_fn)]

mod cuts;
mod pass;

use crate::host::error::{Error, expect_len};
use crate::host::runtime::{Device, host_memory};
use crate::sort::host::lowered::Coding;
use crate::sort::{self, RadixCode, RadixKey, Sign, SortBy, code_of};
use bytemuck::Pod;
use core::fmt;
use cuts::Cuts;
use pass::{Job, Rows, RowsMut, run};
use std::alloc::{Layout, alloc_zeroed};
use std::ops::Range;
use std::sync::Mutex;

/// The order, how much device memory is used, and who hears of the progress.
#[derive(Clone, Default)]
pub struct Options<'a> {
    order: sort::Options,
    memory: Option<usize>,
    progress: Option<&'a (dyn Fn(Progress) + Sync)>,
}

/// How far a sort is. A sort moves each element twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The elements that were moved so far.
    pub moved: usize,
    /// The elements to move: twice the number of elements.
    pub all: usize,
}

impl fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { order, memory, progress } = self;
        let progress = progress.map(|_| "Fn(Progress)");
        f.debug_struct("Options").field("order", order).field("memory", memory).field("progress", &progress).finish()
    }
}

impl<'a> Options<'a> {
    /// Ascending, by all bits, with up to three quarters of the device memory that is free.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the direction and the bits to compare.
    ///
    /// ```
    /// use gpu_primitives::{Device, Error, host_sort, sort};
    ///
    /// let (keys, mut sorted) = ([3i64, -1, 7], [0; 3]);
    /// let options = host_sort::Options::new().order(sort::Options::new().descending());
    /// host_sort::keys(&Device::default()?, &keys, &mut sorted, options)?;
    /// assert_eq!(sorted, [7, 3, -1]);
    /// # Ok::<(), Error>(())
    /// ```
    #[must_use]
    pub fn order(self, order: sort::Options) -> Self {
        Self { order, ..self }
    }

    /// Sets how many bytes of device memory the sort may take, about. It takes what 64 elements need in any case, and some
    /// memory that does not depend on the number of elements.
    #[must_use]
    pub fn memory(self, bytes: usize) -> Self {
        Self { memory: Some(bytes), ..self }
    }

    /// Sets a function that is called whenever a part has arrived in host memory, by a thread of the sort. The sort goes on when
    /// it returns.
    ///
    /// ```
    /// use gpu_primitives::{Device, Error, host_sort};
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    ///
    /// let percent = AtomicUsize::new(0);
    /// let note = |progress: host_sort::Progress| percent.store(100 * progress.moved / progress.all, Ordering::Relaxed);
    /// let (mut keys, mut second) = (vec![3u32, 1, 2], vec![0; 3]);
    /// let options = host_sort::Options::new().progress(&note);
    /// host_sort::keys_in_place(&Device::default()?, &mut keys, &mut second, options)?;
    /// assert_eq!(percent.into_inner(), 100);
    /// # Ok::<(), Error>(())
    /// ```
    #[must_use]
    pub fn progress(self, note: &'a (dyn Fn(Progress) + Sync)) -> Self {
        Self { progress: Some(note), ..self }
    }
}

/// Sorts keys into another slice of the host. Allocates host memory for as many keys. Waits.
///
/// # Errors
/// [`Error::LengthMismatch`], [`Error::BitRange`], [`Error::OutOfMemory`] of the host or the device; driver errors. The input is not
/// changed in any case.
pub fn keys<K: RadixKey>(device: &Device, input: &[K], output: &mut [K], options: Options<'_>) -> Result<(), Error> {
    let order = Order { coding: Coding::of::<K>(), code: &code_bytes::<K, K::Code>(code_of, &options) };
    let (from, to) = (Rows::keys(input), RowsMut::keys(output));
    to_another(device, order, from, to, &options)
}

/// Sorts keys together with their values into other slices of the host. Allocates host memory for as many pairs. Waits.
///
/// # Errors
/// Same as [`keys`].
pub fn pairs<K: RadixKey, V: Pod>(
    device: &Device,
    input: (&[K], &[V]),
    output: (&mut [K], &mut [V]),
    options: Options<'_>,
) -> Result<(), Error> {
    let order = Order { coding: Coding::of::<K>(), code: &code_bytes::<K, K::Code>(code_of, &options) };
    let (from, to) = (Rows::pairs(input)?, RowsMut::pairs(output)?);
    to_another(device, order, from, to, &options)
}

/// Sorts keys into another slice of the host, by a number computed from each. Keys with equal numbers keep their order. Allocates
/// host memory for as many keys. Waits.
///
/// # Errors
/// Same as [`keys`].
pub fn keys_by<K: Pod, B: SortBy<K>>(
    device: &Device,
    input: &[K],
    output: &mut [K],
    by: B,
    options: Options<'_>,
) -> Result<(), Error> {
    let order = Order { coding: Coding::by::<K, B>(by), code: &code_bytes::<K, B::Code>(|key| by.code(key), &options) };
    to_another(device, order, Rows::keys(input), RowsMut::keys(output), &options)
}

/// Sorts keys together with their values into other slices of the host, by a number computed from each key. Pairs with equal
/// numbers keep their order. Allocates host memory for as many pairs. Waits.
///
/// # Errors
/// Same as [`keys`].
pub fn pairs_by<K: Pod, V: Pod, B: SortBy<K>>(
    device: &Device,
    input: (&[K], &[V]),
    output: (&mut [K], &mut [V]),
    by: B,
    options: Options<'_>,
) -> Result<(), Error> {
    let order = Order { coding: Coding::by::<K, B>(by), code: &code_bytes::<K, B::Code>(|key| by.code(key), &options) };
    to_another(device, order, Rows::pairs(input)?, RowsMut::pairs(output)?, &options)
}

/// Sorts keys in host memory, with a second slice as long as the first. Waits.
///
/// # Errors
/// [`Error::LengthMismatch`], [`Error::BitRange`], [`Error::OutOfMemory`] of the device; driver errors. The keys are then in some
/// order, and all there.
pub fn keys_in_place<K: RadixKey>(
    device: &Device,
    keys: &mut [K],
    second: &mut [K],
    options: Options<'_>,
) -> Result<(), Error> {
    let order = Order { coding: Coding::of::<K>(), code: &code_bytes::<K, K::Code>(code_of, &options) };
    in_place(device, order, RowsMut::keys(keys), RowsMut::keys(second), &options)
}

/// Sorts keys and values in host memory, with second slices as long as the first. Waits.
///
/// # Errors
/// Same as [`keys_in_place`].
pub fn pairs_in_place<K: RadixKey, V: Pod>(
    device: &Device,
    pairs: (&mut [K], &mut [V]),
    second: (&mut [K], &mut [V]),
    options: Options<'_>,
) -> Result<(), Error> {
    let order = Order { coding: Coding::of::<K>(), code: &code_bytes::<K, K::Code>(code_of, &options) };
    in_place(device, order, RowsMut::pairs(pairs)?, RowsMut::pairs(second)?, &options)
}

/// What a key is sorted by, as bytes that order as it does: the highest first.
type CodeBytes<'a> = dyn Fn(&[u8]) -> [u8; 32] + 'a;

/// The order, for the device and for the host.
#[derive(Clone, Copy)]
struct Order<'a> {
    coding: Coding,
    code: &'a CodeBytes<'a>,
}

/// Returns the function that computes the code of a key from its bytes. Bits that are not compared are 0.
fn code_bytes<K: Pod, C: RadixCode>(code: impl Fn(K) -> C, options: &Options<'_>) -> impl Fn(&[u8]) -> [u8; 32] {
    let (range, flip) = options.order.compared(C::BITS);
    move |key| {
        let code = code(bytemuck::pod_read_unaligned(key)).cut(range.end);
        let mut bytes = [0; 32];
        for (at, shift) in range.clone().step_by(8).enumerate() {
            bytes[31 - at] = code.digits(shift, Sign::NONE) as u8 ^ flip;
        }
        bytes
    }
}

/// The fewest elements of a part.
const LEAST: usize = 64;
/// Parts of fewer elements are copied at less than the rate of the link.
const SHORT: usize = 1 << 20;
/// Elements that are moved by their indices are fewer than 2^32 at a time.
const MOST: usize = 1 << 31;
/// The parts of a pass, if all of them fit: the first is copied to the device, and the last from it, while nothing else is copied.
const PARTS: usize = 32;

/// Returns the number of elements of a part.
fn part_len(device: &Device, order: &Order<'_>, from: &Rows<'_>, options: &Options<'_>) -> Result<usize, Error> {
    let memory = match options.memory {
        Some(bytes) => bytes,
        None => device.memory_free()?.0 / 4 * 3,
    };
    // One part arrives, one is sorted into another, which takes memory of its own, and one leaves.
    let bytes = 6 * (from.key_size + from.value_size) + 2 * order.coding.size + 16;
    Ok((memory / bytes).clamp(LEAST, MOST).min(from.len().div_ceil(PARTS).max(SHORT)))
}

/// Sorts into other memory of the host.
fn to_another(
    device: &Device,
    order: Order<'_>,
    from: Rows<'_>,
    mut to: RowsMut<'_>,
    options: &Options<'_>,
) -> Result<(), Error> {
    expect_len("the output of a sort", from.len(), to.as_rows().len())?;
    let (mut keys, mut values) = (allocate(from.keys.len())?, allocate(from.values.len())?);
    let mut runs = RowsMut { keys: &mut keys, values: &mut values, ..to.reborrow() };
    let sort = Sort::new(device, order, &from, options)?;
    sort.chunks(from, runs.reborrow())?;
    sort.pieces(runs.as_rows(), to)
}

/// Sorts within memory of the host, with more of it.
fn in_place(
    device: &Device,
    order: Order<'_>,
    data: RowsMut<'_>,
    mut second: RowsMut<'_>,
    options: &Options<'_>,
) -> Result<(), Error> {
    expect_len("the second slice of a sort", data.as_rows().len(), second.as_rows().len())?;
    let sort = Sort::new(device, order, &data.as_rows(), options)?;
    // The data do not change here.
    sort.chunks(data.as_rows(), second.reborrow())?;
    let mut merge = Merge { to: data, runs: second.as_rows(), is_done: false };
    sort.pieces(merge.runs, merge.to.reborrow())?;
    merge.is_done = true;
    Ok(())
}

/// A merge that may end early, by an error or by a panic of a function of the caller.
struct Merge<'a> {
    to: RowsMut<'a>,
    runs: Rows<'a>,
    is_done: bool,
}

impl Drop for Merge<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            // What is there is incomplete. The runs are complete.
            self.to.keys.copy_from_slice(self.runs.keys);
            self.to.values.copy_from_slice(self.runs.values);
        }
    }
}

/// Returns zeros. The system makes them when they are touched first, which is when the first pass writes there.
fn allocate(bytes: usize) -> Result<Vec<u8>, Error> {
    if bytes == 0 {
        return Ok(Vec::new());
    }
    let layout = Layout::array::<u8>(bytes).ok().filter(|layout| layout.size() > 0);
    // SAFETY: the layout has a size.
    let address = layout.map_or(std::ptr::null_mut(), |layout| unsafe { alloc_zeroed(layout) });
    if address.is_null() {
        let (free, total) = host_memory();
        return Err(Error::OutOfMemory { requested: bytes, free, total });
    }
    // SAFETY: allocated above with the layout of such a vector, and zeros are bytes.
    Ok(unsafe { Vec::from_raw_parts(address, bytes, bytes) })
}

/// The two passes of a sort.
struct Sort<'a> {
    job: Job<'a>,
    code: &'a CodeBytes<'a>,
    part: usize,
    progress: Mutex<Progress>,
    note: Option<&'a (dyn Fn(Progress) + Sync)>,
}

impl<'a> Sort<'a> {
    fn new(device: &'a Device, order: Order<'a>, from: &Rows<'_>, options: &'a Options<'_>) -> Result<Self, Error> {
        // Bits that do not exist are refused before anything is written.
        order.coding.expect_bits(&options.order)?;
        let part = part_len(device, &order, from, options)?;
        let progress = Mutex::new(Progress { moved: 0, all: 2 * from.len() });
        let job = Job { device, coding: order.coding, order: &options.order };
        Ok(Self { job, code: order.code, part, progress, note: options.progress })
    }

    /// Notes that so many elements have arrived.
    fn moved(&self) -> impl Fn(usize) + Sync + use<'_> {
        let (note, progress) = (self.note, &self.progress);
        move |elements| {
            let mut progress = progress.lock().unwrap_or_else(|error| error.into_inner());
            progress.moved += elements;
            if let Some(note) = note {
                note(*progress);
            }
        }
    }

    /// Returns the chunks of so many elements.
    fn chunk_ranges(&self, len: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let part = self.part;
        (0..len).step_by(part).map(move |start| start..len.min(start + part))
    }

    /// Sorts each chunk.
    fn chunks(&self, from: Rows<'_>, to: RowsMut<'_>) -> Result<(), Error> {
        let parts = self.chunk_ranges(from.len()).map(|range| vec![range]);
        run(&self.job, from, to, parts, &self.moved())
    }

    /// Merges sorted chunks, piece by piece.
    fn pieces(&self, runs: Rows<'_>, to: RowsMut<'_>) -> Result<(), Error> {
        let key = |i: usize| (self.code)(&runs.keys[i * runs.key_size..][..runs.key_size]);
        let cuts = Cuts::new(self.chunk_ranges(runs.len()), self.part, &key);
        run(&self.job, runs, to, cuts, &self.moved())
    }
}
