//! Streams: work that happens in order.

use super::cpu::CpuLane;
use super::cuda::{CudaEvent, CudaStream};
use super::device::{Backend, Device, MAX_BLOCKS, lock};
use super::error::Error;
use super::event::{Event, Mark};
use super::graph::Recording;
use super::lanes::{Lane, LaneKind};
use super::memory::DeviceVec;
use super::step::Step;
use crate::kernel::{Call, Kernel};
use crate::view::GlobalMut;
use bytemuck::Pod;
use core::ffi::c_void;
use core::fmt;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// Work that happens in order: launches, copies, allocations and frees. Clones mean the same stream.
///
/// Calls put work onto the stream and return; those that wait for it say so. On the CPU device a call returns when its
/// work is done, and calls from several threads on one stream happen one after the other. (The checked CPU device does so
/// while it has one stream. With more, work waits in queues until somebody waits for it, and an error is told then.)
///
/// Work on different streams overlaps, except where it shares memory: a stream that touches memory which another one has
/// written, or that writes memory which another one has read, first waits for that, on the device. No [`Event`] is needed.
/// A buffer may be dropped at any time: it is freed after the work of every stream on which it was used. Whoever wants to
/// order by hand takes an [unordered slice](crate::DeviceSlice::unordered).
///
/// ```
/// use gpu_primitives::{Device, Error, transfer};
///
/// let device = Device::default()?;
/// let (a, b) = (device.stream()?, device.stream()?);
/// let mut numbers = a.zeroed::<u32>(1000)?;
/// transfer::fill(&a, &mut numbers, 7)?;
/// assert_eq!(numbers.to_vec(&b)?, [7; 1000]); // `b` waits for the fill
/// # Ok::<(), Error>(())
/// ```
///
/// A crash of a kernel on a GPU is told by some later call, as [`Error::KernelCrashed`], and the device is lost for the
/// rest of the process. With the environment variable `GPU_PRIMITIVES_SYNC=1` every launch waits for its kernel, so that
/// the error comes from the launch itself and names the kernel.
#[derive(Clone)]
pub struct Stream {
    inner: Arc<Inner>,
}

struct Inner {
    queue: Queue,
    scratch: Mutex<Scratch>,
    zeros: Mutex<Scratch>,
}

/// What a stream is made of, without its scratch.
pub(super) struct Queue {
    pub(super) device: Device,
    pub(super) lane: Arc<Lane>,
    /// What has been recorded so far, by a stream that records.
    recording: Mutex<Option<Recording>>,
    /// For tests: how many more allocations succeed before one fails. Negative if none is to fail.
    allocations_left: AtomicI64,
}

/// Memory that kernels keep from launch to launch.
struct Scratch {
    address: NonNull<u64>,
    words: usize,
    /// Calls since the words were last set to zero.
    calls: u32,
    /// What was outgrown, with its bytes. Another thread may be about to launch a kernel with it, so it is kept; sizes
    /// double, so all of it together is no larger than what is in use.
    outgrown: Vec<(NonNull<u8>, usize)>,
}

// SAFETY: the addresses are only handed to the device.
unsafe impl Send for Scratch {}

impl Scratch {
    /// Kernels count launches in 32 bits and must not come around: see `lookback_words`.
    const CALLS_BEFORE_ZEROING: u32 = 1 << 31;
    const LEAST_WORDS: usize = 1024;

    fn none() -> Self {
        Self { address: NonNull::dangling(), words: 0, calls: 0, outgrown: Vec::new() }
    }
}

impl Stream {
    pub(super) fn new(device: &Device) -> Result<Self, Error> {
        Ok(Self::of(device, Lane::of(device)?, None))
    }

    fn of(device: &Device, lane: Lane, recording: Option<Recording>) -> Self {
        lane.set_recording(recording.is_some());
        let queue = Queue {
            device: device.clone(),
            lane: Arc::new(lane),
            recording: Mutex::new(recording),
            allocations_left: AtomicI64::new(-1),
        };
        Self {
            inner: Arc::new(Inner { queue, scratch: Mutex::new(Scratch::none()), zeros: Mutex::new(Scratch::none()) }),
        }
    }

