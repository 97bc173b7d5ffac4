//! The check that a program and the library agree on GGML_MAX_NAME: the header's `ggml_init` is bound to a symbol that carries
//! the value, so a program compiled for another one does not load, and the loader's message names the symbol.

use ggml_oxide_abi::*;

/// `ggml_init` under the name that the installed header binds it to.
///
/// # Safety
/// As `ggml_init`.
#[export_name = concat!("ggml_init_for_GGML_MAX_NAME_", env!("GGML_MAX_NAME"))]
pub unsafe extern "C" fn init(params: ggml_init_params) -> *mut ggml_context {
    // SAFETY: the caller's promise.
    unsafe { super::ggml::context::ggml_init(params) }
}
