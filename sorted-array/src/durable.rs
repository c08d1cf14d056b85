//! Checkpoints of arrays.

use crate::{GpuSortedArray, Key, Options, Value};
use gpu_dictionary::Durable;
use gpu_dictionary::checkpoint::{Disk, recover_whole, write_whole};
use gpu_primitives::{Error, Stream};

/// A checkpoint writes the whole array: every update has rewritten it. Needs 1 MiB of host memory and no device memory.
impl<K: Key, V: Value> Durable for GpuSortedArray<K, V> {
    fn checkpoint_to(&self, stream: &Stream, disk: &impl Disk) -> Result<(), Error> {
        write_whole(self, &self.history, stream, disk)
    }

    fn recover_from(stream: &Stream, disk: &impl Disk, options: Option<&Options>) -> Result<Option<Self>, Error> {
        recover_whole(stream, disk, options, |array: &mut Self| &mut array.history)
    }

    /// Takes the keys per bucket.
    fn adopt(&mut self, options: &Options) {
        self.stack.any_mut().set_keys_per_bucket(options.bucket);
    }
}
