//! Streams as queues: whom an error is told, and what a kernel that calls the host can do to the queues.

use gpu_conformance::kernels::Crash;
use gpu_conformance::{cases, run};
use gpu_primitives::kernel::kernel;
use gpu_primitives::{
    CpuOptions, Device, DeviceVec, Error, FaultKind, Schedule, Stream, scan, thread, transfer, transform,
};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

fn main() -> ExitCode {
    run(cases![
        an_error_is_that_of_its_own_download,
        a_fault_reaches_all_that_may_depend_on_it;
        checked:
        errors_are_not_taken_by_other_threads,
        a_fault_among_streams_that_end,
        kernels_that_use_the_host,
    ])
}

/// Returns checked devices: one that runs work as late as possible, and some that run it at random moments.
fn checked_devices() -> impl Iterator<Item = Device> {
    let schedules = (0..8).map(|seed| Schedule::Random { seed }).chain([Schedule::InOrder]);
    schedules.map(|schedule| Device::cpu_with(CpuOptions { checked: true, schedule, ..CpuOptions::default() }))
}

fn is_unwritten<T>(result: &Result<T, Error>) -> bool {
    matches!(result, Err(Error::UninitialisedRead { index: 0 }))
}

/// A copy that fails says so to the call that waits for this copy, whoever waits for the stream before.
fn an_error_is_that_of_its_own_download(device: &Device) {
    let is_checked = gpu_conformance::is_checked(device);
    let [a, b] = [(); 2].map(|()| device.stream().unwrap());
    let unwritten = a.uninit::<u32>(10).unwrap();
    let written = a.upload(&[3u32; 10]).unwrap();
    let fails = a.download_pinned(&unwritten, device.pinned(10).unwrap()).unwrap();
    let works = a.download_pinned(&written, device.pinned(10).unwrap()).unwrap();
    a.synchronize().unwrap();
    b.wait(&a.record().unwrap()).unwrap();
    b.synchronize().unwrap();
    assert!(fails.is_done().unwrap() && works.is_done().unwrap());
    assert_eq!(is_unwritten(&fails.wait()), is_checked);
    assert_eq!(*works.wait().unwrap(), [3; 10]);
    assert_eq!(written.to_vec(&a).unwrap(), [3; 10]);
}

/// Another thread waits for the same stream all the time.
fn errors_are_not_taken_by_other_threads(_: &Device) {
    for device in checked_devices() {
        let [a, b] = [(); 2].map(|()| device.stream().unwrap());
        let (unwritten, written) = (a.uninit::<u32>(10).unwrap(), b.upload(&[1u32; 10]).unwrap());
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    a.synchronize().unwrap();
                    b.synchronize().unwrap();
                }
                assert_eq!(written.to_vec(&a).unwrap(), [1; 10]);
            });
            for round in 0..1000 {
                assert!(is_unwritten(&unwritten.to_vec(&a)), "round {round}");
            }
            is_over.store(true, Ordering::Relaxed);
        });
    }
}

/// Launches a kernel that traps in thread 40.
fn crash(stream: &Stream, out: &mut DeviceVec<u32>) -> Result<(), Error> {
    // SAFETY: the kernel's only buffer has an element per thread. The kernel traps on purpose.
    unsafe { stream.launch(Crash::new(out.view_mut(stream)?, 40), 1) }
}

fn is_the_fault<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::KernelFault(fault)) if matches!(fault.kind, FaultKind::Trap) && fault.thread == 40)
}

