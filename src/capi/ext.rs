//! Entry points of ggml-ext.h.

use super::graph::or_report;
use crate::backend::Device;
use crate::entry;
use crate::error::Error;
use crate::ext::registry::{self, Target, What};
use crate::ext::{callback, op, policy, profile, scope, select, structs};
use crate::tensor::Context;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::ffi::{c_char, c_int, c_void, CStr};
use std::sync::atomic::Ordering;

unsafe fn device(device: ggml_backend_dev_t) -> Result<Device, Error> {
    // SAFETY: the contract of the entry points.
    unsafe { Device::from_raw(device) }.ok_or_else(|| Error::null("device"))
}

unsafe fn name<'a>(name: *const c_char) -> Result<&'a str, Error> {
    if name.is_null() {
        return Err(Error::null("name"));
    }
    // SAFETY: the contract of the entry points.
    unsafe { CStr::from_ptr(name) }.to_str().map_err(|_| Error::argument("the name is not text"))
}

unsafe fn register(device: ggml_backend_dev_t, desc: *const ggml_ext_kernel_desc, flags: u32) -> Result<bool, Error> {
    callback::outside_only()?;
    // SAFETY: the contract of the entry points.
    unsafe {
        let device = self::device(device)?;
        let desc = structs::read(desc)?;
        let name = op::checked_name(desc.name)?;
        let wrong = |text: String| Err(Error::argument(format!("registration '{name}': {text}")).by(&name));
        let known = GGML_EXT_KERNEL_CAPTURE_SAFE | GGML_EXT_KERNEL_REPLAY_REUSABLE | GGML_EXT_KERNEL_DETERMINISTIC;
        if flags & !known != 0 {
            return wrong(format!("flags {flags:#x}: this library knows {known:#x}"));
        }
        if flags & GGML_EXT_KERNEL_REPLAY_REUSABLE != 0 && flags & GGML_EXT_KERNEL_CAPTURE_SAFE == 0 {
            return wrong("GGML_EXT_KERNEL_REPLAY_REUSABLE needs GGML_EXT_KERNEL_CAPTURE_SAFE".into());
        }
        let target = target(&desc, &name)?;
        let null = |what: &str| Err(Error::null(&format!("callback '{what}' of registration '{name}'")).by(&name));
        if target == Target::Nothing && desc.r#match.is_none() {
            return wrong("it is for no operator and matches nothing".into());
        }
        if target != Target::Nothing && desc.supports.is_none() {
            return null("supports");
        }
        if desc.execute.is_none() {
            return null("execute");
        }
        if desc.match_op.0 < 0 || desc.match_op >= GGML_OP_COUNT {
            return wrong(format!("match_op {} is no operator", desc.match_op.0));
        }
        if desc.r#match.is_none() && (desc.optimize.is_some() || desc.match_op != GGML_OP_NONE) {
            return wrong("optimize and match_op go with match".into());
        }
        policy::refresh();
        registry::add(name, device, target, desc, flags).map(|()| true)
    }
}

/// Which single nodes `desc` is for.
unsafe fn target(desc: &ggml_ext_kernel_desc, name: &str) -> Result<Target, Error> {
    let wrong = |text: String| Err(Error::argument(format!("registration '{name}': {text}")).by(name));
    match desc.op {
        GGML_OP_CUSTOM if desc.op_name.is_null() => {
            Err(Error::null(&format!("op_name of registration '{name}'")).by(name))
        }
        // SAFETY: the contract of the entry points.
        GGML_OP_CUSTOM => Ok(Target::Registered(registry::op(unsafe { self::name(desc.op_name) }?)?)),
        _ if !desc.op_name.is_null() => wrong("op_name goes with GGML_OP_CUSTOM".into()),
        GGML_OP_NONE => Ok(Target::Nothing),
        op if op.0 < 0 || op >= GGML_OP_COUNT => wrong(format!("there is no operator {}", op.0)),
        op if ggml_oxide_cpu::table::is_view_op(op) => wrong("views compute nothing and are never intercepted".into()),
        op => Ok(Target::Builtin(op)),
    }
}

unsafe fn create(
    ctx: *mut ggml_context,
    op_name: *const c_char,
    src: *const *mut ggml_tensor,
    n_src: c_int,
    attrs: *const c_void,
    attr_size: usize,
) -> Result<*mut ggml_tensor, Error> {
    // SAFETY: the contract of the entry points.
    unsafe {
        let op = registry::op(name(op_name)?)?;
        let null = |what: &str| Error::null(&format!("{what} of {}", op.name())).by(op.name());
        let ctx = Context::from_ptr(ctx).ok_or_else(|| null("context for a node"))?;
        let n = usize::try_from(n_src)
            .map_err(|_| Error::argument(format!("{}: there are {n_src} sources", op.name())).by(op.name()))?;
        if n > 0 && src.is_null() || attr_size > 0 && attrs.is_null() {
            return Err(null(if attr_size > 0 && attrs.is_null() { "attributes" } else { "list of sources" }));
        }
        let src = if n == 0 { &[] } else { std::slice::from_raw_parts(src, n) };
        let attrs = if attr_size == 0 { &[] } else { std::slice::from_raw_parts(attrs.cast::<u8>(), attr_size) };
        op::create(ctx, op, src, attrs)
    }
}

