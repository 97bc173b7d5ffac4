//! The CPU backend's kernels: a pool of threads, an executor of graphs, one module per family of operators.
//!
//! - [`pool`]: the threads; [`barrier`]: how they meet; [`team`]: what a kernel sees of them.
//! - [`node`]: a node's metadata and memory as kernels read them.
//! - [`table`]: one table that answers "can it run" and says what runs, so that the two cannot differ.
//! - [`exec`]: checks a graph, plans its steps, runs them.
//! - `ops`: element-wise, copies, normalisation and the like; `matmul`: matrix multiplication; `conv`: convolutions and
//!   pooling, and the fusion of the im2col chains; `custom`: functions of the caller's.
//!
//! Imports: abi, shape, types and gemm of this project; nothing here knows of buffers, backends or the scheduler. Memory is
//! touched through the addresses in the tensors, which the caller vouches for.

pub mod barrier;
mod conv;
pub mod custom;
pub mod exec;
mod matmul;
pub mod node;
pub mod ops;
pub mod pool;
pub mod scratch;
pub mod table;
pub mod team;

pub use exec::{work_size, Executor, GraphRef, Stop};
pub use pool::Pool;
pub use table::{refusal, supports_op};
