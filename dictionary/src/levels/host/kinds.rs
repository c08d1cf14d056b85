//! What the elements of a level are: values, tombstones, operands.

use super::operation::Operation;
use gpu_primitives::{DeviceVec, Error, Stream};

/// What the elements of a level are.
#[derive(Debug)]
pub(super) enum Kinds {
    /// Values.
    Values {
        /// Whether the keys are known to be distinct.
        are_distinct: bool,
    },
    /// Values and tombstones.
    Tombstones {
        /// One bit per element, set for tombstones.
        marks: DeviceVec<u32>,
    },
    /// Operands, values and tombstones. The elements of each key are combined.
    Operands {
        /// One bit per element, set for tombstones, then one bit per element, set for operands.
        marks: DeviceVec<u32>,
        /// What combines the operands.
        operation: Operation,
        /// Whether all elements are operands, or nothing.
        are_all: bool,
    },
}

impl Kinds {
    /// Returns those of values, or of values and tombstones.
    pub fn of_marks(marks: Option<DeviceVec<u32>>) -> Self {
        marks.map_or(Self::Values { are_distinct: false }, |marks| Self::Tombstones { marks })
    }

    /// Returns the marks of tombstones and of operands.
    pub fn marks(&self) -> Option<&DeviceVec<u32>> {
        match self {
            Self::Values { .. } => None,
            Self::Tombstones { marks } | Self::Operands { marks, .. } => Some(marks),
        }
    }

    /// Returns the operation of the operands.
    pub fn operation(&self) -> Option<&Operation> {
        match self {
            Self::Values { .. } | Self::Tombstones { .. } => None,
            Self::Operands { operation, .. } => Some(operation),
        }
    }

    /// Makes a copy with marks of its own. Does not wait.
    pub fn try_clone(&self, stream: &Stream) -> Result<Self, Error> {
        Ok(match self {
            &Self::Values { are_distinct } => Self::Values { are_distinct },
            Self::Tombstones { marks } => Self::Tombstones { marks: marks.try_clone(stream)? },
            Self::Operands { marks, operation, are_all } => {
                Self::Operands { marks: marks.try_clone(stream)?, operation: operation.clone(), are_all: *are_all }
            }
        })
    }
}
