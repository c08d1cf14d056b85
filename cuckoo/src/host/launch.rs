//! The kernels of a table behind one interface, selected by the size of the values and the width of the buckets.

use crate::kernel::{
    Collect, Erase, FillTiles, Find, PROBE_THREADS, Replace, SETTLE_THREADS, SETTLED_AT_ONCE, Settle, Spill, TellNew,
    TileDigits,
};
use crate::map::{Map, TableMut, bucket_bytes};
use bytemuck::Pod;
use core::any::Any;
use core::marker::PhantomData;
use gpu_primitives::dictionary::KeyCode;
use gpu_primitives::sort::{RadixKey, Sign};
use gpu_primitives::{
    Device, DeviceSlice, DeviceSliceMut, DeviceValue, DeviceVec, Error, Global, GlobalMut, Stream, select, sort,
};

/// Pairs in device memory, with untyped values.
#[derive(Clone, Copy)]
pub struct RawPairs<C> {
    pub keys: GlobalMut<C>,
    /// One value per key, aligned to its size.
    pub values: *mut u8,
}

impl<C: KeyCode> RawPairs<C> {
    /// Returns an empty list with no room.
    pub fn none() -> Self {
        let nowhere = core::ptr::dangling_mut::<u64>();
        // SAFETY: there are no elements.
        Self { keys: unsafe { GlobalMut::from_raw(nowhere.cast(), 0) }, values: nowhere.cast() }
    }

    /// Returns the pairs in the form that kernels take.
    ///
    /// # Safety
    /// The values have the size of `V` and are aligned for it.
    unsafe fn typed<V: Pod>(self) -> Spill<C, V> {
        // SAFETY: there are as many values as keys, of this size.
        Spill { keys: self.keys, values: unsafe { GlobalMut::from_raw(self.values.cast(), self.keys.len()) } }
    }

    /// Returns the pairs as primitives read them.
    ///
    /// # Safety
    /// The requirements of [`typed`](Self::typed). A `K` has the size and alignment of a `C`. The memory meets the
    /// requirements of [`DeviceSlice::from_raw_parts`].
    unsafe fn slices<K: Pod, V: Pod>(self, device: &Device) -> (DeviceSlice<'_, K>, DeviceSlice<'_, V>) {
        let (keys, len) = (self.keys.as_const().as_ptr(), self.keys.len());
        let values = self.values.cast_const().cast();
        // SAFETY: the caller guarantees it; there are as many values as keys.
        unsafe {
            (DeviceSlice::from_raw_parts(device, keys.cast(), len), DeviceSlice::from_raw_parts(device, values, len))
        }
    }

    /// Returns the pairs as primitives write them.
    ///
    /// # Safety
    /// The requirements of [`slices`](Self::slices), except that the memory meets those of
    /// [`DeviceSliceMut::from_raw_parts`].
    unsafe fn slices_mut<K: Pod, V: Pod>(self, device: &Device) -> (DeviceSliceMut<'_, K>, DeviceSliceMut<'_, V>) {
        let (keys, len) = (self.keys.as_const().as_ptr().cast_mut(), self.keys.len());
        let values = self.values.cast();
        // SAFETY: the caller guarantees it; there are as many values as keys.
        unsafe {
            (
                DeviceSliceMut::from_raw_parts(device, keys.cast(), len),
                DeviceSliceMut::from_raw_parts(device, values, len),
            )
        }
    }
}

/// A table in device memory.
#[derive(Clone, Copy)]
pub struct RawTable<C> {
    pub words: GlobalMut<u64>,
    pub map: Map<C>,
}

/// Launches the kernels for one value type and one bucket width.
///
/// # Safety
/// For all methods:
/// - The table's words hold the buckets of its map, for this value type and width.
/// - Pairs have values of this size, aligned to it.
/// - All memory belongs to the stream's device and stays allocated until the work is done. Meanwhile nobody writes what
///   is read, and nobody else uses what is written.
/// - The safety requirements of the kernels hold.
pub trait Launch<C: KeyCode> {
    /// Returns how many 8-byte words a table takes.
    fn words(&self, buckets: u32) -> usize;

    /// Sorts pairs by tile; stable.
    ///
    /// # Safety
    /// The requirements of [`Launch`]. `to` has as many pairs as `from`, in other memory.
    unsafe fn partition(
        &self,
        stream: &Stream,
        from: RawPairs<C>,
        to: RawPairs<C>,
        digits: TileDigits,
    ) -> Result<(), Error>;

