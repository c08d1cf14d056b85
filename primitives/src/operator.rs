//! Operators: small functions that primitives are given, written in Rust once for all devices.
//!
//! [`#[operator]`](operator) on an implementation of [`Compare`](crate::compare::Compare) keeps the function for the CPU
//! and records it for the GPU. It needs no other toolchain than the stable compiler. What an operator can be made of is
//! in the documentation of the crate `gpu-operator`, whose items this module exports.
//!
//! ```
//! use bytemuck::{Pod, Zeroable};
//! use gpu_primitives::compare::Compare;
//! use gpu_primitives::operator::{Record, operator};
//! use gpu_primitives::{Device, Error, merge};
//!
//! #[repr(C)]
//! #[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, Record)]
//! struct Event {
//!     time: u32,
//!     source: u32,
//!     number: u32,
//! }
//!
//! /// Earlier events first; of the same time, higher sources first.
//! #[repr(C)]
//! #[derive(Clone, Copy, Pod, Zeroable, Record)]
//! struct InOrder;
//!
//! #[operator]
//! impl Compare<Event> for InOrder {
//!     fn less(&self, a: Event, b: Event) -> bool {
//!         if a.time != b.time { a.time < b.time } else { a.source > b.source }
//!     }
//! }
//!
//! let stream = Device::default()?.stream()?;
//! let event = |time, source| Event { time, source, number: 0 };
//! let a = stream.upload(&[event(1, 7), event(3, 9)])?;
//! let b = stream.upload(&[event(1, 8), event(2, 1)])?;
//! let mut merged = stream.uninit::<Event>(4)?;
//! merge::keys(&stream, &a, &b, &mut merged, InOrder)?;
//! assert_eq!(merged.to_vec(&stream)?, [event(1, 8), event(1, 7), event(2, 1), event(3, 9)]);
//! # Ok::<(), Error>(())
//! ```

//!
//! # One-liners
//! [`order!`], [`monoid!`], [`predicate!`], [`bucket!`] and [`sort_by!`] make an operator of a closure where it is needed. State is
//! named before the closure.
//!
//! ```
//! use gpu_primitives::operator::{bucket, monoid, order, predicate};
//! use gpu_primitives::{Device, Error, merge, multisplit, scan, select};
//!
//! let stream = Device::default()?.stream()?;
//! let (a, b) = (stream.upload(&[7u32, 9, 3])?, stream.upload(&[8u32, 1])?);
//! let mut out = stream.uninit::<u32>(5)?;
//! let start = 5;
//! merge::keys(&stream, &a, &b, &mut out, order!(start: u32 = start; |a: u32, b: u32| a - start < b - start))?;
//! assert_eq!(out.to_vec(&stream)?, [7, 8, 9, 1, 3]);
//!
//! let mut products = stream.upload(&[2.0f32, 0.5, 3.0])?;
//! scan::inclusive_in_place(&stream, &mut products, monoid!(1.0, |a: f32, b: f32| a * b))?;
//! assert_eq!(products.to_vec(&stream)?, [2.0, 1.0, 3.0]);
//!
//! let count = select::select(&stream, &a, &mut out, predicate!(|x: u32| x > 5))?;
//! assert_eq!(count.get(&stream)?, 2);
//! multisplit::keys(&stream, &a, &mut out.slice_mut(..3)?, 2, bucket!(|x: u32| x % 2))?;
//! # Ok::<(), Error>(())
//! ```

//!
//! State is plain data: what `bytemuck::Pod` says of its types. Anything else does not compile.
//!
//! ```
//! #![forbid(unsafe_code)]
//! # use gpu_primitives::operator::predicate;
//! # use gpu_primitives::select::Predicate;
//! let [low, high] = [3, 7];
//! let inside = predicate!(low: u32 = low, high: [u32; 1] = [high]; |x: u32| low <= x && x < high[0]);
//! assert!(inside.test(3) && !inside.test(7));
//! ```
//!
//! ```compile_fail,E0277
//! # use gpu_primitives::operator::predicate;
//! predicate!(inverted: bool = true; |x: u32| (x > 5) != inverted); // `bool` cannot be in the state: use a `u8`
//! ```
//!
//! ```compile_fail,E0277
//! # use gpu_primitives::operator::predicate;
//! predicate!(range: (u8, u32) = (1, 2); |x: u32| range.1 < x); // a tuple may have padding: use a struct or two numbers
//! ```
//!
//! ```compile_fail,E0277
//! # use gpu_primitives::operator::{Id, Leaf, Record, Twin, Value, predicate};
//! #[derive(Clone, Copy, Debug)]
//! struct Address(&'static u32);
//!
//! impl Record for Address {
//!     type Value = Value<u64>;
//!     fn leaves(_: usize, _: &mut Vec<Leaf>) {}
//!     fn lift(self) -> Value<u64> {
//!         0u64.lift()
//!     }
//! }
//!
//! static NUMBER: u32 = 0;
//! // A hand-written `Record` proves nothing: an address is no plain data.
//! predicate!(address: Address = Address(&NUMBER); |x: u32| x > 5);
//! ```

