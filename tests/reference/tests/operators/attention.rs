//! Attention in one node, against logits, softmax and weighted sum.

use super::common::*;
use super::softmax::{mask, slope, weights};
use reference::values::block;

#[derive(Clone, Copy, Debug)]
struct Kind {
    /// Length of a query, number of queries, of heads, of batches.
    d: usize,
    queries: usize,
    heads: usize,
    batch: usize,
    keys: usize,
    /// Length of a value.
    dv: usize,
    /// Heads of keys and values.
    kv: usize,
    scale: f32,
    bias: f32,
    cap: f32,
    /// Heads and batches of the mask, and rows that it has more than needed.
    mask: Option<[usize; 3]>,
    sinks: bool,
}

const BASE: Kind = Kind {
    d: 64,
    queries: 7,
    heads: 4,
    batch: 1,
    keys: 33,
    dv: 64,
    kv: 4,
    scale: 0.125,
    bias: 0.0,
    cap: 0.0,
    mask: None,
    sinks: false,
};

fn kinds() -> Vec<Kind> {
    vec![
        BASE,
        Kind { mask: Some([1, 1, 0]), ..BASE },
        Kind { d: 32, dv: 96, kv: 2, batch: 2, mask: Some([4, 2, 3]), ..BASE },
        Kind { queries: 1, keys: 257, kv: 1, mask: Some([1, 1, 5]), bias: 8.0, ..BASE },
        Kind { queries: 70, keys: 130, heads: 2, kv: 1, sinks: true, ..BASE },
        Kind { cap: 5.0, mask: Some([1, 1, 0]), sinks: true, scale: 1.0, ..BASE },
        Kind {
            d: 96,
            dv: 32,
            queries: 40,
            keys: 65,
            batch: 2,
            heads: 3,
            kv: 3,
            mask: Some([3, 1, 1]),
            bias: 4.0,
            ..BASE
        },
        Kind { queries: 1, keys: 1, heads: 1, kv: 1, ..BASE },
        Kind { queries: 0, ..BASE },
        Kind { keys: 0, ..BASE },
        Kind { batch: 0, ..BASE },
    ]
}

fn reference(kind: Kind, [q, k, v, m, z]: [&Arr; 5], coarse: f64) -> Want {
    let Kind { heads, kv, keys, dv, queries, batch, .. } = kind;
    let (scale, bias, cap) = (f64::from(kind.scale), f64::from(kind.bias), f64::from(kind.cap));
    let mut mag = Vec::new();
    let mut out = Arr { ne: [dv, heads, queries, batch], v: Vec::new() };
    for [h, i, n, _] in each([heads, queries, batch, 1]) {
        let query = q.row([i, h, n]);
        let group = h / (heads / kv);
        let mut spread = 0.0f64;
        let logits: Vec<f64> = (0..keys)
            .map(|key| {
                let (dot, size) = sum(query.iter().zip(k.row([key, group, n])).map(|(a, b)| a * b));
                let largest = query.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
                let rough: f64 = k.row([key, group, n]).iter().map(|x| x.abs()).sum::<f64>() * largest;
                spread = spread.max(scale * if coarse > 0.002 { rough } else { size });
                let x = scale * dot;
                let x = if cap == 0.0 { x } else { cap * (x / cap).tanh() };
                let add = kind.mask.map_or(0.0, |[m2, m3, _]| slope(bias, h, heads) * m.at([key, i, h % m2, n % m3]));
                x + add
            })
            .collect();
        let p = weights(&logits, kind.sinks.then(|| z.at([h, 0, 0, 0])));
        for e in 0..dv {
            let (x, size) = sum((0..keys).map(|key| p[key] * v.at([e, key, group, n])));
            out.v.push(x);
            // an error of a logit changes all weights by that part
            mag.push(size * (1.0 + 2.0 * spread));
        }
    }
    Want { mag: Some(mag), ..Want::new(out, Tol { rel: U32, mag: coarse + 64.0 * U32, abs: 1e-30 }) }
}

/// Error that the format of keys and values brings: queries and weights are rounded to it.
fn coarse(ty: ggml_type) -> f64 {
    match ty {
        GGML_TYPE_F32 => 0.0,
        GGML_TYPE_F16 => 1.1 / 1024.0,
        GGML_TYPE_BF16 => 2.2 / 256.0,
        _ => 0.5 / 127.0 + 2.0 / 1024.0,
    }
}

#[test]
fn case_31_flash_attn_ext() {
    let mut s = Suite::new("flash_attn_ext");
    for tk in [GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0, GGML_TYPE_Q5_1] {
        for kind in kinds() {
            for lq in ALL {
                for lk in [Layout::Cont, Layout::Swap12, Layout::RowGap, Layout::Offset, Layout::Swap01] {
                    if (block(tk).0 > 1 && !lk.packed()) || (lq != Layout::Cont && lk != Layout::Cont && lq != lk) {
                        continue;
                    }
                    // upstream: packed rows; f32, f16 and the block formats as keys and values
                    let must = lq.packed() && lk.packed() && tk != GGML_TYPE_BF16;
                    s.case(must, format!("{} {kind:?} {lq:?} {lk:?}", type_name(tk)), |w| {
                        let Kind { d, queries, heads, batch, keys, dv, kv, .. } = kind;
                        let q = w.source(GGML_TYPE_F32, [d, queries, heads, batch], lq, &PLAIN);
                        let k = w.source(tk, [d, keys, kv, batch], lk, &PLAIN);
                        let v = w.source(tk, [dv, keys, kv, batch], lk, &PLAIN);
                        let [m2, m3, more] = kind.mask.unwrap_or([1, 1, 0]);
                        let nm = [keys + more, queries + more, m2, m3];
                        let list = (0..nm.iter().product::<usize>().max(1)).map(|i| mask(i, nm[0].max(1))).collect();
                        let m = w.source(GGML_TYPE_F16, nm, Layout::Cont, &Fill::List(list));
                        let z = w.source(GGML_TYPE_F32, [heads, 1, 1, 1], Layout::Offset, &PLAIN);
                        let arrays = [read(q), read(k), read(v), read(m), read(z)];
                        let want = reference(kind, arrays.each_ref(), coarse(tk));
                        let m = if kind.mask.is_some() { m } else { NONE };
                        let out = ggml_flash_attn_ext(w.ctx, q, k, v, m, kind.scale, kind.bias, kind.cap);
                        if kind.sinks {
                            ggml_flash_attn_ext_add_sinks(out, z);
                        }
                        ggml_flash_attn_ext_set_prec(out, GGML_PREC_F32);
                        (out, want)
                    });
                }
            }
        }
    }
    s.finish(500);
}
