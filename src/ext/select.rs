//! Who computes a node: native code, a registered kernel, or nobody.

use super::callback::{self, Question};
use super::policy::{self, Policy};
use super::registry::{self, count, DeviceTable, Kernel};
use super::{op, step};
use crate::backend::Device;
use crate::error::{self, Error};
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::sync::Arc;

/// Who computes a node.
pub enum Choice {
    /// The device's own code, or nothing is to be computed.
    Native,
    /// A registration.
    Kernel(Arc<Kernel>),
    /// The device cannot, and no registration can.
    Nobody,
}

/// A registration that could have been used and is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// Its name.
    pub name: String,
    /// For how many nodes from this one on: 1 for a kernel, what `match` answered for a rule (0: it refused itself, with a reason).
    pub nodes: usize,
    /// Why not.
    pub reason: String,
}

/// Whether the device's own code computes `node`.
pub fn supports_native(device: Device, node: &ggml_tensor) -> bool {
    !op::is_extension(node) && device.supports_op(node)
}

/// Whether `device` computes `node`, by its own code or by a registered kernel.
pub fn supports_op(device: Device, node: &ggml_tensor) -> bool {
    if !registry::any_kernel() {
        return if registry::any_op() { supports_native(device, node) } else { device.supports_op(node) };
    }
    let table = registry::table(device);
    let kernels = table.as_deref().map_or(&[][..], |t| t.for_node(node));
    if kernels.is_empty() {
        return supports_native(device, node);
    }
    let Some(_asking) = callback::ask(question(device, node)) else {
        let text = format!(
            "a callback asked whether device '{}' supports {} while that was being asked",
            device.name(),
            op::op_name(node)
        );
        error::report(&Error::new(GGML_EXT_CODE_RE_ENTERED, text).at(node));
        return false;
    };
    if supports_native(device, node) {
        return true;
    }
    if !node.view_src.is_null() {
        return false;
    }
    // nothing is computed, so nobody need be asked
    if op::is_extension(node) && shape::is_empty(node) {
        return true;
    }
    let policy = policy::last();
    kernels.iter().filter(|k| !policy.forbids(&k.name)).any(|k| supports(k, device, node))
}

fn question(device: Device, node: &ggml_tensor) -> Question {
    (device, node.op, op::record(node).map_or(0, |op| op.address()))
}

fn supports(kernel: &Kernel, device: Device, node: &ggml_tensor) -> bool {
    let nodes = [std::ptr::from_ref(node).cast_mut()];
    let srcs = step::Srcs::of_node(node);
    // SAFETY: the node and its sources are live; the callback takes a step and its own data.
    callback::call(|| unsafe {
        let step = step::describe(device, &nodes, srcs.as_slice());
        kernel.calls.supports.is_some_and(|f| f(&step, kernel.data()))
    })
}

fn preferred(kernel: &Kernel, device: Device, node: &ggml_tensor) -> bool {
    let Some(f) = kernel.calls.preferred else { return true };
    let nodes = [std::ptr::from_ref(node).cast_mut()];
    let srcs = step::Srcs::of_node(node);
    // SAFETY: as `supports`.
    callback::call(|| unsafe { f(&step::describe(device, &nodes, srcs.as_slice()), kernel.data()) })
}

/// Why registrations of `device` do not take the node, for the text of an error: one clause for each that is for such nodes.
pub fn why_not(device: Device, node: &ggml_tensor) -> String {
    let mut text = String::new();
    if let Some(table) = registry::table(device) {
        let clause = |t: Tried| text.push_str(&format!("; '{}' on device '{}': {}", t.name, device.name(), t.reason));
        choose(&table, device, node, &policy::last(), clause);
    }
    text
}

/// The registration that `GGML_EXT_FORCE` gives the node to, whatever rules match there.
pub fn forced<'a>(table: &'a DeviceTable, device: Device, node: &ggml_tensor, policy: &Policy) -> Option<&'a Kernel> {
    let idle = node.flags & GGML_TENSOR_FLAG_COMPUTE.0 == 0 || shape::is_empty(node) && op::is_extension(node);
    if policy.forces_none() || idle || !node.view_src.is_null() {
        return None;
    }
    let _asking = callback::ask(question(device, node))?;
    let takes = |k: &&Arc<Kernel>| policy.forces(&k.name) && !policy.forbids(&k.name) && supports(k, device, node);
    table.for_node(node).iter().find(takes).map(|k| &**k)
}

/// Who computes `node` on `device`. `tried` is told of every registration that was asked in vain.
pub fn choose(
    table: &DeviceTable,
    device: Device,
    node: &ggml_tensor,
    policy: &Policy,
    mut tried: impl FnMut(Tried),
) -> Choice {
    let native_or_nobody = || if supports_native(device, node) { Choice::Native } else { Choice::Nobody };
    let kernels = table.for_node(node);
    if kernels.is_empty() {
        // native code says itself, when it runs, what it cannot do
        return if op::is_extension(node) { Choice::Nobody } else { Choice::Native };
    }
    if shape::is_empty(node) && op::is_extension(node) {
        return Choice::Native;
    }
    let mut skip = |kernel: &Kernel, reason: String| tried(Tried { name: kernel.name.clone(), nodes: 1, reason });
    if !node.view_src.is_null() {
        let reason = "the node writes into given storage, such nodes are never intercepted";
        kernels.iter().for_each(|kernel| skip(kernel, reason.into()));
        return native_or_nobody();
    }
    let Some(_asking) = callback::ask(question(device, node)) else { return Choice::Native };
    let forbidden = |k: &&Arc<Kernel>| policy.forbids(&k.name);
    kernels.iter().filter(forbidden).for_each(|kernel| skip(kernel, "GGML_EXT_FORBID names it".into()));
    let mut native = None;
    let mut native = || *native.get_or_insert_with(|| supports_native(device, node));
    let mut refuse = |kernel: &Kernel, reason: String| {
        count(&kernel.counts.refused);
        skip(kernel, reason);
    };
    let forces = |k: &Kernel| !policy.forces_none() && policy.forces(&k.name);
    let in_order = [true, false].into_iter().flat_map(|first| kernels.iter().filter(move |k| forces(k) == first));
    for kernel in in_order.filter(|k| !forbidden(k)) {
        if !supports(kernel, device, node) {
            refuse(kernel, callback::reason("it does not support the node"));
        } else if !forces(kernel) && native() && !preferred(kernel, device, node) {
            refuse(kernel, callback::reason("it does not prefer itself to the device's own code"));
        } else {
            return Choice::Kernel(kernel.clone());
        }
    }
    if native() {
        Choice::Native
    } else {
        Choice::Nobody
    }
}
