//! Safe code cannot access foreign memory: functions that break their contracts, elements of odd sizes, extreme
//! options, freed memory.

use bytemuck::{Pod, Zeroable};
use gpu_conformance::data::random;
use gpu_conformance::kernels::Unsteady;
use gpu_conformance::{cases, is_checked, is_gpu, run};
use gpu_primitives::compare::{Compare, Less};
use gpu_primitives::equality::{Equality, Same};
use gpu_primitives::kernel::kernel;
use gpu_primitives::map::Map;
use gpu_primitives::multisplit::Bucket;
use gpu_primitives::operator::{Record, Recorded, Recording, map, operator};
use gpu_primitives::scan::{Monoid, Sum};
use gpu_primitives::select::{self, Predicate};
use gpu_primitives::sort::{FromCode, RadixKey};
use gpu_primitives::{
    CpuOptions, Device, DeviceVec, Error, FaultKind, Global, GlobalMut, Stream, histogram, merge, merge_sort,
    multisplit, reduce, runs, scan, search, sets, sort, source, thread, top_k, transfer,
};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

fn main() -> ExitCode {
    run(cases![
        unsteady_orders,
        unsteady_buckets,
        functions_that_change_their_answers,
        recordings_that_change,
        a_recording_that_launches_its_own_kernel,
        codes_of_more_bits_than_they_say,
        what_was_not_written_is_never_host_memory,
        a_recorder_that_outlives_its_recording,
        a_device_without_workers,
        elements_of_odd_sizes;
        checked:
        memory_that_is_gone,
        a_view_that_lies,
        an_operator_that_calls_the_host,
    ])
}

/// Memory between two margins that must not change.
struct Fenced {
    memory: DeviceVec<u32>,
    len: usize,
}

impl Fenced {
    const MARGIN: usize = 5000;
    const MARK: u32 = 0xfe2c_ed00;

    fn new(stream: &Stream, len: usize) -> Self {
        let mut memory = stream.uninit(len + 2 * Self::MARGIN).unwrap();
        transfer::fill(stream, &mut memory, Self::MARK).unwrap();
        Self { memory, len }
    }

    fn inside(&mut self) -> gpu_primitives::DeviceSliceMut<'_, u32> {
        self.memory.slice_mut(Self::MARGIN..Self::MARGIN + self.len).unwrap()
    }

    fn check(&self, stream: &Stream, what: &str) {
        let all = self.memory.to_vec(stream).unwrap();
        let (before, rest) = all.split_at(Self::MARGIN);
        let after = &rest[self.len..];
        assert!(before.iter().chain(after).all(|&word| word == Self::MARK), "{what}: wrote beyond its output");
    }
}

fn some(n: usize, seed: u64) -> Vec<u32> {
    random(seed).take(n).map(|x| x as u32 % 5000).collect()
}

fn sizes(device: &Device) -> &'static [usize] {
    if is_gpu(device) {
        &[1, 33, 4097, 100_000, 3_000_000]
    } else if is_checked(device) {
        &[1, 33, 3000]
    } else {
        &[1, 33, 4097, 30_000]
    }
}

