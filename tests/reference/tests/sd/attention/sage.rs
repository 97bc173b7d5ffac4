//! SD-6: keys without their mean, queries and keys as 8-bit integers, softmax over blocks of 64 keys in turn.

use super::{dense, dot, e4m3, e4m3_byte, each_head, error, f16, Heads, Rows};
use reference::values::Rng;

/// How it is computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    /// Processors from SM80 on: values and weights are F16.
    Compat,
    /// `GGML_SAGE_ATTN_2`: values and weights are E4M3.
    Sage2,
    /// `GGML_SAGE_ATTN_2_PLUS_PLUS`: so are they, and products are summed in F16.
    PlusPlus,
}
use Mode::*;

/// `GGML_SAGE_ATTN_AUTO` on a processor (SM, as 89) with a version of CUDA (as 1208).
pub fn automatic(sm: u32, cuda: u32) -> Mode {
    match () {
        () if sm >= 89 && cuda >= 1208 && sm != 90 => PlusPlus,
        () if sm >= 89 && cuda >= 1204 => Sage2,
        () => Compat,
    }
}

/// Mean of each channel: eight sums over every eighth token, put together in order.
pub fn mean(k: &Rows) -> Vec<f32> {
    let one = |c: usize| {
        let part = |p: usize| (p..k.n()).step_by(8).fold(0f32, |sum, t| sum + k.row(t)[c]);
        (0..8).fold(0f32, |sum, p| sum + part(p)) / k.n() as f32
    };
    (0..k.d).map(one).collect()
}

/// Rows as 8-bit integers, in blocks of `block` tokens; `group` gives the group of a token within its block, of which there are
/// `groups`. The integers, and the scale of each group by block, then group; there are `blocks` blocks.
pub struct Quantised {
    /// Integers up to 127, by token.
    pub q: Vec<Vec<i32>>,
    /// Scales.
    pub scales: Vec<f32>,
    /// Scale of each token.
    pub scale: Vec<f32>,
}

fn quantise(
    x: &Rows,
    mode: Mode,
    block: usize,
    blocks: usize,
    groups: usize,
    group: impl Fn(usize) -> usize,
) -> Quantised {
    let place = |t: usize| t / block * groups + group(t % block);
    let mut most = vec![0f32; blocks * groups];
    for t in 0..x.n() {
        let row = x.row(t).iter().fold(0f32, |m, x| m.max(x.abs()));
        most[place(t)] = most[place(t)].max(row);
    }
    let most = most.into_iter();
    let scales: Vec<f32> = match mode {
        Compat => most.clone().map(|m| m.max(1e-7) / 127.0).collect(),
        _ => most.clone().map(|m| m / 127.0 + 1e-7).collect(),
    };
    let factors: Vec<f32> = most.map(|m| 127.0 / m.max(1e-7)).collect();
    let one = |x: f32, at: usize| match mode {
        Compat => (x * factors[at]).round_ties_even() as i32,
        // halves away from zero
        _ => (x / scales[at] + 0.5f32.copysign(x)) as i32,
    };
    let q = (0..x.n()).map(|t| x.row(t).iter().map(|&x| one(x, place(t))).collect()).collect();
    let scale = (0..x.n()).map(|t| scales[place(t)]).collect();
    Quantised { q, scales, scale }
}

/// Queries: blocks of 32 tokens, with one scale, or 8 that are shared by every eighth token.
pub fn queries(q: &Rows, mode: Mode) -> Quantised {
    let blocks = q.n().next_multiple_of(128) / 32;
    match mode {
        Compat => quantise(q, mode, 32, blocks, 1, |_| 0),
        _ => quantise(q, mode, 32, blocks, 8, |t| t % 8),
    }
}

/// Keys without their mean: blocks of 64 tokens, with one scale, or 4 that are shared by two of every eight tokens.
pub fn keys(k: &Rows, mode: Mode) -> Quantised {
    let mean = mean(k);
    let centred = Rows { d: k.d, v: k.v.iter().enumerate().map(|(i, x)| x - mean[i % k.d]).collect() };
    let blocks = k.n().div_ceil(64);
    match mode {
        Compat => quantise(&centred, mode, 64, blocks, 1, |_| 0),
        _ => quantise(&centred, mode, 64, blocks, 4, |t| t % 8 / 2),
    }
}

