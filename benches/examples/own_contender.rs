//! A structure of one's own in the comparison: `std::collections::HashMap`, with the standard library's hash function.
//!
//! ```sh
//! cargo run --release -p gpu-benches --example own_contender -- --size 2^16
//! ```
//!
//! In a crate of your own, depend on `gpu-benches`, write the same `impl`, and run that crate. All options of
//! `gpu-benches compare` work, and the structure stands beside the others in the report.

use gpu_benches::Error;
use gpu_benches::both::{PairSlice, Slice};
use gpu_benches::compare::Contest;
use gpu_benches::contender::{Answer, Contender};
use gpu_benches::measure::Clock;
use gpu_primitives::Stream;
use std::collections::HashMap;
use std::process::ExitCode;

/// The structure: here on the host. One on the device keeps its memory instead, and uses `keys.device`.
struct StdHashMap(HashMap<u32, u32>);

impl Contender for StdHashMap {
    type Key = u32;
    type Value = u32;

    const NAME: &'static str = "CPU std HashMap";
    // `Clock::Device` times by events on the stream, for structures on the device.
    const CLOCK: Clock = Clock::Host;

    fn empty(_: &Stream, _batch: usize) -> Result<Self, Error> {
        Ok(Self(HashMap::new()))
    }

    fn build(_: &Stream, pairs: PairSlice<'_, u32, u32>, _batch: usize) -> Result<Self, Error> {
        Ok(Self(pairs.keys.host.iter().copied().zip(pairs.values.host.iter().copied()).collect()))
    }

    fn insert(&mut self, _: &Stream, pairs: PairSlice<'_, u32, u32>) -> Result<(), Error> {
        self.0.extend(pairs.keys.host.iter().copied().zip(pairs.values.host.iter().copied()));
        Ok(())
    }

    fn delete(&mut self, _: &Stream, keys: Slice<'_, u32>) -> Result<(), Error> {
        for key in keys.host {
            self.0.remove(key);
        }
        Ok(())
    }

    fn update(
        &mut self,
        stream: &Stream,
        insert: PairSlice<'_, u32, u32>,
        delete: Slice<'_, u32>,
    ) -> Result<(), Error> {
        self.insert(stream, insert)?;
        self.delete(stream, delete)
    }

    fn lookup(&self, _: &Stream, keys: Slice<'_, u32>) -> Result<Answer<Vec<Option<u32>>>, Error> {
        let found: Vec<Option<u32>> = keys.host.iter().map(|key| self.0.get(key).copied()).collect();
        // What this closure does is not timed: for a structure on the device, it copies the answer to the host.
        Ok(Box::new(move |_| Ok(found)))
    }

    fn contents(&self, _: &Stream) -> Result<Vec<(u32, u32)>, Error> {
        let mut pairs: Vec<(u32, u32)> = self.0.iter().map(|(&key, &value)| (key, value)).collect();
        pairs.sort_unstable();
        Ok(pairs)
    }

    fn bytes(&self, _: &Stream) -> Result<Option<usize>, Error> {
        Ok(None) // not known
    }
}

fn main() -> ExitCode {
    Contest::<u32, u32>::new().register::<StdHashMap>().main()
}
