//! Holes: the place of an operator in a kernel that was compiled without it.
//!
//! A kernel is compiled for elements of a size, not of a type. They are [`RegisterRepr`] in whole registers. Where the kernel
//! needs the operator, it has a line of PTX that no assembler knows:
//!
//! ```text
//! hole.less.b32x1.b64x2 %r7, %rd1, %rd2, %rd3, %rd4;
//! ```
//!
//! This one calls `less`. The result is one 32-bit register, and each of the two arguments is two 64-bit registers. When
//! the kernel is loaded for an operator, the operator's recorded body takes the line's place. On the CPU, the same
//! expression calls the operator through a pointer. The native bodies of kernels call it for many elements at once, so that
//! the operator's code is compiled into the loop.
//!
//! The state of the operator travels in the kernel's arguments. The body reads it from there.

use crate::form::{Holes, Param};
use bytemuck::Pod;
use core::mem::MaybeUninit;

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) use host::{Body, Calls, Folds, OperatorBody};

/// The largest state of an operator, in bytes.
pub const MAX_STATE: usize = 64;

/// An operator among the arguments of a kernel: its state and, for the host, its functions.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug)]
pub struct Hole {
    /// Not initialised beyond the operator, and where the operator has padding.
    state: [MaybeUninit<u64>; MAX_STATE / 8],
    /// The address of a [`OperatorBody`] that lives forever. The GPU does not use it.
    filling: u64,
    unused: u64,
}

// SAFETY: `repr(C)` plain data; the GPU does not use the address.
unsafe impl Param for Hole {
    const HOLES: Holes = Holes::FIRST;
}

/// An element that kernels with holes compute with: plain data in whole registers.
///
/// An element of another size is held in the next larger one, with zeros in the bytes that are left.
pub trait RegisterRepr: Pod {
    /// Calls `less(a, b)`.
    ///
    /// # Safety
    /// The hole was made of an order of elements that are held in this type.
    unsafe fn less(hole: &Hole, a: Self, b: Self) -> bool;

    /// Calls `equal(a, b)`.
    ///
    /// # Safety
    /// The hole was made of an equality of elements that are held in this type.
    unsafe fn equal(hole: &Hole, a: Self, b: Self) -> bool;

    /// Calls `combine(a, b)`.
    ///
    /// # Safety
    /// The hole was made of an operation on elements that are held in this type.
    unsafe fn combine(hole: &Hole, a: Self, b: Self) -> Self;

    /// Calls `test(a)`.
    ///
    /// # Safety
    /// The hole was made of a predicate for elements that are held in this type.
    unsafe fn test(hole: &Hole, a: Self) -> bool;

    /// Calls `bucket(a)`.
    ///
    /// # Safety
    /// The hole was made of a bucket function for elements that are held in this type.
    unsafe fn bucket(hole: &Hole, a: Self) -> u32;

    /// Loads element `index` of the source that the hole was made of.
    ///
    /// # Safety
    /// The elements of the source are held in this type, `index` is less than their number, and nothing writes the memory
    /// that the source reads at the same time.
    #[cfg(target_arch = "nvptx64")]
    unsafe fn load(index: u64) -> Self;

    /// Loads `VEC` elements from `index + offset` on, each slice of the source in accesses that are as wide as can be. An offset
    /// that the compiler knows costs no instruction.
    ///
    /// # Safety
    /// Same as [`load`](Self::load), for all of them. Where the source reads memory, the addresses of the first of them are
    /// multiples of 16, or of the largest power of two that divides the bytes of `VEC` elements.
    #[cfg(target_arch = "nvptx64")]
    unsafe fn load_row<const VEC: usize>(index: u64, offset: u64) -> [Self; VEC];
}

#[cfg(target_arch = "nvptx64")]
mod device {
    use super::{Hole, RegisterRepr};
    use core::arch::asm;

    macro_rules! slot {
        ($any:tt) => {
            ", {}"
        };
    }

