//! Ranks that are processes of an MPI job.

use crate::transport::{Incoming, Lost, Outgoing, Transport};
use core::ffi::{c_int, c_void};
use core::fmt::{self, Debug};
use gpu_primitives::{DeviceKind, DeviceVec, Error, PinnedVec, Stream};
use mpi::environment::Universe;
use mpi::{Threading, ffi};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The ranks of an MPI job: of Open MPI or MPICH.
///
/// Bytes go through page-locked host memory, or, if the MPI library is CUDA-aware, from device memory to device memory. Both are
/// memory of this engine: a rank that gives up waiting leaves it to the library.
///
/// Dropping it ends MPI, if it started it, and if all ranks do so.
///
/// ```no_run
/// use gpu_dictionary::Dictionary;
/// use gpu_lsm::GpuLsm;
/// use gpu_primitives::{Device, Error};
/// use gpu_sharded::{Mpi, Options, Sharded, World};
///
/// // mpirun -n 4 program
/// let world = World::new(Mpi::new().map_err(|lost| Error::DictionaryLost { cause: lost.cause })?);
/// let stream = Device::default()?.stream()?;
/// let all = Sharded::<GpuLsm<u32, u32>>::new(&stream, Options::new(world))?;
/// # Ok::<(), Error>(())
/// ```
pub struct Mpi {
    rank: usize,
    ranks: usize,
    communicator: Communicator,
    /// The library, if this engine has started it.
    universe: ManuallyDrop<Option<Universe>>,
    takes_device_memory: bool,
    staging: Mutex<Staging>,
    is_lost: AtomicBool,
}

struct Communicator(ffi::MPI_Comm);

// SAFETY: a handle. MPI was asked for calls from any thread, one at a time; the engine's lock makes them so.
unsafe impl Send for Communicator {}
// SAFETY: as above.
unsafe impl Sync for Communicator {}

/// The memory that MPI sends from and receives into. It is kept from one exchange to the next.
#[derive(Default)]
struct Staging {
    send: Option<Buffer>,
    receive: Option<Buffer>,
}

/// Memory of the host, or of the device.
enum Buffer {
    Host(PinnedVec<u8>),
    Device(DeviceVec<u8>),
}

/// A message to or from another rank.
struct Message {
    rank: usize,
    len: usize,
}

/// The most bytes of one message: MPI counts them in a C integer.
const LONGEST: usize = 1 << 30;
/// How long the last rank is waited for at the end.
const FAREWELL: Duration = Duration::from_secs(5);

impl Buffer {
    /// Returns a buffer of at least so many bytes: the one that there is, if it is long enough and of the same kind and device.
    fn of(old: Option<Self>, stream: &Stream, len: usize, on_device: bool) -> Result<Self, Error> {
        match old {
            Some(Self::Host(host)) if !on_device && host.len() >= len && host.device() == stream.device() => {
                Ok(Self::Host(host))
            }
            Some(Self::Device(memory)) if on_device && memory.len() >= len && memory.device() == stream.device() => {
                Ok(Self::Device(memory))
            }
            _ if on_device => stream.uninit(len).map(Self::Device),
            _ => stream.device().pinned(len).map(Self::Host),
        }
    }

    fn address(&mut self) -> *mut u8 {
        match self {
            Self::Host(host) => host.as_mut_ptr(),
            Self::Device(memory) => memory.as_mut_slice().as_mut_ptr(),
        }
    }
}

fn check(code: c_int, what: &str) -> Result<(), Lost> {
    if code == ffi::MPI_SUCCESS as c_int {
        Ok(())
    } else {
        Err(Lost::new(format!("{what} failed with MPI error {code}")))
    }
}

/// Requests under way, with the ranks that they are about.
#[derive(Default)]
struct Requests {
    requests: Vec<ffi::MPI_Request>,
    ranks: Vec<usize>,
}

impl Requests {
    fn add(&mut self, request: ffi::MPI_Request, rank: usize) {
        self.requests.push(request);
        self.ranks.push(rank);
    }

    /// Waits for all of them, until the deadline. They move `bytes` in all.
    ///
    /// MPI makes progress only while it is asked for it, and moves long messages between ranks of a machine in many small
    /// fragments. So it is asked without a pause for as long as that should take: 1 ns per byte.
    fn wait(&mut self, bytes: usize, deadline: Instant) -> Result<(), Lost> {
        let pauses_from = Instant::now() + Duration::from_millis(1) + Duration::from_nanos(bytes as u64);
        loop {
            let mut first_open = None;
            for (request, &rank) in self.requests.iter_mut().zip(&self.ranks) {
                let mut is_done = 0;
                // SAFETY: a request that was started, or the null request of one that is done.
                let code = unsafe { ffi::MPI_Test(request, &raw mut is_done, ffi::RSMPI_STATUS_IGNORE) };
                check(code, &format!("the exchange with rank {rank}"))?;
                if is_done == 0 {
                    first_open.get_or_insert(rank);
                }
            }
            let Some(rank) = first_open else { return Ok(()) };
            let now = Instant::now();
            if now >= deadline {
                return Err(Lost::late(rank));
            }
            // Other ranks may share this core.
            match now < pauses_from {
                true => std::thread::yield_now(),
                false => std::thread::sleep(Duration::from_micros(50)),
            }
        }
    }
}

