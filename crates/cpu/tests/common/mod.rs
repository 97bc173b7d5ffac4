//! Tensors with their own guarded memory, graphs of them, and access by logical index.
#![allow(dead_code)]
#![allow(clippy::unwrap_used)]

use ggml_oxide_abi::*;
use ggml_oxide_cpu::{Executor, GraphRef, Pool, Stop};
use ggml_oxide_shape as shape;
use ggml_oxide_types as types;

const GUARD: usize = 64;
const MARK: u8 = 0xa7;

/// Owns tensors and their memory.
#[derive(Default)]
pub struct World {
    // boxed: their addresses are handed out
    #[allow(clippy::vec_box)]
    tensors: Vec<Box<ggml_tensor>>,
    memory: Vec<Memory>,
    pub nodes: Vec<*mut ggml_tensor>,
}

pub type T = *mut ggml_tensor;

/// A tensor, its memory with guard bytes around, and where it starts.
type Memory = (*mut ggml_tensor, Vec<u8>, usize);

/// A small generator of repeatable numbers.
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    /// Between -1 and 1.
    pub fn float(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() >> 11) as usize % n
    }
}

pub fn t(p: T) -> &'static mut ggml_tensor {
    // SAFETY: tests hold their World for as long as they use its tensors, on one thread.
    unsafe { &mut *p }
}

impl World {
    pub fn new() -> World {
        World::default()
    }