/// When the launch has returned, a fault is an error of all that comes later on its stream, and of all that waits for it.
/// Nobody gets old bytes and no error.
fn a_fault_reaches_all_that_may_depend_on_it(device: &Device) {
    if gpu_conformance::is_gpu(device) {
        return; // a GPU is lost after a fault, which `crash.rs` tests
    }
    if !gpu_conformance::is_checked(device) {
        // The launch itself fails, and that is all.
        let stream = device.stream().unwrap();
        let (mut out, other) = (stream.zeroed::<u32>(64).unwrap(), stream.upload(&[1u32, 2, 3, 4]).unwrap());
        assert!(is_the_fault(crash(&stream, &mut out)));
        assert_eq!(other.to_vec(&stream).unwrap(), [1, 2, 3, 4]);
        return stream.synchronize().unwrap();
    }
    for device in checked_devices() {
        let [stream, reader, stranger] = [(); 3].map(|()| device.stream().unwrap());
        let before = stream.upload(&[1u32, 2, 3, 4]).unwrap();
        let mut out = stream.zeroed::<u32>(64).unwrap();
        crash(&stream, &mut out).unwrap();
        // With a random order, the fault may be known by now.
        let after = stream.upload(&[5u32, 6, 7, 8]);
        let event = stream.record();
        let copy = after.as_ref().ok().and_then(|after| after.try_clone(&reader).ok());
        // Whoever comes first does not take the error away from the others.
        for _ in 0..2 {
            assert!(is_the_fault(stream.synchronize()));
            assert!(event.as_ref().is_ok_and(|event| is_the_fault(event.synchronize())));
        }
        assert!(is_the_fault(out.to_vec(&stream)));
        assert!(is_the_fault(before.to_vec(&stream)));
        match after {
            Ok(after) => assert!(is_the_fault(after.to_vec(&stream)) && is_the_fault(after.to_vec(&reader))),
            Err(error) => assert!(is_the_fault(Err::<(), _>(error))),
        }
        assert!(copy.is_none_or(|copy| is_the_fault(copy.to_vec(&reader))));
        assert!(is_the_fault(out.to_vec(&reader)), "another stream waits for the fault");
        // What has nothing to do with it goes on.
        let unharmed = stranger.upload(&[9u32; 4]).unwrap();
        assert_eq!(unharmed.to_vec(&stranger).unwrap(), [9; 4]);
        let fresh = device.stream().unwrap();
        assert_eq!(unharmed.to_vec(&fresh).unwrap(), [9; 4]);
        drop((out, before, unharmed));
        drop(stream);
        fresh.synchronize().unwrap();
    }
}

/// A stream that is gone still told those that wait for it.
fn a_fault_among_streams_that_end(_: &Device) {
    for device in checked_devices() {
        let [gone, reader] = [(); 2].map(|()| device.stream().unwrap());
        let mut out = reader.zeroed::<u32>(64).unwrap();
        crash(&gone, &mut out).unwrap();
        let event = gone.record().unwrap();
        let mut copy = reader.zeroed::<u32>(64).unwrap();
        let copied = transfer::copy(&reader, &out, &mut copy);
        drop((gone, out));
        assert!(copied.is_err() || is_the_fault(copy.to_vec(&reader)));
        assert!(is_the_fault(event.synchronize()));
        let late = device.stream().unwrap();
        late.wait(&event).unwrap();
        assert!(is_the_fault(late.synchronize()));
    }
}

/// What the next kernel `meddle` does.
static MEDDLING: Mutex<Option<Box<dyn FnOnce() + Send>>> = Mutex::new(None);

/// Calls what is in `MEDDLING`.
///
/// # Safety
/// None.
#[kernel(threads = 32)]
unsafe fn meddle() {
    if thread::thread_idx_x() == 0 {
        let meddling = MEDDLING.lock().unwrap_or_else(PoisonError::into_inner).take();
        (meddling.expect("one for each launch"))();
    }
}

/// Runs `meddling` inside a kernel on the stream. Fails if that takes long.
fn inside_a_kernel(what: &str, stream: &Stream, meddling: impl FnOnce() + Send + 'static) {
    /// The kernels are launched one by one: the meddling is the next one's.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let (say, heard) = mpsc::channel();
    let stream = stream.clone();
    *MEDDLING.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(meddling));
    std::thread::spawn(move || {
        // SAFETY: the kernel has no arguments.
        let result = unsafe { stream.launch(Meddle::new(), 1) }.and_then(|()| stream.synchronize());
        drop(stream); // before the test goes on, which counts memory
        let _ = say.send(result);
    });
    let result = heard.recv_timeout(Duration::from_secs(20));
    result.unwrap_or_else(|_| panic!("{what}: hangs")).unwrap_or_else(|error| panic!("{what}: {error}"));
}

