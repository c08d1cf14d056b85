//! Spans of `tracing`.

use gpu_primitives::{Device, reduce, sort};
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Writes down what happens to spans.
#[derive(Clone, Default)]
struct Log {
    lines: Arc<Mutex<Vec<String>>>,
    next: Arc<AtomicU64>,
}

impl Log {
    fn write(&self, line: String) {
        self.lines.lock().unwrap().push(line);
    }
}

/// Writes fields as `name=value`.
struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0 += &format!(" {}={value:?}", field.name());
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "gpu_primitives"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields(span.metadata().name().to_owned());
        span.record(&mut fields);
        self.write(fields.0);
        Id::from_u64(self.next.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {
        self.write("enter".to_owned());
    }
    fn exit(&self, _: &Id) {
        self.write("exit".to_owned());
    }
}

#[test]
fn calls_have_spans_with_device_and_elements() {
    let log = Log::default();
    let stream = Device::cpu().stream().unwrap();
    let mut numbers = stream.upload(&[3u32, 1, 2]).unwrap();
    tracing::subscriber::with_default(log.clone(), || {
        sort::keys_in_place(&stream, &mut numbers, sort::Options::new()).unwrap();
        assert_eq!(reduce::sum(&stream, &numbers).unwrap().get(&stream).unwrap(), 6);
    });
    let expected = [
        "sort::keys_in_place device=cpu elements=3",
        "enter",
        "exit",
        "reduce::sum device=cpu elements=3",
        "enter",
        "reduce::reduce device=cpu elements=3",
        "enter",
        "exit",
        "exit",
    ];
    assert_eq!(*log.lines.lock().unwrap(), expected);
}

#[test]
fn a_failed_call_ends_its_span() {
    let log = Log::default();
    let stream = Device::cpu().stream().unwrap();
    let input = stream.upload(&[3u32, 1, 2]).unwrap();
    let mut output = stream.zeroed::<u32>(2).unwrap();
    tracing::subscriber::with_default(log.clone(), || {
        assert!(sort::keys(&stream, &input, &mut output, sort::Options::new()).is_err());
    });
    assert_eq!(*log.lines.lock().unwrap(), ["sort::keys device=cpu elements=3", "enter", "exit"]);
}
