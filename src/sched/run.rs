//! Running the splits: inputs are copied, then the backend computes; a callback may look at each node.

use super::scheduler::Sched;
use super::split::{Input, Split};
use crate::backend::{tensor_data, Backend, Event};
use crate::error::Error;
use crate::ext::profile;
use crate::graph;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::ffi::c_void;
use std::ops::Range;

const CALL: &str = "ggml_backend_sched_graph_compute";

/// Waits until what `backend` did with this copy is done.
fn finish(backend: Backend, event: Option<Event>) {
    match event {
        Some(event) => event.synchronize(),
        None => backend.synchronize(),
    }
}

/// Which experts of a matrix per expert are wanted, read from the numbers that the node takes them by.
struct Experts {
    numbers: *mut ggml_tensor,
    used: Vec<bool>,
}

impl Sched {
    fn event(&self, backend: i32) -> Option<Event> {
        self.events[backend as usize][self.current]
    }

    fn backend(&self, number: i32) -> Backend {
        self.team.backends[number as usize]
    }

    /// Stage 6.
    ///
    /// # Safety
    /// The graph at hand was allocated; it and its tensors are live until the backends were synchronised.
    pub(super) unsafe fn run(&mut self) -> Result<ggml_status, Error> {
        // SAFETY: the caller's promise.
        unsafe { self.check_plans() }?;
        let mut previous = None;
        let mut splits = std::mem::take(&mut self.splits);
        let mut result = Ok(GGML_STATUS_SUCCESS);
        let mut experts = None;
        for split in &mut splits {
            // memory may have been handed from split to split: what ran before must have ended
            if let Some(before) = previous.filter(|&b| b != split.backend && split.inputs.is_empty()) {
                finish(self.backend(before), self.event(before));
            }
            // SAFETY: the caller's promise.
            let status = unsafe { self.copy_inputs(split, &mut experts).and_then(|()| self.compute(split)) };
            match status {
                Ok(Some(GGML_STATUS_SUCCESS)) => {}
                // the callback said that it has seen enough
                Ok(None) => break,
                Ok(Some(status)) => {
                    result = Ok(status);
                    break;
                }
                Err(e) => {
                    result = Err(e);
                    break;
                }
            }
            if let Some(event) = self.event(split.backend) {
                self.backend(split.backend).record(event);
            }
            previous = Some(split.backend);
        }
        self.splits = splits;
        result
    }

    unsafe fn copy_inputs(&self, split: &Split, experts: &mut Option<Experts>) -> Result<(), Error> {
        let (backend, event) = (self.backend(split.backend), self.event(split.backend));
        for (i, input) in split.inputs.iter().enumerate() {
            let copy = input.copies[self.current];
            // SAFETY: the promise of `run`.
            let original = unsafe { &*input.original };
            let done = if original.flags & GGML_TENSOR_FLAG_INPUT.0 != 0 {
                // the client may write its inputs anew as soon as the call is back
                finish(backend, event);
                // SAFETY: the promise of `run`.
                unsafe { tensor_data::copy(CALL, input.original, copy) }
            } else {
                match event {
                    Some(event) => backend.wait(event),
                    None => backend.synchronize(),
                }
                // SAFETY: the promise of `run`.
                unsafe {
                    if self.wants_experts(split, input, copy) {
                        self.copy_experts(split, i, copy, experts)?;
                        true
                    } else {
                        self.copy_behind(backend, event, input, copy)
                    }
                }
            };
            if !done {
                return Err(Error::new(
                    GGML_EXT_CODE_BACKEND,
                    format!("tensor '{}' cannot be copied to backend '{}'", shape::name(original), backend.name()),
                ));
            }
        }
        Ok(())
    }

    /// Copies behind the work of the input's backend, by itself if the backends can, else through the host.
    unsafe fn copy_behind(
        &self,
        backend: Backend,
        event: Option<Event>,
        input: &Input,
        copy: *mut ggml_tensor,
    ) -> bool {
        let from = self.backend(input.home);
        let copy_async = backend.iface().cpy_tensor_async;
        // SAFETY: the promise of `run`; the backends check the tensors.
        let by_itself = copy_async.is_some_and(|f| unsafe { f(from.as_raw(), backend.as_raw(), input.original, copy) });
        by_itself || {
            from.synchronize();
            finish(backend, event);
            // SAFETY: the promise of `run`.
            unsafe { tensor_data::copy(CALL, input.original, copy) }
        }
    }

    /// Whether only some rows of `input` are read: the matrices of the experts that the split's first node picks.
    unsafe fn wants_experts(&self, split: &Split, input: &Input, copy: *mut ggml_tensor) -> bool {
        // SAFETY: the promise of `run`.
        unsafe {
            let Some(&node) = graph::nodes(&split.graph).first() else { return false };
            let Some(buffer) = tensor_data::buffer_of(&*input.original) else { return false };
            let numbers = (*node).src[2];
            (*node).op == GGML_OP_MUL_MAT_ID
                && (*node).src[0] == copy
                && buffer.usage() == GGML_BACKEND_BUFFER_USAGE_WEIGHTS
                && buffer.is_host()
                && !numbers.is_null()
                && (*numbers).r#type == GGML_TYPE_I32
        }
    }

