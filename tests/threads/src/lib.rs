//! A graph with extensions in it, through the C interface: what the tests compute from several threads.

pub mod api;

use api::*;
use ggml_oxide_abi::*;
use std::ffi::{c_int, c_void, CString};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI64, Ordering};

/// Elements of every tensor.
pub const NE: i64 = 64;
/// Links of the chain.
pub const LINKS: usize = 12;

/// `prepare` calls less `destroy` calls.
pub static STATES: AtomicI64 = AtomicI64::new(0);

/// The CPU.
pub fn device() -> ggml_backend_dev_t {
    // SAFETY: no pointers.
    unsafe { ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU) }
}

unsafe extern "C" fn infer(
    src: *const *mut ggml_tensor,
    n: c_int,
    _: *const c_void,
    out: *mut ggml_ext_output,
    _: *mut c_void,
) -> bool {
    // SAFETY: the library hands over `n` tensors and a place for the answer.
    unsafe {
        if n == 1 {
            (*out).ne = (**src).ne;
        }
    }
    n == 1
}

unsafe extern "C" fn supports(_: *const ggml_ext_step, _: *mut c_void) -> bool {
    true
}

unsafe extern "C" fn prepare(_: *const ggml_ext_step, out: *mut ggml_ext_prepared, _: *mut c_void) -> ggml_status {
    STATES.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the library's place for the answer.
    unsafe { (*out).workspace_size = NE as usize * 4 };
    GGML_STATUS_SUCCESS
}

unsafe extern "C" fn destroy(_: *mut c_void, _: *mut c_void) {
    STATES.fetch_sub(1, Ordering::Relaxed);
}

/// y = x + 1, through the workspace.
unsafe extern "C" fn add_one(run: *const ggml_ext_run, _: *mut c_void) -> ggml_status {
    // SAFETY: a run of a step whose tensors are f32 of NE elements and lie in host memory.
    unsafe {
        let node = *(*(*run).step).nodes;
        let (x, y) = ((*(*node).src[0]).data.cast::<f32>(), (*node).data.cast::<f32>());
        let scratch = ggml_backend_buffer_get_base((*run).workspace).cast::<f32>();
        for i in 0..NE as usize {
            *scratch.add(i) = *x.add(i) + 1.0;
        }
        std::ptr::copy_nonoverlapping(scratch, y, NE as usize);
    }
    GGML_STATUS_SUCCESS
}

/// (x * x) + x as one launch.
unsafe extern "C" fn match_square(graph: *mut ggml_cgraph, first: c_int, _: *mut c_void) -> c_int {
    // SAFETY: the library's graph.
    unsafe {
        if first + 1 >= ggml_graph_n_nodes(graph) {
            return 0;
        }
        let (a, b) = (ggml_graph_node(graph, first), ggml_graph_node(graph, first + 1));
        let good = (*a).op == GGML_OP_MUL && (*b).op == GGML_OP_ADD && (*b).src[0] == a && (*b).src[1] == (*a).src[0];
        c_int::from(good) * 2
    }
}

unsafe extern "C" fn square_add(run: *const ggml_ext_run, _: *mut c_void) -> ggml_status {
    // SAFETY: as `add_one`.
    unsafe {
        let nodes = (*(*run).step).nodes;
        let (first, last) = (*nodes, *nodes.add(1));
        if !(*first).data.is_null() {
            return GGML_STATUS_FAILED;
        }
        let (x, y) = ((*(*first).src[0]).data.cast::<f32>(), (*last).data.cast::<f32>());
        for i in 0..NE as usize {
            let v = *x.add(i);
            *y.add(i) = v * v + v;
        }
    }
    GGML_STATUS_SUCCESS
}

