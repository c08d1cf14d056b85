//! The description of the LSM for the common suite: its options, and the invariants of its levels.

use gpu_dictionary::{Durable, Upsertion, WordKey as Key};
use gpu_dictionary_conformance::{self as dictionary, Family, Random, Value, saved};
use gpu_lsm::{GpuLsm, Options, Parts};
use gpu_primitives::{DeviceVec, Error, Stream};
use std::cell::Cell;
use std::fmt::Debug;
use std::io::ErrorKind;
use std::path::Path;

thread_local! {
    /// The buffer of the dictionaries that this thread creates.
    pub static BUFFER: Cell<usize> = const { Cell::new(0) };
    /// Their budget of device memory.
    pub static BUDGET: Cell<Option<usize>> = const { Cell::new(None) };
}

#[derive(Debug)]
pub struct Lsm;

pub type Modelled<K, V> = dictionary::Modelled<Lsm, K, V>;

impl Family for Lsm {
    type Options = Options;
    type Of<K: Key + Debug, V: Value> = GpuLsm<K, V>;

    fn options(batch: usize) -> Options {
        let options = Options::new().batch_size(batch).buffer(BUFFER.get());
        BUDGET.get().map_or(options, |bytes| options.device_memory(bytes))
    }

    /// Files have no budget, and no buffer.
    fn loaded<K: Key + Debug, V: Value>(lsm: &mut GpuLsm<K, V>, stream: &Stream) {
        if let Some(bytes) = BUDGET.get() {
            lsm.adopt(&Options::new().buffer(BUFFER.get()));
            lsm.set_device_memory(stream, Some(bytes)).unwrap();
        }
    }

    fn tidy<K: Key + Debug, V: Value>(lsm: &mut GpuLsm<K, V>, stream: &Stream) -> Result<(), Error> {
        lsm.cleanup(stream)
    }

    /// A file, or a checkpoint.
    fn persist<K: Key + Debug, V: Value>(
        lsm: &GpuLsm<K, V>,
        stream: &Stream,
        folder: &Path,
        random: &mut Random,
    ) -> GpuLsm<K, V> {
        if random.below(3) == 0 {
            let file = saved(stream, lsm);
            return match BUDGET.get() {
                None => GpuLsm::load(stream, &file[..]),
                Some(_) => GpuLsm::load_with(stream, &file[..], lsm.options()),
            }
            .unwrap();
        }
        match lsm.checkpoint(stream, folder) {
            // It was loaded or built anew since the checkpoint in the folder.
            Err(Error::Io(error)) if error.kind() == ErrorKind::AlreadyExists => {
                std::fs::remove_dir_all(folder).unwrap();
                lsm.checkpoint(stream, folder).unwrap();
            }
            written => written.unwrap(),
        }
        match BUDGET.get() {
            None => GpuLsm::recover(stream, folder),
            Some(_) => GpuLsm::recover_or_new(stream, folder, lsm.options()),
        }
        .unwrap()
    }

    fn check_structure<K: Key + Debug, V: Value>(lsm: &GpuLsm<K, V>, stream: &Stream, when: &str) {
        let levels: Vec<_> = lsm.levels(stream).unwrap().collect();
        let stats = lsm.stats(stream).unwrap();
        assert_eq!(stats.buffered, 0, "levels hold everything, {when}");
        let (mut slots, mut resident, mut tombstones) = (0, 0, 0);
        for &(slot, level) in &levels {
            let Parts { codes, values, marks } = level.parts();
            assert!(codes.to_vec(stream).unwrap().is_sorted(), "level {slot} is not sorted, {when}");
            assert!((1..=stats.batch_size << slot).contains(&level.len()), "the length of level {slot}, {when}");
            assert_eq!(values.len(), if size_of::<V>() == 0 { 0 } else { codes.len() }, "values, {when}");
            let marks = marks.map_or(Vec::new(), |marks| marks.to_vec(stream).unwrap());
            let dead =
                (0..level.len()).filter(|i| marks.get(i / 32).is_some_and(|word| word >> (i % 32) & 1 == 1)).count();
            let has_operands = level.has_operands();
            assert!(
                has_operands || level.has_tombstones() == (dead > 0),
                "level {slot} must have marks only for tombstones, {when}"
            );
            slots |= 1 << slot;
            resident += level.len();
            tombstones += dead;
        }
        assert_eq!(stats.batches, slots, "the levels must be the binary digits of the number of batches, {when}");
        assert_eq!(stats.resident, resident, "{when}");
        // Where values are combined, elements that became nothing are marked, too, and tombstones may have become values.
        let has_operands = levels.iter().any(|(_, level)| level.has_operands());
        assert!(has_operands || stats.tombstones == tombstones, "{when}");
        assert_eq!(stats.levels, levels.len(), "{when}");
    }

    dictionary::keys_in_order!(true);
}

impl dictionary::Combining for Lsm {
    fn upsert<K: Key + Debug, V: Value>(
        lsm: &mut GpuLsm<K, V>,
        stream: &Stream,
        pairs: (&DeviceVec<K>, &DeviceVec<V>),
        operation: impl Upsertion<V>,
    ) -> Result<(), Error> {
        lsm.upsert(stream, pairs, operation)
    }
}