/// Where token `t` lies in a row of packed values.
pub fn place(t: usize) -> usize {
    t / 16 * 16 + t % 16 / 8 * 2 + t % 8 / 2 * 4 + t % 2
}

/// Values as E4M3, by token, and the scale of each channel. `v` is F16.
pub fn values(v: &Rows, mode: Mode) -> (Rows, Vec<f32>) {
    let limit = if mode == PlusPlus { 2.25 } else { 448.0 };
    let most = |c: usize| (0..v.n()).fold(1e-7f32, |m, t| m.max(v.row(t)[c].abs()));
    let scales: Vec<f32> = (0..v.d).map(|c| most(c) / limit).collect();
    let rounded = v.v.iter().enumerate().map(|(i, x)| e4m3(x / scales[i % v.d])).collect();
    (Rows { d: v.d, v: rounded }, scales)
}

/// Packed values: [pad64(tokens)] for each channel, in the order of [`place`], zeros behind the last token.
pub fn packed(v: &Rows) -> Vec<u8> {
    let n = v.n().next_multiple_of(64);
    let mut bytes = vec![0; n * v.d];
    for t in 0..v.n() {
        for (c, &x) in v.row(t).iter().enumerate() {
            bytes[c * n + place(t)] = e4m3_byte(x);
        }
    }
    bytes
}

/// Largest exponent of a weight in E4M3: 2^8.807 is 448.
const OFFSET: f32 = 8.807;

/// Attention of one head; `v` as the caller gives it, F16. What padding there is takes no part.
pub fn sage(q: &Rows, k: &Rows, v: &Rows, scale: f32, mode: Mode) -> Rows {
    let c = scale * std::f32::consts::LOG2_E;
    let (q8, k8) = (queries(q, mode), keys(k, mode));
    let v = v.map(f16);
    let (v, v_scale) = if mode == Compat { (v.clone(), vec![1.0; v.d]) } else { values(&v, mode) };
    let blocks = k.n().div_ceil(64);
    let mut out = Vec::new();
    for (row, q_scale) in q8.q.iter().zip(&q8.scale) {
        let (mut most, mut sum, mut o) = (-5e6f32, 0f32, vec![0f32; v.d]);
        for block in 0..blocks {
            let keys = block * 64..k.n().min(block * 64 + 64);
            let score = |t: usize| {
                let s: i32 = row.iter().zip(&k8.q[t]).map(|(a, b)| a * b).sum();
                // the last two blocks take the scales before the factor of the exponent, the others with it
                if block + 2 < blocks {
                    s as f32 * (q_scale * k8.scale[t] * c)
                } else {
                    s as f32 * (q_scale * k8.scale[t]) * c
                }
            };
            let s: Vec<f32> = keys.clone().map(score).collect();
            let new = s.iter().fold(most, |m, &x| m.max(x));
            let old = (most - new).exp2();
            most = new;
            sum *= old;
            o.iter_mut().for_each(|o| *o *= old);
            let p: Vec<f32> = match mode {
                Compat => s.iter().map(|s| f16((s - new).exp2())).collect(),
                _ => s.iter().map(|s| (s - new + OFFSET).exp2()).collect(),
            };
            sum = p.iter().fold(sum, |sum, p| sum + p);
            let p: Vec<f32> = if mode == Compat { p } else { p.into_iter().map(e4m3).collect() };
            for (channel, o) in o.iter_mut().enumerate() {
                let term = |i: usize| p[i] * v.row(keys.start + i)[channel];
                match mode {
                    Compat => *o = (0..p.len()).fold(*o, |o, i| o + term(i)),
                    // a sum for the block, put on the sum of all
                    Sage2 => *o += (0..p.len()).fold(0f32, |s, i| s + term(i)),
                    // an instruction takes 32 keys and rounds to F16; a block has two
                    PlusPlus => {
                        let half =
                            |s: f32, first: usize| f16((first..p.len().min(first + 32)).fold(s, |s, i| s + term(i)));
                        *o += half(half(0.0, 0), 32.min(p.len()));
                    }
                }
            }
        }
        out.extend(o.iter().zip(&v_scale).map(|(o, v)| f16(o / sum * v)));
    }
    Rows { d: v.d, v: out }
}

