//! Compiles kernel crates written in Rust to PTX with upstream nightly rustc, for this workspace and for other
//! build scripts. Needs no CUDA toolkit, no LLVM tools and no linker.
//!
//! # Kernel crates
//!
//! A kernel crate is an ordinary library package. When compiled for `nvptx64-nvidia-cuda`, it must declare `no_std` and
//! `feature(abi_ptx)` itself. For every kernel it has an entry and a static with its launch bounds:
//!
//! ```ignore
//! #[unsafe(no_mangle)]
//! pub unsafe extern "ptx-kernel" fn fill_u32(args: Fill) { /* … */ }
//! #[unsafe(no_mangle)]
//! pub static __launch_bounds_fill_u32: [u32; 2] = [256, 4]; // threads per block, minimum blocks per multiprocessor
//! ```
//!
//! A crate that others depend on puts `#[cfg(target_arch = "nvptx64")] #[cfg(ptx_entries)]`, in this order, on both.
//! The builder sets `ptx_entries` only for the requested crate. Without it, the kernels of a dependency are compiled
//! into each crate above it, and are left out only if `also-hash` names that dependency and its PTX has been built.
//!
//! rustc cannot express launch bounds. [`PtxBuilder`] reads the static, removes it and writes `.maxntid` and
//! `.minnctapersm` into the PTX. The crate's `Cargo.toml` describes the rest, so that the builder and the test on
//! stable ([`verify`]) always agree:
//!
//! ```toml
//! [package.metadata.ptx]
//! arch = "sm_70"                    # default
//! features = []                     # default
//! default-features = true           # default
//! also-hash = ["../primitives"]     # a crate whose device code is compiled in, or a file, or a folder
//! ```
//!
//! PTX is up to date if it was built from the same device code. Host code may change: it is what lies in files and folders that are
//! called `host` or `native`, in `main.rs` and in `bin/`. If the compiler reads such a file for the GPU, the build fails.
//!
//! # Usage
//!
//! *Checked-in PTX*: [`PtxBuilder::build`] writes one `NAME.ptx` per kernel and a `MANIFEST` to `<crate>/ptx`. A test
//! calls `gpu_kernel_builder::verify(env!("CARGO_MANIFEST_DIR")).unwrap()`, which needs no nightly.
//!
//! *PTX built on the user's machine*: a `build.rs` calls [`PtxBuilder::build_for_build_script`].
//!
//! ```no_run
//! // build.rs
//! gpu_kernel_builder::PtxBuilder::new(env!("CARGO_MANIFEST_DIR"))
//!     .arch("sm_80")
//!     .build_for_build_script()
//!     .unwrap_or_else(|error| panic!("{error}"));
//! // lib.rs: include_str!(concat!(env!("OUT_DIR"), "/ptx/fill_u32.ptx"))
//! ```
//!
//! # Requirements
//!
//! A nightly toolchain (documented and tested: `nightly-2026-05-20`; `KERNEL_BUILDER_TOOLCHAIN` names another one) and
//! `core` for the GPU: an installed target, or rust-src, or the folder that `KERNEL_BUILDER_RUST_SRC` names; see
//! [`CoreChoice`]. Byte-for-byte equal PTX needs the same nightly *and* the same source of `core`.

mod assembly;
mod builder;
mod config;
mod core_source;
mod error;
mod holes;
mod kernels;
mod launch_bounds;
pub mod lint;
mod manifest;
mod module;
pub mod ptxas;
#[cfg(test)]
mod scratch;
mod sources;
mod toolchain;
mod verify;

pub use builder::{Built, BuiltKernel, PtxBuilder};
pub use config::Config;
pub use core_source::CoreChoice;
pub use error::Error;
pub use kernels::{Kernel, split};
pub use manifest::{MANIFEST, Manifest};
pub use sources::source_hash;
pub use verify::verify;

/// The toolchain if neither the caller nor `KERNEL_BUILDER_TOOLCHAIN` names one.
pub const DEFAULT_TOOLCHAIN: &str = "nightly";

/// The nightly that builds the checked-in PTX. Error messages advise to install it.
pub const PINNED_TOOLCHAIN: &str = "nightly-2026-05-20";

/// rustc's name of the GPU target.
pub const TARGET: &str = "nvptx64-nvidia-cuda";
