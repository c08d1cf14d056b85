//! Operators of the program that break the rules: they cannot be recorded, panic, or use the dictionary. What is in the dictionary
//! stays, and nothing hangs.

use bytemuck::{Pod, Zeroable};
use gpu_conformance::{is_checked, is_gpu};
use gpu_lsm::{GpuLsm, Options, Snapshot};
use gpu_primitives::operator::Recorded;
use gpu_primitives::scan::{Max, Monoid, Sum};
use gpu_primitives::sort::{FromCode, RadixKey};
use gpu_primitives::{CpuOptions, Device, Error, Stream};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::time::Duration;

type Lsm = GpuLsm<u32, u32>;

fn lsm(stream: &Stream, pairs: &[(u32, u32)]) -> Lsm {
    let mut lsm = Lsm::new(stream, Options::new().batch_size(8).buffer(1000)).unwrap();
    insert(&mut lsm, stream, pairs);
    lsm.flush(stream).unwrap();
    lsm
}

fn insert(lsm: &mut Lsm, stream: &Stream, pairs: &[(u32, u32)]) {
    let (keys, values): (Vec<u32>, Vec<u32>) = pairs.iter().copied().unzip();
    lsm.insert(stream, (&stream.upload(&keys).unwrap(), &stream.upload(&values).unwrap())).unwrap();
}

fn upsert(
    lsm: &mut Lsm,
    stream: &Stream,
    pairs: &[(u32, u32)],
    by: impl Monoid<u32> + Pod + Send + Sync,
) -> Result<(), Error> {
    let (keys, values): (Vec<u32>, Vec<u32>) = pairs.iter().copied().unzip();
    lsm.upsert(stream, (&stream.upload(&keys)?, &stream.upload(&values)?), by)
}

fn contents(lsm: &Lsm, stream: &Stream) -> Vec<(u32, u32)> {
    lsm.iter(stream).unwrap().collect()
}

fn buffered(lsm: &Lsm, stream: &Stream) -> usize {
    lsm.stats(stream).unwrap().buffered
}

/// Fails if something takes long, instead of waiting for ever.
fn in_time(what: &str, run: impl FnOnce() + Send + 'static) {
    let (say, heard) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        run();
        let _ = say.send(());
    });
    match heard.recv_timeout(Duration::from_secs(120)) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("{what}: hangs"),
        _ => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
    }
}

/// Says that it records `combine`, and records the code of a key.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Bad;

impl Monoid<u32> for Bad {
    fn identity(&self) -> u32 {
        0
    }

    fn combine(&self, a: u32, b: u32) -> u32 {
        a + b
    }

    fn recorded() -> Recorded {
        <u32 as RadixKey>::recorded()
    }
}

/// A key that records another function than its code.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
struct BadKey(u32);

impl RadixKey for BadKey {
    type Code = u32;

    fn code(key: Self) -> u32 {
        key.0
    }

    fn recorded() -> Recorded {
        <Sum as Monoid<u32>>::recorded()
    }
}

impl FromCode for BadKey {
    fn from_code(code: u32) -> Self {
        Self(code)
    }

    fn recorded() -> Recorded {
        <Sum as Monoid<u32>>::recorded()
    }
}

/// What cannot be recorded is refused by the call that brings it, and not by all later ones.
pub fn operators_that_cannot_be_recorded(device: &Device) {
    let stream = device.stream().unwrap();
    for before in [false, true] {
        let mut lsm = lsm(&stream, &[(1, 10), (2, 20)]);
        if before {
            insert(&mut lsm, &stream, &[(3, 30)]);
        }
        let buffer = buffered(&lsm, &stream);
        match upsert(&mut lsm, &stream, &[(1, 1), (1, 2), (4, 4)], Bad) {
            Err(Error::Unrecordable { function: "combine", .. }) => {
                assert_eq!(buffered(&lsm, &stream), buffer, "nothing was added");
                let found = lsm.lookup(&stream, &stream.upload(&[1, 2, 4]).unwrap()).unwrap().to_vec(&stream).unwrap();
                assert_eq!(found, [Some(10), Some(20), None]);
                lsm.save(&stream, std::io::sink()).unwrap();
                lsm.cleanup(&stream).unwrap();
                upsert(&mut lsm, &stream, &[(1, 1)], Sum).unwrap();
                assert_eq!(contents(&lsm, &stream)[..2], [(1, 11), (2, 20)]);
            }
            other => {
                assert!(is_checked(device), "{other:?}");
                assert_eq!(contents(&lsm, &stream)[0], (1, 13), "this device needs no recordings");
            }
        }
    }
    let mut lsm = GpuLsm::<BadKey, u32>::with_batch_size(8).unwrap();
    let (keys, values) = (stream.upload(&[BadKey(1)]).unwrap(), stream.upload(&[1]).unwrap());
    match lsm.insert(&stream, (&keys, &values)) {
        Err(Error::Unrecordable { function: "code", .. }) => assert_eq!(lsm.len(&stream).unwrap(), 0),
        other => assert!(is_checked(device) && other.is_ok(), "{other:?}"),
    }
}

