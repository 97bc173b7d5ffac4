//! The matrix of patches, written out.

use super::patches::{Geometry, Patches};
use super::round::to_f16;
use crate::entry::{tasks_by_size, OpEntry};
use crate::node::{src, Node};
use crate::team::Team;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

/// Patches of a signal or an image; `src[0]` only gives the kernel's size.
pub static IM2COL: OpEntry = OpEntry { supports, work, n_tasks: tasks_by_size, run };
/// Patches of a volume.
pub static IM2COL_3D: OpEntry = OpEntry { supports, work, n_tasks: tasks_by_size, run };

pub(super) fn geometry(op: &ggml_tensor) -> Result<Geometry, &'static str> {
    if op.op == GGML_OP_IM2COL {
        Geometry::im2col(op)
    } else {
        Geometry::im2col_3d(op)
    }
}

fn supports(op: &ggml_tensor) -> Result<(), &'static str> {
    let image = src(op, 1)?;
    let formats = [op.r#type, image.r#type];
    if !formats.iter().all(|&f| f == GGML_TYPE_F32 || f == GGML_TYPE_F16) {
        return Err("image and result must be f32 or f16");
    }
    if formats == [GGML_TYPE_F32, GGML_TYPE_F16] {
        return Err("an f16 image gives an f16 result");
    }
    if image.nb.iter().any(|nb| nb % shape::type_size(image.r#type) != 0) {
        return Err("a stride is no multiple of the element size");
    }
    if !shape::is_contiguous(op) {
        return Err("the result must be contiguous");
    }
    geometry(op).map(|_| ())
}

/// One patch in f32 for each thread.
fn work(op: &ggml_tensor, nth: usize) -> usize {
    (op.ne[0] as usize).saturating_mul(4).saturating_add(64).saturating_mul(nth)
}

fn run(node: &Node, team: &Team) {
    let (image, out) = (node.arg(1), node.out());
    let Ok(g) = geometry(node.dst) else { return };
    let (k, positions) = (g.k(), g.positions());
    // SAFETY: the executor found the image's memory; nobody writes it while the node runs.
    let patches = unsafe { Patches::new(g, image.data, image.ty == GGML_TYPE_F16, false) };
    let inner = (image.ty == GGML_TYPE_F32).then(|| Inner::new(&g, image.data)).flatten();
    let patch = |image: usize, o: [usize; 3], to: &mut [f32]| {
        // SAFETY: the executor found the image's memory.
        if !inner.as_ref().is_some_and(|inner| unsafe { inner.patch(image, o, to) }) {
            patches.patch(image, o, to);
        }
    };
    let own = team.scratch().0.wrapping_add(team.ith() * (k * 4).next_multiple_of(64)).cast::<f32>();
    let f32s = out.ty == GGML_TYPE_F32;
    if !f32s {
        // SAFETY: this thread's part of the scratch memory; a slice must not hold what nobody wrote.
        unsafe { own.write_bytes(0, k) };
    }
    for part in team.chunks(positions * g.n, (16 * 1024 / k.max(1)).max(1)) {
        for row in part {
            let (image, o) = (row / positions, g.unravel(row % positions));
            if f32s {
                // SAFETY: row number `row` of the contiguous result, written by this thread only.
                let to = unsafe { std::slice::from_raw_parts_mut(out.data.cast::<f32>().add(row * k), k) };
                patch(image, o, to);
            } else {
                // SAFETY: this thread's part of the scratch memory, written above.
                let values = unsafe { std::slice::from_raw_parts_mut(own, k) };
                patch(image, o, values);
                // SAFETY: as for f32.
                let to = unsafe { std::slice::from_raw_parts_mut(out.data.cast::<u16>().add(row * k), k) };
                to_f16(values, to);
            }
        }
    }
}

/// Kernel rows (height times depth) whose places are kept at hand.
const KERNEL_ROWS: usize = 64;

/// Patches of an f32 image whose kernel rows lie inside it whole and without gaps: nearly all.
struct Inner<'a> {
    g: &'a Geometry,
    data: *const u8,
}

impl<'a> Inner<'a> {
    fn new(g: &'a Geometry, data: *const u8) -> Option<Inner<'a>> {
        let [kw, kh, kd] = g.kernel;
        let even = g.nb[0] == 4 && (g.dilation[0] == 1 || kw == 1);
        let few = kh.checked_mul(kd).is_some_and(|n| n <= KERNEL_ROWS);
        (kw > 0 && even && few).then_some(Inner { g, data })
    }

    /// Writes the patch of output position `o`; `false` if a kernel row reaches past the image's sides.
    ///
    /// # Safety
    /// The image that the geometry describes is readable; `to` has a patch's length.
    unsafe fn patch(&self, image: usize, o: [usize; 3], to: &mut [f32]) -> bool {
        let (g, [kw, kh, kd]) = (self.g, self.g.kernel);
        let (Some(x), Some(_)) = (g.inside(0, o[0], 0), g.inside(0, o[0], kw - 1)) else { return false };
        let mut places = [None; KERNEL_ROWS];
        for z in 0..kd {
            for y in 0..kh {
                if let (Some(iy), Some(iz)) = (g.inside(1, o[1], y), g.inside(2, o[2], z)) {
                    places[z * kh + y] = Some(iy * g.nb[1] + iz * g.nb[2]);
                }
            }
        }
        let (places, first) = (&places[..kh * kd], self.data.wrapping_add(image * g.nb_image + x * 4));
        // SAFETY: all kernel rows with a place lie inside the image; `to` has channels x places x kw values.
        unsafe {
            match kw {
                1 => self.rows::<1>(places, first, to),
                2 => self.rows::<2>(places, first, to),
                3 => self.rows::<3>(places, first, to),
                4 => self.rows::<4>(places, first, to),
                5 => self.rows::<5>(places, first, to),
                7 => self.rows::<7>(places, first, to),
                8 => self.rows::<8>(places, first, to),
                16 => self.rows::<16>(places, first, to),
                _ => self.rows::<0>(places, first, to),
            }
        }
        true
    }

    /// Kernel rows of `KW` values, 0 for any number.
    ///
    /// # Safety
    /// As many values lie at `first` plus each place, in each channel.
    #[inline(always)]
    unsafe fn rows<const KW: usize>(&self, places: &[Option<usize>], first: *const u8, to: &mut [f32]) {
        let kw = if KW == 0 { self.g.kernel[0] } else { KW };
        if places.is_empty() {
            return;
        }
        for (c, to) in to.chunks_exact_mut(kw * places.len()).enumerate() {
            let channel = first.wrapping_add(c * self.g.nb_channel);
            for (to, place) in to.chunks_exact_mut(kw).zip(places) {
                let Some(place) = *place else {
                    to.fill(0.0);
                    continue;
                };
                // SAFETY: the caller's promise.
                let from = unsafe { std::slice::from_raw_parts(channel.wrapping_add(place).cast::<f32>(), kw) };
                to.copy_from_slice(from);
            }
        }
    }
}
