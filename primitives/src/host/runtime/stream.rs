//! Streams: work that runs in order.

use super::counters::Counted;
use super::cpu::CpuLane;
use super::cuda::{CudaEvent, CudaStream};
use super::device::{Backend, Device, MAX_BLOCKS, lock};
use super::event::{Event, Mark};
use super::graph::Recording;
use super::host_blocks::Place;
use super::lanes::{Lane, LaneKind, Timeline};
use super::launch::{Arguments, KernelType};
use super::left;
use super::loading::{Next, Upcoming};
use super::memory::DeviceVec;
use super::scratch::{Buffers, Scratch, Store};
use super::step::Step;
use crate::form::Kernel;
use crate::host::error::Error;
use crate::host::runtime::call::{Call, Reach, View};
use crate::view::GlobalMut;
use bytemuck::Pod;
use core::ffi::c_void;
use core::fmt;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// A queue of work that runs in order: launches, copies, allocations and frees. Clones refer to the same stream.
///
/// Calls put work on the stream and return; calls that wait say so. On the CPU device a call returns when its work is
/// done, and calls from several threads on one stream run one after the other. (The checked CPU device behaves like
/// this while it has one stream. With more than one, work is queued until a call waits for it. If a queued kernel faults,
/// all later calls on its stream return the fault, and so do those on streams that wait for it.)
///
/// Work on different streams overlaps, except where it shares memory. A stream that accesses memory written by another
/// stream, or writes memory read by another stream, first waits for that stream on the device. No [`Event`] is needed.
/// A buffer may be dropped at any time: it is freed after the work of every stream that used it. To order streams by
/// hand, use an [unordered slice](crate::DeviceSlice::unordered).
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
/// If a kernel crashes on a GPU, a later call returns [`Error::KernelCrashed`], and the device is lost for the rest of
/// the process. With the environment variable `GPU_PRIMITIVES_SYNC=1`, every launch waits for its kernel, so that the
/// launch itself returns the error and names the kernel.
#[derive(Clone)]
pub struct Stream {
    inner: Arc<Inner>,
}

struct Inner {
    queue: Queue,
    scratch: Scratch<Address>,
    zeros: Scratch<Address>,
    /// The memory of both.
    buffers: Arc<ScratchBuffers>,
}

/// A stream without its scratch memory.
pub(super) struct Queue {
    pub(super) device: Device,
    pub(super) lane: Arc<Lane>,
    /// The work recorded so far, if the stream is recording.
    recording: Mutex<Option<Recording>>,
    /// For tests: the number of allocations that still succeed before one fails. Negative if none is to fail.
    allocations_left: AtomicI64,
}

/// The address of scratch memory.
#[derive(Clone, Copy)]
pub(crate) struct Address(pub(super) NonNull<u64>);

// SAFETY: the address is only passed to the device.
unsafe impl Send for Address {}
// SAFETY: as above.
unsafe impl Sync for Address {}

/// All scratch memory of a stream.
pub(crate) type ScratchBuffers = Buffers<Address>;

impl Stream {
    pub(super) fn new(device: &Device) -> Result<Self, Error> {
        left::drop_left();
        Ok(Self::of(device, Lane::new(LaneKind::of(device)?), None))
    }

    pub(super) fn of(device: &Device, lane: Lane, recording: Option<Recording>) -> Self {
        let queue = Queue {
            device: device.clone(),
            lane: Arc::new(lane),
            recording: Mutex::new(recording),
            allocations_left: AtomicI64::new(-1),
        };
        let (scratch, zeros, buffers) = (Scratch::none(), Scratch::none(), Arc::new(Buffers::none()));
        Self { inner: Arc::new(Inner { queue, scratch, zeros, buffers }) }
    }

    /// Creates a new stream on which this thread records, with memory from `parent`.
    pub(super) fn recorder(parent: &Self) -> Result<Self, Error> {
        let lane = Lane::recorder(LaneKind::of(parent.device())?, parent.lane());
        let recording = Recording::begin(parent, &lane.kind)?;
        Ok(Self::of(parent.device(), lane, Some(recording)))
    }

