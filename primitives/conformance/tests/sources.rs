//! Sources of calls that need their elements in memory: what is computed gives the same as what lies in memory.
//!
//! Sources of calls that read each element where it is computed are in the suites of these calls.

use bytemuck::Pod;
use gpu_conformance::data::random;
use gpu_conformance::{cases, run};
use gpu_primitives::compare::Less;
use gpu_primitives::equality::Same;
use gpu_primitives::operator::{map, predicate};
use gpu_primitives::source::{Source, constant, counted, counting, map, map2};
use gpu_primitives::{
    Bits, Device, DeviceValue, DeviceVec, Error, Offsets, Stream, merge, merge_sort, runs, search, select, sets, sort,
};
use std::fmt::Debug;
use std::process::ExitCode;

fn main() -> ExitCode {
    run(cases![
        merges,
        merge_sorts,
        segmented_sorts,
        set_operations,
        distinct_keys,
        selections,
        runs_and_differences,
        searches,
        lengths_on_the_device,
        selections_of_lengths_on_the_device,
        lengths_that_the_host_must_know,
        wrong_lengths_write_nothing,
        in_a_graph,
    ])
}

/// Around a warp and a block, and several tiles.
const LENGTHS: [usize; 5] = [0, 1, 33, 1000, 5000];

fn numbers(seed: u64, len: usize) -> Vec<u32> {
    random(seed).take(len).map(|x| x as u32 % 1000).collect()
}

fn sorted(seed: u64, len: usize) -> Vec<u32> {
    let mut numbers = numbers(seed, len);
    numbers.sort_unstable();
    numbers
}

/// The first elements are those of a slice; the others, of which there is one at least, are uninitialised.
fn first<T: Pod>(stream: &Stream, elements: &[T]) -> DeviceVec<T> {
    let mut memory = stream.uninit::<T>(elements.len() + 7).unwrap();
    memory.slice_mut(..elements.len()).unwrap().copy_from_host(stream, elements).unwrap();
    memory
}

/// Numbers, of which memory has others: they are seen only if the source is evaluated.
fn computed(memory: &DeviceVec<u32>) -> impl Source<'_, u32> + Copy {
    map(memory, map!(|x: u32| -> u32 { x - 3 }))
}

fn upload(stream: &Stream, numbers: &[u32]) -> DeviceVec<u32> {
    stream.upload(&numbers.iter().map(|x| x + 3).collect::<Vec<_>>()).unwrap()
}

/// Positions, as values of three bytes, which no kernel moves.
fn odd(len: usize) -> impl Source<'static, [u8; 3]> + Copy {
    map(counting(0u32, len), map!(|x: u32| -> [u8; 3] { [x as u8, (x >> 8) as u8, 7] }))
}

/// A call that writes its result.
trait Call<T>: Fn(&mut DeviceVec<T>) -> Result<(), Error> {}

impl<T, F: Fn(&mut DeviceVec<T>) -> Result<(), Error>> Call<T> for F {}

/// Runs a call twice, and compares what it has written.
#[track_caller]
fn alike<T: Pod + Debug + PartialEq>(stream: &Stream, len: usize, calls: [&dyn Call<T>; 2]) -> Vec<T> {
    let [from_memory, computed] = calls.map(|call| {
        let mut output = stream.zeroed::<T>(len).unwrap();
        call(&mut output).unwrap();
        output.to_vec(stream).unwrap()
    });
    assert_eq!(computed, from_memory);
    computed
}

