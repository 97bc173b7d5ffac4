//! Copies that change the format.

use super::loops::Loops;
use super::rows::{self, is_float, CHUNK};
use super::transpose::{tile, transpose};
use crate::node::View;
use crate::team::Team;
use ggml_oxide_abi::*;
use ggml_oxide_types::Type;

/// Copies `src` to `dst` of the same shape and another format.
pub(super) fn convert(team: &Team, dst: &View, src: &View) {
    if is_float(dst.ty) && is_float(src.ty) {
        return floats(team, dst, src);
    }
    let (Some(dt), Some(st)) = (Type::from_id(dst.ty.0), Type::from_id(src.ty.0)) else { return };
    if dt.block_size() == 1 && st.block_size() == 1 {
        let loops = Loops::over([dst, src]).sort_by(0).merge();
        return loops.share(team, [dst.data, src.data], |n, [d, s], [ds, ss]| {
            if rows::is_f8(st) && ss == 1 && is_float(dst.ty) {
                let mut buf = [0.0f32; CHUNK];
                for i in (0..n).step_by(CHUNK) {
                    let k = (n - i).min(CHUNK);
                    // SAFETY: as below.
                    unsafe {
                        rows::decode(st, s.add(i), buf.as_mut_ptr(), k);
                        rows::store(dst.ty, buf.as_ptr(), d.add(i * ds), ds, k);
                    }
                }
                return;
            }
            for i in 0..n {
                // SAFETY: the views are good for their shapes; no other thread has these elements of dst.
                unsafe { one(dt, d.add(i * ds), st, s.add(i * ss)) };
            }
        });
    }
    // A block format on at least one side: rows in chunks of whole blocks.
    let chunks = dst.ne[0].div_ceil(CHUNK);
    for task in team.range(dst.nrows() * chunks) {
        let i = dst.unravel(task / chunks);
        let i0 = task % chunks * CHUNK;
        let n = (dst.ne[0] - i0).min(CHUNK);
        let mut buf = [0.0f32; CHUNK];
        // SAFETY: the views are good for their shapes, block formats packed; this chunk of dst is this thread's.
        unsafe {
            load(st, src.row(i).add(i0 / st.block_size() * src.nb[0]), src.nb[0], buf.as_mut_ptr(), n);
            store(dt, buf.as_ptr(), dst.row(i).add(i0 / dt.block_size() * dst.nb[0]), dst.nb[0], n);
        }
    }
}

unsafe fn load(ty: Type, p: *const u8, stride: usize, buf: *mut f32, n: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match ty {
            Type::F32 | Type::F16 | Type::BF16 => rows::load(ggml_type(ty.id()), p, stride, buf, n),
            _ if ty.block_size() > 1 => rows::decode(ty, p, buf, n),
            _ => (0..n).for_each(|i| rows::decode(ty, p.add(i * stride), buf.add(i), 1)),
        }
    }
}

unsafe fn store(ty: Type, buf: *const f32, p: *mut u8, stride: usize, n: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match ty {
            Type::F32 | Type::F16 | Type::BF16 => rows::store(ggml_type(ty.id()), buf, p, stride, n),
            _ if ty.block_size() > 1 => rows::encode(ty, buf, p, n),
            _ => (0..n).for_each(|i| rows::encode(ty, buf.add(i), p.add(i * stride), 1)),
        }
    }
}

/// An integer format's value.
unsafe fn integer(ty: Type, p: *const u8) -> Option<i64> {
    // SAFETY: the caller's promise.
    unsafe {
        match ty {
            Type::I8 => Some(p.cast::<i8>().read_unaligned().into()),
            Type::I16 => Some(p.cast::<i16>().read_unaligned().into()),
            Type::I32 => Some(p.cast::<i32>().read_unaligned().into()),
            Type::I64 => Some(p.cast::<i64>().read_unaligned()),
            _ => None,
        }
    }
}

