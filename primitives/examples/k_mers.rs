//! How often each k-mer of a genome occurs: by sorting, and by a hash table. A k-mer and its reverse complement count as one, as in
//! `jellyfish count -C`. If that program is installed, its counts are compared.
//!
//! `cargo run --release -p gpu-primitives --example k_mers [K GENOME.fa]`

use gpu_primitives::operator::{map, operator, predicate};
use gpu_primitives::{Device, DeviceVec, Error, Stream, runs, select, transform};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::Command;
use std::time::Instant;

/// The mark of a k-mer that is none: it contains a letter other than A, C, G and T, or the end of a sequence.
const NONE: u64 = 1 << 63;

/// Returns two bits for a letter, or the mark.
#[operator]
fn base(letter: u8) -> u64 {
    let upper = letter & 0xDF;
    match upper {
        b'A' => 0,
        b'C' => 1,
        b'G' => 2,
        b'T' => 3,
        _ => NONE,
    }
}

/// Returns the k-mer of the other strand: its letters from the last one to the first one, each replaced by its complement.
#[operator]
fn reverse_complement(kmer: u64, k: u32) -> u64 {
    let reversed = (!kmer).reverse_bits();
    // The two bits of each letter were swapped.
    let letters = (reversed >> 1 & 0x5555_5555_5555_5555) | (reversed & 0x5555_5555_5555_5555) << 1;
    letters >> (64 - 2 * k)
}

/// Returns the k-mers of a text, one from each letter on, except for the last ones. Those that are none have the mark.
///
/// A k-mer of `a + b` letters is one of `a` letters and the one of `b` letters behind it. So lengths are doubled, and those that `k`
/// consists of are put together.
fn k_mers(stream: &Stream, text: &[u8], k: usize) -> Result<DeviceVec<u64>, Error> {
    let letters = stream.upload(text)?;
    let mut power = stream.uninit::<u64>(text.len())?;
    transform::map(stream, &letters, &mut power, map!(|letter: u8| -> u64 { base(letter) }))?;
    let (mut power_len, mut all, mut all_len) = (1, None::<DeviceVec<u64>>, 0);
    loop {
        if k & power_len != 0 {
            all = Some(match all {
                None => joined(stream, &power, &power, power_len, 0)?,
                Some(all) => joined(stream, &all, &power, all_len, power_len)?,
            });
            all_len += power_len;
        }
        if all_len == k {
            return Ok(all.expect("k is at least 1"));
        }
        power = joined(stream, &power, &power, power_len, power_len)?;
        power_len *= 2;
    }
}

/// Joins each k-mer of `a_len` letters with the one of `b_len` letters behind it; with no letters, it is the same k-mer.
fn joined(
    stream: &Stream,
    a: &DeviceVec<u64>,
    b: &DeviceVec<u64>,
    a_len: usize,
    b_len: usize,
) -> Result<DeviceVec<u64>, Error> {
    let bits = 2 * b_len as u32;
    let behind = if b_len > 0 { a_len } else { 0 };
    let len = a.len().min(b.len() - behind);
    let mut both = stream.uninit::<u64>(len)?;
    let join = map!(bits: u32 = bits; |a: u64, b: u64| -> u64 {
        let letters = if bits > 0 { (a & !NONE) << bits | (b & !NONE) } else { a & !NONE };
        letters | ((a | b) & NONE)
    });
    transform::map2(stream, a.slice(..len)?, b.slice(behind..behind + len)?, &mut both, join)?;
    Ok(both)
}

/// The k-mers that occur, in order, with their counts.
type Counts = Vec<(u64, u32)>;

/// Counts by a sort, or by a hash table for so many different k-mers.
fn count(stream: &Stream, kmers: &DeviceVec<u64>, hashed: Option<usize>) -> Result<Counts, Error> {
    let (mut keys, mut counts) = (stream.uninit::<u64>(kmers.len())?, stream.uninit::<u32>(kmers.len())?);
    stream.synchronize()?;
    let start = Instant::now();
    let found = match hashed {
        None => runs::distinct_counts(stream, kmers, (&mut keys, &mut counts))?,
        Some(most) => runs::distinct_counts_hashed(stream, kmers, (&mut keys, &mut counts), most)?,
    };
    let found = found.get(stream)? as usize;
    let way = if hashed.is_some() { "hash table" } else { "sort" };
    println!("{way}: {found} different k-mers in {:.0} µs", start.elapsed().as_secs_f64() * 1e6);
    let (keys, counts) = (keys.slice(..found)?.to_vec(stream)?, counts.slice(..found)?.to_vec(stream)?);
    Ok(keys.into_iter().zip(counts).collect())
}

