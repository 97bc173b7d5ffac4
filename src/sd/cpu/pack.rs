//! Panels and strips: units of several rows side by side, unit after unit, as [`super::tile`] reads them.

use super::tile::Tiles;

/// Units of a row that are made at a time; a multiple of 16 elements for every size of unit.
const CHUNK: usize = 64;

/// Makes units of 8-bit integers; those beyond the end are zero.
#[inline(always)]
pub fn units(tiles: &Tiles, from: &[i8], to: &mut [u32]) {
    let byte = |q: &i8| q.cast_unsigned();
    let (head, tail) = to.split_at_mut(from.len() / tiles.per);
    match tiles.per {
        4 => {
            let whole = from.chunks_exact(4);
            let mut last = [0; 4];
            last.iter_mut().zip(whole.remainder()).for_each(|(to, q)| *to = byte(q));
            for (to, q) in head.iter_mut().zip(whole) {
                *to = u32::from_ne_bytes([byte(&q[0]), byte(&q[1]), byte(&q[2]), byte(&q[3])]);
            }
            tail.fill(0);
            if let Some(to) = tail.first_mut() {
                *to = u32::from_ne_bytes(last);
            }
        }
        2 => {
            let pair =
                |low: i8, high: i8| u32::from(i16::from(low).cast_unsigned()) | (i32::from(high) << 16).cast_unsigned();
            let whole = from.chunks_exact(2);
            let last = whole.remainder().first().copied().unwrap_or(0);
            head.iter_mut().zip(whole).for_each(|(to, q)| *to = pair(q[0], q[1]));
            tail.fill(0);
            if let Some(to) = tail.first_mut() {
                *to = pair(last, 0);
            }
        }
        _ => {
            head.iter_mut().zip(from).for_each(|(to, q)| *to = f32::from(*q).to_bits());
            tail.fill(0);
        }
    }
}

/// Units of a row of 8-bit integers from unit `u` on: where they lie, if they lie there as they are, or `to`, where they are made.
#[inline(always)]
pub fn row_units(tiles: &Tiles, row: &[i8], u: usize, to: &mut [u32]) -> *const u32 {
    let from = &row[u * tiles.per..row.len().min((u + to.len()) * tiles.per)];
    if tiles.per == 4 && from.len() == 4 * to.len() {
        return from.as_ptr().cast();
    }
    units(tiles, from, to);
    to.as_ptr()
}

/// Integers of 4 bits, two in a byte, the low ones first.
#[inline(always)]
pub fn nibbles(from: &[u8], to: &mut [i8]) {
    for (to, b) in to.chunks_exact_mut(2).zip(from) {
        let b = b.cast_signed();
        (to[0], to[1]) = (b << 4 >> 4, b >> 4);
    }
}

/// Four units of each of four rows, as four columns; bits of `flip` are turned over.
///
/// # Safety
/// The units are there, at any address.
#[inline(always)]
unsafe fn turn(rows: [*const u32; 4], flip: u32) -> [[u32; 4]; 4] {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller's promise; every processor of this architecture has these instructions, and both types are 64 bytes.
    unsafe {
        use std::arch::x86_64::*;
        let flip = _mm_set1_epi32(flip.cast_signed());
        let [a, b, c, d] = rows.map(|p| _mm_xor_si128(_mm_loadu_si128(p.cast()), flip));
        let (ab, cd) = (_mm_unpacklo_epi32(a, b), _mm_unpacklo_epi32(c, d));
        let (ab2, cd2) = (_mm_unpackhi_epi32(a, b), _mm_unpackhi_epi32(c, d));
        std::mem::transmute([
            _mm_unpacklo_epi64(ab, cd),
            _mm_unpackhi_epi64(ab, cd),
            _mm_unpacklo_epi64(ab2, cd2),
            _mm_unpackhi_epi64(ab2, cd2),
        ])
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        // SAFETY: the caller's promise.
        let rows = rows.map(|p| unsafe { p.cast::<[u32; 4]>().read_unaligned() });
        std::array::from_fn(|i| std::array::from_fn(|r| rows[r][i] ^ flip))
    }
}

/// Puts `count` units of each of `rows` rows side by side, bits of `flip` turned over; `fill(row, u, to)` tells where those from unit `u`
/// on are, as many as `to` has, and may make them there.
///
/// # Safety
/// There are `pitch` places at `to` for each unit, at least `rows`; `fill` tells the truth.
#[inline(always)]
pub unsafe fn interleave(
    rows: usize,
    count: usize,
    to: *mut u32,
    pitch: usize,
    flip: u32,
    mut fill: impl FnMut(usize, usize, &mut [u32]) -> *const u32,
) {
    let mut made = [[0u32; CHUNK]; 4];
    // a chunk of all rows at a time: its places are still near when the next rows are put there
    for u0 in (0..count).step_by(CHUNK) {
        let n = CHUNK.min(count - u0);
        for r0 in (0..rows).step_by(4) {
            let four = 4.min(rows - r0);
            let mut from = [std::ptr::null(); 4];
            for (i, made) in made[..four].iter_mut().enumerate() {
                from[i] = fill(r0 + i, u0, &mut made[..n]);
            }
            let at = |u: usize| to.wrapping_add((u0 + u) * pitch + r0);
            let whole = if four == 4 { n / 4 * 4 } else { 0 };
            for u in (0..whole).step_by(4) {
                // SAFETY: the caller's promise.
                unsafe {
                    for (i, column) in turn(from.map(|p| p.wrapping_add(u)), flip).iter().enumerate() {
                        at(u + i).cast::<[u32; 4]>().write_unaligned(*column);
                    }
                }
            }
            for u in whole..n {
                for (i, from) in from[..four].iter().enumerate() {
                    // SAFETY: the caller's promise.
                    unsafe { at(u).add(i).write(from.add(u).read_unaligned() ^ flip) };
                }
            }
        }
    }
}
