//! Keys with their values, in the form that host functions pass to kernels.

use super::column::{AnySlice, AnySliceMut, Column, ColumnMut};
use super::stream::Stream;
use crate::host::error::{Error, expect_len};
use crate::view::{Global, GlobalMut};
use bytemuck::Pod;
use core::ptr::NonNull;

/// Keys and values to read.
#[derive(Clone, Copy)]
pub(crate) struct Pairs<K, V> {
    pub keys: Global<K>,
    pub values: Global<V>,
}

/// Keys and values to write.
#[derive(Clone, Copy)]
pub(crate) struct PairsMut<K, V> {
    pub keys: GlobalMut<K>,
    pub values: GlobalMut<V>,
}

/// Keys and values to read, of types that are known by their sizes alone.
#[derive(Clone, Copy)]
pub(crate) struct Columns {
    pub keys: Column,
    pub values: Column,
}

/// Keys and values to write, of types that are known by their sizes alone.
#[derive(Clone, Copy)]
pub(crate) struct ColumnsMut {
    pub keys: ColumnMut,
    pub values: ColumnMut,
}

impl Columns {
    /// Keys without values.
    pub(crate) fn keys(stream: &Stream, keys: AnySlice<'_>) -> Result<Self, Error> {
        Ok(Self { keys: keys.raw_view(stream)?, values: no_values(keys.len()).as_const().into() })
    }

    /// Keys and as many values; error messages call the values `what`.
    pub(crate) fn new(
        stream: &Stream,
        (keys, values): (AnySlice<'_>, AnySlice<'_>),
        what: &'static str,
    ) -> Result<Self, Error> {
        expect_len(what, keys.len(), values.len())?;
        Ok(Self { keys: keys.raw_view(stream)?, values: values.raw_view(stream)? })
    }

    /// Returns the bytes of a key, and those of a value.
    pub(crate) fn sizes(self) -> (usize, usize) {
        (self.keys.size(), self.values.size())
    }

    /// Returns the `len` pairs that start at `start`.
    ///
    /// # Panics
    /// If there are no such pairs.
    pub(crate) fn slice(self, start: usize, len: usize) -> Self {
        Self { keys: self.keys.slice(start, len), values: self.values.slice(start, len) }
    }

    /// Returns the pairs in types that they are known to fit.
    pub(crate) fn as_types<K: Pod, V: Pod>(self) -> Pairs<K, V> {
        Pairs { keys: self.keys.as_type(), values: self.values.as_type() }
    }
}

impl ColumnsMut {
    /// Keys without values.
    pub(crate) fn keys(stream: &Stream, mut keys: AnySliceMut<'_>) -> Result<Self, Error> {
        Ok(Self { keys: keys.raw_view_mut(stream)?, values: no_values(keys.len()).into() })
    }

    /// Keys and as many values; error messages call the values `what`.
    pub(crate) fn new(
        stream: &Stream,
        (mut keys, mut values): (AnySliceMut<'_>, AnySliceMut<'_>),
        what: &'static str,
    ) -> Result<Self, Error> {
        expect_len(what, keys.len(), values.len())?;
        Ok(Self { keys: keys.raw_view_mut(stream)?, values: values.raw_view_mut(stream)? })
    }

    /// Returns the same memory, for reading.
    pub(crate) fn as_const(self) -> Columns {
        Columns { keys: self.keys.as_const(), values: self.values.as_const() }
    }

    /// Returns the bytes of a key, and those of a value.
    pub(crate) fn sizes(self) -> (usize, usize) {
        self.as_const().sizes()
    }

    /// Returns the `len` pairs that start at `start`: see [`Columns::slice`].
    pub(crate) fn slice(self, start: usize, len: usize) -> Self {
        Self { keys: self.keys.slice(start, len), values: self.values.slice(start, len) }
    }

    /// Returns the pairs in types that they are known to fit.
    pub(crate) fn as_types<K: Pod, V: Pod>(self) -> PairsMut<K, V> {
        PairsMut { keys: self.keys.as_type(), values: self.values.as_type() }
    }
}

impl<K: Pod, V: Pod> From<Pairs<K, V>> for Columns {
    fn from(pairs: Pairs<K, V>) -> Self {
        Self { keys: pairs.keys.into(), values: pairs.values.into() }
    }
}

impl<K: Pod, V: Pod> From<PairsMut<K, V>> for ColumnsMut {
    fn from(pairs: PairsMut<K, V>) -> Self {
        Self { keys: pairs.keys.into(), values: pairs.values.into() }
    }
}

/// Returns a view of `len` zero-sized values: they have no memory, and kernels do not access them.
pub(crate) fn no_values(len: usize) -> GlobalMut<()> {
    // SAFETY: zero-sized elements may have any address.
    unsafe { GlobalMut::from_raw(NonNull::dangling().as_ptr(), len) }
}

/// Keys and values to read, and where they go, of types that are known by their sizes alone.
#[derive(Clone, Copy)]
pub(crate) struct Operands {
    pub keys: Column,
    pub values: Column,
    pub to_keys: ColumnMut,
    pub to_values: ColumnMut,
}

impl Operands {
    /// Keys without values.
    pub(crate) fn keys(stream: &Stream, keys: AnySlice<'_>, mut to_keys: AnySliceMut<'_>) -> Result<Self, Error> {
        Ok(Self {
            keys: keys.raw_view(stream)?,
            values: no_values(keys.len()).as_const().into(),
            to_keys: to_keys.raw_view_mut(stream)?,
            to_values: no_values(to_keys.len()).into(),
        })
    }

    /// Keys and values, whose lengths were checked.
    pub(crate) fn pairs(
        stream: &Stream,
        (keys, values): (AnySlice<'_>, AnySlice<'_>),
        (mut to_keys, mut to_values): (AnySliceMut<'_>, AnySliceMut<'_>),
    ) -> Result<Self, Error> {
        Ok(Self {
            keys: keys.raw_view(stream)?,
            values: values.raw_view(stream)?,
            to_keys: to_keys.raw_view_mut(stream)?,
            to_values: to_values.raw_view_mut(stream)?,
        })
    }

    /// Returns the bytes of a key, and those of a value.
    pub(crate) fn sizes(&self) -> (usize, usize) {
        (self.keys.size(), self.values.size())
    }

    /// Returns the number of pairs to read.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns the pairs in these types, if sizes and addresses fit.
    pub(crate) fn typed<K: Pod, V: Pod>(self) -> Option<(Pairs<K, V>, PairsMut<K, V>)> {
        let from = Pairs { keys: self.keys.typed()?, values: self.values.typed()? };
        Some((from, PairsMut { keys: self.to_keys.typed()?, values: self.to_values.typed()? }))
    }
}
