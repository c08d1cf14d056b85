//! Where selected elements go.

use crate::host::runtime::column::{AnySliceMut, AnyVec, ColumnMut};
use crate::top_k::host::expect_positions;
use crate::{DeviceSliceMut, Error, Stream, expect_len};
use bytemuck::Pod;

/// Where selected elements go: keys, or a pair of keys and their positions.
///
/// Without positions, a call takes temporary memory for them.
///
/// ```
/// use gpu_primitives::{Device, Error, top_k};
///
/// let stream = Device::default()?.stream()?;
/// let input = stream.upload(&[2u32, 7, 5])?;
/// let (mut keys, mut positions) = (stream.uninit::<u32>(2)?, stream.uninit::<u32>(2)?);
/// top_k::largest(&stream, &input, &mut keys)?;
/// assert_eq!(keys.to_vec(&stream)?, [7, 5]);
/// top_k::smallest(&stream, &input, (&mut keys, &mut positions))?;
/// assert_eq!(keys.to_vec(&stream)?, [2, 5]);
/// assert_eq!(positions.to_vec(&stream)?, [0, 2]);
/// # Ok::<(), Error>(())
/// ```
pub trait Output<'a, K: Pod, P: Pod>: Sized {
    /// Returns the keys, and the positions if they are wanted.
    #[doc(hidden)]
    fn into_parts(self) -> (DeviceSliceMut<'a, K>, Option<DeviceSliceMut<'a, P>>);
}

/// The type of the positions is that of temporary ones, which the call chooses.
impl<'a, K: Pod, O: Into<DeviceSliceMut<'a, K>>> Output<'a, K, u32> for O {
    fn into_parts(self) -> (DeviceSliceMut<'a, K>, Option<DeviceSliceMut<'a, u32>>) {
        (self.into(), None)
    }
}

impl<'a, K: Pod, P: Pod, A: Into<DeviceSliceMut<'a, K>>, B: Into<DeviceSliceMut<'a, P>>> Output<'a, K, P> for (A, B) {
    fn into_parts(self) -> (DeviceSliceMut<'a, K>, Option<DeviceSliceMut<'a, P>>) {
        (self.0.into(), Some(self.1.into()))
    }
}

/// An output without the types of its keys and positions.
#[derive(Debug)]
pub(crate) struct AnyOutput<'a> {
    pub keys: AnySliceMut<'a>,
    positions: Option<AnySliceMut<'a>>,
}

impl<'a> AnyOutput<'a> {
    pub fn new<K: Pod, P: Pod>(output: impl Output<'a, K, P>) -> Self {
        let (keys, positions) = output.into_parts();
        Self { keys: keys.into(), positions: positions.map(Into::into) }
    }

    /// Keys without positions.
    pub fn keys(keys: AnySliceMut<'a>) -> Self {
        Self { keys, positions: None }
    }

    /// Checks that there are as many positions as keys, if they are wanted.
    pub fn expect_positions(&self, what: &'static str) -> Result<(), Error> {
        let found = self.positions.as_ref().map_or(self.keys.len(), AnySliceMut::len);
        expect_len(what, self.keys.len(), found)
    }

    /// Returns the keys, and the positions or temporary memory for them. An input of `len` elements has the positions.
    pub fn open(self, stream: &Stream, len: usize) -> Result<(AnySliceMut<'a>, Positions<'a>), Error> {
        let size = if expect_positions::<u32>(len).is_ok() { size_of::<u32>() } else { size_of::<u64>() };
        let positions = match self.positions {
            Some(positions) => Positions::Wanted(positions),
            None => Positions::Temporary(AnyVec::uninit(stream, size, self.keys.len())?),
        };
        Ok((self.keys, positions))
    }
}

/// Positions that a call writes.
#[derive(Debug)]
pub(crate) enum Positions<'a> {
    Wanted(AnySliceMut<'a>),
    Temporary(AnyVec),
}

impl Positions<'_> {
    pub fn raw_view_mut(&mut self, stream: &Stream) -> Result<ColumnMut, Error> {
        match self {
            Self::Wanted(positions) => positions.raw_view_mut(stream),
            Self::Temporary(positions) => positions.raw_view_mut(stream),
        }
    }
}
