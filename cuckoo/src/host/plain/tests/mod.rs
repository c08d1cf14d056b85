//! The table of plain keys, compared with a `HashMap`.

mod hashes;
mod updates;

use super::super::options::WhenFull;
use super::*;
use gpu_dictionary::values_for;
use gpu_primitives::{Device, DeviceVec};
use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;

fn devices() -> impl Iterator<Item = Device> {
    let gpus = (0..Device::cuda_count()).map(|ordinal| Device::cuda(ordinal).unwrap());
    [Device::cpu_checked(), Device::cpu()].into_iter().chain(gpus)
}

/// A table whose hashes have only some bits, and a map that must have the same contents.
struct Modelled<K: PlainKey, V: Pod> {
    stream: Stream,
    table: PlainCuckoo<K, V>,
    model: HashMap<K, V>,
}

impl<K: PlainKey + Eq + Hash + Debug, V: Pod + PartialEq + Debug> Modelled<K, V> {
    fn new(stream: &Stream, bits: Option<u32>) -> Self {
        Self::with_seed(stream, bits, 0)
    }

    fn with_seed(stream: &Stream, bits: Option<u32>, seed: u64) -> Self {
        let mut table = PlainCuckoo::new(stream, Options::new().seed(seed)).unwrap();
        if let Some(bits) = bits {
            table.index.hasher = table.index.hasher.with_bits(bits);
        }
        Self { stream: stream.clone(), table, model: HashMap::new() }
    }

    fn upload(&self, values: &[V]) -> DeviceVec<V> {
        self.stream.upload(&values[..values_for::<V>(values.len())]).unwrap()
    }

    fn insert(&mut self, keys: &[K], values: &[V]) -> Result<(), Error> {
        let pairs = (&self.stream.upload(keys).unwrap(), &self.upload(values));
        self.table.insert(&self.stream, pairs)?;
        self.model.extend(keys.iter().copied().zip(values.iter().copied()));
        Ok(())
    }

    fn delete(&mut self, keys: &[K]) {
        self.table.delete(&self.stream, &self.stream.upload(keys).unwrap()).unwrap();
        self.model.retain(|key, _| !keys.contains(key));
    }

    /// Compares lookups of these keys, and all pairs.
    fn check(&self, asked: &[K]) {
        let (stream, table) = (&self.stream, &self.table);
        let on_device = stream.upload(asked).unwrap();
        let expected: Vec<_> = asked.iter().map(|key| self.model.get(key).copied()).collect();
        assert_eq!(table.lookup(stream, &on_device).unwrap().to_vec(stream).unwrap(), expected);
        let found: Vec<_> = expected.iter().map(|value| u8::from(value.is_some())).collect();
        assert_eq!(table.contains(stream, &on_device).unwrap().to_vec(stream).unwrap(), found);
        assert_eq!(table.len(stream).unwrap(), self.model.len());
        let (keys, values) = table.pairs(stream).unwrap();
        let (keys, values) = (keys.to_vec(stream).unwrap(), values.to_vec(stream).unwrap());
        assert_eq!((keys.len(), values.len()), (self.model.len(), values_for::<V>(self.model.len())));
        for (i, key) in keys.iter().enumerate() {
            let value = if size_of::<V>() == 0 { V::zeroed() } else { values[i] };
            assert_eq!(self.model.get(key), Some(&value), "{key:?}");
        }
    }
}

/// Returns a key whose bytes depend on a number; many numbers differ in one byte only.
fn key<K: Pod>(number: usize) -> K {
    let mut key = K::zeroed();
    let bytes = bytemuck::bytes_of_mut(&mut key);
    let len = bytes.len();
    bytes[number % len] = 1 + (number / len) as u8;
    bytes[(number / 3) % len] ^= (number / (200 * len)) as u8;
    key
}
/// The bytes decide, wherever they are: a slice that is not aligned has the same hashes.
#[test]
fn misaligned_keys() {
    let device = Device::cpu();
    let stream = device.stream().unwrap();
    let bytes: Vec<u8> = (0..=80u8).map(|i| i.wrapping_mul(37)).collect();
    let on_device = stream.upload(&bytes).unwrap();
    // SAFETY: the ten keys lie within the vector, which outlives the slice. Arrays of bytes need no alignment.
    let keys = unsafe {
        DeviceSlice::from_raw_parts(&device, on_device.as_slice().as_ptr().wrapping_add(1).cast::<[u8; 8]>(), 10)
    };
    let aligned = stream.upload(&bytes[1..]).unwrap();
    // SAFETY: as above.
    let same = unsafe { DeviceSlice::from_raw_parts(&device, aligned.as_slice().as_ptr().cast::<[u8; 8]>(), 10) };
    let mut table = PlainCuckoo::<[u8; 8], u32>::new(&stream, Options::new()).unwrap();
    table.insert(&stream, (keys, &stream.upload(&(0..10).collect::<Vec<u32>>()).unwrap())).unwrap();
    let expected: Vec<_> = (0..10).map(Some).collect();
    for keys in [keys, same] {
        assert_eq!(table.lookup(&stream, keys).unwrap().to_vec(&stream).unwrap(), expected);
    }
}

/// A table that may not grow, and has so much room that nothing is displaced. Its file has no room, but can be loaded, and
/// has the same options.
#[test]
fn tables_that_may_not_grow_are_loaded() {
    let stream = Device::cpu().stream().unwrap();
    let options = Options::new().capacity(8000).load_factor(0.95).hashes(2).bucket_width(4);
    let options = options.reseeds(0).evictions(1).when_full(WhenFull::Refuse);
    let keys: Vec<u64> = (0..1000).map(|i| i * i).collect();
    let on_device = stream.upload(&keys).unwrap();
    let table = PlainCuckoo::bulk_build(&stream, (&on_device, &on_device), options).unwrap();
    let mut file = Vec::new();
    table.save(&stream, &mut file).unwrap();
    let loaded = PlainCuckoo::<u64, u64>::load(&stream, &file[..]).unwrap();
    let found = loaded.lookup(&stream, &on_device).unwrap().to_vec(&stream).unwrap();
    assert!(found.into_iter().eq(keys.into_iter().map(Some)));
    let Options { reseeds, evictions, when_full, .. } = loaded.index.table.raw.options;
    assert_eq!((reseeds, evictions, when_full), (0, 1, WhenFull::Refuse));
}
#[test]
fn files_are_checked() {
    let stream = Device::cpu().stream().unwrap();
    let mut both = Modelled::<[u8; 12], u32>::new(&stream, None);
    both.insert(&[key(1), key(2)], &[10, 20]).unwrap();
    let mut file = Vec::new();
    both.table.save(&stream, &mut file).unwrap();
    for len in 0..file.len() {
        let result = PlainCuckoo::<[u8; 12], u32>::load(&stream, &file[..len]);
        assert!(matches!(result, Err(Error::InvalidFile { .. })), "{len} of {} bytes", file.len());
    }
    for at in 0..file.len() {
        let mut damaged = file.clone();
        damaged[at] ^= 4;
        assert!(PlainCuckoo::<[u8; 12], u32>::load(&stream, &damaged[..]).is_err(), "byte {at}");
    }
    let message = PlainCuckoo::<[u8; 16], u32>::load(&stream, &file[..]).unwrap_err().to_string();
    assert!(message.contains("12") && message.contains("16"), "{message}");
    let message = GpuCuckoo::<u64, u32>::load(&stream, &file[..]).unwrap_err().to_string();
    assert!(message.contains("plain keys"), "{message}");
}