    /// Stops recording, calls `end` with what was recorded, and returns its result. From then on this is an ordinary
    /// stream.
    pub(super) fn stop_recording<E>(&self, end: impl FnOnce(Recording) -> E) -> Option<E> {
        // The graph's work uses this scratch memory; later work on the stream needs its own.
        self.inner.scratch.forget();
        self.inner.zeros.forget();
        self.inner.give_back(self.inner.buffers.take());
        // Locked until the lane has followed the parent: nobody finds the stream neither recording nor ordinary.
        let mut recording = self.queue().recording();
        let ended = recording.take().map(end);
        self.lane().stop_recording();
        ended
    }

    /// Returns the driver's handle (a `CUstream` or `cudaStream_t`), so that another library can work in this stream's
    /// order; `None` on the CPU. The handle is valid as long as the stream.
    #[must_use]
    pub fn cuda_stream(&self) -> Option<*mut c_void> {
        match &self.lane().kind {
            LaneKind::Cuda(stream) => Some(stream.share()),
            LaneKind::Cpu(_) | LaneKind::Planned(_) => None,
        }
    }

    /// Returns the stream's device.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.inner.queue.device
    }

    pub(super) fn queue(&self) -> &Queue {
        &self.inner.queue
    }

    /// Returns whether there are clones, in vectors for example.
    #[cfg(any(feature = "cudarc", feature = "cust"))]
    pub(super) fn has_clones(&self) -> bool {
        Arc::strong_count(&self.inner) > 1
    }

    /// Checks that the stream runs work instead of recording it in a graph, for calls that rely on the results right
    /// after they return.
    ///
    /// # Errors
    /// Returns [`Error::NotRecordable`] if the stream is recording; the message calls the work `what`.
    pub fn refuse_recording(&self, what: &'static str) -> Result<(), Error> {
        self.queue().refuse_while_recording(what)
    }

    pub(super) fn lane(&self) -> &Arc<Lane> {
        &self.inner.queue.lane
    }

    /// Waits until everything on the stream is done.
    ///
    /// # Errors
    /// [`Error::KernelCrashed`] and other driver errors.
    pub fn synchronize(&self) -> Result<(), Error> {
        self.queue().synchronize()
    }

    /// Records an event at the stream's current position. Does not wait.
    ///
    /// # Errors
    /// Driver errors.
    pub fn record(&self) -> Result<Event, Error> {
        self.queue().refuse_while_recording("an event")?;
        let mark = match &self.lane().kind {
            LaneKind::Cpu(lane) => Mark::Cpu(lane.mark()?),
            LaneKind::Cuda(stream) => Mark::Cuda(CudaEvent::record(stream)?),
            LaneKind::Planned(_) => return Err(Error::OnlyPlanned { what: "an event" }),
        };
        Ok(Event { device: self.device().clone(), mark })
    }

    /// Makes later work on this stream wait for the event, which may belong to another stream or device. The call
    /// itself does not wait, unless one of the two is on a GPU and the other on the CPU.
    ///
    /// Streams that share memory need no such wait.
    ///
    /// # Errors
    /// Driver errors.
    pub fn wait(&self, event: &Event) -> Result<(), Error> {
        self.queue().refuse_while_recording("a wait for an event")?;
        match (&self.lane().kind, &event.mark) {
            (LaneKind::Cuda(stream), Mark::Cuda(event)) => stream.wait(event),
            (LaneKind::Cpu(lane), Mark::Cpu(mark)) => lane.wait_for_mark(mark),
            _ => event.synchronize(),
        }
    }

    /// Creates a device vector with these elements. `data` may be reused when this returns, although the copy may still
    /// be running. (If `data` is page-locked memory, this waits. Use [`upload_pinned`](Self::upload_pinned) for such
    /// memory.)
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], and other driver errors.
    #[track_caller]
    pub fn upload<T: Pod>(&self, data: &[T]) -> Result<DeviceVec<T>, Error> {
        let mut vector = self.uninit(data.len())?;
        vector.copy_from_host(self, data)?;
        Ok(vector)
    }

    /// Creates a device vector of `len` zeros. Does not wait.
    ///
    /// # Errors
    /// Same as [`upload`](Self::upload).
    #[track_caller]
    pub fn zeroed<T: Pod>(&self, len: usize) -> Result<DeviceVec<T>, Error> {
        let mut vector = self.uninit::<T>(len)?;
        let view = vector.raw_view_mut(self)?;
        // SAFETY: the view has that many elements, is fresh, and is used on its own stream.
        unsafe { self.queue().zero_new(view.as_const().as_ptr().cast_mut().cast(), len * size_of::<T>())? };
        Ok(vector)
    }

    /// Creates a device vector of `len` elements with unspecified contents (zeros on the CPU). Does not wait.
    ///
    /// # Errors
    /// Same as [`upload`](Self::upload).
    #[track_caller]
    pub fn uninit<T: Pod>(&self, len: usize) -> Result<DeviceVec<T>, Error> {
        DeviceVec::new(self, Place::Device, len)
    }

    /// [`uninit`](Self::uninit) in the memory of the device, or in page-locked memory of the host, which kernels reach over the link.
    ///
    /// # Errors
    /// Same as [`uninit`](Self::uninit), and [`Error::NotRecordable`] for memory of the host if the stream records.
    #[doc(hidden)]
    #[track_caller]
    pub fn uninit_in<T: Pod>(&self, place: Place, len: usize) -> Result<DeviceVec<T>, Error> {
        DeviceVec::new(self, place, len)
    }

    /// Makes the next device allocation on this stream after `successes` more fail with [`Error::OutOfMemory`]; later
    /// ones work as usual. With `None`, no allocation fails. For tests of what a failure leaves behind, with the feature
    /// `testing`.
    ///
    /// ```
    /// use gpu_primitives::{Device, Error};
    ///
    /// let stream = Device::cpu().stream()?;
    /// stream.fail_allocation_after(Some(1));
    /// assert!(stream.zeroed::<u32>(7).is_ok());
    /// assert!(matches!(stream.zeroed::<u32>(7), Err(Error::OutOfMemory { .. })));
    /// assert!(stream.zeroed::<u32>(7).is_ok());
    /// # Ok::<(), Error>(())
    /// ```
    #[cfg(any(test, feature = "testing"))]
    pub fn fail_allocation_after(&self, successes: Option<u32>) {
        self.queue().allocations_left.store(successes.map_or(-1, i64::from), Ordering::Relaxed);
    }

    /// Loads the kernels that `kernels` names, several at the same time. Later launches of them on this device load nothing. A
    /// call that must not stop half-way loads its kernels before it changes anything: loading a kernel needs memory. The CPU
    /// loads nothing.
    ///
    /// Takes kernels without [holes](crate::kernel::Hole), and ignores others. Kernels that are loaded cost a look into a table
    /// each. For [`fail_allocation_after`](Self::fail_allocation_after), this is an allocation, on every device.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::NoInstance`], [`Error::PtxRejected`], and other driver errors.
    #[doc(hidden)]
    pub fn load(&self, kernels: Next) -> Result<(), Error> {
        if self.queue().is_made_to_fail() {
            return Err(self.queue().out_of_memory(0));
        }
        self.device().load_named(kernels)
    }

    /// Launches a kernel with `blocks` blocks. Does not wait; on the CPU device the kernel has finished when this
    /// returns.
    ///
    /// On the first launch of a kernel type on a GPU, the driver compiles its PTX. That takes some milliseconds, or
    /// less if the driver finds the result in its cache on disk.
    ///
    /// # Errors
    /// [`Error::EmptyLaunch`], [`Error::LaunchTooLarge`]; on a GPU [`Error::NoInstance`], [`Error::PtxRejected`],
    /// [`Error::KernelCrashed`] from an earlier launch, and other driver errors; on the CPU [`Error::KernelFault`], and
    /// [`Error::ViewOfOtherStream`] on the checked CPU device.
    ///
    /// # Safety
    /// The arguments and the number of blocks satisfy the contract in the kernel's documentation. Views among the
    /// arguments were created for this stream.
    pub unsafe fn launch<K: Kernel>(&self, kernel: Call<'_, K>, blocks: usize) -> Result<(), Error> {
        let Call { mut kernel, reach, next, .. } = kernel;
        // Every function that this calls would be compiled for every kernel: casts with `as` call none.
        let arguments = &raw mut kernel as *mut ();
        // SAFETY: guaranteed by the caller; the arguments are those of the kernel.
        unsafe { self.launch_kernel(const { KernelType::of::<K>() }, arguments, reach, blocks, next) }
    }

    /// Launches a kernel with these arguments, which are not used after the call.
    ///
    /// # Safety
    /// The arguments are those of a kernel of this type, and the requirements of [`launch`](Self::launch) hold.
    unsafe fn launch_kernel(
        &self,
        kernel: &'static KernelType,
        arguments: *mut (),
        reach: Reach,
        blocks: usize,
        next: Option<Next>,
    ) -> Result<(), Error> {
        if blocks == 0 {
            return Err(Error::EmptyLaunch { kernel: kernel.name });
        }
        let too_large = |what, asked, limit| Error::LaunchTooLarge { kernel: kernel.name, what, asked, limit };
        let blocks = match u32::try_from(blocks) {
            Ok(blocks) if blocks <= MAX_BLOCKS => blocks,
            _ => return Err(too_large("blocks", blocks, MAX_BLOCKS as usize)),
        };
        match &self.lane().kind {
            LaneKind::Cuda(stream) => {
                let is_recording = self.queue().is_recording();
                // SAFETY: guaranteed by the caller.
                unsafe { stream.launch(kernel, arguments, blocks, !is_recording, next)? };
                self.queue().count(Counted::Launch);
                if is_recording { Ok(()) } else { stream.wait_if_asked() }
            }
            LaneKind::Planned(_) => kernel.target.expect_listed(),
            LaneKind::Cpu(lane) => {
                let limit = self.device().limits().shared_bytes_per_block;
                if kernel.shared_bytes > limit {
                    return Err(too_large("bytes of shared memory per block", kernel.shared_bytes, limit));
                }
                kernel.target.expect_listed()?;
                if lane.device().options().only_with_ptx {
                    kernel.target.instance()?;
                    // SAFETY: the arguments are those of the kernel.
                    let operators = unsafe { kernel.filled(arguments) };
                    operators.record()?;
                    for (target, _) in next.map_or(Vec::new(), |next| Upcoming::after(operators, next).kernels) {
                        target.instance()?;
                    }
                }
                if kernel.entry.is_none() && (kernel.native.is_none() || lane.device().simulates()) {
                    let feature = if cfg!(feature = "cpu") { "checked" } else { "cpu" };
                    return Err(Error::NeedsFeature { what: kernel.name, feature });
                }
                if !reach.is_for(self) {
                    return Err(Error::ViewOfOtherStream { kernel: kernel.name });
                }
                // SAFETY: guaranteed by the caller.
                let arguments = unsafe { Arguments::copy(kernel, arguments) };
                if let Some(recording) = &mut *self.queue().recording() {
                    recording.note(Step::Launch { arguments, reach, blocks, scratch: None });
                    return Ok(());
                }
                self.queue().count(Counted::Launch);
                let scratch = Some(Arc::clone(&self.inner.buffers));
                // SAFETY: guaranteed by the caller.
                unsafe { lane.submit(Step::Launch { arguments, reach, blocks, scratch }) }
            }
        }
    }

    /// Returns whether a launch on this stream records the operators of its kernel.
    pub(crate) fn records_operators(&self) -> bool {
        match &self.lane().kind {
            LaneKind::Cuda(_) => true,
            LaneKind::Cpu(lane) => lane.device().options().only_with_ptx,
            LaneKind::Planned(_) => false,
        }
    }

    /// Returns counters that are zero whenever no kernel of this stream is running: kernels that use them reset them.
    /// Does not wait.
    pub(crate) fn zero_words(&self, words: usize) -> Result<GlobalMut<u64>, Error> {
        self.inner.words(&self.inner.zeros, words)
    }

    /// Returns this stream's scratch memory for look-back kernels: `words` words, initially zero, that keep what
    /// earlier kernels wrote there. Does not wait.
    ///
    /// Word 0 belongs to the kernels. It holds a ticket counter, which every kernel resets, and a 32-bit epoch, which
    /// every launch increments. A wrapped epoch could match a stale tag, so all words are zeroed again after 2^31
    /// calls, with one launch per call.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn lookback_words(&self, words: usize) -> Result<View<'_, GlobalMut<u64>>, Error> {
        let words = self.inner.words(&self.inner.scratch, words)?;
        // SAFETY: the words live as long as the stream. All other uses of them come before or after in its order.
        Ok(unsafe { View::new(words, Reach::none()) })
    }
}

