//! `GGML_EXT_EXPLAIN`: the file that every plan of a scheduler is explained in.

use super::{dot, json, text, Explanation};
use crate::ext::policy;
use ggml_oxide_abi::*;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// What was written last, and where: programs plan the same graph again and again, and one explanation of it is enough.
static LAST: Mutex<Option<(PathBuf, String)>> = Mutex::new(None);
static WARNED: AtomicBool = AtomicBool::new(false);

/// The file, if the environment names one now. Graphs that the library makes for itself, to check a registration, are not explained.
pub fn wanted() -> Option<PathBuf> {
    if policy::is_replaced() {
        return None;
    }
    std::env::var_os("GGML_EXT_EXPLAIN").filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// Writes the explanation: a name that ends in ".json" gets a line, one that ends in ".dot" becomes this graph, others get text. An
/// explanation that reads like the last one is not repeated. The first failure in the process is a warning in the log; none is more.
pub fn write(path: &Path, explanation: &Explanation) {
    let ends = |with: &str| path.extension().is_some_and(|e| e.eq_ignore_ascii_case(with));
    let (content, replaces) = match () {
        () if ends("json") => (json::render(explanation) + "\n", false),
        () if ends("dot") => (dot::render(explanation), true),
        () => (text::render(explanation) + "\n", false),
    };
    // held while writing, so that explanations of two threads do not mix
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if last.as_ref().is_some_and(|(to, what)| to == path && *what == content) {
        return;
    }
    match put(path, content.as_bytes(), replaces) {
        Ok(()) => *last = Some((path.to_owned(), content)),
        Err(why) => {
            // the log's callback may come back with another plan
            drop(last);
            if !WARNED.swap(true, Ordering::Relaxed) {
                let text = format!("GGML_EXT_EXPLAIN: '{}' cannot be written: {why}", path.display());
                crate::log::line(GGML_LOG_LEVEL_WARN, &text);
            }
        }
    }
}

fn put(path: &Path, content: &[u8], replaces: bool) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.create(true);
    if replaces {
        options.write(true).truncate(true);
    } else {
        options.append(true);
    }
    options.open(path)?.write_all(content)
}
