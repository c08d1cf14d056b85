//! The tables of TPC-H, on a device. Amounts are cents, discounts and taxes hundredths, dates days since 1970.

use gpu_primitives::{Error, Stream};
use gpu_relational::{Column, Strings, Text};
use tpchgen::generators as tpch;

/// Makes a struct of columns, and the function that generates it.
macro_rules! table {
    ($name:ident, |$scale:ident| $rows:expr, $row:ident { $($field:ident: $type:ident $(<$element:ty>)? = $value:expr,)+ }) => {
        #[allow(missing_docs, dead_code)]
        pub struct $name { $(pub $field: $type $(<$element>)?,)+ }

        impl $name {
            fn generate(stream: &Stream, $scale: f64) -> Result<Self, Error> {
                let rows: Vec<_> = $rows;
                Ok(Self { $($field: upload!(stream, rows, $row, $type $(<$element>)?, $value),)+ })
            }
        }
    };
}

macro_rules! upload {
    ($stream:ident, $rows:ident, $row:ident, Column<$element:ty>, $value:expr) => {
        Column::<$element>::upload($stream, &$rows.iter().map(|$row| $value as $element).collect::<Vec<_>>())?
    };
    ($stream:ident, $rows:ident, $row:ident, $type:ident, $value:expr) => {{
        let strings: Vec<String> = $rows.iter().map(|$row| $value.to_string()).collect();
        $type::upload($stream, strings.iter().map(String::as_str))?
    }};
}

table!(Lineitem, |scale| tpch::LineItemGenerator::new(scale, 1, 1).iter().collect(), row {
    orderkey: Column<i32> = row.l_orderkey,
    partkey: Column<i32> = row.l_partkey,
    suppkey: Column<i32> = row.l_suppkey,
    quantity: Column<i32> = row.l_quantity,
    price: Column<i64> = row.l_extendedprice.0,
    discount: Column<i64> = row.l_discount.0,
    tax: Column<i64> = row.l_tax.0,
    returnflag: Strings = row.l_returnflag,
    linestatus: Strings = row.l_linestatus,
    shipdate: Column<i32> = row.l_shipdate.to_unix_epoch(),
    commitdate: Column<i32> = row.l_commitdate.to_unix_epoch(),
    receiptdate: Column<i32> = row.l_receiptdate.to_unix_epoch(),
    instruct: Strings = row.l_shipinstruct,
    mode: Strings = row.l_shipmode,
});

table!(Orders, |scale| tpch::OrderGenerator::new(scale, 1, 1).iter().collect(), row {
    orderkey: Column<i32> = row.o_orderkey,
    custkey: Column<i32> = row.o_custkey,
    status: Strings = row.o_orderstatus,
    total: Column<i64> = row.o_totalprice.0,
    date: Column<i32> = row.o_orderdate.to_unix_epoch(),
    priority: Strings = row.o_orderpriority,
    comment: Text = row.o_comment,
});

table!(Customer, |scale| tpch::CustomerGenerator::new(scale, 1, 1).iter().collect(), row {
    custkey: Column<i32> = row.c_custkey,
    nationkey: Column<i32> = row.c_nationkey,
    phone: Text = row.c_phone,
    balance: Column<i64> = row.c_acctbal.0,
    segment: Strings = row.c_mktsegment,
});

table!(Part, |scale| tpch::PartGenerator::new(scale, 1, 1).iter().collect(), row {
    partkey: Column<i32> = row.p_partkey,
    name: Text = row.p_name,
    manufacturer: Strings = row.p_mfgr,
    brand: Strings = row.p_brand,
    kind: Strings = row.p_type,
    size: Column<i32> = row.p_size,
    container: Strings = row.p_container,
});

table!(Partsupp, |scale| tpch::PartSuppGenerator::new(scale, 1, 1).iter().collect(), row {
    partkey: Column<i32> = row.ps_partkey,
    suppkey: Column<i32> = row.ps_suppkey,
    available: Column<i32> = row.ps_availqty,
    cost: Column<i64> = row.ps_supplycost.0,
});

table!(Supplier, |scale| tpch::SupplierGenerator::new(scale, 1, 1).iter().collect(), row {
    suppkey: Column<i32> = row.s_suppkey,
    name: Strings = row.s_name,
    nationkey: Column<i32> = row.s_nationkey,
    balance: Column<i64> = row.s_acctbal.0,
    comment: Text = row.s_comment,
});

table!(Nation, |scale| tpch::NationGenerator::new(scale, 1, 1).iter().collect(), row {
    nationkey: Column<i32> = row.n_nationkey,
    name: Strings = row.n_name,
    regionkey: Column<i32> = row.n_regionkey,
});

table!(Region, |scale| tpch::RegionGenerator::new(scale, 1, 1).iter().collect(), row {
    regionkey: Column<i32> = row.r_regionkey,
    name: Strings = row.r_name,
});

/// All tables.
#[allow(missing_docs)]
pub struct Db {
    pub lineitem: Lineitem,
    pub orders: Orders,
    pub customer: Customer,
    pub part: Part,
    pub partsupp: Partsupp,
    pub supplier: Supplier,
    pub nation: Nation,
    pub region: Region,
}

impl Db {
    /// Generates all tables at a scale.
    ///
    /// # Errors
    /// Any error of the device.
    pub fn generate(stream: &Stream, scale: f64) -> Result<Self, Error> {
        Ok(Self {
            lineitem: Lineitem::generate(stream, scale)?,
            orders: Orders::generate(stream, scale)?,
            customer: Customer::generate(stream, scale)?,
            part: Part::generate(stream, scale)?,
            partsupp: Partsupp::generate(stream, scale)?,
            supplier: Supplier::generate(stream, scale)?,
            nation: Nation::generate(stream, scale)?,
            region: Region::generate(stream, scale)?,
        })
    }
}