    /// A new stream that records, with memory from `parent`.
    pub(super) fn recorder(parent: &Self) -> Result<Self, Error> {
        let lane = Lane::of(parent.device())?;
        let recording = Recording::begin(parent, &lane.kind)?;
        Ok(Self::of(parent.device(), lane, Some(recording)))
    }

    /// Gives what a recorder has recorded. From now on it is a stream as all others.
    pub(super) fn stop_recording(&self) -> Option<Recording> {
        // Work of the graph uses the scratch; work that comes later needs one of its own.
        self.inner.give_scratch_back();
        let recording = self.queue().recording().take();
        self.lane().set_recording(false);
        recording
    }

    /// A stream that another library made (a `CUstream` or `cudaStream_t`), to work in its order.
    ///
    /// # Safety
    /// `raw` is a stream and stays one until the returned value, its clones, and all vectors and events made with them are
    /// gone.
    ///
    /// # Errors
    /// [`Error::NotCuda`] for the CPU device; [`Error::Driver`] if the stream does not belong to the primary context of
    /// the device (the one that the CUDA runtime uses).
    pub unsafe fn borrow_cuda_stream(device: &Device, raw: *mut c_void) -> Result<Self, Error> {
        let Backend::Cuda(gpu) = device.backend() else { return Err(Error::NotCuda { device: device.kind() }) };
        // SAFETY: the caller's promise.
        let stream = unsafe { CudaStream::borrow(gpu, raw)? };
        Ok(Self::of(device, Lane::new(LaneKind::Cuda(Arc::new(stream))), None))
    }

    /// The driver's handle (a `CUstream` or `cudaStream_t`), to let another library work in this stream's order; none on
    /// the CPU. It is valid as long as the stream.
    #[must_use]
    pub fn cuda_stream(&self) -> Option<*mut c_void> {
        match &self.lane().kind {
            LaneKind::Cpu(_) => None,
            LaneKind::Cuda(stream) => Some(stream.share()),
        }
    }

