//! The queries of the example `tpch` on the CPU, against the answers of DuckDB: see `answers.py`.

#[path = "../examples/tpch/data.rs"]
mod data;
#[path = "../examples/tpch/queries.rs"]
mod queries;

use gpu_primitives::Device;

#[test]
fn answers_at_scale_0_01() {
    let stream = Device::cpu().stream().unwrap();
    let db = data::Db::generate(&stream, 0.01).unwrap();
    let answers = include_str!("tpch-0.01.txt");
    for (number, query) in queries::QUERIES {
        let expected = answers.split("\n\n").find_map(|answer| answer.strip_prefix(&format!("Q{number}\n")));
        let found = query(&stream, &db).unwrap_or_else(|error| panic!("Q{number}: {error}"));
        assert_eq!(found.join("\n"), expected.expect("there is an answer").trim_end(), "Q{number}");
    }
}
