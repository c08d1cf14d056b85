//! The guarantees of dictionaries in addition to correct answers.

use super::model::{Family, Modelled, Questions, Random, extremes};
use crate::kernels::{Join, SumValues};
use gpu_conformance::{is_checked, is_gpu};
use gpu_dictionary::levels::Levels;
use gpu_dictionary::{Dictionary, Ordered, Updatable};
use gpu_primitives::kernel::View;
use gpu_primitives::{CpuOptions, Device, Error, Stream};

pub fn extreme_keys<F: Family>(device: &Device) {
    let stream = device.stream().unwrap();
    let all = extremes::<u32>();
    // Intervals between all pairs of keys. Half of them end before they begin.
    let low: Vec<u32> = all.iter().flat_map(|&low| [low; 4]).collect();
    let questions = Questions { keys: &all, low: &low, high: &all.repeat(4) };
    let mut both = Modelled::<F, u32, u32>::new(&stream, 2);
    both.check_order(&stream, &questions, "empty");
    both.check(&stream, &all, "empty");
    both.insert(&stream, &all, &[1, 2, 3, 4]);
    both.check_order(&stream, &questions, "all");
    both.delete(&stream, &[0, u32::MAX, 7]);
    both.check_order(&stream, &questions, "without the first and the last");
    both.check_all(&stream, &mut Random(1), &all, "without the first and the last");
    both.delete(&stream, &all);
    both.check_all(&stream, &mut Random(2), &all, "all deleted");
    both.tidy(&stream);
    assert_eq!(both.dictionary.stats(&stream).unwrap().resident, 0);
    both.check_all(&stream, &mut Random(3), &all, "tidied up");
}

pub fn clearing<F: Family>(device: &Device) {
    let stream = device.stream().unwrap();
    let mut both = Modelled::<F, u32, u32>::new(&stream, 4);
    both.update(&stream, &[1, 2, 3], &[10, 20, 30], &[2]);
    both.check(&stream, &[1, 2, 3, 4], "before");
    both.dictionary.clear(&stream).unwrap();
    both.model.clear();
    both.check_all(&stream, &mut Random(1), &[1, 2, 3, 4], "cleared");
    assert_eq!(both.dictionary.stats(&stream).unwrap().resident, 0);
    both.insert(&stream, &[5], &[50]);
    both.check(&stream, &[1, 5], "in use again");
}

#[track_caller]
fn expect_mismatch(result: Result<(), Error>) {
    let error = result.expect_err("the lengths differ");
    assert!(matches!(error, Error::LengthMismatch { .. }), "{error}");
}

pub fn bad_input_changes_nothing<F: Family>(device: &Device) {
    let stream = device.stream().unwrap();
    let (none, one, two) = (stream.upload::<u32>(&[]), stream.upload(&[1u32]), stream.upload(&[1u32, 2]));
    let (none, one, two) = (&none.unwrap(), &one.unwrap(), &two.unwrap());
    let built = <F::Of<u32, u32>>::bulk_build(&stream, (two, one), F::options(4));
    assert!(matches!(built, Err(Error::LengthMismatch { expected: 2, found: 1, .. })));

    let mut both = Modelled::<F, u32, u32>::new(&stream, 2);
    both.insert(&stream, &[1, 2, 3], &[10, 20, 30]);
    expect_mismatch(both.dictionary.insert(&stream, (one, two)));
    expect_mismatch(both.dictionary.insert(&stream, (two, none)));
    expect_mismatch(both.dictionary.update(&stream, (one, two), one));
    expect_mismatch(both.dictionary.update(&stream, (none, one), two));
    both.check(&stream, &[0, 1, 2, 3, 4], "after the errors");

    // Empty calls are not errors, and change nothing.
    let resident = both.dictionary.stats(&stream).unwrap().resident;
    both.insert(&stream, &[], &[]);
    both.delete(&stream, &[]);
    both.update(&stream, &[], &[], &[]);
    assert_eq!(both.dictionary.stats(&stream).unwrap().resident, resident);
    both.update(&stream, &[4], &[40], &[]);
    both.update(&stream, &[], &[], &[3]);
    both.check(&stream, &[0, 1, 2, 3, 4], "after empty calls");
    assert!(both.dictionary.lookup(&stream, none).unwrap().found.is_empty());

    let mut set = Modelled::<F, u32, ()>::new(&stream, 2);
    set.insert(&stream, &[1, 2, 3], &[(); 3]);
    expect_mismatch(set.dictionary.insert(&stream, (one, &stream.upload(&[(), ()]).unwrap())));
    set.check(&stream, &[0, 1, 2, 3, 4], "a set");
}

