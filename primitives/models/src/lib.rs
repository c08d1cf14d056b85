//! The concurrent parts of `gpu-primitives` as small state machines, checked over all interleavings of threads.
//!
//! The code is that of the library: the same source files, compiled with the locks and atomics of `loom`. Only the device is
//! a model. It does not run work. It knows which work comes before which, and notes two accesses to the same memory that
//! nothing orders.
//!
//! Each model also runs with a planted mistake, which must be found.

#[cfg(test)]
mod capture;
#[cfg(test)]
mod device;
#[cfg(test)]
mod lanes;
#[cfg(test)]
mod lookback;
#[cfg(test)]
mod sync;

#[cfg(test)]
#[path = "../../src/host/runtime/lanes/order.rs"]
mod order;
#[cfg(test)]
#[path = "../../src/host/runtime/scratch.rs"]
mod scratch;
