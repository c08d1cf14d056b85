//! The operations, as operators of one line each.

use super::Case;
use super::operands::Operand;
use crate::operator;

/// Writes operators, and a function that appends them as cases.
macro_rules! operators {
    ($of:ident; $(fn $name:ident($($argument:ident: $type:ident),*) -> $result:ident $body:block)*) => {
        $(
            #[operator]
            fn $name($($argument: $type),*) -> $result $body
        )*

        pub(super) fn append(cases: &mut Vec<Case>) {
            $(
                let entry = concat!(stringify!($of), "_", stringify!($name)).to_owned();
                cases.push(Case::new(entry, &$name::recorded(), |operands, _| {
                    let mut operands = operands.iter();
                    $name($(<$type as Operand>::of({ let _ = stringify!($argument); operands.next().expect("an operand") })),*).bytes()
                }));
            )*
        }
    };
}

macro_rules! modules {
    ($macro:ident: $($module:ident $($type:ident)*;)*) => { $(
        #[allow(clippy::all)]
        mod $module {
            use super::*;
            $macro!($module $($type)*);
        }
    )* };
}

macro_rules! integer {
    ($of:ident $t:ident $unsigned:ident) => {
        operators! { $of;
            fn add(a: $t, b: $t) -> $t { a + b }
            fn sub(a: $t, b: $t) -> $t { a - b }
            fn mul(a: $t, b: $t) -> $t { a * b }
            fn and(a: $t, b: $t) -> $t { a & b }
            fn or(a: $t, b: $t) -> $t { a | b }
            fn xor(a: $t, b: $t) -> $t { a ^ b }
            fn not(a: $t) -> $t { !a }
            fn shl(a: $t, b: u32) -> $t { a << b }
            fn shr(a: $t, b: u32) -> $t { a >> b }
            fn shl_own(a: $t, b: $t) -> $t { a << b }
            fn shr_own(a: $t, b: $t) -> $t { a >> b }
            fn shl_3(a: $t) -> $t { a << 3 }
            fn shr_5(a: $t) -> $t { a >> 5 }
            fn shl_far(a: $t) -> $t { a << 100 }
            fn shr_far(a: $t) -> $t { a >> 68 }
            fn eq(a: $t, b: $t) -> bool { a == b }
            fn ne(a: $t, b: $t) -> bool { a != b }
            fn lt(a: $t, b: $t) -> bool { a < b }
            fn le(a: $t, b: $t) -> bool { a <= b }
            fn gt(a: $t, b: $t) -> bool { a > b }
            fn ge(a: $t, b: $t) -> bool { a >= b }
            fn cmp_lt(a: $t, b: $t) -> bool { a.cmp(&b).is_lt() }
            fn cmp_le(a: $t, b: $t) -> bool { a.cmp(&b).reverse().is_ge() }
            fn cmp_gt(a: $t, b: $t) -> bool { a.cmp(&b).is_gt() }
            fn cmp_ne(a: $t, b: $t) -> bool { a.cmp(&b).then(b.cmp(&a)).is_ne() }
            fn cmp_eq(a: $t, b: $t) -> bool { a.cmp(&b).is_eq() && a.cmp(&b).is_le() }
            fn pair_lt(a: $t, b: $t, c: $t) -> bool { (a, b) < (b, c) }
            fn pair_ge(a: $t, b: $t, c: $t) -> bool { [a, b] >= [b, c] }
            fn min(a: $t, b: $t) -> $t { a.min(b) }
            fn max(a: $t, b: $t) -> $t { a.max(b) }
            fn clamp(a: $t, b: $t, c: $t) -> $t { a.clamp(b, c) }
            fn abs_diff(a: $t, b: $t) -> $unsigned { a.abs_diff(b) }
            fn wrapping_add(a: $t, b: $t) -> $t { a.wrapping_add(b) }
            fn wrapping_sub(a: $t, b: $t) -> $t { a.wrapping_sub(b) }
            fn wrapping_mul(a: $t, b: $t) -> $t { a.wrapping_mul(b) }
            fn wrapping_neg(a: $t) -> $t { a.wrapping_neg() }
            fn wrapping_shl(a: $t, b: u32) -> $t { a.wrapping_shl(b) }
            fn wrapping_shr(a: $t, b: u32) -> $t { a.wrapping_shr(b) }
            fn saturating_add(a: $t, b: $t) -> $t { a.saturating_add(b) }
            fn saturating_sub(a: $t, b: $t) -> $t { a.saturating_sub(b) }
            fn count_ones(a: $t) -> u32 { a.count_ones() }
            fn leading_zeros(a: $t) -> u32 { a.leading_zeros() }
            fn trailing_zeros(a: $t) -> u32 { a.trailing_zeros() }
            fn rotate_left(a: $t, b: u32) -> $t { a.rotate_left(b) }
            fn rotate_right(a: $t, b: u32) -> $t { a.rotate_right(b) }
            fn rotate_left_5(a: $t) -> $t { a.rotate_left(5) }
            fn swap_bytes(a: $t) -> $t { a.swap_bytes() }
            fn reverse_bits(a: $t) -> $t { a.reverse_bits() }
            fn select(a: $t, b: $t, c: $t) -> $t { if a < b { c } else { a } }
            fn polynomial(a: $t, b: $t, c: $t) -> $t { (a * 3 + b) * a - (c ^ 85) * b }
            fn to_u8(a: $t) -> u8 { a as u8 }
            fn to_u16(a: $t) -> u16 { a as u16 }
            fn to_u32(a: $t) -> u32 { a as u32 }
            fn to_u64(a: $t) -> u64 { a as u64 }
            fn to_u128(a: $t) -> u128 { a as u128 }
            fn to_i8(a: $t) -> i8 { a as i8 }
            fn to_i16(a: $t) -> i16 { a as i16 }
            fn to_i32(a: $t) -> i32 { a as i32 }
            fn to_i64(a: $t) -> i64 { a as i64 }
            fn to_i128(a: $t) -> i128 { a as i128 }
        }
    };
}

