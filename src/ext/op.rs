//! Operators of the application's: records, and the nodes made of them.
//!
//! Such a node is a `GGML_OP_CUSTOM` whose function is a marker that nobody calls. Behind the function, the number of tasks and the
//! address of the operator's record, `op_params` has its attributes.

use super::callback;
use crate::error::Error;
use crate::tensor::{poison, show, Context, NodeSpec};
use ggml_oxide_abi::*;
use ggml_oxide_cpu::custom;
use ggml_oxide_shape as shape;
use std::ffi::{c_int, c_void, CStr, CString};

/// Where the attributes begin in `op_params`, bytes: behind a C structure of function, int and pointer.
const ATTRS: usize = GGML_MAX_OP_PARAMS - GGML_EXT_MAX_ATTR_SIZE;
const _: () = assert!(ATTRS == 24);

/// A registered operator. Records are never freed: nodes hold their addresses.
pub struct Op {
    name: CString,
    attr_size: usize,
    desc: ggml_ext_op_desc,
}

// SAFETY: the pointers are handed back to the application, which has promised that they may be used from any thread.
unsafe impl Send for Op {}
// SAFETY: as above.
unsafe impl Sync for Op {}

impl PartialEq for Op {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}
impl Eq for Op {}
impl std::fmt::Debug for Op {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Whether `name` is of the form `vendor.op.v1`.
fn is_versioned(name: &str) -> bool {
    let parts: Vec<&str> = name.split('.').collect();
    let version = parts.last().and_then(|last| last.strip_prefix('v'));
    parts.len() >= 3
        && parts.iter().all(|p| !p.is_empty())
        && version.is_some_and(|v| !v.is_empty() && v.bytes().all(|b| b.is_ascii_digit()))
}

/// The text of a name: not empty, of letters, digits, '.', '_' and '-'.
///
/// # Safety
/// `name` is NULL or a C string.
pub unsafe fn checked_name(name: *const std::ffi::c_char) -> Result<String, Error> {
    if name.is_null() {
        return Err(Error::null("name"));
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { CStr::from_ptr(name) }.to_bytes();
    let good = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    if bytes.is_empty() || bytes.len() > 128 || !bytes.iter().all(good) {
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(64)]);
        return Err(Error::argument(format!("name '{shown}': it must have 1 to 128 letters, digits, '.', '_' or '-'")));
    }
    Ok(String::from_utf8_lossy(bytes).into_owned())
}

impl Op {
    /// The operator that `desc` describes.
    ///
    /// # Safety
    /// The name is NULL or a C string; the callback and its data are usable from any thread until the operator is released.
    pub unsafe fn new(desc: ggml_ext_op_desc) -> Result<Self, Error> {
        // SAFETY: the caller's promise.
        let name = unsafe { checked_name(desc.name) }?;
        let wrong = |text: String| Err(Error::argument(text).by(&name));
        if !is_versioned(&name) {
            return wrong(format!("operator '{name}': the name must be of the form vendor.op.v1"));
        }
        if desc.attr_size > GGML_EXT_MAX_ATTR_SIZE {
            let n = desc.attr_size;
            return wrong(format!("operator '{name}': {n} bytes of attributes, there can be {GGML_EXT_MAX_ATTR_SIZE}"));
        }
        if desc.infer.is_none() {
            return Err(Error::null(&format!("callback 'infer' of operator '{name}'")).by(&name));
        }
        Ok(Op { name: crate::error::c_string(&name), attr_size: desc.attr_size, desc })
    }

    /// `vendor.op.v1`.
    pub fn name(&self) -> &str {
        self.name.to_str().unwrap_or_default()
    }

    /// The same for C.
    pub fn name_c(&self) -> &CStr {
        &self.name
    }

    /// Bytes of the attributes.
    pub fn attr_size(&self) -> usize {
        self.attr_size
    }

    /// What releases it.
    pub fn scope(&self) -> ggml_ext_scope_t {
        self.desc.scope
    }

    /// Its identity.
    pub fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

/// Whether `node` is of a registered operator.
#[inline]
pub fn is_extension(node: &ggml_tensor) -> bool {
    node.op == GGML_OP_CUSTOM && custom::is_extension(node)
}

/// The operator of `node`, when it is a registered one.
#[inline]
pub fn record(node: &ggml_tensor) -> Option<&'static Op> {
    if !is_extension(node) {
        return None;
    }
    // SAFETY: only `create` puts the marker there, with the address of a record, and records live for ever.
    unsafe { custom::extension_record(node).cast::<Op>().cast_const().as_ref() }
}

/// The attributes of `node`, when it is of a registered operator.
pub fn attrs(node: &ggml_tensor) -> Option<&[u8]> {
    let op = record(node)?;
    // SAFETY: the parameters are plain bytes.
    let bytes = unsafe { std::slice::from_raw_parts(node.op_params.as_ptr().cast::<u8>(), GGML_MAX_OP_PARAMS) };
    bytes.get(ATTRS..ATTRS + op.attr_size)
}