impl Mpi {
    /// Starts MPI, unless the program has done so, and takes all ranks of the job.
    ///
    /// # Errors
    /// [`Lost`] if MPI cannot be started, or does not allow calls from any thread.
    pub fn new() -> Result<Self, Lost> {
        let universe = match mpi::environment::is_initialized() {
            true => None,
            false => match mpi::initialize_with_threading(Threading::Serialized) {
                Some((universe, threading)) if threading >= Threading::Serialized => Some(universe),
                Some(_) => return Err(Lost::new("this MPI library allows calls from one thread only")),
                None => return Err(Lost::new("MPI could not be started")),
            },
        };
        // SAFETY: a communicator is a handle, for which any bits will do until it is written.
        let mut communicator: ffi::MPI_Comm = unsafe { core::mem::zeroed() };
        let (mut rank, mut ranks) = (0, 0);
        // SAFETY: MPI is started, and all ranks make these calls. The results are written to variables of this function.
        unsafe {
            // A communicator of its own: its messages are never those of the rest of the program.
            check(ffi::MPI_Comm_dup(ffi::RSMPI_COMM_WORLD, &raw mut communicator), "MPI_Comm_dup")?;
            check(ffi::MPI_Comm_set_errhandler(communicator, ffi::RSMPI_ERRORS_RETURN), "MPI_Comm_set_errhandler")?;
            check(ffi::MPI_Comm_rank(communicator, &raw mut rank), "MPI_Comm_rank")?;
            check(ffi::MPI_Comm_size(communicator, &raw mut ranks), "MPI_Comm_size")?;
        }
        Ok(Self {
            rank: rank as usize,
            ranks: ranks as usize,
            communicator: Communicator(communicator),
            universe: ManuallyDrop::new(universe),
            takes_device_memory: is_cuda_aware(),
            staging: Mutex::new(Staging::default()),
            is_lost: AtomicBool::new(false),
        })
    }

    /// Sets whether MPI is given the addresses of GPU memory. It is if the library says that it is CUDA-aware.
    #[must_use]
    pub fn device_memory(mut self, takes_device_memory: bool) -> Self {
        self.takes_device_memory = takes_device_memory;
        self
    }

    /// Starts to receive or to send a message, in parts if it is long.
    ///
    /// # Safety
    /// The memory has so many bytes, and stays until the requests are done, or for good.
    unsafe fn start(
        &self,
        requests: &mut Requests,
        memory: *mut u8,
        len: usize,
        rank: usize,
        sends: bool,
    ) -> Result<(), Lost> {
        let mut done = 0;
        while done < len {
            let count = (len - done).min(LONGEST);
            // SAFETY: within the memory, as guaranteed by the caller.
            let part = unsafe { memory.add(done) }.cast::<c_void>();
            let (count_int, rank_int, communicator) = (count as c_int, rank as c_int, self.communicator.0);
            // SAFETY: a request is a handle, for which any bits will do until it is written.
            let mut request: ffi::MPI_Request = unsafe { core::mem::zeroed() };
            // SAFETY: the memory stays until the request is done, as guaranteed by the caller.
            let code = unsafe {
                let bytes = ffi::RSMPI_UINT8_T;
                match sends {
                    true => ffi::MPI_Isend(part, count_int, bytes, rank_int, 0, communicator, &raw mut request),
                    false => ffi::MPI_Irecv(part, count_int, bytes, rank_int, 0, communicator, &raw mut request),
                }
            };
            check(code, &format!("the exchange with rank {rank}"))?;
            requests.add(request, rank);
            done += count;
        }
        Ok(())
    }

    /// Exchanges messages whose bytes lie one after the other in the buffers.
    fn exchange_staged(
        &self,
        (send, sent): (&mut Buffer, &[Message]),
        (receive, received): (&mut Buffer, &[Message]),
        deadline: Instant,
    ) -> Result<(), Lost> {
        let mut requests = Requests::default();
        for (buffer, messages, sends) in [(receive, received, false), (send, sent, true)] {
            let mut address = buffer.address();
            for &Message { rank, len } in messages {
                // SAFETY: the buffer has the bytes of all messages. It is kept, or left to MPI if that does not finish.
                unsafe {
                    self.start(&mut requests, address, len, rank, sends)?;
                    address = address.add(len);
                }
            }
        }
        let bytes = received.iter().chain(sent).map(|message| message.len).sum();
        requests.wait(bytes, deadline)
    }