    /// Copies the matrices of those experts that are picked, neighbours together.
    unsafe fn copy_experts(
        &self,
        split: &Split,
        i: usize,
        copy: *mut ggml_tensor,
        experts: &mut Option<Experts>,
    ) -> Result<(), Error> {
        let input = &split.inputs[i];
        let backend = self.backend(split.backend);
        // SAFETY: the promise of `run`.
        unsafe {
            let original = &*input.original;
            self.backend(input.home).synchronize();
            // the numbers may themselves be an input that is copied later
            let mut numbers = (*graph::nodes(&split.graph)[0]).src[2];
            let mut holder = backend;
            if let Some(later) = split.inputs[i + 1..].iter().find(|later| later.copies[self.current] == numbers) {
                (numbers, holder) = (later.original, self.backend(later.home));
            }
            let n = usize::try_from(original.ne[2]).unwrap_or(0);
            if experts.as_ref().is_none_or(|known| known.numbers != numbers || known.used.len() != n) {
                *experts = Some(Experts { numbers, used: used_experts(holder, numbers, n)? });
            }
            let used = experts.as_ref().map_or(&[][..], |known| &known.used);
            let mut at = 0;
            while let Some(first) = (at..n).find(|&e| used[e]) {
                let end = (first..n).find(|&e| !used[e]).unwrap_or(n);
                // kernels of some devices read a little past a matrix: there must be no garbage
                let beyond = if end < n { original.nb[2].min(512) } else { 0 };
                let (offset, size) = (first * original.nb[2], (end - first) * original.nb[2] + beyond);
                let size = size.min(shape::nbytes(original).saturating_sub(offset));
                let data = original.data.wrapping_byte_add(offset);
                tensor_data::set_async(CALL, backend, copy, data, tensor_data::Rows::range(offset, size));
                at = end;
            }
        }
        Ok(())
    }

    /// Computes nodes of a split as its plan says.
    unsafe fn compute_nodes(&self, split: &Split, nodes: Range<i32>) -> Result<ggml_status, Error> {
        // SAFETY: the promise of `run`.
        unsafe {
            match &split.plan {
                None => {
                    let mut part = graph::view(&split.graph, nodes.start, nodes.end);
                    // the whole keeps the number by which backends know it
                    part.uid = if part.n_nodes == split.graph.n_nodes { split.graph.uid } else { part.uid };
                    let start = profile::start();
                    let status = self.backend(split.backend).compute_async(&mut part);
                    split.time.stop_piece(start, nodes.start == 0);
                    Ok(status)
                }
                Some(plan) => {
                    let workspace = self.workspaces[split.backend as usize].buffer();
                    plan.run(&split.graph, nodes.start as usize..nodes.end as usize, workspace)
                }
            }
        }
    }

    /// `None`: the callback ended the computation.
    unsafe fn compute(&self, split: &mut Split) -> Result<Option<ggml_status>, Error> {
        let backend = self.backend(split.backend);
        let n = split.graph.n_nodes;
        let Some(callback) = self.callback else {
            // SAFETY: the promise of `run`.
            return unsafe { self.compute_nodes(split, 0..n) }.map(Some);
        };
        let mut first = 0;
        while first < n {
            // as many nodes together as the callback does not ask for
            let mut last = first;
            let node = |i: i32| {
                // SAFETY: the promise of `run`.
                unsafe { graph::nodes(&split.graph)[i as usize] }
            };
            // SAFETY: the callback takes its own data and a live node.
            let ask = |i: i32, ask: bool| unsafe { callback(node(i), ask, self.callback_data) };
            let mut wanted = ask(last, true);
            while !wanted && last + 1 < n {
                last += 1;
                wanted = ask(last, true);
            }
            // SAFETY: the promise of `run`.
            let status = unsafe { self.compute_nodes(split, first..last + 1) }?;
            if status != GGML_STATUS_SUCCESS {
                return Ok(Some(status));
            }
            backend.synchronize();
            if wanted && !ask(last, false) {
                return Ok(None);
            }
            first = last + 1;
        }
        Ok(Some(GGML_STATUS_SUCCESS))
    }
}

/// By expert of `n`: whether `numbers` names it.
unsafe fn used_experts(holder: Backend, numbers: *mut ggml_tensor, n: usize) -> Result<Vec<bool>, Error> {
    // SAFETY: the promise of `Sched::run`.
    unsafe {
        let t = &*numbers;
        let mut bytes = vec![0u8; shape::nbytes(t)];
        let rows = tensor_data::Rows::range(0, bytes.len());
        tensor_data::get_async(CALL, holder, numbers, bytes.as_mut_ptr().cast::<c_void>(), rows);
        holder.synchronize();
        let mut used = vec![false; n];
        let (rows, columns) = (t.ne[1].max(0) as usize, t.ne[0].max(0) as usize);
        for at in (0..rows).flat_map(|i1| (0..columns).map(move |i0| i1 * t.nb[1] + i0 * t.nb[0])) {
            let number = bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(-1, i32::from_ne_bytes);
            match usize::try_from(number).ok().and_then(|e| used.get_mut(e)) {
                Some(expert) => *expert = true,
                None => {
                    let name = shape::name(t);
                    return Err(Error::argument(format!("tensor '{name}' asks for expert {number} of {n}")));
                }
            }
        }
        Ok(used)
    }
}
