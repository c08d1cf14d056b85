//! What a device has been given to do: counters of launches and bytes.
//!
//! Without the feature `counters`, a [`Tally`] is empty, and counting compiles to nothing.

#[cfg(feature = "counters")]
pub use on::Counters;
#[cfg(feature = "counters")]
pub(super) use on::Tally;

/// Something that is counted.
#[derive(Clone, Copy)]
#[cfg_attr(not(feature = "counters"), allow(dead_code))]
pub(super) enum Counted {
    Launch,
    GraphLaunch,
    Uploaded(usize),
    Downloaded(usize),
    Copied(usize),
    Zeroed(usize),
}

/// Counts nothing.
#[cfg(not(feature = "counters"))]
#[derive(Default)]
pub(super) struct Tally {}

#[cfg(not(feature = "counters"))]
impl super::stream::Queue {
    #[inline(always)]
    pub(super) fn count(&self, _: Counted) {}
}

#[cfg(feature = "counters")]
mod on {
    use super::Counted;
    use crate::host::runtime::device::Device;
    use crate::host::runtime::stream::Queue;
    use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use std::time::Duration;

    /// What a device has been given to do since it was opened, and the memory that it uses. [`Device::counters`] returns it.
    ///
    /// Work counts when it is submitted. Recorded work does not count: its graph does, at every launch.
    ///
    /// ```
    /// use gpu_primitives::{Device, Error, sort};
    ///
    /// let stream = Device::default()?.stream()?;
    /// let before = stream.device().counters();
    /// let mut numbers = stream.upload(&[3u32, 1, 2])?;
    /// sort::keys_in_place(&stream, &mut numbers, sort::Options::new())?;
    /// let spent = stream.device().counters().since(&before);
    /// assert!(spent.launches > 0 && spent.bytes_uploaded == 12);
    /// # Ok::<(), Error>(())
    /// ```
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    #[non_exhaustive]
    pub struct Counters {
        /// The number of kernel launches.
        pub launches: u64,
        /// The number of graph launches.
        pub graph_launches: u64,
        /// The bytes copied from the host.
        pub bytes_uploaded: u64,
        /// The bytes copied to the host.
        pub bytes_downloaded: u64,
        /// The bytes copied within the device, by the driver and not by kernels.
        pub bytes_copied: u64,
        /// The bytes set to zero, by the driver and not by kernels.
        pub bytes_zeroed: u64,
        /// The number of modules that were loaded. There is one for each kernel and its operators. The CPU loads none.
        pub modules: u64,
        /// The time that the driver took to compile and load them.
        pub compile_time: Duration,
        /// The bytes of memory in use: [`Device::memory_used`].
        pub memory_used: u64,
        /// The maximum of bytes in use: [`Device::peak_memory`].
        pub peak_memory: u64,
    }

    impl Counters {
        /// Returns what has been counted since `earlier`. The bytes of memory are those of now.
        #[must_use]
        pub fn since(&self, earlier: &Self) -> Self {
            Self {
                launches: self.launches.saturating_sub(earlier.launches),
                graph_launches: self.graph_launches.saturating_sub(earlier.graph_launches),
                bytes_uploaded: self.bytes_uploaded.saturating_sub(earlier.bytes_uploaded),
                bytes_downloaded: self.bytes_downloaded.saturating_sub(earlier.bytes_downloaded),
                bytes_copied: self.bytes_copied.saturating_sub(earlier.bytes_copied),
                bytes_zeroed: self.bytes_zeroed.saturating_sub(earlier.bytes_zeroed),
                modules: self.modules.saturating_sub(earlier.modules),
                compile_time: self.compile_time.saturating_sub(earlier.compile_time),
                memory_used: self.memory_used,
                peak_memory: self.peak_memory,
            }
        }
    }

    /// The counters of a device that nothing else counts.
    #[derive(Default)]
    pub(in crate::host::runtime) struct Tally {
        launches: AtomicU64,
        graph_launches: AtomicU64,
        uploaded: AtomicU64,
        downloaded: AtomicU64,
        copied: AtomicU64,
        zeroed: AtomicU64,
    }

    impl Queue {
        /// Counts work that the device has accepted, unless it is only recorded.
        pub(in crate::host::runtime) fn count(&self, what: Counted) {
            if self.is_recording() {
                return;
            }
            let tally = self.device.tally();
            match what {
                Counted::Launch => tally.launches.fetch_add(1, Relaxed),
                Counted::GraphLaunch => tally.graph_launches.fetch_add(1, Relaxed),
                Counted::Uploaded(bytes) => tally.uploaded.fetch_add(bytes as u64, Relaxed),
                Counted::Downloaded(bytes) => tally.downloaded.fetch_add(bytes as u64, Relaxed),
                Counted::Copied(bytes) => tally.copied.fetch_add(bytes as u64, Relaxed),
                Counted::Zeroed(bytes) => tally.zeroed.fetch_add(bytes as u64, Relaxed),
            };
        }
    }

    impl Device {
        /// Returns what the device has been given to do since it was opened, and the memory that it uses.
        #[must_use]
        pub fn counters(&self) -> Counters {
            let (tally, loading) = (self.tally(), self.loading());
            Counters {
                launches: tally.launches.load(Relaxed),
                graph_launches: tally.graph_launches.load(Relaxed),
                bytes_uploaded: tally.uploaded.load(Relaxed),
                bytes_downloaded: tally.downloaded.load(Relaxed),
                bytes_copied: tally.copied.load(Relaxed),
                bytes_zeroed: tally.zeroed.load(Relaxed),
                modules: loading.kernels as u64,
                compile_time: loading.time,
                memory_used: self.memory_used() as u64,
                peak_memory: self.peak_memory() as u64,
            }
        }
    }
}
