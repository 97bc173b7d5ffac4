//! Every operator against its reference: one module per family.
#![allow(clippy::unwrap_used)]

mod arithmetic;
mod common;
mod copy;
mod functions;
mod gated;
mod norm;
mod reduce;
mod rows;
mod shape;
mod unary;
