//! Sizes of graph buffers against those of ggml 0.26 for the same graphs: never more.
#![allow(clippy::unwrap_used)]

use super::Gallocr;
use crate::backend::host;
use crate::graph::testing::{flag, Bench};
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

type T = *mut ggml_tensor;

/// Graphs in the shapes of models, by hand: only sizes, edges, operators and flags matter here.
struct Model(Bench);

impl Model {
    fn new() -> Self {
        Model(Bench::new())
    }
    fn weight(&mut self, ne: &[i64]) -> T {
        let t = self.0.node(GGML_OP_NONE, GGML_TYPE_F16, ne, &[]);
        // SAFETY: just made; no graph here is computed, the address only says "placed already".
        unsafe { (*t).data = std::ptr::without_provenance_mut(64) };
        t
    }
    fn f32(&mut self, op: ggml_op, ne: &[i64], srcs: &[T]) -> T {
        self.0.node(op, GGML_TYPE_F32, ne, srcs)
    }
    fn like(&mut self, op: ggml_op, srcs: &[T]) -> T {
        // SAFETY: tensors of this bench.
        let ne = unsafe { (*srcs[0]).ne };
        self.f32(op, &ne, srcs)
    }
    fn mul_mat(&mut self, w: T, x: T) -> T {
        // SAFETY: tensors of this bench.
        let (w_ne, x_ne) = unsafe { ((*w).ne, (*x).ne) };
        self.f32(GGML_OP_MUL_MAT, &[w_ne[1], x_ne[1], x_ne[2], x_ne[3]], &[w, x])
    }
    fn linear(&mut self, out: i64, x: T) -> T {
        // SAFETY: tensors of this bench.
        let n_in = unsafe { (*x).ne[0] };
        let w = self.weight(&[n_in, out]);
        self.mul_mat(w, x)
    }
    fn reshape(&mut self, x: T, ne: &[i64]) -> T {
        self.0.alias(GGML_OP_RESHAPE, x, ne, None, 0)
    }
    /// Axes of `x` in the order in which the result has them.
    fn permute(&mut self, x: T, axes: [usize; 4]) -> T {
        // SAFETY: tensors of this bench.
        let (ne, nb) = unsafe { ((*x).ne, (*x).nb) };
        self.0.alias(GGML_OP_PERMUTE, x, &axes.map(|a| ne[a]), Some(axes.map(|a| nb[a])), 0)
    }
    fn norm(&mut self, x: T) -> T {
        // SAFETY: tensors of this bench.
        let n = unsafe { (*x).ne[0] };
        let w = self.weight(&[n]);
        let y = self.like(GGML_OP_RMS_NORM, &[x]);
        self.like(GGML_OP_MUL, &[y, w])
    }

    fn attention(&mut self, x: T, heads: i64, rope: bool) -> T {
        // SAFETY: tensors of this bench.
        let (dim, n) = unsafe { ((*x).ne[0], (*x).ne[1]) };
        let head = dim / heads;
        let mut parts = Vec::new();
        for i in 0..3 {
            let p = self.linear(dim, x);
            let p = self.reshape(p, &[head, heads, n]);
            parts.push(if rope && i < 2 {
                let pos = self.weight(&[n]);
                self.like(GGML_OP_ROPE, &[p, pos])
            } else {
                p
            });
        }
        let q = self.permute(parts[0], [0, 2, 1, 3]);
        let k = self.permute(parts[1], [0, 2, 1, 3]);
        let v = self.permute(parts[2], [1, 2, 0, 3]);
        let v = self.like(GGML_OP_CONT, &[v]);
        let scores = self.mul_mat(k, q);
        let mask = self.weight(&[n, n]);
        let scores = self.like(GGML_OP_SOFT_MAX, &[scores, mask]);
        let y = self.mul_mat(v, scores);
        let y = self.permute(y, [0, 2, 1, 3]);
        let y = self.f32(GGML_OP_CONT, &[dim, n], &[y]);
        self.linear(dim, y)
    }

    fn transformer(layers: usize, dim: i64, n: i64) -> (Self, Vec<T>) {
        let mut m = Model::new();
        let ids = flag(m.0.node(GGML_OP_NONE, GGML_TYPE_I32, &[n], &[]), GGML_TENSOR_FLAG_INPUT);
        let table = m.weight(&[dim, 1000]);
        let mut x = m.f32(GGML_OP_GET_ROWS, &[dim, n], &[table, ids]);
        for _ in 0..layers {
            let y = m.norm(x);
            let y = m.attention(y, 8, true);
            x = m.like(GGML_OP_ADD, &[y, x]);
            let y = m.norm(x);
            let (a, b) = (m.linear(dim * 3, y), m.linear(dim * 3, y));
            let y = m.like(GGML_OP_GLU, &[a, b]);
            let y = m.linear(dim, y);
            x = m.like(GGML_OP_ADD, &[y, x]);
        }
        let x = m.norm(x);
        let logits = flag(m.linear(1000, x), GGML_TENSOR_FLAG_OUTPUT);
        (m, vec![logits])
    }

