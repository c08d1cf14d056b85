//! The buckets of a table in device memory.

use super::options::Width;
use super::pairs::Sizes;
use crate::device::PROBE_THREADS;
use crate::hash::{Hash, Map};
use crate::view::{CuckooView, TableMut};
use core::any::Any;
use gpu_dictionary::{Carrier, WordCode as KeyCode};
use gpu_primitives::kernel::{Reach, View};
use gpu_primitives::{DeviceVec, Error, Stream};

/// The buckets of a table.
#[derive(Debug)]
pub struct Storage {
    /// All buckets of the map.
    words: DeviceVec<u64>,
    map: AnyMap,
    width: Width,
    sizes: Sizes,
}

/// A [`Map`] for keys of 4 or of 8 bytes.
#[derive(Clone, Copy, Debug)]
pub enum AnyMap {
    Four(Map<u32>),
    Eight(Map<u64>),
}

impl AnyMap {
    /// Finds the markers for keys of so many bytes: see [`Map::new`].
    pub fn new(hash: Hash, key: usize) -> Option<Self> {
        if key == size_of::<u32>() { Map::new(hash).map(Self::Four) } else { Map::new(hash).map(Self::Eight) }
    }

    /// Returns the map of a table with twice as many buckets, if there can be one.
    pub fn doubled(&self) -> Option<Self> {
        match self {
            Self::Four(map) => map.doubled().map(Self::Four),
            Self::Eight(map) => map.doubled().map(Self::Eight),
        }
    }

    /// Returns the hash functions.
    pub fn hash(&self) -> Hash {
        match self {
            Self::Four(map) => map.hash,
            Self::Eight(map) => map.hash,
        }
    }

    /// Returns the map.
    ///
    /// # Panics
    /// If keys have another type.
    fn of<C: KeyCode>(&self) -> Map<C> {
        let map: &dyn Any = match self {
            Self::Four(map) => map,
            Self::Eight(map) => map,
        };
        *map.downcast_ref().expect("the type of the keys")
    }
}

/// Evaluates an expression with the type of keys, the type of values and the constant `WIDTH`, the number of keys per bucket.
macro_rules! with_table {
    ($storage:expr => $code:ident, $carrier:ident $(in $($listed:ty)|+)?, $body:expr) => {
        $crate::host::pairs::with_types!($storage.sizes() => $code, $carrier $(in $($listed)|+)?, {
            match $storage.width() {
                $crate::host::options::Width::Four => {
                    const WIDTH: usize = 4;
                    $body
                }
                $crate::host::options::Width::Eight => {
                    const WIDTH: usize = 8;
                    $body
                }
            }
        })
    };
}

pub(super) use with_table;

/// Returns the number of blocks with a thread for each of `len` elements.
pub fn probe_blocks(len: usize) -> usize {
    len.div_ceil(PROBE_THREADS as usize)
}

impl Storage {
    /// Allocates buckets whose contents are not defined yet.
    pub fn uninit(stream: &Stream, map: AnyMap, width: Width, sizes: Sizes) -> Result<Self, Error> {
        // The division is exact: a bucket has at least 4 slots of 4 bytes.
        let bucket_words = width.keys() * (sizes.key + sizes.value) / size_of::<u64>();
        let words = stream.uninit(map.hash().buckets as usize * bucket_words)?;
        Ok(Self { words, map, width, sizes })
    }

    /// Copies the buckets. Does not wait.
    pub fn try_clone(&self, stream: &Stream) -> Result<Self, Error> {
        let mut words = stream.uninit(self.words.len())?;
        words.copy_from(stream, &self.words)?;
        Ok(Self { words, ..*self })
    }

