//! The table: insertions by kernels of the user.

use super::build::lock_words;
use super::query::expect_width;
use super::table::{GpuCuckoo, RawTable};
use crate::view_mut::{COUNTERS, CuckooMut};
use gpu_dictionary::{Value, WordKey as Key};
use gpu_primitives::kernel::{Reach, View};
use gpu_primitives::{DeviceVec, Error, Stream};

/// What kernels of the user need to insert, and the number of keys they have inserted since the host knew it.
#[derive(Debug)]
pub struct Additions {
    /// One bit per bucket, all zero while no kernel runs.
    locks: DeviceVec<u32>,
    /// The number of keys is the sum of these.
    counters: DeviceVec<u64>,
}

impl Additions {
    fn new(stream: &Stream, buckets: u32) -> Result<Self, Error> {
        Ok(Self { locks: stream.zeroed(lock_words(buckets))?, counters: stream.zeroed(COUNTERS)? })
    }

    /// Makes a copy. Does not wait.
    pub fn try_clone(&self, stream: &Stream) -> Result<Self, Error> {
        let mut counters = stream.uninit(COUNTERS)?;
        counters.copy_from(stream, &self.counters)?;
        Ok(Self { locks: stream.zeroed(self.locks.len())?, counters })
    }

    /// Returns the number of keys. Waits.
    pub fn count(&self, stream: &Stream) -> Result<u64, Error> {
        Ok(self.counters.to_vec(stream)?.into_iter().sum())
    }
}

impl<K: Key, V: Value> GpuCuckoo<K, V> {
    /// Returns the table as an argument for a kernel of your own that inserts: see [`CuckooMut`]. The kernel sees a key as
    /// the unsigned integer with the same bits, and a value as its [carrier](Value::Carrier). `WIDTH` must be the bucket
    /// width of the table, which is 8 unless the options say otherwise. Does not wait.
    ///
    /// The kernel moves no keys and the table does not grow while it runs. [`reserve`](Self::reserve) room for its keys
    /// before, and let it keep the pairs that find none.
    ///
    /// ```
    /// # #![allow(unsafe_op_in_unsafe_fn)]
    /// use gpu_cuckoo::{CuckooMut, GpuCuckoo, Insertion, Options};
    /// use gpu_primitives::kernel::kernel;
    /// use gpu_primitives::{Device, Error, Global, GlobalMut, thread};
    ///
    /// /// Counts words. Sets `full` for those that find no room.
    /// ///
    /// /// # Safety
    /// /// The launch has at least one thread per word, and `full` as many elements. While the kernel runs, nobody else uses
    /// /// the table or `full`, and nobody writes the words.
    /// #[kernel(threads = 128)]
    /// pub unsafe fn count_words(words: Global<u32>, counts: CuckooMut<u32, u32>, full: GlobalMut<u8>) {
    ///     let i = (thread::block_idx_x() * 128 + thread::thread_idx_x()) as usize;
    ///     if i < words.len() {
    ///         let outcome = counts.upsert(words.get(i), 1, |old, new| old + new);
    ///         full.set(i, (outcome == Insertion::Full) as u8);
    ///     }
    /// }
    ///
    /// let stream = Device::cpu().stream()?;
    /// let mut counts = GpuCuckoo::<u32, u32>::new(&stream, Options::new().seed(0))?;
    /// counts.reserve(&stream, 1000)?;
    /// let words = stream.upload(&[7u32, 3, 7, 7])?;
    /// let mut full = stream.zeroed::<u8>(4)?;
    /// let kernel = CountWords::new(words.view(&stream)?, counts.view_mut(&stream)?, full.view_mut(&stream)?);
    /// // SAFETY: one block has a thread for each of the words, and nothing else uses these buffers.
    /// unsafe { stream.launch(kernel, 1)? };
    /// assert_eq!(full.to_vec(&stream)?, [0; 4]);
    /// assert_eq!(counts.len(&stream)?, 2);
    /// assert_eq!(counts.export(&stream)?.to_vec(&stream)?, [(3, 1), (7, 3)]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`Error::InvalidOption`] if `WIDTH` is not the table's bucket width.
    /// - [`Error::WrongDevice`].
    /// - [`Error::OutOfMemory`] for a bit per bucket.
    /// - [`Error::NotRecordable`] while the stream is recording.
    #[allow(clippy::type_complexity)]
    pub fn view_mut<const WIDTH: usize>(
        &mut self,
        stream: &Stream,
    ) -> Result<View<'_, CuckooMut<K::Code, V::Carrier, WIDTH>>, Error> {
        let Additions { locks, counters } = self.raw.additions(stream, WIDTH)?;
        // SAFETY: the memory is borrowed as long as the table, which has the result.
        let (locks, counters) =
            unsafe { (locks.view_mut(stream)?.into_param(), counters.view_mut(stream)?.into_param()) };
        let table = self.raw.storage.view_mut(stream)?;
        // SAFETY: there is a lock for every bucket. The result borrows the table, as the three views do.
        Ok(unsafe {
            let table = CuckooMut::new(table.into_param(), locks, counters);
            View::new(table, Reach::none())
        })
    }

    /// Makes room for `additional` more keys at the load factor of the table: rebuilds it if they would exceed that. Waits.
    ///
    /// Insertions by the host need no reservation. It saves them the doublings.
    ///
    /// ```
    /// use gpu_cuckoo::{GpuCuckoo, Options};
    /// use gpu_primitives::{Device, Error};
    ///
    /// let stream = Device::cpu().stream()?;
    /// let mut table = GpuCuckoo::<u32, u32>::new(&stream, Options::new().load_factor(0.5))?;
    /// table.reserve(&stream, 100_000)?;
    /// assert!(table.stats(&stream)?.slots >= 200_000);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`rebuild`](Self::rebuild). After an error the table is unchanged.
    pub fn reserve(&mut self, stream: &Stream, additional: usize) -> Result<(), Error> {
        self.raw.reserve(stream, additional)
    }
}

