//! Rows in any element format and any stride, to and from f32.

use super::vec::{dispatch, Bf16, Elem, Kernel, Lanes, F16, F32, LANES};
use crate::node::View;
use ggml_oxide_abi::*;
use ggml_oxide_types::{kernels, Type};

/// Elements of a row that are converted at a time.
pub const CHUNK: usize = 512;

/// Whether the format is f32, f16 or bf16.
pub fn is_float(ty: ggml_type) -> bool {
    matches!(ty, GGML_TYPE_F32 | GGML_TYPE_F16 | GGML_TYPE_BF16)
}

/// Whether the format is one of the 8-bit floats.
pub fn is_f8(ty: Type) -> bool {
    matches!(ty, Type::F8_E4M3 | Type::F8_E5M2)
}

struct Load<E: Elem> {
    src: *const E::Mem,
    dst: *mut f32,
    n: usize,
}

impl<E: Elem> Kernel for Load<E> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        // SAFETY: reads and writes stay below n: the caller's promise.
        unsafe {
            let mut i = 0;
            while i + LANES <= self.n {
                E::load::<V>(self.src.add(i)).store(self.dst.add(i));
                i += LANES;
            }
            if i < self.n {
                E::load_n::<V>(self.src.add(i), self.n - i).store_n(self.dst.add(i), self.n - i);
            }
        }
    }
}

struct Store<E: Elem> {
    src: *const f32,
    dst: *mut E::Mem,
    n: usize,
}

impl<E: Elem> Kernel for Store<E> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        // SAFETY: reads and writes stay below n: the caller's promise.
        unsafe {
            let mut i = 0;
            while i + LANES <= self.n {
                E::store(V::load(self.src.add(i)), self.dst.add(i));
                i += LANES;
            }
            if i < self.n {
                E::store_n(V::load_n(self.src.add(i), self.n - i), self.dst.add(i), self.n - i);
            }
        }
    }
}

/// Reads `n` packed elements of f32, f16 or bf16.
///
/// # Safety
/// `src` is good for `n` elements of `ty`, `dst` for `n` values.
pub unsafe fn load_packed(ty: ggml_type, src: *const u8, dst: *mut f32, n: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match ty {
            GGML_TYPE_F16 => dispatch(Load::<F16> { src: src.cast(), dst, n }),
            GGML_TYPE_BF16 => dispatch(Load::<Bf16> { src: src.cast(), dst, n }),
            _ => std::ptr::copy_nonoverlapping(src, dst.cast(), 4 * n),
        }
    }
}

/// Writes `n` packed elements of f32, f16 or bf16.
///
/// # Safety
/// `dst` is good for `n` elements of `ty`, `src` for `n` values.
pub unsafe fn store_packed(ty: ggml_type, src: *const f32, dst: *mut u8, n: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match ty {
            GGML_TYPE_F16 => dispatch(Store::<F16> { src, dst: dst.cast(), n }),
            GGML_TYPE_BF16 => dispatch(Store::<Bf16> { src, dst: dst.cast(), n }),
            _ => std::ptr::copy_nonoverlapping(src, dst.cast(), n),
        }
    }
}

#[inline(always)]
unsafe fn gather<E: Elem>(src: *const u8, stride: usize, dst: *mut f32, n: usize) {
    for i in 0..n {
        // SAFETY: the caller's promise.
        unsafe { *dst.add(i) = E::get(src.add(i * stride).cast::<E::Mem>().read_unaligned()) };
    }
}

#[inline(always)]
unsafe fn scatter<E: Elem>(src: *const f32, dst: *mut u8, stride: usize, n: usize) {
    for i in 0..n {
        // SAFETY: the caller's promise.
        unsafe { dst.add(i * stride).cast::<E::Mem>().write_unaligned(E::put(*src.add(i))) };
    }
}

/// Reads `n` elements of f32, f16 or bf16, `stride` bytes apart.
///
/// # Safety
/// All of them are readable; `dst` is good for `n` values.
pub unsafe fn load(ty: ggml_type, src: *const u8, stride: usize, dst: *mut f32, n: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match (ty, stride) {
            (GGML_TYPE_F32, 4) | (GGML_TYPE_F16 | GGML_TYPE_BF16, 2) => load_packed(ty, src, dst, n),
            (GGML_TYPE_F16, _) => gather::<F16>(src, stride, dst, n),
            (GGML_TYPE_BF16, _) => gather::<Bf16>(src, stride, dst, n),
            _ => gather::<F32>(src, stride, dst, n),
        }
    }
}

/// Writes `n` elements of f32, f16 or bf16, `stride` bytes apart.
///
/// # Safety
/// All of them are writable; `src` is good for `n` values.
pub unsafe fn store(ty: ggml_type, src: *const f32, dst: *mut u8, stride: usize, n: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match (ty, stride) {
            (GGML_TYPE_F32, 4) | (GGML_TYPE_F16 | GGML_TYPE_BF16, 2) => store_packed(ty, src, dst, n),
            (GGML_TYPE_F16, _) => scatter::<F16>(src, dst, stride, n),
            (GGML_TYPE_BF16, _) => scatter::<Bf16>(src, dst, stride, n),
            _ => scatter::<F32>(src, dst, stride, n),
        }
    }
}

