//! The streams of other libraries that are in use.

use crate::host::error::Error;
use crate::host::runtime::device::{Device, lock};
use crate::host::runtime::foreign::Keeper;
use crate::host::runtime::lanes::LaneKind;
use crate::host::runtime::stream::Stream;
use core::any::Any;
use core::ffi::c_void;
use std::sync::Mutex;

/// The streams that were borrowed with a keeper. They are kept, and their temporary memory with them, so that borrowing a stream
/// for every call costs no more than borrowing it once.
static BORROWED: Mutex<Vec<Stream>> = Mutex::new(Vec::new());

impl Stream {
    /// Wraps a stream that another library created, or returns what wraps it already.
    ///
    /// # Safety
    /// `raw` is a stream, and stays one as long as the keeper lives.
    pub(super) unsafe fn adopt(device: &Device, raw: *mut c_void, keeper: impl Keeper) -> Result<Self, Error> {
        let mut borrowed = lock(&BORROWED);
        if let Some(stream) = borrowed.iter().find(|stream| stream.wraps(device, raw)) {
            return Ok(stream.clone());
        }
        // SAFETY: guaranteed by the caller.
        let stream = unsafe { Self::wrap(device, raw, Box::new(keeper))? };
        let (mut used, unused): (Vec<_>, Vec<_>) = borrowed.drain(..).partition(Self::is_used_elsewhere);
        used.push(stream.clone());
        *borrowed = used;
        drop(borrowed);
        drop(unused); // which calls the other library, and must not hold the lock
        Ok(stream)
    }

    /// Returns what wraps a stream of another library already.
    #[cfg(feature = "cudarc")]
    pub(super) fn adopted<K: Keeper>(is_it: impl Fn(&K) -> bool) -> Option<Self> {
        lock(&BORROWED).iter().find(|stream| stream.keeper::<K>().is_some_and(&is_it)).cloned()
    }

    /// Drops what is kept of a stream of another library.
    pub(super) fn release(device: &Device, raw: *mut c_void) {
        let mut borrowed = lock(&BORROWED);
        let kept =
            borrowed.iter().position(|stream| stream.wraps(device, raw)).map(|index| borrowed.swap_remove(index));
        drop(borrowed);
        drop(kept);
    }

    /// Returns whether it is this stream of another library.
    fn wraps(&self, device: &Device, raw: *mut c_void) -> bool {
        self.device() == device
            && matches!(&self.lane().kind, LaneKind::Cuda(stream) if stream.handle().cast::<c_void>() == raw)
    }

    /// Returns what keeps the stream of another library, if it is a `K`.
    pub(super) fn keeper<K: Keeper>(&self) -> Option<&K> {
        (self.any_keeper()? as &dyn Any).downcast_ref()
    }

    fn any_keeper(&self) -> Option<&dyn Keeper> {
        match &self.lane().kind {
            LaneKind::Cuda(stream) => stream.keeper(),
            LaneKind::Cpu(_) | LaneKind::Planned(_) => None,
        }
    }

    /// Returns whether anything but the list of borrowed streams uses it.
    fn is_used_elsewhere(&self) -> bool {
        self.has_clones() || self.any_keeper().is_some_and(|keeper| !keeper.is_alone())
    }
}
