//! Graphs: work that is recorded once and launched again and again.

use super::cuda::{CudaCapture, CudaGraph};
use super::device::Device;
use super::error::Error;
use super::event::Event;
use super::lanes::LaneKind;
use super::memory::DeviceVec;
use super::step::Step;
use super::stream::Stream;
use core::fmt;
use core::ptr::NonNull;
use std::sync::Arc;

/// Work that was recorded by [`Stream::capture`], to be launched as often as needed. On a GPU all of it is given to the
/// driver in one call, so that many short launches cost little more than one.
///
/// It works with the memory that it was recorded with: whoever wants other input writes it there before the next launch.
///
/// The temporary memory of the recorded work belongs to the graph and stays allocated until the graph is dropped; so does
/// the scratch of its look-back kernels, which every launch sets to zero first. So a graph shares nothing with the stream
/// that it runs on but the order.
///
/// ```
/// use gpu_primitives::{Device, Error, scan};
///
/// let stream = Device::default()?.stream()?;
/// let mut input = stream.zeroed::<u32>(4)?;
/// let mut output = stream.zeroed::<u32>(4)?;
/// let (mut graph, ()) = stream.capture(|stream| scan::inclusive_sum(stream, &input, &mut output))?;
/// for start in [1, 5] {
///     input.copy_from_host(&stream, &[start; 4])?;
///     // SAFETY: input and output are still there, and used on this stream alone.
///     unsafe { graph.launch(&stream)? };
///     assert_eq!(output.to_vec(&stream)?, [start, 2 * start, 3 * start, 4 * start]);
/// }
/// # Ok::<(), Error>(())
/// ```
pub struct Graph {
    device: Device,
    work: Work,
    /// Temporary memory of the work, and what its uploads copy from.
    memory: Vec<DeviceVec<u8>>,
    /// From here on the memory is allocated and filled.
    ready: Event,
}

enum Work {
    Cpu(Arc<[Step]>),
    Cuda(CudaGraph),
}

impl Stream {
    /// Records what `work` puts onto the stream that it is given, and gives it as a graph, together with the result of
    /// `work`. Nothing of it is done before [`Graph::launch`]; vectors and values that `work` made and gave back hold what
    /// the last launch put there.
    ///
    /// `work` is given a stream of its own to record on. What it puts onto other streams happens at once and is not part of
    /// the graph.
    ///
    /// Data that is uploaded in `work` is copied when it is recorded: every launch uploads that same data. What waits for
    /// the device cannot be recorded: reading back, `synchronize`, and primitives that wait (they say so, and have others
    /// beside them that do not). Nor can events, copies of page-locked memory, and other graphs.
    ///
    /// # Errors
    /// [`Error::NotRecordable`]; those of `work`; failures of the driver.
    pub fn capture<R>(&self, work: impl FnOnce(&Self) -> Result<R, Error>) -> Result<(Graph, R), Error> {
        self.queue().refuse_while_recording("another recording")?;
        /// Ends the recording however `work` ends: it may have kept the recorder.
        struct Stop<'a>(Option<&'a Stream>);

        impl Stop<'_> {
            fn now(&mut self) -> Option<Recording> {
                self.0.take().and_then(Stream::stop_recording)
            }
        }

        impl Drop for Stop<'_> {
            fn drop(&mut self) {
                self.now();
            }
        }

        let recorder = Self::recorder(self)?;
        let mut stop = Stop(Some(&recorder));
        let result = work(&recorder)?;
        let recorded = stop.now().expect("nobody else stops it").end();
        // The memory was allocated in the order of `self`.
        let ready = self.record()?;
        recorder.wait(&ready)?;
        let (work, memory) = recorded?;
        Ok((Graph { device: self.device().clone(), work, memory, ready }, result))
    }
}

