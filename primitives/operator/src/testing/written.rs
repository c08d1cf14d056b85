// Written by `writer.rs` from the seed 7. Do not edit.

use super::Case;
use super::operands::{Mixed, Operand, Packed, Small, Wide};
use crate::operator;
use half::{bf16, f16};

#[operator]
fn w0(a: u128, b: f64, c: Small) -> f64 {
    let v2 = 64u64.rotate_left((if ([(c.1[0] as i128), (c.1[0] as i128)] < [(c.1[0] as i128), (c.0 as i128)]) { ((c.1[1] as u32) - 5u32) } else { ({ let v1 = (c.1[0] as u32); v1 }) }));
    (-f64::from_bits(v2).clamp((b - b), (64u32 as f64)))
}

#[operator]
fn w1(a: f32, b: u8) -> u64 {
    let mut v1: i8 = (1u32.abs_diff((a as u32)).wrapping_shr((if false { (a as u32) } else { u32::MAX })) as i8);
    (((if (b == 0x4u8) { (a as f64) } else { (a as f64) }) as u64) >> ({ let v2 = ((a as u32) as i64); ({ let v3 = (a as u32); v1 }) }))
}

#[operator]
fn w2(a: i8, b: f16) -> i128 {
    let mut v1: i16 = (((a as i16) << (-47i128)) / ((a as i16) << (a as i16))).wrapping_neg();
    v1 -= ((match ((a as i32), (b >= f16::NEG_ONE)) { (0, true) => v1, (1..=99, _) => v1, (_, false) => v1, _ => v1 }) | v1.wrapping_add(33i16));
    (if (a >= (-10i8)) { ((match (v1 as u32) { u32::MAX => (v1 as i128), 2 | 64.. => (v1 as i128), 1 => (a as i128), _ => 31i128 }) >> ((v1 as u8) + u8::MAX)) } else { ((a as u8).rotate_left(0u32) as i128) })
}

#[operator]
fn w3(a: f64, b: bool, c: [i64; 2]) -> u16 {
    let v2 = u16::from(((match (a as i32) { 0 | 7 => 127u8, 8..=63 => 1u8, v1 if v1 > 70 => 8u8, _ => (b as u8) }) & (c[0] as u8).rotate_right(127u32)));
    (v2.saturating_sub((a as i16).abs_diff((c[0] as i16))) | (c[1] as u16).saturating_sub(v2).saturating_sub((v2 / v2)))
}

#[operator]
fn w4(a: u16, b: Mixed, c: [f64; 2]) -> i64 {
    let mut v1 = (c[0] as i16);
    for i in 0..=2 - 1 {
        v1 = i16::from(64u8.rotate_right(u32::MAX)) * (c[i] as i16);
        v1 = v1 << i;
    }
    let mut v2 = (u8::MAX & (b.short[1] as u8)).wrapping_mul((u128::MAX as u8));
    for i in 0..1 {
        v2 = ((v2 | v2) & ({ let v3 = (v1 as u32); v2 })) * (c[i] as u8);
        if i % 2 == 1 { v2 += (c[i] as u8); } else { v2 ^= 5; }
        v2 = v2 << i;
    }
    let mut v4 = (if f16::MAX.is_sign_negative() { b.short[1].abs_diff(b.short[0]) } else { ((a as i8) as u16) });
    for i in 0..=2 - 1 {
        v4 = ((2u64 << (v1 as i8)) as u16) - (c[i] as u16);
        v4 = v4 << i;
    }
    (b.long as i64)
}

#[operator]
fn w5(a: f32, b: [u16; 5], c: f64) -> [u32; 3] {
    let v1 = ((a as u64).wrapping_mul((b[3] as u64)).reverse_bits() as i64);
    let v2 = (b[4] as u128);
    let mut v3: u64 = (w1(a.clamp(a, a), (b[4] as i8).abs_diff((v2 as i8))) + w1((match ((b[3] as u64), (v2 >= u128::MIN)) { (0, true) => (b[3] as f32), (1..=99, _) => (v1 as f32), (_, false) => a, _ => a }), (b[0] as u8).swap_bytes()));
    let v5 = (if (((0i16 << (v3 as u8)), (if (v1 == i64::MIN) { b[4] } else { 3u16 })) <= (((-80i16) & (a as i16)), b[3].wrapping_add(b[3]))) { (({ let v4 = v3; (v1 as u16) }) % b[4].reverse_bits()) } else { ((b[4] as i128) as u16) });
    [(match (i16::from(1u8.reverse_bits()), (b[0] >= 0x5b22u16)) { (0, true) => (if (match (-11i16) { 0 | 7 => (b[4] < 0u16), 8..=63 => (v3 < 0x4d131e32f740d5f8u64), v6 if v6 > 70 => (c < 1.0f64), _ => true }) { i16::MAX.leading_zeros() } else { (match b[4] { u16::MAX => (v2 as u32), 2 | 64.. => (c as u32), 1 => (b[4] as u32), _ => (a as u32) }) }), (1..=99, _) => ((b[0] as u32).reverse_bits() / (v2 as u32)), (_, false) => (v3 as u32), _ => 64u32 }), (a as u32), (b[0] as u32)]
}

#[operator]
fn w6(a: i128, b: u16) -> i32 {
    let v3 = ((b as i128) ^ (({ let v2 = (b as u32); i32::MIN }) as i128));
    let v5 = (((v3 as i8) ^ (v3 as i8)).min((0x7ei8 % (b as i8))) * ({ let v4 = (match (b as u64) { u64::MAX => b, 2 | 64.. => b, 1 => (a as u16), _ => b }); (3i8 + (a as i8)) }));
    let mut v6: bf16 = bf16::ONE;
    let mut v7: f32 = (b as f32);
    (v7 as i32).clamp((({ let v8 = (b as u32); v7 }) as i32), (((b as i32) % (v3 as i32)) % (v7 as i32)))
}

#[operator]
fn w7(a: i16, b: i16) -> u64 {
    let [v1, v2] = [((a as i8) as f64).mul_add((match 10u32 { u32::MAX => (-2.75f64), 2 | 64.. => (a as f64), 1 => (b as f64), _ => (a as f64) }), (b as f64).copysign(0.5f64)), (b as f64)];
    let mut v5 = (match ({ let v3 = v1; (b as u128) }) { 0 | 7 => (a | b), 8..=63 => a.wrapping_neg(), v4 if v4 > 70 => a.wrapping_sub((b as i16)), _ => (0x179b7c554417f2f3b88d5aab168528abi128 as i16) });
    for i in 0..=2 - 1 {
        v5 = ((v5 as u8) as i16) * (i as i16);
        v5 = v5 << i;
    }
    let v6 = v2;
    let mut v7: f64 = v6;
    u64::from((v6 as u16)).max((((v7 as u64) + (a as u64)) / 64u64.wrapping_shl((v5 as u32))))
}

#[operator]
fn w8(a: u128, b: i32) -> f64 {
    let mut v1 = ((a ^ a) as i16);
    for i in 0..=2 - 1 {
        v1 = (i16::from(2u8) - ((a as i16) & v1)) + (i as i16);
        if i % 2 == 1 { v1 += (i as i16); } else { v1 ^= 5; }
        v1 = v1 << i;
    }
    let mut v2: i16 = (b as i16).wrapping_mul((v1 as i16)).wrapping_shl(31u32.clamp(u32::MAX, (v1 as u32))).wrapping_sub((match (v1 as i128).rotate_left((a as u32)) { i128::MAX => v1.wrapping_shl((b as u32)), 2 | 64.. => v1.rotate_left((a as u32)), 1 => v1.saturating_add((b as i16)), _ => (a as i16) }));
    ({ let v3 = (if (v2 >= 0x6016i16) { (v2 as u16) } else { (a as u16) }); (b as f64).copysign(16777216.0f64) }).clamp((16777216.0f64.abs() - (v2 as f64).sqrt()), 3.0f64)
}

#[operator]
fn w9(a: u16) -> bool {
    let mut v1 = (-36i32);
    for i in 0..=1 - 1 {
        v1 = ((a as i32).clamp(v1, v1) + ((v1 as i32) as i32)) ^ (i as i32);
        v1 = v1 << i;
    }
    let mut v2 = (((a as i8) | 1i8) | (a as i8).wrapping_shr(0x3383u32));
    for i in 0..4 {
        v2 = ({ let v3 = (v2 ^ v2); (v3 as i8) }) + (i as i8);
        if i % 2 == 1 { v2 += (i as i8); } else { v2 ^= 5; }
        v2 = v2 << i;
    }
    ({ let v4 = (if (v2 == 0x38i8) { (v2 as f64) } else { f64::INFINITY }).mul_add(((a as f64) / (-0.0f64)), ((a as f64) - (a as f64))); ((v1 as u8) as i8).cmp(&(v2 << 0x1d1i16)).then(((v1 as i128) - (v2 as i128)).cmp(&((-90i16) as i128))).reverse().is_gt() })
}

#[operator]
fn w10(a: bool) -> bool {
    let [v1, v2] = [bf16::from_f32(1e-3f32).copysign(bf16::NEG_ONE), (-bf16::MAX).max(bf16::from_f32((-1.0f32)))];
    let v3 = ((a as u32) - ((a as u32).wrapping_mul((a as u32)) + (if a { (a as u32) } else { (a as u32) })));
    ({ let v4 = ({ let v5 = (v3 as i32).clamp((v3 as i32), (v3 as i32)); ((a as i16) < (-11i16)) }); (!(a || v4)) })
}

#[operator]
fn w11(a: bf16, b: Small) -> bf16 {
    let (v4, v5) = (({ let v1 = b.0.swap_bytes(); ({ let v2 = 127u32; (b.1[1] as u16) }) }), ({ let v3 = (-(-52i32)); ((b.0 as f64) / (b.1[1] as f64)) }));
    let v9 = ({ let v6 = ((f16::MAX / f16::ZERO) / (match (33i128, (b.0 >= 127u8)) { (0, true) => f16::ZERO, (1..=99, _) => f16::ZERO, (_, false) => f16::ONE, _ => f16::MAX })); ({ let v7 = ((v5 as i8) as i64); (match (b.1[1] as i16) { 0 | 7 => v7, 8..=63 => v7, v8 if v8 > 70 => v7, _ => (v7 as i64) }) }) });
    let mut v10: u16 = (match ((if b.0.cmp(&b.0).then(u32::MAX.cmp(&(b.0 as u32))).is_ge() { 100u32.swap_bytes() } else { (v5 as u32).saturating_add(u32::MIN) }), (b.1[1] >= i8::MIN)) { (0, true) => i16::from(b.0).abs_diff((v5 as i16)), (1..=99, _) => (b.1[1] as u16), (_, false) => v4, _ => v4 });
    (bf16::from_f32((f32::EPSILON / f32::MIN_POSITIVE)) + bf16::from_bits(({ let v11 = v9; v4 })))
}

#[operator]
fn w12(a: i16, b: i32) -> f32 {
    let v1 = f32::from_bits((0x7d3fa875u32 << 0x42547ad7u32.wrapping_shl(64u32)));
    let mut v2: f64 = ((3.0f64 - ((a as f64) / f64::INFINITY)) + ((-(a as f64)) * (match 2i8 { i8::MAX => (-0.0f64), 2 | 64.. => (a as f64), 1 => f64::EPSILON, _ => (v1 as f64) })));
    let v3 = ((if (b < 63i32) { (a as i64) } else { (v1 as i64) }) & (0x77e233af24dba4fei64 * (v2 as i64))).reverse_bits();
    (if (v3 == 7i64) { (match (b as u128) { u128::MAX => v1, 2 | 64.. => (v2 as f32), 1 => v1, _ => (v1 as f32) }).round_ties_even() } else { (v1.mul_add(v1, v1) * v1) })
}

#[operator]
fn w13(a: u32, b: u128) -> [u16; 5] {
    let mut v1 = (b.wrapping_neg() * b.clamp(b, (b as u128)));
    for i in 0..=2 - 1 {
        v1 = ((u64::MAX + (v1 as u64)) as u128) * (i as u128);
        if i % 2 == 1 { v1 += (i as u128); } else { v1 ^= 5; }
        v1 = v1 << i;
    }
    let (v5, v6) = (({ let v2 = f16::NEG_ONE.to_bits(); ({ let v3 = a; bf16::NEG_ONE }) }), ({ let v4 = 64i8.abs_diff(100i8); (match (a as i64) { i64::MAX => (a as f64), 2 | 64.. => (a as f64), 1 => 0.0f64, _ => (v4 as f64) }) }));
    let mut v8 = ({ let v7 = (match (1u32, (v1 >= 63u128)) { (0, true) => (-52i128), (1..=99, _) => (v1 as i128), (_, false) => (b as i128), _ => (b as i128) }); ((v6 as i64) * (b as i64)) });
    for i in (0..3).rev() {
        v8 = ((!(v6 as u16)) as i64) ^ (i as i64);
        if i % 2 == 1 { v8 += (i as i64); } else { v8 ^= 5; }
        v8 = v8 << i;
    }
    v1 -= (({ let v9 = (a as i8); (v8 as u128) }) + v1);
    [((v1 as u16).wrapping_neg().wrapping_neg() % u16::from(((v6 as u8) & (v1 as u8)))), (match ((w6((a as i128), (a as u16)) ^ w6((v1 as i128), u16::MIN)), true) { (0, true) => (v6 as u16), (1..=99, _) => (v6 as u16), (_, false) => 0x5a36u16, _ => (b as u16) }), 3, 65535, 8u16]
}

#[operator]
fn w14(a: i64) -> Packed {
    let mut v2 = ({ let v1 = (-71i128).abs_diff((a as i128)); (a as i8).signum() });
    for i in 0..3 {
        v2 = v2 ^ (i as i8);
        if i % 2 == 1 { v2 += (i as i8); } else { v2 ^= 5; }
        v2 = v2 << i;
    }
    let v4 = w12((5i16 / (v2 as i16)), w6((a as i128), (a as u16))).max(({ let v3 = bf16::MAX.clamp(bf16::MAX, bf16::MAX); (a as f32) }));
    let v5 = i32::from((v4 as u16));
    Packed { byte: (((u8::MIN / 8u8) % ((v5 as u8) & (v5 as u8))) ^ (if (if (v4 >= (-1.0f32)) { (v4 < f32::INFINITY) } else { (v5 == 0x244fc8dbi32) }) { (0x53bfu16 as u8) } else { v2.abs_diff(v2) })), long: (33u8 as i64), double: (v2 as f64), word: (v2 as u32) }
}

#[operator]
fn w15(a: i128) -> u64 {
    let mut v3: u64 = w7((({ let v1 = (a as u8); (v1 as i16) }) as i16), ((match (a, (a >= (-15i128))) { (0, true) => 0.5f64, (1..=99, _) => 3.0f64, (_, false) => (-1000000.0f64), _ => 0.0f64 }) as i16));
    ({ let v4 = (((a as u8) * 31u8) == (7u8 & (v3 as u8))); ((v3 - v3) / (v3 + v3)) })
}

#[operator]
fn w16(a: f16, b: i64) -> u16 {
    let mut v1 = (b as i128).clamp(((b >= 7i64) as i128), (-2i128));
    for i in 0..1 {
        v1 = ((if (a >= f16::ONE) { (v1 as u8) } else { (b as u8) }) as i128) + (i as i128);
        v1 = v1 << i;
    }
    (1u16 / bf16::NEG_ONE.to_bits())
}

#[operator]
fn w17(a: i128) -> [u8; 3] {
    let [v1, v2] = [u16::from((7u8 ^ (a as u8))), ((a as u16) | (a as u16)).wrapping_mul((if (a == i128::MAX) { (a as u16) } else { (a as u16) }))];
    let mut v4: u32 = (((v1 as u32) + ((v1 as u32) % 1u32)) >> (v2.abs_diff(v1) as i32));
    [(((v2 as u128) - (v4 as u128)).cmp(&((v4 as u128) << v4)).then((if (a == i128::MAX) { a } else { a }).cmp(&(a & (v1 as i128)))).is_ne() as u8); 3]
}

#[operator]
fn w18(a: f32, b: [u32; 3], c: bool) -> bool {
    let mut v1 = (((-97i8) % (a as i8)) / (-(c as i8)));
    for i in 0..2 {
        v1 = (v1.signum() / (v1 >> 5u64)) + (b[i] as i8);
        v1 = v1 << i;
    }
    ({ let v2 = b[0]; ((c as i128) as i16) }).is_positive()
}

#[operator]
fn w19(a: u128) -> Wide {
    let mut v4: u32 = (match w2((-60i8), f16::ONE) { 0 | 7 => (a as u16), 8..=63 => (0u16 & (a as u16)), v3 if v3 > 70 => (a as u16), _ => (a as u16) }).trailing_zeros();
    Wide { first: ((if ((v4 >= 0u32) & (v4 < u32::MAX)) { a.swap_bytes() } else { (a as i128).abs_diff((a as i128)) }) * (2i64.abs_diff((-15i64)) as u128)), second: ((a as i128) - (a as i128)) }
}

#[operator]
fn w20(a: bf16, b: Small, c: f64) -> i128 {
    let (v2, v3) = ((({ let v1 = b.1[0]; (b.1[0] as u16) }) / (0xbc1u16 | (b.1[0] as u16))), (c * c).copysign((-2.75f64)));
    (if (match ((v2 << (b.0 as i64)), (b.1[1] > b.1[1])) { (0, true) => ((c >= f64::MIN_POSITIVE) || (c == 0.0f64)), (1..=99, _) => (!true), (_, false) => (100i64 <= (v3 as i64)), _ => 1.0f32.is_infinite() }) { (-97i128) } else { (((c < f64::EPSILON) as i16) as i128) })
}

#[operator]
fn w21(a: i8, b: Mixed, c: u32) -> Small {
    let v2 = (((b.short[1] * b.short[1]) as i128) as i128);
    Small(({ let v3 = ((0.5f32 as i16) / (b.short[0] ^ (b.long as i16))); 127u8 }), [(b.float as i8).signum(), (((b.long as f64) + ((a as f64) / (-1000000.0f64))) as i8)])
}

