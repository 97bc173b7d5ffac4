//! Renderers over models made by hand, with names that mean something to every form.
#![allow(clippy::unwrap_used)]

use super::*;

/// No text, quotes of all forms, controls, direction marks, and what ends elements and comments.
const HOSTILE: [&[u8]; 10] = [
    b"",
    b"\xff\xfe\x80",
    b"\"quoted\\\" \\",
    b"line\nfeed\r\ttab\0zero",
    b"<b>&amp;</TABLE>>]; } -->",
    b"\x01\x1f\x7f\xc2\x85",
    "\u{202e}\u{2028}\u{feff}\u{ffff}é".as_bytes(),
    b"]]>'${x}%s\\N\\L",
    b"a\xe2\x80",
    b"0123456789012345678901234567890123456789012345678901234567890123",
];

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn node(name: &[u8], op: &str) -> Node {
    Node {
        name: name.into(),
        op: op.into(),
        format: "f32",
        ne: [8, 2, 1, 1],
        bytes: 64,
        owns: true,
        computed: true,
        output: false,
        skipped: false,
        reads: Vec::new(),
        tried: Vec::new(),
    }
}

fn reads(name: &[u8], at: Option<(usize, usize)>) -> Source {
    Source { name: name.into(), at: at.map(|(split, node)| Place { split, node }), input: at.is_none() }
}

fn native(first: usize, nodes: Vec<Node>) -> Step {
    Step { first, nodes, launch: None, time: Time::default() }
}

fn launch(first: usize, nodes: Vec<Node>, reads: Vec<(Source, bool)>) -> Step {
    let launch = Launch {
        registration: "a.rule".into(),
        priority: -3,
        flags: GGML_EXT_KERNEL_DETERMINISTIC | GGML_EXT_KERNEL_CAPTURE_SAFE,
        forced: true,
        workspace: 100,
        reads,
    };
    Step { first, nodes, launch: Some(launch), time: Time::default() }
}

fn split(backend: &[u8], steps: Vec<Step>) -> Split {
    Split {
        number: 0,
        backend: text_of(backend),
        device: text_of(backend),
        stale: None,
        workspace: 100,
        workspace_for: "a.rule".into(),
        forbidden: vec!["b".into()],
        forced: vec!["a.rule".into()],
        inputs: Vec::new(),
        steps,
    }
}

/// All that a model can say, with `bad` wherever an application, a device or a callback chooses the text.
fn everything(bad: &[u8]) -> Explanation {
    let tried = |nodes| Tried { name: "b".into(), nodes, reason: text_of(bad) };
    let mut one = node(bad, "MUL");
    (one.skipped, one.reads) = (true, vec![reads(bad, None), reads(bad, None)]);
    let mut two = node(bad, "ADD");
    (two.output, two.reads) = (true, vec![reads(bad, Some((0, 0)))]);
    let mut three = node(bad, "VIEW");
    (three.computed, three.reads) = (false, vec![reads(bad, Some((0, 1)))]);
    three.tried = vec![tried(1), tried(0), tried(2)];
    let fused = launch(0, vec![one, two], vec![(reads(bad, None), true), (reads(bad, Some((1, 0))), false)]);
    fused.time.add(1_500);
    fused.time.add(2_500);
    let first = split(bad, vec![fused]);
    let mut second = split(bad, vec![native(0, vec![three; 9])]);
    (second.number, second.workspace, second.stale) = (1, 0, Some(text_of(bad)));
    second.workspace_for.clear();
    second.inputs = vec![Input { source: reads(bad, Some((0, 1))), bytes: 64, from: text_of(bad) }];
    Explanation { splits: vec![first, second] }
}

impl Clone for Node {
    fn clone(&self) -> Self {
        let Node { name, op, format, ne, bytes, owns, computed, output, skipped, reads, tried } = self;
        let (name, op, reads, tried) = (name.clone(), op.clone(), reads.clone(), tried.clone());
        Node {
            name,
            op,
            format,
            ne: *ne,
            bytes: *bytes,
            owns: *owns,
            computed: *computed,
            output: *output,
            skipped: *skipped,
            reads,
            tried,
        }
    }
}

/// A strict reader of JSON: what is left behind one value, or where it is none.
fn value(s: &str) -> Result<&str, String> {
    let wrong = || Err(format!("at {s:.40}"));
    match s.as_bytes().first() {
        Some(b'{') => list(&s[1..], '}', |s| value(string(s)?.strip_prefix(':').ok_or("no colon")?)),
        Some(b'[') => list(&s[1..], ']', value),
        Some(b'"') => string(s),
        Some(b'-' | b'0'..=b'9') => {
            let digits = s.trim_start_matches('-').trim_start_matches(|c: char| c.is_ascii_digit());
            let number = &s[..s.len() - digits.len()];
            let bare = number.trim_start_matches('-');
            if number.len() > bare.len() + 1 || bare.is_empty() || bare.len() > 1 && bare.starts_with('0') {
                return wrong();
            }
            Ok(digits)
        }
        _ => ["true", "false", "null"].iter().find_map(|word| s.strip_prefix(word)).map_or_else(wrong, Ok),
    }
}

