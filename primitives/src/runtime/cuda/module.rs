//! Kernels on a GPU: compiled from PTX by the driver on their first launch, once per device.

use super::device::{CudaDevice, call};
use super::driver::Status;
use super::sys::{CUfunction, CUfunction_attribute, CUjit_option, CUmodule};
use crate::form::Holes;
use crate::runtime::device::lock;
use crate::runtime::early::waiting_for_the_previous;
use crate::runtime::error::Error;
use crate::runtime::fill::{Operators, fill};
use crate::runtime::instance::Instance;
use crate::runtime::loading::Loading;
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use std::any::TypeId;
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
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
    module: CUmodule,
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
    /// Returns the kernel, and loads it if this is its first launch with these operators. [`enter`](Self::enter) was called.
    pub(super) fn function(
        &self,
        kernel: TypeId,
        operators: Operators,
        instance: impl FnOnce() -> Result<&'static Instance, Error>,
    ) -> Result<Function, Error> {
        let loaded = (kernel, operators.ids());
        let slots = &self.modules().slots;
        let slot = {
            let slots = slots.read().unwrap_or_else(PoisonError::into_inner);
            match slots.get(&loaded).map(|slot| (slot.function.get(), slot)) {
                Some((Some(function), _)) => return Ok(*function),
                Some((None, slot)) => Some(Arc::clone(slot)),
                None => None,
            }
        };
        // What an operator records is up to its author, and may launch this very kernel: no lock is held.
        operators.record()?;
        let slot = slot.unwrap_or_else(|| {
            Arc::clone(slots.write().unwrap_or_else(PoisonError::into_inner).entry(loaded).or_default())
        });
        let _loading = lock(&slot.loading);
        if let Some(function) = slot.function.get() {
            return Ok(*function);
        }
        // A failure is not stored: it may be a lack of memory, which can pass.
        let start = Instant::now();
        let function = self.load(instance()?, operators)?;
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
        let driver = self.driver();
        for slot in self.modules_mut().slots.get_mut().unwrap_or_else(PoisonError::into_inner).values() {
            if let Some(function) = slot.function.get() {
                // SAFETY: guaranteed by the caller.
                let _ = unsafe { (driver.cuModuleUnload)(function.module) };
            }
        }
    }

    /// Returns what loading kernels has cost so far.
    pub(in crate::runtime) fn loading(&self) -> Loading {
        lock(&self.modules().loading).clone()
    }

    /// Loads a kernel for its operators.
    pub(in crate::runtime) fn preload(&self, instance: &'static Instance, operators: Operators) -> Result<(), Error> {
        self.enter()?;
        self.function(instance.kernel(), operators, || Ok(instance)).map(drop)
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
            let _ = unsafe { (self.driver().cuModuleUnload)(module) };
        })
    }

    /// Also returns whether the kernel begins by waiting for the one before it.
    fn load_module(&self, instance: &Instance, operators: Operators) -> Result<(CUmodule, bool), Error> {
        let rejected = |log: String| Error::PtxRejected { kernel: instance.name(), device: self.describe(), log };
        let text = fill(instance.ptx(), operators).map_err(&rejected)?;
        let waiting = if self.can_launch_early() { waiting_for_the_previous(&text) } else { None };
        let waits_first = waiting.is_some();
        let text = waiting.unwrap_or(text);
        let ptx = CString::new(text).map_err(|_| rejected("the text has a zero byte in it".into()))?;
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
        Ok((module, waits_first))
    }

    fn find_function(
        &self,
        instance: &'static Instance,
        module: CUmodule,
        waits_first: bool,
    ) -> Result<Function, Error> {
        let name = instance.name();
        let rejected = |log: String| Error::PtxRejected { kernel: name, device: self.describe(), log };
        let entry = CString::new(name).map_err(|_| rejected("the name has a zero byte in it".into()))?;
        let mut raw: CUfunction = null_mut();
        // SAFETY: the module is loaded, and the name ends with a zero.
        let status = unsafe { (self.driver().cuModuleGetFunction)(&mut raw, module, entry.as_ptr()) };
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
