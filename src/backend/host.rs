//! Memory of the host: the CPU's buffer type, buffers over a caller's memory, and buffers made of several.

use super::{Buffer, Buft};
use crate::error::{self, Error};
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::alloc::Layout;
use std::ffi::{c_char, c_void};

/// Alignment of tensors in host memory, bytes. Modules and graph sizes count on this value.
pub const ALIGNMENT: usize = 32;
/// Alignment of a buffer's memory, bytes: a cache line.
const LINE: usize = 64;

/// Tables of functions hold pointers that are never written: they may be shared.
struct Shared<T>(T);
// SAFETY: the tables are constants.
unsafe impl<T> Sync for Shared<T> {}

static CPU: Shared<ggml_backend_buffer_type> = Shared(buffer_type(buft_name));
static CPU_FROM_PTR: Shared<ggml_backend_buffer_type> = Shared(buffer_type(from_ptr_name));

const fn buffer_type(
    get_name: unsafe extern "C" fn(ggml_backend_buffer_type_t) -> *const c_char,
) -> ggml_backend_buffer_type {
    ggml_backend_buffer_type {
        iface: ggml_backend_buffer_type_i {
            get_name: Some(get_name),
            alloc_buffer: Some(alloc_buffer),
            alloc_buffer_n: None,
            get_alignment: Some(get_alignment),
            get_max_size: None,
            get_alloc_size: None,
            get_alloc_size_n: None,
            is_host: Some(is_host),
        },
        device: std::ptr::null_mut(),
        context: std::ptr::null_mut(),
    }
}

const OWNED: ggml_backend_buffer_i = ggml_backend_buffer_i { free_buffer: Some(free_owned), ..BORROWED };
const BORROWED: ggml_backend_buffer_i = ggml_backend_buffer_i {
    free_buffer: None,
    get_base: Some(get_base),
    init_tensor: None,
    memset_tensor: Some(memset_tensor),
    set_tensor: Some(set_tensor),
    get_tensor: Some(get_tensor),
    set_tensor_2d: None,
    get_tensor_2d: None,
    cpy_tensor: Some(cpy_tensor),
    clear: Some(clear),
    reset: None,
};
/// Functions of a buffer without memory: there is nothing to do.
pub(super) const NO_MEMORY: ggml_backend_buffer_i = ggml_backend_buffer_i {
    free_buffer: None,
    get_base: None,
    init_tensor: None,
    memset_tensor: None,
    set_tensor: None,
    get_tensor: None,
    set_tensor_2d: None,
    get_tensor_2d: None,
    cpy_tensor: None,
    clear: None,
    reset: None,
};
/// What marks a buffer as made of several. Read from here both to mark and to compare: a function may have more than one address.
static FREE_MULTI: unsafe extern "C" fn(ggml_backend_buffer_t) = free_multi;

/// The CPU's buffer type.
pub fn buffer_type_cpu() -> Buft {
    handle_of(&CPU)
}

fn handle_of(buft: &'static Shared<ggml_backend_buffer_type>) -> Buft {
    // SAFETY: a static; nothing writes through the handle.
    unsafe { Buft::from_raw(std::ptr::from_ref(&buft.0).cast_mut()) }
        .unwrap_or_else(|| unreachable!("a static has an address"))
}

/// A buffer over `size` bytes of the caller's at `ptr`, which stay the caller's. `None`, reported: `ptr` is NULL or not aligned.
pub fn from_ptr(ptr: *mut c_void, size: usize) -> Option<Buffer> {
    if ptr.is_null() || !(ptr as usize).is_multiple_of(ALIGNMENT) {
        error::report(&Error::argument(format!(
            "ggml_backend_cpu_buffer_from_ptr: ptr {ptr:p} must not be NULL and must be aligned to {} bytes",
            ALIGNMENT
        )));
        return None;
    }
    Some(Buffer::new(handle_of(&CPU_FROM_PTR), BORROWED, ptr, size))
}

/// One buffer that frees, clears and resets `parts` together.
pub fn multi(parts: Vec<Buffer>) -> Option<Buffer> {
    let buft = parts.first()?.buft()?;
    let size = parts.iter().map(|b| b.size()).sum();
    let iface = ggml_backend_buffer_i {
        free_buffer: Some(FREE_MULTI),
        clear: Some(clear_multi),
        reset: Some(reset_multi),
        ..NO_MEMORY
    };
    Some(Buffer::new(buft, iface, Box::into_raw(Box::new(parts)).cast(), size))
}

/// Whether `buffer` was made by [`multi`].
pub fn is_multi(buffer: Buffer) -> bool {
    buffer.iface().free_buffer.is_some_and(|f| std::ptr::fn_addr_eq(f, FREE_MULTI))
}

/// Visits the parts of a multi-buffer; none for another.
pub(super) fn for_each_part(buffer: Buffer, mut visit: impl FnMut(Buffer)) {
    if is_multi(buffer) {
        // SAFETY: `multi` made the context.
        for &part in unsafe { &*buffer.context().cast::<Vec<Buffer>>() } {
            visit(part);
        }
    }
}