    /// Sorts pairs by key; stable. `sign` is that of the key type.
    ///
    /// # Safety
    /// The requirements of [`Launch`]. `to` has as many pairs as `from`, in other memory.
    unsafe fn sort(&self, stream: &Stream, from: RawPairs<C>, to: RawPairs<C>, sign: Sign) -> Result<(), Error>;

    /// Copies the pairs whose flags are set, in order. Returns their number.
    ///
    /// # Safety
    /// The requirements of [`Launch`]. There are as many flags as pairs, and `to` has room for all pairs, in other
    /// memory.
    unsafe fn flagged(
        &self,
        stream: &Stream,
        from: RawPairs<C>,
        flags: &DeviceVec<u8>,
        to: RawPairs<C>,
    ) -> Result<DeviceValue<u64>, Error>;

    /// Launches [`FillTiles`].
    ///
    /// # Safety
    /// The requirements of [`Launch`]. `starts` has one element per tile of the table, and one more.
    unsafe fn fill(
        &self,
        stream: &Stream,
        pairs: RawPairs<C>,
        starts: Global<u32>,
        table: RawTable<C>,
        spill: RawPairs<C>,
        counts: GlobalMut<u64>,
    ) -> Result<(), Error>;

    /// Launches [`Settle`], unless there are no pairs.
    ///
    /// # Safety
    /// The requirements of [`Launch`].
    unsafe fn settle(&self, stream: &Stream, job: SettleJob<C>) -> Result<(), Error>;

    /// Launches [`Find`]. `values` is null if the values are not wanted.
    ///
    /// # Safety
    /// The requirements of [`Launch`]. There is at least one key. If `values` is not null, it has room for one value
    /// per key.
    unsafe fn find(
        &self,
        stream: &Stream,
        table: RawTable<C>,
        keys: Global<C>,
        values: *mut u8,
        found: GlobalMut<u8>,
    ) -> Result<(), Error>;

    /// Launches [`TellNew`].
    ///
    /// # Safety
    /// The requirements of [`Launch`]. There is at least one key.
    unsafe fn tell_new(
        &self,
        stream: &Stream,
        table: RawTable<C>,
        keys: Global<C>,
        is_new: GlobalMut<u8>,
    ) -> Result<(), Error>;

    /// Launches [`Replace`], unless values are zero-sized.
    ///
    /// # Safety
    /// The requirements of [`Launch`]. There is at least one pair.
    unsafe fn replace(
        &self,
        stream: &Stream,
        table: RawTable<C>,
        pairs: RawPairs<C>,
        is_new: Global<u8>,
    ) -> Result<(), Error>;

    /// Launches [`Erase`].
    ///
    /// # Safety
    /// The requirements of [`Launch`]. There is at least one key.
    unsafe fn erase(
        &self,
        stream: &Stream,
        table: RawTable<C>,
        keys: Global<C>,
        erased: GlobalMut<u64>,
    ) -> Result<(), Error>;

    /// Launches [`Collect`].
    ///
    /// # Safety
    /// The requirements of [`Launch`].
    unsafe fn collect(
        &self,
        stream: &Stream,
        table: RawTable<C>,
        pairs: RawPairs<C>,
        count: GlobalMut<u64>,
    ) -> Result<(), Error>;
}

/// The arguments of the kernel that [`Launch::settle`] launches.
pub struct SettleJob<C> {
    pub pairs: RawPairs<C>,
    pub count: Global<u64>,
    pub table: RawTable<C>,
    pub locks: GlobalMut<u32>,
    pub skip_first: bool,
    pub limit: u32,
    pub orphans: RawPairs<C>,
    pub unplaced: GlobalMut<u64>,
}

/// The kernels for values carried as `V` and buckets of `WIDTH` keys.
struct Shape<V, const WIDTH: usize>(PhantomData<V>);

fn blocks(threads: usize, len: usize) -> usize {
    len.div_ceil(threads)
}

/// A code type, and the other key types with this code.
trait Code: KeyCode + RadixKey<Code = Self> {
    type Signed: RadixKey<Code = Self>;
    type Float: RadixKey<Code = Self>;
}

impl Code for u32 {
    type Signed = i32;
    type Float = f32;
}

