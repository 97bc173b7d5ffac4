//! OPT_STEP_ADAMW, OPT_STEP_SGD: a parameter, and what belongs to it, written over element by element.
//!
//! f32 in any layout.

use super::loops::Loops;
use super::rows::{self, CHUNK};
use super::rules::*;
use super::vec::map::Map2;
use super::vec::{dispatch, Kernel, Lanes, LANES};
use crate::entry::{no_work, tasks_by_size, OpEntry};
use crate::node::{src, Node, View};
use crate::team::Team;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

/// The first `N` elements of an f32 view.
fn numbers<const N: usize>(v: &View) -> [f32; N] {
    std::array::from_fn(|i| {
        // SAFETY: the view has N elements (checked).
        unsafe { v.at(i % v.ne[0], v.unravel(i / v.ne[0])).cast::<f32>().read_unaligned() }
    })
}

/// A step of AdamW over `n` packed elements: the first moments `m`, the second ones `v`, the parameters `w`.
struct AdamW {
    params: [f32; 7],
    w: *const f32,
    dst: *mut f32,
    g: *const f32,
    m: *mut f32,
    v: *mut f32,
    n: usize,
}

impl Kernel for AdamW {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let [alpha, beta1, beta2, eps, wd, beta1h, beta2h] = self.params;
        // SAFETY: reads and writes stay below n: the caller's promise.
        unsafe {
            let all = |x: f32| V::splat(x);
            let (rest1, rest2, keep) = (all(1.0 - beta1), all(1.0 - beta2), all(1.0 - alpha * wd));
            for i in (0..self.n).step_by(LANES) {
                let k = (self.n - i).min(LANES);
                let load = |p: *const f32| if k == LANES { V::load(p.add(i)) } else { V::load_n(p.add(i), k) };
                let store = |x: V, p: *mut f32| if k == LANES { x.store(p.add(i)) } else { x.store_n(p.add(i), k) };
                let g = load(self.g);
                let m = load(self.m).mul(all(beta1)).add(g.mul(rest1));
                let v = load(self.v).mul(all(beta2)).add(g.mul(g).mul(rest2));
                let step = m.mul(all(beta1h)).div(v.mul(all(beta2h)).sqrt().add(all(eps)));
                let w = load(self.w).mul(keep).sub(step.mul(all(alpha)));
                store(m, self.m);
                store(v, self.v);
                store(w, self.dst);
            }
        }
    }
}

fn run_adamw(node: &Node, team: &Team) {
    let views = [node.out(), node.arg(0), node.arg(1), node.arg(2), node.arg(3)];
    let params = numbers(&node.arg(4));
    let loops = Loops::over([&views[0], &views[1], &views[2], &views[3], &views[4]]).sort_by(0).merge();
    loops.share(team, views.map(|v| v.data), |n, p, s| {
        let [dst, w, g, m, v] = p.map(|p| p.cast::<f32>());
        // SAFETY: the views are good for their shapes; no other thread has these elements.
        unsafe {
            if n == 1 || s == [4; 5] {
                return dispatch(AdamW { params, w, dst, g, m, v, n });
            }
            let mut buf = [[0.0f32; CHUNK]; 4];
            for i in (0..n).step_by(CHUNK) {
                let k = (n - i).min(CHUNK);
                let [w, g, m, v] = buf.each_mut().map(|b| b.as_mut_ptr());
                for (x, j) in [w, g, m, v].into_iter().zip(1..) {
                    rows::load(GGML_TYPE_F32, p[j].add(i * s[j]), s[j], x, k);
                }
                dispatch(AdamW { params, w, dst: w, g, m, v, n: k });
                for (x, j) in [(w, 0), (m, 3), (v, 4)] {
                    rows::store(GGML_TYPE_F32, x, p[j].add(i * s[j]), s[j], k);
                }
            }
        }
    });
}

/// `w * keep - g * alpha`: the first argument is `w`.
#[derive(Clone, Copy)]
struct Descend {
    keep: f32,
    alpha: f32,
}

impl Map2 for Descend {
    #[inline(always)]
    unsafe fn f<V: Lanes>(self, w: V, g: V) -> V {
        // SAFETY: the caller's promise about V.
        unsafe { w.mul(V::splat(self.keep)).sub(g.mul(V::splat(self.alpha))) }
    }
}

fn run_sgd(node: &Node, team: &Team) {
    let [alpha, wd] = numbers(&node.arg(2));
    super::binary::apply(Descend { keep: 1.0 - alpha * wd, alpha }, &node.out(), &node.arg(0), &node.arg(1), team);
}

/// The sources before the last have the shape of the result, and the last has `n` numbers.
fn step(op: &ggml_tensor, states: usize, n: i64) -> Rule {
    is_f32(op)?;
    for i in 0..states {
        let t = src(op, i)?;
        is_f32(t)?;
        same_shape(op, t)?;
    }
    let params = src(op, states)?;
    is_f32(params)?;
    ensure(shape::nelements(params) == n, "the number of parameters of the step is wrong")
}

fn supports_adamw(op: &ggml_tensor) -> Rule {
    for moment in [src(op, 2)?, src(op, 3)?] {
        ensure(!shape::may_overlap_itself(moment), "elements of a moment lie over each other")?;
    }
    step(op, 4, 7)
}

fn supports_sgd(op: &ggml_tensor) -> Rule {
    step(op, 2, 2)
}

/// OPT_STEP_ADAMW. Writes the moments too, which are sources.
pub static ADAMW: OpEntry = OpEntry { supports: supports_adamw, work: no_work, n_tasks: tasks_by_size, run: run_adamw };
/// OPT_STEP_SGD.
pub static SGD: OpEntry = OpEntry { supports: supports_sgd, work: no_work, n_tasks: tasks_by_size, run: run_sgd };
