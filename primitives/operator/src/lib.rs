//! x
extern crate self as gpu_operator;
mod fold;
mod float;
mod function;
mod graph;
mod integer;
mod interpret;
mod kind;
mod lower;
mod ordering;
mod ptx;
mod record;
mod recording;
mod scalar;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod total;
#[doc(hidden)]
pub mod twin;
mod value;
pub use function::{Function, Recorded};
pub use graph::Id;
pub use kind::Kind;
pub use ordering::{Comparable, OrderingValue};
pub use ptx::{Operands, State, Width, Word};
pub use record::{Layout, Leaf, Record, Twin};
#[doc(hidden)]
pub use record::pod;
#[doc(hidden)]
pub use recording::Recording;
pub use scalar::{CastTo, Float, FullFloat, Integer, Scalar, SignedInteger, UnsignedInteger};
pub use value::Value;
pub use gpu_operator_macro::{Record, operator};
#[doc(hidden)]
pub use bytemuck::Pod;
