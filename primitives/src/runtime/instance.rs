//! The kernels that exist as PTX: a registry that [`instances!`](crate::instances) fills at link time.

use super::error::Error;
use super::launch::KernelType;
use crate::form::{Holes, Kernel};
use std::any::{TypeId, type_name};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::LazyLock;

/// A kernel type with its PTX.
#[derive(Debug)]
pub struct Instance {
    kernel: TypeId,
    type_name: fn() -> &'static str,
    shared_bytes: usize,
    /// Where the operators that are not known are among the arguments.
    holes: Holes,
    name: &'static str,
    /// The text of the module, compressed.
    packed: &'static [u8],
    /// The kernel's code for the CPU device, if it is [compiled](Self::compiled) with the instance.
    code: Option<&'static KernelType>,
}

impl Instance {
    /// Creates the instance of `K` whose PTX has the entry `name`. [`instances!`](crate::instances) registers it.
    ///
    /// # Safety
    /// `packed` is the compressed PTX that `gpu-kernel-builder` generated from `K`, from the same sources as this
    /// program. It is empty if the crate was built for the CPU alone.
    #[must_use]
    pub const unsafe fn new<K: Kernel>(name: &'static str, packed: &'static [u8]) -> Self {
        Self {
            kernel: TypeId::of::<K>(),
            type_name: type_name::<K>,
            shared_bytes: K::SHARED_BYTES,
            holes: K::HOLES,
            name,
            packed,
            code: None,
        }
    }

    /// Compiles the kernel's code for the CPU device, in the crate that lists the instance, if launches look for it there.
    #[doc(hidden)]
    #[must_use]
    pub const fn compiled<K: Kernel>(self) -> Self {
        let is_wanted = K::IS_LISTED && (cfg!(not(test)) || is_tested(K::NAME));
        Self { code: if is_wanted { Some(KernelType::of::<K>()) } else { None }, ..self }
    }

    /// Returns all instances of the program.
    pub(crate) fn all() -> impl Iterator<Item = &'static Self> {
        inventory::iter::<Self>().filter(|instance| !instance.packed.is_empty())
    }

    /// Returns where the operators that are not known are among the arguments.
    pub(crate) fn holes(&self) -> Holes {
        self.holes
    }

    /// Returns the kernel type, as far as loading needs it.
    pub(crate) fn target(&self) -> Target {
        Target { id: self.kernel, type_name: self.type_name, shared_bytes: self.shared_bytes }
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
        Self::find(TypeId::of::<K>(), type_name::<K>)
    }

    /// Returns the instance of a kernel type.
    pub(crate) fn find(id: TypeId, type_name: fn() -> &'static str) -> Result<&'static Self, Error> {
        let listed = Self::listed(id).iter().filter(|instance| !instance.packed.is_empty());
        let [first, others @ ..] = &*listed.collect::<Vec<_>>() else {
            return Err(Error::NoInstance { kernel: type_name() });
        };
        match others.iter().find(|other| !first.is_same(other)) {
            Some(other) => Err(Error::AmbiguousInstance { kernel: type_name(), names: [first.name, other.name] }),
            None => Ok(first),
        }
    }

    /// Returns the code of a kernel type for the CPU. Crates that list the same type have compiled the same code.
    pub(crate) fn code(id: TypeId, type_name: fn() -> &'static str) -> Result<&'static KernelType, Error> {
        let code = Self::listed(id).iter().find_map(|instance| instance.code);
        code.ok_or_else(|| Error::NoInstance { kernel: type_name() })
    }

    /// Returns the instances of a kernel type in the lists of all crates.
    fn listed(id: TypeId) -> &'static [&'static Self] {
        static BY_KERNEL: LazyLock<HashMap<TypeId, Vec<&'static Instance>, BuildHasherDefault<IdHasher>>> =
            LazyLock::new(|| {
                let mut by_kernel = HashMap::<_, Vec<_>, _>::default();
                for instance in inventory::iter::<Instance>() {
                    by_kernel.entry(instance.kernel).or_default().push(instance);
                }
                by_kernel
            });
        BY_KERNEL.get(&id).map_or(&[], Vec::as_slice)
    }

    /// Returns whether both have the same PTX, except for the name of the entry.
    fn is_same(&self, other: &Self) -> bool {
        self.ptx().replace(self.name, "") == other.ptx().replace(other.name, "")
    }
}

inventory::collect!(Instance);

/// Whether this crate is compiled for its unit tests, which launch few of the listed kernels: only [these](TESTED) are compiled.
#[doc(hidden)]
pub const LISTS_TESTED_KERNELS: bool = cfg!(test);

/// The listed kernels that this crate's unit tests launch. Compiling all of them once more would take minutes.
const TESTED: &[&str] = &[
    "build_index",
    "count_digits",
    "encode_keys",
    "find_threshold",
    "gather_keys",
    "merge_partition",
    "narrow",
    "number_items",
    "number_keys",
    "order_best",
    "place_runs",
    "reduce_tiles",
    "runs_partition",
    "runs_tiles",
    "sample_maxima",
    "search_directly",
    "search_indexed",
    "search_sorted",
    "sift",
    "sort_block",
];

const fn is_tested(name: &str) -> bool {
    let (name, mut at) = (name.as_bytes(), 0);
    while at < TESTED.len() {
        let tested = TESTED[at].as_bytes();
        let mut same = 0;
        while same < name.len() && same < tested.len() && name[same] == tested[same] {
            same += 1;
        }
        if same == name.len() && same == tested.len() {
            return true;
        }
        at += 1;
    }
    false
}

/// Registers an instance of a kernel, with the kernel's code for the CPU device.
#[doc(hidden)]
#[macro_export]
macro_rules! register_instance {
    ($instance:expr, $kernel:ty) => {
        $crate::kernel::inventory::submit! { $instance.compiled::<$kernel>() }
    };
}

/// Takes the id of a type, which is a hash already, as its hash: launches look for their kernels.
#[derive(Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.write_u64(u64::from_ne_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 ^= word;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A kernel type, as far as loading needs it.
#[derive(Clone, Copy)]
pub(crate) struct Target {
    pub id: TypeId,
    pub type_name: fn() -> &'static str,
    pub shared_bytes: usize,
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
