//! What an operator of this folder is, and how it becomes one of `ggml-ext.h`.

use super::{api, register};
use crate::capi::guard;
use crate::error::Error;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::ffi::{c_int, c_void, CStr};

/// An answer, or the rule that is broken.
pub type Check<T = ()> = Result<T, String>;

/// Attributes of an operator.
///
/// # Safety
/// The type is `repr(C)`, aligned to at most 8 bytes, and all bytes make a value of it.
pub unsafe trait Attrs: Copy + Default {}

// SAFETY: it has no bytes.
unsafe impl Attrs for () {}

/// Format and dimensions of a result.
pub type Shape = (ggml_type, [i64; GGML_MAX_DIMS]);

/// An operator.
pub trait Operator: 'static {
    /// `sd.name.v1`.
    const NAME: &'static CStr;
    /// Its attributes.
    type Attrs: Attrs;
    /// The result's metadata, or the rule that sources or attributes break.
    fn infer(src: &[&ggml_tensor], attrs: &Self::Attrs) -> Check<Shape>;
}

/// `infer` of `ggml_ext_op_desc`.
unsafe extern "C" fn infer<O: Operator>(
    src: *const *mut ggml_tensor,
    n_src: c_int,
    attrs: *const c_void,
    out: *mut ggml_ext_output,
    _: *mut c_void,
) -> bool {
    guard("infer", || {
        let n = usize::try_from(n_src).unwrap_or(0);
        // SAFETY: the library hands over `n_src` live tensors.
        let list: Vec<&ggml_tensor> = (0..n).map(|i| unsafe { &**src.add(i) }).collect();
        // SAFETY: attributes of the registered size, aligned to 8 bytes; all bytes are a value.
        let attrs = unsafe { attrs.cast::<O::Attrs>().read() };
        match O::infer(&list, &attrs) {
            Ok((ty, ne)) => {
                // SAFETY: the library's structure.
                unsafe { ((*out).r#type, (*out).ne) = (ty, ne) };
                true
            }
            Err(text) => api::refuse(&text),
        }
    })
}

/// An operator as it is registered.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Its name.
    pub name: &'static CStr,
    desc: fn() -> ggml_ext_op_desc,
}

impl Entry {
    /// That of `O`.
    pub const fn of<O: Operator>() -> Self {
        Entry {
            name: O::NAME,
            desc: || ggml_ext_op_desc {
                struct_size: size_of::<ggml_ext_op_desc>(),
                name: O::NAME.as_ptr(),
                attr_size: size_of::<O::Attrs>(),
                infer: Some(infer::<O>),
                user_data: std::ptr::null_mut(),
                scope: std::ptr::null_mut(),
            },
        }
    }

    /// For `ggml_ext_register_op`.
    pub fn desc(&self) -> ggml_ext_op_desc {
        (self.desc)()
    }
}

/// A node of `O`; NULL with an error. Registers the operators when nobody did so far.
///
/// # Safety
/// As `ggml_ext_op_create`.
pub unsafe fn create<O: Operator>(
    call: &str,
    ctx: *mut ggml_context,
    src: &[*mut ggml_tensor],
    attrs: &O::Attrs,
) -> *mut ggml_tensor {
    if let Err(error) = register::ensure(O::NAME) {
        crate::error::report(&error.within(call));
        return std::ptr::null_mut();
    }
    let attrs = std::ptr::from_ref(attrs).cast::<c_void>();
    let size = size_of::<O::Attrs>();
    // SAFETY: the caller's promise.
    unsafe { api::ggml_ext_op_create(ctx, O::NAME.as_ptr(), src.as_ptr(), src.len() as c_int, attrs, size) }
}

/// A node of `O`, whose metadata keep its rules.
pub struct Node<'a, O: Operator> {
    /// The result.
    pub dst: &'a ggml_tensor,
    /// Its attributes.
    pub attrs: O::Attrs,
    src: Vec<&'a ggml_tensor>,
}

impl<'a, O: Operator> Node<'a, O> {
    /// Reads a node of `O`.
    ///
    /// # Safety
    /// It is one, and its sources are live.
    pub unsafe fn read(dst: &'a ggml_tensor) -> Check<Self> {
        let mut attrs = O::Attrs::default();
        let at = std::ptr::from_mut(&mut attrs).cast::<c_void>();
        // SAFETY: room for the attributes, of which all bytes are a value.
        if !unsafe { api::ggml_ext_op_attrs(dst, at, size_of::<O::Attrs>()) } {
            return Err("the attributes cannot be read".into());
        }
        // SAFETY: the caller's promise.
        let src: Vec<&ggml_tensor> = dst.src.iter().map_while(|&s| unsafe { s.as_ref() }).collect();
        let (ty, ne) = O::infer(&src, &attrs)?;
        if dst.r#type != ty || dst.ne != ne || !shape::is_contiguous(dst) {
            return Err("format, shape or strides of the node are not those that it was built with".into());
        }
        Ok(Node { dst, attrs, src })
    }

    /// Source `i`.
    pub fn src(&self, i: usize) -> &'a ggml_tensor {
        self.src[i]
    }

    /// All sources.
    pub fn srcs(&self) -> &[&'a ggml_tensor] {
        &self.src
    }
}

/// The name that an error is by.
pub fn text_of(name: &CStr) -> &str {
    name.to_str().unwrap_or_default()
}

/// An error about operator `name`.
pub fn error(name: &CStr, code: ggml_ext_code, text: &str) -> Error {
    let name = text_of(name);
    Error::new(code, format!("{name}: {text}")).by(name)
}
