//! Every operator against its reference: one module per family.
#![allow(clippy::unwrap_used)]

mod agreement;
mod arithmetic;
mod attention;
mod backward;
mod common;
mod conv;
mod copy;
mod functions;
mod gated;
mod gather_back;
mod gradient;
mod gradients;
mod image;
mod matmul;
mod norm;
mod products_back;
mod recurrent;
mod reduce;
mod rope;
mod rows;
mod shape;
mod small_formats;
mod softmax;
mod solve;
mod streams;
mod terms;
mod train;
mod transposed;
mod unary;
mod windows;
