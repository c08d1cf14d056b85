//! Ranks with a GPU each, connected by NCCL.

use crate::transport::{Incoming, Lost, Outgoing, Transport, gather_framed};
use core::ffi::{c_int, c_uint};
use core::fmt::{self, Debug};
use cudarc::driver::CudaContext;
use cudarc::nccl::result;
use cudarc::nccl::sys::{self, ncclResult_t};
use gpu_primitives::{DeviceKind, Stream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The name of a group of ranks that NCCL connects. One rank makes it, and hands it to the others: by MPI or a file, for example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NcclId {
    bytes: [u8; 128],
}

impl NcclId {
    /// Makes a name.
    ///
    /// # Errors
    /// [`Lost`] if the library cannot be loaded, or fails.
    pub fn new() -> Result<Self, Lost> {
        expect_library()?;
        let id = result::get_uniqueid().map_err(|error| failed("ncclGetUniqueId", error))?;
        Ok(Self { bytes: id.internal.map(|byte| byte as u8) })
    }

    /// Returns the bytes to hand to the other ranks.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 128] {
        self.bytes
    }

    /// Takes the bytes that another rank has handed over.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 128]) -> Self {
        Self { bytes }
    }
}

/// Ranks with a GPU each, connected by NCCL: bytes go from GPU to GPU, over NVLink or the network. The library, 2.22 or newer, is
/// loaded at run time.
///
/// ```no_run
/// use gpu_dictionary::Dictionary;
/// use gpu_lsm::GpuLsm;
/// use gpu_primitives::{Device, Error};
/// use gpu_sharded::{Lost, Nccl, NcclId, Options, Sharded, World};
///
/// fn rank(id: NcclId, rank: usize, ranks: usize) -> Result<(), Error> {
///     let stream = Device::cuda(rank)?.stream()?;
///     let lost = |lost: Lost| Error::DictionaryLost { cause: lost.cause };
///     let world = World::new(Nccl::new(&stream, id, rank, ranks).map_err(lost)?);
///     let all = Sharded::<GpuLsm<u32, u32>>::new(&stream, Options::new(world))?;
///     Ok(())
/// }
/// ```
pub struct Nccl {
    rank: usize,
    ranks: usize,
    communicator: Mutex<Communicator>,
    /// For the small messages.
    stream: Stream,
    /// Keeps the context that the communicator uses.
    context: Arc<CudaContext>,
}

/// A communicator that is not aborted yet.
struct Communicator {
    handle: sys::ncclComm_t,
    is_aborted: bool,
}

// SAFETY: a handle, which the lock gives to one thread at a time.
unsafe impl Send for Communicator {}

/// How long the ranks have to find each other.
const MEETING: Duration = Duration::from_secs(60);
/// "Not set", for a field of the configuration.
const UNSET: c_int = c_int::MIN;

fn failed(call: &str, error: result::NcclError) -> Lost {
    Lost::new(format!("{call} failed with {:?}", error.0))
}

fn expect_library() -> Result<(), Lost> {
    // SAFETY: it only tries to load the library.
    match unsafe { sys::is_culib_present() } {
        true => Ok(()),
        false => Err(Lost::new("libnccl could not be loaded: install NCCL 2.22 or newer, or use another engine")),
    }
}

impl Communicator {
    /// Waits until NCCL has taken the calls before, or the deadline has passed.
    fn settle(&mut self, call: &str, deadline: Instant) -> Result<(), Lost> {
        loop {
            let mut state = ncclResult_t::ncclSuccess;
            // SAFETY: the handle is that of a communicator, and the state is a variable of this function.
            let asked = unsafe { sys::ncclCommGetAsyncError(self.handle, &raw mut state) };
            match (asked, state) {
                (ncclResult_t::ncclSuccess, ncclResult_t::ncclSuccess) => return Ok(()),
                (ncclResult_t::ncclSuccess, ncclResult_t::ncclInProgress) => {}
                (ncclResult_t::ncclSuccess, error) | (error, _) => return Err(failed(call, result::NcclError(error))),
            }
            if Instant::now() >= deadline {
                return Err(Lost::late());
            }
            std::thread::yield_now();
        }
    }

