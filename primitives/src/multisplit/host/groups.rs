//! Positions by small integers: how many there are of each, where each group begins, and the positions of its members.

#![deny(unsafe_op_in_unsafe_fn)]

use super::{MAX_BUCKETS, pairs};
use crate::histogram::{self, Count, Value};
use crate::host::source::{Source, map};
use crate::map::Map;
use crate::monoid::{Monoid, Sum};
use crate::multisplit::Bucket;
use crate::operator::{Record, operator};
use crate::sort::Options;
use crate::sort::host::lowered;
use crate::{DeviceSlice, DeviceSliceMut, DeviceVec, Error, Stream, expect_room, scan, transfer, transform};
use bytemuck::{Pod, Zeroable};

/// Elements in groups: see [`group_by`].
#[derive(Debug)]
pub struct Groups {
    /// The positions of the elements: those of group 0, then those of group 1, and so on; in each group in ascending order. Elements
    /// in no group are at the end.
    pub positions: DeviceVec<u32>,
    /// Group `g` has the positions `offsets[g]..offsets[g + 1]`. There is one offset more than groups.
    pub offsets: DeviceVec<u64>,
}

/// Writes where each group of equal small integers would begin, if they were sorted: `offsets[g]` is the number of elements that are
/// less than `g`, and not negative. There is one offset more than groups. Elements that are negative, or no less than the number of
/// groups, are in no group and do not count. Does not wait.
///
/// It is a [histogram](histogram::bincount) and a scan.
///
/// ```
/// use gpu_primitives::{Device, Error, multisplit};
///
/// let stream = Device::default()?.stream()?;
/// let experts = stream.upload(&[2u32, 0, 2, 3, 0, 2])?;
/// let mut offsets = stream.uninit::<u32>(5)?; // four experts
/// multisplit::group_offsets(&stream, &experts, &mut offsets)?;
/// assert_eq!(offsets.to_vec(&stream)?, [0, 2, 2, 5, 6]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::LengthMismatch`] if there is no offset; [`Error::TooMany`] for 2^32 - 1 groups or more: nothing is written in these cases.
/// Any launch error.
pub fn group_offsets<'a, 'b, T: Pod, C: Count>(
    stream: &Stream,
    input: impl Source<'a, T>,
    offsets: impl Into<DeviceSliceMut<'b, C>>,
) -> Result<(), Error>
where
    Value: Bucket<T>,
    Sum: Monoid<C>,
{
    let (input, offsets) = (input.into_parts()?, offsets.into());
    let _span = crate::span!(stream, "multisplit::group_offsets", input.len());
    expect_room("the offsets of groups", 1, offsets.len())?;
    let groups = offsets.len() - 1;
    // The scan takes memory, and without it nothing is written.
    let mut counts = stream.uninit::<C>(groups + 1)?;
    histogram::bincount(stream, input, counts.slice_mut(..groups)?)?;
    transfer::fill(stream, counts.slice_mut(groups..)?, C::zeroed())?;
    scan::exclusive(stream, &counts, offsets, Sum, C::zeroed())
}

/// A small integer that elements are grouped by.
pub trait GroupKey: Pod {
    /// Returns the number of the group: the integer, or `groups` for one that is in no group.
    #[doc(hidden)]
    type Group: Bucket<Self> + Map<Self, Output = u32>;

    #[doc(hidden)]
    fn group(groups: u32) -> Self::Group;
}

/// The group of an integer.
#[doc(hidden)]
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable, Record)]
pub struct Group {
    groups: u32,
}

macro_rules! group_keys {
    ($($type:ty as $wide:ty)*) => { $(
        #[operator]
        impl Bucket<$type> for Group {
            #[inline(always)]
            fn bucket(&self, key: $type) -> u32 {
                // Negative numbers become large ones.
                if key as $wide as u64 >= self.groups as u64 { self.groups } else { key as u32 }
            }
        }

        #[operator]
        impl Map<$type> for Group {
            type Output = u32;

            #[inline(always)]
            fn map(&self, key: $type) -> u32 {
                if key as $wide as u64 >= self.groups as u64 { self.groups } else { key as u32 }
            }
        }

        impl GroupKey for $type {
            type Group = Group;

            fn group(groups: u32) -> Group {
                Group { groups }
            }
        }
    )* };
}

group_keys!(u8 as u64 u16 as u64 u32 as u64 u64 as u64 i8 as i64 i16 as i64 i32 as i64 i64 as i64);

/// Groups elements by small integers: returns the positions of the elements of group 0, then of group 1, and so on, and where each
/// group begins. Stable: positions ascend in each group. Elements that are negative, or no less than the number of groups, come
/// last, in their order. Does not wait.
///
/// Up to 255 groups take one pass; more take one pass per 8 bits of their number.
///
/// ```
/// use gpu_primitives::{Device, Error, multisplit};
///
/// let stream = Device::default()?.stream()?;
/// let experts = stream.upload(&[2i32, 0, 2, -1, 0, 2])?;
/// let groups = multisplit::group_by(&stream, &experts, 3)?;
/// assert_eq!(groups.positions.to_vec(&stream)?, [1, 4, 0, 2, 5, 3]);
/// assert_eq!(groups.offsets.to_vec(&stream)?, [0, 2, 2, 5]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::TooMany`] for 2^32 - 1 groups; [`Error::TooLong`] for more than 2^32 elements; [`Error::OutOfMemory`]; any launch error.
pub fn group_by<'a, T: GroupKey>(
    stream: &Stream,
    keys: impl Into<DeviceSlice<'a, T>>,
    groups: u32,
) -> Result<Groups, Error> {
    let keys: DeviceSlice<'_, T> = keys.into();
    let _span = crate::span!(stream, "multisplit::group_by", keys.len());
    let (len, group) = (keys.len(), T::group(groups));
    if groups < MAX_BUCKETS {
        let (indices, mut moved) = (lowered::indices(stream, len)?, stream.uninit::<T>(len)?);
        let mut positions = stream.uninit::<u32>(len)?;
        // One bucket more, for the elements in no group.
        let ends = pairs(stream, (keys, &indices), (&mut moved, &mut positions), groups + 1, group)?;
        let mut offsets = stream.uninit::<u64>(groups as usize + 1)?;
        offsets.as_mut_slice().copy_from(stream, ends.slice(..=groups as usize)?)?;
        return Ok(Groups { positions, offsets });
    }
    let mut numbers = stream.uninit::<u32>(len)?;
    transform::write(stream, map(keys, group), &mut numbers)?;
    sort_groups(stream, &numbers, groups)
}

/// Groups elements by the numbers of their groups, which are at most `groups`.
fn sort_groups(stream: &Stream, numbers: &DeviceVec<u32>, groups: u32) -> Result<Groups, Error> {
    let mut offsets = stream.uninit::<u64>(groups as usize + 1)?;
    group_offsets(stream, numbers, &mut offsets)?;
    let bits = u32::BITS - groups.leading_zeros();
    let options = Options::new().bits(0..bits);
    let positions = crate::sort::argsort(stream, numbers, options)?;
    Ok(Groups { positions, offsets })
}
