//! Which sources make which header.

/// One header of `include/`.
pub struct Header {
    pub name: &'static str,
    pub about: &'static str,
    /// Files and folders, from the root of the repository.
    pub sources: &'static [&'static str],
    pub includes: &'static [&'static str],
    pub sys_includes: &'static [&'static str],
    /// Items that `text/` declares in their place.
    pub exclude: &'static [&'static str],
}

const NONE: &[&str] = &[];

pub const HEADERS: &[Header] = &[
    Header {
        name: "ggml.h",
        about: "Tensors, contexts, operators and graphs.",
        sources: &[
            "crates/abi/src/consts.rs",
            "crates/abi/src/enums.rs",
            "crates/abi/src/tensor.rs",
            "src/capi/ggml",
            "src/capi/graph.rs",
        ],
        includes: NONE,
        sys_includes: &["stdbool.h", "stddef.h", "stdint.h", "stdio.h"],
        exclude: &["GGML_MAX_NAME", "ggml_bf16_t"],
    },
    Header {
        name: "ggml-alloc.h",
        about: "Allocators of tensors and graphs.",
        sources: &["crates/abi/src/alloc.rs", "src/capi/alloc.rs"],
        includes: &["ggml.h"],
        sys_includes: NONE,
        exclude: NONE,
    },
    Header {
        name: "ggml-backend.h",
        about: "Devices, buffers, backends and the scheduler.",
        sources: &[
            "crates/abi/src/backend_enums.rs",
            "crates/abi/src/backend.rs",
            "src/capi/backend.rs",
            "src/capi/graph_plan.rs",
            "src/capi/device.rs",
            "crates/abi/src/sched.rs",
            "src/capi/sched.rs",
            "crates/abi/src/meta.rs",
            "src/capi/meta.rs",
        ],
        includes: &["ggml.h", "ggml-alloc.h"],
        sys_includes: NONE,
        exclude: NONE,
    },
    Header {
        name: "ggml-cpu.h",
        about: "The CPU backend, and graphs computed without a backend.",
        sources: &[
            "crates/abi/src/cpu_enums.rs",
            "crates/abi/src/cpu.rs",
            "src/capi/cpu.rs",
            "src/capi/cpu_formats.rs",
            "src/capi/ggml_cpu_values.rs",
        ],
        includes: &["ggml.h", "ggml-backend.h"],
        sys_includes: NONE,
        exclude: NONE,
    },
    Header {
        name: "gguf.h",
        about: "Files of the gguf format.",
        sources: &["crates/abi/src/gguf_enums.rs", "crates/abi/src/gguf.rs", "src/capi/gguf.rs"],
        includes: &["ggml.h"],
        sys_includes: NONE,
        exclude: NONE,
    },
    Header {
        name: "ggml-opt.h",
        about: "Training: datasets, gradients, optimizers, results.",
        sources: &["crates/abi/src/opt_enums.rs", "crates/abi/src/opt.rs", "src/capi/opt.rs"],
        includes: &["ggml.h", "ggml-backend.h"],
        sys_includes: NONE,
        exclude: NONE,
    },
    Header {
        name: "ggml-ext.h",
        about: "Operators, kernels and fusion rules of the application's own; errors as text.",
        sources: &["crates/abi/src/ext.rs", "src/capi/ext.rs", "src/capi/ext_cpu.rs", "src/capi/ext_explain.rs", "src/capi/ext_check.rs"],
        includes: &["ggml.h", "ggml-backend.h"],
        sys_includes: NONE,
        exclude: NONE,
    },
    Header {
        name: "ggml-graph.h",
        about: "What a program needs of a graph's inside: leafs, consumer counts, copies over other tensors, segments, ranges.",
        sources: &["src/capi/graph_public.rs"],
        includes: &["ggml.h", "ggml-backend.h"],
        sys_includes: NONE,
        exclude: NONE,
    },
    Header {
        name: "ggml-sd.h",
        about: "stable-diffusion.cpp's operators: custom nodes of ggml-ext.h, registered on request.",
        sources: &["crates/abi/src/sd.rs", "src/sd/entry.rs"],
        includes: &["ggml.h"],
        sys_includes: NONE,
        exclude: NONE,
    },
    Header {
        name: "ggml/src/ggml-impl.h",
        about: "The layout of a graph, for programs that build graphs of their own; what backend modules call.",
        sources: &["crates/abi/src/graph.rs", "src/capi/graph_impl.rs", "src/capi/module_support.rs"],
        includes: &["ggml.h", "gguf.h"],
        sys_includes: NONE,
        exclude: NONE,
    },
    Header {
        name: "ggml/src/ggml-quants.h",
        about: "Encoders by the names that ggml's own CPU module imports; no public interface.",
        sources: &["src/capi/quants.rs"],
        includes: &["ggml.h"],
        sys_includes: NONE,
        exclude: NONE,
    },
    Header {
        name: "ggml-threading.h",
        about: "One lock for the process, which backend modules take while they fill in tables.",
        sources: &["src/capi/threading.rs"],
        includes: &["ggml.h"],
        sys_includes: NONE,
        exclude: NONE,
    },
    Header {
        name: "ggml-backend-impl.h",
        about: "The tables of functions that a backend module fills in.",
        sources: &["crates/abi/src/backend_impl.rs", "src/capi/backend_impl.rs", "src/capi/meta_impl.rs"],
        includes: &["ggml-backend.h"],
        sys_includes: NONE,
        exclude: NONE,
    },
];
