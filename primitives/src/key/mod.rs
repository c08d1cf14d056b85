//! Keys that radix sorts take: their codes, and functions between both.

mod radix_code;
mod radix_key;

pub use radix_code::{RadixCode, ShortCode};
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) use radix_key::{CodeOf, HoleCode, KeyOf};
pub use radix_key::{FromCode, RadixKey, SortBy};
#[doc(hidden)]
pub use radix_key::{Number, bits_of, code_of, sign_of};
