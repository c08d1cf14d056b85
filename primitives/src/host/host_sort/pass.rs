//! One pass over the data: parts are copied to the device, sorted there, and copied back, at the same time.

use crate::host::error::{Error, expect_len};
use crate::host::runtime::column::AnyVec;
use crate::host::runtime::{Device, Stream};
use crate::sort;
use crate::sort::host::lowered::{self, Coding};
use bytemuck::Pod;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::mpsc::sync_channel;
use std::thread;

/// Keys and values in host memory, of types that are known by their sizes alone. Keys without values have values of no size.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    pub keys: &'a [u8],
    pub values: &'a [u8],
    pub key_size: usize,
    pub value_size: usize,
}

/// [`Rows`] that are written.
pub struct RowsMut<'a> {
    pub keys: &'a mut [u8],
    pub values: &'a mut [u8],
    pub key_size: usize,
    pub value_size: usize,
}

impl<'a> Rows<'a> {
    pub fn keys<K: Pod>(keys: &'a [K]) -> Self {
        Self { keys: bytemuck::cast_slice(keys), values: &[], key_size: size_of::<K>(), value_size: 0 }
    }

    pub fn pairs<K: Pod, V: Pod>((keys, values): (&'a [K], &'a [V])) -> Result<Self, Error> {
        expect_len("the values of a sort", keys.len(), values.len())?;
        Ok(Self { values: bytemuck::cast_slice(values), value_size: size_of::<V>(), ..Self::keys(keys) })
    }

    pub fn len(&self) -> usize {
        self.keys.len() / self.key_size
    }
}

impl<'a> RowsMut<'a> {
    pub fn keys<K: Pod>(keys: &'a mut [K]) -> Self {
        Self { keys: bytemuck::cast_slice_mut(keys), values: &mut [], key_size: size_of::<K>(), value_size: 0 }
    }

    pub fn pairs<K: Pod, V: Pod>((keys, values): (&'a mut [K], &'a mut [V])) -> Result<Self, Error> {
        expect_len("the values of a sort", keys.len(), values.len())?;
        Ok(Self { values: bytemuck::cast_slice_mut(values), value_size: size_of::<V>(), ..Self::keys(keys) })
    }

    pub fn reborrow(&mut self) -> RowsMut<'_> {
        let Self { keys, values, key_size, value_size } = self;
        RowsMut { keys, values, key_size: *key_size, value_size: *value_size }
    }

    pub fn as_rows(&self) -> Rows<'_> {
        let Self { keys, values, key_size, value_size } = self;
        Rows { keys, values, key_size: *key_size, value_size: *value_size }
    }
}

/// How parts are sorted, and where.
pub struct Job<'a> {
    pub device: &'a Device,
    pub coding: Coding,
    pub order: &'a sort::Options,
}

/// A part on the device.
struct Part {
    keys: AnyVec,
    values: AnyVec,
}

impl Part {
    fn uninit(stream: &Stream, rows: &Rows<'_>, len: usize) -> Result<Self, Error> {
        let values = if rows.value_size == 0 { 0 } else { len };
        Ok(Self {
            keys: AnyVec::uninit(stream, rows.key_size, len)?,
            values: AnyVec::uninit(stream, rows.value_size, values)?,
        })
    }

    /// Copies these elements to the device, one range after the other. Waits.
    fn load(stream: &Stream, from: &Rows<'_>, ranges: &[Range<usize>]) -> Result<Self, Error> {
        let mut part = Self::uninit(stream, from, ranges.iter().map(Range::len).sum())?;
        let mut at = 0;
        for range in ranges {
            let end = at + range.len();
            for (to, host, size) in
                [(&mut part.keys, from.keys, from.key_size), (&mut part.values, from.values, from.value_size)]
            {
                if size > 0 {
                    let host = &host[range.start * size..range.end * size];
                    to.as_mut_slice().slice_mut(at..end)?.bytes_mut().copy_from_host(stream, host)?;
                }
            }
            at = end;
        }
        Ok(part)
    }