impl LaneKind {
    fn of(device: &Device) -> Result<Self, Error> {
        Ok(match device.backend() {
            Backend::Cpu(cpu) => Self::Cpu(CpuLane::new(cpu)?),
            Backend::Cuda(gpu) => Self::Cuda(Arc::new(CudaStream::create(gpu)?)),
            Backend::Planned(plan) => Self::Planned(Arc::clone(plan)),
        })
    }
}

impl Queue {
    pub(super) fn recording(&self) -> MutexGuard<'_, Option<Recording>> {
        lock(&self.recording)
    }

    /// Returns whether work is recorded instead of executed.
    pub(super) fn is_recording(&self) -> bool {
        self.recording().is_some()
    }

    /// Returns whether a test wants this allocation to fail.
    pub(super) fn is_made_to_fail(&self) -> bool {
        self.allocations_left.load(Ordering::Relaxed) >= 0 && self.allocations_left.fetch_sub(1, Ordering::Relaxed) == 0
    }

    /// Returns an error if the stream is recording, for work that cannot be recorded.
    pub(super) fn refuse_while_recording(&self, what: &'static str) -> Result<(), Error> {
        if self.is_recording() { Err(Error::NotRecordable { what }) } else { Ok(()) }
    }

    /// Keeps kernels from running, on the CPU device. On a GPU the driver does the ordering. An error inside a kernel,
    /// which would wait for itself.
    fn hold(&self) -> Result<Option<MutexGuard<'_, ()>>, Error> {
        match &self.lane.kind {
            LaneKind::Cpu(lane) => self.lane.kind.expect_host().map(|()| Some(lane.hold())),
            LaneKind::Cuda(_) | LaneKind::Planned(_) => Ok(None),
        }
    }
}

