//! One step of attention: some query rows against one tile of keys and values, all in f32.

use super::vec::{math, Elem, Kernel, Lanes, F16, LANES};

/// Keys of a tile. Fixed, since the order of additions depends on it.
pub const KV: usize = 256;
/// Keys of a panel: the widest register block reads one panel from front to back.
pub const PANEL: usize = 4 * LANES;
/// Rows of a register block.
pub const MR: usize = 6;

/// A tile step. Row r of the queries has the running maximum `m[r]` and sum `l[r]`; its output row is scaled to that maximum.
pub struct Step {
    /// Query rows.
    pub rows: usize,
    /// Queries, packed `[rows][dk]`.
    pub q: *const f32,
    /// Length of a query and a key.
    pub dk: usize,
    /// Keys, turned, in panels of [`PANEL`]: `[KV / PANEL][dk][PANEL]`.
    pub k: *const f32,
    /// Keys and values in the tile, at most [`KV`].
    pub n: usize,
    /// Values `[n][dv]`.
    pub v: *const f32,
    /// Length of a value, padded to whole lanes.
    pub dv: usize,
    /// Outputs `[rows][dv]`.
    pub o: *mut f32,
    /// Running maxima.
    pub m: *mut f32,
    /// Running sums.
    pub l: *mut f64,
    /// Room for `MR * KV` logits.
    pub s: *mut f32,
    /// What logits are multiplied by (softcap already divided out).
    pub scale: f32,
    /// Logits go through `cap * tanh(x)` when it is not 0.
    pub cap: f32,
    /// For each row the f16 mask of this tile's keys, or NULL for no mask at all.
    pub mask: *const *const u16,
    /// What the mask is multiplied by, for each row.
    pub slope: *const f32,
}

/// `c[MR_][16 NV] = (c +) a[MR_][depth] b[depth][16 NV]`
#[allow(clippy::too_many_arguments)]
#[inline(always)]
unsafe fn block<V: Lanes, const M: usize, const NV: usize>(
    depth: usize,
    a: *const f32,
    lda: usize,
    b: *const f32,
    ldb: usize,
    c: *mut f32,
    ldc: usize,
    add: bool,
) {
    // SAFETY: the caller's promise: all rows hold what the shapes say.
    unsafe {
        let mut acc = [[V::splat(0.0); NV]; M];
        if add {
            for (r, row) in acc.iter_mut().enumerate() {
                for (j, x) in row.iter_mut().enumerate() {
                    *x = V::load(c.add(r * ldc + j * LANES));
                }
            }
        }
        for d in 0..depth {
            let mut x = [V::splat(0.0); NV];
            for (j, x) in x.iter_mut().enumerate() {
                *x = V::load(b.add(d * ldb + j * LANES));
            }
            for (r, row) in acc.iter_mut().enumerate() {
                let y = V::splat(*a.add(r * lda + d));
                for (acc, x) in row.iter_mut().zip(x) {
                    *acc = y.fma(x, *acc);
                }
            }
        }
        for (r, row) in acc.iter().enumerate() {
            for (j, x) in row.iter().enumerate() {
                x.store(c.add(r * ldc + j * LANES));
            }
        }
    }
}

/// As [`block`], for any number of columns that is whole lanes.
#[allow(clippy::too_many_arguments)]
#[inline(always)]
unsafe fn panel<V: Lanes, const M: usize>(
    n: usize,
    depth: usize,
    a: *const f32,
    lda: usize,
    b: *const f32,
    ldb: usize,
    c: *mut f32,
    ldc: usize,
    add: bool,
) {
    let mut j = 0;
    // SAFETY: the caller's promise.
    unsafe {
        while V::WIDE && j + 4 * LANES <= n {
            block::<V, M, 4>(depth, a, lda, b.add(j), ldb, c.add(j), ldc, add);
            j += 4 * LANES;
        }
        while V::WIDE && j + 2 * LANES <= n {
            block::<V, M, 2>(depth, a, lda, b.add(j), ldb, c.add(j), ldc, add);
            j += 2 * LANES;
        }
        while j < n {
            block::<V, M, 1>(depth, a, lda, b.add(j), ldb, c.add(j), ldc, add);
            j += LANES;
        }
    }
}

