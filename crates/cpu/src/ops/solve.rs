//! SOLVE_TRI: forward substitution, columns side by side.
//!
//! f32, rows packed. Columns know nothing of each other; a thread takes some of a matrix through all rows.
// indices of lanes: iterators over arrays of lanes keep them in memory
#![allow(clippy::needless_range_loop)]

use super::rules::*;
use super::vec::{dispatch, part, Kernel, Lanes, LANES};
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
    /// `N` times `LANES` columns from `at` on, or if `PART` the `m` last.
    ///
    /// # Safety
    /// As for [`Kernel::run`]; the columns are there.
    #[inline(always)]
    unsafe fn columns<V: Lanes, const N: usize, const PART: bool>(&self, at: usize, m: usize) {
        // SAFETY: the caller's promise; rows below `i` are written before they are read.
        unsafe {
            for i in 0..self.n {
                let a = self.a.add(i * self.a_nb1).cast::<f32>();
                let mut even = [V::splat(0.0); N];
                let mut odd = [V::splat(0.0); N];
                let mut t = 0;
                while t < i {
                    let x = self.x.add(t * self.x_nb1).cast::<f32>().add(at);
                    let f = part::splat::<V>(a.add(t));
                    for j in 0..N {
                        even[j] = f.fma(part::load::<V, PART>(x.add(j * LANES), m), even[j]);
                    }
                    if t + 1 < i {
                        let x = self.x.add((t + 1) * self.x_nb1).cast::<f32>().add(at);
                        let f = part::splat::<V>(a.add(t + 1));
                        for j in 0..N {
                            odd[j] = f.fma(part::load::<V, PART>(x.add(j * LANES), m), odd[j]);
                        }
                    }
                    t += 2;
                }
                let diagonal = part::splat::<V>(a.add(i));
                let b = self.b.add(i * self.b_nb1).cast::<f32>().add(at);
                let x = self.x.add(i * self.x_nb1).cast::<f32>().add(at);
                for j in 0..N {
                    let b = part::load::<V, PART>(b.add(j * LANES), m);
                    part::store::<V, PART>(b.sub(even[j].add(odd[j])).div(diagonal), x.add(j * LANES), m);
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
                return self.columns::<V, 4, false>(0, LANES);
            }
            while at + LANES <= self.m {
                self.columns::<V, 1, false>(at, LANES);
                at += LANES;
            }
            if at < self.m {
                self.columns::<V, 1, true>(at, self.m - at);
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