fn layout(size: usize) -> Option<Layout> {
    Layout::from_size_align(size.checked_next_multiple_of(LINE)?, LINE).ok()
}

unsafe extern "C" fn buft_name(_: ggml_backend_buffer_type_t) -> *const c_char {
    c"CPU".as_ptr()
}
unsafe extern "C" fn from_ptr_name(_: ggml_backend_buffer_type_t) -> *const c_char {
    c"CPU_Mapped".as_ptr()
}
unsafe extern "C" fn get_alignment(_: ggml_backend_buffer_type_t) -> usize {
    ALIGNMENT
}
unsafe extern "C" fn is_host(_: ggml_backend_buffer_type_t) -> bool {
    true
}
unsafe extern "C" fn alloc_buffer(_: ggml_backend_buffer_type_t, size: usize) -> ggml_backend_buffer_t {
    // The allocator gives large blocks straight from the system: no page is touched before it is used.
    let Some(layout) = layout(size) else { return std::ptr::null_mut() };
    if layout.size() == 0 {
        return Buffer::empty(buffer_type_cpu()).as_raw();
    }
    // SAFETY: the size is not zero.
    let memory = unsafe { std::alloc::alloc(layout) };
    if memory.is_null() {
        return std::ptr::null_mut();
    }
    Buffer::new(buffer_type_cpu(), OWNED, memory.cast(), size).as_raw()
}
unsafe extern "C" fn free_owned(buffer: ggml_backend_buffer_t) {
    // SAFETY: `alloc_buffer` made the buffer with this layout.
    unsafe {
        if let Some(layout) = layout((*buffer).size) {
            std::alloc::dealloc((*buffer).context.cast(), layout);
        }
    }
}
unsafe extern "C" fn get_base(buffer: ggml_backend_buffer_t) -> *mut c_void {
    // SAFETY: the context of a host buffer is its memory.
    unsafe { (*buffer).context }
}
// The five below: ranges were checked by `tensor_data`, the tensor's data lies in host memory.
unsafe extern "C" fn memset_tensor(
    _: ggml_backend_buffer_t,
    tensor: *mut ggml_tensor,
    value: u8,
    offset: usize,
    size: usize,
) {
    // SAFETY: the range lies in the tensor's data.
    unsafe { (*tensor).data.cast::<u8>().add(offset).write_bytes(value, size) }
}
unsafe extern "C" fn set_tensor(
    _: ggml_backend_buffer_t,
    tensor: *mut ggml_tensor,
    data: *const c_void,
    offset: usize,
    size: usize,
) {
    // SAFETY: the range lies in the tensor's data and `data` has `size` bytes; they may overlap.
    unsafe { std::ptr::copy(data.cast::<u8>(), (*tensor).data.cast::<u8>().add(offset), size) }
}
unsafe extern "C" fn get_tensor(
    _: ggml_backend_buffer_t,
    tensor: *const ggml_tensor,
    data: *mut c_void,
    offset: usize,
    size: usize,
) {
    // SAFETY: as `set_tensor`.
    unsafe { std::ptr::copy((*tensor).data.cast::<u8>().add(offset), data.cast::<u8>(), size) }
}
unsafe extern "C" fn cpy_tensor(_: ggml_backend_buffer_t, src: *const ggml_tensor, dst: *mut ggml_tensor) -> bool {
    // SAFETY: both tensors are live and have the same layout.
    unsafe {
        let Some(buffer) = Buffer::from_raw((*src).buffer) else { return false };
        if !buffer.is_host() {
            return false;
        }
        std::ptr::copy((*src).data.cast::<u8>(), (*dst).data.cast::<u8>(), shape::nbytes(&*src));
    }
    true
}
unsafe extern "C" fn clear(buffer: ggml_backend_buffer_t, value: u8) {
    // SAFETY: the context of a host buffer is its memory, `size` bytes.
    unsafe { (*buffer).context.cast::<u8>().write_bytes(value, (*buffer).size) }
}

/// Visits the parts of the multi-buffer `buffer`.
unsafe fn parts(buffer: ggml_backend_buffer_t, visit: impl FnMut(Buffer)) {
    // SAFETY: the functions of a multi-buffer are called with buffers made by `multi`.
    if let Some(buffer) = unsafe { Buffer::from_raw(buffer) } {
        for_each_part(buffer, visit);
    }
}
unsafe extern "C" fn free_multi(buffer: ggml_backend_buffer_t) {
    // SAFETY: `multi` made the context; nobody uses the buffer any more.
    unsafe {
        parts(buffer, |part| part.free());
        drop(Box::from_raw((*buffer).context.cast::<Vec<Buffer>>()));
    }
}
unsafe extern "C" fn clear_multi(buffer: ggml_backend_buffer_t, value: u8) {
    // SAFETY: as `parts`.
    unsafe { parts(buffer, |part| part.clear(value)) }
}
unsafe extern "C" fn reset_multi(buffer: ggml_backend_buffer_t) {
    // SAFETY: as `parts`.
    unsafe { parts(buffer, Buffer::reset) }
}
