//! Outer products, and attention taken back.

use super::common::*;
use super::softmax::weights;
use reference::values::block;

#[test]
fn out_prod() {
    let mut s = Suite::new("out_prod");
    for ta in FLOATS.into_iter().chain(BLOCKS) {
        let unit = block(ta).0;
        for tb in FLOATS {
            for (m, n, k, a, b) in [
                (8, 6, 5, [4usize, 2], [4usize, 2]),
                (33, 7, 9, [1, 1], [3, 2]),
                (1, 1, 1, [1, 1], [1, 1]),
                (40, 33, 257, [2, 1], [4, 1]),
                (150, 70, 60, [1, 1], [1, 1]),
                (300, 1, 20, [1, 1], [1, 1]),
                (3, 100, 300, [1, 2], [2, 2]),
                (8, 6, 0, [1, 1], [1, 1]),
                (0, 6, 3, [1, 1], [1, 1]),
                (8, 0, 3, [1, 1], [2, 1]),
            ] {
                let m = if unit == 1 { m } else { (m + 9usize).div_ceil(32).min(2) * unit };
                for la in ALL.into_iter().filter(|la| unit == 1 || la.packed()) {
                    for lb in ALL {
                        let few = la == Layout::Cont && matches!(lb, Layout::Cont | Layout::Swap01);
                        if (la != Layout::Cont && lb != Layout::Cont && m * n > 300)
                            || (m * n * k > 50_000 && !few)
                            || (unit > 1 && (tb != GGML_TYPE_F32 && lb != Layout::Cont || m * n * k > 400_000))
                        {
                            continue;
                        }
                        // upstream has f32 times f32, and other formats where nothing is repeated
                        let must = tb == GGML_TYPE_F32
                            && la.packed()
                            && lb.packed()
                            && (ta == GGML_TYPE_F32 || a == b && ta != GGML_TYPE_BF16);
                        let (na, nb) = ([m, k, a[0], a[1]], [n, k, b[0], b[1]]);
                        s.case(must, format!("{} {na:?} {nb:?} {la:?} {lb:?}", names(&[ta, tb])), |w| {
                            let (p, q) = (w.source(ta, na, la, &PLAIN), w.source(tb, nb, lb, &PLAIN));
                            let (x, y) = (read(p), read(q));
                            let tol = Tol::terms(16.0 + k as f64 / 4.0);
                            let [r2, r3] = [0, 1].map(|d| b[d] / a[d]);
                            let want = Want::with_magnitude([m, n, b[0], b[1]], tol, |[i, j, i2, i3]| {
                                sum((0..k).map(|c| x.at([i, c, i2 / r2, i3 / r3]) * y.at([j, c, i2, i3])))
                            });
                            (ggml_out_prod(w.ctx, p, q), want)
                        });
                    }
                }
            }
        }
    }
    s.finish(2000);
}

/// An attention without batches and heads, taken back: gradients of a query, keys and values added to `out`.
struct Head<'a> {
    q: &'a [f64],
    k: Vec<&'a [f64]>,
    /// One row of keys for each element of a query.
    v: Vec<&'a [f64]>,
    d: &'a [f64],
    /// Keys that the query reads.
    seen: usize,
}

impl Head<'_> {
    fn back(&self, mut add: impl FnMut(usize, [usize; 2], f64)) {
        let dim = self.q.len();
        let scale = 1.0 / (dim as f64).sqrt();
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let logits: Vec<f64> = (0..self.seen).map(|c| dot(self.k[c], self.q) * scale).collect();
        let p = weights(&logits, None);
        let along: Vec<f64> = (0..self.seen).map(|c| (0..dim).map(|j| self.v[j][c] * self.d[j]).sum()).collect();
        let mean = dot(&p, &along);
        for c in 0..self.seen {
            let x = p[c] * (along[c] - mean) * scale;
            for j in 0..dim {
                add(0, [j, 0], x * self.k[c][j]);
                add(1, [j, c], x * self.q[j]);
                add(2, [c, j], p[c] * self.d[j]);
            }
        }
    }
}

fn flash_back_of(q: &Arr, k: &Arr, v: &Arr, d: &Arr, masked: bool) -> Arr {
    let mut grads = [q, k, v].map(|x| Arr { ne: x.ne, v: vec![0.0; x.v.len()] });
    let (queries, keys, heads) = (q.ne[1], k.ne[1], k.ne[2]);
    for [_, i, h, b] in each([1, queries, q.ne[2], q.ne[3]]) {
        let kv = h % heads;
        let head = Head {
            q: q.row([i, h, b]),
            k: (0..keys).map(|c| k.row([c, kv, b])).collect(),
            v: (0..v.ne[1]).map(|j| v.row([j, kv, b])).collect(),
            d: d.row([i, h, b]),
            seen: if masked { (keys + i + 1).saturating_sub(queries).min(keys) } else { keys },
        };
        head.back(|which, [i0, i1], x| {
            let at = if which == 0 { [i0, i, h, b] } else { [i0, i1, kv, b] };
            let g = &mut grads[which];
            let n = ((at[3] * g.ne[2] + at[2]) * g.ne[1] + at[1]) * g.ne[0] + at[0];
            g.v[n] += x;
        });
    }
    let mut all = Vec::new();
    for g in grads {
        all.extend(g.v);
        // each gradient starts at a multiple of 16 bytes
        all.resize(all.len().next_multiple_of(4), 0.0);
    }
    Arr { ne: [all.len(), 1, 1, 1], v: all }
}

#[test]
fn flash_attn_back() {
    let mut s = Suite::new("flash_attn_back");
    for (dim, queries, keys, heads, shared, batch) in [
        (8, 3, 5, 4, 2, 2),
        (5, 4, 4, 3, 3, 1),
        (1, 1, 1, 1, 1, 1),
        (33, 7, 19, 2, 1, 1),
        (16, 6, 2, 2, 2, 1),
        (8, 0, 3, 2, 1, 1),
        (8, 3, 0, 2, 1, 1),
        (0, 3, 2, 2, 1, 1),
        (8, 3, 2, 2, 1, 0),
    ] {
        for ty in FLOATS {
            for lq in ALL {
                for lk in ALL {
                    for masked in [false, true] {
                        if lq != Layout::Cont && lk != Layout::Cont && dim > 8 {
                            continue;
                        }
                        let must = ty == GGML_TYPE_F32 && lq.packed() && lk.packed() && keys >= queries;
                        let what = format!("{dim} {queries} {keys} {heads} {shared} {batch} {lq:?} {lk:?} {masked}");
                        s.case(must, format!("{} {what}", type_name(ty)), |w| {
                            let q = w.source(ty, [dim, queries, heads, batch], lq, &PLAIN);
                            let k = w.source(ty, [dim, keys, shared, batch], lk, &PLAIN);
                            let v = w.source(ty, [keys, dim, shared, batch], lk, &PLAIN);
                            let d = w.source(GGML_TYPE_F32, [dim, queries, heads, batch], lq, &PLAIN);
                            let arr = flash_back_of(&read(q), &read(k), &read(v), &read(d), masked);
                            // sums of as many terms as there are keys and queries, of some size
                            let tol = Tol { rel: 64.0 * U32, mag: 0.0, abs: 1e-4 };
                            (ggml_flash_attn_back(w.ctx, q, k, v, d, masked), Want::new(arr, tol))
                        });
                    }
                }
            }
        }
    }
    s.finish(1000);
}
