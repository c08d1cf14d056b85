//! Counts and ranges into given room, which never wait; and counts of few short intervals, which have a kernel of their own.

use bytemuck::Pod;
use gpu_conformance::data::random;
use gpu_conformance::{cases, run};
use gpu_dictionary::{Key, Value};
use gpu_lsm::GpuLsm;
use gpu_primitives::scan::Sum;
use gpu_primitives::{Device, DeviceSliceMut, DeviceValue, DeviceVec, Error, Stream};
use gpu_sorted_array::{GpuSortedArray, Options};
use std::collections::BTreeMap;
use std::process::ExitCode;

fn main() -> ExitCode {
    run(cases![
        levels_of_u32,
        levels_of_sets,
        levels_of_wide_keys,
        levels_of_short_keys,
        misaligned_values,
        pending_upserts,
        one_sorted_array,
        intervals_of_every_length,
        too_little_room,
        in_a_graph,
        wrong_lengths,
    ])
}

/// Pairs on the device, and the same pairs in a map.
struct Both<K: Key, V: Value> {
    lsm: GpuLsm<K, V>,
    model: BTreeMap<K, V>,
}

/// The numbers of intervals: all but the last are few for the device.
fn numbers_of_intervals(stream: &Stream) -> [usize; 4] {
    [1, 3, 20, 32 * stream.device().limits().multiprocessors as usize + 1]
}

/// Creates a dictionary whose batches become levels at once.
fn several_levels<K: Key, V: Value>(stream: &Stream, batch_size: usize) -> GpuLsm<K, V> {
    GpuLsm::new(stream, gpu_lsm::Options::new().batch_size(batch_size).buffer(0)).unwrap()
}

/// Several levels, with replaced and deleted keys.
fn levels<K: Key + Ord, V: Value>(stream: &Stream, key: fn(u64) -> K, value: fn(u64) -> V) -> Both<K, V> {
    let mut both = Both { lsm: several_levels(stream, 64), model: BTreeMap::new() };
    let mut numbers = random(3);
    for _ in 0..7 {
        let keys: Vec<K> = (&mut numbers).take(70).map(key).collect();
        let values: Vec<V> = (&mut numbers).take(70).map(value).collect();
        let deleted: Vec<K> = (&mut numbers).take(9).map(key).collect();
        both.model.extend(keys.iter().copied().zip(values.iter().copied()));
        both.model.retain(|key, _| !deleted.contains(key));
        let values = if size_of::<V>() == 0 { &[] } else { &values[..] };
        let pairs = (&stream.upload(&keys).unwrap(), &stream.upload(values).unwrap());
        both.lsm.update(stream, pairs, &stream.upload(&deleted).unwrap()).unwrap();
    }
    assert!(both.lsm.stats(stream).unwrap().levels > 2);
    both
}

/// Intervals of keys, some of which end before they begin.
fn intervals<K: Ord + Copy>(len: usize, key: fn(u64) -> K) -> (Vec<K>, Vec<K>) {
    let ends: Vec<[K; 2]> = random(7).zip(random(8)).take(len).map(|(a, b)| [key(a), key(b)]).collect();
    let ordered =
        |i: usize| if i % 5 == 4 { ends[i] } else { [ends[i][0].min(ends[i][1]), ends[i][0].max(ends[i][1])] };
    ((0..len).map(|i| ordered(i)[0]).collect(), (0..len).map(|i| ordered(i)[1]).collect())
}

/// What each interval has.
fn expected<K: Ord + Copy, V: Copy>(model: &BTreeMap<K, V>, low: &[K], high: &[K]) -> Vec<Vec<(K, V)>> {
    let within = |(low, high): (&K, &K)| match low <= high {
        true => model.range(*low..=*high).map(|(&key, &value)| (key, value)).collect(),
        false => Vec::new(),
    };
    low.iter().zip(high).map(within).collect()
}

/// The pairs that a call has written.
fn written<K: Pod, V: Pod>(
    stream: &Stream,
    offsets: &DeviceVec<u64>,
    keys: &DeviceVec<K>,
    values: &[V],
) -> Vec<Vec<(K, V)>> {
    let offsets = offsets.to_vec(stream).unwrap();
    // What lies behind the last pair need not have been written.
    let keys = keys.slice(..offsets[offsets.len() - 1] as usize).unwrap().to_vec(stream).unwrap();
    let value = |i: usize| if size_of::<V>() == 0 { V::zeroed() } else { values[i] };
    let range = |ends: &[u64]| (ends[0] as usize..ends[1] as usize).map(|i| (keys[i], value(i))).collect();
    offsets.windows(2).map(range).collect()
}

