//! Gradients of what moves elements: copies, views, windows, rows by index, masks.

use super::frame::{Flow, Frame, Node};
use crate::error::Error;
use crate::tensor::{backward, copy, elementwise, image, show, view as shapes};
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

type Answer = Result<Flow, Error>;

/// Strides and offset in `op_params` of ACC and SET, for f32 in the place of the node's format.
fn window_of(n: &Node) -> Result<([usize; 3], usize), Error> {
    let at = |i: usize| in_f32(n.value.op_params[i] as usize, n.value.r#type);
    Ok(([at(0)?, at(1)?, at(2)?], at(3)?))
}

/// Bytes of elements of format `ty` as bytes of as many f32.
fn in_f32(bytes: usize, ty: ggml_type) -> Result<usize, Error> {
    let size = shape::type_size(ty);
    if size == 0 || !bytes.is_multiple_of(size) {
        return Err(Error::shape(format!("{bytes} bytes are no whole number of elements")));
    }
    (bytes / size).checked_mul(4).ok_or_else(|| Error::shape(format!("{bytes} bytes are too many")))
}

pub fn acc(f: &mut Frame, n: &Node, i: usize) -> Answer {
    if i == 0 {
        return Ok(Flow::Add(n.grad));
    }
    let (nb, offset) = window_of(n)?;
    Ok(Flow::Add(f.part(n.grad, n.src(1)?.ne, nb, offset)?))
}

/// What was written over has no part in the result.
pub fn set(f: &mut Frame, n: &Node, i: usize) -> Answer {
    let (nb, offset) = window_of(n)?;
    let b = n.src(1)?;
    if i == 1 {
        return Ok(Flow::Add(f.part(n.grad, b.ne, nb, offset)?));
    }
    let zeros = f.zeros(b)?;
    let spec = elementwise::window(GGML_OP_SET, &n.grad, &zeros, nb, offset, false);
    Ok(Flow::Add(f.make(spec, &[n.grad, zeros])?))
}

/// The target of a copy is overwritten.
pub fn cpy(f: &mut Frame, n: &Node, i: usize) -> Answer {
    if i == 0 {
        reshape(f, n, 0)
    } else {
        Ok(Flow::Nothing)
    }
}

pub fn reshape(f: &mut Frame, n: &Node, _: usize) -> Answer {
    Ok(Flow::Add(f.reshape(n.grad, n.src(0)?.ne)?))
}

pub fn view(_: &mut Frame, n: &Node, _: usize) -> Answer {
    let (v, src) = (n.value, n.src(0)?);
    if !shape::is_contiguous(&src) {
        return Err(Error::shape(format!("{} must be contiguous: the gradient is", show("source", &src))));
    }
    if overlaps(&v) {
        return Err(Error::shape(format!("rows of the view overlap: strides {:?}", v.nb)));
    }
    let offset = v.op_params[0] as u32 as u64 | u64::from(v.op_params[1] as u32) << 32;
    let offset = if cfg!(target_endian = "little") { offset } else { offset.rotate_left(32) };
    let at = |bytes| in_f32(bytes, src.r#type);
    Ok(Flow::Window(n.grad, [at(v.nb[1])?, at(v.nb[2])?, at(v.nb[3])?], at(offset as usize)?))
}

/// Whether two elements of a view may lie in one place.
fn overlaps(v: &ggml_tensor) -> bool {
    let mut dims: Vec<usize> = (0..GGML_MAX_DIMS).filter(|&i| v.ne[i] > 1).collect();
    dims.sort_by_key(|&i| v.nb[i]);
    let mut end = shape::type_size(v.r#type);
    dims.iter().any(|&i| {
        let over = v.nb[i] < end;
        end = end.saturating_add(v.nb[i].saturating_mul(v.ne[i] as usize - 1));
        over
    })
}

pub fn permute(f: &mut Frame, n: &Node, _: usize) -> Answer {
    let mut back = [0; GGML_MAX_DIMS];
    for i in 0..GGML_MAX_DIMS {
        back[n.i32(i) as usize % GGML_MAX_DIMS] = i as i32;
    }
    let look = f.make(shapes::permute(&n.grad, back), &[n.grad])?;
    Ok(Flow::Add(f.dense(look)?))
}

pub fn transpose(f: &mut Frame, n: &Node, _: usize) -> Answer {
    let look = f.transposed(n.grad)?;
    Ok(Flow::Add(f.dense(look)?))
}

pub fn get_rows(f: &mut Frame, n: &Node, _: usize) -> Answer {
    let (src, ids, g) = (n.src(0)?, n.src(1)?, n.grad);
    Ok(Flow::Add(f.make(backward::get_rows(&g, &ids, &src), &[g, ids])?))
}

pub fn concat(f: &mut Frame, n: &Node, i: usize) -> Answer {
    let (a, src, g) = (n.src(0)?, n.src(i)?, n.grad);
    let dim = n.i32(0) as usize % GGML_MAX_DIMS;
    let offset = if i == 0 { 0 } else { a.ne[dim] as usize * g.nb[dim] };
    Ok(Flow::Add(f.part(g, src.ne, [g.nb[1], g.nb[2], g.nb[3]], offset)?))
}

pub fn pad(f: &mut Frame, n: &Node, _: usize) -> Answer {
    let (src, g) = (n.src(0)?, n.grad);
    if n.i32(8) != 0 {
        return Err(Error::argument("padding that goes around has no gradient"));
    }
    if n.value.op_params[..8].iter().any(|&p| p < 0) {
        return Err(Error::argument("padding that cuts off has no gradient"));
    }
    let offset = (0..GGML_MAX_DIMS).map(|i| n.i32(2 * i) as usize * g.nb[i]).sum();
    Ok(Flow::Add(f.part(g, src.ne, [g.nb[1], g.nb[2], g.nb[3]], offset)?))
}

pub fn roll(f: &mut Frame, n: &Node, _: usize) -> Answer {
    let back = std::array::from_fn(|i| -n.i32(i));
    Ok(Flow::Add(f.make(image::roll(&n.grad, back), &[n.grad])?))
}

pub fn diag(f: &mut Frame, n: &Node, _: usize) -> Answer {
    let (src, g) = (n.src(0)?, n.grad);
    let diagonal = f.part(g, [1, src.ne[0], g.ne[2], g.ne[3]], [g.nb[1] + g.nb[0], g.nb[2], g.nb[3]], 0)?;
    Ok(Flow::Add(f.reshape(diagonal, src.ne)?))
}

pub fn diag_mask(f: &mut Frame, n: &Node, _: usize) -> Answer {
    Ok(Flow::Add(f.make(copy::diag_mask(GGML_OP_DIAG_MASK_ZERO, &n.grad, n.i32(0), false), &[n.grad])?))
}

pub fn tri(f: &mut Frame, n: &Node, _: usize) -> Answer {
    Ok(Flow::Add(f.make(copy::tri(&n.grad, ggml_tri_type(n.i32(0))), &[n.grad])?))
}
