//! Updates: insertion, growth, refusal, deletion, histories.

use crate::{Pair, numbers, pairs, seeded};
use gpu_conformance::data::random;
use gpu_conformance::{adversarial_streams, is_checked};
use gpu_cuckoo::WhenFull;
use gpu_primitives::{Device, Error};

pub fn insert_replaces(device: &Device) {
    let stream = device.stream().unwrap();
    let mut pair = Pair::build(&stream, &numbers(0..1000), &numbers(0..1000), seeded().load_factor(0.6));
    // Half of them are present already; all come twice.
    let keys: Vec<u32> = (500..1200).chain(500..1200).collect();
    let values: Vec<u32> = (0..1400).map(|x| 10_000 + x).collect();
    pair.insert(&keys, &values).unwrap();
    assert_eq!(pair.model[&500], 10_700);
    pair.check(&numbers(0..2000));
    assert_eq!(pair.table.stats(&stream).unwrap().rebuilds, 0);
}

/// Every key three times, far apart: some keys are present, some find all of their buckets full. The last value wins,
/// whichever thread comes first.
pub fn insert_repeats(device: &Device) {
    for (seed, stream) in adversarial_streams(device, 2).take(if is_checked(device) { 200 } else { 10 }) {
        for (width, hashes) in [(4, 2), (8, 2), (4, 4)] {
            let options = seeded().bucket_width(width).hashes(hashes).load_factor(0.9).seed(seed);
            let mut pair = Pair::<u32, u64>::new(&stream, options.capacity(600));
            let (present, values) = (numbers(0..200), (0..200).collect::<Vec<u64>>());
            pair.insert(&present, &values).unwrap();
            // 100 keys are present and 400 are new: the load becomes 0.9.
            let keys: Vec<u32> = (0..1500).map(|i| 100 + (i * 7 + i / 500) % 500).collect();
            pair.insert(&keys, &(1000..2500).collect::<Vec<u64>>()).unwrap();
            pair.check(&numbers(0..700));
            assert_eq!(pair.table.stats(&stream).unwrap().rebuilds, 0, "seed {seed}");
        }
    }
}

/// One key only, and a key that alternates with another one.
pub fn insert_one_key_many_times(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_checked(device) { 3000 } else { 20_000 };
    let mut pair = Pair::build(&stream, &[9u32], &[9u32], seeded());
    pair.insert(&vec![7; len], &numbers(0..len as u64)).unwrap();
    pair.check(&[7, 9]);
    let alternating: Vec<u32> = (0..len as u32).map(|i| 8 + i % 2).collect();
    pair.insert(&alternating, &numbers(5..5 + len as u64)).unwrap();
    pair.check(&[7, 8, 9]);
}

/// After the first batch, insertions into a table with room allocate nothing.
pub fn insert_allocates_once(device: &Device) {
    let stream = device.stream().unwrap();
    let mut pair = Pair::<u32, u32>::new(&stream, seeded().capacity(20_000));
    pair.insert(&numbers(0..1000), &numbers(0..1000)).unwrap();
    let kept = pair.table.stats(&stream).unwrap().kept;
    for batch in 1..5 {
        let keys = numbers(batch * 900..batch * 900 + 1000);
        let on_device = (stream.upload(&keys).unwrap(), stream.upload(&keys).unwrap());
        stream.fail_allocation_after(Some(0));
        let result = pair.table.insert(&stream, (&on_device.0, &on_device.1));
        stream.fail_allocation_after(None);
        result.unwrap();
        pair.model.extend(keys.iter().map(|&key| (u64::from(key), key)));
    }
    pair.check(&numbers(0..6000));
    assert_eq!(pair.table.stats(&stream).unwrap().kept, kept);
    assert!((29_000..60_000).contains(&kept), "{kept}");
    // A batch that is large compared with the table leaves only what depends on the table.
    pair.insert(&numbers(0..15_000), &numbers(0..15_000)).unwrap();
    assert!(pair.table.stats(&stream).unwrap().kept < kept);
    pair.table.rebuild(&stream, 0).unwrap();
    assert_eq!(pair.table.stats(&stream).unwrap().kept, 0);
    pair.check(&numbers(0..20_000));
}