macro_rules! divided {
    ($of:ident $t:ident) => {
        operators! { $of;
            fn div(a: $t, b: $t) -> $t { a / b }
            fn rem(a: $t, b: $t) -> $t { a % b }
            fn div_by_7(a: $t) -> $t { a / 7 }
            fn rem_by_8(a: $t) -> $t { a % 8 }
            fn div_by_zero(a: $t) -> $t { a / 0 }
            fn rem_by_zero(a: $t) -> $t { a % 0 }
            fn divide_100(a: $t) -> $t { 100 / a }
            fn to_f32(a: $t) -> f32 { a as f32 }
            fn to_f64(a: $t) -> f64 { a as f64 }
        }
    };
}

macro_rules! signed {
    ($of:ident $t:ident) => {
        operators! { $of;
            fn neg(a: $t) -> $t { -a }
            fn abs(a: $t) -> $t { a.abs() }
            fn signum(a: $t) -> $t { a.signum() }
            fn is_negative(a: $t) -> bool { a.is_negative() }
            fn is_positive(a: $t) -> bool { a.is_positive() }
            fn minus_one(a: $t) -> $t { a * -1 }
        }
    };
}

macro_rules! unsigned {
    ($of:ident $t:ident) => {
        operators! { $of;
            fn is_power_of_two(a: $t) -> bool { a.is_power_of_two() }
            fn class(a: $t) -> u8 { match a { 0 => 9, 1 | 3 => 8, 4..=100 => 7, $t::MAX => 6, _ => 5 } }
        }
    };
}