/// An operator x + 1, a kernel for it and a rule for x * x + x, all under `name`; a scope that holds them.
///
/// # Panics
/// When something is refused.
pub fn register(name: &str) -> ggml_ext_scope_t {
    let op = CString::new(format!("{name}.v1")).expect("no zero");
    let kernel = CString::new(format!("{name}.cpu")).expect("no zero");
    let rule = CString::new(format!("{name}.square")).expect("no zero");
    // SAFETY: structures of the library with all members set; the callbacks are functions of this program.
    unsafe {
        let scope = ggml_ext_scope_new();
        let desc = ggml_ext_op_desc {
            struct_size: size_of::<ggml_ext_op_desc>(),
            name: op.as_ptr(),
            attr_size: 0,
            infer: Some(infer),
            user_data: null_mut(),
            scope,
        };
        assert!(ggml_ext_register_op(&desc));
        let blank: ggml_ext_kernel_desc = std::mem::zeroed();
        let desc = ggml_ext_kernel_desc {
            struct_size: size_of::<ggml_ext_kernel_desc>(),
            name: kernel.as_ptr(),
            op: GGML_OP_CUSTOM,
            op_name: op.as_ptr(),
            supports: Some(supports),
            prepare: Some(prepare),
            execute: Some(add_one),
            destroy: Some(destroy),
            scope,
            ..blank
        };
        assert!(ggml_ext_register_kernel(device(), &desc));
        let desc = ggml_ext_kernel_desc {
            name: rule.as_ptr(),
            op: GGML_OP_NONE,
            op_name: std::ptr::null(),
            match_op: GGML_OP_MUL,
            supports: None,
            prepare: Some(prepare),
            execute: Some(square_add),
            r#match: Some(match_square),
            ..desc
        };
        assert!(ggml_ext_register_kernel(device(), &desc));
        scope
    }
}

/// A graph: LINKS times x = (x * x + x) + 1 with the operator of `name`, from an input of NE elements.
pub struct Model {
    pub ctx: *mut ggml_context,
    pub graph: *mut ggml_cgraph,
    pub input: *mut ggml_tensor,
    pub output: *mut ggml_tensor,
}

// SAFETY: a model is used by one thread at a time.
unsafe impl Send for Model {}

impl Model {
    /// Builds it.
    ///
    /// # Panics
    /// When the operator is not registered.
    pub fn new(name: &str) -> Self {
        let op = CString::new(format!("{name}.v1")).expect("no zero");
        let size = 1 << 20;
        // SAFETY: tensors of one context, used here alone.
        unsafe {
            let params = ggml_init_params { mem_size: size, mem_buffer: null_mut(), no_alloc: true };
            let ctx = ggml_init(params);
            let input = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, NE);
            ggml_set_input(input);
            let mut x = input;
            for _ in 0..LINKS {
                let square = ggml_mul(ctx, x, x);
                let sum = ggml_add(ctx, square, x);
                x = ggml_ext_op_create(ctx, op.as_ptr(), &sum, 1, std::ptr::null(), 0);
                assert!(!x.is_null());
            }
            ggml_set_output(x);
            let graph = ggml_new_graph(ctx);
            assert!(!graph.is_null());
            ggml_build_forward_expand(graph, x);
            Model { ctx, graph, input, output: x }
        }
    }

    /// Computes it by `sched` and holds the result against plain code.
    ///
    /// # Panics
    /// When a step fails or the result is another.
    ///
    /// # Safety
    /// The scheduler is live and used by this thread alone.
    pub unsafe fn compute(&self, sched: ggml_backend_sched_t, start: f32) {
        // SAFETY: a live model, and the caller's promise.
        unsafe {
            let data: Vec<f32> = (0..NE).map(|i| start + i as f32 * 1e-3).collect();
            ggml_backend_tensor_set(self.input, data.as_ptr().cast(), 0, NE as usize * 4);
            assert_eq!(ggml_backend_sched_graph_compute(sched, self.graph), GGML_STATUS_SUCCESS);
            let mut found = vec![0f32; NE as usize];
            ggml_backend_tensor_get(self.output, found.as_mut_ptr().cast(), 0, NE as usize * 4);
            for (x, y) in data.iter().zip(&found) {
                let expected = (0..LINKS).fold(*x, |v, _| v * v + v + 1.0);
                assert_eq!(expected.to_bits(), y.to_bits());
            }
        }
    }
}

/// A backend on the CPU and a scheduler over it.
pub fn scheduler() -> (ggml_backend_t, ggml_backend_sched_t) {
    // SAFETY: handles of the library.
    unsafe {
        let mut backend = ggml_backend_dev_init(device(), std::ptr::null());
        ggml_backend_cpu_set_n_threads(backend, 2);
        let sched = ggml_backend_sched_new(&mut backend, null_mut(), 1, 64, false, true);
        (backend, sched)
    }
}
