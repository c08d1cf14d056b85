//! The harness of the suites, and their data.

pub mod data;
pub mod harness;
