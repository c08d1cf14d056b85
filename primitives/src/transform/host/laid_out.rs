//! Elements and values in the form in which kernels exist.
//!
//! Elements are in the smallest [type of a register](crate::hole::RegisterRepr) that has room for them: the same memory if size and
//! alignment fit, otherwise a copy. Values that kernels only move, and that are of another size than kernels move, are moved by
//! their indices and gathered at the end.

use super::{sequence, write_indices};
use crate::host::repr::repr_size_or_bytes;
use crate::host::runtime::column::{AnyVec, Column, ColumnMut};
use crate::host::source::first_of_view;
use crate::transfer::{self, GATHER_TILE, GatherWords, LEAVE};
use crate::transform::device::{TILE, TransformTiles, transform_tiles};
use crate::view::{Global, GlobalMut};
use crate::{DeviceVec, Error, Stream};
use bytemuck::Pod;
use std::alloc::Layout;

/// Elements to read, in the layout of a type.
pub(crate) struct LaidOut {
    pub view: Column,
    /// The memory of the view, if it is not that of the elements. It is freed in stream order.
    _copy: Option<AnyVec>,
}

impl LaidOut {
    pub fn new(stream: &Stream, elements: Column, layout: Layout) -> Result<Self, Error> {
        if elements.has_layout(layout) {
            return Ok(Self { view: elements, _copy: None });
        }
        let mut copy = AnyVec::uninit(stream, layout.size(), elements.len())?;
        let view = copy.raw_view_mut(stream)?;
        match elements.limit().counted() {
            Some(count) => Indices::first(stream, elements.len(), count)?.gather_held(stream, elements, view)?,
            None => gather(stream, elements, view, None)?,
        }
        Ok(Self { view: view.as_const().limited(elements.limit()), _copy: Some(copy) })
    }
}

/// Elements to write, or to change, in the layout of a type. They must be [finished](Self::finish).
#[must_use]
pub(crate) struct LaidOutMut {
    pub view: ColumnMut,
    copy: Option<AnyVec>,
    /// The elements of the copy that count, if only the device knows how many these are.
    counted: Option<Indices>,
    elements: ColumnMut,
}

impl LaidOutMut {
    /// Elements that are all written.
    pub fn new(stream: &Stream, elements: ColumnMut, layout: Layout) -> Result<Self, Error> {
        if elements.as_const().has_layout(layout) {
            return Ok(Self { view: elements, copy: None, counted: None, elements });
        }
        let mut copy = AnyVec::uninit(stream, layout.size(), elements.len())?;
        Ok(Self { view: copy.raw_view_mut(stream)?, copy: Some(copy), counted: None, elements })
    }

    /// Elements of which the first ones are written, as many as the device says; without a count, all of them. The count is known
    /// already. What takes memory happens here, so that [finishing](Self::finish) cannot fail for the lack of it when other outputs
    /// are written.
    pub fn first(
        stream: &Stream,
        elements: ColumnMut,
        layout: Layout,
        count: Option<Global<u64>>,
    ) -> Result<Self, Error> {
        let mut laid_out = Self::new(stream, elements, layout)?;
        if let Some(count) = count.filter(|_| laid_out.copy.is_some()) {
            laid_out.counted = Some(Indices::first(stream, elements.len(), count)?);
        }
        Ok(laid_out)
    }

    /// Elements that are read before they are written.
    pub fn with_contents(stream: &Stream, elements: ColumnMut, layout: Layout) -> Result<Self, Error> {
        let laid_out = Self::new(stream, elements, layout)?;
        if laid_out.copy.is_some() {
            gather(stream, elements.as_const(), laid_out.view, None)?;
        }
        Ok(laid_out)
    }

    /// Writes the first elements to their place, as many as the device says; without a count, all of them.
    pub fn finish_first(self, stream: &Stream, count: Option<Global<u64>>) -> Result<(), Error> {
        match count {
            Some(count) if self.copy.is_some() => {
                let places = Indices::first(stream, self.elements.len(), count)?;
                places.gather_held(stream, self.view.as_const(), self.elements)
            }
            _ => self.finish(stream),
        }
    }

    /// Writes the elements to their place.
    pub fn finish(self, stream: &Stream) -> Result<(), Error> {
        match (self.copy, self.counted) {
            (None, _) => Ok(()),
            (Some(_), None) => gather(stream, self.view.as_const(), self.elements, None),
            (Some(_), Some(places)) => places.gather_held(stream, self.view.as_const(), self.elements),
        }
    }
}

/// [`LaidOut`] elements of a type that is known.
pub(crate) struct ReprInput<H: Pod> {
    pub view: Global<H>,
    _elements: LaidOut,
}

impl<H: Pod> ReprInput<H> {
    pub fn new(stream: &Stream, elements: impl Into<Column>) -> Result<Self, Error> {
        let elements = LaidOut::new(stream, elements.into(), Layout::new::<H>())?;
        Ok(Self { view: elements.view.as_type(), _elements: elements })
    }
}

/// [`LaidOutMut`] elements of a type that is known.
#[must_use]
pub(crate) struct ReprOutput<H: Pod> {
    pub view: GlobalMut<H>,
    elements: LaidOutMut,
}

impl<H: Pod> ReprOutput<H> {
    /// Elements that are all written.
    pub fn new(stream: &Stream, elements: impl Into<ColumnMut>) -> Result<Self, Error> {
        let elements = LaidOutMut::new(stream, elements.into(), Layout::new::<H>())?;
        Ok(Self { view: elements.view.as_type(), elements })
    }

