//! Every single allocation of a call fails in turn: the call is an error, nothing is left behind, and the next one works.

use gpu_primitives::{CpuOptions, Device, Error, Stream};
use gpu_relational::{Column, Decimals, agg, group_by, join, narrow};

/// Makes each allocation of a call fail.
fn check(stream: &Stream, what: &str, call: &dyn Fn() -> Result<(), Error>) {
    // What a stream keeps for later calls is there from now on.
    call().unwrap();
    stream.synchronize().unwrap();
    let before = stream.device().memory_used();
    for successes in 0.. {
        stream.fail_allocation_after(Some(successes));
        let result = call();
        stream.fail_allocation_after(None);
        stream.synchronize().unwrap();
        assert_eq!(stream.device().memory_used(), before, "{what}, {successes}");
        match result {
            Err(Error::OutOfMemory { .. }) => {}
            Err(error) => panic!("{what}, {successes}: {error}"),
            Ok(()) if successes > 0 => break,
            Ok(()) => panic!("{what} allocates nothing"),
        }
    }
}

#[test]
fn every_allocation_may_fail() {
    let options = CpuOptions { only_with_ptx: true, ..CpuOptions::default() };
    let stream = &Device::cpu_with(options).stream().unwrap();
    let left = Column::upload_optional(stream, &[Some(7u64), None, Some(9), Some(7)]).unwrap();
    let right: Vec<u64> = (0..40).map(|i| i % 9).collect();
    let right = Column::upload(stream, &right).unwrap();
    for method in [join::Method::Auto, join::Method::Hash, join::Method::Sort] {
        let name = |call: &str| format!("{call}: {method:?}");
        check(stream, &name("inner"), &|| method.inner(stream, &left, &right).map(drop));
        check(stream, &name("inner, swapped"), &|| method.inner(stream, &right, &left).map(drop));
        check(stream, &name("narrow"), &|| method.inner(stream, narrow(&left), &right).map(drop));
        check(stream, &name("left"), &|| method.left(stream, &left, &right).map(drop));
        check(stream, &name("full"), &|| method.full(stream, &left, &right).map(drop));
        check(stream, &name("semi"), &|| method.semi(stream, &left, &right).map(drop));
        check(stream, &name("anti"), &|| method.anti(stream, &right, &left).map(drop));
    }
    let aggregates = || {
        let two = (agg::sum(&left), agg::mean(&left), agg::min(&left), agg::variance(&left, true));
        (two, agg::count(), agg::count_valid(&left), agg::count_distinct(&left), agg::first(&left), agg::last(&left))
    };
    check(stream, "many groups", &|| group_by(stream, &left)?.agg(stream, aggregates()).map(drop));
    check(stream, "few groups", &|| group_by(stream, narrow(&left))?.agg(stream, aggregates()).map(drop));
    let a = Decimals::<i64>::upload_optional(stream, [Some("1.50"), None], 2).unwrap();
    let b = Decimals::<i64>::upload(stream, ["7", "0"], 0).unwrap();
    check(stream, "quotients", &|| a.div(stream, &b, 5).map(drop));
}
