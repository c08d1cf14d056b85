//! Operators that are written in Rust once and run on the CPU and on a GPU, with a stable compiler.
//!
//! An operator is a small function that a GPU algorithm is given: an order, an operation of a scan, a predicate.
//! [`#[operator]`](operator) keeps the function for the CPU and adds a twin that records what the function does.
//! Running the twin once, on the host, gives a [`Function`]: an expression that can be interpreted, and written as PTX
//! text for a kernel that was compiled before.
//!
//! ```
//! use bytemuck::{Pod, Zeroable};
//! use gpu_operator::{Operands, Record, Recorded, Width, Word, operator};
//!
//! // A trait of a library of algorithms. It asks for `recorded`, which the attribute writes.
//! trait Compare<T> {
//!     fn less(&self, a: T, b: T) -> bool;
//!     fn recorded() -> Recorded;
//! }
//!
//! #[repr(C)]
//! #[derive(Clone, Copy, Pod, Zeroable, Record)]
//! struct Event {
//!     time: u64,
//!     source: u32,
//!     number: u32,
//! }
//!
//! struct InOrder;
//!
//! #[operator]
//! impl Compare<Event> for InOrder {
//!     fn less(&self, a: Event, b: Event) -> bool {
//!         if a.time != b.time { a.time < b.time } else { a.source > b.source }
//!     }
//! }
//!
//! let recorded = InOrder::recorded();
//! let less = recorded.function("less").unwrap();
//! let (a, b) = (Event { time: 1, source: 2, number: 3 }, Event { time: 1, source: 1, number: 0 });
//! assert!(InOrder.less(a, b));
//! assert_eq!(less.interpret(&[bytemuck::bytes_of(&a), bytemuck::bytes_of(&b)], &[]), [1]);
//!
//! let operands = Operands {
//!     arguments: ["a", "b"].map(|name| Word::list(16, Width::B64, |word| format!("%{name}{word}"))).to_vec(),
//!     result: vec![Word::new("%result", Width::B32, 0, 1)],
//!     state: None,
//! };
//! assert!(less.ptx(&operands).contains("setp.lt.u64"));
//! ```
//!
//! # What an operator is made of
//!
//! - **Types**: `bool`, `u8` to `u128`, `i8` to `i128`, `f32`, `f64`, with the feature `half` also `half::f16` and
//!   `half::bf16`; fixed arrays and tuples of these; [`Ordering`](std::cmp::Ordering); structs that derive [`Record`].
//!   128-bit integers do not divide and do not cast to or from floats.
//! - **Expressions**: arithmetic, bit operations, comparisons (also of tuples and arrays), `&&`, `||`, `!`, casts, fields,
//!   struct literals, literals, constants of any path, blocks, `let` with tuple and array patterns.
//! - **`if … else …` and `match`** on integers, bools, orderings and tuples of them, with literals, ranges, constants, `|`,
//!   guards and `_`. Both sides are computed and one is selected, so an assignment in them to a variable outside is an
//!   error.
//! - **`for i in 0..CONSTANT`** (or `(0..CONSTANT).rev()`), which is unrolled. The counter indexes arrays, and `i as u32`
//!   computes with it. An `if` or a `match` on counters and constants alone chooses what is recorded, and may assign.
//! - **Variables** that change: `let mut`, `=`, `+=` and the like.
//! - **State**: the fields of `self`. A function that uses them needs a `Self` that derives [`Record`].
//! - **Calls** of other `#[operator]` functions: `function(x)`, `path::function(x)`, `Type::function(x)`,
//!   `self.function(x)` and `Self::function(x)`. A path whose last part but one begins with a
//!   capital letter names a type, any other path a module.
//! - **Methods**: `min`, `max`, `clamp`, `abs`, `abs_diff`, `signum`, `wrapping_add` and the other wrapping ones,
//!   `saturating_add`, `saturating_sub`, `count_ones`, `leading_zeros`, `trailing_zeros`, `rotate_left`, `rotate_right`,
//!   `swap_bytes`, `reverse_bits`, `is_power_of_two`, `is_negative`, `is_positive`; of floats `to_bits`, `from_bits`,
//!   `is_nan`, `is_finite`, `is_infinite`, `is_sign_negative`, `is_sign_positive`, `sqrt`, `mul_add`, `floor`, `ceil`,
//!   `trunc`, `round_ties_even`, `copysign`, `recip`; `cmp` and `total_cmp` with `then`, `reverse`, `is_lt` and the like;
//!   `from` between numbers without loss, `to_f32` and `from_f32` of 16-bit floats.
//!
//! Everything else is an error at its line, which says what to write instead:
//!
//! ```compile_fail
//! # use gpu_operator::operator;
//! #[operator]
//! fn digits(x: u32) -> u32 {
//!     let mut digits = 0;
//!     while x > 0 { digits += 1; } // error: use `for i in 0..CONSTANT`
//!     digits
//! }
//! ```
//!
//! A call of a function without the attribute is found by the compiler: "expected type, found function `ordinary`" for a
//! function, "no function named `ordinary_with_operator_attribute` found" for a function of a type.
//!
//! ```compile_fail,E0573
//! # use gpu_operator::operator;
//! fn ordinary(x: u32) -> u32 {
//!     x
//! }
//!
//! #[operator]
//! fn caller(x: u32) -> u32 {
//!     ordinary(x) // Put `#[operator]` on `ordinary`.
//! }
//! ```
//!
//! ```compile_fail,E0599
//! # use gpu_operator::operator;
//! # struct Type;
//! impl Type {
//!     fn ordinary(x: u32) -> u32 {
//!         x
//!     }
//! }
//!
//! #[operator]
//! fn caller(x: u32) -> u32 {
//!     Type::ordinary(x) // Put `#[operator]` on the `impl`.
//! }
//! ```
//!
//! ```compile_fail,E0277
//! # use gpu_operator::operator;
//! #[operator]
//! fn quotient(a: u128, b: u128) -> u128 {
//!     a / b // error: `u128` has no division in an operator
//! }
//! ```
//!
//! ```compile_fail
//! # use gpu_operator::operator;
//! #[operator]
//! fn factorial(x: u32) -> u32 {
//!     if x < 2 { 1 } else { x * factorial(x - 1) } // error: an operator cannot call itself
//! }
//! ```
//!
//! ```compile_fail,E0046
//! # use gpu_operator::Recorded;
//! # trait Compare<T> { fn less(&self, a: T, b: T) -> bool; fn recorded() -> Recorded; }
//! struct Forgotten;
//!
//! impl Compare<u32> for Forgotten { // error: missing `recorded`. Put `#[operator]` on it.
//!     fn less(&self, a: u32, b: u32) -> bool {
//!         a < b
//!     }
//! }
//! ```
//!
//! # Operators are total
//!
//! The native function and the recorded one give the same result for every input. Where Rust panics, or leaves a result
//! open, an operator has a rule, and the attribute rewrites the arithmetic of the native function to follow it:
//!
//! | expression | result |
//! | --- | --- |
//! | integer `+`, `-`, `*`, unary `-`, `abs` | wraps |
//! | `a << n`, `a >> n` | `n` modulo the width of `a` |
//! | `a / 0`, `a % 0` of integers | 0, `a` |
//! | `MIN / -1`, `MIN % -1` | `MIN`, 0 |
//! | `as` | Rust's: floats saturate, NaN becomes 0 |
//! | `min`, `max` of floats | a NaN is ignored; -0 is less than +0 |
//! | `a.clamp(low, high)` | `low` if `a < low`, then `high` if that is greater; also for `low > high` |
//! | float `+`, `-`, `*`, `/`, `sqrt`, `mul_add` | IEEE 754, to nearest; subnormals are kept; `a * b + c` rounds twice |
//! | 16-bit float arithmetic | computed in `f32`, then rounded to nearest |
//!
//! A NaN that is computed is a NaN on both sides, with any sign and payload on the CPU; its recorded `to_bits` are those of
//! `NAN`, so that all kernels agree. Loads, selects, `to_bits`, `from_bits`,
//! `copysign`, `abs` and unary `-` move bits and keep them. An array index that is out of range panics, natively and when
//! the operator is recorded; it is never recorded. So does a function that calls itself through another one when it is
//! recorded; one that calls itself directly does not compile. The primitives return an error in both cases.
//!
//! On the target `nvptx64` the attribute leaves the function as it was written, and nothing of this crate is needed: a
//! kernel compiled there has Rust's own arithmetic.

extern crate self as gpu_operator;

mod float;
mod fold;
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
pub use gpu_operator_macro::{Record, operator};
pub use graph::Id;
pub use kind::Kind;
pub use ordering::{Comparable, OrderingValue};
pub use ptx::{Operands, State, Width, Word};
pub use record::{Layout, Leaf, Record, Twin};
pub use scalar::{CastTo, Float, FullFloat, Integer, Scalar, SignedInteger, UnsignedInteger};
pub use value::Value;

#[doc(hidden)]
pub use bytemuck::Pod;
#[doc(hidden)]
pub use record::pod;
#[doc(hidden)]
pub use recording::{Recording, Running};
