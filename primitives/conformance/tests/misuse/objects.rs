//! Misuse of streams, vectors, slices, buffers, events and graphs, and of the plain arguments of calls.

use gpu_conformance::is_checked;
use gpu_primitives::compare::Less;
use gpu_primitives::multisplit::{self, Shift};
use gpu_primitives::sort::{self, Options, SortedRuns};
use gpu_primitives::source::{constant, counting};
use gpu_primitives::top_k::{self, Rows};
use gpu_primitives::{
    CpuOptions, Device, DeviceSlice, DeviceValue, DeviceVec, Error, Stream, histogram, merge, permute, reduce, runs,
    scan, transfer, transform,
};
use std::fmt::Debug;
use std::ops::{Bound, RangeBounds};

const NUMBERS: [u32; 8] = [0, 1, 2, 3, 4, 5, 6, 7];

/// A stream of another device of the same kind; for a GPU, of the CPU.
fn elsewhere(device: &Device) -> Stream {
    Device::cpu_with(CpuOptions { checked: is_checked(device), ..CpuOptions::default() }).stream().unwrap()
}

/// Checks the error of a call.
macro_rules! fails {
    ($result:expr, $error:pat) => {
        let result = $result.map(drop);
        assert!(matches!(result, Err($error)), "{}: {result:?}", stringify!($result));
    };
}

pub fn ranges_that_do_not_fit(device: &Device) {
    fn check(vector: &mut DeviceVec<u32>, range: impl RangeBounds<usize> + Clone + Debug) {
        fails!(vector.slice(range.clone()), Error::RangeOutside { len: 8, .. });
        fails!(vector.slice_mut(range.clone()), Error::RangeOutside { len: 8, .. });
        fails!(vector.as_slice().slice(range.clone()), Error::RangeOutside { len: 8, .. });
        fails!(vector.as_mut_slice().slice(range.clone()), Error::RangeOutside { len: 8, .. });
        fails!(vector.as_mut_slice().slice_mut(range), Error::RangeOutside { len: 8, .. });
    }
    let stream = device.stream().unwrap();
    let mut vector = stream.upload(&NUMBERS).unwrap();
    check(&mut vector, 9..);
    check(&mut vector, ..9);
    check(&mut vector, 0..=8);
    check(&mut vector, (Bound::Included(5), Bound::Excluded(3)));
    check(&mut vector, usize::MAX..);
    check(&mut vector, ..usize::MAX);
    check(&mut vector, ..=usize::MAX);
    check(&mut vector, (Bound::Excluded(usize::MAX), Bound::Unbounded));
    check(&mut vector, usize::MAX - 1..usize::MAX);
    for mid in [9, usize::MAX] {
        fails!(vector.as_slice().split_at(mid), Error::RangeOutside { len: 8, .. });
        fails!(vector.as_mut_slice().split_at_mut(mid), Error::RangeOutside { len: 8, .. });
    }
    vector.truncate(usize::MAX);
    assert_eq!(vector.to_vec(&stream).unwrap(), NUMBERS);
    assert!(vector.as_slice().cast::<u64>().is_none() && vector.as_mut_slice().cast::<u8>().is_none());
    let vector = vector.cast::<u64>().expect_err("the sizes differ");
    assert_eq!(vector.as_slice().bytes().len(), 32);
    assert_eq!(vector.to_vec(&stream).unwrap(), NUMBERS);
}

pub fn copies_that_do_not_fit(device: &Device) {
    let (stream, elsewhere) = (device.stream().unwrap(), elsewhere(device));
    let mut vector = stream.upload(&NUMBERS).unwrap();
    let mut stranger = elsewhere.upload(&NUMBERS).unwrap();
    for len in [0, 7, 9] {
        let (mut host, other) = (vec![77; len], stream.upload(&vec![77; len]).unwrap());
        fails!(vector.copy_to_host(&stream, &mut host), Error::LengthMismatch { .. });
        fails!(vector.copy_from_host(&stream, &host), Error::LengthMismatch { .. });
        fails!(vector.copy_from(&stream, &other), Error::LengthMismatch { .. });
        fails!(stream.upload_pinned(device.pinned(len).unwrap(), &mut vector), Error::LengthMismatch { .. });
        fails!(stream.download_pinned(&vector, device.pinned(len).unwrap()), Error::LengthMismatch { .. });
        assert!(host.iter().all(|&number| number == 77), "the host's memory has changed");
    }
    let mut host = [77; 8];
    let (pinned, pinned_there) = (|| device.pinned::<u32>(8).unwrap(), || elsewhere.device().pinned::<u32>(8).unwrap());
    fails!(vector.to_vec(&elsewhere), Error::WrongDevice { .. });
    fails!(vector.copy_to_host(&elsewhere, &mut host), Error::WrongDevice { .. });
    fails!(vector.copy_from_host(&elsewhere, &host), Error::WrongDevice { .. });
    fails!(vector.copy_from(&stream, &stranger), Error::WrongDevice { .. });
    fails!(vector.copy_from(&elsewhere, &stranger), Error::WrongDevice { .. });
    fails!(vector.try_clone(&elsewhere), Error::WrongDevice { .. });
    fails!(stream.upload_pinned(pinned(), &mut stranger), Error::WrongDevice { .. });
    fails!(stream.download_pinned(&stranger, pinned()), Error::WrongDevice { .. });
    fails!(DeviceValue::new(&stream, 5u64).unwrap().get(&elsewhere), Error::WrongDevice { .. });
    // A buffer of another device is ordinary memory of the host, or refused.
    match stream.download_pinned(&vector, pinned_there()) {
        Ok(pending) => assert_eq!(pending.wait().unwrap()[..], NUMBERS),
        Err(error) => assert!(matches!(error, Error::WrongDevice { .. }), "{error}"),
    }
    assert_eq!(host, [77; 8]);
    assert_eq!(vector.to_vec(&stream).unwrap(), NUMBERS);
    assert_eq!(stranger.to_vec(&elsewhere).unwrap(), NUMBERS);
}