    /// Writes the line that the operator's body replaces, with a slot for each register after the first.
    ///
    /// `pure` and `nomem`: it may be moved and merged like arithmetic. What loads is `readonly` instead. The results have
    /// registers of their own, since a body may write one before it has read all arguments.
    macro_rules! evaluate {
        ($($line:tt)*) => { line!(nomem, $($line)*) };
    }

    macro_rules! line {
        (
            $memory:ident, $function:literal $shape:literal, out($out:ident) [$first:expr $(, $result:expr)*],
            in($class:ident) [$($argument:expr),+], [$($slot:tt)*]
        ) => {
            asm!(
                concat!("hole.", $function, ".", $shape, " {}" $(, slot!($slot))*, ";"),
                out($out) $first,
                $(out($out) $result,)*
                $(in($class) $argument,)+
                options(pure, $memory, nostack, preserves_flags)
            )
        };
    }

    macro_rules! held {
        ($(
            $type:ty = $shape:literal $combine:literal $load:literal $one:literal $class:ident [$first:tt $($i:tt)*], $split:expr, $join:expr,
            rows [$($row:literal [$($at:tt)*])*];
        )*) => { $(
            impl RegisterRepr for $type {
                #[inline(always)]
                unsafe fn less(_: &Hole, a: Self, b: Self) -> bool {
                    let (a, b) = ($split(a), $split(b));
                    let result: u32;
                    evaluate!(
                        "less.b32x1" $shape, out(reg32) [result],
                        in($class) [a[$first], $(a[$i],)* b[$first] $(, b[$i])*], [$first $($i)* $first $($i)*]
                    );
                    result != 0
                }

                #[inline(always)]
                unsafe fn equal(_: &Hole, a: Self, b: Self) -> bool {
                    let (a, b) = ($split(a), $split(b));
                    let result: u32;
                    evaluate!(
                        "equal.b32x1" $shape, out(reg32) [result],
                        in($class) [a[$first], $(a[$i],)* b[$first] $(, b[$i])*], [$first $($i)* $first $($i)*]
                    );
                    result != 0
                }

                #[inline(always)]
                unsafe fn combine(_: &Hole, a: Self, b: Self) -> Self {
                    let (a, b) = ($split(a), $split(b));
                    let mut result = a;
                    evaluate!(
                        $combine $shape, out($class) [result[$first] $(, result[$i])*],
                        in($class) [a[$first], $(a[$i],)* b[$first] $(, b[$i])*], [$($i)* $first $($i)* $first $($i)*]
                    );
                    $join(result)
                }

                #[inline(always)]
                unsafe fn test(_: &Hole, a: Self) -> bool {
                    let a = $split(a);
                    let result: u32;
                    evaluate!("test.b32x1" $shape, out(reg32) [result], in($class) [a[$first] $(, a[$i])*], [$first $($i)*]);
                    result != 0
                }

                #[inline(always)]
                unsafe fn bucket(_: &Hole, a: Self) -> u32 {
                    let a = $split(a);
                    let result: u32;
                    evaluate!("bucket.b32x1" $shape, out(reg32) [result], in($class) [a[$first] $(, a[$i])*], [$first $($i)*]);
                    result
                }

                #[inline(always)]
                unsafe fn load(index: u64) -> Self {
                    let mut result = $split(bytemuck::Zeroable::zeroed());
                    line!(
                        readonly, $load "b64x1", out($class) [result[$first] $(, result[$i])*], in(reg64) [index],
                        [$($i)* 0]
                    );
                    $join(result)
                }

                #[inline(always)]
                unsafe fn load_row<const VEC: usize>(index: u64, offset: u64) -> [Self; VEC] {
                    if VEC == 1 && size_of::<Self>() > 8 {
                        let mut result = $split(bytemuck::Zeroable::zeroed());
                        line!(
                            readonly, $one "b64x1", out($class) [result[$first] $(, result[$i])*],
                            in(reg64) [index, offset], [$($i)* 0 0]
                        );
                        return [$join(result); VEC];
                    }
                    $(
                        if VEC == const { [$($at),*].len() } {
                            return load_row!($row, $class, index, offset, $join, VEC, $($at)*);
                        }
                    )*
                    core::array::from_fn(|i| Self::load(index + offset + i as u64))
                }
            }
        )* };
    }

