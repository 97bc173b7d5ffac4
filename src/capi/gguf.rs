//! Entry points of gguf.h.
//!
//! A wrong id or a key of another type is an error, and the answer is 0, false or NULL.

use crate::entry;
use crate::error::{self, Error};
use crate::gguf::{error as file_error, CFile, Callback, File};
use crate::tensor::Context;
use ggml_oxide_abi::*;
use ggml_oxide_gguf::{Element, Kv, StrList, ValueType, Values};
use libc::FILE;
use std::ffi::{c_char, c_void, CStr};
use std::io::{BufReader, Cursor, Read, Seek};
use std::path::Path;
use std::ptr::{null, null_mut};

impl super::Fallback for gguf_type {
    fn fallback() -> Self {
        GGUF_TYPE_COUNT
    }
}

/// The file behind a handle, or an error that names the call.
///
/// # Safety
/// `ctx` is NULL or live.
unsafe fn file<'a>(call: &str, ctx: *const gguf_context) -> Option<&'a File> {
    // SAFETY: the caller's promise; handles are made from boxes of `File`.
    let file = unsafe { ctx.cast::<File>().as_ref() };
    if file.is_none() {
        error::fail(GGML_EXT_CODE_NULL_ARGUMENT, format!("{call}: ctx must not be NULL"));
    }
    file
}

/// As [`file`], to change it.
///
/// # Safety
/// As [`file`], and nothing else uses it.
unsafe fn file_mut<'a>(call: &str, ctx: *mut gguf_context) -> Option<&'a mut File> {
    // SAFETY: as `file`.
    let file = unsafe { ctx.cast::<File>().as_mut() };
    if file.is_none() {
        error::fail(GGML_EXT_CODE_NULL_ARGUMENT, format!("{call}: ctx must not be NULL"));
    }
    file
}

/// Bytes of a C string, or an error that names the call.
///
/// # Safety
/// `text` is NULL or a C string.
unsafe fn bytes<'a>(call: &str, text: *const c_char) -> Option<&'a [u8]> {
    if text.is_null() {
        error::fail(GGML_EXT_CODE_NULL_ARGUMENT, format!("{call}: a name must not be NULL"));
        return None;
    }
    // SAFETY: the caller's promise.
    Some(unsafe { CStr::from_ptr(text) }.to_bytes())
}

/// The value, or the failing answer and a report that names the call.
fn checked<T>(call: &str, result: Result<T, ggml_oxide_gguf::Error>) -> Option<T> {
    result.map_err(|e| fault(call, file_error(e))).ok()
}

fn fault(call: &str, e: Error) {
    error::report(&Error::new(e.code, format!("{call}: {e}")));
}

/// Reads a pair.
///
/// # Safety
/// As [`file`].
unsafe fn pair<'a>(call: &str, ctx: *const gguf_context, id: i64) -> Option<&'a Kv> {
    // SAFETY: the caller's promise.
    unsafe { file(call, ctx) }.and_then(|f| checked(call, f.meta.kv(id)))
}

/// Reads a single value.
///
/// # Safety
/// As [`file`].
unsafe fn value<T: Element + Default>(call: &str, ctx: *const gguf_context, id: i64) -> T {
    // SAFETY: the caller's promise.
    unsafe { pair(call, ctx, id) }.and_then(|kv| checked(call, kv.scalar())).unwrap_or_default()
}

/// Sets a pair.
///
/// # Safety
/// As [`file_mut`] and [`bytes`].
unsafe fn set(
    call: &str,
    ctx: *mut gguf_context,
    key: *const c_char,
    is_array: bool,
    values: Result<Values, ggml_oxide_gguf::Error>,
) {
    // SAFETY: the caller's promise.
    let (file, key) = unsafe { (file_mut(call, ctx), bytes(call, key)) };
    if let (Some(file), Some(key), Some(values)) = (file, key, checked(call, values)) {
        checked(call, file.meta.set(key, is_array, values));
    }
}

