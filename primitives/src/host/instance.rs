//! The kernels that exist as PTX: in lists that the kernels name, or in a registry that [`instances!`](crate::instances) fills at
//! link time.

use crate::form::{Holes, Kernel};
use crate::host::error::Error;
use std::any::{TypeId, type_name};
use std::fmt::Debug;

/// A kernel type with its PTX.
#[derive(Debug)]
pub struct Instance {
    kernel: TypeId,
    shared_bytes: usize,
    /// Where the operators that are not known are among the arguments.
    holes: Holes,
    name: &'static str,
    /// The text of the module, compressed.
    packed: &'static [u8],
}

impl Instance {
    /// Creates the instance of `K` whose PTX has the entry `name`. [`instances!`](crate::instances) registers it.
    ///
    /// # Safety
    /// `packed` is the compressed PTX that `gpu-kernel-builder` generated from `K`, from the same sources as this
    /// program. It is empty if the crate was built for the CPU alone.
    #[must_use]
    pub const unsafe fn new<K: Kernel>(name: &'static str, packed: &'static [u8]) -> Self {
        Self { kernel: TypeId::of::<K>(), shared_bytes: K::SHARED_BYTES, holes: K::HOLES, name, packed }
    }

    /// Returns the kernel type.
    pub(crate) fn kernel(&self) -> TypeId {
        self.kernel
    }

    /// Returns the bytes of shared memory per block.
    pub(crate) fn shared_bytes(&self) -> usize {
        self.shared_bytes
    }

    /// Returns where the operators that are not known are among the arguments.
    pub(crate) fn holes(&self) -> Holes {
        self.holes
    }

    /// Returns the name of the entry.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the text of the module that contains the entry.
    #[must_use]
    pub fn ptx(&self) -> String {
        // Data that `packed_ptx!` did not produce is not a module, and the driver will reject it.
        let text = miniz_oxide::inflate::decompress_to_vec(self.packed).unwrap_or_default();
        String::from_utf8(text).unwrap_or_default()
    }

    /// Returns the instance of `K`, if the program has one. Several crates may instantiate the same kernel, as long as
    /// they all have the same PTX.
    ///
    /// # Errors
    /// [`Error::NoInstance`] if there is none; [`Error::AmbiguousInstance`] if several instances differ.
    pub fn of<K: Kernel>() -> Result<&'static Self, Error> {
        Target::of::<K>().instance()
    }

    /// Returns whether both have the same PTX, except for the name of the entry.
    fn is_same(&self, other: &Self) -> bool {
        self.ptx().replace(self.name, "") == other.ptx().replace(other.name, "")
    }
}

inventory::collect!(Instance);

/// Ends a choice among the members of a family, for sizes that its caller has excluded.
///
/// # Panics
/// Always: the caller was wrong.
#[doc(hidden)]
#[cold]
pub fn no_member(family: &str, sizes: &dyn Debug) -> ! {
    panic!("the kernels of the family `{family}` are not for elements of {sizes:?} bytes")
}

/// Checks that the members of a family, given by the sizes of their types, can be told apart. In a constant, others do not compile.
///
/// # Panics
/// If two members have the same sizes.
#[doc(hidden)]
pub const fn expect_distinct_sizes<const N: usize>(members: &[[usize; N]]) {
    let mut second = 1;
    while second < members.len() {
        let mut first = 0;
        while first < second {
            let mut at = 0;
            while at < N && members[first][at] == members[second][at] {
                at += 1;
            }
            assert!(at < N, "two members of a family have types of the same sizes");
            first += 1;
        }
        second += 1;
    }
}

/// A kernel type, as far as loading needs it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub id: TypeId,
    type_name: fn() -> &'static str,
    is_listed: bool,
    lists: &'static [&'static [Instance]],
}

impl Target {
    pub const fn of<K: Kernel>() -> Self {
        Self { id: TypeId::of::<K>(), type_name: type_name::<K>, is_listed: K::IS_LISTED, lists: K::PTX }
    }

    /// Returns an error if the kernel should be in a list and is not. A GPU could not launch it.
    pub fn expect_listed(&self) -> Result<(), Error> {
        if !self.is_listed || self.instances().next().is_some() { Ok(()) } else { Err(self.missing()) }
    }

    /// Returns the kernel's instances, in its own lists and in the registry.
    fn instances(&self) -> impl Iterator<Item = &'static Instance> {
        let listed = self.lists.iter().copied().flatten();
        listed.chain(inventory::iter::<Instance>()).filter(|instance| instance.kernel == self.id)
    }

    fn missing(&self) -> Error {
        Error::NoInstance { kernel: (self.type_name)() }
    }

    /// Returns the kernel's instance. It has PTX.
    pub fn instance(&self) -> Result<&'static Instance, Error> {
        let mut known = self.instances().filter(|instance| !instance.packed.is_empty());
        let first = known.next().ok_or_else(|| self.missing())?;
        match known.find(|other| !first.is_same(other)) {
            Some(other) => {
                Err(Error::AmbiguousInstance { kernel: (self.type_name)(), names: [first.name, other.name] })
            }
            None => Ok(first),
        }
    }
}

/// The number of bytes that [`stored`] adds.
#[cfg(test)]
pub(crate) const STORED_EXTRA: usize = 5;

/// Returns a text as stored (uncompressed) deflate data: a single last block, with its length and the complement of it.
#[cfg(test)]
pub(crate) const fn stored<const N: usize>(text: &str) -> [u8; N] {
    assert!(N == text.len() + STORED_EXTRA && text.len() < 1 << 16);
    let len = text.len() as u16;
    let mut packed = [0; N];
    let header = [1, len as u8, (len >> 8) as u8, !len as u8, (!len >> 8) as u8];
    let mut at = 0;
    while at < N {
        packed[at] = if at < STORED_EXTRA { header[at] } else { text.as_bytes()[at - STORED_EXTRA] };
        at += 1;
    }
    packed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::kernel;

    /// # Safety
    /// It does nothing.
    #[kernel(threads = 32)]
    unsafe fn named_nowhere() {}

    /// # Safety
    /// It does nothing.
    #[kernel(threads = 32)]
    unsafe fn named_twice_alike() {}

    /// # Safety
    /// It does nothing.
    #[kernel(threads = 32)]
    unsafe fn named_twice() {}

    macro_rules! submit {
        ($kernel:ty, $name:literal, $text:literal) => {
            const _: () = {
                const PACKED: &[u8] = &stored::<{ $text.len() + STORED_EXTRA }>($text);
                // SAFETY: nothing is launched.
                inventory::submit! { unsafe { Instance::new::<$kernel>($name, PACKED) } }
            };
        };
    }

    submit!(NamedTwiceAlike, "one", ".entry one { ret; }");
    submit!(NamedTwiceAlike, "other", ".entry other { ret; }");
    submit!(NamedTwice, "one", ".entry one { ret; }");
    submit!(NamedTwice, "other", ".entry other { trap; }");

    #[test]
    fn kernels_that_are_named_twice() {
        assert!(matches!(Instance::of::<NamedNowhere>(), Err(Error::NoInstance { .. })));
        assert!(Instance::of::<NamedTwiceAlike>().unwrap().ptx().starts_with(".entry o"));
        let error = Instance::of::<NamedTwice>().unwrap_err();
        let Error::AmbiguousInstance { names, .. } = &error else { panic!("{error}") };
        assert!(names.contains(&"one") && names.contains(&"other"), "{error}");
    }
}