    /// The device that it works on.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.inner.queue.device
    }

    pub(super) fn queue(&self) -> &Queue {
        &self.inner.queue
    }

    /// An error if the stream records, for what would use the recorded results at once.
    pub(crate) fn refuse_recording(&self, what: &'static str) -> Result<(), Error> {
        self.queue().refuse_while_recording(what)
    }

    pub(super) fn lane(&self) -> &Arc<Lane> {
        &self.inner.queue.lane
    }

    /// Waits until everything on the stream is done.
    ///
    /// # Errors
    /// [`Error::KernelCrashed`] and other failures of the driver.
    pub fn synchronize(&self) -> Result<(), Error> {
        self.queue().synchronize()
    }

    /// Marks where the stream is now. Does not wait.
    ///
    /// # Errors
    /// Failures of the driver.
    pub fn record(&self) -> Result<Event, Error> {
        self.queue().refuse_while_recording("an event")?;
        let mark = match &self.lane().kind {
            LaneKind::Cpu(lane) => Mark::Cpu(lane.mark()?),
            LaneKind::Cuda(stream) => Mark::Cuda(CudaEvent::record(stream)?),
        };
        Ok(Event { device: self.device().clone(), mark })
    }

    /// Lets what comes later on this stream wait for the event, which may be of another stream or device. Does not wait
    /// itself, unless one of the two is of a GPU and the other one of the CPU.
    ///
    /// Memory that streams share needs no such wait.
    ///
    /// # Errors
    /// Failures of the driver.
    pub fn wait(&self, event: &Event) -> Result<(), Error> {
        self.queue().refuse_while_recording("a wait for an event")?;
        match (&self.lane().kind, &event.mark) {
            (LaneKind::Cuda(stream), Mark::Cuda(event)) => stream.wait(event),
            (LaneKind::Cpu(lane), Mark::Cpu(mark)) => lane.wait_for_mark(mark),
            _ => event.synchronize(),
        }
    }

    /// A device vector of the elements. `data` may be used again when this returns; the copy itself may still be under
    /// way. (If `data` lies in page-locked memory, this waits: use [`upload_pinned`](Self::upload_pinned) there.)
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], and other failures of the driver.
    pub fn upload<T: Pod>(&self, data: &[T]) -> Result<DeviceVec<T>, Error> {
        let mut vector = self.uninit(data.len())?;
        vector.copy_from_host(self, data)?;
        Ok(vector)
    }

    /// A device vector of `len` zeros. Does not wait.
    ///
    /// # Errors
    /// As [`upload`](Self::upload).
    pub fn zeroed<T: Pod>(&self, len: usize) -> Result<DeviceVec<T>, Error> {
        let mut vector = self.uninit::<T>(len)?;
        let view = vector.raw_view_mut(self)?;
        // SAFETY: the view is of that many elements, fresh, and used on its own stream.
        unsafe { self.queue().zero(view.as_const().as_ptr().cast_mut().cast(), len * size_of::<T>())? };
        Ok(vector)
    }

    /// A device vector of `len` elements that hold whatever was in the memory before (zeros on the CPU). Does not wait.
    ///
    /// # Errors
    /// As [`upload`](Self::upload).
    pub fn uninit<T: Pod>(&self, len: usize) -> Result<DeviceVec<T>, Error> {
        DeviceVec::new(self, len)
    }

    /// Lets `successes` more allocations of device memory on this stream succeed and the next one fail with
    /// [`Error::OutOfMemory`]; those after it are as ever. With `None` nothing fails. For tests of what a failure leaves behind.
    #[doc(hidden)]
    pub fn fail_allocation_after(&self, successes: Option<u32>) {
        self.queue().allocations_left.store(successes.map_or(-1, i64::from), Ordering::Relaxed);
    }

    /// Launches a kernel with `blocks` blocks. Does not wait; on the CPU device the kernel has run when this returns.
    ///
    /// The first launch of a kernel type on a GPU has its PTX compiled by the driver, which takes some milliseconds, or
    /// less if the driver has it in its cache on disk.
    ///
    /// # Errors
    /// [`Error::EmptyLaunch`], [`Error::LaunchTooLarge`]; on a GPU [`Error::NoInstance`], [`Error::PtxRejected`],
    /// [`Error::KernelCrashed`] of an earlier launch, and other failures of the driver; on the CPU
    /// [`Error::KernelFault`].
    ///
    /// # Safety
    /// What the kernel's documentation asks of its arguments and of the number of blocks holds. Views among the arguments
    /// were made for this stream.
    pub unsafe fn launch<K: Kernel>(&self, kernel: Call<'_, K>, blocks: usize) -> Result<(), Error> {
        if blocks == 0 {
            return Err(Error::EmptyLaunch { kernel: K::NAME });
        }
        let too_large = |what, asked, limit| Error::LaunchTooLarge { kernel: K::NAME, what, asked, limit };
        let count = u32::try_from(blocks).ok().filter(|&count| count <= MAX_BLOCKS).ok_or(too_large(
            "blocks",
            blocks,
            MAX_BLOCKS as usize,
        ))?;
        match &self.lane().kind {
            LaneKind::Cuda(stream) => {
                // SAFETY: the caller's promise.
                unsafe { stream.launch(kernel.into_parts().0, count)? };
                if self.queue().is_recording() { Ok(()) } else { stream.wait_if_asked() }
            }
            LaneKind::Cpu(lane) => {
                let limit = self.device().limits().shared_bytes_per_block;
                if K::SHARED_BYTES > limit {
                    return Err(too_large("bytes of shared memory per block", K::SHARED_BYTES, limit));
                }
                if let Some(recording) = &mut *self.queue().recording() {
                    recording.note(Step::launch(kernel, count));
                    return Ok(());
                }
                // SAFETY: the caller's promise.
                unsafe { lane.submit(Step::launch(kernel, count)) }.inspect_err(|_| self.inner.clear_scratch())
            }
        }
    }

    /// Counters that are zero whenever no kernel of this stream runs: kernels that use them leave them so. Does not wait.
    pub(crate) fn zero_words(&self, words: usize) -> Result<GlobalMut<u64>, Error> {
        let inner = &*self.inner;
        inner.clear_spoiled_scratch();
        let _order = inner.queue.hold();
        let mut scratch = lock(&inner.zeros);
        if scratch.words < words {
            inner.grow_scratch(&mut scratch, words)?;
        }
        // SAFETY: as in `lookback_words`.
        Ok(unsafe { GlobalMut::from_raw(scratch.address.as_ptr(), words) })
    }

    /// The scratch of this stream for look-back kernels: `words` words that were zero at first and then are what earlier
    /// kernels left there. Does not wait.
    ///
    /// Word 0 is the kernels' own: a ticket counter, which every kernel resets, under an epoch of 32 bits, which every
    /// launch increases. So that the epoch cannot come around to a tag that still lies about, all words are set to zero
    /// again after 2^31 calls: one launch per call.
    pub(crate) fn lookback_words(&self, words: usize) -> Result<GlobalMut<u64>, Error> {
        let inner = &*self.inner;
        inner.clear_spoiled_scratch();
        let _order = inner.queue.hold();
        let mut scratch = lock(&inner.scratch);
        if scratch.words < words {
            inner.grow_scratch(&mut scratch, words)?;
        } else if scratch.calls == Scratch::CALLS_BEFORE_ZEROING {
            inner.zero_scratch(&mut scratch)?;
        }
        scratch.calls += 1;
        // SAFETY: so many words are there, and stay there as long as the stream. What else is done with them comes before
        // or after in the stream's order.
        Ok(unsafe { GlobalMut::from_raw(scratch.address.as_ptr(), words) })
    }
}

