//! DLPack: its structs, capsules that come in, and capsules that go out.

use crate::error::value_error;
use crate::stream::wait_for_all;
use core::ffi::{CStr, c_void};
use core::ptr::NonNull;
use gpu_primitives::Device;
use pyo3::ffi;
use pyo3::prelude::*;

pub const CPU: i32 = 1;
pub const CUDA: i32 = 2;
pub const CUDA_HOST: i32 = 3;
pub const CUDA_MANAGED: i32 = 13;

const READ_ONLY: u64 = 1;

const LEGACY: &CStr = c"dltensor";
const LEGACY_USED: &CStr = c"used_dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";
const VERSIONED_USED: &CStr = c"used_dltensor_versioned";

#[repr(C)]
#[derive(Clone, Copy)]
pub struct DLTensor {
    pub data: *mut c_void,
    pub device_type: i32,
    pub device_id: i32,
    pub ndim: i32,
    pub code: u8,
    pub bits: u8,
    pub lanes: u16,
    pub shape: *mut i64,
    pub strides: *mut i64,
    pub byte_offset: u64,
}

#[repr(C)]
struct Legacy {
    tensor: DLTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Self)>,
}

#[repr(C)]
struct Versioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Self)>,
    flags: u64,
    tensor: DLTensor,
}

/// A tensor of another library, which is given back when this is dropped.
pub enum Managed {
    Legacy(NonNull<c_void>),
    Versioned(NonNull<c_void>),
}

// SAFETY: DLPack allows a tensor to be used and deleted on any thread. The deleter runs with the GIL held.
unsafe impl Send for Managed {}
// SAFETY: as above.
unsafe impl Sync for Managed {}

impl Managed {
    /// Takes the tensor out of a capsule, which is then used.
    pub fn take(capsule: &Bound<'_, PyAny>) -> PyResult<Self> {
        let raw = capsule.as_ptr();
        // SAFETY: `raw` is an object, and the GIL is held. The pointer of a capsule of this name is what the name says.
        unsafe {
            for (name, used, versioned) in [(VERSIONED, VERSIONED_USED, true), (LEGACY, LEGACY_USED, false)] {
                if ffi::PyCapsule_IsValid(raw, name.as_ptr()) == 0 {
                    continue;
                }
                let pointer = NonNull::new(ffi::PyCapsule_GetPointer(raw, name.as_ptr()))
                    .ok_or_else(|| value_error("a DLPack capsule has no tensor"))?;
                if versioned && (*pointer.cast::<Versioned>().as_ptr()).major != 1 {
                    let major = (*pointer.cast::<Versioned>().as_ptr()).major;
                    return Err(value_error(format!("DLPack version {major} is not supported, but version 1")));
                }
                if ffi::PyCapsule_SetName(raw, used.as_ptr()) != 0 {
                    return Err(PyErr::fetch(capsule.py()));
                }
                return Ok(if versioned { Self::Versioned(pointer) } else { Self::Legacy(pointer) });
            }
            let is_used = [VERSIONED_USED, LEGACY_USED].map(|name| ffi::PyCapsule_IsValid(raw, name.as_ptr()) != 0);
            Err(value_error(if is_used.contains(&true) {
                "`__dlpack__` returned a capsule that was used before; it must return a new one for each call"
                    .to_owned()
            } else {
                format!("`__dlpack__` returned {}, which is no DLPack capsule", capsule.get_type())
            }))
        }
    }

    pub fn tensor(&self) -> DLTensor {
        // SAFETY: the tensor lives until it is given back.
        unsafe {
            match self {
                Self::Legacy(pointer) => pointer.cast::<Legacy>().as_ref().tensor,
                Self::Versioned(pointer) => pointer.cast::<Versioned>().as_ref().tensor,
            }
        }
    }

    pub fn is_read_only(&self) -> bool {
        match self {
            Self::Legacy(_) => false,
            // SAFETY: the tensor lives until it is given back.
            Self::Versioned(pointer) => unsafe { pointer.cast::<Versioned>().as_ref().flags & READ_ONLY != 0 },
        }
    }
}