pub fn sizes_that_overflow(device: &Device) {
    let stream = device.stream().unwrap();
    for len in [usize::MAX, usize::MAX / 8, usize::MAX / 8 + 1, isize::MAX as usize / 8 + 1] {
        fails!(stream.uninit::<u64>(len), Error::OutOfMemory { .. });
        fails!(stream.zeroed::<u64>(len), Error::OutOfMemory { .. });
        fails!(device.pinned::<u64>(len), Error::OutOfMemory { .. });
    }
    // Elements without bytes need no memory, however many there are.
    let nothing = stream.uninit::<()>(usize::MAX).unwrap();
    assert_eq!(nothing.len(), usize::MAX);
    assert!(nothing.as_slice().bytes().is_empty());
    assert_eq!(nothing.to_vec(&stream).unwrap().len(), usize::MAX);
}

pub fn events_of_another_device(device: &Device) {
    let (stream, elsewhere) = (device.stream().unwrap(), elsewhere(device));
    let (here, there) = (stream.record().unwrap(), elsewhere.record().unwrap());
    fails!(here.elapsed(&there), Error::WrongDevice { .. });
    fails!(there.elapsed(&here), Error::WrongDevice { .. });
    let (mut graph, ()) = stream.capture(|_| Ok(())).unwrap();
    // SAFETY: the graph is empty.
    fails!(unsafe { graph.launch(&elsewhere) }, Error::WrongDevice { .. });
    // A wait is possible across devices.
    stream.wait(&there).unwrap();
    here.elapsed(&here).unwrap();
}

/// What the host does with streams and memory, while a graph is recorded: it is recorded, or refused. Either way the recording
/// ends, and the stream works.
pub fn the_host_in_a_recording(device: &Device) {
    type Action = fn(&Stream, &mut DeviceVec<u32>) -> Result<(), Error>;
    let actions: [(&str, Action); 13] = [
        ("to_vec", |s, v| v.to_vec(s).map(drop)),
        ("copy_to_host", |s, v| v.copy_to_host(s, &mut [0; 8])),
        ("copy_from_host", |s, v| v.copy_from_host(s, &[1; 8])),
        ("try_clone", |s, v| v.try_clone(s).map(drop)),
        ("upload", |s, _| s.upload(&[1u32; 100]).map(drop)),
        ("zeroed", |s, _| s.zeroed::<u32>(100).map(drop)),
        ("DeviceValue::get", |s, _| DeviceValue::new(s, 1u64)?.get(s).map(drop)),
        ("synchronize", |s, _| s.synchronize()),
        ("record", |s, _| s.record()?.synchronize()),
        ("wait", |s, _| s.wait(&s.device().stream()?.record()?)),
        ("capture", |s, v| s.capture(|inner| transfer::fill(inner, &mut *v, 3)).map(drop)),
        ("download_pinned", |s, v| s.download_pinned(&*v, s.device().pinned(8)?)?.wait().map(drop)),
        ("upload_pinned", |s, v| s.upload_pinned(s.device().pinned(8)?, v)?.wait().map(drop)),
    ];
    let stream = device.stream().unwrap();
    for (name, action) in actions {
        let mut vector = stream.upload(&NUMBERS).unwrap();
        let recorded = stream.capture(|recorder| {
            action(recorder, &mut vector)?;
            transfer::fill(recorder, &mut vector, 9)
        });
        assert_eq!(vector.to_vec(&stream).unwrap(), NUMBERS, "{name}: it ran while it was recorded");
        match recorded {
            // SAFETY: the vector still exists, and is used only on this stream.
            Ok((mut graph, ())) => unsafe {
                graph.launch(&stream).unwrap();
                assert_eq!(vector.to_vec(&stream).unwrap(), [9; 8], "{name}");
            },
            Err(error) => assert!(matches!(error, Error::NotRecordable { .. }), "{name}: {error}"),
        }
        scan::inclusive_in_place(&stream, &mut vector, scan::Sum).unwrap();
        stream.synchronize().unwrap();
    }
}