/// Comparators whose answer depends on the block.
fn unsteady_orders(device: &Device) {
    let stream = device.stream().unwrap();
    for &n in sizes(device) {
        let mut sorted = some(n, n as u64);
        sorted.sort_unstable();
        let (keys, values) = (stream.upload(&sorted).unwrap(), stream.upload(&sorted).unwrap());
        let half = n / 2;
        let part = |from: usize, to: usize| (keys.slice(from..to).unwrap(), values.slice(from..to).unwrap());

        let (mut out, mut with) = (Fenced::new(&stream, n), Fenced::new(&stream, n));
        merge::pairs(&stream, part(0, half), part(half, n), (out.inside(), with.inside()), Unsteady).unwrap();
        out.check(&stream, "merge");
        with.check(&stream, "merge, values");

        let runs: Vec<_> = (0..7).map(|i| part(n * i / 7, n * (i + 1) / 7)).collect();
        let (mut out, mut with) = (Fenced::new(&stream, n), Fenced::new(&stream, n));
        merge::runs_pairs(&stream, &runs, (out.inside(), with.inside()), Unsteady).unwrap();
        out.check(&stream, "merge of runs");
        with.check(&stream, "merge of runs, values");

        for search in 0..3 {
            let mut out = Fenced::new(&stream, n);
            let (haystack, needles) = (keys.slice(..half).unwrap(), keys.as_slice());
            let found = match search {
                0 => search::lower_bound(&stream, haystack, needles, out.inside(), Unsteady),
                1 => search::lower_bound_sorted(&stream, haystack, needles, out.inside(), Unsteady),
                _ => search::upper_bound_sorted(&stream, haystack, needles, out.inside(), Unsteady),
            };
            found.unwrap();
            out.check(&stream, "search");
            let places = out.inside().to_vec(&stream).unwrap();
            assert!(places.iter().all(|&place| place as usize <= half), "positions beyond the haystack");
        }

        let offsets = stream.upload(&[0, n as u32 / 3, n as u32]).unwrap();
        let (mut out, mut with) = (Fenced::new(&stream, n), Fenced::new(&stream, n));
        out.inside().copy_from(&stream, &keys).unwrap();
        with.inside().copy_from(&stream, &values).unwrap();
        sort::segmented_pairs_in_place(&stream, (out.inside(), with.inside()), &offsets, Unsteady).unwrap();
        out.check(&stream, "segmented sort");
        with.check(&stream, "segmented sort, values");
    }
}

/// Bucket functions whose answer depends on the warp, with buckets beyond the last one, and with a last one beyond 255.
fn unsteady_buckets(device: &Device) {
    let stream = device.stream().unwrap();
    for &n in sizes(device) {
        let keys = stream.upload(&some(n, n as u64)).unwrap();
        let (mut out, mut with) = (Fenced::new(&stream, n), Fenced::new(&stream, n));
        let split = multisplit::pairs(&stream, (&keys, &keys), (out.inside(), with.inside()), 200, Unsteady);
        may_be_a_fault_of_the_checker(device, split.map(drop));
        out.check(&stream, "multisplit");
        with.check(&stream, "multisplit, values");
        for passes in [1, 2] {
            let (mut out, mut with) = (Fenced::new(&stream, n), Fenced::new(&stream, n));
            let sorted =
                sort::pairs_by_digits(&stream, (&keys, &keys), (out.inside(), with.inside()), Unsteady, passes);
            may_be_a_fault_of_the_checker(device, sorted);
            out.check(&stream, "sort by buckets");
            with.check(&stream, "sort by buckets, values");
        }
    }
}

/// Answers otherwise at some calls, wherever it is called. GPUs get a function that does not.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, Record)]
struct Fickle(u32);

/// 0 or 1, without a pattern.
fn whim() -> u32 {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    CALLS.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9E37_79B1) >> 31
}

impl Predicate<u32> for Fickle {
    fn test(&self, item: u32) -> bool {
        (item + whim()).is_multiple_of(2)
    }

    fn recorded() -> Recorded {
        #[repr(C)]
        #[derive(Clone, Copy, Pod, Zeroable)]
        struct Honest;
        #[operator]
        impl Predicate<u32> for Honest {
            fn test(&self, item: u32) -> bool {
                item % 2 == 0
            }
        }
        Honest::recorded()
    }
}

impl Equality<u32> for Fickle {
    fn equal(&self, a: u32, b: u32) -> bool {
        a / 9 == (b + whim()) / 9
    }

    fn recorded() -> Recorded {
        <Same as Equality<u32>>::recorded()
    }
}

impl Compare<u32> for Fickle {
    fn less(&self, a: u32, b: u32) -> bool {
        (a < b) != (whim() == 1)
    }

    fn recorded() -> Recorded {
        <Less as Compare<u32>>::recorded()
    }
}

impl Monoid<u32> for Fickle {
    fn identity(&self) -> u32 {
        whim()
    }

    fn combine(&self, a: u32, b: u32) -> u32 {
        a.wrapping_add(b).wrapping_add(whim())
    }

