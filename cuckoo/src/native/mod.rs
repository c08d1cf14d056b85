//! The bodies of the kernels for the CPU: plain loops. The modules of [`kernel`](crate::device) say what the kernels do, and
//! their contracts.
//!
//! Several OS threads change a table at the same time. They follow the protocols of the kernels, with the atomics of the
//! standard library.

#![deny(unsafe_op_in_unsafe_fn)]

mod append;
mod atomics;
pub mod claim;
mod entries;
mod locks;
mod marks;
#[cfg(test)]
pub mod own;
pub mod place;
pub mod plain;
pub mod probe;
pub mod settle;
pub mod slots;
mod table;
pub mod tile;
pub mod walk;