#[operator]
fn w22(a: f64) -> Small {
    let v1 = (-((-28i32) ^ 127i32)).clamp(((64i32 | (a as i32)) % (100i32 / 0i32)), (((a as i64) + 3i64) as i32));
    let [v2, v3] = [v1.wrapping_shl(u32::MIN).wrapping_shl((v1 as u32).wrapping_neg()), v1.saturating_add(0x2cb436bfi32.clamp(v1, v1))];
    Small((((v1 as i8) as u128) as u8).swap_bytes(), [(((v3 as u8) as i8).wrapping_mul((a as i8)) >> (if (match (0x269c242a9106f622u64, (v2 >= 0x5653eb1i32)) { (0, true) => true, (1..=99, _) => (v3 >= 0x7ffffff9i32), (_, false) => (v3 < 0x48c6cc9ei32), _ => (v2 < i32::MAX) }) { 0x1717b9b84e4754i64 } else { i64::MIN })), (v2 as i8)])
}

#[operator]
fn w23(a: Small, b: i32, c: f16) -> i8 {
    let mut v3 = (if ({ let v1 = 1e-3f32; (c < f16::NEG_ONE) }) { ({ let v2 = (a.1[0] as f32); 10u64 }) } else { (!u64::MAX) });
    for i in (0..2).rev() {
        v3 = (-2.75f64).to_bits() + (i as u64);
        v3 = v3 << i;
    }
    (match ((if true { 0xd4720c1e11612d8d7e4aeaa13eab872i128 } else { (a.0 as i128) }), w10((b < 0x4df3d821i32))) { (0, true) => (if (a.1[1] < 7i8) { (v3 as i8) } else { a.1[1] }), (1..=99, _) => (a.1[1] ^ a.1[0]), (_, false) => (if (a.1[0] < (-32i8)) { a.1[0] } else { 7i8 }), _ => (a.1[0] % a.1[0]) }).rotate_left(((b & b) as u32))
}

#[operator]
fn w24(a: bf16, b: [u16; 5]) -> i8 {
    let v1 = ((((b[0] as i16) as u128) as i128) as i16);
    (((b[0] as i128).max((b[3] as i128)) as i8) / (((b[0] as f32) + f32::INFINITY) as i8))
}

#[operator]
fn w25(a: i128) -> [u8; 3] {
    let mut v1: i8 = ((if (!(a >= i128::MIN)) { (a as i8) } else { (a as i8) }) & ((if (a >= 33i128) { (a as u8) } else { 7u8 }) as i8));
    let mut v2: u8 = (if (a as i64).cmp(&(a as i64)).then(a.cmp(&i128::MIN)).is_ge() { (v1 as u8) } else { (v1 as u8) });
    v2 &= v2;
    [((((v1 as i64) - 0x7798c440c1964b1ai64) & ((a as i64) + i64::MIN)) as u8); 3]
}

#[operator]
fn w26(a: [u16; 5]) -> i16 {
    ((({ let v1 = (a[4] as i64); 1e-3f32 }) + (-(a[0] as f32))) as i16)
}

#[operator]
fn w27(a: u64, b: [u16; 5], c: f16) -> u32 {
    let v1 = (bf16::from_f32(f32::from_bits((b[3] as u32))) + bf16::from_f32((a as f32)).copysign(bf16::ONE));
    (if (({ let v2 = (b[0] as i64); (c == f16::ONE) }) <= w9(b[4])) { u32::from(b[3].max((b[4] as u16))) } else { (!((b[4] as u32) & 1u32)) })
}

#[operator]
fn w28(a: i8, b: bf16) -> u64 {
    let v4 = (match (i16::MIN.wrapping_mul((a as i16)) & (i16::MAX % (-34i16))) { 0 | 7 => ({ let v1 = a; 1u32 }).swap_bytes(), 8..=63 => ((a as u32) | (a as u32)).abs_diff((a as u32)), v3 if v3 > 70 => (match ((u128::MAX << (-59i32)), ((b == bf16::ONE) | (b == bf16::ONE))) { (0, true) => ((a as u32) % (a as u32)), (1..=99, _) => (63u16 as u32), (_, false) => (if (a >= (-92i8)) { (a as u32) } else { (a as u32) }), _ => (if false { (a as u32) } else { (a as u32) }) }), _ => (!(match (a as i64) { 0 | 7 => (a as u32), 8..=63 => 100u32, v2 if v2 > 70 => (a as u32), _ => 63u32 })) });
    let v5 = v4.clamp(v4, v4);
    ({ let v6 = ({ let v7 = (a as u128); v4 }).clamp((if true { v4 } else { (v5 as u32) }), (match (v4 as i16) { 0 | 7 => v4, 8..=63 => v5, v8 if v8 > 70 => v5, _ => v4 })); (if ([1i32, (a as i32)] < [0x49dd4529i32, (a as i32)]) { (0xa7d7fcd03a32bf2u64 as u64) } else { (v5 as u64) }) })
}

#[operator]
fn w29(a: bf16, b: i8, c: u32) -> Wide {
    let mut v1 = (((b as u16) & (b as u16)) as u32);
    for i in (0..4).rev() {
        v1 = (v1 >> c).swap_bytes() * (i as u32);
        v1 = v1 << i;
    }
    let mut v2 = ((b & b) as i64);
    for i in 0..1 {
        v2 = ((v2 + i64::MIN) + (if (a >= bf16::INFINITY) { (v2 as i64) } else { v2 })) + (i as i64);
        v2 = v2 << i;
    }
    Wide { first: (((b as u128) ^ u128::from((v1 as u8))) * (1u128.swap_bytes() << ((c as u128) as u8))), second: (if (match (b as i16) { 0 | 7 => a.total_cmp(&a).is_lt(), 8..=63 => (v1 as u16).cmp(&(b as u16)).then(2u64.cmp(&u64::MAX)).is_ge(), v4 if v4 > 70 => (match i64::MAX { 0 | 7 => (v2 < (-69i64)), 8..=63 => false, v3 if v3 > 70 => (a < bf16::INFINITY), _ => (a < bf16::INFINITY) }), _ => (v1 == 3u32) }) { (v1 as i128) } else { i128::MAX }) }
}

#[operator]
fn w30(a: Wide, b: [f64; 2]) -> f16 {
    let v5 = (if (if (match ((a.second as u32), false) { (0, true) => false, (1..=99, _) => (a.second >= (-47i128)), (_, false) => (a.first == 10u128), _ => (b[0] < 16777216.0f64) }) { (match i64::MAX { 0 | 7 => (b[0] < 0.5f64), 8..=63 => (a.second >= 10i128), v1 if v1 > 70 => (a.second == 10i128), _ => (a.second >= i128::MIN) }) } else { ({ let v2 = (b[0] as i16); (b[1] == f64::INFINITY) }) }) { ({ let v3 = ((a.second as i128) ^ a.second); ({ let v4 = (b[0] as f64); 64u64 }) }) } else { (if (u32::MAX > 0x6b5062b6u32) { f64::EPSILON.to_bits() } else { (b[1] as u64).wrapping_shr((b[0] as u32)) }) });
    let (v7, v8) = (({ let v6 = i64::from((b[0] as u32)); (v5 == 8u64) }), 0x7ffffffffffffffei64);
    let v9 = u32::MAX;
    f16::from_f32((b[0] as f32).max((v5 as f32))).copysign(f16::NEG_ONE)
}

#[operator]
fn w31(a: u64, b: [u8; 3]) -> i8 {
    let mut v1: u8 = b[0];
    let v2 = ((!a).wrapping_mul((u64::MAX / 127u64)) as u8);
    ({ let v3 = (if (b[1] == 7u8) { (b[1] as i32) } else { 1i32 }).wrapping_neg(); ((b[0] as i8).clamp((v2 as i8), (a as i8)) % (match v3 { 0 | 7 => (v3 as i8), 8..=63 => (a as i8), v4 if v4 > 70 => (b[2] as i8), _ => (v1 as i8) })) })
}

#[operator]
fn w32(a: [u16; 5], b: bool) -> Small {
    let v1 = w10(((a[0] as u8) - 8u8).cmp(&((a[3] as u8) + 0x1bu8)).then((a[4] as i8).max((a[4] as i8)).cmp(&((b as i8) * (b as i8)))).is_ne());
    let v2 = bf16::from_f32((a[0] as f32));
    let v3 = a[0];
    Small(((if ((b as u64) > (v3 as u64)) { ((-25i64) as u8) } else { (match (b as i16) { i16::MAX => (b as u8), 2 | 64.. => (a[4] as u8), 1 => (b as u8), _ => (v3 as u8) }) }) ^ (v1 as u8)), [(match ((a[0] as i64) % (b as i64)) { 0 | 7 => (a[3] as i8), 8..=63 => 63i8, v4 if v4 > 70 => (a[0] as i8), _ => (-30i8) }), (a[3] as i8)])
}

#[operator]
fn w33(a: i64, b: f16, c: Wide) -> bool {
    let mut v1 = (a as i64).wrapping_shl((a as u32).wrapping_mul((a as u32)));
    for i in 0..=4 - 1 {
        v1 = ({ let v2 = (c.first as u32).wrapping_shl((c.second as u32)); a.signum() }) ^ (i as i64);
        v1 = v1 << i;
    }
    let v3 = bf16::from_bits(33u16).to_f32().clamp((v1 as f32).signum().mul_add((match ((v1 as i8), (c.first == u128::MIN)) { (0, true) => (v1 as f32), (1..=99, _) => 16777216.0f32, (_, false) => (-1000000.0f32), _ => (v1 as f32) }), (-(a as f32))), (f32::EPSILON.signum() * (a as f32)));
    let v4 = ((-(match (10i32, (b == f16::NEG_ONE)) { (0, true) => 2i32, (1..=99, _) => 2i32, (_, false) => 63i32, _ => i32::MIN })) / (((c.first as i32) / (-74i32)) & (match ((c.first as i16), true) { (0, true) => 33i32, (1..=99, _) => 0x6ecece79i32, (_, false) => i32::MAX, _ => (c.first as i32) })));
    ((if w9((c.second as u16)) { ((c.second as u32) + (v1 as u32)) } else { (3u32 & (v3 as u32)) }) < ((0x1f37769cu32 * (v3 as u32)) * (0x72au32 / (c.first as u32))))
}

#[operator]
fn w34(a: u32) -> u16 {
    let mut v1: bool = (a == 7u32);
    (if (v1 as bool) { (v1 as i16) } else { (v1 as i16) }).abs_diff((i16::MIN - (a as i16))).swap_bytes()
}

#[operator]
fn w35(a: i8, b: u32, c: Small) -> [u8; 3] {
    let [v2, v3] = [(if w10((c.1[1] < i8::MAX)) { ({ let v1 = f64::NAN; v1 }) } else { (a as f64) }), f64::from_bits((c.0 as u64))];
    let v4 = 0.0f32.clamp((c.1[0] as f32), (-2.75f32)).recip().mul_add((if (!true) { (c.1[0] as f32).max(16777216.0f32) } else { (if (a < (-63i8)) { (v3 as f32) } else { f32::EPSILON }) }), (1e-3f32 * (c.1[0] as f32)).max(w12((v3 as i16), (v3 as i32))));
    [((({ let v5 = (v2 as i32); (v5 as i64) }) as u8) | c.0); 3]
}

#[operator]
fn w36(a: i32, b: [f64; 2], c: [u16; 5]) -> Small {
    let mut v1 = (c[0] as i8).saturating_sub(i8::MAX).abs_diff(((c[3] as i128) as i8));
    for i in 0..1 {
        v1 = ((a + a) as u8) + (c[i] as u8);
        if i % 2 == 1 { v1 += (c[i] as u8); } else { v1 ^= 5; }
        v1 = v1 << i;
    }
    Small((if ({ let v3 = bf16::from_f32((c[4] as f32)); ((u64::MAX, (a as u32)) >= ((b[0] as u64), (v1 as u32))) }) { (match (c[3] as u16) { u16::MAX => (a as i8), 2 | 64.. => 100i8, 1 => 10i8, _ => (a as i8) }).abs_diff((8u16 as i8)) } else { ((c[3] as i8) as u8) }), [((5u64 as i8).wrapping_add((if (c[0] >= 0x2b4cu16) { i8::MAX } else { 0x6i8 })) / (((c[0] as f32) as i8) ^ ((v1 as i16) as i8))), ((v1 as i8) / 0x71i8)])
}

#[operator]
fn w37(a: Wide, b: i32, c: [u32; 3]) -> u16 {
    let v1 = (0x1di16.reverse_bits() / ((b as f32) as i16)).is_positive();
    let mut v2 = a.second;
    for i in (0..3).rev() {
        v2 = (a.second + v2).clamp((v2 | v2), (c[1] as i128).wrapping_mul(a.second)) * (c[i] as i128);
        v2 = v2 << i;
    }
    let v3 = (((v2 & a.second) as i16) + (a.first as i16));
    let mut v4 = (((c[0] as u64) % 31u64) as u128);
    for i in (0..3).rev() {
        v4 = a.first.abs_diff(a.first) + (c[i] as u128);
        if i % 2 == 1 { v4 += (c[i] as u128); } else { v4 ^= 5; }
        v4 = v4 << i;
    }
    0x1926u16
}

#[operator]
fn w38(a: [u16; 5]) -> i16 {
    let v1 = (((a[0] as u32).saturating_sub(2u32) | (31u32 + u32::MAX)) ^ ((a[4] as u128) as u32).wrapping_mul((0x4008443fu32 % (a[3] as u32))));
    i16::from((((v1 as u8) & u8::MAX) % (v1 as u8)))
}

#[operator]
fn w39(a: u32, b: i32, c: u16) -> u16 {
    let (v3, v4) = ((({ let v1 = true; (v1 as u8) }) as u32), (a as i128).clamp((a as i128), (b as i128)).wrapping_add(({ let v2 = (c as u64); i128::MIN })));
    let [v5, v6] = [(-(bf16::MAX + bf16::ONE)), (bf16::MAX - bf16::NEG_ONE).clamp(bf16::from_f32((v3 as f32)), (if (b < i32::MAX) { bf16::NEG_ONE } else { bf16::ONE }))];
    let mut v7: i16 = (((-27i16) + (v3 as i16)) >> (-19i8));
    (((v3 as i8) as u32) as u16)
}

#[operator]
fn w40(a: i16, b: i16) -> Packed {
    let [v2, v3] = [(match (if (b < (-20i16)) { (b as i8) } else { (a as i8) }) { 0 | 7 => u64::from(0x7725c2d0u32), 8..=63 => (a as i64).abs_diff(0x7ffffffffffffffei64), v1 if v1 > 70 => (a as u64).abs_diff((b as u64)), _ => (a as u64).clamp((a as u64), 0x767f79bfb6d2cc0fu64) }), (b as u64)];
    Packed { byte: (b as u8), long: ((((v2 as u128) << (a as i8)) as u128) as i64), double: w8(({ let v4 = f16::INFINITY; (v2 as u128) }), ({ let v5 = w8((v3 as u128), (b as i32)); 0x147cebi32 })), word: (b as u32) }
}

#[operator]
fn w41(a: u32, b: Wide) -> u32 {
    let v1 = (if ((match (b.first, (b.first < u128::MIN)) { (0, true) => (a >= 0x79a8u32), (1..=99, _) => (a == u32::MAX), (_, false) => (a == 5u32), _ => (b.first == 64u128) }) <= ((b.second as u16) < u16::MAX)) { (a as f32).clamp((a as f32), 0.5f32).signum() } else { (-f32::INFINITY).copysign(0.0f32) });
    let v3 = ({ let v2 = ([((v1 as i8) >> 127u64), ((a as f64) as i8)] < [((v1 as i8) << (-36i64)), (a as i8).clamp((a as i8), (a as i8))]); (a as i16) });
    ((if (if (b.second == 1i128) { (v1 < (-2.75f32)) } else { (b.first < 3u128) }) { ({ let v4 = (a as u64); a }) } else { ({ let v5 = (v3 as f64); a }) }) & u32::from((if false { (v1 as u16) } else { (a as u16) })))
}

#[operator]
fn w42(a: i32, b: i64, c: [u8; 3]) -> f64 {
    let mut v1 = ((if (c[1] >= u8::MIN) { b } else { b }) & (c[2] as i64).saturating_add((c[2] as i64)));
    for i in 0..=1 - 1 {
        v1 = (if (c[0] > 8u8) { ((-95i64) - v1) } else { (if (v1 == 64i64) { v1 } else { (c[0] as i64) }) }) ^ (c[i] as i64);
        if i % 2 == 1 { v1 += (c[i] as i64); } else { v1 ^= 5; }
        v1 = v1 << i;
    }
    let [v2, v3] = [(true as i32), (c[1] as i32)];
    let v5 = ({ let v4 = w1(f32::from_bits(2u32), (b as u8)); ((v3 as i16) as i128).signum() });
    let mut v6 = ((if (v1 < 127i64) { (v2 as u32) } else { (a as u32) }) as i8);
    for i in 0..=2 - 1 {
        v6 = ({ let v7 = c[0]; v6 }) * (c[i] as i8);
        v6 = v6 << i;
    }
    (c[0] as f64)
}

#[operator]
fn w43(a: f32, b: Small) -> i16 {
    let v1 = (((b.1[1] as i128) as i128).min((b.1[0] as i128)) as i32);
    let mut v5: f64 = ({ let v2 = (0x483fed9c71b50388u64.abs_diff(0x2f93a88045fa0190u64) % (match (b.0 as u64) { 0 | 7 => u64::MAX, 8..=63 => (a as u64), v3 if v3 > 70 => (b.1[0] as u64), _ => 33u64 })); (match ((v2 / v2), (v1 >= 2i32)) { (0, true) => (b.1[0] as f64).signum(), (1..=99, _) => (match (b.1[1] as i128) { 0 | 7 => (a as f64), 8..=63 => 1.0f64, v4 if v4 > 70 => (v1 as f64), _ => (v2 as f64) }), (_, false) => (-0.0f64), _ => (a as f64) }) });
    let v6 = f16::ONE;
    let (v7, v8) = ((b.1[1] as i128), 0u128);
    ({ let v9 = ((v8 as u8) as u32); (match b.0.wrapping_neg() { 0 | 7 => ((v9 as u16) as i16), 8..=63 => (match (v9, (v7 == 0i128)) { (0, true) => 33i16, (1..=99, _) => (v5 as i16), (_, false) => (v8 as i16), _ => (v7 as i16) }), v10 if v10 > 70 => i16::from(b.0), _ => (v7 as i16) }) })
}

