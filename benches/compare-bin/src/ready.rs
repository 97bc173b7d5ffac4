//! A case's graph in one library: allocated, filled, ready to run. May import: the builder and what it imports.

use crate::api::Api;
use crate::builder::{Build, Builder, Leaves};
use crate::fill::fill;
use ggml_oxide_abi::*;
use std::ffi::c_int;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

/// Room for tensors in each context of a case.
const TENSORS: usize = 512;

/// A graph that can be run again and again.
pub struct Ready<'a> {
    api: &'a Api,
    backend: *mut ggml_backend,
    contexts: [*mut ggml_context; 3],
    buffers: [*mut ggml_backend_buffer; 2],
    allocator: *mut ggml_gallocr,
    graph: *mut ggml_cgraph,
    result: *mut ggml_tensor,
}

impl<'a> Ready<'a> {
    /// Builds `copies` copies of the case's nodes over the same leaves. Leaves lie in buffers of their own, those of weights
    /// marked as such; nodes get their memory from a graph allocator, as in stable-diffusion.cpp.
    ///
    /// # Errors
    /// A text that says what the library refused.
    pub fn new(api: &'a Api, encoder: &Api, threads: usize, copies: usize, build: &Build) -> Result<Ready<'a>, String> {
        // SAFETY: calls as ggml's headers have them; every pointer passed on was returned by the same library and checked,
        // and `ready` frees them in the end.
        unsafe {
            let params = ggml_init_params {
                mem_size: TENSORS * (api.ggml_tensor_overhead)() + (api.ggml_graph_overhead)(),
                mem_buffer: null_mut(),
                no_alloc: true,
            };
            let mut ready = Ready {
                api,
                backend: (api.ggml_backend_cpu_init)(),
                contexts: std::array::from_fn(|_| (api.ggml_init)(params)),
                buffers: [null_mut(); 2],
                allocator: null_mut(),
                graph: null_mut(),
                result: null_mut(),
            };
            if ready.backend.is_null() || ready.contexts.contains(&null_mut()) {
                return Err("no backend or no context".into());
            }
            (api.ggml_backend_cpu_set_n_threads)(ready.backend, threads as c_int);

            let [weights, inputs, nodes] = ready.contexts;
            let leaves = |context| Leaves { context, fills: Vec::new() };
            let mut builder = Builder { api, weights: leaves(weights), inputs: leaves(inputs), nodes };
            let add = build(&mut builder);
            ready.graph = (api.ggml_new_graph)(nodes);
            if ready.graph.is_null() {
                return Err("no graph".into());
            }
            for _ in 0..copies {
                ready.result = add(&builder).pointer();
                if ready.result.is_null() {
                    return Err("a node cannot be built".into());
                }
                (api.ggml_set_output)(ready.result);
                (api.ggml_build_forward_expand)(ready.graph, ready.result);
            }

            let usages = [GGML_BACKEND_BUFFER_USAGE_WEIGHTS, GGML_BACKEND_BUFFER_USAGE_ANY];
            for (index, leaves) in [&builder.weights, &builder.inputs].into_iter().enumerate() {
                if leaves.fills.is_empty() {
                    continue;
                }
                let buffer = (api.ggml_backend_alloc_ctx_tensors)(leaves.context, ready.backend);
                if buffer.is_null() {
                    return Err("no memory for the leaves".into());
                }
                ready.buffers[index] = buffer;
                (api.ggml_backend_buffer_set_usage)(buffer, usages[index]);
                for (n, &(tensor, what)) in leaves.fills.iter().enumerate() {
                    fill(api, encoder, tensor, what, 2 * n + index)?;
                }
            }
            ready.allocator = (api.ggml_gallocr_new)((api.ggml_backend_get_default_buffer_type)(ready.backend));
            if ready.allocator.is_null() || !(api.ggml_gallocr_alloc_graph)(ready.allocator, ready.graph) {
                return Err("no memory for the nodes".into());
            }
            Ok(ready)
        }
    }

    /// Runs the graph once.
    ///
    /// # Errors
    /// A text with the status, if it is not success.
    pub fn run(&self) -> Result<(), String> {
        // SAFETY: backend and graph are of one library, and the graph has its memory.
        match unsafe { (self.api.ggml_backend_graph_compute)(self.backend, self.graph) } {
            GGML_STATUS_SUCCESS => Ok(()),
            status => Err(format!("{status:?}")),
        }
    }

    /// Runs the graph once untimed, then over and over for about `time`, at least once; gives the quickest.
    ///
    /// # Errors
    /// As [`Ready::run`].
    pub fn best(&self, time: Duration) -> Result<Duration, String> {
        self.run()?;
        let start = Instant::now();
        let mut best = Duration::MAX;
        loop {
            let before = Instant::now();
            self.run()?;
            best = best.min(before.elapsed());
            if start.elapsed() >= time {
                break;
            }
        }
        if let Some(pause) = self.api.pause_openmp {
            // Or its threads would spin beside the other library's, for minutes under OMP_WAIT_POLICY=active.
            // SAFETY: called between parallel regions, from the thread that enters them; 1 is omp_pause_soft.
            unsafe { pause(1) };
        }
        Ok(best)
    }

    /// The result's values, of the last copy.
    ///
    /// # Errors
    /// A text, for a format other than f32 and f16.
    pub fn values(&self) -> Result<Vec<f32>, String> {
        // SAFETY: the result has its memory; buffers are as long as what is written to them.
        unsafe {
            let size = (self.api.ggml_nbytes)(self.result);
            match (*self.result).r#type {
                GGML_TYPE_F32 => {
                    let mut values = vec![0f32; size / 4];
                    (self.api.ggml_backend_tensor_get)(self.result, values.as_mut_ptr().cast(), 0, size);
                    Ok(values)
                }
                GGML_TYPE_F16 => {
                    let mut halves = vec![0u16; size / 2];
                    (self.api.ggml_backend_tensor_get)(self.result, halves.as_mut_ptr().cast(), 0, size);
                    let mut values = vec![0f32; size / 2];
                    (self.api.ggml_fp16_to_fp32_row)(halves.as_ptr(), values.as_mut_ptr(), values.len() as i64);
                    Ok(values)
                }
                other => Err(format!("results in {other:?} are not compared")),
            }
        }
    }
}

impl Drop for Ready<'_> {
    fn drop(&mut self) {
        // SAFETY: each was made by the library and is freed once; buffers and contexts in either order, the backend last.
        unsafe {
            if !self.allocator.is_null() {
                (self.api.ggml_gallocr_free)(self.allocator);
            }
            for buffer in self.buffers.into_iter().filter(|b| !b.is_null()) {
                (self.api.ggml_backend_buffer_free)(buffer);
            }
            for context in self.contexts.into_iter().filter(|c| !c.is_null()) {
                (self.api.ggml_free)(context);
            }
            if !self.backend.is_null() {
                (self.api.ggml_backend_free)(self.backend);
            }
        }
    }
}
