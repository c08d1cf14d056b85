//! The table of plain keys: the suite of all dictionaries, and what only it has. Compared with a `BTreeMap`, on every device.

use gpu_conformance::{Case, cases, is_checked, run};
use gpu_cuckoo::{Options, PlainCuckoo};
use gpu_dictionary::{Upsertion, WordKey as Key};
use gpu_dictionary_conformance::{self as dictionary, Combining, Family, Random, Value};
use gpu_primitives::operator::{map, monoid};
use gpu_primitives::scan::Sum;
use gpu_primitives::{Device, DeviceVec, Error, Stream};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::process::ExitCode;

/// The cases of the shared suite that are about the files of a structure: the types that they name, and that they have stale elements,
/// too. A file of plain keys is compact, and states the sizes of its types. Unit tests damage it.
const OF_STRUCTURES: [&str; 3] = ["values_of_other_types", "round_trips", "damaged_files"];

fn main() -> ExitCode {
    let own = cases![histories_of_arrays, pairs_are_kept_and_changed, sets_of_arrays];
    // What a failed call leaves is up to host code.
    let failures = Case::new("failed_calls", failed_calls).of_host_code();
    let shared = [dictionary::cases::<Plain>(), dictionary::combining_cases::<Plain>()].concat();
    let shared = shared.into_iter().filter(|case| !OF_STRUCTURES.contains(&case.name)).collect();
    run(&[&dictionary::composed(shared)[..], own, &[failures]].concat())
}

#[derive(Debug)]
struct Plain;

impl Family for Plain {
    type Options = Options;
    type Of<K: Key + Debug, V: Value> = PlainCuckoo<K, V>;

    fn options(batch: usize) -> Options {
        Options::new().bucket_width([8, 4][batch % 2]).seed(0)
    }

    fn tidy<K: Key + Debug, V: Value>(table: &mut PlainCuckoo<K, V>, stream: &Stream) -> Result<(), Error> {
        table.compact(stream)
    }

    fn check_structure<K: Key + Debug, V: Value>(table: &PlainCuckoo<K, V>, stream: &Stream, when: &str) {
        let stats = table.stats(stream).unwrap();
        assert!(stats.live.is_some_and(|live| live <= stats.resident), "{stats:?}, {when}");
        let (keys, values) = table.pairs(stream).unwrap();
        assert_eq!(Some(keys.len()), stats.live, "{when}");
        assert_eq!(values.len(), gpu_dictionary::values_for::<V>(keys.len()), "{when}");
    }

    dictionary::keys_in_order!(false);
}

impl Combining for Plain {
    fn upsert<K: Key + Debug, V: Value>(
        table: &mut PlainCuckoo<K, V>,
        stream: &Stream,
        pairs: (&DeviceVec<K>, &DeviceVec<V>),
        operation: impl Upsertion<V>,
    ) -> Result<(), Error> {
        table.upsert(stream, pairs, operation)
    }
}

/// A key without an order, and a value of three words.
type Place = [u8; 5];
type Weights = [u32; 3];
type Table = PlainCuckoo<Place, Weights>;
type Model = BTreeMap<Place, Weights>;

fn place(number: usize) -> Place {
    [number as u8, 7, (number >> 8) as u8, (number % 3) as u8, 0]
}

fn weights(random: &mut Random, len: usize) -> Vec<Weights> {
    (0..len).map(|_| [random.number() as u32, 1, random.number() as u32 % 10]).collect()
}

fn check(stream: &Stream, table: &Table, model: &Model, when: &str) {
    let (keys, values) = table.pairs(stream).unwrap();
    let (keys, values) = (keys.to_vec(stream).unwrap(), values.to_vec(stream).unwrap());
    assert_eq!(keys.len(), model.len(), "{when}");
    assert_eq!(keys.into_iter().zip(values).collect::<Model>(), *model, "{when}");
}