/// As [`panel`], for 1 to [`MR`] rows.
#[allow(clippy::too_many_arguments)]
#[inline(always)]
unsafe fn rows<V: Lanes>(
    m: usize,
    n: usize,
    depth: usize,
    a: *const f32,
    lda: usize,
    b: *const f32,
    ldb: usize,
    c: *mut f32,
    ldc: usize,
    add: bool,
) {
    // SAFETY: the caller's promise.
    unsafe {
        if m == MR {
            return panel::<V, MR>(n, depth, a, lda, b, ldb, c, ldc, add);
        }
        let mut r = 0;
        while r + 2 <= m {
            panel::<V, 2>(n, depth, a.add(r * lda), lda, b, ldb, c.add(r * ldc), ldc, add);
            r += 2;
        }
        if r < m {
            panel::<V, 1>(n, depth, a.add(r * lda), lda, b, ldb, c.add(r * ldc), ldc, add);
        }
    }
}

impl Step {
    /// Turns the logits of row `r` into weights, updates maximum, sum and output row.
    #[inline(always)]
    unsafe fn soften<V: Lanes>(&self, r: usize, s: *mut f32) {
        let (n, padded) = (self.n, self.n.next_multiple_of(LANES));
        // SAFETY: the logits have room for padded values; r is a row.
        unsafe {
            let plain = self.mask.is_null() && self.cap == 0.0 && self.scale > 0.0;
            if !plain {
                let mask = if self.mask.is_null() { std::ptr::null() } else { *self.mask.add(r) };
                let slope = V::splat(*self.slope.add(r));
                for i in (0..padded).step_by(LANES) {
                    let mut x = V::load(s.add(i)).mul(V::splat(self.scale));
                    if self.cap != 0.0 {
                        x = math::tanh(x).mul(V::splat(self.cap));
                    }
                    if !mask.is_null() {
                        let k = (n - i).min(LANES);
                        let m: V = if k == LANES { F16::load(mask.add(i)) } else { F16::load_n(mask.add(i), k) };
                        x = m.fma(slope, x);
                    }
                    x.store(s.add(i));
                }
            }
            for i in n..padded {
                *s.add(i) = f32::NEG_INFINITY;
            }
            let mut top = V::splat(f32::NEG_INFINITY);
            for i in (0..padded).step_by(LANES) {
                top = V::load(s.add(i)).max(top);
            }
            let scale = if plain { self.scale } else { 1.0 };
            let top = top.hmax() * scale;
            let old = *self.m.add(r);
            let max = if top > old { top } else { old };
            if max == f32::NEG_INFINITY {
                // Nothing takes part: weights of zero, NaN kept.
                for i in 0..padded {
                    let x = *s.add(i);
                    *s.add(i) = if x.is_nan() { x } else { 0.0 };
                }
                return;
            }
            let neg = V::splat(-max);
            let mut sum = V::splat(0.0);
            for i in (0..padded).step_by(LANES) {
                let e = math::exp(V::load(s.add(i)).fma(V::splat(scale), neg));
                e.store(s.add(i));
                sum = sum.add(e);
            }
            if max > old {
                let keep = (old - max).exp();
                *self.m.add(r) = max;
                *self.l.add(r) *= f64::from(keep);
                let o = self.o.add(r * self.dv);
                for i in (0..self.dv).step_by(LANES) {
                    V::load(o.add(i)).mul(V::splat(keep)).store(o.add(i));
                }
            }
            *self.l.add(r) += sum.sum_f64();
        }
    }
}

/// A step of a few query rows: keys and values are read where they lie, since turning them would cost more than it gives.
/// `k` and `v` of the step are not used; its values are padded in `o` only.
pub struct Thin<E: Elem> {
    /// The step.
    pub step: Step,
    /// First key of the tile.
    pub k: *const E::Mem,
    /// Bytes from key to key.
    pub k_stride: usize,
    /// First value of the tile.
    pub v: *const E::Mem,
    /// Bytes from value to value.
    pub v_stride: usize,
    /// Length of a value.
    pub dv: usize,
}

/// Lanes `at..` of a row of `n` elements, zeros behind its end.
#[inline(always)]
unsafe fn piece<V: Lanes, E: Elem>(row: *const E::Mem, at: usize, n: usize) -> V {
    // SAFETY: the caller's promise: the row holds n elements and at < n.
    unsafe {
        if at + LANES <= n {
            E::load::<V>(row.add(at))
        } else {
            E::load_n::<V>(row.add(at), n - at)
        }
    }
}

/// Keys and values whose memory is asked for before they are needed. Heads lie between a head's keys, so their order in memory is
/// not one that the processor follows by itself.
const AHEAD: usize = 16;

