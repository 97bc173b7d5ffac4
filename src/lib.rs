//! ggml, the tensor library, with the C interface of ggml 0.26.
//!
//! Layers, lowest first; each imports only from those above it in this list:
//! [`error`] (what failed, per thread) <- [`tensor`] (contexts, shapes, builders) <- [`graph`] <- [`alloc`] (planner and
//! allocators) <- [`backend`] (devices, buffers, registry) <- [`ext`] (kernels and fusion rules of applications) <- [`sched`] <- [`check`]
//! (the validator of registrations) <- [`capi`] (the entry points, one module per header) <- [`sd`] (stable-diffusion.cpp's operators,
//! which are made of entry points).
//! Kernels, formats and the gguf parser are crates of their own under `crates/`.

pub mod alloc;
pub mod backend;
pub mod capi;
pub mod check;
pub mod error;
pub mod ext;
pub mod gguf;
pub mod graph;
pub mod log;
pub mod opt;
pub mod sched;
pub mod sd;
pub mod tensor;
