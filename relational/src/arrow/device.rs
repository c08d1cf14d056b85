//! Arrow's C device data interface.

use super::{invalid, scale, wrong_type_of};
use crate::{Column, Dates, Decimals, TimeUnit, Timestamps};
use arrow_schema::DataType;
use arrow_schema::ffi::FFI_ArrowSchema;
use bytemuck::Pod;
use gpu_primitives::{DeviceKind, DeviceVec, Error, Event, RawMemory, Stream};
use std::ffi::c_void;
use std::mem;
use std::ops::Deref;
use std::ptr::null_mut;
use std::sync::Arc;

/// The numbers of kinds of devices in the interface.
const CPU: i32 = 1;
const CUDA: i32 = 2;

/// `ArrowArray` of the C data interface, whose buffers may be on a device. Dropping it releases it.
#[derive(Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "the specification has them")]
pub struct ArrowArray {
    pub length: i64,
    pub null_count: i64,
    pub offset: i64,
    pub n_buffers: i64,
    pub n_children: i64,
    pub buffers: *mut *const c_void,
    pub children: *mut *mut Self,
    pub dictionary: *mut Self,
    pub release: Option<unsafe extern "C" fn(*mut Self)>,
    pub private_data: *mut c_void,
}

impl ArrowArray {
    /// Returns an array that has been released.
    const fn released() -> Self {
        Self {
            length: 0,
            null_count: 0,
            offset: 0,
            n_buffers: 0,
            n_children: 0,
            buffers: null_mut(),
            children: null_mut(),
            dictionary: null_mut(),
            release: None,
            private_data: null_mut(),
        }
    }
}

impl Drop for ArrowArray {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: who makes such an array promises that its release may be called once; it is not called again.
            unsafe { release(self) };
            self.release = None;
        }
    }
}

/// `ArrowDeviceArray` of the C device data interface: an array, where its buffers are, and when they are ready. Dropping it releases it.
#[derive(Debug)]
#[repr(C)]
pub struct ArrowDeviceArray {
    /// The array.
    pub array: ArrowArray,
    /// The number of the device; -1 for the CPU.
    pub device_id: i64,
    /// What the device is: 1 for the CPU, 2 for CUDA.
    pub device_type: i32,
    /// The address of a `cudaEvent_t` after which the buffers may be read; null if that is at once.
    pub sync_event: *mut c_void,
    /// Zeros.
    pub reserved: [i64; 3],
}

// SAFETY: the interface lets any thread read and release an array.
unsafe impl Send for ArrowDeviceArray {}

impl ArrowDeviceArray {
    /// Takes an array from its producer, and leaves a released one there.
    ///
    /// # Safety
    /// The pointer is that of an array which obeys the interface.
    #[must_use]
    pub unsafe fn from_raw(array: *mut Self) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe { array.replace(Self::released()) }
    }

    const fn released() -> Self {
        Self {
            array: ArrowArray::released(),
            device_id: -1,
            device_type: CPU,
            sync_event: null_mut(),
            reserved: [0; 3],
        }
    }
}

/// A column that the C device data interface gives and takes without copying: numbers, [`Decimals`], [`Dates`], [`Timestamps`].
pub trait OnDevice: Send + Sync + Sized + 'static {
    /// The type of its elements.
    type Element: Pod;

    #[doc(hidden)]
    fn data_type(&self) -> DataType;

    #[doc(hidden)]
    fn elements(&self) -> &Column<Self::Element>;

    /// Returns a column of elements that arrays of this type have.
    #[doc(hidden)]
    fn of_elements(data_type: &DataType) -> Result<impl FnOnce(Column<Self::Element>) -> Result<Self, Error>, Error>;
}

macro_rules! numbers {
    ($($type:ident $arrow:ident,)*) => { $(
        impl OnDevice for Column<$type> {
            type Element = $type;

            fn data_type(&self) -> DataType {
                DataType::$arrow
            }

            fn elements(&self) -> &Column<$type> {
                self
            }

            fn of_elements(data_type: &DataType) -> Result<impl FnOnce(Column<$type>) -> Result<Self, Error>, Error> {
                match data_type {
                    DataType::$arrow => Ok(Ok),
                    other => Err(wrong_type_of(other, stringify!($arrow))),
                }
            }
        }
    )* };
}

