//! Operators that are generic, that come from macros, and whose arithmetic would panic in plain Rust.

use gpu_operator::{Recorded, operator};

trait Compare<T> {
    fn less(&self, a: T, b: T) -> bool;
    fn recorded() -> Recorded;
}

trait Combine<T> {
    fn identity(&self) -> T;
    fn combine(&self, a: T, b: T) -> T;
    fn recorded() -> Recorded;
}

/// Runs a recorded function.
fn run(recorded: &Recorded, arguments: &[&[u8]]) -> Vec<u8> {
    recorded.functions()[0].interpret(arguments, &[])
}

/// The elements in order, by their positions.
struct Lexicographic;

#[operator]
impl<const N: usize> Compare<[u32; N]> for Lexicographic {
    fn less(&self, a: [u32; N], b: [u32; N]) -> bool {
        let mut less = false;
        for i in (0..N).rev() {
            less = if a[i] == b[i] { less } else { a[i] < b[i] };
        }
        less
    }
}

#[test]
fn an_operator_may_be_generic() {
    let recorded = <Lexicographic as Compare<[u32; 3]>>::recorded();
    for a in [[0, 1, 2], [0, 2, 1], [3, 0, 0], [0, 1, 3]] {
        for b in [[0, 1, 2], [0, 2, 1], [3, 0, 0], [0, 1, 3]] {
            let result = run(&recorded, &[bytemuck::bytes_of(&a), bytemuck::bytes_of(&b)]);
            assert_eq!(Lexicographic.less(a, b), a < b);
            assert_eq!(result, [u8::from(a < b)], "{a:?} {b:?}");
        }
    }
}

/// The type and the body come from a macro.
struct Largest;

macro_rules! largest {
    ($($type:ty: $a:ident, $b:ident => $body:expr, $first:expr;)*) => { $(
        #[operator]
        impl Combine<$type> for Largest {
            #[inline(always)]
            fn identity(&self) -> $type {
                $first
            }

            #[inline(always)]
            fn combine(&self, $a: $type, $b: $type) -> $type {
                let larger: $type = $body;
                larger.max(self.identity())
            }
        }
    )* };
}

largest! {
    u32: a, b => a.max(b), <u32>::MIN;
    i16: a, b => if a < b { b } else { a }, i16::MIN;
    f32: a, b => <f32>::max(a, b) - 0.0, f32::NEG_INFINITY;
}

#[test]
fn an_operator_may_come_from_a_macro() {
    let recorded = <Largest as Combine<f32>>::recorded();
    let combine = recorded.function("combine").expect("a function of this name");
    assert!(combine.state().is_none(), "the functions call each other but read no state");
    for a in [0.0, -0.0, f32::NAN, 1.0, -7.5] {
        for b in [0.0, -0.0, f32::NAN, 1.0, -7.5] {
            let native: f32 = Largest.combine(a, b);
            let result = combine.interpret(&[&f32::to_ne_bytes(a), &f32::to_ne_bytes(b)], &[]);
            assert_eq!(result, native.to_ne_bytes(), "{a} {b}");
        }
    }
    assert_eq!(Combine::<u32>::combine(&Largest, 3, 4), 4);
    assert_eq!(Combine::<i16>::combine(&Largest, 3, -4), 3);
    assert_eq!(<Largest as Combine<i16>>::recorded().functions().len(), 2);
    assert_eq!(<Largest as Combine<u32>>::recorded().functions().len(), 2);
}

/// The arithmetic of the native function is total: none of these panics.
#[test]
fn the_native_function_does_not_panic() {
    #[operator]
    fn all(a: i32, b: i32) -> i32 {
        let mut x = a + b * a - -b;
        x += a / b;
        x -= a % b;
        x <<= b;
        x >>= a;
        x ^ a.abs() ^ x.clamp(a, b)
    }
    let numbers = [0, 1, -1, i32::MIN, i32::MAX, 31, 32, -33];
    let recorded = all::recorded();
    for a in numbers {
        for b in numbers {
            assert_eq!(run(&recorded, &[&a.to_ne_bytes(), &b.to_ne_bytes()]), all(a, b).to_ne_bytes(), "{a} {b}");
        }
    }
}
