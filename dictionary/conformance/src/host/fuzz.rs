//! Random damage to valid files, for tests of what reads them.
//!
//! A file consists of sections with checksums, so damage to its bytes alone never gets far. [`Mutator`] therefore also
//! changes the contents of sections and corrects the checksums: then all that the reader checks itself is reached.

use super::model::Random;
use gpu_dictionary::file::write_section;
use std::time::{Duration, Instant};

/// Returns the seeds of a fuzz test: the first `few` numbers. With `GPU_PRIMITIVES_FUZZ=SECONDS`, as many as there is time
/// for. With `GPU_PRIMITIVES_SEED=SEED`, that one alone.
///
/// # Panics
/// If a variable is not a number.
pub fn fuzz_seeds(few: u64) -> impl Iterator<Item = u64> {
    let number = |name: &str| {
        let value = std::env::var(name).ok()?;
        Some(value.parse::<u64>().unwrap_or_else(|_| panic!("{name} is `{value}`, but it must be a number")))
    };
    let started = Instant::now();
    let time = number("GPU_PRIMITIVES_FUZZ").map(Duration::from_secs);
    let only = number("GPU_PRIMITIVES_SEED");
    let seeds = only.map_or(0..u64::MAX, |seed| seed..seed + 1);
    seeds.take_while(move |&seed| only.is_some() || time.map_or(seed < few, |time| started.elapsed() < time))
}

/// Prints the seed of the round if it panics.
#[derive(Debug)]
pub struct Round(pub u64);

impl Drop for Round {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("this was seed {0}: run it alone with GPU_PRIMITIVES_SEED={0}", self.0);
        }
    }
}

/// Returns the contents of a file's sections, or `None` if it does not consist of sections. A section ends where four bytes
/// are the checksum of those before, and the rest consists of sections: bytes that are all ones are their own checksum.
#[must_use]
pub fn sections(file: &[u8]) -> Option<Vec<Vec<u8>>> {
    if file.is_empty() {
        return Some(Vec::new());
    }
    let mut checksum = crc32fast::Hasher::new();
    (1..file.len().saturating_sub(3)).find_map(|len| {
        checksum.update(&file[len - 1..len]);
        let is_end = checksum.clone().finalize().to_le_bytes() == file[len..len + 4];
        let mut rest = if is_end { sections(&file[len + 4..])? } else { return None };
        rest.insert(0, file[..len].to_vec());
        Some(rest)
    })
}

/// Makes damaged files of valid ones.
#[derive(Debug)]
pub struct Mutator {
    /// The valid files, as bytes and as sections.
    files: Vec<(Vec<u8>, Vec<Vec<u8>>)>,
}

impl Mutator {
    /// Starts with these valid files.
    ///
    /// # Panics
    /// If one of them does not consist of sections.
    #[must_use]
    pub fn new(files: Vec<Vec<u8>>) -> Self {
        let with_sections = |file: Vec<u8>| (file.clone(), sections(&file).expect("a file of sections"));
        Self { files: files.into_iter().map(with_sections).collect() }
    }

    /// Returns a damaged file. Three of four have correct checksums.
    pub fn file(&self, random: &mut Random) -> Vec<u8> {
        let (bytes, sections) = &self.files[random.below(self.files.len())];
        if random.below(4) == 0 {
            let mut bytes = bytes.clone();
            self.change(&mut bytes, random);
            return bytes;
        }
        let mut sections = sections.clone();
        for _ in 0..1 + random.below(2) * random.below(3) {
            self.change_sections(&mut sections, random);
        }
        let mut file = Vec::new();
        for section in &sections {
            write_section(&mut file, section).expect("memory can be written");
        }
        file
    }

    /// Changes some bytes, or the length.
    pub fn change(&self, bytes: &mut Vec<u8>, random: &mut Random) {
        if bytes.is_empty() {
            bytes.push(random.number() as u8);
            return;
        }
        let at = random.below(bytes.len());
        match random.below(8) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.number() as u8,
            2 => bytes.truncate(at),
            3 => bytes.insert(at, random.number() as u8),
            4 => {
                let to = at + random.below(bytes.len() - at);
                bytes.drain(at..to);
            }
            5 => {
                let (other, _) = &self.files[random.below(self.files.len())];
                let from = random.below(other.len());
                let len = random.below((other.len() - from).min(bytes.len() - at) + 1);
                bytes[at..at + len].copy_from_slice(&other[from..from + len]);
            }
            // A number of 4 or 8 bytes where numbers often are.
            _ => {
                let len = if random.below(2) == 0 { 4 } else { 8 };
                let at = if random.below(2) == 0 { at } else { at / 4 * 4 };
                let extremes =
                    [0, 1, 2, 31, 32, 33, u64::MAX, 1 << 31, 1 << 32, u64::from(u32::MAX), bytes.len() as u64];
                let number =
                    extremes[random.below(extremes.len())].wrapping_add(random.below(3) as u64).wrapping_sub(1);
                for (byte, with) in bytes[at..].iter_mut().take(len).zip(number.to_le_bytes()) {
                    *byte = with;
                }
            }
        }
    }

    /// Changes a section, or which sections there are.
    fn change_sections(&self, sections: &mut Vec<Vec<u8>>, random: &mut Random) {
        let (_, others) = &self.files[random.below(self.files.len())];
        if sections.is_empty() {
            sections.push(others[random.below(others.len())].clone());
        }
        // The first section is the header, where most changes are refused at once.
        let at = if random.below(4) == 0 { 0 } else { random.below(sections.len()) };
        match random.below(12) {
            0 => _ = sections.remove(at),
            1 => sections.insert(at, others[random.below(others.len())].clone()),
            2 => sections[at].clone_from(&others[random.below(others.len())]),
            3 => {
                let other = random.below(sections.len());
                sections.swap(at, other);
            }
            4 => sections.truncate(at + 1),
            _ => self.change(&mut sections[at], random),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Damaged files differ from valid ones, most of them consist of sections, and a seed gives the same file again.
    #[test]
    fn files_are_damaged() {
        let mut valid = Vec::new();
        for section in [&b"header"[..], &[7; 100], &[255; 8], &[0; 12]] {
            write_section(&mut valid, section).unwrap();
        }
        assert_eq!(sections(&valid), Some(vec![b"header".to_vec(), vec![7; 100], vec![255; 8], vec![0; 12]]));
        let mutator = Mutator::new(vec![valid.clone(), valid.clone()]);
        let files: Vec<Vec<u8>> = (0..400).map(|seed| mutator.file(&mut Random(seed))).collect();
        assert!(files.iter().filter(|file| **file != valid).count() > 350);
        assert!(files.iter().filter(|file| sections(file).is_some()).count() > 250);
        assert!((0..400).all(|seed| mutator.file(&mut Random(seed)) == files[seed as usize]));
    }
}
