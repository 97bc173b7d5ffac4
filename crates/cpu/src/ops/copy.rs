//! DUP, CPY, CONT, and the copying that other operators build on.
//!
//! Elements go in logical order, dimension 0 fastest, whatever both layouts are. Equal formats are copied as they are; floats
//! and block formats convert through f32, integers among each other exactly (narrowing keeps the low bits).

use super::convert::convert;
use super::loops::Loops;
use super::rules::*;
use super::short_rows::{self, SHORT};
use super::transpose::{tile, transpose};
use crate::entry::{no_work, tasks_by_size, OpEntry};
use crate::node::{src, Node, View};
use crate::team::Team;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use ggml_oxide_types::Type;

/// The view with blocks as elements, and the bytes of one.
pub(super) fn in_blocks(v: &View) -> (View, usize) {
    let ty = Type::from_id(v.ty.0).unwrap_or(Type::I8);
    let mut b = *v;
    b.ne[0] /= ty.block_size();
    (b, ty.block_bytes())
}

/// Copies units of `size` bytes: `dst` and `src` count in units, have the same shape, or `src` repeats.
pub(super) fn copy_units(team: &Team, size: usize, dst: &View, src: &View) {
    if dst.is_empty() || src.is_empty() {
        return;
    }
    let loops = Loops::over([dst, src]).sort_by(0).merge();
    let [ds, ss] = loops.inner_strides();
    let across = loops.find(1, size).filter(|_| ds == size && ss != size && matches!(size, 1 | 2 | 4 | 8));
    if let Some(d) = across.filter(|_| ss != 0 && loops.inner() > 1) {
        return copy_across(team, size, loops, d, dst.data, src.data);
    }
    if loops.inner() <= SHORT / size && short_rows::able(size, ds, ss) {
        return loops.share_rows(team, [dst.data, src.data], |rows, [d, s], [d_row, s_row]| {
            let rows = short_rows::Rows { n: loops.inner(), d, ds, d_row, s, ss, s_row, rows };
            // SAFETY: the views are good for their shapes (checked node), and no other thread has these rows of dst.
            unsafe { short_rows::copy(size, rows) };
        });
    }
    loops.share(team, [dst.data, src.data], |n, [d, s], [ds, ss]| {
        // SAFETY: the views are good for their shapes (checked node), and no other thread has these units of dst.
        unsafe {
            if (ds == size && ss == size) || n == 1 {
                // A copy onto itself is allowed.
                return std::ptr::copy(s, d, n * size);
            }
            match size {
                1 => strided::<u8>(d, ds, s, ss, n),
                2 => strided::<u16>(d, ds, s, ss, n),
                4 => strided::<u32>(d, ds, s, ss, n),
                8 => strided::<u64>(d, ds, s, ss, n),
                _ => (0..n).for_each(|i| std::ptr::copy(s.add(i * ss), d.add(i * ds), size)),
            }
        }
    });
}

unsafe fn strided<T: Copy>(d: *mut u8, ds: usize, s: *const u8, ss: usize, n: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        if ss == 0 && ds == size_of::<T>() {
            let x = s.cast::<T>().read_unaligned();
            (0..n).for_each(|i| d.cast::<T>().add(i).write_unaligned(x));
            return;
        }
        for i in 0..n {
            d.add(i * ds).cast::<T>().write_unaligned(s.add(i * ss).cast::<T>().read_unaligned());
        }
    }
}

/// Rows of the result are columns of the source: `loops` walk the result's rows innermost, loop `d` walks the source's.
fn copy_across(team: &Team, size: usize, mut loops: Loops<2>, d: usize, dst: *mut u8, src: *mut u8) {
    const RUN: usize = 1024;
    let (nj, [dj, _]) = loops.remove(d);
    let (ni, [_, si]) = loops.remove(0);
    let t = tile(size);
    let (tj, ti) = (nj.div_ceil(t), ni.div_ceil(RUN));
    for task in team.range(loops.count() * tj * ti) {
        let [od, os] = loops.offsets_of(task / (tj * ti));
        let (j, i) = (task % tj * t, task / tj % ti * RUN);
        let rows = (nj - j).min(t);
        for i in (i..(i + RUN).min(ni)).step_by(t) {
            // SAFETY: the tile lies inside both views, and these rows of dst are this thread's.
            unsafe {
                let s = src.add(os + i * si + j * size);
                let d = dst.add(od + j * dj + i * size);
                transpose(size, s, si, d, dj, (ni - i).min(t), rows);
            }
        }
    }
}

