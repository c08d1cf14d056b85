//! Tables on a GPU: columns, and what databases do with them.
//!
//! A table is whatever columns belong together: a struct of your own, with a [`Column`] for each. Calls give [`Rows`], which are
//! positions in a table, and [`Rows::take`] gathers the columns that are needed.
//!
//! ```
//! use gpu_primitives::operator::{map, predicate};
//! use gpu_primitives::source::map2;
//! use gpu_primitives::{Device, Error};
//! use gpu_relational::{Column, asc, desc, filter, group_by, join, top_k};
//!
//! let stream = &Device::default()?.stream()?;
//! // Orders: their customers and days. Lines: their orders, prices and discounts.
//! let (customer, day) = (Column::upload(stream, &[1u32, 2, 1])?, Column::upload(stream, &[10i32, 11, 90])?);
//! let (order, price) = (Column::upload(stream, &[0u32, 1, 1, 2])?, Column::upload(stream, &[100i64, 200, 300, 400])?);
//! let discount = Column::upload(stream, &[10i64, 0, 50, 0])?;
//! let number = Column::upload(stream, &[0u32, 1, 2])?;
//!
//! // The sales of each customer before day 50, the best ones first.
//! let orders = filter(stream, &day, predicate!(|day: i32| day < 50))?;
//! let joined = join::inner(stream, &order, orders.on(&number))?;
//! let (price, discount) = joined.left.take(stream, (&price, &discount))?;
//! let customer = joined.right.take(stream, &orders)?.take(stream, &customer)?;
//! let paid = map2(&price, &discount, map!(|price: i64, discount: i64| -> i64 { price * (100 - discount) }));
//! let groups = group_by(stream, &customer)?;
//! let (customer, sales) = (groups.rows().take(stream, &customer)?, groups.sum(stream, &Column::compute(stream, paid)?)?);
//! let best = top_k(stream, 10, (desc(&sales), asc(&customer)))?;
//! assert_eq!(best.take(stream, &customer)?.to_vec(stream)?, [2, 1]);
//! assert_eq!(best.take(stream, &sales)?.to_vec(stream)?, [35_000i128, 9_000]);
//! # Ok::<(), Error>(())
//! ```
//!
//! | to | call |
//! | --- | --- |
//! | keep rows by a condition | [`filter`], [`Rows::filter`] |
//! | get columns at rows | [`Rows::take`], [`Rows::of`] |
//! | compute a column | [`Column::compute`] |
//! | join | [`join::inner`], [`left`](join::left), [`full`](join::full), [`semi`](join::semi), [`anti`](join::anti), [`as_of`](join::as_of); [`join::Method`] chooses hash or sort |
//! | group | [`group_by`], then [`Groups::sum`] and the like, [`Groups::spread`], several at once by [`Groups::agg`]; [`distinct`] |
//! | sort | [`sort_by`], [`top_k`], with [`asc`] and [`desc`] |
//! | say that a key is in a small range | [`narrow`] |
//! | number rows in partitions | [`Window`] |
//! | hold strings | [`Strings`], [`Text`] |
//! | hold amounts, dates, moments | [`Decimals`], [`Dates`], [`Timestamps`] |
//!
//! With the feature `arrow`, columns come from Arrow arrays, and become such: see the module `arrow`.
//!
//! There are no kernels here: everything is made of [`gpu_primitives`], and of the hash table [`gpu_cuckoo`]. A table has up to 2^32 - 2 rows.

pub mod agg;
#[cfg(feature = "arrow")]
pub mod arrow;
mod column;
mod dates;
mod decimals;
mod group;
pub mod join;
mod key;
mod number;
mod rows;
mod sort;
mod strings;
mod window;

pub use column::Column;
pub use dates::{Dates, TimeUnit, Timestamps};
pub use decimals::{Decimals, Digits};
pub use group::{Groups, distinct, group_by};
pub use key::{Key, Keys, asc, desc, narrow};
pub use number::{Aggregate, Amount, Number, Summable};
pub use rows::{NO_ROW, Rows, Take, filter};
pub use sort::{sort_by, top_k};
pub use strings::{Strings, Text};
pub use window::Window;