impl Code for u64 {
    type Signed = i64;
    type Float = f64;
}

/// Sorts pairs by key, as keys of type `K`.
///
/// # Safety
/// The requirements of [`Launch::sort`], for values of type `V`.
unsafe fn sort_as<K: RadixKey<Code: KeyCode>, V: Pod>(
    stream: &Stream,
    from: RawPairs<K::Code>,
    to: RawPairs<K::Code>,
) -> Result<(), Error> {
    // SAFETY: the caller guarantees it; a key and its code have the same size and alignment.
    let ((keys, values), (to_keys, to_values)) =
        unsafe { (from.slices::<K, V>(stream.device()), to.slices_mut::<K, V>(stream.device())) };
    sort::pairs(stream, keys, values, to_keys, to_values, sort::Options::new())
}

impl<C: Code, V: Pod, const WIDTH: usize> Launch<C> for Shape<V, WIDTH> {
    fn words(&self, buckets: u32) -> usize {
        // The division is exact: a bucket has at least 4 slots of 4 bytes.
        buckets as usize * (bucket_bytes::<C, V>(WIDTH) / size_of::<u64>())
    }

    unsafe fn partition(
        &self,
        stream: &Stream,
        from: RawPairs<C>,
        to: RawPairs<C>,
        digits: TileDigits,
    ) -> Result<(), Error> {
        // SAFETY: the caller guarantees it.
        let ((keys, values), (to_keys, to_values)) =
            unsafe { (from.slices::<C, V>(stream.device()), to.slices_mut::<C, V>(stream.device())) };
        sort::pairs_by(stream, keys, values, to_keys, to_values, digits, digits.passes())
    }

    unsafe fn sort(&self, stream: &Stream, from: RawPairs<C>, to: RawPairs<C>, sign: Sign) -> Result<(), Error> {
        // SAFETY: the caller guarantees it.
        unsafe {
            if sign == C::SIGN {
                sort_as::<C, V>(stream, from, to)
            } else if sign == C::Signed::SIGN {
                sort_as::<C::Signed, V>(stream, from, to)
            } else {
                sort_as::<C::Float, V>(stream, from, to)
            }
        }
    }

    unsafe fn flagged(
        &self,
        stream: &Stream,
        from: RawPairs<C>,
        flags: &DeviceVec<u8>,
        to: RawPairs<C>,
    ) -> Result<DeviceValue<u64>, Error> {
        // SAFETY: the caller guarantees it.
        let ((keys, values), (to_keys, to_values)) =
            unsafe { (from.slices::<C, V>(stream.device()), to.slices_mut::<C, V>(stream.device())) };
        select::flagged_pairs(stream, keys, values, flags, to_keys, to_values)
    }

    unsafe fn fill(
        &self,
        stream: &Stream,
        pairs: RawPairs<C>,
        starts: Global<u32>,
        table: RawTable<C>,
        spill: RawPairs<C>,
        counts: GlobalMut<u64>,
    ) -> Result<(), Error> {
        let tiles = starts.len() - 1;
        // SAFETY: the caller guarantees it; a block per tile.
        unsafe {
            let (pairs, spill) = (pairs.typed::<V>(), spill.typed());
            let table = TableMut::<C, V, WIDTH>::new(table.words, table.map);
            let (keys, values) = (pairs.keys.as_const(), pairs.values.as_const());
            stream.launch(FillTiles::new(keys, values, starts, table, spill, counts), tiles)
        }
    }

    unsafe fn settle(&self, stream: &Stream, job: SettleJob<C>) -> Result<(), Error> {
        let most = stream.device().limits().multiprocessors as usize * SETTLED_AT_ONCE;
        let blocks = blocks(SETTLE_THREADS as usize, job.pairs.keys.len()).min(most);
        if blocks == 0 {
            return Ok(());
        }
        // SAFETY: the caller guarantees it; any number of blocks will do.
        unsafe {
            let kernel = Settle::new(
                job.pairs.typed::<V>(),
                job.count,
                TableMut::<C, V, WIDTH>::new(job.table.words, job.table.map),
                job.locks,
                u32::from(job.skip_first),
                job.limit,
                job.orphans.typed(),
                job.unplaced,
            );
            stream.launch(kernel, blocks)
        }
    }