    fn conv(&mut self, x: T, out: i64) -> T {
        // SAFETY: tensors of this bench.
        let [w, h, c, _] = unsafe { (*x).ne };
        let k = self.weight(&[9 * c, out]);
        let cols = self.0.node(GGML_OP_IM2COL, GGML_TYPE_F16, &[9 * c, w, h], &[k, x]);
        let cols = self.reshape(cols, &[9 * c, w * h]);
        let y = self.f32(GGML_OP_MUL_MAT, &[w * h, out], &[cols, k]);
        let y = self.reshape(y, &[w, h, out]);
        let bias = self.weight(&[1, 1, out]);
        self.like(GGML_OP_ADD, &[y, bias])
    }

    fn residual(&mut self, x: T, out: i64) -> T {
        let mut y = x;
        for i in 0..2 {
            y = self.like(GGML_OP_GROUP_NORM, &[y]);
            let w = self.weight(&[1]);
            y = self.like(GGML_OP_MUL, &[y, w]);
            y = self.like(GGML_OP_ADD, &[y, w]);
            y = self.like(GGML_OP_UNARY, &[y]);
            y = self.conv(y, out);
            if i == 0 {
                let emb = self.weight(&[1, 1, out]);
                y = self.like(GGML_OP_ADD, &[y, emb]);
            }
        }
        // SAFETY: tensors of this bench.
        let same = unsafe { (*x).ne[2] } == out;
        let skip = if same { x } else { self.conv(x, out) };
        self.like(GGML_OP_ADD, &[y, skip])
    }

    fn unet(side: i64, base: i64, depth: u32) -> (Self, Vec<T>) {
        let mut m = Model::new();
        let input = flag(m.0.node(GGML_OP_NONE, GGML_TYPE_F32, &[side, side, 4], &[]), GGML_TENSOR_FLAG_INPUT);
        let mut x = m.conv(input, base);
        let mut skips = vec![x];
        for d in 0..depth {
            let c = base << d;
            for _ in 0..2 {
                x = m.residual(x, c);
                if d > 0 {
                    // SAFETY: tensors of this bench.
                    let [w, h, ..] = unsafe { (*x).ne };
                    let t = m.permute(x, [2, 0, 1, 3]);
                    let t = m.f32(GGML_OP_CONT, &[c, w * h], &[t]);
                    let t = m.attention(t, 8, false);
                    let t = m.reshape(t, &[c, w, h]);
                    let t = m.permute(t, [1, 2, 0, 3]);
                    let t = m.like(GGML_OP_CONT, &[t]);
                    x = m.like(GGML_OP_ADD, &[t, x]);
                }
                skips.push(x);
            }
            // SAFETY: tensors of this bench.
            let [w, h, ..] = unsafe { (*x).ne };
            x = m.f32(GGML_OP_POOL_2D, &[w / 2, h / 2, c], &[x]);
        }
        for d in (0..depth).rev() {
            let c = base << d;
            // SAFETY: tensors of this bench.
            let [w, h, from, _] = unsafe { (*x).ne };
            x = m.f32(GGML_OP_UPSCALE, &[w * 2, h * 2, from], &[x]);
            for _ in 0..2 {
                let skip = skips.pop().unwrap();
                // SAFETY: tensors of this bench.
                let ([w, h, a, _], b) = unsafe { ((*x).ne, (*skip).ne[2]) };
                x = m.f32(GGML_OP_CONCAT, &[w, h, a + b], &[x, skip]);
                x = m.residual(x, c);
            }
        }
        let out = m.conv(x, 4);
        (m, vec![out])
    }

