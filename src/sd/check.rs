//! Rules that several operators share.

use super::operator::Check;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

/// `what` has this format.
pub fn format(t: &ggml_tensor, ty: ggml_type, what: &str) -> Check {
    match t.r#type == ty {
        true => Ok(()),
        false => Err(format!("{what} must be {}, it is {}", type_name(ty), type_name(t.r#type))),
    }
}

/// `what` has this format, and its elements lie side by side.
pub fn contiguous(t: &ggml_tensor, ty: ggml_type, what: &str) -> Check {
    format(t, ty, what)?;
    match shape::is_contiguous(t) {
        true => Ok(()),
        false => Err(format!("{what} must be contiguous")),
    }
}

fn type_name(ty: ggml_type) -> String {
    shape::format_of(ty).map_or_else(|| format!("format {}", ty.0), |f| f.name().to_uppercase())
}

/// `what` is a contiguous F32 tensor of `n` elements.
pub fn numbers(t: &ggml_tensor, n: i64, what: &str) -> Check {
    contiguous(t, GGML_TYPE_F32, what)?;
    match shape::nelements(t) {
        have if have == n => Ok(()),
        have => Err(format!("{what} must have {n} elements, it has {have}")),
    }
}

/// Rows of `k` elements can be rotated in groups of `group`: a power of 4 that divides `k`.
pub fn group(group: i32, k: i64) -> Check {
    if group <= 0 || !(group as u32).is_power_of_two() || !group.trailing_zeros().is_multiple_of(2) {
        return Err(format!("the group size is {group}, it must be a power of 4"));
    }
    match k % i64::from(group) {
        0 => Ok(()),
        _ => Err(format!("the group size {group} must divide the {k} elements of a row")),
    }
}

/// Largest group that the CPU rotates.
pub const MAX_CPU_GROUP: i32 = 256;

/// The CPU can rotate groups of this size.
pub fn cpu_group(group: i32) -> Check {
    match group <= MAX_CPU_GROUP {
        true => Ok(()),
        false => Err(format!("groups of {group}: the CPU rotates at most {MAX_CPU_GROUP}")),
    }
}