/// Random calls of all kinds, with lengths around those of tiles.
fn histories_of_arrays(device: &Device) {
    let stream = &device.stream().unwrap();
    let add = monoid!([0, 1, 0], |a: Weights, b: Weights| [a[0] * b[1] + b[0], a[1] * b[1], a[2] + b[2]]);
    let combine = |a: Weights, b: Weights| {
        [a[0].wrapping_mul(b[1]).wrapping_add(b[0]), a[1].wrapping_mul(b[1]), a[2].wrapping_add(b[2])]
    };
    let lengths: &[usize] =
        if is_checked(device) { &[0, 1, 33, 257] } else { &[0, 1, 31, 33, 256, 257, 1279, 1281, 2305] };
    let mut random = Random(3);
    let mut table = Table::new(stream, Options::new()).unwrap();
    let mut model = Model::new();
    for (round, &len) in lengths.iter().chain(lengths).enumerate() {
        let domain: Vec<Place> = (0..len / 2 + 2).map(place).collect();
        let choose = |random: &mut Random, len| (0..len).map(|_| domain[random.below(domain.len())]).collect();
        let keys: Vec<Place> = choose(&mut random, len);
        let values = weights(&mut random, len);
        let gone: Vec<Place> = choose(&mut random, len / 3);
        let when = format!("{len} pairs, round {round}");
        let (keys_on_device, values_on_device) = (stream.upload(&keys).unwrap(), stream.upload(&values).unwrap());
        let (pairs, gone_on_device) = ((&keys_on_device, &values_on_device), stream.upload(&gone).unwrap());
        table.upsert(stream, pairs, add).unwrap();
        for (&key, &value) in keys.iter().zip(&values) {
            model.entry(key).and_modify(|old| *old = combine(*old, value)).or_insert(value);
        }
        check(stream, &table, &model, &format!("{when}, upserted"));
        table.update(stream, pairs, &gone_on_device).unwrap();
        model.extend(keys.iter().copied().zip(values));
        gone.iter().for_each(|key| _ = model.remove(key));
        check(stream, &table, &model, &format!("{when}, updated"));
        let asked: Vec<Place> = choose(&mut random, len);
        let removed = table.remove(stream, &stream.upload(&asked).unwrap()).unwrap().to_vec(stream).unwrap();
        assert!(asked.iter().zip(&removed).all(|(key, removed)| model.get(key) == removed.as_ref()), "{when}");
        asked.iter().for_each(|key| _ = model.remove(key));
        check(stream, &table, &model, &format!("{when}, removed"));
    }
}

fn pairs_are_kept_and_changed(device: &Device) {
    let stream = &device.stream().unwrap();
    for len in [0, 1, 33, 257] {
        let mut random = Random(len as u64);
        let (keys, values) = ((0..len).map(place).collect::<Vec<_>>(), weights(&mut random, len));
        let pairs = (&stream.upload(&keys).unwrap(), &stream.upload(&values).unwrap());
        let mut table = Table::bulk_build(stream, pairs, Options::new()).unwrap();
        let mut model: Model = keys.iter().copied().zip(values).collect();
        // Some are stale.
        table.delete(stream, &stream.upload(&keys[..len / 4]).unwrap()).unwrap();
        keys[..len / 4].iter().for_each(|key| _ = model.remove(key));
        let (copy, before) = (table.try_clone(stream).unwrap(), model.clone());
        let change = map!(|key: Place, value: Weights| -> Weights { [value[0] + key[0] as u32, value[1], value[2]] });
        table.for_each(stream, change).unwrap();
        model.iter_mut().for_each(|(key, value)| value[0] = value[0].wrapping_add(u32::from(key[0])));
        check(stream, &table, &model, "changed");
        table.retain(stream, map!(|key: Place, value: Weights| -> u8 { (value[2] > key[3] as u32) as u8 })).unwrap();
        model.retain(|key, value| value[2] > u32::from(key[3]));
        check(stream, &table, &model, "retained");
        check(stream, &copy, &before, "a copy");
        table.insert(stream, pairs).unwrap();
        table.clear(stream).unwrap();
        check(stream, &table, &Model::new(), "cleared");
    }
    // Keys with an order.
    let (keys, values) = (stream.upload(&[-7i128, 5, i128::MIN, 5]).unwrap(), stream.upload(&[1u8, 2, 3, 4]).unwrap());
    let mut table = PlainCuckoo::bulk_build(stream, (&keys, &values), Options::new()).unwrap();
    let expected = [(i128::MIN, 3), (-7, 1), (5, 4)];
    assert!(table.iter(stream).unwrap().eq(expected));
    assert_eq!(table.keys(stream).unwrap().to_vec(stream).unwrap(), expected.map(|(key, _)| key));
    assert_eq!(table.values(stream).unwrap().to_vec(stream).unwrap(), expected.map(|(_, value)| value));
    assert_eq!(table.drain(stream).unwrap().to_vec(stream).unwrap(), expected);
    assert!(table.is_empty(stream).unwrap());
}

