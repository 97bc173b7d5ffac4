//! Products of rows of weights with rows of activations, scales and bias behind them. Threads take pieces: a panel of weights, which is
//! made where it is needed, a part of `k` at a time, with some strips of activations, which all lie ready.

use super::pack::{interleave, row_units};
use super::processors;
use super::tile::{streamed, Ahead, Tile, Tiles, MAX_ROWS};
use crate::sd::kernel::{Run, Shared, Stop};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of a panel of weights that are at hand at a time: far less than a processor has next to it.
const PANEL: usize = 128 << 10;
/// Bytes of activations that are gone through for a panel, about.
const PASS: usize = 8 << 20;
/// Bytes of a result that no longer stays near.
const RESULT: usize = 16 << 20;

/// Rows of quantised activations.
#[derive(Clone, Copy)]
pub struct Activations {
    /// Strips of rows, one after the other: [`Activations::size`] bytes.
    pub strips: Shared,
    /// A scale for each row, F32.
    pub scales: Shared,
    /// The sum of each row, I32; there when the tiles move weights up.
    pub sums: Shared,
    /// How many.
    pub rows: usize,
    /// Elements of a row.
    pub k: usize,
    /// What reads them.
    pub tiles: &'static Tiles,
}

impl Activations {
    /// Bytes of `rows` rows; `None`: more than there can be.
    pub fn size(tiles: &Tiles, rows: usize, k: usize) -> Option<usize> {
        k.div_ceil(tiles.per).checked_mul(4)?.checked_mul(rows)
    }

    /// Units of a row.
    pub fn units(&self) -> usize {
        self.k.div_ceil(self.tiles.per)
    }

    /// How many strips there are.
    pub fn count(&self) -> usize {
        self.rows.div_ceil(self.tiles.strip())
    }

    /// The rows of a strip.
    pub fn strip(&self, i: usize) -> Range<usize> {
        let strip = self.tiles.strip();
        i * strip..self.rows.min((i + 1) * strip)
    }

    fn at(&self, rows: &Range<usize>) -> *mut u32 {
        self.strips.cast::<u32>().wrapping_add(rows.start * self.units())
    }

    /// Makes strip `i` of its rows, which lie one after the other at `q`.
    ///
    /// # Safety
    /// The memory is there, and the strip and the sums of its rows are this thread's.
    pub unsafe fn pack(&self, i: usize, q: *const i8) {
        let (rows, k) = (self.strip(i), self.k);
        // SAFETY: the caller's promise.
        let row = |r: usize| unsafe { std::slice::from_raw_parts(q.add(r * k), k) };
        // SAFETY: the strip has this many units.
        unsafe {
            interleave(rows.len(), self.units(), self.at(&rows), rows.len(), 0, |r, u, to| {
                row_units(self.tiles, row(r), u, to)
            });
        }
        if self.tiles.up {
            for (r, at) in rows.enumerate() {
                let sum = row(r).iter().fold(0i32, |s, &q| s.wrapping_add(i32::from(q)));
                // SAFETY: the caller's promise.
                unsafe { self.sums.at(4 * at).cast::<i32>().write(sum) };
            }
        }
    }

    /// Makes all strips, of rows that lie one after the other at `q`.
    ///
    /// # Safety
    /// The memory is there; nobody else uses what is written.
    pub unsafe fn pack_all(&self, run: &Run, q: Shared) -> Result<(), Stop> {
        let next = AtomicUsize::new(0);
        run.parallel(|_, _| {
            for i in taken(&next, self.count()) {
                let rows = q.at(self.k * self.strip(i).start).cast::<i8>();
                // SAFETY: the caller's promise; each strip is taken once.
                unsafe { self.pack(i, rows) };
            }
        })
    }
}

/// Numbers below `n` that this thread is the first to ask for.
pub fn taken(next: &AtomicUsize, n: usize) -> impl Iterator<Item = usize> + use<'_> {
    std::iter::from_fn(move || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&i| i < n))
}

/// Where results go, and what sums become there.
#[derive(Clone, Copy)]
pub struct Out<'a> {
    /// The result, F32: as many elements as there are rows of weights for each row of activations.
    pub dst: Shared,
    /// Rows of weights.
    pub n: usize,
    /// A scale for each row of weights.
    pub weight_scale: Option<&'a [f32]>,
    /// An addend for each row of weights.
    pub bias: Option<&'a [f32]>,
}

