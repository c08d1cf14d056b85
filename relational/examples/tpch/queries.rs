//! Queries of TPC-H. Each gives lines of text: amounts are integers, of as many decimals as the query's arithmetic has.

#![allow(
    clippy::unnecessary_cast,
    clippy::manual_range_contains,
    reason = "functions that are recorded have no other way to say it"
)]

use crate::data::Db;
use gpu_primitives::operator::{map, predicate};
use gpu_primitives::source::{map2, map3, map4};
use gpu_primitives::{Error, Stream, reduce, transform};
use gpu_relational::agg::{count, first, mean, sum};
use gpu_relational::{
    Column, Dates, Groups, Rows, Strings, asc, desc, distinct, filter, group_by, join, sort_by, top_k,
};
use std::fmt::Display;

/// A query.
pub type Query = fn(&Stream, &Db) -> Result<Vec<String>, Error>;

/// The queries, with their numbers.
pub const QUERIES: &[(u32, Query)] = &[
    (1, q1),
    (2, q2),
    (3, q3),
    (4, q4),
    (5, q5),
    (6, q6),
    (7, q7),
    (8, q8),
    (9, q9),
    (10, q10),
    (11, q11),
    (12, q12),
    (13, q13),
    (14, q14),
    (15, q15),
    (16, q16),
    (17, q17),
    (18, q18),
    (19, q19),
    (20, q20),
    (21, q21),
    (22, q22),
];

/// Returns the days from 1970 to a date.
pub const fn day(year: i32, month: u32, day: u32) -> i32 {
    Dates::day(year, month, day).expect("a date of the calendar")
}

/// A column as text.
trait Show {
    fn show(&self, stream: &Stream, rows: &Rows) -> Result<Vec<String>, Error>;
}

impl<T: bytemuck::Pod + Display> Show for Column<T> {
    fn show(&self, stream: &Stream, rows: &Rows) -> Result<Vec<String>, Error> {
        let values = rows.take(stream, self)?.to_options(stream)?;
        Ok(values.into_iter().map(|value| value.map_or("null".into(), |value| format!("{value:.2}"))).collect())
    }
}

impl Show for Strings {
    fn show(&self, stream: &Stream, rows: &Rows) -> Result<Vec<String>, Error> {
        let taken = rows.take(stream, self)?;
        Ok(taken.to_options(stream)?.into_iter().map(|word| word.unwrap_or("null").into()).collect())
    }
}

/// Returns a line for each row.
fn lines(stream: &Stream, rows: &Rows, columns: &[&dyn Show]) -> Result<Vec<String>, Error> {
    let columns = columns.iter().map(|column| column.show(stream, rows)).collect::<Result<Vec<_>, _>>()?;
    Ok((0..rows.len()).map(|row| columns.iter().map(|column| &*column[row]).collect::<Vec<_>>().join("|")).collect())
}

/// Returns the rows where a test is 1.
fn keep(stream: &Stream, test: &Column<u8>) -> Result<Rows, Error> {
    filter(stream, test, predicate!(|is: u8| is == 1))
}

/// Returns the rows whose word passes.
fn words(stream: &Stream, column: &Strings, test: impl Fn(&str) -> bool) -> Result<Rows, Error> {
    keep(stream, &column.test(stream, test)?)
}

/// Returns the rows whose day is in a range.
fn days(stream: &Stream, column: &Column<i32>, from: i32, to: i32) -> Result<Rows, Error> {
    filter(stream, column, predicate!(from: i32 = from, to: i32 = to; |day: i32| day >= from && day < to))
}

/// Returns prices after discounts.
fn revenue(stream: &Stream, db: &Db, lines: &Rows) -> Result<Column<i64>, Error> {
    let (price, discount) = (lines.of(&db.lineitem.price), lines.of(&db.lineitem.discount));
    Column::compute(
        stream,
        map2(price, discount, map!(|price: i64, discount: i64| -> i64 { price * (100 - discount) })),
    )
}