fn list(mut s: &str, end: char, item: impl Fn(&str) -> Result<&str, String>) -> Result<&str, String> {
    if let Some(rest) = s.strip_prefix(end) {
        return Ok(rest);
    }
    loop {
        s = item(s)?;
        match s.strip_prefix(',') {
            Some(rest) => s = rest,
            None => return s.strip_prefix(end).ok_or(format!("no {end} at {s:.40}")),
        }
    }
}

fn string(s: &str) -> Result<&str, String> {
    let mut chars = s.strip_prefix('"').ok_or(format!("no string at {s:.40}"))?.chars();
    loop {
        match chars.next().ok_or("no end of a string")? {
            '"' => return Ok(chars.as_str()),
            '\\' => match chars.next() {
                Some('"' | '\\' | 'n' | 'r' | 't') => {}
                Some('u') if (0..4).all(|_| chars.next().is_some_and(|c| c.is_ascii_hexdigit())) => {}
                other => return Err(format!("escape {other:?}")),
            },
            c if c.is_control() => return Err(format!("control {c:?}")),
            _ => {}
        }
    }
}

#[test]
fn abi_3_json_is_json_whatever_names_hold() {
    for bad in HOSTILE {
        let json = json::render(&everything(bad));
        assert_eq!(value(&json), Ok(""), "{json}");
        assert!(!json.contains('\n'), "one line");
    }
    assert!(value("{\"a\":[1,-2,{}],\"b\":null}").is_ok_and(str::is_empty), "the reader reads");
    for wrong in ["{\"a\":01}", "{\"a\"}", "{a:1}", "[1,]", "\"\u{1}\"", "\"\\x\"", "{\"a\":1", "1 "] {
        assert!(!value(wrong).is_ok_and(str::is_empty), "the reader is strict: {wrong}");
    }
}

#[test]
fn abi_3_json_keeps_what_is_text() {
    let json = json::render(&everything("é\"\\\u{7f}".as_bytes()));
    assert!(json.contains("\"name\":\"é\\\"\\\\\\u007f\""), "{json}");
    assert!(json::render(&everything(b"a\xffb")).contains("\"name\":\"a\u{fffd}b\""), "bytes that are no text");
}