numbers! {
    i8 Int8, i16 Int16, i32 Int32, i64 Int64, u8 UInt8, u16 UInt16, u32 UInt32, u64 UInt64, f32 Float32, f64 Float64,
}

macro_rules! decimals {
    ($($type:ident $arrow:ident $digits:literal,)*) => { $(
        impl OnDevice for Decimals<$type> {
            type Element = $type;

            fn data_type(&self) -> DataType {
                DataType::$arrow($digits, self.scale() as i8)
            }

            fn elements(&self) -> &Column<$type> {
                self.numbers()
            }

            fn of_elements(data_type: &DataType) -> Result<impl FnOnce(Column<$type>) -> Result<Self, Error>, Error> {
                let DataType::$arrow(_, digits) = *data_type else {
                    return Err(wrong_type_of(data_type, stringify!($arrow)));
                };
                let digits = scale(data_type, digits)?;
                Ok(move |numbers| Decimals::new(numbers, digits))
            }
        }
    )* };
}

decimals! { i64 Decimal64 18, i128 Decimal128 38, }

impl OnDevice for Dates {
    type Element = i32;

    fn data_type(&self) -> DataType {
        DataType::Date32
    }

    fn elements(&self) -> &Column<i32> {
        self.days()
    }

    fn of_elements(data_type: &DataType) -> Result<impl FnOnce(Column<i32>) -> Result<Self, Error>, Error> {
        match data_type {
            DataType::Date32 => Ok(|days| Ok(Dates::new(days))),
            other => Err(wrong_type_of(other, "Date32")),
        }
    }
}

impl OnDevice for Timestamps {
    type Element = i64;

    fn data_type(&self) -> DataType {
        DataType::Timestamp(self.unit().into(), self.zone().map(Into::into))
    }

    fn elements(&self) -> &Column<i64> {
        self.numbers()
    }

    fn of_elements(data_type: &DataType) -> Result<impl FnOnce(Column<i64>) -> Result<Self, Error>, Error> {
        let DataType::Timestamp(unit, zone) = data_type else { return Err(wrong_type_of(data_type, "Timestamp")) };
        let (unit, zone) = (TimeUnit::from(*unit), zone.clone());
        Ok(move |numbers| {
            let moments = Timestamps::new(numbers, unit);
            Ok(match &zone {
                Some(zone) => moments.with_zone(zone),
                None => moments,
            })
        })
    }
}

/// What an exported array keeps until it is released.
struct Kept {
    buffers: [*const c_void; 2],
    /// The handle that the consumer gets the address of.
    event_handle: *mut c_void,
    _event: Option<Event>,
    _column: Arc<dyn Send + Sync>,
    _bits: Option<DeviceVec<u8>>,
}

/// Gives a column away for the C device data interface, without copying its elements: on a GPU they stay there. What says which of them are
/// valid becomes bits, in new memory.
///
/// Others may use the column, too: it lives as long as any of them. On a GPU the consumer waits for the event of the array, and this call does not
/// wait. On the CPU everything is done when it returns. The consumer releases the array when its work with it is done; dropping it does
/// so, too. Any thread may do that.
///
/// ```
/// use gpu_primitives::{Device, Error};
/// use gpu_relational::Column;
/// use gpu_relational::arrow::{export_device, import_device};
/// use std::sync::Arc;
///
/// let stream = &Device::default()?.stream()?;
/// let column = Column::upload_optional(stream, &[Some(7i64), None])?;
/// let (array, schema) = export_device(stream, Arc::new(column))?;
/// // SAFETY: both come from `export_device`, and nothing else uses the memory.
/// let again = unsafe { import_device::<Column<i64>>(stream, array, &schema)? };
/// assert_eq!(again.to_options(stream)?, [Some(7), None]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::WrongDevice`]; [`Error::OutOfMemory`]; any launch error.
pub fn export_device<C: OnDevice>(
    stream: &Stream,
    column: Arc<C>,
) -> Result<(ArrowDeviceArray, FFI_ArrowSchema), Error> {
    let schema = FFI_ArrowSchema::try_from(&column.data_type()).map_err(|error| invalid(&error))?;
    let elements = column.elements();
    let bits = elements.valid_bits(stream)?;
    let (values, len) = (elements.values(), elements.len());
    // The stream comes after what writes the elements.
    let _ = values.view(stream)?;
    let (device_type, device_id, event) = match stream.device().kind() {
        DeviceKind::Cuda { ordinal } => (CUDA, ordinal as i64, Some(stream.record()?)),
        DeviceKind::Cpu | DeviceKind::CpuChecked => {
            stream.synchronize()?;
            (CPU, -1, None)
        }
    };
    let bits_address = bits.as_ref().map_or(std::ptr::null(), |bits| bits.as_slice().as_ptr().cast());
    let kept = Box::new(Kept {
        buffers: [bits_address, values.as_ptr().cast()],
        event_handle: event.as_ref().and_then(Event::cuda_event).unwrap_or(null_mut()),
        _event: event,
        _column: column,
        _bits: bits,
    });
    let null_count = if kept.buffers[0].is_null() { 0 } else { -1 };
    let kept = Box::into_raw(kept);
    // SAFETY: it lives until the array is released.
    let (buffers, event_handle) = unsafe { (&raw mut (*kept).buffers, &raw mut (*kept).event_handle) };
    let array = ArrowArray {
        length: len as i64,
        null_count,
        offset: 0,
        n_buffers: 2,
        n_children: 0,
        buffers: buffers.cast(),
        children: null_mut(),
        dictionary: null_mut(),
        release: Some(release),
        private_data: kept.cast(),
    };
    let sync_event = if device_type == CUDA { event_handle.cast() } else { null_mut() };
    Ok((ArrowDeviceArray { array, device_id, device_type, sync_event, reserved: [0; 3] }, schema))
}

