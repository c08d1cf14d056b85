//! Operators and keys that lie. Their traits are implemented by hand, in safe code.

use bytemuck::{Pod, Zeroable};
use gpu_primitives::compare::Compare;
use gpu_primitives::equality::Equality;
use gpu_primitives::histogram::Sample;
use gpu_primitives::map::{Map, Map2, Map3, Map4};
use gpu_primitives::monoid::Monoid;
use gpu_primitives::multisplit::Bucket;
use gpu_primitives::operator::{Record, Recorded, operator};
use gpu_primitives::select::Predicate;
use gpu_primitives::sort::{Buckets, FromCode, RadixKey, SortBy};
use gpu_primitives::source::Number;
use std::cell::Cell;
use std::panic::panic_any;
use std::sync::atomic::{AtomicU32, Ordering};

/// How answers differ from the truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// Every other answer is wrong.
    Alternating,
    /// Some answers in a row are wrong.
    InRuns,
    /// Answers are thrown with dice.
    Random,
    /// Answers are as large as can be.
    Largest,
    /// Some calls panic.
    SometimesPanic,
    /// All calls panic.
    Panic,
}

/// What operators say when they panic.
pub const PANIC: &str = "an operator panics";

impl Lie {
    pub const ALL: [Self; 6] =
        [Self::Alternating, Self::InRuns, Self::Random, Self::Largest, Self::SometimesPanic, Self::Panic];

    /// Returns what the next answer is off by; 0 if it is true.
    fn next(self) -> u32 {
        static CALLS: AtomicU32 = AtomicU32::new(0);
        let call = CALLS.fetch_add(1, Ordering::Relaxed);
        match self {
            Self::Alternating => call & 1,
            Self::InRuns => (call / 61) & 1,
            Self::Random => (call ^ call >> 7).wrapping_mul(0x9E37_79B1) >> (call & 15),
            Self::Largest => u32::MAX,
            Self::SometimesPanic if !call.is_multiple_of(97) => 0,
            Self::SometimesPanic | Self::Panic => panic_any(PANIC),
        }
    }
}

thread_local! {
    /// The lie of the operators that this thread makes.
    static LIE: Cell<Lie> = const { Cell::new(Lie::Random) };
}

/// Chooses the lie of the operators that this thread makes.
pub fn choose(lie: Lie) {
    LIE.set(lie);
}

/// An operator of every kind that lies on the CPU. GPUs get what is recorded: the truth.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable, Record)]
pub struct Liar {
    lie: u32,
}

impl Liar {
    pub fn new(lie: Lie) -> Self {
        Self { lie: lie as u32 }
    }

    /// Returns one with the chosen lie.
    pub fn chosen() -> Self {
        Self::new(LIE.get())
    }

    fn next(self) -> u32 {
        Lie::ALL[self.lie as usize].next()
    }

    fn is_lying(self) -> bool {
        self.next() & 1 == 1
    }
}

/// What is recorded in place of the lies.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable, Record)]
pub struct Truth {
    lie: u32,
}

/// Implements a trait twice: the truth, and the lie by hand.
macro_rules! lies {
    ($($trait:path {
        $(type $name:ident = $type:ty;)?
        $(fn $function:ident(&$this:ident $(, $argument:ident: $of:ty)*) -> $result:ty { $truth:expr } or { $lie:expr })+
    })*) => { $(
        #[operator]
        impl $trait for Truth {
            $(type $name = $type;)?
            $(fn $function(&self $(, $argument: $of)*) -> $result {
                $truth
            })+
        }

        impl $trait for Liar {
            $(type $name = $type;)?
            $(fn $function(&$this $(, $argument: $of)*) -> $result {
                $lie
            })+

            fn recorded() -> Recorded {
                <Truth as $trait>::recorded()
            }
        }
    )* };
}

