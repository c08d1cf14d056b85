//! Batches for a given time, compared with a model that is an array: the value of every key, or zero.

use gpu_conformance::{is_checked, is_gpu};
use gpu_dictionary_conformance::Random;
use gpu_lsm::{CleanupPolicy, GpuLsm};
use gpu_primitives::{Device, Stream};
use std::time::{Duration, Instant};

/// Returns sizes that suit the device: the smallest and the largest batch, and the number of keys, as logarithms.
fn scale(device: &Device) -> (u32, u32, u32) {
    match device {
        device if is_gpu(device) => (16, 20, 28),
        device if is_checked(device) => (4, 8, 12),
        _ => (8, 14, 20),
    }
}

struct Soak {
    lsm: GpuLsm<u32, u32>,
    values: Vec<u32>,
    live: u64,
    random: Random,
}

impl Soak {
    fn set(&mut self, key: u32, value: u32) {
        let place = &mut self.values[key as usize];
        self.live = self.live + u64::from(value != 0) - u64::from(*place != 0);
        *place = value;
    }

    fn keys(&mut self, count: usize) -> Vec<u32> {
        let domain = self.values.len();
        (0..count).map(|_| self.random.below(domain) as u32).collect()
    }

    /// Makes a call of up to two batches: insertions, deletions or both.
    fn step(&mut self, stream: &Stream) {
        let batch = self.lsm.stats(stream).unwrap().batch_size;
        let count = match self.random.below(4) {
            0 => self.random.below(2 * batch + 1),
            _ => batch,
        };
        let deletions = match self.random.below(4) {
            0 => count,
            1 => 0,
            _ => self.random.below(count + 1),
        };
        let inserted = self.keys(count - deletions);
        let values: Vec<u32> = inserted.iter().map(|_| self.random.number() as u32 | 1).collect();
        let deleted = self.keys(deletions);
        let insert = (&stream.upload(&inserted).unwrap(), &stream.upload(&values).unwrap());
        self.lsm.update(stream, insert, &stream.upload(&deleted).unwrap()).unwrap();
        for (&key, &value) in inserted.iter().zip(&values) {
            self.set(key, value);
        }
        for &key in &deleted {
            self.set(key, 0);
        }
    }

    /// Checks lookups and counts of samples, and the number of keys.
    fn check_samples(&mut self, stream: &Stream, when: &str) {
        let asked = self.keys(self.lsm.stats(stream).unwrap().batch_size.min(4096));
        let found = self.lsm.lookup(stream, &stream.upload(&asked).unwrap()).unwrap().to_vec(stream).unwrap();
        for (key, found) in asked.iter().zip(found) {
            assert_eq!(found.unwrap_or(0), self.values[*key as usize], "key {key}, {when}");
        }
        let mut low = self.keys(256);
        let last = self.values.len() - 1;
        let mut high: Vec<u32> =
            low.iter().map(|&low| (low as usize + self.random.below(2000)).min(last) as u32).collect();
        let within = |low: u32, high: u32| &self.values[low as usize..=high as usize];
        let mut expected: Vec<u64> = low
            .iter()
            .zip(&high)
            .map(|(&low, &high)| within(low, high).iter().filter(|&&value| value != 0).count() as u64)
            .collect();
        low.push(0);
        high.push(last as u32);
        expected.push(self.live);
        let counts = self.lsm.count(stream, &stream.upload(&low).unwrap(), &stream.upload(&high).unwrap()).unwrap();
        assert_eq!(counts.to_vec(stream).unwrap(), expected, "counts, {when}");
    }

    /// Checks all pairs.
    fn check_everything(&self, stream: &Stream, when: &str) {
        let mut all = self.lsm.iter(stream).unwrap();
        for (key, &value) in self.values.iter().enumerate().filter(|&(_, &value)| value != 0) {
            assert_eq!(all.next(), Some((key as u32, value)), "{when}");
        }
        assert_eq!(all.next(), None, "{when}");
    }
}

pub fn soak(device: &Device) {
    let seconds = std::env::var("GPU_PRIMITIVES_SOAK").unwrap_or_default();
    let seconds = seconds.parse().expect("GPU_PRIMITIVES_SOAK must be a number of seconds");
    let until = Instant::now() + Duration::from_secs(seconds);
    let (least, most, log_keys) = scale(device);
    let stream = device.stream().unwrap();
    let mut round = 0;
    while round == 0 || Instant::now() < until {
        let batch = 1 << (least + round % (most - least + 1));
        let mut soak = Soak {
            lsm: GpuLsm::with_batch_size(batch).unwrap(),
            values: vec![0; 1 << log_keys],
            live: 0,
            random: Random(round.into()),
        };
        if round % 2 == 1 {
            soak.lsm.set_cleanup_policy(Some(CleanupPolicy::new().stale_share(0.5).max_levels(8)));
        }
        let mut step = 0;
        // Until it has as many elements as there are keys, or after 512 steps.
        while Instant::now() < until && step < 512 && soak.lsm.stats(&stream).unwrap().resident < 1 << log_keys {
            soak.step(&stream);
            soak.check_samples(&stream, &format!("round {round}, batches of {batch}, step {step}"));
            step += 1;
        }
        let when = format!("round {round}, batches of {batch}, {step} steps");
        soak.check_everything(&stream, &when);
        soak.lsm.cleanup(&stream).unwrap();
        assert_eq!(soak.lsm.stats(&stream).unwrap().resident as u64, soak.live, "cleaned up, {when}");
        soak.check_samples(&stream, &format!("cleaned up, {when}"));
        eprintln!("{}: {when}, {} keys", device.kind(), soak.live);
        round += 1;
    }
}