/// Releases an array that [`export_device`] has made.
///
/// # Safety
/// It is such an array, and has not been released.
unsafe extern "C" fn release(array: *mut ArrowArray) {
    // SAFETY: guaranteed by the caller. The kept values are dropped once: then the array is a released one.
    unsafe {
        drop(Box::from_raw((*array).private_data.cast::<Kept>()));
        (*array).private_data = null_mut();
        (*array).release = None;
    }
}

/// A column in the memory of another library. It goes wherever a reference to the column goes. When it is dropped, the work on the memory
/// is waited for, and then the array is released.
#[derive(Debug)]
pub struct Imported<C> {
    /// There until it is dropped, which is before the array is released.
    column: Option<C>,
    _owner: Owner,
}

impl<C> Deref for Imported<C> {
    type Target = C;

    fn deref(&self) -> &C {
        self.column.as_ref().expect("it is there until this is dropped")
    }
}

impl<C> Drop for Imported<C> {
    fn drop(&mut self) {
        self.column = None;
    }
}

/// An array, which is released after the work on a stream.
#[derive(Debug)]
struct Owner {
    stream: Stream,
    array: Option<ArrowDeviceArray>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        // What cannot be waited for may still be read: then it stays.
        if self.stream.synchronize().is_err() {
            mem::forget(self.array.take());
        }
    }
}

/// Takes an array of the C device data interface that is on the device of the stream, without copying its elements. What says which
/// of them are valid becomes bytes, in new memory. What lies under a null stays as it is.
///
/// The stream waits for the event of the array, on the device. The array is released when the column is dropped, or on an error; the schema is
/// the caller's.
///
/// # Errors
/// [`Error::InvalidOption`] if the array has another type than the column, has been released, or is not valid; [`Error::WrongDevice`];
/// [`Error::Misaligned`]; [`Error::LengthMismatch`] if the driver knows that a buffer is too short; those of
/// [`RawMemory::new`]; [`Error::OutOfMemory`]; any launch error.
///
/// # Safety
/// The array and the schema obey the interface: the buffers are as long as the type, the length and the offset say, stay as they are until
/// the array is released, and may be read after the event.
pub unsafe fn import_device<C: OnDevice>(
    stream: &Stream,
    array: ArrowDeviceArray,
    schema: &FFI_ArrowSchema,
) -> Result<Imported<C>, Error> {
    let owner = Owner { stream: stream.clone(), array: Some(array) };
    let array = owner.array.as_ref().expect("it is there until this is dropped");
    let data_type = DataType::try_from(schema).map_err(|error| invalid(&error))?;
    let of_elements = C::of_elements(&data_type)?;
    expect_device(array, stream)?;
    let shape = Shape::of::<C::Element>(&array.array)?;
    if !array.sync_event.is_null() {
        if array.device_type == CPU {
            return Err(refused("with an event, on the CPU", "one without"));
        }
        // SAFETY: the caller promises that this is the address of an event.
        unsafe { stream.wait_cuda_event(array.sync_event.cast::<*mut c_void>().read())? };
    }
    // SAFETY: the caller promises that the buffers are readable and stay as they are. The array is released after the work on the vectors,
    // which only this module owns: others get references to columns.
    let values = unsafe { shape.vector::<C::Element>(stream, 1, shape.offset, shape.len)? };
    let column = if shape.has_nulls {
        // SAFETY: the same.
        let bits = unsafe { shape.vector::<u8>(stream, 0, 0, (shape.offset + shape.len).div_ceil(8))? };
        Column::with_valid_bits(stream, values, &bits, shape.offset)?
    } else {
        Column::new(values)?
    };
    Ok(Imported { column: Some(of_elements(column)?), _owner: owner })
}

