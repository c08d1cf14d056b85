//! Levels in files: their arrays, one after the other. What is around them, the dictionaries write.

#![deny(unsafe_op_in_unsafe_fn)]

use super::typed::{Level, Parts};
use crate::file::{Source, ascending_codes, write_array};
use crate::{Key, Value, values_for};
use gpu_primitives::lowered::Place;
use gpu_primitives::{Error, Stream};
use std::io::{Read, Write};

/// What must be known of a level to read it.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Stored<'a> {
    /// Which level it is, for messages: what follows the name of an array.
    pub of: &'a str,
    /// The number of elements.
    pub len: usize,
    /// Whether there are marks of tombstones.
    pub has_marks: bool,
    /// Whether no key may occur twice.
    pub is_distinct: bool,
}

impl<K: Key, V: Value> Level<K, V> {
    /// Writes the arrays of the level: the codes, the values and, if there are any, the words of the marks.
    ///
    /// # Errors
    /// [`Error::Io`] if writing fails, or any error of a copy to the host.
    #[doc(hidden)]
    pub fn write(&self, stream: &Stream, writer: &mut impl Write) -> Result<(), Error> {
        let Parts { codes, values, marks } = self.parts();
        write_array(stream, writer, codes)?;
        write_array(stream, writer, values)?;
        marks.map_or(Ok(()), |marks| write_array(stream, writer, marks))
    }

    /// Reads the arrays that [`write`](Self::write) has written into a place. Also returns how many of the elements are tombstones.
    ///
    /// # Errors
    /// Those of [`Source::array`].
    #[doc(hidden)]
    pub fn read(
        source: &mut Source<impl Read>,
        stream: &Stream,
        place: Place,
        stored: Stored<'_>,
    ) -> Result<(Self, usize), Error> {
        let Stored { of, len, has_marks, is_distinct } = stored;
        let name = |array: &str| format!("the {array}{of}");
        let keys = source.array_in(stream, place, &name("keys"), len, ascending_codes::<K>(is_distinct))?;
        let values = source.array_in(stream, place, &name("values"), values_for::<V>(len), |_| Ok(()))?;
        let mut tombstones = 0;
        let marks = has_marks.then(|| {
            let mut bits_left = len;
            source.array(stream, &name("marks"), len.div_ceil(32), |part: &[u32]| {
                for &word in part {
                    // Bits past the last element have no meaning.
                    let bits = bits_left.min(32);
                    tombstones += (u64::from(word) & ((1 << bits) - 1)).count_ones() as usize;
                    bits_left -= bits;
                }
                Ok(())
            })
        });
        let marks = marks.transpose()?;
        // SAFETY: the codes were checked to ascend. All parts were read onto the stream's device by copies, which are not
        // recorded, and keys and values into this place.
        let mut level = unsafe { Self::from_parts_in(place, keys, values, marks)? };
        if is_distinct {
            level.set_distinct();
        }
        Ok((level, tombstones))
    }
}