    fn recorded() -> Recorded {
        <Sum as Monoid<u32>>::recorded()
    }
}

impl Bucket<u32> for Fickle {
    fn bucket(&self, key: u32) -> u32 {
        key.wrapping_add(77 * whim()) % 300
    }

    fn recorded() -> Recorded {
        #[repr(C)]
        #[derive(Clone, Copy, Pod, Zeroable)]
        struct Honest;
        #[operator]
        impl Bucket<u32> for Honest {
            fn bucket(&self, key: u32) -> u32 {
                key % 300
            }
        }
        Honest::recorded()
    }
}

impl Map<u32> for Fickle {
    type Output = u32;

    fn map(&self, x: u32) -> u32 {
        x ^ whim() << (x % 32)
    }

    fn recorded() -> Recorded {
        fn of<M: Map<u32>>(_: M) -> Recorded {
            M::recorded()
        }
        of(map!(|x: u32| -> u32 { x ^ 1 << x % 32 }))
    }
}

/// As a key, it has another code each time.
impl RadixKey for Fickle {
    type Code = u32;

    fn code(key: Self) -> u32 {
        key.0 ^ whim() << (key.0 % 32)
    }

    fn recorded() -> Recorded {
        <OneBit as RadixKey>::recorded()
    }
}

/// Functions that change their answers between the kernels of a call, and within them.
fn functions_that_change_their_answers(device: &Device) {
    let stream = device.stream().unwrap();
    for &n in sizes(device) {
        let input = stream.upload(&some(n, n as u64)).unwrap();
        let call = |what: &str, call: &dyn Fn(&mut Fenced, &mut Fenced) -> Result<(), Error>| {
            let (mut out, mut with) = (Fenced::new(&stream, n), Fenced::new(&stream, n));
            may_be_a_fault_of_the_checker(device, call(&mut out, &mut with));
            out.check(&stream, what);
            with.check(&stream, what);
        };
        let fickle = Fickle(0);
        call("select", &|out, _| select::select(&stream, &input, out.inside(), fickle).map(drop));
        call("partition", &|out, _| select::partition(&stream, &input, out.inside(), fickle).map(drop));
        call("select of a source", &|out, _| {
            select::select(&stream, source::map(&input, fickle), out.inside(), fickle).map(drop)
        });
        call("unique", &|out, _| runs::unique(&stream, &input, out.inside(), fickle).map(drop));
        call("encode", &|out, with| {
            runs::run_length_encode(&stream, &input, (out.inside(), with.inside()), fickle).map(drop)
        });
        call("reduce by key", &|out, with| {
            runs::reduce_by_key(&stream, (&input, &input), (out.inside(), with.inside()), fickle, fickle).map(drop)
        });
        call("scan", &|out, _| scan::inclusive(&stream, &input, out.inside(), fickle));
        call("scan by key", &|out, _| scan::inclusive_by_key(&stream, (&input, &input), out.inside(), fickle, fickle));
        call("reduce", &|_, _| reduce::reduce(&stream, source::map(&input, fickle), fickle).map(drop));
        call("multisplit", &|out, _| multisplit::keys(&stream, &input, out.inside(), 256, fickle).map(drop));
        call("histogram", &|out, _| histogram::by(&stream, &input, out.inside().slice_mut(..n.min(256))?, fickle));
        call("merge sort", &|out, _| merge_sort::keys(&stream, &input, out.inside(), fickle));
        let (a, b) = input.as_slice().split_at(n / 2).unwrap();
        call("union", &|out, _| sets::union(&stream, a, b, out.inside(), fickle).map(drop));
        let keys: Vec<Fickle> = some(n, 7).into_iter().map(Fickle).collect();
        let keys = stream.upload(&keys).unwrap();
        for k in [1, n / 2, n] {
            call("top-k", &|out, _| {
                let mut best = stream.zeroed::<Fickle>(k)?;
                top_k::largest(&stream, &keys, (&mut best, out.inside().slice_mut(..k)?))
            });
        }
        let mut sorted = stream.uninit::<Fickle>(n).unwrap();
        sort::keys(&stream, &keys, &mut sorted, sort::Options::new()).unwrap();
        let (mut sorted, mut before) = (sorted.to_vec(&stream).unwrap(), keys.to_vec(&stream).unwrap());
        sorted.sort_unstable_by_key(|key| key.0);
        before.sort_unstable_by_key(|key| key.0);
        assert_eq!(sorted, before, "a code is computed once, so nothing is lost");
    }
}

