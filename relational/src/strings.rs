//! Strings: as numbers of words, and as bytes.

use crate::Column;
use crate::column::{expect_len, valid_at};
use crate::rows::{Rows, expect_rows};
use bytemuck::Pod;
use gpu_primitives::operator::{map, monoid};
use gpu_primitives::scan::{self, Sum};
use gpu_primitives::source::{at, counting, map as mapped, map2};
use gpu_primitives::{DeviceVec, Error, Stream, reduce, runs, transform};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// A column of strings, each the number of a word in a sorted list: equal strings have equal numbers, and the numbers are ordered as
/// the strings are. The words are on the host.
///
/// ```
/// use gpu_primitives::operator::predicate;
/// use gpu_primitives::{Device, Error};
/// use gpu_relational::{Strings, filter};
///
/// let stream = &Device::default()?.stream()?;
/// let colours = Strings::upload(stream, ["red", "blue", "red", "green"])?;
/// // A test of words runs once for each word, on the host.
/// let matches = colours.test(stream, |word| word.ends_with('e'))?;
/// assert_eq!(filter(stream, &matches, predicate!(|is: u8| is != 0))?.to_vec(stream)?, [1]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct Strings {
    codes: Column<u32>,
    words: Arc<[String]>,
}

impl Strings {
    /// Makes a column of strings of the host.
    ///
    /// # Errors
    /// Same as [`Column::upload`].
    pub fn upload<'a>(stream: &Stream, strings: impl IntoIterator<Item = &'a str>) -> Result<Self, Error> {
        let strings: Vec<&str> = strings.into_iter().collect();
        let words: BTreeSet<&str> = strings.iter().copied().collect();
        let codes: HashMap<&str, u32> = words.iter().copied().zip(0..).collect();
        let codes: Vec<u32> = strings.iter().map(|string| codes[string]).collect();
        Ok(Self { codes: Column::upload(stream, &codes)?, words: words.into_iter().map(String::from).collect() })
    }

    /// Makes a column of strings and nulls of the host.
    ///
    /// # Errors
    /// Same as [`Column::upload`].
    pub fn upload_optional<'a>(
        stream: &Stream,
        strings: impl IntoIterator<Item = Option<&'a str>>,
    ) -> Result<Self, Error> {
        let strings: Vec<Option<&str>> = strings.into_iter().collect();
        let words: BTreeSet<&str> = strings.iter().copied().flatten().collect();
        let codes: HashMap<&str, u32> = words.iter().copied().zip(0..).collect();
        let codes: Vec<Option<u32>> = strings.iter().map(|string| string.map(|string| codes[string])).collect();
        let codes = Column::upload_optional(stream, &codes)?;
        Ok(Self { codes, words: words.into_iter().map(String::from).collect() })
    }

    /// Returns the numbers of the words.
    #[must_use]
    pub fn codes(&self) -> &Column<u32> {
        &self.codes
    }

    /// Returns the words in ascending order, also those of which [`Rows::take`] left no row.
    #[must_use]
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// Returns the number of a word; `None` if it is not one of the [words](Self::words). These are the words that the column was made
    /// with: after [`Rows::take`], no row may be left that has one.
    #[must_use]
    pub fn code_of(&self, word: &str) -> Option<u32> {
        self.words.binary_search_by(|other| other.as_str().cmp(word)).ok().map(|code| code as u32)
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.codes.len()
    }

    /// Returns whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.codes.is_empty()
    }

    /// Returns for each row whether its word passes: 1 or 0. A null gives null. The test runs once for each word, on the host.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; any error of a copy or a launch.
    pub fn test(&self, stream: &Stream, test: impl Fn(&str) -> bool) -> Result<Column<u8>, Error> {
        self.map(stream, |word| u8::from(test(word)))
    }

    /// Returns for each row what a function makes of its word. A null gives null. The function runs once for each word, on the host.
    ///
    /// ```
    /// use gpu_primitives::{Device, Error};
    /// use gpu_relational::Strings;
    ///
    /// let stream = &Device::default()?.stream()?;
    /// let sizes = Strings::upload(stream, ["LG BOX", "SM BAG", "LG BOX"])?;
    /// let litres = sizes.map(stream, |word| if word.starts_with("LG") { 50u32 } else { 5 })?;
    /// assert_eq!(litres.to_vec(stream)?, [50, 5, 50]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`test`](Self::test).
    pub fn map<T: Pod>(&self, stream: &Stream, function: impl Fn(&str) -> T) -> Result<Column<T>, Error> {
        let of_words: Vec<T> = self.words.iter().map(|word| function(word)).collect();
        let of_rows = Column::compute(stream, at(&stream.upload(&of_words)?, &self.codes))?;
        of_rows.and_valid(stream, &self.codes)?.with_zeros(stream)
    }

    /// Returns this column with the words of another one, so that both can be compared: a key of a join. A string that the other one does
    /// not have becomes null.
    ///
    /// # Errors
    /// Same as [`test`](Self::test).
    pub fn recode(&self, stream: &Stream, other: &Self) -> Result<Self, Error> {
        let codes: Vec<Option<u32>> = self.words.iter().map(|word| other.code_of(word)).collect();
        let codes = Column::upload_optional(stream, &codes)?;
        let rows = Rows::new(transform::collect(stream, &self.codes)?)?;
        let codes = codes.take(stream, &rows)?.and_valid(stream, &self.codes)?.with_zeros(stream)?;
        Ok(Self { codes, words: other.words.clone() })
    }

    /// Copies the strings to the host. Waits.
    ///
    /// # Errors
    /// Any error of the copy.
    pub fn to_options(&self, stream: &Stream) -> Result<Vec<Option<&str>>, Error> {
        let word = |code: Option<u32>| code.and_then(|code| self.words.get(code as usize)).map(String::as_str);
        Ok(self.codes.to_options(stream)?.into_iter().map(word).collect())
    }

    pub(crate) fn take(&self, stream: &Stream, rows: &Rows) -> Result<Self, Error> {
        Ok(Self { codes: self.codes.take(stream, rows)?, words: self.words.clone() })
    }
}

