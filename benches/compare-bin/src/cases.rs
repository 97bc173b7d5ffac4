//! The cases: single operators, and the few chains that clients always emit together, at shapes of real models.
//! Shapes are low to high. May import: the builder.

use crate::builder::{Build, Builder, T};
use crate::fill::Fill;
use ggml_oxide_abi::*;

/// What a case's nodes do at least, and how its rate is shown.
#[derive(Clone, Copy)]
pub struct Work {
    /// Floating-point operations; a multiply-add counts as two. 0: the case is shown in bytes.
    pub flops: f64,
    /// The products may be of 8-bit integers: weights of 8 bits and less.
    pub int8: bool,
    /// Bytes of all leaves read and of the result written.
    pub bytes: f64,
    /// Bytes of the result.
    pub result: f64,
    /// The largest relative squared error that two right libraries can differ by (they may round activations differently).
    pub tolerance: f64,
}

/// One line of the table.
pub struct Case {
    pub op: &'static str,
    pub shape: String,
    pub work: Work,
    pub build: Build,
}

fn f32_bytes(ne: [i64; 4]) -> f64 {
    4.0 * count(ne)
}

fn count(ne: [i64; 4]) -> f64 {
    ne.iter().product::<i64>() as f64
}

fn bits(t: ggml_type) -> f64 {
    match t {
        GGML_TYPE_F16 | GGML_TYPE_BF16 => 16.0,
        GGML_TYPE_Q8_0 => 8.5,
        GGML_TYPE_Q4_0 | GGML_TYPE_Q4_K => 4.5,
        _ => 32.0,
    }
}

fn text(t: ggml_type) -> &'static str {
    match t {
        GGML_TYPE_F32 => "f32",
        GGML_TYPE_F16 => "f16",
        GGML_TYPE_BF16 => "bf16",
        GGML_TYPE_Q8_0 => "q8_0",
        GGML_TYPE_Q4_0 => "q4_0",
        GGML_TYPE_Q4_K => "q4_K",
        _ => "?",
    }
}

fn shape(ne: [i64; 4]) -> String {
    let last = ne.iter().rposition(|&n| n != 1).unwrap_or(0);
    format!("[{}]", ne[..=last].iter().map(i64::to_string).collect::<Vec<_>>().join(","))
}

fn memory(reads: f64, result: f64) -> Work {
    Work { flops: 0.0, int8: false, bytes: reads + result, result, tolerance: 1e-6 }
}

/// A case of one f32 input.
fn unary(
    op: &'static str,
    note: &str,
    ne: [i64; 4],
    out: f64,
    node: impl Fn(&Builder, T) -> T + Copy + 'static,
) -> Case {
    let shape = if note.is_empty() { shape(ne) } else { format!("{} {note}", shape(ne)) };
    let build: Build = Box::new(move |b| {
        let a = b.f32(ne);
        Box::new(move |b| node(b, a))
    });
    Case { op, shape, work: memory(f32_bytes(ne), out * f32_bytes(ne)), build }
}

/// A case of two f32 inputs; `out`: shape of the result.
fn binary(
    op: &'static str,
    left: [i64; 4],
    right: [i64; 4],
    out: [i64; 4],
    node: impl Fn(&Builder, T, T) -> T + Copy + 'static,
) -> Case {
    let build: Build = Box::new(move |b| {
        let (x, y) = (b.f32(left), b.f32(right));
        Box::new(move |b| node(b, x, y))
    });
    let work = memory(f32_bytes(left) + f32_bytes(right), f32_bytes(out));
    Case { op, shape: format!("{} {}", shape(left), shape(right)), work, build }
}

