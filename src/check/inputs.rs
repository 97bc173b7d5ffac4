//! Inputs as a case wants them: other layouts, no elements, one tensor in the place of two. The tensors that the author makes are made
//! so from the start, by the real functions: what is built on them obeys the rules of every operator.

use crate::tensor::{self, view, Context, Maker};
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::cell::RefCell;
use std::ptr::null_mut;
use std::rc::Rc;

type Shape = [i64; GGML_MAX_DIMS];

/// How the elements of an input lie.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum Layout {
    /// One behind the other, in a tensor of their own.
    #[default]
    Plain,
    /// The same, behind one element (or block) of something else.
    Offset,
    /// With something between the rows, and before the first.
    Rows,
    /// With something between planes of rows.
    Planes,
    /// Dimensions 1 and 2 swapped.
    Permuted,
    /// Dimensions 0 and 1 swapped.
    Transposed,
}

/// How a case wants the inputs.
#[derive(Clone, Default, Debug)]
pub struct Variant {
    /// The layout of inputs.
    pub layout: Layout,
    /// The one that has it; `None`: all.
    pub only: Option<usize>,
    /// Dimensions without elements: of which input (`None`: of all), and which.
    pub empty: Vec<(Option<usize>, usize)>,
    /// The second of the two is the first.
    pub same: Option<(usize, usize)>,
}

impl Variant {
    /// All inputs, or one of them, laid out in some way.
    pub fn laid_out(layout: Layout, only: Option<usize>) -> Self {
        Variant { layout, only, ..Default::default() }
    }

    /// The same with plain layouts, as a reference has it.
    pub fn plain(&self) -> Self {
        Variant { layout: Layout::Plain, ..self.clone() }
    }
}

/// An input.
#[derive(Clone, Copy)]
pub struct Input {
    /// What the author was given.
    pub tensor: *mut ggml_tensor,
    /// The earlier input that it is.
    pub twin: Option<usize>,
}

/// Inputs as they are made.
#[derive(Default)]
pub struct Made {
    /// In order.
    pub list: Vec<Input>,
    /// The variant changed something.
    pub applied: bool,
}

/// Makes inputs as `variant` says, and notes them.
pub fn maker(variant: &Variant) -> (Rc<RefCell<Made>>, Maker) {
    let made = Rc::new(RefCell::new(Made::default()));
    let (notes, variant) = (made.clone(), variant.clone());
    let maker = move |ctx: &mut Context, call: &str, ty: ggml_type, ne: &[i64]| {
        let mut notes = notes.borrow_mut();
        let index = notes.list.len();
        let mut all = [1; GGML_MAX_DIMS];
        let n = ne.len().min(GGML_MAX_DIMS);
        all[..n].copy_from_slice(&ne[..n]);
        for &(_, dim) in variant.empty.iter().filter(|(i, _)| i.is_none_or(|i| i == index)) {
            notes.applied |= all[dim] != 0;
            all[dim] = 0;
        }
        if let Some((first, _)) = variant.same.filter(|&(_, second)| second == index) {
            if let Some(twin) = notes.list.get(first).copied().filter(|t| is_like(t, ty, &all)) {
                notes.applied = true;
                notes.list.push(Input { tensor: twin.tensor, twin: Some(first) });
                return twin.tensor;
            }
        }
        let layout = if variant.only.is_none_or(|i| i == index) { variant.layout } else { Layout::Plain };
        let (tensor, other) = lay_out(ctx, call, ty, all, layout);
        notes.applied |= other;
        notes.list.push(Input { tensor, twin: None });
        tensor
    };
    (made, Box::new(maker))
}