fn refused(asked: &str, allowed: &'static str) -> Error {
    Error::InvalidOption { what: "an array of the C device data interface", asked: asked.into(), allowed }
}

/// Checks that an array is on the device of a stream.
fn expect_device(array: &ArrowDeviceArray, stream: &Stream) -> Result<(), Error> {
    let expected = stream.device().kind();
    let found = match (array.device_type, usize::try_from(array.device_id)) {
        (CPU, _) => DeviceKind::Cpu,
        (CUDA, Ok(ordinal)) => DeviceKind::Cuda { ordinal },
        (kind, _) => {
            let asked = format!("on device {} of kind {kind}", array.device_id);
            return Err(refused(&asked, "one on the CPU (1), or on a GPU of CUDA (2)"));
        }
    };
    match (found, expected) {
        (DeviceKind::Cpu, DeviceKind::Cpu | DeviceKind::CpuChecked) => Ok(()),
        (found, expected) if found == expected => Ok(()),
        (found, expected) => {
            Err(Error::WrongDevice { what: "an array of the C device data interface", found, expected })
        }
    }
}

/// What an array says about its buffers.
struct Shape<'a> {
    array: &'a ArrowArray,
    len: usize,
    offset: usize,
    has_nulls: bool,
}

impl<'a> Shape<'a> {
    fn of<T>(array: &'a ArrowArray) -> Result<Self, Error> {
        if array.release.is_none() {
            return Err(refused("released", "one that is not"));
        }
        if array.n_buffers != 2 || array.buffers.is_null() || array.n_children != 0 || !array.dictionary.is_null() {
            return Err(refused("of other buffers", "one of two buffers, without children and dictionary"));
        }
        let parts = (usize::try_from(array.length), usize::try_from(array.offset));
        let (Ok(len), Ok(offset)) = parts else {
            return Err(refused("of a negative length or offset", "one from 0 on"));
        };
        let rows = len.checked_add(offset).and_then(|rows| rows.checked_mul(size_of::<T>()));
        if rows.is_none_or(|bytes| bytes > isize::MAX as usize) {
            return Err(refused("of more bytes than there can be", "shorter"));
        }
        let shape = Self { array, len, offset, has_nulls: false };
        let has_bits = len > 0 && !shape.buffer(0).is_null();
        if array.null_count > 0 && len > 0 && !has_bits {
            return Err(refused("of nulls without their bits", "one that has them"));
        }
        Ok(Self { has_nulls: has_bits && array.null_count != 0, ..shape })
    }

    /// Returns the address of one of the two buffers.
    fn buffer(&self, index: usize) -> *const c_void {
        // SAFETY: the producer promises that there are as many as the array says, which is two.
        unsafe { self.array.buffers.add(index).read() }
    }

    /// Returns elements of a buffer.
    ///
    /// # Safety
    /// That of [`RawMemory::into_vec`].
    unsafe fn vector<T: Pod>(
        &self,
        stream: &Stream,
        index: usize,
        start: usize,
        len: usize,
    ) -> Result<DeviceVec<T>, Error> {
        if len == 0 {
            return stream.uninit(0);
        }
        let first = self.buffer(index).cast::<T>().cast_mut();
        if first.is_null() {
            return Err(refused("of a buffer that is null", "one with memory"));
        }
        let memory = RawMemory::new(stream.device(), first.wrapping_add(start), len)?;
        // SAFETY: guaranteed by the caller.
        unsafe { memory.into_vec(stream) }
    }
}
