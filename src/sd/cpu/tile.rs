//! The tile: 32-bit lanes of a panel of weights times a strip of activations, sums in registers. A lane takes a unit of weights, which is
//! four 8-bit integers, two of 16 bits or one F32, whatever the processor multiplies best. Sums of integers are exact and wrap at 32 bits;
//! those of F32 are made in the order of the elements, product and sum rounded each. Every level has the same bits.

use super::Level;

/// Most rows of activations in a strip, over all levels.
pub const MAX_STRIP: usize = 12;
/// Most rows of weights in a panel, over all levels.
pub const MAX_ROWS: usize = 32;

/// One tile.
pub struct Tile {
    /// Units of weights, `[units][rows of the panel]`.
    pub w: *const u32,
    /// Units of activations, `[units][rows of the strip]`.
    pub x: *const u32,
    /// How many units of `k`.
    pub units: usize,
    /// The sum of each row of activations; read at the first units, by kernels that move weights up.
    pub sums: *const i32,
    /// These are the first units of `k`; otherwise the result has the sums so far.
    pub first: bool,
    /// These are the last ones: sums become the result.
    pub last: bool,
    /// The scale of each row of activations.
    pub x_scale: *const f32,
    /// The scale of each row of weights of the whole panel, or null.
    pub w_scale: *const f32,
    /// The addend of each row of weights of the whole panel, or null.
    pub bias: *const f32,
    /// The result, at the first row of activations and of weights.
    pub dst: *mut u32,
    /// Elements of the result from one row of activations to the next.
    pub pitch: usize,
    /// Rows of weights that there are.
    pub rows: usize,
    /// The result goes past the caches: it is large, and each row of it in the tile is whole cache lines. [`streamed`] follows.
    pub stream: bool,
    /// What is brought near for later.
    pub ahead: Ahead,
}

/// Places to bring near while a tile is computed, one at each unit: in rows of `run` of them, `step` bytes apart. They need not be anything.
#[derive(Clone, Copy)]
pub struct Ahead {
    /// The first.
    pub at: *const u8,
    /// Bytes from one to the next.
    pub step: usize,
    /// How many there are in a row.
    pub run: usize,
    /// Bytes from where a row ends to where the next begins.
    pub jump: usize,
}

/// A kernel for strips of a fixed number of rows.
pub type Kernel = unsafe fn(&Tile);

/// The tiles of a level.
pub struct Tiles {
    /// Elements of `k` in a unit.
    pub per: usize,
    /// Rows of a panel of weights.
    pub rows: usize,
    /// 8-bit weights are moved up by 128, bytes with [`Tiles::flip`] turned over: the instructions multiply bytes without a sign by bytes with one.
    pub up: bool,
    /// By rows of activations, from 1 on.
    kernels: &'static [Kernel],
}

impl Tiles {
    /// Rows of activations in a whole strip.
    pub fn strip(&self) -> usize {
        self.kernels.len()
    }

    /// Bits of a unit of weights that are turned over.
    pub fn flip(&self) -> u32 {
        if self.up {
            0x8080_8080
        } else {
            0
        }
    }

    /// # Safety
    /// The tile's memory is there, for `n` rows of activations, 1 to [`Tiles::strip`]; the processor has the level.
    #[inline]
    pub unsafe fn run(&self, n: usize, tile: &Tile) {
        // SAFETY: the caller's promise.
        unsafe { self.kernels[n - 1](tile) }
    }
}

/// Tiles of 8-bit integers.
pub fn integers(level: Level) -> &'static Tiles {
    match level {
        Level::Portable => &plain::INTEGERS,
        #[cfg(target_arch = "aarch64")]
        Level::Dot => &neon::INTEGERS,
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => &x86::AVX2,
        #[cfg(target_arch = "x86_64")]
        Level::AvxVnni => &x86::AVX_VNNI,
        #[cfg(target_arch = "x86_64")]
        Level::Vnni => &x86::VNNI,
    }
}

/// Tiles of F32.
pub fn floats(level: Level) -> &'static Tiles {
    match level {
        Level::Portable => &plain::FLOATS,
        #[cfg(target_arch = "aarch64")]
        Level::Dot => &plain::FLOATS,
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 | Level::AvxVnni => &x86::AVX2_FLOATS,
        #[cfg(target_arch = "x86_64")]
        Level::Vnni => &x86::AVX512_FLOATS,
    }
}

/// One register of 32-bit lanes. Methods are inlined into a function that enables the instructions.
///
/// # Safety
/// The processor has the instructions, and there are as many lanes behind a pointer.
trait Lanes: Copy {
    /// How many lanes.
    const N: usize;
    /// See [`Tiles::up`].
    const UP: bool = false;
    unsafe fn splat(unit: u32) -> Self;
    unsafe fn load(p: *const u32) -> Self;
    unsafe fn store(self, p: *mut u32);
    /// Adds the products of the units in each lane.
    unsafe fn step(self, w: Self, x: Self) -> Self;
    /// F32 of sums, times `x_scale`, times the lanes of `w_scale`, plus those of `bias`, where they are.
    unsafe fn finish(self, x_scale: f32, w_scale: *const f32, bias: *const f32) -> Self;
    /// Asks for the cache line at `p` to be brought near, to be written; it need not be anything.
    unsafe fn will_write(_p: *const u32) {}
    /// [`Lanes::store`] to a multiple of 64 bytes, past the caches where the processor can.
    unsafe fn stream(self, p: *mut u32) {
        // SAFETY: the caller's promise.
        unsafe { self.store(p) }
    }
}