const MODES: [Mode; 3] = [Compat, Sage2, PlusPlus];

/// Normalised squared errors against exact attention, for keys and queries of up to 2 in size.
const BOUNDS: [f64; 3] = [1.5e-4, 2.5e-3, 2.5e-3];

#[test]
fn sd_6_sage_is_attention_within_8_bits() {
    for (d, lq, lk) in [(64, 33, 130), (128, 40, 64), (64, 1, 1), (128, 65, 200), (64, 3, 300)] {
        let mut rng = Rng(d as u64 + lk as u64);
        let (q, k) = (Rows::random(&mut rng, d, lq, 2.0), Rows::random(&mut rng, d, lk, 2.0));
        let v = Rows::random(&mut rng, d, lk, 1.0).map(f16);
        let scale = 1.0 / (d as f32).sqrt();
        let want = dense(&q, &k, &v, scale);
        // what all keys have in common changes no weight, and costs no precision
        let moved = k.map(|x| x + 50.0);
        for (mode, bound) in MODES.into_iter().zip(BOUNDS) {
            for (k, what) in [(&k, "keys"), (&moved, "moved keys")] {
                let e = error(&sage(&q, k, &v, scale, mode).v, &want.v);
                println!("{mode:?}, {d} channels, {lq} queries, {lk} {what}: {e:e}");
                assert!(e < bound, "{mode:?}, {d} channels, {lq} queries, {lk} {what}: {e:e}");
            }
        }
    }
}

#[test]
fn sd_6_heads_share_keys_and_outputs_are_by_token() {
    let mut rng = Rng(3);
    let (q, k) = (Heads::random(&mut rng, 64, 5, 6, 2, 1.0), Heads::random(&mut rng, 64, 70, 3, 2, 1.0));
    let v = Heads::random(&mut rng, 64, 70, 3, 2, 1.0);
    for mode in MODES {
        let out = each_head(&q, &k, &v, |q, k, v| sage(q, k, v, 0.125, mode));
        for (b, h, t) in [(0, 0, 0), (0, 1, 4), (0, 5, 2), (1, 2, 3), (1, 3, 0)] {
            let kv = b * 3 + h / 2;
            let one = sage(&q.rows[b * 6 + h], &k.rows[kv], &v.rows[kv], 0.125, mode);
            assert_eq!(
                &out[((b * 5 + t) * 6 + h) * 64..][..64],
                one.row(t),
                "{mode:?}, batch {b}, head {h}, token {t}"
            );
        }
    }
}

#[test]
fn sd_6_means_are_sums_of_every_eighth_token() {
    // 2^24 swallows a 1 that comes after it, unless the ones are summed apart
    let v: Vec<f32> = (0..32).map(|t| if t == 0 { 16777216.0 } else { 1.0 }).collect();
    let parts = |p: usize| if p == 0 { 16777216.0f32 } else { 4.0 };
    let sum = (0..8).fold(0f32, |s, p| s + parts(p));
    assert_ne!(sum, v.iter().fold(0f32, |s, x| s + x));
    assert_eq!(mean(&Rows { d: 1, v }), [sum / 32.0]);
}

#[test]
fn sd_6_scales_are_those_of_their_groups() {
    let n = 130;
    // token t is 1 + t in size
    let x = Rows { d: 2, v: (0..n).flat_map(|t| [0.5, 1.0 + t as f32]).collect() };
    let q = queries(&x, Sage2);
    assert_eq!((q.scales.len(), queries(&x, Compat).scales.len()), (256 / 32 * 8, 256 / 32));
    for t in 0..n {
        let last = (0..n).filter(|u| u / 32 == t / 32 && u % 8 == t % 8).max().unwrap();
        assert_eq!(q.scale[t], (1.0 + last as f32) / 127.0 + 1e-7, "query {t}");
        assert_eq!(q.scales[t / 32 * 8 + t % 8], q.scale[t]);
        let last = (0..n).filter(|u| u / 32 == t / 32).max().unwrap();
        assert_eq!(queries(&x, Compat).scale[t], (1.0 + last as f32) / 127.0, "query {t}");
    }
    let centre = mean(&x);
    let size = |t: usize| (x.row(t)[1] - centre[1]).abs();
    for (mode, more) in [(Compat, 0.0), (PlusPlus, 1e-7)] {
        let k = keys(&x, mode);
        assert_eq!(k.scales.len(), 3 * if mode == Compat { 1 } else { 4 });
        for t in 0..n {
            let mine = |u: &usize| u / 64 == t / 64 && (mode == Compat || u % 8 / 2 == t % 8 / 2);
            let most = (0..n).filter(mine).map(size).fold(0f32, f32::max);
            assert_eq!(k.scale[t], most / 127.0 + more, "{mode:?}, key {t}");
        }
    }
}

