//! Ranks that are processes of an MPI job.

use crate::transport::{Incoming, Lost, Outgoing, Transport, gather_framed};
use core::ffi::{c_int, c_void};
use core::fmt::{self, Debug};
use gpu_primitives::{DeviceKind, DeviceVec, Error, PinnedVec, Stream};
use mpi::environment::{Universe, is_finalized, is_initialized, threading_support};
use mpi::{Threading, ffi};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The ranks of an MPI job: of Open MPI or MPICH.
///
/// Bytes go through page-locked host memory, or, if the MPI library is CUDA-aware, from device memory to device memory. Both are
/// memory of this engine: a rank that gives up waiting leaves it to the library.
///
/// Engines of one process share MPI, which allows calls from any thread at any time (`MPI_THREAD_MULTIPLE`). Dropping the last
/// engine ends MPI, if the first one has started it, and if all ranks do so. It cannot be started again.
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
    memory: Memory,
    staging: Mutex<Staging>,
}

/// MPI, which all engines of the process share.
struct Library {
    /// The number of engines.
    engines: usize,
    /// MPI, if an engine has started it.
    universe: Option<Universe>,
}

/// Engines are made and dropped one at a time.
static LIBRARY: Mutex<Library> = Mutex::new(Library { engines: 0, universe: None });
/// Whether a rank was lost. Then MPI cannot be ended in order.
static IS_LOST: AtomicBool = AtomicBool::new(false);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What MPI sends from and receives into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Memory {
    /// Page-locked memory of the host.
    Host,
    /// Memory of GPUs, which the library says it takes. That of other devices goes through the host.
    Gpu,
    /// Memory of any device, which the program says the library takes.
    Device,
}

struct Communicator(ffi::MPI_Comm);

// SAFETY: a handle. MPI runs with `MPI_THREAD_MULTIPLE`: any thread may call it at any time. The engine's lock makes its calls with
// this communicator one at a time, as collective operations need it.
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
            // Zeros, since the checked device does not see that MPI writes it.
            _ if on_device => stream.zeroed(len).map(Self::Device),
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
        return Ok(());
    }
    let (mut text, mut len) = ([0u8; ffi::MPI_MAX_ERROR_STRING as usize], 0);
    // SAFETY: there is room for the longest text.
    let is_known = unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr().cast(), &raw mut len) };
    let text = if is_known == ffi::MPI_SUCCESS as c_int { &text[..len as usize] } else { b"unknown" };
    Err(Lost::new(format!("{what} failed with MPI error {code} ({})", String::from_utf8_lossy(text))))
}

/// Requests under way.
#[derive(Default)]
struct Requests {
    requests: Vec<ffi::MPI_Request>,
}

