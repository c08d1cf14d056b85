//! Values that kernels only move: kernels are instantiated for the size of the values, not for their type.
//!
//! A kernel that moves values does not depend on whether 4 bytes are a `u32`, an `f32` or a struct. So PTX exists only
//! for a few types, the *carriers*. The host passes views of other types as views of the carrier of the same size.

use super::column::Column;

/// Evaluates an expression with the types of keys and values that kernels with an order have, by their sizes:
/// `ordered!((key, value) => (H, W), …)`. Values of other sizes are [not moved](is_moved_with).
macro_rules! ordered {
    ($sizes:expr => ($key:ident, $value:ident), $body:expr) => {{
        let (key, value): (usize, usize) = $sizes;
        $crate::sized!(key => $key in u32 | u64, $crate::sized!(
            value => $value in () | u32 | u64, $body,
            else unreachable!("values of {value} bytes are moved by their indices")
        ), else $crate::sized!(key => $key in [u32; 3] | [u64; 2], $crate::sized!(
            value => $value in () | u32, $body,
            else unreachable!("values of {value} bytes are moved by their indices")
        ), else {
            assert_eq!((key, value), (32, 4), "the bytes of a key and of a value that kernels with an order have");
            type $key = [u64; 4];
            type $value = u32;
            $body
        }))
    }};
}

/// Returns whether kernels with an order move these values with keys that are held in `key` bytes. They exist for values of 4
/// and 8 bytes; with keys of over 8 bytes, for values of 4; and keys of up to 16 bytes need none.
pub(crate) fn is_moved_with(key: usize, values: Column) -> bool {
    match values.size() {
        0 => key <= 16,
        4 => values.fits::<u32>(),
        8 => key <= 8 && values.fits::<u64>(),
        _ => false,
    }
}

pub(crate) use ordered;