    /// Elements that are read before they are written.
    pub fn with_contents(stream: &Stream, elements: impl Into<ColumnMut>) -> Result<Self, Error> {
        let elements = LaidOutMut::with_contents(stream, elements.into(), Layout::new::<H>())?;
        Ok(Self { view: elements.view.as_type(), elements })
    }

    /// See [`LaidOutMut::finish_first`].
    pub fn finish_first(self, stream: &Stream, count: Option<Global<u64>>) -> Result<(), Error> {
        self.elements.finish_first(stream, count)
    }

    /// See [`LaidOutMut::finish`].
    pub fn finish(self, stream: &Stream) -> Result<(), Error> {
        self.elements.finish(stream)
    }
}

/// The indices of values that are of another size than kernels move.
pub(crate) struct Indices {
    /// The index of each value.
    pub from: DeviceVec<u32>,
    /// Where kernels move the indices to. [`LEAVE`] stands for a place that they do not write.
    pub to: DeviceVec<u32>,
}

impl Indices {
    /// The indices of `len` values, of which a kernel writes `written`.
    pub fn new(stream: &Stream, len: usize, written: usize) -> Result<Self, Error> {
        expect_indices(len)?;
        let mut from = stream.uninit::<u32>(len)?;
        sequence(stream, &mut from, 0)?;
        Ok(Self { from, to: leave_all(stream, written)? })
    }

    /// The indices of `len` places: the first ones have an element each, as many as the device says.
    pub fn first(stream: &Stream, len: usize, count: Global<u64>) -> Result<Self, Error> {
        expect_indices(len)?;
        let mut to = leave_all(stream, len)?;
        write_indices(stream, len, count, to.raw_view_mut(stream)?)?;
        Ok(Self { from: stream.uninit(0)?, to })
    }

    /// Moves elements, which may be held in another type, to where their indices are. None of them overlaps `to`.
    pub fn gather_held(&self, stream: &Stream, from: impl Into<Column>, to: impl Into<ColumnMut>) -> Result<(), Error> {
        gather(stream, from.into(), to.into(), Some(self.to.raw_view(stream)?))
    }

    /// Moves the values to where their indices are. The values are those of the sources, one after the other, of which those that
    /// count are read; none of them overlaps `values`.
    pub fn gather(&self, stream: &Stream, sources: &[Column], values: ColumnMut) -> Result<(), Error> {
        if let &[only] = sources {
            return self.gather_held(stream, only, values);
        }
        let len = sources.iter().map(|source| source.len()).sum();
        let mut all = AnyVec::uninit(stream, values.size(), len)?;
        let view = all.as_mut_slice().raw_view_mut(stream)?;
        let mut at = 0;
        for source in sources {
            copy_first(stream, *source, view.slice(at, source.len()))?;
            at += source.len();
        }
        self.gather_held(stream, view.as_const(), values)
    }
}

/// Copies the elements that count to memory of the same length and size.
pub(crate) fn copy_first(stream: &Stream, from: Column, to: ColumnMut) -> Result<(), Error> {
    let Some(count) = from.limit().counted() else { return transfer::copy_columns(stream, from, to) };
    if from.size() == 0 || from.len() == 0 {
        return Ok(());
    }
    // Larger elements are held in no register.
    if from.size() <= size_of::<[u64; 4]>() {
        transform_tiles!(repr_size_or_bytes(from.size()) => H, {
            if let (Some(from), Some(to)) = (from.typed::<H>(), to.typed::<H>()) {
                let kernel = TransformTiles::<H>::new(first_of_view(from, count), to);
                // SAFETY: one block per tile; there is room for all elements.
                return unsafe { stream.launch(kernel, from.len().div_ceil(TILE)) };
            }
        });
    }
    Indices::first(stream, from.len(), count)?.gather_held(stream, from, to)
}

fn expect_indices(len: usize) -> Result<(), Error> {
    let limit = LEAVE as usize;
    if len > limit {
        return Err(Error::TooLong { what: "items of a size that is moved by index", len, limit });
    }
    Ok(())
}

fn leave_all(stream: &Stream, len: usize) -> Result<DeviceVec<u32>, Error> {
    let mut indices = stream.uninit::<u32>(len)?;
    transfer::fill(stream, &mut indices, LEAVE)?;
    Ok(indices)
}

/// Copies elements of one type to memory of another, element `indices[i]` to place `i` (without indices, element `i`):
/// bytes that are missing become 0, bytes that are too many are left out.
fn gather(stream: &Stream, from: Column, to: ColumnMut, indices: Option<Global<u32>>) -> Result<(), Error> {
    let addresses = from.address().addr() | to.as_const().address().addr();
    match addresses | from.size() | to.size() {
        bits if bits % 8 == 0 => gather_words::<u64>(stream, from, to, indices),
        bits if bits % 4 == 0 => gather_words::<u32>(stream, from, to, indices),
        bits if bits % 2 == 0 => gather_words::<u16>(stream, from, to, indices),
        _ => gather_words::<u8>(stream, from, to, indices),
    }
}

/// [`gather`] in words that divide both sizes and both addresses.
fn gather_words<W: Pod>(
    stream: &Stream,
    from: Column,
    to: ColumnMut,
    indices: Option<Global<u32>>,
) -> Result<(), Error> {
    let (from_words, to_words) = (from.size() / size_of::<W>(), to.size() / size_of::<W>());
    let (from, to) = (from.words::<W>(), to.words::<W>());
    if to.is_empty() {
        return Ok(());
    }
    let indices = indices.unwrap_or(Global::empty());
    let kernel = GatherWords::<W>::new(from, from_words as u32, to, to_words as u32, indices);
    // SAFETY: one block per tile. Both sides have whole elements, and there is an index for each place, or an element.
    unsafe { stream.launch(kernel, to.len().div_ceil(GATHER_TILE)) }
}
