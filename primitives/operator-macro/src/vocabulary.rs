//! The names that operators know.

/// The methods that can be called.
const METHODS: [&str; 49] = [
    "abs",
    "abs_diff",
    "ceil",
    "clamp",
    "cmp",
    "copysign",
    "count_ones",
    "floor",
    "is_eq",
    "is_finite",
    "is_ge",
    "is_gt",
    "is_infinite",
    "is_le",
    "is_lt",
    "is_nan",
    "is_ne",
    "is_negative",
    "is_positive",
    "is_power_of_two",
    "is_sign_negative",
    "is_sign_positive",
    "leading_zeros",
    "max",
    "min",
    "mul_add",
    "recip",
    "reverse",
    "reverse_bits",
    "rotate_left",
    "rotate_right",
    "round_ties_even",
    "saturating_add",
    "saturating_sub",
    "signum",
    "sqrt",
    "swap_bytes",
    "then",
    "to_bits",
    "to_f32",
    "total_cmp",
    "trailing_zeros",
    "trunc",
    "wrapping_add",
    "wrapping_mul",
    "wrapping_neg",
    "wrapping_shl",
    "wrapping_shr",
    "wrapping_sub",
];

/// The functions of a number's type that are no methods.
const FUNCTIONS: [&str; 3] = ["from", "from_bits", "from_f32"];

/// The types of numbers.
const NUMBERS: [&str; 15] =
    ["bool", "u8", "u16", "u32", "u64", "u128", "i8", "i16", "i32", "i64", "i128", "f16", "bf16", "f32", "f64"];

/// Returns whether operators know this method.
pub fn is_method(name: &str) -> bool {
    METHODS.contains(&name)
}

/// Returns whether operators know this function of a number's type.
pub fn is_number_function(name: &str) -> bool {
    is_method(name) || FUNCTIONS.contains(&name)
}

/// Returns whether this is the name of a number's type.
pub fn is_number(name: &str) -> bool {
    NUMBERS.contains(&name)
}

/// Returns whether the method takes its argument by reference.
pub fn takes_reference(method: &str) -> bool {
    matches!(method, "cmp" | "total_cmp")
}

/// Returns whether a name is that of a type, a variant or a constant: these begin with a capital letter.
pub fn is_capitalised(name: &str) -> bool {
    name.trim_start_matches('_').chars().next().is_some_and(char::is_uppercase)
}