pub fn insert_grows(device: &Device) {
    let stream = device.stream().unwrap();
    let mut pair = Pair::build(&stream, &[5u32], &[50u64], seeded());
    let before = pair.table.stats(&stream).unwrap().slots;
    for round in 0..6 {
        let (keys, values) = pairs::<u32, u64>(round, 400, 100_000);
        pair.insert(&keys, &values).unwrap();
        pair.check(&keys);
        pair.check(&[5]);
    }
    let stats = pair.table.stats(&stream).unwrap();
    assert!(stats.slots > before && stats.rebuilds > 0 && stats.load <= 0.95, "{stats:?}");
}

/// A table doubles: all shapes, with keys in later buckets and with dead slots. Afterwards a search for an absent key
/// must end, and keys in later buckets must be found.
pub fn insert_doubles(device: &Device) {
    let stream = device.stream().unwrap();
    for width in [4, 8] {
        for hashes in [2, 4] {
            let options = seeded().bucket_width(width).hashes(hashes).load_factor(0.9);
            let mut pair = Pair::build(&stream, &numbers(0..900), &numbers(0..900), options);
            pair.delete(&numbers(100..200));
            let before = pair.table.stats(&stream).unwrap();
            // Some are present, some come twice, and the load would pass 0.95.
            let keys: Vec<u32> = (700..1150).chain(1000..1100).collect();
            pair.insert(&keys, &numbers(5000..5550)).unwrap();
            let after = pair.table.stats(&stream).unwrap();
            assert_eq!((after.slots, after.rebuilds), (2 * before.slots, before.rebuilds + 1));
            pair.check(&numbers(0..1500));
            pair.delete(&numbers(0..500));
            pair.insert(&numbers(2000..2800), &numbers(0..800)).unwrap();
            pair.check(&numbers(0..3000));
        }
    }
    let (keys, values) = pairs::<u64, ()>(3, 1500, u64::MAX);
    let mut set = Pair::build(&stream, &keys[..900], &values[..900], seeded());
    set.insert(&keys[800..], &values[800..]).unwrap();
    set.check(&keys);
}

/// A table that doubles while the batch has all of its keys, in narrow buckets: some of the keys that move find their buckets full,
/// and must be placed before the batch looks for them.
pub fn insert_doubles_under_its_own_keys(device: &Device) {
    let stream = device.stream().unwrap();
    let (present, rounds) = if is_checked(device) { (1000, 2) } else { (4000, 6) };
    for seed in 0..rounds {
        let options = seeded().bucket_width(4).load_factor(0.95).seed(seed);
        let keys = numbers(0..present);
        let mut pair = Pair::build(&stream, &keys, &keys, options);
        let slots = pair.table.stats(&stream).unwrap().slots;
        let batch = numbers(0..present + present / 8);
        pair.insert(&batch, &numbers(7..7 + batch.len() as u64)).unwrap();
        assert_eq!(pair.table.stats(&stream).unwrap().slots, 2 * slots, "seed {seed}");
        pair.check(&batch);
        pair.delete(&keys);
        pair.check(&batch);
    }
}

pub fn insert_refuses(device: &Device) {
    let stream = device.stream().unwrap();
    let options = seeded().when_full(WhenFull::Refuse);
    let mut pair = Pair::build(&stream, &numbers(0..800), &numbers(0..800), options);
    let slots = pair.table.stats(&stream).unwrap().slots as u64;
    let model = pair.model.clone();
    // Some keys are present, and too many are new.
    let error = pair.insert(&numbers(700..2000), &numbers(0..1300)).unwrap_err();
    let Error::TableFull { unplaced, keys: 2000, slots: told, .. } = error else { panic!("{error}") };
    assert_eq!((unplaced, told), (2000 - (slots as f64 * 0.95) as u64, slots));
    assert_eq!(pair.model, model);
    pair.check(&numbers(0..2000));
    pair.insert(&numbers(700..900), &numbers(0..200)).unwrap();
    pair.check(&numbers(0..2000));
}

/// Insertions that fail half-way because no key, or only a few, may be displaced: the table grows, or is unchanged.
pub fn insert_undoes(device: &Device) {
    let stream = device.stream().unwrap();
    for when_full in [WhenFull::Grow, WhenFull::Refuse] {
        for evictions in [0, 3] {
            let options = seeded().bucket_width(4).evictions(evictions).reseeds(1).when_full(when_full);
            let mut pair = Pair::<u32, u32>::new(&stream, options.capacity(1700));
            pair.insert(&numbers(0..500), &numbers(7..507)).unwrap();
            assert_eq!(pair.table.stats(&stream).unwrap().rebuilds, 0);
            pair.check(&numbers(0..1100));
            let result = pair.insert(&numbers(400..2010), &numbers(3000..4610));
            match when_full {
                WhenFull::Grow => {
                    result.unwrap();
                    assert!(pair.table.stats(&stream).unwrap().rebuilds > 0);
                }
                WhenFull::Refuse => {
                    let error = result.unwrap_err();
                    assert!(matches!(error, Error::TableFull { unplaced: 1.., keys: 2010, .. }), "{error}");
                    assert_eq!(pair.model.len(), 500);
                }
            }
            pair.check(&numbers(0..2100));
        }
    }
}

