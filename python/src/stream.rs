//! Streams, and the devices that they belong to.

use crate::error::{OrRaise, value_error};
use core::cell::RefCell;
use core::ffi::c_void;
use gpu_primitives::{Device, Stream};
use libloading::Library;
use pyo3::prelude::*;
use std::sync::OnceLock;

/// Where an array is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Cpu,
    Cuda(usize),
}

impl Place {
    /// Returns the place of a number: -1 is the CPU, others are GPUs.
    pub fn of(index: i32) -> Self {
        usize::try_from(index).map_or(Self::Cpu, Self::Cuda)
    }

    pub fn index(self) -> i32 {
        match self {
            Self::Cpu => -1,
            Self::Cuda(index) => index as i32,
        }
    }

    pub fn name(self) -> String {
        match self {
            Self::Cpu => "cpu".to_owned(),
            Self::Cuda(index) => format!("cuda:{index}"),
        }
    }

    /// Opens the device. `GPU_PRIMITIVES_DEVICE` can name the CPU device that arrays on the host use, and thereby forbid GPUs.
    pub fn device(self) -> PyResult<Device> {
        let asked = std::env::var("GPU_PRIMITIVES_DEVICE").unwrap_or_default();
        match self {
            Self::Cpu if asked.starts_with("cpu") => Device::parse(&asked).or_raise(),
            Self::Cpu => Ok(Device::cpu()),
            Self::Cuda(index) if asked.starts_with("cpu") => {
                Err(value_error(format!("GPU_PRIMITIVES_DEVICE is {asked}, and the array is on cuda:{index}")))
            }
            Self::Cuda(index) => Device::cuda(index).or_raise(),
        }
    }
}

thread_local! {
    /// The stream of this thread for arrays on the host: streams of several threads run side by side.
    static HOST: RefCell<Option<Stream>> = const { RefCell::new(None) };
}

/// A stream of this library, or of another one.
#[pyclass(frozen, name = "Stream", module = "gpu_primitives._core")]
pub struct PyStream {
    pub place: Place,
    pub stream: Stream,
}

#[pymethods]
impl PyStream {
    /// The stream of the calling thread for arrays on the host.
    #[staticmethod]
    fn cpu() -> PyResult<Self> {
        let stream = HOST.with_borrow_mut(|host| match host {
            Some(stream) => Ok(stream.clone()),
            None => {
                let stream = Place::Cpu.device()?.stream().or_raise()?;
                Ok::<_, PyErr>(host.insert(stream).clone())
            }
        })?;
        Ok(Self { place: Place::Cpu, stream })
    }

    /// A stream of the driver: its handle, on a GPU. The caller keeps it as long as the process runs.
    #[staticmethod]
    fn cuda(index: usize, handle: usize) -> PyResult<Self> {
        let place = Place::Cuda(index);
        let device = place.device()?;
        let handle = if handle == 1 { 0 } else { handle }; // both are the legacy default stream
        let raw: *mut c_void = core::ptr::with_exposed_provenance_mut(handle);
        // SAFETY: the package passes the current streams of torch and CuPy, and keeps them.
        let stream = unsafe { Stream::borrow_cuda_stream(&device, raw) }.or_raise()?;
        Ok(Self { place, stream })
    }

    /// A new stream of this library on a GPU.
    #[staticmethod]
    fn own(index: usize) -> PyResult<Self> {
        let place = Place::Cuda(index);
        Ok(Self { place, stream: place.device()?.stream().or_raise()? })
    }

    /// The driver's handle; 0 on the CPU.
    #[getter]
    fn handle(&self) -> usize {
        self.stream.cuda_stream().map_or(0, |raw| raw.expose_provenance())
    }

    /// The number of the GPU; -1 for the CPU.
    #[getter]
    fn device(&self) -> i32 {
        self.place.index()
    }

    /// Waits for all work.
    fn synchronize(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.stream.synchronize()).or_raise()
    }
}

/// Waits for all work on a GPU, also that of other libraries. Returns whether all of it is done; on the CPU, it always is.
pub fn wait_for_all(device: &Device) -> bool {
    let Some(context) = device.cuda_context() else { return true };
    static DRIVER: OnceLock<Option<Library>> = OnceLock::new();
    let name = if cfg!(windows) { "nvcuda.dll" } else { "libcuda.so.1" };
    // SAFETY: the driver is loaded: there is a context. It stays loaded, and the functions have these arguments.
    unsafe {
        let Some(driver) = DRIVER.get_or_init(|| Library::new(name).ok()) else { return false };
        let push = driver.get::<unsafe extern "C" fn(*mut c_void) -> i32>("cuCtxPushCurrent_v2");
        let pop = driver.get::<unsafe extern "C" fn(*mut *mut c_void) -> i32>("cuCtxPopCurrent_v2");
        let synchronize = driver.get::<unsafe extern "C" fn() -> i32>("cuCtxSynchronize");
        let (Ok(push), Ok(pop), Ok(synchronize)) = (push, pop, synchronize) else { return false };
        if push(context) != 0 {
            return false;
        }
        let status = synchronize();
        let mut popped = core::ptr::null_mut();
        pop(&mut popped);
        status == 0
    }
}

/// Returns the number of GPUs.
#[pyfunction]
pub fn cuda_count() -> usize {
    Device::cuda_count()
}
