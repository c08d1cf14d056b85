//! The types and constants of the driver API, as in its manual, and the library itself.
//!
//! It covers only what this crate calls. Handles are pointers to uninhabited types. Enumerations are numbers, since a
//! driver newer than this crate may have more values.

#![allow(non_camel_case_types, reason = "the names under which the driver's manual has them")]

use core::ffi::{c_int, c_uint, c_ulonglong};
use libloading::Library;
use std::sync::OnceLock;

macro_rules! handles {
    ($($(#[$doc:meta])* $handle:ident = $object:ident;)*) => { $(
        /// The target of a handle.
        pub(in crate::host::runtime) enum $object {}
        $(#[$doc])*
        pub(in crate::host::runtime) type $handle = *mut $object;
    )* };
}

handles! {
    /// A context.
    CUcontext = CUctx_st;
    /// An event.
    CUevent = CUevent_st;
    /// A kernel.
    CUfunction = CUfunc_st;
    /// A graph.
    CUgraph = CUgraph_st;
    /// A launchable graph.
    CUgraphExec = CUgraphExec_st;
    /// A module that is not loaded into a context yet.
    CUlibrary = CUlib_st;
    /// A memory pool.
    CUmemoryPool = CUmemPoolHandle_st;
    /// A module.
    CUmodule = CUmod_st;
    /// A stream.
    CUstream = CUstream_st;
}

/// The driver's number of a device.
pub(in crate::host::runtime) type CUdevice = c_int;
/// An address in device memory.
pub(in crate::host::runtime) type CUdeviceptr = c_ulonglong;

macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident { $($value:ident = $number:literal),* $(,)? })*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy)]
        #[repr(transparent)]
        pub(in crate::host::runtime) struct $name(#[allow(dead_code, reason = "the driver reads it")] c_uint);

        impl $name {
            $(pub(in crate::host::runtime) const $value: Self = Self($number);)*
        }
    )* };
}

numbers! {
    /// Attributes of a device.
    CUdevice_attribute {
        MULTIPROCESSOR_COUNT = 16,
        COMPUTE_CAPABILITY_MAJOR = 75,
        COMPUTE_CAPABILITY_MINOR = 76,
        CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM = 91,
        MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
        MEMORY_POOLS_SUPPORTED = 115,
    }
    /// Attributes of a kernel.
    CUfunction_attribute { MAX_DYNAMIC_SHARED_SIZE_BYTES = 8 }
    /// Options of the driver's compiler.
    CUjit_option { ERROR_LOG_BUFFER = 5, ERROR_LOG_BUFFER_SIZE_BYTES = 6 }
    /// Options of a library.
    CUlibraryOption {}
    /// Attributes of a memory pool.
    CUmemPool_attribute {
        REUSE_ALLOW_INTERNAL_DEPENDENCIES = 3,
        RELEASE_THRESHOLD = 4,
        RESERVED_MEM_CURRENT = 5,
        USED_MEM_CURRENT = 7,
    }
    /// Attributes of an address.
    CUpointer_attribute { CONTEXT = 1, MEMORY_TYPE = 2, DEVICE_ORDINAL = 9, RANGE_START_ADDR = 11, RANGE_SIZE = 12 }
    /// Which calls of other threads a recording stream forbids.
    CUstreamCaptureMode { RELAXED = 2 }
}

/// How a kernel is launched.
#[repr(C)]
pub(super) struct CUlaunchConfig {
    pub(super) blocks: [c_uint; 3],
    pub(super) threads: [c_uint; 3],
    pub(super) shared_bytes: c_uint,
    pub(super) stream: CUstream,
    pub(super) attributes: *const CUlaunchAttribute,
    pub(super) attribute_count: c_uint,
}

/// A property of a launch.
#[repr(C, align(8))]
pub(super) struct CUlaunchAttribute {
    id: c_uint,
    padding: c_uint,
    value: [c_uint; 16],
}

impl CUlaunchAttribute {
    /// The kernel may begin before the one before it in the stream has ended.
    pub(super) const PROGRAMMATIC_STREAM_SERIALIZATION: Self = {
        let mut value = [0; 16];
        value[0] = 1;
        Self { id: 6, padding: 0, value }
    };
}

/// Returns the driver's library, if it is installed. Once loaded, it stays until the process ends.
pub(super) fn library() -> Option<&'static Library> {
    static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();
    let names: &[&str] = if cfg!(windows) { &["nvcuda.dll"] } else { &["libcuda.so.1", "libcuda.so"] };
    // SAFETY: loading the driver's library runs its initialisers, which are made for that.
    LIBRARY.get_or_init(|| names.iter().find_map(|name| unsafe { Library::new(*name) }.ok())).as_ref()
}