    /// Loads a row of elements that are one register each.
    macro_rules! load_row {
        ($row:literal, $class:ident, $index:ident, $offset:ident, $join:expr, $len:ident, $first:tt $($at:tt)*) => {{
            let mut result = [Default::default(); 1 $(+ { let _ = $at; 1 })*];
            line!(
                readonly, $row "b64x1", out($class) [result[$first] $(, result[$at])*], in(reg64) [$index, $offset],
                [$($at)* 0 0]
            );
            let mut row = [bytemuck::Zeroable::zeroed(); $len];
            row[$first] = $join([result[$first]]);
            $(row[$at] = $join([result[$at]]);)*
            row
        }};
    }

    held! {
        u8 = "b8x1" "combine.b8x1" "load.b8x1" "load1.b8x1" reg32 [0], |x: u8| [x as u32], |x: [u32; 1]| x[0] as u8,
            rows ["load16.b8x1" [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15] "load4.b8x1" [0 1 2 3]];
        u16 = "b16x1" "combine.b16x1" "load.b16x1" "load1.b16x1" reg32 [0], |x: u16| [x as u32], |x: [u32; 1]| x[0] as u16,
            rows ["load8.b16x1" [0 1 2 3 4 5 6 7] "load4.b16x1" [0 1 2 3]];
        u32 = "b32x1" "combine.b32x1" "load.b32x1" "load1.b32x1" reg32 [0], |x: u32| [x], |x: [u32; 1]| x[0],
            rows ["load4.b32x1" [0 1 2 3]];
        u64 = "b64x1" "combine.b64x1" "load.b64x1" "load1.b64x1" reg64 [0], |x: u64| [x], |x: [u64; 1]| x[0],
            rows ["load2.b64x1" [0 1]];
        [u32; 3] = "b32x3" "combine.b32x3" "load.b32x3" "load1.b32x3" reg32 [0 1 2], |x: [u32; 3]| x, |x: [u32; 3]| x,
            rows [];
        [u64; 2] = "b64x2" "combine.b64x2" "load.b64x2" "load1.b64x2" reg64 [0 1], |x: [u64; 2]| x, |x: [u64; 2]| x,
            rows [];
        [u64; 4] = "b64x4" "combine.b64x4" "load.b64x4" "load1.b64x4" reg64 [0 1 2 3], |x: [u64; 4]| x, |x: [u64; 4]| x,
            rows [];
    }
}

#[cfg(not(target_arch = "nvptx64"))]
mod host {
    use super::{Hole, MAX_STATE, MaybeUninit, RegisterRepr};
    use crate::Error;
    use crate::host::load::LoadCode;
    use crate::host::recorded::Recipe;
    use crate::operator::{Recorded, Word};
    use std::any::TypeId;

    macro_rules! held {
        ($($type:ty)*) => { $(
            impl RegisterRepr for $type {
                #[inline(always)]
                unsafe fn less(hole: &Hole, a: Self, b: Self) -> bool {
                    // SAFETY: guaranteed by the caller.
                    unsafe { hole.holds(&a, &b) }
                }

                #[inline(always)]
                unsafe fn equal(hole: &Hole, a: Self, b: Self) -> bool {
                    // SAFETY: guaranteed by the caller.
                    unsafe { hole.holds(&a, &b) }
                }

                unsafe fn combine(hole: &Hole, a: Self, b: Self) -> Self {
                    // SAFETY: guaranteed by the caller.
                    unsafe { hole.call(&[&raw const a, &raw const b]) }
                }

                unsafe fn test(hole: &Hole, a: Self) -> bool {
                    // SAFETY: guaranteed by the caller.
                    unsafe { hole.call::<_, u8>(&[&raw const a]) != 0 }
                }

                unsafe fn bucket(hole: &Hole, a: Self) -> u32 {
                    // SAFETY: guaranteed by the caller.
                    unsafe { hole.call(&[&raw const a]) }
                }
            }
        )* };
    }

    held!(u8 u16 u32 u64 [u32; 3] [u64; 2] [u64; 4]);

