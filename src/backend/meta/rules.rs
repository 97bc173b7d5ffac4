//! How the result of an operator is divided, when its sources are: so that each device computes its part from the parts it has.

use super::split::{Cut, Split};
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

/// What a rule answers.
pub enum Result {
    /// Each device computes its part.
    Is(Split),
    /// Each device computes an addend; the sum goes to all of them.
    Sum,
}

type Answer = std::result::Result<Result, &'static str>;

/// A source and how it is divided.
pub type Source<'a> = Option<(&'a ggml_tensor, Split)>;

fn cut(source: &Source) -> Option<Cut> {
    match source {
        Some((_, Split::Along(cut))) => Some(cut.clone()),
        _ => None,
    }
}

/// Whether all of the source is on each device, or there is none.
fn whole(source: &Source) -> bool {
    matches!(source, None | Some((_, Split::Mirrored)))
}

fn along(cut: Cut) -> Answer {
    Ok(Result::Is(Split::Along(cut)))
}

/// Whether a source that all devices have whole can be read beside something cut along `axis`.
fn broadcast(source: &Source, axis: usize) -> bool {
    match source {
        None => true,
        Some((t, Split::Mirrored)) => t.ne[axis] == 1,
        _ => false,
    }
}

/// How the result of `t` is divided; `src` are its sources.
pub fn result(t: &ggml_tensor, src: &[Source; GGML_MAX_SRC]) -> Answer {
    if src.iter().all(whole) {
        return Ok(Result::Is(Split::Mirrored));
    }
    let first = cut(&src[0]);
    match t.op {
        GGML_OP_MUL_MAT => mul_mat(src),
        GGML_OP_MUL_MAT_ID => mul_mat_id(src),
        GGML_OP_DUP | GGML_OP_CONT | GGML_OP_CPY => {
            let (Some(cut), Some((from, _))) = (first, &src[0]) else { return Err("its source is not divided") };
            along(cut.reshaped(&from.ne, &t.ne).ok_or("the new shape breaks rows of a device")?)
        }
        GGML_OP_SQR | GGML_OP_SQRT | GGML_OP_LOG | GGML_OP_SIN | GGML_OP_COS | GGML_OP_SCALE | GGML_OP_CLAMP
        | GGML_OP_LEAKY_RELU | GGML_OP_FILL | GGML_OP_UNARY => same(src, first),
        GGML_OP_GLU if src[1].is_some() => same(src, first),
        GGML_OP_ADD | GGML_OP_SUB | GGML_OP_MUL | GGML_OP_DIV => {
            let cut = first.ok_or("its first source is not divided, but another one is")?;
            if cut_like(&src[1], &cut) || broadcast(&src[1], cut.axis) {
                along(cut)
            } else {
                Err("its sources are divided in different ways")
            }
        }
        GGML_OP_NORM | GGML_OP_RMS_NORM | GGML_OP_L2_NORM | GGML_OP_SUM_ROWS | GGML_OP_MEAN | GGML_OP_CUMSUM
        | GGML_OP_ARGMAX | GGML_OP_ARGSORT | GGML_OP_TOP_K | GGML_OP_GLU => match first {
            Some(cut) if cut.axis > 0 => same(src, Some(cut)),
            _ => Err("a row of it lies on several devices"),
        },
        GGML_OP_SOFT_MAX => soft_max(t, src, first),
        GGML_OP_ROPE | GGML_OP_ROPE_BACK => match first {
            Some(cut) if matches!(cut.axis, 1 | 3) && whole(&src[1]) && whole(&src[2]) => along(cut),
            _ => Err("it can be divided by heads and sequences only, positions being whole"),
        },
        GGML_OP_GET_ROWS => match first {
            Some(cut) if cut.axis == 0 && whole(&src[1]) => along(cut),
            _ => Err("rows can be taken from a matrix that is divided along its rows' length only"),
        },
        GGML_OP_SET_ROWS => match first {
            Some(cut) if cut.axis != 1 && whole(&src[1]) => along(cut),
            _ => Err("rows can be set that are divided along their length only"),
        },
        GGML_OP_CONCAT => match first {
            Some(cut) if cut_like(&src[1], &cut) && t.op_params[0] != cut.axis as i32 => along(cut),
            _ => Err("its sources must be divided alike, and not along the dimension that grows"),
        },
        GGML_OP_FLASH_ATTN_EXT => attention(t, src, first),
        _ => Err("it cannot be divided over devices"),
    }
}