/// Records another function each time that it is asked.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Rewritten;

impl Bucket<u32> for Rewritten {
    fn bucket(&self, key: u32) -> u32 {
        key % 200
    }

    fn recorded() -> Recorded {
        static ASKED: AtomicU32 = AtomicU32::new(0);
        let mut recording = Recording::new("bucket");
        let _ = recording.argument::<u32>();
        let everything = (ASKED.fetch_add(1, Ordering::Relaxed) * 3 % 200).lift();
        Recorded::new([recording.finish::<u32>(everything)])
    }
}

/// The kernel that counts and the one that writes must be given the same function.
fn recordings_that_change(device: &Device) {
    let stream = device.stream().unwrap();
    for &n in sizes(device) {
        let keys = stream.upload(&some(n, n as u64)).unwrap();
        for _ in 0..3 {
            let (mut out, mut with) = (Fenced::new(&stream, n), Fenced::new(&stream, n));
            let to = (out.inside(), with.inside());
            let offsets = multisplit::pairs(&stream, (&keys, &keys), to, 200, Rewritten).unwrap();
            out.check(&stream, "multisplit");
            with.check(&stream, "multisplit, values");
            assert_eq!(offsets.to_vec(&stream).unwrap()[200], n as u64);
            let (mut moved, mut all) = (out.inside().to_vec(&stream).unwrap(), keys.to_vec(&stream).unwrap());
            moved.sort_unstable();
            all.sort_unstable();
            assert_eq!(moved, all, "every key is there");
        }
    }
}

/// The device on which [`Entangled`] is recorded, and what its own launch returned there.
static ENTANGLED: Mutex<Launched> = Mutex::new((None, None));

/// The device to launch on, and what the launch returned.
type Launched = (Option<Device>, Option<Result<(), Error>>);

/// Is used while it is recorded.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Entangled;

impl Compare<u32> for Entangled {
    fn less(&self, a: u32, b: u32) -> bool {
        a < b
    }

    fn recorded() -> Recorded {
        let device = ENTANGLED.lock().unwrap().0.clone().expect("the device");
        let stream = device.stream().unwrap();
        let keys = stream.upload(&[1u32, 3]).unwrap();
        let mut out = stream.uninit::<u32>(4).unwrap();
        let result = merge::keys(&stream, &keys, &keys, &mut out, Self);
        ENTANGLED.lock().unwrap().1 = Some(result);
        <Less as Compare<u32>>::recorded()
    }
}

/// No lock is held while an operator is recorded.
fn a_recording_that_launches_its_own_kernel(device: &Device) {
    let stream = device.stream().unwrap();
    let (a, b) = (stream.upload(&[1u32, 4]).unwrap(), stream.upload(&[2u32, 3]).unwrap());
    let mut out = stream.uninit::<u32>(4).unwrap();
    ENTANGLED.lock().unwrap().0 = Some(device.clone());
    merge::keys(&stream, &a, &b, &mut out, Entangled).unwrap();
    assert_eq!(out.to_vec(&stream).unwrap(), [1, 2, 3, 4]);
    // The first device that records it sees that the launch inside is an error, instead of waiting for itself.
    if let Some(inside) = &ENTANGLED.lock().unwrap().1 {
        assert!(matches!(inside, Err(Error::Unrecordable { .. })), "{inside:?}");
    }
    if is_gpu(device) {
        assert!(ENTANGLED.lock().unwrap().1.is_some(), "a GPU records operators");
    }
}

/// A key that says that its codes have one bit.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, Record)]
struct OneBit(u32);

#[operator]
impl RadixKey for OneBit {
    type Code = u32;
    const BITS: u32 = 1;
    fn code(key: Self) -> u32 {
        key.0
    }
}