fn q1(s: &Stream, db: &Db) -> Result<Vec<String>, Error> {
    let l = &db.lineitem;
    let rows = days(s, &l.shipdate, 0, const { day(1998, 9, 3) })?;
    let (flag, status, quantity) = rows.take(s, (&l.returnflag, &l.linestatus, &l.quantity))?;
    let (price, discount, paid) = (rows.take(s, &l.price)?, rows.take(s, &l.discount)?, revenue(s, db, &rows)?);
    let taxed = map2(&paid, rows.of(&l.tax), map!(|paid: i64, tax: i64| -> i64 { paid * (100 + tax) }));
    let taxed = Column::compute(s, taxed)?;
    let sums = (sum(&quantity), sum(&price), sum(&paid), sum(&taxed));
    let means = (mean(&quantity), mean(&price), mean(&discount));
    let g = group_by(s, (&flag, &status))?;
    let (keys, sums, means, number) = g.agg(s, (first((&flag, &status)), sums, means, count()))?;
    let columns: [&dyn Show; 10] =
        [&keys.0, &keys.1, &sums.0, &sums.1, &sums.2, &sums.3, &means.0, &means.1, &means.2, &number];
    lines(s, &Rows::all(s, g.len())?, &columns)
}

fn q2(s: &Stream, db: &Db) -> Result<Vec<String>, Error> {
    let (p, ps, su, n) = (&db.part, &db.partsupp, &db.supplier, &db.nation);
    let brass = words(s, &p.kind, |kind| kind.ends_with("BRASS"))?;
    let parts = brass.filter(s, brass.of(&p.size), predicate!(|size: i32| size == 15))?;
    let nations = nations(s, db, "EUROPE")?;
    let suppliers = join::semi(s, &su.nationkey, nations.on(&n.nationkey))?;
    let rows = join::semi(s, &ps.partkey, parts.on(&p.partkey))?;
    let joined = join::inner(s, rows.on(&ps.suppkey), suppliers.on(&su.suppkey))?;
    let (rows, suppliers) = (joined.left.take(s, &rows)?, joined.right.take(s, &suppliers)?);
    // The suppliers that have the least cost of their part.
    let cost = rows.take(s, &ps.cost)?;
    let g = group_by(s, rows.on(&ps.partkey))?;
    let least = g.spread(s, &g.min(s, &cost)?)?;
    let is_least = map2(&cost, &least, map!(|cost: i64, least: i64| -> u8 { if cost == least { 1 } else { 0 } }));
    let (rows, suppliers) = filter(s, is_least, predicate!(|is: u8| is == 1))?.take(s, (&rows, &suppliers))?;
    let parts = join::inner(s, rows.on(&ps.partkey), &p.partkey)?.right;
    let (key, maker) = parts.take(s, (&p.partkey, &p.manufacturer))?;
    let (balance, name, nation) = suppliers.take(s, (&su.balance, &su.name, &su.nationkey))?;
    let nation = join::inner(s, &nation, &n.nationkey)?.right.take(s, &n.name)?;
    let best = top_k(s, 100, (desc(&balance), asc(&nation), asc(&name), asc(&key)))?;
    lines(s, &best, &[&balance, &name, &nation, &key, &maker])
}

fn q3(s: &Stream, db: &Db) -> Result<Vec<String>, Error> {
    let (c, o, l) = (&db.customer, &db.orders, &db.lineitem);
    let date = const { day(1995, 3, 15) };
    let customers = words(s, &c.segment, |segment| segment == "BUILDING")?;
    let orders = days(s, &o.date, 0, date)?;
    let orders = join::semi(s, orders.on(&o.custkey), customers.on(&c.custkey))?.take(s, &orders)?;
    let items = days(s, &l.shipdate, date + 1, i32::MAX)?;
    let joined = join::inner(s, items.on(&l.orderkey), orders.on(&o.orderkey))?;
    let (items, orders) = (joined.left.take(s, &items)?, joined.right.take(s, &orders)?);
    let g = group_by(s, orders.on(&o.orderkey))?;
    let sums = g.sum(s, &revenue(s, db, &items)?)?;
    let (key, date) = g.rows().take(s, &orders)?.take(s, (&o.orderkey, &o.date))?;
    lines(s, &top_k(s, 10, (desc(&sums), asc(&date), asc(&key)))?, &[&key, &sums, &date])
}

fn q4(s: &Stream, db: &Db) -> Result<Vec<String>, Error> {
    let (o, l) = (&db.orders, &db.lineitem);
    let orders = days(s, &o.date, const { day(1993, 7, 1) }, const { day(1993, 10, 1) })?;
    let late = map2(&l.commitdate, &l.receiptdate, map!(|a: i32, b: i32| -> u8 { if a < b { 1 } else { 0 } }));
    let late = filter(s, late, predicate!(|late: u8| late == 1))?;
    let orders = join::semi(s, orders.on(&o.orderkey), late.on(&l.orderkey))?.take(s, &orders)?;
    let g = group_by(s, orders.on(&o.priority))?;
    let priority = g.rows().take(s, &orders)?.take(s, &o.priority)?;
    lines(s, &Rows::all(s, g.len())?, &[&priority, &g.count(s)?])
}

