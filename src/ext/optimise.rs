//! The `optimize` callbacks of rules: they bring nodes together by moving producers behind what does not need them.

use super::callback;
use super::policy::Policy;
use super::registry::DeviceTable;
use crate::error::Error;
use crate::graph;
use ggml_oxide_abi::*;

/// Lets every rule reorder the nodes of `graph`.
///
/// # Safety
/// The graph and its tensors are live and nobody else uses them.
pub unsafe fn run(table: &DeviceTable, policy: &Policy, graph: &mut ggml_cgraph) -> Result<(), Error> {
    for rule in &table.rules {
        let Some(optimize) = rule.calls.optimize.filter(|_| !policy.forbids(&rule.name)) else { continue };
        let (nodes, n) = (graph.nodes, graph.n_nodes);
        let graph: *mut ggml_cgraph = graph;
        // SAFETY: the callback takes the graph and its own data.
        callback::call(|| unsafe { optimize(graph, rule.data()) });
        // SAFETY: the caller's promise.
        let same = unsafe { ((*graph).nodes, (*graph).n_nodes) == (nodes, n) && graph::checked_nodes(&*graph).is_ok() };
        if !same {
            let text =
                format!("rule '{}': optimize changed the graph by other means than ggml_ext_graph_delay", rule.name);
            return Err(Error::new(GGML_EXT_CODE_CALLBACK, text).by(&rule.name));
        }
    }
    Ok(())
}
