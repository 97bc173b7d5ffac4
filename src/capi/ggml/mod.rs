//! Entry points of ggml.h but for those of graphs: one file per family of operators, as the rules of [`crate::tensor`] have them.
//!
//! Every builder answers NULL only for a NULL context; whatever else is wrong with its arguments, it answers a poisoned tensor
//! ([`crate::tensor::poison`]) and records the failure.

mod arithmetic;
mod backward;
pub(crate) mod context;
mod conv;
mod copy;
mod custom;
mod edit;
pub(crate) mod formats;
mod glu;
mod image;
mod matmul;
mod names;
mod norm;
mod print;
mod query;
mod recurrent;
mod reduce;
mod rope;
mod streams;
pub(crate) mod system;
#[cfg(test)]
mod tests;
mod train;
mod unary;
mod view;
mod window;