/// A contiguous view given the shape `ne` of as many elements; `None` when it has gaps or rows would not be whole blocks.
fn reshaped(v: &View, ne: [usize; 4]) -> Option<View> {
    let ty = Type::from_id(v.ty.0)?;
    let packed = |ne: [usize; 4]| {
        let row = ty.row_bytes(ne[0])?;
        Some([ty.block_bytes(), row, row * ne[1], row * ne[1] * ne[2]])
    };
    let nb = packed(v.ne)?;
    let contiguous = (0..4).all(|d| v.nb[d] == nb[d] || v.ne[d] == 1 || (d == 0 && v.ne[0] == ty.block_size()));
    Some(View { ne, nb: packed(ne)?, ..*v }).filter(|_| contiguous)
}

/// Copies `src` to `dst`, as many elements, any formats and layouts that [`supports`] admits.
pub(super) fn copy(team: &Team, dst: &View, src: &View) {
    if dst.is_empty() {
        return;
    }
    let (mut d, mut s) = (*dst, *src);
    if d.ne != s.ne {
        if let Some(v) = reshaped(&d, s.ne) {
            d = v;
        } else if let Some(v) = reshaped(&s, d.ne) {
            s = v;
        } else {
            return copy_flat(team, dst, src);
        }
    }
    if d.ty == s.ty {
        let ((d, size), (s, _)) = (in_blocks(&d), in_blocks(&s));
        copy_units(team, size, &d, &s);
    } else {
        convert(team, &d, &s);
    }
}

/// Both have gaps and their shapes differ: piece by piece along the flat order.
fn copy_flat(team: &Team, dst: &View, src: &View) {
    let (Some(dt), Some(st)) = (Type::from_id(dst.ty.0), Type::from_id(src.ty.0)) else { return };
    let step = dt.block_size().max(st.block_size());
    let place = |v: &View, ty: Type, i: usize| {
        let row = v.unravel(i / v.ne[0]);
        v.row(row).wrapping_add(i % v.ne[0] / ty.block_size() * v.nb[0])
    };
    for piece in team.range(dst.len() / step) {
        let mut buf = [0.0f32; 256];
        // SAFETY: pieces are whole blocks inside a row of either side (block sizes divide 256 and each other), and
        // this piece of dst is this thread's.
        unsafe {
            if dt == st {
                std::ptr::copy(place(src, st, piece * step), place(dst, dt, piece * step), dt.block_bytes());
                continue;
            }
            if step == 1 {
                super::convert::one(dt, place(dst, dt, piece), st, place(src, st, piece));
                continue;
            }
            for i in (0..step).step_by(st.block_size()) {
                let n = st.block_size();
                super::rows::decode(st, place(src, st, piece * step + i), buf[i..].as_mut_ptr(), n);
            }
            for i in (0..step).step_by(dt.block_size()) {
                super::rows::encode(dt, buf[i..].as_ptr(), place(dst, dt, piece * step + i), dt.block_size());
            }
        }
    }
}

/// Whether [`copy`] can go from `s` to `d`.
pub(super) fn supports_copy(d: &ggml_tensor, s: &ggml_tensor) -> Rule {
    ensure(shape::nelements(d) == shape::nelements(s), "source and result must have as many elements")?;
    packed_blocks(d)?;
    packed_blocks(s)?;
    if d.r#type != s.r#type {
        decodable(s)?;
        encodable(d)?;
    }
    Ok(())
}

fn run(node: &Node, team: &Team) {
    copy(team, &node.out(), &node.arg(0));
}

fn supports(op: &ggml_tensor) -> Rule {
    supports_copy(op, src(op, 0)?)
}

/// DUP, CPY, CONT.
pub static COPY: OpEntry = OpEntry { supports, work: no_work, n_tasks: tasks_by_size, run };
