//! Native bodies: kernels that the CPU runs as plain loops over their data, instead of thread by thread.

use super::context;
use super::fault::Caught;
use super::launch::pool;
use super::panics;
use std::ops::Range;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// The OS threads that run the native body of a kernel.
///
/// ```
/// use gpu_primitives::kernel::{Team, kernel};
/// use gpu_primitives::{Device, Error, GlobalMut, thread};
/// use std::ops::Range;
///
/// /// Doubles the numbers.
/// ///
/// /// # Safety
/// /// The launch has at least one thread per number.
/// #[kernel(threads = 64, native = double_natively)]
/// unsafe fn double(numbers: GlobalMut<u32>) {
///     let at = (thread::block_idx_x() * 64 + thread::thread_idx_x()) as usize;
///     if at < numbers.len() {
///         numbers.set(at, 2 * numbers.get(at));
///     }
/// }
///
/// /// # Safety
/// /// The contract of [`double`].
/// unsafe fn double_natively(Double { numbers, .. }: Double, team: Team) {
///     let double = |_: usize, range: Range<usize>| {
///         for at in range {
///             // SAFETY: the number exists, and no other part has it.
///             unsafe { *numbers.as_mut_ptr().add(at) *= 2 };
///         }
///     };
///     // SAFETY: the body captures an argument of the kernel, and each call writes numbers of its own.
///     unsafe { team.divide(numbers.len(), double) };
/// }
///
/// let stream = Device::cpu().stream()?; // on a GPU the kernel also needs PTX: see `instances!`
/// let mut numbers = stream.upload(&[1u32, 2, 3])?;
/// // SAFETY: one block of 64 threads covers the three numbers.
/// unsafe { stream.launch(Double::new(numbers.view_mut(&stream)?), 1)? };
/// assert_eq!(numbers.to_vec(&stream)?, [2, 4, 6]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Team {
    workers: usize,
}

impl Team {
    /// Calls `body` with each number below `parts`, once, on all workers. Returns when all calls have returned.
    ///
    /// # Safety
    /// Several threads may use what the body captures at the same time: arguments of a kernel, which are plain data, and
    /// what is `Sync`. The calls write no common memory.
    pub unsafe fn each(self, parts: usize, body: impl Fn(usize)) {
        // SAFETY: guaranteed by the caller.
        unsafe { self.each_of(parts, &body) };
    }

    /// [`each`](Self::each), compiled once for all bodies.
    ///
    /// # Safety
    /// Same as [`each`](Self::each).
    unsafe fn each_of(self, parts: usize, body: &dyn Fn(usize)) {
        struct Body<'a>(&'a dyn Fn(usize));
        // SAFETY: guaranteed by the caller.
        unsafe impl Sync for Body<'_> {}
        impl Body<'_> {
            fn call(&self, part: usize) {
                self.0(part);
            }
        }

        let body = Body(body);
        let next = AtomicUsize::new(0);
        let caught = Mutex::new(None);
        let work = || {
            let result = catch(|| {
                loop {
                    let part = next.fetch_add(1, Ordering::Relaxed);
                    if part >= parts {
                        break;
                    }
                    body.call(part);
                }
            });
            if let Err(fault) = result {
                // The others end after their current part.
                next.store(parts, Ordering::Relaxed);
                caught.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(fault);
            }
        };
        let helpers = self.workers.min(parts).saturating_sub(1);
        if helpers == 0 {
            work();
        } else {
            pool().in_place_scope(|scope| {
                for _ in 0..helpers {
                    scope.spawn(|_| work());
                }
                work();
            });
        }
        if let Some(fault) = caught.into_inner().unwrap_or_else(PoisonError::into_inner) {
            panics::throw(fault);
        }
    }

    /// Divides `len` elements among the workers: calls `body` with the number and the range of each part. There are as
    /// many parts as [`parts`](Self::parts) says.
    ///
    /// # Safety
    /// Same as [`each`](Self::each).
    pub unsafe fn divide(self, len: usize, body: impl Fn(usize, Range<usize>)) {
        // SAFETY: guaranteed by the caller.
        unsafe { self.divide_of(len, &body) };
    }

    /// [`divide`](Self::divide), compiled once for all bodies.
    ///
    /// # Safety
    /// Same as [`each`](Self::each).
    unsafe fn divide_of(self, len: usize, body: &dyn Fn(usize, Range<usize>)) {
        let parts = self.parts(len);
        let ends = |part: usize| (len as u128 * part as u128 / parts as u128) as usize;
        // SAFETY: guaranteed by the caller.
        unsafe { self.each_of(parts, &|part| body(part, ends(part)..ends(part + 1))) };
    }

    /// Returns the number of parts that [`divide`](Self::divide) makes of `len` elements: one for few elements.
    #[must_use]
    pub fn parts(self, len: usize) -> usize {
        /// Fewer elements are not worth the start of a part.
        const LEAST: usize = 1 << 13;
        self.workers.min(len / LEAST).max(1)
    }
}

/// Divides a range into parts of at most `len`.
pub(crate) fn chunks(range: Range<usize>, len: usize) -> impl Iterator<Item = Range<usize>> {
    range.clone().step_by(len).map(move |start| start..range.end.min(start + len))
}

/// Runs a native body on up to `workers` OS threads. Returns the fault that ended it, if there is one.
pub(crate) fn run_native(workers: usize, body: &dyn Fn(Team)) -> Option<Caught> {
    catch(|| body(Team { workers: workers.max(1) })).err()
}

/// Calls `f` as a part of a kernel: its panic becomes a fault.
fn catch(f: impl FnOnce()) -> Result<(), Caught> {
    panic::catch_unwind(AssertUnwindSafe(|| context::in_native_body(f))).map_err(panics::caught)
}
