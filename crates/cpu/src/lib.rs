//! The CPU backend's kernels: a pool of threads, an executor of graphs, one module per family of operators.
//!
//! - [`pool`]: the threads; [`barrier`]: how they meet; [`team`]: what a kernel sees of them.
//! - [`node`]: a node's metadata and memory as kernels read them.
//! - [`entry`]: what a family says of one operator; [`table`]: one table that answers "can it run" and says what runs, so that the
//!   two cannot differ.
//! - [`exec`]: checks a graph, plans its steps (`plan`), runs them (`run`), with calls of the caller's between them; [`lead`]: how
//!   a call shares its work over the run's threads.
//! - `ops`: element-wise, copies, normalisation and the like; `matmul`: matrix multiplication; `conv`: convolutions and
//!   pooling, and the fusion of the im2col chains; `custom`: functions of the caller's.
//!
//! Imports: abi, shape, types and gemm of this project; nothing here knows of buffers, backends or the scheduler. Memory is
//! touched through the addresses in the tensors, which the caller vouches for.

pub mod barrier;
mod conv;
pub mod custom;
pub mod entry;
pub mod exec;
pub mod lead;
mod matmul;
pub mod node;
pub mod ops;
mod plan;
pub mod pool;
mod run;
pub mod scratch;
pub mod table;
pub mod team;

pub use exec::{work_size, Call, Calls, Executor, GraphRef, Stop};
pub use pool::Pool;
pub use table::{refusal, supports_op};