/// Returns the rows of nations in a region.
fn nations(s: &Stream, db: &Db, region: &str) -> Result<Rows, Error> {
    let regions = words(s, &db.region.name, |name| name == region)?;
    join::semi(s, &db.nation.regionkey, regions.on(&db.region.regionkey))
}

fn q5(s: &Stream, db: &Db) -> Result<Vec<String>, Error> {
    let (o, l, c) = (&db.orders, &db.lineitem, &db.customer);
    let nations = nations(s, db, "ASIA")?;
    let customers = join::semi(s, &c.nationkey, nations.on(&db.nation.nationkey))?;
    let orders = days(s, &o.date, const { day(1994, 1, 1) }, const { day(1995, 1, 1) })?;
    let joined = join::inner(s, orders.on(&o.custkey), customers.on(&c.custkey))?;
    let (orders, customers) = (joined.left.take(s, &orders)?, joined.right.take(s, &customers)?);
    let joined = join::inner(s, &l.orderkey, orders.on(&o.orderkey))?;
    let nation = joined.right.take(s, &customers)?.take(s, &c.nationkey)?;
    let suppliers = (&db.supplier.suppkey, &db.supplier.nationkey);
    let local = join::semi(s, (joined.left.on(&l.suppkey), &nation), suppliers)?;
    let (items, nation) = local.take(s, (&joined.left, &nation))?;
    let g = group_by(s, &nation)?;
    let sums = g.sum(s, &revenue(s, db, &items)?)?;
    let nation = join::inner(s, g.rows().on(&nation), &db.nation.nationkey)?.right.take(s, &db.nation.name)?;
    lines(s, &sort_by(s, desc(&sums))?, &[&nation, &sums])
}

fn q6(s: &Stream, db: &Db) -> Result<Vec<String>, Error> {
    let l = &db.lineitem;
    let (from, to) = (const { day(1994, 1, 1) }, const { day(1995, 1, 1) });
    let condition = map3(
        &l.shipdate,
        &l.discount,
        &l.quantity,
        map!(from: i32 = from, to: i32 = to; |day: i32, discount: i64, quantity: i32| -> u8 {
            if day >= from && day < to && discount >= 5 && discount <= 7 && quantity < 24 { 1 } else { 0 }
        }),
    );
    let rows = filter(s, condition, predicate!(|is: u8| is == 1))?;
    let saved =
        map2(rows.of(&l.price), rows.of(&l.discount), map!(|price: i64, discount: i64| -> i64 { price * discount }));
    Ok(vec![reduce::sum(s, saved)?.get(s)?.to_string()])
}

fn q7(s: &Stream, db: &Db) -> Result<Vec<String>, Error> {
    let (o, l, c, n) = (&db.orders, &db.lineitem, &db.customer, &db.nation);
    let two = words(s, &n.name, |name| name == "FRANCE" || name == "GERMANY")?;
    let items = days(s, &l.shipdate, const { day(1995, 1, 1) }, const { day(1997, 1, 1) })?;
    let suppliers = join::semi(s, &db.supplier.nationkey, two.on(&n.nationkey))?;
    let joined = join::inner(s, items.on(&l.suppkey), suppliers.on(&db.supplier.suppkey))?;
    let (items, suppliers) = (joined.left.take(s, &items)?, joined.right.take(s, &suppliers)?);
    let orders = join::inner(s, items.on(&l.orderkey), &o.orderkey)?;
    let (items, suppliers) = orders.left.take(s, (&items, &suppliers))?;
    let customers = join::inner(s, orders.right.on(&o.custkey), &c.custkey)?;
    let (items, suppliers) = customers.left.take(s, (&items, &suppliers))?;
    let (of, to) = (suppliers.take(s, &db.supplier.nationkey)?, customers.right.take(s, &c.nationkey)?);
    // The other nation of the two.
    let (of, to) = (join::left(s, &of, two.on(&n.nationkey))?.right, join::left(s, &to, two.on(&n.nationkey))?.right);
    let other =
        map2(of.positions(), to.positions(), map!(|a: u32, b: u32| -> u8 { if a != b && b < 2 { 1 } else { 0 } }));
    let (items, of, to) = filter(s, other, predicate!(|is: u8| is == 1))?.take(s, (&items, &of, &to))?;
    let (of, to) = (of.take(s, &two)?.take(s, &n.name)?, to.take(s, &two)?.take(s, &n.name)?);
    let year = Dates::new(items.take(s, &l.shipdate)?).year(s)?;
    let g = group_by(s, (&of, &to, &year))?;
    let (of, to, year) = g.rows().take(s, (&of, &to, &year))?;
    lines(s, &Rows::all(s, g.len())?, &[&of, &to, &year, &g.sum(s, &revenue(s, db, &items)?)?])
}

