//! Merges of runs in host memory, piece by piece.
//!
//! A merge finds the beginnings of its tiles by binary searches. Over the link each probe is a read of its own, and there are dozens per
//! tile and run: on an H200 such a merge moves 16 GB/s, of the link's 82. So the runs are cut at a few places into pieces, and while
//! one piece is merged, a second stream copies the next one's part of these runs to the device. The merge writes to host memory itself:
//! its writes are in order.
//!
//! Bytes over the link: each element of a run in host memory once up, each element of an output there once down, both at the same time.

use super::lowered::{Run, Way, codes, runs_splits};
use crate::host::runtime::column::{AnySlice, AnySliceMut, AnyVec};
use crate::host::runtime::host_blocks::Place;
use crate::{Error, Event, Stream};
use core::ops::Range;

/// Merges sorted runs of codes as [`codes`] does, some of which are in host memory. If there are more elements than fit a piece, it waits
/// for the stream once, to learn where to cut, and takes memory of the device for two pieces; if there is none, the merge reads over the
/// link.
///
/// # Errors
/// Those of [`codes`].
pub fn codes_in_pieces(
    stream: &Stream,
    runs: &[(Run<'_>, Place)],
    mut out: (AnySliceMut<'_>, AnySliceMut<'_>),
    piece: usize,
) -> Result<(), Error> {
    let whole: Vec<Run<'_>> = runs.iter().map(|(run, _)| *run).collect();
    let total = whole.iter().map(|run| run.0.len()).sum::<usize>();
    let is_far = |place: Place| place == Place::Host;
    if total <= piece || !runs.iter().any(|(_, place)| is_far(*place)) {
        return codes(stream, &whole, out, Way::Tiles);
    }
    let keys: Vec<_> = whole.iter().map(|run| run.0).collect();
    let cuts = runs_splits(stream, &keys, piece)?.to_vec(stream)?;
    let pieces: Vec<Vec<Range<usize>>> = cuts
        .chunks_exact(runs.len())
        .zip(cuts.chunks_exact(runs.len()).skip(1))
        .map(|(from, to)| from.iter().zip(to).map(|(&from, &to)| from as usize..to as usize).collect())
        .collect();
    let far = |ranges: &[Range<usize>]| {
        ranges.iter().zip(runs).filter(|(_, run)| is_far(run.1)).map(|(range, _)| range.len()).sum::<usize>()
    };
    let room = pieces.iter().map(|ranges| far(ranges)).max().unwrap_or(0);
    let arrived = Halves::new(stream, (out.0.size(), out.1.size()), room);
    let mut arrived = match arrived {
        Err(Error::OutOfMemory { .. }) => return codes(stream, &whole, out, Way::Tiles),
        arrived => arrived?,
    };
    // From here on, what `stream` waits for, the uploads wait for, too.
    for run in &whole {
        run.0.raw_view(stream)?;
        run.1.raw_view(stream)?;
    }
    let up = Uploads::new(stream)?;
    let mut merged: [Option<Event>; 2] = [None, None];
    let mut written = 0;
    for (ranges, half) in pieces.iter().zip([0, 1].into_iter().cycle()) {
        if let Some(event) = &merged[half] {
            up.stream.wait(event)?;
        }
        let mut start = half * room;
        for (range, (run, _)) in ranges.iter().zip(runs).filter(|(range, run)| is_far(run.1) && !range.is_empty()) {
            arrived.upload(&up.stream, start, *run, range)?;
            start += range.len();
        }
        stream.wait(&up.stream.record()?)?;
        let mut start = half * room;
        let mut parts: Vec<Run<'_>> = Vec::with_capacity(runs.len());
        for (range, (run, place)) in ranges.iter().zip(runs).filter(|(range, _)| !range.is_empty()) {
            parts.push(match place {
                Place::Host => arrived.part(start..start + range.len())?,
                Place::Device => part(run, range)?,
            });
            start += if is_far(*place) { range.len() } else { 0 };
        }
        let len = ranges.iter().map(Range::len).sum::<usize>();
        let values = if out.1.size() == 0 { 0..0 } else { written..written + len };
        let to = (out.0.reborrow().slice_mut(written..written + len)?, out.1.reborrow().slice_mut(values)?);
        codes(stream, &parts, to, Way::Tiles)?;
        merged[half] = Some(stream.record()?);
        written += len;
    }
    Ok(())
}

/// Returns some elements of a run.
fn part<'a>(run: &Run<'a>, range: &Range<usize>) -> Result<Run<'a>, Error> {
    let values = if run.1.size() == 0 { 0..0 } else { range.clone() };
    Ok((run.0.slice(range.clone())?, run.1.slice(values)?))
}

/// The parts of runs that have arrived on the device, for two pieces.
struct Halves {
    keys: AnyVec,
    values: AnyVec,
}

impl Halves {
    fn new(stream: &Stream, (key, value): (usize, usize), room: usize) -> Result<Self, Error> {
        let values = if value == 0 { 0 } else { 2 * room };
        Ok(Self { keys: AnyVec::uninit(stream, key, 2 * room)?, values: AnyVec::uninit(stream, value, values)? })
    }

    fn part(&self, range: Range<usize>) -> Result<Run<'_>, Error> {
        part(&(self.keys.as_slice(), self.values.as_slice()), &range)
    }

    /// Copies a part of a run to these places from `start` on.
    fn upload(&mut self, up: &Stream, start: usize, run: Run<'_>, range: &Range<usize>) -> Result<(), Error> {
        let (keys, values) = part(&run, range)?;
        let to = start..start + range.len();
        // SAFETY: events order the copies. They follow all work that this stream had received before the first of them, and so the last
        // writes of the run and the allocation of this memory; they follow the merge that last read these places; and the merge that reads
        // them next follows them, as does everything that this stream receives when the merge is over, however it ends.
        let copy = |from: AnySlice<'_>, to: AnySliceMut<'_>| unsafe { to.unordered().copy_from(up, from.unordered()) };
        copy(keys, self.keys.as_mut_slice().slice_mut(to.clone())?)?;
        if values.size() > 0 {
            copy(values, self.values.as_mut_slice().slice_mut(to)?)?;
        }
        Ok(())
    }
}

/// A stream that copies beside another one. In the end, the other one follows it, even after an error.
struct Uploads<'a> {
    stream: Stream,
    merges: &'a Stream,
}

impl<'a> Uploads<'a> {
    fn new(merges: &'a Stream) -> Result<Self, Error> {
        let stream = merges.device().stream()?;
        stream.wait(&merges.record()?)?;
        Ok(Self { stream, merges })
    }
}

impl Drop for Uploads<'_> {
    fn drop(&mut self) {
        let is_followed = self.stream.record().and_then(|event| self.merges.wait(&event));
        if is_followed.is_err() {
            // If that fails, too, the device is lost.
            let _ = self.stream.synchronize();
        }
    }
}
