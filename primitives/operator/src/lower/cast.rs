//! Casts.

use super::{Low, Lowering, machine};
use crate::Kind;
use crate::graph::{Id, Op};

impl Lowering<'_> {
    pub(super) fn cast(&mut self, from: Kind, to: Kind, value: Low) -> Low {
        #[cfg(feature = "half")]
        if from.is_half() || to.is_half() {
            return Low::One(self.cast_half(from, to, value.one()));
        }
        if from == Kind::Bool {
            let [one, zero] = [1, 0].map(|value| self.literal(to, value));
            return match (one, zero) {
                (Low::One(one), Low::One(zero)) => Low::One(self.select(value.one(), one, zero)),
                (one, zero) => {
                    let low = self.select(value.one(), one.pair()[0], zero.pair()[0]);
                    Low::Pair([low, zero.pair()[1]])
                }
            };
        }
        if from.is_float() || to.is_float() {
            let value = value.one();
            let converted = match to.is_float() {
                true => self.graph.add(Op::Cast, to, &[value]),
                false => self.float_to_integer(from, to, value),
            };
            return Low::One(converted);
        }
        if to.is_wide() {
            return self.widen(from, value);
        }
        let source = match value {
            Low::One(id) => id,
            Low::Pair([low, _]) => low,
        };
        let result = self.graph.add(Op::Cast, machine(to), &[source]);
        let fits = from.bits() < to.bits() && (!from.is_signed() || to.is_signed());
        Low::One(if fits { result } else { self.normalise(to, result) })
    }

    /// Extends an integer to 128 bits by its sign.
    fn widen(&mut self, from: Kind, value: Low) -> Low {
        let Low::One(value) = value else { return value };
        let low = self.graph.add(Op::Cast, Kind::U64, &[value]);
        let high = if from.is_signed() {
            let signed = self.graph.add(Op::Cast, Kind::I64, &[value]);
            let sign = self.shift(Op::Shr, signed, 63);
            self.graph.add(Op::Cast, Kind::U64, &[sign])
        } else {
            self.graph.constant(Kind::U64, 0)
        };
        Low::Pair([low, high])
    }

    /// PTX clamps to the range of the integer. A NaN becomes 0 only if both types have 32 bits.
    fn float_to_integer(&mut self, from: Kind, to: Kind, value: Id) -> Id {
        let kind = machine(to);
        let mut result = self.graph.add(Op::Cast, kind, &[value]);
        if to.bits() < 32 {
            let (Low::One(smallest), Low::One(largest)) = (
                self.literal(to, if to.is_signed() { 1 << (to.bits() - 1) } else { 0 }),
                self.literal(to, if to.is_signed() { to.mask() >> 1 } else { to.mask() }),
            ) else {
                unreachable!("8 and 16 bits are one register")
            };
            result = self.graph.add(Op::Min, kind, &[result, largest]);
            if to.is_signed() {
                result = self.graph.add(Op::Max, kind, &[result, smallest]);
            }
        }
        if from.bits() == 64 || to.bits() == 64 {
            let is_nan = self.graph.add(Op::Ne, Kind::Bool, &[value, value]);
            let zero = self.graph.constant(kind, 0);
            result = self.select(is_nan, zero, result);
        }
        result
    }

    /// Converts between `f32` and the bits of a 16-bit float.
    #[cfg(feature = "half")]
    fn cast_half(&mut self, from: Kind, to: Kind, value: Id) -> Id {
        match (from, to) {
            (Kind::F16, Kind::F32) => self.graph.add(Op::FromF16, Kind::F32, &[value]),
            (Kind::F32, Kind::F16) => self.graph.add(Op::ToF16, Kind::U32, &[value]),
            (Kind::Bf16, Kind::F32) => {
                let bits = self.shift(Op::Shl, value, 16);
                self.graph.add(Op::Bits, Kind::F32, &[bits])
            }
            (Kind::F32, Kind::Bf16) => {
                let bits = self.graph.add(Op::Bits, Kind::U32, &[value]);
                // Rounds to nearest, ties to even: half of the last place minus one, plus the last bit.
                let cut = self.shift(Op::Shr, bits, 16);
                let [one, half, quiet] = [1, 0x7fff, 0x40].map(|value| self.graph.constant(Kind::U32, value));
                let odd = self.graph.add(Op::And, Kind::U32, &[cut, one]);
                let sum = self.graph.add(Op::Add, Kind::U32, &[bits, half]);
                let sum = self.graph.add(Op::Add, Kind::U32, &[sum, odd]);
                let rounded = self.shift(Op::Shr, sum, 16);
                let nan = self.graph.add(Op::Or, Kind::U32, &[cut, quiet]);
                let is_nan = self.graph.add(Op::Ne, Kind::Bool, &[value, value]);
                self.select(is_nan, nan, rounded)
            }
            _ => unreachable!("a cast from {from:?} to {to:?}"),
        }
    }
}