impl Lane {
    fn of(device: &Device) -> Result<Self, Error> {
        Ok(Self::new(match device.backend() {
            Backend::Cpu(cpu) => LaneKind::Cpu(CpuLane::new(cpu)?),
            Backend::Cuda(gpu) => LaneKind::Cuda(Arc::new(CudaStream::create(gpu)?)),
        }))
    }
}

impl Queue {
    pub(super) fn recording(&self) -> MutexGuard<'_, Option<Recording>> {
        lock(&self.recording)
    }

    /// Whether work is recorded instead of done.
    pub(super) fn is_recording(&self) -> bool {
        self.recording().is_some()
    }

    /// Whether this allocation is the one that a test wants to fail.
    pub(super) fn is_made_to_fail(&self) -> bool {
        self.allocations_left.load(Ordering::Relaxed) >= 0 && self.allocations_left.fetch_sub(1, Ordering::Relaxed) == 0
    }

    /// An error if the stream records, for what cannot be recorded.
    pub(super) fn refuse_while_recording(&self, what: &'static str) -> Result<(), Error> {
        if self.is_recording() { Err(Error::NotRecordable { what }) } else { Ok(()) }
    }

    /// Keeps kernels from running, where that is not the driver's business.
    fn hold(&self) -> Option<MutexGuard<'_, ()>> {
        match &self.lane.kind {
            LaneKind::Cpu(lane) => Some(lane.hold()),
            LaneKind::Cuda(_) => None,
        }
    }
}

impl Inner {
    fn grow_scratch(&self, scratch: &mut Scratch, words: usize) -> Result<(), Error> {
        let words = words.max(2 * scratch.words).max(Scratch::LEAST_WORDS);
        let bytes = self.queue.device.bytes_of::<u64>(words)?;
        let address = self.queue.allocate(bytes)?;
        // SAFETY: allocated above.
        if let Err(error) = unsafe { self.queue.zero(address.as_ptr(), bytes) } {
            // SAFETY: nobody else has seen it.
            unsafe { self.queue.free(address, bytes) };
            return Err(error);
        }
        let old = (scratch.address.cast(), scratch.words * size_of::<u64>());
        scratch.outgrown.push(old);
        (scratch.address, scratch.words, scratch.calls) = (address.cast(), words, 0);
        Ok(())
    }