/// `k` x `m` weights (or batched f32 activations) by `n` columns.
fn mul_mat(t: ggml_type, [k, m, n]: [i64; 3], batch: i64) -> Case {
    let (a, x) = ([k, m, batch, 1], [k, n, batch, 1]);
    let result = f32_bytes([m, n, batch, 1]);
    let work = Work {
        flops: 2.0 * (k * m * n * batch) as f64,
        int8: bits(t) < 16.0,
        bytes: bits(t) / 8.0 * count(a) + f32_bytes(x) + result,
        result,
        tolerance: if t == GGML_TYPE_F32 { 1e-9 } else { 5e-4 },
    };
    let build: Build = Box::new(move |b| {
        let w = if batch == 1 { b.weight(t, a) } else { b.input(t, a, Fill::Uniform) };
        let x = b.f32(x);
        Box::new(move |b| b.mul_mat(w, x))
    });
    Case { op: "MUL_MAT", shape: format!("{} {} n={n}", text(t), shape(a)), work, build }
}

#[derive(Clone, Copy, PartialEq)]
enum Conv {
    Im2col,
    Im2colBias,
    Direct,
}

/// Convolution of `[w, w, ic]` with an f16 kernel of `side` x `side`, stride 1, the result as large as the input.
fn conv(kind: Conv, side: i64, w: i64, ic: i64, oc: i64) -> Case {
    let (kernel, x) = ([side, side, ic, oc], [w, w, ic, 1]);
    let result = f32_bytes([w, w, oc, 1]);
    let work = Work {
        flops: 2.0 * count(kernel) * (w * w) as f64,
        int8: false,
        bytes: 2.0 * count(kernel) + f32_bytes(x) + result,
        result,
        tolerance: 5e-4,
    };
    let pad = (side / 2) as i32;
    let build: Build = Box::new(move |b| {
        let k = b.weight(GGML_TYPE_F16, kernel);
        let bias = b.weight(GGML_TYPE_F32, [1, 1, oc, 1]);
        let x = b.f32(x);
        Box::new(move |b| match kind {
            Conv::Direct => b.conv_2d_direct(k, x, 1, 1, pad, pad, 1, 1),
            Conv::Im2col => b.conv_2d(k, x, 1, 1, pad, pad, 1, 1),
            Conv::Im2colBias => b.add(b.conv_2d(k, x, 1, 1, pad, pad, 1, 1), bias),
        })
    });
    let op = match kind {
        Conv::Im2col => "conv_2d (IM2COL, MUL_MAT)",
        Conv::Im2colBias => "conv_2d + bias ADD",
        Conv::Direct => "CONV_2D direct",
    };
    Case { op, shape: format!("{side}x{side} {} -> {oc}", shape(x)), work, build }
}

/// Attention with `k` and `v` in f16; `mask`: one that hides nothing.
fn flash(head: i64, queries: i64, keys: i64, heads: i64, repeat: i64, mask: bool) -> Case {
    let (q, kv) = ([head, queries, heads * repeat, 1], [head, keys, heads, 1]);
    let work = Work {
        flops: 4.0 * (head * queries * keys * heads * repeat) as f64,
        int8: false,
        bytes: 2.0 * f32_bytes(q) + 4.0 * count(kv),
        result: f32_bytes(q),
        tolerance: 5e-4,
    };
    let build: Build = Box::new(move |b| {
        let q = b.f32(q);
        let k = b.input(GGML_TYPE_F16, kv, Fill::Uniform);
        let v = b.input(GGML_TYPE_F16, kv, Fill::Uniform);
        let mask = mask.then(|| b.input(GGML_TYPE_F16, [keys, queries, 1, 1], Fill::Zero));
        Box::new(move |b| b.flash_attn_ext(q, k, v, mask, 1.0 / (head as f32).sqrt(), 0.0, 0.0))
    });
    let mut shape = format!("hs{head} nh{heads} nb{queries} kv{keys}");
    if repeat > 1 {
        shape += &format!(" nr{repeat}");
    }
    if mask {
        shape += " mask";
    }
    Case { op: "FLASH_ATTN_EXT", shape, work, build }
}