/// Rows of weights as they lie in memory, to be brought near before they are needed.
#[derive(Clone, Copy)]
pub struct Lie {
    /// Where they begin.
    pub at: Shared,
    /// Bytes of a row.
    pub size: usize,
}

/// A product.
pub struct Product<'a> {
    /// Activations.
    pub x: Activations,
    /// The result.
    pub out: Out<'a>,
    /// [`Product::room`] bytes that each thread has a part of.
    pub scratch: Shared,
    /// Bytes of that which each thread has behind its panel, for the caller.
    pub extra: usize,
    /// The weights.
    pub lie: Lie,
}

/// Where results of a piece go.
#[derive(Clone, Copy)]
pub struct Place {
    /// That of its first row of activations with its first row of weights.
    pub at: Shared,
    /// Elements from one row of activations to the next.
    pub pitch: usize,
    /// See [`Tile::stream`].
    pub stream: bool,
}

/// Numbers of a piece.
pub struct Piece {
    /// The panel.
    pub panel: usize,
    /// The strips of activations.
    pub strips: Range<usize>,
    /// The panel of this thread's next piece.
    pub next: usize,
}

/// Units of each row of a panel that are at hand at a time.
fn part(tiles: &Tiles, k: usize) -> usize {
    k.div_ceil(tiles.per).clamp(1, PANEL / 4 / tiles.rows)
}