/// Plain numbers among the arguments: the call says what is wrong with them, or takes them.
pub fn numbers_that_do_not_fit(device: &Device) {
    let stream = &device.stream().unwrap();
    let numbers = stream.upload(&NUMBERS).unwrap();
    let (mut a, mut b) = (numbers.try_clone(stream).unwrap(), numbers.try_clone(stream).unwrap());
    for buckets in [0, 257, u32::MAX] {
        fails!(multisplit::keys(stream, &numbers, &mut a, buckets, Shift::by(0)), Error::TooMany { .. });
    }
    multisplit::keys(stream, &numbers, &mut a, 256, Shift::by(u32::MAX)).unwrap();
    for bits in [0..33, 33..33, u32::MAX - 1..u32::MAX] {
        fails!(sort::keys(stream, &numbers, &mut a, Options::new().bits(bits)), Error::BitRange { .. });
    }
    #[allow(clippy::reversed_empty_ranges, reason = "the misuse")]
    let reversed = Options::new().bits(5..3);
    fails!(sort::keys(stream, &numbers, &mut a, reversed), Error::BitRange { .. });

    let half = numbers.slice(..4).unwrap();
    for tile in [0, 1, usize::MAX] {
        takes_or_refuses(merge::Splits::find(stream, half, half, Less, tile).map(drop));
        takes_or_refuses(merge::RunsSplits::find(stream, &[half, half], Less, tile).map(drop));
    }
    for most in [0, usize::MAX] {
        takes_or_refuses(SortedRuns::new(stream, numbers.as_slice(), numbers.as_slice(), most).map(drop));
    }
    let none: [DeviceSlice<'_, u32>; 0] = [];
    for slices in [&none[..], &[numbers.slice(..0).unwrap(); 1000]] {
        takes_or_refuses(merge::runs_keys(stream, slices, a.slice_mut(..0).unwrap(), Less));
        takes_or_refuses(merge::small_runs_keys(stream, slices, a.slice_mut(..0).unwrap(), Less));
        fails!(merge::runs_keys(stream, slices, &mut a, Less), Error::LengthMismatch { .. } | Error::TooMany { .. });
        fails!(
            merge::small_runs_keys(stream, slices, &mut a, Less),
            Error::LengthMismatch { .. } | Error::TooMany { .. }
        );
    }

    for k in [0, 3, 9, usize::MAX / 2, usize::MAX] {
        for rows in [Rows::of_len(0), Rows::of_len(3), Rows::of_len(8), Rows::of_len(usize::MAX)] {
            takes_or_refuses(top_k::segmented_largest(stream, &numbers, rows, k, (&mut a, &mut b)));
        }
    }
    fails!(top_k::largest(stream, half, (&mut a, &mut b)), Error::LengthMismatch { .. });

    // Sources that are longer than any memory.
    let endless = || constant(1u32, usize::MAX);
    fails!(transform::write(stream, endless(), &mut a), Error::LengthMismatch { .. });
    fails!(transform::write(stream, counting(0u32, usize::MAX), &mut a), Error::LengthMismatch { .. });
    fails!(permute::gather(stream, &numbers, endless(), &mut a), Error::LengthMismatch { .. });
    fails!(permute::scatter(stream, &numbers, endless(), &mut a), Error::LengthMismatch { .. });
    fails!(runs::run_length_decode(stream, (&numbers, endless()), &mut a), Error::LengthMismatch { .. });
    fails!(scan::inclusive_sum(stream, endless(), &mut a), Error::LengthMismatch { .. });
    fails!(top_k::largest(stream, endless(), (&mut a, &mut b)), Error::TooLong { .. });
    histogram::even(stream, &numbers, a.slice_mut(..3).unwrap(), 5, 5).unwrap();
    histogram::even(stream, &numbers, a.slice_mut(..3).unwrap(), u32::MAX, 0).unwrap();
    assert_eq!(a.slice(..3).unwrap().to_vec(stream).unwrap(), [0; 3]);

    // Lengths that are out of range only on the device.
    let far = stream.upload(&[u32::MAX; 8]).unwrap();
    assert_eq!(permute::gather(stream, &numbers, &far, &mut a).unwrap().get(stream).unwrap(), 8);
    assert_eq!(permute::scatter(stream, &numbers, &far, &mut a).unwrap().get(stream).unwrap(), 8);
    assert_eq!(
        runs::run_length_decode(stream, (&numbers, &far), &mut b).unwrap().get(stream).unwrap(),
        8 * u64::from(u32::MAX)
    );
    assert_eq!(b.to_vec(stream).unwrap(), [0; 8]);
    reduce::segmented(stream, &numbers, &far, a.slice_mut(..7).unwrap(), reduce::Sum).unwrap();
    scan::segmented_inclusive(stream, &numbers, &far, &mut a, scan::Sum).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(numbers.to_vec(stream).unwrap(), NUMBERS);
}

/// Checks that a call with odd arguments succeeds, or says what is wrong with them.
#[track_caller]
fn takes_or_refuses(result: Result<(), Error>) {
    if let Err(error) = result {
        let is_told = matches!(
            error,
            Error::LengthMismatch { .. }
                | Error::TooMany { .. }
                | Error::TooLong { .. }
                | Error::InvalidOption { .. }
                | Error::OutOfMemory { .. }
        );
        assert!(is_told, "{error}");
    }
}