#[test]
fn sd_6_halves_go_to_even_or_away_from_zero() {
    // the scale is 1 without what is added to it, so numbers are a little smaller than they were
    let x = Rows { d: 4, v: vec![127.0, 0.5, 1.5, -2.5] };
    assert_eq!(queries(&x, Compat).q, [[127, 0, 2, -2]]);
    let x = Rows { d: 4, v: vec![127.0, 0.51, 1.51, -2.51] };
    assert_eq!(queries(&x, Sage2).q, [[127, 1, 2, -3]]);
    let zero = Rows { d: 2, v: vec![0.0; 2] };
    assert_eq!((queries(&zero, Compat).scale[0], queries(&zero, Sage2).scale[0]), (1e-7 / 127.0, 1e-7));
    // exactly between: away from zero
    let scale = 127.0f32 / 127.0 + 1e-7;
    let x = Rows { d: 3, v: vec![127.0, 2.5 * scale, -4.5 * scale] };
    if x.v[1] / scale == 2.5 && x.v[2] / scale == -4.5 {
        assert_eq!(queries(&x, Sage2).q, [[127, 3, -5]]);
    }
}

#[test]
fn sd_6_values_fill_their_range_and_keep_their_place() {
    let mut rng = Rng(11);
    let v = Rows::random(&mut rng, 3, 70, 5.0).map(f16);
    for (mode, limit) in [(Sage2, 448.0), (PlusPlus, 2.25)] {
        let (rounded, scales) = values(&v, mode);
        for (c, scale) in scales.iter().enumerate() {
            let most = (0..70).map(|t| rounded.row(t)[c].abs()).fold(0f32, f32::max);
            assert_eq!(most, e4m3(limit), "{mode:?}");
            for t in 0..70 {
                let (x, y) = (v.row(t)[c], rounded.row(t)[c] * scale);
                assert!((x - y).abs() <= x.abs() / 16.0 + scale / 1024.0, "{mode:?}: {x} became {y}");
            }
        }
        let bytes = packed(&rounded);
        assert_eq!(bytes.len(), 128 * 3);
        // the order within 16 tokens
        let order: Vec<usize> = (0..16).map(place).collect();
        assert_eq!(order, [0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15]);
        let mut seen: Vec<usize> = (0..128).map(place).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..128).collect::<Vec<_>>());
        for t in 0..128 {
            for c in 0..3 {
                let want = if t < 70 { rounded.row(t)[c] } else { 0.0 };
                assert_eq!(super::super::formulas::e4m3(bytes[c * 128 + place(t)]), want);
            }
        }
    }
    assert_eq!(values(&Rows { d: 1, v: vec![0.0] }, Sage2).1, [1e-7 / 448.0]);
}

#[test]
fn sd_6_equal_keys_give_the_mean_of_the_values() {
    // weights of 2^8.807 are 448, rounded, and sums of them are of the weights before that: the offset must be nearly exact
    for n in [1, 63, 64, 65, 129, 200] {
        let q = Rows { d: 64, v: vec![0.25; 64] };
        let k = Rows { d: 64, v: vec![3.0; 64 * n] };
        let v = Rows { d: 64, v: (0..64 * n).map(|i| if i % 64 < 32 { 1.0 } else { 2.0 }).collect() };
        for mode in MODES {
            let out = sage(&q, &k, &v, 1.0, mode);
            for (c, x) in out.v.iter().enumerate() {
                let want = if c < 32 { 1.0 } else { 2.0 };
                assert!((x - want).abs() < 2e-3 * want, "{mode:?}, {n} keys, channel {c}: {x}");
            }
        }
    }
}