fn merges(device: &Device) {
    let stream = &device.stream().unwrap();
    for len in LENGTHS {
        let host = [sorted(1, len), sorted(2, len / 3), sorted(3, 100)];
        let plain = host.each_ref().map(|run| stream.upload(run).unwrap());
        let memory = host.each_ref().map(|run| upload(stream, run));
        let ([a, b, c], [d, e, f]) = (plain.each_ref(), memory.each_ref().map(computed));
        let total = len + len / 3;
        alike(stream, total, [&|to| merge::keys(stream, a, b, to, Less), &|to| merge::keys(stream, d, e, to, Less)]);
        // One of them in memory.
        alike(stream, total, [&|to| merge::keys(stream, a, b, to, Less), &|to| merge::keys(stream, a, e, to, Less)]);
        let values = |len| stream.upload(&(0..len as u32).collect::<Vec<_>>()).unwrap();
        let (of_a, of_b, of_c) = (values(len), values(len / 3), values(100));
        let count = |len| counting(0u32, len);
        let room = || stream.zeroed::<u32>(total).unwrap();
        alike(
            stream,
            total,
            [&|to| merge::pairs(stream, (a, &of_a), (b, &of_b), (&mut room(), to), Less), &|to| {
                merge::pairs(stream, (d, count(len)), (e, count(len / 3)), (&mut room(), to), Less)
            }],
        );
        let (plain, computed) = ([a, b, c], [d, e, f]);
        alike(
            stream,
            total + 100,
            [&|to| merge::runs_keys(stream, &plain, to, Less), &|to| merge::runs_keys(stream, &computed, to, Less)],
        );
        alike(
            stream,
            total + 100,
            [&|to| merge::small_runs_keys(stream, &plain, to, Less), &|to| {
                merge::small_runs_keys(stream, &computed, to, Less)
            }],
        );
        let plain = [(a, &of_a), (b, &of_b), (c, &of_c)];
        let computed = [(d, count(len)), (e, count(len / 3)), (f, count(100))];
        let room = || stream.zeroed::<u32>(total + 100).unwrap();
        alike(
            stream,
            total + 100,
            [&|to| merge::runs_pairs(stream, &plain, (&mut room(), to), Less), &|to| {
                merge::runs_pairs(stream, &computed, (&mut room(), to), Less)
            }],
        );
        alike(
            stream,
            total + 100,
            [&|to| merge::small_runs_pairs(stream, &plain, (&mut room(), to), Less), &|to| {
                merge::small_runs_pairs(stream, &computed, (&mut room(), to), Less)
            }],
        );
    }
}

fn merge_sorts(device: &Device) {
    let stream = &device.stream().unwrap();
    for len in LENGTHS {
        let host = numbers(len as u64, len);
        let (plain, memory) = (stream.upload(&host).unwrap(), upload(stream, &host));
        let keys = alike(
            stream,
            len,
            [&|to| merge_sort::keys(stream, &plain, to, Less), &|to| {
                merge_sort::keys(stream, computed(&memory), to, Less)
            }],
        );
        assert!(keys.is_sorted());
        let mut values = stream.uninit(len).unwrap();
        stream_write(stream, odd(len), &mut values);
        let room = || stream.zeroed::<u32>(len).unwrap();
        alike(
            stream,
            len,
            [&|to| merge_sort::pairs(stream, (&plain, &values), (&mut room(), to), Less), &|to| {
                merge_sort::pairs(stream, (computed(&memory), odd(len)), (&mut room(), to), Less)
            }],
        );
    }
}

fn stream_write<'a, T: Pod>(stream: &Stream, source: impl Source<'a, T>, output: &mut DeviceVec<T>) {
    gpu_primitives::transform::write(stream, source, output).unwrap();
}

fn segmented_sorts(device: &Device) {
    let stream = &device.stream().unwrap();
    for len in LENGTHS {
        let host = numbers(len as u64, len);
        let (plain, memory) = (stream.upload(&host).unwrap(), upload(stream, &host));
        let offsets = stream.upload(&[0, len as u32 / 7, len as u32 / 2, len as u32]).unwrap();
        let call = |to: &mut _, keys: &dyn Fn(&mut DeviceVec<u32>) -> Result<(), Error>| keys(to);
        alike(
            stream,
            len,
            [&|to| call(to, &|to| sort::segmented_keys(stream, &plain, &offsets, to, Less)), &|to| {
                call(to, &|to| sort::segmented_keys(stream, computed(&memory), &offsets, to, Less))
            }],
        );
        alike(
            stream,
            len,
            [&|to| sort::segmented_argsort(stream, &plain, &offsets, to, Less), &|to| {
                sort::segmented_argsort(stream, computed(&memory), &offsets, to, Less)
            }],
        );
        let mut values = stream.uninit(len).unwrap();
        stream_write(stream, odd(len), &mut values);
        let room = || stream.zeroed::<u32>(len).unwrap();
        // SAFETY: the offsets are in order.
        let unchecked = || unsafe { Offsets::unchecked(&offsets) };
        alike(
            stream,
            len,
            [&|to| sort::segmented_pairs(stream, (&plain, &values), unchecked(), (&mut room(), to), Less), &|to| {
                sort::segmented_pairs(stream, (computed(&memory), odd(len)), unchecked(), (&mut room(), to), Less)
            }],
        );
    }
}

