//! One table of functions for each format, chosen once for the machine, and the checked calls on top of it.

use std::sync::OnceLock;

use crate::{block, float, fp4, fp8, iq, iq4, kquants as k, q4, q5, q8, ternary, Error, Type};

/// Converts whole blocks, as many as both slices hold.
pub type Decode = fn(src: &[u8], dst: &mut [f32]);
/// Converts whole blocks, as many as both slices hold.
pub type Encode = fn(src: &[f32], dst: &mut [u8]);
/// Converts one row with one importance weight for each element.
pub type EncodeWeighted = fn(src: &[f32], dst: &mut [u8], imatrix: &[f32]);

/// `nrows` x `ncols` dot products of `n` elements: `out[c * out_stride + r] = x_row(r) . y_row(c)`. `out` and
/// `out_stride` count floats; `x_stride` and `y_stride` count bytes. The bits of a product depend on its two rows only,
/// not on the rows that are computed with it.
///
/// # Safety
/// `n` is a multiple of the format's block; every addressed row of x and y is readable in full (any alignment), every
/// addressed float of out writable and aligned.
pub type DotTile = unsafe fn(n: usize, x: Rows, y: Rows, out: *mut f32, out_stride: usize);

/// Equally spaced rows in memory.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    /// First byte of the first row.
    pub ptr: *const u8,
    /// Bytes from a row to the next.
    pub stride: usize,
    /// Number of rows.
    pub count: usize,
}

impl Rows {
    /// A single row.
    pub fn one(ptr: *const u8) -> Rows {
        Rows { ptr, stride: 0, count: 1 }
    }
}

/// Least number of bytes from row to row at which kernels read rows of x side by side. Closer rows share pages, and the
/// processor, which fetches ahead by page, loses track of such an order: weights that lie in no cache then come at a
/// third of the memory's speed.
pub const SIDE_BY_SIDE: usize = 4096;

/// What the machine does with one format. A missing function means that ggml defines none.
#[derive(Clone, Copy)]
pub struct Kernels {
    pub decode: Option<Decode>,
    /// The deterministic conversion. There is no second, approximate one: the fast paths give the same bits.
    pub encode: Option<Encode>,
    /// What files are made with instead where there are no importance weights: None when that is `encode`.
    pub encode_searched: Option<Encode>,
    pub encode_weighted: Option<EncodeWeighted>,
    pub dot: Option<DotTile>,
}

/// The instruction set the kernels were chosen for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    Portable,
    /// AVX2, FMA and F16C.
    Avx2,
    /// AVX-512 F, BW, DQ, VL and VNNI, and BMI2.
    Avx512,
}