fn im2col(w: i64, ic: i64) -> Case {
    let (kernel, x) = ([3, 3, ic, 64], [w, w, ic, 1]);
    let build: Build = Box::new(move |b| {
        let k = b.weight(GGML_TYPE_F16, kernel);
        let x = b.f32(x);
        Box::new(move |b| b.im2col(k, x, 1, 1, 1, 1, 1, 1, true, GGML_TYPE_F16))
    });
    Case { op: "IM2COL", shape: format!("3x3 {} f16", shape(x)), work: memory(f32_bytes(x), 18.0 * count(x)), build }
}

fn rope(mode: i32, note: &str) -> Case {
    let ne = [128, 8, 608, 1];
    let build: Build = Box::new(move |b| {
        let x = b.f32(ne);
        let positions = b.input(GGML_TYPE_I32, [608, 1, 1, 1], Fill::Positions);
        Box::new(move |b| b.rope(x, positions, 128, mode))
    });
    Case { op: "ROPE", shape: format!("{} {note}", shape(ne)), work: memory(f32_bytes(ne), f32_bytes(ne)), build }
}

fn get_rows(t: ggml_type) -> Case {
    let (width, from, rows) = (1024, 8192, 1024);
    let build: Build = Box::new(move |b| {
        let table = b.weight(t, [width, from, 1, 1]);
        let indices = b.input(GGML_TYPE_I32, [rows, 1, 1, 1], Fill::Rows(from as u32));
        Box::new(move |b| b.get_rows(table, indices))
    });
    let values = (width * rows) as f64;
    let shape = format!("{} {rows} rows of {width}", text(t));
    Case { op: "GET_ROWS", shape, work: memory(bits(t) / 8.0 * values, 4.0 * values), build }
}

