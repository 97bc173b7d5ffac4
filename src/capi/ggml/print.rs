//! Entry points of ggml.h: contexts and graphs as text.

use crate::capi::graph::{or_report, some};
use crate::entry;
use crate::error::Error;
use crate::graph::dot;
use crate::tensor::{Context, Described};
use ggml_oxide_abi::*;
use std::ffi::{c_char, CStr};

fn line(object: Described) {
    let Described { at, kind, offset, size } = object;
    crate::log::line(GGML_LOG_LEVEL_INFO, &format!(" - object {at:p}: {kind}, offset {offset}, {size} bytes"));
}

entry! {
    /// Logs what an object of a context is: kind, place and size. NULL logs nothing.
    pub fn ggml_print_object(obj: *const ggml_object) {
        if let Some(object) = Context::describe(obj) {
            line(object);
        }
    }
    /// Logs all objects of a context.
    pub fn ggml_print_objects(ctx: *const ggml_context) {
        if let Some(context) = Context::from_ptr(ctx.cast_mut()) {
            crate::log::line(GGML_LOG_LEVEL_INFO, &format!("objects in context {ctx:p}:"));
            context.objects().into_iter().for_each(line);
            crate::log::line(GGML_LOG_LEVEL_INFO, "end of the objects");
        }
    }
    /// Writes a graph to a file in Graphviz's language. `gb`: NULL, or a graph whose tensors are drawn in bold.
    pub fn ggml_graph_dump_dot(gb: *const ggml_cgraph, cgraph: *const ggml_cgraph, filename: *const c_char) {
        or_report("ggml_graph_dump_dot", some(cgraph).and_then(|graph| {
            if filename.is_null() {
                return Err(Error::null("filename"));
            }
            let text = dot::text(graph, gb.as_ref())?;
            let path = CStr::from_ptr(filename).to_string_lossy().into_owned();
            std::fs::write(&path, text).map_err(|e| Error::argument(format!("{path}: {e}")))
        }))
    }
}