    fn note<R>(&self, outcome: Result<R, Lost>) -> Result<R, Lost> {
        if outcome.is_err() {
            self.is_lost.store(true, Ordering::Relaxed);
        }
        outcome
    }
}

/// Asks the MPI library whether it takes addresses of GPU memory. Libraries that cannot be asked do not.
fn is_cuda_aware() -> bool {
    let this = libloading::os::unix::Library::this();
    // SAFETY: Open MPI and MPICH declare the function like this.
    unsafe { this.get::<unsafe extern "C" fn() -> c_int>(b"MPIX_Query_cuda_support\0").is_ok_and(|query| query() == 1) }
}

impl Transport for Mpi {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.ranks
    }

    fn gather(&self, mine: &[u8], deadline: Instant) -> Result<Vec<u8>, Lost> {
        let _turn = self.staging.lock().unwrap_or_else(PoisonError::into_inner);
        // Memory that can be left to MPI.
        let mut mine = mine.to_vec();
        let mut all = vec![0u8; mine.len() * self.ranks];
        let gather = || {
            // SAFETY: a request is a handle, for which any bits will do until it is written.
            let mut request: ffi::MPI_Request = unsafe { core::mem::zeroed() };
            // SAFETY: a constant of the library.
            let bytes = unsafe { ffi::RSMPI_UINT8_T };
            let count = mine.len() as c_int;
            let (from, to, communicator) = (mine.as_mut_ptr().cast(), all.as_mut_ptr().cast(), self.communicator.0);
            // SAFETY: both have the bytes that are said, and stay until the request is done, or for good.
            let code =
                unsafe { ffi::MPI_Iallgather(from, count, bytes, to, count, bytes, communicator, &raw mut request) };
            check(code, "MPI_Iallgather")?;
            let mut requests = Requests::default();
            requests.add(request, self.rank);
            requests.wait(all.len(), deadline).map_err(|_| Lost::new("another rank did not answer in time"))
        };
        let outcome = self.note({ gather }());
        match outcome {
            Ok(()) => Ok(all),
            Err(lost) => {
                core::mem::forget((mine, all));
                Err(lost)
            }
        }
    }

    fn exchange(
        &self,
        stream: &Stream,
        send: &[Outgoing<'_>],
        receive: &mut [Incoming<'_>],
        deadline: Instant,
    ) -> Result<(), Lost> {
        let mut staging = self.staging.lock().unwrap_or_else(PoisonError::into_inner);
        let staging = &mut *staging;
        let on_device = self.takes_device_memory && matches!(stream.device().kind(), DeviceKind::Cuda { .. });
        let sent = send.iter().map(|message| Message { rank: message.to, len: message.bytes.len() });
        let received = receive.iter().map(|message| Message { rank: message.from, len: message.bytes.len() });
        let (sent, received): (Vec<_>, Vec<_>) = (sent.collect(), received.collect());
        let total = |messages: &[Message]| messages.iter().map(|message| message.len).sum();
        let mut to = Buffer::of(staging.send.take(), stream, total(&sent), on_device)?;
        let mut from = Buffer::of(staging.receive.take(), stream, total(&received), on_device)?;

        let mut start = 0;
        for message in send {
            let end = start + message.bytes.len();
            match &mut to {
                Buffer::Host(host) => message.bytes.copy_to_host(stream, &mut host[start..end])?,
                Buffer::Device(memory) => memory.slice_mut(start..end)?.copy_from(stream, message.bytes)?,
            }
            start = end;
        }
        stream.synchronize()?;
        if let Err(lost) = self.note(self.exchange_staged((&mut to, &sent), (&mut from, &received), deadline)) {
            // MPI may still use them.
            core::mem::forget((to, from));
            return Err(lost);
        }
        let mut start = 0;
        for message in receive {
            let end = start + message.bytes.len();
            match &from {
                Buffer::Host(host) => message.bytes.copy_from_host(stream, &host[start..end])?,
                Buffer::Device(memory) => message.bytes.copy_from(stream, memory.slice(start..end)?)?,
            }
            start = end;
        }
        (staging.send, staging.receive) = (Some(to), Some(from));
        Ok(())
    }
}

impl Drop for Mpi {
    fn drop(&mut self) {
        let Some(universe) = self.universe.take() else { return };
        // MPI_Finalize waits for all ranks without end: it is called if all of them come.
        let farewell = if *self.is_lost.get_mut() { None } else { self.gather(&[0], Instant::now() + FAREWELL).ok() };
        match farewell {
            Some(_) => drop(universe),
            None => core::mem::forget(universe),
        }
    }
}

impl Debug for Mpi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mpi(rank {} of {})", self.rank, self.ranks)
    }
}
