//! A step of a splat renderer: which splats are seen in which tiles of the image, from the nearest to the farthest. How many there are
//! stays on the device: nothing waits, and the step is recorded in a graph.
//!
//! `cargo run --release -p gpu-primitives --example splats [SPLATS STEPS]`

use bytemuck::{Pod, Zeroable};
use gpu_primitives::compare::Less;
use gpu_primitives::map::Map;
use gpu_primitives::operator::{Record, map, operator, predicate};
use gpu_primitives::sort::{self, Options};
use gpu_primitives::source::{counted, counting};
use gpu_primitives::{Device, DeviceKind, DeviceValue, DeviceVec, Error, Stream, search, select, transfer, transform};
use std::time::Instant;

const WIDTH: u32 = 640;
const HEIGHT: u32 = 480;
const TILE: u32 = 16;
const COLUMNS: u32 = WIDTH / TILE;
const TILES: u32 = COLUMNS * (HEIGHT / TILE);

/// The key of a splat that is not seen. It comes after all others.
const UNSEEN: u64 = u64::MAX;

/// A splat in the coordinates of the camera. It covers at most two by two tiles.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, Record)]
struct Splat {
    x: f32,
    y: f32,
    depth: f32,
    radius: f32,
}

/// Gives the key of a splat in the tile of one of its corners: the tile, and then the depth.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable, Record)]
struct KeyAtCorner {
    right: u32,
    low: u32,
}

#[operator]
impl Map<Splat> for KeyAtCorner {
    type Output = u64;

    fn map(&self, splat: Splat) -> u64 {
        let (left, top) = (((splat.x - splat.radius) / 16.0).floor(), ((splat.y - splat.radius) / 16.0).floor());
        let (right, bottom) = (((splat.x + splat.radius) / 16.0).floor(), ((splat.y + splat.radius) / 16.0).floor());
        let column = if self.right == 1 { right } else { left };
        let row = if self.low == 1 { bottom } else { top };
        // Corners in the same tile count once.
        let is_new = (self.right == 0 || right > left) && (self.low == 0 || bottom > top);
        let is_inside = column >= 0.0 && column < COLUMNS as f32 && row >= 0.0 && row < (HEIGHT / TILE) as f32;
        let tile = row as u32 * COLUMNS + column as u32;
        // The bits of positive floats order as the numbers do.
        let key = (tile as u64) << 32 | splat.depth.to_bits() as u64;
        if is_new && is_inside && splat.depth > 0.0 { key } else { u64::MAX }
    }
}

/// The memory of a step.
struct Frame {
    candidates: DeviceVec<u64>,
    numbers: DeviceVec<u32>,
    seen: DeviceVec<u64>,
    seen_numbers: DeviceVec<u32>,
    keys: DeviceVec<u64>,
    splats: DeviceVec<u32>,
    /// The first key of each tile, and the end of the last one's.
    tile_keys: DeviceVec<u64>,
    ranges: DeviceVec<u32>,
}

impl Frame {
    fn new(stream: &Stream, splats: usize) -> Result<Self, Error> {
        let most = 4 * splats;
        let numbers: Vec<u32> = (0..4).flat_map(|_| 0..splats as u32).collect();
        Ok(Self {
            candidates: stream.uninit(most)?,
            numbers: stream.upload(&numbers)?,
            seen: stream.uninit(most)?,
            seen_numbers: stream.uninit(most)?,
            keys: stream.uninit(most)?,
            splats: stream.uninit(most)?,
            tile_keys: {
                let mut keys = stream.uninit(TILES as usize + 1)?;
                transform::map(
                    stream,
                    counting(0u64, TILES as usize + 1),
                    &mut keys,
                    map!(|tile: u64| -> u64 { tile << 32 }),
                )?;
                keys
            },
            ranges: stream.uninit(TILES as usize + 1)?,
        })
    }