    /// Sorts the part into new memory. Waits, so that no more than one part is being sorted.
    fn sort(self, stream: &Stream, rows: &Rows<'_>, job: &Job<'_>) -> Result<Self, Error> {
        let mut sorted = Self::uninit(stream, rows, self.keys.len())?;
        if rows.value_size == 0 {
            lowered::keys(stream, self.keys.as_slice().into(), sorted.keys.as_mut_slice(), &job.coding, job.order)?;
        } else {
            let from = (self.keys.as_slice().into(), self.values.as_slice().into());
            let to = (sorted.keys.as_mut_slice(), sorted.values.as_mut_slice());
            lowered::pairs(stream, from, to, &job.coding, job.order)?;
        }
        stream.synchronize()?;
        Ok(sorted)
    }

    /// Copies the part to the elements of the host from `start` on. Waits. Returns the number of elements.
    fn store(self, stream: &Stream, to: &mut RowsMut<'_>, start: usize) -> Result<usize, Error> {
        let len = self.keys.len();
        for (from, host, size) in
            [(self.keys, &mut *to.keys, to.key_size), (self.values, &mut *to.values, to.value_size)]
        {
            if size > 0 {
                let host = &mut host[start * size..(start + len) * size];
                from.as_slice().bytes().copy_to_host(stream, host)?;
            }
        }
        Ok(len)
    }
}

/// Copies parts to the device, sorts each of them, and copies them back, one after the other. Calls `moved` with the number of elements
/// of each part that has arrived.
///
/// Three threads do this, each with a stream of its own: while one part is sorted, the next one is copied to the device, and the
/// previous one from it. A part is handed over only when the next thread wants it, so there are never more on the device.
pub fn run(
    job: &Job<'_>,
    from: Rows<'_>,
    to: RowsMut<'_>,
    mut parts: impl Iterator<Item = Vec<Range<usize>>>,
    moved: &(dyn Fn(usize) + Sync),
) -> Result<(), Error> {
    let Some(first) = parts.next() else { return Ok(()) };
    let device = job.device;
    let streams = [device.stream()?, device.stream()?, device.stream()?];
    let [loading, sorting, storing] = &streams;
    // The ranges of the next part are known before its turn comes: finding them takes some time.
    let (ranges, asked) = sync_channel::<Vec<Range<usize>>>(1);
    let (loaded, arrived) = sync_channel::<Part>(0);
    let (sorted, done) = sync_channel::<Part>(0);
    thread::scope(|scope| {
        let load = scope.spawn(move || {
            for ranges in asked {
                let part = Part::load(loading, &from, &ranges)?;
                if loaded.send(part).is_err() {
                    break; // a later step has failed
                }
            }
            Ok(())
        });
        let store = scope.spawn(move || {
            let (mut to, mut at) = (to, 0);
            for part in done {
                let len = part.store(storing, &mut to, at)?;
                at += len;
                moved(len);
            }
            Ok(())
        });
        let sort = || {
            let mut next = Some(first);
            let mut ranges = Some(ranges);
            // If a receiver is gone, its thread has failed, and says why.
            let mut feed = || {
                match next.take() {
                    Some(part) => {
                        let is_sent = ranges.as_ref().is_some_and(|ranges| ranges.send(part).is_ok());
                        next = if is_sent { parts.next() } else { None };
                    }
                    None => ranges = None,
                };
            };
            feed();
            feed();
            while let Ok(part) = arrived.recv() {
                feed();
                if sorted.send(part.sort(sorting, &from, job)?).is_err() {
                    break;
                }
            }
            Ok(())
        };
        let outcome = sort();
        // The other threads end when nobody sends or receives any more.
        drop((arrived, sorted));
        let joined = [load.join(), store.join()].map(|outcome| outcome.unwrap_or_else(|panic| resume_unwind(panic)));
        let [load, store]: [Result<(), Error>; 2] = joined;
        load.and(store).and(outcome)
    })
}
