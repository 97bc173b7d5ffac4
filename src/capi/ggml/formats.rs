//! Entry points of ggml.h: conversion between formats, and the table of their traits.

use crate::entry;
use crate::error::{self, Error};
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use ggml_oxide_types::{self as types, float, Type};
use std::ffi::{c_char, c_void, CString};
use std::sync::LazyLock;

/// Bytes of `n` elements at `data`; an error for a count or pointer that cannot be.
///
/// # Safety
/// `data` is NULL or valid for `n` elements of format `ty`.
unsafe fn bytes<'a>(call: &str, ty: Type, data: *const c_void, n: i64) -> Option<&'a [u8]> {
    // SAFETY: the contract above.
    check(call, ty, data, n).map(|len| unsafe { std::slice::from_raw_parts(data.cast(), len) })
}

/// As [`bytes`], to be written.
///
/// # Safety
/// As for [`bytes`], and nobody else uses the bytes.
unsafe fn bytes_mut<'a>(call: &str, ty: Type, data: *mut c_void, n: i64) -> Option<&'a mut [u8]> {
    // SAFETY: the contract above.
    check(call, ty, data, n).map(|len| unsafe { std::slice::from_raw_parts_mut(data.cast(), len) })
}

fn check(call: &str, ty: Type, data: *const c_void, n: i64) -> Option<usize> {
    let len = shape::checked_row_size(ggml_type(ty.id()), n).filter(|&len| len <= isize::MAX as usize);
    match len {
        Some(len) if !data.is_null() => Some(len),
        _ => {
            let rule =
                if data.is_null() { "the memory is NULL" } else { "must be a whole number of blocks, not negative" };
            error::report(&Error::argument(format!("{call}: {n} elements of {}: {rule}", ty.name())));
            None
        }
    }
}

/// # Safety
/// `x` and `y` are valid for `k` elements and do not overlap.
pub(crate) unsafe fn decode(call: &str, ty: Type, x: *const c_void, y: *mut f32, k: i64) {
    if k == 0 {
        return;
    }
    // SAFETY: the contract above; floats are plain bytes.
    unsafe {
        let Some((x, _)) = bytes(call, ty, x, k).zip(check(call, Type::F32, y.cast(), k)) else {
            return;
        };
        report(call, types::to_f32(ty, x, std::slice::from_raw_parts_mut(y, k as usize)));
    }
}

/// # Safety
/// `x` and `y` are valid for `k` elements and do not overlap.
pub(crate) unsafe fn encode(call: &str, ty: Type, x: *const f32, y: *mut c_void, k: i64) {
    if k == 0 {
        return;
    }
    // SAFETY: the contract above; floats are plain bytes.
    unsafe {
        let Some((y, _)) = bytes_mut(call, ty, y, k).zip(check(call, Type::F32, x.cast(), k)) else {
            return;
        };
        report(call, types::from_f32(ty, std::slice::from_raw_parts(x, k as usize), y));
    }
}

fn report(call: &str, result: Result<(), types::Error>) {
    if let Err(error) = result {
        error::report(&Error::argument(format!("{call}: {error}")));
    }
}

entry! {
    /// Half precision to single.
    pub fn ggml_fp16_to_fp32(x: ggml_fp16_t) -> f32 {
        float::f16_to_f32(x)
    }
    /// Single precision to half, to nearest, ties to even.
    pub fn ggml_fp32_to_fp16(x: f32) -> ggml_fp16_t {
        float::f32_to_f16(x)
    }
    /// `n` numbers of half precision to single.
    pub fn ggml_fp16_to_fp32_row(x: *const ggml_fp16_t, y: *mut f32, n: i64) {
        decode("ggml_fp16_to_fp32_row", Type::F16, x.cast(), y, n);
    }
    /// `n` numbers of single precision to half.
    pub fn ggml_fp32_to_fp16_row(x: *const f32, y: *mut ggml_fp16_t, n: i64) {
        encode("ggml_fp32_to_fp16_row", Type::F16, x, y.cast(), n);
    }
    /// Single precision to bf16, to nearest, ties to even.
    pub fn ggml_fp32_to_bf16(x: f32) -> ggml_bf16_t {
        ggml_bf16_t { bits: float::f32_to_bf16(x) }
    }
    /// bf16 to single precision.
    pub fn ggml_bf16_to_fp32(x: ggml_bf16_t) -> f32 {
        float::bf16_to_f32(x.bits)
    }
    /// `n` numbers of bf16 to single precision.
    pub fn ggml_bf16_to_fp32_row(x: *const ggml_bf16_t, y: *mut f32, n: i64) {
        decode("ggml_bf16_to_fp32_row", Type::BF16, x.cast(), y, n);
    }
    /// `n` numbers of single precision to bf16.
    pub fn ggml_fp32_to_bf16_row(x: *const f32, y: *mut ggml_bf16_t, n: i64) {
        encode("ggml_fp32_to_bf16_row", Type::BF16, x, y.cast(), n);
    }
    /// As `ggml_fp32_to_bf16_row`: there is one conversion.
    pub fn ggml_fp32_to_bf16_row_ref(x: *const f32, y: *mut ggml_bf16_t, n: i64) {
        encode("ggml_fp32_to_bf16_row_ref", Type::BF16, x, y.cast(), n);
    }
}

