//! An engine with an account, and with the time of a link that is not there.

use crate::transport::{Incoming, Lost, Outgoing, Transport};
use gpu_primitives::Stream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A link between a rank and the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// How long a message takes that has no bytes.
    pub latency: Duration,
    /// The bytes per second that a rank can send, and as many that it can receive at the same time.
    pub bytes_per_second: f64,
}

impl Link {
    /// Returns the time of one step in which a rank sends and receives so much.
    ///
    /// ```
    /// use gpu_sharded::Link;
    /// use std::time::Duration;
    ///
    /// let link = Link { latency: Duration::from_micros(5), bytes_per_second: 50e9 };
    /// assert_eq!(link.time(50_000_000, 1000), Duration::from_micros(1005));
    /// ```
    #[must_use]
    pub fn time(&self, sent: u64, received: u64) -> Duration {
        self.latency + Duration::from_secs_f64(sent.max(received) as f64 / self.bytes_per_second)
    }
}

/// What a rank has sent and received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// The number of steps in which the ranks told each other a few numbers.
    pub gathers: u64,
    /// The number of steps in which they exchanged data.
    pub exchanges: u64,
    /// The bytes of the data that this rank has sent.
    pub sent: u64,
    /// The bytes of the data that it has received.
    pub received: u64,
    /// The time that the link would have taken for all of it.
    pub time: Duration,
}

/// An engine that keeps an [`Account`], and can take the time of a [`Link`]: to find out what a dictionary would do on other
/// machines than those at hand.
///
/// ```
/// use gpu_sharded::{Link, Modelled, Threads};
/// use std::time::Duration;
///
/// let link = Link { latency: Duration::from_micros(5), bytes_per_second: 50e9 };
/// let [rank] = Threads::ranks(1).try_into().expect("one");
/// let (modelled, account) = Modelled::new(rank, link);
/// assert_eq!(account.lock().expect("no panic").sent, 0);
/// ```
#[derive(Debug)]
pub struct Modelled<T> {
    engine: T,
    link: Link,
    account: Arc<Mutex<Account>>,
    takes_time: bool,
}

impl<T: Transport> Modelled<T> {
    /// Keeps an account of what an engine does. Adds the time of the link to the account, and takes no time itself.
    #[must_use]
    pub fn new(engine: T, link: Link) -> (Self, Arc<Mutex<Account>>) {
        let account = Arc::new(Mutex::new(Account::default()));
        (Self { engine, link, account: Arc::clone(&account), takes_time: false }, account)
    }

    /// Makes every step take the time of the link, in addition to its own.
    #[must_use]
    pub fn taking_time(self) -> Self {
        Self { takes_time: true, ..self }
    }

    fn note(&self, sent: u64, received: u64, add: impl FnOnce(&mut Account)) {
        let time = self.link.time(sent, received);
        {
            let mut account = self.account.lock().unwrap_or_else(PoisonError::into_inner);
            account.time += time;
            add(&mut account);
        }
        if self.takes_time {
            std::thread::sleep(time);
        }
    }
}

impl<T: Transport> Transport for Modelled<T> {
    fn rank(&self) -> usize {
        self.engine.rank()
    }

    fn ranks(&self) -> usize {
        self.engine.ranks()
    }

    fn gather(&self, mine: &[u8], deadline: Instant) -> Result<Vec<Vec<u8>>, Lost> {
        let all = self.engine.gather(mine, deadline)?;
        let others = (self.ranks() as u64).saturating_sub(1) * mine.len() as u64;
        self.note(others, others, |account| account.gathers += 1);
        Ok(all)
    }

    unsafe fn exchange(
        &self,
        stream: &Stream,
        send: &[Outgoing<'_>],
        receive: &mut [Incoming<'_>],
        deadline: Instant,
    ) -> Result<(), Lost> {
        // SAFETY: the same messages, as guaranteed by the caller.
        unsafe { self.engine.exchange(stream, send, receive, deadline)? };
        let sent = send.iter().map(|message| message.bytes.len() as u64).sum();
        let received = receive.iter().map(|message| message.bytes.len() as u64).sum();
        self.note(sent, received, |account| {
            account.exchanges += 1;
            account.sent += sent;
            account.received += received;
        });
        Ok(())
    }
}
