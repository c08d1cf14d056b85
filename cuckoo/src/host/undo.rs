//! What a failed insertion did is undone.

use super::claim::{Batch, Claiming, Operation, Repeats, no_history};
use super::options::WhenFull;
use super::pairs::{download, upload};
use super::table::RawTable;
use super::work::{InUse, Work};
use crate::device::Fate;
use gpu_primitives::{Error, Stream};

impl RawTable {
    /// Removes the new keys, puts back the pairs they displaced, and restores the old values. The first `unplaced`
    /// leftovers are the displaced pairs and new ones.
    ///
    /// The cause may be a lack of memory. This allocates nothing on the device, except as a last resort: the insertion has loaded
    /// the kernels before it changed anything.
    pub(super) fn undo(
        &mut self,
        stream: &Stream,
        batch: &Batch<'_>,
        mut work: Work,
        unplaced: usize,
    ) -> Result<(), Error> {
        // The displaced pairs had slots before, and there is as much room again, so a high limit finds it. Each round
        // combines the random choices with other keys.
        const LIMIT: u32 = 1 << 16;
        const ROUNDS: u32 = 32;

        let keys = download(stream, batch.pairs.0)?;
        let (fates, old_values) = work.history(keys.len())?;
        let (fates, old_values) = (download(stream, fates)?, download(stream, old_values)?);
        let positions_of = |some: &[Fate]| {
            let some: Vec<u64> = some.iter().map(|&fate| fate as u64).collect();
            fates.iter().enumerate().filter(move |(_, fate)| some.contains(fate)).map(|(position, _)| position)
        };
        let new_fates = [Fate::Claimed, Fate::Yielded, Fate::Overflowed];
        let mut new_keys: Vec<_> = positions_of(&new_fates).map(|i| keys[i]).collect();
        upload(stream, work.lists.overflow.keys.as_mut_slice(), &new_keys)?;
        self.erase(stream, work.lists.overflow.first(new_keys.len())?.0)?;

        new_keys.sort_unstable();
        let is_old = |key: &u64| new_keys.binary_search(key).is_err();
        let (left_keys, left_values) = work.leftovers(unplaced)?;
        let leftovers = download(stream, left_keys)?.into_iter().zip(download(stream, left_values)?);
        let displaced: Vec<_> = leftovers.filter(|(key, _)| is_old(key)).collect();
        let mut displaced_len = displaced.len();
        work.lists.leftovers.fill_from_host(stream, displaced)?;
        for _ in 0..ROUNDS {
            if displaced_len == 0 {
                break;
            }
            // SAFETY: the displaced keys were in the table before, and are not in it now. The work is for this table.
            let left = unsafe { work.place_leftovers(stream, &mut self.storage, displaced_len, LIMIT)? };
            self.placed += (displaced_len - left) as u64;
            displaced_len = left;
        }
        if displaced_len > 0 {
            // Grow the table despite its options rather than lose a pair. This does allocate.
            let growing = self.options.clone().when_full(WhenFull::Grow);
            self.build_with(stream, work.leftovers(displaced_len)?, 0, growing)?;
        }

        let merged = positions_of(&[Fate::Merged]).map(|i| (keys[i], old_values[i])).filter(|(key, _)| is_old(key));
        let merged: Vec<_> = merged.collect();
        let merged_len = merged.len();
        work.lists.leftovers.fill_from_host(stream, merged)?;
        // SAFETY: all of these keys are different, and in the table again.
        unsafe { self.assign_leftovers(stream, &mut work, merged_len) }
    }

    /// Undoes an insertion that failed before its keys were counted: an operation has panicked, on a CPU.
    pub(super) fn undo_uncounted(&mut self, stream: &Stream, batch: &Batch<'_>, mut work: Work) -> Result<(), Error> {
        let unplaced = work.counters.read(stream)?.unplaced as usize;
        self.placed = self.count_live(stream)? + self.erased.get(stream)?;
        self.undo(stream, batch, work, unplaced)
    }

