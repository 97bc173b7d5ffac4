//! Entry points of ggml.h: losses and the steps of optimizers.

use crate::entry;
use crate::tensor::{node, train};
use ggml_oxide_abi::*;

entry! {
    /// Cross entropy of the softmax of each row of the logits `a` with the labels `b`, of one shape, averaged over the rows: one element.
    /// A label of 0 adds nothing, whatever its logit.
    pub fn ggml_cross_entropy_loss(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_cross_entropy_loss", [a, b], [], |[a, b], []| train::cross_entropy_loss(a, b))
    }

    /// Gradient `a`, one element, of `ggml_cross_entropy_loss` back to its logits `b`; `c`: the labels. Right for labels of any sum.
    pub fn ggml_cross_entropy_loss_back(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, c: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_cross_entropy_loss_back", [a, b, c], [], |[a, b, c], []| train::cross_entropy_loss_back(a, b, c))
    }

    /// A step of AdamW over the parameter `a` (`ggml_set_param`); the result is a view of it. `m` and `v` are written over too: with
    /// `adamw_params` f32 { alpha, beta1, beta2, eps, wd, beta1h, beta2h }, m = beta1 m + (1 - beta1) grad,
    /// v = beta2 v + (1 - beta2) grad^2, a = (1 - alpha wd) a - alpha m beta1h / (sqrt(v beta2h) + eps).
    pub fn ggml_opt_step_adamw(ctx: *mut ggml_context, a: *mut ggml_tensor, grad: *mut ggml_tensor, m: *mut ggml_tensor, v: *mut ggml_tensor, adamw_params: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_opt_step_adamw", [a, grad, m, v, adamw_params], [], |[a, grad, m, v, params], []| train::adamw(a, grad, m, v, params))
    }

    /// A step of gradient descent over the parameter `a` (`ggml_set_param`); the result is a view of it. `sgd_params` f32 { alpha, wd }:
    /// a = (1 - alpha wd) a - alpha grad.
    pub fn ggml_opt_step_sgd(ctx: *mut ggml_context, a: *mut ggml_tensor, grad: *mut ggml_tensor, sgd_params: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_opt_step_sgd", [a, grad, sgd_params], [], |[a, grad, params], []| train::sgd(a, grad, params))
    }
}
