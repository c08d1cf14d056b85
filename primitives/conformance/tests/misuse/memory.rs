//! The operands of a call: device memory between margins that must not change.

use bytemuck::Pod;
use gpu_primitives::sort::Side;
use gpu_primitives::{DeviceSlice, DeviceSliceMut, DeviceValue, DeviceVec, Error, Stream};

/// The elements of a margin. An odd number: operands begin at addresses that are aligned to an element and to no more.
const MARGIN: usize = 1021;

/// What margins are made of, and outputs before a call.
pub const MARK: u64 = 0xfe_2ced;

/// An element whose size is not a power of two.
pub type Odd = [u8; 3];

/// An element that a number can be made into.
pub trait Element: Pod {
    fn of(number: u64) -> Self;
    fn number(self) -> u64;
}

impl Element for u8 {
    fn of(number: u64) -> Self {
        number as Self
    }
    fn number(self) -> u64 {
        self.into()
    }
}

impl Element for u32 {
    fn of(number: u64) -> Self {
        number as Self
    }
    fn number(self) -> u64 {
        self.into()
    }
}

impl Element for u64 {
    fn of(number: u64) -> Self {
        number
    }
    fn number(self) -> u64 {
        self
    }
}

impl Element for Odd {
    fn of(number: u64) -> Self {
        [number as u8, (number >> 8) as u8, (number >> 16) as u8]
    }
    fn number(self) -> u64 {
        u64::from(self[0]) | u64::from(self[1]) << 8 | u64::from(self[2]) << 16
    }
}

/// Memory between two margins.
pub struct Fenced<T: Pod> {
    memory: DeviceVec<T>,
    len: usize,
}

impl<T: Element> Fenced<T> {
    pub fn new(stream: &Stream, contents: &[u64]) -> Self {
        let margin = [MARK; MARGIN];
        let all: Vec<T> = margin.iter().chain(contents).chain(&margin).map(|&number| T::of(number)).collect();
        Self { memory: stream.upload(&all).unwrap(), len: contents.len() }
    }

    pub fn slice(&self) -> DeviceSlice<'_, T> {
        self.memory.slice(MARGIN..MARGIN + self.len).unwrap()
    }

    pub fn slice_mut(&mut self) -> DeviceSliceMut<'_, T> {
        self.memory.slice_mut(MARGIN..MARGIN + self.len).unwrap()
    }

    /// Returns the contents. Fails if a margin has changed.
    fn read(&self, stream: &Stream, when: &str) -> Vec<u64> {
        let all: Vec<u64> = self.memory.to_vec(stream).unwrap().into_iter().map(T::number).collect();
        let (contents, mark) = (MARGIN..MARGIN + self.len, T::of(MARK).number());
        let touched = (0..all.len()).filter(|i| !contents.contains(i)).find(|&i| all[i] != mark);
        if let Some(at) = touched {
            let (at, len) = (at as isize - MARGIN as isize, self.len);
            panic!("{when}: element {at} of an operand of {len} was written");
        }
        all[contents].to_vec()
    }
}

/// The type of an operand's elements.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Words,
    Longs,
    Bytes,
    Odd,
}

impl Kind {
    /// Returns the largest number that an element can hold.
    pub const fn largest(self) -> u64 {
        match self {
            Self::Words => u32::MAX as u64,
            Self::Longs => u64::MAX,
            Self::Bytes => u8::MAX as u64,
            Self::Odd => 0xff_ffff,
        }
    }
}

/// An operand.
pub enum Memory {
    Words(Fenced<u32>),
    Longs(Fenced<u64>),
    Bytes(Fenced<u8>),
    Odd(Fenced<Odd>),
}

macro_rules! accessors {
    ($($variant:ident $type:ty: $read:ident $write:ident;)*) => { $(
        pub fn $read(&self) -> DeviceSlice<'_, $type> {
            let Self::$variant(memory) = self else { panic!("an operand of another type") };
            memory.slice()
        }

        pub fn $write(&mut self) -> DeviceSliceMut<'_, $type> {
            let Self::$variant(memory) = self else { panic!("an operand of another type") };
            memory.slice_mut()
        }
    )* };
}

impl Memory {
    pub fn new(stream: &Stream, kind: Kind, contents: &[u64]) -> Self {
        match kind {
            Kind::Words => Self::Words(Fenced::new(stream, contents)),
            Kind::Longs => Self::Longs(Fenced::new(stream, contents)),
            Kind::Bytes => Self::Bytes(Fenced::new(stream, contents)),
            Kind::Odd => Self::Odd(Fenced::new(stream, contents)),
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Self::Words(memory) => memory.len,
            Self::Longs(memory) => memory.len,
            Self::Bytes(memory) => memory.len,
            Self::Odd(memory) => memory.len,
        }
    }

    /// Returns the contents. Fails if a margin has changed.
    pub fn read(&self, stream: &Stream, when: &str) -> Vec<u64> {
        match self {
            Self::Words(memory) => memory.read(stream, when),
            Self::Longs(memory) => memory.read(stream, when),
            Self::Bytes(memory) => memory.read(stream, when),
            Self::Odd(memory) => memory.read(stream, when),
        }
    }

    accessors! {
        Words u32: words words_mut;
        Longs u64: longs longs_mut;
        Bytes u8: bytes bytes_mut;
        Odd Odd: odd odd_mut;
    }
}

/// What a call returns.
pub enum Answer {
    Nothing,
    Word(DeviceValue<u32>),
    Long(DeviceValue<u64>),
    Words(DeviceVec<u32>),
    Longs(DeviceVec<u64>),
    Side(Side),
}

impl Answer {
    pub fn read(&self, stream: &Stream) -> Result<Vec<u64>, Error> {
        Ok(match self {
            Self::Nothing => vec![],
            Self::Word(value) => vec![value.get(stream)?.into()],
            Self::Long(value) => vec![value.get(stream)?],
            Self::Words(vector) => vector.to_vec(stream)?.into_iter().map(u64::from).collect(),
            Self::Longs(vector) => vector.to_vec(stream)?,
            Self::Side(side) => vec![u64::from(*side == Side::Second)],
        })
    }
}

macro_rules! answers {
    ($($type:ty: $value:ident => $answer:expr;)*) => { $(
        impl From<$type> for Answer {
            fn from($value: $type) -> Self {
                $answer
            }
        }
    )* };
}

answers! {
    (): _nothing => Self::Nothing;
    DeviceValue<u32>: value => Self::Word(value);
    DeviceValue<u64>: value => Self::Long(value);
    DeviceVec<u32>: vector => Self::Words(vector);
    DeviceVec<u64>: vector => Self::Longs(vector);
    Side: side => Self::Side(side);
}
