//! stable-diffusion.cpp's operators (`ggml-sd.h`) against their formulas, with one, two and three threads (more of them:
//! tests/c/sd_compute.c). The order of rounding is part of the specification, so results are the same bits.
#![allow(clippy::unwrap_used)]

mod api;
mod attention;
mod elements;
mod formulas;
mod linear;
mod linear_w4;
mod quantise;

use reference::world::{self, Outcome};
use reference::*;

/// Computes `out`, which must be supported; what the case is called goes into the message.
fn computed(w: &mut World, out: T, what: &str) {
    assert!(!out.is_null(), "{what}: not built: {}", world::last_error());
    assert_eq!(w.compute(out), Ok(Outcome::Ran), "{what}");
}

/// The elements of an F32 tensor by logical index, with their bits.
fn floats(p: T) -> Vec<f32> {
    world::elements(p).chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
}

/// The same bits, or both NaN.
fn same(got: &[f32], want: &[f32], what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        assert!(g.to_bits() == w.to_bits() || g.is_nan() && w.is_nan(), "{what}: element {i} is {g:e}, must be {w:e}");
    }
}

fn ints(bytes: &[u8]) -> Vec<i8> {
    bytes.iter().map(|&b| b as i8).collect()
}