/// A handle on the file in `source`, and the context with its tensors where `params` ask for one.
///
/// # Safety
/// `params.ctx` is NULL or a place for a pointer.
unsafe fn open(call: &str, source: &mut (impl Read + Seek), params: gguf_init_params) -> *mut gguf_context {
    match File::read(source, &params) {
        Ok((file, ctx)) => {
            if let Some(ctx) = ctx {
                // SAFETY: the caller's promise; a context is made only when the place is there.
                unsafe { *params.ctx = Context::into_raw(ctx) };
            }
            Box::into_raw(Box::new(file)).cast()
        }
        Err(e) => {
            fault(call, e);
            null_mut()
        }
    }
}

/// Writes `ctx` to `to`; false, reported, when that fails.
///
/// # Safety
/// As [`file`], and for the tensors that were added.
unsafe fn write(call: &str, ctx: *const gguf_context, to: &mut impl std::io::Write, only_meta: bool) -> bool {
    // SAFETY: the caller's promise.
    unsafe { file(call, ctx) }.is_some_and(|f| {
        // SAFETY: as above.
        unsafe { f.write(to, only_meta) }.map_err(|e| fault(call, e)).is_ok()
    })
}

/// A path from C.
///
/// # Safety
/// As [`bytes`].
unsafe fn path<'a>(call: &str, name: *const c_char) -> Option<&'a Path> {
    use std::os::unix::ffi::OsStrExt;
    // SAFETY: the caller's promise.
    Some(Path::new(std::ffi::OsStr::from_bytes(unsafe { bytes(call, name) }?)))
}

fn io_fault(call: &str, path: &Path, e: std::io::Error) {
    error::report(&Error::new(GGML_EXT_CODE_IO, format!("{call}: {}: {e}", path.display())));
}