fn is_like(input: &Input, ty: ggml_type, ne: &Shape) -> bool {
    // SAFETY: made by the maker in the context that is being filled, NULL if it is full.
    unsafe { input.tensor.as_ref() }.is_some_and(|t| t.r#type == ty && t.ne == *ne)
}

/// A tensor of that layout, and whether it differs from a plain one.
fn lay_out(ctx: &mut Context, call: &str, ty: ggml_type, ne: Shape, layout: Layout) -> (*mut ggml_tensor, bool) {
    match different(ctx, call, ty, ne, layout) {
        Some(tensor) => (tensor, true),
        None => (tensor::new_tensor(ctx, call, ty, &ne), false),
    }
}

fn different(ctx: &mut Context, call: &str, ty: ggml_type, ne: Shape, layout: Layout) -> Option<*mut ggml_tensor> {
    let block = shape::blck_size(ty) as i64;
    if block == 0 || ne.iter().any(|&n| n < 1) {
        return None;
    }
    let packed = shape::contiguous_strides(ty, &ne)?;
    let [n0, n1, n2, n3] = ne;
    let size = shape::type_size(ty);
    match layout {
        Layout::Plain => None,
        Layout::Offset => {
            let n = shape::checked_nelements(&ne)?.checked_add(2 * block)?;
            Some(part(ctx, call, ty, [n, 1, 1, 1], ne, packed, size))
        }
        Layout::Rows if n1 * n2 * n3 > 1 => {
            let whole = [n0 + 3 * block, n1, n2, n3];
            Some(part(ctx, call, ty, whole, ne, shape::contiguous_strides(ty, &whole)?, size))
        }
        Layout::Planes if n2 * n3 > 1 => {
            let whole = [n0, n1 + 1, n2 + 1, n3];
            Some(part(ctx, call, ty, whole, ne, shape::contiguous_strides(ty, &whole)?, 0))
        }
        Layout::Permuted if n1 > 1 && n2 > 1 => Some(turned(ctx, call, ty, [n0, n2, n1, n3], [0, 2, 1, 3])),
        Layout::Transposed if n0 > 1 && n1 > 1 && block == 1 => {
            Some(turned(ctx, call, ty, [n1, n0, n2, n3], [1, 0, 2, 3]))
        }
        _ => None,
    }
}

/// A view of shape `ne` into a tensor of shape `whole`.
fn part(
    ctx: &mut Context,
    call: &str,
    ty: ggml_type,
    whole: Shape,
    ne: Shape,
    nb: [usize; GGML_MAX_DIMS],
    offset: usize,
) -> *mut ggml_tensor {
    let whole = tensor::new_tensor(ctx, call, ty, &whole);
    over(ctx, call, whole, |whole| view::view(whole, &ne, &nb[1..], offset))
}

/// A tensor of shape `stored` with its dimensions in another order.
fn turned(ctx: &mut Context, call: &str, ty: ggml_type, stored: Shape, axes: [i32; 4]) -> *mut ggml_tensor {
    let stored = tensor::new_tensor(ctx, call, ty, &stored);
    over(ctx, call, stored, |stored| view::permute(stored, axes))
}

fn over(
    ctx: &mut Context,
    call: &str,
    whole: *mut ggml_tensor,
    rule: impl FnOnce(&ggml_tensor) -> Result<tensor::NodeSpec, crate::error::Error>,
) -> *mut ggml_tensor {
    // SAFETY: `new_tensor` gives NULL or a live tensor of this context.
    let Some(t) = (unsafe { whole.as_ref() }).filter(|t| !tensor::is_poisoned(t)) else { return whole };
    let spec = rule(t);
    let mut src = [null_mut(); GGML_MAX_SRC];
    src[0] = whole;
    // SAFETY: the one source is live.
    unsafe { tensor::place(ctx, call, spec, &src) }
}

/// Calls `f` with pieces of a tensor's elements that lie together: bytes before the piece when all lie together, bytes from the first
/// element to the piece as the strides have it, and its bytes.
pub fn pieces(ty: ggml_type, ne: &Shape, nb: &[usize; GGML_MAX_DIMS], mut f: impl FnMut(usize, usize, usize)) {
    let [n0, n1, n2, n3] = ne.map(|n| n.max(0) as usize);
    let size = shape::type_size(ty);
    let row = shape::checked_row_size(ty, ne[0]).unwrap_or(0);
    if row == 0 {
        return;
    }
    let mut at = 0;
    for (i3, i2, i1) in (0..n3).flat_map(|i3| (0..n2).flat_map(move |i2| (0..n1).map(move |i1| (i3, i2, i1)))) {
        let start = i3 * nb[3] + i2 * nb[2] + i1 * nb[1];
        if nb[0] == size {
            f(at, start, row);
            at += row;
        } else {
            for i0 in 0..n0 {
                f(at, start + i0 * nb[0], size);
                at += size;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const ALL: [Layout; 5] = [Layout::Offset, Layout::Rows, Layout::Planes, Layout::Permuted, Layout::Transposed];

    #[test]
    fn abi_5_layouts_differ_and_hold_every_element_once() {
        for layout in ALL {
            // SAFETY: no memory is lent.
            let mut ctx = unsafe { Context::new(1 << 16, null_mut(), true) }.unwrap();
            let (t, other) = lay_out(&mut ctx, "test", GGML_TYPE_F32, [5, 4, 3, 2], layout);
            // SAFETY: just made.
            let (t, root) = unsafe { (&*t, &*(*t).view_src) };
            assert!(other && !tensor::is_poisoned(t) && t.ne == [5, 4, 3, 2], "{layout:?}");
            let mut seen = vec![false; shape::nbytes(root)];
            let (mut n, mut next) = (0, 0);
            pieces(t.r#type, &t.ne, &t.nb, |at, to, len| {
                assert_eq!(at, next);
                next += len;
                for byte in &mut seen[t.view_offs + to..t.view_offs + to + len] {
                    assert!(!std::mem::replace(byte, true));
                    n += 1;
                }
            });
            assert_eq!(n, 5 * 4 * 3 * 2 * 4, "{layout:?}");
        }
        // SAFETY: no memory is lent.
        let mut ctx = unsafe { Context::new(1 << 16, null_mut(), true) }.unwrap();
        assert!(ALL.iter().skip(1).all(|&l| !lay_out(&mut ctx, "test", GGML_TYPE_F32, [5, 1, 1, 1], l).1));
        assert!(!lay_out(&mut ctx, "test", GGML_TYPE_Q4_0, [32, 4, 1, 1], Layout::Transposed).1);
    }
}
