//! Kernels on a GPU: compiled from PTX by the driver on their first launch, once per device.

use super::device::{CudaDevice, call};
use super::driver::Status;
use super::sys::{CUfunction, CUfunction_attribute, CUjit_option, CUlibrary, CUmodule};
use crate::form::Holes;
use crate::host::error::Error;
use crate::host::instance::{Instance, Target};
use crate::host::runtime::dependent_launch::waiting_for_the_previous;
use crate::host::runtime::device::lock;
use crate::host::runtime::fill::{Operators, fill};
use crate::host::runtime::loading::{Loading, Next, Upcoming};
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use std::any::TypeId;
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

/// The shared memory per block that every kernel may use without opting in.
const SHARED_BYTES_UNASKED: usize = 48 * 1024;
/// The buffer size for the log of the driver's compiler; the driver truncates the rest.
const LOG_BYTES: usize = 8 * 1024;

/// A loaded kernel.
#[derive(Clone, Copy)]
pub(super) struct Function {
    pub(super) name: &'static str,
    pub(super) raw: CUfunction,
    /// Whether it may be launched before the kernel before it has ended.
    pub(super) waits_first: bool,
    module: Module,
}

/// Loaded PTX.
#[derive(Clone, Copy)]
struct Module {
    raw: CUmodule,
    /// The library that it was loaded from, and that owns it.
    library: Option<CUlibrary>,
}

// SAFETY: any thread may use the handles.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

/// The kernels of a device that have been requested.
#[derive(Default)]
pub(super) struct Modules {
    slots: RwLock<HashMap<Loaded, Arc<Slot>>>,
    loading: Mutex<Loading>,
}

/// A kernel type, and the operators in its holes.
type Loaded = (TypeId, [Option<TypeId>; Holes::MAX]);

/// The slot of a kernel. Loading takes long: a second thread that needs the same kernel waits here; a thread that needs
/// another kernel does not.
#[derive(Default)]
struct Slot {
    function: OnceLock<Function>,
    loading: Mutex<()>,
}

impl CudaDevice {
    /// Returns the kernel, and loads it if this is its first launch with these operators, at the same time as those that come
    /// next. [`enter`](Self::enter) was called.
    pub(super) fn function(&self, kernel: Target, operators: Operators, next: Option<Next>) -> Result<Function, Error> {
        if let Some(function) = self.loaded(kernel.id, operators) {
            return Ok(function);
        }
        // What an operator records is up to its author, and may launch this very kernel: no lock is held.
        operators.record()?;
        let Some(next) = next else { return self.load_once(kernel.id, kernel.instance()?, operators) };
        let upcoming = Upcoming::after(operators, next).kernels;
        self.load_all(upcoming, || self.load_once(kernel.id, kernel.instance()?, operators))
    }

    /// Returns the kernel if it is loaded.
    fn loaded(&self, kernel: TypeId, operators: Operators) -> Option<Function> {
        let slots = self.modules().slots.read().unwrap_or_else(PoisonError::into_inner);
        slots.get(&(kernel, operators.ids())).and_then(|slot| slot.function.get()).copied()
    }

    /// Loads kernels in threads of their own, while `load` runs. Errors of theirs show when they are launched.
    fn load_all<T>(&self, kernels: Vec<(Target, Operators)>, load: impl FnOnce() -> T) -> T {
        thread::scope(|scope| {
            for (kernel, operators) in kernels {
                if self.loaded(kernel.id, operators).is_some() || operators.record().is_err() {
                    continue;
                }
                let load = move || {
                    self.enter().and_then(|()| self.load_once(kernel.id, kernel.instance()?, operators)).map(drop)
                };
                // Without a thread, the kernel is loaded when it is launched.
                let _ = thread::Builder::new().spawn_scoped(scope, load);
            }
            load()
        })
    }

    /// Loads a kernel, unless another thread has. Its operators are recorded.
    fn load_once(&self, kernel: TypeId, instance: &'static Instance, operators: Operators) -> Result<Function, Error> {
        let slots = &self.modules().slots;
        let loaded = (kernel, operators.ids());
        let slot = Arc::clone(slots.write().unwrap_or_else(PoisonError::into_inner).entry(loaded).or_default());
        let _loading = lock(&slot.loading);
        if let Some(function) = slot.function.get() {
            return Ok(*function);
        }
        // A failure is not stored: it may be a lack of memory, which can pass.
        let start = Instant::now();
        let function = self.load(instance, operators)?;
        self.note_loading(function.name, start.elapsed());
        Ok(*slot.function.get_or_init(|| function))
    }

