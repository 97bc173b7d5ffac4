//! Matrix multiplication, on the gemm crate.

mod by_id;
mod out_prod;

pub use by_id::MUL_MAT_ID;
pub use out_prod::OUT_PROD;

use crate::entry::OpEntry;
use crate::node::{src, Node, View};
use crate::team::Team;
use ggml_oxide_abi::*;
use ggml_oxide_gemm::{Dst, Error, Gemm, Matrix, Precision, Shape, Side, Type, Workspace};
use ggml_oxide_shape as shape;

/// Rows of `src[0]` times rows of `src[1]`.
pub static MUL_MAT: OpEntry = OpEntry { supports, work, n_tasks, run };

impl ggml_oxide_gemm::Team for Team<'_> {
    fn ith(&self) -> usize {
        self.ith()
    }
    fn nth(&self) -> usize {
        self.nth()
    }
    fn barrier(&self) -> bool {
        self.sync()
    }
    fn next(&self) -> usize {
        self.next()
    }
}

/// The format, if it is one that is multiplied: the floats, and the block formats that can be decoded.
pub(crate) fn elem_of(ty: ggml_type) -> Option<Type> {
    let ty = shape::format_of(ty)?;
    let float = matches!(ty, Type::F32 | Type::F16 | Type::BF16);
    (float || (ty.is_quantized() && ggml_oxide_gemm::is_supported(ty))).then_some(ty)
}

/// The format, if it is one of a matrix in a product: as [`elem_of`], and the 8-bit floats, which are widened on the way in.
fn operand_of(ty: ggml_type) -> Option<Type> {
    let byte = || shape::format_of(ty).filter(|ty| matches!(ty, Type::F8_E4M3 | Type::F8_E5M2));
    elem_of(ty).or_else(byte)
}

/// Whether the gemm crate reads the tensor as it lies.
pub(crate) fn operand_rule(t: &ggml_tensor) -> Result<(), &'static str> {
    let elem = operand_of(t.r#type).ok_or("the format cannot be multiplied")?;
    if elem.is_quantized() && t.nb[0] != elem.block_bytes() {
        return Err("the blocks of a quantised row must follow each other");
    }
    let align = if elem.is_quantized() { 2 - elem.block_bytes() % 2 } else { elem.block_bytes() };
    // a power of two; a division for each stride would be most of what the whole question costs
    if t.nb.iter().any(|nb| nb & (align - 1) != 0) {
        return Err("a stride is no multiple of the element size");
    }
    Ok(())
}

/// Whether the result is what the gemm crate writes: f32 with adjacent elements in a row.
pub(crate) fn result_rule(t: &ggml_tensor) -> Result<(), &'static str> {
    if t.r#type != GGML_TYPE_F32 {
        return Err("the result must be f32");
    }
    if t.nb[0] != 4 || t.nb.iter().any(|nb| nb % 4 != 0) {
        return Err("the elements of a row of the result must follow each other");
    }
    Ok(())
}

/// A matrix over a tensor's memory; the tensor passed [`operand_rule`].
pub(crate) fn matrix(v: &View) -> Matrix {
    // SAFETY: the executor found the memory there and aligned; nobody writes a node's source while the node runs.
    unsafe { Matrix::new(v.data, operand_of(v.ty).unwrap_or(Type::F32), v.nb) }
}

/// Exactness that parameter 0 of a node asks for.
pub(crate) fn precision(op: &ggml_tensor) -> Precision {
    if op.op_params[0] == GGML_PREC_F32.0 {
        Precision::F32
    } else {
        Precision::Default
    }
}

fn supports(op: &ggml_tensor) -> Result<(), &'static str> {
    let (w, x) = (src(op, 0)?, src(op, 1)?);
    operand_rule(w)?;
    operand_rule(x)?;
    result_rule(op)?;
    if w.ne[0] != x.ne[0] || op.ne != [w.ne[1], x.ne[1], x.ne[2], x.ne[3]] {
        return Err("the shapes do not multiply: [k, m] times [k, n] gives [m, n]");
    }
    let divides = |d: usize| x.ne[d] == 0 || (w.ne[d] != 0 && x.ne[d] % w.ne[d] == 0);
    if !divides(2) || !divides(3) {
        return Err("dimensions 2 and 3 of the first source must divide those of the second");
    }
    gemm(&Node { dst: op }).map(|_| ()).map_err(rule)
}

