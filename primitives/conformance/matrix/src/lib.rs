//! The test in `tests/matrix.rs` is all there is.