/// # Safety
/// As [`Tiles::run`], for `X` rows of activations.
#[inline(always)]
#[allow(clippy::needless_range_loop)] // registers by number
unsafe fn tile<L: Lanes, const V: usize, const X: usize>(t: &Tile) {
    // SAFETY: the caller's promise: all offsets are in the panel, in the strip, or in the result.
    unsafe {
        // loops over registers are short, so that they are unrolled and sums stay in registers; all else goes by way of memory
        let mut aside = Aside([[0; MAX_ROWS]; X]);
        let mut acc = [[L::splat(0); V]; X];
        if !t.first {
            for (j, to) in aside.0.iter_mut().enumerate() {
                t.dst.add(j * t.pitch).copy_to_nonoverlapping(to.as_mut_ptr(), t.rows);
            }
            for j in 0..X {
                for v in 0..V {
                    acc[j][v] = L::load(aside.0[j].as_ptr().add(v * L::N));
                }
            }
        } else if L::UP {
            for j in 0..X {
                acc[j] = [L::splat((*t.sums.add(j)).wrapping_mul(-128).cast_unsigned()); V];
            }
        }
        if !t.stream {
            for j in 0..X {
                for line in (0..V * L::N).step_by(16) {
                    L::will_write(t.dst.wrapping_add(j * t.pitch + line));
                }
            }
        }
        let (mut w, mut x) = (t.w, t.x);
        let (mut ahead, mut run) = (t.ahead.at, t.ahead.run);
        for _ in 0..t.units {
            near(ahead);
            ahead = ahead.wrapping_add(t.ahead.step);
            run = run.wrapping_sub(1);
            if run == 0 {
                (ahead, run) = (ahead.wrapping_add(t.ahead.jump), t.ahead.run);
            }
            let mut a = [L::splat(0); V];
            for v in 0..V {
                a[v] = L::load(w.add(v * L::N));
            }
            for j in 0..X {
                let b = L::splat(*x.add(j));
                for v in 0..V {
                    acc[j][v] = acc[j][v].step(a[v], b);
                }
            }
            (w, x) = (w.add(V * L::N), x.add(X));
        }
        for j in 0..X {
            for v in 0..V {
                acc[j][v].store(aside.0[j].as_mut_ptr().add(v * L::N));
            }
        }
        for (j, from) in aside.0.iter_mut().enumerate() {
            let to = t.dst.add(j * t.pitch);
            if t.last {
                for v in 0..V {
                    let lanes = |p: *const f32| if p.is_null() { p } else { p.wrapping_add(v * L::N) };
                    let place = from.as_mut_ptr().add(v * L::N);
                    let (w_scale, bias) = (lanes(t.w_scale), lanes(t.bias));
                    L::load(place).finish(t.x_scale.add(j).read_unaligned(), w_scale, bias).store(place);
                }
            }
            match t.rows == V * L::N {
                true if t.stream => {
                    for v in 0..V {
                        L::load(from.as_ptr().add(v * L::N)).stream(to.add(v * L::N));
                    }
                }
                // of a known size
                true => from.as_ptr().copy_to_nonoverlapping(to, V * L::N),
                false => from.as_ptr().copy_to_nonoverlapping(to, t.rows),
            }
        }
    }
}

/// Asks for what is at `p` to be brought near the processor; it need not be anything.
#[inline(always)]
pub fn near(p: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: this touches nothing.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T1 }>(p.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = p;
}

/// What went past the caches is seen by other threads as everything else is.
pub fn streamed() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every processor of this architecture has the instruction.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

#[repr(align(64))]
struct Aside<const X: usize>([[u32; MAX_ROWS]; X]);

/// Methods of a register: most are one instruction.
macro_rules! lanes {
    ($(fn $name:ident($($arg:tt)*) $(-> $ret:ty)? $body:block)*) => { $(
        #[inline(always)]
        unsafe fn $name($($arg)*) $(-> $ret)? {
            // SAFETY: inlined into functions that enable the instructions, whose callers answer for the memory.
            #[allow(unused_unsafe)]
            unsafe { $body }
        }
    )* };
}

/// The tiles of a register type.
macro_rules! tiles {
    ($name:ident, $lanes:ty, $feature:literal, $per:literal, $v:literal, [$($x:literal),*]) => {
        pub const $name: Tiles = {
            #[target_feature(enable = $feature)]
            unsafe fn kernel<const X: usize>(t: &Tile) {
                // SAFETY: the caller's promise.
                unsafe { tile::<$lanes, $v, X>(t) }
            }
            const ROWS: usize = $v * <$lanes as Lanes>::N;
            const KERNELS: &[Kernel] = &[$(kernel::<$x>),*];
            const _: () = assert!(ROWS <= MAX_ROWS && KERNELS.len() <= MAX_STRIP);
            Tiles { per: $per, rows: ROWS, up: <$lanes as Lanes>::UP, kernels: KERNELS }
        };
    };
}