lies! {
    Compare<u32> {
        fn less(&self, a: u32, b: u32) -> bool { a < b } or { (a < b) != self.is_lying() }
    }
    Equality<u32> {
        fn equal(&self, a: u32, b: u32) -> bool { a == b } or { (a == b) != self.is_lying() }
    }
    Predicate<u32> {
        fn test(&self, item: u32) -> bool { item % 2 == 0 } or { item.is_multiple_of(2) != self.is_lying() }
    }
    Bucket<u32> {
        fn bucket(&self, key: u32) -> u32 { key % 16 } or { (key % 16) ^ self.next() }
    }
    Monoid<u32> {
        fn identity(&self) -> u32 { 0 } or { self.next() }
        fn combine(&self, a: u32, b: u32) -> u32 { a + b } or { a.wrapping_add(b) ^ self.next() }
    }
    SortBy<u32> {
        type Code = u32;
        fn code(&self, key: u32) -> u32 { key } or { key ^ self.next() }
    }
    Map<u32> {
        type Output = u32;
        fn map(&self, a: u32) -> u32 { a } or { a ^ self.next() }
    }
    Map<u64> {
        type Output = Untrue;
        fn map(&self, a: u64) -> Untrue { Untrue { number: a as u32 } } or { Untrue { number: a as u32 ^ self.next() } }
    }
    Map2<u32, u32> {
        type Output = u32;
        fn map(&self, a: u32, b: u32) -> u32 { a + b } or { a ^ b ^ self.next() }
    }
    Map2<Untrue, u64> {
        type Output = [u64; 2];
        fn map(&self, a: Untrue, b: u64) -> [u64; 2] { [a.number as u64, b] } or {
            [(a.number ^ self.next()) as u64, b ^ (self.next() as u64) << 32]
        }
    }
    Map3<u32, u32, u32> {
        type Output = u32;
        fn map(&self, a: u32, b: u32, c: u32) -> u32 { a + b + c } or { a ^ b ^ c ^ self.next() }
    }
    Map4<u32, u32, u32, u32> {
        type Output = u32;
        fn map(&self, a: u32, b: u32, c: u32, d: u32) -> u32 { a + b + c + d } or { a ^ b ^ c ^ d ^ self.next() }
    }
    Bucket<Untrue> {
        fn bucket(&self, key: Untrue) -> u32 { key.number % 4 } or { (key.number % 4) ^ self.next() }
    }
    Compare<Untrue> {
        fn less(&self, a: Untrue, b: Untrue) -> bool { a.number < b.number } or { (a.number < b.number) != self.is_lying() }
    }
}

impl Default for Liar {
    fn default() -> Self {
        Self::new(Lie::Random)
    }
}

/// A number that lies about its code, its bins, its rank and what comes after it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, Record)]
pub struct Untrue {
    number: u32,
}

/// What is recorded in place of the lies.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable, Record)]
struct Frank {
    number: u32,
}

#[operator]
impl RadixKey for Frank {
    type Code = u32;
    fn code(key: Self) -> u32 {
        key.number
    }
}

#[operator]
impl FromCode for Frank {
    fn from_code(code: u32) -> Self {
        Frank { number: code }
    }
}

impl RadixKey for Untrue {
    type Code = u32;

    fn code(key: Self) -> u32 {
        key.number ^ Lie::Random.next()
    }

    fn recorded() -> Recorded {
        <Frank as RadixKey>::recorded()
    }
}

impl FromCode for Untrue {
    fn from_code(code: u32) -> Self {
        Self { number: code ^ Lie::Random.next() }
    }

    fn recorded() -> Recorded {
        <Frank as FromCode>::recorded()
    }
}

impl Sample for Untrue {
    type Even = Liar;
    type Order = Liar;

    fn even(_: Self, _: Self, _: u32) -> Liar {
        Liar::chosen()
    }
}

impl Number for Untrue {
    type From = Liar;

    fn from(self) -> Liar {
        Liar::chosen()
    }
}

impl Untrue {
    pub const fn new(number: u32) -> Self {
        Self { number }
    }
}

/// Digits that lie in every function, also in those that the trait provides.
impl Buckets<u32> for Liar {
    const MAX_PASSES: usize = 3;

    fn bucket(&self, key: u32, pass: u32) -> u32 {
        (key >> (8 * pass)) ^ self.next()
    }

    fn last(&self, _: u32) -> u32 {
        15 ^ self.next()
    }

    fn is_any_order(&self, _: u32) -> bool {
        self.is_lying()
    }

    fn buckets(&self, keys: &[u32], _: u32, buckets: &mut [u32]) {
        for (bucket, key) in buckets.iter_mut().zip(keys) {
            *bucket = key ^ self.next();
        }
    }
}