impl crate::capi::Fallback for ggml_bf16_t {
    fn fallback() -> Self {
        ggml_bf16_t { bits: 0 }
    }
}

/// The decoder of the format with this id, for C.
unsafe extern "C" fn to_float<const ID: i32>(x: *const c_void, y: *mut f32, k: i64) {
    if let Some(ty) = Type::from_id(ID) {
        // SAFETY: the contract of `ggml_to_float_t`.
        crate::capi::guard("to_float", || unsafe { decode("to_float", ty, x, y, k) });
    }
}

/// The encoder of the format with this id, for C.
unsafe extern "C" fn from_float<const ID: i32>(x: *const f32, y: *mut c_void, k: i64) {
    if let Some(ty) = Type::from_id(ID) {
        // SAFETY: the contract of `ggml_from_float_t`.
        crate::capi::guard("from_float_ref", || unsafe { encode("from_float_ref", ty, x, y, k) });
    }
}

macro_rules! codecs {
    ($($id:literal)*) => { [$((to_float::<$id> as unsafe extern "C" fn(_, _, _), from_float::<$id> as unsafe extern "C" fn(_, _, _))),*] };
}
type ToFloat = unsafe extern "C" fn(*const c_void, *mut f32, i64);
type FromFloat = unsafe extern "C" fn(*const f32, *mut c_void, i64);
/// The codecs by id, whether the format has any or not.
const CODECS: [(ToFloat, FromFloat); 45] = codecs!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28
    29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44);

struct Traits {
    table: Vec<ggml_type_traits>,
    _names: Vec<CString>,
}
// SAFETY: the pointers are to the names held beside them and to functions; nothing is changed.
unsafe impl Send for Traits {}
// SAFETY: as above.
unsafe impl Sync for Traits {}

static TRAITS: LazyLock<Traits> = LazyLock::new(|| {
    let names: Vec<CString> = (0..CODECS.len() as i32).map(|id| error::c_string(types::name_of_id(id))).collect();
    let entry = |(id, name): (usize, &CString)| traits_of(id as i32, name.as_ptr());
    Traits { table: names.iter().enumerate().map(entry).collect(), _names: names }
});

/// The traits of a format; those of a removed one have no size and no functions.
fn traits_of(id: i32, type_name: *const c_char) -> ggml_type_traits {
    let ty = Type::from_id(id);
    // Single precision needs no codec and numbers that are whole or double have none in this interface; the formats that only
    // products convert to have no decoder there.
    let plain = |ty| matches!(ty, Type::F32 | Type::F64 | Type::I8 | Type::I16 | Type::I32 | Type::I64 | Type::Q8_K);
    let codec = ty.filter(|&ty| !plain(ty)).map(types::kernels);
    let (to_float, from_float) = CODECS[id as usize];
    ggml_type_traits {
        type_name,
        blck_size: ty.map_or(0, |ty| ty.block_size() as i64),
        blck_size_interleave: 0,
        type_size: ty.map_or(0, |ty| ty.block_bytes()),
        is_quantized: ty.is_some_and(|ty| ty.is_quantized()),
        to_float: codec.and_then(|k| k.decode).filter(|_| ty != Some(Type::Q8_1)).map(|_| to_float),
        from_float_ref: codec.and_then(|k| k.encode).map(|_| from_float),
    }
}

