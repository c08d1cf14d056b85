//! The kernel that counts distinct keys in a hash table.

use crate::arch::{Order, Scope, thread};
use crate::code::Sign;
use crate::form::kernel;
use crate::sort::ShortCode;
use crate::view::{Global, GlobalMut, Shared, SharedMemory, shared_bytes};

/// The threads per block.
pub(crate) const THREADS: u32 = 512;

/// The code that stands for an empty slot. Where it is the code of a key, this key is counted in slot 0.
pub(crate) const EMPTY: u64 = u64::MAX;

/// The slots of a block's own table, a power of two.
const OWN: usize = 2048;

/// The slots that are looked at for a key. If it finds no place in so many, the table counts as full.
const PROBES: usize = 128;

const SHARED: usize = shared_bytes::<u64>(OWN) + shared_bytes::<u32>(OWN + 1);

/// Returns a number whose upper bits depend on all bits of the code.
#[inline(always)]
fn hash(code: u64) -> u64 {
    let mixed = (code ^ code >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

/// The hash table, as the kernel's arguments describe it.
#[derive(Clone, Copy)]
struct Table {
    /// Slot 0, and then a power of two of slots.
    codes: GlobalMut<u64>,
    counts: GlobalMut<u64>,
    is_full: GlobalMut<u32>,
}

impl Table {
    /// Adds to the count of a code. Returns whether it has a slot.
    ///
    /// # Safety
    /// The contract of [`count_distinct`].
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn add(self, code: u64, hash: u64, count: u64) -> bool {
        let mask = self.codes.len() - 2;
        let mut at = (hash >> 20) as usize & mask;
        let mut probes = 0;
        while probes < PROBES {
            let mut found = self.codes.atomic_load(1 + at, Scope::Gpu, Order::Relaxed);
            if found == EMPTY {
                found = self.codes.compare_exchange(1 + at, EMPTY, code, Scope::Gpu, Order::Relaxed);
            }
            if found == code || found == EMPTY {
                self.counts.atomic_add(1 + at, count, Scope::Gpu, Order::Relaxed);
                return true;
            }
            at = (at + 1) & mask;
            probes += 1;
        }
        self.is_full.atomic_store(0, 1, Scope::Gpu, Order::Relaxed);
        false
    }
}

/// The table of a block, for keys that are frequent: a slot per hash, which the first key that has it keeps.
#[derive(Clone, Copy)]
struct Own {
    codes: Shared<u64>,
    counts: Shared<u32>,
}

impl Own {
    /// Counts a code. Returns whether it has a slot.
    ///
    /// # Safety
    /// The tables have [`OWN`] slots.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn add(self, code: u64, hash: u64) -> bool {
        let at = (hash >> 53) as usize;
        let mut found = self.codes.atomic_load(at);
        if found == EMPTY {
            found = self.codes.compare_exchange(at, EMPTY, code);
        }
        let is_own = found == code || found == EMPTY;
        if is_own {
            self.counts.atomic_add(at, 1);
        }
        is_own
    }
}

/// Counts how often each code occurs, in a hash table.
///
/// A block counts the first 2048 codes that have different hashes in shared memory, so that many equal keys do not meet at one address
/// of the device's memory, and adds them to the table at its end. Others are counted in the table at once. If a code finds no
/// slot, `is_full` is set, and the counts are of no use.
///
/// Cost: every key is read once. Keys that are not counted in shared memory take a read of the table and an addition to it.
///
/// # Safety
/// The launch has any number of blocks, each of which takes fewer than 2^32 keys. `codes` has a power of two of slots and one more,
/// all [`EMPTY`]; `counts` has as many zeros, and `is_full` a single one. While the kernel runs, nothing writes the keys, and nothing
/// else uses the other buffers.
#[kernel(listed, threads = THREADS, shared = SHARED, native = crate::runs::native::count_distinct)]
pub unsafe fn count_distinct<K: ShortCode>(
    keys: Global<K>,
    sign: Sign,
    codes: GlobalMut<u64>,
    counts: GlobalMut<u64>,
    is_full: GlobalMut<u32>,
) {
    let mut memory = SharedMemory::new();
    let own = Own { codes: memory.take(OWN), counts: memory.take(OWN + 1) };
    let table = Table { codes, counts, is_full };
    let thread = thread::thread_idx_x() as usize;
    let mut i = thread;
    while i < OWN {
        own.codes.set(i, EMPTY);
        own.counts.set(i, 0);
        i += THREADS as usize;
    }
    if thread == 0 {
        own.counts.set(OWN, 0);
    }
    thread::sync_threads();

    let mut at = thread::block_idx_x() as usize * THREADS as usize + thread;
    let mut has_room = true;
    while at < keys.len() && has_room {
        let code = sign.encode(keys.get(at)).halves()[0];
        if code == EMPTY {
            own.counts.atomic_add(OWN, 1);
        } else {
            let hash = hash(code);
            if !own.add(code, hash) {
                has_room = table.add(code, hash, 1);
            }
        }
        at += thread::grid_dim_x() as usize * THREADS as usize;
    }
    thread::sync_threads();

    let mut i = thread;
    while i < OWN {
        let (code, count) = (own.codes.get(i), own.counts.get(i));
        if code != EMPTY {
            table.add(code, hash(code), count as u64);
        }
        i += THREADS as usize;
    }
    let special = own.counts.get(OWN);
    if thread == 0 && special != 0 {
        counts.atomic_add(0, special as u64, Scope::Gpu, Order::Relaxed);
    }
}

crate::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    family count_distinct(K) {
        for K in [u32, u64]: CountDistinct<K>;
    }
}