/// Asks for the memory of a row of `bytes` bytes; any address will do.
#[inline(always)]
fn fetch(row: *const u8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    for at in (0..bytes).step_by(64) {
        // SAFETY: a hint: it reads nothing and does not trap, whatever the address.
        unsafe { std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(row.wrapping_add(at).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (row, bytes);
}

impl<E: Elem> Thin<E> {
    /// Logits of row `r`, four keys at a time.
    #[inline(always)]
    unsafe fn logits<V: Lanes>(&self, r: usize) {
        let dk = self.step.dk;
        // SAFETY: the caller's promise: keys and queries hold dk elements, there is room for the logits.
        unsafe {
            let q = self.step.q.add(r * dk);
            let key = |j: usize| self.k.byte_add(j * self.k_stride);
            let mut j = 0;
            while j < self.step.n {
                let m = (self.step.n - j).min(4);
                if r == 0 {
                    for t in AHEAD..AHEAD + 4 {
                        fetch(self.k.cast::<u8>().wrapping_add((j + t) * self.k_stride), dk * size_of::<E::Mem>());
                    }
                }
                let mut acc = [V::splat(0.0); 4];
                for d in (0..dk).step_by(LANES) {
                    let x = if d + LANES <= dk { V::load(q.add(d)) } else { V::load_n(q.add(d), dk - d) };
                    for (t, acc) in acc.iter_mut().enumerate() {
                        // Past the end the last key is computed again and not kept.
                        *acc = piece::<V, E>(key(j + t.min(m - 1)), d, dk).fma(x, *acc);
                    }
                }
                for (t, acc) in acc.iter().enumerate().take(m) {
                    *self.step.s.add(j + t) = acc.sum();
                }
                j += m;
            }
        }
    }

    /// Adds the weighted values to output row `r`, `N` registers at a time.
    #[inline(always)]
    unsafe fn values<V: Lanes, const N: usize>(&self, r: usize, at: usize) {
        // SAFETY: the caller's promise: values hold dv elements, the output row is padded.
        unsafe {
            let o = self.step.o.add(r * self.step.dv + at);
            let mut acc = [V::splat(0.0); N];
            for (t, acc) in acc.iter_mut().enumerate() {
                *acc = V::load(o.add(t * LANES));
            }
            for j in 0..self.step.n {
                let p = V::splat(*self.step.s.add(j));
                if r == 0 {
                    let next = self.v.cast::<u8>().wrapping_add((j + AHEAD) * self.v_stride);
                    fetch(next.wrapping_add(at * size_of::<E::Mem>()), N * LANES * size_of::<E::Mem>());
                }
                let row = self.v.byte_add(j * self.v_stride);
                for (t, acc) in acc.iter_mut().enumerate() {
                    *acc = piece::<V, E>(row, at + t * LANES, self.dv).fma(p, *acc);
                }
            }
            for (t, acc) in acc.iter().enumerate() {
                acc.store(o.add(t * LANES));
            }
        }
    }
}

impl<E: Elem> Kernel for Thin<E> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        for r in 0..self.step.rows {
            // SAFETY: the caller's promise: every array holds what its comment says.
            unsafe {
                self.logits::<V>(r);
                self.step.soften::<V>(r, self.step.s);
                let mut at = 0;
                while at + 4 * LANES <= self.dv {
                    self.values::<V, 4>(r, at);
                    at += 4 * LANES;
                }
                while at < self.dv {
                    self.values::<V, 1>(r, at);
                    at += LANES;
                }
            }
        }
    }
}

impl Kernel for Step {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let padded = self.n.next_multiple_of(LANES);
        let mut r = 0;
        while r < self.rows {
            let m = (self.rows - r).min(MR);
            // SAFETY: the caller's promise: every array holds what its comment says.
            unsafe {
                let q = self.q.add(r * self.dk);
                for j in (0..padded).step_by(PANEL) {
                    let n = (padded - j).min(PANEL);
                    let k = self.k.add(j * self.dk);
                    rows::<V>(m, n, self.dk, q, self.dk, k, PANEL, self.s.add(j), KV, false);
                }
                for i in 0..m {
                    self.soften::<V>(r + i, self.s.add(i * KV));
                }
                let o = self.o.add(r * self.dv);
                rows::<V>(m, self.dv, self.n, self.s, KV, self.v, self.dv, o, self.dv, true);
            }
            r += m;
        }
    }
}
