//! The ranks that share a dictionary, and how they agree.

use crate::partition::MAX_SHARDS;
use crate::transport::{Incoming, Lost, Outgoing, Transport};
use core::fmt::{self, Debug};
use gpu_primitives::{Error, Stream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The ranks that share a dictionary, and the shards of each.
///
/// - [`World::local`]: one rank, and some shards on its device.
/// - [`World::on`]: one rank, and a shard on each of some devices.
/// - [`World::new`]: many ranks, each a process or a thread, that a [`Transport`] connects.
///
/// Clones are the same world. Dictionaries of a world are made, and called, in the same order on every rank, by one thread at
/// a time if there are several ranks.
#[derive(Clone)]
pub struct World {
    inner: Arc<Inner>,
}

struct Inner {
    /// How to reach the other ranks, if there are any.
    transport: Option<Arc<dyn Transport>>,
    /// Where the shards of this rank are: on the device of a call's stream if nothing else is said.
    homes: Vec<Option<Stream>>,
    /// Streams on which shards of the same device work side by side; made when they are first needed.
    lanes: Vec<OnceLock<Stream>>,
    timeout: Duration,
    turn: Mutex<()>,
    /// Why the ranks cannot work together any more.
    lost: Mutex<Option<String>>,
    /// The number of dictionaries that were made.
    made: AtomicU64,
}

/// How long a rank waits for the others if nothing else is said.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// The bytes of a call's name, and of the reason why it failed, in a message.
const NAME: usize = 24;
const REASON: usize = 200;

/// A call that all ranks make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub name: &'static str,
    /// The dictionary, counted in the order in which they were made.
    pub dictionary: u64,
    /// A number that differs if the types or the operation differ.
    pub fingerprint: u64,
    /// A number that differs if the options differ with which a dictionary is made.
    pub options: u64,
}

/// The parts of a message of which each must be the same on all ranks: bytes of the name, and of the numbers after it.
const CALL: usize = NAME + 4 * size_of::<u64>();
/// Where the numbers of a message begin, after whether and why the rank's part failed.
const NUMBERS: usize = CALL + size_of::<u64>() + REASON;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Default for World {
    fn default() -> Self {
        Self::local(1)
    }
}

impl Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "World(rank {} of {}, {} shards)", self.rank(), self.ranks(), self.shards())
    }
}

impl World {
    fn of(transport: Option<Arc<dyn Transport>>, homes: Vec<Option<Stream>>, timeout: Duration) -> Self {
        let (turn, lost, made) = (Mutex::new(()), Mutex::new(None), AtomicU64::new(0));
        let lanes = homes.iter().map(|_| OnceLock::new()).collect();
        Self { inner: Arc::new(Inner { transport, homes, lanes, timeout, turn, lost, made }) }
    }

    /// One rank, with so many shards on the device of the stream that each call is given.
    #[must_use]
    pub fn local(shards: usize) -> Self {
        Self::of(None, vec![None; shards.max(1)], TIMEOUT)
    }

    /// One rank, with a shard on the device of each of these streams. Work for a shard on another device than that of the
    /// call's stream runs on its stream here; what it takes and returns is copied through host memory.
    #[must_use]
    pub fn on(streams: impl IntoIterator<Item = Stream>) -> Self {
        let homes: Vec<_> = streams.into_iter().map(Some).collect();
        if homes.is_empty() { Self::local(1) } else { Self::of(None, homes, TIMEOUT) }
    }

    /// Many ranks, with one shard each.
    #[must_use]
    pub fn new(transport: impl Transport + 'static) -> Self {
        Self::of(Some(Arc::new(transport)), vec![None], TIMEOUT)
    }

    /// Sets how many shards each rank has on its device. It must be the same on all ranks; the ranks compare it in every call.
    /// Returns another world, with dictionaries of its own.
    #[must_use]
    pub fn shards_per_rank(self, shards: usize) -> Self {
        Self::of(self.inner.transport.clone(), vec![None; shards.max(1)], self.inner.timeout)
    }