entry! {
    /// Version of the interface that the library implements: `GGML_EXT_API_VERSION` of its header.
    pub fn ggml_ext_api_version() -> u32 {
        GGML_EXT_API_VERSION
    }

    /// What the library has: `GGML_EXT_FEATURE_` bits.
    pub fn ggml_ext_features() -> u64 {
        GGML_EXT_FEATURE_FUSION
            | GGML_EXT_FEATURE_SKIP_ALLOC
            | GGML_EXT_FEATURE_EXPLAIN
            | GGML_EXT_FEATURE_CHECK
            | GGML_EXT_FEATURE_SCOPES
            | GGML_EXT_FEATURE_COUNTERS
    }

    /// The last failure on the calling thread. `out->struct_size` is set by the caller; false: nothing failed yet, or `out` is NULL.
    /// The texts are valid until the next failing call on this thread.
    pub fn ggml_ext_last_error(out: *mut ggml_ext_error) -> bool {
        crate::error::with_last(|last| {
            let value = ggml_ext_error {
                struct_size: 0,
                code: last.code.0,
                text: last.text.as_ptr(),
                registration: last.registration.as_ref().map_or(std::ptr::null(), |r| r.as_ptr()),
                node: last.node,
            };
            structs::write(out, &value)
        })
        .unwrap_or(false)
    }

    /// Says why the callback that is running refuses or fails; `text` is copied and goes into error texts and explained plans. Always
    /// false, so that a callback can `return ggml_ext_refuse("...")`.
    pub fn ggml_ext_refuse(text: *const c_char) -> bool {
        if !text.is_null() {
            callback::refuse(&CStr::from_ptr(text).to_string_lossy());
        }
        false
    }

    /// Registers an operator in the process. False, with an error: the name is taken or not of the form `vendor.op.v1`, there are too many
    /// bytes of attributes, or `infer` is NULL. Not from a callback.
    pub fn ggml_ext_register_op(desc: *const ggml_ext_op_desc) -> bool {
        or_report("ggml_ext_register_op", callback::outside_only()
            .and_then(|()| structs::read(desc))
            .and_then(|desc| op::Op::new(desc))
            .and_then(registry::add_op)
            .map(|()| true))
    }

    /// A node of a registered operator: an ordinary tensor with `n_src` sources, at most `GGML_MAX_SRC`, none of them NULL. The attributes
    /// are copied; `attr_size` must be what the operator was registered with. NULL, with an error, when there is no such operator, a
    /// source could not be built, `infer` refuses, or the context is full.
    pub fn ggml_ext_op_create(
        ctx: *mut ggml_context,
        name: *const c_char,
        src: *const *mut ggml_tensor,
        n_src: c_int,
        attrs: *const c_void,
        attr_size: usize,
    ) -> *mut ggml_tensor {
        or_report("ggml_ext_op_create", create(ctx, name, src, n_src, attrs, attr_size))
    }

    /// The name of the registered operator that `node` is of; NULL for other nodes.
    pub fn ggml_ext_op_name(node: *const ggml_tensor) -> *const c_char {
        node.as_ref().and_then(op::record).map_or(std::ptr::null(), |op| op.name_c().as_ptr())
    }

    /// Copies the attributes of a node of a registered operator to `dst`. False, with an error: it is no such node, or `size` is not the
    /// operator's.
    pub fn ggml_ext_op_attrs(node: *const ggml_tensor, dst: *mut c_void, size: usize) -> bool {
        or_report("ggml_ext_op_attrs", node.as_ref().ok_or_else(|| Error::null("node")).and_then(|t| {
            let (Some(op), Some(attrs)) = (op::record(t), op::attrs(t)) else {
                let text = format!("node '{}' is not of a registered operator", shape::name(t));
                return Err(Error::argument(text).at(t));
            };
            let wrong = |text: String| format!("node '{}' of {}: {text}", shape::name(t), op.name());
            if attrs.len() != size {
                let text = wrong(format!("{size} bytes of attributes are asked for, there are {}", attrs.len()));
                return Err(Error::argument(text).by(op.name()).at(t));
            }
            if size > 0 && dst.is_null() {
                let text = wrong("the destination of the attributes is NULL".into());
                return Err(Error::new(GGML_EXT_CODE_NULL_ARGUMENT, text).by(op.name()).at(t));
            }
            dst.cast::<u8>().copy_from(attrs.as_ptr(), attrs.len());
            Ok(true)
        }))
    }

    /// Registers a kernel or a fusion rule on a device, with `GGML_EXT_KERNEL_` flags. False, with an error: the name is live on the device,
    /// a required callback is NULL, or a member is not what it may be. Register before the device is asked what it supports and before
    /// graphs are allocated; plans that the registration concerns are stale after it. Not from a callback.
    pub fn ggml_ext_register_kernel_ex(device: ggml_backend_dev_t, desc: *const ggml_ext_kernel_desc, flags: u32) -> bool {
        or_report("ggml_ext_register_kernel_ex", register(device, desc, flags))
    }

    /// `ggml_ext_register_kernel_ex` without flags.
    pub fn ggml_ext_register_kernel(device: ggml_backend_dev_t, desc: *const ggml_ext_kernel_desc) -> bool {
        or_report("ggml_ext_register_kernel", register(device, desc, 0))
    }

    /// Releases one registration of a device. False, with an error, while a plan uses it: a scheduler's until it is reset or freed. When
    /// the call is back, none of its callbacks runs any more. Not from a callback.
    pub fn ggml_ext_release(device: ggml_backend_dev_t, name: *const c_char) -> bool {
        or_report("ggml_ext_release", callback::outside_only()
            .and_then(|()| self::device(device))
            .and_then(|device| {
                let name = self::name(name)?;
                registry::kernel(device, name)?;
                registry::release(What::Kernel(device, name))
            })
            .map(|()| true))
    }

    /// A scope: operators, kernels and rules that name it in their description are released together, as a plugin's are before it is
    /// unloaded.
    pub fn ggml_ext_scope_new() -> ggml_ext_scope_t {
        scope::new()
    }

    /// Releases all registrations of a scope, and the scope. False, with an error, while a plan uses one of them or a kernel of another
    /// scope is for one of its operators; then all stay. When the call is back, no callback of the scope runs any more. Nodes of its
    /// operators can still be read, and are computed no more. Not from a callback.
    pub fn ggml_ext_scope_release(scope: ggml_ext_scope_t) -> bool {
        or_report("ggml_ext_scope_release", callback::outside_only().and_then(|()| scope::release(scope)).map(|()| true))
    }

    /// Says that the answers of a registration's callbacks may have changed (`name` NULL: of all of the device): plans made before are
    /// stale, and computing them is an error until their graphs are allocated anew.
    pub fn ggml_ext_invalidate(device: ggml_backend_dev_t, name: *const c_char) -> bool {
        or_report("ggml_ext_invalidate", self::device(device)
            .and_then(|device| {
                let name = if name.is_null() { None } else { Some(self::name(name)?) };
                registry::invalidate(device, name)
            })
            .map(|()| true))
    }

    /// Whether the device's own code, without registrations, can compute the node. `ggml_backend_dev_supports_op` counts kernels for single
    /// nodes in.
    pub fn ggml_ext_dev_supports_native_op(device: ggml_backend_dev_t, op: *const ggml_tensor) -> bool {
        or_report("ggml_ext_dev_supports_native_op", self::device(device)
            .and_then(|device| Ok(select::supports_native(device, op.as_ref().ok_or_else(|| Error::null("node"))?))))
    }

    /// Moves the `count` nodes of `graph` from `first` on to just before node `before`, which comes after them. False, with an error,
    /// and nothing moved: a node between needs one of them, writes where they read or write, or has effects that are not known.
    pub fn ggml_ext_graph_delay(graph: *mut ggml_cgraph, first: c_int, count: c_int, before: c_int) -> bool {
        let number = |n: c_int| usize::try_from(n).map_err(|_| Error::argument(format!("{n} is no number of a node")));
        or_report("ggml_ext_graph_delay", graph.as_mut().ok_or_else(|| Error::null("graph"))
            .and_then(|g| crate::ext::delay::delay(g, number(first)?, number(count)?, number(before)?))
            .map(|()| true))
    }

    /// How often what happened to a registration. `out->struct_size` is set by the caller. False, with an error: there is no such.
    pub fn ggml_ext_counters(device: ggml_backend_dev_t, name: *const c_char, out: *mut ggml_ext_counters) -> bool {
        or_report("ggml_ext_counters", self::device(device)
            .and_then(|device| registry::kernel(device, self::name(name)?))
            .and_then(|kernel| {
                let get = |c: &std::sync::atomic::AtomicU64| c.load(Ordering::Relaxed);
                let c = &kernel.counts;
                let value = ggml_ext_counters {
                    struct_size: 0,
                    selected: get(&c.selected),
                    ran: get(&c.ran),
                    fused_nodes: get(&c.fused_nodes),
                    refused: get(&c.refused),
                    errors: get(&c.errors),
                    ns: get(&c.ns),
                };
                let name = &kernel.name;
                if out.is_null() {
                    return Err(Error::null(&format!("structure for the counters of '{name}'")).by(name));
                }
                match structs::write(out, &value) {
                    true => Ok(true),
                    false => {
                        let text = format!("counters of '{name}': struct_size is not set");
                        Err(Error::new(GGML_EXT_CODE_BAD_STRUCT, text).by(name))
                    }
                }
            }))
    }

    /// Switches the timing of steps on or off, in the whole process. It is on from the start when the environment variable
    /// `GGML_EXT_PROFILE` is set.
    pub fn ggml_ext_set_profiling(on: bool) {
        profile::set(on);
    }
}
