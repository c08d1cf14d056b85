//! Kernels with their arguments, and the views that lend memory to them.

use super::loading::Next;
use super::stream::Stream;
use crate::form::{Buffer, Kernel, Param, ReadParam};
use crate::host::device_kind::DeviceKind;
use crate::view::{Global, GlobalMut};
use bytemuck::Pod;
use core::fmt;
use core::marker::PhantomData;

/// Memory that a kernel accesses through computed addresses, in addition to the buffers among its arguments. The
/// checked CPU device rejects all other addresses. Other devices do not need the list; it is empty there.
///
/// On the checked CPU device it also tells for which streams the views among the arguments were made.
#[derive(Clone, Debug, Default)]
pub struct Reach {
    buffers: Vec<Buffer>,
    /// The lanes of the streams.
    lanes: Vec<u64>,
}

impl Reach {
    /// No memory other than the arguments.
    #[must_use]
    pub const fn none() -> Self {
        Self { buffers: Vec::new(), lanes: Vec::new() }
    }

    /// No memory other than the arguments, which were made for this stream.
    pub(crate) fn made_for(stream: &Stream) -> Self {
        let mut reach = Self::none();
        if stream.device().kind() == DeviceKind::CpuChecked {
            reach.lanes.push(stream.lane().id());
        }
        reach
    }

    /// Returns whether all views were made for this stream.
    pub(crate) fn is_for(&self, stream: &Stream) -> bool {
        self.lanes.iter().all(|&lane| lane == stream.lane().id())
    }

    /// Collects the buffers in these arguments.
    #[must_use]
    pub fn of<'a, P: Param>(params: impl IntoIterator<Item = &'a P>) -> Self {
        let mut reach = Self::none();
        reach.extend(params);
        reach
    }

    /// Calls `list` if `stream` belongs to a checked CPU device; otherwise returns an empty list, since nothing uses
    /// it.
    pub fn when_checked(stream: &Stream, list: impl FnOnce() -> Self) -> Self {
        let mut reach = Self::made_for(stream);
        if stream.device().kind() == DeviceKind::CpuChecked {
            reach.append(list());
        }
        reach
    }

    /// Adds the buffers in these arguments.
    pub fn extend<'a, P: Param>(&mut self, params: impl IntoIterator<Item = &'a P>) {
        for param in params {
            param.buffers("", &mut |_, buffer| self.buffers.push(buffer));
        }
    }

    /// Adds the buffers of another list.
    pub fn append(&mut self, mut other: Self) {
        self.buffers.append(&mut other.buffers);
        self.lanes.append(&mut other.lanes);
    }

    pub(crate) fn buffers(&self) -> &[Buffer] {
        &self.buffers
    }
}

/// A kernel argument that refers to device memory, on the host: the argument `P`, with the memory borrowed for `'a`.
///
/// `DeviceVec::view` and `DeviceSlice::view` return read-only views ([`Global`](crate::Global)); `view_mut` returns
/// writable ones ([`GlobalMut`](crate::GlobalMut)). The dictionaries have their own views.
#[must_use = "a view does nothing until a kernel is launched with it"]
pub struct View<'a, P> {
    param: P,
    reach: Reach,
    memory: PhantomData<&'a ()>,
}

impl<P: Param> View<'_, P> {
    /// Creates a view of memory that the caller guarantees to be valid.
    ///
    /// # Safety
    /// The memory that `param` shows, and the memory it leads to (`reach`), stays allocated during the view's lifetime.
    /// If `param` can write it, nothing else uses it during that time; otherwise nothing writes it.
    pub unsafe fn new(param: P, reach: Reach) -> Self {
        Self { param, reach, memory: PhantomData }
    }

    /// Adds the memory of the view to a list.
    pub fn add_to(&self, reach: &mut Reach) {
        reach.extend([&self.param]);
        reach.append(self.reach.clone());
    }

    /// Returns the argument itself, no longer tied to the memory.
    ///
    /// # Safety
    /// Every kernel that takes the argument is launched while the memory is still borrowed in the same way as by the
    /// view.
    #[must_use]
    pub unsafe fn into_param(self) -> P {
        self.param
    }
}

impl<T: Pod> View<'_, Global<T>> {
    /// Returns a view of no elements, for an input that a kernel does not need.
    pub const fn empty() -> Self {
        Self { param: Global::empty(), reach: Reach::none(), memory: PhantomData }
    }
}

impl<T: Pod> View<'_, GlobalMut<T>> {
    /// Returns a view of no elements, for an output that is not wanted.
    pub const fn empty_mut() -> Self {
        Self { param: GlobalMut::empty(), reach: Reach::none(), memory: PhantomData }
    }
}

