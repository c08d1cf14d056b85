//! Elements that are spread over the shards of a world.

use crate::plan::{concatenated, fetch, reach};
use crate::world::World;
use bytemuck::Pod;
use core::fmt::{self, Debug};
use core::ops::Range;
use gpu_dictionary::cast::Input;
use gpu_primitives::{DeviceSlice, DeviceVec, Error, Stream, expect_len};

/// Elements that are spread over the shards of a [`World`], in the order of the ranks and of their shards. It holds those of
/// this rank: one vector for each of its shards, on the device of the shard.
///
/// ```
/// use gpu_primitives::{Device, Error};
/// use gpu_sharded::World;
/// use gpu_sharded::primitives::Spread;
///
/// let stream = Device::default()?.stream()?;
/// let world = World::local(3);
/// let numbers = Spread::upload(&stream, &world, &[1u32, 2, 3, 4, 5])?;
/// assert_eq!(numbers.parts().iter().map(|part| part.len()).collect::<Vec<_>>(), [1, 2, 2]);
/// assert_eq!(numbers.to_vec(&stream)?, [1, 2, 3, 4, 5]);
/// # Ok::<(), Error>(())
/// ```
pub struct Spread<T: Pod> {
    world: World,
    parts: Vec<DeviceVec<T>>,
}

/// Returns part `i` of `parts` parts of `len` elements: they differ by one element at most.
pub(crate) fn share_of(len: usize, i: usize, parts: usize) -> Range<usize> {
    let start = |i: usize| (i as u128 * len as u128 / parts as u128) as usize;
    start(i)..start(i + 1)
}

impl<T: Pod> Spread<T> {
    pub(crate) fn of(world: &World, parts: Vec<DeviceVec<T>>) -> Self {
        Self { world: world.clone(), parts }
    }

    /// Takes one vector for each shard of this rank. Each is on the device of its shard: that of the stream that a call is given,
    /// or for [`World::on`], that of the shard's stream.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the rank has another number of shards.
    pub fn new(world: &World, parts: Vec<DeviceVec<T>>) -> Result<Self, Error> {
        expect_len("the parts of a rank, one for each of its shards,", world.own_shards(), parts.len())?;
        Ok(Self::of(world, parts))
    }

    /// Copies elements of this rank to its shards. Their lengths differ by one at most. Other ranks need not call it.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or any error of a copy.
    pub fn upload(stream: &Stream, world: &World, elements: &[T]) -> Result<Self, Error> {
        let shards = world.own_shards();
        let part = |own: usize| world.home(own, stream).upload(&elements[share_of(elements.len(), own, shards)]);
        Ok(Self::of(world, (0..shards).map(part).collect::<Result<_, _>>()?))
    }

    /// Returns the world.
    #[must_use]
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Returns the elements of each shard of this rank.
    #[must_use]
    pub fn parts(&self) -> &[DeviceVec<T>] {
        &self.parts
    }

    /// Returns the elements of each shard of this rank.
    #[must_use]
    pub fn into_parts(self) -> Vec<DeviceVec<T>> {
        self.parts
    }

    /// Returns the number of elements of this rank.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parts.iter().map(DeviceVec::len).sum()
    }

    /// Returns whether this rank has no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies the elements of this rank to the host, in order. Waits.
    ///
    /// # Errors
    /// Any error of a copy.
    pub fn to_vec(&self, stream: &Stream) -> Result<Vec<T>, Error> {
        let mut all = Vec::with_capacity(self.len());
        for (own, part) in self.parts.iter().enumerate() {
            all.extend(part.to_vec(self.world.home(own, stream))?);
        }
        Ok(all)
    }

    /// Puts the elements of this rank into one vector on the device of the stream. If the rank has one shard, which is there, that
    /// is its vector, and nothing is copied.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or any error of a copy.
    pub fn into_one(self, stream: &Stream) -> Result<DeviceVec<T>, Error> {
        let here = |(own, part)| fetch(part, self.world.home(own, stream), stream);
        concatenated(stream, self.parts.into_iter().enumerate().map(here).collect::<Result<_, _>>()?)
    }
}

