//! Sources for calls that need their elements in memory.

use super::laid_out::copy_first;
use super::write_column;
use crate::host::runtime::column::{AnySlice, AnyVec, only_one};
use crate::host::source::AnyElements;
use crate::{DeviceSlice, Error, Stream};

/// The elements of a source in memory: where they lie, or in temporary memory if they were computed. A slice costs nothing; other
/// sources are evaluated in one pass.
pub(crate) enum InMemory<'a> {
    Slice(AnySlice<'a>),
    Evaluated { elements: AnyVec, count: Option<DeviceSlice<'a, u64>> },
}

impl<'a> InMemory<'a> {
    pub fn new(stream: &Stream, elements: AnyElements<'a>) -> Result<Self, Error> {
        let source = match elements {
            AnyElements::Slice(slice) => return Ok(Self::Slice(slice)),
            AnyElements::Computed(source) => source,
        };
        let count = source.count();
        let mut elements = AnyVec::uninit(stream, source.size(), source.len())?;
        write_column(stream, &source, elements.raw_view_mut(stream)?)?;
        Ok(Self::Evaluated { elements, count })
    }

    /// Keys and their values. If only the device knows the number of one, it is that of both.
    pub fn pairs(stream: &Stream, (keys, values): (AnyElements<'a>, AnyElements<'a>)) -> Result<(Self, Self), Error> {
        let count = only_one(keys.count(), values.count())?;
        Ok((Self::new(stream, keys.counted(count)?)?, Self::new(stream, values.counted(count)?)?))
    }

    /// The elements, and zeros after them if only the device knows their number: the host knows that of both.
    pub fn with_zeros(stream: &Stream, elements: AnyElements<'a>) -> Result<Self, Error> {
        if elements.count().is_none() {
            return Self::new(stream, elements);
        }
        let mut all = AnyVec::zeroed(stream, elements.size(), elements.len())?;
        let to = all.raw_view_mut(stream)?;
        match elements {
            AnyElements::Slice(slice) => copy_first(stream, slice.raw_view(stream)?, to)?,
            AnyElements::Computed(source) => write_column(stream, &source, to)?,
        }
        Ok(Self::Evaluated { elements: all, count: None })
    }

    pub fn slice(&self) -> AnySlice<'_> {
        match self {
            Self::Slice(slice) => *slice,
            Self::Evaluated { elements, count } => elements.as_slice().counted(*count),
        }
    }
}
