//! Reductions and scans of elements of finite fields: BabyBear in Montgomery form, and its extension of degree 4.
//!
//! `cargo run --release -p gpu-primitives --example field_elements`

use bytemuck::{Pod, Zeroable};
use gpu_primitives::monoid::Monoid;
use gpu_primitives::operator::{Record, map, operator};
use gpu_primitives::{Device, Error, reduce, scan, source};

/// The number of elements of the field.
const P: u32 = 0x7800_0001;

/// `2^32` modulo `P`: the number 1 in Montgomery form. And its square.
const ONE: u32 = ((1u64 << 32) % P as u64) as u32;
const SQUARE: u32 = (ONE as u64 * ONE as u64 % P as u64) as u32;

/// The number whose product with `P` is `-1` modulo `2^32`.
const INVERSE: u32 = {
    let mut inverse = 1u32;
    let mut step = 0;
    while step < 5 {
        inverse = inverse.wrapping_mul(2u32.wrapping_sub(P.wrapping_mul(inverse)));
        step += 1;
    }
    inverse.wrapping_neg()
};

/// What the field is extended by: a root of `x^4 = 11`.
const BETA: u32 = (11 * (1u64 << 32) % P as u64) as u32;

#[operator]
fn add(a: u32, b: u32) -> u32 {
    let sum = a + b;
    if sum >= P { sum - P } else { sum }
}

/// Returns `a * b / 2^32`: the product of two numbers in Montgomery form.
#[operator]
fn mul(a: u32, b: u32) -> u32 {
    let product = a as u64 * b as u64;
    let multiple = (product as u32).wrapping_mul(INVERSE);
    let reduced = ((product + multiple as u64 * P as u64) >> 32) as u32;
    if reduced >= P { reduced - P } else { reduced }
}

/// An element of the field, times `2^32`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, Record)]
struct BabyBear(u32);

impl BabyBear {
    fn new(number: u32) -> Self {
        Self(mul(number % P, SQUARE))
    }

    fn number(self) -> u32 {
        mul(self.0, 1)
    }
}

/// An element of the extension: `c[0] + c[1] x + c[2] x^2 + c[3] x^3`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, Record)]
struct Extended {
    c: [u32; 4],
}

/// A row of a matrix. As one element it is read in one piece, and all columns are summed in one pass.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, Record)]
struct Row {
    columns: [u32; 8],
}

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct FieldSum;

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct FieldProduct;

// All of these are exact, and the order of the elements makes no difference.
#[operator]
impl Monoid<BabyBear> for FieldSum {
    const EXACT: bool = true;
    const COMMUTATIVE: bool = true;

    fn identity(&self) -> BabyBear {
        BabyBear(0)
    }

    fn combine(&self, a: BabyBear, b: BabyBear) -> BabyBear {
        BabyBear(add(a.0, b.0))
    }
}

#[operator]
impl Monoid<BabyBear> for FieldProduct {
    const EXACT: bool = true;
    const COMMUTATIVE: bool = true;

    fn identity(&self) -> BabyBear {
        BabyBear(ONE)
    }

    fn combine(&self, a: BabyBear, b: BabyBear) -> BabyBear {
        BabyBear(mul(a.0, b.0))
    }
}

#[operator]
impl Monoid<Extended> for FieldSum {
    const EXACT: bool = true;
    const COMMUTATIVE: bool = true;

    fn identity(&self) -> Extended {
        Extended { c: [0, 0, 0, 0] }
    }

    fn combine(&self, a: Extended, b: Extended) -> Extended {
        let mut c = [0u32, 0, 0, 0];
        for i in 0..4 {
            c[i] = add(a.c[i], b.c[i]);
        }
        Extended { c }
    }
}

#[operator]
impl Monoid<Extended> for FieldProduct {
    const EXACT: bool = true;
    const COMMUTATIVE: bool = true;

    fn identity(&self) -> Extended {
        Extended { c: [ONE, 0, 0, 0] }
    }

    fn combine(&self, a: Extended, b: Extended) -> Extended {
        let mut c = [0u32, 0, 0, 0];
        for i in 0..4 {
            for j in 0..4 {
                let product = mul(a.c[i], b.c[j]);
                // x^4 is 11.
                if i + j < 4 {
                    c[i + j] = add(c[i + j], product);
                } else {
                    c[i + j - 4] = add(c[i + j - 4], mul(BETA, product));
                }
            }
        }
        Extended { c }
    }
}

#[operator]
impl Monoid<Row> for FieldSum {
    const EXACT: bool = true;
    const COMMUTATIVE: bool = true;

    fn identity(&self) -> Row {
        Row { columns: [0, 0, 0, 0, 0, 0, 0, 0] }
    }

    fn combine(&self, a: Row, b: Row) -> Row {
        let mut columns = [0u32, 0, 0, 0, 0, 0, 0, 0];
        for i in 0..8 {
            columns[i] = add(a.columns[i], b.columns[i]);
        }
        Row { columns }
    }
}