impl Store for Queue {
    type Address = Address;
    type Error = Error;

    fn allocate(&self, words: usize) -> Result<Address, Error> {
        let bytes = self.device.bytes_of::<u64>(words)?;
        let address = Self::allocate(self, bytes)?;
        // SAFETY: allocated above.
        if let Err(error) = unsafe { Self::zero(self, address.as_ptr(), bytes) } {
            // SAFETY: the address has not been shared with anything.
            unsafe { self.free(address, bytes) };
            return Err(error);
        }
        Ok(Address(address.cast()))
    }

    fn zero(&self, Address(address): Address, words: usize) -> Result<(), Error> {
        // SAFETY: the buffer has that many words, and kernels that use it come before or after in the stream's order.
        unsafe { Self::zero(self, address.as_ptr().cast(), words * size_of::<u64>()) }
    }
}

impl Inner {
    /// Returns scratch memory. Does not wait, except for kernels of other threads on the CPU device.
    fn words(&self, scratch: &Scratch<Address>, words: usize) -> Result<GlobalMut<u64>, Error> {
        self.queue.lane.records_here()?;
        let _order = self.queue.hold()?;
        let address = scratch.words(&self.queue, &self.buffers, words)?;
        let address = address.map_or(core::ptr::dangling_mut(), |Address(address)| address.as_ptr());
        // SAFETY: the scratch memory holds that many words.
        Ok(unsafe { GlobalMut::from_raw(address, words) })
    }