/// A column of strings as bytes, one after the other: for those that are nearly all different.
///
/// ```
/// use gpu_primitives::operator::predicate;
/// use gpu_primitives::{Device, Error};
/// use gpu_relational::{Text, filter};
///
/// let stream = &Device::default()?.stream()?;
/// let notes = Text::upload(stream, ["packed with care", "special for a request", "a request: special"])?;
/// let matches = notes.like(stream, "%special%request%")?;
/// assert_eq!(filter(stream, &matches, predicate!(|is: u8| is != 0))?.to_vec(stream)?, [1]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct Text {
    /// One more than rows.
    offsets: DeviceVec<u64>,
    bytes: DeviceVec<u8>,
    valid: Option<DeviceVec<u8>>,
}

impl Text {
    /// Makes a column of strings of the host.
    ///
    /// # Errors
    /// Same as [`Column::upload`].
    pub fn upload<'a>(stream: &Stream, strings: impl IntoIterator<Item = &'a str>) -> Result<Self, Error> {
        let (mut offsets, mut bytes) = (vec![0u64], Vec::new());
        for string in strings {
            bytes.extend_from_slice(string.as_bytes());
            offsets.push(bytes.len() as u64);
        }
        expect_rows(offsets.len() - 1)?;
        Ok(Self { offsets: stream.upload(&offsets)?, bytes: stream.upload(&bytes)?, valid: None })
    }

    /// Copies strings and nulls of the host into a new column.
    ///
    /// # Errors
    /// Same as [`Column::upload`].
    pub fn upload_optional<'a>(
        stream: &Stream,
        strings: impl IntoIterator<Item = Option<&'a str>>,
    ) -> Result<Self, Error> {
        let strings: Vec<Option<&str>> = strings.into_iter().collect();
        let valid: Vec<u8> = strings.iter().map(|string| string.is_some().into()).collect();
        let column = Self::upload(stream, strings.into_iter().map(Option::unwrap_or_default))?;
        Ok(Self { valid: Some(stream.upload(&valid)?), ..column })
    }

    /// Returns strings of these bytes, which begin at these offsets: from 0 to the number of bytes, in ascending order.
    #[cfg(feature = "arrow")]
    pub(crate) fn of_parts(
        offsets: DeviceVec<u64>,
        bytes: DeviceVec<u8>,
        valid: Option<DeviceVec<u8>>,
    ) -> Result<Self, Error> {
        expect_rows(offsets.len() - 1)?;
        Ok(Self { offsets, bytes, valid })
    }

    /// Returns where the strings begin, their bytes, and which are valid.
    #[cfg(feature = "arrow")]
    pub(crate) fn parts(&self) -> (&DeviceVec<u64>, &DeviceVec<u8>, Option<&DeviceVec<u8>>) {
        (&self.offsets, &self.bytes, self.valid.as_ref())
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Returns whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns byte `index` of each string; 0 behind its end.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; any launch error.
    pub fn byte(&self, stream: &Stream, index: u32) -> Result<Column<u8>, Error> {
        let (starts, ends) = (self.offsets.slice(..self.len())?, self.offsets.slice(1..)?);
        // Beyond all bytes, a source has zeros.
        let position = map!(index: u64 = index.into(); |start: u64, end: u64| -> u64 {
            if start + index < end { start + index } else { 0xFFFF_FFFF_FFFF_FFFF }
        });
        let column = Column::compute(stream, at(&self.bytes, map2(starts, ends, position)))?;
        self.with_nulls(stream, column)
    }

    /// Returns for each row whether it matches a pattern, as SQL has them: 1 or 0. `%` is any string, and `_` any byte. A null gives
    /// null.
    ///
    /// # Errors
    /// [`Error::InvalidOption`] if the pattern needs an automaton of more than 25 states, which is about its length;
    /// [`Error::OutOfMemory`]; any launch error.
    pub fn like(&self, stream: &Stream, pattern: &str) -> Result<Column<u8>, Error> {
        let automaton = Automaton::new(pattern.as_bytes()).ok_or_else(|| Error::InvalidOption {
            what: "a pattern of `like`",
            asked: pattern.into(),
            allowed: "one whose automaton has up to 25 states",
        })?;
        let column = if automaton.next.len() <= FEW_STATES {
            self.run_few(stream, &automaton)?
        } else {
            self.run_many(stream, &automaton)?
        };
        self.with_nulls(stream, column)
    }

    /// Runs an automaton of up to [`FEW_STATES`].
    fn run_few(&self, stream: &Stream, automaton: &Automaton) -> Result<Column<u8>, Error> {
        let steps: Vec<u64> = automaton.steps(4).map(|step| step as u64).collect();
        // What a string does to all states at once is the composition of what its bytes do.
        let compose = monoid!(exact; 0xFEDC_BA98_7654_3210, |a: u64, b: u64| {
            let mut composed = 0u64;
            for state in 0..16 {
                let between = (a >> (4 * state as u32)) & 15;
                let after = (b >> ((4 * between) as u32)) & 15;
                composed |= after << (4 * state as u32);
            }
            composed
        });
        let steps = stream.upload(&steps)?;
        let of_bytes = at(&steps, mapped(&self.bytes, map!(|byte: u8| -> u32 { byte as u32 })));
        let mut of_rows = stream.uninit::<u64>(self.len())?;
        reduce::segmented(stream, of_bytes, &self.offsets, &mut of_rows, compose)?;
        let accepts = map!(accepting: u32 = automaton.accepting; |steps: u64| -> u8 {
            ((accepting >> ((steps & 15) as u32)) & 1) as u8
        });
        Column::compute(stream, mapped(&of_rows, accepts))
    }

    /// Runs an automaton of up to [`MOST_STATES`]: the same with more bits, which takes about four times as long.
    fn run_many(&self, stream: &Stream, automaton: &Automaton) -> Result<Column<u8>, Error> {
        let steps: Vec<u128> = automaton.steps(5).collect();
        let compose = monoid!(exact; 0x18BD_AB49_CA30_7B9A_C5A9_2839_8A41_8820, |a: u128, b: u128| {
            let mut composed = 0u128;
            for state in 0..25 {
                let between = ((a >> (5 * state as u32)) as u32) & 31;
                let after = (b >> (5 * between)) & 31;
                composed |= after << (5 * state as u32);
            }
            composed
        });
        let steps = stream.upload(&steps)?;
        let of_bytes = at(&steps, mapped(&self.bytes, map!(|byte: u8| -> u32 { byte as u32 })));
        let mut of_rows = stream.uninit::<u128>(self.len())?;
        reduce::segmented(stream, of_bytes, &self.offsets, &mut of_rows, compose)?;
        let accepts = map!(accepting: u32 = automaton.accepting; |steps: u128| -> u8 {
            ((accepting >> ((steps as u32) & 31)) & 1) as u8
        });
        Column::compute(stream, mapped(&of_rows, accepts))
    }

    fn with_nulls(&self, stream: &Stream, column: Column<u8>) -> Result<Column<u8>, Error> {
        let Some(valid) = &self.valid else { return Ok(column) };
        let (values, _) = column.into_parts();
        Column::with_valid(values, valid.try_clone(stream)?)?.with_zeros(stream)
    }

    /// Copies the strings to the host. Waits. Bytes that are not UTF-8 are replaced.
    ///
    /// # Errors
    /// Any error of the copy.
    pub fn to_options(&self, stream: &Stream) -> Result<Vec<Option<String>>, Error> {
        let (offsets, bytes) = (self.offsets.to_vec(stream)?, self.bytes.to_vec(stream)?);
        let valid = self.valid.as_ref().map(|valid| valid.to_vec(stream)).transpose()?;
        let string = |row: usize| String::from_utf8_lossy(&bytes[offsets[row] as usize..offsets[row + 1] as usize]);
        let is_valid = |row: usize| valid.as_ref().is_none_or(|valid| valid[row] != 0);
        Ok((0..self.len()).map(|row| is_valid(row).then(|| string(row).into_owned())).collect())
    }

    /// Returns the strings at rows. Waits for the number of their bytes.
    pub(crate) fn take(&self, stream: &Stream, rows: &Rows) -> Result<Self, Error> {
        rows.expect_in(self.len())?;
        let (starts, ends) = (self.offsets.slice(..self.len())?, self.offsets.slice(1..)?);
        let starts = transform::collect(stream, at(starts, rows.positions()))?;
        let lengths = map2(at(ends, rows.positions()), &starts, map!(|end: u64, start: u64| -> u64 { end - start }));
        let lengths = transform::collect(stream, lengths)?;
        let mut offsets = stream.zeroed::<u64>(rows.len() + 1)?;
        scan::inclusive(stream, &lengths, offsets.slice_mut(1..)?, Sum)?;
        let total = gpu_len(stream, &offsets)?;
        // The row of each byte, and how far the byte has moved.
        let mut row = stream.uninit::<u32>(total)?;
        let numbers = transform::collect(stream, counting(0u32, rows.len()))?;
        runs::run_length_decode(stream, (&numbers, &lengths), &mut row)?;
        let moved =
            map2(&starts, offsets.slice(..rows.len())?, map!(|from: u64, to: u64| -> u64 { from.wrapping_sub(to) }));
        let moved = transform::collect(stream, moved)?;
        let from =
            map2(at(&moved, &row), counting(0u64, total), map!(|moved: u64, i: u64| -> u64 { moved.wrapping_add(i) }));
        let bytes = transform::collect(stream, at(&self.bytes, from))?;
        let valid = valid_at(stream, self.valid.as_ref().map(DeviceVec::as_slice), self.len(), rows)?;
        expect_len("the rows of a text", rows.len(), offsets.len() - 1)?;
        Ok(Self { offsets, bytes, valid })
    }
}