impl RawTable {
    /// Returns what kernels of the user need to insert, which belongs to the buckets of now.
    fn additions(&mut self, stream: &Stream, width: usize) -> Result<&mut Additions, Error> {
        expect_width(width, self.storage.width())?;
        // A graph could be launched when the table has other buckets.
        stream.refuse_recording("a table that kernels change")?;
        if self.additions.is_none() {
            self.additions = Some(Additions::new(stream, self.storage.buckets())?);
        }
        Ok(self.additions.as_mut().expect("it was made above"))
    }

    fn reserve(&mut self, stream: &Stream, additional: usize) -> Result<(), Error> {
        let wanted = self.len(stream)?.saturating_add(additional);
        if wanted as f64 > self.storage.slots() as f64 * self.options.load_factor {
            self.rebuild(stream, wanted)?;
        }
        Ok(())
    }

    /// Adds the keys that kernels of the user have inserted to those that the host knows of. Waits if there may be any.
    pub(super) fn count_additions(&mut self, stream: &Stream) -> Result<(), Error> {
        if let Some(additions) = &self.additions {
            self.placed += additions.count(stream)?;
            self.additions = None;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::{Enrol, THREADS, Tally, counted_once};
    use crate::{Insertion, Options};
    use gpu_dictionary::WordCode as KeyCode;
    use gpu_primitives::{CpuOptions, Device};
    use std::collections::{BTreeMap, HashMap};
    use std::hash::Hash;

    fn devices() -> impl Iterator<Item = Device> {
        let gpus = (0..Device::cuda_count()).map(|ordinal| Device::cuda(ordinal).unwrap());
        [Device::cpu_checked(), Device::cpu()].into_iter().chain(gpus)
    }

    /// Counts keys by the kernel. Returns what became of them.
    fn tally<K: Key + KeyCode<Code = K>, const WIDTH: usize>(
        stream: &Stream,
        table: &mut GpuCuckoo<K, u64>,
        keys: &[K],
    ) -> Vec<u8> {
        let on_device = stream.upload(keys).unwrap();
        let (mut outcomes, mut wrong) = (stream.zeroed(keys.len()).unwrap(), stream.zeroed(1).unwrap());
        let kernel = Tally::new(
            on_device.view(stream).unwrap(),
            table.view_mut::<WIDTH>(stream).unwrap(),
            outcomes.view_mut(stream).unwrap(),
            wrong.view_mut(stream).unwrap(),
        );
        // SAFETY: there is a thread and an outcome per key.
        unsafe { stream.launch(kernel, keys.len().div_ceil(THREADS as usize)).unwrap() };
        assert_eq!(wrong.to_vec(stream).unwrap(), [0]);
        outcomes.to_vec(stream).unwrap()
    }

    /// Many threads count the same keys, in a table with room and in one that is too small, also after deletions.
    fn check_tally<K: Key + KeyCode<Code = K> + Hash, const WIDTH: usize>(stream: &Stream) {
        let key = |x: usize| K::from_u64((x as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 7);
        for (capacity, domain) in [(3000, 700), (0, 700)] {
            let options = Options::new().seed(0).bucket_width(WIDTH).capacity(capacity);
            let mut table = GpuCuckoo::<K, u64>::new(stream, options).unwrap();
            let keys: Vec<K> = (0..2100).map(|i| key(i * 13 % domain)).collect();
            let mut counts = HashMap::<K, u64>::new();
            for round in 0..2 {
                let outcomes = tally::<K, WIDTH>(stream, &mut table, &keys);
                let mut new = 0;
                let before = counts.len();
                for (&key, &outcome) in keys.iter().zip(&outcomes) {
                    new += usize::from(outcome == Insertion::New as u8);
                    if outcome != Insertion::Full as u8 {
                        *counts.entry(key).or_insert(counted_once(key) - 1) += 1;
                    }
                }
                assert_eq!((new, table.len(stream).unwrap()), (counts.len() - before, counts.len()), "round {round}");
                let full = outcomes.iter().filter(|&&outcome| outcome == Insertion::Full as u8).count();
                assert_eq!(full > 0, capacity == 0, "{full} pairs found no room");
                let copy = table.try_clone(stream).unwrap();
                assert_eq!(copy.len(stream).unwrap(), counts.len());

                // What found no room is inserted by the host, and the table grows.
                let (left, _): (Vec<K>, Vec<u8>) =
                    keys.iter().zip(&outcomes).filter(|(_, outcome)| **outcome == Insertion::Full as u8).unzip();
                let values: Vec<u64> = left.iter().map(|&key| counted_once(key)).collect();
                let pairs = (&stream.upload(&left).unwrap(), &stream.upload(&values).unwrap());
                if round == 0 {
                    table.insert(stream, pairs).unwrap();
                    counts.extend(left.iter().copied().zip(values));
                    // Half of the keys go, and leave empty slots and dead ones.
                    let gone: Vec<K> = (0..domain / 2).map(key).collect();
                    table.delete(stream, &stream.upload(&gone).unwrap()).unwrap();
                    counts.retain(|key, _| !gone.contains(key));
                    if capacity == 0 {
                        break;
                    }
                }
            }
            let mut expected: Vec<(K, u64)> = counts.into_iter().collect();
            expected.sort_unstable_by_key(|pair| pair.0);
            assert_eq!(table.export(stream).unwrap().to_vec(stream).unwrap(), expected);
            assert_eq!(table.len(stream).unwrap(), expected.len());
        }
    }

    #[test]
    fn kernels_upsert() {
        for device in devices() {
            let stream = device.stream().unwrap();
            check_tally::<u32, 8>(&stream);
            check_tally::<u32, 4>(&stream);
            check_tally::<u64, 8>(&stream);
            check_tally::<u64, 4>(&stream);
        }
    }

    /// So many keys that all workers of a native body have some.
    #[test]
    fn many_workers_upsert() {
        for workers in [1, 2, 5] {
            let device = Device::cpu_with(CpuOptions { workers: Some(workers), ..CpuOptions::default() });
            let stream = device.stream().unwrap();
            let options = Options::new().seed(0).capacity(20_000);
            let mut table = GpuCuckoo::<u32, u64>::new(&stream, options).unwrap();
            let keys: Vec<u32> = (0..50_000u32).map(|i| i.wrapping_mul(0x9E37_79B1) % 3001).collect();
            let outcomes = tally::<u32, 8>(&stream, &mut table, &keys);
            assert!(outcomes.iter().all(|&outcome| outcome != Insertion::Full as u8), "{workers} workers");
            let mut counts = BTreeMap::<u32, u64>::new();
            keys.iter().for_each(|&key| *counts.entry(key).or_insert(counted_once(key) - 1) += 1);
            assert_eq!(table.len(&stream).unwrap(), counts.len());
            let pairs = table.export(&stream).unwrap().to_vec(&stream).unwrap();
            assert_eq!(pairs, counts.into_iter().collect::<Vec<_>>(), "{workers} workers");
        }
    }

    /// Equal keys from many threads give one pair, with the value of one of them. Calls of the host see the pairs.
    #[test]
    fn kernels_insert() {
        for device in devices() {
            let stream = device.stream().unwrap();
            let mut set = GpuCuckoo::<u32, ()>::new(&stream, Options::new().seed(0)).unwrap();
            let mut positions = GpuCuckoo::<u32, u32>::new(&stream, Options::new().seed(0)).unwrap();
            set.reserve(&stream, 2000).unwrap();
            positions.reserve(&stream, 2000).unwrap();
            let keys: Vec<u32> = (0..1000).map(|i| i % 400).collect();
            let on_device = stream.upload(&keys).unwrap();
            let mut new = stream.zeroed::<u32>(2).unwrap();
            for _ in 0..2 {
                let kernel = Enrol::new(
                    on_device.view(&stream).unwrap(),
                    set.view_mut(&stream).unwrap(),
                    positions.view_mut(&stream).unwrap(),
                    new.view_mut(&stream).unwrap(),
                );
                // SAFETY: there is a thread per key.
                unsafe { stream.launch(kernel, 1000usize.div_ceil(THREADS as usize)).unwrap() };
                assert_eq!(new.to_vec(&stream).unwrap(), [400, 400]);
            }
            assert_eq!(set.keys(&stream).unwrap().to_vec(&stream).unwrap(), (0..400).collect::<Vec<_>>());
            for (key, position) in positions.export(&stream).unwrap().to_vec(&stream).unwrap() {
                assert_eq!(keys[position as usize], key);
            }
            // The host goes on from there: it replaces, deletes, grows and rebuilds.
            positions.insert(&stream, (&on_device, &on_device)).unwrap();
            assert_eq!(positions.len(&stream).unwrap(), 400);
            set.delete(&stream, &on_device).unwrap();
            assert!(set.is_empty(&stream).unwrap());
            positions.rebuild(&stream, 5000).unwrap();
            assert_eq!(positions.len(&stream).unwrap(), 400);
            assert_eq!(positions.lookup(&stream, &on_device).unwrap().values.to_vec(&stream).unwrap(), keys);
        }
    }

    #[test]
    fn a_view_has_the_width_of_the_table() {
        let stream = Device::cpu().stream().unwrap();
        let mut table = GpuCuckoo::<u32, u32>::new(&stream, Options::new().seed(0).bucket_width(4)).unwrap();
        assert!(table.view_mut::<4>(&stream).is_ok());
        assert!(matches!(table.view_mut::<8>(&stream), Err(Error::InvalidOption { .. })));
    }
}
