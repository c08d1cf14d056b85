//! Arrays of other libraries, as calls use them.

use crate::dlpack::{self, Managed};
use crate::dtype::{DType, each_size};
use crate::error::{Kind, OrRaise, exception, type_error, value_error};
use crate::stream::{Place, PyStream};
use bytemuck::Pod;
use gpu_primitives::{DeviceKind, DeviceSlice, DeviceSliceMut, DeviceVec, RawMemory, Stream};
use pyo3::prelude::*;

/// What keeps the memory of a tensor.
#[expect(dead_code, reason = "is dropped, which gives the memory back")]
enum Owner {
    Managed(Managed),
    Object(Py<PyAny>),
    Memory(DeviceVec<u64>),
    /// The caller, in Rust.
    Nobody,
}

/// An array without gaps. It keeps the memory as long as it lives.
#[pyclass(frozen, module = "gpu_primitives._core")]
pub struct Tensor {
    address: usize,
    len: usize,
    #[pyo3(get)]
    shape: Vec<usize>,
    pub dtype: DType,
    pub place: Place,
    #[pyo3(get)]
    read_only: bool,
    _owner: Owner,
}

/// Returns the number of elements.
fn elements(shape: &[usize], dtype: DType) -> PyResult<usize> {
    let len = shape.iter().try_fold(1usize, |len, &next| len.checked_mul(next));
    let len = len.filter(|len| len.checked_mul(dtype.size()).is_some_and(|bytes| bytes <= isize::MAX as usize));
    len.ok_or_else(|| value_error(format!("an array of the shape {shape:?} has more elements than can be counted")))
}

impl Tensor {
    fn new(
        address: usize,
        shape: Vec<usize>,
        dtype: DType,
        place: Place,
        read_only: bool,
        owner: Owner,
    ) -> PyResult<Self> {
        let len = elements(&shape, dtype)?;
        let size = dtype.size();
        if len > 0 && address == 0 {
            return Err(value_error("an array with elements is at the address 0: it has no memory of its own"));
        }
        if !address.is_multiple_of(size) {
            return Err(value_error(format!(
                "an array of {} begins at the address {address:#x}, which is not a multiple of {size}; copy it",
                dtype.name()
            )));
        }
        if address.checked_add(len * size).is_none() {
            return Err(value_error("an array ends after the last address"));
        }
        Ok(Self { address: if len == 0 { size } else { address }, len, shape, dtype, place, read_only, _owner: owner })
    }

    /// Asks the driver whether the memory is there, for arrays of libraries that this package does not know.
    fn verify(&self) -> PyResult<()> {
        if let (Place::Cuda(_), 1..) = (self.place, self.len) {
            let address = core::ptr::with_exposed_provenance_mut::<u8>(self.address);
            RawMemory::new(&self.place.device()?, address, self.len * self.dtype.size()).or_raise()?;
        }
        Ok(())
    }

    /// Memory of this library. The caller keeps it while the tensor is used, on the stream that it was made on.
    pub fn of_memory(stream: &Stream, address: usize, dtype: DType, len: usize) -> Self {
        let place = match stream.device().kind() {
            DeviceKind::Cuda { ordinal } => Place::Cuda(ordinal),
            _ => Place::Cpu,
        };
        let address = if len == 0 { dtype.size() } else { address };
        Self { address, len, shape: vec![len], dtype, place, read_only: true, _owner: Owner::Nobody }
    }

    /// The elements of a vector, as `len` of another type.
    pub fn of_vec<T: Pod>(stream: &Stream, memory: &DeviceVec<T>, dtype: DType, len: usize) -> Self {
        assert_eq!(memory.len() * size_of::<T>(), len * dtype.size());
        Self::of_memory(stream, memory.as_slice().as_ptr().expose_provenance(), dtype, len)
    }

    /// Returns the bytes of the elements.
    pub fn bytes<'a>(&self, stream: &'a Stream) -> DeviceSlice<'a, u8> {
        each_size!(self.dtype, T => self.slice::<T>(stream).bytes())
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the elements, for reading. `T` has their size.
    pub fn slice<'a, T: Pod>(&self, stream: &'a Stream) -> DeviceSlice<'a, T> {
        assert_eq!(size_of::<T>(), self.dtype.size());
        // SAFETY: `Tensor::new` has checked address and alignment, its owner keeps the memory until the call has returned, and
        // work that is still queued comes before what the owner's library does next on the stream. `Operands` has checked the
        // device. That no other thread writes it is asked of callers, as everywhere in Python.
        unsafe {
            DeviceSlice::from_raw_parts(stream.device(), core::ptr::with_exposed_provenance(self.address), self.len)
        }
    }

    /// Returns the elements, for writing. `T` has their size.
    pub fn slice_mut<'a, T: Pod>(&self, stream: &'a Stream) -> DeviceSliceMut<'a, T> {
        assert_eq!(size_of::<T>(), self.dtype.size());
        // SAFETY: as above; `Operands` has checked that no other operand overlaps.
        unsafe {
            DeviceSliceMut::from_raw_parts(
                stream.device(),
                core::ptr::with_exposed_provenance_mut(self.address),
                self.len,
            )
        }
    }

    fn overlaps(&self, other: &Self) -> bool {
        let end = |tensor: &Self| tensor.address + tensor.len * tensor.dtype.size();
        self.len > 0 && other.len > 0 && self.address < end(other) && other.address < end(self)
    }

    /// Returns an error that calls the tensor `what`, unless it has the dtype.
    pub fn expect_dtype(&self, what: &str, expected: DType) -> PyResult<()> {
        if self.dtype == expected {
            return Ok(());
        }
        let (found, expected) = (self.dtype.name(), expected.name());
        Err(type_error(format!("{what} has the dtype {found}; it must be {expected}")))
    }

    /// Returns an error that calls the tensor `what`, unless it has so many elements.
    pub fn expect_len(&self, what: &str, expected: usize) -> PyResult<()> {
        if self.len == expected {
            return Ok(());
        }
        Err(value_error(format!("{what} has {} elements; it must have {expected}", self.len)))
    }
}

