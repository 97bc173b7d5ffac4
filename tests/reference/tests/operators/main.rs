//! Every operator against its reference: one module per family.
#![allow(clippy::unwrap_used)]

mod arithmetic;
mod common;
