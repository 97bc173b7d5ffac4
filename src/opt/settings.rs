//! Settings of the optimizers.

use crate::error::Error;
use ggml_oxide_abi::*;

/// Where nothing else is asked for.
pub const DEFAULT: ggml_opt_optimizer_params = ggml_opt_optimizer_params {
    adamw: ggml_opt_adamw_params { alpha: 1e-3, beta1: 0.9, beta2: 0.999, eps: 1e-8, wd: 0.0 },
    sgd: ggml_opt_sgd_params { alpha: 1e-3, wd: 0.0 },
};

/// The optimizer, or that there is none of that number.
pub fn known(optimizer: ggml_opt_optimizer_type) -> Result<ggml_opt_optimizer_type, Error> {
    match optimizer {
        GGML_OPT_OPTIMIZER_TYPE_ADAMW | GGML_OPT_OPTIMIZER_TYPE_SGD => Ok(optimizer),
        other => Err(Error::argument(format!("there is no optimizer {}", other.0))),
    }
}

/// Numbers that the optimizer's operator is given.
pub fn n_numbers(optimizer: ggml_opt_optimizer_type) -> usize {
    if optimizer == GGML_OPT_OPTIMIZER_TYPE_ADAMW {
        7
    } else {
        2
    }
}

/// The name that tensors of the optimizer bear.
pub fn name(optimizer: ggml_opt_optimizer_type) -> &'static std::ffi::CStr {
    match optimizer {
        GGML_OPT_OPTIMIZER_TYPE_ADAMW => c"adamw",
        GGML_OPT_OPTIMIZER_TYPE_SGD => c"sgd",
        _ => c"undefined",
    }
}

fn positive(what: &str, x: f32) -> Result<(), Error> {
    match x > 0.0 && x.is_finite() {
        true => Ok(()),
        false => Err(Error::argument(format!("{what} {x} must be above 0"))),
    }
}

fn share(what: &str, x: f32) -> Result<(), Error> {
    match (0.0..=1.0).contains(&x) {
        true => Ok(()),
        false => Err(Error::argument(format!("{what} {x} must be 0 to 1"))),
    }
}

/// What the operator of `optimizer` is given for step `iter`, which counts from 1, or what is wrong with the settings.
pub fn numbers(
    optimizer: ggml_opt_optimizer_type,
    p: &ggml_opt_optimizer_params,
    iter: i64,
) -> Result<Vec<f32>, Error> {
    if optimizer == GGML_OPT_OPTIMIZER_TYPE_SGD {
        positive("sgd.alpha", p.sgd.alpha)?;
        share("sgd.wd", p.sgd.wd)?;
        return Ok(vec![p.sgd.alpha, p.sgd.wd]);
    }
    let ggml_opt_adamw_params { alpha, beta1, beta2, eps, wd } = p.adamw;
    positive("adamw.alpha", alpha)?;
    share("adamw.beta1", beta1)?;
    share("adamw.beta2", beta2)?;
    share("adamw.wd", wd)?;
    // NaN neither
    if eps.is_nan() || eps < 0.0 {
        return Err(Error::argument(format!("adamw.eps {eps} must not be negative")));
    }
    // moments start at 0 and are too small at first
    let early = |beta: f32| 1.0 / (1.0 - beta.powf(iter as f32));
    Ok(vec![alpha, beta1, beta2, eps, wd, early(beta1), early(beta2)])
}
