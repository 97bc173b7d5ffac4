//! What all handle types share.

/// Declares a copyable handle over a pointer that is never NULL.
macro_rules! handle {
    ($(#[$meta:meta])* $name:ident($target:ty)) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub struct $name(std::ptr::NonNull<$target>);

        // SAFETY: a handle is an address; what it points to is shared under the rules of the C interface.
        unsafe impl Send for $name {}
        // SAFETY: as above.
        unsafe impl Sync for $name {}

        impl $name {
            /// The handle of `raw`; `None` for NULL.
            ///
            /// # Safety
            /// `raw` is NULL or stays valid as long as the handle is used.
            pub unsafe fn from_raw(raw: *mut $target) -> Option<Self> {
                std::ptr::NonNull::new(raw).map(Self)
            }
            /// The pointer that C code knows.
            pub fn as_raw(self) -> *mut $target {
                self.0.as_ptr()
            }
            /// The handle's structure; read only, so that no reference outlives a change by its owner.
            fn get(&self) -> &$target {
                // SAFETY: `from_raw` promises that the target is valid as long as the handle is used.
                unsafe { self.0.as_ref() }
            }
        }
    };
}
pub(super) use handle;

use std::ffi::{c_char, CStr};

/// Text of a C string that lives as long as its owner; empty for NULL or what is not UTF-8.
pub(super) fn text(c: *const c_char) -> &'static str {
    if c.is_null() {
        return "";
    }
    // SAFETY: names of buffers, devices and backends are zero-terminated and live as long as the process uses the object.
    unsafe { CStr::from_ptr(c) }.to_str().unwrap_or("")
}