fn q8(s: &Stream, db: &Db) -> Result<Vec<String>, Error> {
    let (o, l, c, n, su) = (&db.orders, &db.lineitem, &db.customer, &db.nation, &db.supplier);
    let parts = words(s, &db.part.kind, |kind| kind == "ECONOMY ANODIZED STEEL")?;
    let items = join::semi(s, &l.partkey, parts.on(&db.part.partkey))?;
    let nations = nations(s, db, "AMERICA")?;
    let customers = join::semi(s, &c.nationkey, nations.on(&n.nationkey))?;
    let orders = days(s, &o.date, const { day(1995, 1, 1) }, const { day(1997, 1, 1) })?;
    let orders = join::semi(s, orders.on(&o.custkey), customers.on(&c.custkey))?.take(s, &orders)?;
    let joined = join::inner(s, items.on(&l.orderkey), orders.on(&o.orderkey))?;
    let (items, orders) = (joined.left.take(s, &items)?, joined.right.take(s, &orders)?);
    let nation = join::inner(s, items.on(&l.suppkey), &su.suppkey)?.right.take(s, &su.nationkey)?;
    let is_brazil = n.name.test(s, |name| name == "BRAZIL")?;
    let is_brazil = join::inner(s, &nation, &n.nationkey)?.right.take(s, &is_brazil)?;
    let all = revenue(s, db, &items)?;
    let part = map2(&all, &is_brazil, map!(|paid: i64, is: u8| -> i64 { if is == 1 { paid } else { 0 } }));
    let year = Dates::new(orders.take(s, &o.date)?).year(s)?;
    let g = group_by(s, &year)?;
    let (part, all) = (g.sum(s, &Column::compute(s, part)?)?, g.sum(s, &all)?);
    let share = map!(|part: i128, all: i128| -> f64 { 100.0 * (part as i64 as f64) / (all as i64 as f64) });
    let share = Column::compute(s, map2(&part, &all, share))?;
    lines(s, &Rows::all(s, g.len())?, &[&g.rows().take(s, &year)?, &part, &all, &share])
}

fn q9(s: &Stream, db: &Db) -> Result<Vec<String>, Error> {
    let (o, l, p, ps) = (&db.orders, &db.lineitem, &db.part, &db.partsupp);
    let parts = keep(s, &p.name.like(s, "%green%")?)?;
    let items = join::semi(s, &l.partkey, parts.on(&p.partkey))?;
    let supplied = join::inner(s, items.on((&l.partkey, &l.suppkey)), (&ps.partkey, &ps.suppkey))?.right;
    let orders = join::inner(s, items.on(&l.orderkey), &o.orderkey)?.right;
    let suppliers = join::inner(s, items.on(&l.suppkey), &db.supplier.suppkey)?.right;
    let nation = suppliers.take(s, &db.supplier.nationkey)?;
    let nation = join::inner(s, &nation, &db.nation.nationkey)?.right.take(s, &db.nation.name)?;
    let year = Dates::new(orders.take(s, &o.date)?).year(s)?;
    let (cost, quantity) = (supplied.take(s, &ps.cost)?, items.take(s, &l.quantity)?);
    let paid = revenue(s, db, &items)?;
    let profit = map3(
        &paid,
        &cost,
        &quantity,
        map!(|paid: i64, cost: i64, quantity: i32| -> i64 { paid - cost * quantity as i64 * 100 }),
    );
    let profit = Column::compute(s, profit)?;
    let g = group_by(s, (&nation, desc(&year)))?;
    let (nation, year) = g.rows().take(s, (&nation, &year))?;
    lines(s, &Rows::all(s, g.len())?, &[&nation, &year, &g.sum(s, &profit)?])
}