#[operator]
fn w44(a: u128, b: u8) -> f32 {
    let [v2, v3] = [({ let v1 = f16::from_f32((b as f32)); f16::from_f32((b as f32)) }), f16::from_f32(w12((a as i16), 31i32))];
    let v7 = ((match (a as u16) { 0 | 7 => (b as u64).reverse_bits(), 8..=63 => ((a as u64) % (a as u64)), v5 if v5 > 70 => (match (a as i64) { 0 | 7 => 63u64, 8..=63 => (a as u64), v4 if v4 > 70 => (b as u64), _ => (a as u64) }), _ => (127u64 << (b as i32)) }) & ({ let v6 = ((b as f32) / (b as f32)); ((a as u64) % (v6 as u64)) }));
    ({ let v8 = (b as i16); 1e-3f32 }).max((b as f32).round_ties_even()).max((match ((b as i32) ^ (a as i32)) { 0 | 7 => 3.0f32.max((v7 as f32)), 8..=63 => ((v7 as f32) * (v7 as f32)), v9 if v9 > 70 => bf16::INFINITY.to_f32(), _ => (match ((v7 as i16), (a == 100u128)) { (0, true) => (b as f32), (1..=99, _) => (b as f32), (_, false) => (v7 as f32), _ => (b as f32) }) }))
}

#[operator]
fn w45(a: f32) -> i32 {
    let (v1, v2) = ((a.copysign(a) * (if (a >= f32::MAX) { a } else { (a as f32) })), (a as i64).wrapping_mul((a as i64)).rotate_right((7u32 + 100u32)));
    (match ((i16::from((a as u8)) as i32), ({ let v3 = 3u8.wrapping_neg(); ((v3 as i32) >= (v2 as i32)) })) { (0, true) => w6(((v2 as i128) - (v2 as i128)), 33u16.abs_diff((v1 as u16))), (1..=99, _) => i32::from((a as u8)), (_, false) => ((64i32 - (v2 as i32)) << ((v2 as u32) as u16)), _ => (if ([0x46d7c3ai32, 0x37ei32] < [(a as i32), (v2 as i32)]) { ((v1 as i32) / (v2 as i32)) } else { 127i32.wrapping_sub((-42i32)) }) })
}

#[operator]
fn w46(a: f64, b: f16) -> i16 {
    let v1 = ((match ((0x6f9577ffu32 % (a as u32)), 64i64.cmp(&100i64).then((a as u16).cmp(&(a as u16))).reverse().is_gt()) { (0, true) => (10u128 as i128), (1..=99, _) => (i128::MIN ^ 0x7ffffffffffffffffffffffffffffff3i128), (_, false) => (i128::MIN + 31i128), _ => (-13i128).rotate_left((a as u32)) }) | (1i128.wrapping_neg() - (if (a == (-0.0f64)) { 0xcb221i128 } else { 10i128 })));
    (((v1 as i64) | (v1 as i64)) as i16).wrapping_add(((match (-33i128) { 0 | 7 => (v1 as i16), 8..=63 => 0i16, v2 if v2 > 70 => (v1 as i16), _ => (v1 as i16) }) ^ ({ let v3 = a; (v1 as i16) })))
}

#[operator]
fn w47(a: f64) -> f32 {
    let v2 = (({ let v1 = ((a as u32) as u128); ((a as u16) | (v1 as u16)) }) >> (if (i128::MIN >= 0x5bbba6990d21bdf42ade2effcc223070i128) { ((a >= (-1000000.0f64)) as i64) } else { ((a as i64) & (a as i64)) }));
    ((match (if (v2 >= 127u16) { 10u32 } else { (a as u32) }) { u32::MAX => ((a as f32) / (-2.75f32)), 2 | 64.. => (v2 as f32).abs(), 1 => (a as f32).mul_add(1.0f32, 1.0f32), _ => (a as f32).copysign((-0.0f32)) }) - 1e-3f32.abs().max(({ let v3 = (v2 == 1u16); 1e-3f32 })))
}

#[operator]
fn w48(a: u128) -> f64 {
    let v1 = (((a as u128) - a) << (((a as i128) ^ 10i128) * ((a as u8) as i128)));
    let mut v2: i64 = ((!a) as i64);
    v2 ^= v2;
    (match (((a as i32).max((a as i32)) as i8), (v1 < u128::MIN)) { (0, true) => (0.5f64.sqrt() / (-(v2 as f64))), (1..=99, _) => ((v2 as f64) as f64).sqrt(), (_, false) => w8(u128::MAX, (v2 as i32)), _ => 3.0f64 })
}

#[operator]
fn w49(a: i64, b: bool, c: u64) -> [f64; 2] {
    let v1 = (((c as i128).abs() & ((c == u64::MAX) as i128)) as i128);
    let mut v2: u8 = (((match (a, (c >= 7u64)) { (0, true) => (a as u8), (1..=99, _) => (a as u8), (_, false) => (c as u8), _ => (a as u8) }) >> (c * 0u64)) / (((a as f32) as i32) as u8));
    v2 &= (if (0x75b1i16 == (a as i16)) { v2.rotate_right((a as u32)) } else { (v2 / v2) });
    let v3 = (b as u32).abs_diff((v1 as u32));
    [(match (-8i16.abs()) { 0 | 7 => (match (v3 as u32) { 0 | 7 => ({ let v4 = f32::EPSILON; (a as f64) }), 8..=63 => (v3 as f64).clamp((v2 as f64), (v2 as f64)), v5 if v5 > 70 => (match a { i64::MAX => (c as f64), 2 | 64.. => (a as f64), 1 => 1.0f64, _ => (a as f64) }), _ => (if b { (c as f64) } else { 0.5f64 }) }), 8..=63 => (match v2 { 0 | 7 => (v3 as f64), 8..=63 => (v3 as f64), v6 if v6 > 70 => (c as f64), _ => (v2 as f64) }), v7 if v7 > 70 => f64::INFINITY, _ => (c as f64) }), (a as f64)]
}

#[operator]
fn w50(a: i32, b: f32) -> [u8; 3] {
    let v3 = (if ({ let v1 = (b as u8); (v1 == 7u8) }) { (31u64 << (b as u16)) } else { (0x69c1cacd9a72ff01u64 | (a as u64)) }).clamp((match (if (a >= 10i32) { (a as i8) } else { (b as i8) }) { i8::MAX => (b as u64), 2 | 64.. => ({ let v2 = 0x35f275d9dc9e67920adf87f40f089916u128; (b as u64) }), 1 => (a as u64).reverse_bits(), _ => (a as u64).saturating_add((b as u64)) }), ((0x339dad27aec3065u64 % 2u64) | w7((a as i16), (b as i16))));
    [(b as u8); 3]
}

#[operator]
fn w51(a: [u8; 3], b: Mixed, c: u16) -> bool {
    let v1 = (((b.float as i64) as f64) as u32).wrapping_mul((0x6ce00bcdu32 - (0u32 << a[1])));
    let v2 = v1;
    (v2 >= 5u32)
}

#[operator]
fn w52(a: Mixed) -> f64 {
    let v1 = ((-(a.long as f64)) + f64::INFINITY.trunc()).ceil();
    (if w9(((a.float as u16) << (v1 as i8))) { (if (((a.float as i8), f16::MAX) <= ((a.float as i8), f16::ONE)) { w48(8u128) } else { ({ let v2 = (a.short[0] as u128); 0.5f64 }) }) } else { (v1 + v1).ceil() })
}

#[operator]
fn w53(a: u16, b: Small) -> f32 {
    let mut v1 = ((b.1[0] as i64) ^ (b.1[0] as i64)).min(((b.1[0] as i64) as i64));
    for i in 0..1 {
        v1 = ((i64::MAX / v1) << (match (b.1[0], (b.1[0] >= 127i8)) { (0, true) => (b.1[1] as u32), (1..=99, _) => (b.1[0] as u32), (_, false) => (a as u32), _ => u32::MAX })) ^ (i as i64);
        if i % 2 == 1 { v1 += (i as i64); } else { v1 ^= 5; }
        v1 = v1 << i;
    }
    let v3 = ((v1 & (-v1)) as i8);
    (v1 as f32)
}

#[operator]
fn w54(a: u8, b: f32, c: f32) -> i64 {
    let mut v3: u32 = u32::from((({ let v2 = (b as u16); 0.5f64 }) as u8));
    (match 10i64.wrapping_mul((-23i64)) { 0 | 7 => ((v3 as i128) as i64), 8..=63 => 1i64.max((v3 as i64)), v6 if v6 > 70 => ({ let v4 = 63i64; v4 }), _ => ({ let v5 = bf16::ZERO; (c as i64) }) }).rotate_right(63u32)
}

#[operator]
fn w55(a: i8, b: f32, c: u32) -> i64 {
    let mut v2 = ({ let v1 = (c as f32); (c as i32).clamp((c as i32), 0i32) });
    for i in 0..2 {
        v2 = ((v2 ^ v2) * (if (a == 64i8) { v2 } else { v2 })) * (i as i32);
        v2 = v2 << i;
    }
    v2 -= ((f64::NAN as i32) - v2.wrapping_shr(c));
    ({ let v3 = bf16::from_f32(w12((b as i16), v2)); ((a - a) as i64) })
}

#[operator]
fn w56(a: Small, b: i16, c: [f64; 2]) -> f64 {
    let mut v1 = ((b as u128).wrapping_neg() as i128);
    for i in 0..2 {
        v1 = (u16::from(a.0) as i128) ^ (i as i128);
        if i % 2 == 1 { v1 += (i as i128); } else { v1 ^= 5; }
        v1 = v1 << i;
    }
    let v3 = (b.abs_diff(b) as u32);
    w48(((v1 as u128) + (a.1[1] as u128))).trunc()
}

#[operator]
fn w57(a: [i64; 2]) -> i128 {
    let v3 = ((!64u16.reverse_bits()) + ({ let v1 = (a[0] as u128); (v1 as u16) }).clamp((a[1] as u16).wrapping_neg(), (match (a[1] as u32) { 0 | 7 => (a[0] as u16), 8..=63 => (a[0] as u16), v2 if v2 > 70 => 0u16, _ => (a[1] as u16) })));
    let v4 = (match ((match ((a[0] as u128), (a[0] < 1i64)) { (0, true) => (a[1] as i128), (1..=99, _) => (v3 as i128), (_, false) => (a[1] as i128), _ => (a[1] as i128) }).clamp(((a[1] as u16) as i128), (v3 as i128)), (v3 >= 10u16)) { (0, true) => (v3 as f64), (1..=99, _) => 1.0f64, (_, false) => (v3 as f64), _ => 1e-3f64 });
    ((((a[0] as i16), (a[1] % a[1])) == (w46(v4, f16::ONE), (a[0] + a[0]))) as i128)
}

#[operator]
fn w58(a: u16, b: u16, c: bool) -> u16 {
    let [v2, v3] = [(if (c || c) { ((a as u128) ^ (b as u128)) } else { ({ let v1 = (-1000000.0f32); (a as u128) }) }), u128::from(w28((c as i8), bf16::ONE))];
    (w39((v2 as u32).wrapping_mul(64u32), w45((a as f32)), (if (v3 < 64u128) { b } else { (v2 as u16) })) | ((b & b) ^ (if c { (a as u16) } else { (c as u16) })))
}

#[operator]
fn w59(a: [u8; 3]) -> bool {
    let mut v1 = ((if false { 0xe733cu32 } else { (a[0] as u32) }) % ((a[1] as u32) % u32::MAX));
    for i in (0..3).rev() {
        v1 = (match (a[0] as i64).wrapping_shr(v1) { i64::MAX => (v1 + v1), 2 | 64.. => v1.rotate_left(v1), 1 => u32::from(a[1]), _ => (if (a[0] < u8::MIN) { v1 } else { v1 }) }) ^ (a[i] as u32);
        v1 = v1 << i;
    }
    v1 &= u32::from(a[1]);
    let v3 = (match ((v1 as i128), (a[1] < u8::MIN)) { (0, true) => ({ let v2 = (a[1] as f32).min((a[1] as f32)); (v2 * v2) }), (1..=99, _) => (if (-0.0f64).total_cmp(&3.0f64).is_lt() { w44(0x2ad37741c9c24029c09328bf0058u128, a[2]) } else { (a[1] as f32) }), (_, false) => ((a[1] as f32) * (a[2] as f32)), _ => (a[1] as f32) });
    let v4 = (v3 < 0.5f32);
    (match ((a[2] as i16).wrapping_neg() - 0x7ff3i16.clamp(31i16, (a[1] as i16))) { 0 | 7 => ([(if v4 { f16::NEG_ONE } else { f16::INFINITY }), ({ let v5 = (-1000000.0f64); f16::INFINITY })] == [f16::ZERO, (f16::ZERO * f16::ONE)]), 8..=63 => (a[2] >= 1u8), v6 if v6 > 70 => v4, _ => v4 })
}

#[operator]
fn w60(a: [i64; 2], b: i32) -> i16 {
    let mut v3 = (match (f32::INFINITY.to_bits(), (bf16::INFINITY != bf16::ZERO)) { (0, true) => (-(b as i16)), (1..=99, _) => ({ let v1 = (a[1] == 64i64); 0x4i16 }), (_, false) => i16::from((b as u8)), _ => (match (b as u8) { 0 | 7 => i16::MIN, 8..=63 => 1i16, v2 if v2 > 70 => (-63i16), _ => (a[0] as i16) }) });
    for i in 0..1 {
        v3 = ((v3 + v3) & (i16::MAX >> 3u128)) ^ (a[i] as i16);
        v3 = v3 << i;
    }
    let mut v4: i16 = i16::from(((a[1] as u8).rotate_right((v3 as u32)) & (b as u8).abs_diff(5u8)));
    let v5 = b.swap_bytes();
    (((0x2u8 as u128) as i16) >> ((0.0f64 as i8) | 0x78i8.swap_bytes()))
}

#[operator]
fn w61(a: Small) -> u8 {
    let v1 = (a.0 < 100u8);
    let v2 = ((-17i16).max(33i16) as u64).reverse_bits();
    let v3 = (a.1[1] as u128);
    ((if (v1 >= true) { 0x6880du32 } else { 2u32 }).abs_diff((if (a.0 == 7u8) { u32::MIN } else { (v2 as u32) })) as u8)
}

#[operator]
fn w62(a: u8, b: f32, c: u32) -> i16 {
    let v1 = (a - ((a / a) / a));
    let mut v2 = (if (v1 >= 10u8) { ((a as u64) | (a as u64)) } else { u64::from(2u16) });
    for i in (0..1).rev() {
        v2 = (v2 >> v1).abs_diff(v2) * (i as u64);
        if i % 2 == 1 { v2 += (i as u64); } else { v2 ^= 5; }
        v2 = v2 << i;
    }
    (v1 as i16).max(((match 0x19edu16 { 0 | 7 => (b as i16), 8..=63 => 0xe72i16, v3 if v3 > 70 => (v2 as i16), _ => (v1 as i16) }) / ((v1 as i32) as i16)))
}

#[operator]
fn w63(a: Small, b: u32, c: u32) -> u64 {
    let v1 = (!(a.1[1] as i16));
    let mut v2 = (31i64.clamp(3i64, (-65i64)) * (a.1[0] as i64).clamp(8i64, (b as i64)));
    for i in 0..=4 - 1 {
        v2 = i64::from(a.0) ^ (i as i64);
        if i % 2 == 1 { v2 += (i as i64); } else { v2 ^= 5; }
        v2 = v2 << i;
    }
    let v3 = (match (((v2 as u64).swap_bytes() as i8), (a.1[0] < 100i8)) { (0, true) => ((v1 as i32) as i128), (1..=99, _) => (a.0 as i128), (_, false) => (a.1[1] as i128), _ => (b as i128) });
    v2 *= v2;
    (-0.0f64).to_bits()
}

#[operator]
fn w64(a: [f64; 2], b: i16, c: [i64; 2]) -> [u16; 5] {
    let mut v1 = (if (!(c[1] == 3i64)) { ((c[0] >= 10i64) as i64) } else { (c[0] ^ c[0]) });
    for i in 0..=2 - 1 {
        v1 = (a[0] as i64).rotate_left((true as u32)) + (a[i] as i64);
        v1 = v1 << i;
    }
    let mut v2 = (if ([i128::MIN, i128::MAX] >= [(v1 as i128), i128::MIN]) { (a[1] as i16) } else { b.saturating_add(b) });
    for i in (0..2).rev() {
        v2 = (v2.wrapping_shr((v1 as u32)) >> (127u32 % 1u32)) * (a[i] as i16);
        if i % 2 == 1 { v2 += (a[i] as i16); } else { v2 ^= 5; }
        v2 = v2 << i;
    }
    [(if f16::INFINITY.total_cmp(&f16::MAX).is_lt() { (match (c[1] as i8) { 0 | 7 => u16::MAX, 8..=63 => 8u16, v3 if v3 > 70 => (c[0] as u16), _ => (c[0] as u16) }) } else { (match (c[1] as u16) { u16::MAX => (v1 as u16), 2 | 64.. => (c[1] as u16), 1 => (b as u16), _ => (c[1] as u16) }) }).rotate_right((if ([(a[0] >= (-0.0f64)), (b < 0x5831i16)] < [(b == 0x7114i16), true]) { ({ let v4 = (c[1] as u16); (v2 as u32) }) } else { (match (0x1245266ei32, (a[1] < (-1.0f64))) { (0, true) => (v1 as u32), (1..=99, _) => (c[0] as u32), (_, false) => (c[1] as u32), _ => 33u32 }) })), (match w16(f16::MAX.clamp(f16::ONE, f16::NEG_ONE), (v1 / c[0])) { 0 | 7 => 0x1ea3u16, 8..=63 => 0xbu16, v5 if v5 > 70 => (a[0] as u16), _ => 3u16 }), 3, 65535, (a[1] as u16)]
}

#[operator]
fn w65(a: u8, b: u16) -> Wide {
    let (v2, v3) = (((100i32 | 127i32) * ({ let v1 = b; 63i32 })), (match (((a as u32) as i128), w10((a < 1u8))) { (0, true) => ((b as i64) as i64), (1..=99, _) => 127i64.wrapping_shl((b as u32)), (_, false) => w54(a, f32::EPSILON, 0.5f32), _ => w54(a, (b as f32), (b as f32)) }));
    let mut v5: u64 = ((b as u64) & (({ let v4 = false; u64::MIN }) ^ ((a as u64) & (a as u64))));
    let v6 = v3;
    let v7 = b;
    Wide { first: 100u128.swap_bytes().wrapping_mul((v6 as u128)).rotate_right((if (if false { (a >= u8::MAX) } else { (v6 < (-79i64)) }) { (0u32 | (v7 as u32)) } else { (if (a >= 5u8) { u32::MIN } else { (v2 as u32) }) })), second: ((v2 >= 0x1037ei32) as i128) }
}

