//! SOLVE_TRI: forward substitution, columns side by side.
//!
//! f32, rows packed. Columns know nothing of each other; a thread takes some of a matrix through all rows.

use super::rules::*;
use super::vec::{dispatch, Kernel, Lanes, LANES};
use crate::entry::{all_tasks, no_work, OpEntry};
use crate::node::{src, Node};
use crate::team::Team;
use ggml_oxide_abi::*;

/// Columns that one thread takes at a time.
const COLUMNS: usize = 4 * LANES;

/// Columns of one system.
struct Columns {
    n: usize,
    /// How many columns.
    m: usize,
    a: *const u8,
    a_nb1: usize,
    b: *const u8,
    b_nb1: usize,
    x: *mut u8,
    x_nb1: usize,
}

impl Columns {
    /// `N` times `LANES` columns from `at` on, of which the last has `m` in use.
    ///
    /// # Safety
    /// As for [`Kernel::run`]; the columns are there.
    #[inline(always)]
    unsafe fn columns<V: Lanes, const N: usize>(&self, at: usize, m: usize) {
        let part = m < LANES;
        // SAFETY: the caller's promise; rows below `i` are written before they are read.
        unsafe {
            let load = |p: *const f32| if part { V::load_n(p, m) } else { V::load(p) };
            for i in 0..self.n {
                let a = self.a.add(i * self.a_nb1).cast::<f32>();
                let mut acc = [[V::splat(0.0); N]; 2];
                for t in 0..i {
                    let f = V::splat(a.add(t).read_unaligned());
                    let x = self.x.add(t * self.x_nb1).cast::<f32>().add(at);
                    for (j, acc) in acc[t % 2].iter_mut().enumerate() {
                        *acc = f.fma(load(x.add(j * LANES)), *acc);
                    }
                }
                let diagonal = V::splat(a.add(i).read_unaligned());
                let b = self.b.add(i * self.b_nb1).cast::<f32>().add(at);
                let x = self.x.add(i * self.x_nb1).cast::<f32>().add(at);
                for (j, (even, odd)) in acc[0].into_iter().zip(acc[1]).enumerate() {
                    let sum = even.add(odd);
                    let value = load(b.add(j * LANES)).sub(sum).div(diagonal);
                    if part {
                        value.store_n(x.add(j * LANES), m);
                    } else {
                        value.store(x.add(j * LANES));
                    }
                }
            }
        }
    }
}

impl Kernel for Columns {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let mut at = 0;
        // SAFETY: the caller's promise: all pointers are good for `n` rows and `m` columns.
        unsafe {
            if self.m == COLUMNS {
                return self.columns::<V, 4>(0, LANES);
            }
            while at < self.m {
                self.columns::<V, 1>(at, (self.m - at).min(LANES));
                at += LANES;
            }
        }
    }
}

fn run(node: &Node, team: &Team) {
    let (x, a, b) = (node.out(), node.arg(0), node.arg(1));
    let [m, n, n2, n3] = x.ne;
    let parts = m.div_ceil(COLUMNS);
    for task in team.range(parts * n2 * n3) {
        let (at, i2, i3) = (task % parts * COLUMNS, task / parts % n2, task / (parts * n2));
        let kernel = Columns {
            n,
            m: (m - at).min(COLUMNS),
            a: a.row([0, i2, i3]),
            a_nb1: a.nb[1],
            b: b.at(at, [0, i2, i3]),
            b_nb1: b.nb[1],
            x: x.at(at, [0, i2, i3]),
            x_nb1: x.nb[1],
        };
        // SAFETY: the views are good for their shapes, rows packed; these columns of dst are this thread's.
        unsafe { dispatch(kernel) };
    }
}

fn supports(op: &ggml_tensor) -> Rule {
    let (a, b) = (src(op, 0)?, src(op, 1)?);
    for t in [op, a, b] {
        is_f32(t)?;
        packed_rows(t)?;
    }
    ensure(a.ne[0] == a.ne[1], "the first source must be square")?;
    ensure(a.ne[1..] == b.ne[1..], "the sources must have as many rows and matrices")?;
    ensure(op.ne == b.ne, "the result must have the second source's shape")
}

/// SOLVE_TRI.
pub static SOLVE_TRI: OpEntry = OpEntry { supports, work: no_work, n_tasks: all_tasks, run };