/// Returns the letters of all sequences of a FASTA file, with a separator between them.
fn letters_of(fasta: &str) -> Vec<u8> {
    let mut letters = Vec::new();
    for line in fasta.lines() {
        letters.extend_from_slice(if line.starts_with('>') { b"|" } else { line.trim().as_bytes() });
    }
    letters
}

/// Returns a small genome: random letters, of which some parts are repeated, in two sequences, with some unknown letters.
fn made_genome() -> String {
    let mut state = 7u64;
    let mut letter = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        b"ACGT"[(state >> 62) as usize] as char
    };
    let parts: Vec<String> = (0..8).map(|_| (0..600).map(|_| letter()).collect()).collect();
    let mut fasta = String::from(">first\n");
    for i in 0..24 {
        let _ = writeln!(fasta, "{}{}", parts[i * 5 % 8], if i % 7 == 3 { "NNnacgt" } else { "" });
    }
    let _ = writeln!(fasta, ">second\n{}", parts[2]);
    fasta
}

/// Counts with a plain loop.
fn expected(letters: &[u8], k: usize) -> Counts {
    let mut counts = BTreeMap::new();
    for window in letters.windows(k) {
        let kmer = window.iter().fold(0, |kmer, &letter| kmer << 2 & !NONE | base(letter) | kmer & NONE);
        if window.iter().all(|&letter| base(letter) != NONE) {
            *counts.entry(kmer.min(reverse_complement(kmer, k as u32))).or_insert(0) += 1;
        }
    }
    counts.into_iter().collect()
}

/// Returns the counts of the program `jellyfish`, if it is installed.
fn jellyfish(path: &str, k: usize) -> Option<Counts> {
    let output = std::env::temp_dir().join(format!("k_mers_{}.jf", std::process::id()));
    let start = Instant::now();
    let counted = Command::new("jellyfish")
        .args(["count", "-C", "-s", "10M", "-t", "8", "-m", &k.to_string(), "-o"])
        .arg(&output)
        .arg(path)
        .status()
        .ok()?;
    println!("jellyfish count: {:.0} µs", start.elapsed().as_secs_f64() * 1e6);
    let dump = Command::new("jellyfish").args(["dump", "-c"]).arg(&output).output().ok()?;
    let _ = std::fs::remove_file(&output);
    assert!(counted.success() && dump.status.success(), "jellyfish failed");
    let dump = String::from_utf8(dump.stdout).expect("letters and numbers");
    let mut counts: Counts = dump
        .lines()
        .map(|line| {
            let (letters, count) = line.split_once(' ').expect("a k-mer and its count");
            let kmer = letters.bytes().fold(0, |kmer, letter| kmer << 2 | base(letter));
            (kmer, count.parse().expect("a count"))
        })
        .collect();
    counts.sort_unstable();
    Some(counts)
}

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let k: usize = arguments.next().map_or(21, |k| k.parse().expect("k is a number"));
    assert!((1..=31).contains(&k), "k is from 1 to 31");
    let path = arguments.next();
    let fasta = path.as_ref().map_or_else(made_genome, |path| std::fs::read_to_string(path).expect("a FASTA file"));
    let letters = letters_of(&fasta);
    assert!(letters.len() >= k, "a genome has at least one k-mer");

    let stream = Device::default()?.stream()?;
    println!("{} letters, k = {k}, on {}", letters.len(), stream.device().name());
    let all = k_mers(&stream, &letters, k)?;
    // Those that are k-mers, each as the smaller one of both strands.
    let mut kept = stream.uninit::<u64>(all.len())?;
    let kmers = select::select(&stream, &all, &mut kept, predicate!(|kmer: u64| kmer < NONE))?.get(&stream)? as usize;
    kept.truncate(kmers);
    let canonical = map!(k: u32 = k as u32; |kmer: u64| -> u64 { kmer.min(reverse_complement(kmer, k)) });
    transform::map_in_place(&stream, &mut kept, canonical)?;

    let sorted = count(&stream, &kept, None)?;
    let hashed = count(&stream, &kept, Some(kmers / 3))?;
    assert!(sorted == hashed, "both ways count the same");
    assert!(sorted == expected(&letters, k), "a plain loop counts the same");
    if let Some(path) = path
        && let Some(counts) = jellyfish(&path, k)
    {
        assert!(sorted == counts, "jellyfish counts the same");
        println!("jellyfish: the same {} counts", counts.len());
    }
    Ok(())
}