/// Adds, and does not like 13.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Superstitious;

impl Monoid<u32> for Superstitious {
    fn identity(&self) -> u32 {
        0
    }

    fn combine(&self, a: u32, b: u32) -> u32 {
        assert!(a != 13 && b != 13, "a bad number");
        a + b
    }

    fn recorded() -> Recorded {
        <Sum as Monoid<u32>>::recorded()
    }
}

/// A flush fails as long as the operation panics. The levels are not lost with it, nor is what copies have.
pub fn operators_that_panic(device: &Device) {
    if is_gpu(device) {
        return; // a GPU runs what was recorded, which is total
    }
    let stream = device.stream().unwrap();
    let mut lsm = lsm(&stream, &[(1, 100), (2, 20)]);
    upsert(&mut lsm, &stream, &[(1, 1), (1, 2)], Superstitious).unwrap();
    let early = lsm.snapshot();
    upsert(&mut lsm, &stream, &[(1, 13), (1, 2), (3, 4)], Superstitious).unwrap();
    let late = lsm.snapshot();
    let is_fault = |result: Result<(), Error>| assert!(matches!(result, Err(Error::KernelFault(_))), "{result:?}");
    let asked = stream.upload(&[2u32]).unwrap();
    for _ in 0..2 {
        is_fault(lsm.flush(&stream));
        is_fault(lsm.lookup(&stream, &asked).map(drop));
        is_fault(lsm.save(&stream, std::io::sink()));
        is_fault(lsm.cleanup(&stream));
        is_fault(upsert(&mut lsm, &stream, &[(2, 2)], Max));
        is_fault(late.lookup(&stream, &asked).map(drop));
        assert_eq!(buffered(&lsm, &stream), 3);
    }
    assert_eq!(contents(&early, &stream), [(1, 103), (2, 20)]);
    assert_eq!(lsm.discard_buffer(&stream).unwrap(), 3);
    assert_eq!(lsm.discard_buffer(&stream).unwrap(), 0);
    let found = lsm.lookup(&stream, &asked).unwrap().to_vec(&stream).unwrap();
    assert_eq!(found, [Some(20)], "the first upserts are in the levels");
    insert(&mut lsm, &stream, &[(2, 21), (7, 7)]);
    let found = lsm.lookup(&stream, &asked).unwrap().to_vec(&stream).unwrap();
    assert_eq!(found, [Some(21)]);
    assert_eq!(late.stats(&stream).unwrap().buffered, 3, "a copy has its buffer");
    let mut late = late.into_inner();
    assert_eq!(late.discard_buffer(&stream).unwrap(), 3);
    late.clear(&stream).unwrap();
    assert_eq!(contents(&late, &stream), []);
    lsm.clear(&stream).unwrap();
    insert(&mut lsm, &stream, &[(1, 5)]);
    assert_eq!(contents(&lsm, &stream), [(1, 5)]);
}

/// What an operator asks, and what it was told.
struct Asked {
    dictionary: Snapshot<Lsm>,
    stream: Stream,
    keys: gpu_primitives::DeviceVec<u32>,
    told: Vec<Result<(), Error>>,
}

static ASKED: Mutex<Option<Asked>> = Mutex::new(None);
static TURN: Mutex<()> = Mutex::new(());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds, and asks the dictionary meanwhile.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Curious;

impl Monoid<u32> for Curious {
    fn identity(&self) -> u32 {
        0
    }

    fn combine(&self, a: u32, b: u32) -> u32 {
        if let Some(Asked { dictionary, stream, keys, told }) = &mut *lock(&ASKED) {
            told.push(dictionary.stats(stream).map(drop));
            told.push(dictionary.lookup(stream, &*keys).map(drop));
            told.push(dictionary.contains(stream, &*keys).map(drop));
            told.push(dictionary.len(stream).map(drop));
            told.push(dictionary.is_empty(stream).map(drop));
            told.push(dictionary.check_memory(stream, 1).map(drop));
            told.push(dictionary.flush(stream));
            told.push(dictionary.levels(stream).map(drop));
            told.push(dictionary.export(stream).map(drop));
            told.push(dictionary.view(stream).map(drop));
            let mut copy = GpuLsm::clone(dictionary);
            told.push(copy.discard_buffer(stream).map(drop));
            told.push(copy.delete(stream, &*keys));
            told.push(copy.insert(stream, (&*keys, &*keys)));
            told.push(copy.upsert(stream, (&*keys, &*keys), Self));
            told.push(copy.cleanup(stream));
            drop(copy.snapshot());
        }
        a + b
    }

    fn recorded() -> Recorded {
        <Sum as Monoid<u32>>::recorded()
    }
}

