//! Elements that a primitive needs in memory.

use super::write_column;
use crate::host::runtime::column::{AnySlice, AnyVec};
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

    pub fn as_slice(&self) -> AnySlice<'_> {
        match self {
            Self::Slice(slice) => *slice,
            Self::Written(memory, count) => memory.as_slice().counted(*count),
        }
    }
}