/// Repeated deletions and insertions take no more slots.
pub fn deleted_slots_are_reused(device: &Device) {
    let stream = device.stream().unwrap();
    let options = seeded().load_factor(0.9).when_full(WhenFull::Refuse);
    let mut pair = Pair::build(&stream, &numbers(0..2000), &numbers(0..2000), options);
    for round in 1..if is_checked(device) { 5 } else { 20 } {
        let (old, new) = (2000 * (round - 1), 2000 * round);
        pair.delete(&numbers(old..old + 2000));
        pair.insert(&numbers(new..new + 2000), &numbers(0..2000)).unwrap();
    }
    pair.check(&numbers(0..10_000));
}

pub fn clear_and_rebuild(device: &Device) {
    let stream = device.stream().unwrap();
    let mut pair = Pair::build(&stream, &numbers(0..3000), &numbers(0..3000), seeded());
    pair.delete(&numbers(100..3000));
    pair.table.rebuild(&stream, 0).unwrap();
    pair.check(&numbers(0..3000));
    let stats = pair.table.stats(&stream).unwrap();
    assert!(stats.slots < 300, "{stats:?}");
    pair.table.clear(&stream).unwrap();
    pair.model.clear();
    pair.check(&numbers(0..3000));
    assert_eq!(pair.table.stats(&stream).unwrap().slots, stats.slots);
    pair.insert(&numbers(0..1000), &numbers(0..1000)).unwrap();
    pair.check(&numbers(0..3000));
}

pub fn random_histories(device: &Device) {
    let long = std::env::var_os("GPU_PRIMITIVES_LONG").is_some();
    let (histories, steps) = match (long, is_checked(device)) {
        (true, false) => (60, 40),
        (true, true) => (10, 30),
        (false, false) => (6, 10),
        (false, true) => (2, 6),
    };
    let stream = device.stream().unwrap();
    for history in 0..histories {
        let mut numbers = random(1000 + history);
        let mut below = |limit: u64| numbers.next().unwrap() % limit;
        // Few different keys, so that each is used often.
        let domain = [50, 2000, 1 << 40][history as usize % 3];
        let options = seeded()
            .load_factor([0.5, 0.8, 0.95][below(3) as usize])
            .bucket_width([4, 8][below(2) as usize])
            .hashes(2 + below(3) as u32)
            .seed(history);
        let (keys, values) = pairs::<u64, u64>(below(1 << 40), below(2000) as usize, domain);
        let mut pair = Pair::build(&stream, &keys, &values, options);
        for _ in 0..steps {
            let (mut keys, values) = pairs::<u64, u64>(below(1 << 40), below(1000) as usize, domain);
            // Half of them are present.
            let known: Vec<u64> = pair.model.keys().copied().take(keys.len() / 2).collect();
            keys[..known.len()].copy_from_slice(&known);
            match below(8) {
                0..4 => pair.insert(&keys, &values).unwrap(),
                4..7 => pair.delete(&keys),
                _ => pair.table.rebuild(&stream, below(3000) as usize).unwrap(),
            }
            pair.check(&keys);
        }
    }
}

/// Blocks and threads in orders that no GPU would choose: locks and compare-and-exchange do not depend on the order.
pub fn any_order_of_threads(device: &Device) {
    let (keys, values) = pairs::<u32, u32>(11, 900, 600);
    let tight = seeded().bucket_width(4).load_factor(0.9);
    for (seed, stream) in adversarial_streams(device, 4).take(if is_checked(device) { 200 } else { 20 }) {
        let mut pair = Pair::build(&stream, &keys, &values, tight.clone().seed(seed));
        pair.insert(&numbers(500..800), &numbers(0..300)).unwrap();
        pair.delete(&numbers(0..100));
        pair.check(&numbers(0..900));
    }
}
