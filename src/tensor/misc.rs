//! Shape rules of what fits nowhere else: sequences, embeddings, operators of the caller's.

use super::spec::{require, NodeSpec};
use crate::error::Error;
use ggml_oxide_abi::*;

/// ARANGE: f32, `start`, `start + step` ... below `stop`.
pub fn arange(start: f32, stop: f32, step: f32) -> Result<NodeSpec, Error> {
    require!(stop > start, "stop {stop} must be above start {start}");
    require!(step > 0.0, "step {step} must be positive");
    let steps = ((stop - start) / step).ceil();
    require!(steps.is_finite(), "there are too many steps of {step} from {start} to {stop}");
    Ok(NodeSpec::new(GGML_OP_ARANGE, GGML_TYPE_F32, [steps as i64, 1, 1, 1])
        .param_f32(0, start)
        .param_f32(1, stop)
        .param_f32(2, step))
}

/// TIMESTEP_EMBEDDING: f32 [dim, n] for `timesteps` [n].
pub fn timestep_embedding(timesteps: &ggml_tensor, dim: i32, max_period: i32) -> Result<NodeSpec, Error> {
    Ok(NodeSpec::new(GGML_OP_TIMESTEP_EMBEDDING, GGML_TYPE_F32, [dim.into(), timesteps.ne[0], 1, 1])
        .params([dim, max_period]))
}

/// A function of the caller's, as `op_params` hold it.
#[derive(Clone, Copy, Debug)]
pub struct Custom {
    /// Address of the function.
    pub function: usize,
    /// Threads that share it, or [`N_TASKS_MAX`].
    pub n_tasks: i32,
    /// Handed to the function.
    pub user_data: usize,
}

/// As many threads as there are.
pub const N_TASKS_MAX: i32 = -1;

impl Custom {
    /// Puts the function into `spec`, laid out as the C structure { function, int, pointer }.
    pub fn into_spec(self, spec: NodeSpec) -> Result<NodeSpec, Error> {
        let Custom { function, n_tasks, user_data } = self;
        require!(function != 0, "the function is NULL");
        require!(n_tasks == N_TASKS_MAX || n_tasks > 0, "{n_tasks} tasks: there must be at least one, or -1");
        let slots = size_of::<usize>() / 4;
        let mut spec = spec;
        let mut put = |i: usize, value: usize| {
            if slots == 2 {
                spec = spec.clone().param_usize(i, value);
            } else {
                spec.params[i] = value as i32;
            }
        };
        put(0, function);
        put(2 * slots, user_data);
        spec.params[slots] = n_tasks;
        Ok(spec)
    }
}