#[cfg(not(target_arch = "nvptx64"))]
pub use gpu_operator::*;
#[cfg(target_arch = "nvptx64")]
pub use gpu_operator_macro::{Record, operator};

#[doc(hidden)]
pub use bytemuck::{Pod, Zeroable};

// The macros, not the modules.
pub use gpu_primitives::{bucket, equality, map, monoid, order, predicate, sort_by};

/// A type of which the state of an operator can be made: plain data, as `bytemuck` proves it. For a `bool`, use a `u8`; for an
/// enum or a tuple, numbers.
#[doc(hidden)]
pub trait PlainState: Pod {
    /// The size in bytes.
    const BYTES: usize = size_of::<Self>();
}

impl<T: Pod> PlainState for T {}

/// Fails to compile if a struct has other bytes than those of its fields.
#[doc(hidden)]
pub const fn expect_no_padding<S>(fields: usize) {
    assert!(size_of::<S>() == fields, "the state of an operator has no padding: put larger types first");
}

/// Makes an operator's type and value: the state is its fields.
#[doc(hidden)]
#[macro_export]
macro_rules! operator_value {
    ($name:ident { $($field:ident: $type:ty = $value:expr),* }) => {
        #[repr(C)]
        #[derive(Clone, Copy, Debug, $crate::operator::Record)]
        struct $name {
            $($field: $type,)*
        }
        // The proof: every field is plain data, and there is nothing between them. It uses no name that the caller could
        // have given another meaning.
        const _: () = $crate::operator::expect_no_padding::<$name>(0 $(+ <$type as $crate::operator::PlainState>::BYTES)*);
        // SAFETY: `repr(C)`, and all of its bytes are those of fields that are plain data.
        unsafe impl $crate::operator::Zeroable for $name {}
        // SAFETY: as above.
        unsafe impl $crate::operator::Pod for $name {}
    };
}

/// Makes an [order](crate::compare::Compare) of a closure: `order!(|a: u32, b: u32| a % 10 < b % 10)`. State is named before
/// it: `order!(start: u32 = 5; |a: u32, b: u32| a - start < b - start)`. See the [module](crate::operator).
#[macro_export]
macro_rules! order {
    ($($($field:ident: $type:ty = $value:expr),+;)? |$a:ident: $key:ty, $b:ident: $same:ty| $body:expr) => {{
        $crate::operator_value!(Closure { $($($field: $type = $value),+)? });
        #[$crate::operator::operator]
        impl $crate::compare::Compare<$key> for Closure {
            fn less(&self, $a: $key, $b: $same) -> bool {
                $($(let $field = self.$field;)+)?
                $body
            }
        }
        Closure { $($($field: $value),+)? }
    }};
}

/// Makes an [equality](crate::equality::Equality) of a closure: `equality!(|a: u32, b: u32| a / 10 == b / 10)`. See the
/// [module](crate::operator).
#[macro_export]
macro_rules! equality {
    ($($($field:ident: $type:ty = $value:expr),+;)? |$a:ident: $element:ty, $b:ident: $same:ty| $body:expr) => {{
        $crate::operator_value!(Closure { $($($field: $type = $value),+)? });
        #[$crate::operator::operator]
        impl $crate::equality::Equality<$element> for Closure {
            fn equal(&self, $a: $element, $b: $same) -> bool {
                $($(let $field = self.$field;)+)?
                $body
            }
        }
        Closure { $($($field: $value),+)? }
    }};
}

/// Makes an [associative operation](crate::monoid::Monoid) of its identity and a closure:
/// `monoid!(1, |a: u64, b: u64| a * b)`. See the [module](crate::operator).
///
/// `exact;` before the rest says that the operation is [exact](crate::monoid::Monoid::EXACT), and `exact, commutative;` that it is
/// also [commutative](crate::monoid::Monoid::COMMUTATIVE): `monoid!(exact, commutative; 0, |a: u64, b: u64| a | b)`.
#[macro_export]
macro_rules! monoid {
    (exact; $($rest:tt)*) => { $crate::monoid!(@ { const EXACT: bool = true; } $($rest)*) };
    (exact, commutative; $($rest:tt)*) => {
        $crate::monoid!(@ { const EXACT: bool = true; const COMMUTATIVE: bool = true; } $($rest)*)
    };
    (@ { $($constants:tt)* } $($($field:ident: $type:ty = $value:expr),+;)? $identity:expr, |$a:ident: $element:ty, $b:ident: $same:ty| $body:expr) => {{
        $crate::operator_value!(Closure { $($($field: $type = $value),+)? });
        #[$crate::operator::operator]
        impl $crate::monoid::Monoid<$element> for Closure {
            $($constants)*

            fn identity(&self) -> $element {
                $identity
            }

            fn combine(&self, $a: $element, $b: $same) -> $element {
                $($(let $field = self.$field;)+)?
                $body
            }
        }
        Closure { $($($field: $value),+)? }
    }};
    (@ $($rest:tt)*) => { compile_error!("write `monoid!(identity, |a: T, b: T| expression)`") };
    ($($rest:tt)*) => { $crate::monoid!(@ {} $($rest)*) };
}