impl Product<'_> {
    /// Bytes of scratch memory: a panel and `extra` bytes for each thread. There are as many as processors, since the number of threads is
    /// not known before.
    pub fn room(tiles: &Tiles, rows: usize, k: usize, n: usize, extra: usize) -> Option<usize> {
        let pieces = n.div_ceil(tiles.rows).checked_mul(rows.div_ceil(tiles.strip()))?;
        (part(tiles, k) * 4 * tiles.rows).checked_add(extra)?.checked_mul(processors(pieces))
    }

    /// Rows of activations that a piece has at most.
    pub fn most_rows(tiles: &Tiles, rows: usize, k: usize) -> usize {
        let strip = 4 * k.div_ceil(tiles.per) * tiles.strip();
        (PASS / strip.max(1)).max(8).saturating_mul(tiles.strip()).min(rows)
    }

    /// Strips of activations in a piece.
    fn share(&self, nth: usize) -> usize {
        let (strips, panels) = (self.x.count(), self.out.n.div_ceil(self.x.tiles.rows));
        let mut share = Self::most_rows(self.x.tiles, self.x.rows, self.x.k).div_ceil(self.x.tiles.strip());
        // enough pieces that no thread waits long for another, as long as it is worth making the panel
        while share > 8 && panels * strips.div_ceil(share) < 4 * nth {
            share = share.div_ceil(2);
        }
        strips.div_ceil(strips.div_ceil(share.max(1)).max(1))
    }

    /// Computes all of it; `fill(n, k, to)` tells where units of row `n` of weights from element `k` on are, or makes them.
    ///
    /// # Safety
    /// The memory is there; nobody else uses the result. `fill` tells the truth.
    pub unsafe fn run(
        &self,
        run: &Run,
        fill: impl Fn(usize, usize, &mut [u32]) -> *const u32 + Sync,
    ) -> Result<(), Stop> {
        let (n, stream) = (self.out.n, self.stream());
        self.pieces(run, |memory, piece| {
            let first = n * self.x.strip(piece.strips.start).start + piece.panel * self.x.tiles.rows;
            let to = Place { at: self.out.dst.at(4 * first), pitch: n, stream };
            // SAFETY: the caller's promise; each piece is taken once.
            unsafe { self.piece(memory, piece, to, (self.lie, piece.next), &fill) };
            if stream {
                streamed();
            }
        })
    }

    /// Gives all pieces to threads, with the scratch memory of each.
    pub fn pieces(&self, run: &Run, f: impl Fn(Shared, &Piece) + Sync) -> Result<(), Stop> {
        let tiles = self.x.tiles;
        let (panels, strips) = (self.out.n.div_ceil(tiles.rows), self.x.count());
        let next = AtomicUsize::new(0);
        run.parallel(|ith, nth| {
            let nth = nth.min(processors(panels * strips));
            if ith >= nth {
                return;
            }
            let memory = self.scratch.at((self.panel_size() + self.extra) * ith);
            let share = self.share(nth).max(1);
            let mut pieces = taken(&next, panels * strips.div_ceil(share));
            let mut after = pieces.next();
            // the piece behind this one is known, so that its weights can be brought near meanwhile
            while let Some(piece) = after {
                after = pieces.next();
                let (panel, s0) = (piece % panels, piece / panels * share);
                let next = after.map_or(panel, |after| after % panels);
                f(memory, &Piece { panel, strips: s0..strips.min(s0 + share), next });
            }
        })
    }

    /// Bytes of a panel; what is the caller's in a thread's scratch memory begins behind them.
    pub fn panel_size(&self) -> usize {
        part(self.x.tiles, self.x.k) * 4 * self.x.tiles.rows
    }

    /// The result goes past the caches: it has no place there, and reading what it overwrites would take as long as writing it.
    fn stream(&self) -> bool {
        let row = 4 * self.out.n;
        row * self.x.rows > RESULT && row.is_multiple_of(64) && self.out.dst.0.addr().is_multiple_of(64)
    }

    /// What a tile of so many units brings near of the weights that the panel is made of next: units from `from` on of rows from `n0` on. There
    /// are so many strips to do it in, and `row` counts rows that are done.
    fn ahead(
        &self,
        (lie, n0, from): (Lie, usize, usize),
        part: usize,
        units: usize,
        strips: usize,
        row: &mut usize,
    ) -> Ahead {
        let (size, count) = (lie.size, self.x.units());
        let at = lie.at.at(size * (n0 + *row) + size * from / count).0.cast_const();
        if *row >= self.x.tiles.rows {
            return Ahead { at, step: 0, run: 0, jump: 0 };
        }
        // a cache line at each unit if there are few strips, else in two steps
        let step = [64, 32][usize::from(strips > 4)];
        let bytes = size * part.min(count - from) / count;
        let run = bytes.div_ceil(step).max(1);
        *row += units.div_ceil(run);
        Ahead { at, step, run, jump: size.wrapping_sub(run * step) }
    }

    /// Computes a piece into `to`, and brings `next` near: weights, and the panel of them.
    ///
    /// # Safety
    /// As [`Self::run`]; the scratch memory and the results of the piece are this thread's.
    pub unsafe fn piece(
        &self,
        memory: Shared,
        piece: &Piece,
        to: Place,
        next: (Lie, usize),
        fill: &impl Fn(usize, usize, &mut [u32]) -> *const u32,
    ) {
        let (x, tiles, n) = (&self.x, self.x.tiles, self.out.n);
        let (panel, strips) = (memory.cast::<u32>(), piece.strips.clone());
        let (i, first) = (piece.panel, x.strip(strips.start).start);
        let (n0, pitch, count) = (i * tiles.rows, tiles.rows, x.units());
        let rows = pitch.min(n - n0);
        let lanes = |from: Option<&[f32]>| {
            from.map(|from| {
                let mut to = [0f32; MAX_ROWS];
                to[..rows].copy_from_slice(&from[n0..n0 + rows]);
                to
            })
        };
        let (w_scale, bias) = (lanes(self.out.weight_scale), lanes(self.out.bias));
        let address = |lanes: &Option<[f32; MAX_ROWS]>| lanes.as_ref().map_or(std::ptr::null(), |l| l.as_ptr());
        let part = part(tiles, x.k);
        if rows < pitch {
            // SAFETY: the panel has `part` units of each row.
            unsafe { panel.write_bytes(0, part * pitch) };
        }
        for u0 in (0..count).step_by(part) {
            let these = part.min(count - u0);
            // SAFETY: as above.
            unsafe {
                interleave(rows, these, panel, pitch, tiles.flip(), |r, u, to| fill(n0 + r, (u0 + u) * tiles.per, to))
            };
            // what is made after this
            let after = match u0 + these < count {
                true => (self.lie, n0, u0 + these),
                false => (next.0, next.1 * pitch, 0),
            };
            let mut row = 0;
            for s in strips.clone() {
                let rs = x.strip(s);
                let tile = Tile {
                    w: panel,
                    x: x.at(&rs).wrapping_add(u0 * rs.len()),
                    units: these,
                    sums: x.sums.cast::<i32>().wrapping_add(rs.start),
                    first: u0 == 0,
                    last: u0 + these == count,
                    x_scale: x.scales.cast::<f32>().wrapping_add(rs.start),
                    w_scale: address(&w_scale),
                    bias: address(&bias),
                    dst: to.at.cast::<u32>().wrapping_add((rs.start - first) * to.pitch),
                    pitch: to.pitch,
                    rows,
                    stream: to.stream && rows == pitch && count <= part,
                    ahead: self.ahead(after, part, these, strips.len(), &mut row),
                };
                // SAFETY: the caller's promise; strips have 1 to `tiles.strip()` rows.
                unsafe { tiles.run(rs.len(), &tile) };
            }
        }
    }
}

