//! Keys with their values, in the form that host functions pass to kernels.

use super::carrier::{Carry, reinterpret, reinterpret_mut};
use super::column::{AnySlice, AnySliceMut, Column, ColumnMut};
use super::error::{Error, expect_len};
use super::slice::{DeviceSlice, DeviceSliceMut};
use super::stream::Stream;
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

/// Returns a view of `len` zero-sized values: they have no memory, and kernels do not access them.
pub(crate) fn no_values(len: usize) -> GlobalMut<()> {
    // SAFETY: zero-sized elements may have any address.
    unsafe { GlobalMut::from_raw(NonNull::dangling().as_ptr(), len) }
}

impl<K: Pod> Pairs<K, ()> {
    /// Keys without values.
    pub(crate) fn keys(stream: &Stream, keys: DeviceSlice<'_, K>) -> Result<Self, Error> {
        Ok(Self { keys: keys.raw_view(stream)?, values: no_values(keys.len()).as_const() })
    }
}

impl<K: Pod, V: Pod> Pairs<K, V> {
    /// Keys and as many values; error messages call the values `what`.
    pub(crate) fn new(
        stream: &Stream,
        keys: DeviceSlice<'_, K>,
        values: DeviceSlice<'_, V>,
        what: &'static str,
    ) -> Result<Self, Error> {
        expect_len(what, keys.len(), values.len())?;
        Ok(Self { keys: keys.raw_view(stream)?, values: values.raw_view(stream)? })
    }
}

impl<K: Pod> PairsMut<K, ()> {
    /// Keys without values.
    pub(crate) fn keys(stream: &Stream, mut keys: DeviceSliceMut<'_, K>) -> Result<Self, Error> {
        Ok(Self { keys: keys.raw_view_mut(stream)?, values: no_values(keys.len()) })
    }
}

impl<K: Pod, V: Pod> PairsMut<K, V> {
    /// Keys and as many values; error messages call the values `what`.
    pub(crate) fn new(
        stream: &Stream,
        mut keys: DeviceSliceMut<'_, K>,
        mut values: DeviceSliceMut<'_, V>,
        what: &'static str,
    ) -> Result<Self, Error> {
        expect_len(what, keys.len(), values.len())?;
        Ok(Self { keys: keys.raw_view_mut(stream)?, values: values.raw_view_mut(stream)? })
    }

    /// Returns the same memory, for reading.
    pub(crate) fn as_const(self) -> Pairs<K, V> {
        Pairs { keys: self.keys.as_const(), values: self.values.as_const() }
    }
}

impl<K: Pod, V: Pod> Carry for Pairs<K, V> {
    type Value = V;
    type As<W: Pod> = Pairs<K, W>;

    fn addresses(&self) -> usize {
        self.values.addresses()
    }

    unsafe fn reinterpret<W: Pod>(&self) -> Pairs<K, W> {
        // SAFETY: guaranteed by the caller.
        Pairs { keys: self.keys, values: unsafe { reinterpret(self.values) } }
    }
}

impl<K: Pod, V: Pod> Carry for PairsMut<K, V> {
    type Value = V;
    type As<W: Pod> = PairsMut<K, W>;

    fn addresses(&self) -> usize {
        self.values.addresses()
    }

    unsafe fn reinterpret<W: Pod>(&self) -> PairsMut<K, W> {
        // SAFETY: guaranteed by the caller.
        PairsMut { keys: self.keys, values: unsafe { reinterpret_mut(self.values) } }
    }
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
