//! COL2IM_1D: kernels that overlap are added up to a signal.
//!
//! f32, f16 or bf16; rows packed. Sums are in f32, inputs in ascending order.

use super::rows::{is_float, CHUNK};
use super::rules::*;
use super::vec::{dispatch, Bf16, Elem, Kernel, Lanes, F16, F32, LANES};
use crate::entry::{no_work, tasks_by_size, OpEntry};
use crate::node::{src, Node};
use crate::team::Team;
use ggml_oxide_abi::*;
use std::marker::PhantomData;

/// Up to [`CHUNK`] elements of one channel.
struct Piece<E> {
    /// The channel's taps of the first input, and bytes from input to input.
    columns: *const u8,
    step: usize,
    taps: usize,
    inputs: usize,
    stride: usize,
    /// Elements of the whole signal, from the first before cutting.
    first: usize,
    n: usize,
    out: *mut u8,
    format: PhantomData<E>,
}

impl<E: Elem> Kernel for Piece<E> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let mut sum = [0.0f32; CHUNK];
        let Piece { first, n, taps, stride, .. } = self;
        // The inputs whose taps reach the piece.
        let from = (first + 1).saturating_sub(taps).div_ceil(stride);
        let to = ((first + n - 1) / stride + 1).min(self.inputs);
        for input in from..to {
            let start = input * stride;
            let (begin, end) = (start.max(first), (start + taps).min(first + n));
            // SAFETY: taps `begin - start` to `end - start` of an input that is there; the sums are inside the piece.
            unsafe {
                let taps = self.columns.add(input * self.step).cast::<E::Mem>().add(begin - start);
                let sum = sum.as_mut_ptr().add(begin - first);
                let len = end - begin;
                if len < LANES / 2 {
                    // setting up a part of the lanes would cost more than it gives
                    for i in 0..len {
                        *sum.add(i) += E::get(taps.add(i).read_unaligned());
                    }
                    continue;
                }
                let mut i = 0;
                while i + LANES <= len {
                    V::load(sum.add(i)).add(E::load(taps.add(i))).store(sum.add(i));
                    i += LANES;
                }
                if i < len {
                    let rest = len - i;
                    V::load_n(sum.add(i), rest).add(E::load_n(taps.add(i), rest)).store_n(sum.add(i), rest);
                }
            }
        }
        let out = self.out.cast::<E::Mem>();
        // SAFETY: `n` elements of the result.
        unsafe {
            let mut i = 0;
            while i + LANES <= n {
                E::store(V::load(sum.as_ptr().add(i)), out.add(i));
                i += LANES;
            }
            if i < n {
                E::store_n(V::load_n(sum.as_ptr().add(i), n - i), out.add(i), n - i);
            }
        }
    }
}

fn run_as<E: Elem>(node: &Node, team: &Team) {
    let (d, s) = (node.out(), node.arg(0));
    let [stride, channels, cut] = [0, 1, 2].map(|i| node.i32(i) as usize);
    let taps = s.ne[0] / channels;
    let pieces = d.ne[0].div_ceil(CHUNK);
    for task in team.range(pieces * channels) {
        let (at, channel) = (task % pieces * CHUNK, task / pieces);
        let kernel = Piece::<E> {
            columns: s.at(channel * taps, [0; 3]),
            step: s.nb[1],
            taps,
            inputs: s.ne[1],
            stride,
            first: at + cut,
            n: (d.ne[0] - at).min(CHUNK),
            out: d.at(at, [channel, 0, 0]),
            format: PhantomData,
        };
        // SAFETY: the views are good for their shapes, rows packed; this piece of dst is this thread's.
        unsafe { dispatch(kernel) };
    }
}

fn run(node: &Node, team: &Team) {
    match node.dst.r#type {
        GGML_TYPE_F16 => run_as::<F16>(node, team),
        GGML_TYPE_BF16 => run_as::<Bf16>(node, team),
        _ => run_as::<F32>(node, team),
    }
}

fn supports(op: &ggml_tensor) -> Rule {
    let s = src(op, 0)?;
    ensure(is_float(op.r#type) && s.r#type == op.r#type, "source and result must be of one of f32, f16, bf16")?;
    packed_rows(op)?;
    packed_rows(s)?;
    let [stride, channels, cut] = [0, 1, 2].map(|i| i64::from(op.op_params[i]));
    ensure(stride > 0 && channels > 0 && cut >= 0, "stride and channels must be positive, padding not negative")?;
    ensure(s.ne[0] % channels == 0 && s.ne[2..] == [1, 1], "columns must be a matrix of whole channels")?;
    let whole = (s.ne[1] - 1).checked_mul(stride).and_then(|n| n.checked_add(s.ne[0] / channels));
    let n = whole.and_then(|n| n.checked_sub(2 * cut));
    ensure(n == Some(op.ne[0]) && op.ne[1..] == [channels, 1, 1], "the result must be the signal for each channel")
}

/// COL2IM_1D.
pub static COL2IM_1D: OpEntry = OpEntry { supports, work: no_work, n_tasks: tasks_by_size, run };