/// Every case, in the order of the table.
pub fn all() -> Vec<Case> {
    let types = [GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0, GGML_TYPE_Q4_K];
    let mut cases = Vec::new();
    for t in types {
        cases.extend([1, 8, 77, 512, 1024].map(|n| mul_mat(t, [1280, 1280, n], 1)));
        cases.push(mul_mat(t, [14336, 4096, 1], 1));
    }
    for t in [GGML_TYPE_F16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0] {
        cases.push(mul_mat(t, [768, 3072, 77], 1));
        cases.push(mul_mat(t, [1024, 2816, 608], 1));
    }
    // Attention without FLASH_ATTN_EXT: keys by queries, then values by the softmax.
    for head in [16, 40, 128] {
        cases.push(mul_mat(GGML_TYPE_F32, [head, 608, 608], 8));
        cases.push(mul_mat(GGML_TYPE_F32, [608, head, 608], 8));
    }
    cases.push(conv(Conv::Im2col, 3, 64, 320, 320));
    cases.push(conv(Conv::Direct, 3, 64, 320, 320));
    cases.push(conv(Conv::Im2col, 1, 64, 320, 320));
    // The upscaler's, and its last ones on the enlarged picture.
    for (ic, oc) in [(64, 32), (96, 32), (128, 32), (160, 32), (192, 64)] {
        cases.push(conv(Conv::Im2colBias, 3, 96, ic, oc));
    }
    cases.push(conv(Conv::Im2colBias, 3, 384, 64, 64));
    cases.push(conv(Conv::Im2colBias, 3, 384, 64, 3));
    cases.push(conv(Conv::Im2colBias, 3, 32, 512, 512));
    cases.push(im2col(192, 64));
    cases.push(im2col(96, 160));

    cases.push(flash(64, 1024, 1024, 8, 1, false));
    cases.push(flash(128, 1024, 1024, 8, 1, false));
    cases.push(flash(40, 1024, 1024, 8, 1, false));
    cases.push(flash(40, 1024, 77, 8, 1, false));
    cases.push(flash(64, 1, 7680, 8, 8, true));
    cases.push(flash(128, 1, 4096, 8, 4, true));

    let wide = [1280, 1024, 1, 1];
    let picture = [64, 64, 320, 1];
    cases.push(unary("RMS_NORM", "", wide, 1.0, |b, a| b.rms_norm(a, 1e-6)));
    cases.push(unary("NORM", "", wide, 1.0, |b, a| b.norm(a, 1e-6)));
    cases.push(unary("GROUP_NORM", "g32", picture, 1.0, |b, a| b.group_norm(a, 32, 1e-6)));
    cases.push(unary("SOFT_MAX", "", [1024, 1024, 8, 1], 1.0, |b, a| b.soft_max(a)));
    cases.push(unary("SOFT_MAX", "", [77, 1024, 8, 1], 1.0, |b, a| b.soft_max(a)));
    cases.push(unary("SILU", "", picture, 1.0, |b, a| b.silu(a)));
    cases.push(unary("GELU", "", wide, 1.0, |b, a| b.gelu(a)));
    cases.push(unary("GELU_QUICK", "", [3072, 77, 1, 1], 1.0, |b, a| b.gelu_quick(a)));
    cases.push(unary("SCALE", "", wide, 1.0, |b, a| b.scale(a, 0.125)));
    let add = |b: &Builder, x, y| b.add(x, y);
    let mul = |b: &Builder, x, y| b.mul(x, y);
    cases.push(binary("ADD", [320, 4096, 1, 1], [320, 4096, 1, 1], [320, 4096, 1, 1], add));
    cases.push(binary("ADD", [768, 77, 1, 1], [768, 1, 1, 1], [768, 77, 1, 1], add));
    cases.push(binary("ADD", picture, [1, 1, 320, 1], picture, add));
    cases.push(binary("ADD", [384, 384, 64, 1], [1, 1, 64, 1], [384, 384, 64, 1], add));
    cases.push(binary("MUL", picture, [1, 1, 320, 1], picture, mul));
    cases.push(binary("MUL", [2, 64, 608, 8], [2, 64, 608, 1], [2, 64, 608, 8], mul));
    cases.push(unary("CPY", "f32 -> f16", [4096, 1024, 1, 1], 0.5, |b, a| b.cast(a, GGML_TYPE_F16)));
    cases.push(unary("CONT", "of permute 1,0,2,3", picture, 1.0, |b, a| b.cont(b.permute(a, 1, 0, 2, 3))));
    cases.push(unary("CONT", "of permute 2,0,1,3", [320, 64, 64, 1], 1.0, |b, a| b.cont(b.permute(a, 2, 0, 1, 3))));
    cases.push(unary("CONT", "of permute 0,2,1,3", [64, 8, 1024, 1], 1.0, |b, a| b.cont(b.permute(a, 0, 2, 1, 3))));
    let nearest = GGML_SCALE_MODE_NEAREST;
    let bilinear = GGML_SCALE_MODE_BILINEAR;
    cases.push(unary("UPSCALE", "nearest x2", picture, 4.0, move |b, a| b.upscale(a, 2, nearest)));
    cases.push(unary("UPSCALE", "bilinear x2", picture, 4.0, move |b, a| b.upscale(a, 2, bilinear)));
    cases.push(rope(GGML_ROPE_TYPE_NORMAL, "normal"));
    cases.push(rope(GGML_ROPE_TYPE_NEOX, "neox"));
    cases.extend([GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_Q4_K].map(get_rows));
    let concat = |b: &Builder, x, y| b.concat(x, y, 2);
    cases.push(binary("CONCAT", [96, 96, 160, 1], [96, 96, 32, 1], [96, 96, 192, 1], concat));
    cases.push(binary("CONCAT", [320, 64, 64, 1], [320, 64, 32, 1], [320, 64, 96, 1], concat));
    let repeat = [("REPEAT", [1, 64, 608, 8], [2, 64, 608, 8]), ("REPEAT", [1, 1, 320, 1], picture)];
    for (op, from, to) in repeat {
        let build: Build = Box::new(move |b| {
            let (x, like) = (b.f32(from), b.f32(to));
            Box::new(move |b| b.repeat(x, like))
        });
        let shape = format!("{} to {}", shape(from), shape(to));
        cases.push(Case { op, shape, work: memory(f32_bytes(from), f32_bytes(to)), build });
    }
    cases
}