fn sets_of_arrays(device: &Device) {
    let stream = &device.stream().unwrap();
    let keys: Vec<Place> = (0..100).map(place).collect();
    let mut set = PlainCuckoo::build_set(stream, &stream.upload(&keys[..40]).unwrap(), Options::new()).unwrap();
    set.insert_keys(stream, &stream.upload(&keys[30..60]).unwrap()).unwrap();
    set.insert_keys(stream, &stream.upload(&keys[..0]).unwrap()).unwrap();
    assert_eq!(set.len(stream).unwrap(), 60);
    set.retain_keys(stream, map!(|key: Place| -> u8 { key[0] & 1 })).unwrap();
    let found = set.contains(stream, &stream.upload(&keys).unwrap()).unwrap().to_vec(stream).unwrap();
    assert!(found.iter().zip(0..).all(|(&found, i)| found == u8::from(i < 60 && i % 2 == 1)), "{found:?}");
}

/// Every allocation of a call fails once.
fn failed_calls(device: &Device) {
    let home = &device.stream().unwrap();
    let (keys, mut random) = ((0..90).map(place).collect::<Vec<_>>(), Random(9));
    let values = weights(&mut random, keys.len());
    let on_device = |range: std::ops::Range<usize>| {
        (home.upload(&keys[range.clone()]).unwrap(), home.upload(&values[range]).unwrap())
    };
    let ((old_keys, old_values), (new_keys, new_values)) = (on_device(0..50), on_device(30..90));
    let gone = home.upload(&keys[20..40]).unwrap();
    type Call<'a> = &'a dyn Fn(&mut Table, &Stream) -> Result<(), Error>;
    let add = monoid!([0, 0, 0], |a: Weights, b: Weights| [a[0] + b[0], a[1] + b[1], a[2] + b[2]]);
    let calls: [(&str, Call<'_>); 5] = [
        ("update", &|table, stream| table.update(stream, (&new_keys, &new_values), &gone)),
        ("upsert", &|table, stream| table.upsert(stream, (&new_keys, &new_values), add)),
        ("remove", &|table, stream| table.remove(stream, &gone).map(drop)),
        ("retain", &|table, stream| table.retain(stream, map!(|key: Place, _value: Weights| -> u8 { key[0] & 1 }))),
        ("for_each", &|table, stream| table.for_each(stream, map!(|_key: Place, value: Weights| -> Weights { value }))),
    ];
    for (name, call) in calls {
        let mut failures = 0;
        for successes in 0.. {
            let mut table = Table::bulk_build(home, (&old_keys, &old_values), Options::new()).unwrap();
            let model: Model = keys[..50].iter().copied().zip(values[..50].iter().copied()).collect();
            home.synchronize().unwrap();
            let stream = device.stream().unwrap();
            stream.fail_allocation_after(Some(successes));
            let result = call(&mut table, &stream);
            stream.fail_allocation_after(None);
            stream.synchronize().unwrap();
            match result {
                Ok(()) => break,
                Err(error) => assert!(matches!(error, Error::OutOfMemory { .. }), "{name}: {error}"),
            }
            failures += 1;
            check(home, &table, &model, &format!("{name} with {successes} allocations"));
        }
        assert!(failures > 0, "{name}");
    }
    // A sum of no pairs is no change.
    let mut table = Table::bulk_build(home, (&old_keys, &old_values), Options::new()).unwrap();
    let none = on_device(0..0);
    table.upsert(home, (&none.0, &none.1), add).unwrap();
    table.update(home, (&none.0, &none.1), &none.0).unwrap();
    assert_eq!(table.len(home).unwrap(), 50);
    let wrong = table.upsert(home, (&new_keys, &old_values), add).unwrap_err();
    assert!(matches!(wrong, Error::LengthMismatch { expected: 60, found: 50, .. }), "{wrong}");
    let mut counts = PlainCuckoo::<u8, u8>::new(home, Options::new()).unwrap();
    let bytes = home.upload(&[3u8, 3, 4]).unwrap();
    counts.upsert(home, (&bytes, &bytes), Sum).unwrap();
    assert!(counts.iter(home).unwrap().eq([(3, 6), (4, 4)]));
}
