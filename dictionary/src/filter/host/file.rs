//! The files of filters.
//!
//! # Format
//! [`file`](crate::file) describes the common format. The filter adds to the header: the bytes of a key (8), the seed (8), the
//! number of blocks (4), and the bits that a key sets in each word (4). The words follow, as one array.

use super::raw::RawFilter;
use crate::file::{Format, Source, write_array, write_section};
use crate::filter::hash::{MAX_BITS, Shape, WORDS};
use gpu_primitives::{Error, Stream};
use std::io::{Read, Write};

const FORMAT: Format = Format { magic: *b"gpu-blm\n", version: 2 };

impl RawFilter {
    pub fn save(&self, stream: &Stream, mut writer: &mut dyn Write) -> Result<(), Error> {
        let mut header = FORMAT.header::<u64, ()>();
        let shape = self.shape();
        header.extend((self.key_bytes() as u64).to_le_bytes());
        header.extend(shape.seed.to_le_bytes());
        header.extend(shape.blocks.to_le_bytes());
        header.extend(shape.bits.to_le_bytes());
        write_section(&mut writer, &header)?;
        write_array(stream, &mut writer, self.words().as_slice())?;
        writer.flush()?;
        Ok(())
    }

    pub fn load(stream: &Stream, mut reader: &mut dyn Read, key_bytes: usize) -> Result<Self, Error> {
        let mut source = Source::new(&mut reader);
        let own = |source: &mut Source<_>| {
            Ok((source.u64()?, Shape { seed: source.u64()?, blocks: source.u32()?, bits: source.u32()? }))
        };
        let (found_bytes, shape) = source.header::<u64, (), _>(FORMAT, own)?;
        if found_bytes != key_bytes as u64 {
            return Err(source.invalid(format!("its keys have {found_bytes} bytes, but {key_bytes} were expected")));
        }
        if shape.blocks == 0 || !(1..=MAX_BITS).contains(&shape.bits) {
            return Err(source.invalid(format!("there is no such filter: {shape:?}")));
        }
        let words = source.array(stream, "the blocks", shape.blocks as usize * WORDS, |_| Ok(()))?;
        Ok(Self::of_words(words, shape, key_bytes))
    }
}
