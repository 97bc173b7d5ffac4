//! Lines of text.

use super::escape::{line, quoted};
use super::{Explanation, Launch, Node, Place, Source, Split, Step};
use ggml_oxide_abi::*;
use std::fmt::{self, Write};

/// `n` of something.
pub fn many(n: usize, one: &str) -> String {
    match n {
        1 => format!("1 {one}"),
        n => format!("{n} {one}{}", if one.ends_with('h') { "es" } else { "s" }),
    }
}

/// A time that is read, not computed with.
pub fn duration(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} us", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2} ms", ns as f64 / 1e6),
        _ => format!("{:.2} s", ns as f64 / 1e9),
    }
}

/// Format and shape: as many dimensions as say something.
pub fn shape(node: &Node) -> String {
    let n = (1..GGML_MAX_DIMS).rev().find(|&d| node.ne[d] != 1).map_or(1, |d| d + 1);
    let ne: Vec<String> = node.ne[..n].iter().map(i64::to_string).collect();
    format!("{} [{}]", node.format, ne.join(", "))
}

/// What the flags of a registration promise.
pub fn flags(flags: u32) -> Vec<&'static str> {
    [
        (GGML_EXT_KERNEL_CAPTURE_SAFE, "capture_safe"),
        (GGML_EXT_KERNEL_REPLAY_REUSABLE, "replay_reusable"),
        (GGML_EXT_KERNEL_DETERMINISTIC, "deterministic"),
    ]
    .into_iter()
    .filter(|(bit, _)| flags & bit != 0)
    .map(|(_, name)| name)
    .collect()
}

/// The text, with a newline at its end.
pub fn render(e: &Explanation) -> String {
    let mut out = String::new();
    // writing to a string does not fail
    let _ = whole(&mut out, e);
    out
}

fn whole(out: &mut String, e: &Explanation) -> fmt::Result {
    let t = e.totals();
    let fusions = match t.fusions {
        0 => "no fusion".to_owned(),
        n => format!("{} for {}", many(n, "fusion"), many(t.fused_nodes, "node")),
    };
    writeln!(
        out,
        "plan: {}, {} in {}: {} for {} ({}), {} of {}",
        many(e.splits.len(), "split"),
        many(t.nodes, "node"),
        many(t.steps, "step"),
        many(t.launches, "launch"),
        many(t.nodes - t.native_nodes, "node"),
        fusions,
        many(t.native_ranges, "native range"),
        many(t.native_nodes, "node"),
    )?;
    writeln!(
        out,
        "memory: {} without ({} bytes), {} bytes of workspace; registrations refused: {}",
        many(t.skipped, "node"),
        t.skipped_bytes,
        t.workspace,
        t.refused,
    )?;
    if t.ns > 0 {
        writeln!(out, "time: {} for a run, by the calling thread", duration(t.ns))?;
    }
    let mut number = 0;
    for (i, split) in e.splits.iter().enumerate() {
        writeln!(out)?;
        self::split(out, e, i, split, &mut number)?;
    }
    Ok(())
}

/// A tensor, and where it is computed.
fn source(e: &Explanation, here: usize, source: &Source) -> String {
    let name = quoted(&source.name);
    match source.at {
        None => name,
        Some(Place { split, node }) if split == here => format!("{name} (node {node})"),
        Some(Place { split, node }) => {
            let backend = e.splits.get(split).map_or("", |s| &s.backend);
            format!("{name} (split {split}, {}, node {node})", line(backend.as_bytes()))
        }
    }
}

