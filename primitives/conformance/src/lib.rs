//! The conformance harness: one suite per primitive, run against every device, with `std` as the oracle.
//!
//! It is also a kernel crate of its own, as a user would write one: [`kernels`] holds operators and kernels that
//! gpu-primitives does not know, and their PTX lies under `ptx/`.

#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx))]

pub mod kernels;

#[cfg(not(target_arch = "nvptx64"))]
mod host;

#[cfg(not(target_arch = "nvptx64"))]
pub use host::data;
#[cfg(not(target_arch = "nvptx64"))]
pub use host::harness::{
    Case, Simulated, WORKERS, adversarial_streams, assert_deterministic, is_checked, is_gpu, is_long, is_simulated,
    native_devices, run, run_one_by_one,
};
