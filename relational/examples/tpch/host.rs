//! Some of the queries by hand, on all cores of the host with rayon: what the device is compared with. The columns are the same.

use super::queries::day;
use gpu_primitives::{Error, PinnedVec, Stream};
use rayon::prelude::*;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use tpchgen::generators as tpch;

/// Makes a struct of columns in memory of the host, which is page-locked, so that the device reads it at its full rate.
macro_rules! table {
    ($name:ident, $generator:ident, $row:ident { $($field:ident: $type:ty = $value:expr),+ $(,)? }) => {
        pub struct $name { $(pub $field: PinnedVec<$type>,)+ }

        impl $name {
            fn generate(stream: &Stream, scale: f64) -> Result<Self, Error> {
                const PARTS: i32 = 64;
                let parts = (1..=PARTS).into_par_iter();
                let rows: Vec<_> = parts.flat_map_iter(|part| tpch::$generator::new(scale, part, PARTS).iter()).collect();
                $(
                    let mut $field = stream.device().pinned::<$type>(rows.len())?;
                    $field.par_iter_mut().zip(&rows).for_each(|(to, $row)| *to = $value);
                )+
                Ok(Self { $($field,)+ })
            }
        }
    };
}

table!(
    Lineitem,
    LineItemGenerator,
    row {
        orderkey: i32 = row.l_orderkey as i32,
        quantity: i32 = row.l_quantity as i32,
        price: i64 = row.l_extendedprice.0,
        discount: i64 = row.l_discount.0,
        tax: i64 = row.l_tax.0,
        returnflag: u8 = row.l_returnflag.as_bytes()[0],
        linestatus: u8 = row.l_linestatus.as_bytes()[0],
        shipdate: i32 = row.l_shipdate.to_unix_epoch(),
        commitdate: i32 = row.l_commitdate.to_unix_epoch(),
        receiptdate: i32 = row.l_receiptdate.to_unix_epoch(),
        mode: u8 = MODES.iter().position(|mode| *mode == row.l_shipmode).map_or(0, |mode| mode as u8 + 1),
    }
);

table!(
    Orders,
    OrderGenerator,
    row {
        orderkey: i32 = row.o_orderkey as i32,
        custkey: i32 = row.o_custkey as i32,
        total: i64 = row.o_totalprice.0,
        date: i32 = row.o_orderdate.to_unix_epoch(),
        urgent: u8 = ["1-URGENT", "2-HIGH"].contains(&row.o_orderpriority) as u8,
    }
);

table!(
    Customer,
    CustomerGenerator,
    row { custkey: i32 = row.c_custkey as i32, building: u8 = (row.c_mktsegment == "BUILDING") as u8 }
);

/// The modes that are asked for.
const MODES: [&str; 2] = ["MAIL", "SHIP"];

/// The columns that these queries read.
pub struct Host {
    pub lineitem: Lineitem,
    pub orders: Orders,
    pub customer: Customer,
}

/// A query of the host: its number, and the function.
pub type Query = (u32, fn(&Host) -> Vec<String>);

/// The queries that exist here.
pub const QUERIES: &[Query] = &[(1, q1), (3, q3), (6, q6), (12, q12), (18, q18)];

impl Host {
    /// Generates the columns that these queries read.
    pub fn generate(stream: &Stream, scale: f64) -> Result<Self, Error> {
        Ok(Self {
            lineitem: Lineitem::generate(stream, scale)?,
            orders: Orders::generate(stream, scale)?,
            customer: Customer::generate(stream, scale)?,
        })
    }

    /// Copies the columns that a query reads to the device, and waits.
    pub fn copy(&self, stream: &Stream, query: u32) -> Result<usize, Error> {
        let (l, o, c) = (&self.lineitem, &self.orders, &self.customer);
        macro_rules! copy {
            ($($column:expr),*) => {{
                let copies = ($(stream.upload(&$column)?,)*);
                stream.synchronize()?;
                drop(copies);
                0 $(+ std::mem::size_of_val(&*$column))*
            }};
        }
        Ok(match query {
            1 => copy!(l.quantity, l.price, l.discount, l.tax, l.returnflag, l.linestatus, l.shipdate),
            3 => {
                copy!(l.orderkey, l.price, l.discount, l.shipdate, o.orderkey, o.custkey, o.date, c.custkey, c.building)
            }
            6 => copy!(l.quantity, l.price, l.discount, l.shipdate),
            12 => copy!(l.orderkey, l.shipdate, l.commitdate, l.receiptdate, l.mode, o.orderkey, o.urgent),
            _ => copy!(l.orderkey, l.quantity, o.orderkey, o.custkey, o.total, o.date),
        })
    }

    /// Returns an element for each number of an order.
    fn of_orders<T: Send + Clone>(&self, empty: T) -> Vec<T> {
        let last = self.orders.orderkey.par_iter().max().copied().unwrap_or(0);
        vec![empty; last as usize + 1]
    }
}

/// Numbers that all cores add to.
fn totals(len: usize) -> Vec<AtomicI64> {
    (0..len).into_par_iter().map(|_| AtomicI64::new(0)).collect()
}