/// What this machine has.
pub fn level() -> Level {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        let avx2 =
            is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c");
        let avx512 = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vnni")
            && is_x86_feature_detected!("bmi2");
        match (avx2, avx512) {
            (true, true) => Level::Avx512,
            (true, false) => Level::Avx2,
            _ => Level::Portable,
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    Level::Portable
}

/// A portable dot product of two rows as a tile kernel.
macro_rules! tile {
    ($ty:ident, $f:path) => {{
        unsafe fn tile(n: usize, x: Rows, y: Rows, out: *mut f32, out_stride: usize) {
            const X: Type = Type::$ty;
            const Y: Type = match X.vec_dot_type() {
                Some(ty) => ty,
                None => panic!(),
            };
            let xb = n / X.block_size() * X.block_bytes();
            let yb = n / Y.block_size() * Y.block_bytes();
            for c in 0..y.count {
                for r in 0..x.count {
                    // SAFETY: rows r and c are readable and the float is writable by DotTile's contract.
                    unsafe {
                        let x = std::slice::from_raw_parts(x.ptr.add(r * x.stride), xb);
                        let y = std::slice::from_raw_parts(y.ptr.add(c * y.stride), yb);
                        out.add(c * out_stride + r).write($f(x, y));
                    }
                }
            }
        }
        tile as DotTile
    }};
}

const NONE: Kernels = Kernels { decode: None, encode: None, encode_searched: None, encode_weighted: None, dot: None };

const fn plain(decode: Decode, encode: Encode) -> Kernels {
    Kernels { decode: Some(decode), encode: Some(encode), ..NONE }
}

/// The codebook formats. Some encode with importance weights only.
fn codebook(ty: Type) -> Option<Kernels> {
    macro_rules! entry {
        ($ty:ident, $block:ident, $encode:expr, $weighted:path) => {
            Kernels {
                decode: Some(iq::decode::<block::$block>),
                encode: $encode,
                encode_weighted: Some($weighted),
                encode_searched: None,
                dot: Some(tile!($ty, iq::dot::<block::$block>)),
            }
        };
    }
    Some(match ty {
        Type::IQ2_XXS => entry!(IQ2_XXS, BlockIQ2XXS, None, iq::encode_iq2_xxs_weighted),
        Type::IQ2_XS => entry!(IQ2_XS, BlockIQ2XS, None, iq::encode_iq2_xs_weighted),
        Type::IQ2_S => entry!(IQ2_S, BlockIQ2S, Some(iq::iq2_s::plain), iq::iq2_s::weighted),
        Type::IQ3_XXS => entry!(IQ3_XXS, BlockIQ3XXS, Some(iq::iq3_xxs::plain), iq::iq3_xxs::weighted),
        Type::IQ3_S => entry!(IQ3_S, BlockIQ3S, Some(iq::iq3_s::plain), iq::iq3_s::weighted),
        Type::IQ1_S => entry!(IQ1_S, BlockIQ1S, None, iq::encode_iq1_s_weighted),
        Type::IQ1_M => {
            let searched: Option<Encode> = Some(iq::iq1_m::plain);
            Kernels { encode_searched: searched, ..entry!(IQ1_M, BlockIQ1M, None, iq::iq1_m::weighted) }
        }
        _ => return None,
    })
}

/// The portable kernels: the definition of every result.
pub(crate) fn portable(ty: Type) -> Kernels {
    if let Some(kernels) = codebook(ty) {
        return kernels;
    }
    let dot = Some(match ty {
        Type::F32 => tile!(F32, float::dot_f32),
        Type::F16 => tile!(F16, float::dot_f16),
        Type::BF16 => tile!(BF16, float::dot_bf16),
        Type::Q4_0 => tile!(Q4_0, q4::dot_q4_0),
        Type::Q4_1 => tile!(Q4_1, q4::dot_q4_1),
        Type::Q5_0 => tile!(Q5_0, q5::dot_q5_0),
        Type::Q5_1 => tile!(Q5_1, q5::dot_q5_1),
        Type::Q8_0 => tile!(Q8_0, q8::dot_q8_0),
        Type::Q2_K => tile!(Q2_K, k::dot_q2_k),
        Type::Q3_K => tile!(Q3_K, k::dot_q3_k),
        Type::Q4_K => tile!(Q4_K, k::dot_q4_k),
        Type::Q5_K => tile!(Q5_K, k::dot_q5_k),
        Type::Q6_K => tile!(Q6_K, k::dot_q6_k),
        Type::IQ4_NL => tile!(IQ4_NL, iq4::dot_iq4_nl),
        Type::IQ4_XS => tile!(IQ4_XS, iq4::dot_iq4_xs),
        Type::MXFP4 => tile!(MXFP4, fp4::dot_mxfp4),
        Type::NVFP4 => tile!(NVFP4, fp4::dot_nvfp4),
        Type::TQ1_0 => tile!(TQ1_0, ternary::dot_tq1_0),
        Type::TQ2_0 => tile!(TQ2_0, ternary::dot_tq2_0),
        Type::Q1_0 => tile!(Q1_0, ternary::dot_q1_0),
        Type::Q2_0 => tile!(Q2_0, ternary::dot_q2_0),
        Type::F8_E4M3 => return Kernels { decode: Some(fp8::decode_e4m3), ..NONE },
        Type::F8_E5M2 => return Kernels { decode: Some(fp8::decode_e5m2), ..NONE },
        Type::F64 => return plain(float::decode_f64, float::encode_f64),
        Type::I8 => return plain(float::decode_i8, float::encode_i8),
        Type::I16 => return plain(float::decode_i16, float::encode_i16),
        Type::I32 => return plain(float::decode_i32, float::encode_i32),
        Type::I64 => return plain(float::decode_i64, float::encode_i64),
        Type::Q8_1 => return plain(q8::decode_q8_1, q8::encode_q8_1),
        Type::Q8_K => return plain(q8::decode_q8_k, q8::encode_q8_k),
        _ => return NONE,
    });
    let weighted: Option<EncodeWeighted> = match ty {
        Type::Q4_0 => Some(q4::encode_q4_0_weighted),
        Type::Q4_1 => Some(q4::encode_q4_1_weighted),
        Type::Q5_0 => Some(q5::encode_q5_0_weighted),
        Type::Q5_1 => Some(q5::encode_q5_1_weighted),
        Type::Q2_K => Some(k::encode_q2_k_weighted),
        Type::Q3_K => Some(k::encode_q3_k_weighted),
        Type::Q4_K => Some(k::encode_q4_k_weighted),
        Type::Q5_K => Some(k::encode_q5_k_weighted),
        Type::Q6_K => Some(k::encode_q6_k_weighted),
        Type::IQ4_NL => Some(iq4::iq4_nl::weighted),
        Type::IQ4_XS => Some(iq4::iq4_xs::weighted),
        _ => None,
    };
    let (decode, encode): (Decode, Encode) = match ty {
        Type::F32 => (float::decode_f32, float::encode_f32),
        Type::F16 => (float::decode_f16, float::encode_f16),
        Type::BF16 => (float::decode_bf16, float::encode_bf16),
        Type::Q4_0 => (q4::decode_q4_0, q4::encode_q4_0),
        Type::Q4_1 => (q4::decode_q4_1, q4::encode_q4_1),
        Type::Q5_0 => (q5::decode_q5_0, q5::encode_q5_0),
        Type::Q5_1 => (q5::decode_q5_1, q5::encode_q5_1),
        Type::Q8_0 => (q8::decode_q8_0, q8::encode_q8_0),
        Type::Q2_K => (k::decode_q2_k, k::encode_q2_k),
        Type::Q3_K => (k::decode_q3_k, k::encode_q3_k),
        Type::Q4_K => (k::decode_q4_k, k::encode_q4_k),
        Type::Q5_K => (k::decode_q5_k, k::encode_q5_k),
        Type::Q6_K => (k::decode_q6_k, k::encode_q6_k),
        Type::IQ4_NL => (iq4::decode_iq4_nl, iq4::encode_iq4_nl),
        Type::IQ4_XS => (iq4::decode_iq4_xs, iq4::iq4_xs::plain),
        Type::MXFP4 => (fp4::decode_mxfp4, fp4::encode_mxfp4),
        Type::NVFP4 => (fp4::decode_nvfp4, fp4::encode_nvfp4),
        Type::TQ1_0 => (ternary::decode_tq1_0, ternary::encode_tq1_0),
        Type::TQ2_0 => (ternary::decode_tq2_0, ternary::encode_tq2_0),
        Type::Q1_0 => (ternary::decode_q1_0, ternary::encode_q1_0),
        Type::Q2_0 => (ternary::decode_q2_0, ternary::encode_q2_0),
        _ => return NONE,
    };
    let searched: Option<Encode> = match ty {
        Type::IQ4_NL => Some(iq4::iq4_nl::plain),
        _ => None,
    };
    Kernels { decode: Some(decode), encode: Some(encode), encode_searched: searched, encode_weighted: weighted, dot }
}

/// The kernels of a format at an instruction set level not above the machine's.
pub(crate) fn at_level(ty: Type, level: Level) -> Kernels {
    let base = portable(ty);
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if level >= Level::Avx2 {
        return crate::x86::upgrade(ty, level, base);
    }
    let _ = level;
    base
}

/// The kernels of a format for this machine, or the portable ones on a thread that computes [plainly](crate::plain).
pub fn kernels(ty: Type) -> &'static Kernels {
    if crate::plain::on() {
        static PLAIN: OnceLock<Vec<Kernels>> = OnceLock::new();
        return &PLAIN.get_or_init(|| Type::ALL.iter().map(|&ty| portable(ty)).collect())[ty as usize];
    }
    static TABLE: OnceLock<Vec<Kernels>> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        let level = level();
        Type::ALL.iter().map(|&ty| at_level(ty, level)).collect()
    });
    &table[ty as usize]
}