    fn add(&mut self, ty: ggml_type, ne: [i64; 4], nb: [usize; 4]) -> T {
        // SAFETY: all zero bits are a tensor.
        let mut b: Box<ggml_tensor> = Box::new(unsafe { std::mem::zeroed() });
        (b.r#type, b.ne, b.nb) = (ty, ne, nb);
        self.tensors.push(b);
        let p: T = &mut **self.tensors.last_mut().unwrap();
        p
    }

    /// A tensor without memory.
    pub fn bare(&mut self, ty: ggml_type, ne: [i64; 4]) -> T {
        let nb = shape::contiguous_strides(ty, &ne).unwrap();
        self.add(ty, ne, nb)
    }

    /// Gives memory of its own with guard bytes around.
    pub fn alloc(&mut self, p: T) -> T {
        let len = shape::nbytes(t(p));
        let mut mem = vec![MARK; len + 3 * GUARD];
        let at = GUARD + mem[GUARD..].as_ptr().align_offset(GUARD);
        mem[at..at + len].fill(0x5c);
        t(p).data = mem[at..].as_mut_ptr().cast();
        self.memory.push((p, mem, at));
        p
    }

    pub fn tensor(&mut self, ty: ggml_type, ne: [i64; 4]) -> T {
        let p = self.bare(ty, ne);
        self.alloc(p)
    }

    /// A tensor whose dimensions lie in memory in the order `order` (fastest first), each with `gap` elements more than needed.
    pub fn strided(&mut self, ty: ggml_type, ne: [i64; 4], order: [usize; 4], gap: usize) -> T {
        let mut nb = [0; 4];
        let mut step = shape::type_size(ty);
        for d in order {
            nb[d] = step;
            step *= ne[d] as usize / if d == 0 { shape::blck_size(ty) } else { 1 } + gap;
        }
        let p = self.add(ty, ne, nb);
        self.alloc(p)
    }

    /// A float tensor with random values, in any layout.
    pub fn random(&mut self, ty: ggml_type, ne: [i64; 4], order: [usize; 4], gap: usize, rng: &mut Rng) -> T {
        let p = self.strided(ty, ne, order, gap);
        fill(p, rng);
        p
    }

    pub fn view(&mut self, op: ggml_op, of: T, ne: [i64; 4], nb: [usize; 4]) -> T {
        let p = self.add(t(of).r#type, ne, nb);
        t(p).op = op;
        t(p).src[0] = of;
        t(p).view_src = of;
        t(p).data = t(of).data;
        t(p).flags |= GGML_TENSOR_FLAG_COMPUTE.0;
        self.nodes.push(p);
        p
    }

    pub fn reshape(&mut self, of: T, ne: [i64; 4]) -> T {
        let nb = shape::contiguous_strides(t(of).r#type, &ne).unwrap();
        self.view(GGML_OP_RESHAPE, of, ne, nb)
    }

    /// A node with a contiguous result of its own memory.
    pub fn node(&mut self, op: ggml_op, ty: ggml_type, ne: [i64; 4], srcs: &[T], params: &[i32]) -> T {
        let p = self.tensor(ty, ne);
        self.make_node(p, op, srcs, params)
    }

    pub fn make_node(&mut self, p: T, op: ggml_op, srcs: &[T], params: &[i32]) -> T {
        t(p).op = op;
        t(p).src[..srcs.len()].copy_from_slice(srcs);
        t(p).op_params[..params.len()].copy_from_slice(params);
        t(p).flags |= GGML_TENSOR_FLAG_COMPUTE.0;
        self.nodes.push(p);
        p
    }

    pub fn uses(&self, of: *const ggml_tensor) -> i32 {
        self.nodes.iter().flat_map(|&n| t(n).src).filter(|&s| std::ptr::eq(s, of)).count() as i32
    }

    pub fn compute(&self, n_threads: usize) -> Result<(), Stop> {
        self.compute_with(n_threads, false)
    }

    pub fn compute_with(&self, n_threads: usize, fuse: bool) -> Result<(), Stop> {
        self.compute_counting(n_threads, fuse).0
    }

    /// Also how many chains ran as one step.
    pub fn compute_counting(&self, n_threads: usize, fuse: bool) -> (Result<(), Stop>, usize) {
        let pool = Pool::new(n_threads).unwrap();
        let uses = |p: *const ggml_tensor| self.uses(p);
        let graph = GraphRef { nodes: &self.nodes, uses: if fuse { Some(&uses) } else { None } };
        let mut exec = Executor::new();
        let done = exec.compute(&graph, &pool, n_threads, None, None);
        self.check_guards();
        (done, exec.chains())
    }

    /// Bytes around every tensor are as they were.
    pub fn check_guards(&self) {
        for (p, mem, at) in &self.memory {
            let len = shape::nbytes(t(*p));
            let outside = mem[..*at].iter().chain(&mem[at + len..]);
            assert!(outside.into_iter().all(|&b| b == MARK), "bytes around {:?} were written", t(*p).op);
        }
    }

    /// Overwrites a node's memory with a pattern that no kernel writes.
    pub fn spoil(&self, p: T) {
        // SAFETY: the tensor's own memory.
        unsafe { t(p).data.cast::<u8>().write_bytes(0x5c, shape::nbytes(t(p))) };
    }
}

pub fn bytes(p: T) -> Vec<u8> {
    // SAFETY: the tensor's own memory.
    unsafe { std::slice::from_raw_parts(t(p).data.cast::<u8>(), shape::nbytes(t(p))).to_vec() }
}

pub fn each(ne: [i64; 4]) -> impl Iterator<Item = [i64; 4]> {
    (0..ne[3]).flat_map(move |d| {
        (0..ne[2]).flat_map(move |c| (0..ne[1]).flat_map(move |b| (0..ne[0]).map(move |a| [a, b, c, d])))
    })
}

fn at(p: T, i: [i64; 4]) -> *mut u8 {
    let off: usize = (0..4).map(|d| i[d] as usize * t(p).nb[d]).sum();
    t(p).data.cast::<u8>().wrapping_add(off)
}

/// A logical element.
pub fn get(p: T, i: [i64; 4]) -> f64 {
    let ty = t(p).r#type;
    let q = at(p, if shape::blck_size(ty) == 1 { i } else { [0, i[1], i[2], i[3]] });
    // SAFETY: an element inside the tensor's memory.
    unsafe {
        match ty {
            GGML_TYPE_F32 => q.cast::<f32>().read() as f64,
            GGML_TYPE_F16 => types::float::f16_to_f32(q.cast::<u16>().read()) as f64,
            GGML_TYPE_BF16 => types::float::bf16_to_f32(q.cast::<u16>().read()) as f64,
            GGML_TYPE_I32 => q.cast::<i32>().read() as f64,
            _ => {
                let format = shape::format_of(ty).unwrap();
                let n = t(p).ne[0] as usize;
                let row = std::slice::from_raw_parts(q, format.row_bytes(n).unwrap());
                let mut out = vec![0.0; n];
                types::to_f32(format, row, &mut out).unwrap();
                out[i[0] as usize] as f64
            }
        }
    }
}

pub fn set(p: T, i: [i64; 4], v: f32) {
    let q = at(p, i);
    // SAFETY: an element inside the tensor's memory.
    unsafe {
        match t(p).r#type {
            GGML_TYPE_F32 => q.cast::<f32>().write(v),
            GGML_TYPE_F16 => q.cast::<u16>().write(types::float::f32_to_f16(v)),
            GGML_TYPE_BF16 => q.cast::<u16>().write(types::float::f32_to_bf16(v)),
            GGML_TYPE_I32 => q.cast::<i32>().write(v as i32),
            ty => panic!("no single elements of {ty:?}"),
        }
    }
}

/// Random values; block formats by encoding rows.
pub fn fill(p: T, rng: &mut Rng) {
    let (ty, ne) = (t(p).r#type, t(p).ne);
    if shape::blck_size(ty) == 1 {
        for i in each(ne) {
            set(p, i, rng.float());
        }
        return;
    }
    let format = shape::format_of(ty).unwrap();
    for i in each([1, ne[1], ne[2], ne[3]]) {
        let row: Vec<f32> = (0..ne[0]).map(|_| rng.float()).collect();
        let mut out = vec![0u8; format.row_bytes(row.len()).unwrap()];
        types::from_f32(format, &row, &mut out).unwrap();
        // SAFETY: a row of blocks inside the tensor's memory.
        unsafe { std::ptr::copy_nonoverlapping(out.as_ptr(), at(p, i), out.len()) };
    }
}

/// Every element of `p` is `want` within `tol` times the size of the terms, as `want` gives it: (value, sum of magnitudes).
pub fn close(p: T, tol: f64, want: impl Fn([i64; 4]) -> (f64, f64), what: &str) {
    for i in each(t(p).ne) {
        let (w, size) = want(i);
        let g = get(p, i);
        assert!((g - w).abs() <= tol * size + 1e-30, "{what}: {i:?} is {g}, should be {w}");
    }
}
