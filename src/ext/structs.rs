//! Structures that cross the border, by their `struct_size`: a caller built for another version of the interface is understood as far
//! as zero means "as before".

use crate::error::Error;
use ggml_oxide_abi::*;
use std::ffi::{c_char, CStr};

/// A structure of the interface that callers hand in.
///
/// # Safety
/// The type is `repr(C)`, begins with `struct_size: usize`, and all zero bits are a value of it.
pub unsafe trait In: Copy {
    /// Its name in C.
    const NAME: &'static str;
    /// Bytes of its first version.
    const FIRST: usize;
    /// The name of the registration that it describes, if it describes one.
    fn name(&self) -> *const c_char {
        std::ptr::null()
    }
}

// SAFETY: plain C structures of integers, pointers and optional functions, `struct_size` first.
unsafe impl In for ggml_ext_op_desc {
    const NAME: &'static str = "ggml_ext_op_desc";
    const FIRST: usize = size_of::<ggml_ext_op_desc>();
    fn name(&self) -> *const c_char {
        self.name
    }
}
// SAFETY: as above.
unsafe impl In for ggml_ext_kernel_desc {
    const NAME: &'static str = "ggml_ext_kernel_desc";
    const FIRST: usize = size_of::<ggml_ext_kernel_desc>();
    fn name(&self) -> *const c_char {
        self.name
    }
}

/// The structure at `at`: members that the caller does not have read as zero; members that this library does not know must be zero.
///
/// # Safety
/// `at` is NULL or has as many bytes as its `struct_size` says, with NULL or a C string for its name.
pub unsafe fn read<T: In>(at: *const T) -> Result<T, Error> {
    if at.is_null() {
        return Err(Error::null(T::NAME));
    }
    let wrong = |text: String| Err(Error::new(GGML_EXT_CODE_BAD_STRUCT, text));
    // SAFETY: the caller's promise; `struct_size` comes first.
    let size = unsafe { at.cast::<usize>().read() };
    if size < T::FIRST {
        return wrong(format!("{}: struct_size is {size}, the first version has {} bytes", T::NAME, T::FIRST));
    }
    // a structure of this interface will hardly ever have a kilobyte: a size beyond that is no size
    if size > size_of::<T>() + 1024 {
        return wrong(format!("{}: struct_size is {size}, this library knows {} bytes", T::NAME, size_of::<T>()));
    }
    let known = size.min(size_of::<T>());
    // SAFETY: all zero bits are a value (contract of the trait), and so are the caller's bytes.
    let value = unsafe {
        let mut value = std::mem::zeroed::<T>();
        std::ptr::copy_nonoverlapping(at.cast::<u8>(), (&raw mut value).cast::<u8>(), known);
        value
    };
    // SAFETY: the caller's promise.
    let beyond = unsafe { std::slice::from_raw_parts(at.cast::<u8>().add(known), size - known) };
    if beyond.iter().all(|&b| b == 0) {
        return Ok(value);
    }
    let text = format!("{}: a member beyond the {known} bytes that this library knows is set", T::NAME);
    if value.name().is_null() {
        return wrong(text);
    }
    // SAFETY: the caller's promise: a description has NULL or a C string there.
    let name = unsafe { CStr::from_ptr(value.name()) }.to_string_lossy();
    Err(Error::new(GGML_EXT_CODE_BAD_STRUCT, format!("registration '{name}': {text}")).by(&name))
}

/// Writes `value` to `to`, as many bytes as the `struct_size` there says, which stays. False for NULL or a size below that of the member.
///
/// # Safety
/// `to` is NULL or has as many bytes as its `struct_size` says; `T` begins with `struct_size: usize` and has no padding that matters.
pub unsafe fn write<T>(to: *mut T, value: &T) -> bool {
    if to.is_null() {
        return false;
    }
    // SAFETY: the caller's promise.
    unsafe {
        let size = to.cast::<usize>().read();
        let n = size.min(size_of::<T>());
        if n < size_of::<usize>() {
            return false;
        }
        let skip = size_of::<usize>();
        let from = std::ptr::from_ref(value).cast::<u8>().add(skip);
        std::ptr::copy(from, to.cast::<u8>().add(skip), n - skip);
        true
    }
}
