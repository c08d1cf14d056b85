//! Joins of two tables, orders and customers, as kernels that search a dictionary; and a grouping, as a kernel that inserts
//! into one.
//!
//! An order has the number of a customer. The dictionary has the row of each customer's number in the columns of the
//! customers. Numbers of customers are unique, and many orders may have the same one.

#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx))]
// Device functions are unsafe as a whole: each states its contract once, on the function.
#![allow(unsafe_op_in_unsafe_fn)]

use gpu_cuckoo::{CuckooMut, CuckooView, Insertion};
use gpu_lsm::LsmView;
use gpu_primitives::arch::{Order, Scope};
use gpu_primitives::block::warp::broadcast;
use gpu_primitives::kernel::{Param, kernel};
use gpu_primitives::{Global, GlobalMut, thread, warp};

/// The threads per block.
pub const THREADS: u32 = 256;

/// The row of an order without a customer.
pub const NO_ROW: u32 = u32::MAX;

/// A dictionary as kernels search it.
pub trait Search: Param {
    /// Returns the value of a key.
    ///
    /// # Safety
    /// The caller is a kernel, and the dictionary does not change while it runs.
    unsafe fn search(self, key: u32) -> Option<u32>;
}

impl Search for CuckooView<u32, u32> {
    #[inline(always)]
    unsafe fn search(self, key: u32) -> Option<u32> {
        self.get(key)
    }
}

impl Search for LsmView<u32, u32> {
    #[inline(always)]
    unsafe fn search(self, key: u32) -> Option<u32> {
        self.get(key)
    }
}

/// Returns the index of this thread in the grid.
#[inline(always)]
fn index() -> usize {
    thread::block_idx_x() as usize * THREADS as usize + thread::thread_idx_x() as usize
}

/// Left join: writes the row of each order's customer, or [`NO_ROW`].
///
/// # Safety
/// The launch has at least one thread per order, and there is a row for each. While the kernel runs, nobody changes the
/// dictionary or writes the orders, and nobody else uses the rows.
#[kernel(threads = THREADS)]
pub unsafe fn left_join<D: Search>(customers: D, orders: Global<u32>, rows: GlobalMut<u32>) {
    let i = index();
    if i < orders.len() {
        rows.set(i, customers.search(orders.get(i)).unwrap_or(NO_ROW));
    }
}

/// Inner join: appends each order that has a customer, and the customer's row, in any order.
///
/// The threads of a warp reserve positions with one atomic.
///
/// # Safety
/// The launch has at least one thread per order. `matched` and `rows` have room for all orders. `count` has one element,
/// zero before and the number of matches after. While the kernel runs, nobody changes the dictionary or writes the orders,
/// and nobody else uses the outputs.
#[kernel(threads = THREADS)]
pub unsafe fn inner_join<D: Search>(
    customers: D,
    orders: Global<u32>,
    matched: GlobalMut<u32>,
    rows: GlobalMut<u32>,
    count: GlobalMut<u64>,
) {
    let i = index();
    let row = if i < orders.len() { customers.search(orders.get(i)) } else { None };
    let found = warp::ballot(warp::FULL, row.is_some());
    let mut start = 0;
    if warp::lane_id() == 0 && found != 0 {
        start = count.atomic_add(0, found.count_ones() as u64, Scope::Gpu, Order::Relaxed);
    }
    let position = broadcast(start, 0) as usize + (found & warp::lane_mask_lt()).count_ones() as usize;
    if let Some(row) = row {
        matched.set(position, i as u32);
        rows.set(position, row);
    }
}

/// Grouping: adds the amount of each order to the total of its customer. Appends the orders that found no room in the table, in
/// any order: the host adds those.
///
/// # Safety
/// The launch has at least one thread per order, and there is an amount for each. `left` has room for all orders. `count` has one
/// element, zero before and the number of orders left after. While the kernel runs, nobody else uses the totals, `left` or
/// `count`, and nobody writes the inputs.
#[kernel(threads = THREADS)]
pub unsafe fn total(
    orders: Global<u32>,
    amounts: Global<u32>,
    totals: CuckooMut<u32, u64>,
    left: GlobalMut<u32>,
    count: GlobalMut<u64>,
) {
    let i = index();
    if i < orders.len() {
        let outcome = totals.upsert(orders.get(i), amounts.get(i) as u64, |old, new| old + new);
        if outcome == Insertion::Full {
            let position = count.atomic_add(0, 1, Scope::Gpu, Order::Relaxed);
            left.set(position as usize, i as u32);
        }
    }
}

gpu_primitives::instances! {
    in concat!(env!("OUT_DIR"), "/ptx");
    LeftJoin<CuckooView<u32, u32>>;
    LeftJoin<LsmView<u32, u32>>;
    InnerJoin<CuckooView<u32, u32>>;
    InnerJoin<LsmView<u32, u32>>;
    Total;
}