#[operator]
fn w66(a: [u32; 3]) -> u128 {
    let mut v1: i32 = ((if ((a[2] < 33u32) || true) { ((a[1] == 0x3555346u32) | (a[2] < 0x1e71d6a5u32)) } else { ((a[0] == u32::MAX) || (a[1] >= 64u32)) }) as i32);
    ((((a[0] as i64) / (v1 as i64)) as u128) | (a[2] as u128))
}

#[operator]
fn w67(a: f16, b: i8, c: [u32; 3]) -> f32 {
    let mut v1 = b;
    for i in (0..3).rev() {
        v1 = (1u64.clamp((v1 as u64), (c[0] as u64)) as i8) ^ (c[i] as i8);
        if i % 2 == 1 { v1 += (c[i] as i8); } else { v1 ^= 5; }
        v1 = v1 << i;
    }
    let mut v3 = ((!0x76i8) + (v1 & v1));
    for i in (0..2).rev() {
        v3 = ((v1 - (b as i8)) / (b * v1)) ^ (c[i] as i8);
        if i % 2 == 1 { v3 += (c[i] as i8); } else { v3 ^= 5; }
        v3 = v3 << i;
    }
    v3 &= ((c[0] as f32).signum() as i8);
    ((if bf16::MAX.is_nan() { (match (c[1] as i128) { i128::MAX => 0.5f32, 2 | 64.. => (-2.75f32), 1 => (c[2] as f32), _ => (b as f32) }) } else { (c[0] as f32).clamp(1e-3f32, 0.0f32) }) + (((c[0] as u16) - 1u16) as f32))
}

#[operator]
fn w68(a: bf16, b: [i64; 2]) -> u16 {
    let mut v1 = ((b[0] as i16).clamp((b[0] as i16), (b[0] as i16)) * ((b[1] as i16) ^ (b[1] as i16)));
    for i in (0..1).rev() {
        v1 = (if (if (v1 == 0i16) { (b[0] >= 0x7ffffffffffffff9i64) } else { (a < bf16::NEG_ONE) }) { v1.reverse_bits() } else { (v1 & v1) }) * (b[i] as i16);
        v1 = v1 << i;
    }
    a.to_bits()
}

#[operator]
fn w69(a: f32) -> i32 {
    let v2 = ((match (0u16 | 0u16) { u16::MAX => u8::MIN.wrapping_shr(0x45b3579eu32), 2 | 64.. => (100i8 as u8), 1 => (a as u8).clamp((a as u8), (a as u8)), _ => ((a as u8) / 0x6eu8) }) & ((match (a as u8) { 0 | 7 => (a as u8), 8..=63 => (a as u8), v1 if v1 > 70 => (a as u8), _ => (a as u8) }) & (a as i8).abs_diff((-73i8))));
    w45((if (-0.0f32).is_sign_negative() { a.signum() } else { a.signum() }))
}

#[operator]
fn w70(a: [i64; 2]) -> u16 {
    let v1 = ((match (((a[1] as u128) << (a[0] as u64)), w9(10u16)) { (0, true) => f16::MAX.clamp(f16::NEG_ONE, f16::ZERO), (1..=99, _) => (-f16::MAX), (_, false) => f16::INFINITY.copysign(f16::INFINITY), _ => f16::ZERO }) * f16::from_f32((a[1] as f32)));
    let mut v2: f16 = v1;
    let mut v3 = 33u16;
    for i in 0..=1 - 1 {
        v3 = v3 * (a[i] as u16);
        if i % 2 == 1 { v3 += (a[i] as u16); } else { v3 ^= 5; }
        v3 = v3 << i;
    }
    (({ let v5 = 0i16; v3 }).abs_diff(((a[1] as f32) as u16)) + w58(({ let v6 = v3; v3 }), ((v3 as u16) / v3), w9(31u16)))
}

#[operator]
fn w71(a: i32, b: Wide) -> u64 {
    let v2 = (if (match (a as i64).abs_diff((b.second as i64)) { u64::MAX => ({ let v1 = (a as f32); (b.first == 0x5f6c97603b63e29d16b207b909dae688u128) }), 2 | 64.. => ([a, a] >= [(b.second as i32), a]), 1 => (b.first as u64).is_power_of_two(), _ => (b.second as i32).cmp(&a).then((a as u8).cmp(&(a as u8))).is_lt() }) { w28((a as i8), bf16::from_f32((a as f32))) } else { (match ((b.first as i16) % 0x50e9i16) { i16::MAX => (b.second as u64), 2 | 64.. => ((a as u64) * (a as u64)), 1 => (b.first as u64).saturating_add((a as u64)), _ => (if (a < (-38i32)) { (b.second as u64) } else { (a as u64) }) }) });
    (match (i64::from(10u8) as i64) { i64::MAX => (100u64.swap_bytes() << (b.second as i8)), 2 | 64.. => (if ((a as f32) > (a as f32)) { (v2 | v2) } else { u64::from((a as u16)) }), 1 => (v2 / v2).clamp((v2 * u64::MIN), (v2 >> b.first)), _ => ((b.first as u16) as u64) })
}

#[operator]
fn w72(a: i64) -> i128 {
    let mut v2 = w62(({ let v1 = a; (v1 as u8) }), (-(a as f32)), (a as u32).rotate_left((a as u32)));
    for i in (0..3).rev() {
        v2 = (if ((i8::MIN, bf16::MAX) <= ((a as i8), bf16::ZERO)) { v2.clamp((a as i16), v2) } else { ({ let v3 = u32::MAX; v2 }) }) + (i as i16);
        if i % 2 == 1 { v2 += (i as i16); } else { v2 ^= 5; }
        v2 = v2 << i;
    }
    let v4 = (-f16::ZERO.copysign(f16::ZERO).copysign(f16::INFINITY));
    (match ({ let v5 = ((a as u128) * (a as u128)); (if (a == i64::MAX) { (a as u16) } else { (a as u16) }) }) { 0 | 7 => (if (a < 1i64) { (a as i128) } else { 0x692917bf8d41e618913d3a5755707a95i128 }).wrapping_neg(), 8..=63 => ((a / a) as i128), v6 if v6 > 70 => (if (v2 == 33i16) { (a as i128) } else { (v2 as i128) }), _ => (v2 as i128) })
}

#[operator]
fn w73(a: Packed, b: i128, c: i8) -> [u16; 5] {
    let a_byte = a.byte;
    let a_long = a.long;
    let a_double = a.double;
    let a_word = a.word;
    let mut v1: i8 = ((a_double as i8).saturating_add((if (b >= 0x17bf8228e08c9aa7e4d7f33143eb0d5fi128) { c } else { 63i8 })) & (a_word as i8).saturating_add((c as i8)));
    [w39(u32::from((a_long as u8)), (if (a_long == i64::MIN) { 5i32 } else { (a_byte as i32) }), (!(a_long as u16))).wrapping_sub(({ let v2 = (bf16::ONE * bf16::NEG_ONE); (10u16 / 10u16) })), (((a_long as u128) as u64) as u16).reverse_bits(), 3, 65535, 1u16.swap_bytes()]
}

#[operator]
fn w74(a: bool, b: f16) -> i32 {
    let (v1, v2) = (f64::MIN_POSITIVE.is_sign_positive(), f16::from_f32((-2.75f32)).signum());
    (({ let v4 = ((v1 as i8) % (a as i8)); v4.wrapping_neg() }) as i32)
}

#[operator]
fn w75(a: Mixed) -> [f64; 2] {
    let v1 = (f16::MAX.to_bits() + ((a.float as u16) % 100u16).max((a.float as u16).swap_bytes()));
    [({ let v2 = (v1 as i128).abs_diff((a.long as i128)); (v1 as f64).mul_add((a.short[0] as f64), (a.short[1] as f64)) }).mul_add(f64::from_bits(a.long.clamp(a.long, a.long)), ((a.short[0] as f64) * (a.float as f64)).clamp((a.long as f64).copysign(f64::EPSILON), ({ let v3 = (a.short[1] as f64); 0.0f64 }))), ({ let v4 = (((a.float as i64) >> (a.float as u8)) & (a.long as i64)); (match ((a.long & a.long), (a.long >= 0u64)) { (0, true) => (if (a.long == 5u64) { (v1 as f64) } else { (a.short[0] as f64) }), (1..=99, _) => 1e-3f64.abs(), (_, false) => (if (a.short[1] >= 3i16) { 3.0f64 } else { 1.0f64 }), _ => (a.float as f64) }) })]
}

#[operator]
fn w76(a: u16, b: u128, c: u64) -> [u8; 3] {
    let mut v2: bool = (match (((b as i32) as u128) as i128) { i128::MAX => (c as i128).min((a as i128)).cmp(&(c as i128)).then(({ let v1 = (c as i16); (c as i8) }).cmp(&(false as i8))).is_eq(), 2 | 64.. => ((b as i8) + (a as i8)).is_positive(), 1 => ((c as i8) != (a as i8)), _ => (c == 7u64) });
    [(match (((v2 as u32) as u8) << (if v2 { b } else { b })) { 0 | 7 => (((a as u32) as u32) as u8), 8..=63 => (0i8.abs_diff(7i8) | ((c as u8) << a)), v3 if v3 > 70 => 0x7au8, _ => (a as u8) }); 3]
}

#[operator]
fn w77(a: f32, b: bf16, c: i8) -> [i64; 2] {
    let mut v1 = (c as i128);
    for i in 0..4 {
        v1 = ((8i128 * v1) | v1) ^ (i as i128);
        v1 = v1 << i;
    }
    let mut v3: u8 = (((b >= bf16::INFINITY) as u8) % (if (match (a as u8) { 0 | 7 => (b >= bf16::MAX), 8..=63 => (a >= 16777216.0f32), v2 if v2 > 70 => (v1 == i128::MAX), _ => (c >= (-77i8)) }) { (c as u8) } else { u8::MAX }));
    [i64::from(v3.wrapping_sub(v3)).clamp(((if (a < 1e-3f32) { v3 } else { v3 }) as i64), (127i64.reverse_bits() + ((c as i64) & (v1 as i64)))), (v3 as i64)]
}

#[operator]
fn w78(a: bool, b: i64, c: i64) -> bool {
    let v3 = ({ let v1 = (3u8.wrapping_neg() as i8); (if ((v1 as i16) <= (v1 as i16)) { ({ let v2 = a; (v1 as u128) }) } else { (b as u128).wrapping_shr(2u32) }) });
    let (v5, v6) = (({ let v4 = (a as i128); 1i32.wrapping_sub(0xd23fe8i32) }), (v3 as u16));
    let mut v7 = (b as u32);
    for i in 0..2 {
        v7 = (c as u32) - (i as u32);
        if i % 2 == 1 { v7 += (i as u32); } else { v7 ^= 5; }
        v7 = v7 << i;
    }
    (({ let v8 = (c as i8); u8::MAX }).swap_bytes() != ((if a { (v3 as u8) } else { (b as u8) }) * (u64::MIN as u8)))
}

#[operator]
fn w79(a: f32, b: i64, c: [u16; 5]) -> u64 {
    let (v2, v3) = (bf16::from_f32(a.signum()), w9(u16::from(u8::MAX)));
    let mut v4 = (a as u32).clamp((2u32 as u32), ((a as u32) / 1u32));
    for i in 0..4 {
        v4 = (v4.wrapping_shl(v4) >> (8i16 as u64)) - (c[i] as u32);
        if i % 2 == 1 { v4 += (c[i] as u32); } else { v4 ^= 5; }
        v4 = v4 << i;
    }
    (match (v4, v3) { (0, true) => u64::MIN, (1..=99, _) => (b as u64), (_, false) => 100u64, _ => (c[0] as u64) }).wrapping_shl((v4 * v4)).wrapping_shr(({ let v5 = (if v3 { (c[0] as i128) } else { (-99i128) }); v4.wrapping_neg() }))
}

#[operator]
fn w80(a: i8, b: Wide) -> u16 {
    let mut v2 = ({ let v1 = ((a as f32) * 1.0f32); w58(63u16, (b.second as u16), (b.first < 7u128)) });
    for i in 0..=4 - 1 {
        v2 = v2 * (i as u16);
        if i % 2 == 1 { v2 += (i as u16); } else { v2 ^= 5; }
        v2 = v2 << i;
    }
    (match (((a as u32) as i8).abs_diff((b.second as i8)), (((a as u32) != (v2 as u32)) & true)) { (0, true) => u16::from(63u8.wrapping_sub((b.first as u8))), (1..=99, _) => v2, (_, false) => (({ let v3 = (v2 as u32); 0u8 }) as u16), _ => w34((if (a == i8::MAX) { (b.second as u32) } else { 33u32 })) })
}

#[operator]
fn w81(a: i128) -> bf16 {
    (if (match ((0x0u128 as u32), ((a >= 0x30a5ab9d0111554a391eci128) ^ true)) { (0, true) => (a as i8).is_positive(), (1..=99, _) => (0i32 == 8i32), (_, false) => i8::MIN.cmp(&(a as i8)).then((a as i8).cmp(&i8::MAX)).is_ne(), _ => ((a as u16) <= (a as u16)) }) { ({ let v1 = bf16::MAX; v1 }).signum() } else { (bf16::from_f32((-1000000.0f32)) * (if (a < 100i128) { bf16::NEG_ONE } else { bf16::NEG_ONE })) })
}

#[operator]
fn w82(a: i64, b: u16) -> [u32; 3] {
    let v1 = ((b as i8) + ((-65i16) as i8).min((b as i8).rotate_right(7u32)));
    [(-1.0f32).to_bits(), ((if (a >= (-48i64)) { (v1 as u32) } else { 1u32 }) >> ((a as i8) as i64)).max(((if (a < 127i64) { (a as u32) } else { (a as u32) }) ^ (if (b < 0x6b45u16) { u32::MAX } else { 0x20285923u32 }))), (match (match ((v1 as i32) * 0x66fb1a62i32) { 0 | 7 => w2(v1, f16::NEG_ONE), 8..=63 => ((a as i128) >> 127u64), v2 if v2 > 70 => i128::from((a as u8)), _ => w72(a) }) { 0 | 7 => 0x3e0596a4u32, 8..=63 => (a as u32), v3 if v3 > 70 => (a as u32), _ => (b as u32) })]
}

#[operator]
fn w83(a: i8) -> u32 {
    let (v1, v2) = ((a as i32), 16777216.0f32);
    let [v5, v6] = [(({ let v3 = f16::INFINITY; (a as u128) }) - 0xf7ca340b8f38e50674da30679651141u128.clamp((v1 as u128), 0x1c3a279b082874c4eea118691f9f6af6u128)), ({ let v4 = (v1 as i8).rotate_left((v1 as u32)); ((v1 as u128) * (v4 as u128)) })];
    let v7 = ((v1 | v1.saturating_sub((a as i32))) as u64);
    ((if (v6 == 5u128) { (v5 as u32) } else { 127u32 }) ^ 1u32.saturating_sub((v1 as u32))).swap_bytes()
}

#[operator]
fn w84(a: bool) -> i64 {
    (({ let v1 = (0u16 * (a as u16)); (match (a as i128) { i128::MAX => 64i64, 2 | 64.. => (a as i64), 1 => (v1 as i64), _ => (a as i64) }) }) / (if ((a as i64) <= (-23i64)) { i64::from((a as u32)) } else { ((a as i32) as i64) }))
}

#[operator]
fn w85(a: i8) -> [u32; 3] {
    let v1 = w83((if true { a } else { a }).clamp(a.clamp(a, a), (!a)));
    [(((a as u128) as u32).wrapping_shr((if (v1 == 63u32) { v1 } else { (v1 as u32) })) % (a as u32)), ((([v1, v1] == [v1, (v1 as u32)]) as i64) as u32), ({ let v2 = (match ((v1 as i32), (v1 == u32::MIN)) { (0, true) => 64u128, (1..=99, _) => (v1 as u128), (_, false) => u128::MIN, _ => (v1 as u128) }); (v1 / (a as u32)) }).min(16777216.0f32.to_bits().wrapping_mul((v1 & (a as u32))))]
}

#[operator]
fn w86(a: i16) -> u32 {
    let mut v2 = ({ let v1 = (a as u8); v1 }).clamp(u8::MAX.abs_diff((a as u8)), ((a as u8) << (a as i64)));
    for i in 0..1 {
        v2 = (a as u8) ^ (i as u8);
        v2 = v2 << i;
    }
    let v4 = (match ((v2 - v2) as i128) { 0 | 7 => i32::from((v2 as u16)), 8..=63 => 64i32, v3 if v3 > 70 => (v2 as i32), _ => (-61i32) });
    let v5 = v2;
    ({ let v6 = ((if (v4 == 2i32) { (v2 as i128) } else { 31i128 }) << ((-65i128) >> (v5 as u128))); (((v5 as i64) as u128) as u32) })
}

#[operator]
fn w87(a: [f64; 2], b: [u32; 3], c: Small) -> Wide {
    let mut v1 = (w2((b[1] as i8), f16::ONE) as i128);
    for i in (0..2).rev() {
        v1 = ({ let v2 = c.1[1].cmp(&c.1[0]).then(0x66924524i32.cmp(&i32::MAX)).is_lt(); (i128::MIN >> v1) }) + (b[i] as i128);
        v1 = v1 << i;
    }
    let v3 = ((b[1] ^ b[0]) + w86((a[0] as i16))).min(b[0]);
    let v4 = ((if (10i64 <= (b[1] as i64)) { (if (a[0] < 0.0f64) { (c.0 >= 0x11u8) } else { (b[0] >= 64u32) }) } else { (true | (v3 < 0x7ee30f67u32)) }) as i32);
    Wide { first: ((({ let v5 = (-30i64); c.0 }) as u128) as u128), second: ((v1 + v1).saturating_sub(0x7b23ca4ce6e29d68ccd17200213a0b74i128.reverse_bits()) + ({ let v6 = f16::MAX; (v1 as i128) })) }
}