/// Calls that write an output and return how many elements of it there are.
type Counting<'a, T> = &'a dyn Fn(&mut DeviceVec<T>) -> Result<DeviceValue<u64>, Error>;

/// [`alike`], with the number of elements.
#[track_caller]
fn counted_alike<T: Pod + Debug + PartialEq>(stream: &Stream, len: usize, calls: [Counting<'_, T>; 2]) {
    let [from_memory, computed] = calls.map(|call| {
        let mut output = stream.zeroed::<T>(len).unwrap();
        let count = call(&mut output).unwrap().get(stream).unwrap();
        (count, output.to_vec(stream).unwrap())
    });
    assert_eq!(computed, from_memory);
}

fn set_operations(device: &Device) {
    let stream = &device.stream().unwrap();
    for len in LENGTHS {
        let host = [sorted(1, len), sorted(2, len / 3)];
        let plain = host.each_ref().map(|run| stream.upload(run).unwrap());
        let memory = host.each_ref().map(|run| upload(stream, run));
        let ([a, b], [c, d]) = (plain.each_ref(), memory.each_ref().map(computed));
        let total = len + len / 3;
        let both: [[Counting<'_, u32>; 2]; 4] = [
            [&|to| sets::union(stream, a, b, to, Less), &|to| sets::union(stream, c, d, to, Less)],
            [&|to| sets::intersection(stream, a, b, to, Less), &|to| sets::intersection(stream, c, d, to, Less)],
            [&|to| sets::difference(stream, a, b, to, Less), &|to| sets::difference(stream, c, b, to, Less)],
            [&|to| sets::symmetric_difference(stream, a, b, to, Less), &|to| {
                sets::symmetric_difference(stream, a, d, to, Less)
            }],
        ];
        for calls in both {
            counted_alike(stream, total, calls);
        }
        let (mut of_a, mut of_b) = (stream.uninit(len).unwrap(), stream.uninit(len / 3).unwrap());
        stream_write(stream, odd(len), &mut of_a);
        stream_write(stream, odd(len / 3), &mut of_b);
        let (p, q) = ((a, &of_a), (b, &of_b));
        let (r, s) = ((c, odd(len)), (d, odd(len / 3)));
        let room = || stream.zeroed::<u32>(total).unwrap();
        let both: [[Counting<'_, [u8; 3]>; 2]; 4] = [
            [&|to| sets::union_pairs(stream, p, q, (&mut room(), to), Less), &|to| {
                sets::union_pairs(stream, r, s, (&mut room(), to), Less)
            }],
            [&|to| sets::intersection_pairs(stream, p, b, (&mut room(), to), Less), &|to| {
                sets::intersection_pairs(stream, r, d, (&mut room(), to), Less)
            }],
            [&|to| sets::difference_pairs(stream, p, b, (&mut room(), to), Less), &|to| {
                sets::difference_pairs(stream, r, d, (&mut room(), to), Less)
            }],
            [&|to| sets::symmetric_difference_pairs(stream, p, q, (&mut room(), to), Less), &|to| {
                sets::symmetric_difference_pairs(stream, r, s, (&mut room(), to), Less)
            }],
        ];
        for calls in both {
            counted_alike(stream, total, calls);
        }
    }
}

fn distinct_keys(device: &Device) {
    let stream = &device.stream().unwrap();
    for len in LENGTHS {
        let host = numbers(len as u64, len);
        let (plain, memory) = (stream.upload(&host).unwrap(), upload(stream, &host));
        let floats = stream.upload(&host.iter().map(|&x| x as f32).collect::<Vec<_>>()).unwrap();
        let as_floats = || map(&plain, map!(|x: u32| -> f32 { x as f32 }));
        counted_alike(
            stream,
            len,
            [&|to| runs::distinct(stream, &plain, to), &|to| runs::distinct(stream, computed(&memory), to)],
        );
        counted_alike(
            stream,
            len,
            [&|to| runs::distinct(stream, &floats, to), &|to| runs::distinct(stream, as_floats(), to)],
        );
        let room = || stream.zeroed::<u32>(len).unwrap();
        counted_alike(
            stream,
            len,
            [&|to: &mut DeviceVec<u32>| runs::distinct_counts(stream, &plain, (&mut room(), to)), &|to| {
                runs::distinct_counts(stream, computed(&memory), (&mut room(), to))
            }],
        );
        counted_alike(
            stream,
            len,
            [&|to| runs::distinct_inverse(stream, &plain, (&mut room(), to)), &|to| {
                runs::distinct_inverse(stream, computed(&memory), (&mut room(), to))
            }],
        );
        counted_alike(
            stream,
            len,
            [&|to: &mut DeviceVec<u32>| runs::distinct_counts(stream, &plain, (&mut room(), to)), &|to| {
                runs::distinct_counts_hashed(stream, computed(&memory), (&mut room(), to), 2000)
            }],
        );
    }
}

fn selections(device: &Device) {
    let stream = &device.stream().unwrap();
    let keep = predicate!(|x: u32| x % 3 == 0);
    for len in LENGTHS {
        let host = numbers(len as u64, len);
        let (plain, memory) = (stream.upload(&host).unwrap(), upload(stream, &host));
        let flags = stream.upload(&host.iter().map(|x| u8::from(x % 3 == 0)).collect::<Vec<_>>()).unwrap();
        let computed_flags = || map(&plain, map!(|x: u32| -> u8 { (x % 3 == 0) as u8 }));
        let packed: Vec<u8> =
            host.chunks(8).map(|bits| (0..).zip(bits).map(|(i, x)| u8::from(x % 3 == 0) << i).sum()).collect();
        let packed = stream.upload(&packed).unwrap();
        let bits = || Bits::new(&packed, 0, len).unwrap();
        let source = || computed(&memory);
        let both: [[Counting<'_, u32>; 2]; 5] = [
            [&|to| select::partition(stream, &plain, to, keep), &|to| select::partition(stream, source(), to, keep)],
            [&|to| select::flagged(stream, &plain, &flags, to), &|to| select::flagged(stream, source(), &flags, to)],
            [&|to| select::flagged(stream, &plain, &flags, to), &|to| {
                select::flagged(stream, &plain, computed_flags(), to)
            }],
            [&|to| select::by_bits(stream, &plain, bits(), to), &|to| select::by_bits(stream, source(), bits(), to)],
            [&|to| select::select(stream, &plain, to, keep), &|to| select::by_bits(stream, source(), bits(), to)],
        ];
        for calls in both {
            counted_alike(stream, len, calls);
        }
        let mut values = stream.uninit(len).unwrap();
        stream_write(stream, odd(len), &mut values);
        let (p, q) = ((&plain, &values), || (source(), odd(len)));
        let room = || stream.zeroed::<u32>(len).unwrap();
        let both: [[Counting<'_, [u8; 3]>; 2]; 3] = [
            [&|to| select::select_pairs(stream, p, (&mut room(), to), keep), &|to| {
                select::select_pairs(stream, q(), (&mut room(), to), keep)
            }],
            [&|to| select::partition_pairs(stream, p, (&mut room(), to), keep), &|to| {
                select::partition_pairs(stream, q(), (&mut room(), to), keep)
            }],
            [&|to| select::flagged_pairs(stream, p, &flags, (&mut room(), to)), &|to| {
                select::flagged_pairs(stream, q(), computed_flags(), (&mut room(), to))
            }],
        ];
        for calls in both {
            counted_alike(stream, len, calls);
        }
        let offsets = stream.upload(&[0, len as u32 / 7, len as u32]).unwrap();
        let mut kept = [room(), room()];
        let [a, b] = &mut kept;
        let from_memory = select::segmented(stream, &plain, &offsets, a, keep).unwrap().to_vec(stream).unwrap();
        let computed =
            select::segmented_pairs(stream, (source(), &plain), &offsets, (&mut *b, &mut room()), keep).unwrap();
        assert_eq!(computed.to_vec(stream).unwrap(), from_memory);
        let computed = select::segmented(stream, source(), &offsets, b, keep).unwrap();
        assert_eq!(computed.to_vec(stream).unwrap(), from_memory);
        assert_eq!(kept[0].to_vec(stream).unwrap(), kept[1].to_vec(stream).unwrap());
    }
}

fn runs_and_differences(device: &Device) {
    let stream = &device.stream().unwrap();
    for len in LENGTHS {
        let host = sorted(len as u64, len);
        let (plain, memory) = (stream.upload(&host).unwrap(), upload(stream, &host));
        let minus = map!(|x: u32, y: u32| -> u32 { x - y });
        alike(
            stream,
            len,
            [&|to| runs::adjacent_difference(stream, &plain, to, minus), &|to| {
                runs::adjacent_difference(stream, computed(&memory), to, minus)
            }],
        );
        let mut values = stream.uninit(len).unwrap();
        stream_write(stream, odd(len), &mut values);
        let room = || stream.zeroed::<u32>(len).unwrap();
        for which in [runs::Which::First, runs::Which::Last] {
            counted_alike(
                stream,
                len,
                [&|to| runs::unique_by_key(stream, (&plain, &values), (&mut room(), to), Same, which), &|to| {
                    runs::unique_by_key(stream, (computed(&memory), odd(len)), (&mut room(), to), Same, which)
                }],
            );
            counted_alike(
                stream,
                len,
                [&|to| runs::unique_by_key(stream, (&plain, &plain), (&mut room(), to), Same, which), &|to| {
                    runs::unique_by_key(stream, (&plain, computed(&memory)), (&mut room(), to), Same, which)
                }],
            );
        }
        counted_alike(
            stream,
            3 * len,
            [&|to| runs::run_length_decode(stream, (&plain, constant(3u32, len)), to), &|to| {
                runs::run_length_decode(stream, (computed(&memory), constant(3u32, len)), to)
            }],
        );
    }
}

fn searches(device: &Device) {
    let stream = &device.stream().unwrap();
    let haystack = &stream.upload(&sorted(9, 3000)).unwrap();
    for len in LENGTHS {
        let host = sorted(len as u64, len);
        let (plain, memory) = (&stream.upload(&host).unwrap(), &upload(stream, &host));
        let both: [[&dyn Call<u32>; 2]; 5] = [
            [&|to| search::lower_bound(stream, haystack, plain, to, Less), &|to| {
                search::lower_bound(stream, haystack, computed(memory), to, Less)
            }],
            [&|to| search::upper_bound(stream, haystack, plain, to, Less), &|to| {
                search::upper_bound(stream, haystack, computed(memory), to, Less)
            }],
            [&|to| search::lower_bound_sorted(stream, haystack, plain, to, Less), &|to| {
                search::lower_bound_sorted(stream, haystack, computed(memory), to, Less)
            }],
            [&|to| search::upper_bound_sorted(stream, haystack, plain, to, Less), &|to| {
                search::upper_bound_sorted(stream, haystack, computed(memory), to, Less)
            }],
            [&|to| search::upper_bound(stream, haystack, plain, to, Less), &|to| {
                let mut lower = stream.uninit::<u32>(len)?;
                search::equal_range(stream, haystack, computed(memory), &mut lower, to, Less)
            }],
        ];
        for calls in both {
            alike(stream, len, calls);
        }
    }
}

/// The source is evaluated for as many elements as there are: what is beyond them is uninitialised.
fn lengths_on_the_device(device: &Device) {
    let stream = &device.stream().unwrap();
    for len in LENGTHS {
        let host = sorted(len as u64, len);
        let stored: Vec<u32> = host.iter().map(|x| x + 3).collect();
        let memory = first(stream, &stored);
        let (room, count) = (memory.len(), DeviceValue::new(stream, len as u64).unwrap());
        let keys = || counted(computed(&memory), &count);
        let check = |output: &DeviceVec<u32>, expected: &[u32]| {
            let found = output.to_vec(stream).unwrap();
            assert_eq!(&found[..expected.len()], expected);
            assert!(found[expected.len()..].iter().all(|&x| x == 0), "what is beyond the result has changed");
        };
        let zeros = |len| stream.zeroed::<u32>(len).unwrap();
        let mut out = zeros(room + 10);
        merge::keys(stream, keys(), constant(500u32, 10), &mut out, Less).unwrap();
        let mut expected = [&host[..], &[500; 10]].concat();
        expected.sort_unstable();
        check(&out, &expected);

        let mut out = zeros(room);
        merge_sort::keys(stream, keys(), &mut out, Less).unwrap();
        check(&out, &host);
        // The length of the values is that of the keys, which are computed for as many.
        let mut tags = zeros(room);
        let values = counted(counting(0u32, room), &count);
        merge_sort::pairs(stream, (computed(&memory), values), (&mut out, &mut tags), Less).unwrap();
        check(&tags, &(0..len as u32).collect::<Vec<_>>());

        let mut unique = host.clone();
        unique.dedup();
        let mut out = zeros(room);
        let found = runs::distinct(stream, keys(), &mut out).unwrap().get(stream).unwrap();
        assert_eq!(found, unique.len() as u64);
        check(&out, &unique);
        let (mut out, mut counts) = (zeros(room), zeros(room));
        let found = runs::distinct_counts_hashed(stream, keys(), (&mut out, &mut counts), 5000).unwrap();
        assert_eq!(found.get(stream).unwrap(), unique.len() as u64);
        check(&out, &unique);
        let mut out = zeros(2 * room);
        let found = sets::union(stream, keys(), keys(), &mut out, Less).unwrap().get(stream).unwrap();
        assert_eq!(found, len as u64);
        check(&out, &host);

        let mut firsts = zeros(room);
        let pairs = (keys(), counting(0u32, room));
        let mut out = zeros(room);
        runs::unique_by_key(stream, pairs, (&mut out, &mut firsts), Same, runs::Which::First).unwrap();
        check(&out, &unique);
        let mut out = zeros(2 * room);
        let twice = (keys(), constant(2u32, room));
        runs::run_length_decode(stream, twice, &mut out).unwrap();
        check(&out, &host.iter().flat_map(|&x| [x, x]).collect::<Vec<_>>());
    }
}

fn selections_of_lengths_on_the_device(device: &Device) {
    let stream = &device.stream().unwrap();
    let keep = predicate!(|x: u32| x % 3 != 1);
    for len in LENGTHS {
        let host = numbers(len as u64, len);
        let (memory, flags) =
            (first(stream, &host), first(stream, &host.iter().map(|x| u8::from(x % 3 != 1)).collect::<Vec<_>>()));
        let (room, count) = (memory.len(), DeviceValue::new(stream, len as u64).unwrap());
        let expected: Vec<(u32, u32)> = host.iter().copied().zip(0..).filter(|(x, _)| x % 3 != 1).collect();
        type Call<'a> = &'a dyn Fn(&mut DeviceVec<u32>, &mut DeviceVec<u32>) -> Result<DeviceValue<u64>, Error>;
        let check = |call: Call<'_>, has_values: bool| {
            let (mut keys, mut values) = (stream.zeroed(room).unwrap(), stream.zeroed(room).unwrap());
            let found = call(&mut keys, &mut values).unwrap().get(stream).unwrap();
            assert_eq!(found, expected.len() as u64);
            let (mut all_keys, mut all_values) = (vec![0; room], vec![0; room]);
            for (i, &(key, value)) in expected.iter().enumerate() {
                (all_keys[i], all_values[i]) = (key, if has_values { value } else { 0 });
            }
            assert_eq!((keys.to_vec(stream).unwrap(), values.to_vec(stream).unwrap()), (all_keys, all_values));
        };
        let numbered = || counting(0u32, room);
        check(&|k, v| select::select_pairs(stream, (counted(&memory, &count), numbered()), (k, v), keep), true);
        check(&|k, v| select::select_pairs(stream, (&memory, counted(numbered(), &count)), (k, v), keep), true);
        check(&|k, _| select::flagged(stream, counted(&memory, &count), &flags, k), false);
        check(&|k, _| select::flagged(stream, &memory, counted(&flags, &count), k), false);
        let computed_flags = || map2(&memory, &flags, map!(|_x: u32, flag: u8| -> u8 { 2 * flag }));
        check(&|k, _| select::flagged(stream, counted(&memory, &count), computed_flags(), k), false);
        check(&|k, v| select::flagged_pairs(stream, (&memory, numbered()), counted(&flags, &count), (k, v)), true);
        check(&|k, v| select::flagged_pairs(stream, (counted(&memory, &count), numbered()), &flags, (k, v)), true);
    }
}

/// Where kernels read all elements, a length on the device is an error, and nothing is written.
fn lengths_that_the_host_must_know(device: &Device) {
    let stream = &device.stream().unwrap();
    let keys = stream.upload(&[1u32, 2, 3]).unwrap();
    let count = DeviceValue::new(stream, 2u64).unwrap();
    let first = || counted(&keys, &count);
    let mut out = stream.zeroed::<u32>(3).unwrap();
    let offsets = stream.upload(&[0u32, 3]).unwrap();
    let bits = stream.upload(&[7u8]).unwrap();
    let keep = predicate!(|x: u32| x != 2);
    let minus = map!(|x: u32, y: u32| -> u32 { x - y });
    let results = [
        select::partition(stream, first(), &mut out, keep).map(drop),
        select::by_bits(stream, first(), Bits::new(&bits, 0, 3).unwrap(), &mut out).map(drop),
        select::segmented(stream, first(), &offsets, &mut out, keep).map(drop),
        search::lower_bound(stream, &keys, first(), &mut out, Less),
        search::upper_bound_sorted(stream, &keys, first(), &mut out, Less),
        runs::adjacent_difference(stream, first(), &mut out, minus),
    ];
    for result in results {
        let error = result.unwrap_err();
        assert!(matches!(error, Error::InvalidOption { .. }), "{error}");
        assert!(error.to_string().contains("a length that only the device knows"), "{error}");
    }
    assert_eq!(out.to_vec(stream).unwrap(), [0; 3]);
    // Two lengths that differ.
    let other = DeviceValue::new(stream, 1u64).unwrap();
    let pairs = (first(), counted(counting(0u32, 3), &other));
    let result = merge_sort::pairs(stream, pairs, (&mut out, &mut stream.zeroed::<u32>(3).unwrap()), Less);
    assert!(matches!(result, Err(Error::InvalidOption { .. })));
}

fn wrong_lengths_write_nothing(device: &Device) {
    let stream = &device.stream().unwrap();
    let keys = || counting(0u32, 5);
    let mut out = stream.zeroed::<u32>(4).unwrap();
    let mut values = stream.zeroed::<u32>(5).unwrap();
    let results = [
        merge::keys(stream, keys(), keys(), &mut out, Less),
        merge_sort::keys(stream, keys(), &mut out, Less),
        merge_sort::pairs(stream, (keys(), counting(0u32, 4)), (&mut values, &mut out), Less),
        sets::union(stream, keys(), keys(), &mut out, Less).map(drop),
        search::lower_bound(stream, &values, keys(), &mut out, Less),
        select::partition(stream, keys(), &mut out, predicate!(|x: u32| x != 2)).map(drop),
        select::flagged(stream, keys(), constant(1u8, 4), &mut out).map(drop),
    ];
    for result in results {
        assert!(matches!(result, Err(Error::LengthMismatch { .. })), "{result:?}");
    }
    assert_eq!(out.to_vec(stream).unwrap(), [0; 4]);
}

/// Each launch evaluates the source anew.
fn in_a_graph(device: &Device) {
    let stream = &device.stream().unwrap();
    let mut input = stream.upload(&[5u32, 4, 9, 7]).unwrap();
    let mut out = stream.zeroed::<u32>(4).unwrap();
    let record = |stream: &Stream| merge_sort::keys(stream, computed(&input), &mut out, Less);
    let (mut graph, ()) = stream.capture(record).unwrap();
    for expected in [[1u32, 2, 4, 6], [0, 2, 4, 6]] {
        // SAFETY: the input and the output are still there.
        unsafe { graph.launch(stream).unwrap() };
        assert_eq!(out.to_vec(stream).unwrap(), expected);
        input.slice_mut(1..2).unwrap().copy_from_host(stream, &[3]).unwrap();
    }
}