fn is_refused<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::HostCallInKernel))
}

/// A kernel that uses streams, memory and events of its own device, or drops them. It gets errors; what it drops is freed when
/// the kernel is over.
fn kernels_that_use_the_host(_: &Device) {
    let fast = [Device::cpu(), Device::cpu_with(CpuOptions { simulated: true, ..CpuOptions::default() })];
    for device in checked_devices().chain(fast) {
        let before = device.memory_used();
        let [a, b] = [(); 2].map(|()| device.stream().unwrap());
        // A vector that both streams have used.
        let shared = || {
            let mut vector = a.upload(&[1u32, 2, 3]).unwrap();
            vector.copy_from_host(&b, &[4, 5, 6]).unwrap();
            vector
        };
        let (vector, stream) = (shared(), a.clone());
        inside_a_kernel("reading", &b, move || assert!(is_refused(vector.to_vec(&stream))));
        let vector = shared();
        inside_a_kernel("dropping", &a, move || drop(vector));
        let (mut vector, stream) = (shared(), a.clone());
        inside_a_kernel("writing", &b, move || assert!(is_refused(vector.copy_from_host(&stream, &[7, 8, 9]))));
        let (vector, stream) = (shared(), a.clone());
        inside_a_kernel("allocating", &a, move || {
            assert!(is_refused(stream.uninit::<u32>(3)));
            assert!(is_refused(stream.upload(&[1u32])));
            assert!(is_refused(vector.try_clone(&stream)));
        });
        let (mut vector, stream) = (shared(), b.clone());
        inside_a_kernel("scanning", &b, move || {
            assert!(is_refused(scan::inclusive_in_place(&stream, &mut vector, scan::Sum)));
        });
        let (stream, event) = (a.clone(), b.record().unwrap());
        inside_a_kernel("waiting", &a, move || {
            assert!(is_refused(stream.synchronize()));
            assert!(is_refused(stream.record()));
            assert!(is_refused(stream.wait(&event)));
            assert!(is_refused(event.synchronize()));
            assert!(is_refused(event.is_done()));
        });
        let (stream, owner) = (a.clone(), device.clone());
        inside_a_kernel("new streams", &b, move || {
            assert!(is_refused(owner.stream()));
            assert!(is_refused(stream.capture(|_| Ok(()))));
        });
        let gone = device.stream().unwrap();
        let (mut kept, mut numbers) = (gone.upload(&[1u32; 5]).unwrap(), a.upload(&[1u32; 5]).unwrap());
        scan::inclusive_in_place(&gone, &mut numbers, scan::Sum).unwrap();
        transfer::fill(&gone, &mut kept, 2).unwrap();
        inside_a_kernel("the last of a stream", &a, move || drop((gone, kept)));
        let lonely = device.stream().unwrap();
        transform::sequence(&lonely, &mut numbers, 1).unwrap();
        inside_a_kernel("a stream without vectors", &b, move || drop(lonely));
        assert_eq!(numbers.to_vec(&b).unwrap(), [1, 2, 3, 4, 5]);
        let pending = b.download_pinned(&numbers, device.pinned(5).unwrap()).unwrap();
        inside_a_kernel("pending copies", &a, move || drop(pending));
        assert_eq!(numbers.to_vec(&a).unwrap(), [1, 2, 3, 4, 5]);
        drop(numbers);
        drop((a, b));
        drop(device.stream().unwrap());
        // Any thread that waits for a stream or makes one frees what kernels have left, so another test may be at it.
        let deadline = Instant::now() + Duration::from_secs(20);
        while device.memory_used() != before && Instant::now() < deadline {
            std::thread::yield_now();
        }
        assert_eq!(device.memory_used(), before, "all memory is freed");
    }
}