    fn note_loading(&self, name: &'static str, time: Duration) {
        let mut loading = lock(&self.modules().loading);
        loading.kernels += 1;
        loading.time += time;
        if loading.slowest.is_none_or(|(_, slowest)| slowest < time) {
            loading.slowest = Some((name, time));
        }
    }

    /// Unloads all kernels.
    ///
    /// # Safety
    /// Nothing launches them any more, and [`enter`](Self::enter) was called.
    pub(super) unsafe fn unload(&mut self) {
        let slots = core::mem::take(self.modules_mut().slots.get_mut().unwrap_or_else(PoisonError::into_inner));
        for function in slots.values().filter_map(|slot| slot.function.get()) {
            // SAFETY: guaranteed by the caller.
            unsafe { self.unload_module(function.module) };
        }
    }

    /// Returns what loading kernels has cost so far.
    pub(in crate::host::runtime) fn loading(&self) -> Loading {
        lock(&self.modules().loading).clone()
    }

    /// Loads kernels for their operators, several at the same time.
    pub(in crate::host::runtime) fn preload(&self, kernels: &[(&'static Instance, Operators)]) -> Result<(), Error> {
        for (_, operators) in kernels {
            operators.record()?;
        }
        let (taken, failure) = (AtomicUsize::new(0), Mutex::new(None));
        let work = || {
            while let Some(&(instance, operators)) = kernels.get(taken.fetch_add(1, Ordering::Relaxed)) {
                let load = || self.load_once(instance.kernel(), instance, operators);
                if let Err(error) = self.enter().and_then(|()| load()) {
                    lock(&failure).get_or_insert(error);
                }
            }
        };
        thread::scope(|scope| {
            let threads = thread::available_parallelism().map_or(1, usize::from).min(kernels.len());
            for _ in 1..threads {
                let _ = thread::Builder::new().spawn_scoped(scope, work);
            }
            work();
        });
        failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    /// Loads those of the kernels that are not loaded yet.
    pub(in crate::host::runtime) fn load_missing(&self, kernels: &[(Target, Operators)]) -> Result<(), Error> {
        let mut missing = Vec::new();
        for &(kernel, operators) in kernels {
            if self.loaded(kernel.id, operators).is_none() {
                missing.push((kernel.instance()?, operators));
            }
        }
        if missing.is_empty() { Ok(()) } else { self.preload(&missing) }
    }

    fn load(&self, instance: &'static Instance, operators: Operators) -> Result<Function, Error> {
        let (asked, limit) = (instance.shared_bytes(), self.limits().shared_bytes_per_block);
        if asked > limit {
            let what = "bytes of shared memory per block";
            return Err(Error::LaunchTooLarge { kernel: instance.name(), what, asked, limit });
        }
        let (module, waits_first) = self.load_module(instance, operators)?;
        self.find_function(instance, module, waits_first).inspect_err(|_| {
            // SAFETY: the module was loaded above, and nothing in it is in use.
            unsafe { self.unload_module(module) };
        })
    }

    /// Also returns whether the kernel begins by waiting for the one before it.
    fn load_module(&self, instance: &Instance, operators: Operators) -> Result<(Module, bool), Error> {
        let rejected = |log: String| Error::PtxRejected { kernel: instance.name(), device: self.describe(), log };
        let text = fill(instance.ptx(), operators).map_err(&rejected)?;
        let waiting = if self.can_launch_early() { waiting_for_the_previous(&text) } else { None };
        let waits_first = waiting.is_some();
        let text = waiting.unwrap_or(text);
        let ptx = CString::new(text).map_err(|_| rejected("the text has a zero byte in it".into()))?;
        if let Some(module) = self.load_library(&ptx) {
            return Ok((module, waits_first));
        }
        let mut log = vec![0u8; LOG_BYTES];
        let mut options = [CUjit_option::ERROR_LOG_BUFFER, CUjit_option::ERROR_LOG_BUFFER_SIZE_BYTES];
        // The driver takes all values as pointers, including numbers.
        let mut values = [log.as_mut_ptr().cast::<c_void>(), core::ptr::without_provenance_mut(LOG_BYTES)];
        let mut module: CUmodule = null_mut();
        // SAFETY: the text ends with a zero; there are as many values as options, and the buffer has the length that is
        // passed.
        let status = unsafe {
            (self.driver().cuModuleLoadDataEx)(
                &mut module,
                ptx.as_ptr().cast(),
                options.len() as u32,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        if status.is_about_ptx() {
            let end = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
            let log = String::from_utf8_lossy(&log[..end]);
            let (code, message) = self.driver().describe(status);
            return Err(rejected(format!("{code}: {message}\n{}", log.trim_end()).trim_end().to_owned()));
        }
        self.check("cuModuleLoadDataEx", status)?;
        Ok((Module { raw: module, library: None }, waits_first))
    }

    /// Loads PTX as a library of the driver, if it has such. If anything fails, `cuModuleLoadDataEx` says what.
    ///
    /// The driver compiles several libraries at once in several threads, and modules one after the other. The code is the same.
    /// (Its linker, `cuLinkAddData`, also works in several threads, but allocates registers in another way.)
    fn load_library(&self, ptx: &CStr) -> Option<Module> {
        let driver = self.driver();
        let (load, get, unload) = (driver.cuLibraryLoadData?, driver.cuLibraryGetModule?, driver.cuLibraryUnload?);
        let (mut library, mut raw): (CUlibrary, CUmodule) = (null_mut(), null_mut());
        let (none, text) = (null_mut(), ptx.as_ptr().cast());
        // SAFETY: the text ends with a zero, and there are no options.
        if unsafe { load(&mut library, text, null_mut(), none, 0, null_mut(), none, 0) } != Status::SUCCESS {
            return None;
        }
        // SAFETY: the library was loaded above.
        if unsafe { get(&mut raw, library) } != Status::SUCCESS {
            // SAFETY: nothing uses it.
            let _ = unsafe { unload(library) };
            return None;
        }
        Some(Module { raw, library: Some(library) })
    }

    /// Unloads a module.
    ///
    /// # Safety
    /// Nothing uses its kernels any more.
    unsafe fn unload_module(&self, module: Module) {
        let driver = self.driver();
        let _ = match module.library.zip(driver.cuLibraryUnload) {
            // SAFETY: guaranteed by the caller.
            Some((library, unload)) => unsafe { unload(library) },
            // SAFETY: as above.
            None => unsafe { (driver.cuModuleUnload)(module.raw) },
        };
    }

    fn find_function(&self, instance: &'static Instance, module: Module, waits_first: bool) -> Result<Function, Error> {
        let name = instance.name();
        let rejected = |log: String| Error::PtxRejected { kernel: name, device: self.describe(), log };
        let entry = CString::new(name).map_err(|_| rejected("the name has a zero byte in it".into()))?;
        let mut raw: CUfunction = null_mut();
        // SAFETY: the module is loaded, and the name ends with a zero.
        let status = unsafe { (self.driver().cuModuleGetFunction)(&mut raw, module.raw, entry.as_ptr()) };
        if status == Status::NOT_FOUND {
            return Err(rejected(format!("it has no entry `{name}`: rebuild the PTX")));
        }
        if status.is_about_ptx() {
            let (code, message) = self.driver().describe(status);
            return Err(rejected(format!("{code}: {message}")));
        }
        self.check("cuModuleGetFunction", status)?;
        let shared_bytes = instance.shared_bytes();
        if shared_bytes > SHARED_BYTES_UNASKED {
            let attribute = CUfunction_attribute::MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // SAFETY: the function was found above.
            unsafe { call!(self, cuFuncSetAttribute(raw, attribute, shared_bytes as c_int)) }?;
        }
        Ok(Function { name, raw, waits_first, module })
    }

    /// Returns the device's name and compute capability, for messages about its compiler.
    fn describe(&self) -> String {
        match self.limits().compute_capability {
            Some((major, minor)) => format!("{} (sm_{major}{minor})", self.name()),
            None => self.name().to_owned(),
        }
    }
}