/// The rule behind an error of the gemm crate.
pub(crate) fn rule(e: Error) -> &'static str {
    match e {
        Error::Stride => "result strides must be multiples of 4 bytes",
        Error::Type => "the format cannot be multiplied",
        Error::Block => "the length of a quantised row must be a whole number of blocks",
        Error::Ratio => "dimensions 2 and 3 of the first source must divide those of the second",
        Error::Bias => "a bias cannot be added",
        Error::TooLarge => "the sizes overflow",
        Error::Isa => "the instruction set is not one of this machine",
        Error::Workspace => "the scratch memory is too small",
    }
}

/// Whether the rows come from an im2col. Such products always take the packed path, as the fused convolution does, so that
/// both give the same bits.
fn rows_are_patches(w: &ggml_tensor) -> bool {
    let im2col = |t: &ggml_tensor| matches!(t.op, GGML_OP_IM2COL | GGML_OP_IM2COL_3D);
    im2col(w) || (w.op == GGML_OP_RESHAPE && src(w, 0).is_ok_and(im2col))
}

/// Shape of a node that passed the rules on shapes.
fn shape_of(node: &Node) -> Shape {
    let (w, x) = (node.arg(0), node.arg(1));
    let ratio = |d: usize| x.ne[d].checked_div(w.ne[d]).unwrap_or(1).max(1);
    Shape { m: w.ne[1], n: x.ne[1], k: w.ne[0], batch: [x.ne[2], x.ne[3]], ratio: [ratio(2), ratio(3)] }
}

/// Prepares the product and hands it to `f`.
fn with_gemm<R>(node: &Node, f: impl FnOnce(&Gemm) -> R) -> Result<R, Error> {
    let (w, x, out) = (node.arg(0), node.arg(1), node.out());
    // SAFETY: the executor found the result's memory there; the kernel alone writes it.
    let dst = unsafe { Dst::new(out.data.cast(), [out.nb[1], out.nb[2], out.nb[3]]) }?;
    let (wm, xm) = (matrix(&w), matrix(&x));
    let patches = node.src_opt(0).is_some_and(rows_are_patches);
    let side = if patches { Side::Custom(&wm) } else { Side::Matrix(wm) };
    Ok(f(&Gemm::new(shape_of(node), side, Side::Matrix(xm), dst, precision(node.dst))?))
}

fn gemm(node: &Node) -> Result<(), Error> {
    with_gemm(node, |_| ())
}

fn work(op: &ggml_tensor, nth: usize) -> usize {
    with_gemm(&Node { dst: op }, |g| g.workspace_size(nth)).unwrap_or(usize::MAX)
}

/// Multiply-adds below which waking others costs more than it gives.
const SMALL: u64 = 100_000;

fn n_tasks(op: &ggml_tensor, nth: usize) -> usize {
    tasks_by_cost(op, src(op, 0).map_or(0, |w| w.ne[0]) as u64, nth)
}

/// All threads, or one where `k` multiply-adds for each element are few.
fn tasks_by_cost(op: &ggml_tensor, k: u64, nth: usize) -> usize {
    let cost = op.ne.iter().fold(k, |c, &n| c.saturating_mul(n as u64));
    if cost < SMALL {
        1
    } else {
        nth
    }
}

/// The team's scratch memory from byte `from` on.
pub(crate) fn workspace(team: &Team, from: usize) -> Workspace {
    let (data, len) = team.scratch();
    // SAFETY: the scratch memory is this node's alone while it runs.
    unsafe { Workspace::new(data.wrapping_add(from), len.saturating_sub(from)) }
}

fn run(node: &Node, team: &Team) {
    let done = with_gemm(node, |g| g.run(team, workspace(team, 0)));
    if let Err(e) | Ok(Err(e)) = done {
        team.fail(rule(e));
    }
}
