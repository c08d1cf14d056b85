//! The choice of a kernel's shape: a number that is computed from types becomes a constant parameter.

/// Evaluates an expression with a constant that equals a computed number: `with_shape!(ITEMS in 15 | 9 | 5 =
/// items::<K, V>(), run::<K, V, ITEMS>(…))`.
///
/// The number is a constant expression that may depend on type parameters, which stable Rust does not accept as a
/// constant argument. Only the listed number that it equals is compiled. A number that is not listed does not compile.
#[doc(hidden)]
#[macro_export]
macro_rules! with_shape {
    ($name:ident in $($listed:literal)|+ = $number:expr, $body:expr) => {
        match const {
            let number: usize = $number;
            assert!($(number == $listed)||+, concat!("`", stringify!($name), "` is not a listed number"));
            number
        } {
            $($listed => {
                const $name: usize = $listed;
                $body
            })+
            _ => unreachable!(),
        }
    };
}

/// Returns whether tiles of so many threads are in use. Tests also try smaller ones, which no list has: they compile these
/// themselves.
pub(crate) const fn is_for_use(threads: u32) -> bool {
    threads >= 128
}
