//! A type of key that gpu-primitives does not know, its order, and a bucket function.

use bytemuck::{Pod, Zeroable};
use gpu_primitives::compare::Compare;
use gpu_primitives::multisplit::Bucket;
use gpu_primitives::operator::{Record, operator};
use gpu_primitives::sort::RadixKey;

/// An event: the earlier comes first; at the same time the higher source, and of one source the lower number.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable, Record)]
pub struct Event {
    /// When it was.
    pub time: u64,
    /// Who saw it.
    pub source: u32,
    /// The source's count.
    pub number: u32,
}

#[operator]
impl Event {
    /// The 128 bits that order as events do.
    pub fn rank(event: Event) -> u128 {
        (event.time as u128) << 64 | (!event.source as u128) << 32 | event.number as u128
    }
}

/// The radix sort takes the rank.
#[operator]
impl RadixKey for Event {
    type Code = u128;

    fn code(key: Self) -> u128 {
        Event::rank(key)
    }
}

/// The order of events, for the merge and the search.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct InOrder;

#[operator]
impl Compare<Event> for InOrder {
    fn less(&self, a: Event, b: Event) -> bool {
        if a.time != b.time { a.time < b.time } else { (b.source, a.number) < (a.source, b.number) }
    }
}

/// A bucket for each stretch of time. Its fields travel to the GPU with it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable, Record)]
pub struct Stretch {
    /// When the first one begins.
    pub start: u64,
    /// How long each is; not zero.
    pub length: u64,
}

#[operator]
impl Bucket<Event> for Stretch {
    fn bucket(&self, key: Event) -> u32 {
        (key.time.saturating_sub(self.start) / self.length).min(u32::MAX as u64) as u32
    }
}
