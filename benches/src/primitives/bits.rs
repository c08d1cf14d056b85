//! Packed bits of random numbers, half of which pass.

use super::{expect, time};
use crate::data::random_u32;
use crate::session::Session;
use gpu_primitives::select::Masked;
use gpu_primitives::{Bits, bits, select};

pub(super) fn measure(session: &Session, len: usize) -> Result<(), crate::Error> {
    let stream = &session.stream;
    let host = random_u32(len as u64, len);
    let input = stream.upload(&host)?;
    let mut bytes = stream.zeroed::<u8>(len.div_ceil(8))?;
    time(session, "bits_pack", len, 4.125, || bits::pack(stream, &input, &mut bytes, Masked::equal(1, 1)))?;
    let byte = |numbers: &[u32]| numbers.iter().rev().fold(0, |bits, number| bits << 1 | (number % 2) as u8);
    expect("packed bits", &bytes.to_vec(stream)?, host.chunks(8).map(byte))?;

    let odd = Bits::new(&bytes, 0, len)?;
    let mut output = stream.zeroed::<u32>(len)?;
    time(session, "bits_positions_50pct", len, 2.125, || bits::positions(stream, odd, &mut output).map(drop))?;
    let positions = (0..len as u32).filter(|&i| host[i as usize] % 2 == 1);
    let rest = host.iter().filter(|&number| number % 2 == 0).count();
    expect("positions of bits", &output.to_vec(stream)?, positions.chain(std::iter::repeat_n(0, rest)))?;

    let mut output = stream.zeroed::<u32>(len)?;
    time(session, "select_by_bits_50pct", len, 6.125, || select::by_bits(stream, &input, odd, &mut output).map(drop))?;
    let passing = host.iter().copied().filter(|number| number % 2 == 1);
    expect("selection by bits", &output.to_vec(stream)?, passing.chain(std::iter::repeat_n(0, rest)))
}