#[operator]
fn w88(a: bool, b: u8, c: u32) -> Packed {
    let mut v1: i64 = w84(w78((a == true), (-98i64), 7i64)).max(((a as i64) % w54(b, (c as f32), f32::INFINITY)));
    let v3 = ({ let v2 = ((a as u8).swap_bytes() as f32); i64::from(c) });
    v1 *= v1;
    Packed { byte: (((v1 as f64) as u8).abs_diff((v1 as u8)) | (if ((c as i8) == (a as i8)) { (a as u8) } else { (b - b) })), long: ({ let v4 = 3u64; v3 }), double: (c as f64), word: c }
}

#[operator]
fn w89(a: [u16; 5], b: i64) -> bf16 {
    let mut v1 = (((a[0] as i8) as i16) << ((a[0] as u64) ^ 1u64));
    for i in (0..4).rev() {
        v1 = (match (if (v1 < i16::MIN) { (v1 as u8) } else { 0x42u8 }) { 0 | 7 => v1, 8..=63 => v1, v2 if v2 > 70 => (match ((a[0] as u64), (b == 0x7ffffffffffffffci64)) { (0, true) => (a[4] as i16), (1..=99, _) => (b as i16), (_, false) => v1, _ => v1 }), _ => w46((b as f64), f16::NEG_ONE) }) ^ (a[i] as i16);
        if i % 2 == 1 { v1 += (a[i] as i16); } else { v1 ^= 5; }
        v1 = v1 << i;
    }
    let v3 = ((if (a[4] < u16::MAX) { bf16::MAX } else { bf16::ZERO }).copysign(bf16::MAX) + bf16::from_bits(a[0].max(a[0])));
    let mut v4 = ((-1000000.0f32).signum() as i8);
    for i in 0..=2 - 1 {
        v4 = ((match (a[3], (a[0] < 8u16)) { (0, true) => (-41i32), (1..=99, _) => (a[0] as i32), (_, false) => (-24i32), _ => (v1 as i32) }) as i8) ^ (a[i] as i8);
        if i % 2 == 1 { v4 += (a[i] as i8); } else { v4 ^= 5; }
        v4 = v4 << i;
    }
    let mut v5 = i128::from((a[4] as u64));
    for i in 0..4 {
        v5 = v5 - (a[i] as i128);
        v5 = v5 << i;
    }
    ({ let v6 = ({ let v7 = true; (v1 as f32) }); ({ let v8 = (a[4] as u8); v3 }) }).signum()
}

#[operator]
fn w90(a: i8, b: [u8; 3]) -> Mixed {
    let v1 = bf16::from_f32(((a as f32) + (b[0] as f32))).clamp((-(bf16::INFINITY + bf16::NEG_ONE)), (if true { bf16::ONE } else { bf16::INFINITY }).copysign(bf16::ONE));
    let mut v2 = (b[1] as u64);
    for i in 0..=3 - 1 {
        v2 = v2 ^ (b[i] as u64);
        v2 = v2 << i;
    }
    Mixed { float: (match (match (if (v2 < 5u64) { (b[0] as i32) } else { 0x17811cei32 }) { i32::MAX => ((-54i64) * (b[2] as i64)), 2 | 64.. => ((b[1] as i64) / (b[2] as i64)), 1 => w84((v2 == 33u64)), _ => ((v2 as i64) | 33i64) }) { i64::MAX => (if ((b[2], (b[1] as i32)) <= (b[1], (a as i32))) { (v2 as f32).round_ties_even() } else { (a as f32) }), 2 | 64.. => (b[2] as f32), 1 => 0.0f32, _ => (v2 as f32) }), long: v2, short: [(v2 as i16), (b[0] as i16)] }
}

#[operator]
fn w91(a: f32, b: [u8; 3], c: f64) -> [u32; 3] {
    let mut v2: i128 = w72(({ let v1 = (i16::MIN + (-45i16)); i64::from((b[0] as u16)) }));
    let mut v3 = ((v2 as u16).saturating_add(3u16) % (match ((a as i32), true) { (0, true) => (c as u16), (1..=99, _) => (b[1] as u16), (_, false) => 33u16, _ => (v2 as u16) }));
    for i in (0..2).rev() {
        v3 = f16::ONE.to_bits() * (b[i] as u16);
        v3 = v3 << i;
    }
    v3 &= v3;
    [({ let v5 = ((b[2] + (v3 as u8)) / ({ let v6 = (b[2] as u64); b[1] })); u32::from(v3.wrapping_shl((b[1] as u32))) }), (match (if (!false) { (c as i64) } else { (v3 as i64) }) { 0 | 7 => u32::MAX, 8..=63 => (c as u32), v7 if v7 > 70 => (v3 as u32), _ => (v2 as u32) }), 31u32]
}

#[operator]
fn w92(a: i64, b: bf16, c: f64) -> i32 {
    let v2 = f64::from_bits((a as u64)).signum();
    let v4 = (if ({ let v3 = (a as i128).wrapping_add((a as i128)); (c >= (-1000000.0f64)) }) { ((a as u16) | (!(v2 as u16))) } else { (a as u16) });
    ({ let v5 = (match (a as u64).max((v4 as u64)) { 0 | 7 => (if true { v4 } else { v4 }), 8..=63 => ({ let v6 = 0x7ffffff4i32; v4 }), v7 if v7 > 70 => v4, _ => (v2 as u16).saturating_sub(v4) }); ({ let v8 = ({ let v9 = (c as f32); (c as u64) }); (a as i32).wrapping_sub(0x0i32) }) })
}

#[operator]
fn w93(a: [f64; 2], b: u8) -> i64 {
    let mut v1 = (match ((a[1] as u16), (b < 3u8)) { (0, true) => b, (1..=99, _) => b, (_, false) => b, _ => b }).min((if (a[0] == (-1.0f64)) { (b as u8) } else { b }));
    for i in 0..1 {
        v1 = (((a[1] as u32) as i8) as u8) * (a[i] as u8);
        if i % 2 == 1 { v1 += (a[i] as u8); } else { v1 ^= 5; }
        v1 = v1 << i;
    }
    let v3 = (({ let v2 = (if (a[0] == f64::NAN) { (a[1] as f64) } else { (v1 as f64) }); ((a[0] as i64) as i8) }) | (match 1.0f32.to_bits() { u32::MAX => ((a[1] as i8) | i8::MIN), 2 | 64.. => (a[0] as i8).saturating_sub(0x74i8), 1 => (a[1] as i8), _ => (a[1] as i8) }));
    let [v4, v5] = [a[1], a[0]];
    (if (!({ let v6 = (b >= u8::MIN); v6 })) { (((b as i64) as u64) as i64) } else { ((7i64 >> (-40i64)) % ((v3 as i64) % (v4 as i64))) })
}

#[operator]
fn w94(a: u16, b: u128, c: i64) -> u128 {
    let v1 = (match ((c as i32), (b < 127u128)) { (0, true) => (([true, (c == (-84i64))] < [false, (b == u128::MIN)]) as u8), (1..=99, _) => ((match a { u16::MAX => c, 2 | 64.. => c, 1 => c, _ => c }) as u8), (_, false) => (if (!(b >= 7u128)) { (match ((-87i16), (b == 0x8da368e14ddc6e33a6fca8014d12034u128)) { (0, true) => 63u8, (1..=99, _) => (b as u8), (_, false) => (a as u8), _ => u8::MAX }) } else { (c as u8) }), _ => (match ((c as i16), (a < 64u16)) { (0, true) => (a as u8), (1..=99, _) => (c as u8), (_, false) => (a as u8), _ => (b as u8) }) });
    let (v2, v3) = ((v1 as u32), (a as i8));
    let mut v4 = v3;
    for i in 0..=3 - 1 {
        v4 = v4 + (i as i8);
        v4 = v4 << i;
    }
    ((if (b as i64).cmp(&c).then((v4 as i128).cmp(&100i128)).reverse().is_gt() { (!b) } else { b }) * b)
}

#[operator]
fn w95(a: [u16; 5], b: f32) -> Packed {
    let v3 = i32::from((a[4].abs_diff(a[3]) | (if (a[3] < u16::MAX) { a[4] } else { a[3] })));
    Packed { byte: ((match (7i8, (a[0] == 1u16)) { (0, true) => (v3 as u8), (1..=99, _) => (a[0] as u8), (_, false) => (a[0] as u8), _ => (v3 as u8) }).swap_bytes() ^ ((5u8 ^ u8::MAX) << w72(1i64))), long: (if (a[0] == 0x12f1u16) { (w55((v3 as i8), b, (v3 as u32)) as i64) } else { ({ let v4 = (bf16::ONE + bf16::NEG_ONE); (v3 as i64) }) }), double: (-3.0f64.clamp(3.0f64, (b as f64))).copysign((-1.0f64)), word: (w83((-49i8)) & 1u32) }
}

#[operator]
fn w96(a: f16, b: Packed) -> u16 {
    let b_byte = b.byte;
    let b_long = b.long;
    let b_double = b.double;
    let b_word = b.word;
    let v1 = (if ((b_byte as u128).wrapping_mul(2u128) < (b_word as u128).abs_diff((b_long as u128))) { (w46(b_double, a) * 64i16.wrapping_shr(0x5ec6a259u32)) } else { w46((if (b_word >= 7u32) { b_double } else { b_double }), a) });
    let v2 = (b_word as u64);
    let mut v3 = b_long;
    for i in (0..2).rev() {
        v3 = i64::MIN ^ (i as i64);
        v3 = v3 << i;
    }
    ((((v1 as f32) / f32::NAN) as u16) + ((b_long as u16) << i32::MAX).wrapping_shl((match (v1, (v2 == 3u64)) { (0, true) => b_word, (1..=99, _) => b_word, (_, false) => 3u32, _ => b_word })))
}

#[operator]
fn w97(a: f32) -> u16 {
    let v1 = bf16::NEG_ONE.copysign(bf16::ZERO);
    ((a as u16) ^ (({ let v2 = u16::MIN; v2 }) - u16::from(2u8)))
}

#[operator]
fn w98(a: bool, b: [u16; 5]) -> f16 {
    let mut v2 = (match 0.0f32.to_bits() { 0 | 7 => ((a as i16) * (b[0] as i16)), 8..=63 => (b[0] as i16).swap_bytes(), v1 if v1 > 70 => ((b[4] as u32) as i16), _ => (b[3] as i16) });
    for i in (0..3).rev() {
        v2 = v2 ^ (b[i] as i16);
        if i % 2 == 1 { v2 += (b[i] as i16); } else { v2 ^= 5; }
        v2 = v2 << i;
    }
    let v3 = a;
    f16::from_f32((b[0] as f32).abs()).clamp(f16::from_f32((1.0f32 * (b[3] as f32))), ((match ((v3 as u128), v3) { (0, true) => f16::NEG_ONE, (1..=99, _) => f16::MAX, (_, false) => f16::INFINITY, _ => f16::ZERO }) / f16::ONE.signum()))
}

#[operator]
fn w99(a: u32) -> bool {
    let v1 = ((match ((a as i8), true) { (0, true) => (a as f32), (1..=99, _) => (a as f32), (_, false) => (a as f32), _ => (a as f32) }) + (-(a as f32))).copysign(f32::NAN);
    let (v3, v4) = (({ let v2 = (v1 / v1); (a as u128).cmp(&(a as u128)).then(0i8.cmp(&(v2 as i8))).is_eq() }), (-(a as f64)));
    let mut v5 = (1i64 as i8).rotate_left((if v3 { a } else { a }));
    for i in (0..1).rev() {
        v5 = v5.signum().abs() ^ (i as i8);
        if i % 2 == 1 { v5 += (i as i8); } else { v5 ^= 5; }
        v5 = v5 << i;
    }
    let (v6, v7) = ((v5.swap_bytes() * v5), i32::MAX);
    (match w58((if v3 { (v6 as u16) } else { 0u16 }), (v5 as u16), ((v5 as i128) <= (v7 as i128))) { u16::MAX => ((v3 as i8) % v6).cmp(&(v6 as i8)).then((a - a).cmp(&a)).is_lt(), 2 | 64.. => (v4 < f64::EPSILON), 1 => v3, _ => (v7 < 0x9i32) })
}

#[operator]
fn w100(a: i128, b: f16) -> i128 {
    let (v3, v4) = ((i16::from(u8::MAX) as i32), (u128::MIN.rotate_left((a as u32)) & ({ let v2 = (a as u128); (a as u128) })));
    (if ((a as u8) > (a as u8)) { (0x13aed66fb600f603656a8i128 >> a) } else { ((v4 as i8) as i128) }).swap_bytes()
}

#[operator]
fn w101(a: [i64; 2]) -> Packed {
    let (v2, v3) = ((match (7i16 | (a[0] as i16)) { i16::MAX => (-(a[0] as f64)), 2 | 64.. => (-16777216.0f64), 1 => (a[0] as f64).ceil(), _ => w48((a[1] as u128)) }), (({ let v1 = i128::MIN; (-2.75f64) }) as u8));
    let mut v4 = ((a[0] as u64) * (v2 as u64)).abs_diff((v2 as i64).abs_diff(a[0]));
    for i in 0..=2 - 1 {
        v4 = w15(0x7a40bd8e73ee1b61c88ba6f8f33527bfi128).max(v4.saturating_add(v4)) ^ (a[i] as u64);
        v4 = v4 << i;
    }
    let [v5, v6] = [(match (if (a[0] >= 64i64) { v3 } else { (a[0] as u8) }) { u8::MAX => (match (v4 as i8) { i8::MAX => (v4 as i32), 2 | 64.. => (a[1] as i32), 1 => (v2 as i32), _ => (v3 as i32) }), 2 | 64.. => (a[0] as i32).abs(), 1 => (v2 as i32), _ => (v3 as i32) }), (v2 as i32)];
    let (v7, v8) = ((a[0] == i64::MIN), 3u16);
    Packed { byte: (v3.swap_bytes() & ({ let v9 = bf16::ZERO; v3 })).clamp((match (if v7 { (v6 as i16) } else { (v3 as i16) }) { 0 | 7 => ((v6 as u8) - v3), 8..=63 => ((a[1] as i16) as u8), v10 if v10 > 70 => (0x3c0f8425i32 as u8), _ => ((v8 as u8) | v3) }), v3), long: a[1], double: v2, word: (v8 as u32) }
}

#[operator]
fn w102(a: [u8; 3]) -> Wide {
    let mut v1 = w2((0x0i8 - (a[1] as i8)), (if (a[1] < 63u8) { f16::MAX } else { f16::ONE }));
    for i in 0..3 {
        v1 = (v1 - w2(100i8, f16::ONE)) - (a[i] as i128);
        v1 = v1 << i;
    }
    Wide { first: ((((a[0] as i8) | 1i8) - (if (v1 >= 63i128) { i8::MAX } else { 127i8 })) as u128), second: ({ let v2 = ({ let v3 = (0x10056f322u128 * (a[1] as u128)); (match (a[1] as u32) { u32::MAX => (-1000000.0f64), 2 | 64.. => (a[0] as f64), 1 => (a[0] as f64), _ => 16777216.0f64 }) }); ((a[1] as u16) as i128).min(((v2 >= (-1.0f64)) as i128)) }) }
}

#[operator]
fn w103(a: [u16; 5]) -> Small {
    Small((if f16::ZERO.copysign(f16::ZERO).is_nan() { (((a[4] as u8) - (a[3] as u8)) | ((a[3] as u8) << 0x1f55de23u32)) } else { ((a[4] as u8) & (a[3] as u8)).clamp((a[0] as u8).abs_diff((a[3] as u8)), 33u8) }), [(if false { (({ let v1 = 0x41fed89118205d46u64; 31u8 }) as i8) } else { (if ((a[0] as i64) > (a[4] as i64)) { (a[3] as i8).wrapping_sub((a[3] as i8)) } else { (3i8 % (a[4] as i8)) }) }), (({ let v2 = a[3]; (a[4] as i8) }).clamp(((a[0] as f32) as i8), (-(a[0] as i8))) + ({ let v3 = (0x3dbfd71du32 as i128); (v3 as i8) }))])
}

#[operator]
fn w104(a: Mixed) -> bool {
    let mut v1 = (a.short[0].wrapping_sub(a.short[0]) / a.short[0].rotate_left((a.short[0] as u32)));
    for i in 0..=3 - 1 {
        v1 = w46(w8(100u128, (a.long as i32)), (f16::ZERO - f16::NEG_ONE)) ^ (i as i16);
        v1 = v1 << i;
    }
    let v3 = w84(([({ let v2 = (a.long as i8); a.short[0] }), a.short[0]] >= [a.short[0].wrapping_mul(a.short[1]), w62(u8::MIN, a.float, (a.float as u32))]));
    (match ((match (v1 as u8) { u8::MAX => 2i8, 2 | 64.. => (a.long as i8), 1 => (a.short[0] as i8), _ => (a.short[1] as i8) }) / ((a.short[0] as i16) as i8)) { 0 | 7 => ({ let v4 = i64::MIN.max(v3); (if (a.short[1] < 7i16) { false } else { (v4 >= 1i64) }) }), 8..=63 => (!(3.0f64 <= 1e-3f64)), v5 if v5 > 70 => ((((a.short[0] as i16) * i16::MIN), ((v1 as i128) << 0x34u8)) < (((v1 as u128) as i16), ((v1 as i128) * (a.short[1] as i128)))), _ => ((v1 as u8) <= (v3 as u8)) })
}

#[operator]
fn w105(a: i8, b: u8, c: u8) -> i32 {
    let v3 = ({ let v1 = ((a as f64).signum() as i32); ((if (v1 < i32::MIN) { (v1 as u32) } else { (b as u32) }) - (match 127u128 { 0 | 7 => 100u32, 8..=63 => 2u32, v2 if v2 > 70 => (v1 as u32), _ => (b as u32) })) });
    (({ let v4 = (if (b < u8::MIN) { (v3 as i32) } else { (b as i32) }); v4.reverse_bits() }) / (w69((a as f32)) % w69(1.0f32)))
}

#[operator]
fn w106(a: i64, b: [u8; 3]) -> u32 {
    let v1 = w86((b[1] as i16));
    let mut v3 = (({ let v2 = 3u128; (b[0] as i32) }) % (b[2] as i32).wrapping_sub((b[2] as i32)));
    for i in 0..3 {
        v3 = ((if (b[1] < 127u8) { v3 } else { v3 }) | w6(i128::MAX, (v3 as u16))) - (b[i] as i32);
        v3 = v3 << i;
    }
    let v4 = (v3 as i8).abs();
    let v5 = a;
    ((v3 as i16).trailing_zeros() * (v1 % v1)).max(((match (0x75e0dcf377880ca39cef41e79b7a76b0u128, (b[0] < 33u8)) { (0, true) => v1, (1..=99, _) => v1, (_, false) => v1, _ => v1 }) - v1))
}