macro_rules! float {
    ($of:ident $t:ident $bits:ident) => {
        operators! { $of;
            fn add(a: $t, b: $t) -> $t { a + b }
            fn sub(a: $t, b: $t) -> $t { a - b }
            fn mul(a: $t, b: $t) -> $t { a * b }
            fn div(a: $t, b: $t) -> $t { a / b }
            fn neg(a: $t) -> $t { -a }
            fn eq(a: $t, b: $t) -> bool { a == b }
            fn ne(a: $t, b: $t) -> bool { a != b }
            fn lt(a: $t, b: $t) -> bool { a < b }
            fn le(a: $t, b: $t) -> bool { a <= b }
            fn gt(a: $t, b: $t) -> bool { a > b }
            fn ge(a: $t, b: $t) -> bool { a >= b }
            fn pair_lt(a: $t, b: $t, c: $t) -> bool { (a, b) < (b, c) }
            fn pair_ge(a: $t, b: $t, c: $t) -> bool { (a, b) >= (b, c) }
            fn min(a: $t, b: $t) -> $t { a.min(b) }
            fn max(a: $t, b: $t) -> $t { a.max(b) }
            fn clamp(a: $t, b: $t, c: $t) -> $t { a.clamp(b, c) }
            fn signum(a: $t) -> $t { a.signum() }
            fn copysign(a: $t, b: $t) -> $t { a.copysign(b) }
            fn is_nan(a: $t) -> bool { a.is_nan() }
            fn is_finite(a: $t) -> bool { a.is_finite() }
            fn is_infinite(a: $t) -> bool { a.is_infinite() }
            fn is_sign_negative(a: $t) -> bool { a.is_sign_negative() }
            fn is_sign_positive(a: $t) -> bool { a.is_sign_positive() }
            fn to_bits(a: $t) -> $bits { a.to_bits() }
            fn from_bits(a: $bits) -> $t { $t::from_bits(a) }
            fn total_lt(a: $t, b: $t) -> bool { a.total_cmp(&b).is_lt() }
            fn total_ge(a: $t, b: $t) -> bool { a.total_cmp(&b).is_ge() }
            fn select(a: $t, b: $t, c: $t) -> $t { if a < b { c } else { a } }
            fn negated_bits(a: $t) -> $bits { (-a).to_bits() }
            fn no_contraction(a: $t, b: $t, c: $t) -> $t { a * b + c }
        }
    };
}

macro_rules! full_float {
    ($of:ident $t:ident) => {
        operators! { $of;
            fn abs(a: $t) -> $t { a.abs() }
            fn sqrt(a: $t) -> $t { a.sqrt() }
            fn mul_add(a: $t, b: $t, c: $t) -> $t { a.mul_add(b, c) }
            fn floor(a: $t) -> $t { a.floor() }
            fn ceil(a: $t) -> $t { a.ceil() }
            fn trunc(a: $t) -> $t { a.trunc() }
            fn round_ties_even(a: $t) -> $t { a.round_ties_even() }
            fn recip(a: $t) -> $t { a.recip() }
            fn polynomial(a: $t, b: $t, c: $t) -> $t { (a * 3.0 + b) * a - c / -1.5 }
            fn to_u8(a: $t) -> u8 { a as u8 }
            fn to_u16(a: $t) -> u16 { a as u16 }
            fn to_u32(a: $t) -> u32 { a as u32 }
            fn to_u64(a: $t) -> u64 { a as u64 }
            fn to_i8(a: $t) -> i8 { a as i8 }
            fn to_i16(a: $t) -> i16 { a as i16 }
            fn to_i32(a: $t) -> i32 { a as i32 }
            fn to_i64(a: $t) -> i64 { a as i64 }
            fn to_f32(a: $t) -> f32 { a as f32 }
            fn to_f64(a: $t) -> f64 { a as f64 }
        }
    };
}

#[cfg(feature = "half")]
macro_rules! half_float {
    ($of:ident $t:ident) => {
        operators! { $of;
            fn to_f32(a: $t) -> f32 { a.to_f32() }
            fn from_f32(a: f32) -> $t { $t::from_f32(a) }
        }
    };
}

