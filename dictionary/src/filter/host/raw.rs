//! The filter of keys whose type is known by its size alone.

use super::{Stats, theory};
use crate::filter::device::{FilterBits, FilterContains, FilterFold, FilterInsert, INSERT_TILE, QUERY_TILE, THREADS};
use crate::filter::hash::{BLOCK_BYTES, Part, Shape, WORDS};
use crate::filter::view::FilterView;
use bytemuck::Pod;
use gpu_primitives::kernel::{Reach, View};
use gpu_primitives::lowered::AnySlice;
use gpu_primitives::multisplit::Bucket;
use gpu_primitives::operator::map;
use gpu_primitives::{
    Bits, DeviceKind, DeviceSlice, DeviceValue, DeviceVec, Error, Global, Stream, bits, multisplit, transform,
};

/// A filter.
#[derive(Debug)]
pub struct RawFilter {
    words: DeviceVec<u64>,
    shape: Shape,
    key_bytes: usize,
}

/// Keys as kernels take them.
enum Keys<'a> {
    Words(DeviceSlice<'a, u32>),
    Longs(DeviceSlice<'a, u64>),
    /// The numbers that stand for keys of other sizes.
    Folded(DeviceVec<u64>),
}

/// Evaluates an expression with the keys in one of their types, `C`.
macro_rules! with_keys {
    ($from:expr, $keys:ident: $code:ident => $body:expr) => {
        match $from {
            Keys::Words($keys) => {
                type $code = u32;
                $body
            }
            Keys::Longs($keys) => {
                type $code = u64;
                $body
            }
            Keys::Folded(ref folded) => {
                type $code = u64;
                let $keys = folded.as_slice();
                $body
            }
        }
    };
}

/// The bytes of a part of a filter that stays in the caches while keys are inserted into it.
fn part_bytes(stream: &Stream) -> usize {
    match stream.device().kind() {
        // The smallest second-level cache of the GPUs with much memory has 32 MiB; two parts change at a time.
        DeviceKind::Cuda { .. } => 16 << 20,
        DeviceKind::Cpu | DeviceKind::CpuChecked => 256 << 10,
    }
}

impl RawFilter {
    pub fn new(stream: &Stream, shape: Shape, key_bytes: usize) -> Result<Self, Error> {
        let words = stream.zeroed(shape.blocks as usize * WORDS)?;
        Ok(Self { words, shape, key_bytes })
    }

    /// Makes a filter of its words, as many as the shape has.
    pub fn of_words(words: DeviceVec<u64>, shape: Shape, key_bytes: usize) -> Self {
        assert_eq!(words.len(), shape.blocks as usize * WORDS, "a filter has all blocks of its shape");
        Self { words, shape, key_bytes }
    }

    pub const fn words(&self) -> &DeviceVec<u64> {
        &self.words
    }

    pub const fn shape(&self) -> Shape {
        self.shape
    }

    pub const fn key_bytes(&self) -> usize {
        self.key_bytes
    }

    pub fn bytes(&self) -> usize {
        self.shape.blocks as usize * BLOCK_BYTES
    }

    /// Returns keys in a form that kernels take. Does not wait.
    fn keys<'a>(&self, stream: &Stream, keys: AnySlice<'a>) -> Result<Keys<'a>, Error> {
        if let Some(words) = keys.typed() {
            return Ok(Keys::Words(words));
        }
        if let Some(longs) = keys.typed() {
            return Ok(Keys::Longs(longs));
        }
        let mut numbers = stream.uninit(keys.len())?;
        if !keys.is_empty() {
            let (size, seed, blocks) = (keys.size() as u32, self.shape.seed, keys.len().div_ceil(THREADS as usize));
            let bytes = keys.bytes().view(stream)?;
            let to = numbers.view_mut(stream)?;
            // SAFETY: the bytes of the keys are theirs in pieces, if these are aligned. The result borrows them, as the view of the
            // bytes does. There is a thread and a number for every key.
            unsafe {
                let bytes = bytes.into_param();
                let pieces = Global::<u32>::from_raw(bytes.as_ptr().cast(), bytes.len() / 4);
                if keys.size().is_multiple_of(4) && bytes.as_ptr().addr().is_multiple_of(4) {
                    let pieces = View::new(pieces, Reach::none());
                    stream.launch(FilterFold::<u32>::new(pieces, size, seed, to), blocks)?;
                } else {
                    let pieces = View::new(bytes, Reach::none());
                    stream.launch(FilterFold::<u8>::new(pieces, size, seed, to), blocks)?;
                }
            }
        }
        Ok(Keys::Folded(numbers))
    }

    pub fn insert(&mut self, stream: &Stream, keys: AnySlice<'_>) -> Result<(), Error> {
        let _span = gpu_primitives::span!(stream, "filter::insert", keys.len());
        if keys.is_empty() {
            return Ok(());
        }
        let keys = self.keys(stream, keys)?;
        with_keys!(keys, keys: C => {
            let by_part = self.by_part::<C>(stream, keys)?;
            let keys = by_part.as_ref().map_or(keys, DeviceVec::as_slice);
            let kernel = FilterInsert::<C>::new(keys.view(stream)?, self.shape, self.words.view_mut(stream)?);
            // SAFETY: one block per tile. The words are those of the shape, and borrowed mutably.
            unsafe { stream.launch(kernel, keys.len().div_ceil(INSERT_TILE)) }
        })
    }

    /// Returns the number of parts by which to order so many keys before they are inserted.
    ///
    /// A sector that is not in a cache is read and written for each key. In order, it is read and written once for all its keys, if
    /// there are any to speak of.
    fn parts(&self, stream: &Stream, keys: usize) -> Option<u32> {
        let parts = self.bytes().div_ceil(part_bytes(stream)).min(multisplit::MAX_BUCKETS as usize);
        (parts > 1 && keys >= self.shape.blocks as usize).then_some(parts as u32)
    }

    /// Returns the keys in the order of the parts of the filter that they change, if that pays, and if there is memory for it.
    fn by_part<C: Pod>(&self, stream: &Stream, keys: DeviceSlice<'_, C>) -> Result<Option<DeviceVec<C>>, Error>
    where
        Part: Bucket<C>,
    {
        let Some(parts) = self.parts(stream, keys.len()) else { return Ok(None) };
        let part = Part { seed: self.shape.seed, parts, unused: 0 };
        let in_order = stream.uninit(keys.len()).and_then(|mut ordered| {
            multisplit::keys(stream, keys, &mut ordered, parts, part)?;
            Ok(ordered)
        });
        match in_order {
            Ok(ordered) => Ok(Some(ordered)),
            Err(Error::OutOfMemory { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn view<'a, C: 'static>(&'a self, stream: &Stream) -> Result<View<'a, FilterView<C>>, Error> {
        let words = self.words.view(stream)?;
        // SAFETY: the words hold all blocks of the shape. The result borrows them, as the view of the words does.
        Ok(unsafe { View::new(FilterView::new(words.into_param(), self.shape), Reach::none()) })
    }

    pub fn contains(&self, stream: &Stream, keys: AnySlice<'_>) -> Result<DeviceVec<u8>, Error> {
        let _span = gpu_primitives::span!(stream, "filter::contains", keys.len());
        let mut found = stream.uninit(keys.len())?;
        if keys.is_empty() {
            return Ok(found);
        }
        with_keys!(self.keys(stream, keys)?, keys: C => {
            let kernel = FilterContains::<C>::new(self.view(stream)?, keys.view(stream)?, found.view_mut(stream)?);
            // SAFETY: one block per tile, and a result for each key.
            unsafe { stream.launch(kernel, keys.len().div_ceil(QUERY_TILE))? };
        });
        Ok(found)
    }

    pub fn contains_bits(&self, stream: &Stream, keys: AnySlice<'_>) -> Result<DeviceVec<u8>, Error> {
        let _span = gpu_primitives::span!(stream, "filter::contains_bits", keys.len());
        let mut bits = stream.uninit(keys.len().div_ceil(8))?;
        if keys.is_empty() {
            return Ok(bits);
        }
        with_keys!(self.keys(stream, keys)?, keys: C => {
            let kernel = FilterBits::<C>::new(self.view(stream)?, keys.view(stream)?, bits.view_mut(stream)?);
            // SAFETY: one block per tile, and a byte for each eight keys.
            unsafe { stream.launch(kernel, keys.len().div_ceil(QUERY_TILE))? };
        });
        Ok(bits)
    }

    pub fn count(&self, stream: &Stream, keys: AnySlice<'_>) -> Result<DeviceValue<u64>, Error> {
        let _span = gpu_primitives::span!(stream, "filter::count", keys.len());
        let bits = self.contains_bits(stream, keys)?;
        bits::count(stream, Bits::new(&bits, 0, keys.len())?)
    }

    pub fn merge(&mut self, stream: &Stream, other: &Self) -> Result<(), Error> {
        let _span = gpu_primitives::span!(stream, "filter::merge", self.words.len());
        // The filter has its new words right after this call, but recorded work would write them only later.
        stream.refuse_recording("a merge of filters")?;
        if self.shape != other.shape {
            return Err(Error::InvalidOption {
                what: "the filter to merge with",
                asked: format!("{:?}", other.shape),
                allowed: "a filter of the same size, hashes and seed",
            });
        }
        let mut words = stream.uninit(self.words.len())?;
        transform::map2(stream, &self.words, &other.words, &mut words, map!(|a: u64, b: u64| -> u64 { a | b }))?;
        self.words = words;
        Ok(())
    }

    pub fn clear(&mut self, stream: &Stream) -> Result<(), Error> {
        gpu_primitives::transfer::fill(stream, &mut self.words, 0)
    }

    pub fn try_clone(&self, stream: &Stream) -> Result<Self, Error> {
        Ok(Self { words: self.words.try_clone(stream)?, ..*self })
    }

    pub fn stats(&self, stream: &Stream) -> Result<Stats, Error> {
        let (bytes, bits) = (self.bytes(), 8 * self.bytes());
        let bits_set = bits::count(stream, Bits::new(self.words.as_slice().bytes(), 0, bits)?)?.get(stream)?;
        let keys_per_block = theory::keys_of_fill(bits_set as f64 / bits as f64, self.shape.bits);
        Ok(Stats {
            bytes,
            hashes: WORDS as u32 * self.shape.bits,
            bits_set,
            estimated_keys: keys_per_block * f64::from(self.shape.blocks),
            false_positive_rate: theory::rate(keys_per_block, self.shape.bits),
        })
    }
}