impl<P: ReadParam> Clone for View<'_, P> {
    fn clone(&self) -> Self {
        Self { param: self.param, reach: self.reach.clone(), memory: PhantomData }
    }
}

impl<P> fmt::Debug for View<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "View<{}>", core::any::type_name::<P>())
    }
}

/// A value that can be passed to a kernel whose signature has a `P`: a `P`, or a [`View`] of one.
///
/// A bare `Global` or `GlobalMut` is not tied to the memory it shows. Getting one on the host requires `unsafe`: see
/// [`View::into_param`]. So this does not compile:
///
/// ```compile_fail,E0133
/// # use gpu_primitives::{Device, Error, GlobalMut};
/// # use gpu_primitives::kernel::{Argument, Reach};
/// let stream = Device::cpu().stream()?;
/// let mut numbers = stream.zeroed::<u32>(3)?;
/// let torn: GlobalMut<u32> = numbers.view_mut(&stream)?.into_argument(&mut Reach::none());
/// drop(numbers);
/// # Ok::<(), Error>(())
/// ```
pub trait Argument<'a, P: Param> {
    /// Returns the argument, no longer tied to the memory, and adds the memory it leads to. `#[kernel]` calls this: the [`Call`]
    /// that it returns is tied to the memory for `'a`.
    ///
    /// # Safety
    /// Same as [`View::into_param`].
    unsafe fn into_argument(self, reach: &mut Reach) -> P;
}

impl<P: Param> Argument<'_, P> for P {
    unsafe fn into_argument(self, _: &mut Reach) -> P {
        self
    }
}

impl<'a, P: Param> Argument<'a, P> for View<'a, P> {
    unsafe fn into_argument(self, reach: &mut Reach) -> P {
        reach.append(self.reach);
        self.param
    }
}

/// A kernel with its arguments, ready to launch. The memory among the arguments is borrowed for `'a`.
#[must_use = "a kernel does nothing until it is launched on a stream"]
pub struct Call<'a, K> {
    pub(super) kernel: K,
    pub(super) reach: Reach,
    pub(super) next: Option<Next>,
    memory: PhantomData<&'a ()>,
}

impl<K: Kernel> Call<'_, K> {
    /// Creates a call from a kernel that already holds its arguments.
    pub const fn new(kernel: K) -> Self {
        Self::with_reach(kernel, Reach::none())
    }

    /// Creates a call from a kernel that already holds its arguments, and from the memory that they lead to.
    pub const fn with_reach(kernel: K, reach: Reach) -> Self {
        Self { kernel, reach, next: None, memory: PhantomData }
    }

    /// Adds memory that the kernel accesses through computed addresses.
    pub fn reaching(mut self, reach: Reach) -> Self {
        self.reach.append(reach);
        self
    }

    /// Names the kernels that are launched after this one. Where this launch has to load its kernel first, they are loaded at the
    /// same time, each by a thread of its own. A wrong guess costs time and nothing else.
    ///
    /// ```
    /// use gpu_primitives::kernel::kernel;
    /// use gpu_primitives::{Device, Error, GlobalMut, thread};
    ///
    /// /// # Safety
    /// /// One block, and 32 numbers.
    /// #[kernel(threads = 32)]
    /// unsafe fn number(out: GlobalMut<u32>) {
    ///     out.set(thread::thread_idx_x() as usize, thread::thread_idx_x());
    /// }
    ///
    /// /// # Safety
    /// /// One block, and 32 numbers.
    /// #[kernel(threads = 32)]
    /// unsafe fn double(out: GlobalMut<u32>) {
    ///     out.set(thread::thread_idx_x() as usize, 2 * out.get(thread::thread_idx_x() as usize));
    /// }
    ///
    /// let stream = Device::cpu().stream()?;
    /// let mut numbers = stream.zeroed::<u32>(32)?;
    /// let first = Number::new(numbers.view_mut(&stream)?).followed_by(|next| next.kernel::<Double>());
    /// // SAFETY: one block, and 32 numbers.
    /// unsafe { stream.launch(first, 1)? };
    /// let second = Double::new(numbers.view_mut(&stream)?);
    /// // SAFETY: as above.
    /// unsafe { stream.launch(second, 1)? };
    /// assert_eq!(numbers.to_vec(&stream)?[31], 62);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn followed_by(mut self, next: Next) -> Self {
        self.next = Some(next);
        self
    }
}

impl<K: Kernel> fmt::Debug for Call<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel `{}`", K::NAME)
    }
}
