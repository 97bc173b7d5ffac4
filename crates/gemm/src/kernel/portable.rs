//! Arrays of eight values in plain Rust, for machines without a set of their own.

use super::lanes::{kernel_table, lane_methods, staged, Lanes};

#[derive(Clone, Copy)]
pub(crate) struct Eight([f32; 8]);

#[inline(always)]
fn zip(a: Eight, b: Eight, f: impl Fn(f32, f32) -> f32) -> Eight {
    let mut o = a;
    for i in 0..8 {
        o.0[i] = f(a.0[i], b.0[i]);
    }
    o
}

impl Lanes for Eight {
    const LANES: usize = 8;
    lane_methods! {
        fn zero() -> Self {
            Eight([0.0; 8])
        }
        fn splat(v: f32) -> Self {
            Eight([v; 8])
        }
        fn load(p: *const f32) -> Self {
            Eight(p.cast::<[f32; 8]>().read_unaligned())
        }
        fn store(self, p: *mut f32) {
            p.cast::<[f32; 8]>().write_unaligned(self.0)
        }
        fn load_n(p: *const f32, n: usize) -> Self {
            Eight(staged(p, n))
        }
        fn store_n(self, p: *mut f32, n: usize) {
            core::ptr::copy_nonoverlapping(self.0.as_ptr(), p, n.min(8))
        }
        fn load_f16(p: *const u16) -> Self {
            Self::load_f16_n(p, 8)
        }
        fn load_f16_n(p: *const u16, n: usize) -> Self {
            let h: [u16; 8] = staged(p, n);
            Eight(h.map(|b| half::f16::from_bits(b).to_f32()))
        }
        fn load_bf16(p: *const u16) -> Self {
            Self::load_bf16_n(p, 8)
        }
        fn load_bf16_n(p: *const u16, n: usize) -> Self {
            let h: [u16; 8] = staged(p, n);
            Eight(h.map(|b| f32::from_bits(u32::from(b) << 16)))
        }
        fn fma(self, a: Self, b: Self) -> Self {
            // A fused operation without hardware for it would be a call per value.
            zip(zip(a, b, |x, y| x * y), self, |x, y| x + y)
        }
        fn add(self, o: Self) -> Self {
            zip(self, o, |x, y| x + y)
        }
        fn mul(self, o: Self) -> Self {
            zip(self, o, |x, y| x * y)
        }
        fn sum(self) -> f32 {
            let v = self.0;
            ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]))
        }
        fn transpose_store(load: impl Fn(usize) -> Self, dst: *mut f32, pitch: usize, keep: usize, steps: usize) {
            for r in 0..keep {
                let row = load(r).0;
                for (i, &v) in row.iter().enumerate().take(steps) {
                    *dst.add(i * pitch + r) = v;
                }
            }
        }
    }
}

kernel_table! {
    lanes: Eight, vectors: 1, halves: 1,
    columns: [1, 2, 3, 4],
    dot_rows: [2 / 1, 2 / 2, 1 / 3, 1 / 4, 1 / 5, 1 / 6]
}
