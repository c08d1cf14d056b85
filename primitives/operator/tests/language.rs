//! Operators written in every form that the attribute takes: the native function and the recorded one agree.

#![allow(clippy::init_numbered_fields, clippy::nonminimal_bool, reason = "unusual forms are tested too")]

use bytemuck::{Pod, Zeroable};
use gpu_operator::{Kind, Record, Recorded, operator};
use std::cmp::Ordering;

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, Record)]
struct Event {
    time: u64,
    source: u32,
    number: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, Record)]
struct Key(u32, [u16; 4], i32);

/// Has the shape of the traits whose operators are recorded.
trait Compare<T> {
    fn less(&self, a: T, b: T) -> bool;
    fn recorded() -> Recorded;
}

trait Combine<T> {
    fn identity(&self) -> T;
    fn combine(&self, a: T, b: T) -> T;
    fn recorded() -> Recorded;
}

struct InOrder;

#[operator]
impl Compare<Event> for InOrder {
    fn less(&self, a: Event, b: Event) -> bool {
        if a.time != b.time { a.time < b.time } else { a.source > b.source }
    }
}

fn events() -> Vec<Event> {
    let mut events = Vec::new();
    for time in [0, 1, u64::MAX] {
        for source in [0, 7, u32::MAX] {
            events.extend([3, 4].map(|number| Event { time, source, number }));
        }
    }
    events
}

#[test]
fn a_trait_is_recorded() {
    let recorded = InOrder::recorded();
    let less = recorded.function("less").expect("a function of this name");
    assert_eq!((less.arguments().len(), less.arguments()[0].size), (2, 16));
    assert_eq!(less.result().leaves[0].kind, Kind::Bool);
    assert!(less.state().is_none(), "the operator has no fields");
    for a in events() {
        for b in events() {
            let result = less.interpret(&[bytemuck::bytes_of(&a), bytemuck::bytes_of(&b)], &[]);
            assert_eq!(result, [u8::from(InOrder.less(a, b))], "{a:?} {b:?}");
        }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable, Record)]
struct Limited {
    low: u32,
    high: u32,
}

#[operator]
impl Limited {
    fn limit(self, x: u32) -> u32 {
        x.clamp(self.low, self.high)
    }

    fn twice(x: u32) -> u32 {
        x * 2
    }

    fn ceiling(self) -> u32 {
        self.high
    }
}

#[operator]
impl Combine<u32> for Limited {
    fn identity(&self) -> u32 {
        self.low
    }

    fn combine(&self, a: u32, b: u32) -> u32 {
        let sum = self.limit(a) + Self::twice(b) + u32::from(a == self.identity());
        sum.min(Self::CEILING) ^ Self::ceiling(*self)
    }
}

impl Limited {
    const CEILING: u32 = 0xffff_0000;
}

#[test]
fn state_is_read_and_functions_call_each_other() {
    let recorded = <Limited as Combine<u32>>::recorded();
    assert_eq!(recorded.functions().len(), 2);
    let combine = recorded.function("combine").expect("a function of this name");
    assert_eq!(combine.state().map(|state| state.size), Some(8));
    let numbers = [0, 1, 5, 100, 1 << 31, u32::MAX];
    for state in [Limited { low: 3, high: 90 }, Limited { low: 0, high: u32::MAX }, Limited { low: 9, high: 2 }] {
        for a in numbers {
            for b in numbers {
                let result = combine.interpret(&[&a.to_ne_bytes(), &b.to_ne_bytes()], bytemuck::bytes_of(&state));
                assert_eq!(result, state.combine(a, b).to_ne_bytes(), "{a} {b}");
            }
        }
    }
    assert_eq!(Limited::recorded().functions().len(), 3);
}

const TABLE: [u32; 4] = [11, 22, 33, 44];

#[operator]
fn sum(key: Key) -> u32 {
    let mut sum = 0;
    for i in 0..4 {
        let position = 3 - i;
        sum += (key.1[position] as u32) << (4 * i);
        if i != 0 {
            sum ^= TABLE[i] + key.1[i - 1] as u32;
        }
        sum = sum.rotate_left(i as u32 + 1);
    }
    for _ in (0..2).rev() {
        sum *= 3;
    }
    sum
}

#[operator]
fn class(x: i32) -> u8 {
    match x {
        0 => 1,
        1 | 2 => 2,
        3..=9 => 3,
        i32::MIN..0 => 4,
        LARGE => 6,
        other if other % 2 == 0 => 7,
        _ => 5,
    }
}

const LARGE: i32 = 1000;

mod elsewhere {
    use gpu_operator::operator;

    #[operator]
    pub fn sorted(a: u32, b: u32) -> (u32, u32) {
        (a.min(b), std::cmp::max(a, b))
    }
}

use elsewhere::sorted;

#[operator]
fn build(a: Key, x: u32, y: i32) -> Key {
    let (low, high) = sorted(x, a.0);
    let (mut s, t) = elsewhere::sorted(high, 9);
    (s, _) = (s - t, t);
    let mut made = Key(low, [1, 2, s as u16, class(y) as u16], -y);
    made.1[0] = made.1[0].wrapping_sub(7);
    made.2 -= 1;
    if low == 0 { Key { 0: 1, ..zero_key(low) } } else { made }
}