#[test]
fn sd_6_automatic_mode() {
    let table = [(80, 1300, Compat), (86, 1208, Compat), (89, 1203, Compat), (89, 1204, Sage2), (89, 1208, PlusPlus)];
    for (sm, cuda, mode) in
        table.into_iter().chain([(90, 1208, Sage2), (90, 1203, Compat), (100, 1208, PlusPlus), (120, 1206, Sage2)])
    {
        assert_eq!(automatic(sm, cuda), mode, "SM {sm}, CUDA {cuda}");
    }
}

#[test]
fn sd_6_one_sharp_key_gives_its_value() {
    let (d, n) = (64, 150);
    let mut rng = Rng(5);
    let v = Rows::random(&mut rng, d, n, 1.0).map(f16);
    for at in [0, 63, 64, 149] {
        let k = Rows { d, v: (0..d * n).map(|i| if i / d == at && i % d < 8 { 30.0 } else { 0.0 }).collect() };
        let q = Rows { d, v: (0..d).map(|c| if c < 8 { 4.0 } else { 0.0 }).collect() };
        assert!(dot(q.row(0), k.row(at)) == 960.0);
        for mode in MODES {
            let out = sage(&q, &k, &v, 0.125, mode);
            let e = error(&out.v, v.row(at));
            assert!(e < if mode == Compat { 1e-6 } else { 1.5e-3 }, "{mode:?}, key {at}: {e:e}");
        }
    }
}

#[test]
fn sd_6_small_weights_are_not_lost() {
    // weights of 2^-12 are zero in E4M3, unless the largest one is 448
    let (d, n) = (64, 300);
    let k = Rows { d, v: (0..d * n).map(|i| if i == 0 { 8.0 } else { 0.0 }).collect() };
    let v = Rows { d, v: (0..d * n).map(|i| if i < d { 1.0 } else { -1.0 }).collect() };
    let q = Rows { d, v: (0..d).map(|c| if c == 0 { 1.5 / std::f32::consts::LOG2_E } else { 0.0 }).collect() };
    let want = dense(&q, &k, &v, 1.0).v[0];
    assert!((want - 0.864).abs() < 1e-3, "{want}");
    for mode in MODES {
        let out = sage(&q, &k, &v, 1.0, mode).v[0];
        assert!((out - want).abs() < 0.01, "{mode:?}: {out}, exactly {want}");
    }
}

#[test]
fn sd_6_weights_are_rounded_and_their_sum_is_not() {
    let d = 64;
    let two =
        |a: f32, b: f32| Rows { d, v: (0..2 * d).map(|i| if i % d == 0 { [a, b][i / d] } else { 0.0 }).collect() };
    // the second key weighs less; its value is 1, the other's 0
    let (k, v) = (two(8.0, -8.0), Rows { d, v: (0..2 * d).map(|i| if i < d { 0.0 } else { 1.0 }).collect() });
    let mut told = 0;
    for i in 1..20 {
        let x = i as f32 * 0.01;
        let q = Rows { d, v: (0..d).map(|c| if c == 0 { x } else { 0.0 }).collect() };
        let apart = 16.0 * x * std::f32::consts::LOG2_E;
        let (most, less) = (OFFSET.exp2(), (OFFSET - apart).exp2());
        for mode in [Sage2, PlusPlus] {
            let out = sage(&q, &k, &v, 1.0, mode).v[0];
            let want = e4m3(less) / (most + less);
            // next to a half the last bit of the score decides
            if (e4m3(less * 1.001), e4m3(less * 0.999)) == (e4m3(less), e4m3(less)) {
                assert!((out - want).abs() < 1e-3 * want, "{mode:?}, {x}: {out}, {want}");
                told += usize::from((less / (most + less) - want).abs() > 0.01 * want);
            }
        }
        let want = f16((-apart).exp2()) / (1.0 + f16((-apart).exp2()));
        let out = sage(&q, &k, &v, 1.0, Compat).v[0];
        assert!((out - want).abs() < 1e-3 * want, "Compat, {x}: {out}, {want}");
    }
    assert!(told > 10, "{told} numbers tell rounded weights from others");
}