#[operator]
fn w107(a: i32) -> i128 {
    let v4 = (match ((((a as i8) & (a as i8)) as u8), true) { (0, true) => ([((f16::INFINITY, (a as i8)) == (f16::NEG_ONE, (a as i8))), ({ let v1 = (-87i64); (a < 8i32) })] < [(if (a == 3i32) { (a >= (-57i32)) } else { (a >= (-20i32)) }), w99((a as u32))]), (1..=99, _) => (if ({ let v2 = (a as i64); (a < (-35i32)) }) { (a >= a) } else { (a as f64).is_infinite() }), (_, false) => (match (a as u128) { 0 | 7 => (a == 31i32), 8..=63 => (a >= (-76i32)), v3 if v3 > 70 => (a >= (-97i32)), _ => (a == 0x31d3a487i32) }), _ => (a < 31i32) });
    i128::from((0u64 | (a as u64))).swap_bytes()
}

#[operator]
fn w108(a: i16, b: i64, c: u32) -> i8 {
    let mut v1 = (((a == 127i16) as i64) % ((a as i128) as i64));
    for i in 0..3 {
        v1 = (((a as u8) * u8::MIN) as i64) - (i as i64);
        if i % 2 == 1 { v1 += (i as i64); } else { v1 ^= 5; }
        v1 = v1 << i;
    }
    let mut v2: f32 = ((v1 as u8).abs_diff(u8::MAX).wrapping_shl(((a as i128) as u32)) as f32);
    let mut v4 = ({ let v3 = (a as u128); i8::MAX }).wrapping_mul((c as i8));
    for i in (0..3).rev() {
        v4 = v4 * (i as i8);
        v4 = v4 << i;
    }
    let v5 = v4;
    (({ let v6 = b; v5 }) * (v5 >> (c as i128))).rotate_right((match ((v2 as f64) as u16) { u16::MAX => 0x4a20cc5u32, 2 | 64.. => c, 1 => (c | c), _ => (c & c) }))
}

#[operator]
fn w109(a: u64, b: Mixed) -> i32 {
    let [v1, v2] = [w81((-75i128)).signum(), (bf16::from_f32(b.float) - w81(0x5ec33dba47i128))];
    (((b.long as i8) as i32) | ((b.float as i32) % (b.short[0] as i32)).clamp(((-82i32) % 127i32), (3i32 % (b.float as i32))))
}

#[operator]
fn w110(a: i16) -> f16 {
    let v1 = ((((a as u128) - 5u128) * w94(0u16, 10u128, (a as i64))) as i8);
    let v2 = ((if (a as u64).cmp(&3u64).then(v1.cmp(&v1)).is_ge() { bf16::MAX.clamp(bf16::ZERO, bf16::MAX) } else { (bf16::ZERO / bf16::ZERO) }) / bf16::from_f32(f32::NAN.min((-1000000.0f32))));
    f16::ZERO
}

#[operator]
fn w111(a: [i64; 2], b: Packed) -> f64 {
    let b_byte = b.byte;
    let b_long = b.long;
    let b_double = b.double;
    let b_word = b.word;
    let v1 = ((b_double * (b_long as f64)).mul_add(f64::from_bits((b_byte as u64)), b_double.signum()) as i64);
    (if ([((b_byte >= 31u8) & (b_double < f64::MAX)), w9(31u16)] == [((v1 >= 10i64) && false), (1i16 != (b_double as i16))]) { (-(a[1] as f64).sqrt()) } else { (if ((0x2fb863670013f09fe122bc08c6a62a6fi128, false) == ((b_long as i128), (v1 < i64::MAX))) { (-3.0f64) } else { w8(0xfe2fa6e837e39474d6c1abc399eu128, (b_long as i32)) }) })
}

#[operator]
fn w112(a: [u32; 3]) -> f32 {
    let (v3, v4) = (({ let v1 = ({ let v2 = false; i8::MIN }); ((v1 as u32) > a[2]) }), f16::from_bits((a[0] as u16)).copysign(f16::NEG_ONE));
    w47(w48((a[0] as u128)).max(((a[2] as f64) * (-1000000.0f64))))
}

#[operator]
fn w113(a: u8) -> bool {
    let v3 = (w108(((a as i16) % (a as i16)), ((a >= 8u8) as i64), (a as u32).swap_bytes()) as u128);
    let v5 = (127i8.wrapping_add(i8::MIN) as i64).wrapping_add(((a as u128).wrapping_shr((a as u32)) as i64));
    (!(((v5 ^ v5), (a as i128)) > ((match (a, false) { (0, true) => i64::MAX, (1..=99, _) => (v3 as i64), (_, false) => v5, _ => (a as i64) }), ((v3 as i128) - 33i128))))
}

#[operator]
fn w114(a: f64, b: Mixed, c: [u32; 3]) -> bf16 {
    let mut v3: f64 = ({ let v1 = bf16::from_bits((b.short[1] as u16)); (c[2] as f64).max(a) }).mul_add((a.trunc() as f64), ({ let v2 = ((c[2] as i16) - b.short[1]); ((c[0] as u8) as f64) }));
    let mut v4: bool = (!(([(b.long as i8), i8::MIN] < [(b.long as i8), (v3 as i8)]) && bf16::ONE.total_cmp(&bf16::MAX).is_lt()));
    let mut v5 = (if (if v4 { v4 } else { v4 }) { (c[1] as u64).min(b.long) } else { b.long.saturating_sub(b.long) });
    for i in 0..=2 - 1 {
        v5 = ((b.long as u64).min(v5) % (match (b.short[1] as u128) { u128::MAX => b.long, 2 | 64.. => u64::MIN, 1 => b.long, _ => v5 })) - (c[i] as u64);
        if i % 2 == 1 { v5 += (c[i] as u64); } else { v5 ^= 5; }
        v5 = v5 << i;
    }
    let mut v6 = 2i64.wrapping_mul((-0i64));
    for i in 0..=3 - 1 {
        v6 = v6 * (c[i] as i64);
        if i % 2 == 1 { v6 += (c[i] as i64); } else { v6 ^= 5; }
        v6 = v6 << i;
    }
    (if ((if (c[2] < 33u32) { (v3 < 1e-3f64) } else { v4 }) ^ ([bf16::MAX, bf16::ZERO] < [bf16::ONE, bf16::ZERO])) { bf16::MAX.max(bf16::ZERO).clamp((if v4 { bf16::ZERO } else { bf16::NEG_ONE }), (if v4 { bf16::MAX } else { bf16::NEG_ONE })) } else { (bf16::from_f32(b.float) * bf16::NEG_ONE) })
}

#[operator]
fn w115(a: u32) -> i8 {
    let mut v1 = (a as i64);
    for i in 0..=4 - 1 {
        v1 = (64i64 - v1).swap_bytes() - (i as i64);
        v1 = v1 << i;
    }
    let (v3, v4) = (({ let v2 = w113(7u8); w6((v2 as i128), (v1 as u16)) }), (if 16777216.0f32.is_sign_positive() { bf16::INFINITY } else { (bf16::INFINITY + bf16::NEG_ONE) }));
    let mut v5 = (if (if true { (v3 < 10i32) } else { (v3 < 64i32) }) { ((v1 as u16) & (a as u16)) } else { w39(a, v3, (a as u16)) });
    for i in 0..3 {
        v5 = (if (v1 == 63i64) { (v5 as i16).abs_diff(1i16) } else { (if (v3 >= (-27i32)) { v5 } else { (a as u16) }) }) - (i as u16);
        v5 = v5 << i;
    }
    (((v5 as u64) & ((v5 as u128) as u64)) as i8)
}

#[operator]
fn w116(a: Mixed, b: u64) -> u8 {
    let [v1, v2] = [w108((a.short[1] as i16), (a.long as i64), (a.short[1] as u32)).clamp(((a.short[0] as i8) - (a.float as i8)), (a.long as i8)), (((a.short[1] as i8) ^ (-42i8)) / w115(0x47fa3841u32))];
    let v3 = ((w110(a.short[1]) * w110(a.short[1])) / (f16::ONE + f16::from_f32(a.float)));
    (2u8.wrapping_neg().min((u8::MIN - (v1 as u8))) - (if (!(a.short[1] < 127i16)) { ((v1 as u8) + (a.short[0] as u8)) } else { (a.float as u8).clamp((a.short[0] as u8), (v1 as u8)) }))
}

#[operator]
fn w117(a: [i64; 2], b: i64) -> i16 {
    let (v2, v3) = (({ let v1 = w1((a[1] as f32), (a[0] as u8)); (a[1] as u128).wrapping_shl((a[0] as u32)) }), (-f16::from_f32(0.0f32)));
    (({ let v4 = (-(b as f64)); ((v4 as i16) * (-87i16)) }) & i16::from((b as u8).max((a[1] as u8))))
}

#[operator]
fn w118(a: i32, b: Packed, c: [f64; 2]) -> Wide {
    let b_byte = b.byte;
    let b_long = b.long;
    let b_double = b.double;
    let b_word = b.word;
    let mut v1: u32 = u32::from(f16::NEG_ONE.to_bits().wrapping_add(((b_double as u16) * 0x3140u16)));
    let mut v2 = w72(b_long).swap_bytes();
    for i in 0..=1 - 1 {
        v2 = (if (if (c[0] == (-0.0f64)) { (v2 >= i128::MIN) } else { (c[0] < f64::EPSILON) }) { (a as i128) } else { v2 }) - (i as i128);
        v2 = v2 << i;
    }
    let v3 = b_long;
    Wide { first: ((w94((v1 as u16), (a as u128), v3) * (a as u128)) & ((b_word as u128) | (b_long as u128)).clamp(u128::from(b_byte), (v2 as u128).max((b_byte as u128)))), second: (v2.saturating_add(v2) - v2) }
}

#[operator]
fn w119(a: [f64; 2], b: [u8; 3], c: Mixed) -> [i64; 2] {
    let v2 = (if (w113((c.float as u8)) != (!(c.short[1] < 10i16))) { (match ((b[1] as u32) >> (c.short[0] as u16)) { 0 | 7 => a[0], 8..=63 => a[1].abs(), v1 if v1 > 70 => a[0].mul_add(a[0], a[1]), _ => w8((b[2] as u128), i32::MIN) }) } else { (-a[0].clamp(a[0], a[1])) });
    let [v3, v4] = [(u128::MIN ^ ((b[0] as u32) as u128)), ((match (100u16, (a[0] >= f64::EPSILON)) { (0, true) => (b[0] as i64), (1..=99, _) => (c.short[0] as i64), (_, false) => 100i64, _ => 0i64 }) as u128)];
    [(((v3 as i64) ^ 3i64) % ({ let v5 = (b[2] as i32); (b[2] as i64) })).wrapping_add(({ let v6 = b[0].wrapping_mul(b[0]); ((v2 as i64) + (-14i64)) })), ((w84((b[0] == 33u8)) / w84((c.float >= 0.0f32))) / ({ let v7 = ({ let v8 = 0u16; f16::MAX }); (b[0] as i64) }))]
}