    /// Waits until the stream has done its work, or the deadline has passed.
    fn finish(&mut self, stream: &Stream, deadline: Instant) -> Result<(), Lost> {
        let end = stream.record()?;
        while !end.is_done()? {
            self.settle("an exchange", deadline)?;
            if Instant::now() >= deadline {
                return Err(Lost::late());
            }
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Ends all work of the communicator, also kernels that wait for other ranks.
    fn abort(&mut self) {
        if !self.is_aborted {
            self.is_aborted = true;
            // SAFETY: the handle is that of a communicator, which is not used again.
            _ = unsafe { result::comm_abort(self.handle) };
        }
    }
}

impl Nccl {
    /// Connects rank `rank` of `ranks`, which works on the GPU of this stream. All ranks must call it, with the same name.
    ///
    /// # Errors
    /// [`Lost`] if the stream is not one of a GPU, if the library cannot be loaded or fails, or if the others do not come within a
    /// minute.
    pub fn new(stream: &Stream, id: NcclId, rank: usize, ranks: usize) -> Result<Self, Lost> {
        let DeviceKind::Cuda { ordinal } = stream.device().kind() else {
            return Err(Lost::new(format!(
                "NCCL connects GPUs, but the stream is one of `{}`",
                stream.device().kind()
            )));
        };
        expect_library()?;
        // The primary context, which this library uses too. NCCL takes the device of the calling thread's context.
        let context =
            CudaContext::new(ordinal).map_err(|error| Lost::new(format!("the context of the GPU: {error}")))?;
        context.bind_to_thread().map_err(|error| Lost::new(format!("the context of the GPU: {error}")))?;
        let mut config = sys::ncclConfig_t {
            size: size_of::<sys::ncclConfig_t>(),
            magic: 0xCAFE_BEEF as c_uint,
            version: 22_200,
            // Calls return at once, so that no wait is without end.
            blocking: 0,
            cgaClusterSize: UNSET,
            minCTAs: UNSET,
            maxCTAs: UNSET,
            netName: core::ptr::null(),
            splitShare: UNSET,
        };
        let unique = sys::ncclUniqueId { internal: id.bytes.map(|byte| byte as _) };
        let mut handle: sys::ncclComm_t = core::ptr::null_mut();
        // SAFETY: the configuration and the handle are variables of this function.
        unsafe {
            result::comm_init_rank_config(&raw mut handle, ranks as c_int, unique, rank as c_int, &raw mut config)
                .map_err(|error| failed("ncclCommInitRankConfig", error))?;
        }
        let mut communicator = Communicator { handle, is_aborted: false };
        if let Err(lost) = communicator.settle("ncclCommInitRankConfig", Instant::now() + MEETING) {
            communicator.abort();
            return Err(lost);
        }
        Ok(Self { rank, ranks, communicator: Mutex::new(communicator), stream: stream.clone(), context })
    }

    /// Makes calls as one group, and waits for what they do on the stream. Aborts the communicator if that fails, so that nothing
    /// uses their memory afterwards.
    fn group(
        &self,
        stream: &Stream,
        deadline: Instant,
        calls: impl FnOnce(sys::ncclComm_t, sys::cudaStream_t) -> Result<(), result::NcclError>,
    ) -> Result<(), Lost> {
        let mut communicator = self.communicator.lock().unwrap_or_else(PoisonError::into_inner);
        if communicator.is_aborted {
            return Err(Lost::new("the NCCL communicator was aborted after an earlier error"));
        }
        let Some(raw) = stream.cuda_stream().filter(|_| stream.device() == self.stream.device()) else {
            return Err(Lost::new("the stream of the call is not one of the GPU that NCCL was connected with"));
        };
        let run = || {
            self.context.bind_to_thread().map_err(|error| Lost::new(format!("the context of the GPU: {error}")))?;
            result::group_start().map_err(|error| failed("ncclGroupStart", error))?;
            let called = calls(communicator.handle, raw.cast());
            result::group_end().map_err(|error| failed("ncclGroupEnd", error))?;
            called.map_err(|error| failed("an NCCL call", error))?;
            communicator.settle("ncclGroupEnd", deadline)?;
            communicator.finish(stream, deadline)
        };
        let outcome = { run }();
        if outcome.is_err() {
            communicator.abort();
        }
        outcome
    }
}

impl Nccl {
    /// Gives every rank the bytes of all, one after the other. All ranks must pass the same number of bytes.
    fn gather_equal(&self, mine: &[u8], deadline: Instant) -> Result<Vec<u8>, Lost> {
        let own = self.stream.upload(mine)?;
        let mut all = self.stream.uninit::<u8>(mine.len() * self.ranks)?;
        let (from, to) = (own.as_slice().as_ptr(), all.as_mut_slice().as_mut_ptr());
        self.group(&self.stream, deadline, |communicator, stream| {
            // SAFETY: both have the bytes that are said, in the order of this stream, and stay until the group is done.
            unsafe {
                result::all_gather(
                    from.cast(),
                    to.cast(),
                    mine.len(),
                    sys::ncclDataType_t::ncclUint8,
                    communicator,
                    stream,
                )?;
            }
            Ok(())
        })?;
        Ok(all.to_vec(&self.stream)?)
    }
}

impl Transport for Nccl {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.ranks
    }

    fn gather(&self, mine: &[u8], deadline: Instant) -> Result<Vec<Vec<u8>>, Lost> {
        gather_framed(mine, |bytes| self.gather_equal(bytes, deadline))
    }

    unsafe fn exchange(
        &self,
        stream: &Stream,
        send: &[Outgoing<'_>],
        receive: &mut [Incoming<'_>],
        deadline: Instant,
    ) -> Result<(), Lost> {
        // The stream waits for earlier work on the memory.
        for message in send {
            _ = message.bytes.view(stream)?;
        }
        for message in &mut *receive {
            _ = message.bytes.view_mut(stream)?;
        }
        self.group(stream, deadline, |communicator, stream| {
            let bytes = sys::ncclDataType_t::ncclUint8;
            for message in send {
                let (from, len, rank) = (message.bytes.as_ptr(), message.bytes.len(), message.to as c_int);
                // SAFETY: the memory has so many bytes, and stays until the group is done.
                unsafe { result::send(from.cast(), len, bytes, rank, communicator, stream)? };
            }
            for message in receive {
                let (len, rank) = (message.bytes.len(), message.from as c_int);
                let to = message.bytes.as_mut_ptr();
                // SAFETY: as above, and nothing else uses it.
                unsafe { result::recv(to.cast(), len, bytes, rank, communicator, stream)? };
            }
            Ok(())
        })
    }
}

impl Drop for Nccl {
    fn drop(&mut self) {
        // All work is done, or given up.
        self.communicator.get_mut().unwrap_or_else(PoisonError::into_inner).abort();
    }
}

impl Debug for Nccl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Nccl(rank {} of {})", self.rank, self.ranks)
    }
}