    /// What fills a hole: a function of an operator, or what loads the elements of a source.
    pub(crate) struct OperatorBody {
        /// Tells operators apart.
        pub operator: fn() -> TypeId,
        /// The operator's type, for messages.
        pub type_name: fn() -> &'static str,
        /// Its code for GPUs.
        pub body: Body,
        /// The name of the function.
        pub function: &'static str,
        /// Calls the function with this state, once or several times. For a source, the state is the source, and the argument
        /// is the index of the first element.
        pub native: unsafe fn(*const u8, &Calls),
        /// Calls a relation with this state, for two elements.
        pub relation: Option<unsafe fn(*const u8, *const u8, *const u8) -> bool>,
        /// The loops of an associative operation.
        pub folds: Option<Folds>,
        /// Sorts by an order.
        pub sort: Option<Sort>,
        /// It loads elements of a slice as they are.
        pub is_slice: bool,
        /// For a function of one element: what loads its results for the elements of a slice, with the same state.
        pub results: Option<&'static OperatorBody>,
    }

    /// Sorts elements stably. Gets the state, the elements, the bytes from one to the next, their number, and one word for each,
    /// which moves along.
    pub(crate) type Sort = unsafe fn(*const u8, *mut u8, usize, usize, *mut u32);

    /// Calls of a function, for one element or for many.
    #[derive(Clone, Copy)]
    pub(crate) struct Calls {
        /// The arguments of the first call.
        pub arguments: [*const u8; 2],
        /// The bytes from an argument to that of the next call.
        pub step: usize,
        /// The result of the first call.
        pub results: *mut u8,
        /// The bytes from a result to the next one.
        pub result_step: usize,
        /// The number of calls.
        pub len: usize,
    }

    impl Calls {
        /// Calls `f` with one argument.
        ///
        /// # Safety
        /// There is a valid `A` for each call, and room for an `R`.
        #[inline(always)]
        pub unsafe fn unary<A: Copy, R>(&self, f: impl Fn(A) -> R) {
            // SAFETY: guaranteed by the caller.
            unsafe { self.each::<A, R>(|at| f(self.arguments[0].add(at).cast::<A>().read_unaligned())) }
        }

        /// Calls `f` with two arguments.
        ///
        /// # Safety
        /// There are two valid `A`s for each call, and room for an `R`.
        #[inline(always)]
        pub unsafe fn binary<A: Copy, R>(&self, f: impl Fn(A, A) -> R) {
            let argument = |number: usize, at: usize| {
                // SAFETY: guaranteed by the caller.
                unsafe { self.arguments[number].add(at).cast::<A>().read_unaligned() }
            };
            // SAFETY: guaranteed by the caller.
            unsafe { self.each::<A, R>(|at| f(argument(0, at), argument(1, at))) }
        }

        /// Calls `f` with where the arguments of each call are, in bytes from the first.
        ///
        /// # Safety
        /// There is room for an `R` for each call.
        #[inline(always)]
        unsafe fn each<A, R>(&self, f: impl Fn(usize) -> R) {
            if self.step == size_of::<A>() && self.result_step == size_of::<R>() {
                // Steps that the compiler knows: it can make the loop one of vectors.
                for i in 0..self.len {
                    // SAFETY: guaranteed by the caller.
                    unsafe { self.results.cast::<R>().add(i).write_unaligned(f(i * size_of::<A>())) };
                }
            } else {
                for i in 0..self.len {
                    // SAFETY: guaranteed by the caller.
                    unsafe { self.results.add(i * self.result_step).cast::<R>().write_unaligned(f(i * self.step)) };
                }
            }
        }
    }

    /// The loops of an associative operation: over `len` elements, from `*total` on, which they update. They get the state
    /// and the bytes from an element to the next one.
    #[derive(Clone, Copy)]
    pub(crate) struct Folds {
        /// The operation is [exact](crate::monoid::Monoid::EXACT).
        pub exact: bool,
        /// It is exact and [commutative](crate::monoid::Monoid::COMMUTATIVE).
        pub commutes: bool,
        /// Combines the elements.
        pub fold: unsafe fn(*const u8, *const u8, usize, usize, *mut u8),
        /// Replaces each element by the combination up to it: of those before it, or with it if the last argument is `true`.
        pub scan: unsafe fn(*const u8, *mut u8, usize, usize, *mut u8, bool),
    }

