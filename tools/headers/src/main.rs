//! Writes `include/` from the Rust definitions. `ggml-oxide-headers [--check]`, run from anywhere in the repository.
//!
//! cbindgen reads types and entry points; this tool prepares its input, since it does not expand macros (`c_enum!` becomes an
//! `enum`, the functions inside `entry!` become exported functions), and finishes its output (tags on names that another header
//! declares). What cbindgen cannot say, macros and C-variadic functions, is in `tools/headers/text/`.
//! `--check` writes nothing and fails when a committed header is not what would be written.

mod prepare;
mod spec;

use spec::{Header, HEADERS};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut check = false;
    for arg in std::env::args().skip(1) {
        match arg.as_str() {
            "--check" => check = true,
            _ => {
                println!("ggml-oxide-headers [--check]: writes include/ from the Rust definitions, or checks that it is up to date");
                return if arg == "--help" { ExitCode::SUCCESS } else { ExitCode::FAILURE };
            }
        }
    }
    match run(check) {
        Ok(stale) if stale.is_empty() => ExitCode::SUCCESS,
        Ok(stale) => {
            eprintln!("not what the Rust definitions give (run tools/headers without --check): {}", stale.join(", "));
            ExitCode::FAILURE
        }
        Err(e) => {
            eprintln!("ggml-oxide-headers: {e}");
            ExitCode::FAILURE
        }
    }
}

/// Writes or checks every header; answers the names of those that differ when checking.
fn run(check: bool) -> Result<Vec<String>, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut tags = prepare::Tags::default();
    for path in HEADERS.iter().map(|h| sources(&root, h)).collect::<Result<Vec<_>, _>>()?.concat() {
        tags = tags.with(&read(&path)?);
    }
    let mut stale = Vec::new();
    for header in HEADERS {
        let text = generate(&root, header, &tags)?;
        let path = root.join("include").join(header.name);
        if std::fs::read_to_string(&path).is_ok_and(|old| old == text) {
            continue;
        }
        if check {
            stale.push(header.name.to_owned());
        } else {
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
            }
            std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
            println!("wrote include/{}", header.name);
        }
    }
    Ok(stale)
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

/// The header's sources in order; a folder stands for its files by name.
fn sources(root: &Path, header: &Header) -> Result<Vec<PathBuf>, String> {
    let mut out = Vec::new();
    for source in header.sources {
        let path = root.join(source);
        if path.is_dir() {
            let entries = std::fs::read_dir(&path).map_err(|e| format!("{source}: {e}"))?;
            let files: BTreeSet<PathBuf> = entries.flatten().map(|e| e.path()).collect();
            out.extend(files.into_iter().filter(|p| p.extension().is_some_and(|e| e == "rs")));
        } else {
            out.push(path);
        }
    }
    Ok(out)
}

fn generate(root: &Path, header: &Header, tags: &prepare::Tags) -> Result<String, String> {
    let text_file = |part: &str| {
        let path = root.join("tools/headers/text").join(format!("{}.{part}", header.name.replace('/', "-")));
        std::fs::read_to_string(path).unwrap_or_default()
    };
    let scratch = std::env::temp_dir().join(format!(
        "ggml-oxide-headers-{}-{}",
        std::process::id(),
        header.name.replace('/', "-")
    ));
    std::fs::create_dir_all(&scratch).map_err(|e| e.to_string())?;
    let mut config = config(header, text_file("head"));
    let mut builder = cbindgen::Builder::new();
    for (i, path) in sources(root, header)?.iter().enumerate() {
        let text = read(path)?;
        // Without this, cbindgen leaves out what no function of the header mentions.
        config.export.include.extend(prepare::declared_types(&text));
        let prepared = scratch.join(format!("{i}.rs"));
        std::fs::write(&prepared, prepare::source(&text)).map_err(|e| e.to_string())?;
        builder = builder.with_src(prepared);
    }
    let bindings = builder.with_config(config).generate().map_err(|e| format!("{}: {e}", header.name));
    let mut out = Vec::new();
    let written = bindings.map(|b| b.write(&mut out));
    std::fs::remove_dir_all(&scratch).map_err(|e| e.to_string())?;
    written?;
    let text = String::from_utf8(out).map_err(|e| e.to_string())?;
    let guard = header.name.to_uppercase().replace(['-', '.', '/'], "_");
    Ok(format!(
        "/* {} Written by tools/headers from the Rust definitions; do not edit. */\n\n#ifndef {guard}\n#define {guard}\n\n{}{}\n#endif\n",
        header.about,
        prepare::finish(&text, tags),
        text_file("tail"),
    ))
}

fn config(header: &Header, head: String) -> cbindgen::Config {
    cbindgen::Config {
        language: cbindgen::Language::C,
        style: cbindgen::Style::Tag,
        cpp_compat: true,
        no_includes: true,
        includes: header.includes.iter().map(|s| s.to_string()).collect(),
        sys_includes: header.sys_includes.iter().map(|s| s.to_string()).collect(),
        after_includes: Some(head),
        usize_is_size_t: true,
        line_length: 130,
        documentation_style: cbindgen::DocumentationStyle::C,
        export: cbindgen::ExportConfig {
            exclude: header.exclude.iter().map(|s| s.to_string()).collect(),
            ..Default::default()
        },
        ..Default::default()
    }
}