fn split(out: &mut String, e: &Explanation, i: usize, split: &Split, number: &mut usize) -> fmt::Result {
    let (backend, device) = (line(split.backend.as_bytes()), line(split.device.as_bytes()));
    writeln!(out, "split {i}: {} on backend {backend}, device {device}", many(split.nodes().count(), "node"))?;
    if let Some(why) = &split.stale {
        writeln!(out, "  STALE: {}", line(why.as_bytes()))?;
    }
    for (variable, names) in [("GGML_EXT_FORBID", &split.forbidden), ("GGML_EXT_FORCE", &split.forced)] {
        if !names.is_empty() {
            writeln!(out, "  {variable} names {}", names.join(", "))?;
        }
    }
    if split.workspace > 0 {
        writeln!(out, "  workspace: {} bytes, for {}", split.workspace, split.workspace_for)?;
    }
    for input in &split.inputs {
        let (name, from) = (source(e, i, &input.source), line(input.from.as_bytes()));
        writeln!(out, "  copied from backend {from}: {name}, {} bytes", input.bytes)?;
    }
    let columns = Columns::of(split);
    for step in &split.steps {
        write!(out, "  step {number}: ")?;
        *number += 1;
        self::step(out, e, i, step, &columns)?;
    }
    Ok(())
}

/// Widths.
struct Columns {
    number: usize,
    op: usize,
    shape: usize,
}

impl Columns {
    fn of(split: &Split) -> Self {
        let widest = |width: fn(&Node) -> usize| split.nodes().map(width).max().unwrap_or(0);
        Columns {
            number: split.nodes().count().saturating_sub(1).to_string().len(),
            op: widest(|n| n.op.len()),
            shape: widest(|n| shape(n).len()),
        }
    }
}

fn step(out: &mut String, e: &Explanation, split: usize, step: &Step, columns: &Columns) -> fmt::Result {
    let n = step.nodes.len();
    match &step.launch {
        None => write!(out, "native code, {}", many(n, "node"))?,
        Some(launch) if n == 1 => write!(out, "kernel {}, 1 node", launch.registration)?,
        Some(launch) => write!(out, "fusion {}, {n} nodes", launch.registration)?,
    }
    if let Some(launch) = &step.launch {
        promises(out, launch)?;
    }
    if let Some(ns) = step.mean_ns() {
        write!(out, "; {}", duration(ns))?;
        match step.time.runs() {
            1 => {}
            runs => write!(out, " (mean of {runs} runs)")?,
        }
    }
    writeln!(out)?;
    for (i, node) in step.nodes.iter().enumerate() {
        self::node(out, step.first + i, node, columns)?;
    }
    let Some(launch) = &step.launch else { return Ok(()) };
    let indent = columns.number + 6;
    if !launch.reads.is_empty() {
        let reads: Vec<String> = launch.reads.iter().map(|(s, _)| source(e, split, s)).collect();
        writeln!(out, "{:indent$}reads {}", "", reads.join(", "))?;
    }
    for (read, _) in launch.reads.iter().filter(|(_, over)| *over) {
        writeln!(out, "{:indent$}the result lies over {}", "", source(e, split, read))?;
    }
    Ok(())
}

fn promises(out: &mut String, launch: &Launch) -> fmt::Result {
    if launch.forced {
        write!(out, "; GGML_EXT_FORCE names it")?;
    }
    if launch.priority != 0 {
        write!(out, "; priority {}", launch.priority)?;
    }
    if launch.workspace > 0 {
        write!(out, "; workspace {} bytes", launch.workspace)?;
    }
    for flag in flags(launch.flags) {
        write!(out, "; {}", flag.replace('_', " "))?;
    }
    Ok(())
}

fn node(out: &mut String, number: usize, node: &Node, columns: &Columns) -> fmt::Result {
    let Columns { number: width, op, shape } = *columns;
    write!(
        out,
        "    {number:>width$}  {:<op$}  {:<shape$}  {}",
        line(node.op.as_bytes()),
        self::shape(node),
        quoted(&node.name)
    )?;
    for (is_so, what) in [(node.skipped, "no memory"), (!node.computed, "computes nothing"), (node.output, "output")] {
        if is_so {
            write!(out, ", {what}")?;
        }
    }
    writeln!(out)?;
    for tried in &node.tried {
        let of = if tried.nodes > 1 { format!(" for {} nodes", tried.nodes) } else { String::new() };
        let indent = width + 6;
        writeln!(out, "{:indent$}not {}{of}: {}", "", tried.name, line(tried.reason.as_bytes()))?;
    }
    Ok(())
}
