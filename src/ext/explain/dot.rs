//! A graph for Graphviz: a box for each step, an edge where one reads what another computes.

use super::escape::html;
use super::text::{duration, flags, many, shape};
use super::{Explanation, Launch, Node, Split, Step};
use std::collections::{BTreeSet, HashMap};
use std::fmt::{self, Write};

/// Native ranges of more nodes are counted by operator.
const LISTED: usize = 6;
/// Where names are cut, characters.
const NAME: usize = 32;
/// Where reasons are broken, characters.
const LINE: usize = 56;

/// Colours of a box: border and ground.
struct Paint {
    border: &'static str,
    ground: &'static str,
}

const NATIVE: Paint = Paint { border: "#c4cad2", ground: "#f6f7f9" };
const KERNEL: Paint = Paint { border: "#7ea6dd", ground: "#eaf2fc" };
const FUSION: Paint = Paint { border: "#74b58a", ground: "#e9f6ed" };
/// First voice.
const INK: &str = "#1f2933";
/// Second voice: what is left out, or computes nothing.
const GREY: &str = "#6b7280";
/// Of refusals.
const REFUSAL: &str = "#a4512b";

/// The graph, with a newline at its end.
pub fn render(e: &Explanation) -> String {
    let mut out = String::new();
    // writing to a string does not fail
    let _ = whole(&mut out, e);
    out
}

fn whole(out: &mut String, e: &Explanation) -> fmt::Result {
    out.push_str(concat!(
        "digraph plan {\n",
        "  graph [bgcolor=\"white\", fontname=\"Helvetica,Arial,sans-serif\", fontsize=10, fontcolor=\"#6b7280\", nodesep=0.35, ranksep=0.4, ",
        "pad=0.2];\n",
        "  node [shape=plain, fontname=\"Helvetica,Arial,sans-serif\", fontsize=11, fontcolor=\"#1f2933\"];\n",
        "  edge [color=\"#8b95a1\", fontname=\"Helvetica,Arial,sans-serif\", fontsize=9, fontcolor=\"#6b7280\", arrowsize=0.7];\n",
    ));
    writeln!(out, "  label=<{}>;", html(caption(e).as_bytes()))?;
    let clusters = e.splits.len() > 1;
    for (i, split) in e.splits.iter().enumerate() {
        if clusters {
            writeln!(out, "  subgraph cluster_{i} {{")?;
            let label = format!("split {i}, backend {}", split.backend);
            writeln!(
                out,
                "  style=\"rounded\"; color=\"#d5dae0\"; bgcolor=\"#fcfcfd\"; labeljust=\"l\"; label=<{}>;",
                html(label.as_bytes())
            )?;
        }
        for (j, step) in split.steps.iter().enumerate() {
            self::step(out, &format!("s{i}_{j}"), step)?;
        }
        if clusters {
            out.push_str("  }\n");
        }
    }
    edges(out, e)?;
    out.push_str("}\n");
    Ok(())
}

fn caption(e: &Explanation) -> String {
    let t = e.totals();
    let mut text = format!(
        "{}, {}: {} for {}, native code for {}",
        many(t.nodes, "node"),
        many(t.steps, "step"),
        many(t.launches, "launch"),
        many(t.nodes - t.native_nodes, "node"),
        t.native_nodes,
    );
    if t.skipped > 0 {
        // dashed is what the boxes show
        let _ = write!(text, "; dashed: {} without memory ({} bytes)", many(t.skipped, "node"), t.skipped_bytes);
    }
    if t.ns > 0 {
        let _ = write!(text, "; {} for a run", duration(t.ns));
    }
    let stale = e.splits.iter().filter(|s: &&Split| s.stale.is_some()).count();
    if stale > 0 {
        let _ = write!(text, "; stale plans: {stale}");
    }
    text
}

fn step(out: &mut String, id: &str, step: &Step) -> fmt::Result {
    let paint = match &step.launch {
        None => NATIVE,
        Some(_) if step.is_fusion() => FUSION,
        Some(_) => KERNEL,
    };
    let Paint { border, ground } = paint;
    writeln!(
        out,
        "  {id} [label=<<TABLE BORDER=\"1\" CELLBORDER=\"0\" CELLSPACING=\"0\" CELLPADDING=\"4\" COLOR=\"{border}\" BGCOLOR=\"{ground}\">"
    )?;
    head(out, step)?;
    if step.launch.is_none() && step.nodes.len() > LISTED {
        counts(out, step)?;
    } else {
        for (i, node) in step.nodes.iter().enumerate() {
            self::node(out, step.first + i, node)?;
        }
    }
    refusals(out, step)?;
    writeln!(out, "  </TABLE>>];")
}

/// A line over the whole width of a box.
fn wide(out: &mut String, inside: &str) -> fmt::Result {
    writeln!(out, "    <TR><TD COLSPAN=\"3\" ALIGN=\"LEFT\">{inside}</TD></TR>")
}

fn small(text: &str, colour: &str) -> String {
    format!("<FONT POINT-SIZE=\"9\" COLOR=\"{colour}\">{text}</FONT>")
}

fn head(out: &mut String, step: &Step) -> fmt::Result {
    let n = step.nodes.len();
    let (title, mut facts) = match &step.launch {
        None => ("native code".to_owned(), vec![many(n, "node")]),
        Some(launch) => {
            let what = if n > 1 { format!("fusion of {n} nodes") } else { "kernel".to_owned() };
            let mut facts = vec![what];
            facts.extend(promises(launch));
            (format!("<B>{}</B>", html(launch.registration.as_bytes())), facts)
        }
    };
    facts.extend(step.mean_ns().map(duration));
    wide(out, &format!("{title}  {}", small(&html(facts.join(", ").as_bytes()), GREY)))
}

