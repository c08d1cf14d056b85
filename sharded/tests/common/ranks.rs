//! Ranks that are threads with a CPU device each, and ranks that die.

use gpu_primitives::{CpuOptions, Device, Stream};
use gpu_sharded::{Incoming, Lost, Outgoing, Threads, Transport, World};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Runs a function on ranks with these worlds, each on a thread and a device of its own.
pub fn run<R: Send>(worlds: Vec<World>, rank: impl Fn(World, Stream) -> R + Sync) -> Vec<R> {
    std::thread::scope(|scope| {
        let start = |world: World| {
            let rank = &rank;
            scope.spawn(move || rank(world, Device::cpu_with(CpuOptions::default()).stream().unwrap()))
        };
        let threads: Vec<_> = worlds.into_iter().map(start).collect();
        threads.into_iter().map(|thread| thread.join().expect("a rank has failed")).collect()
    })
}

pub fn worlds(ranks: usize) -> Vec<World> {
    Threads::ranks(ranks).into_iter().map(|rank| World::new(rank).timeout(Duration::from_secs(30))).collect()
}

/// A transport whose rank dies after some steps.
#[derive(Debug)]
pub struct Dying {
    engine: Mutex<(Option<Threads>, usize)>,
    place: (usize, usize),
}

impl Dying {
    pub fn after(steps: usize, engine: Threads) -> Self {
        let place = (engine.rank(), engine.ranks());
        Self { engine: Mutex::new((Some(engine), steps)), place }
    }

    fn step<R>(&self, step: impl FnOnce(&Threads) -> Result<R, Lost>) -> Result<R, Lost> {
        let (engine, left) = &mut *self.engine.lock().unwrap();
        match left.checked_sub(1) {
            Some(fewer) => *left = fewer,
            None => *engine = None,
        }
        engine.as_ref().map_or(Err(Lost::new("killed")), step)
    }
}

impl Transport for Dying {
    fn rank(&self) -> usize {
        self.place.0
    }

    fn ranks(&self) -> usize {
        self.place.1
    }

    fn gather(&self, mine: &[u8], deadline: Instant) -> Result<Vec<Vec<u8>>, Lost> {
        self.step(|engine| engine.gather(mine, deadline))
    }

    unsafe fn exchange(
        &self,
        stream: &Stream,
        send: &[Outgoing<'_>],
        receive: &mut [Incoming<'_>],
        deadline: Instant,
    ) -> Result<(), Lost> {
        // SAFETY: the same messages.
        self.step(|engine| unsafe { engine.exchange(stream, send, receive, deadline) })
    }
}
