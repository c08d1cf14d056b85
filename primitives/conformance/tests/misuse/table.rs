//! The table of calls: every host function of the primitives, with operands that fit.

use super::memory::{Answer, Kind, MARK, Memory};
use gpu_conformance::data::random;
use gpu_primitives::{Error, Stream};
use std::panic::AssertUnwindSafe;

/// What a call does with an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The call reads it.
    Read,
    /// The call writes it, and says what it holds then.
    Written,
    /// The call uses it as it likes.
    Spent,
}

/// An operand of a call.
#[derive(Clone, Copy)]
pub struct Operand {
    pub kind: Kind,
    pub role: Role,
    /// Returns its contents, for a given number of elements.
    pub contents: fn(usize) -> Vec<u64>,
}

/// A call.
pub struct Row {
    pub name: &'static str,
    pub operands: Vec<Operand>,
    pub call: fn(&Stream, &mut [Memory]) -> Result<Answer, Error>,
}

impl Row {
    /// Returns operands that fit, for `n` elements.
    pub fn contents(&self, n: usize) -> Vec<Vec<u64>> {
        let contents = |operand: &Operand| {
            let mask = operand.kind.largest();
            (operand.contents)(n).into_iter().map(|number| number & mask).collect()
        };
        self.operands.iter().map(contents).collect()
    }
}

/// Runs a check for each row, and tells all rows that fail.
pub fn each(rows: &[Row], check: impl Fn(&Row)) {
    let fails = |row: &&Row| std::panic::catch_unwind(AssertUnwindSafe(|| check(row))).is_err();
    let failed: Vec<&str> = rows.iter().filter(fails).map(|row| row.name).collect();
    assert!(failed.is_empty(), "these calls fail: {failed:?}");
}

/// Writes rows as calls: `"name": (stream; operand = what, …) => call;`.
macro_rules! rows {
    ($($name:literal: ($stream:ident; $($operand:ident = $what:expr),+) => $call:expr;)*) => {
        vec![$($crate::table::Row {
            name: $name,
            operands: vec![$($what),+],
            call: |$stream, memory| {
                let [$($operand),+] = memory else { unreachable!("a row names all of its operands") };
                Ok($crate::memory::Answer::from($call?))
            },
        }),*]
    };
}
pub(crate) use rows;

const fn read(contents: fn(usize) -> Vec<u64>) -> Operand {
    Operand { kind: Kind::Words, role: Role::Read, contents }
}

const fn written(contents: fn(usize) -> Vec<u64>) -> Operand {
    Operand { kind: Kind::Words, role: Role::Written, contents }
}

impl Operand {
    pub const fn longs(self) -> Self {
        Self { kind: Kind::Longs, ..self }
    }

    pub const fn bytes(self) -> Self {
        Self { kind: Kind::Bytes, ..self }
    }

    pub const fn odd(self) -> Self {
        Self { kind: Kind::Odd, ..self }
    }

    pub const fn spent(self) -> Self {
        Self { role: Role::Spent, ..self }
    }

    pub const fn changed(self) -> Self {
        Self { role: Role::Written, ..self }
    }
}

/// Numbers in no order, some of them several times.
pub const KEYS: Operand = read(|n| random(n as u64).take(n).map(|x| x % 5000).collect());
/// Other numbers.
pub const OTHERS: Operand = read(|n| random(n as u64 + 1).take(n).map(|x| x % 5000).collect());
/// Numbers in order.
pub const SORTED: Operand = read(|n| (0..n as u64).map(|i| i / 2 * 3).collect());
/// Half as many, also in order.
pub const HALF: Operand = read(|n| (0..n as u64 / 2).map(|i| i * 5).collect());
/// All different.
pub const VALUES: Operand = read(|n| (0..n as u64).map(|i| i + 70_000).collect());
/// As many as [`HALF`].
pub const HALF_VALUES: Operand = read(|n| (0..n as u64 / 2).map(|i| i + 90_000).collect());
/// Three segments, one of them empty.
pub const OFFSETS: Operand = read(|n| vec![0, n as u64 / 3, n as u64 / 3, n as u64]);
/// Where three ranges begin.
pub const STARTS: Operand = read(|n| vec![n as u64 / 2, 0, 7]);
/// Where three ranges go, and how long they are.
pub const PLACES_OF_RANGES: Operand = read(|n| vec![n as u64 / 3, 1, 2 * n as u64 / 3]);
pub const LENGTHS_OF_RANGES: Operand = read(|n| vec![n as u64 / 5, n as u64 / 4, 2]);
/// Indices in another order.
pub const PLACES: Operand = read(|n| (0..n as u64).map(|i| i * 7 % n as u64).collect());
/// Runs of equal numbers.
pub const RUNS: Operand = read(|n| (0..n as u64).map(|i| i / 3 % 11).collect());
/// Lengths of runs whose sum is about `n`.
pub const LENGTHS: Operand = read(|n| (0..n as u64 / 2).map(|i| i % 4).collect());
/// Some ones.
pub const FLAGS: Operand = read(|n| (0..n as u64).map(|i| u64::from(i % 3 == 0)).collect());
/// Levels of four bins.
pub const LEVELS: Operand = read(|_| vec![0, 100, 1000, 2000, 4000]);

/// Outputs.
pub const OUT: Operand = written(|n| vec![MARK; n]);
pub const OUT_OF_BOTH: Operand = written(|n| vec![MARK; n + n / 2]);
pub const OUT_OF_HALF: Operand = written(|n| vec![MARK; n / 2]);
pub const OUT_OF_THREE: Operand = written(|_| vec![MARK; 3]);
pub const OUT_OF_BINS: Operand = written(|_| vec![MARK; 4]);
pub const OUT_OF_BYTES: Operand = written(|_| vec![MARK; 256]);
/// The ten that are wanted, and ten for each of three rows.
pub const OUT_OF_TEN: Operand = written(|_| vec![MARK; 10]);
pub const OUT_OF_ROWS: Operand = written(|_| vec![MARK; 30]);
/// Room for three inputs.
pub const OUT_OF_ALL: Operand = written(|n| vec![MARK; 2 * n + n / 2]);