impl Graph {
    /// Puts the recorded work onto a stream. Does not wait; on the CPU device the work is done when this returns.
    ///
    /// # Errors
    /// [`Error::WrongDevice`]; [`Error::NotRecordable`] if the stream is being recorded; what the recorded calls give when
    /// their work fails.
    ///
    /// # Safety
    /// All memory that was used in the recording, that of vectors made and given out there included, is still allocated,
    /// and stays so until the work is done. Nobody else writes it meanwhile, or uses what the work writes: the library does
    /// not know which memory a graph uses, so what other streams do with it is ordered by events.
    pub unsafe fn launch(&mut self, stream: &Stream) -> Result<(), Error> {
        if stream.device() != &self.device {
            let (found, expected) = (self.device.kind(), stream.device().kind());
            return Err(Error::WrongDevice { what: "the graph", found, expected });
        }
        stream.queue().refuse_while_recording("a graph")?;
        stream.wait(&self.ready)?;
        for memory in &mut self.memory {
            memory.raw_view_mut(stream)?; // so that launches on several streams happen one after the other
        }
        match (&mut self.work, &stream.lane().kind) {
            // SAFETY: the caller's promise.
            (Work::Cuda(graph), LaneKind::Cuda(stream)) => unsafe { graph.launch(stream) },
            // SAFETY: the caller's promise.
            (Work::Cpu(steps), LaneKind::Cpu(lane)) => unsafe { lane.submit(Step::Graph(Arc::clone(steps))) },
            _ => unreachable!("a device is of one kind"),
        }
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph").field("device", &self.device).finish_non_exhaustive()
    }
}

/// What a stream has recorded so far, and the memory that goes with it.
pub(super) struct Recording {
    /// The stream that memory really comes from: allocated while recording, it is there before the first launch and stays.
    parent: Stream,
    recorder: Recorder,
    /// What the recorded work has freed, so that later work of the same recording can have it.
    spare: Vec<DeviceVec<u8>>,
    /// What recorded uploads copy from.
    uploads: Vec<DeviceVec<u8>>,
}

enum Recorder {
    Cpu(Vec<Step>),
    /// The driver records.
    Cuda(CudaCapture),
}

impl Recording {
    /// Lets a stream record from now on.
    pub(super) fn begin(parent: &Stream, on: &LaneKind) -> Result<Self, Error> {
        let recorder = match on {
            LaneKind::Cpu(_) => Recorder::Cpu(Vec::new()),
            LaneKind::Cuda(stream) => Recorder::Cuda(CudaCapture::begin(stream)?),
        };
        Ok(Self { parent: parent.clone(), recorder, spare: Vec::new(), uploads: Vec::new() })
    }

    fn end(self) -> Result<(Work, Vec<DeviceVec<u8>>), Error> {
        let Self { recorder, mut spare, uploads, .. } = self;
        spare.extend(uploads);
        let work = match recorder {
            Recorder::Cpu(steps) => Work::Cpu(steps.into()),
            Recorder::Cuda(capture) => Work::Cuda(capture.end()?),
        };
        Ok((work, spare))
    }

    /// Takes a note of work; on a GPU the driver does.
    pub(super) fn note(&mut self, step: Step) {
        if let Recorder::Cpu(steps) = &mut self.recorder {
            steps.push(step);
        }
    }

    pub(super) fn allocate(&mut self, bytes: usize) -> Result<NonNull<u8>, Error> {
        // Work of a recording happens in order, so that what one step has freed the next one may use.
        let memory = match self.spare.iter().position(|memory| memory.len() == bytes) {
            Some(index) => self.spare.swap_remove(index),
            None => self.parent.uninit(bytes)?,
        };
        let (_, address, _) = memory.into_raw();
        Ok(NonNull::new(address).expect("memory is never at address 0"))
    }

    /// # Safety
    /// It came from [`allocate`](Self::allocate), and only work recorded so far uses it.
    pub(super) unsafe fn free(&mut self, address: NonNull<u8>, bytes: usize) {
        // SAFETY: the caller's promise.
        self.spare.push(unsafe { DeviceVec::from_raw(&self.parent, address.as_ptr(), bytes) });
    }

    /// A copy of host data on the device, which stays unchanged as long as the graph lives.
    pub(super) fn keep(&mut self, data: &[u8]) -> Result<*const u8, Error> {
        let copy = self.parent.upload(data)?;
        let address = copy.as_slice().as_ptr();
        self.uploads.push(copy);
        Ok(address)
    }
}