/// Keys and streams of another device are rejected, and the dictionary still works.
pub fn things_of_another_device<F: Family>(device: &Device) {
    let stream = device.stream().unwrap();
    let elsewhere = Device::cpu_with(CpuOptions { checked: is_checked(device), ..CpuOptions::default() });
    let elsewhere = elsewhere.stream().unwrap();
    let there = &elsewhere.upload(&[1u32, 2]).unwrap();
    let here = &stream.upload(&[1u32, 2]).unwrap();
    let mut both = Modelled::<F, u32, u32>::new(&stream, 4);
    // Some dictionaries have no device while they are empty.
    if let Ok(found) = both.dictionary.contains(&elsewhere, there) {
        assert_eq!(found.to_vec(&elsewhere).unwrap(), [0, 0]);
    }
    both.insert(&stream, &[1, 2, 3], &[10, 20, 30]);
    let wrong = |result: Result<(), Error>| {
        let error = result.expect_err("the devices differ");
        assert!(matches!(error, Error::WrongDevice { .. }), "{error}");
    };
    wrong(both.dictionary.contains(&elsewhere, there).map(drop));
    wrong(both.dictionary.lookup(&stream, there).map(drop));
    wrong(both.dictionary.insert(&stream, (there, here)));
    wrong(both.dictionary.insert(&stream, (here, there)));
    wrong(both.dictionary.delete(&stream, there));
    wrong(both.dictionary.update(&stream, (here, here), there));
    wrong(both.dictionary.update(&stream, (here, there), here));
    both.check_all(&stream, &mut Random(1), &[0, 1, 2, 3, 4], "after the errors");
}

pub fn intervals_of_different_lengths<F: Family<Of<u32, u32>: Ordered>>(device: &Device) {
    let stream = device.stream().unwrap();
    let (none, one, two) = (stream.upload::<u32>(&[]), stream.upload(&[1u32]), stream.upload(&[1u32, 2]));
    let (none, one, two) = (&none.unwrap(), &one.unwrap(), &two.unwrap());
    let mut both = Modelled::<F, u32, u32>::new(&stream, 2);
    for when in ["empty", "of three keys"] {
        expect_mismatch(both.dictionary.count(&stream, one, two).map(drop));
        expect_mismatch(both.dictionary.range(&stream, two, none).map(drop));
        assert!(both.dictionary.count(&stream, none, none).unwrap().is_empty());
        assert!(both.dictionary.range(&stream, none, none).unwrap().to_vec(&stream).unwrap().is_empty());
        both.check(&stream, &[0, 1, 2, 3, 4], when);
        both.insert(&stream, &[1, 2, 3], &[10, 20, 30]);
    }
}

/// The first query may build an index. Here two streams query first at the same time.
pub fn two_streams_ask_at_once<F: Family<Of<u32, u32>: Sync>>(device: &Device) {
    let streams = [device.stream().unwrap(), device.stream().unwrap()];
    let keys: Vec<u32> = (0..if is_checked(device) { 100 } else { 3000 }).collect();
    let mut random = Random(5);
    let mut both = Modelled::<F, u32, u32>::new(&streams[0], keys.len() / 7);
    for round in 0..3 {
        let some = random.keys(&keys, keys.len());
        both.update(&streams[0], &some, &random.values(some.len()), &random.keys(&keys, keys.len() / 2));
        std::thread::scope(|scope| {
            for (i, stream) in streams.iter().enumerate() {
                let (both, keys) = (&both, &keys);
                scope.spawn(move || {
                    for again in 0..2 {
                        let when = format!("stream {i}, round {round}, {again}");
                        both.check_all(stream, &mut Random(again), keys, &when);
                    }
                });
            }
        });
    }
}