#[operator]
impl FromCode for OneBit {
    fn from_code(code: u32) -> Self {
        OneBit(code)
    }
}

/// The other bits are cut off, in the same way everywhere.
fn codes_of_more_bits_than_they_say(device: &Device) {
    let stream = device.stream().unwrap();
    for &n in sizes(device) {
        let keys: Vec<OneBit> = some(n, n as u64).into_iter().map(OneBit).collect();
        let mut expected = keys.clone();
        expected.sort_by_key(|key| key.0 % 2);
        let keys = stream.upload(&keys).unwrap();
        let mut codes = Fenced::new(&stream, n);
        sort::encode(&stream, &keys, codes.inside()).unwrap();
        codes.check(&stream, "encode");
        assert!(codes.inside().to_vec(&stream).unwrap().iter().all(|&code| code < 2));
        let mut sorted = stream.uninit::<OneBit>(n).unwrap();
        sort::keys(&stream, &keys, &mut sorted, sort::Options::new()).unwrap();
        assert_eq!(sorted.to_vec(&stream).unwrap(), expected);
        let (mut best, mut positions) = (stream.zeroed::<OneBit>(n).unwrap(), Fenced::new(&stream, n));
        top_k::smallest(&stream, &keys, (&mut best, positions.inside())).unwrap();
        positions.check(&stream, "top-k");
        assert_eq!(best.to_vec(&stream).unwrap(), expected);
    }
}

/// Items that change their buckets during the call leave gaps and collide. The checked device may report that; nothing
/// else may happen.
fn may_be_a_fault_of_the_checker(device: &Device, result: Result<(), Error>) {
    match result {
        Ok(()) => {}
        Err(Error::KernelFault(fault)) if is_checked(device) => {
            assert!(matches!(fault.kind, FaultKind::Uninitialised { .. } | FaultKind::Race { .. }), "{fault}");
        }
        Err(error) => panic!("{error}"),
    }
}

/// Reading uninitialised host memory would be undefined behaviour.
fn what_was_not_written_is_never_host_memory(device: &Device) {
    let stream = device.stream().unwrap();
    for n in [1, 1000, 1 << 20] {
        match stream.uninit::<u64>(n).unwrap().to_vec(&stream) {
            Ok(read) if is_gpu(device) => assert_eq!(read.len(), n),
            Ok(read) => assert_eq!(read, vec![0; n], "the CPU device returns zeros"),
            Err(error) => assert!(matches!(error, Error::UninitialisedRead { index: 0 }) && is_checked(device)),
        }
    }
}

/// A failed recording ends, and a stream that was kept from it is an ordinary stream.
fn a_recorder_that_outlives_its_recording(device: &Device) {
    let stream = device.stream().unwrap();
    let mut kept = None;
    let failed = stream.capture(|recorder| {
        kept = Some(recorder.clone());
        Err::<(), _>(Error::EmptyLaunch { kernel: "none" })
    });
    assert!(matches!(failed, Err(Error::EmptyLaunch { .. })));
    let kept = kept.unwrap();
    let mut data = kept.upload(&[1u32, 2, 3]).unwrap();
    scan::inclusive_in_place(&kept, &mut data, scan::Sum).unwrap();
    assert_eq!(data.to_vec(&kept).unwrap(), [1, 3, 6]);
}

fn a_device_without_workers(device: &Device) {
    let options = CpuOptions { workers: Some(0), checked: is_checked(device), ..CpuOptions::default() };
    let device = if is_gpu(device) { device.clone() } else { Device::cpu_with(options) };
    assert!(device.limits().multiprocessors >= 1);
    let stream = device.stream().unwrap();
    let host = some(5000, 1);
    let mut keys = stream.upload(&host).unwrap();
    sort::keys_in_place(&stream, &mut keys, sort::Options::new()).unwrap();
    assert!(keys.to_vec(&stream).unwrap().is_sorted());
}

/// Orders and selects by the first byte, and adds bytes.
#[repr(C)]
#[derive(Clone, Copy, Zeroable, Pod)]
struct ByBytes;