#[test]
fn abi_3_text_stays_on_its_lines() {
    let plain = text::render(&everything(b"x"));
    for bad in HOSTILE {
        let text = text::render(&everything(bad));
        assert_eq!(text.lines().count(), plain.lines().count(), "{text}");
        assert!(
            text.chars().all(|c| c == '\n' || !c.is_control() && !matches!(c, '\u{202e}' | '\u{2028}')),
            "{text:?}"
        );
    }
    let text = text::render(&everything(b"a\xff\"\n"));
    assert!(text.contains(r#""a\xff\"\n""#), "{text}");
}

/// Elements of an HTML-like label open and close, and there is nothing in between that XML does not hold.
fn is_markup(label: &str) -> Result<(), String> {
    let mut open = Vec::new();
    let mut rest = label;
    while let Some(at) = rest.find(['<', '>', '&']) {
        let from = &rest[at..];
        if let Some(entity) = from.strip_prefix('&') {
            let name = entity.split(';').next().unwrap_or_default();
            if !["amp", "lt", "gt", "quot", "#39"].contains(&name) {
                return Err(format!("entity {name:.20}"));
            }
            rest = &entity[name.len()..];
            continue;
        }
        let tag = from.strip_prefix('<').ok_or(format!("a bare > at {from:.40}"))?;
        let end = tag.find('>').ok_or("no end of a tag")?;
        let (tag, behind) = (&tag[..end], &tag[end + 1..]);
        if tag.contains('<') || tag.matches('"').count() % 2 != 0 {
            return Err(format!("tag {tag}"));
        }
        match tag.strip_prefix('/') {
            Some(name) if open.pop() != Some(name) => return Err(format!("</{name}> closes another")),
            Some(_) => {}
            None if tag.ends_with('/') => {}
            None => open.push(tag.split(' ').next().unwrap_or_default()),
        }
        rest = behind;
    }
    if open.is_empty() {
        Ok(())
    } else {
        Err(format!("open: {open:?}"))
    }
}

#[test]
fn abi_3_labels_are_markup_whatever_names_hold() {
    for bad in HOSTILE {
        let dot = dot::render(&everything(bad));
        let labels: Vec<&str> = dot
            .split("label=<")
            .skip(1)
            .filter_map(|l| l.split_once(">;").or(l.split_once(">];")))
            .map(|l| l.0)
            .collect();
        assert!(labels.len() >= 4, "{dot}");
        for label in labels {
            assert_eq!(is_markup(label), Ok(()), "{label}\n{dot}");
        }
        assert!(dot.chars().all(|c| c == '\n' || !c.is_control() && c != '\u{ffff}'), "{dot:?}");
        assert!(
            !dot.contains("<TD></TD>") && !dot.contains("<FONT COLOR=\"#1f2933\"></FONT>"),
            "no element without text"
        );
    }
    assert!(is_markup("<B>a &lt; b</B><BR/>").is_ok());
    for wrong in ["<B>", "</B>", "a > b", "a & b", "<B></I>", "&nbsp;"] {
        assert!(is_markup(wrong).is_err(), "the check is strict: {wrong}");
    }
}

#[test]
fn abi_3_long_native_ranges_are_counted_in_the_graph() {
    let mut nodes: Vec<Node> = (0..4).map(|i| node(format!("n{i}").as_bytes(), "MUL")).collect();
    nodes.extend((0..3).map(|i| node(format!("m{i}").as_bytes(), "ADD")));
    let long = dot::render(&Explanation { splits: vec![split(b"CPU", vec![native(0, nodes.clone())])] });
    assert!(long.contains("MUL") && long.contains("× 4") && long.contains("× 3") && !long.contains("n0"), "{long}");
    nodes.pop();
    let short = dot::render(&Explanation { splits: vec![split(b"CPU", vec![native(0, nodes)])] });
    assert!(short.contains("n0") && short.contains("m1") && !short.contains('×'), "{short}");
}

#[test]
fn abi_3_sums() {
    let e = everything(b"x");
    let expected = Totals {
        steps: 2,
        nodes: 11,
        launches: 1,
        fusions: 1,
        fused_nodes: 2,
        native_ranges: 1,
        native_nodes: 9,
        skipped: 1,
        skipped_bytes: 64,
        workspace: 100,
        refused: 27,
        ns: 2_000,
    };
    assert_eq!(e.totals(), expected);
    let mut views = everything(b"x");
    views.splits.iter_mut().flat_map(|s| &mut s.steps).flat_map(|s| &mut s.nodes).for_each(|n| n.owns = false);
    assert_eq!(views.totals(), Totals { skipped_bytes: 0, ..expected }, "a view that is left out saves nothing");
    let mut shared = everything(b"x");
    (shared.splits[1].number, shared.splits[1].workspace) = (0, 300);
    assert_eq!(shared.totals().workspace, 300, "splits of one backend share their scratch memory");
    shared.splits[1].number = 1;
    assert_eq!(shared.totals().workspace, 400, "those of two do not");
    let empty = Explanation { splits: Vec::new() };
    assert_eq!(empty.totals(), Totals::default());
    assert_eq!(value(&json::render(&empty)), Ok(""));
    assert!(text::render(&empty).starts_with("plan: 0 splits") && dot::render(&empty).ends_with("}\n"));
}

#[test]
fn abi_3_text_says_all_of_it() {
    let text = text::render(&everything(b"x"));
    for part in [
        "time: 2.0 us for a run",
        "GGML_EXT_FORBID names b\n",
        "step 0: fusion a.rule, 2 nodes; GGML_EXT_FORCE names it; priority -3; workspace 100 bytes; capture safe; deterministic; 2.0 us (mean of 2 runs)\n",
        "\"x\", no memory\n",
        "\"x\", output\n",
        "reads \"x\", \"x\" (split 1, x, node 0)\n",
        "the result lies over \"x\"\n",
        "STALE: x\n",
        "copied from backend x: \"x\" (split 0, x, node 1), 64 bytes\n",
        "step 1: native code, 9 nodes\n",
        "VIEW  f32 [8, 2]  \"x\", computes nothing\n",
        "not b: x\n",
        "not b for 2 nodes: x\n",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn abi_4_times_are_read_at_a_glance() {
    let shown = [999, 1_000, 12_345, 1_000_000, 2_500_000_000].map(text::duration);
    assert_eq!(shown, ["999 ns", "1.0 us", "12.3 us", "1.00 ms", "2.50 s"]);
    let time = Time::default();
    assert_eq!((time.ns(), time.runs(), time.stop(None)), (0, 0, None));
    time.add(u64::MAX);
    time.add(1);
    assert_eq!((time.ns(), time.runs()), (u64::MAX, 2), "no overflow");
}
