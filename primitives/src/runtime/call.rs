//! Kernels that were given memory, and the views that lend it to them.

use super::device::DeviceKind;
use super::stream::Stream;
use crate::kernel::{Buffer, Kernel, Param, ReadParam};
use core::fmt;
use core::marker::PhantomData;

/// Memory that a kernel reaches by addresses that it computes, in addition to the buffers among its arguments. The checked
/// CPU device refuses all other addresses; other devices do not need the list, and it is empty there.
#[derive(Clone, Debug, Default)]
pub struct Reach(Vec<Buffer>);

impl Reach {
    /// Nothing but the arguments.
    #[must_use]
    pub const fn none() -> Self {
        Self(Vec::new())
    }

    /// The buffers in these arguments.
    #[must_use]
    pub fn of<'a, P: Param>(params: impl IntoIterator<Item = &'a P>) -> Self {
        let mut reach = Self::none();
        reach.extend(params);
        reach
    }

    /// What `list` gives, if `stream` is one of the checked CPU device; else nothing, since nobody asks.
    pub fn when_checked(stream: &Stream, list: impl FnOnce() -> Self) -> Self {
        if stream.device().kind() == DeviceKind::CpuChecked { list() } else { Self::none() }
    }

    /// Adds the buffers in these arguments.
    pub fn extend<'a, P: Param>(&mut self, params: impl IntoIterator<Item = &'a P>) {
        for param in params {
            param.buffers("", &mut |_, buffer| self.0.push(buffer));
        }
    }

    /// Adds what another one has.
    pub fn append(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }

    pub(crate) fn buffers(&self) -> &[Buffer] {
        &self.0
    }
}

/// What a kernel is given to reach device memory, on the host: the argument `P`, with the memory borrowed for `'a`.
///
/// `DeviceVec::view` and `DeviceSlice::view` make views of elements ([`Global`](crate::Global)), `view_mut` such that can be
/// written ([`GlobalMut`](crate::GlobalMut)); the dictionaries have views of their own.
#[must_use = "a view does nothing until a kernel is launched with it"]
pub struct View<'a, P> {
    param: P,
    reach: Reach,
    memory: PhantomData<&'a ()>,
}

impl<P: Param> View<'_, P> {
    /// A view of memory that the caller vouches for.
    ///
    /// # Safety
    /// The memory that `param` shows, and what it leads to, `reach`, stays allocated during the view's lifetime. If it can be
    /// written by `param`, nothing else uses it meanwhile; else nobody writes it.
    pub unsafe fn new(param: P, reach: Reach) -> Self {
        Self { param, reach, memory: PhantomData }
    }

    /// The argument itself, no longer tied to the memory.
    ///
    /// # Safety
    /// A kernel that is given it is launched while the memory is still borrowed as the view has borrowed it.
    #[must_use]
    pub unsafe fn into_param(self) -> P {
        self.param
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

/// What can be passed to a kernel where its signature has a `P`: a `P`, or a [`View`] of one.
///
/// A bare `Global` or `GlobalMut` is not tied to the memory that it shows. It takes `unsafe` to get one on the host: see
/// [`View::into_param`].
pub trait Argument<'a, P: Param> {
    /// The argument, and what it leads to.
    fn into_argument(self) -> (P, Reach);
}

impl<P: Param> Argument<'_, P> for P {
    fn into_argument(self) -> (P, Reach) {
        (self, Reach::none())
    }
}

impl<'a, P: Param> Argument<'a, P> for View<'a, P> {
    fn into_argument(self) -> (P, Reach) {
        (self.param, self.reach)
    }
}

/// A kernel with its arguments, ready to launch: the memory that it was given is borrowed for `'a`.
#[must_use = "a kernel does nothing until it is launched on a stream"]
pub struct Call<'a, K> {
    kernel: K,
    reach: Reach,
    memory: PhantomData<&'a ()>,
}

impl<K: Kernel> Call<'_, K> {
    /// A kernel whose arguments are in it already.
    pub const fn new(kernel: K) -> Self {
        Self { kernel, reach: Reach::none(), memory: PhantomData }
    }

    /// Adds memory that the kernel reaches by addresses that it computes.
    pub fn reaching(mut self, reach: Reach) -> Self {
        self.reach.append(reach);
        self
    }

    pub(crate) fn into_parts(self) -> (K, Reach) {
        (self.kernel, self.reach)
    }
}

impl<K: Kernel> fmt::Debug for Call<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel `{}`", K::NAME)
    }
}
