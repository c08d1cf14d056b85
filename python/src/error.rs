//! Errors of the library as Python exceptions: the classes are in `gpu_primitives/_errors.py`.

use gpu_primitives::Error;
use pyo3::prelude::*;

/// The exceptions, by what the caller can do.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Value,
    Type,
    Memory,
    File,
    Device,
}

impl Kind {
    fn class(self) -> &'static str {
        match self {
            Self::Value => "ArgumentError",
            Self::Type => "DTypeError",
            Self::Memory => "OutOfMemoryError",
            Self::File => "FileError",
            Self::Device => "DeviceError",
        }
    }

    fn of(error: &Error) -> Self {
        match error {
            Error::OutOfMemory { .. } => Self::Memory,
            Error::Io(_) | Error::InvalidFile { .. } | Error::DamagedFolder { .. } | Error::NewerCheckpoint { .. } => {
                Self::File
            }
            Error::LengthMismatch { .. }
            | Error::TooMany { .. }
            | Error::RangeOutside { .. }
            | Error::BitRange { .. }
            | Error::TooLong { .. }
            | Error::InvalidOffsets { .. }
            | Error::WrongDevice { .. }
            | Error::WrongContext { .. }
            | Error::Misaligned { .. }
            | Error::UnknownDevice { .. }
            | Error::InvalidOption { .. } => Self::Value,
            _ => Self::Device,
        }
    }
}

/// Returns an exception of the package.
pub fn exception(kind: Kind, message: impl Into<String>) -> PyErr {
    let message = message.into();
    Python::attach(|py| {
        let class = py.import("gpu_primitives._errors").and_then(|errors| errors.getattr(kind.class()));
        match class.and_then(|class| class.call1((message,))) {
            Ok(value) => PyErr::from_value(value),
            Err(error) => error,
        }
    })
}

/// Returns an `ArgumentError`.
pub fn value_error(message: impl Into<String>) -> PyErr {
    exception(Kind::Value, message)
}

/// Returns a `DTypeError`.
pub fn type_error(message: impl Into<String>) -> PyErr {
    exception(Kind::Type, message)
}

/// Results of the library as results of Python.
pub trait OrRaise<T> {
    fn or_raise(self) -> PyResult<T>;
}

impl<T> OrRaise<T> for Result<T, Error> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(|error| exception(Kind::of(&error), error.to_string()))
    }
}
