//! One JSON object, on one line. The schema is documented in `docs/explain.md`; keys are only ever added.

use super::escape;
use super::text::flags;
use super::{Explanation, Input, Launch, Node, Source, Split, Step};
use std::fmt::Display;

/// Counts the changes of the schema that old readers would not understand.
const VERSION: u32 = 1;

/// Writes values; who calls keeps lists and objects balanced by passing closures.
struct Json {
    out: String,
    /// A value was written at this level: the next is preceded by a comma.
    comma: bool,
}

impl Json {
    fn next(&mut self) {
        if self.comma {
            self.out.push(',');
        }
        self.comma = true;
    }

    fn text(&mut self, bytes: &[u8]) {
        self.out.push('"');
        self.out.push_str(&escape::json(bytes));
        self.out.push('"');
    }

    fn inside(&mut self, open: char, close: char, fill: impl FnOnce(&mut Json)) {
        self.out.push(open);
        self.comma = false;
        fill(self);
        self.comma = true;
        self.out.push(close);
    }

    fn key(&mut self, key: &str) -> &mut Self {
        self.next();
        self.text(key.as_bytes());
        self.out.push(':');
        self
    }

    /// A number or a truth value.
    fn plain(&mut self, key: &str, value: impl Display) {
        self.key(key).out.push_str(&value.to_string());
    }

    fn maybe(&mut self, key: &str, value: Option<impl Display>) {
        match value {
            Some(value) => self.plain(key, value),
            None => self.plain(key, "null"),
        }
    }

    fn string(&mut self, key: &str, value: &[u8]) {
        self.key(key).text(value);
    }

    fn maybe_string(&mut self, key: &str, value: Option<&str>) {
        match value {
            Some(value) => self.string(key, value.as_bytes()),
            None => self.plain(key, "null"),
        }
    }

    fn object(&mut self, key: &str, fill: impl FnOnce(&mut Json)) {
        self.key(key).inside('{', '}', fill);
    }

    fn objects<T>(&mut self, key: &str, items: impl IntoIterator<Item = T>, mut fill: impl FnMut(&mut Json, T)) {
        self.key(key).inside('[', ']', |json| {
            for item in items {
                json.next();
                json.inside('{', '}', |json| fill(json, item));
            }
        });
    }

    fn strings<T: AsRef<str>>(&mut self, key: &str, items: impl IntoIterator<Item = T>) {
        self.key(key).inside('[', ']', |json| {
            for item in items {
                json.next();
                json.text(item.as_ref().as_bytes());
            }
        });
    }
}

/// The object, without a newline.
pub fn render(e: &Explanation) -> String {
    let mut json = Json { out: String::new(), comma: false };
    json.inside('{', '}', |json| {
        json.plain("version", VERSION);
        let t = e.totals();
        json.object("totals", |json| {
            json.plain("splits", e.splits.len());
            json.plain("steps", t.steps);
            json.plain("nodes", t.nodes);
            json.plain("launches", t.launches);
            json.plain("fusions", t.fusions);
            json.plain("fused_nodes", t.fused_nodes);
            json.plain("native_ranges", t.native_ranges);
            json.plain("native_nodes", t.native_nodes);
            json.plain("skipped", t.skipped);
            json.plain("skipped_bytes", t.skipped_bytes);
            json.plain("workspace", t.workspace);
            json.plain("refused", t.refused);
            json.plain("mean_ns", t.ns);
        });
        let mut number = 0;
        json.objects("splits", e.splits.iter().enumerate(), |json, (i, s)| split(json, i, s, &mut number));
    });
    json.out
}

fn split(json: &mut Json, number: usize, split: &Split, steps: &mut usize) {
    json.plain("split", number);
    json.string("backend", split.backend.as_bytes());
    json.string("device", split.device.as_bytes());
    json.maybe_string("stale", split.stale.as_deref());
    json.plain("workspace", split.workspace);
    json.maybe_string("workspace_for", Some(split.workspace_for.as_str()).filter(|name| !name.is_empty()));
    json.strings("forbidden", &split.forbidden);
    json.strings("forced", &split.forced);
    json.objects("copied", &split.inputs, input);
    json.objects("steps", &split.steps, |json, s| {
        step(json, *steps, s);
        *steps += 1;
    });
}

fn source(json: &mut Json, source: &Source) {
    json.string("name", &source.name);
    json.maybe("split", source.at.map(|at| at.split));
    json.maybe("node", source.at.map(|at| at.node));
}

fn input(json: &mut Json, input: &Input) {
    source(json, &input.source);
    json.string("from", input.from.as_bytes());
    json.plain("bytes", input.bytes);
}

fn step(json: &mut Json, number: usize, step: &Step) {
    json.plain("step", number);
    let kind = match &step.launch {
        None => "native",
        Some(_) if step.is_fusion() => "fusion",
        Some(_) => "kernel",
    };
    json.string("kind", kind.as_bytes());
    match &step.launch {
        None => json.plain("launch", "null"),
        Some(launch) => json.object("launch", |json| self::launch(json, launch)),
    }
    json.plain("runs", step.time.runs());
    json.plain("ns", step.time.ns());
    json.objects("nodes", step.nodes.iter().enumerate(), |json, (i, n)| node(json, step.first + i, n));
}

fn launch(json: &mut Json, launch: &Launch) {
    json.string("registration", launch.registration.as_bytes());
    json.plain("priority", launch.priority);
    json.strings("flags", flags(launch.flags));
    json.plain("forced", launch.forced);
    json.plain("workspace", launch.workspace);
    json.objects("reads", &launch.reads, |json, (read, over)| {
        source(json, read);
        json.plain("overlaps", over);
    });
}

fn node(json: &mut Json, number: usize, node: &Node) {
    json.plain("node", number);
    json.string("name", &node.name);
    json.string("op", node.op.as_bytes());
    json.string("type", node.format.as_bytes());
    json.key("ne").inside('[', ']', |json| {
        for n in node.ne {
            json.next();
            json.out.push_str(&n.to_string());
        }
    });
    json.plain("bytes", node.bytes);
    json.plain("owns", node.owns);
    json.plain("computed", node.computed);
    json.plain("output", node.output);
    json.plain("skipped", node.skipped);
    json.objects("reads", &node.reads, source);
    json.objects("tried", &node.tried, |json, tried| {
        json.string("registration", tried.name.as_bytes());
        json.plain("nodes", tried.nodes);
        json.string("reason", tried.reason.as_bytes());
    });
}
