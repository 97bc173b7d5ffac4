//! What a fusion of this folder is, and how it becomes a rule of `ggml-ext.h`.

use super::api;
use super::kernel::{aligned, apart, places, prepared, status, Entry, Run, Shared, Stop};
use super::operator::{Check, Node, Operator};
use crate::capi::guard;
use ggml_oxide_abi::*;
use std::ffi::{c_int, c_void, CStr};

/// Nodes that a fusion has at most.
const LONGEST: usize = 4;

/// `optimize` of `ggml_ext_kernel_desc`.
pub type Optimize = unsafe extern "C" fn(*mut ggml_cgraph, *mut c_void);

/// Nodes that follow each other and are one launch on the CPU; only the last one's result has memory.
pub trait Fusion: 'static {
    /// Operator of the last node.
    type Last: Operator;
    /// What is read of the nodes before the last.
    type Chain<'a>;
    /// The rule's name.
    const NAME: &'static CStr;
    /// Operator of the first node.
    const FIRST: ggml_op;
    /// Moves nodes next to each other.
    const OPTIMIZE: Option<Optimize> = None;
    /// How many of these nodes, which follow each other in a graph, are one launch; 0: they are others.
    fn count(nodes: &[&ggml_tensor]) -> usize;
    /// Reads the nodes before the last one, and lists all that is read from outside; the rule that formats or shapes break.
    ///
    /// # Safety
    /// The nodes are of a match, and live.
    unsafe fn read<'a>(
        before: &[&'a ggml_tensor],
        last: &Node<'a, Self::Last>,
    ) -> Check<(Self::Chain<'a>, Vec<&'a ggml_tensor>)>;
    /// Bytes of scratch memory.
    fn workspace(_chain: &Self::Chain<'_>, _last: &Node<Self::Last>) -> Check<usize> {
        Ok(0)
    }
    /// Computes the last node into `dst`, which overlaps nothing that is read.
    ///
    /// # Safety
    /// Tensors but inner nodes have their data, and `dst` has as many bytes as the result.
    unsafe fn execute(chain: &Self::Chain<'_>, last: &Node<Self::Last>, run: &Run, dst: Shared) -> Result<(), Stop>;
}

/// The rule of `F`.
pub const fn rule<F: Fusion>() -> Entry {
    Entry {
        op: F::Last::NAME,
        name: F::NAME,
        desc: || ggml_ext_kernel_desc {
            struct_size: size_of::<ggml_ext_kernel_desc>(),
            name: F::NAME.as_ptr(),
            op: GGML_OP_NONE,
            op_name: std::ptr::null(),
            priority: 0,
            match_op: F::FIRST,
            user_data: std::ptr::null_mut(),
            supports: Some(supports::<F>),
            preferred: None,
            prepare: Some(prepare::<F>),
            execute: Some(execute::<F>),
            destroy: None,
            r#match: Some(matches::<F>),
            optimize: F::OPTIMIZE,
            scope: std::ptr::null_mut(),
        },
    }
}

/// The node is one of `O`.
pub fn is<O: Operator>(t: &ggml_tensor) -> bool {
    // SAFETY: a live tensor; names of registered operators stay.
    unsafe {
        let name = api::ggml_ext_op_name(t);
        !name.is_null() && CStr::from_ptr(name) == O::NAME
    }
}

/// Source `i` of `t` is `from`.
pub fn reads(t: &ggml_tensor, i: usize, from: &ggml_tensor) -> bool {
    std::ptr::eq(t.src[i], from)
}

/// Source `i` of a built-in operator's node.
pub fn source(t: &ggml_tensor, i: usize) -> Check<&ggml_tensor> {
    // SAFETY: sources of a live node are live.
    unsafe { t.src[i].as_ref() }.ok_or_else(|| "a source is missing".into())
}

/// The nodes of a match, as they are read.
struct Read<'a, F: Fusion> {
    chain: F::Chain<'a>,
    inputs: Vec<&'a ggml_tensor>,
    last: Node<'a, F::Last>,
}

/// # Safety
/// The step is the library's, of a match; what comes of it is used while the callback runs.
unsafe fn read<'a, F: Fusion>(step: *const ggml_ext_step) -> Check<Read<'a, F>> {
    // SAFETY: the caller's promise.
    unsafe {
        let n = usize::try_from((*step).n_nodes).unwrap_or(0);
        let nodes: Vec<&ggml_tensor> = (0..n).map(|i| &**(*step).nodes.add(i)).collect();
        let Some((last, before)) = nodes.split_last() else { return Err("there are no nodes".into()) };
        let last = Node::read(last)?;
        let (chain, inputs) = F::read(before, &last)?;
        match inputs.iter().any(|&t| before.iter().any(|&node| std::ptr::eq(t, node))) {
            false => Ok(Read { chain, inputs, last }),
            true => Err("an operand beside the chain is a node of it".into()),
        }
    }
}

unsafe extern "C" fn matches<F: Fusion>(graph: *mut ggml_cgraph, first: c_int, _: *mut c_void) -> c_int {
    guard("match", || {
        // SAFETY: the library's graph; numbers of nodes that are there.
        let nodes: Vec<&ggml_tensor> = unsafe {
            let end = api::ggml_graph_n_nodes(graph).min(first.saturating_add(LONGEST as c_int));
            (first.max(0)..end).map(|i| &*api::ggml_graph_node(graph, i)).collect()
        };
        F::count(&nodes) as c_int
    })
}

unsafe extern "C" fn supports<F: Fusion>(step: *const ggml_ext_step, _: *mut c_void) -> bool {
    guard("supports", || {
        // SAFETY: the library's step, of a match.
        unsafe { read::<F>(step) }.map_or_else(|text| api::refuse(&text), |_| true)
    })
}

unsafe extern "C" fn prepare<F: Fusion>(
    step: *const ggml_ext_step,
    out: *mut ggml_ext_prepared,
    _: *mut c_void,
) -> ggml_status {
    guard("prepare", || {
        // SAFETY: the library's step, of a match, and structure.
        unsafe {
            let bytes = read::<F>(step).and_then(|all| {
                let own = F::workspace(&all.chain, &all.last)?;
                places(own, all.last.dst, (*step).overlap != 0)
            });
            prepared(out, bytes)
        }
    })
}

unsafe extern "C" fn execute<F: Fusion>(run: *const ggml_ext_run, _: *mut c_void) -> ggml_status {
    guard("execute", || {
        // SAFETY: the library's run of a match; tensors but inner nodes have their data.
        status(unsafe {
            read::<F>((*run).step)
                .and_then(|all| {
                    all.inputs.iter().chain([&all.last.dst]).try_for_each(|t| aligned(t))?;
                    Ok((F::workspace(&all.chain, &all.last)?, all))
                })
                .map_err(|text| Stop::Failed(GGML_STATUS_FAILED, text))
                .and_then(|(own, all)| {
                    let (overlap, run) = ((*(*run).step).overlap != 0, Run::of(&*run));
                    apart(&run, all.last.dst, own, overlap, |dst| F::execute(&all.chain, &all.last, &run, dst))
                })
        })
    })
}
