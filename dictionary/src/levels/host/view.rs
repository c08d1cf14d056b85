//! Levels as kernel arguments, on the host.

#![deny(unsafe_op_in_unsafe_fn)]

use super::types::Types;
use crate::KeyCode;
use crate::levels::device::find::Levels;
use crate::levels::device::table::Entry;
use bytemuck::Pod;
use gpu_primitives::code::Sign;
use gpu_primitives::kernel::{Reach, View};
use gpu_primitives::{Global, Stream};

/// One level as the host describes it.
pub(crate) struct LevelBuffers<'a> {
    pub slot: usize,
    /// The number of elements.
    pub len: usize,
    pub keys: View<'a, Global<u8>>,
    pub values: View<'a, Global<u8>>,
    pub marks: View<'a, Global<u32>>,
    pub directory: View<'a, Global<u64>>,
}

impl LevelBuffers<'_> {
    /// Returns the entry of the level in a table: its addresses and its length. It has no directory.
    pub fn entry(&self) -> Entry {
        // SAFETY: kernels that read the entry are launched while the level is borrowed.
        let (keys, values, marks) = unsafe {
            (self.keys.clone().into_param(), self.values.clone().into_param(), self.marks.clone().into_param())
        };
        Entry {
            keys: keys.as_ptr().expose_provenance() as u64,
            values: values.as_ptr().expose_provenance() as u64,
            marks: if marks.is_empty() { 0 } else { marks.as_ptr().expose_provenance() as u64 },
            has_operands: u32::from(marks.len() > self.len.div_ceil(32)),
            len: self.len as u32,
            directory: 0,
            first: [0; 2],
            last_bucket: 0,
            shift: 0,
        }
    }
}

/// [`Levels`], whatever their types.
#[derive(Clone)]
pub(crate) struct AnyLevels<'a> {
    pub types: &'static Types,
    table: View<'a, Global<u64>>,
    occupied: u32,
    sign: Sign,
    reach: Reach,
}

impl<'a> AnyLevels<'a> {
    /// Returns the number of levels.
    pub fn len(&self) -> usize {
        self.occupied.count_ones() as usize
    }

    /// Describes the levels whose entries are in the table, for kernels on `stream`. They convert keys by `sign`.
    pub fn new(
        types: &'static Types,
        stream: &Stream,
        table: View<'a, Global<u64>>,
        sign: Sign,
        levels: &[LevelBuffers<'a>],
    ) -> Self {
        let occupied = levels.iter().fold(0, |occupied, level| occupied | 1 << level.slot);
        let reach = Reach::when_checked(stream, || {
            let mut reach = Reach::none();
            for level in levels {
                level.keys.add_to(&mut reach);
                level.values.add_to(&mut reach);
                level.marks.add_to(&mut reach);
                level.directory.add_to(&mut reach);
            }
            reach
        });
        Self { types, table, occupied, sign, reach }
    }

    /// Returns the argument of a kernel for codes `C` and values `W`, or for codes alone.
    ///
    /// # Panics
    /// If these are not the types of the levels.
    pub fn typed<C: KeyCode, W: Pod>(self) -> View<'a, Levels<C, W>> {
        assert!(size_of::<C>() == self.types.code && [0, self.types.value].contains(&size_of::<W>()));
        // SAFETY: the table and the levels are borrowed for the lifetime of the view.
        unsafe { View::new(Levels::new(self.table.into_param(), self.occupied, self.sign), self.reach) }
    }
}
