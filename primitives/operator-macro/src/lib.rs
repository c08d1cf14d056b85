//! The `#[operator]` attribute, `derive(Record)` and `derive(RadixKey)`.
//!
//! See `gpu_operator` for what operators are, and for examples. Nothing that they write needs `gpu_operator` on the
//! target `nvptx64`: there, a function stays as it was written.

mod calls;
mod derive;
mod expand;
mod plain;
mod radix_key;
mod scope;
mod statements;
#[cfg(test)]
mod tests;
mod twin;
mod vocabulary;

use proc_macro::TokenStream;

/// Keeps a function, makes its arithmetic total, and adds a twin that records what the function does.
///
/// It goes on an `impl` of a trait, on an `impl` of a type's own functions, and on a function. An `impl` gets one more
/// function, `recorded() -> gpu_operator::Recorded`; the recorded form of a function `f` is `f::recorded()`. The items of
/// `gpu_operator` are taken from `gpu_primitives::operator`. If they have another path, say so:
/// `#[operator(crate = gpu_operator)]`.
#[proc_macro_attribute]
pub fn operator(attribute: TokenStream, item: TokenStream) -> TokenStream {
    expand::operator(attribute.into(), item.into()).into()
}

/// Lets operators take, return and compute with a struct.
///
/// The struct is `repr(C)` and `bytemuck::Pod`, and its fields implement `gpu_operator::Record`. If the items of
/// `gpu_operator` have another path than `gpu_primitives::operator`, say so: `#[record(crate = gpu_operator)]`.
#[proc_macro_derive(Record, attributes(record))]
pub fn record(item: TokenStream) -> TokenStream {
    derive::record(item.into()).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Makes a struct a key of the radix sort and of the ordered dictionaries: implements `gpu_primitives::sort::RadixKey` and
/// `FromCode`.
///
/// Keys are compared field by field, the first field first, as by `derive(PartialOrd)`. The fields are numbers, and arrays of
/// numbers with a literal length; together they have at most 256 bits. Floats are ordered as by `total_cmp`. The struct
/// derives `Record`, too. If gpu-primitives has another path than `::gpu_primitives`, say so:
/// `#[radix_key(crate = path)]`.
#[proc_macro_derive(RadixKey, attributes(radix_key))]
pub fn radix_key(item: TokenStream) -> TokenStream {
    radix_key::radix_key(item.into()).unwrap_or_else(|error| error.to_compile_error()).into()
}
