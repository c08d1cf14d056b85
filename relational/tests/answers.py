"""Writes the answers of DuckDB to the queries of the example `tpch`, in its form, and the times as errors.

    cargo run --release -p gpu-relational --example tpch -- 0.01 --tables FOLDER
    pip install duckdb
    python3 relational/tests/answers.py FOLDER > relational/tests/tpch-0.01.txt
"""
import statistics, sys, time, duckdb

TABLES = {
    "lineitem": "l_orderkey int, l_partkey int, l_suppkey int, l_linenumber int, l_quantity int, l_extendedprice decimal(15,2), l_discount decimal(15,2), l_tax decimal(15,2), l_returnflag varchar, l_linestatus varchar, l_shipdate date, l_commitdate date, l_receiptdate date, l_shipinstruct varchar, l_shipmode varchar, l_comment varchar",
    "orders": "o_orderkey int, o_custkey int, o_orderstatus varchar, o_totalprice decimal(15,2), o_orderdate date, o_orderpriority varchar, o_clerk varchar, o_shippriority int, o_comment varchar",
    "customer": "c_custkey int, c_name varchar, c_address varchar, c_nationkey int, c_phone varchar, c_acctbal decimal(15,2), c_mktsegment varchar, c_comment varchar",
    "part": "p_partkey int, p_name varchar, p_mfgr varchar, p_brand varchar, p_type varchar, p_size int, p_container varchar, p_retailprice decimal(15,2), p_comment varchar",
    "partsupp": "ps_partkey int, ps_suppkey int, ps_availqty int, ps_supplycost decimal(15,2), ps_comment varchar",
    "supplier": "s_suppkey int, s_name varchar, s_address varchar, s_nationkey int, s_phone varchar, s_acctbal decimal(15,2), s_comment varchar",
    "nation": "n_nationkey int, n_name varchar, n_regionkey int, n_comment varchar",
    "region": "r_regionkey int, r_name varchar, r_comment varchar",
}
# Amounts as integers, dates as days.
SQL = {
    1: """select l_returnflag, l_linestatus, sum(l_quantity)::bigint, (sum(l_extendedprice) * 100)::bigint,
          (sum(l_extendedprice * (1 - l_discount)) * 10000)::hugeint, (sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) * 1000000)::hugeint,
          format('{:.2f}', avg(l_quantity)), format('{:.2f}', avg((l_extendedprice * 100)::bigint)), format('{:.2f}', avg((l_discount * 100)::bigint)), count(*)
          from lineitem where l_shipdate <= date '1998-09-02' group by 1, 2 order by 1, 2""",
    2: """select (s_acctbal * 100)::bigint, s_name, n_name, p_partkey, p_mfgr from part, supplier, partsupp, nation, region
          where p_partkey = ps_partkey and s_suppkey = ps_suppkey and p_size = 15 and p_type like '%BRASS' and s_nationkey = n_nationkey
          and n_regionkey = r_regionkey and r_name = 'EUROPE' and ps_supplycost = (select min(ps_supplycost) from partsupp, supplier, nation, region
          where p_partkey = ps_partkey and s_suppkey = ps_suppkey and s_nationkey = n_nationkey and n_regionkey = r_regionkey and r_name = 'EUROPE')
          order by s_acctbal desc, n_name, s_name, p_partkey limit 100""",
    3: """select l_orderkey, (sum(l_extendedprice * (1 - l_discount)) * 10000)::hugeint as revenue, o_orderdate - date '1970-01-01'
          from customer, orders, lineitem where c_mktsegment = 'BUILDING' and c_custkey = o_custkey and l_orderkey = o_orderkey
          and o_orderdate < date '1995-03-15' and l_shipdate > date '1995-03-15' group by l_orderkey, o_orderdate order by 2 desc, o_orderdate, 1 limit 10""",
    4: """select o_orderpriority, count(*) from orders where o_orderdate >= date '1993-07-01' and o_orderdate < date '1993-10-01'
          and exists (select * from lineitem where l_orderkey = o_orderkey and l_commitdate < l_receiptdate) group by 1 order by 1""",
    5: """select n_name, (sum(l_extendedprice * (1 - l_discount)) * 10000)::hugeint as revenue from customer, orders, lineitem, supplier, nation, region
          where c_custkey = o_custkey and l_orderkey = o_orderkey and l_suppkey = s_suppkey and c_nationkey = s_nationkey and s_nationkey = n_nationkey
          and n_regionkey = r_regionkey and r_name = 'ASIA' and o_orderdate >= date '1994-01-01' and o_orderdate < date '1995-01-01' group by 1 order by 2 desc""",
    6: """select (sum(l_extendedprice * l_discount) * 10000)::hugeint from lineitem where l_shipdate >= date '1994-01-01' and l_shipdate < date '1995-01-01'
          and l_discount between 0.05 and 0.07 and l_quantity < 24""",
    7: """select n1.n_name, n2.n_name, year(l_shipdate), (sum(l_extendedprice * (1 - l_discount)) * 10000)::hugeint
          from supplier, lineitem, orders, customer, nation n1, nation n2 where s_suppkey = l_suppkey and o_orderkey = l_orderkey and c_custkey = o_custkey
          and s_nationkey = n1.n_nationkey and c_nationkey = n2.n_nationkey and ((n1.n_name = 'FRANCE' and n2.n_name = 'GERMANY') or
          (n1.n_name = 'GERMANY' and n2.n_name = 'FRANCE')) and l_shipdate between date '1995-01-01' and date '1996-12-31' group by 1, 2, 3 order by 1, 2, 3""",
    8: """select o_year, (sum(case when nation = 'BRAZIL' then volume else 0 end) * 10000)::hugeint, (sum(volume) * 10000)::hugeint,
          format('{:.2f}', 100.0 * (sum(case when nation = 'BRAZIL' then volume else 0 end))::double / sum(volume)::double) from
          (select year(o_orderdate) as o_year, l_extendedprice * (1 - l_discount) as volume, n2.n_name as nation
          from part, supplier, lineitem, orders, customer, nation n1, nation n2, region where p_partkey = l_partkey and s_suppkey = l_suppkey
          and l_orderkey = o_orderkey and o_custkey = c_custkey and c_nationkey = n1.n_nationkey and n1.n_regionkey = r_regionkey and r_name = 'AMERICA'
          and s_nationkey = n2.n_nationkey and o_orderdate between date '1995-01-01' and date '1996-12-31' and p_type = 'ECONOMY ANODIZED STEEL')
          group by 1 order by 1""",
    9: """select n_name, year(o_orderdate), (sum(l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity) * 10000)::hugeint
          from part, supplier, lineitem, partsupp, orders, nation where s_suppkey = l_suppkey and ps_suppkey = l_suppkey and ps_partkey = l_partkey
          and p_partkey = l_partkey and o_orderkey = l_orderkey and s_nationkey = n_nationkey and p_name like '%green%' group by 1, 2 order by 1, 2 desc""",
    10: """select c_custkey, (sum(l_extendedprice * (1 - l_discount)) * 10000)::hugeint as revenue, (c_acctbal * 100)::bigint, n_name
          from customer, orders, lineitem, nation where c_custkey = o_custkey and l_orderkey = o_orderkey and o_orderdate >= date '1993-10-01'
          and o_orderdate < date '1994-01-01' and l_returnflag = 'R' and c_nationkey = n_nationkey group by c_custkey, c_acctbal, n_name order by 2 desc, 1 limit 20""",
    11: """select ps_partkey, (sum(ps_supplycost * ps_availqty) * 100)::bigint as value from partsupp, supplier, nation
          where ps_suppkey = s_suppkey and s_nationkey = n_nationkey and n_name = 'GERMANY' group by ps_partkey having sum(ps_supplycost * ps_availqty) >
          (select sum(ps_supplycost * ps_availqty) * 0.0001 / ((select count(*) from supplier) / 10000.0) from partsupp, supplier, nation
          where ps_suppkey = s_suppkey and s_nationkey = n_nationkey and n_name = 'GERMANY') order by 2 desc, 1""",
    12: """select l_shipmode, count(*) filter (o_orderpriority in ('1-URGENT', '2-HIGH')), count(*) filter (o_orderpriority not in ('1-URGENT', '2-HIGH'))
          from orders, lineitem where o_orderkey = l_orderkey and l_shipmode in ('MAIL', 'SHIP') and l_commitdate < l_receiptdate
          and l_shipdate < l_commitdate and l_receiptdate >= date '1994-01-01' and l_receiptdate < date '1995-01-01' group by 1 order by 1""",
    13: """select c_count, count(*) from (select c_custkey, count(o_orderkey) as c_count from customer left join orders on c_custkey = o_custkey
          and o_comment not like '%special%requests%' group by 1) group by 1 order by 2 desc, 1 desc""",
    14: """select format('{:.4f}', (100.0 * sum(case when p_type like 'PROMO%' then l_extendedprice * (1 - l_discount) else 0 end))::double / sum(l_extendedprice * (1 - l_discount))::double)
          from lineitem, part where l_partkey = p_partkey and l_shipdate >= date '1995-09-01' and l_shipdate < date '1995-10-01'""",
    15: """with revenue as (select l_suppkey, sum(l_extendedprice * (1 - l_discount)) as total from lineitem where l_shipdate >= date '1996-01-01'
          and l_shipdate < date '1996-04-01' group by 1) select s_suppkey, s_name, (total * 10000)::hugeint from supplier, revenue
          where s_suppkey = l_suppkey and total = (select max(total) from revenue) order by 1""",
    16: """select p_brand, p_type, p_size, count(distinct ps_suppkey) from partsupp, part where p_partkey = ps_partkey and p_brand <> 'Brand#45'
          and p_type not like 'MEDIUM POLISHED%' and p_size in (49, 14, 23, 45, 19, 3, 36, 9) and ps_suppkey not in
          (select s_suppkey from supplier where s_comment like '%Customer%Complaints%') group by 1, 2, 3 order by 4 desc, 1, 2, 3""",
    17: """select format('{:.2f}', (sum(l_extendedprice) * 100)::double / 700.0) from lineitem, part where p_partkey = l_partkey and p_brand = 'Brand#23'
          and p_container = 'MED BOX' and l_quantity < (select 0.2 * avg(l_quantity) from lineitem where l_partkey = p_partkey)""",
    18: """select o_custkey, o_orderkey, o_orderdate - date '1970-01-01', (o_totalprice * 100)::bigint, sum(l_quantity)::bigint from orders, lineitem
          where o_orderkey in (select l_orderkey from lineitem group by 1 having sum(l_quantity) > 300) and o_orderkey = l_orderkey
          group by o_custkey, o_orderkey, o_orderdate, o_totalprice order by o_totalprice desc, o_orderdate limit 100""",
    19: """select (sum(l_extendedprice * (1 - l_discount)) * 10000)::hugeint from lineitem, part where p_partkey = l_partkey and l_shipmode in ('AIR', 'AIR REG', 'REG AIR')
          and starts_with(l_shipmode, 'AIR') and l_shipinstruct = 'DELIVER IN PERSON' and ((p_brand = 'Brand#12' and p_container in ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG')
          and l_quantity between 1 and 11 and p_size between 1 and 5) or (p_brand = 'Brand#23' and p_container in ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK')
          and l_quantity between 10 and 20 and p_size between 1 and 10) or (p_brand = 'Brand#34' and p_container in ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG')
          and l_quantity between 20 and 30 and p_size between 1 and 15))""",
    20: """select s_name from supplier, nation where s_suppkey in (select ps_suppkey from partsupp where ps_partkey in
          (select p_partkey from part where p_name like 'forest%') and ps_availqty > (select 0.5 * sum(l_quantity) from lineitem where l_partkey = ps_partkey
          and l_suppkey = ps_suppkey and l_shipdate >= date '1994-01-01' and l_shipdate < date '1995-01-01')) and s_nationkey = n_nationkey
          and n_name = 'CANADA' order by 1""",
    21: """select s_name, count(*) as numwait from supplier, lineitem l1, orders, nation where s_suppkey = l1.l_suppkey and o_orderkey = l1.l_orderkey
          and o_orderstatus = 'F' and l1.l_receiptdate > l1.l_commitdate and exists (select * from lineitem l2 where l2.l_orderkey = l1.l_orderkey
          and l2.l_suppkey <> l1.l_suppkey) and not exists (select * from lineitem l3 where l3.l_orderkey = l1.l_orderkey and l3.l_suppkey <> l1.l_suppkey
          and l3.l_receiptdate > l3.l_commitdate) and s_nationkey = n_nationkey and n_name = 'SAUDI ARABIA' group by 1 order by 2 desc, 1 limit 100""",
    22: """with custsale as (select substring(c_phone, 1, 2) as code, c_acctbal, c_custkey from customer where substring(c_phone, 1, 2) in
          ('13', '31', '23', '29', '30', '18', '17')) select code, count(*), (sum(c_acctbal) * 100)::bigint from custsale
          where c_acctbal > (select avg(c_acctbal) from custsale where c_acctbal > 0) and c_custkey not in (select o_custkey from orders)
          group by 1 order by 1""",
}

db = duckdb.connect()
for name, columns in TABLES.items():
    # A line ends with a separator: one column more, which is dropped.
    spec = {column.split()[0]: column.split()[1] for column in columns.replace(", ", ";").split(";")}
    spec["rest"] = "varchar"
    db.execute(f"create table {name} as select * exclude rest from read_csv('{sys.argv[1]}/{name}-*.tbl', delim='|', header=false, columns={spec}, quote='')")
for number, sql in SQL.items():
    times = []
    for _ in range(3):
        start = time.perf_counter()
        rows = db.execute(sql).fetchall()
        times.append(time.perf_counter() - start)
    print(f"Q{number:<2} {statistics.median(times) * 1e3:9.3f} ms", file=sys.stderr)
    print(f"Q{number}")
    print("\n".join("|".join("null" if value is None else str(value) for value in row) for row in rows))
    print()