fn q10(s: &Stream, db: &Db) -> Result<Vec<String>, Error> {
    let (o, l, c) = (&db.orders, &db.lineitem, &db.customer);
    let orders = days(s, &o.date, const { day(1993, 10, 1) }, const { day(1994, 1, 1) })?;
    let items = words(s, &l.returnflag, |flag| flag == "R")?;
    let joined = join::inner(s, items.on(&l.orderkey), orders.on(&o.orderkey))?;
    let (items, orders) = (joined.left.take(s, &items)?, joined.right.take(s, &orders)?);
    let customer = orders.take(s, &o.custkey)?;
    let g = group_by(s, &customer)?;
    let sums = g.sum(s, &revenue(s, db, &items)?)?;
    let customers = join::inner(s, g.rows().on(&customer), &c.custkey)?.right;
    let (key, balance, nation) = customers.take(s, (&c.custkey, &c.balance, &c.nationkey))?;
    let nation = join::inner(s, &nation, &db.nation.nationkey)?.right.take(s, &db.nation.name)?;
    lines(s, &top_k(s, 20, (desc(&sums), asc(&key)))?, &[&key, &sums, &balance, &nation])
}

fn q11(s: &Stream, db: &Db) -> Result<Vec<String>, Error> {
    let ps = &db.partsupp;
    let nation = words(s, &db.nation.name, |name| name == "GERMANY")?;
    let suppliers = join::semi(s, &db.supplier.nationkey, nation.on(&db.nation.nationkey))?;
    let rows = join::semi(s, &ps.suppkey, suppliers.on(&db.supplier.suppkey))?;
    let value = map2(rows.of(&ps.cost), rows.of(&ps.available), map!(|cost: i64, n: i32| -> i64 { cost * n as i64 }));
    let value = Column::compute(s, value)?;
    let g = group_by(s, rows.on(&ps.partkey))?;
    let (sums, part) = (g.sum(s, &value)?, g.rows().take(s, &rows)?.take(s, &ps.partkey)?);
    let total = reduce::sum(s, &value)?.get(s)?;
    // The scale of the data is in the share: 0.0001 by the number of suppliers of scale 1.
    let least = total as f64 * 0.0001 / (db.supplier.suppkey.len() as f64 / 10_000.0);
    let most = filter(s, &sums, predicate!(least: i64 = least as i64; |sum: i128| sum as i64 > least))?;
    let (part, sums) = most.take(s, (&part, &sums))?;
    lines(s, &sort_by(s, (desc(&sums), asc(&part)))?, &[&part, &sums])
}

fn q12(s: &Stream, db: &Db) -> Result<Vec<String>, Error> {
    let (o, l) = (&db.orders, &db.lineitem);
    let modes = l.mode.test(s, |mode| mode == "MAIL" || mode == "SHIP")?;
    let (from, to) = (const { day(1994, 1, 1) }, const { day(1995, 1, 1) });
    let condition = map4(
        &modes,
        &l.shipdate,
        &l.commitdate,
        &l.receiptdate,
        map!(from: i32 = from, to: i32 = to; |mode: u8, ship: i32, commit: i32, receipt: i32| -> u8 {
            if mode == 1 && ship < commit && commit < receipt && receipt >= from && receipt < to { 1 } else { 0 }
        }),
    );
    let items = filter(s, condition, predicate!(|is: u8| is == 1))?;
    let orders = join::inner(s, items.on(&l.orderkey), &o.orderkey)?.right;
    let urgent = o.priority.test(s, |priority| priority == "1-URGENT" || priority == "2-HIGH")?;
    let urgent = orders.take(s, &urgent)?;
    let g = group_by(s, items.on(&l.mode))?;
    let (all, high) = (g.count(s)?, g.sum(s, &urgent)?);
    let low = Column::compute(s, map2(&all, &high, map!(|all: u64, high: u64| -> u64 { all - high })))?;
    let mode = g.rows().take(s, &items)?.take(s, &l.mode)?;
    lines(s, &Rows::all(s, g.len())?, &[&mode, &high, &low])
}