/// Makes a [predicate](crate::select::Predicate) of a closure: `predicate!(|x: f32| x > 0.5)`. See the
/// [module](crate::operator).
#[macro_export]
macro_rules! predicate {
    ($($($field:ident: $type:ty = $value:expr),+;)? |$item:ident: $element:ty| $body:expr) => {{
        $crate::operator_value!(Closure { $($($field: $type = $value),+)? });
        #[$crate::operator::operator]
        impl $crate::select::Predicate<$element> for Closure {
            fn test(&self, $item: $element) -> bool {
                $($(let $field = self.$field;)+)?
                $body
            }
        }
        Closure { $($($field: $value),+)? }
    }};
}

/// Makes a [bucket function](crate::multisplit::Bucket) of a closure: `bucket!(|key: u32| key % 7)`. See the
/// [module](crate::operator).
#[macro_export]
macro_rules! bucket {
    ($($($field:ident: $type:ty = $value:expr),+;)? |$key:ident: $element:ty| $body:expr) => {{
        $crate::operator_value!(Closure { $($($field: $type = $value),+)? });
        #[$crate::operator::operator]
        impl $crate::multisplit::Bucket<$element> for Closure {
            fn bucket(&self, $key: $element) -> u32 {
                $($(let $field = self.$field;)+)?
                $body
            }
        }
        Closure { $($($field: $value),+)? }
    }};
}

/// Makes an [order by a number](crate::sort::SortBy) of a closure whose result type is given:
/// `sort_by!(|key: u32| -> u64 { key as u64 % 10 })`. See the [module](crate::operator).
#[macro_export]
macro_rules! sort_by {
    ($($($field:ident: $type:ty = $value:expr),+;)? |$key:ident: $element:ty| -> $code:ty $body:block) => {{
        $crate::operator_value!(Closure { $($($field: $type = $value),+)? });
        #[$crate::operator::operator]
        impl $crate::sort::SortBy<$element> for Closure {
            type Code = $code;

            #[allow(unused_braces)]
            fn code(&self, $key: $element) -> $code {
                $($(let $field = self.$field;)+)?
                $body
            }
        }
        Closure { $($($field: $value),+)? }
    }};
}

/// Makes a [function](crate::map::Map) of one to four elements of a closure whose result type is given:
/// `map!(|x: f32, y: f32| -> f32 { x * y })`. See the [module](crate::operator).
#[macro_export]
macro_rules! map {
    ($($($field:ident: $type:ty = $value:expr),+;)? |$($a:ident: $element:ty),+| -> bool $body:block) => {
        compile_error!("a `bool` is no plain data: write `-> u8` and `u8::from(condition)`, or use `predicate!`")
    };
    ($($($field:ident: $type:ty = $value:expr),+;)? |$($a:ident: $element:ty),+| -> $result:ty $body:block) => {{
        $crate::operator_value!(Closure { $($($field: $type = $value),+)? });
        $crate::map_operator!([$($($field)+)?] [$($a: $element),+] $result, $body);
        Closure { $($($field: $value),+)? }
    }};
}

/// Implements the trait for the number of arguments.
#[doc(hidden)]
#[macro_export]
macro_rules! map_operator {
    ($state:tt [$a:ident: $A:ty] $result:ty, $body:block) => {
        $crate::map_operator!(@ $crate::map::Map<$A>, $state [$a: $A] $result, $body);
    };
    ($state:tt [$a:ident: $A:ty, $b:ident: $B:ty] $result:ty, $body:block) => {
        $crate::map_operator!(@ $crate::map::Map2<$A, $B>, $state [$a: $A, $b: $B] $result, $body);
    };
    ($state:tt [$a:ident: $A:ty, $b:ident: $B:ty, $c:ident: $C:ty] $result:ty, $body:block) => {
        $crate::map_operator!(@ $crate::map::Map3<$A, $B, $C>, $state [$a: $A, $b: $B, $c: $C] $result, $body);
    };
    ($state:tt [$a:ident: $A:ty, $b:ident: $B:ty, $c:ident: $C:ty, $d:ident: $D:ty] $result:ty, $body:block) => {
        $crate::map_operator!(
            @ $crate::map::Map4<$A, $B, $C, $D>, $state [$a: $A, $b: $B, $c: $C, $d: $D] $result, $body
        );
    };
    (@ $trait:path, [$($field:ident)*] [$($a:ident: $element:ty),+] $result:ty, $body:block) => {
        #[$crate::operator::operator]
        impl $trait for Closure {
            type Output = $result;

            #[allow(unused_braces)]
            fn map(&self, $($a: $element),+) -> $result {
                $(let $field = self.$field;)*
                $body
            }
        }
    };
}