/// Stands for a function that builds a struct by names.
#[operator]
fn zero_key(x: u32) -> Key {
    Key { 0: x, 1: [0; 4], 2: 5 }
}

#[operator]
fn compare(a: Event, b: Event) -> Ordering {
    a.time.cmp(&b.time).then(b.source.cmp(&a.source)).then((a.number, 1).cmp(&(b.number, 1)))
}

#[operator]
fn rank(a: Event, b: Event) -> i8 {
    match compare(a, b).reverse() {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    }
}

#[operator]
fn before(a: (u32, f32, bool), b: (u32, f32, bool)) -> bool {
    let [x, y] = [a, b];
    (x.0, x.1) <= (y.0, y.1) && x != y || [x.0, 1] > [y.0, 2] || !(x.2 >= y.2)
}

#[operator]
fn array<const N: usize>(a: [u32; N]) -> u32 {
    let mut all: u32 = 0;
    for i in 0..N {
        all |= if a[i] > 10 { a[i] } else { 1 };
    }
    all
}

#[operator]
fn of_arrays(a: [u32; 3], b: u64) -> u32 {
    const OFFSET: u32 = 17;
    let wide = {
        let inner = b >> 3;
        inner / 5
    } as u32;
    array::<3>(a) + OFFSET + wide % (a[1] | 1) + Limited::twice(3) + Limited::limit(Limited { low: 1, high: 2 }, a[0])
}

/// Runs a recorded function.
fn run(recorded: &Recorded, arguments: &[&[u8]]) -> Vec<u8> {
    recorded.functions()[0].interpret(arguments, &[])
}

const NUMBERS: [u32; 8] = [0, 1, 2, 9, 10, 11, 0x8000_0000, u32::MAX];

#[test]
fn loops_are_unrolled() {
    let recorded = sum::recorded();
    for x in NUMBERS {
        let key = Key(x, [1, 2, x as u16, 0xffff], -4);
        assert_eq!(run(&recorded, &[bytemuck::bytes_of(&key)]), sum(key).to_ne_bytes(), "{key:?}");
    }
}

#[test]
fn matches_become_selects() {
    let recorded = class::recorded();
    for x in (-3..20).chain([i32::MIN, i32::MAX, 999, 1000, 1001]) {
        assert_eq!(run(&recorded, &[&x.to_ne_bytes()]), [class(x)], "{x}");
    }
    let recorded = rank::recorded();
    for a in events() {
        for b in events() {
            let result = run(&recorded, &[bytemuck::bytes_of(&a), bytemuck::bytes_of(&b)]);
            assert_eq!(result, rank(a, b).to_ne_bytes(), "{a:?} {b:?}");
        }
    }
}

#[test]
fn structs_are_built() {
    let recorded = build::recorded();
    for x in NUMBERS {
        for y in [0, 1, -1, 5, i32::MIN, i32::MAX] {
            for first in NUMBERS {
                let key = Key(first, [5, 6, 7, 8], 9);
                let result = run(&recorded, &[bytemuck::bytes_of(&key), &x.to_ne_bytes(), &y.to_ne_bytes()]);
                assert_eq!(result, bytemuck::bytes_of(&build(key, x, y)), "{key:?} {x} {y}");
            }
        }
    }
}

#[test]
fn orders_are_lexicographic() {
    let layout = &before::recorded().functions()[0].arguments()[0].clone();
    let bytes = |value: (u32, f32, bool)| {
        let mut bytes = vec![0; layout.size];
        let parts: [Vec<u8>; 3] = [value.0.to_ne_bytes().into(), value.1.to_ne_bytes().into(), vec![u8::from(value.2)]];
        for (leaf, part) in layout.leaves.iter().zip(parts) {
            bytes[leaf.offset..leaf.offset + part.len()].copy_from_slice(&part);
        }
        bytes
    };
    let mut tuples = Vec::new();
    for x in [0, 1, u32::MAX] {
        for y in [0.0, -0.0, 1.5, f32::NAN] {
            tuples.extend([(x, y, false), (x, y, true)]);
        }
    }
    let recorded = before::recorded();
    for a in &tuples {
        for b in &tuples {
            assert_eq!(run(&recorded, &[&bytes(*a), &bytes(*b)]), [u8::from(before(*a, *b))], "{a:?} {b:?}");
        }
    }
}

#[test]
fn generic_functions_are_called() {
    let recorded = of_arrays::recorded();
    for x in NUMBERS {
        for y in NUMBERS {
            let (a, b) = ([x, y, 3], u64::from(y) << 7);
            let result = run(&recorded, &[bytemuck::bytes_of(&a), &b.to_ne_bytes()]);
            assert_eq!(result, of_arrays(a, b).to_ne_bytes(), "{a:?} {b}");
        }
    }
}