impl Requests {
    /// Waits for all of them, until the deadline. They move `bytes` in all.
    ///
    /// MPI makes progress only while it is asked for it, and moves long messages between ranks of a machine in many small
    /// fragments. So it is asked without a pause for as long as that should take: 1 ns per byte.
    fn wait(&mut self, bytes: usize, deadline: Instant) -> Result<(), Lost> {
        let pauses_from = Instant::now() + Duration::from_millis(1) + Duration::from_nanos(bytes as u64);
        loop {
            let mut are_done = true;
            for request in &mut self.requests {
                let mut is_done = 0;
                // SAFETY: a request that was started, or the null request of one that is done.
                let code = unsafe { ffi::MPI_Test(request, &raw mut is_done, ffi::RSMPI_STATUS_IGNORE) };
                check(code, "an exchange with other ranks")?;
                are_done &= is_done != 0;
            }
            if are_done {
                return Ok(());
            }
            let now = Instant::now();
            if now >= deadline {
                // The rank of an open request need not be the one that was lost: it may be waiting, too.
                return Err(Lost::late());
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
    /// Starts MPI, unless another engine has done so, and takes all ranks of the job. All ranks must call it. If they make
    /// several engines, they make them in the same order.
    ///
    /// # Errors
    /// [`Lost`] if MPI cannot be started, or has ended; if it does not allow calls from any thread at any time; or if the program
    /// has started it itself, which [`of_program`](Self::of_program) is for.
    pub fn new() -> Result<Self, Lost> {
        let mut library = lock(&LIBRARY);
        if is_finalized() {
            return Err(Lost::new(
                "MPI has ended, and cannot be started again: keep an engine for as long as it is needed",
            ));
        }
        if library.universe.is_some() {
            return Self::connect(&mut library);
        }
        let Some((universe, level)) = mpi::initialize_with_threading(Threading::Multiple) else {
            return Err(Lost::new(
                "the program has started MPI itself: use `Mpi::of_program`, and read what it requires",
            ));
        };
        expect_any_thread(level)?;
        // Errors are returned. Those of requests may come to the handlers of these two, and not to that of their communicator.
        // SAFETY: constants of the library.
        for communicator in unsafe { [ffi::RSMPI_COMM_WORLD, ffi::RSMPI_COMM_SELF] } {
            // SAFETY: MPI is started, and the communicators exist until it ends.
            let code = unsafe { ffi::MPI_Comm_set_errhandler(communicator, ffi::RSMPI_ERRORS_RETURN) };
            check(code, "MPI_Comm_set_errhandler")?;
        }
        library.universe = Some(universe);
        Self::connect(&mut library)
    }

    /// Takes all ranks of the job, in an MPI that the program has started with `MPI_THREAD_MULTIPLE`. Does not end it. Otherwise
    /// like [`new`](Self::new). By default, the errors of MPI end the job: the program decides this.
    ///
    /// # Safety
    /// The program does not end MPI (`MPI_Finalize`) as long as the engine, or a [`World`](crate::World) with it, exists.
    ///
    /// # Errors
    /// [`Lost`] if MPI does not run, or not with `MPI_THREAD_MULTIPLE`.
    pub unsafe fn of_program() -> Result<Self, Lost> {
        let mut library = lock(&LIBRARY);
        if !is_initialized() || is_finalized() {
            return Err(Lost::new("MPI does not run: start it with `MPI_THREAD_MULTIPLE`, or use `Mpi::new`"));
        }
        expect_any_thread(threading_support())?;
        Self::connect(&mut library)
    }

    /// Makes an engine in an MPI that runs with `MPI_THREAD_MULTIPLE`.
    fn connect(library: &mut Library) -> Result<Self, Lost> {
        // MPI_Comm_dup would wait for it without end.
        if IS_LOST.load(Ordering::Relaxed) {
            return Err(Lost::new("a rank was lost before: the ranks that are left cannot be connected again"));
        }
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
        library.engines += 1;
        Ok(Self {
            rank: rank as usize,
            ranks: ranks as usize,
            communicator: Communicator(communicator),
            memory: if is_cuda_aware() { Memory::Gpu } else { Memory::Host },
            staging: Mutex::new(Staging::default()),
        })
    }

    /// Lets all bytes go through host memory, also if the library says that it is CUDA-aware.
    #[must_use]
    pub fn through_host(mut self) -> Self {
        self.memory = Memory::Host;
        self
    }

    /// Gives MPI the addresses of device memory, whatever the library says. Without this call it gets those of GPU memory if
    /// `MPIX_Query_cuda_support` says that it takes them.
    ///
    /// # Safety
    /// The MPI library takes addresses of the memory of every device on whose streams the ranks make calls. A library that does
    /// not reads and writes host memory at these addresses.
    #[must_use]
    pub unsafe fn device_memory(mut self) -> Self {
        self.memory = Memory::Device;
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
            check(code, "an exchange with other ranks")?;
            requests.requests.push(request);
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
            IS_LOST.store(true, Ordering::Relaxed);
        }
        outcome
    }

    /// Gives every rank the bytes of all, one after the other. All ranks must pass the same number of bytes.
    fn gather_equal(&self, mine: &[u8], deadline: Instant) -> Result<Vec<u8>, Lost> {
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
            Requests { requests: vec![request] }.wait(all.len(), deadline)
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
}

/// Returns an error unless MPI allows calls from any thread at any time. Other threads of the program may call it, too.
fn expect_any_thread(level: Threading) -> Result<(), Lost> {
    match level {
        Threading::Multiple => Ok(()),
        other => Err(Lost::new(format!(
            "MPI runs with the thread level {other:?}, but MPI_THREAD_MULTIPLE is required: start it with that level, or use a \
             library that has it"
        ))),
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

    fn gather(&self, mine: &[u8], deadline: Instant) -> Result<Vec<Vec<u8>>, Lost> {
        let _turn = lock(&self.staging);
        gather_framed(mine, |bytes| self.gather_equal(bytes, deadline))
    }

    unsafe fn exchange(
        &self,
        stream: &Stream,
        send: &[Outgoing<'_>],
        receive: &mut [Incoming<'_>],
        deadline: Instant,
    ) -> Result<(), Lost> {
        let staging = &mut *lock(&self.staging);
        let on_device = match self.memory {
            Memory::Host => false,
            Memory::Gpu => matches!(stream.device().kind(), DeviceKind::Cuda { .. }),
            Memory::Device => true,
        };
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
        if let Buffer::Device(memory) = &mut from {
            // The last exchange may still be copying out of the buffer, on another stream: this one waits for it.
            _ = memory.as_mut_slice().view_mut(stream)?;
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
        let mut library = lock(&LIBRARY);
        library.engines -= 1;
        if library.engines > 0 || library.universe.is_none() {
            return;
        }
        // MPI_Finalize waits for all ranks without end: it is called if all of them come.
        if !IS_LOST.load(Ordering::Relaxed) && self.gather(&[], Instant::now() + FAREWELL).is_ok() {
            library.universe = None;
        }
    }
}

impl Debug for Mpi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mpi(rank {} of {})", self.rank, self.ranks)
    }
}