impl<T: Pod> Debug for Spread<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lens: Vec<usize> = self.parts.iter().map(DeviceVec::len).collect();
        f.debug_struct("Spread").field("world", &self.world).field("lens", &lens).finish()
    }
}

/// What this rank passes to a call: a [`Spread`], a piece of memory for each of its shards, or one piece of memory on the device of the
/// call's stream. One piece is divided evenly among the shards of the rank.
///
/// ```
/// use gpu_primitives::{Device, Error};
/// use gpu_sharded::World;
/// use gpu_sharded::primitives::reduce;
///
/// let stream = Device::default()?.stream()?;
/// let (a, b) = (stream.upload(&[1u32, 2, 3])?, stream.upload(&[4u32])?);
/// let world = World::local(2);
/// assert_eq!(reduce::sum(&stream, &world, &a)?, 6);
/// assert_eq!(reduce::sum(&stream, &world, vec![a.as_slice(), b.as_slice()])?, 10);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Parts<'a, T: Pod>(Form<'a, T>);

#[derive(Clone, Debug)]
enum Form<'a, T: Pod> {
    Whole(DeviceSlice<'a, T>),
    Each(Vec<DeviceSlice<'a, T>>),
}

impl<'a, T: Pod> Parts<'a, T> {
    /// Returns one piece of memory for each shard, on the device of the shard.
    pub(crate) fn open(self, stream: &Stream, world: &World) -> Result<Vec<Input<'a, T>>, Error> {
        let shards = world.own_shards();
        match self.0 {
            Form::Each(parts) => {
                expect_len("the parts of a rank, one for each of its shards,", shards, parts.len())?;
                Ok(parts.into_iter().map(Input::Same).collect())
            }
            Form::Whole(whole) => {
                let part = |own| {
                    let part = whole.slice(share_of(whole.len(), own, shards))?;
                    reach(part, stream, world.home(own, stream))
                };
                (0..shards).map(part).collect()
            }
        }
    }
}

impl<'a, T: Pod> From<DeviceSlice<'a, T>> for Parts<'a, T> {
    fn from(whole: DeviceSlice<'a, T>) -> Self {
        Self(Form::Whole(whole))
    }
}

impl<'a, T: Pod> From<&'a DeviceVec<T>> for Parts<'a, T> {
    fn from(whole: &'a DeviceVec<T>) -> Self {
        Self(Form::Whole(whole.as_slice()))
    }
}

impl<'a, T: Pod> From<Vec<DeviceSlice<'a, T>>> for Parts<'a, T> {
    fn from(parts: Vec<DeviceSlice<'a, T>>) -> Self {
        Self(Form::Each(parts))
    }
}

impl<'a, T: Pod> From<&'a [DeviceVec<T>]> for Parts<'a, T> {
    fn from(parts: &'a [DeviceVec<T>]) -> Self {
        Self(Form::Each(parts.iter().map(DeviceVec::as_slice).collect()))
    }
}

impl<'a, T: Pod> From<&'a Spread<T>> for Parts<'a, T> {
    fn from(spread: &'a Spread<T>) -> Self {
        spread.parts().into()
    }
}

#[cfg(test)]
mod tests {
    use super::share_of;

    #[test]
    fn shares_differ_by_one() {
        for len in [0, 1, 6, 7, 8, 1000, usize::MAX] {
            let mut end = 0;
            for i in 0..7 {
                let share = share_of(len, i, 7);
                assert_eq!(share.start, end);
                assert!((len / 7..=len.div_ceil(7)).contains(&share.len()), "{share:?} of {len}");
                end = share.end;
            }
            assert_eq!(end, len);
        }
    }
}