    fn zero_scratch(&self, scratch: &mut Scratch) -> Result<(), Error> {
        let bytes = scratch.words * size_of::<u64>();
        // SAFETY: so many bytes are there, and kernels that use them come before or after in the stream's order.
        unsafe { self.queue.zero(scratch.address.as_ptr().cast(), bytes)? };
        scratch.calls = 0;
        Ok(())
    }

    /// Sets all scratch to zero: a kernel that stopped half-way has left its tickets and tags behind.
    fn clear_scratch(&self) {
        for scratch in [&self.scratch, &self.zeros] {
            let mut scratch = lock(scratch);
            // Failures are not told: the caller is told what the launch failed with.
            let _ = self.zero_scratch(&mut scratch);
            for &(address, bytes) in &scratch.outgrown {
                // SAFETY: it is kept as long as the stream, and used in its order.
                let _ = unsafe { self.queue.zero(address.as_ptr(), bytes) };
            }
        }
    }

    /// The same, if a kernel stopped half-way after its launch had returned.
    fn clear_spoiled_scratch(&self) {
        if let LaneKind::Cpu(lane) = &self.queue.lane.kind
            && lane.take_spoiled_scratch()
        {
            self.clear_scratch();
        }
    }

    fn give_scratch_back(&self) {
        for scratch in [&self.scratch, &self.zeros] {
            let Scratch { address, words, mut outgrown, .. } = core::mem::replace(&mut *lock(scratch), Scratch::none());
            outgrown.push((address.cast(), words * size_of::<u64>()));
            for (address, bytes) in outgrown {
                // SAFETY: allocated by this stream; kernels that use it come before in its order.
                unsafe { self.queue.free(address, bytes) };
            }
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.give_scratch_back();
        self.queue.lane.close();
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("device", self.device()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::Global;

    /// The words as the host sees them.
    fn read(stream: &Stream, words: GlobalMut<u64>) -> Vec<u64> {
        let bytes = words.len() * 8;
        let mut host = vec![0u64; words.len()];
        // SAFETY: the scratch of the CPU device, and as many bytes on the host.
        unsafe {
            let to = host.as_mut_ptr().cast();
            stream.queue().download_later(words.as_const().as_ptr().cast(), to, bytes, 8).unwrap()
        };
        host
    }

    fn write(stream: &Stream, words: GlobalMut<u64>, value: u64) {
        let host = vec![value; words.len()];
        let to = words.as_const().as_ptr().cast_mut().cast();
        // SAFETY: as above.
        unsafe { stream.queue().upload(host.as_ptr().cast(), to, words.len() * 8).unwrap() };
    }

    #[test]
    fn scratch_is_kept_and_grows() {
        let device = Device::cpu_checked();
        let stream = device.stream().unwrap();
        assert_eq!(stream.lookback_words(0).unwrap().len(), 0);
        assert_eq!(device.memory_used(), 0);

        let words = stream.lookback_words(10).unwrap();
        assert_eq!(read(&stream, words), [0; 10]);
        write(&stream, words, 7);
        assert_eq!(read(&stream, stream.lookback_words(10).unwrap()), [7; 10], "kept between calls");
        assert_eq!(device.memory_used(), Scratch::LEAST_WORDS * 8);

        let more = stream.lookback_words(5000).unwrap();
        assert_eq!(read(&stream, more), [0; 5000], "zero when it has grown");
        assert_eq!(read(&stream, words), [7; 10], "what was handed out stays valid");
        let vector = stream.zeroed::<u8>(3).unwrap();
        drop(stream);
        assert!(device.memory_used() > 3, "the vector keeps its stream");
        drop(vector);
        assert_eq!(device.memory_used(), 0);
    }

    #[test]
    fn an_allocation_fails_when_it_is_told_to() {
        let device = Device::cpu();
        let (stream, other) = (device.stream().unwrap(), device.stream().unwrap());
        stream.fail_allocation_after(Some(2));
        let mut outcomes = Vec::new();
        for _ in 0..5 {
            other.zeroed::<u8>(1).unwrap();
            outcomes.push(stream.zeroed::<u8>(1).is_ok());
            assert!(stream.zeroed::<u8>(0).is_ok(), "no memory, no failure");
        }
        assert_eq!(outcomes, [true, true, false, true, true]);
        stream.fail_allocation_after(Some(0));
        stream.fail_allocation_after(None);
        assert!(stream.zeroed::<u8>(1).is_ok());
    }

    #[test]
    fn scratch_is_zeroed_before_the_epoch_comes_around() {
        let stream = Device::cpu_checked().stream().unwrap();
        let words = stream.lookback_words(10).unwrap();
        write(&stream, words, 7);
        lock(&stream.inner.scratch).calls = Scratch::CALLS_BEFORE_ZEROING - 1;
        assert_eq!(read(&stream, stream.lookback_words(10).unwrap()), [7; 10]);
        assert_eq!(read(&stream, stream.lookback_words(10).unwrap()), [0; 10]);
        assert_eq!(lock(&stream.inner.scratch).calls, 1);
    }

    #[test]
    fn a_scratch_that_does_not_fit_leaves_the_old_one() {
        let device = Device::cpu_with(crate::CpuOptions { memory_limit: Some(100_000), ..Default::default() });
        let stream = device.stream().unwrap();
        let words = stream.lookback_words(10).unwrap();
        write(&stream, words, 7);
        assert!(matches!(stream.lookback_words(1 << 20), Err(Error::OutOfMemory { .. })));
        assert!(matches!(stream.lookback_words(usize::MAX), Err(Error::OutOfMemory { .. })));
        assert_eq!(read(&stream, stream.lookback_words(10).unwrap()), [7; 10]);
    }

    /// A kernel that does not end well.
    #[derive(Clone, Copy)]
    #[repr(C)]
    struct Trap;

    // SAFETY: there are no arguments.
    unsafe impl Kernel for Trap {
        const NAME: &'static str = "trap";
        const THREADS: u32 = 32;
        const MIN_BLOCKS: u32 = 0;
        const SHARED_BYTES: usize = 0;

        unsafe fn run(self) {
            crate::arch::thread::trap()
        }

        fn params(&self, _: &mut dyn FnMut(&'static str, crate::kernel::Buffer)) {}
    }

    #[test]
    fn a_fault_clears_the_scratch() {
        for device in [Device::cpu(), Device::cpu_checked()] {
            let stream = device.stream().unwrap();
            let words = stream.lookback_words(10).unwrap();
            write(&stream, words, 7);
            // SAFETY: the fault is what the test is about.
            assert!(matches!(unsafe { stream.launch(Call::new(Trap), 1) }, Err(Error::KernelFault(_))));
            assert_eq!(read(&stream, stream.lookback_words(10).unwrap()), [0; 10]);
        }
    }

    #[test]
    fn launches_that_cannot_be() {
        let stream = Device::cpu().stream().unwrap();
        // SAFETY: neither is launched.
        let (none, many) = unsafe { (stream.launch(Call::new(Trap), 0), stream.launch(Call::new(Trap), 1 << 31)) };
        assert!(matches!(none, Err(Error::EmptyLaunch { kernel: "trap" })));
        assert!(matches!(many, Err(Error::LaunchTooLarge { what: "blocks", limit: 0x7fff_ffff, .. })));
    }

    #[test]
    fn cuda_handles_are_of_cuda_devices() {
        let device = Device::cpu();
        assert!(device.stream().unwrap().cuda_stream().is_none());
        // SAFETY: the handle is not looked at.
        let borrowed = unsafe { Stream::borrow_cuda_stream(&device, core::ptr::null_mut()) };
        assert!(matches!(borrowed, Err(Error::NotCuda { .. })));
    }

    #[test]
    fn views_have_the_layout_that_kernels_expect() {
        assert_eq!((size_of::<Global<u8>>(), align_of::<Global<u8>>()), (16, 8));
        assert_eq!((size_of::<GlobalMut<[u64; 2]>>(), align_of::<GlobalMut<[u64; 2]>>()), (16, 8));
    }
}