/// The same field without Montgomery form, to check against.
mod plain {
    use super::P;

    pub fn add(a: u32, b: u32) -> u32 {
        ((u64::from(a) + u64::from(b)) % u64::from(P)) as u32
    }

    pub fn mul(a: u32, b: u32) -> u32 {
        (u64::from(a) * u64::from(b) % u64::from(P)) as u32
    }

    pub fn mul_extended(a: [u32; 4], b: [u32; 4]) -> [u32; 4] {
        let mut long = [0; 7];
        for (i, &a) in a.iter().enumerate() {
            for (j, &b) in b.iter().enumerate() {
                long[i + j] = add(long[i + j], mul(a, b));
            }
        }
        std::array::from_fn(|i| if i < 3 { add(long[i], mul(11, long[i + 4])) } else { long[i] })
    }
}

fn main() -> Result<(), Error> {
    let len = 100_003;
    // Not 0, whose products would be 0.
    let numbers: Vec<u32> = (0..len as u32).map(|i| i.wrapping_mul(2_654_435_761) % (P - 1) + 1).collect();
    let extended: Vec<[u32; 4]> = (0..len / 4).map(|i| std::array::from_fn(|j| numbers[4 * i + j])).collect();
    let elements: Vec<BabyBear> = numbers.iter().map(|&number| BabyBear::new(number)).collect();
    let in_extension = |c: &[u32; 4]| Extended { c: std::array::from_fn(|i| BabyBear::new(c[i]).0) };
    let numbers_of = |element: Extended| -> [u32; 4] { std::array::from_fn(|i| BabyBear(element.c[i]).number()) };
    assert!(elements.iter().zip(&numbers).all(|(element, &number)| element.number() == number));

    let stream = Device::default()?.stream()?;
    let on_device = stream.upload(&elements)?;
    let extended_on_device = stream.upload(&extended.iter().map(in_extension).collect::<Vec<_>>())?;

    // Sums and products of all elements.
    let sum = reduce::reduce(&stream, &on_device, FieldSum)?.get(&stream)?.number();
    assert_eq!(sum, numbers.iter().copied().fold(0, plain::add));
    let product = reduce::reduce(&stream, &extended_on_device, FieldProduct)?.get(&stream)?;
    let expected = extended.iter().copied().fold([1, 0, 0, 0], plain::mul_extended);
    assert_eq!(numbers_of(product), expected);
    // An inner product: a source multiplies as it is read.
    let square = source::map(&on_device, map!(|a: BabyBear| -> BabyBear { BabyBear(mul(a.0, a.0)) }));
    let squares = reduce::reduce(&stream, square, FieldSum)?.get(&stream)?.number();
    assert_eq!(squares, numbers.iter().fold(0, |sum, &x| plain::add(sum, plain::mul(x, x))));

    // Running products, as grand products need them, and by segments.
    let mut running = stream.uninit::<BabyBear>(len)?;
    scan::inclusive(&stream, &on_device, &mut running, FieldProduct)?;
    let mut expected = 1;
    for (found, &number) in running.to_vec(&stream)?.iter().zip(&numbers) {
        expected = plain::mul(expected, number);
        assert_eq!(found.number(), expected);
    }
    let mut running = stream.uninit::<Extended>(extended.len())?;
    scan::inclusive(&stream, &extended_on_device, &mut running, FieldProduct)?;
    let mut expected = [1, 0, 0, 0];
    for (found, &element) in running.to_vec(&stream)?.iter().zip(&extended) {
        expected = plain::mul_extended(expected, element);
        assert_eq!(numbers_of(*found), expected);
    }
    let offsets: Vec<u32> = (0..=len as u32 / 100).map(|i| i * i % 100 + 100 * i).chain([len as u32]).collect();
    let (offsets_on_device, mut sums) = (stream.upload(&offsets)?, stream.uninit::<BabyBear>(offsets.len() - 1)?);
    reduce::segmented(&stream, &on_device, &offsets_on_device, &mut sums, FieldSum)?;
    for (found, range) in sums.to_vec(&stream)?.iter().zip(offsets.windows(2)) {
        let segment = &numbers[range[0] as usize..range[1] as usize];
        assert_eq!(found.number(), segment.iter().copied().fold(0, plain::add));
    }

    // The columns of a matrix of eight columns.
    let rows: Vec<Row> =
        elements.chunks_exact(8).map(|row| Row { columns: std::array::from_fn(|column| row[column].0) }).collect();
    let sums = reduce::reduce(&stream, &stream.upload(&rows)?, FieldSum)?.get(&stream)?;
    for (column, &found) in sums.columns.iter().enumerate() {
        let numbers = numbers.chunks_exact(8).map(|row| row[column]);
        assert_eq!(BabyBear(found).number(), numbers.fold(0, plain::add), "column {column}");
    }
    println!("{len} elements of BabyBear, {} of its extension, on {}", extended.len(), stream.device().name());
    println!("their sum is {sum}, that of their squares {squares}");
    Ok(())
}