    /// The code that fills a hole.
    #[derive(Clone, Copy)]
    pub(crate) enum Body {
        /// A function of an operator.
        Recorded(Recipe),
        /// Writes the code that loads an element, and returns the registers that hold it.
        Load(fn(&mut LoadCode) -> Result<Vec<Word>, Error>),
    }

    impl OperatorBody {
        /// Describes a function of the operator `O` for `N` elements of type `T`, with a result of type `R`: the same type may
        /// be another operator for other elements.
        pub const fn new<O: 'static, T: 'static, R, const N: usize>(
            function: &'static str,
            record: fn() -> Recorded,
            native: unsafe fn(*const u8, &Calls),
        ) -> Self {
            Self::of(Recipe::new::<O, T, R>(function, record, const { &[size_of::<T>(); N] }), native)
        }

        /// Describes a function.
        pub const fn of(recipe: Recipe, native: unsafe fn(*const u8, &Calls)) -> Self {
            Self {
                operator: recipe.operator,
                type_name: recipe.type_name,
                body: Body::Recorded(recipe),
                function: recipe.function,
                native,
                relation: None,
                folds: None,
                sort: None,
                is_slice: false,
                results: None,
            }
        }
    }

    impl Hole {
        pub(crate) fn new<O: Copy>(operator: O, filling: &'static OperatorBody) -> Self {
            const { assert!(size_of::<O>() <= MAX_STATE, "the state of an operator has at most 64 bytes") };
            const { assert!(align_of::<O>() <= 16, "the state of an operator is aligned to at most 16 bytes") };
            let mut hole = Self {
                state: [MaybeUninit::zeroed(); MAX_STATE / 8],
                filling: core::ptr::from_ref(filling).expose_provenance() as u64,
                unused: 0,
            };
            // SAFETY: the state has room for the operator, and its alignment.
            unsafe { hole.state.as_mut_ptr().cast::<O>().write(operator) };
            hole
        }

        /// Returns the hole with the same state for another body.
        pub(crate) fn filled_with(&self, body: &'static OperatorBody) -> Self {
            Self { filling: core::ptr::from_ref(body).expose_provenance() as u64, ..*self }
        }

        pub(crate) fn filling(&self) -> &'static OperatorBody {
            // SAFETY: `new` stored the address of a filling that lives forever.
            unsafe { &*core::ptr::with_exposed_provenance(self.filling as usize) }
        }

        /// Calls the operator with one or two arguments.
        ///
        /// # Safety
        /// The arguments hold those of the function that the hole was made of, and `R` holds its result.
        #[inline(always)]
        unsafe fn call<A, R: bytemuck::Pod>(&self, arguments: &[*const A]) -> R {
            let mut result = R::zeroed();
            let (step, result_step) = (size_of::<A>(), size_of::<R>());
            let arguments = [arguments[0], arguments[arguments.len() - 1]].map(<*const A>::cast);
            // SAFETY: guaranteed by the caller.
            unsafe { self.run(Calls { arguments, step, results: (&raw mut result).cast(), result_step, len: 1 }) };
            result
        }

        /// Returns whether a relation holds.
        ///
        /// # Safety
        /// The hole was made of a relation of elements that an `A` holds.
        #[inline(always)]
        unsafe fn holds<A>(&self, a: &A, b: &A) -> bool {
            let relation = self.filling().relation.expect("an order or an equality");
            // SAFETY: guaranteed by the caller.
            unsafe { relation(self.state(), core::ptr::from_ref(a).cast(), core::ptr::from_ref(b).cast()) }
        }

