//! Hashes of keys of any plain type, and comparisons of their bytes.

use super::build::MAX_KEYS;
use super::options::random_seed;
use super::plain::NAME;
use crate::device::{ENTRIES_PER_POSITION, Entries, FindClashes, HashKeys, MAX_WORDS, PROBE_THREADS, Sums, VerifyKeys};
use crate::hash::Hash;
use bytemuck::Pod;
use gpu_primitives::kernel::{Reach, View};
use gpu_primitives::lowered::AnySlice;
use gpu_primitives::{DeviceVec, Error, Global, Stream};

/// A hash function of 64 bits for plain keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hasher {
    sums: Sums,
    /// Where the search for clashes begins.
    order: Hash,
    /// The bits that hashes may have: all of them, except in tests.
    mask: u64,
}

/// Evaluates an expression with the type `P`: `u32` if all of these slices can be read in words of 4 bytes, otherwise `u8`.
macro_rules! with_pieces {
    ($($slice:expr),+; $body:expr) => {
        if $(has_words($slice))&&+ {
            type P = u32;
            $body
        } else {
            type P = u8;
            $body
        }
    };
}

/// The most bytes of a key.
const MAX_KEY: usize = 4 * MAX_WORDS;

/// Returns whether keys can be read in words of 4 bytes.
fn has_words(keys: AnySlice<'_>) -> bool {
    keys.size().is_multiple_of(4) && keys.bytes().as_ptr().addr().is_multiple_of(4)
}

/// Returns the pieces of keys, as an argument for kernels on `stream`. They must be aligned, and a key must consist of them.
fn pieces<'a, P: Pod>(stream: &Stream, keys: AnySlice<'a>) -> Result<View<'a, Global<P>>, Error> {
    assert!(matches!(keys.size(), 1..=MAX_KEY) && keys.size().is_multiple_of(size_of::<P>()));
    let len = keys.len() * (keys.size() / size_of::<P>());
    // SAFETY: the same bytes. The result borrows them, as the view of the keys does.
    unsafe {
        let keys = keys.bytes().view(stream)?.into_param();
        Ok(View::new(Global::from_raw(keys.as_ptr().cast(), len), Reach::none()))
    }
}

/// Returns the number of blocks with a thread for each of `len` keys.
fn blocks(len: usize) -> usize {
    len.div_ceil(PROBE_THREADS as usize)
}

impl Hasher {
    pub fn new(seed: u64) -> Self {
        Self { sums: Sums::new(seed), order: Hash::new(seed, 1, 1), mask: u64::MAX }
    }

    /// Returns a weaker one, whose hashes have only so many bits: for tests.
    #[cfg(test)]
    pub fn with_bits(self, bits: u32) -> Self {
        Self { mask: (1 << bits) - 1, ..self }
    }

    /// Returns another function, chosen at random. Whoever knows the seed of this one, and has chosen keys by it, does not know that
    /// one.
    pub fn reseeded(self) -> Self {
        Self { mask: self.mask, ..Self::new(random_seed()) }
    }

    /// Returns the hashes of keys. Does not wait.
    pub fn hash(self, stream: &Stream, keys: AnySlice<'_>) -> Result<DeviceVec<u64>, Error> {
        let mut hashes = stream.uninit(keys.len())?;
        if !keys.is_empty() {
            with_pieces!(keys; {
                let (size, to) = (keys.size() as u32, hashes.view_mut(stream)?);
                let kernel = HashKeys::<P>::new(pieces(stream, keys)?, size, self.sums, self.mask, to);
                // SAFETY: there is a thread and a hash for every key, which has at most eight words.
                unsafe { stream.launch(kernel, blocks(keys.len()))? };
            });
        }
        Ok(hashes)
    }

    /// Adds the number of keys that have the hash of a different key to `clashes`, one element. Does not wait.
    ///
    /// # Errors
    /// [`Error::TooLong`] for more keys than positions of 32 bits, [`Error::OutOfMemory`], or any launch error.
    ///
    /// # Panics
    /// If there are not as many hashes as keys.
    pub fn find_clashes(
        self,
        stream: &Stream,
        keys: AnySlice<'_>,
        hashes: &DeviceVec<u64>,
        clashes: &mut DeviceVec<u64>,
    ) -> Result<(), Error> {
        if keys.len() > MAX_KEYS {
            return Err(Error::TooLong { what: NAME, len: keys.len(), limit: MAX_KEYS });
        }
        assert_eq!(keys.len(), hashes.len(), "every key has a hash");
        if keys.is_empty() {
            return Ok(());
        }
        // A hash of the table has 32 bits, so more entries than 2^32 do not help.
        let mut entries = stream.zeroed::<u32>((ENTRIES_PER_POSITION * keys.len()).min(1 << 32))?;
        let mut entries = entries.as_mut_slice();
        with_pieces!(keys; {
            let size = keys.size() as u32;
            let entries = Entries::view(stream, &mut entries, self.order, 0)?;
            let (pieces, hashes) = (pieces(stream, keys)?, hashes.view(stream)?);
            let kernel = FindClashes::<P>::new(pieces, size, hashes, entries, clashes.view_mut(stream)?);
            // SAFETY: there is a thread and a hash for every key, and there are more entries, all zero.
            unsafe { stream.launch(kernel, blocks(keys.len())) }
        })
    }
}

/// Sets `found` to 0 for the keys that differ from the stored one at their index, and adds their number to `different`, one
/// element. Does not wait.
///
/// # Safety
/// The indices that were found are those of stored keys.
///
/// # Panics
/// If there are not as many indices and elements of `found` as keys, or if the keys have another size.
pub unsafe fn verify(
    stream: &Stream,
    stored: AnySlice<'_>,
    asked: AnySlice<'_>,
    indices: &DeviceVec<u32>,
    found: &mut DeviceVec<u8>,
    different: &mut DeviceVec<u64>,
) -> Result<(), Error> {
    assert_eq!((indices.len(), found.len()), (asked.len(), asked.len()), "every key has an index and a result");
    assert_eq!(stored.size(), asked.size(), "the size of a key");
    if asked.is_empty() {
        return Ok(());
    }
    with_pieces!(stored, asked; {
        let (size, stored, asked_pieces) = (asked.size() as u32, pieces(stream, stored)?, pieces(stream, asked)?);
        let (indices, found) = (indices.view(stream)?, found.view_mut(stream)?);
        let different = different.view_mut(stream)?;
        let kernel = VerifyKeys::<P>::new(stored, asked_pieces, size, indices, found, different);
        // SAFETY: there is a thread for every key. The caller guarantees the rest.
        unsafe { stream.launch(kernel, blocks(asked.len())) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_primitives::{Device, DeviceSlice};

    /// Their positions would not fit into 32 bits.
    #[test]
    fn too_many_keys() {
        let device = Device::cpu();
        let stream = device.stream().unwrap();
        let byte = stream.zeroed::<u8>(1).unwrap();
        // SAFETY: there is no such memory. The call does not read it, which is what this tests.
        let keys = unsafe { DeviceSlice::from_raw_parts(&device, byte.as_slice().as_ptr(), MAX_KEYS + 1) };
        let (hashes, mut clashes) = (stream.uninit(0).unwrap(), stream.zeroed(1).unwrap());
        let error = Hasher::new(0).find_clashes(&stream, keys.into(), &hashes, &mut clashes).unwrap_err();
        assert!(matches!(error, Error::TooLong { limit: MAX_KEYS, len, .. } if len == MAX_KEYS + 1), "{error}");
    }
}
