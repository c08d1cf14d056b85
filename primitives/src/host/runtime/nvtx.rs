//! Ranges of NVTX, NVIDIA's interface to its profilers.
//!
//! There is no library to link. A profiler sets the variable `NVTX_INJECTION64_PATH` to its own library. That library is loaded at
//! the first range; it asks for the table of functions, and puts its own functions there. Without a profiler, a range costs one
//! load and one comparison.

use core::ffi::{c_int, c_uint, c_void};
use core::marker::PhantomData;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};
use std::sync::OnceLock;

/// A range of the calling thread that ends when it is dropped. Ranges end in the opposite order of their starts, so it stays on
/// its thread.
#[doc(hidden)]
#[must_use = "the range ends when it is dropped"]
pub struct NvtxRange {
    pop: Option<unsafe extern "C" fn() -> c_int>,
    of_this_thread: PhantomData<*const ()>,
}

impl NvtxRange {
    /// Starts a range. The name ends with a zero.
    pub fn push(name: &'static str, elements: u64) -> Self {
        let of_this_thread = PhantomData;
        let Some(profiler) = profiler() else { return Self { pop: None, of_this_thread } };
        assert!(name.ends_with('\0'), "the name of a range ends with a zero");
        let attributes = Attributes {
            version: Attributes::VERSION,
            size: size_of::<Attributes>() as u16,
            category: 0,
            color_type: 0,
            color: 0,
            payload_type: Attributes::PAYLOAD_U64,
            reserved: 0,
            payload: elements,
            message_type: Attributes::MESSAGE_ASCII,
            message: name.as_ptr(),
        };
        // SAFETY: the profiler's function reads the attributes during the call; the message ends with a zero.
        unsafe { (profiler.push)(&attributes) };
        Self { pop: Some(profiler.pop), of_this_thread }
    }
}

impl Drop for NvtxRange {
    fn drop(&mut self) {
        if let Some(pop) = self.pop {
            // SAFETY: a range was pushed on this thread.
            unsafe { pop() };
        }
    }
}

/// The attributes of a range, version 3 of the interface.
#[repr(C)]
struct Attributes {
    version: u16,
    size: u16,
    category: u32,
    color_type: i32,
    color: u32,
    payload_type: i32,
    reserved: i32,
    payload: u64,
    message_type: i32,
    message: *const u8,
}

impl Attributes {
    const VERSION: u16 = 3;
    const PAYLOAD_U64: i32 = 1;
    const MESSAGE_ASCII: i32 = 1;
}

const _: () = assert!(size_of::<Attributes>() == 48);

/// The functions of a profiler.
#[derive(Clone, Copy)]
struct Profiler {
    push: unsafe extern "C" fn(*const Attributes) -> c_int,
    pop: unsafe extern "C" fn() -> c_int,
}

/// The number of functions of each module, with the one that has number 0 and does not exist.
const FUNCTIONS: usize = 16;
/// The numbers of two functions of the first module.
const RANGE_PUSH_EX: usize = 8;
const RANGE_POP: usize = 11;

/// Where a profiler puts its functions.
static CORE: [AtomicPtr<c_void>; FUNCTIONS] = [const { AtomicPtr::new(null_mut()) }; FUNCTIONS];
/// The functions for domains, which are not called here. Profilers expect the table.
static CORE2: [AtomicPtr<c_void>; FUNCTIONS] = [const { AtomicPtr::new(null_mut()) }; FUNCTIONS];

/// The addresses of a module's functions, and a null at the end.
struct Table([*const AtomicPtr<c_void>; FUNCTIONS + 1]);

// SAFETY: the addresses are those of atomics.
unsafe impl Send for Table {}
// SAFETY: as above.
unsafe impl Sync for Table {}

impl Table {
    fn of(functions: &'static [AtomicPtr<c_void>; FUNCTIONS]) -> Self {
        let mut table = [core::ptr::null(); FUNCTIONS + 1];
        for (entry, function) in table.iter_mut().zip(functions).skip(1) {
            *entry = function;
        }
        Self(table)
    }
}

/// Hands out the table of a module, by its number.
unsafe extern "C" fn module_functions(
    module: c_uint,
    table: *mut *const *const AtomicPtr<c_void>,
    size: *mut c_uint,
) -> c_int {
    static TABLES: [OnceLock<Table>; 2] = [OnceLock::new(), OnceLock::new()];
    let found = match module {
        1 => TABLES[0].get_or_init(|| Table::of(&CORE)),
        5 => TABLES[1].get_or_init(|| Table::of(&CORE2)),
        _ => return 0,
    };
    // SAFETY: the profiler passes valid pointers, or null for what it does not need.
    unsafe {
        if !size.is_null() {
            *size = FUNCTIONS as c_uint;
        }
        if !table.is_null() {
            *table = found.0.as_ptr();
        }
    }
    1
}

#[repr(C)]
struct Callbacks {
    size: usize,
    module_functions: unsafe extern "C" fn(c_uint, *mut *const *const AtomicPtr<c_void>, *mut c_uint) -> c_int,
}

#[repr(C)]
struct VersionInfo {
    size: usize,
    version: u32,
    reserved: u32,
    set_profiler_version: unsafe extern "C" fn(u32),
}

unsafe extern "C" fn ignore_version(_: u32) {}

/// Hands out what a profiler asks for, by its number.
unsafe extern "C" fn export(id: u32) -> *const c_void {
    static CALLBACKS: Callbacks = Callbacks { size: size_of::<Callbacks>(), module_functions };
    static VERSION: VersionInfo =
        VersionInfo { size: size_of::<VersionInfo>(), version: 3, reserved: 0, set_profiler_version: ignore_version };
    match id {
        1 => (&raw const CALLBACKS).cast(),
        3 => (&raw const VERSION).cast(),
        _ => core::ptr::null(),
    }
}

/// Returns the functions of the profiler; `None` without one.
fn profiler() -> Option<Profiler> {
    static PROFILER: OnceLock<Option<Profiler>> = OnceLock::new();
    *PROFILER.get_or_init(|| {
        type Export = unsafe extern "C" fn(u32) -> *const c_void;
        let path = std::env::var_os("NVTX_INJECTION64_PATH")?;
        // SAFETY: whoever sets the variable wants this library to be loaded.
        let library = unsafe { libloading::Library::new(path) }.ok()?;
        // SAFETY: this is the signature in the interface.
        let start = unsafe { library.get::<unsafe extern "C" fn(Export) -> c_int>("InitializeInjectionNvtx2") }.ok()?;
        // SAFETY: as above. It calls `export`, and writes functions of the right types into the tables.
        let started = unsafe { start(export) } != 0;
        if !started {
            return None;
        }
        core::mem::forget(library); // its functions are called until the process ends
        let (push, pop) = (CORE[RANGE_PUSH_EX].load(Ordering::Acquire), CORE[RANGE_POP].load(Ordering::Acquire));
        // SAFETY: these are the types of the functions with these numbers.
        (!push.is_null() && !pop.is_null()).then(|| unsafe {
            Profiler {
                push: core::mem::transmute::<*mut c_void, unsafe extern "C" fn(*const Attributes) -> c_int>(push),
                pop: core::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> c_int>(pop),
            }
        })
    })
}