        /// Calls the operator with each element.
        ///
        /// # Safety
        /// It is a function of one element, which an `A` holds, and `R` holds its result.
        pub(crate) unsafe fn each<A, R: bytemuck::Pod>(&self, elements: &[A], results: &mut [R]) {
            let len = elements.len().min(results.len());
            let arguments = [elements.as_ptr().cast(); 2];
            let (results, result_step) = (results.as_mut_ptr().cast(), size_of::<R>());
            // SAFETY: guaranteed by the caller.
            unsafe { self.run(Calls { arguments, step: size_of::<A>(), results, result_step, len }) };
        }

        /// Calls the operator with each element of `a` and that of `b`.
        ///
        /// # Safety
        /// It is a function of two elements, which an `A` holds, and `R` holds its result.
        pub(crate) unsafe fn each_pair<A, R: bytemuck::Pod>(&self, a: &[A], b: &[A], results: &mut [R]) {
            let len = a.len().min(b.len()).min(results.len());
            let arguments = [a.as_ptr().cast(), b.as_ptr().cast()];
            let (results, result_step) = (results.as_mut_ptr().cast(), size_of::<R>());
            // SAFETY: guaranteed by the caller.
            unsafe { self.run(Calls { arguments, step: size_of::<A>(), results, result_step, len }) };
        }

        /// Calls the operator with each element and the one after it.
        ///
        /// # Safety
        /// It is a relation of two elements, which an `A` holds.
        pub(crate) unsafe fn neighbours<A>(&self, elements: &[A], results: &mut [u8]) {
            let (first, second) = (elements, elements.get(1..).unwrap_or(&[]));
            // SAFETY: guaranteed by the caller.
            unsafe { self.each_pair(first, second, results) };
        }

        /// Combines the elements, from `total` on.
        ///
        /// # Safety
        /// The hole was made of an associative operation on elements that an `A` holds.
        pub(crate) unsafe fn fold<A: Copy>(&self, mut total: A, elements: &[A]) -> A {
            let (first, to) = (elements.as_ptr().cast(), (&raw mut total).cast());
            // SAFETY: guaranteed by the caller.
            unsafe { (self.folds().fold)(self.state(), first, size_of::<A>(), elements.len(), to) };
            total
        }

        /// Replaces each element by the combination up to it, from `total` on. Returns the combination of all.
        ///
        /// # Safety
        /// Same as [`fold`](Self::fold).
        pub(crate) unsafe fn scan<A: Copy>(&self, mut total: A, elements: &mut [A], inclusive: bool) -> A {
            let (first, to) = (elements.as_mut_ptr().cast(), (&raw mut total).cast());
            // SAFETY: guaranteed by the caller.
            unsafe { (self.folds().scan)(self.state(), first, size_of::<A>(), elements.len(), to, inclusive) };
            total
        }

        /// Sorts elements stably, and moves one word for each along.
        ///
        /// # Safety
        /// The hole was made of an order of elements that an `A` holds.
        pub(crate) unsafe fn sort<A>(&self, elements: &mut [A], words: &mut [u32]) {
            assert_eq!(elements.len(), words.len(), "there is one word for each element");
            let sort = self.filling().sort.expect("an order sorts");
            let (first, words) = (elements.as_mut_ptr().cast(), words.as_mut_ptr());
            // SAFETY: guaranteed by the caller.
            unsafe { sort(self.state(), first, size_of::<A>(), elements.len(), words) };
        }

        /// Returns whether the operation is [exact](crate::monoid::Monoid::EXACT). The hole was made of an associative one.
        pub(crate) fn is_exact(&self) -> bool {
            self.folds().exact
        }

        /// Returns whether the operation is exact and [commutative](crate::monoid::Monoid::COMMUTATIVE). The hole was made of an
        /// associative one.
        pub(crate) fn commutes(&self) -> bool {
            self.folds().commutes
        }

        fn folds(&self) -> Folds {
            self.filling().folds.expect("an associative operation has its loops")
        }

        fn state(&self) -> *const u8 {
            self.state.as_ptr().cast()
        }

        /// # Safety
        /// The calls are of the function that the hole was made of.
        #[inline(always)]
        unsafe fn run(&self, calls: Calls) {
            // SAFETY: guaranteed by the caller.
            unsafe { (self.filling().native)(self.state(), &calls) };
        }
    }
}