/// The kernel of a flush cannot wait for the flush: the dictionary refuses what an operator asks.
pub fn operators_that_ask_the_dictionary(device: &Device) {
    if is_gpu(device) {
        return; // a GPU runs what was recorded, which asks nothing
    }
    let device = device.clone();
    in_time("an operator that asks", move || {
        let _turn = lock(&TURN);
        for threads in [1, 3] {
            let stream = device.stream().unwrap();
            let mut lsm = lsm(&stream, &[(1, 10), (2, 20)]);
            upsert(&mut lsm, &stream, &[(1, 1), (1, 2), (2, 3), (2, 4)], Curious).unwrap();
            let (keys, own) = (stream.upload(&[1u32, 2]).unwrap(), stream.clone());
            *lock(&ASKED) = Some(Asked { dictionary: lsm.snapshot(), stream: own, keys, told: vec![] });
            // Other threads ask at the same time, on the same stream and on others. They are not inside a kernel.
            std::thread::scope(|scope| {
                for thread in 0..threads {
                    let (lsm, device, stream) = (&lsm, &device, &stream);
                    scope.spawn(move || {
                        let stream = if thread == 1 { &device.stream().unwrap() } else { stream };
                        lsm.stats(stream).unwrap();
                        let found = lsm.lookup(stream, &stream.upload(&[1, 2]).unwrap()).unwrap();
                        assert_eq!(found.to_vec(stream).unwrap(), [Some(13), Some(27)]);
                        drop(lsm.snapshot());
                        lsm.stats(stream).unwrap();
                    });
                }
            });
            // The queues of the checked device run later, so what is asked here may be the last.
            stream.synchronize().unwrap();
            let Asked { told, .. } = lock(&ASKED).take().unwrap();
            assert!(!told.is_empty());
            for (at, told) in told.iter().enumerate() {
                assert!(matches!(told, Err(Error::HostCallInKernel)), "question {at}: {told:?}");
            }
            assert_eq!(contents(&lsm, &stream), [(1, 13), (2, 27)]);
        }
    });
}

/// What its recording looks up, once there is something.
static RECORDING: OnceLock<(Snapshot<Lsm>, Stream)> = OnceLock::new();

/// Adds, and looks something up while it is recorded.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Late;

impl Monoid<u32> for Late {
    fn identity(&self) -> u32 {
        0
    }

    fn combine(&self, a: u32, b: u32) -> u32 {
        a + b
    }

    fn recorded() -> Recorded {
        if let Some((dictionary, stream)) = RECORDING.get() {
            let _ = dictionary.len(stream);
        }
        <Sum as Monoid<u32>>::recorded()
    }
}

/// An operation is recorded before the flush takes the lock.
pub fn recordings_that_ask_the_dictionary(device: &Device) {
    let device = device.clone();
    in_time("a recording that asks", move || {
        let stream = device.stream().unwrap();
        let mut lsm = lsm(&stream, &[(1, 10)]);
        upsert(&mut lsm, &stream, &[(1, 1)], Late).unwrap();
        let _ = RECORDING.set((lsm.snapshot(), stream.clone()));
        assert_eq!(contents(&lsm, &stream), [(1, 11)]);
    });
}

/// The buffer has the room that earlier calls needed, if there is memory for it.
pub fn little_memory_for_a_buffer(device: &Device) {
    let stream = device.stream().unwrap();
    let mut lsm = lsm(&stream, &[(1, 10)]);
    for round in 0..5u32 {
        // The first allocation of the buffer fails, and the next one is smaller.
        let (key, home) = (stream.upload(&[round]).unwrap(), device.stream().unwrap());
        home.fail_allocation_after(Some(0));
        lsm.insert(&home, (&key, &key)).unwrap();
        home.fail_allocation_after(None);
        assert_eq!(buffered(&lsm, &stream), round as usize + 1);
    }
    assert_eq!(lsm.stats(&stream).unwrap().bytes - lsm_bytes(&stream), 5 * 8, "no room is left");
    assert_eq!(contents(&lsm, &stream), [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4)]);

    if is_gpu(device) {
        return;
    }
    // A device that has no memory for 4096 operations, but for some.
    let small = CpuOptions { memory_limit: Some(30 << 10), ..CpuOptions::default() };
    let small = Device::cpu_with(CpuOptions { checked: is_checked(device), ..small });
    let stream = small.stream().unwrap();
    let mut lsm = Lsm::new(&stream, Options::new().batch_size(8).buffer(1 << 20)).unwrap();
    for key in 0..100u32 {
        let key = stream.upload(&[key]).unwrap();
        lsm.insert(&stream, (&key, &key)).unwrap();
    }
    assert_eq!(contents(&lsm, &stream), (0..100).map(|key| (key, key)).collect::<Vec<_>>());
}

/// Returns the bytes of a dictionary with one pair.
fn lsm_bytes(stream: &Stream) -> usize {
    lsm(stream, &[(1, 10)]).stats(stream).unwrap().bytes
}
