//! graph
mod access;
pub use access::*;
