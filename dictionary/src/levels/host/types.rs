//! The types of a dictionary as values: for code that is compiled once, and not again for each of a program's types.
//!
//! Kernels know keys by the size of their codes and values by the size of their carriers. So the code that launches them
//! needs no more than sizes and, for keys that are not such codes themselves, functions that convert them.

#![deny(unsafe_op_in_unsafe_fn)]

use crate::{Key, Value, assert_carried};
use gpu_primitives::code::Sign;
use gpu_primitives::lowered::{AnySlice, AnySliceMut, AnyVec, bits_of};
use gpu_primitives::{Error, Operator, Stream, sort};

/// Evaluates an expression with the type of codes of a size: `with_code!(size => C, …)`.
#[cfg(not(test))]
macro_rules! with_code {
    ($size:expr => $code:ident, $body:expr) => {
        gpu_primitives::sized!($size => $code in u32 | u64 | u128 | gpu_primitives::sort::U256, $body,
            else unreachable!("codes have 4, 8, 16 or 32 bytes"))
    };
}

/// The same in unit tests, which compile the kernels that they launch: few, because all would take minutes. The suites of
/// gpu-dictionary-conformance test all sizes.
#[cfg(test)]
macro_rules! with_code {
    ($size:expr => $code:ident, $body:expr) => {
        gpu_primitives::sized!($size => $code in u32, $body, else unreachable!("unit tests have codes of 4 bytes"))
    };
}

/// Evaluates an expression with the type that carries values of a size: `with_value!(size => W, …)`.
#[cfg(not(test))]
macro_rules! with_value {
    ($size:expr => $value:ident, $body:expr) => {
        gpu_primitives::sized!($size => $value in () | u32 | u64, $body, else unreachable!("values have 0, 4 or 8 bytes"))
    };
}

/// The same in unit tests: see [`with_code!`].
#[cfg(test)]
macro_rules! with_value {
    ($size:expr => $value:ident, $body:expr) => {
        gpu_primitives::sized!($size => $value in () | u32, $body, else unreachable!("unit tests have values of 4 bytes"))
    };
}

pub(crate) use with_code;
pub(crate) use with_value;

/// Converts keys to codes, or codes to keys.
type Convert = fn(&Stream, AnySlice<'_>, AnySliceMut<'_>) -> Result<(), Error>;

/// Records the code of keys.
type RecordCode = fn(&Stream) -> Result<(), Error>;

/// The key and value types of a dictionary.
#[derive(Clone, Copy, Debug)]
pub struct Types {
    /// The bytes of a key, of its code, and of a value.
    pub(crate) key: usize,
    pub(crate) code: usize,
    pub(crate) value: usize,
    /// The bits of a code.
    pub(crate) bits: u32,
    /// How kernels convert the keys that they take: see [`Key::SIGN`].
    pub(crate) sign: Sign,
    /// Whether kernels take keys as they are: see [`Key::IS_PLAIN`].
    is_plain: bool,
    /// Converts keys to codes and back, unless they have the same bits.
    convert: Option<(Convert, Convert)>,
    /// Records the code of keys that are converted.
    record: Option<RecordCode>,
    /// The same keys without values, unless these are it.
    keys_alone: Option<&'static Self>,
}

impl Types {
    /// Describes the types of a dictionary.
    #[must_use]
    pub const fn of<K: Key, V: Value>() -> &'static Self {
        const {
            assert_carried::<V>();
            &Self {
                key: size_of::<K>(),
                code: size_of::<K::Code>(),
                value: size_of::<V>(),
                bits: bits_of::<K>(),
                sign: K::SIGN,
                is_plain: K::IS_PLAIN,
                // Keys that need no conversion do not compile one.
                convert: if K::IS_CODE { None } else { Some((encode::<K>, decode::<K>)) },
                record: if K::IS_CODE { None } else { Some(record::<K>) },
                keys_alone: if size_of::<V>() == 0 { None } else { Some(Self::of::<K, ()>()) },
            }
        }
    }

    /// Checks that levels of these types are levels of others, too: kernels and conversions cannot tell them apart.
    ///
    /// # Panics
    /// If they can.
    pub(crate) fn expect_same(&self, other: &Self) {
        let facts = |types: &Self| (types.key, types.code, types.value, types.bits, types.is_plain, types.sign);
        assert_eq!(facts(self), facts(other), "a level of a dictionary with other types");
    }

    /// Returns the types of the same keys without values.
    pub(crate) fn keys_alone(&'static self) -> &'static Self {
        self.keys_alone.unwrap_or(self)
    }

    /// Records the code of the keys now if launches on this stream would. This runs code of its author, so the caller holds no lock.
    ///
    /// # Errors
    /// [`Error::Unrecordable`].
    #[doc(hidden)]
    pub fn record(&self, stream: &Stream) -> Result<(), Error> {
        self.record.map_or(Ok(()), |record| record(stream))
    }

    /// Returns the bytes of a key and a value.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.key + self.value
    }

    /// Returns the bytes of the code of a key and of a value: what a level stores.
    #[must_use]
    pub fn stored_bytes(&self) -> usize {
        self.code + self.value
    }

    /// Returns how many values go with `len` keys: zero-sized values are not stored.
    #[must_use]
    pub fn values_for(&self, len: usize) -> usize {
        if self.value == 0 { 0 } else { len }
    }

    /// Makes room for values of `len` keys.
    pub(crate) fn room_for_values(&self, stream: &Stream, len: usize) -> Result<AnyVec, Error> {
        AnyVec::uninit(stream, self.value, self.values_for(len))
    }

    /// Returns keys as kernels on levels take them: [plain](Key::IS_PLAIN) ones as they are, others as their codes. Does not
    /// wait.
    pub(crate) fn encode_query<'a>(&self, stream: &Stream, keys: AnySlice<'a>) -> Result<AnyInput<'a>, Error> {
        if self.is_plain { Ok(AnyInput::Same(keys)) } else { self.codes(stream, keys) }
    }

    /// Returns the codes of keys. Does not wait.
    pub(crate) fn codes<'a>(&self, stream: &Stream, keys: AnySlice<'a>) -> Result<AnyInput<'a>, Error> {
        let Some((encode, _)) = self.convert else { return Ok(AnyInput::Same(keys)) };
        let mut codes = AnyVec::uninit(stream, self.code, keys.len())?;
        encode(stream, keys, codes.as_mut_slice())?;
        Ok(AnyInput::Copy(codes))
    }

    /// Returns the keys that kernels on levels have written: the inverse of [`encode_query`](Self::asked). Does not wait.
    pub(crate) fn decode_result(&self, stream: &Stream, written: AnyVec) -> Result<AnyVec, Error> {
        if self.is_plain { Ok(written) } else { self.keys_of(stream, written) }
    }

    /// Returns the keys of codes. Does not wait.
    pub(crate) fn keys_of(&self, stream: &Stream, codes: AnyVec) -> Result<AnyVec, Error> {
        let Some((_, decode)) = self.convert else { return Ok(codes) };
        let mut keys = AnyVec::uninit(stream, self.key, codes.len())?;
        decode(stream, codes.as_slice(), keys.as_mut_slice())?;
        Ok(keys)
    }

    /// Returns values as kernels take them. Copies values that are misaligned for their carrier. Does not wait.
    pub(crate) fn carried<'a>(&self, stream: &Stream, values: AnySlice<'a>) -> Result<AnyInput<'a>, Error> {
        if with_value!(self.value => W, values.typed::<W>().is_some()) {
            return Ok(AnyInput::Same(values));
        }
        // Vectors are aligned for all types.
        let mut aligned = AnyVec::uninit(stream, self.value, values.len())?;
        aligned.as_mut_slice().copy_from(stream, values)?;
        Ok(AnyInput::Copy(aligned))
    }
}