    unsafe fn find(
        &self,
        stream: &Stream,
        table: RawTable<C>,
        keys: Global<C>,
        values: *mut u8,
        found: GlobalMut<u8>,
    ) -> Result<(), Error> {
        let blocks = blocks(PROBE_THREADS as usize, keys.len());
        // SAFETY: the caller guarantees it; a thread per key.
        unsafe {
            let table = TableMut::<C, V, WIDTH>::new(table.words, table.map).as_const();
            let values = GlobalMut::from_raw(values.cast(), if values.is_null() { 0 } else { keys.len() });
            stream.launch(Find::new(table, keys, values, found), blocks)
        }
    }

    unsafe fn tell_new(
        &self,
        stream: &Stream,
        table: RawTable<C>,
        keys: Global<C>,
        is_new: GlobalMut<u8>,
    ) -> Result<(), Error> {
        // SAFETY: the caller guarantees it; a thread per key.
        unsafe {
            let table = TableMut::<C, V, WIDTH>::new(table.words, table.map).as_const();
            stream.launch(TellNew::new(table, keys, is_new), blocks(PROBE_THREADS as usize, keys.len()))
        }
    }

    unsafe fn replace(
        &self,
        stream: &Stream,
        table: RawTable<C>,
        pairs: RawPairs<C>,
        is_new: Global<u8>,
    ) -> Result<(), Error> {
        if size_of::<V>() == 0 {
            return Ok(());
        }
        let blocks = blocks(PROBE_THREADS as usize, pairs.keys.len());
        // SAFETY: the caller guarantees it; a thread per key.
        unsafe {
            let table = TableMut::<C, V, WIDTH>::new(table.words, table.map);
            let pairs = pairs.typed::<V>();
            stream.launch(Replace::new(table, pairs.keys.as_const(), pairs.values.as_const(), is_new), blocks)
        }
    }

    unsafe fn erase(
        &self,
        stream: &Stream,
        table: RawTable<C>,
        keys: Global<C>,
        erased: GlobalMut<u64>,
    ) -> Result<(), Error> {
        // SAFETY: the caller guarantees it; a thread per key.
        unsafe {
            let table = TableMut::<C, V, WIDTH>::new(table.words, table.map);
            stream.launch(Erase::new(table, keys, erased), blocks(PROBE_THREADS as usize, keys.len()))
        }
    }

    unsafe fn collect(
        &self,
        stream: &Stream,
        table: RawTable<C>,
        pairs: RawPairs<C>,
        count: GlobalMut<u64>,
    ) -> Result<(), Error> {
        let slots = table.map.hash.buckets as usize * WIDTH;
        // SAFETY: the caller guarantees it; a thread per slot.
        unsafe {
            let table = TableMut::<C, V, WIDTH>::new(table.words, table.map).as_const();
            stream.launch(Collect::new(table, pairs.typed(), count), blocks(PROBE_THREADS as usize, slots))
        }
    }
}

/// Returns the kernels for a value type and a bucket width, which [`Options`](super::Options) have checked.
pub fn kernels<C: KeyCode, V>(width: usize) -> &'static dyn Launch<C> {
    const { assert!(matches!(size_of::<V>(), 0 | 4 | 8), "values of a cuckoo table have 0, 4 or 8 bytes") };
    let (narrow, wide) = (kernels_32(size_of::<V>(), width), kernels_64(size_of::<V>(), width));
    let either: [&dyn Any; 2] = [&narrow, &wide];
    *either.iter().find_map(|kernels| kernels.downcast_ref()).expect("a code is a u32 or a u64")
}

/// Defines functions that are not generic, so the kernels are compiled once, in this crate, and not in every crate that
/// uses a table.
macro_rules! compiled_here {
    ($($function:ident: $code:ty;)*) => { $(
        fn $function(value_bytes: usize, width: usize) -> &'static dyn Launch<$code> {
            match (value_bytes, width) {
                (0, 4) => &Shape::<(), 4>(PhantomData),
                (0, _) => &Shape::<(), 8>(PhantomData),
                (4, 4) => &Shape::<u32, 4>(PhantomData),
                (4, _) => &Shape::<u32, 8>(PhantomData),
                (_, 4) => &Shape::<u64, 4>(PhantomData),
                (_, _) => &Shape::<u64, 8>(PhantomData),
            }
        }
    )* };
}

compiled_here! {
    kernels_32: u32;
    kernels_64: u64;
}
