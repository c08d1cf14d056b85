//! Kernels as the runtime launches them: described by values, so that the code that launches is compiled once and not
//! for every kernel.

use super::cpu;
use super::fill::Operators;
use crate::form::{Buffer, Holes, Kernel};
use crate::hole::Hole;
use crate::host::executor::{Entry, Team};
use crate::host::instance::Target;
use core::mem::transmute;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::num::NonZero;
use std::ptr::NonNull;

/// Calls the function with the name and the place of each buffer among the arguments of a kernel.
type VisitBuffers<A> = unsafe fn(A, &mut dyn FnMut(&'static str, Buffer));

/// What the runtime knows about a type of kernels.
#[derive(Debug)]
pub(crate) struct KernelType {
    /// What loading the kernel needs.
    pub target: Target,
    pub name: &'static str,
    pub threads: u32,
    pub shared_bytes: usize,
    /// The layout of the arguments.
    pub layout: Layout,
    /// The code for the CPU, thread by thread, if it was compiled.
    pub entry: Option<Entry>,
    /// The native body for the CPU. Takes the arguments.
    pub native: Option<unsafe fn(*const (), Team)>,
    /// Takes the arguments.
    buffers: VisitBuffers<*const ()>,
    /// Where the operators that are not known are among the arguments.
    holes: Holes,
}

/// The listed kernels that this crate's unit tests launch. Compiling all of them once more would take minutes.
const TESTED: &[&str] = &[
    "build_index",
    "count_digits",
    "find_threshold",
    "gather_keys",
    "merge_partition",
    "narrow",
    "number_items",
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

impl KernelType {
    /// Returns whether these kernels are compiled for the CPU; in this crate's unit tests, if they are [launched](TESTED).
    const fn is_compiled<K: Kernel>() -> bool {
        cfg!(feature = "cpu") && (cfg!(not(test)) || !K::IS_LISTED || is_tested(K::NAME))
    }

    /// Returns whether these kernels are compiled for simulation: where a program asks for it, or where nothing else runs them
    /// on the CPU.
    const fn is_simulated<K: Kernel>() -> bool {
        Self::is_compiled::<K>() && (cfg!(any(feature = "checked", test)) || K::NATIVE.is_none() || !K::IS_LISTED)
    }

    /// Describes the kernels of type `K`, and compiles their code for the CPU here.
    pub const fn of<K: Kernel>() -> &'static Self {
        /// # Safety
        /// The arguments are a `K`, whose contract holds.
        unsafe fn native<K: Kernel>(arguments: *const (), team: Team) {
            if let Some(body) = K::NATIVE {
                // SAFETY: guaranteed by the caller.
                unsafe { body(*(arguments as *const K), team) };
            }
        }
        const {
            assert!(K::THREADS % 32 == 0 && K::THREADS > 0 && K::THREADS <= 1024, "a block is 1 to 32 whole warps");
            &Self {
                target: Target::of::<K>(),
                name: K::NAME,
                threads: K::THREADS,
                shared_bytes: K::SHARED_BYTES,
                layout: Layout::new::<K>(),
                entry: if Self::is_simulated::<K>() { Some(cpu::entry::<K>()) } else { None },
                native: if Self::is_compiled::<K>() && K::NATIVE.is_some() { Some(native::<K>) } else { None },
                // SAFETY: a reference is passed as a pointer is. Who calls it has a `K`.
                buffers: unsafe { transmute::<VisitBuffers<&K>, VisitBuffers<*const ()>>(K::params) },
                holes: K::HOLES,
            }
        }
    }

    /// Returns the buffers among the arguments, with their names.
    ///
    /// # Safety
    /// The arguments are those of a kernel of this type.
    pub unsafe fn buffers(&self, arguments: *const ()) -> Vec<(&'static str, Buffer)> {
        let mut buffers = Vec::new();
        // SAFETY: guaranteed by the caller.
        unsafe { (self.buffers)(arguments, &mut |name, buffer| buffers.push((name, buffer))) };
        buffers
    }

    /// Returns the operators among the arguments that were not known when the kernel was compiled.
    ///
    /// # Safety
    /// The arguments are those of a kernel of this type.
    pub unsafe fn filled(&self, arguments: *const ()) -> Operators {
        Operators::new(self.holes, |offset| {
            // SAFETY: the arguments have a hole there.
            unsafe { &*arguments.cast::<Hole>().wrapping_byte_add(offset) }.filling()
        })
    }
}

/// A copy of a kernel's arguments.
#[derive(Debug)]
pub(crate) struct Arguments {
    pub kernel: &'static KernelType,
    memory: NonNull<u8>,
}

impl Arguments {
    /// Copies arguments.
    ///
    /// # Safety
    /// They are those of a kernel of this type.
    pub unsafe fn copy(kernel: &'static KernelType, arguments: *const ()) -> Self {
        let layout = kernel.layout;
        if layout.size() == 0 {
            let aligned = NonZero::new(layout.align()).expect("an alignment is not zero");
            return Self { kernel, memory: NonNull::without_provenance(aligned) };
        }
        // SAFETY: the size is not zero; kernels are `Copy`, so their bytes can be copied.
        unsafe {
            let memory = NonNull::new(alloc(layout)).unwrap_or_else(|| handle_alloc_error(layout));
            memory.as_ptr().copy_from_nonoverlapping(arguments.cast(), layout.size());
            Self { kernel, memory }
        }
    }

    pub fn as_ptr(&self) -> *const () {
        self.memory.as_ptr().cast()
    }
}

impl Drop for Arguments {
    fn drop(&mut self) {
        if self.kernel.layout.size() > 0 {
            // SAFETY: allocated with this layout by `copy`.
            unsafe { dealloc(self.memory.as_ptr(), self.kernel.layout) };
        }
    }
}