fn q13(s: &Stream, db: &Db) -> Result<Vec<String>, Error> {
    let (o, c) = (&db.orders, &db.customer);
    let orders = filter(s, &o.comment.like(s, "%special%requests%")?, predicate!(|is: u8| is == 0))?;
    let joined = join::left(s, &c.custkey, orders.on(&o.custkey))?;
    let order = joined.right.take(s, &orders)?.take(s, &o.orderkey)?;
    let count = group_by(s, joined.left.on(&c.custkey))?.count_valid(s, &order)?;
    let g = group_by(s, &count)?;
    let (count, customers) = (g.rows().take(s, &count)?, g.count(s)?);
    lines(s, &sort_by(s, (desc(&customers), desc(&count)))?, &[&count, &customers])
}

fn q14(s: &Stream, db: &Db) -> Result<Vec<String>, Error> {
    let (l, p) = (&db.lineitem, &db.part);
    let items = days(s, &l.shipdate, const { day(1995, 9, 1) }, const { day(1995, 10, 1) })?;
    let parts = join::inner(s, items.on(&l.partkey), &p.partkey)?.right;
    let promoted = parts.take(s, &p.kind.test(s, |kind| kind.starts_with("PROMO"))?)?;
    let paid = revenue(s, db, &items)?;
    let part = map2(&paid, &promoted, map!(|paid: i64, is: u8| -> i64 { if is == 1 { paid } else { 0 } }));
    let (part, all) = (reduce::sum(s, part)?.get(s)?, reduce::sum(s, &paid)?.get(s)?);
    Ok(vec![format!("{:.4}", 100.0 * part as f64 / all as f64)])
}

fn q15(s: &Stream, db: &Db) -> Result<Vec<String>, Error> {
    let l = &db.lineitem;
    let items = days(s, &l.shipdate, const { day(1996, 1, 1) }, const { day(1996, 4, 1) })?;
    let g = group_by(s, items.on(&l.suppkey))?;
    let sums = g.sum(s, &revenue(s, db, &items)?)?;
    let most = Groups::all(s, g.len())?.max(s, &sums)?;
    let best = join::semi(s, &sums, &most)?;
    let key = g.rows().take(s, &items)?.take(s, &l.suppkey)?;
    let supplier = join::inner(s, best.on(&key), &db.supplier.suppkey)?.right.take(s, &db.supplier.name)?;
    let (key, sums) = best.take(s, (&key, &sums))?;
    lines(s, &Rows::all(s, best.len())?, &[&key, &supplier, &sums])
}

fn q16(s: &Stream, db: &Db) -> Result<Vec<String>, Error> {
    let (p, ps) = (&db.part, &db.partsupp);
    let sizes = Column::upload(s, &[49, 14, 23, 45, 19, 3, 36, 9])?;
    let sized = join::semi(s, &p.size, &sizes)?;
    let brand = p.brand.test(s, |brand| brand != "Brand#45")?;
    let kind = p.kind.test(s, |kind| !kind.starts_with("MEDIUM POLISHED"))?;
    let both = map2(sized.of(&brand), sized.of(&kind), map!(|a: u8, b: u8| -> u8 { a & b }));
    let parts = sized.filter(s, both, predicate!(|is: u8| is == 1))?;
    let joined = join::inner(s, &ps.partkey, parts.on(&p.partkey))?;
    let bad = keep(s, &db.supplier.comment.like(s, "%Customer%Complaints%")?)?;
    let good = join::anti(s, joined.left.on(&ps.suppkey), bad.on(&db.supplier.suppkey))?;
    let (supplied, parts) = good.take(s, (&joined.left, &joined.right.take(s, &parts)?))?;
    let (brand, kind, size) = parts.take(s, (&p.brand, &p.kind, &p.size))?;
    let g = group_by(s, (&brand, &kind, &size))?;
    let suppliers = g.count_distinct(s, &supplied.take(s, &ps.suppkey)?)?;
    let (brand, kind, size) = g.rows().take(s, (&brand, &kind, &size))?;
    let order = sort_by(s, (desc(&suppliers), asc(&brand), asc(&kind), asc(&size)))?;
    lines(s, &order, &[&brand, &kind, &size, &suppliers])
}

