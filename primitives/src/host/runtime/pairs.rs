//! Keys with their values, in the form that host functions pass to kernels: [`Pairs`] where their types are known, [`Columns`]
//! where only the sizes are. Keys alone have values [without a size](no_values).

use super::call::{Reach, View};
use super::column::{AnySlice, AnySliceMut, Column, ColumnMut, only_one};
use super::stream::Stream;
use crate::host::error::{Error, expect_len};
use crate::input::{Limit, PrefixPairs};
use crate::pairs::{Pairs, PairsMut};
use crate::view::{Global, GlobalMut};
use bytemuck::Pod;
use core::ptr::NonNull;

impl<K: Pod, V: Pod> Pairs<K, V> {
    /// Returns a view of keys and values.
    pub fn view<'a>(keys: View<'a, Global<K>>, values: View<'a, Global<V>>) -> View<'a, Self> {
        let mut reach = Reach::none();
        keys.add_to(&mut reach);
        values.add_to(&mut reach);
        // SAFETY: the views borrow the memory for the lifetime of the result.
        unsafe { View::new(Self { keys: keys.into_param(), values: values.into_param() }, reach) }
    }
}

impl<K: Pod, V: Pod> PairsMut<K, V> {
    /// Returns a view of keys and values.
    pub fn view<'a>(keys: View<'a, GlobalMut<K>>, values: View<'a, GlobalMut<V>>) -> View<'a, Self> {
        let mut reach = Reach::none();
        keys.add_to(&mut reach);
        values.add_to(&mut reach);
        // SAFETY: the views borrow the memory for the lifetime of the result.
        unsafe { View::new(Self { keys: keys.into_param(), values: values.into_param() }, reach) }
    }
}

/// Keys and values to read, of types that are known by their sizes alone. If only the device knows their number, the keys have
/// the [`Limit`].
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
        let keys = keys.counted(only_one(keys.count(), values.count())?);
        Self::of_any(stream, (keys, values))
    }

    /// Keys and values, whose lengths were checked.
    pub(crate) fn of_any(stream: &Stream, (keys, values): (AnySlice<'_>, AnySlice<'_>)) -> Result<Self, Error> {
        Ok(Self { keys: keys.raw_view(stream)?, values: values.raw_view(stream)? })
    }

    /// Returns what limits the number of pairs that count: that of the keys.
    pub(crate) fn limit(self) -> Limit {
        self.keys.limit()
    }

    /// Returns the pairs with another limit.
    pub(crate) fn limited(self, limit: Limit) -> Self {
        Self { keys: self.keys.limited(limit), ..self }
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

    /// Returns the pairs in these types, if sizes and addresses fit.
    pub(crate) fn typed<K: Pod, V: Pod>(self) -> Option<Pairs<K, V>> {
        Some(Pairs { keys: self.keys.typed()?, values: self.values.typed()? })
    }

    /// Returns the pairs that count, in types that they are known to fit.
    pub(crate) fn prefix<K: Pod, V: Pod>(self) -> PrefixPairs<K, V> {
        PrefixPairs { keys: self.keys.prefix(), values: self.values.as_type() }
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
        (keys, values): (AnySliceMut<'_>, AnySliceMut<'_>),
        what: &'static str,
    ) -> Result<Self, Error> {
        expect_len(what, keys.len(), values.len())?;
        let count = only_one(keys.count(), values.count())?;
        Self::of_any(stream, (keys.counted(count), values))
    }

    /// Keys and values. There may be more room for the ones than for the others.
    pub(crate) fn of_any(
        stream: &Stream,
        (mut keys, mut values): (AnySliceMut<'_>, AnySliceMut<'_>),
    ) -> Result<Self, Error> {
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

    /// Returns the pairs in these types, if sizes and addresses fit.
    pub(crate) fn typed<K: Pod, V: Pod>(self) -> Option<PairsMut<K, V>> {
        Some(PairsMut { keys: self.keys.typed()?, values: self.values.typed()? })
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

/// Returns a view of `len` values [without a size](crate::view#elements-without-a-size).
pub(crate) fn no_values(len: usize) -> GlobalMut<()> {
    // SAFETY: zero-sized elements may have any address.
    unsafe { GlobalMut::from_raw(NonNull::dangling().as_ptr(), len) }
}
