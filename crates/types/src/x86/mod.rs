//! The fast paths of x86-64. Decoding and encoding give the portable results bit for bit; dot products differ from the
//! portable ones in the order of the float sums only. `isa` holds what AVX2 and AVX-512 VNNI do differently, `unpack`
//! and `unpack_iq` the codes of each format as vectors; `decode`, `encode`, `convert` and the dot products stand on them:
//! `dot_float`; with blocks of 32 `dot_block` (one against one) and `dot_wide`; with blocks of 256 `dot_k` and `dot_k512`
//! (scales inside the block), `dot_ternary`, `dot_iq4`. Imports: block, clean, float, kernels' types, the portable codecs.

// Loops over const R, C and lanes index several arrays at once.
#![allow(clippy::needless_range_loop)]

mod convert;
mod decode;
mod dot_block;
mod dot_float;
mod dot_iq4;
mod dot_k;
mod dot_k512;
mod dot_ternary;
mod dot_wide;
mod encode;
mod isa;
mod unpack;
mod unpack_iq;

use crate::kernels::{Kernels, Level};
use crate::Type;

/// `base` with every function that has a fast path at `level` replaced. `level` is at least `Avx2` and not above the
/// machine's.
pub(crate) fn upgrade(ty: Type, level: Level, base: Kernels) -> Kernels {
    Kernels {
        decode: decode::pick(ty).or(convert::pick_decode(ty)).or(base.decode),
        encode: encode::pick(ty).or(convert::pick_encode(ty)).or(base.encode),
        encode_searched: encode::pick_searched(ty).or(base.encode_searched),
        encode_weighted: encode::pick_weighted(ty).or(base.encode_weighted),
        dot: dot_block::pick(ty, level)
            .or_else(|| if level >= Level::Avx512 { dot_k512::pick(ty) } else { dot_k::pick(ty) })
            .or(dot_wide::pick(ty, level))
            .or(dot_ternary::pick(ty, level))
            .or(dot_iq4::pick(ty, level))
            .or(dot_float::pick(ty, level))
            .or(base.dot),
    }
}
