//! Gradients against finite differences: for `L = sum(w y)` with fixed `w`, the gradients that `ggml_build_backward_expand` computes
//! and the differences of `L`, added up in f64 from the elements of `y` as the library computes them forward.
//!
//! Differences are of fourth order, with steps that are powers of two. A forward pass is right to some 1e-7 of what it sums up, which the
//! division by a step of 1/64 makes 1e-5; the tolerance is 100 times that.

mod accumulate;
mod arithmetic;
mod functions;
mod matmul;
mod models;
mod rows;
mod views;

use reference::values::{decode, encode};
use reference::world::last_error;
use reference::*;
use std::ffi::c_int;
use std::ptr::null_mut;

/// Numbers that are the same in each run.
pub struct Numbers(u64);

impl Numbers {
    /// From 0 to 1.
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 40) as f64 / f64::from(1 << 24)
    }
}

/// Which values a tensor starts with.
#[derive(Clone, Copy)]
pub enum Values {
    /// Evenly spread.
    Between(f64, f64),
    /// Of either sign, this far from 0.
    Away(f64, f64),
}
pub use Values::{Away, Between};

/// -1 to 1.
pub const UNIT: Values = Between(-1.0, 1.0);

/// One case: parameters, constants, and the context of all tensors.
pub struct Case {
    pub ctx: Ctx,
    params: Vec<T>,
    numbers: Numbers,
}

impl Case {
    pub fn new() -> Self {
        let params = ggml_init_params { mem_size: 16 << 20, mem_buffer: null_mut(), no_alloc: false };
        Case { ctx: ggml_init(params), params: Vec::new(), numbers: Numbers(7) }
    }

    pub fn tensor(&mut self, ty: ggml_type, ne: &[i64], values: Values) -> T {
        let t = ggml_new_tensor(self.ctx, ty, ne.len() as c_int, ne.as_ptr());
        let n = ggml_nelements(t) as usize;
        let x: Vec<f64> = (0..n)
            .map(|_| match values {
                Between(lo, hi) => lo + (hi - lo) * self.numbers.unit(),
                Away(lo, hi) => {
                    let size = lo + (hi - lo) * self.numbers.unit();
                    if self.numbers.unit() < 0.5 {
                        -size
                    } else {
                        size
                    }
                }
            })
            // steps of 1/1024 are exact in every format used here
            .map(|x| (x * 1024.0).round() / 1024.0)
            .collect();
        write(t, &x);
        t
    }

    /// A constant.
    pub fn data(&mut self, ne: &[i64], values: Values) -> T {
        self.tensor(GGML_TYPE_F32, ne, values)
    }

    /// A parameter.
    pub fn param(&mut self, ne: &[i64], values: Values) -> T {
        self.param_of(GGML_TYPE_F32, ne, values)
    }

    pub fn param_of(&mut self, ty: ggml_type, ne: &[i64], values: Values) -> T {
        let t = self.tensor(ty, ne, values);
        ggml_set_param(t);
        self.params.push(t);
        t
    }

    /// Indices or positions.
    pub fn ids(&mut self, ne: &[i64], ids: &[i32]) -> T {
        let t = ggml_new_tensor(self.ctx, GGML_TYPE_I32, ne.len() as c_int, ne.as_ptr());
        assert_eq!(ggml_nelements(t) as usize, ids.len());
        // SAFETY: as many elements.
        unsafe { (*t).data.cast::<i32>().copy_from(ids.as_ptr(), ids.len()) }
        t
    }

    /// The loss `sum(w y)`.
    pub fn loss_of(&mut self, y: T, w: T) -> T {
        let loss = ggml_sum(self.ctx, ggml_mul(self.ctx, y, w));
        ggml_set_loss(loss);
        loss
    }

    pub fn compute(&self, graph: *mut ggml_cgraph, threads: c_int) {
        let status = ggml_graph_compute_with_ctx(self.ctx, graph, threads);
        assert_eq!(status, GGML_STATUS_SUCCESS, "{}", last_error());
    }
}

impl Drop for Case {
    fn drop(&mut self) {
        ggml_free(self.ctx);
    }
}

/// The elements of a contiguous tensor.
pub fn read(t: T) -> Vec<f64> {
    assert!(ggml_is_contiguous(t));
    // SAFETY: contiguous, with its data in the context.
    unsafe { decode((*t).r#type, (*t).data.cast(), ggml_nelements(t) as usize) }
}

pub fn write(t: T, x: &[f64]) {
    // SAFETY: as above.
    unsafe { encode((*t).r#type, x, (*t).data.cast()) }
}

/// `L`, in f64.
fn weighted(case: &Case, forward: *mut ggml_cgraph, y: T, w: &[f64]) -> f64 {
    case.compute(forward, 1);
    read(y).iter().zip(w).map(|(y, w)| y * w).sum()
}

/// Holds the gradients of all parameters of the case against differences.
pub fn check(name: &str, build: impl Fn(&mut Case) -> T) {
    check_to(name, 1e-3, build);
}

pub fn check_to(name: &str, tolerance: f64, build: impl Fn(&mut Case) -> T) {
    let mut c = Case::new();
    let y = build(&mut c);
    // differences read results packed
    let y = if ggml_is_contiguous(y) { y } else { ggml_cont(c.ctx, y) };
    // SAFETY: a node of the case's context.
    let ne = unsafe { (*y).ne };
    let w = c.data(&ne, Away(0.25, 1.0));
    let loss = c.loss_of(y, w);
    let graph = ggml_new_graph_custom(c.ctx, 512, true);
    ggml_build_forward_expand(graph, loss);
    ggml_build_backward_expand(c.ctx, graph, null_mut());
    let forward = ggml_new_graph_custom(c.ctx, 512, false);
    ggml_build_forward_expand(forward, y);

    let gradients: Vec<Vec<Vec<f64>>> = [1, 2]
        .map(|threads| {
            ggml_graph_reset(graph);
            c.compute(graph, threads);
            let of = |&p: &T| {
                let g = ggml_graph_get_grad(graph, p);
                assert!(!g.is_null(), "{name}: a parameter has no gradient: {}", last_error());
                // SAFETY: tensors of the case's context.
                unsafe { assert_eq!(((*g).r#type, (*g).ne), (GGML_TYPE_F32, (*p).ne), "{name}") };
                read(g)
            };
            c.params.iter().map(of).collect()
        })
        .into();
    assert_eq!(gradients[0], gradients[1], "{name}: one and two threads");

    let w = read(w);
    for (p, (&param, gradient)) in c.params.iter().zip(&gradients[0]).enumerate() {
        let x = read(param);
        let scale = gradient.iter().fold(0f64, |m, g| m.max(g.abs()));
        for i in 0..x.len() {
            let at = |step: f64| {
                let mut moved = x.clone();
                moved[i] += step;
                write(param, &moved);
                weighted(&c, forward, y, &w)
            };
            const H: f64 = 1.0 / 64.0;
            let want = (8.0 * (at(H) - at(-H)) - (at(2.0 * H) - at(-2.0 * H))) / (12.0 * H);
            let near = (gradient[i] - want).abs() <= tolerance * (1.0 + want.abs() + scale);
            assert!(near, "{name}: parameter {p} element {i}: gradient {}, difference {want}", gradient[i]);
        }
        write(param, &x);
    }
}