/// Decodes `n` packed elements of any format that has a decoder; `n` is whole blocks.
///
/// # Safety
/// `src` is good for them and `dst` for `n` values; the format has a decoder.
pub unsafe fn decode(ty: Type, src: *const u8, dst: *mut f32, n: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match ty {
            Type::F32 => load_packed(GGML_TYPE_F32, src, dst, n),
            Type::F16 => load_packed(GGML_TYPE_F16, src, dst, n),
            Type::BF16 => load_packed(GGML_TYPE_BF16, src, dst, n),
            _ => {
                let bytes = n / ty.block_size() * ty.block_bytes();
                let (s, d) = (std::slice::from_raw_parts(src, bytes), std::slice::from_raw_parts_mut(dst, n));
                if let Some(f) = kernels(ty).decode {
                    f(s, d);
                }
            }
        }
    }
}

/// Encodes `n` packed elements of any format that has an encoder; `n` is whole blocks.
///
/// # Safety
/// `dst` is good for them and `src` for `n` values; the format has an encoder.
pub unsafe fn encode(ty: Type, src: *const f32, dst: *mut u8, n: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match ty {
            Type::F32 => store_packed(GGML_TYPE_F32, src, dst, n),
            Type::F16 => store_packed(GGML_TYPE_F16, src, dst, n),
            Type::BF16 => store_packed(GGML_TYPE_BF16, src, dst, n),
            _ => {
                let bytes = n / ty.block_size() * ty.block_bytes();
                let (s, d) = (std::slice::from_raw_parts(src, n), std::slice::from_raw_parts_mut(dst, bytes));
                if let Some(f) = kernels(ty).encode {
                    f(s, d);
                }
            }
        }
    }
}

/// Whether `n` elements, `stride` bytes apart, can be read as they lie.
fn is_plain(ty: ggml_type, stride: usize, n: usize) -> bool {
    ty == GGML_TYPE_F32 && (stride == 4 || n == 1)
}

/// `n` elements of f32, f16 or bf16, `stride` bytes apart, as values: where they lie if they are packed f32, else a copy in `room`.
///
/// # Safety
/// All of them are readable; `room` is good for `n` values.
pub unsafe fn values(ty: ggml_type, p: *const u8, stride: usize, room: *mut f32, n: usize) -> *const f32 {
    if is_plain(ty, stride, n) {
        return p.cast();
    }
    // SAFETY: the caller's promise.
    unsafe { load(ty, p, stride, room, n) };
    room
}

/// Reads a strided row of f32, f16 or bf16 in chunks of at most [`CHUNK`] values and hands each on: `f(first index, pointer, n)`.
/// A packed f32 row comes in one piece.
///
/// # Safety
/// The row is readable.
pub unsafe fn chunks(
    ty: ggml_type,
    p: *const u8,
    stride: usize,
    n: usize,
    mut f: impl FnMut(usize, *const f32, usize),
) {
    if is_plain(ty, stride, n) {
        return f(0, p.cast(), n);
    }
    let mut buf = [0.0f32; CHUNK];
    for i in (0..n).step_by(CHUNK) {
        let k = (n - i).min(CHUNK);
        // SAFETY: the caller's promise.
        unsafe { load(ty, p.add(i * stride), stride, buf.as_mut_ptr(), k) };
        f(i, buf.as_ptr(), k);
    }
}

/// Row `i` of a view as [`pairs`] takes it.
pub fn row(v: &View, i: [usize; 3]) -> (ggml_type, *const u8, usize) {
    (v.ty, v.row(i).cast_const(), v.nb[0])
}

/// Reads two strided rows of f32, f16 or bf16 as [`chunks`] does, and hands them on together: `f(first index, of a, of b, n)`.
///
/// # Safety
/// Both rows, given by format, address and stride, are readable.
pub unsafe fn pairs(
    (at, a, a_stride): (ggml_type, *const u8, usize),
    (bt, b, b_stride): (ggml_type, *const u8, usize),
    n: usize,
    mut f: impl FnMut(usize, *const f32, *const f32, usize),
) {
    if is_plain(at, a_stride, n) && is_plain(bt, b_stride, n) {
        return f(0, a.cast(), b.cast(), n);
    }
    let mut buf = [[0.0f32; CHUNK]; 2];
    let [x, y] = &mut buf;
    for i in (0..n).step_by(CHUNK) {
        let k = (n - i).min(CHUNK);
        // SAFETY: the caller's promise.
        unsafe {
            load(at, a.add(i * a_stride), a_stride, x.as_mut_ptr(), k);
            load(bt, b.add(i * b_stride), b_stride, y.as_mut_ptr(), k);
        }
        f(i, x.as_ptr(), y.as_ptr(), k);
    }
}
