//! The elements of a level that are not among others: see [`except`](crate::levels::device::merge::except).

use super::divide;
use super::level::gallop;
use crate::KeyCode;
use crate::levels::device::merge::except::FlagOthers;
use bytemuck::Pod;
use gpu_primitives::kernel::Team;
use std::ops::Range;

/// # Safety
/// The contract of [`flag_others`](FlagOthers).
pub unsafe fn flag_others<C: KeyCode, V: Pod + Ord>(kernel: FlagOthers<C, V>, team: Team) {
    let FlagOthers { elements, others, flags, .. } = kernel;
    // SAFETY: nobody writes these.
    let (keys, values) = unsafe { (elements.keys.as_slice(), elements.values.as_slice()) };
    // SAFETY: the same.
    let (other_keys, other_values) = unsafe { (others.keys.as_slice(), others.values.as_slice()) };
    let by_value = size_of::<V>() > 0 && !other_values.is_empty();
    let work = |range: Range<usize>| {
        // The others before this one have smaller keys than the element before.
        let mut near = 0;
        for at in range {
            let key = keys[at];
            if near > 0 && other_keys[near - 1] >= key {
                near = 0;
            }
            near = gallop(other_keys, near, |other| other < key);
            let mut is_among = other_keys.get(near) == Some(&key);
            if is_among && by_value {
                let end = gallop(other_keys, near, |other| other == key);
                is_among = other_values[near..end].binary_search(&values[at]).is_ok();
            }
            // SAFETY: there is a flag per element, and each element is in one part.
            unsafe { flags.as_mut_ptr().add(at).write(u8::from(!is_among)) };
        }
    };
    // SAFETY: the body captures arguments and plain data. Each call writes flags of its own.
    unsafe { divide(team, keys.len(), 1, work) };
}
