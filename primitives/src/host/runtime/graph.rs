//! Graphs: work that is recorded once and launched many times.

use super::counters::Counted;
use super::cuda::{CudaCapture, CudaGraph};
use super::device::Device;
use super::event::Event;
use super::lanes::LaneKind;
use super::memory::DeviceVec;
use super::step::Step;
use super::stream::Stream;
use crate::host::error::Error;
use core::fmt;
use core::ptr::NonNull;
use std::sync::Arc;

/// Work recorded by [`Stream::capture`], to be launched as often as needed. On a GPU, one driver call submits all of
/// it, so that many short launches cost little more than one.
///
/// A graph uses the memory it was recorded with. To process other input, write it to that memory before the next
/// launch.
///
/// The temporary memory of the recorded work belongs to the graph and stays allocated until the graph is dropped. So
/// does the scratch memory of its look-back kernels, which every launch zeroes first. A graph shares nothing with the
/// stream it runs on except the order.
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
///     // SAFETY: input and output are still allocated, and used on this stream only.
///     unsafe { graph.launch(&stream)? };
///     assert_eq!(output.to_vec(&stream)?, [start, 2 * start, 3 * start, 4 * start]);
/// }
/// # Ok::<(), Error>(())
/// ```
pub struct Graph {
    device: Device,
    work: Work,
    /// Temporary memory of the work, and the sources of its uploads.
    memory: Vec<DeviceVec<u8>>,
    /// When this event has passed, the memory is allocated and filled.
    ready: Event,
}

enum Work {
    Cpu(Arc<[Step]>),
    Cuda(CudaGraph),
}

impl Stream {
    /// Records the work that `work` puts on the stream it is given. Returns it as a graph, together with the result of
    /// `work`. Nothing runs before [`Graph::launch`]. Vectors and values that `work` creates and returns hold what the
    /// last launch wrote.
    ///
    /// `work` gets a stream of its own to record on, which records what this thread puts on it; other threads get an
    /// error as long as it records. Work that `work` puts on other streams runs immediately and is not part of the graph.
    ///
    /// Data uploaded in `work` is copied while recording: every launch uploads that same data. Calls that wait for the
    /// device cannot be recorded: reading back, `synchronize`, and primitives that wait (they say so and have variants
    /// that do not wait). Events, copies of page-locked memory and other graphs cannot be recorded either.
    ///
    /// # Errors
    /// [`Error::NotRecordable`]; the errors of `work`; driver errors.
    pub fn capture<R>(&self, work: impl FnOnce(&Self) -> Result<R, Error>) -> Result<(Graph, R), Error> {
        self.queue().refuse_while_recording("another recording")?;
        /// Ends the recording however `work` ends: `work` may have kept a clone of the recorder.
        struct Stop<'a>(Option<&'a Stream>);

        impl Stop<'_> {
            fn now<E>(&mut self, end: impl FnOnce(Recording) -> E) -> Option<E> {
                self.0.take().and_then(|recorder| recorder.stop_recording(end))
            }
        }

        impl Drop for Stop<'_> {
            fn drop(&mut self) {
                self.now(drop);
            }
        }

        let recorder = Self::recorder(self)?;
        let mut stop = Stop(Some(&recorder));
        let result = work(&recorder)?;
        let recorded = stop.now(Recording::end).expect("nobody else stops it");
        // The memory was allocated in the order of `self`.
        let ready = self.record()?;
        let (work, memory) = recorded?;
        Ok((Graph { device: self.device().clone(), work, memory, ready }, result))
    }
}