fn promises(launch: &Launch) -> Vec<String> {
    let mut facts = Vec::new();
    if launch.forced {
        facts.push("forced".to_owned());
    }
    if launch.workspace > 0 {
        facts.push(format!("workspace {} bytes", launch.workspace));
    }
    facts.extend(flags(launch.flags).into_iter().map(|f| f.replace('_', " ")));
    facts
}

fn cut(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(name);
    match text.char_indices().nth(NAME) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}

fn node(out: &mut String, number: usize, node: &Node) -> fmt::Result {
    // reasons name nodes by their numbers
    let number = small(&number.to_string(), GREY);
    let cells = [html(node.op.as_bytes()), html(cut(&node.name).as_bytes()), html(shape(node).as_bytes())];
    out.push_str("    <TR>");
    for (cell, sides) in cells.iter().zip(["LTB", "TB", "TBR"]) {
        let (frame, colour) = match node.skipped {
            true => (format!(" BORDER=\"1\" SIDES=\"{sides}\" STYLE=\"dashed\" COLOR=\"#9aa5b1\""), GREY),
            false if node.computed => (String::new(), INK),
            false => (String::new(), GREY),
        };
        let mut text = format!("<FONT COLOR=\"{colour}\">{cell}</FONT>");
        if node.output {
            text = format!("<B>{text}</B>");
        }
        // an element without text is an error to some versions of Graphviz
        if cell.is_empty() {
            text = " ".to_owned();
        }
        if sides == "LTB" {
            text = format!("{number}  {text}");
        }
        write!(out, "<TD ALIGN=\"LEFT\"{frame}>{text}</TD>")?;
    }
    out.push_str("</TR>\n");
    Ok(())
}

/// How many nodes of each operator, in the order of the first of each.
fn counts(out: &mut String, step: &Step) -> fmt::Result {
    let mut order = Vec::new();
    let mut n = HashMap::new();
    for node in &step.nodes {
        n.entry(&node.op).and_modify(|n| *n += 1).or_insert_with(|| {
            order.push(node);
            1
        });
    }
    for Node { op, computed, .. } in order {
        let colour = if *computed { INK } else { GREY };
        let times = if n[op] > 1 { format!("  {}", small(&format!("× {}", n[op]), GREY)) } else { String::new() };
        wide(out, &format!("<FONT COLOR=\"{colour}\">{}</FONT>{times}", html(op.as_bytes())))?;
    }
    Ok(())
}

/// What was tried in vain, each reason once.
fn refusals(out: &mut String, step: &Step) -> fmt::Result {
    let mut order = Vec::new();
    let mut n = HashMap::new();
    for tried in step.nodes.iter().flat_map(|node| &node.tried) {
        let key = (tried.name.as_str(), tried.reason.as_str());
        n.entry(key).and_modify(|n| *n += 1).or_insert_with(|| {
            order.push(key);
            1
        });
    }
    for key in order {
        let times = if n[&key] > 1 { format!(" ({} times)", n[&key]) } else { String::new() };
        let text = format!("not {}{times}: {}", key.0, key.1);
        let lines: Vec<String> = broken(&text).iter().map(|line| html(line.as_bytes())).collect();
        let end = "<BR ALIGN=\"LEFT\"/>";
        wide(out, &small(&format!("{}{end}", lines.join(end)), REFUSAL))?;
    }
    Ok(())
}

/// In lines of about [`LINE`] characters, broken at spaces.
fn broken(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut width = 0;
    for word in text.split_whitespace() {
        let n = word.chars().count();
        if width > 0 && width + 1 + n > LINE {
            lines.push(String::new());
            width = 0;
        }
        if let Some(line) = lines.last_mut() {
            if width > 0 {
                line.push(' ');
                width += 1;
            }
            line.push_str(word);
            width += n;
        }
    }
    lines
}

fn edges(out: &mut String, e: &Explanation) -> fmt::Result {
    // by split and node: the step
    let steps: Vec<Vec<usize>> = e
        .splits
        .iter()
        .map(|s| s.steps.iter().enumerate().flat_map(|(j, step)| vec![j; step.nodes.len()]).collect())
        .collect();
    let mut inputs: Vec<&[u8]> = Vec::new();
    let mut drawn = BTreeSet::new();
    for (i, split) in e.splits.iter().enumerate() {
        for (j, step) in split.steps.iter().enumerate() {
            for read in step.nodes.iter().flat_map(|n| &n.reads) {
                let from = read.at.and_then(|at| Some((at.split, *steps.get(at.split)?.get(at.node)?)));
                let (from, copied) = match from {
                    Some(from) if from == (i, j) => continue,
                    Some((split, step)) => (format!("s{split}_{step}"), split != i),
                    None if read.input => {
                        let known = inputs.iter().position(|name| *name == &*read.name);
                        let number = known.unwrap_or_else(|| {
                            inputs.push(&read.name);
                            inputs.len() - 1
                        });
                        (format!("in_{number}"), false)
                    }
                    None => continue,
                };
                if drawn.insert((from.clone(), i, j)) {
                    let style = if copied { " [style=dashed, label=\" copied\"]" } else { "" };
                    writeln!(out, "  {from} -> s{i}_{j}{style};")?;
                }
            }
        }
    }
    for (number, name) in inputs.iter().enumerate() {
        let name = html(cut(name).as_bytes());
        let name = if name.is_empty() { "input".to_owned() } else { name };
        writeln!(out, "  in_{number} [shape=box, style=\"rounded\", color=\"#c4cad2\", height=0.3, label=<{name}>];")?;
    }
    Ok(())
}