/// The elements of a vector of F32.
///
/// # Safety
/// The tensor is contiguous and has its data, at a multiple of 4 bytes.
pub unsafe fn numbers(t: &ggml_oxide_abi::ggml_tensor) -> &[f32] {
    match ggml_oxide_shape::nelements(t) {
        0 => &[],
        // SAFETY: the caller's promise.
        n => unsafe { std::slice::from_raw_parts(t.data.cast::<f32>(), n as usize) },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::sd::cpu::{pack, tile, Level};

    struct Case {
        k: usize,
        m: usize,
        n: usize,
        w: Vec<i8>,
        q: Vec<i8>,
        x_scale: Vec<f32>,
        w_scale: Vec<f32>,
        bias: Vec<f32>,
    }

    fn case(k: usize, m: usize, n: usize, extreme: bool) -> Case {
        let byte = |i: usize| if extreme { -128 } else { (i * 7919 + i / 251 + 5) as u8 as i8 };
        Case {
            k,
            m,
            n,
            w: (0..k * n).map(byte).collect(),
            q: (0..k * m).map(|i| if extreme { 127 } else { byte(i * 3 + 1).max(-127) }).collect(),
            x_scale: (0..m).map(|r| 0.01 + r as f32 * 0.37).collect(),
            w_scale: (0..n).map(|n| 0.003 * (n as f32 - 2.5)).collect(),
            bias: (0..n).map(|n| n as f32 * 1.7 - 20.0).collect(),
        }
    }

    /// All pieces on one thread, strips in two parts; what lies behind the result is untouched.
    fn product(c: &Case, tiles: &'static Tiles, scaled: bool) -> Vec<u32> {
        let mut strips = vec![!0u32; Activations::size(tiles, c.m, c.k).unwrap() / 4];
        let (mut sums, mut dst) = (vec![!0i32; c.m], vec![!0u32; c.m * c.n + 1]);
        let shared = |p: *mut u32| Shared(p.cast());
        let x = Activations {
            strips: shared(strips.as_mut_ptr()),
            scales: Shared(c.x_scale.as_ptr().cast_mut().cast()),
            sums: shared(sums.as_mut_ptr().cast()),
            rows: c.m,
            k: c.k,
            tiles,
        };
        for i in 0..x.count() {
            // SAFETY: rows of the case.
            unsafe { x.pack(i, c.q[x.strip(i).start * c.k..].as_ptr()) };
        }
        let out = Out {
            dst: shared(dst.as_mut_ptr()),
            n: c.n,
            weight_scale: scaled.then_some(&c.w_scale[..]),
            bias: scaled.then_some(&c.bias[..]),
        };
        let fill = |n: usize, k0: usize, to: &mut [u32]| {
            let at = pack::row_units(tiles, &c.w[n * c.k..][..c.k], k0 / tiles.per, to);
            if tiles.per == 1 {
                to.iter_mut().for_each(|w| *w = (f32::from_bits(*w) * 0.37).to_bits());
            }
            at
        };
        let none = Shared(std::ptr::null_mut());
        let product = Product { x, out, scratch: none, extra: 0, lie: Lie { at: none, size: c.k } };
        let mut panel = vec![!0u32; part(tiles, c.k) * tiles.rows];
        for i in 0..c.n.div_ceil(tiles.rows) {
            let half = x.count() / 2;
            for strips in [0..half, half..x.count()] {
                let first = c.n * x.strip(strips.start).start + i * tiles.rows;
                let to = Place { at: product.out.dst.at(4 * first), pitch: c.n, stream: false };
                let piece = Piece { panel: i, strips, next: 0 };
                // SAFETY: memory of the case.
                unsafe { product.piece(Shared(panel.as_mut_ptr().cast()), &piece, to, (product.lie, 0), &fill) };
            }
        }
        assert_eq!(dst.pop(), Some(!0));
        dst
    }

    fn finish(mut v: f32, c: &Case, r: usize, n: usize, scaled: bool) -> u32 {
        v *= c.x_scale[r];
        if scaled {
            v = v * c.w_scale[n] + c.bias[n];
        }
        v.to_bits()
    }

    fn each(f: impl Fn(&Case, bool)) {
        for k in [1usize, 2, 3, 4, 5, 63, 64, 65, 252, 256, 260] {
            for m in [1usize, 3, 4, 5, 65] {
                for n in [1usize, 3, 15, 17, 128] {
                    f(&case(k, m, n, (k + m + n) % 3 == 0), (k + n) % 2 == 0);
                }
            }
        }
    }

    #[test]
    fn sd_2_every_level_is_the_plain_loop() {
        each(|c, scaled| {
            let sum = |r: usize, n: usize| {
                (0..c.k).map(|i| i32::from(c.w[n * c.k + i]) * i32::from(c.q[r * c.k + i])).sum::<i32>() as f32
            };
            let want: Vec<u32> =
                (0..c.m * c.n).map(|i| (i / c.n, i % c.n)).map(|(r, n)| finish(sum(r, n), c, r, n, scaled)).collect();
            for level in Level::all() {
                assert!(
                    product(c, tile::integers(level), scaled) == want,
                    "{level:?}, k {}, m {}, n {}",
                    c.k,
                    c.m,
                    c.n
                );
            }
        });
    }

    #[test]
    fn sd_4_sums_of_f32_are_made_in_order() {
        each(|c, scaled| {
            // weights that sums are not exact with
            let sum = |r: usize, n: usize| {
                (0..c.k).fold(0f32, |s, i| s + f32::from(c.w[n * c.k + i]) * 0.37 * f32::from(c.q[r * c.k + i]))
            };
            let want: Vec<u32> =
                (0..c.m * c.n).map(|i| (i / c.n, i % c.n)).map(|(r, n)| finish(sum(r, n), c, r, n, scaled)).collect();
            for level in Level::all() {
                assert!(product(c, tile::floats(level), scaled) == want, "{level:?}, k {}, m {}, n {}", c.k, c.m, c.n);
            }
        });
    }

    #[test]
    fn sums_wrap_at_32_bits() {
        // so many products of -128 and 127 leave 32 bits, and a panel
        let c = case((1 << 18) + 4, 1, 1, true);
        let sum = (0..c.k).fold(0i32, |s, _| s.wrapping_add(-128 * 127));
        for level in Level::all() {
            assert_eq!(product(&c, tile::integers(level), false), [finish(sum as f32, &c, 0, 0, false)], "{level:?}");
        }
    }

    #[test]
    fn long_rows_are_summed_in_parts() {
        let c = case(17000, 5, 9, false);
        let sum = |r: usize, n: usize| {
            (0..c.k).fold(0f32, |s, i| s + f32::from(c.w[n * c.k + i]) * 0.37 * f32::from(c.q[r * c.k + i]))
        };
        let want: Vec<u32> = (0..5 * 9).map(|i| finish(sum(i / 9, i % 9), &c, i / 9, i % 9, true)).collect();
        for level in Level::all() {
            assert!(product(&c, tile::floats(level), true) == want, "{level:?}");
        }
    }

    #[test]
    fn pieces_cover_all_strips_for_any_number_of_threads() {
        let (tiles, none) = (tile::integers(Level::best()), Shared(std::ptr::null_mut()));
        for (rows, k, n) in [(1, 64, 32), (1024, 3072, 128), (4096, 12288, 3072), (16, 1 << 20, 1)] {
            let x = Activations { strips: none, scales: none, sums: none, rows, k, tiles };
            let out = Out { dst: none, n, weight_scale: None, bias: None };
            let p = Product { x, out, scratch: none, extra: 0, lie: Lie { at: none, size: k } };
            for nth in [1, 2, 3, 64] {
                let share = p.share(nth);
                assert!(share >= 1 && share <= x.count(), "{rows}, {k}, {n}, {nth}: {share}");
            }
        }
    }
}