/// Elements to f32. `src` holds exactly as many elements as `dst` has room for.
pub fn to_f32(ty: Type, src: &[u8], dst: &mut [f32]) -> Result<(), Error> {
    let f = kernels(ty).decode.ok_or(Error::Unsupported { ty, what: "conversion to f32" })?;
    check_row(ty, dst.len(), src.len(), "source")?;
    f(src, dst);
    Ok(())
}

/// f32 to elements, without importance weights. `dst` has exactly the bytes of `src.len()` elements.
///
/// Values that are not finite: plain formats keep them (integers saturate, NaN gives 0); block formats take NaN as 0
/// and an infinity as the largest value of its sign. Finite values never give a scale that is not finite: scales
/// saturate at 65504, and blocks too small for an f16 scale become 0.
pub fn from_f32(ty: Type, src: &[f32], dst: &mut [u8]) -> Result<(), Error> {
    let kernels = kernels(ty);
    let f = kernels.encode.or(kernels.encode_searched).ok_or(match kernels.encode_weighted {
        Some(_) => Error::NeedsImportance { ty },
        None => Error::Unsupported { ty, what: "conversion from f32" },
    })?;
    check_row(ty, src.len(), dst.len(), "destination")?;
    f(src, dst);
    Ok(())
}

/// Rows of f32 to `ty`, with one importance weight for each element of a row where the format uses them (they are
/// ignored elsewhere). Returns the bytes written.
pub fn quantize_rows(
    ty: Type,
    src: &[f32],
    dst: &mut [u8],
    nrows: usize,
    n_per_row: usize,
    imatrix: Option<&[f32]>,
) -> Result<usize, Error> {
    let n = nrows.checked_mul(n_per_row).ok_or(Error::Overflow { ty })?;
    let row = ty.row_bytes(n_per_row).ok_or(Error::NotWholeBlocks { ty, elements: n_per_row })?;
    let bytes = row.checked_mul(nrows).ok_or(Error::Overflow { ty })?;
    if src.len() < n {
        return Err(Error::Length { ty, what: "source", need: n, have: src.len() });
    }
    if dst.len() < bytes {
        return Err(Error::Length { ty, what: "destination", need: bytes, have: dst.len() });
    }
    let kernels = kernels(ty);
    let (src, dst) = (&src[..n], &mut dst[..bytes]);
    match (imatrix, kernels.encode_weighted, kernels.encode_searched.or(kernels.encode)) {
        (Some(w), _, _) if w.len() < n_per_row => {
            return Err(Error::Length { ty, what: "importance matrix", need: n_per_row, have: w.len() });
        }
        (Some(w), Some(f), _) if n > 0 => {
            for (s, d) in src.chunks_exact(n_per_row).zip(dst.chunks_exact_mut(row)) {
                f(s, d, &w[..n_per_row]);
            }
        }
        (_, _, Some(f)) => f(src, dst),
        (None, Some(_), None) => return Err(Error::NeedsImportance { ty }),
        (Some(_), Some(_), None) => {}
        _ => return Err(Error::Unsupported { ty, what: "conversion from f32" }),
    }
    Ok(bytes)
}

