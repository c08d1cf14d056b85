//! The kernels that exist as PTX: a registry, filled by [`instances!`](crate::instances) when the program is linked.

use super::error::Error;
use crate::kernel::Kernel;
use std::any::{TypeId, type_name};
use std::collections::HashMap;
use std::sync::LazyLock;

/// One kernel type with its PTX.
#[derive(Debug)]
pub struct Instance {
    kernel: TypeId,
    name: &'static str,
    ptx: &'static str,
}

impl Instance {
    /// The instance of `K` whose PTX has the entry `name`: what [`instances!`](crate::instances) registers.
    ///
    /// # Safety
    /// The text is what `gpu-kernel-builder` made of `K`, as this program has it.
    #[must_use]
    pub const unsafe fn new<K: Kernel>(name: &'static str, ptx: &'static str) -> Self {
        Self { kernel: TypeId::of::<K>(), name, ptx }
    }

    /// The name of the entry.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The text of the module that holds the entry.
    #[must_use]
    pub const fn ptx(&self) -> &'static str {
        self.ptx
    }

    /// The instance of `K`, if one was named anywhere in the program. Several crates may name the same kernel, as long as all
    /// of them have the same PTX.
    ///
    /// # Errors
    /// [`Error::NoInstance`] if there is none; [`Error::AmbiguousInstance`] if there are several that differ.
    pub fn of<K: Kernel>() -> Result<&'static Self, Error> {
        static BY_KERNEL: LazyLock<HashMap<TypeId, Vec<&'static Instance>>> = LazyLock::new(|| {
            let mut by_kernel = HashMap::<_, Vec<_>>::new();
            for instance in inventory::iter::<Instance>() {
                by_kernel.entry(instance.kernel).or_default().push(instance);
            }
            by_kernel
        });
        let kernel = type_name::<K>();
        let [first, others @ ..] = BY_KERNEL.get(&TypeId::of::<K>()).map_or(&[][..], Vec::as_slice) else {
            return Err(Error::NoInstance { kernel });
        };
        match others.iter().find(|other| !first.is_same(other)) {
            Some(other) => Err(Error::AmbiguousInstance { kernel, names: [first.name, other.name] }),
            None => Ok(first),
        }
    }

    /// Whether both have the same PTX, but for the name of the entry.
    fn is_same(&self, other: &Self) -> bool {
        self.ptx.replace(self.name, "") == other.ptx.replace(other.name, "")
    }
}

inventory::collect!(Instance);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::kernel;

    #[kernel(threads = 32)]
    unsafe fn named_nowhere() {}

    #[kernel(threads = 32)]
    unsafe fn named_twice_alike() {}

    #[kernel(threads = 32)]
    unsafe fn named_twice() {}

    // SAFETY: nothing is launched.
    inventory::submit! { unsafe { Instance::new::<NamedTwiceAlike>("one", ".entry one {}") } }
    // SAFETY: as above.
    inventory::submit! { unsafe { Instance::new::<NamedTwiceAlike>("other", ".entry other {}") } }
    // SAFETY: as above.
    inventory::submit! { unsafe { Instance::new::<NamedTwice>("one", ".entry one { ret; }") } }
    // SAFETY: as above.
    inventory::submit! { unsafe { Instance::new::<NamedTwice>("other", ".entry other { trap; }") } }

    #[test]
    fn kernels_that_are_named_twice() {
        assert!(matches!(Instance::of::<NamedNowhere>(), Err(Error::NoInstance { .. })));
        assert!(Instance::of::<NamedTwiceAlike>().is_ok());
        let error = Instance::of::<NamedTwice>().unwrap_err();
        let Error::AmbiguousInstance { names, .. } = &error else { panic!("{error}") };
        assert!(names.contains(&"one") && names.contains(&"other"), "{error}");
    }
}