#[operator]
impl<const N: usize> Compare<[u8; N]> for ByBytes {
    fn less(&self, a: [u8; N], b: [u8; N]) -> bool {
        a < b
    }
}

#[operator]
impl<const N: usize> Predicate<[u8; N]> for ByBytes {
    fn test(&self, item: [u8; N]) -> bool {
        item[0] % 2 == 1
    }
}

#[operator]
impl<const N: usize> Monoid<[u8; N]> for ByBytes {
    fn identity(&self) -> [u8; N] {
        [0; N]
    }

    fn combine(&self, a: [u8; N], b: [u8; N]) -> [u8; N] {
        let mut sum = a;
        for i in 0..N {
            sum[i] += b[i]; // the arithmetic of operators wraps
        }
        sum
    }
}

/// Elements whose size is not a power of two, at addresses that are not multiples of it.
fn elements_of_odd_sizes(device: &Device) {
    check_size::<1>(device);
    check_size::<3>(device);
    check_size::<5>(device);
    check_size::<7>(device);
    check_size::<12>(device);
    check_size::<17>(device);
    check_wide::<24>(device);
    check_wide::<31>(device);
}

fn bytes<const N: usize>(n: usize) -> Vec<[u8; N]> {
    let mut numbers = random(N as u64);
    (0..n).map(|_| std::array::from_fn(|_| numbers.next().unwrap() as u8)).collect()
}

fn check_size<const N: usize>(device: &Device)
where
    [u8; N]: Pod,
{
    let stream = device.stream().unwrap();
    for n in [1, 31, 700, 2500] {
        let host = bytes::<N>(n + 1);
        let all = stream.upload(&host).unwrap();
        // Neither end is aligned to anything.
        let (input, host) = (all.slice(1..).unwrap(), &host[1..]);
        let mut sums = stream.uninit::<[u8; N]>(n).unwrap();
        scan::inclusive(&stream, input, &mut sums, ByBytes).unwrap();
        let mut sum = [0; N];
        let expected: Vec<_> = host
            .iter()
            .map(|item| {
                sum = ByBytes.combine(sum, *item);
                sum
            })
            .collect();
        assert_eq!(sums.to_vec(&stream).unwrap(), expected, "scan of {n} elements of {N} bytes");
    }
    check_wide::<N>(device);
}

fn check_wide<const N: usize>(device: &Device)
where
    [u8; N]: Pod,
{
    let stream = device.stream().unwrap();
    for n in [1, 31, 700, 2500] {
        let host = bytes::<N>(n + 1);
        let all = stream.upload(&host).unwrap();
        let (input, host) = (all.slice(1..).unwrap(), &host[1..]);
        let mut odd = stream.uninit::<[u8; N]>(n).unwrap();
        let count = select::select(&stream, input, &mut odd, ByBytes).unwrap().get(&stream).unwrap() as usize;
        let expected: Vec<_> = host.iter().copied().filter(|item| item[0] % 2 == 1).collect();
        assert_eq!(odd.slice(..count).unwrap().to_vec(&stream).unwrap(), expected, "select of {N} bytes");

        let mut sorted = host.to_vec();
        sorted.sort_unstable();
        let haystack = stream.upload(&[&sorted[..1], &sorted].concat()).unwrap();
        let mut places = stream.uninit::<u32>(n).unwrap();
        search::lower_bound(&stream, haystack.slice(1..).unwrap(), input, &mut places, ByBytes).unwrap();
        let place = |needle: &[u8; N]| sorted.partition_point(|item| item < needle) as u32;
        assert!(places.to_vec(&stream).unwrap().into_iter().eq(host.iter().map(place)), "search of {N} bytes");

        let (low, high) = sorted.split_at(n / 2);
        let (low, high) = (stream.upload(low).unwrap(), stream.upload(high).unwrap());
        let mut merged = stream.uninit::<[u8; N]>(n).unwrap();
        merge::keys(&stream, &high, &low, &mut merged, ByBytes).unwrap();
        assert_eq!(merged.to_vec(&stream).unwrap(), sorted, "merge of {N} bytes");
    }
}