/// Compares all counts and ranges with a map.
fn check<K: Key + Ord, V: Value + PartialEq>(stream: &Stream, both: &Both<K, V>, key: fn(u64) -> K) {
    for len in numbers_of_intervals(stream) {
        let (low, high) = intervals(len, key);
        let expected = expected(&both.model, &low, &high);
        let counts: Vec<u64> = expected.iter().map(|pairs| pairs.len() as u64).collect();
        let (low, high) = (stream.upload(&low).unwrap(), stream.upload(&high).unwrap());
        assert_eq!(both.lsm.count(stream, &low, &high).unwrap().to_vec(stream).unwrap(), counts, "{len} intervals");
        let mut on_device = stream.upload(&vec![77u64; len]).unwrap();
        both.lsm.count_into(stream, &low, &high, &mut on_device).unwrap();
        assert_eq!(on_device.to_vec(stream).unwrap(), counts, "{len} intervals, not waiting");

        // At first with too much room, then with just enough.
        let mut room = 7 * 80 * len;
        for _ in 0..2 {
            let mut offsets = stream.uninit(len + 1).unwrap();
            let mut keys = stream.uninit::<K>(room).unwrap();
            let mut values = stream.uninit::<V>(if size_of::<V>() == 0 { 0 } else { room }).unwrap();
            let to = (&mut keys, &mut values);
            let needed = both.lsm.range_into(stream, &low, &high, &mut offsets, to).unwrap().get(stream).unwrap();
            assert!(needed as usize <= room && needed >= counts.iter().sum());
            let found = counts.iter().sum::<u64>() as usize;
            let values =
                if size_of::<V>() == 0 { Vec::new() } else { values.slice(..found).unwrap().to_vec(stream).unwrap() };
            let found = written(stream, &offsets, &keys, &values);
            assert!(found == expected, "{len} intervals, room for {room}");
            room = needed as usize;
        }
    }
}

fn short(x: u64) -> u32 {
    x as u32 % 600 * 1_000_003
}

fn levels_of_u32(device: &Device) {
    let stream = device.stream().unwrap();
    check(&stream, &levels(&stream, short, |x| x as u32), short);
}

fn levels_of_sets(device: &Device) {
    let stream = device.stream().unwrap();
    check(&stream, &levels(&stream, short, |_| ()), short);
}

fn levels_of_wide_keys(device: &Device) {
    let stream = device.stream().unwrap();
    let wide = |x: u64| (x % 500) as i128 * (1 << 70) - (1 << 77);
    check(&stream, &levels(&stream, wide, |x| x), wide);
    let signed = |x: u64| x as i64 % 400;
    check(&stream, &levels(&stream, signed, |x| x as u32), signed);
}

fn levels_of_short_keys(device: &Device) {
    let stream = device.stream().unwrap();
    let tiny = |x: u64| x as i16 % 700;
    check(&stream, &levels(&stream, tiny, |x| x), tiny);
}

/// Values of four bytes anywhere: kernels write words.
fn misaligned_values(device: &Device) {
    let stream = device.stream().unwrap();
    let both = levels(&stream, short, |x| (x as u32).to_le_bytes());
    check(&stream, &both, short);
    let (low, high) = (stream.upload(&[0u32]).unwrap(), stream.upload(&[u32::MAX]).unwrap());
    let mut offsets = stream.uninit(2).unwrap();
    let mut keys = stream.uninit::<u32>(1000).unwrap();
    let mut bytes = stream.zeroed::<u8>(4001).unwrap();
    // SAFETY: these bytes exist, and nothing else uses them.
    let values = unsafe {
        let address = bytes.view_mut(&stream).unwrap().into_param().as_mut_ptr();
        DeviceSliceMut::<[u8; 4]>::from_raw_parts(device, address.wrapping_add(1).cast(), 1000)
    };
    both.lsm.range_into(&stream, &low, &high, &mut offsets, (&mut keys, values)).unwrap();
    let bytes = bytes.to_vec(&stream).unwrap();
    let values: Vec<[u8; 4]> = bytes[1..].as_chunks().0.to_vec();
    assert!(written(&stream, &offsets, &keys, &values) == expected(&both.model, &[0], &[u32::MAX]));
}

