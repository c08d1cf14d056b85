//! Results whose length only the library knows.

use crate::dtype::DType;
use crate::error::OrRaise;
use crate::stream::PyStream;
use crate::tensor::{Tensor, check};
use bytemuck::Pod;
use core::ops::Range;
use gpu_primitives::{DeviceSlice, DeviceVec, Error, Stream, transfer};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

/// Elements of any type.
trait Bytes: Send + Sync {
    fn bytes(&self) -> DeviceSlice<'_, u8>;
}

impl<T: Pod + Send + Sync> Bytes for DeviceVec<T> {
    fn bytes(&self) -> DeviceSlice<'_, u8> {
        self.as_slice().bytes()
    }
}

/// Elements on the device, which are copied into an array of the caller's library.
#[pyclass(frozen, module = "gpu_primitives._core")]
pub struct Column {
    elements: Box<dyn Bytes>,
    len: usize,
    dtype: DType,
}

impl Column {
    pub fn new<T: Pod + Send + Sync>(elements: DeviceVec<T>, dtype: DType) -> Self {
        Self { len: elements.len(), elements: Box::new(elements), dtype }
    }

    /// Rows of numbers of another type than that of the vector.
    pub fn of_rows<U: Pod + Send + Sync>(rows: DeviceVec<U>, dtype: DType) -> Self {
        Self { len: rows.len() * size_of::<U>() / dtype.size(), elements: Box::new(rows), dtype }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the bytes of an element.
    pub fn size(&self) -> usize {
        self.dtype.size()
    }

    /// Returns the bytes of some elements.
    pub fn part(&self, range: Range<usize>) -> Result<DeviceSlice<'_, u8>, Error> {
        self.elements.bytes().slice(range.start * self.size()..range.end * self.size())
    }

    /// Returns a copy of some elements.
    pub fn copy(&self, stream: &Stream, range: Range<usize>) -> Result<Self, Error> {
        let (from, len) = (self.part(range.clone())?, range.len());
        let mut words = stream.uninit::<u64>((len * self.size()).div_ceil(8))?;
        transfer::copy(stream, from, words.as_mut_slice().bytes().slice_mut(..len * self.size())?)?;
        Ok(Self { elements: Box::new(words), len, dtype: self.dtype })
    }

    /// Returns all elements as those of another type, for work on the stream that has made them.
    pub fn slice<'a, T: Pod>(&'a self, stream: &'a Stream) -> DeviceSlice<'a, T> {
        let bytes = self.len * self.size();
        assert!(bytes.is_multiple_of(size_of::<T>()) && align_of::<T>() <= 8, "elements of another type");
        // SAFETY: the memory has that many bytes, begins at a multiple of 8, and stays as long as the column.
        unsafe {
            DeviceSlice::from_raw_parts(stream.device(), self.elements.bytes().as_ptr().cast(), bytes / size_of::<T>())
        }
    }

    /// Returns the elements as an operand of work on the stream that has made them.
    pub fn tensor(&self, stream: &Stream) -> Tensor {
        Tensor::of_memory(stream, self.elements.bytes().as_ptr().expose_provenance(), self.dtype, self.len)
    }
}

#[pymethods]
impl Column {
    fn __len__(&self) -> usize {
        self.len
    }

    #[getter]
    fn dtype(&self) -> &'static str {
        self.dtype.name()
    }

    /// Returns the elements as Python numbers. Waits.
    fn to_list<'py>(&self, py: Python<'py>, stream: &PyStream) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let stream = &stream.stream;
        macro_rules! list {
            ($T:ty, |$x:ident| $number:expr) => {{
                let elements = py.detach(|| self.slice::<$T>(stream).to_vec(stream)).or_raise()?;
                elements.into_iter().map(|$x| $number.into_bound_py_any(py)).collect()
            }};
        }
        match self.dtype {
            DType::Bool => list!(u8, |x| (x != 0)),
            DType::I8 => list!(i8, |x| x),
            DType::I16 => list!(i16, |x| x),
            DType::I32 => list!(i32, |x| x),
            DType::I64 => list!(i64, |x| x),
            DType::U8 => list!(u8, |x| x),
            DType::U16 => list!(u16, |x| x),
            DType::U32 => list!(u32, |x| x),
            DType::U64 => list!(u64, |x| x),
            DType::F16 => list!(half::f16, |x| f64::from(x)),
            DType::BF16 => list!(half::bf16, |x| f64::from(x)),
            DType::F32 => list!(f32, |x| x),
            DType::F64 => list!(f64, |x| x),
        }
    }

    /// Copies the elements.
    fn copy_to(&self, py: Python<'_>, stream: &PyStream, out: &Tensor) -> PyResult<()> {
        check(stream, &[], &[out])?;
        out.expect_len("the array for the result", self.len)?;
        let stream: &Stream = &stream.stream;
        let size = self.dtype.size();
        crate::dtype::each_size!(out.dtype, T => {
            assert_eq!(size, size_of::<T>(), "a result has the size of its dtype");
            let from = self.elements.bytes();
            let to = out.slice_mut::<T>(stream).bytes();
            py.detach(|| transfer::copy(stream, from, to)).or_raise()
        })
    }
}
