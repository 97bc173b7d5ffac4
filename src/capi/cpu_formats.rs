//! Entry points of ggml-cpu.h: what the CPU backend does with a format, and conversions of rows.

use super::ggml::formats::{decode, encode};
use crate::entry;
use crate::error::{self, Error};
use ggml_oxide_abi::*;
use ggml_oxide_types::{self as types, Rows, Type};
use std::ffi::{c_int, c_void};
use std::sync::LazyLock;

/// The encoder of the format with this id, for C.
unsafe extern "C" fn from_float<const ID: i32>(x: *const f32, y: *mut c_void, k: i64) {
    if let Some(ty) = Type::from_id(ID) {
        // SAFETY: the contract of `ggml_from_float_t`.
        super::guard("from_float", || unsafe { encode("from_float", ty, x, y, k) });
    }
}

/// `nrc` rows of x, `bx` bytes apart, with as many of y, `by` bytes apart: `s[c * bs + r]` is row r of x with row c of y.
unsafe extern "C" fn vec_dot<const ID: i32>(
    n: c_int,
    s: *mut f32,
    bs: usize,
    x: *const c_void,
    bx: usize,
    y: *const c_void,
    by: usize,
    nrc: c_int,
) {
    // SAFETY: the contract of `ggml_vec_dot_t`: rows of n elements, room for the results.
    super::guard("vec_dot", || unsafe {
        dot_rows(ID, n, s, bs, Rows { ptr: x.cast(), stride: bx, count: 1 }, y.cast(), by, nrc)
    });
}

/// # Safety
/// The rows are readable in full, the results writable.
#[allow(clippy::too_many_arguments)] // those of the C function
unsafe fn dot_rows(id: i32, n: c_int, s: *mut f32, bs: usize, x: Rows, y: *const u8, by: usize, nrc: c_int) {
    let refuse = |rule: &str| {
        error::report(&Error::argument(format!("vec_dot: {n} elements of {}: {rule}", types::name_of_id(id))))
    };
    let Some((ty, dot)) = Type::from_id(id).and_then(|ty| Some((ty, types::kernels(ty).dot?))) else {
        return refuse("there is no dot product for the format");
    };
    let (Ok(n), Ok(count)) = (usize::try_from(n), usize::try_from(nrc)) else {
        return refuse("a count is negative");
    };
    if n % ty.block_size() != 0 {
        return refuse("must be a whole number of blocks");
    }
    if s.is_null() || (n > 0 && (x.ptr.is_null() || y.is_null())) {
        return refuse("the memory is NULL");
    }
    // SAFETY: n is whole blocks; the rest is the caller's promise.
    unsafe { dot(n, Rows { count, ..x }, Rows { ptr: y, stride: by, count }, s, bs) };
}

type FromFloat = unsafe extern "C" fn(*const f32, *mut c_void, i64);
type VecDot = unsafe extern "C" fn(c_int, *mut f32, usize, *const c_void, usize, *const c_void, usize, c_int);

macro_rules! functions {
    ($($id:literal)*) => { [$((from_float::<$id> as FromFloat, vec_dot::<$id> as VecDot)),*] };
}
/// By id, whether the format has any or not.
const FUNCTIONS: [(FromFloat, VecDot); 45] = functions!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27
    28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44);

static TRAITS: LazyLock<Vec<ggml_type_traits_cpu>> = LazyLock::new(|| (0..FUNCTIONS.len()).map(traits_of).collect());

/// As ggml fills the table: the codebook formats are made by `ggml_quantize_chunk` only, and of the integers there is i32.
fn traits_of(id: usize) -> ggml_type_traits_cpu {
    use Type::*;
    let (from_float, vec_dot) = FUNCTIONS[id];
    let ty = Type::from_id(id as i32);
    let unmade = |ty| matches!(ty, IQ1_S | IQ1_M | IQ2_XXS | IQ2_XS | IQ2_S | IQ3_XXS | IQ3_S | F64 | I8 | I16 | I64);
    // q8_1 is the other operand of some formats and has no product of its own.
    let other = ty.and_then(|ty| if ty == Q8_1 { Some(Q8_1) } else { ty.vec_dot_type() });
    ggml_type_traits_cpu {
        from_float: ty.filter(|&ty| !unmade(ty) && types::kernels(ty).encode.is_some()).map(|_| from_float),
        vec_dot: ty.and_then(|ty| types::kernels(ty).dot).map(|_| vec_dot),
        vec_dot_type: other.map_or(GGML_TYPE_F32, |ty| ggml_type(ty.id())),
        nrows: i64::from(other.is_some()),
    }
}

entry! {
    /// What the CPU does with a format: encoder, dot product and the format of its other operand. NULL with an error for an id out of
    /// range; those of a removed format have no functions. `vec_dot` takes any number of rows, whatever `nrows` says.
    pub fn ggml_get_type_traits_cpu(r#type: ggml_type) -> *const ggml_type_traits_cpu {
        usize::try_from(r#type.0).ok().and_then(|i| TRAITS.get(i)).map_or_else(
            || {
                error::fail(GGML_EXT_CODE_BAD_ARGUMENT, format!("ggml_get_type_traits_cpu: there is no format {}", r#type.0));
                std::ptr::null()
            },
            |traits| &raw const *traits,
        )
    }
    /// Copies `n` numbers.
    pub fn ggml_cpu_fp32_to_fp32(x: *const f32, y: *mut f32, n: i64) {
        encode("ggml_cpu_fp32_to_fp32", Type::F32, x, y.cast(), n);
    }
    /// `n` numbers to whole ones, towards zero; what does not fit becomes the nearest that does, NaN 0.
    pub fn ggml_cpu_fp32_to_i32(x: *const f32, y: *mut i32, n: i64) {
        encode("ggml_cpu_fp32_to_i32", Type::I32, x, y.cast(), n);
    }
    /// `n` numbers of single precision to half.
    pub fn ggml_cpu_fp32_to_fp16(x: *const f32, y: *mut ggml_fp16_t, n: i64) {
        encode("ggml_cpu_fp32_to_fp16", Type::F16, x, y.cast(), n);
    }
    /// `n` numbers of half precision to single.
    pub fn ggml_cpu_fp16_to_fp32(x: *const ggml_fp16_t, y: *mut f32, n: i64) {
        decode("ggml_cpu_fp16_to_fp32", Type::F16, x.cast(), y, n);
    }
    /// `n` numbers of single precision to bf16.
    pub fn ggml_cpu_fp32_to_bf16(x: *const f32, y: *mut ggml_bf16_t, n: i64) {
        encode("ggml_cpu_fp32_to_bf16", Type::BF16, x, y.cast(), n);
    }
    /// `n` numbers of bf16 to single precision.
    pub fn ggml_cpu_bf16_to_fp32(x: *const ggml_bf16_t, y: *mut f32, n: i64) {
        decode("ggml_cpu_bf16_to_fp32", Type::BF16, x.cast(), y, n);
    }
}
