//! The dictionary traits for [`GpuSortedArray`].

use crate::{GpuSortedArray, Key, Options, Value};

gpu_dictionary::forward_traits!(ordered impl<K: [Key], V: [Value]> for GpuSortedArray, "sorted array", Options);