fn encode<K: Key>(stream: &Stream, keys: AnySlice<'_>, codes: AnySliceMut<'_>) -> Result<(), Error> {
    let (keys, codes) = keys.typed::<K>().zip(codes.typed()).expect("these are the types of the dictionary");
    sort::encode(stream, keys, codes)
}

fn record<K: Key>(stream: &Stream) -> Result<(), Error> {
    Operator::radix_key::<K>().record(stream)
}

fn decode<K: Key>(stream: &Stream, codes: AnySlice<'_>, keys: AnySliceMut<'_>) -> Result<(), Error> {
    let (codes, keys) = codes.typed().zip(keys.typed::<K>()).expect("these are the types of the dictionary");
    sort::decode::<K>(stream, codes, keys)
}

/// Memory of the caller, or a copy of it in another form.
#[derive(Debug)]
pub(crate) enum AnyInput<'a> {
    Same(AnySlice<'a>),
    Copy(AnyVec),
}

impl AnyInput<'_> {
    pub fn slice(&self) -> AnySlice<'_> {
        match self {
            Self::Same(slice) => *slice,
            Self::Copy(vector) => vector.as_slice(),
        }
    }
}

/// Elements that a kernel writes into the caller's memory: in place if that has the form that the kernel writes, and
/// otherwise elsewhere first.
pub(crate) struct Written<'a> {
    to: AnySliceMut<'a>,
    elsewhere: Option<AnyVec>,
    /// Converts what was written elsewhere.
    convert: Option<Convert>,
}

impl<'a> Written<'a> {
    /// Prepares memory for keys, in the form of [`decode_result`](Types::answered). Does not wait.
    pub fn keys(types: &Types, stream: &Stream, keys: AnySliceMut<'a>) -> Result<Self, Error> {
        let decode = types.convert.map(|(_, decode)| decode).filter(|_| !types.is_plain);
        // All of them are converted in the end, also those that the kernel does not write.
        let elsewhere = decode.map(|_| AnyVec::zeroed(stream, types.code, keys.len())).transpose()?;
        Ok(Self { to: keys, elsewhere, convert: decode })
    }

    /// Prepares memory for values. Does not wait.
    pub fn values(types: &Types, stream: &Stream, mut values: AnySliceMut<'a>) -> Result<Self, Error> {
        let is_aligned = with_value!(types.value => W, values.reborrow().typed::<W>().is_some());
        let elsewhere = if is_aligned { None } else { Some(AnyVec::zeroed(stream, types.value, values.len())?) };
        Ok(Self { to: values, elsewhere, convert: None })
    }

    /// Returns the memory that the kernel writes.
    pub fn slice(&mut self) -> AnySliceMut<'_> {
        match &mut self.elsewhere {
            Some(elsewhere) => elsewhere.as_mut_slice(),
            None => self.to.reborrow(),
        }
    }

    /// Returns the caller's memory, with the elements in it. Does not wait.
    pub fn finish(mut self, stream: &Stream) -> Result<AnySliceMut<'a>, Error> {
        match (self.elsewhere, self.convert) {
            (Some(elsewhere), Some(convert)) => convert(stream, elsewhere.as_slice(), self.to.reborrow())?,
            (Some(elsewhere), None) => self.to.copy_from(stream, elsewhere.as_slice())?,
            (None, _) => {}
        }
        Ok(self.to)
    }
}
