//! Rows in order.

use crate::Rows;
use crate::key::{Keys, Sorted};
use gpu_primitives::{Error, Stream};

/// Returns all rows in the order of their keys. Stable. Does not wait.
///
/// ```
/// use gpu_primitives::{Device, Error};
/// use gpu_relational::{Column, asc, desc, sort_by};
///
/// let stream = &Device::default()?.stream()?;
/// let (price, name) = (Column::upload(stream, &[5i64, 9, 5])?, Column::upload(stream, b"xyw")?);
/// let order = sort_by(stream, (desc(&price), asc(&name)))?;
/// assert_eq!(order.to_vec(stream)?, [1, 2, 0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::LengthMismatch`] if the key columns have different lengths, or one is shorter than the table that its [`Rows`] were made for;
/// [`Error::TooLong`] for 2^32 - 1 rows or more;
/// [`Error::OutOfMemory`]; any launch error.
pub fn sort_by<'a>(stream: &Stream, keys: impl Into<Keys<'a>>) -> Result<Rows, Error> {
    let rows = Sorted::new(stream, keys.into().codes(stream)?)?.rows;
    let len = rows.len();
    Ok(Rows::existing(rows, len))
}

/// Returns the first `k` rows in the order of their keys, or all if there are fewer.
///
/// # Errors
/// Same as [`sort_by`].
pub fn top_k<'a>(stream: &Stream, k: usize, keys: impl Into<Keys<'a>>) -> Result<Rows, Error> {
    sort_by(stream, keys)?.first(stream, k)
}