#[operator]
impl Mixed {
fn w120(self, a: u32, b: f16) -> i64 {
    let state_long = self.long;
    let state_float = self.float;
    let state_short0 = self.short[0];
    let state_short1 = self.short[1];
    let mut v1: i64 = (i64::from((state_float as u8)) & (state_short1 as i64).clamp((state_long as i64), 5i64)).reverse_bits();
    let v2 = ((u128::from((state_short1 as u16)) as u8) as i16);
    ((v1 ^ v1).max((match (v1, (state_float == 0.0f32)) { (0, true) => v1, (1..=99, _) => v1, (_, false) => (a as i64), _ => v1 })) - ({ let v3 = (state_long - state_long); (match (v3 as u128) { u128::MAX => 0x51df96b23453d714i64, 2 | 64.. => v1, 1 => v1, _ => v1 }) }))
}
fn w121(self, a: Mixed, b: i128, c: i16) -> i64 {
    let state_long = self.long;
    let state_float = self.float;
    let state_short0 = self.short[0];
    let state_short1 = self.short[1];
    let [v2, v3] = [(1u8 % (match ((state_short0 as i32), (state_long == 0x2fu64)) { (0, true) => 0x2du8, (1..=99, _) => (a.float as u8), (_, false) => (a.long as u8), _ => (state_short0 as u8) })), (if w99(0u32) { (match (state_short0 as i8) { 0 | 7 => 0u8, 8..=63 => u8::MIN, v1 if v1 > 70 => (state_short0 as u8), _ => (c as u8) }) } else { (match ((a.short[0] as u128), (state_float == 3.0f32)) { (0, true) => (a.float as u8), (1..=99, _) => (state_float as u8), (_, false) => u8::MIN, _ => u8::MIN }) })];
    ((match (state_long as i8) { 0 | 7 => (c as i64), 8..=63 => (v3 as i64), v4 if v4 > 70 => (state_short1 as i64), _ => (a.short[0] as i64) }).saturating_sub(((v2 as i64) * 10i64)) % ((i32::MAX as i64) % ((v2 as i64) * 0x47c20bc90fac4b98i64)))
}
fn w122(self, a: Mixed, b: bool) -> i128 {
    let state_long = self.long;
    let state_float = self.float;
    let state_short0 = self.short[0];
    let state_short1 = self.short[1];
    let mut v3: i64 = w55((({ let v1 = f16::ONE; (state_short0 as i8) }) >> (if b { (a.float as i8) } else { (a.long as i8) })), (match (state_long as i8) { 0 | 7 => state_float, 8..=63 => 1.0f32, v2 if v2 > 70 => state_float, _ => a.float }).copysign(a.float), u32::from((if b { (a.short[1] as u8) } else { 63u8 })));
    let v4 = w115(33u32);
    let v5 = (a.long as u128);
    let mut v6: u8 = (v3 as u8);
    ((match w86((-21i16)) { 0 | 7 => (match state_short1 { 0 | 7 => i128::MIN, 8..=63 => (v4 as i128), v7 if v7 > 70 => (v4 as i128), _ => (state_short1 as i128) }), 8..=63 => ((v4 as i32) as i128), v9 if v9 > 70 => (match 0x0u64 { 0 | 7 => 127i128, 8..=63 => i128::MIN, v8 if v8 > 70 => (v4 as i128), _ => (v6 as i128) }), _ => (5u32 as i128) }) + (if ([0.0f64, (v6 as f64)] < [(state_short1 as f64), 3.0f64]) { (v6 as i128) } else { (v4 as i128) }))
}
fn w123(self, a: i32, b: bf16) -> Wide {
    let state_long = self.long;
    let state_float = self.float;
    let state_short0 = self.short[0];
    let state_short1 = self.short[1];
    let v2 = (((state_short1 as i8) | 0x76i8.wrapping_shr((state_float as u32))) & (if w99((a as u32)) { ((state_float as i8) % 64i8) } else { ({ let v1 = a; (state_short1 as i8) }) }));
    Wide { first: u128::from((match (if (b < bf16::INFINITY) { a } else { a }) { i32::MAX => 3u16.clamp((state_long as u16), (a as u16)), 2 | 64.. => ({ let v3 = (state_long as i64); (state_short0 as u16) }), 1 => ({ let v4 = f16::NEG_ONE; (state_float as u16) }), _ => ((state_long as u16) >> state_long) })), second: (((state_long as u32) ^ (v2 as u32)) as i128).clamp((a as i128), (state_short0 as i128)) }
}
fn w124(self, a: [u16; 5]) -> Wide {
    let state_long = self.long;
    let state_float = self.float;
    let state_short0 = self.short[0];
    let state_short1 = self.short[1];
    let v1 = (((state_short1 as u8).clamp((a[0] as u8), 5u8) ^ (a[0] as u8).wrapping_sub((state_float as u8))) + (if (state_short1 >= (-17i16)) { 63i8 } else { (-99i8) }).abs_diff((state_short1 as i8).wrapping_add((a[3] as i8))));
    let v2 = (state_long / ((state_short0 as i64) ^ (state_long as i64)).abs_diff(((a[4] as i64) % i64::MAX)));
    let v4 = bf16::from_f32((state_long as f32).abs().signum());
    Wide { first: w94((((a[4] as i8) as u16) as u16), ({ let v5 = ({ let v6 = (state_float as f32); v4 }); (if (a[0] >= u16::MIN) { (state_short0 as u128) } else { 127u128 }) }), ((state_short0 as i64) & i64::MIN).wrapping_add(((a[0] as u32) as i64))), second: w107((state_float as i32)) }
}
fn w125(self, a: Packed, b: f64, c: i8) -> Packed {
    let a_byte = a.byte;
    let a_long = a.long;
    let a_double = a.double;
    let a_word = a.word;
    let state_long = self.long;
    let state_float = self.float;
    let state_short0 = self.short[0];
    let state_short1 = self.short[1];
    let v1 = state_long;
    Packed { byte: ((!(c >= 1i8)) as u8).clamp(({ let v2 = a_byte.clamp(63u8, (state_float as u8)); a_byte.clamp(a_byte, a_byte) }), ((if (state_short0 >= (-41i16)) { a_byte } else { (state_long as u8) }) * a_byte.abs_diff(a_byte))), long: (match ((63i32.wrapping_neg() as i16), (state_short1 < (-15i16))) { (0, true) => ((a_word as u16) as i64), (1..=99, _) => w54(a_byte, (v1 as f32), state_float).wrapping_sub(((state_short1 as i64) & a_long)), (_, false) => ((match (u16::MAX, (state_long >= 0x4501d4ca8911e7ecu64)) { (0, true) => a_long, (1..=99, _) => a_long, (_, false) => 0xdi64, _ => a_long }) as i64), _ => a_long }), double: b, word: 1u32 }
}
fn w126(self, a: Mixed, b: f32, c: u8) -> i32 {
    let state_long = self.long;
    let state_float = self.float;
    let state_short0 = self.short[0];
    let state_short1 = self.short[1];
    let mut v1 = (a.long as u32);
    for i in (0..2).rev() {
        v1 = v1.min(w83((state_long as i8))) ^ (i as u32);
        if i % 2 == 1 { v1 += (i as u32); } else { v1 ^= 5; }
        v1 = v1 << i;
    }
    v1 &= ((v1 * v1) % (if (v1 == 0x1a84e2d3u32) { v1 } else { (state_float as u32) }));
    let mut v2 = (!8u16.clamp((state_long as u16), u16::MAX));
    for i in (0..4).rev() {
        v2 = v2.abs_diff(v2).reverse_bits() * (i as u16);
        if i % 2 == 1 { v2 += (i as u16); } else { v2 ^= 5; }
        v2 = v2 << i;
    }
    let mut v3: u64 = a.long;
    (if (-33i32).min(33i32).cmp(&({ let v4 = 7u128; 33i32 })).then((0xci8 / (v1 as i8)).cmp(&({ let v5 = (state_short0 as f64); (state_short0 as i8) }))).is_ne() { w6((0i128 >> c), (v3 as u16).clamp(v2, v2)) } else { w6((a.short[0] as i128), v2) })
}
fn w127(self, a: u16) -> u16 {
    let state_long = self.long;
    let state_float = self.float;
    let state_short0 = self.short[0];
    let state_short1 = self.short[1];
    let mut v1: f32 = (a as f32);
    let v4 = (({ let v3 = bf16::MAX; (a as i32) }).rotate_left((u32::MIN ^ (state_long as u32))) as i128);
    let v5 = (w115(0x7c815c17u32.wrapping_mul((state_float as u32))) * (0x7di8 * (state_short1 as i8)).min((if (a >= 0x5d6fu16) { i8::MAX } else { (v1 as i8) })));
    let mut v7 = ({ let v6 = 7i64; (v4 as u32) });
    for i in 0..=2 - 1 {
        v7 = v7 * (i as u32);
        if i % 2 == 1 { v7 += (i as u32); } else { v7 ^= 5; }
        v7 = v7 << i;
    }
    ({ let v8 = ((state_short1 as u8).min((v1 as u8)) >> a.saturating_sub((v1 as u16))); ({ let v9 = w10((v1 == (-2.75f32))); ((v8 as u16) & a) }) })
}
fn w128(self, a: u128, b: i64) -> i128 {
    let state_long = self.long;
    let state_float = self.float;
    let state_short0 = self.short[0];
    let state_short1 = self.short[1];
    let v2 = w46(((1i8 as i64) as f64), ({ let v1 = b.abs_diff(b); (if (v1 < 100u64) { f16::MAX } else { f16::ONE }) }));
    let v3 = bf16::from_f32(state_float.max(state_float).recip());
    let v5 = ({ let v4 = (i8::MAX << state_long).abs_diff(((state_short0 as u8) as i8)); ((state_float as u32) * 0x3f1ace15u32).is_power_of_two() });
    w107(((i32::MAX as i32) >> (0x5d47c480i32 as i128)))
}
fn w129(self, a: [u8; 3], b: f32) -> f16 {
    let state_long = self.long;
    let state_float = self.float;
    let state_short0 = self.short[0];
    let state_short1 = self.short[1];
    let v1 = (if ((((state_short1 as i16) & state_short0), (0x61u8 / a[2])) > (state_short1, a[1].saturating_sub(a[2]))) { ((state_short1 as u8).clamp(a[0], a[2]) as i32) } else { ((state_short1 as i32) - (state_short1 as i32)).clamp((a[2] as i32), 31i32) });
    let mut v2 = state_long;
    for i in 0..1 {
        v2 = state_long * (a[i] as u64);
        v2 = v2 << i;
    }
    v2 |= (a[2] as u64);
    f16::from_f32(((match (a[0] as i64) { 0 | 7 => b, 8..=63 => (state_float as f32), v3 if v3 > 70 => b, _ => b }) * f32::from_bits((state_short0 as u32))))
}
fn w130(self, a: i64) -> [u32; 3] {
    let state_long = self.long;
    let state_float = self.float;
    let state_short0 = self.short[0];
    let state_short1 = self.short[1];
    let v2 = w72((a << state_short0).min((match (state_float as i8) { 0 | 7 => a, 8..=63 => a, v1 if v1 > 70 => a, _ => a })));
    let mut v3: i64 = a;
    let v4 = (((state_short1 % state_short1) * (state_short1 | state_short1)) * ((v2 + v2) as i16));
    let [v6, v7] = [(if ((state_long as i32) <= (state_long as i32)) { (match state_short1 { 0 | 7 => i64::MAX, 8..=63 => i64::MIN, v5 if v5 > 70 => a, _ => (state_float as i64) }) } else { (v3 * v3) }), (if (if (state_short1 >= (-24i16)) { false } else { (a == (-65i64)) }) { (a | a) } else { v3 })];
    [w83((u16::MIN as i8)), ({ let v9 = (state_float as u32).reverse_bits(); v9.saturating_sub(v9) }).saturating_sub((({ let v10 = (state_short0 as u128); 7u32 }) ^ 127u32)), (v4 as u32)]
}
fn w131(self, a: i8, b: i16) -> f64 {
    let state_long = self.long;
    let state_float = self.float;
    let state_short0 = self.short[0];
    let state_short1 = self.short[1];
    let mut v1 = ((state_float as u16).reverse_bits() as i8);
    for i in (0..2).rev() {
        v1 = ((v1 as i32) as i8).rotate_right(10u32.wrapping_neg()) * (i as i8);
        v1 = v1 << i;
    }
    let v2 = (if w10((match state_long { u64::MAX => (a == 0x47i8), 2 | 64.. => (v1 >= 1i8), 1 => (b >= 0x608di16), _ => (a == 1i8) })) { w115((state_float as u32).wrapping_sub(u32::MIN)) } else { ((v1 / v1) - (if (state_float == 0.0f32) { a } else { a })) });
    let mut v3: f16 = f16::from_f32(state_float.mul_add(state_float, state_float));
    v3 -= v3;
    1e-3f64
}
fn w132(self, a: i32) -> Wide {
    let state_long = self.long;
    let state_float = self.float;
    let state_short0 = self.short[0];
    let state_short1 = self.short[1];
    Wide { first: (match u64::from((63u16 % (state_float as u16))) { u64::MAX => ({ let v1 = 0x4158u16; (state_long as u128) }).wrapping_add(w94((state_short0 as u16), (state_long as u128), 127i64)), 2 | 64.. => w94(u16::from((state_float as u8)), w94(u16::MIN, (state_short1 as u128), (state_short0 as i64)), (a as i64).wrapping_neg()), 1 => w94((if (a < (-58i32)) { (state_short1 as u16) } else { (state_float as u16) }), ((a as u128) ^ (a as u128)), (8i64 / 8i64)), _ => (state_long as u128).abs_diff(w94(7u16, 8u128, (-28i64))) }), second: i128::from((a as u8)) }
}
fn w133(self, a: bool) -> i128 {
    let state_long = self.long;
    let state_float = self.float;
    let state_short0 = self.short[0];
    let state_short1 = self.short[1];
    let mut v1 = 0x3d53ccedu32;
    for i in 0..=1 - 1 {
        v1 = (v1 / v1).wrapping_neg() * (i as u32);
        if i % 2 == 1 { v1 += (i as u32); } else { v1 ^= 5; }
        v1 = v1 << i;
    }
    let v2 = ((((state_float as f32) * state_float) * w47((state_short0 as f64))) + (state_float.abs() / (state_float - (state_long as f32))));
    let v3 = 3u8;
    (if (((state_long as i128), ((-24i8) as i64)) > ((if a { (-90i128) } else { (a as i128) }), (if (state_long == 127u64) { (a as i64) } else { 3i64 }))) { w107((0x6ab268f2i32 * (v1 as i32))) } else { ({ let v4 = (state_float as i64); 3i128 }).rotate_right((127u32 >> state_long)) })
}
fn w134(self, a: u32) -> Mixed {
    let state_long = self.long;
    let state_float = self.float;
    let state_short0 = self.short[0];
    let state_short1 = self.short[1];
    let mut v1 = ((state_long + (state_long as u64)) & (state_long - state_long));
    for i in 0..=3 - 1 {
        v1 = ((state_short1 as u64) / (state_float as i64).abs_diff((-90i64))) + (i as u64);
        if i % 2 == 1 { v1 += (i as u64); } else { v1 ^= 5; }
        v1 = v1 << i;
    }
    let v2 = (!(a & (state_float as u32))).rotate_right((a as u8).leading_zeros().min(((state_short0 as i8) as u32)));
    let v3 = (v1 as u32).wrapping_neg();
    Mixed { float: (state_float.max((v1 as f32)) / state_float).copysign(state_float), long: ((state_long.clamp(state_long, state_long) * (v1 as u64).wrapping_sub(state_long)) | w15((state_short1 as i128).min(5i128))), short: [state_short1, state_short1] }
}
}

#[operator]
impl Packed {
fn w135(self, a: i128, b: Wide) -> [u8; 3] {
    let state_byte = self.byte;
    let state_long = self.long;
    let state_double = self.double;
    let state_word = self.word;
    let v1 = w1((state_byte as f32).signum().mul_add((match state_word { u32::MAX => (state_long as f32), 2 | 64.. => (state_double as f32), 1 => (state_word as f32), _ => 3.0f32 }), (state_double as f32).mul_add(3.0f32, (state_double as f32))), (match ((0x74i8 / (state_byte as i8)), (state_word < 100u32)) { (0, true) => (state_byte - state_byte), (1..=99, _) => (state_byte as u8), (_, false) => state_byte, _ => (state_byte - (state_long as u8)) }));
    [(({ let v2 = w113(state_byte); ((b.first as i32) as i64) }) as u8); 3]
}
fn w136(self, a: i64, b: i16, c: i64) -> i8 {
    let state_byte = self.byte;
    let state_long = self.long;
    let state_double = self.double;
    let state_word = self.word;
    let mut v2: u32 = ({ let v1 = (b.wrapping_add(0x78bci16) << (0x2e41978af8cbfe5009161fd7ee039aaeu128 as i64)); (u32::from(state_byte) * (state_word & state_word)) });
    ((state_double as i8).wrapping_shl(v2) / (state_double as i8).wrapping_shl(state_word)).swap_bytes()
}
fn w137(self, a: Packed, b: [f64; 2]) -> bool {
    let a_byte = a.byte;
    let a_long = a.long;
    let a_double = a.double;
    let a_word = a.word;
    let state_byte = self.byte;
    let state_long = self.long;
    let state_double = self.double;
    let state_word = self.word;
    let mut v1: f16 = (match (a_word as u128).abs_diff((state_word as u128)) { u128::MAX => f16::from_f32((b[1] as f32)), 2 | 64.. => (f16::INFINITY * f16::NEG_ONE), 1 => (match 64i8 { i8::MAX => f16::NEG_ONE, 2 | 64.. => f16::MAX, 1 => f16::ONE, _ => f16::INFINITY }), _ => f16::from_f32(16777216.0f32) }).signum();
    let (v2, v3) = (((a_long >= 0x7ffffffffffffff7i64) as i64).leading_zeros(), ((a_word as u16) - w39(state_word, (a_double as i32), (state_byte as u16))));
    (match (state_word, (v2 < 10u32)) { (0, true) => (state_double as u32), (1..=99, _) => state_word, (_, false) => a_word, _ => (a_byte as u32) }).reverse_bits().cmp(&((a_word & state_word) - a_word)).then(state_word.cmp(&state_word.clamp(u32::from(state_byte), state_word))).is_ge()
}
fn w138(self, a: [u16; 5]) -> Mixed {
    let state_byte = self.byte;
    let state_long = self.long;
    let state_double = self.double;
    let state_word = self.word;
    let v1 = ((if true { (a[0] as u64) } else { (state_word as u64) }) >> w28((a[0] as i8), bf16::INFINITY)).wrapping_mul((w15(0x35f451f5ae672ab231c7dd2fd89cf8b1i128) ^ (a[4] as u64)));
    Mixed { float: (w12((a[4] as i16), (state_double as i32)) + ((a[3] as f32) / (v1 as f32)).max((a[3] as f32).copysign(16777216.0f32))), long: ((({ let v2 = i16::MAX; v1 }) % (v1 / v1)) + w7((state_long as i16).clamp((v1 as i16), (a[3] as i16)), (match a[0] { u16::MAX => (state_word as i16), 2 | 64.. => 10i16, 1 => 7i16, _ => 0x375i16 }))), short: [((if (if true { (v1 == 0x55ea371d32b15e96u64) } else { (v1 < 64u64) }) { ((state_byte as i8) as i16) } else { ((a[4] as i16) / (state_long as i16)) }) * (((a[3] as i64) + state_long) as i16)), (3i16 ^ (state_double as i16))] }
}
fn w139(self, a: u32, b: i32, c: i32) -> i64 {
    let state_byte = self.byte;
    let state_long = self.long;
    let state_double = self.double;
    let state_word = self.word;
    let v2 = ({ let v1 = (-11i16); (state_long * 0x79548d207ed6bde1i64) }).min(state_long);
    let v3 = (10i16.min((state_byte as i16)) as f32);
    let mut v4 = (a as u16);
    for i in (0..2).rev() {
        v4 = v4 - (i as u16);
        if i % 2 == 1 { v4 += (i as u16); } else { v4 ^= 5; }
        v4 = v4 << i;
    }
    let v5 = (v4 as u64);
    v2
}
fn w140(self, a: [u8; 3], b: Mixed) -> i8 {
    let state_byte = self.byte;
    let state_long = self.long;
    let state_double = self.double;
    let state_word = self.word;
    let v1 = ((b.short[0] as i32) - (b.short[0] as i32)).wrapping_neg().wrapping_mul((a[2] as i32).clamp((state_byte as i32), (state_byte as i32)).rotate_right(((state_long == 100i64) as u32)));
    (((b.short[0] as i8) >> (b.long as i128)) | (b.float as i8)).clamp((match state_word { u32::MAX => ((a[1] as i8) << a[1]), 2 | 64.. => (b.long as i8), 1 => (if (state_word == 10u32) { (-84i8) } else { 100i8 }), _ => (a[0] as i8) }), (if ([v1, v1] == [v1, v1]) { ((b.short[1] as i128) as i8) } else { (state_long as i8) }))
}
fn w141(self, a: [u32; 3]) -> bf16 {
    let state_byte = self.byte;
    let state_long = self.long;
    let state_double = self.double;
    let state_word = self.word;
    let mut v1 = state_double.to_bits();
    for i in 0..1 {
        v1 = 0x32f0452365fb6a07u64 ^ (a[i] as u64);
        if i % 2 == 1 { v1 += (a[i] as u64); } else { v1 ^= 5; }
        v1 = v1 << i;
    }
    let mut v2 = (state_long as u8).wrapping_shl((a[1] + a[2]));
    for i in 0..=1 - 1 {
        v2 = ({ let v3 = bf16::MAX; (v2 as i8) }).abs_diff(((state_word as i8) / (state_byte as i8))) - (a[i] as u8);
        v2 = v2 << i;
    }
    bf16::from_f32((a[0] as f32).copysign(1e-3f32)).clamp(w81((a[1] as i128)).copysign(bf16::MAX), ((bf16::NEG_ONE + bf16::MAX) * bf16::MAX.clamp(bf16::INFINITY, bf16::MAX)))
}
fn w142(self, a: [u16; 5], b: [u32; 3], c: i8) -> bf16 {
    let state_byte = self.byte;
    let state_long = self.long;
    let state_double = self.double;
    let state_word = self.word;
    let v1 = ((u16::from(state_byte) & (if (b[1] < 0x2efd9b5cu32) { 127u16 } else { (state_double as u16) })) as i128);
    (if ((state_double as i16) * i16::MAX).is_negative() { (bf16::from_f32((state_word as f32)) + bf16::from_f32((a[4] as f32))) } else { bf16::from_f32((match ((b[2] as i32), (state_byte < 0x1cu8)) { (0, true) => (c as f32), (1..=99, _) => (state_byte as f32), (_, false) => 3.0f32, _ => (state_byte as f32) })) })
}
fn w143(self, a: Small, b: u8) -> i8 {
    let state_byte = self.byte;
    let state_long = self.long;
    let state_double = self.double;
    let state_word = self.word;
    let v1 = (match ((64i32 + (if (a.1[1] < (-28i8)) { (a.1[0] as i32) } else { (state_long as i32) })), (state_word < 8u32)) { (0, true) => (0x3a79c2be0b92db86u64 | (state_word as u64)).wrapping_shr(state_word.clamp(state_word, state_word)), (1..=99, _) => state_double.to_bits().rotate_right((state_word << (b as u16))), (_, false) => ((63u64 | 0x4cdabc814f6ddadeu64) >> (state_double as u16)), _ => (a.1[0] as u64) });
    (if ((match (state_double as i32) { i32::MAX => (state_byte as f32), 2 | 64.. => (b as f32), 1 => (state_word as f32), _ => (state_double as f32) }) != ({ let v2 = (state_double as i16); 1.0f32 })) { (((a.1[1] as i8) - a.1[0]) << (a.0 * state_byte)) } else { (a.1[0].abs() >> (v1 ^ v1)) })
}
fn w144(self, a: [u16; 5]) -> u64 {
    let state_byte = self.byte;
    let state_long = self.long;
    let state_double = self.double;
    let state_word = self.word;
    let v2 = ((({ let v1 = state_long; state_word }) - (match 1i16 { i16::MAX => state_word, 2 | 64.. => state_word, 1 => state_word, _ => state_word })) + (if true { state_word } else { state_word }).count_ones());
    let mut v4: i64 = ((-(match ((state_long as u64), (a[3] >= 100u16)) { (0, true) => state_long, (1..=99, _) => state_long, (_, false) => state_long, _ => 0x53e16d16bb8975i64 })) / (if ([v2, v2] < [state_word, v2]) { ((state_double as i64) >> (-51i16)) } else { ({ let v3 = 0x820c35650fcbbu128; state_long }) }));
    u64::from(w83((a[4] as i8).swap_bytes()))
}
fn w145(self, a: [u32; 3], b: f32) -> u64 {
    let state_byte = self.byte;
    let state_long = self.long;
    let state_double = self.double;
    let state_word = self.word;
    let v1 = ((if ((a[0] as i128) > (a[1] as i128)) { 64u128.rotate_right(a[0]) } else { (match ((state_double as i16), (state_double < (-1.0f64))) { (0, true) => (state_byte as u128), (1..=99, _) => (state_word as u128), (_, false) => (state_byte as u128), _ => (a[0] as u128) }) }) ^ (state_long as u128));
    (((if (state_word == 1u32) { (-30i32) } else { (a[1] as i32) }) as u128) as u64)
}
fn w146(self, a: bf16, b: Mixed) -> i64 {
    let state_byte = self.byte;
    let state_long = self.long;
    let state_double = self.double;
    let state_word = self.word;
    let v1 = 5u16.rotate_left(w86(((b.short[0] < 0x1317i16) as i16)));
    let v2 = (b.short[0] as i8);
    (state_long + ((state_long * state_long) | ((state_word as i128) as i64)))
}
fn w147(self, a: u8, b: i128, c: [u8; 3]) -> u128 {
    let state_byte = self.byte;
    let state_long = self.long;
    let state_double = self.double;
    let state_word = self.word;
    let v1 = (f16::NEG_ONE / f16::ZERO).signum().copysign(f16::INFINITY);
    let v2 = w6((match ((state_long as i32), (b < 63i128)) { (0, true) => b, (1..=99, _) => b, (_, false) => b, _ => b }).abs(), ((state_double as i16) & (state_word as i16)).abs_diff((state_long as i16).clamp((c[1] as i16), (c[2] as i16))));
    u128::from((((c[0] as i16) as u128) as u64))
}
fn w148(self, a: f16, b: Mixed, c: u64) -> f64 {
    let state_byte = self.byte;
    let state_long = self.long;
    let state_double = self.double;
    let state_word = self.word;
    (((state_word & state_word) ^ state_word) as f64)
}
fn w149(self, a: u8, b: f64, c: Wide) -> i128 {
    let state_byte = self.byte;
    let state_long = self.long;
    let state_double = self.double;
    let state_word = self.word;
    let v3 = w110((match ({ let v1 = (state_word as u64); (-17i32) }) { 0 | 7 => ((state_double as i16) - (c.first as i16)), 8..=63 => (state_word as i16), v2 if v2 > 70 => (100i16 ^ 1i16), _ => ((c.second as i16) % 33i16) }));
    let v6 = ((([(state_long as i32), (a as i32)] < [(state_byte as i32), (a as i32)]) as u128) - (127u128 | (match (c.second as i64) { 0 | 7 => c.first, 8..=63 => c.first, v5 if v5 > 70 => c.first, _ => c.first })));
    ((w72(state_long) - i128::from(state_word)) + ((c.second as i128) + c.second).abs())
}
}