    /// Replaces the values of keys by those of the first `len` leftovers. Does not wait; allocates nothing.
    ///
    /// # Safety
    /// The leftovers have different keys, which are all in the table.
    unsafe fn assign_leftovers(&mut self, stream: &Stream, work: &mut Work, len: usize) -> Result<(), Error> {
        let InUse { claims, .. } = work.counters.in_use()?;
        let claiming = Claiming {
            pairs: work.lists.leftovers.first(len)?,
            count: None,
            repeats: Repeats::None,
            history: &mut no_history(stream, self.storage.sizes())?,
            overflow: &mut work.lists.overflow,
            counts: claims,
        };
        // SAFETY: the keys are different and in the table. So there is no overflow.
        unsafe { claiming.launch(stream, &mut self.storage, Operation::Latest) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{GpuCuckoo, Options};
    use bytemuck::{Pod, Zeroable};
    use gpu_primitives::operator::Recorded;
    use gpu_primitives::scan::{Monoid, Sum};
    use gpu_primitives::{CpuOptions, Device};

    /// A sum that panics on a CPU if it is this number. On a GPU it would not.
    #[repr(C)]
    #[derive(Clone, Copy, Pod, Zeroable)]
    struct SumBut(u32);

    impl Monoid<u32> for SumBut {
        fn identity(&self) -> u32 {
            0
        }

        fn combine(&self, a: u32, b: u32) -> u32 {
            assert_ne!(a + b, self.0, "this sum is not allowed");
            a + b
        }

        fn recorded() -> Recorded {
            <Sum as Monoid<u32>>::recorded()
        }
    }

    fn pairs(stream: &Stream, table: &GpuCuckoo<u32, u32>) -> Vec<(u32, u32)> {
        table.export(stream).unwrap().to_vec(stream).unwrap()
    }

    /// Upserts these pairs with a sum that panics, into a table of 100 pairs whose values are 1000 times their keys.
    fn check_panic(device: &Device, capacity: usize, batch: &[(u32, u32)], forbidden: u32) {
        let stream = device.stream().unwrap();
        let mut table = GpuCuckoo::<u32, u32>::new(&stream, Options::new().seed(0).capacity(capacity)).unwrap();
        let present: Vec<u32> = (0..100).collect();
        let values: Vec<u32> = present.iter().map(|key| 1000 * key).collect();
        table.insert(&stream, (&stream.upload(&present).unwrap(), &stream.upload(&values).unwrap())).unwrap();
        let expected: Vec<(u32, u32)> = present.iter().copied().zip(values).collect();

        let (keys, values): (Vec<u32>, Vec<u32>) = batch.iter().copied().unzip();
        let (keys, values) = (stream.upload(&keys).unwrap(), stream.upload(&values).unwrap());
        let error = table.upsert(&stream, (&keys, &values), SumBut(forbidden)).unwrap_err();
        assert!(matches!(error, Error::KernelFault(_)), "{error}");
        assert_eq!(table.len(&stream).unwrap(), 100);
        assert_eq!(pairs(&stream, &table), expected);
        // The table goes on as usual.
        table.upsert(&stream, (&keys, &values), Sum).unwrap();
        assert!(table.len(&stream).unwrap() > 100);
        table.delete(&stream, &keys).unwrap();
        table.delete(&stream, &stream.upload(&present).unwrap()).unwrap();
        assert_eq!((table.len(&stream).unwrap(), pairs(&stream, &table)), (0, vec![]));
    }

    #[test]
    fn operations_that_panic_change_nothing() {
        for device in [Device::cpu(), Device::cpu_checked()] {
            // A new key twice; a present key, after new and present ones.
            check_panic(&device, 1000, &[(101, 1), (102, 1), (102, 1)], 2);
            check_panic(&device, 1000, &[(101, 1), (5, 1), (6, 1), (102, 1), (7, 1)], 7001);
            // The sum of equal keys panics after they were inserted.
            check_panic(&device, 1000, &[(101, 1), (5, 1), (102, 1), (102, 2), (102, 4)], 7);
            // So many that some wait until their fate is noted.
            let many: Vec<(u32, u32)> = (50..700).map(|key| (key, 3)).chain([(99, 4)]).collect();
            check_panic(&device, 2000, &many, 99_003);
            check_panic(&device, 2000, &many, 99_007);
        }
    }

    /// Some parts end with a panic, others do not begin, and buckets are full.
    #[test]
    fn operations_that_panic_on_many_workers() {
        for workers in [1, 2, 5] {
            let device = Device::cpu_with(CpuOptions { workers: Some(workers), ..CpuOptions::default() });
            // The present keys come at the beginning, in the middle and at the end.
            for (first, capacity) in [(0, 0), (20_000, 40_000), (39_000, 33_000)] {
                let mut many: Vec<(u32, u32)> = (50..40_000).map(|key| (key, 1)).collect();
                many.rotate_right(first);
                check_panic(&device, capacity, &many, 60_001);
            }
        }
    }

    /// A table without memory for its kernels has not changed.
    #[test]
    fn kernels_that_cannot_be_loaded() {
        let gpus = (0..Device::cuda_count()).map(|ordinal| Device::cuda(ordinal).unwrap());
        for device in [Device::cpu(), Device::cpu_checked()].into_iter().chain(gpus) {
            let stream = device.stream().unwrap();
            let keys = stream.upload(&[1u32, 2, 3]).unwrap();
            let mut table = GpuCuckoo::bulk_build(&stream, (&keys, &keys), Options::new()).unwrap();
            let gone = stream.upload(&[2u32, 9]).unwrap();
            let (new, values) = (stream.upload(&[3u32, 4]).unwrap(), stream.upload(&[30u32, 40]).unwrap());
            // The kernels are what an insertion takes first.
            for update in [false, true] {
                stream.fail_allocation_after(Some(0));
                let result = match update {
                    false => table.insert(&stream, (&new, &values)),
                    true => table.update(&stream, (&new, &values), &gone),
                };
                stream.fail_allocation_after(None);
                assert!(matches!(result, Err(Error::OutOfMemory { requested: 0, .. })), "{result:?}");
                assert_eq!(pairs(&stream, &table), [(1, 1), (2, 2), (3, 3)]);
            }
            table.update(&stream, (&new, &values), &gone).unwrap();
            assert_eq!(pairs(&stream, &table), [(1, 1), (3, 30), (4, 40)]);
            // They are loaded: nothing else is needed for a batch that is as large.
            stream.fail_allocation_after(Some(0));
            let result = table.insert(&stream, (&new, &values));
            stream.fail_allocation_after(None);
            assert_eq!(result.is_ok(), table.raw.work.is_some(), "{result:?}");
        }
    }

    /// Pairs that could not even be tried are still there: the kernel is not launched for the table of another device.
    #[test]
    fn leftovers_stay_if_no_kernel_runs() {
        let (home, other) = (Device::cpu().stream().unwrap(), Device::cpu_checked().stream().unwrap());
        let mut table = GpuCuckoo::<u32, u32>::new(&other, Options::new()).unwrap();
        let mut work = Work::new(&home, &table.raw.storage).unwrap();
        work.lists.overflow.reserve(&home, 3).unwrap();
        work.lists.leftovers.reserve(&home, 3).unwrap();
        work.lists.leftovers.fill_from_host(&home, vec![(7, 70), (8, 80), (9, 90)]).unwrap();
        // SAFETY: the keys are different and not in the table. No kernel is launched.
        let result = unsafe { work.place_leftovers(&home, &mut table.raw.storage, 3, 1) };
        assert!(matches!(result, Err(Error::WrongDevice { .. })), "{result:?}");
        let (keys, values) = work.leftovers(3).unwrap();
        assert_eq!(download(&home, keys).unwrap(), [7, 8, 9]);
        assert_eq!(download(&home, values).unwrap(), [70, 80, 90]);
    }

    /// If the host knew of fewer keys than there are, the kernel would still write within its bounds.
    #[test]
    fn pairs_without_room_are_not_written() {
        for device in [Device::cpu(), Device::cpu_checked()] {
            let stream = device.stream().unwrap();
            let keys = stream.upload(&(0..500).collect::<Vec<u32>>()).unwrap();
            let mut table = GpuCuckoo::bulk_build(&stream, (&keys, &keys), Options::new()).unwrap();
            table.raw.placed -= 200;
            assert_eq!(table.raw.count_live(&stream).unwrap(), 500);
            let some = pairs(&stream, &table);
            assert_eq!(some.len(), 300);
            assert!(some.iter().all(|&(key, value)| key == value && key < 500));
        }
    }
}
