//! The operators of stable-diffusion.cpp (`ggml-sd.h`): int8 and 4-bit linear layers with rotated activations, rotation by a table of
//! matrices, modulation. They are what an application could add itself, and use nothing that it could not: custom nodes and kernels of
//! `ggml-ext.h` ([`api`] lists the calls), registered on request alone ([`register`]). Nothing else in the library knows them.
//!
//! One file per operator has its schema and its rules, shared by all devices: what [`operator::Operator::infer`] refuses cannot be
//! built. [`cpu`] has the kernels of the CPU. [`entry`] is the C interface. Imports: [`crate::capi`] through [`api`],
//! [`crate::error`], the shapes' crate.

mod api;
pub mod attention;
mod check;
pub mod convrot;
pub mod cpu;
pub mod entry;
mod fusion;
mod kernel;
pub mod linear_i8;
pub mod linear_w4;
pub mod modulate;
mod operator;
mod register;
pub mod rope_apply;