#[pymethods]
impl Tensor {
    /// Memory at an address, which `owner` keeps.
    #[staticmethod]
    #[pyo3(signature = (owner, address, shape, dtype, device, read_only = false))]
    fn at(
        owner: Py<PyAny>,
        address: usize,
        shape: Vec<usize>,
        dtype: &str,
        device: i32,
        read_only: bool,
    ) -> PyResult<Self> {
        Self::new(address, shape, DType::parse(dtype)?, Place::of(device), read_only, Owner::Object(owner))
    }

    /// Memory at an address that another library has given in `__cuda_array_interface__`.
    #[staticmethod]
    fn of_interface(
        owner: Py<PyAny>,
        address: usize,
        shape: Vec<usize>,
        dtype: &str,
        read_only: bool,
    ) -> PyResult<Self> {
        let (dtype, mut shape, mut owner) = (DType::parse(dtype)?, shape, owner);
        let mut failure = value_error("the array is in the memory of a GPU, and there is none");
        for index in 0..gpu_primitives::Device::cuda_count() {
            let copy = Python::attach(|py| owner.clone_ref(py));
            let tensor = Self::new(address, shape, dtype, Place::Cuda(index), read_only, Owner::Object(owner))?;
            match tensor.verify() {
                Ok(()) => return Ok(tensor),
                Err(error) => (failure, shape, owner) = (error, tensor.shape, copy),
            }
        }
        Err(failure)
    }

    /// Takes the tensor out of a DLPack capsule.
    #[staticmethod]
    fn of_capsule(capsule: &Bound<'_, PyAny>) -> PyResult<Self> {
        let managed = Managed::take(capsule)?;
        let tensor = managed.tensor();
        let place = match tensor.device_type {
            dlpack::CPU | dlpack::CUDA_HOST => Place::Cpu,
            dlpack::CUDA | dlpack::CUDA_MANAGED if tensor.device_id >= 0 => Place::of(tensor.device_id),
            other => {
                return Err(value_error(format!(
                    "the array is on a device of the DLPack type {other}; move it to the CPU or to a GPU of CUDA"
                )));
            }
        };
        let (code, bits, lanes) = (tensor.code, tensor.bits, tensor.lanes);
        let dtype = DType::of_dlpack(code, bits, lanes).ok_or_else(|| {
            type_error(format!("elements of the DLPack type {code} with {bits} bits and {lanes} lanes are not supported; convert to a number of 8 to 64 bits"))
        })?;
        let ndim = usize::try_from(tensor.ndim).ok().filter(|&ndim| ndim <= 64);
        let ndim =
            ndim.ok_or_else(|| value_error(format!("a DLPack tensor cannot have {} dimensions", tensor.ndim)))?;
        if ndim > 0 && tensor.shape.is_null() {
            return Err(value_error("a DLPack tensor has no shape"));
        }
        let read = |from: *mut i64| -> Vec<i64> {
            // SAFETY: DLPack says that there are `ndim` numbers.
            if from.is_null() || ndim == 0 {
                Vec::new()
            } else {
                unsafe { core::slice::from_raw_parts(from, ndim) }.to_vec()
            }
        };
        let (shape, strides) = (read(tensor.shape), read(tensor.strides));
        let shape: Result<Vec<usize>, _> = shape.iter().map(|&len| usize::try_from(len)).collect();
        let shape = shape.map_err(|_| value_error("a DLPack tensor has a negative length"))?;
        let len = elements(&shape, dtype)?;
        if !strides.is_empty() && len > 1 {
            let mut expected = 1i64;
            for (&len, &stride) in shape.iter().zip(&strides).rev() {
                if len > 1 && stride != expected {
                    return Err(value_error("the array has gaps or another order in memory; pass a contiguous copy"));
                }
                expected *= len as i64;
            }
        }
        if len > 0 && tensor.data.is_null() {
            return Err(value_error("a DLPack tensor with elements is at the address 0: it has no memory"));
        }
        let offset = usize::try_from(tensor.byte_offset).ok();
        let address = offset.and_then(|offset| tensor.data.expose_provenance().checked_add(offset));
        let address = address.ok_or_else(|| value_error("a DLPack tensor begins after the last address"))?;
        let read_only = managed.is_read_only();
        let tensor = Self::new(address, shape, dtype, place, read_only, Owner::Managed(managed))?;
        tensor.verify()?;
        Ok(tensor)
    }