entry! {
    /// Facts about a format; NULL with an error for an id out of range. Those of a removed format have size 0.
    pub fn ggml_get_type_traits(r#type: ggml_type) -> *const ggml_type_traits {
        let traits = usize::try_from(r#type.0).ok().and_then(|i| TRAITS.table.get(i));
        traits.map_or_else(
            || {
                error::fail(GGML_EXT_CODE_BAD_ARGUMENT, format!("ggml_get_type_traits: there is no format {}", r#type.0));
                std::ptr::null()
            },
            |traits| &raw const *traits,
        )
    }
    /// Prepares the tables of a quantiser. Not needed: they are prepared on first use.
    pub fn ggml_quantize_init(r#type: ggml_type) {
        let _ = r#type;
    }
    /// Frees the tables of all quantisers; no change, since none is held.
    pub fn ggml_quantize_free() {}
    /// Whether a format cannot be made without an importance matrix.
    pub fn ggml_quantize_requires_imatrix(r#type: ggml_type) -> bool {
        shape::format_of(r#type).is_some_and(|ty| ty.requires_imatrix())
    }
    /// Encodes `nrows` rows of `n_per_row` elements from element `start` on, a whole number of rows, of `src` to the same place of
    /// `dst`. `imatrix`: NULL or a weight for each element of a row. Answers the bytes written; 0 with an error when the format cannot
    /// be encoded or the numbers do not fit.
    pub fn ggml_quantize_chunk(
        r#type: ggml_type,
        src: *const f32,
        dst: *mut c_void,
        start: i64,
        nrows: i64,
        n_per_row: i64,
        imatrix: *const f32,
    ) -> usize {
        const CALL: &str = "ggml_quantize_chunk";
        let refuse = |rule: &str| {
            error::report(&Error::argument(format!("{CALL}: {:?}, {nrows} rows of {n_per_row} from {start}: {rule}", r#type)));
            0
        };
        let whole = |ty| matches!(ty, Type::F64 | Type::I8 | Type::I16 | Type::I32 | Type::I64 | Type::Q8_1 | Type::Q8_K);
        let Some(ty) = shape::format_of(r#type).filter(|&ty| !whole(ty)) else {
            return refuse("there is no quantiser for the format");
        };
        if src.is_null() || dst.is_null() {
            return refuse("src or dst is NULL");
        }
        if ty.requires_imatrix() && imatrix.is_null() {
            return refuse("the format needs an importance matrix");
        }
        let counts = [start, nrows, n_per_row].map(usize::try_from);
        let [Ok(start), Ok(nrows), Ok(n_per_row)] = counts else {
            return refuse("a count is negative");
        };
        if n_per_row == 0 || nrows == 0 {
            return 0;
        }
        let Some(first) = start.checked_div(n_per_row).filter(|row| row * n_per_row == start) else {
            return refuse("start must be a whole number of rows");
        };
        let sizes = || {
            let row = ty.row_bytes(n_per_row)?;
            let (skip, bytes) = (first.checked_mul(row)?, nrows.checked_mul(row)?);
            let n = nrows.checked_mul(n_per_row)?;
            let in_reach = |n: usize, size: usize| n.checked_mul(size).is_some_and(|n| n <= isize::MAX as usize);
            (in_reach(n, 4) && in_reach(start, 4) && in_reach(skip, 1) && in_reach(bytes, 1)).then_some((skip, bytes, n))
        };
        let Some((skip, bytes, n)) = sizes() else {
            return refuse("rows must be whole blocks, and fit into memory");
        };
        let rows = std::slice::from_raw_parts(src.add(start), n);
        let out = std::slice::from_raw_parts_mut(dst.cast::<u8>().add(skip), bytes);
        let weights = (!imatrix.is_null()).then(|| std::slice::from_raw_parts(imatrix, n_per_row));
        types::quantize_rows(ty, rows, out, nrows, n_per_row, weights).unwrap_or_else(|error| refuse(&error.to_string()))
    }
    /// Whether `nbytes` of a format at `data` are whole blocks whose scales and plain values are all finite; an error says which is
    /// not, and the log has it too.
    pub fn ggml_validate_row_data(r#type: ggml_type, data: *const c_void, nbytes: usize) -> bool {
        const CALL: &str = "ggml_validate_row_data";
        let refuse = |rule: String| {
            error::report(&Error::argument(format!("{CALL}: {nbytes} bytes of {:?}: {rule}", r#type)));
            false
        };
        let Some(ty) = shape::format_of(r#type) else {
            return refuse("there is no such format".into());
        };
        if !nbytes.is_multiple_of(ty.block_bytes()) {
            return refuse(format!("must be a whole number of blocks of {}", ty.block_bytes()));
        }
        if nbytes == 0 {
            return true;
        }
        if data.is_null() || nbytes > isize::MAX as usize {
            return refuse("the memory is NULL, or more than there can be".into());
        }
        match types::check_finite(ty, std::slice::from_raw_parts(data.cast(), nbytes)) {
            Ok(()) => true,
            Err(at) => refuse(format!("{} in block {}", if at.nan { "a NaN" } else { "an infinity" }, at.block)),
        }
    }
    /// The tensor format of a model file's format; `GGML_TYPE_COUNT` with an error for one that has none.
    pub fn ggml_ftype_to_ggml_type(ftype: ggml_ftype) -> ggml_type {
        match ftype {
            GGML_FTYPE_ALL_F32 => GGML_TYPE_F32,
            GGML_FTYPE_MOSTLY_F16 => GGML_TYPE_F16,
            GGML_FTYPE_MOSTLY_BF16 => GGML_TYPE_BF16,
            GGML_FTYPE_MOSTLY_Q4_0 => GGML_TYPE_Q4_0,
            GGML_FTYPE_MOSTLY_Q4_1 => GGML_TYPE_Q4_1,
            GGML_FTYPE_MOSTLY_Q5_0 => GGML_TYPE_Q5_0,
            GGML_FTYPE_MOSTLY_Q5_1 => GGML_TYPE_Q5_1,
            GGML_FTYPE_MOSTLY_Q8_0 => GGML_TYPE_Q8_0,
            GGML_FTYPE_MOSTLY_Q1_0 => GGML_TYPE_Q1_0,
            GGML_FTYPE_MOSTLY_Q2_0 => GGML_TYPE_Q2_0,
            GGML_FTYPE_MOSTLY_MXFP4 => GGML_TYPE_MXFP4,
            GGML_FTYPE_MOSTLY_NVFP4 => GGML_TYPE_NVFP4,
            GGML_FTYPE_MOSTLY_Q2_K => GGML_TYPE_Q2_K,
            GGML_FTYPE_MOSTLY_Q3_K => GGML_TYPE_Q3_K,
            GGML_FTYPE_MOSTLY_Q4_K => GGML_TYPE_Q4_K,
            GGML_FTYPE_MOSTLY_Q5_K => GGML_TYPE_Q5_K,
            GGML_FTYPE_MOSTLY_Q6_K => GGML_TYPE_Q6_K,
            GGML_FTYPE_MOSTLY_IQ2_XXS => GGML_TYPE_IQ2_XXS,
            GGML_FTYPE_MOSTLY_IQ2_XS => GGML_TYPE_IQ2_XS,
            GGML_FTYPE_MOSTLY_IQ3_XXS => GGML_TYPE_IQ3_XXS,
            GGML_FTYPE_MOSTLY_IQ1_S => GGML_TYPE_IQ1_S,
            GGML_FTYPE_MOSTLY_IQ4_NL => GGML_TYPE_IQ4_NL,
            GGML_FTYPE_MOSTLY_IQ3_S => GGML_TYPE_IQ3_S,
            GGML_FTYPE_MOSTLY_IQ2_S => GGML_TYPE_IQ2_S,
            GGML_FTYPE_MOSTLY_IQ4_XS => GGML_TYPE_IQ4_XS,
            GGML_FTYPE_MOSTLY_IQ1_M => GGML_TYPE_IQ1_M,
            _ => {
                error::fail(GGML_EXT_CODE_BAD_ARGUMENT, format!("ggml_ftype_to_ggml_type: {ftype:?} has no tensor format"));
                GGML_TYPE_COUNT
            }
        }
    }
}
