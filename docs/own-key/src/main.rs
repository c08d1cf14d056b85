//! Sorts, merges, splits and searches events, a type that gpu-primitives does not know, and compares every result with
//! what `std` gives.

mod event;

use event::{Event, InOrder, Stretch};
use gpu_primitives::{Device, Error, Stream, merge, multisplit, search, sort};
use std::process::ExitCode;

/// Events if the command line does not say how many.
const COUNT: usize = 200_000;
/// Buckets of the split.
const BUCKETS: u32 = 24;

/// One operation and whether its result is right.
type Outcome = (&'static str, bool);

fn main() -> ExitCode {
    let count = match std::env::args().nth(1).map(|word| word.parse()) {
        None => COUNT,
        Some(Ok(count)) => count,
        Some(Err(error)) => {
            eprintln!("the number of events: {error}");
            return ExitCode::FAILURE;
        }
    };
    match run(count) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs everything; whether all results are right.
fn run(count: usize) -> Result<bool, Error> {
    let device = Device::default()?;
    let stream = device.stream()?;
    let events = some_events(count);
    let mut all_right = true;
    for operation in [sorted, merged, split, searched] {
        let (name, is_right) = operation(&stream, &events)?;
        let verdict = if is_right { "as std" } else { "NOT as std" };
        println!("{name}: {count} events on {}, {verdict}", device.name());
        all_right &= is_right;
    }
    Ok(all_right)
}

/// Events in no order, some of them twice.
fn some_events(count: usize) -> Vec<Event> {
    let mut state = 1u64;
    let mut below = |limit: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % limit
    };
    let times = count as u64 / 8 + 1;
    // Times beyond 32 bits, so that all parts of the key count.
    (0..count).map(|_| Event { time: below(times) << 20, source: below(4) as u32, number: below(4) as u32 }).collect()
}

/// The events with the indices they had: equal ones keep their order.
fn sorted(stream: &Stream, events: &[Event]) -> Result<Outcome, Error> {
    let indices: Vec<u32> = (0..events.len() as u32).collect();
    let mut keys = stream.upload(events)?;
    let mut values = stream.upload(&indices)?;
    sort::pairs_in_place(stream, (&mut keys, &mut values), sort::Options::new())?;

    let mut expected = indices;
    expected.sort_by_key(|&index| Event::rank(events[index as usize]));
    let keys = keys.to_vec(stream)?;
    let is_right = keys.iter().eq(expected.iter().map(|&index| &events[index as usize]));
    Ok(("sort", is_right && values.to_vec(stream)? == expected))
}

/// Two sorted parts into one.
fn merged(stream: &Stream, events: &[Event]) -> Result<Outcome, Error> {
    let (a, b) = events.split_at(events.len() / 3);
    let (a, b) = (stream.upload(&in_order(a))?, stream.upload(&in_order(b))?);
    let mut out = stream.uninit::<Event>(events.len())?;
    merge::keys(stream, &a, &b, &mut out, InOrder)?;

    Ok(("merge", out.to_vec(stream)? == in_order(events)))
}

/// The events by stretches of time, the last of which is longer than the others.
fn split(stream: &Stream, events: &[Event]) -> Result<Outcome, Error> {
    let last = events.iter().map(|event| event.time).max().unwrap_or(0);
    let stretch = Stretch { start: last / 10, length: last / u64::from(BUCKETS) / 2 + 1 };
    let input = stream.upload(events)?;
    let mut output = stream.uninit::<Event>(events.len())?;
    let offsets = multisplit::keys(stream, &input, &mut output, BUCKETS, stretch)?;

    let bucket = |event: &Event| {
        let since = event.time.saturating_sub(stretch.start);
        (since / stretch.length).min(u64::from(BUCKETS) - 1)
    };
    let mut expected = events.to_vec();
    expected.sort_by_key(bucket);
    let ends = (0..=u64::from(BUCKETS)).map(|end| expected.partition_point(|event| bucket(event) < end) as u64);
    let is_right = offsets.to_vec(stream)?.into_iter().eq(ends);
    Ok(("multisplit", is_right && output.to_vec(stream)? == expected))
}

/// Where every other event belongs among the rest: many needles at once, and few.
fn searched(stream: &Stream, events: &[Event]) -> Result<Outcome, Error> {
    let sorted: Vec<Event> = in_order(events).into_iter().step_by(2).collect();
    let haystack = stream.upload(&sorted)?;
    let mut is_right = true;
    for needles in [events, &events[..events.len().min(100)]] {
        let mut places = stream.uninit::<u32>(needles.len())?;
        search::lower_bound(stream, &haystack, &stream.upload(needles)?, &mut places, InOrder)?;

        let place = |needle: &Event| sorted.partition_point(|event| Event::rank(*event) < Event::rank(*needle)) as u32;
        is_right &= places.to_vec(stream)?.into_iter().eq(needles.iter().map(place));
    }
    Ok(("search", is_right))
}

fn in_order(events: &[Event]) -> Vec<Event> {
    let mut events = events.to_vec();
    events.sort_by_key(|event| Event::rank(*event));
    events
}
