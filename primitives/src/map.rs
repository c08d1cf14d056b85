//! Functions of one to four elements, for sources and transformations.

use crate::form::Param;
#[cfg(not(target_arch = "nvptx64"))]
use crate::operator::Recorded;

macro_rules! maps {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ident),+);)*) => { $(
        $(#[$doc])*
        #[diagnostic::on_unimplemented(
            message = "`{Self}` is not a function that the device can call with these elements",
            note = "`gpu_primitives::operator::map!` makes one of a closure",
            note = "or put `#[operator]` on an implementation of the trait"
        )]
        pub trait $name<$($type),+>: Param {
            /// The type of the result.
            type Output;

            /// Computes the result.
            fn map(&self, $($argument: $type),+) -> Self::Output;

            /// Records the function for GPUs: [`#[operator]`](crate::operator) writes this function.
            #[cfg(not(target_arch = "nvptx64"))]
            fn recorded() -> Recorded;
        }
    )* };
}

maps! {
    /// A function of an element. It may carry state, which is passed to the GPU as a kernel argument. Put
    /// [`#[operator]`](crate::operator) on an implementation: it records the function for GPUs. For one-liners, there is
    /// [`map!`](macro@crate::operator::map).
    ///
    /// ```
    /// use bytemuck::{Pod, Zeroable};
    /// use gpu_primitives::map::Map;
    /// use gpu_primitives::operator::{Record, operator};
    /// use gpu_primitives::{Device, Error, transform};
    ///
    /// #[repr(C)]
    /// #[derive(Clone, Copy, Pod, Zeroable, Record)]
    /// struct Scale {
    ///     factor: f32,
    /// }
    ///
    /// #[operator]
    /// impl Map<u32> for Scale {
    ///     type Output = f32;
    ///
    ///     fn map(&self, x: u32) -> f32 {
    ///         x as f32 * self.factor
    ///     }
    /// }
    ///
    /// let stream = Device::default()?.stream()?;
    /// let input = stream.upload(&[3u32, 1, 4])?;
    /// let mut output = stream.uninit::<f32>(3)?;
    /// transform::map(&stream, &input, &mut output, Scale { factor: 0.5 })?;
    /// assert_eq!(output.to_vec(&stream)?, [1.5, 0.5, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    Map(a: A);
    /// A function of two elements: see [`Map`].
    Map2(a: A, b: B);
    /// A function of three elements: see [`Map`].
    Map3(a: A, b: B, c: C);
    /// A function of four elements: see [`Map`].
    Map4(a: A, b: B, c: C, d: D);
}