modules! { integer:
    u8_integer u8 u8;
    u16_integer u16 u16;
    u32_integer u32 u32;
    u64_integer u64 u64;
    u128_integer u128 u128;
    i8_integer i8 u8;
    i16_integer i16 u16;
    i32_integer i32 u32;
    i64_integer i64 u64;
    i128_integer i128 u128;
}
modules! { divided:
    u8_divided u8;
    u16_divided u16;
    u32_divided u32;
    u64_divided u64;
    i8_divided i8;
    i16_divided i16;
    i32_divided i32;
    i64_divided i64;
}
modules! { signed:
    i8_signed i8;
    i16_signed i16;
    i32_signed i32;
    i64_signed i64;
    i128_signed i128;
}
modules! { unsigned:
    u8_unsigned u8;
    u16_unsigned u16;
    u32_unsigned u32;
    u64_unsigned u64;
    u128_unsigned u128;
}
modules! { float:
    f32_float f32 u32;
    f64_float f64 u64;
}
modules! { full_float:
    f32_full f32;
    f64_full f64;
}

#[cfg(feature = "half")]
mod halves {
    use super::{Case, Operand, operator};
    use half::{bf16, f16};

    modules! { float:
        f16_float f16 u16;
        bf16_float bf16 u16;
    }
    modules! { half_float:
        f16_half f16;
        bf16_half bf16;
    }

    pub(super) const APPEND: [fn(&mut Vec<Case>); 4] =
        [f16_float::append, bf16_float::append, f16_half::append, bf16_half::append];
}

#[allow(clippy::all)]
mod boolean {
    use super::*;

    operators! { bool;
        fn and(a: bool, b: bool) -> bool { a && b }
        fn or(a: bool, b: bool) -> bool { a || b }
        fn bitand(a: bool, b: bool) -> bool { a & b }
        fn bitor(a: bool, b: bool) -> bool { a | b }
        fn xor(a: bool, b: bool) -> bool { a ^ b }
        fn not(a: bool) -> bool { !a }
        fn eq(a: bool, b: bool) -> bool { a == b }
        fn ne(a: bool, b: bool) -> bool { a != b }
        fn lt(a: bool, b: bool) -> bool { a < b }
        fn le(a: bool, b: bool) -> bool { a <= b }
        fn cmp_gt(a: bool, b: bool) -> bool { a.cmp(&b).is_gt() }
        fn select(a: bool, b: bool, c: bool) -> bool { if a { b } else { c } }
        fn select_number(a: bool, b: u32, c: u32) -> u32 { if a { b } else { c } }
        fn to_u8(a: bool) -> u8 { a as u8 }
        fn to_u32(a: bool) -> u32 { a as u32 }
        fn to_u64(a: bool) -> u64 { a as u64 }
        fn to_u128(a: bool) -> u128 { a as u128 }
        fn to_i16(a: bool) -> i16 { a as i16 }
        fn to_i128(a: bool) -> i128 { a as i128 }
    }
}

/// Returns every case.
pub(super) fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    let append: [fn(&mut Vec<Case>); 33] = [
        u8_integer::append,
        u16_integer::append,
        u32_integer::append,
        u64_integer::append,
        u128_integer::append,
        i8_integer::append,
        i16_integer::append,
        i32_integer::append,
        i64_integer::append,
        i128_integer::append,
        u8_divided::append,
        u16_divided::append,
        u32_divided::append,
        u64_divided::append,
        i8_divided::append,
        i16_divided::append,
        i32_divided::append,
        i64_divided::append,
        i8_signed::append,
        i16_signed::append,
        i32_signed::append,
        i64_signed::append,
        i128_signed::append,
        u8_unsigned::append,
        u16_unsigned::append,
        u32_unsigned::append,
        u64_unsigned::append,
        u128_unsigned::append,
        f32_float::append,
        f64_float::append,
        f32_full::append,
        f64_full::append,
        boolean::append,
    ];
    append.iter().for_each(|append| append(&mut cases));
    #[cfg(feature = "half")]
    halves::APPEND.iter().for_each(|append| append(&mut cases));
    cases
}