    fn give_back(&self, buffers: Vec<(Address, usize)>) {
        for (Address(address), words) in buffers {
            // SAFETY: allocated by this stream; kernels that use it come earlier in its order.
            unsafe { self.queue.free(address.cast(), words * size_of::<u64>()) };
        }
    }
}

impl Inner {
    /// Returns the same stream, to be ended in place of this.
    fn take(&mut self) -> Self {
        let Queue { device, lane, recording, allocations_left } = &mut self.queue;
        let recording = Mutex::new(lock(recording).take());
        let allocations_left = AtomicI64::new(*allocations_left.get_mut());
        let queue = Queue { device: device.clone(), lane: Arc::clone(lane), recording, allocations_left };
        Self { queue, scratch: Scratch::none(), zeros: Scratch::none(), buffers: Arc::clone(&self.buffers) }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if matches!(self.queue.lane.kind, LaneKind::Cpu(_)) && left::leave(|| self.take()) {
            return;
        }
        // Queued kernels still have the list, and clear the memory if they stop half-way: they come before the end of it.
        self.give_back(self.buffers.all());
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

    /// Returns scratch memory for look-back kernels.
    fn lookback_words(stream: &Stream, words: usize) -> GlobalMut<u64> {
        // SAFETY: the caller keeps the stream, and no kernel uses the words.
        unsafe { stream.lookback_words(words).unwrap().into_param() }
    }

    /// Reads the words back to the host.
    fn read(stream: &Stream, words: GlobalMut<u64>) -> Vec<u64> {
        let bytes = words.len() * 8;
        let mut host = vec![0u64; words.len()];
        // SAFETY: the words are scratch memory of the CPU device, and the host buffer has as many bytes.
        unsafe {
            let to = host.as_mut_ptr().cast();
            let copy = stream.queue().download_later(words.as_const().as_ptr().cast(), to, bytes, 8).unwrap();
            stream.queue().wait_for(copy).unwrap();
        }
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
        assert_eq!(lookback_words(&stream, 0).len(), 0);
        assert_eq!(device.memory_used(), 0);

        let words = lookback_words(&stream, 10);
        assert_eq!(read(&stream, words), [0; 10]);
        write(&stream, words, 7);
        assert_eq!(read(&stream, lookback_words(&stream, 10)), [7; 10], "kept between calls");
        assert_eq!(device.memory_used(), Scratch::<Address>::LEAST_WORDS * 8);

        let more = lookback_words(&stream, 5000);
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
        let words = lookback_words(&stream, 10);
        write(&stream, words, 7);
        stream.inner.scratch.set_calls(Scratch::<Address>::CALLS_BEFORE_ZEROING - 1);
        assert_eq!(read(&stream, lookback_words(&stream, 10)), [7; 10]);
        assert_eq!(read(&stream, lookback_words(&stream, 10)), [0; 10]);
        assert_eq!(stream.inner.scratch.set_calls(0), 1);
    }

    #[test]
    fn a_scratch_that_does_not_fit_leaves_the_old_one() {
        let device = Device::cpu_with(crate::CpuOptions { memory_limit: Some(100_000), ..Default::default() });
        let stream = device.stream().unwrap();
        let words = lookback_words(&stream, 10);
        write(&stream, words, 7);
        assert!(matches!(stream.lookback_words(1 << 20), Err(Error::OutOfMemory { .. })));
        assert!(matches!(stream.lookback_words(usize::MAX), Err(Error::OutOfMemory { .. })));
        assert_eq!(read(&stream, lookback_words(&stream, 10)), [7; 10]);
    }

    /// A kernel that traps.
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
            let words = lookback_words(&stream, 10);
            write(&stream, words, 7);
            // SAFETY: the test is about this fault.
            assert!(matches!(unsafe { stream.launch(Call::new(Trap), 1) }, Err(Error::KernelFault(_))));
            assert_eq!(read(&stream, lookback_words(&stream, 10)), [0; 10]);
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
        // SAFETY: the handle is not used.
        let borrowed = unsafe { Stream::borrow_cuda_stream(&device, core::ptr::null_mut()) };
        assert!(matches!(borrowed, Err(Error::NotCuda { .. })));
    }

    #[test]
    fn views_have_the_layout_that_kernels_expect() {
        assert_eq!((size_of::<Global<u8>>(), align_of::<Global<u8>>()), (16, 8));
        assert_eq!((size_of::<GlobalMut<[u64; 2]>>(), align_of::<GlobalMut<[u64; 2]>>()), (16, 8));
    }
}
