//! Scratch memory of plans: one buffer, kept and grown.

use super::plan::Plan;
use crate::backend::{Buffer, Buft};
use crate::error::Error;
use ggml_oxide_abi::*;

/// A buffer of scratch memory.
#[derive(Default)]
pub struct Workspace {
    buffer: Option<Buffer>,
}

impl Workspace {
    /// Makes it large enough for `plan`, in memory of kind `buft`.
    pub fn reserve(&mut self, plan: &Plan, buft: Buft) -> Result<(), Error> {
        if plan.workspace <= self.size() {
            return Ok(());
        }
        self.free();
        match buft.alloc(plan.workspace) {
            Some(buffer) => {
                buffer.set_usage(GGML_BACKEND_BUFFER_USAGE_COMPUTE);
                self.buffer = Some(buffer);
                Ok(())
            }
            None => {
                let (name, bytes) = (&plan.workspace_for, plan.workspace);
                let text = format!("no memory for the {bytes} bytes of workspace that registration '{name}' asks for");
                Err(Error::memory(text).by(name))
            }
        }
    }

    /// Bytes.
    pub fn size(&self) -> usize {
        self.buffer.map_or(0, Buffer::size)
    }

    /// The buffer, if there is one.
    pub fn buffer(&self) -> Option<Buffer> {
        self.buffer
    }

    fn free(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            // SAFETY: the buffer is the workspace's own; plans get it for each execution and keep it no longer.
            unsafe { buffer.free() }
        }
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        self.free();
    }
}