/// What a node is called in texts: its registered operator, or the built-in one.
pub fn op_name(node: &ggml_tensor) -> &'static str {
    match record(node) {
        Some(op) => op.name(),
        None => shape::op_name(node.op),
    }
}

#[repr(C, align(8))]
struct Aligned([u8; GGML_EXT_MAX_ATTR_SIZE]);

/// A node of operator `op` in `ctx`.
///
/// # Safety
/// Sources are NULL or live tensors; nobody else uses the context.
pub unsafe fn create(
    ctx: &mut Context,
    op: &'static Op,
    src: &[*mut ggml_tensor],
    attrs: &[u8],
) -> Result<*mut ggml_tensor, Error> {
    let name = op.name();
    if src.len() > GGML_MAX_SRC {
        let text = format!("{name}: {} sources, a node can have {GGML_MAX_SRC}", src.len());
        return Err(Error::argument(text).by(name));
    }
    if attrs.len() != op.attr_size {
        let text = format!("{name}: {} bytes of attributes were given, the operator has {}", attrs.len(), op.attr_size);
        return Err(Error::argument(text).by(name));
    }
    for (i, &s) in src.iter().enumerate() {
        // SAFETY: the caller's promise.
        match unsafe { s.as_ref() } {
            None => return Err(Error::null(&format!("source {i} of {name}")).by(name)),
            Some(t) if poison::is_poisoned(t) => {
                // SAFETY: the tensor is live, and so is its context.
                let cause = unsafe { poison::cause(t) }.map(|c| c.to_string_lossy().into_owned());
                let cause = cause.unwrap_or_else(|| "it could not be built".into());
                return Err(Error::shape(format!("source {i} of {name}: {cause}")).by(name));
            }
            Some(_) => {}
        }
    }
    let mut aligned = Aligned([0; GGML_EXT_MAX_ATTR_SIZE]);
    aligned.0[..attrs.len()].copy_from_slice(attrs);
    // SAFETY: the sources are live.
    let spec = unsafe { infer(op, src, &aligned) }?;
    let mut all = [std::ptr::null_mut(); GGML_MAX_SRC];
    all[..src.len()].copy_from_slice(src);
    // SAFETY: as above.
    unsafe { crate::tensor::materialise(ctx, &spec, &all) }
        .map_err(|e| Error { text: format!("{name}: {}", e.text), ..e }.by(name))
}

unsafe fn infer(op: &'static Op, src: &[*mut ggml_tensor], attrs: &Aligned) -> Result<NodeSpec, Error> {
    let name = op.name();
    let mut out =
        ggml_ext_output { struct_size: size_of::<ggml_ext_output>(), r#type: GGML_TYPE_F32, ne: [1; GGML_MAX_DIMS] };
    let Some(infer) = op.desc.infer else { return Err(Error::null("callback 'infer'").by(name)) };
    let n = src.len() as c_int;
    let data = op.desc.user_data;
    // SAFETY: the callback takes live tensors, attributes of the size it registered, and its own data.
    let good = callback::call(|| unsafe { infer(src.as_ptr(), n, attrs.0.as_ptr().cast::<c_void>(), &mut out, data) });
    if !good {
        // SAFETY: the sources are live.
        let shown: Vec<String> = src.iter().map(|&s| show("source", unsafe { &*s })).collect();
        let reason = callback::reason("the operator refuses these sources");
        return Err(Error::shape(format!("{name}: {reason} ({})", shown.join(", "))).by(name));
    }
    if shape::type_size(out.r#type) == 0 || shape::contiguous_strides(out.r#type, &out.ne).is_none() {
        let text =
            format!("{name}: 'infer' answers format {} and shape {:?}, there is no such tensor", out.r#type.0, out.ne);
        return Err(Error::new(GGML_EXT_CODE_CALLBACK, text).by(name));
    }
    let mut spec = NodeSpec::new(GGML_OP_CUSTOM, out.r#type, out.ne);
    let mut params = [0u8; GGML_MAX_OP_PARAMS];
    let pointer = size_of::<usize>();
    params[..pointer].copy_from_slice(&(custom::marker as *const () as usize).to_ne_bytes());
    // one task: what an ordinary custom node must say
    params[pointer..pointer + 4].copy_from_slice(&1i32.to_ne_bytes());
    let record = std::ptr::from_ref(op).expose_provenance();
    params[2 * pointer..3 * pointer].copy_from_slice(&record.to_ne_bytes());
    params[ATTRS..].copy_from_slice(&attrs.0);
    for (slot, bytes) in spec.params.iter_mut().zip(params.chunks_exact(4)) {
        *slot = bytes.try_into().map_or(0, i32::from_ne_bytes);
    }
    Ok(spec)
}

#[cfg(test)]
mod tests {
    use super::is_versioned;

    #[test]
    fn ext_4_names_carry_a_version() {
        assert!(["sd.rope_apply.v1", "a.b.c.v20"].iter().all(|n| is_versioned(n)));
        assert!(["sd.rope_apply", "v1", "sd.v1", "sd..v1", "sd.x.v", "sd.x.v1a", ".x.v1"]
            .iter()
            .all(|n| !is_versioned(n)));
    }
}
