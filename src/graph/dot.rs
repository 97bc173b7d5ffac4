//! A graph as text of Graphviz's language.

use super::access;
use crate::error::Error;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::collections::HashMap;
use std::fmt::Write;

/// Text in quotation marks.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// What a box says of a tensor: name, operator, type and shape.
fn label(t: &ggml_tensor, number: usize) -> String {
    let dims: Vec<String> = t.ne[..shape::n_dims(t).clamp(1, GGML_MAX_DIMS)].iter().map(i64::to_string).collect();
    let format = shape::format_of(t.r#type).map_or("?".into(), |f| f.name().to_owned());
    let op = if t.op == GGML_OP_NONE { String::new() } else { format!("\n{}", shape::op_name(t.op)) };
    format!("{number} {}{op}\n{format} [{}]", shape::name(t), dims.join(", "))
}

/// `graph` as a digraph: a box for each node and leaf and an arrow for each source, named after its place. `marked`: a graph whose
/// tensors are drawn in bold, such as the forward part of a training graph.
///
/// # Safety
/// The graphs and their tensors are live.
pub unsafe fn text(graph: &ggml_cgraph, marked: Option<&ggml_cgraph>) -> Result<String, Error> {
    // SAFETY: the caller's promise.
    let (nodes, leafs) = unsafe { (access::checked_nodes(graph)?, access::checked_leafs(graph)?) };
    let bold: Vec<*mut ggml_tensor> = match marked {
        // SAFETY: as above.
        Some(marked) => unsafe { [access::checked_nodes(marked)?, access::checked_leafs(marked)?].concat() },
        None => Vec::new(),
    };
    let bold: std::collections::HashSet<_> = bold.into_iter().collect();
    let mut out = String::from("digraph ggml {\n  rankdir=TB;\n  node [shape=box, fontname=\"monospace\"];\n");
    let mut numbers = HashMap::new();
    for (kind, list) in [("leaf", leafs), ("node", nodes)] {
        for (i, &t) in list.iter().enumerate() {
            // SAFETY: as above.
            let Some(tensor) = (unsafe { t.as_ref() }) else { continue };
            numbers.insert(t, format!("{kind}_{i}"));
            let is = |flag: ggml_tensor_flag| tensor.flags & flag.0 != 0;
            let color = match () {
                () if is(GGML_TENSOR_FLAG_PARAM) => "khaki",
                () if is(GGML_TENSOR_FLAG_LOSS) => "salmon",
                () if is(GGML_TENSOR_FLAG_OUTPUT) => "palegreen",
                () if kind == "leaf" => "lightgrey",
                () => "white",
            };
            let style = if bold.contains(&t) { "\"filled,bold\"" } else { "filled" };
            let label = quoted(&label(tensor, i));
            let _ = writeln!(out, "  {kind}_{i} [label={label}, style={style}, fillcolor={color}];");
        }
    }
    for (i, &t) in nodes.iter().enumerate() {
        // SAFETY: as above.
        let Some(tensor) = (unsafe { t.as_ref() }) else { continue };
        for (place, src) in tensor.src.iter().enumerate().filter(|(_, src)| !src.is_null()) {
            // What the graph does not list, such as the storage of a view, is drawn by its address.
            let from = numbers.get(src).cloned().unwrap_or_else(|| format!("outside_{:x}", *src as usize));
            let _ = writeln!(out, "  {from} -> node_{i} [label=\"src{place}\"];");
        }
    }
    out.push_str("}\n");
    Ok(out)
}