    #[getter(dtype)]
    fn dtype_name(&self) -> &'static str {
        self.dtype.name()
    }

    /// The number of the GPU; -1 for the CPU.
    #[getter]
    fn device(&self) -> i32 {
        self.place.index()
    }

    #[getter]
    fn address(&self) -> usize {
        self.address
    }
}

/// An array of one key of 4 or 8 bytes, which are its bits.
#[pyfunction]
pub fn key(stream: &PyStream, bits: &[u8], dtype: &str) -> PyResult<Tensor> {
    let dtype = DType::parse(dtype)?;
    let mut word = [0; 8];
    let room = word.get_mut(..bits.len()).filter(|room| room.len() == dtype.size());
    room.ok_or_else(|| value_error("a key has the bytes of its dtype"))?.copy_from_slice(bits);
    let memory = stream.stream.upload(&[u64::from_ne_bytes(word)]).or_raise()?;
    let address = memory.as_slice().as_ptr().expose_provenance();
    Tensor::new(address, vec![1], dtype, stream.place, true, Owner::Memory(memory))
}

/// Checks the operands of a call: all on the stream's device, none written that may not be, none written that is also read.
pub fn check(stream: &PyStream, read: &[&Tensor], written: &[&Tensor]) -> PyResult<()> {
    for tensor in read.iter().chain(written) {
        if tensor.place != stream.place {
            let (found, expected) = (tensor.place.name(), stream.place.name());
            return Err(value_error(format!(
                "an array is on {found}, and another one, or the dictionary, on {expected}; move one of them"
            )));
        }
    }
    for (i, tensor) in written.iter().enumerate() {
        if tensor.read_only {
            return Err(value_error("the array for the result is read-only; pass a copy"));
        }
        if read.iter().chain(&written[i + 1..]).any(|other| tensor.overlaps(other)) {
            return Err(value_error(
                "the array for the result shares memory with another array of the call; pass another one",
            ));
        }
    }
    Ok(())
}

/// Memory of this package, for libraries that cannot be asked for an array: it goes out by DLPack.
#[pyclass(frozen, module = "gpu_primitives")]
pub struct Array {
    /// As words, so that every type is aligned.
    memory: DeviceVec<u64>,
    shape: Vec<usize>,
    dtype: DType,
    place: Place,
    stream: Stream,
}

#[pymethods]
impl Array {
    #[new]
    fn new(stream: &PyStream, shape: Vec<usize>, dtype: &str) -> PyResult<Self> {
        let dtype = DType::parse(dtype)?;
        let words = (elements(&shape, dtype)? * dtype.size()).div_ceil(8);
        let memory = stream.stream.uninit::<u64>(words).or_raise()?;
        Ok(Self { memory, shape, dtype, place: stream.place, stream: stream.stream.clone() })
    }

    #[getter]
    fn address(&self) -> usize {
        self.memory.as_slice().as_ptr().expose_provenance()
    }

    /// The lengths of the dimensions.
    #[getter]
    fn shape(&self) -> Vec<usize> {
        self.shape.clone()
    }

    /// The name of the type of the elements.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.dtype.name()
    }

    /// Returns the type and the number of the device, as in DLPack.
    fn __dlpack_device__(&self) -> (i32, i32) {
        match self.place {
            Place::Cpu => (dlpack::CPU, 0),
            Place::Cuda(index) => (dlpack::CUDA, index as i32),
        }
    }

    /// Returns a DLPack capsule. Waits for the work on the array. When the consumer gives it back, that waits for the device.
    #[pyo3(signature = (*, stream = None, max_version = None, dl_device = None, copy = None))]
    fn __dlpack__(
        slf: Bound<'_, Self>,
        stream: Option<Py<PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Py<PyAny>> {
        let this = slf.get();
        drop(stream);
        if copy == Some(true) || dl_device.is_some_and(|device| device != this.__dlpack_device__()) {
            return Err(exception(Kind::Value, "copies to other devices are not supported"));
        }
        slf.py().detach(|| this.stream.synchronize()).or_raise()?;
        let (device_type, device_id) = this.__dlpack_device__();
        let (code, bits) = this.dtype.dlpack();
        let null = core::ptr::null_mut();
        let data = core::ptr::with_exposed_provenance_mut(this.address());
        let tensor = dlpack::DLTensor {
            data,
            device_type,
            device_id,
            ndim: 0,
            code,
            bits,
            lanes: 1,
            shape: null,
            strides: null,
            byte_offset: 0,
        };
        let versioned = max_version.is_some_and(|(major, _)| major >= 1);
        let owner = (slf.clone().into_any().unbind(), this.stream.device());
        dlpack::capsule(slf.py(), tensor, &this.shape, owner, versioned)
    }

    fn __repr__(&self) -> String {
        format!(
            "gpu_primitives.Array(shape={:?}, dtype={}, device={})",
            self.shape,
            self.dtype.name(),
            self.place.name()
        )
    }
}
