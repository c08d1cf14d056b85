//! The kernels that exist as PTX: a registry, filled by [`instances!`](crate::instances) when the program is linked.

use crate::kernel::Kernel;
use std::any::TypeId;
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
    /// The instance of `K` whose PTX has the entry `name`.
    #[must_use]
    pub const fn new<K: Kernel>(name: &'static str, ptx: &'static str) -> Self {
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

    /// The instance of `K`, if one was named anywhere in the program.
    #[must_use]
    pub fn of<K: Kernel>() -> Option<&'static Self> {
        static BY_KERNEL: LazyLock<HashMap<TypeId, &'static Instance>> =
            LazyLock::new(|| inventory::iter::<Instance>().map(|instance| (instance.kernel, instance)).collect());
        BY_KERNEL.get(&TypeId::of::<K>()).copied()
    }
}

inventory::collect!(Instance);