/// Appends the functions.
pub(super) fn append(cases: &mut Vec<Case>) {
    cases.push(Case::new("written_0".to_owned(), &w0::recorded(), |o, _| w0(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::new("written_1".to_owned(), &w1::recorded(), |o, _| w1(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::new("written_2".to_owned(), &w2::recorded(), |o, _| w2(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::new("written_3".to_owned(), &w3::recorded(), |o, _| w3(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::new("written_4".to_owned(), &w4::recorded(), |o, _| w4(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::new("written_5".to_owned(), &w5::recorded(), |o, _| w5(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::new("written_6".to_owned(), &w6::recorded(), |o, _| w6(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::new("written_7".to_owned(), &w7::recorded(), |o, _| w7(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::new("written_8".to_owned(), &w8::recorded(), |o, _| w8(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::new("written_9".to_owned(), &w9::recorded(), |o, _| w9(Operand::of(o[0])).bytes()));
    cases.push(Case::new("written_10".to_owned(), &w10::recorded(), |o, _| w10(Operand::of(o[0])).bytes()));
    cases.push(Case::new("written_11".to_owned(), &w11::recorded(), |o, _| w11(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::new("written_12".to_owned(), &w12::recorded(), |o, _| w12(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::new("written_13".to_owned(), &w13::recorded(), |o, _| w13(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::new("written_14".to_owned(), &w14::recorded(), |o, _| w14(Operand::of(o[0])).bytes()));
    cases.push(Case::new("written_15".to_owned(), &w15::recorded(), |o, _| w15(Operand::of(o[0])).bytes()));
    cases.push(Case::new("written_16".to_owned(), &w16::recorded(), |o, _| w16(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::new("written_17".to_owned(), &w17::recorded(), |o, _| w17(Operand::of(o[0])).bytes()));
    cases.push(Case::new("written_18".to_owned(), &w18::recorded(), |o, _| w18(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::new("written_19".to_owned(), &w19::recorded(), |o, _| w19(Operand::of(o[0])).bytes()));
    cases.push(Case::new("written_20".to_owned(), &w20::recorded(), |o, _| w20(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::new("written_21".to_owned(), &w21::recorded(), |o, _| w21(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::new("written_22".to_owned(), &w22::recorded(), |o, _| w22(Operand::of(o[0])).bytes()));
    cases.push(Case::new("written_23".to_owned(), &w23::recorded(), |o, _| w23(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::new("written_24".to_owned(), &w24::recorded(), |o, _| w24(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::new("written_25".to_owned(), &w25::recorded(), |o, _| w25(Operand::of(o[0])).bytes()));
    cases.push(Case::new("written_26".to_owned(), &w26::recorded(), |o, _| w26(Operand::of(o[0])).bytes()));
    cases.push(Case::new("written_27".to_owned(), &w27::recorded(), |o, _| w27(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::new("written_28".to_owned(), &w28::recorded(), |o, _| w28(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::new("written_29".to_owned(), &w29::recorded(), |o, _| w29(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::new("written_30".to_owned(), &w30::recorded(), |o, _| w30(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::new("written_31".to_owned(), &w31::recorded(), |o, _| w31(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::new("written_32".to_owned(), &w32::recorded(), |o, _| w32(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::new("written_33".to_owned(), &w33::recorded(), |o, _| w33(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::new("written_34".to_owned(), &w34::recorded(), |o, _| w34(Operand::of(o[0])).bytes()));
    cases.push(Case::new("written_35".to_owned(), &w35::recorded(), |o, _| w35(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::new("written_36".to_owned(), &w36::recorded(), |o, _| w36(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::new("written_37".to_owned(), &w37::recorded(), |o, _| w37(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::new("written_38".to_owned(), &w38::recorded(), |o, _| w38(Operand::of(o[0])).bytes()));
    cases.push(Case::new("written_39".to_owned(), &w39::recorded(), |o, _| w39(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::new("written_40".to_owned(), &w40::recorded(), |o, _| w40(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::new("written_41".to_owned(), &w41::recorded(), |o, _| w41(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::new("written_42".to_owned(), &w42::recorded(), |o, _| w42(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::new("written_43".to_owned(), &w43::recorded(), |o, _| w43(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::new("written_44".to_owned(), &w44::recorded(), |o, _| w44(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::new("written_45".to_owned(), &w45::recorded(), |o, _| w45(Operand::of(o[0])).bytes()));
    cases.push(Case::new("written_46".to_owned(), &w46::recorded(), |o, _| w46(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::new("written_47".to_owned(), &w47::recorded(), |o, _| w47(Operand::of(o[0])).bytes()));
    cases.push(Case::new("written_48".to_owned(), &w48::recorded(), |o, _| w48(Operand::of(o[0])).bytes()));
    cases.push(Case::new("written_49".to_owned(), &w49::recorded(), |o, _| w49(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::new("written_50".to_owned(), &w50::recorded(), |o, _| w50(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::new("written_51".to_owned(), &w51::recorded(), |o, _| w51(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::new("written_52".to_owned(), &w52::recorded(), |o, _| w52(Operand::of(o[0])).bytes()));
    cases.push(Case::new("written_53".to_owned(), &w53::recorded(), |o, _| w53(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::new("written_54".to_owned(), &w54::recorded(), |o, _| w54(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::new("written_55".to_owned(), &w55::recorded(), |o, _| w55(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::new("written_56".to_owned(), &w56::recorded(), |o, _| w56(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::new("written_57".to_owned(), &w57::recorded(), |o, _| w57(Operand::of(o[0])).bytes()));
    cases.push(Case::new("written_58".to_owned(), &w58::recorded(), |o, _| w58(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::new("written_59".to_owned(), &w59::recorded(), |o, _| w59(Operand::of(o[0])).bytes()));
    cases.push(Case::new("written_60".to_owned(), &w60::recorded(), |o, _| w60(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::new("written_61".to_owned(), &w61::recorded(), |o, _| w61(Operand::of(o[0])).bytes()));
    cases.push(Case::new("written_62".to_owned(), &w62::recorded(), |o, _| w62(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::new("written_63".to_owned(), &w63::recorded(), |o, _| w63(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::new("written_64".to_owned(), &w64::recorded(), |o, _| w64(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::new("written_65".to_owned(), &w65::recorded(), |o, _| w65(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::new("written_66".to_owned(), &w66::recorded(), |o, _| w66(Operand::of(o[0])).bytes()));
    cases.push(Case::new("written_67".to_owned(), &w67::recorded(), |o, _| w67(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::new("written_68".to_owned(), &w68::recorded(), |o, _| w68(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::new("written_69".to_owned(), &w69::recorded(), |o, _| w69(Operand::of(o[0])).bytes()));
    cases.push(Case::new("written_70".to_owned(), &w70::recorded(), |o, _| w70(Operand::of(o[0])).bytes()));
    cases.push(Case::new("written_71".to_owned(), &w71::recorded(), |o, _| w71(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::new("written_72".to_owned(), &w72::recorded(), |o, _| w72(Operand::of(o[0])).bytes()));
    cases.push(Case::new("written_73".to_owned(), &w73::recorded(), |o, _| w73(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::new("written_74".to_owned(), &w74::recorded(), |o, _| w74(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::new("written_75".to_owned(), &w75::recorded(), |o, _| w75(Operand::of(o[0])).bytes()));
    cases.push(Case::new("written_76".to_owned(), &w76::recorded(), |o, _| w76(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::new("written_77".to_owned(), &w77::recorded(), |o, _| w77(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::new("written_78".to_owned(), &w78::recorded(), |o, _| w78(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::new("written_79".to_owned(), &w79::recorded(), |o, _| w79(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::new("written_80".to_owned(), &w80::recorded(), |o, _| w80(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::new("written_81".to_owned(), &w81::recorded(), |o, _| w81(Operand::of(o[0])).bytes()));
    cases.push(Case::new("written_82".to_owned(), &w82::recorded(), |o, _| w82(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::new("written_83".to_owned(), &w83::recorded(), |o, _| w83(Operand::of(o[0])).bytes()));
    cases.push(Case::new("written_84".to_owned(), &w84::recorded(), |o, _| w84(Operand::of(o[0])).bytes()));
    cases.push(Case::new("written_85".to_owned(), &w85::recorded(), |o, _| w85(Operand::of(o[0])).bytes()));
    cases.push(Case::new("written_86".to_owned(), &w86::recorded(), |o, _| w86(Operand::of(o[0])).bytes()));
    cases.push(Case::new("written_87".to_owned(), &w87::recorded(), |o, _| w87(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::new("written_88".to_owned(), &w88::recorded(), |o, _| w88(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::new("written_89".to_owned(), &w89::recorded(), |o, _| w89(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::new("written_90".to_owned(), &w90::recorded(), |o, _| w90(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::new("written_91".to_owned(), &w91::recorded(), |o, _| w91(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::new("written_92".to_owned(), &w92::recorded(), |o, _| w92(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::new("written_93".to_owned(), &w93::recorded(), |o, _| w93(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::new("written_94".to_owned(), &w94::recorded(), |o, _| w94(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::new("written_95".to_owned(), &w95::recorded(), |o, _| w95(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::new("written_96".to_owned(), &w96::recorded(), |o, _| w96(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::new("written_97".to_owned(), &w97::recorded(), |o, _| w97(Operand::of(o[0])).bytes()));
    cases.push(Case::new("written_98".to_owned(), &w98::recorded(), |o, _| w98(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::new("written_99".to_owned(), &w99::recorded(), |o, _| w99(Operand::of(o[0])).bytes()));
    cases.push(Case::new("written_100".to_owned(), &w100::recorded(), |o, _| w100(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::new("written_101".to_owned(), &w101::recorded(), |o, _| w101(Operand::of(o[0])).bytes()));
    cases.push(Case::new("written_102".to_owned(), &w102::recorded(), |o, _| w102(Operand::of(o[0])).bytes()));
    cases.push(Case::new("written_103".to_owned(), &w103::recorded(), |o, _| w103(Operand::of(o[0])).bytes()));
    cases.push(Case::new("written_104".to_owned(), &w104::recorded(), |o, _| w104(Operand::of(o[0])).bytes()));
    cases.push(Case::new("written_105".to_owned(), &w105::recorded(), |o, _| w105(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::new("written_106".to_owned(), &w106::recorded(), |o, _| w106(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::new("written_107".to_owned(), &w107::recorded(), |o, _| w107(Operand::of(o[0])).bytes()));
    cases.push(Case::new("written_108".to_owned(), &w108::recorded(), |o, _| w108(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::new("written_109".to_owned(), &w109::recorded(), |o, _| w109(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::new("written_110".to_owned(), &w110::recorded(), |o, _| w110(Operand::of(o[0])).bytes()));
    cases.push(Case::new("written_111".to_owned(), &w111::recorded(), |o, _| w111(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::new("written_112".to_owned(), &w112::recorded(), |o, _| w112(Operand::of(o[0])).bytes()));
    cases.push(Case::new("written_113".to_owned(), &w113::recorded(), |o, _| w113(Operand::of(o[0])).bytes()));
    cases.push(Case::new("written_114".to_owned(), &w114::recorded(), |o, _| w114(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::new("written_115".to_owned(), &w115::recorded(), |o, _| w115(Operand::of(o[0])).bytes()));
    cases.push(Case::new("written_116".to_owned(), &w116::recorded(), |o, _| w116(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::new("written_117".to_owned(), &w117::recorded(), |o, _| w117(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::new("written_118".to_owned(), &w118::recorded(), |o, _| w118(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::new("written_119".to_owned(), &w119::recorded(), |o, _| w119(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    let recorded = Mixed::recorded();
    cases.push(Case::of("written_120".to_owned(), recorded.function("w120").unwrap(), |o, s| <Mixed as Operand>::of(s).w120(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::of("written_121".to_owned(), recorded.function("w121").unwrap(), |o, s| <Mixed as Operand>::of(s).w121(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::of("written_122".to_owned(), recorded.function("w122").unwrap(), |o, s| <Mixed as Operand>::of(s).w122(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::of("written_123".to_owned(), recorded.function("w123").unwrap(), |o, s| <Mixed as Operand>::of(s).w123(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::of("written_124".to_owned(), recorded.function("w124").unwrap(), |o, s| <Mixed as Operand>::of(s).w124(Operand::of(o[0])).bytes()));
    cases.push(Case::of("written_125".to_owned(), recorded.function("w125").unwrap(), |o, s| <Mixed as Operand>::of(s).w125(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::of("written_126".to_owned(), recorded.function("w126").unwrap(), |o, s| <Mixed as Operand>::of(s).w126(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::of("written_127".to_owned(), recorded.function("w127").unwrap(), |o, s| <Mixed as Operand>::of(s).w127(Operand::of(o[0])).bytes()));
    cases.push(Case::of("written_128".to_owned(), recorded.function("w128").unwrap(), |o, s| <Mixed as Operand>::of(s).w128(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::of("written_129".to_owned(), recorded.function("w129").unwrap(), |o, s| <Mixed as Operand>::of(s).w129(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::of("written_130".to_owned(), recorded.function("w130").unwrap(), |o, s| <Mixed as Operand>::of(s).w130(Operand::of(o[0])).bytes()));
    cases.push(Case::of("written_131".to_owned(), recorded.function("w131").unwrap(), |o, s| <Mixed as Operand>::of(s).w131(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::of("written_132".to_owned(), recorded.function("w132").unwrap(), |o, s| <Mixed as Operand>::of(s).w132(Operand::of(o[0])).bytes()));
    cases.push(Case::of("written_133".to_owned(), recorded.function("w133").unwrap(), |o, s| <Mixed as Operand>::of(s).w133(Operand::of(o[0])).bytes()));
    cases.push(Case::of("written_134".to_owned(), recorded.function("w134").unwrap(), |o, s| <Mixed as Operand>::of(s).w134(Operand::of(o[0])).bytes()));
    let recorded = Packed::recorded();
    cases.push(Case::of("written_135".to_owned(), recorded.function("w135").unwrap(), |o, s| <Packed as Operand>::of(s).w135(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::of("written_136".to_owned(), recorded.function("w136").unwrap(), |o, s| <Packed as Operand>::of(s).w136(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::of("written_137".to_owned(), recorded.function("w137").unwrap(), |o, s| <Packed as Operand>::of(s).w137(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::of("written_138".to_owned(), recorded.function("w138").unwrap(), |o, s| <Packed as Operand>::of(s).w138(Operand::of(o[0])).bytes()));
    cases.push(Case::of("written_139".to_owned(), recorded.function("w139").unwrap(), |o, s| <Packed as Operand>::of(s).w139(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::of("written_140".to_owned(), recorded.function("w140").unwrap(), |o, s| <Packed as Operand>::of(s).w140(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::of("written_141".to_owned(), recorded.function("w141").unwrap(), |o, s| <Packed as Operand>::of(s).w141(Operand::of(o[0])).bytes()));
    cases.push(Case::of("written_142".to_owned(), recorded.function("w142").unwrap(), |o, s| <Packed as Operand>::of(s).w142(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::of("written_143".to_owned(), recorded.function("w143").unwrap(), |o, s| <Packed as Operand>::of(s).w143(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::of("written_144".to_owned(), recorded.function("w144").unwrap(), |o, s| <Packed as Operand>::of(s).w144(Operand::of(o[0])).bytes()));
    cases.push(Case::of("written_145".to_owned(), recorded.function("w145").unwrap(), |o, s| <Packed as Operand>::of(s).w145(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::of("written_146".to_owned(), recorded.function("w146").unwrap(), |o, s| <Packed as Operand>::of(s).w146(Operand::of(o[0]), Operand::of(o[1])).bytes()));
    cases.push(Case::of("written_147".to_owned(), recorded.function("w147").unwrap(), |o, s| <Packed as Operand>::of(s).w147(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::of("written_148".to_owned(), recorded.function("w148").unwrap(), |o, s| <Packed as Operand>::of(s).w148(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
    cases.push(Case::of("written_149".to_owned(), recorded.function("w149").unwrap(), |o, s| <Packed as Operand>::of(s).w149(Operand::of(o[0]), Operand::of(o[1]), Operand::of(o[2])).bytes()));
}