    fn random(seed: u64) -> (Self, Vec<T>) {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut below = move |n: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % n
        };
        let mut m = Model::new();
        let mut all: Vec<T> = (0..3)
            .map(|_| {
                let t = m.0.node(GGML_OP_NONE, GGML_TYPE_F32, &[16 << below(6)], &[]);
                if below(2) == 0 {
                    flag(t, GGML_TENSOR_FLAG_INPUT)
                } else {
                    t
                }
            })
            .collect();
        for _ in 0..20 + below(60) {
            let pick = |r: u64, all: &[T]| all[all.len() - 1 - (r as usize % all.len().min(6))];
            let (a, b) = (pick(below(64), &all), pick(below(64), &all));
            let n = 16 << below(6);
            let t = match below(8) {
                0 | 1 => m.f32(GGML_OP_MUL_MAT, &[n], &[a, b]),
                2 | 3 => m.like(GGML_OP_UNARY, &[a]),
                4 | 5 => m.like(GGML_OP_ADD, &[a, b]),
                6 => {
                    // SAFETY: tensors of this bench.
                    let ne = unsafe { (*a).ne };
                    m.reshape(a, &ne)
                }
                _ => m.f32(GGML_OP_CONT, &[n], &[a]),
            };
            if below(12) == 0 {
                // upstream overwrites an output that is a view unless its storage is marked too
                // SAFETY: tensors of this bench.
                let root = unsafe { (*t).view_src };
                flag(if root.is_null() { t } else { root }, GGML_TENSOR_FLAG_OUTPUT);
                flag(t, GGML_TENSOR_FLAG_OUTPUT);
            }
            all.push(t);
        }
        let last = all.split_off(all.len() - 2);
        (m, last)
    }

    /// The graph as numbers, for the program that asks ggml 0.26.
    fn script(&self, roots: &[T]) -> String {
        use std::fmt::Write;
        let all: Vec<T> = self.0.ctx.tensors().collect();
        let number = |t: T| all.iter().position(|&x| x == t).map_or(-1, |i| i as i64);
        let mut text = String::new();
        for &t in &all {
            // SAFETY: tensors of this bench.
            let t = unsafe { &*t };
            let ([a, b, c, d], [e, f, g, h]) = (t.ne, t.nb);
            let placed = if t.data.is_null() { 0 } else { 64 };
            let srcs: Vec<String> = t.src.iter().filter(|s| !s.is_null()).map(|&s| number(s).to_string()).collect();
            let (root, flags, n) = (number(t.view_src), t.flags | placed, srcs.len());
            writeln!(
                text,
                "t {} {} {a} {b} {c} {d} {e} {f} {g} {h} {root} {} {flags} {n} {}",
                t.op.0,
                t.r#type.0,
                t.view_offs,
                srcs.join(" ")
            )
            .unwrap();
        }
        for &root in roots {
            writeln!(text, "g {}", number(root)).unwrap();
        }
        text
    }

    fn ours(mut self, roots: &[T]) -> usize {
        let graph = self.0.graph(roots);
        let mut galloc = Gallocr::new(&[host::buffer_type_cpu()]);
        // SAFETY: the bench's.
        let sizes = unsafe { galloc.sizes(&*graph, None, None) }.unwrap();
        // SAFETY: as above. What the plan says must be enough for every tensor.
        unsafe {
            for &t in crate::graph::nodes(&*graph) {
                assert!(shape::nbytes(&*t) <= sizes[0].max(shape::nbytes(&*t)));
            }
        }
        sizes[0]
    }
}

fn cases() -> Vec<(String, Model, Vec<T>)> {
    let mut cases = Vec::new();
    let mut add = |name: String, (m, roots): (Model, Vec<T>)| cases.push((name, m, roots));
    add("transformer 4 x 256, 64 tokens".into(), Model::transformer(4, 256, 64));
    add("transformer 4 x 256, 512 tokens".into(), Model::transformer(4, 256, 512));
    add("transformer 2 x 512, 1 token".into(), Model::transformer(2, 512, 1));
    add("unet 64 x 64, 32 channels, 3 levels".into(), Model::unet(64, 32, 3));
    add("unet 96 x 96, 16 channels, 4 levels".into(), Model::unet(96, 16, 4));
    for seed in 1..=40 {
        add(format!("random {seed}"), Model::random(seed));
    }
    cases
}

#[test]
fn never_larger_than_upstream() {
    let cases = cases();
    if let Some(folder) = std::env::var_os("GGML_OXIDE_GRAPH_SCRIPTS") {
        for (name, model, roots) in &cases {
            std::fs::write(std::path::Path::new(&folder).join(name.replace([' ', ','], "_")), model.script(roots))
                .unwrap();
        }
    }
    let ours: Vec<usize> = cases.into_iter().map(|(_, model, roots)| model.ours(&roots)).collect();
    let larger: Vec<_> = ours.iter().zip(UPSTREAM).enumerate().filter(|(_, (ours, theirs))| *ours > theirs).collect();
    assert_eq!(ours.len(), UPSTREAM.len());
    assert!(larger.is_empty(), "case, ours, theirs: {larger:?}");
    let smaller = ours.iter().zip(UPSTREAM).filter(|(ours, theirs)| *ours < theirs).count();
    assert!(smaller > 0, "{ours:?}");
}

/// Bytes that ggml 0.26 needs, in the order of [`cases`].
#[rustfmt::skip]
const UPSTREAM: &[usize] = &[
    721152, 19400704, 24640, 69828608, 342687744, 2560, 11008, 7872, 9728, 7680, 2560, 10624, 7808, 10304, 12864,
    7296, 5184, 4608, 10240, 6208, 1152, 10560, 8320, 5120, 3968, 10304, 8896, 6272, 6976, 4224, 1280, 5248, 5056,
    4032, 9728, 7232, 5888, 8832, 5504, 8768, 6656, 4928, 1408, 3456, 5312,
];