entry! {
    /// A file without pairs and tensors.
    pub fn gguf_init_empty() -> *mut gguf_context {
        Box::into_raw(Box::new(File::empty())).cast()
    }
    /// Reads a file from the stream's position. NULL with an error (position and broken rule) when it is no sound gguf file.
    pub fn gguf_init_from_file_ptr(file: *mut FILE, params: gguf_init_params) -> *mut gguf_context {
        const CALL: &str = "gguf_init_from_file_ptr";
        match CFile::new(file) {
            Some(mut file) => open(CALL, &mut file, params),
            None => {
                error::fail(GGML_EXT_CODE_NULL_ARGUMENT, format!("{CALL}: file must not be NULL"));
                null_mut()
            }
        }
    }
    /// Reads a file. NULL with an error (position and broken rule) when it cannot be read or is no sound gguf file.
    pub fn gguf_init_from_file(fname: *const c_char, params: gguf_init_params) -> *mut gguf_context {
        const CALL: &str = "gguf_init_from_file";
        let Some(path) = path(CALL, fname) else { return null_mut() };
        match std::fs::File::open(path) {
            Ok(file) => open(CALL, &mut BufReader::new(file), params),
            Err(e) => {
                io_fault(CALL, path, e);
                null_mut()
            }
        }
    }
    /// Reads a file that is in memory; the memory is not needed afterwards.
    pub fn gguf_init_from_buffer(data: *const c_void, size: usize, params: gguf_init_params) -> *mut gguf_context {
        let bytes = if data.is_null() { &[] } else { std::slice::from_raw_parts(data.cast::<u8>(), size) };
        open("gguf_init_from_buffer", &mut Cursor::new(bytes), params)
    }
    /// Reads a file of at most `max_expected_size` bytes through a callback, at most `max_chunk_read` bytes at once (0: no limit).
    pub fn gguf_init_from_callback(callback: gguf_reader_callback_t, userdata: *mut c_void, max_chunk_read: usize, max_expected_size: u64, params: gguf_init_params) -> *mut gguf_context {
        const CALL: &str = "gguf_init_from_callback";
        if callback.is_none() {
            error::fail(GGML_EXT_CODE_NULL_ARGUMENT, format!("{CALL}: callback must not be NULL"));
            return null_mut();
        }
        let piece = if max_chunk_read == 0 { usize::MAX } else { max_chunk_read };
        let source = Callback { read: callback, userdata, piece, size: max_expected_size, at: 0 };
        open(CALL, &mut BufReader::new(source), params)
    }
    /// Frees a file; NULL is no change. A context that was made with it stays.
    pub fn gguf_free(ctx: *mut gguf_context) {
        if !ctx.is_null() {
            drop(Box::from_raw(ctx.cast::<File>()));
        }
    }

    /// Name of a type of values; NULL for what is none.
    pub fn gguf_type_name(r#type: gguf_type) -> *const c_char {
        let name = match r#type {
            GGUF_TYPE_UINT8 => c"u8",
            GGUF_TYPE_INT8 => c"i8",
            GGUF_TYPE_UINT16 => c"u16",
            GGUF_TYPE_INT16 => c"i16",
            GGUF_TYPE_UINT32 => c"u32",
            GGUF_TYPE_INT32 => c"i32",
            GGUF_TYPE_FLOAT32 => c"f32",
            GGUF_TYPE_BOOL => c"bool",
            GGUF_TYPE_STRING => c"str",
            GGUF_TYPE_ARRAY => c"arr",
            GGUF_TYPE_UINT64 => c"u64",
            GGUF_TYPE_INT64 => c"i64",
            GGUF_TYPE_FLOAT64 => c"f64",
            _ => return null(),
        };
        name.as_ptr()
    }
    /// Version of the format.
    pub fn gguf_get_version(ctx: *const gguf_context) -> u32 {
        file("gguf_get_version", ctx).map_or(0, |f| f.meta.version())
    }
    /// Alignment of tensor data, bytes.
    pub fn gguf_get_alignment(ctx: *const gguf_context) -> usize {
        file("gguf_get_alignment", ctx).map_or(0, |f| f.meta.alignment() as usize)
    }
    /// Where tensor data starts in the file that was read, bytes.
    pub fn gguf_get_data_offset(ctx: *const gguf_context) -> usize {
        file("gguf_get_data_offset", ctx).map_or(0, |f| f.meta.data_offset() as usize)
    }

    /// How many pairs there are.
    pub fn gguf_get_n_kv(ctx: *const gguf_context) -> i64 {
        file("gguf_get_n_kv", ctx).map_or(0, |f| f.meta.kvs().len() as i64)
    }
    /// Number of the pair with that key; -1 when there is none.
    pub fn gguf_find_key(ctx: *const gguf_context, key: *const c_char) -> i64 {
        const CALL: &str = "gguf_find_key";
        let found = file(CALL, ctx).and_then(|f| f.meta.find_key(bytes(CALL, key)?));
        found.map_or(-1, |id| id as i64)
    }
    /// Key of a pair, valid until the pair is removed or replaced.
    pub fn gguf_get_key(ctx: *const gguf_context, key_id: i64) -> *const c_char {
        pair("gguf_get_key", ctx, key_id).map_or(null(), |kv| kv.key().as_bytes_with_nul().as_ptr().cast())
    }
    /// Type of a pair's value.
    pub fn gguf_get_kv_type(ctx: *const gguf_context, key_id: i64) -> gguf_type {
        pair("gguf_get_kv_type", ctx, key_id).map_or(GGUF_TYPE_COUNT, |kv| gguf_type(kv.value_type().id()))
    }
    /// Type of the elements of a pair whose value is an array.
    pub fn gguf_get_arr_type(ctx: *const gguf_context, key_id: i64) -> gguf_type {
        const CALL: &str = "gguf_get_arr_type";
        let ty = pair(CALL, ctx, key_id).and_then(|kv| checked(CALL, kv.array_type()));
        ty.map_or(GGUF_TYPE_COUNT, |ty| gguf_type(ty.id()))
    }
    /// Value of a pair of that very type.
    pub fn gguf_get_val_u8(ctx: *const gguf_context, key_id: i64) -> u8 {
        value("gguf_get_val_u8", ctx, key_id)
    }
    /// Value of a pair of that very type.
    pub fn gguf_get_val_i8(ctx: *const gguf_context, key_id: i64) -> i8 {
        value("gguf_get_val_i8", ctx, key_id)
    }
    /// Value of a pair of that very type.
    pub fn gguf_get_val_u16(ctx: *const gguf_context, key_id: i64) -> u16 {
        value("gguf_get_val_u16", ctx, key_id)
    }
    /// Value of a pair of that very type.
    pub fn gguf_get_val_i16(ctx: *const gguf_context, key_id: i64) -> i16 {
        value("gguf_get_val_i16", ctx, key_id)
    }
    /// Value of a pair of that very type.
    pub fn gguf_get_val_u32(ctx: *const gguf_context, key_id: i64) -> u32 {
        value("gguf_get_val_u32", ctx, key_id)
    }
    /// Value of a pair of that very type.
    pub fn gguf_get_val_i32(ctx: *const gguf_context, key_id: i64) -> i32 {
        value("gguf_get_val_i32", ctx, key_id)
    }
    /// Value of a pair of that very type.
    pub fn gguf_get_val_f32(ctx: *const gguf_context, key_id: i64) -> f32 {
        value("gguf_get_val_f32", ctx, key_id)
    }
    /// Value of a pair of that very type.
    pub fn gguf_get_val_u64(ctx: *const gguf_context, key_id: i64) -> u64 {
        value("gguf_get_val_u64", ctx, key_id)
    }
    /// Value of a pair of that very type.
    pub fn gguf_get_val_i64(ctx: *const gguf_context, key_id: i64) -> i64 {
        value("gguf_get_val_i64", ctx, key_id)
    }
    /// Value of a pair of that very type.
    pub fn gguf_get_val_f64(ctx: *const gguf_context, key_id: i64) -> f64 {
        value("gguf_get_val_f64", ctx, key_id)
    }
    /// Value of a pair of that very type.
    pub fn gguf_get_val_bool(ctx: *const gguf_context, key_id: i64) -> bool {
        value("gguf_get_val_bool", ctx, key_id)
    }
    /// Value of a pair that is a string, up to its first zero; valid until the pair is removed or replaced.
    pub fn gguf_get_val_str(ctx: *const gguf_context, key_id: i64) -> *const c_char {
        const CALL: &str = "gguf_get_val_str";
        let text = pair(CALL, ctx, key_id).and_then(|kv| checked(CALL, kv.string_with_nul()));
        text.map_or(null(), |text| text.as_ptr().cast())
    }
    /// Address of a pair's single number.
    pub fn gguf_get_val_data(ctx: *const gguf_context, key_id: i64) -> *const c_void {
        let kv = pair("gguf_get_val_data", ctx, key_id).filter(|kv| !kv.is_array());
        kv.and_then(|kv| kv.values().data_ptr()).map_or(null(), |p| p.cast())
    }
    /// Elements of an array.
    pub fn gguf_get_arr_n(ctx: *const gguf_context, key_id: i64) -> usize {
        pair("gguf_get_arr_n", ctx, key_id).filter(|kv| kv.is_array()).map_or(0, |kv| kv.values().len())
    }
    /// First element of an array of numbers (bool: one byte each); NULL for strings.
    pub fn gguf_get_arr_data(ctx: *const gguf_context, key_id: i64) -> *const c_void {
        let kv = pair("gguf_get_arr_data", ctx, key_id).filter(|kv| kv.is_array());
        kv.and_then(|kv| kv.values().data_ptr()).map_or(null(), |p| p.cast())
    }
    /// String number `i` of an array; NULL when there is no such.
    pub fn gguf_get_arr_str(ctx: *const gguf_context, key_id: i64, i: usize) -> *const c_char {
        const CALL: &str = "gguf_get_arr_str";
        let list = pair(CALL, ctx, key_id).and_then(|kv| checked(CALL, kv.strings()));
        list.and_then(|list| list.get_with_nul(i)).map_or(null(), |text| text.as_ptr().cast())
    }

    /// How many tensors there are.
    pub fn gguf_get_n_tensors(ctx: *const gguf_context) -> i64 {
        file("gguf_get_n_tensors", ctx).map_or(0, |f| f.meta.tensors().len() as i64)
    }
    /// Number of the tensor of that name; -1 when there is none.
    pub fn gguf_find_tensor(ctx: *const gguf_context, name: *const c_char) -> i64 {
        const CALL: &str = "gguf_find_tensor";
        let found = file(CALL, ctx).and_then(|f| f.meta.find_tensor(bytes(CALL, name)?));
        found.map_or(-1, |id| id as i64)
    }
    /// Where a tensor's bytes start in the data section.
    pub fn gguf_get_tensor_offset(ctx: *const gguf_context, tensor_id: i64) -> usize {
        const CALL: &str = "gguf_get_tensor_offset";
        file(CALL, ctx).and_then(|f| checked(CALL, f.meta.tensor(tensor_id))).map_or(0, |t| t.offset() as usize)
    }
    /// Name of a tensor.
    pub fn gguf_get_tensor_name(ctx: *const gguf_context, tensor_id: i64) -> *const c_char {
        const CALL: &str = "gguf_get_tensor_name";
        let info = file(CALL, ctx).and_then(|f| checked(CALL, f.meta.tensor(tensor_id)));
        info.map_or(null(), |t| t.name().as_bytes_with_nul().as_ptr().cast())
    }
    /// Shape of a tensor: four numbers, low to high.
    pub fn gguf_get_tensor_ne(ctx: *const gguf_context, tensor_id: i64) -> *const i64 {
        const CALL: &str = "gguf_get_tensor_ne";
        file(CALL, ctx).and_then(|f| checked(CALL, f.meta.tensor(tensor_id))).map_or(null(), |t| t.ne().as_ptr())
    }
    /// Format of a tensor.
    pub fn gguf_get_tensor_type(ctx: *const gguf_context, tensor_id: i64) -> ggml_type {
        const CALL: &str = "gguf_get_tensor_type";
        let info = file(CALL, ctx).and_then(|f| checked(CALL, f.meta.tensor(tensor_id)));
        info.map_or(GGML_TYPE_COUNT, |t| ggml_type(t.type_id()))
    }
    /// Bytes of a tensor.
    pub fn gguf_get_tensor_size(ctx: *const gguf_context, tensor_id: i64) -> usize {
        const CALL: &str = "gguf_get_tensor_size";
        file(CALL, ctx).and_then(|f| checked(CALL, f.meta.tensor(tensor_id))).map_or(0, |t| t.nbytes() as usize)
    }

    /// Removes a pair; returns the number that it had, -1 when there was none.
    pub fn gguf_remove_key(ctx: *mut gguf_context, key: *const c_char) -> i64 {
        const CALL: &str = "gguf_remove_key";
        let (Some(file), Some(key)) = (file_mut(CALL, ctx), bytes(CALL, key)) else { return -1 };
        checked(CALL, file.meta.remove_key(key)).flatten().map_or(-1, |id| id as i64)
    }
    /// Sets a pair, which becomes the last; one with the same key goes.
    pub fn gguf_set_val_u8(ctx: *mut gguf_context, key: *const c_char, val: u8) {
        set("gguf_set_val_u8", ctx, key, false, Values::one(val));
    }
    /// Sets a pair, which becomes the last; one with the same key goes.
    pub fn gguf_set_val_i8(ctx: *mut gguf_context, key: *const c_char, val: i8) {
        set("gguf_set_val_i8", ctx, key, false, Values::one(val));
    }
    /// Sets a pair, which becomes the last; one with the same key goes.
    pub fn gguf_set_val_u16(ctx: *mut gguf_context, key: *const c_char, val: u16) {
        set("gguf_set_val_u16", ctx, key, false, Values::one(val));
    }
    /// Sets a pair, which becomes the last; one with the same key goes.
    pub fn gguf_set_val_i16(ctx: *mut gguf_context, key: *const c_char, val: i16) {
        set("gguf_set_val_i16", ctx, key, false, Values::one(val));
    }
    /// Sets a pair, which becomes the last; one with the same key goes.
    pub fn gguf_set_val_u32(ctx: *mut gguf_context, key: *const c_char, val: u32) {
        set("gguf_set_val_u32", ctx, key, false, Values::one(val));
    }
    /// Sets a pair, which becomes the last; one with the same key goes.
    pub fn gguf_set_val_i32(ctx: *mut gguf_context, key: *const c_char, val: i32) {
        set("gguf_set_val_i32", ctx, key, false, Values::one(val));
    }
    /// Sets a pair, which becomes the last; one with the same key goes.
    pub fn gguf_set_val_f32(ctx: *mut gguf_context, key: *const c_char, val: f32) {
        set("gguf_set_val_f32", ctx, key, false, Values::one(val));
    }
    /// Sets a pair, which becomes the last; one with the same key goes.
    pub fn gguf_set_val_u64(ctx: *mut gguf_context, key: *const c_char, val: u64) {
        set("gguf_set_val_u64", ctx, key, false, Values::one(val));
    }
    /// Sets a pair, which becomes the last; one with the same key goes.
    pub fn gguf_set_val_i64(ctx: *mut gguf_context, key: *const c_char, val: i64) {
        set("gguf_set_val_i64", ctx, key, false, Values::one(val));
    }
    /// Sets a pair, which becomes the last; one with the same key goes.
    pub fn gguf_set_val_f64(ctx: *mut gguf_context, key: *const c_char, val: f64) {
        set("gguf_set_val_f64", ctx, key, false, Values::one(val));
    }
    /// Sets a pair, which becomes the last; one with the same key goes.
    pub fn gguf_set_val_bool(ctx: *mut gguf_context, key: *const c_char, val: bool) {
        set("gguf_set_val_bool", ctx, key, false, Values::one(val));
    }
    /// Sets a pair to a string; the string is copied.
    pub fn gguf_set_val_str(ctx: *mut gguf_context, key: *const c_char, val: *const c_char) {
        const CALL: &str = "gguf_set_val_str";
        if let Some(text) = bytes(CALL, val) {
            set(CALL, ctx, key, false, Values::one_str(text));
        }
    }
    /// Sets a pair to an array of `n` numbers, which are copied.
    pub fn gguf_set_arr_data(ctx: *mut gguf_context, key: *const c_char, r#type: gguf_type, data: *const c_void, n: usize) {
        const CALL: &str = "gguf_set_arr_data";
        let size = ValueType::from_id(r#type.0).filter(|t| !matches!(t, ValueType::Str | ValueType::Array)).map(|t| (t, t.size()));
        let Some((ty, total)) = size.and_then(|(t, size)| Some((t, size.checked_mul(n)?))).filter(|_| n == 0 || !data.is_null()) else {
            return error::report(&Error::argument(format!("{CALL}: takes {n} numbers of a known type; this is {:?} at {data:p}", r#type)));
        };
        let elements = if total == 0 { &[] } else { std::slice::from_raw_parts(data.cast::<u8>(), total) };
        set(CALL, ctx, key, true, Values::from_ne_bytes(ty, elements));
    }
    /// Sets a pair to an array of `n` strings, which are copied.
    pub fn gguf_set_arr_str(ctx: *mut gguf_context, key: *const c_char, data: *mut *const c_char, n: usize) {
        const CALL: &str = "gguf_set_arr_str";
        if n > 0 && data.is_null() {
            return error::fail(GGML_EXT_CODE_NULL_ARGUMENT, format!("{CALL}: data must not be NULL"));
        }
        let mut list = StrList::new();
        for i in 0..n {
            let Some(text) = bytes(CALL, *data.add(i)) else { return };
            if checked(CALL, list.push(text)).is_none() {
                return;
            }
        }
        set(CALL, ctx, key, true, Ok(Values::Str(list)));
    }
    /// Sets copies of all pairs of another file.
    pub fn gguf_set_kv(ctx: *mut gguf_context, src: *const gguf_context) {
        const CALL: &str = "gguf_set_kv";
        if std::ptr::eq(ctx, src) {
            return;
        }
        if let (Some(to), Some(from)) = (file_mut(CALL, ctx), file(CALL, src)) {
            checked(CALL, to.meta.set_kv(&from.meta));
        }
    }
    /// Adds a tensor of a name that is not there yet. It stays the caller's and is read when the file is written.
    pub fn gguf_add_tensor(ctx: *mut gguf_context, tensor: *const ggml_tensor) {
        const CALL: &str = "gguf_add_tensor";
        if tensor.is_null() {
            return error::fail(GGML_EXT_CODE_NULL_ARGUMENT, format!("{CALL}: tensor must not be NULL"));
        }
        if let Some(Err(e)) = file_mut(CALL, ctx).map(|f| f.add_tensor(tensor)) {
            fault(CALL, e);
        }
    }
    /// Changes a tensor's format; the tensors behind it move.
    pub fn gguf_set_tensor_type(ctx: *mut gguf_context, name: *const c_char, r#type: ggml_type) {
        const CALL: &str = "gguf_set_tensor_type";
        if let (Some(file), Some(name)) = (file_mut(CALL, ctx), bytes(CALL, name)) {
            checked(CALL, file.meta.set_tensor_type(name, r#type.0));
        }
    }
    /// Says where a tensor's bytes are, `gguf_get_tensor_size` of them; they are read when the file is written.
    pub fn gguf_set_tensor_data(ctx: *mut gguf_context, name: *const c_char, data: *const c_void) {
        const CALL: &str = "gguf_set_tensor_data";
        if let (Some(file), Some(name)) = (file_mut(CALL, ctx), bytes(CALL, name)) {
            if let Err(e) = file.set_data(name, data) {
                fault(CALL, e);
            }
        }
    }

    /// Writes the file, or its meta data only, to a stream. False with an error when that fails.
    pub fn gguf_write_to_file_ptr(ctx: *const gguf_context, file: *mut FILE, only_meta: bool) -> bool {
        const CALL: &str = "gguf_write_to_file_ptr";
        match CFile::new(file) {
            Some(mut to) => write(CALL, ctx, &mut to, only_meta),
            None => {
                error::fail(GGML_EXT_CODE_NULL_ARGUMENT, format!("{CALL}: file must not be NULL"));
                false
            }
        }
    }
    /// Writes the file, or its meta data only. False with an error when that fails.
    pub fn gguf_write_to_file(ctx: *const gguf_context, fname: *const c_char, only_meta: bool) -> bool {
        const CALL: &str = "gguf_write_to_file";
        let Some(path) = path(CALL, fname) else { return false };
        match std::fs::File::create(path) {
            Ok(mut to) => write(CALL, ctx, &mut to, only_meta),
            Err(e) => {
                io_fault(CALL, path, e);
                false
            }
        }
    }
    /// Bytes of the meta data with its padding.
    pub fn gguf_get_meta_size(ctx: *const gguf_context) -> usize {
        const CALL: &str = "gguf_get_meta_size";
        file(CALL, ctx).and_then(|f| checked(CALL, f.meta.meta_size())).map_or(0, |n| n as usize)
    }
    /// Writes the meta data to `data`, which has `gguf_get_meta_size` bytes.
    pub fn gguf_get_meta_data(ctx: *const gguf_context, data: *mut c_void) {
        const CALL: &str = "gguf_get_meta_data";
        if data.is_null() {
            return error::fail(GGML_EXT_CODE_NULL_ARGUMENT, format!("{CALL}: data must not be NULL"));
        }
        if let Some(meta) = file(CALL, ctx).and_then(|f| checked(CALL, f.meta.meta_bytes())) {
            std::ptr::copy_nonoverlapping(meta.as_ptr(), data.cast::<u8>(), meta.len());
        }
    }
}