impl Graph {
    /// Puts the recorded work on a stream. Does not wait; on the CPU device the work is done when this returns.
    ///
    /// # Errors
    /// [`Error::WrongDevice`]; [`Error::NotRecordable`] if the stream is recording; the errors of the recorded work.
    ///
    /// # Safety
    /// All memory used in the recording, including that of vectors created and returned there, is still allocated, and
    /// stays allocated until the work is done. Until then nothing else writes it, or uses what the work writes. The
    /// library does not know which memory a graph uses, so events must order the work of other streams on it.
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
            // SAFETY: guaranteed by the caller.
            (Work::Cuda(graph), LaneKind::Cuda(stream)) => unsafe { graph.launch(stream)? },
            // SAFETY: guaranteed by the caller.
            (Work::Cpu(steps), LaneKind::Cpu(lane)) => unsafe { lane.submit(Step::Graph(Arc::clone(steps)))? },
            _ => unreachable!("a device is of one kind"),
        }
        stream.queue().count(Counted::GraphLaunch);
        Ok(())
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph").field("device", &self.device).finish_non_exhaustive()
    }
}

/// The work a stream has recorded so far, and its memory.
pub(super) struct Recording {
    /// The stream that memory comes from. It is allocated while recording, so it exists before the first launch and
    /// stays.
    parent: Stream,
    recorder: Recorder,
    /// Memory that the recorded work has freed, for reuse by later work of the same recording.
    spare: Vec<DeviceVec<u8>>,
    /// The sources of recorded uploads.
    uploads: Vec<DeviceVec<u8>>,
}

enum Recorder {
    Cpu(Vec<Step>),
    /// The driver does the recording.
    Cuda(CudaCapture),
}

impl Recording {
    /// Makes a stream record from now on.
    pub(super) fn begin(parent: &Stream, on: &LaneKind) -> Result<Self, Error> {
        let recorder = match on {
            LaneKind::Cpu(_) => Recorder::Cpu(Vec::new()),
            LaneKind::Cuda(stream) => Recorder::Cuda(CudaCapture::begin(stream)?),
            LaneKind::Planned(_) => return Err(Error::OnlyPlanned { what: "a graph" }),
        };
        Ok(Self { parent: parent.clone(), recorder, spare: Vec::new(), uploads: Vec::new() })
    }

    /// Ends the recording. Dropping it instead also ends it, without a graph.
    fn end(self) -> Result<(Work, Vec<DeviceVec<u8>>), Error> {
        let Self { recorder, mut spare, uploads, .. } = self;
        spare.extend(uploads);
        let work = match recorder {
            Recorder::Cpu(steps) => Work::Cpu(steps.into()),
            Recorder::Cuda(capture) => Work::Cuda(capture.end()?),
        };
        Ok((work, spare))
    }

    /// Records a step; on a GPU the driver does this.
    pub(super) fn note(&mut self, step: Step) {
        if let Recorder::Cpu(steps) = &mut self.recorder {
            steps.push(step);
        }
    }

    pub(super) fn allocate(&mut self, bytes: usize) -> Result<NonNull<u8>, Error> {
        // Recorded work runs in order, so a later step may reuse memory that an earlier one has freed.
        let memory = match self.spare.iter().position(|memory| memory.len() == bytes) {
            Some(index) => self.spare.swap_remove(index),
            None => self.parent.uninit(bytes)?,
        };
        let (_, address, _) = memory.into_raw();
        Ok(NonNull::new(address).expect("memory is never at address 0"))
    }

    /// Takes back memory for later work of the recording.
    ///
    /// # Safety
    /// The memory came from [`allocate`](Self::allocate), and only work recorded so far uses it.
    pub(super) unsafe fn free(&mut self, address: NonNull<u8>, bytes: usize) {
        // SAFETY: guaranteed by the caller.
        self.spare.push(unsafe { DeviceVec::from_raw(&self.parent, address.as_ptr(), bytes) });
    }

    /// Copies host data to the device. The copy stays unchanged as long as the graph lives.
    pub(super) fn keep(&mut self, data: &[u8]) -> Result<*const u8, Error> {
        let copy = self.parent.upload(data)?;
        let address = copy.as_slice().as_ptr();
        self.uploads.push(copy);
        Ok(address)
    }
}