/// Values that are not combined yet.
fn pending_upserts(device: &Device) {
    let stream = device.stream().unwrap();
    let mut both = Both { lsm: several_levels::<u32, u32>(&stream, 64), model: BTreeMap::new() };
    for round in 0..7 {
        let keys: Vec<u32> = random(round).take(90).map(|x| x as u32 % 200).collect();
        let values: Vec<u32> = random(100 + round).take(90).map(|x| x as u32 % 1000).collect();
        for (key, value) in keys.iter().zip(&values) {
            *both.model.entry(*key).or_default() += value;
        }
        both.lsm.upsert(&stream, (&stream.upload(&keys).unwrap(), &stream.upload(&values).unwrap()), Sum).unwrap();
    }
    assert!(both.lsm.stats(&stream).unwrap().levels > 1);
    check(&stream, &both, |x| x as u32 % 220);
}

fn one_sorted_array(device: &Device) {
    let stream = device.stream().unwrap();
    let model: BTreeMap<u32, u64> = random(1).take(500).map(|x| (short(x), x)).collect();
    let (keys, values): (Vec<u32>, Vec<u64>) = model.iter().map(|(&key, &value)| (key, value)).unzip();
    let pairs = (&stream.upload(&keys).unwrap(), &stream.upload(&values).unwrap());
    let array = GpuSortedArray::<u32, u64>::bulk_build(&stream, pairs, Options::new()).unwrap();
    for len in numbers_of_intervals(&stream) {
        let (low, high) = intervals(len, short);
        let expected = expected(&model, &low, &high);
        let total: usize = expected.iter().map(Vec::len).sum();
        let (low, high) = (stream.upload(&low).unwrap(), stream.upload(&high).unwrap());
        for room in [total, total + 5000] {
            let (mut keys, mut values) = (stream.uninit(room).unwrap(), stream.uninit(room).unwrap());
            let mut offsets = stream.uninit(len + 1).unwrap();
            let needed = array.range_into(&stream, &low, &high, &mut offsets, (&mut keys, &mut values)).unwrap();
            assert_eq!(needed.get(&stream).unwrap(), total as u64);
            let values = values.slice(..total).unwrap().to_vec(&stream).unwrap();
            assert!(written(&stream, &offsets, &keys, &values) == expected, "{len} intervals, room for {room}");
        }
    }
}

/// From no element to many: at most 32 elements are compared by a warp. With deleted keys, and with all versions of a key in
/// one interval.
fn intervals_of_every_length(device: &Device) {
    let stream = device.stream().unwrap();
    let mut lsm = several_levels::<u32, u32>(&stream, 128);
    let mut model = BTreeMap::new();
    for round in 0..7u32 {
        let keys: Vec<u32> = (0..120).map(|i| (i * 7 + round * 31) % 300).collect();
        let deleted: Vec<u32> = (0..8).map(|i| (i * 37 + round) % 300).collect();
        model.extend(keys.iter().map(|&key| (key, round)));
        model.retain(|key, _| !deleted.contains(key));
        let values = stream.upload(&[round; 120]).unwrap();
        lsm.update(&stream, (&stream.upload(&keys).unwrap(), &values), &stream.upload(&deleted).unwrap()).unwrap();
    }
    assert!(lsm.stats(&stream).unwrap().levels > 2);
    let ends: Vec<(u32, u32)> =
        (0..60).map(|len| (17, 17 + len)).chain((0..300).step_by(9).map(|low| (low, low))).collect();
    for ends in ends.chunks(47) {
        let (low, high): (Vec<u32>, Vec<u32>) = ends.iter().copied().unzip();
        let counts: Vec<u64> = expected(&model, &low, &high).iter().map(|pairs| pairs.len() as u64).collect();
        let (low, high) = (stream.upload(&low).unwrap(), stream.upload(&high).unwrap());
        assert_eq!(lsm.count(&stream, &low, &high).unwrap().to_vec(&stream).unwrap(), counts);
        let mut on_device = stream.uninit(counts.len()).unwrap();
        lsm.count_into(&stream, &low, &high, &mut on_device).unwrap();
        assert_eq!(on_device.to_vec(&stream).unwrap(), counts);
    }
}

