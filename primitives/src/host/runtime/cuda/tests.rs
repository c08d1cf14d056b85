//! Tests on a GPU; without one they pass immediately. The kernels are handwritten PTX, so that only the runtime is
//! tested.

use crate::form::{Buffer, Kernel};
use crate::host::instance::Instance;
use crate::host::instance::{STORED_EXTRA, stored};
use crate::host::runtime::call::Call;
use crate::host::runtime::device::lock;
use crate::host::runtime::{Device, DeviceSlice, DeviceVec, Error, Stream};
use crate::view::GlobalMut;
use std::process::Command;
use std::sync::{Barrier, Mutex};
use std::time::Duration;

/// Implements a kernel that exists as PTX only.
macro_rules! ptx_kernel {
    ($type:ty, $name:literal, shared $shared:expr, $ptx:expr) => {
        // SAFETY: `repr(C)`, made of views and numbers.
        unsafe impl Kernel for $type {
            const NAME: &'static str = $name;
            const THREADS: u32 = 32;
            const MIN_BLOCKS: u32 = 0;
            const SHARED_BYTES: usize = $shared;

            unsafe fn run(self) {
                unreachable!("there is no body for the CPU")
            }

            fn params(&self, _: &mut dyn FnMut(&'static str, Buffer)) {}
        }

        const _: () = {
            const PACKED: &[u8] = &stored::<{ $ptx.len() + STORED_EXTRA }>($ptx);
            // SAFETY: the text was written for this kernel.
            inventory::submit! { unsafe { Instance::new::<$type>($name, PACKED) } }
        };
    };
}

/// Computes `data[i] += amount` for the first `32 * blocks` elements.
#[derive(Clone, Copy)]
#[repr(C)]
struct Add {
    data: GlobalMut<u32>,
    amount: u32,
}

ptx_kernel!(Add, "test_add", shared 0, "
    .version 7.0
    .target sm_70
    .address_size 64
    .visible .entry test_add(.param .align 8 .b8 kernel[24])
    {
        .reg .b32 %r<7>;
        .reg .b64 %rd<4>;
        ld.param.u64 %rd1, [kernel];
        ld.param.u32 %r1, [kernel+16];
        mov.u32 %r2, %ctaid.x;
        mov.u32 %r3, %ntid.x;
        mov.u32 %r4, %tid.x;
        mad.lo.u32 %r5, %r2, %r3, %r4;
        cvta.to.global.u64 %rd1, %rd1;
        mul.wide.u32 %rd2, %r5, 4;
        add.u64 %rd3, %rd1, %rd2;
        ld.global.u32 %r6, [%rd3];
        add.u32 %r6, %r6, %r1;
        st.global.u32 [%rd3], %r6;
        ret;
    }
");

/// Writes the last word of 64 KiB of shared memory, reads it again and stores it in `data[0]`.
#[derive(Clone, Copy)]
#[repr(C)]
struct MuchShared {
    data: GlobalMut<u32>,
}

ptx_kernel!(MuchShared, "test_much_shared", shared 64 * 1024, "
    .version 7.0
    .target sm_70
    .address_size 64
    .extern .shared .align 16 .b8 memory[];
    .visible .entry test_much_shared(.param .align 8 .b8 kernel[16])
    {
        .reg .b32 %r<3>;
        .reg .b64 %rd<3>;
        ld.param.u64 %rd1, [kernel];
        cvta.to.global.u64 %rd1, %rd1;
        mov.u32 %r1, 77;
        st.shared.u32 [memory+65532], %r1;
        ld.shared.u32 %r2, [memory+65532];
        st.global.u32 [%rd1], %r2;
        ret;
    }
");

/// More shared memory than any GPU has.
#[derive(Clone, Copy)]
#[repr(C)]
struct TooMuchShared;
ptx_kernel!(TooMuchShared, "test_too_much_shared", shared 1 << 30, "");

/// Does nothing, without arguments.
#[derive(Clone, Copy)]
#[repr(C)]
struct Nothing;
ptx_kernel!(Nothing, "test_nothing", shared 0, ".version 7.0
    .target sm_70
    .address_size 64
    .visible .entry test_nothing() { ret; }
");

/// Writes to address 0.
#[derive(Clone, Copy)]
#[repr(C)]
struct Crash;
ptx_kernel!(Crash, "test_crash", shared 0, ".version 7.0
    .target sm_70
    .address_size 64
    .visible .entry test_crash()
    {
        .reg .b32 %r<2>;
        .reg .b64 %rd<2>;
        mov.u64 %rd1, 0;
        mov.u32 %r1, 1;
        st.global.u32 [%rd1], %r1;
        ret;
    }
");

#[derive(Clone, Copy)]
#[repr(C)]
struct NotPtx;
ptx_kernel!(NotPtx, "test_not_ptx", shared 0, "this is no PTX");

#[derive(Clone, Copy)]
#[repr(C)]
struct WrongName;
ptx_kernel!(WrongName, "test_wrong_name", shared 0, ".version 7.0
    .target sm_70
    .address_size 64
    .visible .entry another_name() { ret; }
");

fn gpu() -> Option<Device> {
    Device::cuda(0).inspect_err(|error| println!("not run: {error}")).ok()
}

fn add(stream: &Stream, data: &mut DeviceVec<u32>, amount: u32) -> Result<(), Error> {
    let blocks = data.len() / 32;
    // SAFETY: there are as many threads as elements.
    unsafe { stream.launch(Call::new(Add { data: data.raw_view_mut(stream)?, amount }), blocks) }
}

#[test]
fn kernels_run() {
    let Some(device) = gpu() else { return };
    println!("{device:?}, {:?}, {:?}", device.limits(), device.memory_free().unwrap());
    let stream = device.stream().unwrap();
    let mut host: Vec<u32> = (0..1 << 20).collect();
    let mut data = stream.upload(&host).unwrap();
    host.fill(0); // the upload has read it, though the copy may be under way
    let start = stream.record().unwrap();
    for amount in 1..=10 {
        add(&stream, &mut data, amount).unwrap();
    }
    let end = stream.record().unwrap();
    let sums = data.to_vec(&stream).unwrap();
    assert!(sums.iter().enumerate().all(|(i, &sum)| sum == i as u32 + 55));
    assert!(end.is_done().unwrap() && end.elapsed(&start).unwrap().as_nanos() > 0);

    let mut word = stream.zeroed::<u32>(1).unwrap();
    // SAFETY: there is room for the word.
    unsafe { stream.launch(Call::new(MuchShared { data: word.raw_view_mut(&stream).unwrap() }), 1).unwrap() };
    assert_eq!(word.to_vec(&stream).unwrap(), [77]);
    // SAFETY: the kernel does nothing.
    unsafe { stream.launch(Call::new(Nothing), 1000).unwrap() };
    stream.synchronize().unwrap();
}

#[test]
fn launches_that_cannot_be() {
    let Some(device) = gpu() else { return };
    let stream = device.stream().unwrap();
    // SAFETY: none of these kernels runs.
    unsafe {
        assert!(matches!(stream.launch(Call::new(Nothing), 0), Err(Error::EmptyLaunch { .. })));
        assert!(matches!(stream.launch(Call::new(Nothing), 1 << 31), Err(Error::LaunchTooLarge { .. })));
        assert!(matches!(stream.launch(Call::new(TooMuchShared), 1), Err(Error::LaunchTooLarge { .. })));
        let rejected = stream.launch(Call::new(NotPtx), 1).unwrap_err();
        println!("{rejected}");
        assert!(matches!(rejected, Error::PtxRejected { kernel: "test_not_ptx", .. }));
        assert!(matches!(stream.launch(Call::new(WrongName), 1), Err(Error::PtxRejected { .. })));
        stream.launch(Call::new(Nothing), 1).unwrap();
    }
    stream.synchronize().unwrap();
}

#[test]
fn threads_that_launch_first() {
    let Some(device) = gpu() else { return };
    let together = Barrier::new(8);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let stream = device.stream().unwrap();
                let mut data = stream.zeroed(64).unwrap();
                together.wait();
                add(&stream, &mut data, 3).unwrap();
                assert_eq!(data.to_vec(&stream).unwrap(), [3; 64]);
            });
        }
    });
}

#[test]
fn streams_wait_for_each_other() {
    let Some(device) = gpu() else { return };
    let (first, second) = (device.stream().unwrap(), device.stream().unwrap());
    let mut data = first.zeroed(1 << 20).unwrap();
    for round in 0..50 {
        add(&first, &mut data, 1).unwrap();
        second.wait(&first.record().unwrap()).unwrap();
        add(&second, &mut data, 1).unwrap();
        first.wait(&second.record().unwrap()).unwrap();
        // Freed while the other stream still uses it; the memory must not be reused too early.
        let mut short = first.zeroed::<u32>(1 << 18).unwrap();
        second.wait(&first.record().unwrap()).unwrap();
        add(&second, &mut short, round).unwrap();
        drop(short);
        let fresh = first.zeroed::<u32>(1 << 18).unwrap();
        assert!(fresh.to_vec(&first).unwrap().iter().all(|&x| x == 0));
    }
    assert!(data.to_vec(&first).unwrap().iter().all(|&x| x == 100));
    // Many streams that are dropped before the vector is.
    for _ in 0..40 {
        let passing = device.stream().unwrap();
        passing.wait(&first.record().unwrap()).unwrap();
        add(&passing, &mut data, 1).unwrap();
        first.wait(&passing.record().unwrap()).unwrap();
    }
    assert!(data.to_vec(&first).unwrap().iter().all(|&x| x == 140));
}

#[test]
fn graphs() {
    let Some(device) = gpu() else { return };
    let (stream, other) = (device.stream().unwrap(), device.stream().unwrap());
    let mut data = stream.zeroed::<u32>(1 << 20).unwrap();
    let recorded = stream.capture(|recorder| {
        add(recorder, &mut data, 1)?;
        // Memory that lives only during the recording, and a vector of another stream that is dropped before it ends.
        let mut twos = recorder.upload(&vec![2u32; 1 << 20])?;
        add(recorder, &mut twos, 3)?;
        other.upload(&[1u32])?.raw_view(recorder)?;
        assert!(data.to_vec(&stream)?.iter().all(|&x| x == 0), "nothing has happened yet");
        add(recorder, &mut data, 10)?;
        data.try_clone(recorder)
    });
    let (mut graph, copy) = recorded.unwrap();
    for round in 1..=3 {
        // SAFETY: the vectors are still allocated, and used on this stream only.
        unsafe { graph.launch(&stream).unwrap() };
        assert!(copy.to_vec(&stream).unwrap().iter().all(|&x| x == 11 * round));
    }
    other.wait(&stream.record().unwrap()).unwrap();
    // SAFETY: the vectors are still allocated, and used only after the event.
    unsafe { graph.launch(&other).unwrap() };
    drop(graph);
    assert!(data.to_vec(&other).unwrap().iter().all(|&x| x == 44));

    let refused = stream.capture(|recorder| {
        add(recorder, &mut data, 1)?;
        recorder.synchronize()
    });
    assert!(matches!(refused, Err(Error::NotRecordable { .. })));
    let (mut empty, ()) = stream.capture(|_| Ok(())).unwrap();
    // SAFETY: the graph is empty.
    unsafe { empty.launch(&stream).unwrap() };
    stream.synchronize().unwrap();
}

#[test]
fn page_locked_memory() {
    let Some(device) = gpu() else { return };
    let stream = device.stream().unwrap();
    let mut buffer = device.pinned::<u32>(1 << 20).unwrap();
    assert!(buffer.iter().all(|&x| x == 0));
    buffer.fill(1);
    // As an ordinary slice, it is copied before the call returns.
    let mut data = stream.upload(&buffer).unwrap();
    buffer.fill(2);
    assert!(data.to_vec(&stream).unwrap().iter().all(|&x| x == 1));
    let buffer = stream.upload_pinned(buffer, &mut data).unwrap().wait().unwrap();
    add(&stream, &mut data, 5).unwrap();
    let pending = stream.download_pinned(&data, buffer).unwrap();
    assert!(pending.wait().unwrap().iter().all(|&x| x == 7));
    drop(stream.download_pinned(&data, device.pinned(1 << 20).unwrap()).unwrap());
    assert!(device.pinned::<u32>(0).unwrap().is_empty());
}

/// RegisterRepr by tests that take all of the memory, and by those that need some for another process. It takes seconds until the driver
/// finds that so much is not there, and it holds all that there is meanwhile.
static ALL_MEMORY: Mutex<()> = Mutex::new(());

#[test]
fn memory_that_is_not_there() {
    let Some(device) = gpu() else { return };
    let _all = lock(&ALL_MEMORY);
    let stream = device.stream().unwrap();
    let (_, total) = device.memory_free().unwrap();
    match stream.uninit::<u8>(total + 1).unwrap_err() {
        Error::OutOfMemory { requested, free, total: of } => {
            assert!(requested == total + 1 && free <= total && of == total);
        }
        other => panic!("{other}"),
    }
    assert_eq!(stream.zeroed::<u8>(100).unwrap().to_vec(&stream).unwrap(), [0; 100]);
    assert!(stream.zeroed::<u64>(0).unwrap().to_vec(&stream).unwrap().is_empty());
    // SAFETY: no kernel uses the words.
    assert_eq!(unsafe { stream.lookback_words(5000).unwrap().into_param() }.len(), 5000);
}

#[test]
fn streams_and_memory_of_others() {
    let Some(device) = gpu() else { return };
    let owner = device.stream().unwrap();
    // SAFETY: the owner and the vector outlive what is borrowed here.
    unsafe {
        let borrowed = Stream::borrow_cuda_stream(&device, owner.cuda_stream().unwrap()).unwrap();
        let data = owner.upload(&[1u32, 2, 3]).unwrap();
        let foreign = DeviceSlice::from_raw_parts(&device, data.as_slice().as_ptr(), 3);
        assert_eq!(foreign.slice(1..).unwrap().to_vec(&borrowed).unwrap(), [2, 3]);
        let default = Stream::borrow_cuda_stream(&device, core::ptr::null_mut()).unwrap();
        owner.synchronize().unwrap();
        assert_eq!(data.to_vec(&default).unwrap(), [1, 2, 3]);
    }
}

/// Runs one of the ignored tests below in its own process, which it may crash. Another program may have all of the memory for a
/// moment: then the process finds no room for its context, and is started again.
fn in_own_process(test: &str, synchronous: bool) {
    let mut text = String::new();
    for _ in 0..20 {
        let output = Command::new(std::env::current_exe().unwrap())
            .args([test, "--exact", "--ignored", "--nocapture"])
            .env("GPU_PRIMITIVES_SYNC", if synchronous { "1" } else { "0" })
            .output()
            .unwrap();
        text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if output.status.success() && text.contains("1 passed") {
            println!("{text}");
            return;
        }
        if !text.contains("cuDevicePrimaryCtxRetain failed with CUDA_ERROR_OUT_OF_MEMORY") {
            break;
        }
        std::thread::sleep(Duration::from_millis(300));
    }
    panic!("{text}");
}

#[test]
fn a_crash_loses_the_device() {
    if gpu().is_some() {
        let _all = lock(&ALL_MEMORY);
        in_own_process("host::runtime::cuda::tests::crash", false);
        in_own_process("host::runtime::cuda::tests::crash", true);
    }
}

#[test]
#[ignore = "crashes the device: run by `a_crash_loses_the_device`"]
fn crash() {
    let device = gpu().unwrap();
    let stream = device.stream().unwrap();
    let data = stream.zeroed::<u32>(100).unwrap();
    // SAFETY: the first kernel does nothing. The second is the crash that the test is about.
    let (launched, synchronous) = unsafe {
        stream.launch(Call::new(Nothing), 1).unwrap();
        (stream.launch(Call::new(Crash), 1), std::env::var("GPU_PRIMITIVES_SYNC").unwrap() == "1")
    };
    assert_eq!(launched.is_err(), synchronous);
    let error = launched.and_then(|()| stream.synchronize()).unwrap_err();
    println!("{error}");
    let suspects = if synchronous { vec!["test_crash"] } else { vec!["test_nothing", "test_crash"] };
    assert!(matches!(&error, Error::KernelCrashed { kernels, .. } if *kernels == suspects), "{error}");
    for later in
        [stream.synchronize(), stream.record().map(drop), device.stream().map(drop), data.to_vec(&stream).map(drop)]
    {
        assert!(matches!(&later, Err(Error::DeviceLost { cause }) if cause.contains("test_crash")), "{later:?}");
    }
    drop((data, stream));
    assert_eq!(device.memory_used(), 0);
}