/// Copies the last element.
///
/// # Safety
/// The launch must have one block. `input` must not be empty, and `output` must have one element. While the kernel
/// runs, nothing writes `input`, and nothing else uses `output`.
#[kernel(threads = 32)]
unsafe fn copy_last(input: Global<u32>, output: GlobalMut<u32>) {
    if thread::thread_idx_x() == 0 {
        output.set(0, input.get(input.len() - 1));
    }
}

/// A view that was detached from its memory, which was then freed.
fn memory_that_is_gone(device: &Device) {
    let stream = device.stream().unwrap();
    let mut output = stream.zeroed::<u32>(1).unwrap();
    let input = stream.upload(&[1u32, 2, 3]).unwrap();
    let upload = line!() - 1;
    // SAFETY: the checked device rejects the access, which is the test.
    let torn = unsafe { input.view(&stream).unwrap().into_param() };
    drop(input); // here
    let line = line!() - 1;
    // SAFETY: as above.
    let result = unsafe { stream.launch(CopyLast::new(torn, output.view_mut(&stream).unwrap()), 1) };
    let Err(Error::KernelFault(fault)) = result else { panic!("{result:?}") };
    let FaultKind::Freed { buffer, index: 2, allocated: Some(allocated), by } = &fault.kind else { panic!("{fault}") };
    assert_eq!((buffer.as_str(), allocated.line()), ("input", upload));
    // Without line information the function is known, and in a stripped executable nothing.
    let is_here = |by: &String| by.contains(&format!("soundness.rs:{line}")) || by.contains("memory_that_is_gone");
    assert!(by.as_ref().is_none_or(is_here), "freed at {by:?}, not in line {line}");
    assert!(fault.to_string().contains("was freed before the launch"), "{fault}");
}

/// A view that is longer than its memory.
fn a_view_that_lies(device: &Device) {
    let stream = device.stream().unwrap();
    let mut output = stream.zeroed::<u32>(1).unwrap();
    let input = stream.upload(&[1u32, 2, 3]).unwrap();
    // SAFETY: the checked device rejects the access, which is the test.
    let beyond = unsafe { Global::from_raw(input.as_slice().as_ptr(), 4) };
    // SAFETY: as above.
    let result = unsafe { stream.launch(CopyLast::new(beyond, output.view_mut(&stream).unwrap()), 1) };
    let Err(Error::KernelFault(fault)) = result else { panic!("{result:?}") };
    assert!(matches!(fault.kind, FaultKind::NotGiven { .. }), "{fault}");
}

/// An operator that uses a stream, inside a kernel.
#[derive(Clone, Copy)]
#[repr(C)]
struct CallsTheHost;

// SAFETY: no bytes.
unsafe impl gpu_primitives::kernel::Param for CallsTheHost {}

impl Compare<u32> for CallsTheHost {
    fn less(&self, a: u32, b: u32) -> bool {
        let stream = Device::cpu().stream().unwrap();
        let mut data = stream.zeroed::<u32>(1).unwrap();
        transfer::fill(&stream, &mut data, 1).unwrap();
        a < b
    }

    fn recorded() -> Recorded {
        <Less as Compare<u32>>::recorded()
    }
}

fn an_operator_that_calls_the_host(device: &Device) {
    let stream = device.stream().unwrap();
    let keys = stream.upload(&[1u32, 2, 3, 4]).unwrap();
    let (a, b) = keys.as_slice().split_at(2).unwrap();
    let mut out = stream.uninit::<u32>(4).unwrap();
    let result = merge::keys(&stream, a, b, &mut out, CallsTheHost);
    let Err(Error::KernelFault(fault)) = result else { panic!("{result:?}") };
    let is_named = |message: &String| message.contains("which only the host can do");
    assert!(matches!(&fault.kind, FaultKind::Panic { message } if is_named(message)), "{fault}");
    merge::keys(&stream, a, b, &mut out, Less).unwrap();
    assert_eq!(out.to_vec(&stream).unwrap(), [1, 2, 3, 4], "the stream still works");
}
