//! Elements that a primitive needs in memory.

use super::laid_out::copy_first;
use super::write_column;
use crate::host::runtime::column::{AnySlice, AnyVec, only_one};
use crate::host::source::Elements;
use crate::{DeviceSlice, Error, Stream};

/// Elements in memory: a slice as it is, or what a source has computed.
pub(crate) enum InMemory<'a> {
    Slice(AnySlice<'a>),
    /// Freed in stream order. If only the device knows how many elements there are, so many were written.
    Written(AnyVec, Option<DeviceSlice<'a, u64>>),
}

impl<'a> InMemory<'a> {
    /// Writes the elements to new memory, unless they lie in memory already.
    pub fn new(stream: &Stream, elements: Elements<'a>) -> Result<Self, Error> {
        match elements {
            Elements::Slice(slice) => Ok(Self::Slice(slice)),
            Elements::Computed(source) => {
                let mut memory = AnyVec::uninit(stream, elements.size(), elements.len())?;
                write_column(stream, &source, memory.raw_view_mut(stream)?)?;
                Ok(Self::Written(memory, elements.count()))
            }
        }
    }

    /// Keys and their values. If only the device knows the number of one, it is that of both.
    pub fn pairs(stream: &Stream, (keys, values): (Elements<'a>, Elements<'a>)) -> Result<(Self, Self), Error> {
        let count = only_one(keys.count(), values.count())?;
        Ok((Self::new(stream, keys.counted(count)?)?, Self::new(stream, values.counted(count)?)?))
    }

    /// The elements, and zeros after them if only the device knows their number: the host knows that of both.
    pub fn with_zeros(stream: &Stream, elements: Elements<'a>) -> Result<Self, Error> {
        if elements.count().is_none() {
            return Self::new(stream, elements);
        }
        let mut all = AnyVec::zeroed(stream, elements.size(), elements.len())?;
        let to = all.raw_view_mut(stream)?;
        match elements {
            Elements::Slice(slice) => copy_first(stream, slice.raw_view(stream)?, to)?,
            Elements::Computed(source) => write_column(stream, &source, to)?,
        }
        Ok(Self::Written(all, None))
    }

    pub fn as_slice(&self) -> AnySlice<'_> {
        match self {
            Self::Slice(slice) => *slice,
            Self::Written(memory, count) => memory.as_slice().counted(*count),
        }
    }
}