fn q1(host: &Host) -> Vec<String> {
    let l = &host.lineitem;
    let last = day(1998, 9, 3);
    // The groups are pairs of letters.
    let add = |mut groups: HashMap<(u8, u8), [i128; 6]>, i: usize| {
        if l.shipdate[i] < last {
            let paid = l.price[i] * (100 - l.discount[i]);
            let row = [l.quantity[i].into(), l.price[i], paid, paid * (100 + l.tax[i]), l.discount[i], 1];
            let sums = groups.entry((l.returnflag[i], l.linestatus[i])).or_default();
            sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += i128::from(x));
        }
        groups
    };
    let merge = |mut a: HashMap<(u8, u8), [i128; 6]>, b: HashMap<(u8, u8), [i128; 6]>| {
        for (key, sums) in b {
            a.entry(key).or_default().iter_mut().zip(sums).for_each(|(a, b)| *a += b);
        }
        a
    };
    let groups = (0..l.shipdate.len()).into_par_iter().with_min_len(1 << 14).fold(HashMap::new, add);
    let mut groups: Vec<_> = groups.reduce(HashMap::new, merge).into_iter().collect();
    groups.sort_unstable();
    let line = |((flag, status), sums): ((u8, u8), [i128; 6])| {
        let [quantity, price, paid, taxed, discount, count] = sums;
        let mean = |sum: i128| format!("{:.2}", sum as f64 / count as f64);
        let (flag, status) = (flag as char, status as char);
        let means = [mean(quantity), mean(price), mean(discount)].join("|");
        format!("{flag}|{status}|{quantity}|{price}|{paid}|{taxed}|{means}|{count}")
    };
    groups.into_iter().map(line).collect()
}

fn q3(host: &Host) -> Vec<String> {
    let (l, o, c) = (&host.lineitem, &host.orders, &host.customer);
    let date = day(1995, 3, 15);
    let mut building = vec![false; c.custkey.iter().max().map_or(0, |last| *last as usize) + 1];
    c.custkey.iter().zip(c.building.iter()).for_each(|(key, is)| building[*key as usize] = *is != 0);
    let mut of_order = host.of_orders(u32::MAX);
    for (i, key) in o.orderkey.iter().enumerate() {
        if o.date[i] < date && building[o.custkey[i] as usize] {
            of_order[*key as usize] = i as u32;
        }
    }
    let sums = totals(of_order.len());
    (0..l.orderkey.len()).into_par_iter().with_min_len(1 << 14).for_each(|i| {
        let key = l.orderkey[i] as usize;
        if l.shipdate[i] > date && of_order[key] != u32::MAX {
            sums[key].fetch_add(l.price[i] * (100 - l.discount[i]), Ordering::Relaxed);
        }
    });
    let found = sums.par_iter().enumerate().map(|(key, sum)| (key, sum.load(Ordering::Relaxed)));
    let mut found: Vec<_> = found.filter(|(_, sum)| *sum != 0).collect();
    found.par_sort_unstable_by_key(|&(key, sum)| (Reverse(sum), o.date[of_order[key] as usize], key));
    let line = |&(key, sum): &(usize, i64)| format!("{key}|{sum}|{}", o.date[of_order[key] as usize]);
    found.iter().take(10).map(line).collect()
}

fn q6(host: &Host) -> Vec<String> {
    let l = &host.lineitem;
    let (from, to) = (day(1994, 1, 1), day(1995, 1, 1));
    let saved = |i: usize| {
        let is = l.shipdate[i] >= from && l.shipdate[i] < to && (5..=7).contains(&l.discount[i]) && l.quantity[i] < 24;
        if is { l.price[i] * l.discount[i] } else { 0 }
    };
    vec![(0..l.price.len()).into_par_iter().with_min_len(1 << 14).map(saved).sum::<i64>().to_string()]
}

fn q12(host: &Host) -> Vec<String> {
    let (l, o) = (&host.lineitem, &host.orders);
    let (from, to) = (day(1994, 1, 1), day(1995, 1, 1));
    let mut urgent = host.of_orders(0u8);
    o.orderkey.iter().zip(o.urgent.iter()).for_each(|(key, is)| urgent[*key as usize] = *is);
    let count = |mut counts: [[u64; 2]; 2], i: usize| {
        let is_late = l.shipdate[i] < l.commitdate[i] && l.commitdate[i] < l.receiptdate[i];
        if l.mode[i] > 0 && is_late && l.receiptdate[i] >= from && l.receiptdate[i] < to {
            counts[usize::from(l.mode[i]) - 1][usize::from(urgent[l.orderkey[i] as usize])] += 1;
        }
        counts
    };
    let add = |a: [[u64; 2]; 2], b: [[u64; 2]; 2]| [0, 1].map(|mode| [0, 1].map(|is| a[mode][is] + b[mode][is]));
    let counts = (0..l.mode.len()).into_par_iter().with_min_len(1 << 14).fold(|| [[0; 2]; 2], count);
    let counts = counts.reduce(|| [[0; 2]; 2], add);
    MODES.iter().zip(counts).map(|(mode, [low, high])| format!("{mode}|{high}|{low}")).collect()
}

fn q18(host: &Host) -> Vec<String> {
    let (l, o) = (&host.lineitem, &host.orders);
    let sums = totals(host.of_orders(()).len());
    (0..l.orderkey.len()).into_par_iter().with_min_len(1 << 14).for_each(|i| {
        sums[l.orderkey[i] as usize].fetch_add(l.quantity[i].into(), Ordering::Relaxed);
    });
    let sum = |i: usize| sums[o.orderkey[i] as usize].load(Ordering::Relaxed);
    let mut found: Vec<usize> = (0..o.orderkey.len()).into_par_iter().filter(|&i| sum(i) > 300).collect();
    found.sort_unstable_by_key(|&i| (Reverse(o.total[i]), o.date[i], o.orderkey[i]));
    let line = |&i: &usize| format!("{}|{}|{}|{}|{}", o.custkey[i], o.orderkey[i], o.date[i], o.total[i], sum(i));
    found.iter().take(100).map(line).collect()
}
