//! A type of key that gpu-primitives does not know, its order, a bucket function, and the kernels for them.

#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx))]

use bytemuck::{Pod, Zeroable};
use gpu_primitives::compare::Compare;
use gpu_primitives::multisplit::Bucket;
use gpu_primitives::sort::{RadixCode, RadixKey, Sign};

/// An event: the earlier comes first; at the same time the higher source, and of one source the lower number.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Event {
    /// When it was.
    pub time: u64,
    /// Who saw it.
    pub source: u32,
    /// The source's count.
    pub number: u32,
}

impl Event {
    /// The 128 bits that order as events do.
    #[inline(always)]
    pub const fn rank(self) -> u128 {
        (self.time as u128) << 64 | (!self.source as u128) << 32 | self.number as u128
    }
}

/// The radix sort takes the rank digit by digit.
impl RadixCode for Event {
    const BITS: u32 = 128;

    #[inline(always)]
    fn digits(self, shift: u32, _: Sign) -> u32 {
        (self.rank() >> shift) as u32
    }
}

impl RadixKey for Event {
    type Code = Self;
}

/// The order of events, for the merge and the search.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct InOrder;

impl Compare<Event> for InOrder {
    #[inline(always)]
    fn less(&self, a: Event, b: Event) -> bool {
        a.rank() < b.rank()
    }
}

/// A bucket for each stretch of time. Its fields travel to the GPU with it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Stretch {
    /// When the first one begins.
    pub start: u64,
    /// How long each is; not zero.
    pub length: u64,
}

impl Bucket<Event> for Stretch {
    #[inline(always)]
    fn bucket(&self, event: Event) -> u32 {
        (event.time.saturating_sub(self.start) / self.length).min(u32::MAX as u64) as u32
    }
}

gpu_primitives::sort_instances! {
    in concat!(env!("OUT_DIR"), "/ptx");
    keys [Event], values [u32];
}

gpu_primitives::merge_instances! {
    in concat!(env!("OUT_DIR"), "/ptx");
    keys [Event], values [()], orders [InOrder];
}

gpu_primitives::multisplit_instances! {
    in concat!(env!("OUT_DIR"), "/ptx");
    keys [Event], values [()], buckets [Stretch];
}

gpu_primitives::search_instances! {
    in concat!(env!("OUT_DIR"), "/ptx");
    index: keys [Event];
    unsorted: keys [Event], orders [InOrder], positions [u32];
}