impl Drop for Managed {
    fn drop(&mut self) {
        // When the interpreter has ended, the memory is leaked.
        // SAFETY: this has taken the tensor, and gives it back once.
        let _ = Python::try_attach(|_| unsafe {
            match self {
                Self::Legacy(pointer) => {
                    let pointer = pointer.cast::<Legacy>().as_ptr();
                    if let Some(delete) = (*pointer).deleter {
                        delete(pointer);
                    }
                }
                Self::Versioned(pointer) => {
                    let pointer = pointer.cast::<Versioned>().as_ptr();
                    if let Some(delete) = (*pointer).deleter {
                        delete(pointer);
                    }
                }
            }
        });
    }
}

/// What a tensor that goes out owns.
struct Owned {
    shape: Vec<i64>,
    /// The device whose work the owner does not know.
    device: Device,
    _owner: Py<PyAny>,
}

impl Owned {
    /// Drops the tensor's owner. If somebody has used the tensor, waits for the device first: the owner's stream does not know the
    /// consumer's work. If that fails, or if the interpreter has ended, the memory is leaked.
    fn release(self: Box<Self>, is_used: bool) {
        let mut owned = Some(self);
        let _ = Python::try_attach(|py| {
            if let Some(owned) = owned.take_if(|owned| !is_used || py.detach(|| wait_for_all(&owned.device))) {
                drop(owned);
            }
        });
        core::mem::forget(owned);
    }
}

/// Makes a capsule of a tensor that `owner` keeps, on a device.
pub fn capsule(
    py: Python<'_>,
    mut tensor: DLTensor,
    shape: &[usize],
    (owner, device): (Py<PyAny>, &Device),
    versioned: bool,
) -> PyResult<Py<PyAny>> {
    let shape = shape.iter().map(|&len| len as i64).collect();
    let mut owned = Box::new(Owned { shape, device: device.clone(), _owner: owner });
    tensor.ndim = owned.shape.len() as i32;
    tensor.shape = owned.shape.as_mut_ptr();
    tensor.strides = core::ptr::null_mut();
    let context = Box::into_raw(owned).cast();
    // SAFETY: the GIL is held, and the pointers are those of the names.
    let raw = unsafe {
        if versioned {
            let deleter = Some(delete_versioned as unsafe extern "C" fn(*mut Versioned));
            let managed = Box::new(Versioned { major: 1, minor: 0, context, deleter, flags: 0, tensor });
            ffi::PyCapsule_New(Box::into_raw(managed).cast(), VERSIONED.as_ptr(), Some(drop_versioned))
        } else {
            let deleter = Some(delete_legacy as unsafe extern "C" fn(*mut Legacy));
            let managed = Box::new(Legacy { tensor, context, deleter });
            ffi::PyCapsule_New(Box::into_raw(managed).cast(), LEGACY.as_ptr(), Some(drop_legacy))
        }
    };
    // SAFETY: a new reference, or null with an exception.
    unsafe { Bound::from_owned_ptr_or_err(py, raw).map(Bound::unbind) }
}

unsafe extern "C" fn delete_legacy(pointer: *mut Legacy) {
    // SAFETY: `capsule` has made it, and the consumer calls this once.
    unsafe { Box::from_raw(Box::from_raw(pointer).context.cast::<Owned>()) }.release(true);
}

unsafe extern "C" fn delete_versioned(pointer: *mut Versioned) {
    // SAFETY: `capsule` has made it, and the consumer calls this once.
    unsafe { Box::from_raw(Box::from_raw(pointer).context.cast::<Owned>()) }.release(true);
}

/// A capsule that nobody has used.
unsafe extern "C" fn drop_legacy(raw: *mut ffi::PyObject) {
    // SAFETY: Python calls this once, with the capsule.
    unsafe {
        if ffi::PyCapsule_IsValid(raw, LEGACY.as_ptr()) != 0 {
            let pointer: *mut Legacy = ffi::PyCapsule_GetPointer(raw, LEGACY.as_ptr()).cast();
            Box::from_raw(Box::from_raw(pointer).context.cast::<Owned>()).release(false);
        }
    }
}

/// A capsule that nobody has used.
unsafe extern "C" fn drop_versioned(raw: *mut ffi::PyObject) {
    // SAFETY: Python calls this once, with the capsule.
    unsafe {
        if ffi::PyCapsule_IsValid(raw, VERSIONED.as_ptr()) != 0 {
            let pointer: *mut Versioned = ffi::PyCapsule_GetPointer(raw, VERSIONED.as_ptr()).cast();
            Box::from_raw(Box::from_raw(pointer).context.cast::<Owned>()).release(false);
        }
    }
}
