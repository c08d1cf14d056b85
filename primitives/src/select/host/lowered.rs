//! Selection by flags, for callers that know the sizes of their types alone: ordered dictionaries.

use crate::host::runtime::column::{AnySlice, AnySliceMut};
use crate::select::host::{flagged_any, flagged_pairs_any};
use crate::{DeviceSlice, DeviceValue, Error, Stream};

/// Selects codes of 4, 8, 16 or 32 bytes, with values of 0, 4 or 8 bytes, whose flag is not 0. Values of no size are not moved.
///
/// # Errors
/// Those of [`flagged_pairs`](crate::select::flagged_pairs).
pub fn flagged(
    stream: &Stream,
    from: (AnySlice<'_>, AnySlice<'_>),
    flags: DeviceSlice<'_, u8>,
    to: (AnySliceMut<'_>, AnySliceMut<'_>),
) -> Result<DeviceValue<u64>, Error> {
    match from.1.size() {
        0 => flagged_any(stream, from.0, flags, to.0),
        _ => flagged_pairs_any(stream, from, flags, to),
    }
}