    /// Finds the splats of each tile. Returns how many there are in all.
    fn step(&mut self, stream: &Stream, splats: &DeviceVec<Splat>) -> Result<DeviceValue<u64>, Error> {
        let len = splats.len();
        for (corner, (right, low)) in [(0, 0), (1, 0), (0, 1), (1, 1)].into_iter().enumerate() {
            let to = self.candidates.slice_mut(corner * len..(corner + 1) * len)?;
            transform::map(stream, splats, to, KeyAtCorner { right, low })?;
        }
        let is_seen = predicate!(|key: u64| key != u64::MAX);
        let (from, to) = ((&self.candidates, &self.numbers), (&mut self.seen, &mut self.seen_numbers));
        let count = select::select_pairs(stream, from, to, is_seen)?;
        // As many are sorted as are seen, which only the device knows. The keys behind them come after all others. Tiles take few bits.
        let bits = 0..32 + u32::BITS - TILES.leading_zeros();
        transfer::fill(stream, &mut self.keys, UNSEEN)?;
        let (from, to) = ((counted(&self.seen, &count), &self.seen_numbers), (&mut self.keys, &mut self.splats));
        sort::pairs(stream, from, to, Options::new().bits(bits))?;
        search::lower_bound(stream, &self.keys, &self.tile_keys, &mut self.ranges, Less)?;
        Ok(count)
    }
}

fn main() -> Result<(), Error> {
    let stream = Device::default()?.stream()?;
    let is_gpu = matches!(stream.device().kind(), DeviceKind::Cuda { .. });
    let asked: Vec<usize> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let (len, steps) = match asked[..] {
        [len, steps] => (len, steps),
        _ if is_gpu => (1_000_000, 100),
        _ => (5000, 3),
    };
    assert!(len > 0 && steps > 0, "at least a splat and a step");
    let random = |i: usize, what: u32| (i as u32 ^ what << 24).wrapping_mul(2_654_435_761).rotate_left(what) >> 8;
    let share = |i, what| random(i, what) as f32 / (1 << 24) as f32;
    let splats: Vec<Splat> = (0..len)
        .map(|i| Splat {
            // Some lie outside of the image, and some behind the camera.
            x: share(i, 3) * 1.4 * WIDTH as f32 - 0.2 * WIDTH as f32,
            y: share(i, 5) * 1.4 * HEIGHT as f32 - 0.2 * HEIGHT as f32,
            depth: share(i, 7) * 100.0 - 10.0,
            radius: share(i, 11) * 7.9,
        })
        .collect();
    let on_device = stream.upload(&splats)?;

    let mut frame = Frame::new(&stream, len)?;
    frame.step(&stream, &on_device)?; // compiles the kernels
    let (mut graph, count) = stream.capture(|stream| frame.step(stream, &on_device))?;
    // SAFETY: here and below, the splats and the frame's memory are still there.
    unsafe { graph.launch(&stream)? };
    stream.synchronize()?;
    let start = Instant::now();
    for _ in 0..steps {
        // SAFETY: see above.
        unsafe { graph.launch(&stream)? };
    }
    stream.synchronize()?;
    let per_step = start.elapsed().as_secs_f64() / steps as f64;

    let (count, ranges) = (count.get(&stream)? as usize, frame.ranges.to_vec(&stream)?);
    let found = frame.splats.slice(..count)?.to_vec(&stream)?;
    println!("{len} splats are seen {count} times in {TILES} tiles, on {}", stream.device().name());
    println!("{:.1} µs per step, {steps} steps", 1e6 * per_step);

    // The splats of each tile, by a plain loop over them.
    let mut expected: Vec<Vec<u32>> = vec![Vec::new(); TILES as usize];
    for (number, splat) in (0..).zip(&splats) {
        for (right, low) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
            let key = KeyAtCorner { right, low }.map(*splat);
            if key != UNSEEN {
                expected[(key >> 32) as usize].push(number);
            }
        }
    }
    assert_eq!(ranges[TILES as usize] as usize, count);
    for (tile, mut expected) in expected.into_iter().enumerate() {
        let depth = |&number: &u32| splats[number as usize].depth;
        let found = &found[ranges[tile] as usize..ranges[tile + 1] as usize];
        assert!(found.is_sorted_by(|a, b| depth(a) <= depth(b)), "tile {tile}: from the nearest to the farthest");
        let mut found = found.to_vec();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "tile {tile}");
    }
    Ok(())
}