/// What every processor has, in a shape that compilers make vectors of.
mod plain {
    use super::*;

    macro_rules! plain {
        () => {
            const N: usize = 4;
            lanes! {
                fn splat(unit: u32) -> Self {
                    Self([unit; 4])
                }
                fn load(p: *const u32) -> Self {
                    Self(p.cast::<[u32; 4]>().read_unaligned())
                }
                fn store(self, p: *mut u32) {
                    p.cast::<[u32; 4]>().write_unaligned(self.0)
                }
            }
        };
    }

    /// `v` times the scales, plus the addend.
    #[inline(always)]
    unsafe fn finish(mut v: f32, i: usize, x_scale: f32, w_scale: *const f32, bias: *const f32) -> u32 {
        v *= x_scale;
        // SAFETY: the caller's promise.
        unsafe {
            if !w_scale.is_null() {
                v *= *w_scale.add(i);
            }
            if !bias.is_null() {
                v += *bias.add(i);
            }
        }
        v.to_bits()
    }

    #[derive(Clone, Copy)]
    struct Pairs([u32; 4]);

    impl Lanes for Pairs {
        plain!();
        lanes! {
            fn step(mut self, w: Self, x: Self) -> Self {
                for i in 0..4 {
                    let (low, high) = (|v: u32| i32::from(v as i16), |v: u32| v.cast_signed() >> 16);
                    let sum = low(w.0[i]) * low(x.0[i]) + high(w.0[i]) * high(x.0[i]);
                    self.0[i] = self.0[i].wrapping_add(sum.cast_unsigned());
                }
                self
            }
            fn finish(self, x_scale: f32, w_scale: *const f32, bias: *const f32) -> Self {
                let mut out = self;
                for i in 0..4 {
                    out.0[i] = finish(self.0[i].cast_signed() as f32, i, x_scale, w_scale, bias);
                }
                out
            }
        }
    }

    #[derive(Clone, Copy)]
    struct Floats([u32; 4]);

    impl Lanes for Floats {
        plain!();
        lanes! {
            fn step(mut self, w: Self, x: Self) -> Self {
                for i in 0..4 {
                    let product = f32::from_bits(w.0[i]) * f32::from_bits(x.0[i]);
                    self.0[i] = (f32::from_bits(self.0[i]) + product).to_bits();
                }
                self
            }
            fn finish(self, x_scale: f32, w_scale: *const f32, bias: *const f32) -> Self {
                let mut out = self;
                for i in 0..4 {
                    out.0[i] = finish(f32::from_bits(self.0[i]), i, x_scale, w_scale, bias);
                }
                out
            }
        }
    }

    macro_rules! kernels {
        ($lanes:ty) => {{
            unsafe fn kernel<const X: usize>(t: &Tile) {
                // SAFETY: the caller's promise.
                unsafe { tile::<$lanes, 2, X>(t) }
            }
            &[kernel::<1>, kernel::<2>, kernel::<3>, kernel::<4>]
        }};
    }

    pub const INTEGERS: Tiles = Tiles { per: 2, rows: 8, up: false, kernels: kernels!(Pairs) };
    pub const FLOATS: Tiles = Tiles { per: 1, rows: 8, up: false, kernels: kernels!(Floats) };
}

#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(target_arch = "aarch64")]
mod neon {
    use super::*;
    use std::arch::aarch64::*;

    #[derive(Clone, Copy)]
    struct Quad(uint32x4_t);

    impl Lanes for Quad {
        const N: usize = 4;
        lanes! {
            fn splat(unit: u32) -> Self {
                Self(vdupq_n_u32(unit))
            }
            fn load(p: *const u32) -> Self {
                Self(vld1q_u32(p))
            }
            fn store(self, p: *mut u32) {
                vst1q_u32(p, self.0)
            }
            fn step(self, w: Self, x: Self) -> Self {
                let mut acc = self.0;
                // The intrinsic for it is not in the stable standard library.
                std::arch::asm!("sdot {a:v}.4s, {w:v}.16b, {x:v}.16b", a = inout(vreg) acc, w = in(vreg) w.0,
                    x = in(vreg) x.0, options(pure, nomem, nostack, preserves_flags));
                Self(acc)
            }
            fn finish(self, x_scale: f32, w_scale: *const f32, bias: *const f32) -> Self {
                let mut v = vmulq_n_f32(vcvtq_f32_s32(vreinterpretq_s32_u32(self.0)), x_scale);
                if !w_scale.is_null() {
                    v = vmulq_f32(v, vld1q_f32(w_scale));
                }
                if !bias.is_null() {
                    v = vaddq_f32(v, vld1q_f32(bias));
                }
                Self(vreinterpretq_u32_f32(v))
            }
        }
    }

    tiles!(INTEGERS, Quad, "neon,dotprod", 4, 2, [1, 2, 3, 4, 5, 6, 7, 8]);
}