/// Dot product of `n` elements: `x` in `ty`, `y` in `ty.vec_dot_type()`.
pub fn vec_dot(ty: Type, n: usize, x: &[u8], y: &[u8]) -> Result<f32, Error> {
    let mut out = [0.0];
    vec_dot_rows(ty, n, x, x.len(), 1, y, &mut out)?;
    Ok(out[0])
}

/// Dot products of `nrows` rows of `x`, `x_stride` bytes apart, with `y`. Writes `nrows` floats, the same bits as
/// `vec_dot` gives for each row.
pub fn vec_dot_rows(
    ty: Type,
    n: usize,
    x: &[u8],
    x_stride: usize,
    nrows: usize,
    y: &[u8],
    out: &mut [f32],
) -> Result<(), Error> {
    let unsupported = Error::Unsupported { ty, what: "dot product" };
    let f = kernels(ty).dot.ok_or(unsupported)?;
    let ty_y = ty.vec_dot_type().ok_or(unsupported)?;
    let row = ty.row_bytes(n).ok_or(Error::NotWholeBlocks { ty, elements: n })?;
    let need_y = ty_y.row_bytes(n).ok_or(Error::NotWholeBlocks { ty: ty_y, elements: n })?;
    let need_x = match nrows.checked_sub(1) {
        None => return Ok(()),
        Some(k) => k.checked_mul(x_stride).and_then(|b| b.checked_add(row)).ok_or(Error::Overflow { ty })?,
    };
    if x.len() < need_x {
        return Err(Error::Length { ty, what: "left operand", need: need_x, have: x.len() });
    }
    if y.len() < need_y {
        return Err(Error::Length { ty: ty_y, what: "right operand", need: need_y, have: y.len() });
    }
    if out.len() < nrows {
        return Err(Error::Length { ty, what: "result", need: nrows, have: out.len() });
    }
    let x = Rows { ptr: x.as_ptr(), stride: x_stride, count: nrows };
    // SAFETY: n is whole blocks, and the lengths above cover every row and every result.
    unsafe { f(n, x, Rows::one(y.as_ptr()), out.as_mut_ptr(), nrows) };
    Ok(())
}

fn check_row(ty: Type, elements: usize, bytes: usize, what: &'static str) -> Result<(), Error> {
    let need = ty.row_bytes(elements).ok_or(Error::NotWholeBlocks { ty, elements })?;
    if bytes != need {
        return Err(Error::Length { ty, what, need, have: bytes });
    }
    Ok(())
}