/// Whether the source is cut in the same pieces.
fn cut_like(source: &Source, cut: &Cut) -> bool {
    matches!(source, Some((_, Split::Along(other))) if other == cut)
}

/// All sources that are there are cut alike, and so is the result.
fn same(src: &[Source], first: Option<Cut>) -> Answer {
    let cut = first.ok_or("its first source is not divided, but another one is")?;
    if src.iter().filter(|s| s.is_some()).all(|s| cut_like(s, &cut)) {
        along(cut)
    } else {
        Err("its sources are divided in different ways")
    }
}

fn mul_mat(src: &[Source]) -> Answer {
    let (Some((w, _)), Some((x, _))) = (&src[0], &src[1]) else { return Err("a source is missing") };
    match (cut(&src[0]), cut(&src[1])) {
        (Some(a), None) if a.axis == 1 => along(Cut { axis: 0, ..a }),
        (None, Some(b)) if b.axis == 1 || b.axis > 1 && w.ne[b.axis] == 1 => along(b),
        (Some(a), Some(b)) if a.axis == 0 && b.axis == 0 => {
            if a == b {
                Ok(Result::Sum)
            } else {
                Err("the rows of both matrices must be divided alike")
            }
        }
        (Some(a), Some(b)) if a.axis == b.axis && a.axis > 1 => {
            if grouped(&a, w.ne[a.axis], &b, x.ne[a.axis]) {
                along(b)
            } else {
                Err("the matrices of a batch must be divided alike")
            }
        }
        _ => Err("these two divisions give no product: rows by rows, or one of them whole"),
    }
}

/// Whether each device has the matrices of `a` that its own of `b` go with, when several of `b` share one of `a`.
fn grouped(a: &Cut, n_a: i64, b: &Cut, n_b: i64) -> bool {
    a.scaled(b.axis, n_b, n_a).is_some_and(|scaled| scaled == *b)
}

fn mul_mat_id(src: &[Source]) -> Answer {
    if !whole(&src[2]) {
        return Err("the choice of experts must be whole");
    }
    match (cut(&src[0]), cut(&src[1])) {
        (Some(a), None) if a.axis == 1 => along(Cut { axis: 0, ..a }),
        (Some(a), Some(b)) if a.axis == 0 && a == b => Ok(Result::Sum),
        _ => Err("experts can be divided by rows, or all along their rows' length"),
    }
}

fn soft_max(t: &ggml_tensor, src: &[Source], first: Option<Cut>) -> Answer {
    let cut = first.ok_or("its first source is not divided, but another one is")?;
    let sinks = src[2].is_none() || cut_like(&src[2], &Cut { axis: 0, ..cut.clone() });
    if cut.axis == 0 {
        Err("a row of it lies on several devices")
    } else if !(broadcast(&src[1], cut.axis) || cut_like(&src[1], &cut)) || !sinks {
        Err("its mask is not divided as the rows are")
    } else if cut.axis == 2 && shape::param_f32(t, 1) != 0.0 {
        Err("its slopes depend on the number of the head")
    } else {
        along(cut)
    }
}

fn attention(t: &ggml_tensor, src: &[Source], first: Option<Cut>) -> Answer {
    let (Some(q), Some((queries, _)), Some((keys, _)), Some((values, _))) = (first, &src[0], &src[1], &src[2]) else {
        return Err("its queries must be divided");
    };
    if q.axis != 2 {
        return Err("it can be divided by heads only");
    }
    let shares = |source: &Source, t: &ggml_tensor| match cut(source) {
        Some(cut) => cut.axis == 2 && grouped(&cut, t.ne[2], &q, queries.ne[2]),
        None => whole(source) && t.ne[2] == 1,
    };
    if !shares(&src[1], keys) || !shares(&src[2], values) {
        Err("keys and values must be divided by heads as the queries are")
    } else if !broadcast(&src[3], 2) {
        Err("its mask depends on the head")
    } else if src[4].is_some() && !cut_like(&src[4], &Cut { axis: 0, ..q.clone() }) {
        Err("its sinks must be divided by heads")
    } else if shape::param_f32(t, 1) != 0.0 {
        Err("its slopes depend on the number of the head")
    } else {
        along(Cut { axis: 1, ..q })
    }
}