/// Converts one element between plain formats: exact where the result can hold the value, through f64 where either is f64 or an
/// integer wider than f32's mantissa.
///
/// # Safety
/// `d` and `s` are good for one element each.
pub(super) unsafe fn one(dt: Type, d: *mut u8, st: Type, s: *const u8) {
    // SAFETY: the caller's promise.
    unsafe {
        let int = integer(st, s);
        match (dt, int) {
            (Type::I8, Some(x)) => return d.cast::<i8>().write_unaligned(x as i8),
            (Type::I16, Some(x)) => return d.cast::<i16>().write_unaligned(x as i16),
            (Type::I32, Some(x)) => return d.cast::<i32>().write_unaligned(x as i32),
            (Type::I64, Some(x)) => return d.cast::<i64>().write_unaligned(x),
            (Type::F64, Some(x)) => return d.cast::<f64>().write_unaligned(x as f64),
            _ => {}
        }
        if st == Type::F64 {
            let x = s.cast::<f64>().read_unaligned();
            match dt {
                Type::I8 => return d.cast::<i8>().write_unaligned(x as i8),
                Type::I16 => return d.cast::<i16>().write_unaligned(x as i16),
                Type::I32 => return d.cast::<i32>().write_unaligned(x as i32),
                Type::I64 => return d.cast::<i64>().write_unaligned(x as i64),
                _ => {}
            }
        }
        let mut x = [0.0f32];
        rows::decode(st, s, x.as_mut_ptr(), 1);
        rows::encode(dt, x.as_ptr(), d, 1);
    }
}

fn size_of_float(ty: ggml_type) -> usize {
    if ty == GGML_TYPE_F32 {
        4
    } else {
        2
    }
}

fn floats(team: &Team, dst: &View, src: &View) {
    let (dt, st) = (dst.ty, src.ty);
    let (dsize, ssize) = (size_of_float(dt), size_of_float(st));
    let loops = Loops::over([dst, src]).sort_by(0).merge();
    let [ds, ss] = loops.inner_strides();
    if ds == dsize && ss != ssize && loops.inner() > 1 {
        if let Some(d) = loops.find(1, ssize) {
            return across(team, loops, d, dst, src);
        }
    }
    loops.share(team, [dst.data, src.data], |n, [d, s], [ds, ss]| {
        let mut buf = [0.0f32; CHUNK];
        for i in (0..n).step_by(CHUNK) {
            let k = (n - i).min(CHUNK);
            // SAFETY: the views are good for their shapes; no other thread has these elements of dst.
            unsafe {
                if dt == GGML_TYPE_F32 && ds == 4 {
                    rows::load(st, s.add(i * ss), ss, d.add(i * 4).cast(), k);
                } else if st == GGML_TYPE_F32 && ss == 4 {
                    rows::store(dt, s.add(i * 4).cast(), d.add(i * ds), ds, k);
                } else {
                    rows::load(st, s.add(i * ss), ss, buf.as_mut_ptr(), k);
                    rows::store(dt, buf.as_ptr(), d.add(i * ds), ds, k);
                }
            }
        }
    });
}

/// Rows of the result are columns of the source: tiles are turned in the source's format, then converted row by row.
fn across(team: &Team, mut loops: Loops<2>, d: usize, dst: &View, src: &View) {
    const RUN: usize = 128;
    let (dsize, ssize) = (size_of_float(dst.ty), size_of_float(src.ty));
    let (nj, [dj, _]) = loops.remove(d);
    let (ni, [_, si]) = loops.remove(0);
    let t = tile(ssize);
    let (tj, ti) = (nj.div_ceil(t), ni.div_ceil(RUN));
    let mut turned = [0u32; 32 * RUN];
    let mut buf = [0.0f32; RUN];
    let stride = RUN * ssize;
    for task in team.range(loops.count() * tj * ti) {
        let [od, os] = loops.offsets_of(task / (tj * ti));
        let (j, i) = (task % tj * t, task / tj % ti * RUN);
        let (rows, cols) = ((nj - j).min(t), (ni - i).min(RUN));
        // SAFETY: the tile lies inside both views and in `turned` (32 rows of RUN elements at most); these elements of dst are
        // this thread's.
        unsafe {
            let p = turned.as_mut_ptr().cast::<u8>();
            transpose(ssize, src.data.add(os + i * si + j * ssize), si, p, stride, cols, rows);
            for r in 0..rows {
                rows::load_packed(src.ty, p.add(r * stride), buf.as_mut_ptr(), cols);
                rows::store_packed(dst.ty, buf.as_ptr(), dst.data.add(od + (j + r) * dj + i * dsize), cols);
            }
        }
    }
}
