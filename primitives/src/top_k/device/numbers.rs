//! Where kernels read the numbers in question.

use super::code::{Coding, Position};
use super::kernel::load_input;
use super::tile::{self, Candidates};
use crate::input::Input;
use crate::sort::ShortCode;
use crate::view::Global;

/// The numbers of the input from one on, or those of a list with their positions.
#[derive(Clone, Copy)]
pub(crate) struct Numbers<C, I, P> {
    pub input: I,
    pub coding: Coding,
    /// The index of the first element of the input.
    pub first: usize,
    pub list: Candidates<C, P>,
    pub is_list: bool,
}

impl<C: ShortCode, I: Input<C::Repr>, P: Position> Numbers<C, I, P> {
    /// Loads the `len` numbers of a warp's run from `start` on.
    ///
    /// # Safety
    /// There are so many, at most a run of them.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn load<const VEC: usize, const ROWS: usize>(self, start: usize, len: usize) -> [[C; VEC]; ROWS] {
        if self.is_list {
            tile::load::<C, Global<C>, VEC, ROWS>(self.list.codes.as_const(), start, len)
        } else {
            load_input::<C, I, VEC, ROWS>(self.input, self.coding, self.first + start, len)
        }
    }

    /// Returns a number and its position.
    ///
    /// # Safety
    /// It is there.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn get(self, at: usize) -> (C, P) {
        if self.is_list {
            (self.list.codes.get(at), self.list.positions.get(at))
        } else {
            (self.coding.encode(self.input.item(self.first + at)), P::of(at))
        }
    }

    /// Returns the position of a number.
    ///
    /// # Safety
    /// It is there.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn position(self, at: usize) -> P {
        if self.is_list { self.list.positions.get(at) } else { P::of(at) }
    }
}