    /// Sets how long a rank waits for the others in one step of a call, including the time that their devices take. It is a
    /// minute if nothing else is said. Returns another world, with dictionaries of its own.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self::of(self.inner.transport.clone(), self.inner.homes.clone(), timeout)
    }

    /// Returns the number of this rank.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.inner.transport.as_ref().map_or(0, |transport| transport.rank())
    }

    /// Returns the number of ranks.
    #[must_use]
    pub fn ranks(&self) -> usize {
        self.inner.transport.as_ref().map_or(1, |transport| transport.ranks())
    }

    /// Returns the number of shards of all ranks.
    #[must_use]
    pub fn shards(&self) -> usize {
        self.ranks() * self.own_shards()
    }

    /// Returns the number of shards of this rank, and of every other.
    #[must_use]
    pub fn own_shards(&self) -> usize {
        self.inner.homes.len()
    }

    /// Returns the number of this rank's first shard.
    pub(crate) fn first_shard(&self) -> usize {
        self.rank() * self.own_shards()
    }

    /// Returns the rank that has a shard.
    pub(crate) fn rank_of(&self, shard: usize) -> usize {
        shard / self.own_shards()
    }

    /// Returns the stream for work on shard `own` of this rank, in a call with this stream.
    pub(crate) fn home<'a>(&'a self, own: usize, stream: &'a Stream) -> &'a Stream {
        match &self.inner.homes[own] {
            Some(home) if home.device() != stream.device() => home,
            _ => stream,
        }
    }

    /// Returns a stream for a large piece of work on shard `own` of this rank, beside that on other shards: a call on a fraction of
    /// the keys does not fill a GPU. Memory orders such work by itself.
    pub(crate) fn lane(&self, own: usize, stream: &Stream) -> Stream {
        let home = self.home(own, stream);
        if own == 0 || home.device() != stream.device() {
            return home.clone();
        }
        let lane = &self.inner.lanes[own];
        if lane.get().is_none()
            && let Ok(new) = stream.device().stream()
        {
            _ = lane.set(new);
        }
        lane.get().filter(|lane| lane.device() == stream.device()).unwrap_or(stream).clone()
    }

    /// Makes later work of the stream wait for the work of all [lanes](Self::lane).
    pub(crate) fn join(&self, stream: &Stream) -> Result<(), Error> {
        let lanes = self.inner.lanes.iter().filter_map(OnceLock::get);
        lanes.filter(|lane| lane.device() == stream.device()).try_for_each(|lane| stream.wait(&lane.record()?))
    }

    /// Counts a dictionary.
    pub(crate) fn count_dictionary(&self) -> u64 {
        self.inner.made.fetch_add(1, Ordering::Relaxed)
    }

    /// The other ranks, if there are any.
    fn others(&self) -> Option<&dyn Transport> {
        self.inner.transport.as_deref().filter(|transport| transport.ranks() > 1)
    }

    /// Returns whether there is only one rank.
    pub(crate) fn is_alone(&self) -> bool {
        self.others().is_none()
    }

    /// Begins a call: one at a time if there are other ranks.
    pub(crate) fn turn(&self) -> Result<Option<MutexGuard<'_, ()>>, Error> {
        if self.is_alone() {
            return Ok(None);
        }
        let turn = lock(&self.inner.turn);
        match &*lock(&self.inner.lost) {
            Some(cause) => Err(Error::DictionaryLost { cause: cause.clone() }),
            None => Ok(Some(turn)),
        }
    }

    pub(crate) fn lose(&self, lost: Lost) -> Error {
        lock(&self.inner.lost).get_or_insert_with(|| lost.cause.clone());
        Error::DictionaryLost { cause: lost.cause }
    }

    fn deadline(&self) -> Instant {
        Instant::now() + self.inner.timeout
    }

    /// Gives every rank the bytes of all.
    pub(crate) fn gather(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
        let Some(others) = self.others() else { return Ok(vec![mine.to_vec()]) };
        let all = others.gather(mine, self.deadline()).map_err(|lost| self.lose(lost))?;
        match all.len() == self.ranks() {
            true => Ok(all),
            false => Err(self.lose(Lost::new(format!("the engine gathered {} messages of {others:?}", all.len())))),
        }
    }

    /// Gives every rank the bytes of all, one after the other. All ranks pass the same number of bytes.
    pub(crate) fn gather_equal(&self, mine: &[u8]) -> Result<Vec<u8>, Error> {
        let all = self.gather(mine)?;
        self.expect_lengths(&all, mine.len())?;
        Ok(all.concat())
    }

    /// Returns an error unless all ranks have sent so many bytes.
    pub(crate) fn expect_lengths(&self, all: &[Vec<u8>], expected: usize) -> Result<(), Error> {
        match all.iter().position(|message| message.len() != expected) {
            None => Ok(()),
            Some(rank) => {
                let sent = all[rank].len();
                Err(self.lose(Lost::new(format!("rank {rank} sent {sent} bytes instead of {expected}"))))
            }
        }
    }

    /// Moves memory between ranks.
    ///
    /// # Safety
    /// The messages between two ranks are the same at both, with the same lengths.
    pub(crate) unsafe fn exchange(
        &self,
        stream: &Stream,
        send: &[Outgoing<'_>],
        receive: &mut [Incoming<'_>],
    ) -> Result<(), Error> {
        match self.others() {
            Some(others) => {
                // SAFETY: as guaranteed by the caller.
                let outcome = unsafe { others.exchange(stream, send, receive, self.deadline()) };
                outcome.map_err(|lost| self.lose(lost))
            }
            None => Ok(()),
        }
    }

    /// Returns an error for more shards than a call can be split into.
    pub(crate) fn expect_shards(&self) -> Result<(), Error> {
        let asked = self.shards();
        if asked > MAX_SHARDS { Err(Error::TooMany { what: "shards", asked, limit: MAX_SHARDS }) } else { Ok(()) }
    }

    /// The number of words that ranks tell each other in one step.
    fn words(&self) -> usize {
        2 * self.shards() + 2
    }

    /// One step of a call: tells the others how this rank's part went, and some numbers: up to two per shard and two more.
    /// Returns the numbers of all ranks if all parts went well and belong to the same call.
    ///
    /// All ranks return an error if one of them does, except that one may find another gone while the others have not
    /// noticed yet.
    pub(crate) fn agree(&self, call: &Call, part: Result<Vec<u64>, Error>) -> Result<Vec<Vec<u64>>, Error> {
        if self.is_alone() {
            return part.map(|words| vec![words]);
        }
        let all = self.share(
            call,
            part.map(|mut words| {
                words.resize(self.words(), 0);
                words.iter().flat_map(|word| word.to_le_bytes()).collect()
            }),
        )?;
        // The same call in a world of the same size has messages of the same length.
        self.expect_lengths(&all, self.words() * size_of::<u64>())?;
        let numbers = |bytes: &Vec<u8>| bytes.chunks_exact(8).map(number).collect();
        Ok(all.iter().map(numbers).collect())
    }

    /// One step of a call, as [`agree`](Self::agree): tells the others how this rank's part went, and any bytes.
    pub(crate) fn share(&self, call: &Call, part: Result<Vec<u8>, Error>) -> Result<Vec<Vec<u8>>, Error> {
        if self.is_alone() {
            return part.map(|bytes| vec![bytes]);
        }
        let mut message = text::<NAME>(call.name).to_vec();
        for number in [call.dictionary, self.own_shards() as u64, call.fingerprint, call.options] {
            message.extend(number.to_le_bytes());
        }
        message.extend(u64::from(part.is_err()).to_le_bytes());
        message.extend(text::<REASON>(&part.as_ref().err().map_or(String::new(), ToString::to_string)));
        message.extend(part.as_ref().map_or(&[][..], Vec::as_slice));

        let mut all = self.gather(&message)?;
        let differs = |other: &Vec<u8>| other.len() < NUMBERS || other[..CALL] != message[..CALL];
        if let Some(rank) = all.iter().position(differs) {
            return Err(match all[rank].len() >= NUMBERS {
                true => Error::RanksDisagree { what: self.difference(call, &message, rank, &all[rank]) },
                false => self.lose(Lost::new(format!("rank {rank} sent {} bytes of no call", all[rank].len()))),
            });
        }
        let error = part.err();
        let has_failed = |other: &Vec<u8>| other[CALL] != 0;
        match (error, all.iter().position(has_failed)) {
            (Some(own), _) => Err(own),
            (None, Some(rank)) => {
                Err(Error::RankFailed { rank, cause: read_text(&all[rank][CALL + size_of::<u64>()..NUMBERS]) })
            }
            (None, None) => Ok(all.iter_mut().map(|message| message.split_off(NUMBERS)).collect()),
        }
    }

    /// Says how another rank's call differs from this one.
    fn difference(&self, call: &Call, mine: &[u8], rank: usize, other: &[u8]) -> String {
        let (here, own, name) = (self.rank(), call.name, read_text(&other[..NAME]));
        if other[..NAME] != mine[..NAME] {
            return format!("rank {here} called `{own}`, and rank {rank} called `{name}`");
        }
        let numbers = |message: &[u8]| message[NAME..CALL].chunks_exact(8).map(number).collect::<Vec<u64>>();
        let (mine, other) = (numbers(mine), numbers(other));
        match (0..4).find(|&i| mine[i] != other[i]) {
            Some(0) => format!("rank {here} called `{own}` of one dictionary, and rank {rank} that of another one"),
            Some(1) => format!(
                "rank {here} has {} shards, and rank {rank} has {}: set the same `shards_per_rank` on all of them",
                mine[1], other[1]
            ),
            Some(2) => format!("ranks {here} and {rank} called `{own}` with other types or operations"),
            _ => format!("ranks {here} and {rank} called `{own}` with different options"),
        }
    }

    /// A step of a call that has a result: it is returned if the parts of all ranks went well.
    pub(crate) fn vote<T>(&self, call: &Call, part: Result<T, Error>) -> Result<T, Error> {
        match part {
            Ok(result) => self.agree(call, Ok(Vec::new())).map(|_| result),
            Err(error) => Err(match self.agree(call, Err(error)) {
                Err(error) => error,
                // Never: a step in which a rank failed is none that all agree on.
                Ok(_) => Error::DictionaryLost { cause: format!("`{}` failed here, and nowhere else", call.name) },
            }),
        }
    }
}

/// Returns the beginning of a text, with zeros after it.
fn text<const LEN: usize>(text: &str) -> [u8; LEN] {
    let mut bytes = [0; LEN];
    let len = text.floor_char_boundary(LEN);
    bytes[..len].copy_from_slice(&text.as_bytes()[..len]);
    bytes
}

/// Reads a number of a message.
fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().unwrap_or_default())
}

fn read_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned()
}
