//! Selection by flags, for callers that know the sizes of their types alone: ordered dictionaries.

use crate::runtime::column::{AnySlice, AnySliceMut};
use crate::sized;
use crate::sort::U256;
use crate::{DeviceSlice, DeviceValue, Error, Stream};

/// Selects codes of 4, 8, 16 or 32 bytes, with values of 0, 4 or 8 bytes, whose flag is not 0. Values of no size are not moved.
///
/// # Errors
/// Those of [`flagged_pairs`](super::flagged_pairs).
pub fn flagged(
    stream: &Stream,
    from: (AnySlice<'_>, AnySlice<'_>),
    flags: DeviceSlice<'_, u8>,
    to: (AnySliceMut<'_>, AnySliceMut<'_>),
) -> Result<DeviceValue<u64>, Error> {
    sized!(from.0.size() => C in u32 | u64 | u128 | U256, {
        let keys = (from.0.typed::<C>().expect("codes are aligned"), to.0.typed::<C>().expect("codes are aligned"));
        sized!(from.1.size() => W in u32 | u64, {
            let values = (from.1.typed::<W>().expect("aligned"), to.1.typed::<W>().expect("aligned"));
            super::flagged_pairs(stream, (keys.0, values.0), flags, (keys.1, values.1))
        }, else super::flagged(stream, keys.0, flags, keys.1))
    }, else unreachable!("codes have 4, 8, 16 or 32 bytes"))
}
