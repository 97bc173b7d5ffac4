//! Scopes: registrations that go together, as those of a plugin do before it is unloaded.

use super::registry::{self, What};
use crate::error::Error;
use ggml_oxide_abi::*;
use std::sync::Mutex;

/// Addresses of the live scopes. A scope's address is its identity and is not given out again while it lives.
static LIVE: Mutex<Vec<usize>> = Mutex::new(Vec::new());

fn live<R>(look: impl FnOnce(&mut Vec<usize>) -> R) -> R {
    look(&mut LIVE.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
}

/// A new scope.
pub fn new() -> ggml_ext_scope_t {
    let scope = Box::into_raw(Box::new(0u8));
    live(|list| list.push(scope.addr()));
    scope.cast()
}

/// Whether registrations may go to `scope`: NULL, or a live one.
pub fn check(scope: ggml_ext_scope_t) -> Result<(), Error> {
    if scope.is_null() || live(|list| list.contains(&scope.addr())) {
        Ok(())
    } else {
        Err(Error::argument("the scope is not one of ggml_ext_scope_new, or was released"))
    }
}

/// Releases all registrations of `scope` and the scope; on failure everything stays.
///
/// # Safety
/// Nothing registers into the scope at the same time.
pub unsafe fn release(scope: ggml_ext_scope_t) -> Result<(), Error> {
    if scope.is_null() {
        return Err(Error::null("scope"));
    }
    check(scope)?;
    registry::release(What::Scope(scope))?;
    live(|list| list.retain(|&s| s != scope.addr()));
    // SAFETY: made by `new`; it was live until the line above, so this happens once.
    drop(unsafe { Box::from_raw(scope.cast::<u8>()) });
    Ok(())
}
