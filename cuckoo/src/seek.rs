//! Finds a key, or claims a slot for it, while other threads do the same.

use crate::hash::Choices;
use crate::view::{Bucket, Slots, TableMut, key_index};
use bytemuck::Pod;
use gpu_dictionary::WordCode as KeyCode;
use gpu_primitives::arch::{Order, Scope};

/// What became of a search for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seek {
    /// The key was there, or another thread has placed it.
    Found,
    /// The key was absent, and this thread has placed it.
    Claimed,
    /// The key is absent, and its buckets have no free slot.
    Full,
}

/// The result of a search: the slot is that of the key, unless the buckets are full.
#[derive(Clone, Copy, Debug)]
pub struct Sought {
    pub outcome: Seek,
    pub bucket: u32,
    pub slot: u32,
}

impl<C: KeyCode, V: Pod, const WIDTH: usize> TableMut<C, V, WIDTH> {
    /// Finds a key, or claims the first free slot of its buckets for it. Writes no value.
    ///
    /// Threads need no locks, even if they have the same key. A slot is claimed by a compare-and-exchange of its key. Free
    /// slots become taken and never free again, so a bucket that was seen full stays full: a key goes to a later bucket only
    /// if the earlier ones have no free slot, and a bucket with an empty slot still ends every search.
    ///
    /// **No key is placed twice.** Two threads with the same key go through its buckets, and through the free slots of a
    /// bucket, in the same order. A thread passes a slot only if it saw another key there, which stays. So both come to the
    /// first slot that neither of them passes. One of them takes it, and the other sees its own key there.
    ///
    /// # Safety
    /// The caller is a kernel that changes the keys of the table only in this way. `choices` are those of `key`.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn seek(self, key: C, choices: Choices) -> Sought {
        let map = self.map;
        // Looks for the key, and for the first bucket with a free slot on the way.
        let mut free_choice = map.hash.hashes;
        let (mut empties, mut deads): (Slots, Slots) = (0, 0);
        let mut choice = 0;
        while choice < map.hash.hashes {
            let bucket = choices.get(choice);
            let keys = Bucket::<C, WIDTH>::load_atomic(self.keys, key_index::<C, V>(WIDTH, bucket));
            let slots = keys.slots_with(key);
            if slots != 0 {
                return Sought { outcome: Seek::Found, bucket, slot: slots.trailing_zeros() };
            }
            let empties_here = keys.slots_with(map.empty.of(bucket));
            if free_choice == map.hash.hashes {
                (empties, deads) = (empties_here, keys.slots_with(map.dead.of(bucket)));
                if empties | deads != 0 {
                    free_choice = choice;
                }
            }
            if empties_here != 0 {
                break;
            }
            choice += 1;
        }

        // The slots that were free may have been claimed since. No others have become free.
        choice = free_choice;
        while choice < map.hash.hashes {
            let bucket = choices.get(choice);
            let at = key_index::<C, V>(WIDTH, bucket);
            let mut free = empties | deads;
            while free != 0 {
                let slot = free.trailing_zeros();
                let marker = if (empties >> slot) & 1 != 0 { map.empty.of(bucket) } else { map.dead.of(bucket) };
                let seen = self.keys.compare_exchange(at + slot as usize, marker, key, Scope::Gpu, Order::Relaxed);
                if seen == marker || seen == key {
                    let outcome = if seen == marker { Seek::Claimed } else { Seek::Found };
                    return Sought { outcome, bucket, slot };
                }
                free &= free - 1;
            }
            choice += 1;
            if choice < map.hash.hashes {
                let bucket = choices.get(choice);
                let keys = Bucket::<C, WIDTH>::load_atomic(self.keys, key_index::<C, V>(WIDTH, bucket));
                let slots = keys.slots_with(key);
                if slots != 0 {
                    return Sought { outcome: Seek::Found, bucket, slot: slots.trailing_zeros() };
                }
                (empties, deads) = (keys.slots_with(map.empty.of(bucket)), keys.slots_with(map.dead.of(bucket)));
            }
        }
        Sought { outcome: Seek::Full, bucket: 0, slot: 0 }
    }
}
