//! Every operator against its reference: one module per family.
#![allow(clippy::unwrap_used)]

mod agreement;
mod arithmetic;
mod attention;
mod common;
mod conv;
mod copy;
mod functions;
mod gated;
mod image;
mod matmul;
mod norm;
mod reduce;
mod rope;
mod rows;
mod shape;
mod softmax;
mod transposed;
mod unary;
