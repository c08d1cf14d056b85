//! Updates: histories, clashes, and failures.

use super::*;

/// Insertions, replacements, deletions and growth, with keys of one type.
fn check_type<K: PlainKey + Eq + Hash + Debug, V: Pod + PartialEq + Debug>(
    stream: &Stream,
    value: impl Fn(usize) -> V,
) {
    let keys: Vec<K> = (0..200).map(key).collect();
    let mut both = Modelled::new(stream, None);
    both.check(&keys);
    for (round, range) in [0..50, 20..150, 0..1, 100..200].into_iter().enumerate() {
        // All of them twice.
        let batch: Vec<K> = keys[range.clone()].iter().chain(&keys[range]).copied().collect();
        let values: Vec<V> = (0..batch.len()).map(|i| value(1000 * round + i)).collect();
        both.insert(&batch, &values).unwrap();
        both.check(&keys);
    }
    both.delete(&keys[10..180]);
    both.check(&keys);
    both.table.compact(stream).unwrap();
    both.check(&keys);
    let mut file = Vec::new();
    both.table.save(stream, &mut file).unwrap();
    both.table = PlainCuckoo::load(stream, &file[..]).unwrap();
    both.check(&keys);
    both.table.clear(stream).unwrap();
    both.model.clear();
    both.check(&keys);
    both.insert(&keys, &(0..200).map(&value).collect::<Vec<_>>()).unwrap();
    both.check(&keys);
}

#[test]
fn keys_and_values_of_many_types() {
    for device in devices() {
        let stream = device.stream().unwrap();
        check_type::<u8, u64>(&stream, |i| i as u64);
        check_type::<[u8; 5], ()>(&stream, |_| ());
        check_type::<[i16; 3], [u8; 3]>(&stream, |i| [i as u8, (i >> 8) as u8, 7]);
        check_type::<u128, u32>(&stream, |i| i as u32);
        check_type::<[u32; 8], [f64; 3]>(&stream, |i| [i as f64; 3]);
        check_type::<[u64; 4], i8>(&stream, |i| i as i8);
    }
}

/// Hashes of a few bits: many insertions have to find another function. Nothing is lost or found by mistake.
#[test]
fn clashes_choose_other_functions() {
    for device in devices() {
        let stream = device.stream().unwrap();
        let keys: Vec<[u8; 7]> = (0..120).map(key).collect();
        let mut changes = 0;
        for seed in 0..4 {
            let mut both = Modelled::with_seed(&stream, Some(8), 1000 * seed);
            for i in 0..20 {
                let before = both.table.index.hasher;
                // Replaces one, and inserts one.
                both.insert(&[keys[i / 2], keys[i]], &[i as u16, 500 + i as u16]).unwrap();
                changes += usize::from(both.table.index.hasher != before);
                // Absent keys often have the hash of a present one: deleting them deletes nothing.
                both.delete(&keys[60..]);
            }
            both.check(&keys);
        }
        assert!(changes > 1, "{changes} changes");
        // Two keys of a batch.
        let mut both = Modelled::new(&stream, Some(11));
        let before = both.table.index.hasher;
        both.insert(&keys[..60], &(0..60).collect::<Vec<u16>>()).unwrap();
        assert_ne!(both.table.index.hasher, before);
        both.check(&keys);
    }
}

/// More keys than there are hashes: an error, and the table is as before.
#[test]
fn too_many_clashes() {
    for device in devices() {
        let stream = device.stream().unwrap();
        let keys: Vec<[u8; 6]> = (0..100).map(key).collect();
        let mut both = Modelled::new(&stream, Some(6));
        both.insert(&keys[..5], &[1u32, 2, 3, 4, 5]).unwrap();
        let error = both.insert(&keys, &[9; 100]).unwrap_err();
        assert!(matches!(error, Error::TableFull { unplaced: 36.., keys: 105, .. }), "{error}");
        both.check(&keys);
        both.insert(&keys[3..7], &[6, 7, 8, 9]).unwrap();
        both.check(&keys);
    }
}

/// Every allocation fails once, in insertions that append, that compact, and that choose another function.
#[test]
fn failures_change_nothing() {
    let device = Device::cpu();
    let home = device.stream().unwrap();
    let keys: Vec<[u16; 5]> = (0..200).map(key).collect();
    for (bits, present, deleted, batch) in
        [(64, 0..50, 0..10, 40..90), (64, 0..150, 0..140, 100..200), (10, 0..10, 0..1, 5..45)]
    {
        let bits = (bits < 64).then_some(bits);
        for successes in 0.. {
            let mut both = Modelled::new(&home, bits);
            for &key in &keys[present.clone()] {
                both.insert(&[key], &[7u64]).unwrap();
            }
            both.delete(&keys[deleted.clone()]);
            let copy = both.table.try_clone(&home).unwrap();
            let on_device = home.upload(&keys[batch.clone()]).unwrap();
            let values = home.upload(&vec![8u64; batch.len()]).unwrap();
            home.synchronize().unwrap();
            let stream = device.stream().unwrap();
            stream.fail_allocation_after(Some(successes));
            let result = both.table.insert(&stream, (&on_device, &values));
            stream.fail_allocation_after(None);
            stream.synchronize().unwrap();
            match &result {
                Ok(()) => both.model.extend(keys[batch.clone()].iter().map(|&key| (key, 8))),
                Err(error) => assert!(matches!(error, Error::OutOfMemory { .. }), "{error}"),
            }
            both.check(&keys);
            // A copy made before keeps its contents.
            assert_eq!(copy.len(&home).unwrap(), present.len() - deleted.len());
            if result.is_ok() {
                assert!(successes > 5, "{successes}");
                break;
            }
        }
    }
}