    /// Returns the table as an argument for kernels on `stream`. `WIDTH` must be the number of keys per bucket, and the types
    /// those of keys and values.
    #[allow(clippy::type_complexity)]
    pub fn view<C: KeyCode, V: Carrier, const WIDTH: usize>(
        &self,
        stream: &Stream,
    ) -> Result<View<'_, CuckooView<C, V, WIDTH>>, Error> {
        self.expect::<C, V, WIDTH>();
        let words = self.words.view(stream)?;
        // SAFETY: the words hold all buckets of the map. The result borrows them, as the view of the words does.
        Ok(unsafe { View::new(CuckooView::new(words.into_param(), self.map.of()), Reach::none()) })
    }

    /// Returns the table as an argument for kernels on `stream` that change it.
    #[allow(clippy::type_complexity)]
    pub fn view_mut<C: KeyCode, V: Carrier, const WIDTH: usize>(
        &mut self,
        stream: &Stream,
    ) -> Result<View<'_, TableMut<C, V, WIDTH>>, Error> {
        self.expect::<C, V, WIDTH>();
        let words = self.words.view_mut(stream)?;
        // SAFETY: the words hold all buckets of the map. The result borrows them, as the view of the words does.
        Ok(unsafe { View::new(TableMut::new(words.into_param(), self.map.of()), Reach::none()) })
    }

    fn expect<C, V, const WIDTH: usize>(&self) {
        let types = Sizes { key: size_of::<C>(), value: size_of::<V>() };
        assert_eq!((WIDTH, types), (self.width.keys(), self.sizes), "the keys per bucket and the types");
    }

    /// Returns the map from keys to buckets.
    pub fn map(&self) -> AnyMap {
        self.map
    }

    /// Returns the number of buckets.
    pub fn buckets(&self) -> u32 {
        self.map.hash().buckets
    }

    /// Returns the hash functions.
    pub fn hash(&self) -> Hash {
        self.map.hash()
    }

    /// Returns the number of keys per bucket.
    pub fn width(&self) -> Width {
        self.width
    }

    /// Returns the sizes of keys and values.
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// Returns the number of slots.
    pub fn slots(&self) -> u64 {
        u64::from(self.buckets()) * self.width.keys() as u64
    }

    /// Returns the device memory in bytes.
    pub fn bytes(&self) -> usize {
        self.words.len() * size_of::<u64>()
    }
}

/// Deliberate bugs in what the kernels are told about the table: the checked device must find them.
#[cfg(test)]
mod planted {
    use super::*;
    use crate::device::Find;
    use crate::{GpuCuckoo, Options};
    use gpu_primitives::{Device, FaultKind, Global};

    fn fault<T>(result: Result<T, Error>) -> FaultKind {
        match result {
            Err(Error::KernelFault(fault)) => fault.kind,
            Err(other) => panic!("another error: {other}"),
            Ok(_) => panic!("the bug was not found"),
        }
    }

    fn table(stream: &Stream) -> (GpuCuckoo<u32, u32>, DeviceVec<u32>) {
        let keys = stream.upload(&(0..1000u32).collect::<Vec<_>>()).unwrap();
        let options = Options::new().seed(0).load_factor(0.8);
        (GpuCuckoo::bulk_build(stream, (&keys, &keys), options).unwrap(), keys)
    }

    #[test]
    fn a_table_with_fewer_buckets_than_it_says() {
        let stream = Device::cpu_checked().stream().unwrap();
        let (mut table, keys) = table(&stream);
        let AnyMap::Four(map) = &mut table.raw.storage.map else { panic!("keys have 4 bytes") };
        map.hash.buckets *= 2;
        assert!(matches!(fault(table.lookup(&stream, &keys)), FaultKind::OutOfBounds { .. }));
        assert!(matches!(fault(table.delete(&stream, &keys)), FaultKind::OutOfBounds { .. }));
        assert!(matches!(fault(table.export(&stream)), FaultKind::OutOfBounds { .. }));
    }

    #[test]
    fn a_table_that_was_freed() {
        let stream = Device::cpu_checked().stream().unwrap();
        let (table, keys) = table(&stream);
        // SAFETY: the memory is not borrowed any more at the launch. The checked device refuses the access, which is
        // what this tests.
        let freed: CuckooView<u32, u32, 8> = unsafe { table.raw.storage.view(&stream).unwrap().into_param() };
        drop(table);
        let mut found = stream.uninit::<u8>(1000).unwrap();
        let mut values = stream.uninit::<u32>(1000).unwrap();
        let keys: View<'_, Global<u32>> = keys.view(&stream).unwrap();
        let kernel = Find::new(freed, keys, values.view_mut(&stream).unwrap(), found.view_mut(&stream).unwrap());
        // SAFETY: as above.
        let result = unsafe { stream.launch(kernel, probe_blocks(1000)) };
        assert!(matches!(fault(result), FaultKind::Freed { .. }));
    }
}
