//! Text before and after cbindgen.

/// Rust source as cbindgen can read it: `c_enum!` bodies as C enumerations, `entry!` functions as exported functions, structures
/// without members as opaque ones.
pub fn source(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut block = Block::None;
    let lines: Vec<&str> = text.lines().collect();
    for (i, &line) in lines.iter().enumerate() {
        match line {
            "c_enum! {" => {
                block = Block::Enum;
                continue;
            }
            "entry! {" => {
                block = Block::Entry;
                continue;
            }
            // The macro's own brace is the second of two in an enumeration, the only one at the margin in a list of functions.
            "}" if matches!(block, Block::Entry) || (matches!(block, Block::Enum) && i > 0 && lines[i - 1] == "}") => {
                block = Block::None;
                continue;
            }
            "#[repr(C)]" if lines[i..].iter().take(4).any(|l| l.contains("_opaque")) => continue,
            _ => {}
        }
        match block {
            Block::Enum if line.starts_with("pub enum") => out.push_str("#[repr(C)]\n"),
            Block::Entry if line.starts_with("    pub fn ") => {
                out.push_str("    #[no_mangle]\n");
                out.push_str(&line.replacen("pub fn ", "pub extern \"C\" fn ", 1));
                out.push('\n');
                continue;
            }
            _ => {}
        }
        out.push_str(line);
        out.push('\n');
    }
    out
}

enum Block {
    None,
    Enum,
    Entry,
}

/// Names of the types that a source declares.
pub fn declared_types(source: &str) -> Vec<String> {
    let after = |line: &str| {
        ["pub struct ", "pub enum ", "pub type "].iter().find_map(|start| line.strip_prefix(start).map(word_of))
    };
    source.lines().filter_map(after).collect()
}

fn word_of(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// Names that C spells with `struct` or `enum` before them.
#[derive(Default)]
pub struct Tags(Vec<(String, &'static str)>);

/// Structures that C code names without a tag.
const BARE: [&str; 1] = ["ggml_bf16_t"];

impl Tags {
    /// These names and those that a source declares.
    pub fn with(mut self, source: &str) -> Self {
        for line in source.lines() {
            let declared = line
                .strip_prefix("pub struct ")
                .map(|rest| (rest, "struct"))
                .or_else(|| line.strip_prefix("pub enum ").map(|rest| (rest, "enum")));
            if let Some((rest, tag)) = declared {
                let name = word_of(rest);
                if !BARE.contains(&name.as_str()) {
                    self.0.push((name, tag));
                }
            }
        }
        self
    }

    fn of(&self, word: &str) -> Option<&'static str> {
        self.0.iter().find(|(name, _)| name == word).map(|(_, tag)| *tag)
    }
}

/// Puts tags before names that this header uses and another one declares, and the layout label on `ggml_init`.
pub fn finish(text: &str, tags: &Tags) -> String {
    let mut out = String::with_capacity(text.len());
    let text = short_comments(text);
    for line in text.lines() {
        let comment = line.trim_start().starts_with(['*', '/']) || line.starts_with('#');
        if comment {
            out.push_str(line);
        } else {
            tag_line(line, tags, &mut out);
        }
        out.push('\n');
    }
    out.trim_end().to_owned().replace(
        "ggml_init(struct ggml_init_params params);",
        "ggml_init(struct ggml_init_params params) GGML_LAYOUT_LABEL(ggml_init);",
    ) + "\n"
}

/// Comments of one line on one line.
fn short_comments(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut out = Vec::with_capacity(lines.len());
    let mut i = 0;
    while i < lines.len() {
        let opens = lines[i].trim() == "/*" && i + 2 < lines.len();
        if opens && lines[i + 2].trim() == "*/" {
            let indent = &lines[i][..lines[i].len() - 2];
            out.push(format!("{indent}/* {} */", lines[i + 1].trim()));
            i += 3;
        } else {
            out.push(lines[i].to_owned());
            i += 1;
        }
    }
    out.join("\n") + "\n"
}

fn tag_line(line: &str, tags: &Tags, out: &mut String) {
    let mut rest = line;
    let mut before = String::new();
    while let Some(start) = rest.find(|c: char| c.is_alphabetic() || c == '_') {
        let (gap, tail) = rest.split_at(start);
        let end = tail.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(tail.len());
        let (word, next) = tail.split_at(end);
        out.push_str(gap);
        let tagged = matches!(before.as_str(), "struct" | "enum") || next.starts_with('(');
        if let Some(tag) = tags.of(word).filter(|_| !tagged) {
            out.push_str(tag);
            out.push(' ');
        }
        out.push_str(word);
        before = word.to_owned();
        rest = next;
    }
    out.push_str(rest);
}