/// The call says how much room is needed, and writes nothing outside the given one.
fn too_little_room(device: &Device) {
    let stream = device.stream().unwrap();
    let both = levels(&stream, short, |x| x as u32);
    let (low, high) = intervals(300, short);
    let (low, high) = (stream.upload(&low).unwrap(), stream.upload(&high).unwrap());
    let (mut keys, mut values) = (stream.upload(&[9u32; 900]).unwrap(), stream.upload(&[9u32; 900]).unwrap());
    let mut offsets = stream.uninit(301).unwrap();
    let mut needed = Vec::new();
    for room in [0, 1, 100, 800] {
        let to = (keys.slice_mut(50..50 + room).unwrap(), values.slice_mut(50..50 + room).unwrap());
        let call = both.lsm.range_into(&stream, &low, &high, &mut offsets, to).unwrap();
        needed.push(call.get(&stream).unwrap());
        for array in [&keys, &values] {
            let array = array.to_vec(&stream).unwrap();
            assert!(array[..50].iter().chain(&array[50 + room..]).all(|&x| x == 9), "room for {room}");
        }
    }
    assert!(needed[0] > 900 && needed.iter().all(|&x| x == needed[0]), "{needed:?}");
}

fn in_a_graph(device: &Device) {
    let stream = device.stream().unwrap();
    let both = levels(&stream, short, |x| x as u32);
    let (mut low, mut high) = (stream.zeroed::<u32>(40).unwrap(), stream.zeroed::<u32>(40).unwrap());
    let (mut keys, mut values) = (stream.zeroed::<u32>(40_000).unwrap(), stream.zeroed::<u32>(40_000).unwrap());
    let (mut offsets, mut counts) = (stream.zeroed(41).unwrap(), stream.zeroed(40).unwrap());
    both.lsm.lookup(&stream, &low).unwrap(); // builds the index
    let record = |stream: &Stream| -> Result<(DeviceValue<u64>, DeviceVec<u32>), Error> {
        both.lsm.count_into(stream, &low, &high, &mut counts)?;
        let found = both.lsm.lookup(stream, &low)?.values;
        let needed = both.lsm.range_into(stream, &low, &high, &mut offsets, (&mut keys, &mut values))?;
        Ok((needed, found))
    };
    let (mut graph, (needed, found)) = stream.capture(record).unwrap();
    for round in 0..3 {
        let ends = intervals(40, [short, |x| short(x >> 8), |x| short(x >> 16)][round]);
        low.copy_from_host(&stream, &ends.0).unwrap();
        high.copy_from_host(&stream, &ends.1).unwrap();
        // SAFETY: everything that was recorded still exists, and nothing else uses it.
        unsafe { graph.launch(&stream).unwrap() };
        let expected = expected(&both.model, &ends.0, &ends.1);
        let lens: Vec<u64> = expected.iter().map(|pairs| pairs.len() as u64).collect();
        assert!(needed.get(&stream).unwrap() <= 40_000);
        assert_eq!(counts.to_vec(&stream).unwrap(), lens, "round {round}");
        assert!(written(&stream, &offsets, &keys, &values.to_vec(&stream).unwrap()) == expected, "round {round}");
        let values: Vec<u32> = ends.0.iter().map(|key| both.model.get(key).copied().unwrap_or(0)).collect();
        assert_eq!(found.to_vec(&stream).unwrap(), values, "round {round}");
    }
}

fn wrong_lengths(device: &Device) {
    let stream = device.stream().unwrap();
    let both = levels(&stream, short, |x| x as u32);
    let three = stream.upload(&[1u32, 2, 3]).unwrap();
    let (mut keys, mut values) = (stream.upload(&[9u32; 10]).unwrap(), stream.upload(&[9u32; 10]).unwrap());
    for (high, offsets, room) in [(2, 4, 10), (3, 3, 10), (3, 5, 10), (3, 4, 9)] {
        let mut offsets = stream.upload(&vec![9u64; offsets]).unwrap();
        let to = (&mut keys, values.slice_mut(..room).unwrap());
        let result = both.lsm.range_into(&stream, &three, three.slice(..high).unwrap(), &mut offsets, to);
        assert!(matches!(result, Err(Error::LengthMismatch { .. })));
        assert!(offsets.to_vec(&stream).unwrap().iter().all(|&x| x == 9));
    }
    assert_eq!(keys.to_vec(&stream).unwrap(), [9; 10]);
    assert_eq!(values.to_vec(&stream).unwrap(), [9; 10]);
}