fn q17(s: &Stream, db: &Db) -> Result<Vec<String>, Error> {
    let (l, p) = (&db.lineitem, &db.part);
    let (brand, container) = (p.brand.test(s, |x| x == "Brand#23")?, p.container.test(s, |x| x == "MED BOX")?);
    let both = map2(&brand, &container, map!(|a: u8, b: u8| -> u8 { a & b }));
    let parts = filter(s, both, predicate!(|is: u8| is == 1))?;
    let items = join::semi(s, &l.partkey, parts.on(&p.partkey))?;
    let (quantity, price) = items.take(s, (&l.quantity, &l.price))?;
    let g = group_by(s, items.on(&l.partkey))?;
    let mean = g.spread(s, &g.mean(s, &quantity)?)?;
    let small = map2(&quantity, &mean, map!(|n: i32, mean: f64| -> u8 { if (n as f64) < 0.2 * mean { 1 } else { 0 } }));
    let small = filter(s, small, predicate!(|is: u8| is == 1))?;
    let sum = Groups::all(s, small.len())?.sum(s, &small.take(s, &price)?)?.to_options(s)?[0];
    Ok(vec![sum.map_or("null".into(), |sum| format!("{:.2}", sum as f64 / 700.0))])
}

fn q18(s: &Stream, db: &Db) -> Result<Vec<String>, Error> {
    let (l, o) = (&db.lineitem, &db.orders);
    let g = group_by(s, &l.orderkey)?;
    let sums = g.sum(s, &l.quantity)?;
    let large = filter(s, &sums, predicate!(|sum: i64| sum > 300))?;
    let (key, sums) = (large.take(s, g.rows())?.take(s, &l.orderkey)?, large.take(s, &sums)?);
    let orders = join::inner(s, &key, &o.orderkey)?.right;
    let (customer, date, total) = orders.take(s, (&o.custkey, &o.date, &o.total))?;
    lines(s, &top_k(s, 100, (desc(&total), asc(&date)))?, &[&customer, &key, &date, &total, &sums])
}

fn q19(s: &Stream, db: &Db) -> Result<Vec<String>, Error> {
    let (l, p) = (&db.lineitem, &db.part);
    let by_hand = words(s, &l.instruct, |instruct| instruct == "DELIVER IN PERSON")?;
    let by_air = l.mode.test(s, |mode| mode.starts_with("AIR"))?;
    let items = by_hand.filter(s, by_hand.of(&by_air), predicate!(|is: u8| is == 1))?;
    let joined = join::inner(s, items.on(&l.partkey), &p.partkey)?;
    let items = joined.left.take(s, &items)?;
    // Three kinds of parts: with the number of a kind, the most that it may be grows.
    let brands = ["Brand#12", "Brand#23", "Brand#34"];
    let brand = p.brand.map(s, |x| brands.iter().position(|y| x == *y).map_or(0, |i| i + 1) as u8)?;
    let container = p.container.map(s, |x| match x.split_once(' ') {
        Some(("SM", "CASE" | "BOX" | "PACK" | "PKG")) => 1u8,
        Some(("MED", "BAG" | "BOX" | "PKG" | "PACK")) => 2,
        Some(("LG", "CASE" | "BOX" | "PACK" | "PKG")) => 3,
        _ => 0,
    })?;
    let (brand, container, size) = joined.right.take(s, (&brand, &container, &p.size))?;
    let quantity = items.take(s, &l.quantity)?;
    let wanted = map!(|brand: u8, container: u8, size: i32, n: i32| -> u8 {
        let kind = brand as i32;
        let least = if kind == 1 { 1 } else { kind * 10 - 10 };
        let is = size >= 1 && size <= kind * 5 && n >= least && n <= least + 10;
        if kind > 0 && brand == container && is { 1 } else { 0 }
    });
    let rows = items.filter(s, map4(&brand, &container, &size, &quantity, wanted), predicate!(|is: u8| is == 1))?;
    Ok(vec![reduce::sum(s, &revenue(s, db, &rows)?)?.get(s)?.to_string()])
}

fn q20(s: &Stream, db: &Db) -> Result<Vec<String>, Error> {
    let (l, p, ps) = (&db.lineitem, &db.part, &db.partsupp);
    let parts = keep(s, &p.name.like(s, "forest%")?)?;
    let supplied = join::semi(s, &ps.partkey, parts.on(&p.partkey))?;
    let items = days(s, &l.shipdate, const { day(1994, 1, 1) }, const { day(1995, 1, 1) })?;
    let g = group_by(s, items.on((&l.partkey, &l.suppkey)))?;
    let sold = g.sum(s, &items.take(s, &l.quantity)?)?;
    let keys = g.rows().take(s, &items)?;
    let joined = join::inner(s, supplied.on((&ps.partkey, &ps.suppkey)), keys.on((&l.partkey, &l.suppkey)))?;
    let (supplied, sold) = (joined.left.take(s, &supplied)?, joined.right.take(s, &sold)?);
    let enough = map2(
        supplied.of(&ps.available),
        &sold,
        map!(|n: i32, sold: i64| -> u8 { if n as i64 * 2 > sold { 1 } else { 0 } }),
    );
    let supplied = supplied.filter(s, enough, predicate!(|is: u8| is == 1))?;
    let nation = words(s, &db.nation.name, |name| name == "CANADA")?;
    let suppliers = join::semi(s, &db.supplier.nationkey, nation.on(&db.nation.nationkey))?;
    let suppliers = join::semi(s, suppliers.on(&db.supplier.suppkey), supplied.on(&ps.suppkey))?.take(s, &suppliers)?;
    let name = suppliers.take(s, &db.supplier.name)?;
    lines(s, &distinct(s, &name)?, &[&name])
}