/// Returns the last element. Waits.
fn gpu_len(stream: &Stream, offsets: &DeviceVec<u64>) -> Result<usize, Error> {
    Ok(offsets.slice(offsets.len() - 1..)?.to_vec(stream)?[0] as usize)
}

/// The states that fit into 64 bits, with 4 bits for each.
const FEW_STATES: usize = 16;

/// The states that fit into 128 bits, with 5 bits for each.
const MOST_STATES: usize = 25;

/// A deterministic automaton of up to [`MOST_STATES`]. It begins in state 0.
struct Automaton {
    /// For each state, the next state after each byte.
    next: Vec<[u8; 256]>,
    /// A bit for each state: whether a string may end there.
    accepting: u32,
}

impl Automaton {
    /// Returns the automaton of a pattern; `None` if it has more states.
    fn new(pattern: &[u8]) -> Option<Self> {
        // A state is the set of the places in the pattern that the string so far may have reached.
        let places = pattern.len() + 1;
        let closed = |mut set: Vec<bool>| {
            for place in 0..pattern.len() {
                if set[place] && pattern[place] == b'%' {
                    set[place + 1] = true;
                }
            }
            // After `%` that ends the pattern nothing matters any more.
            if pattern.last() == Some(&b'%') && set[places - 1] {
                set[..places - 1].fill(false);
                set[places - 2] = true;
            }
            // What was possible before a `%` that has been reached adds nothing.
            if let Some(reached) = (0..pattern.len()).rfind(|&place| set[place] && pattern[place] == b'%') {
                set[..reached].fill(false);
            }
            set
        };
        let mut states = vec![closed((0..places).map(|place| place == 0).collect())];
        let mut steps: Vec<[u8; 256]> = Vec::new();
        while steps.len() < states.len() {
            let (done, mut of_state) = (steps.len(), [0u8; 256]);
            for byte in 0..=255u8 {
                let mut next = vec![false; places];
                for place in (0..pattern.len()).filter(|&place| states[done][place]) {
                    match pattern[place] {
                        b'%' => next[place] = true,
                        expected => next[place + 1] |= expected == byte || expected == b'_',
                    }
                }
                let next = closed(next);
                let number = states.iter().position(|state| *state == next).unwrap_or_else(|| {
                    states.push(next);
                    states.len() - 1
                });
                if number >= MOST_STATES {
                    return None;
                }
                of_state[usize::from(byte)] = number as u8;
            }
            steps.push(of_state);
        }
        let accepting =
            (0..states.len()).filter(|&state| states[state][places - 1]).fold(0, |bits, state| bits | 1 << state);
        Some(Self { next: steps, accepting })
    }

    /// Returns for each byte the next state of each state, in so many bits each.
    fn steps(&self, bits: usize) -> impl Iterator<Item = u128> + '_ {
        let step = move |byte: usize, state: usize| u128::from(self.next[state][byte]) << (bits * state);
        (0..256).map(move |byte| (0..self.next.len()).fold(0, |steps, state| steps | step(byte, state)))
    }
}