#[test]
fn common_parts_are_recorded_once_and_constants_are_folded() {
    #[operator]
    fn squares(a: u32, b: u32) -> u32 {
        let _unused = a / b;
        (a - b) * (a - b) + (3 * 4 - 12)
    }
    // Two arguments, a difference and a product.
    assert_eq!(squares::recorded().functions()[0].nodes(), 4);
    assert_eq!(squares(2, 5), 9);
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Zeroable, Record)]
struct Pair<K, V> {
    key: K,
    value: V,
}

// SAFETY: two fields of one type leave no padding, and each is plain data.
unsafe impl<T: Pod> Pod for Pair<T, T> {}

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable, Record)]
struct Nothing;

#[test]
fn generic_structs_and_empty_ones_are_recorded() {
    #[operator]
    fn value(pair: Pair<u32, u32>) -> u32 {
        pair.value - pair.key
    }
    assert_eq!(gpu_operator::Layout::of::<Nothing>().leaves, []);
    assert_eq!(run(&value::recorded(), &[&[1, 0, 0, 0, 2, 0, 0, 0]]), 1u32.to_ne_bytes());
}

#[operator]
fn even(x: u32) -> bool {
    if x == 0 { true } else { odd(x - 1) }
}

#[operator]
fn odd(x: u32) -> bool {
    if x == 0 { false } else { even(x - 1) }
}

struct Halved;

#[operator]
impl Halved {
    fn length(x: u64) -> u32 {
        if x == 0 { 0 } else { 1 + Halved::length(x >> 1) }
    }
}

#[operator]
fn plus<const N: usize>(x: u32) -> u32 {
    x + N as u32
}

/// Calls a function several times, also inside of its own arguments.
#[operator]
fn steps(x: u32) -> u32 {
    plus::<1>(plus::<1>(plus::<2>(x)) + plus::<1>(x))
}

#[operator]
fn beyond(x: [u32; 4]) -> u32 {
    let mut sum = 0;
    for i in 0..5 {
        sum += x[i];
    }
    sum
}

/// Returns the message of the panic.
fn message<R>(f: impl FnOnce() -> R + std::panic::UnwindSafe) -> String {
    let panic = std::panic::catch_unwind(f).err().expect("a panic");
    panic.downcast_ref::<String>().cloned().or(panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap()
}

/// A function that calls itself through another one would be recorded forever.
#[test]
fn calls_that_come_back_are_refused() {
    assert!(even(8) && !odd(8) && Halved::length(9) == 4, "the functions themselves are fine");
    for _ in 0..2 {
        let text = message(odd::recorded);
        assert!(text.contains("`odd` calls itself") && text.contains("for i in 0..CONSTANT"), "{text}");
        assert!(message(Halved::recorded).contains("`length` calls itself"));
    }
    // A function may be called often, and with other constants; a panic leaves nothing behind.
    assert_eq!(steps::recorded().functions()[0].interpret(&[&5u32.to_ne_bytes()], &[]), steps(5).to_ne_bytes());
}

#[test]
fn an_index_out_of_range_is_not_recorded() {
    assert!(message(beyond::recorded).contains("the len is 4 but the index is 4"));
    assert!(message(|| beyond([1; 4])).contains("the len is 4 but the index is 4"));
}

#[operator]
fn bits_of_sum(a: f64, b: f64) -> u64 {
    let doubled = -(a + b);
    (a + b).to_bits() ^ doubled.to_bits()
}

#[operator]
fn bits_of_choice(a: f64, b: f64) -> u64 {
    (if a < b { a } else { b }).to_bits()
}

/// What an operator gives must not depend on which NaN the assembler's arithmetic yields.
#[test]
fn the_bits_of_a_computed_nan_are_known() {
    let [sum, choice] = [bits_of_sum::recorded(), bits_of_choice::recorded()];
    let [sum, choice] = [&sum, &choice].map(|recorded| recorded.functions()[0].clone());
    let nans = [0x7ff8_0000_0000_0001, 0xfff8_0000_0000_0002, 0x7ff8_0000_0000_0000u64].map(u64::to_ne_bytes);
    for a in nans {
        for b in nans {
            assert_eq!(sum.interpret(&[&a, &b], &[]), (1u64 << 63).to_ne_bytes(), "a number and its negation");
            assert_eq!(choice.interpret(&[&a, &b], &[]), b, "a NaN that is only moved stays as it is");
        }
    }
    assert_eq!(sum.interpret(&[&1f64.to_ne_bytes(), &2f64.to_ne_bytes()], &[]), bits_of_sum(1.0, 2.0).to_ne_bytes());
}

#[operator]
fn casts_of_constants(x: f32) -> f64 {
    x as f64 + ((1.0f32 + 0.5f32) as f32) as f64 + ((2.0f64 * 4.0f64) as f64)
}

#[test]
fn a_constant_may_be_cast_to_its_own_type() {
    let recorded = casts_of_constants::recorded();
    assert_eq!(recorded.functions()[0].interpret(&[&2f32.to_ne_bytes()], &[]), 11.5f64.to_ne_bytes());
}