fn q21(s: &Stream, db: &Db) -> Result<Vec<String>, Error> {
    let (o, l, n, su) = (&db.orders, &db.lineitem, &db.nation, &db.supplier);
    let late = map2(&l.commitdate, &l.receiptdate, map!(|a: i32, b: i32| -> u8 { if a < b { 1 } else { 0 } }));
    let late = transform::collect(s, late)?;
    // The orders of several suppliers, of which one is late.
    let blamed = Column::with_valid(transform::collect(s, &l.suppkey)?, late.try_clone(s)?)?;
    let g = group_by(s, &l.orderkey)?;
    let (first, last) = (g.min(s, &l.suppkey)?, g.max(s, &l.suppkey)?);
    let (first_late, last_late) = (g.min(s, &blamed)?, g.max(s, &blamed)?);
    let one_of_several = map!(|first: i32, last: i32, first_late: i32, last_late: i32| -> u8 {
        if first != last && first_late == last_late { 1 } else { 0 }
    });
    let waits = Column::compute(s, map4(&first, &last, &first_late, &last_late, one_of_several))?;
    let waits = g.spread(s, &waits)?;
    let both = map2(&late, &waits, map!(|late: u8, waits: u8| -> u8 { late & waits }));
    let rows = filter(s, both, predicate!(|is: u8| is == 1))?;
    let orders = words(s, &o.status, |status| status == "F")?;
    let rows = join::semi(s, rows.on(&l.orderkey), orders.on(&o.orderkey))?.take(s, &rows)?;
    let nation = words(s, &n.name, |name| name == "SAUDI ARABIA")?;
    let suppliers = join::semi(s, &su.nationkey, nation.on(&n.nationkey))?;
    let suppliers = join::inner(s, rows.on(&l.suppkey), suppliers.on(&su.suppkey))?.right.take(s, &suppliers)?;
    let g = group_by(s, suppliers.on(&su.name))?;
    let (name, count) = (g.rows().take(s, &suppliers)?.take(s, &su.name)?, g.count(s)?);
    lines(s, &top_k(s, 100, (desc(&count), asc(&name)))?, &[&name, &count])
}

fn q22(s: &Stream, db: &Db) -> Result<Vec<String>, Error> {
    let c = &db.customer;
    let (first, second) = (c.phone.byte(s, 0)?, c.phone.byte(s, 1)?);
    let code = map2(&first, &second, map!(|a: u8, b: u8| -> i32 { (a as i32 - 48) * 10 + b as i32 - 48 }));
    let code = Column::compute(s, code)?;
    let rows = filter(
        s,
        &code,
        predicate!(|x: i32| x == 13 || x == 31 || x == 23 || x == 29 || x == 30 || x == 18 || x == 17),
    )?;
    let positive = rows.filter(s, rows.of(&c.balance), predicate!(|balance: i64| balance > 0))?;
    let mean = Groups::all(s, positive.len())?.mean(s, &positive.take(s, &c.balance)?)?.to_vec(s)?[0];
    let rich =
        rows.filter(s, rows.of(&c.balance), predicate!(mean: f64 = mean; |balance: i64| balance as f64 > mean))?;
    let idle = join::anti(s, rich.on(&c.custkey), &db.orders.custkey)?.take(s, &rich)?;
    let (code, balance) = idle.take(s, (&code, &c.balance))?;
    let g = group_by(s, &code)?;
    let code = g.rows().take(s, &code)?;
    lines(s, &Rows::all(s, g.len())?, &[&code, &g.count(s)?, &g.sum(s, &balance)?])
}