/// A recorded update would count as done, so it is rejected. A recorded query that would build an index is rejected,
/// too. Nothing changes.
pub fn updates_are_not_recorded<F: Family>(device: &Device) {
    let stream = device.stream().unwrap();
    let mut both = Modelled::<F, u32, u32>::new(&stream, 16);
    both.insert(&stream, &[1, 2, 3], &[10, 20, 30]);
    let (keys, values) = (stream.upload(&[4]).unwrap(), stream.upload(&[40]).unwrap());
    let asked = stream.upload(&[1, 4]).unwrap();
    let is_refused = |error: &Error| matches!(error, Error::NotRecordable { .. });
    if let Err(error) = stream.capture(|stream| both.dictionary.lookup(stream, &asked)) {
        assert!(is_refused(&error), "{error}");
    }
    both.check(&stream, &[1, 2, 3, 4], "after a first query was recorded");
    let recorded = stream.capture(|stream| both.dictionary.insert(stream, (&keys, &values)));
    assert!(is_refused(&recorded.unwrap_err()));
    both.check(&stream, &[1, 2, 3, 4], "after an insertion was recorded");
    let recorded =
        stream.capture(|stream| <F::Of<u32, u32>>::bulk_build(stream, (&keys, &values), F::options(16)).map(drop));
    assert!(is_refused(&recorded.unwrap_err()));

    // Once the index is built, queries can be recorded.
    let (mut graph, found) = stream.capture(|stream| both.dictionary.lookup(stream, &asked)).unwrap();
    // SAFETY: the dictionary and the keys still exist, and are used only on this stream.
    unsafe { graph.launch(&stream).unwrap() };
    assert_eq!(found.to_vec(&stream).unwrap(), [Some(10), None]);
}

/// Tests a kernel that reads two dictionaries at once, through the views that `view` returns.
pub fn a_join<F: Family>(
    device: &Device,
    view: impl for<'a> Fn(&'a F::Of<u32, u32>, &Stream) -> Result<View<'a, Levels<u32, u32>>, Error>,
) {
    let stream = device.stream().unwrap();
    let domain: Vec<u32> = (0..500).collect();
    let mut random = Random(4);
    let [left, right] = [(); 2].map(|()| {
        let mut both = Modelled::<F, u32, u32>::new(&stream, 64);
        for _ in 0..3 {
            let keys = random.keys(&domain, 200);
            both.update(&stream, &keys, &random.values(keys.len()), &random.keys(&domain, 50));
        }
        both
    });
    let keys = stream.upload(&domain).unwrap();
    let mut sums = stream.uninit::<u64>(domain.len()).unwrap();
    let [left_view, right_view] = [&left, &right].map(|both| view(&both.dictionary, &stream).unwrap());
    let join = Join::new(left_view, right_view, keys.view(&stream).unwrap(), sums.view_mut(&stream).unwrap());
    // SAFETY: as many sums as keys, and a thread for each.
    unsafe { stream.launch(join, domain.len().div_ceil(64)).unwrap() };
    let value = |both: &Modelled<F, u32, u32>, key: &u32| u64::from(both.model.get(key).copied().unwrap_or(0));
    let expected: Vec<u64> = domain.iter().map(|key| value(&left, key) + value(&right, key)).collect();
    assert_eq!(sums.to_vec(&stream).unwrap(), expected);
}

/// Tests a user's kernel that reads a dictionary of levels, through the view that `view` returns.
pub fn a_kernel_of_ones_own<F: Family>(
    device: &Device,
    view: impl for<'a> Fn(&'a F::Of<u32, u32>, &Stream) -> Result<View<'a, Levels<u32, u32>>, Error>,
) {
    let stream = device.stream().unwrap();
    let domain: Vec<u32> = (0..300u32).map(|i| i * i).chain(extremes()).collect();
    let mut random = Random(9);
    let mut both = Modelled::<F, u32, u32>::new(&stream, 32);
    for sums in [1, 63, 64, 100] {
        let keys = random.keys(&domain, 100);
        both.update(&stream, &keys, &random.values(keys.len()), &random.keys(&domain, 30));
        let asked = random.keys(&domain, if is_gpu(device) { 100_000 } else { 1000 });
        let mut expected = vec![0u64; sums];
        for (i, key) in asked.iter().enumerate() {
            expected[i % sums] += both.model.get(key).map_or(0, |&value| u64::from(value));
        }
        let on_device = stream.upload(&asked).unwrap();
        let mut out = stream.uninit::<u64>(sums).unwrap();
        let kernel = SumValues::new(
            view(&both.dictionary, &stream).unwrap(),
            on_device.as_slice().view(&stream).unwrap(),
            out.view_mut(&stream).unwrap(),
        );
        // SAFETY: as many threads as sums.
        unsafe { stream.launch(kernel, sums.div_ceil(64)).unwrap() };
        assert_eq!(out.to_vec(&stream).unwrap(), expected, "{sums} threads");
    }
}
