//! Rules on random metadata, extremes included: no panic, and what is answered can be laid out or is refused.

use super::meta;
use crate::tensor::attention::{flash_attn_back, flash_attn_ext, Sources};
use crate::tensor::conv::{self, Axis};
use crate::tensor::pool::{self, Window};
use crate::tensor::recurrent::{self, Delta, Scan};
use crate::tensor::rope::{rope, rope_back, Rope};
use crate::tensor::{
    backward, copy, elementwise, image, matmul, misc, new, norm, reduce, solve, streams, train, view,
    window as windows, NodeSpec,
};
use ggml_oxide_abi::*;

/// A small generator: xorshift64*.
struct Random(u64);
impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[(self.next() % from.len() as u64) as usize]
    }
    fn dim(&mut self) -> i64 {
        self.pick(&[
            1,
            1,
            1,
            2,
            3,
            4,
            8,
            32,
            0,
            256,
            i64::MAX,
            i64::MAX - 1,
            i64::MIN,
            -1,
            1 << 31,
            1 << 62,
            -(1 << 33),
        ])
    }
    fn small(&mut self) -> i32 {
        self.pick(&[0, 1, 1, 2, 3, -1, 64, i32::MAX, i32::MIN, 7])
    }
    fn size(&mut self) -> usize {
        self.pick(&[0, 4, 16, 64, 4096, usize::MAX, usize::MAX / 2, 1 << 31, 1 << 62])
    }
    fn float(&mut self) -> f32 {
        self.pick(&[0.0, 1.0, -1.0, 1e-5, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e30, f32::MIN_POSITIVE])
    }
    fn shape(&mut self) -> [i64; 4] {
        [0; 4].map(|_| self.dim())
    }
    /// Any metadata a caller can write.
    fn tensor(&mut self) -> ggml_tensor {
        let ty = self.pick(&[
            GGML_TYPE_F32,
            GGML_TYPE_F32,
            GGML_TYPE_F16,
            GGML_TYPE_I32,
            GGML_TYPE_I64,
            GGML_TYPE_Q4_0,
            GGML_TYPE_Q6_K,
            GGML_TYPE_BF16,
            ggml_type(31),
            ggml_type(-7),
            ggml_type(i32::MAX),
        ]);
        let mut t = meta("r", GGML_TYPE_F32, &[1]);
        t.r#type = ty;
        t.ne = self.shape();
        t.nb = ggml_oxide_shape::contiguous_strides(ty, &t.ne).unwrap_or([0; 4].map(|_| self.size()));
        if self.next().is_multiple_of(4) {
            t.nb.swap(0, 1);
        }
        t
    }
}

fn check(spec: Result<NodeSpec, crate::error::Error>) -> bool {
    match spec {
        Err(error) => {
            assert!(!error.text.is_empty());
            false
        }
        Ok(spec) => match spec.layout() {
            Err(error) => {
                assert!(!error.text.is_empty());
                false
            }
            Ok((nb, bytes)) => {
                assert!(bytes <= isize::MAX as usize && spec.ne.iter().all(|&n| n >= 0));
                spec.fits(&nb, 0, bytes);
                true
            }
        },
    }
}

#[test]
fn rules_survive_anything() {
    let rounds = if cfg!(miri) { 3 } else { 40_000 };
    let mut r = Random(0x9e37_79b9_7f4a_7c15);
    let mut sound = 0usize;
    for _ in 0..rounds {
        let (a, b, c, d) = (r.tensor(), r.tensor(), r.tensor(), r.tensor());
        let some = r.next().is_multiple_of(2).then_some(&d);
        let ip = r.next().is_multiple_of(2);
        let (i, j, k) = (r.small(), r.small(), r.small());
        let (x, y, z) = (r.float(), r.float(), r.float());
        let axis = |r: &mut Random| Axis { s: r.small(), p: r.small(), d: r.small() };
        let axes = [axis(&mut r), axis(&mut r), axis(&mut r)];
        let nb = [r.size(), r.size(), r.size()];
        let (offs, ne, mode) = (r.size(), r.shape(), r.next() as u32 & 0x303);
        let window = |k, s, p| Window { k, s, p };
        let args = Rope { n_ctx_orig: k, sections: Some([i; 4]), ..Rope::simple(i, j) };
        let n = (r.next() % 6) as usize;
        let specs = [
            new::leaf(a.r#type, &[ne[0]; 6][..n]),
            Ok(new::dup_tensor(&a)),
            elementwise::binary(GGML_OP_ADD, &a, &b, ip),
            elementwise::add_cast(&a, &b, c.r#type),
            elementwise::add_id(&a, &b, &c),
            elementwise::add1(&a, &b, ip),
            elementwise::window(GGML_OP_SET, &a, &b, nb, offs, ip),
            elementwise::window(GGML_OP_ACC, &a, &b, nb, offs, ip),
            elementwise::unary(ggml_unary_op(i), &a, ip),
            elementwise::xielu(&a, x, y, z, x),
            elementwise::glu(ggml_glu_op(i), &a, some, ip),
            elementwise::scale(&a, x, y, ip),
            elementwise::fill(&a, x, ip),
            reduce::sum(&a),
            reduce::sum_rows(&a),
            reduce::mean(&a),
            reduce::argmax(&a),
            reduce::count_equal(&a, &b),
            reduce::argsort(&a, ggml_sort_order(i)),
            reduce::top_k(&a, i),
            norm::rows(GGML_OP_NORM, &a, x, ip),
            norm::group_norm(&a, i, x, ip),
            norm::soft_max(&a, some, x, y, ip),
            norm::sinks(&a, &b).and_then(|()| reduce::sum(&a)),
            matmul::mul_mat(&a, &b),
            matmul::out_prod(&a, &b),
            backward::silu(&a, &b),
            backward::rms_norm(&a, &b, x),
            backward::soft_max(&a, &b, x, y, ip),
            backward::repeat(&a, ne),
            backward::repeat(&a, b.ne),
            backward::get_rows(&a, &b, &c),
            rope_back(&a, &b, some, &args),
            conv::im2col_back(&a, &b, ne, axes[0], axes[1], ip),
            conv::im2col_back(&a, &b, c.ne, axes[0], axes[1], ip),
            pool::pool_2d_back(&a, &b, ggml_op_pool(k), window(i, j, x), window(j, i, y)),
            flash_attn_back(&a, &b, &c, &d, ip),
            train::cross_entropy_loss(&a, &b),
            train::cross_entropy_loss_back(&a, &b, &c),
            train::adamw(&a, &b, &c, &d, &b),
            train::sgd(&a, &b, &c),
            matmul::mul_mat_id(&a, &b, &c),
            flash_attn_ext(Sources { q: &a, k: &b, v: &c, mask: some }, x, y, z),
            view::reshape(&a, ne),
            view::permute(&a, [i, j, k, 0]),
            view::transpose(&a),
            copy::cpy(&a, &b),
            copy::cast(&a, b.r#type),
            copy::cont(&a, ip.then_some(ne)),
            copy::repeat(&a, ne),
            copy::concat(&a, &b, i),
            copy::get_rows(&a, &b),
            copy::set_rows(&a, &b, &c),
            copy::diag(&a),
            copy::tri(&a, ggml_tri_type(i)),
            rope(&a, &b, some, &args, ip),
            conv::im2col_2d(&a, &b, axes[0], axes[1], c.r#type),
            conv::im2col_1d(&a, &b, axes[0], axes[1], c.r#type),
            conv::im2col_3d(&a, &b, ne[0], axes, c.r#type),
            conv::conv_2d(&a, &b, axes[0], axes[1]),
            conv::conv_2d_dw(&a, &b, axes[0], axes[1]),
            conv::conv_3d(&a, &b, axes, i, j, k),
            conv::conv_transpose_1d(&a, &b, axes[0]),
            conv::conv_transpose_2d(&a, &b, i),
            pool::pool_1d(&a, ggml_op_pool(k & 1), i, j, k),
            pool::pool_2d(&a, ggml_op_pool(0), window(i, j, x), window(j, i, y)),
            image::interpolate(&a, ne, mode),
            image::upscale(&a, i, ggml_scale_mode(j)),
            image::pad(&a, [i, j, k, i, j, k, i, j], ip),
            image::pad_reflect_1d(&a, i, j),
            image::roll(&a, [i, j, k, 0]),
            misc::arange(x, y, z),
            misc::timestep_embedding(&a, i, j),
            recurrent::ssm_conv(&a, &b),
            recurrent::ssm_scan(Scan { s: &a, x: &b, dt: &c, a: &d, b: &b, c: &b, ids: &d }, ne[0]),
            recurrent::wkv6([&a; 4], &b, &c),
            recurrent::wkv7([&a, &a, &a, &a, &a, some.unwrap_or(&a)], &c),
            recurrent::gated_linear([&a; 4], &a, x),
            recurrent::gated_delta_net(Delta { q: &a, k: &b, v: &a, g: &a, beta: &c, state: &d }, ne[0]),
            solve::solve_tri(&a, &b, true, ip, false),
            streams::hc_comb(&a, &b, &c, x, i),
            streams::hc_pre(&a, some.unwrap_or(&a), x, ip),
            streams::hc_post(&a, &b, &c, some),
            streams::lightning_indexer(&a, &b, &c, &d),
            conv::col2im_1d(&a, i, j, k),
            windows::win_part(&a, i),
            windows::win_unpart(&a, i, j, k),
            windows::get_rel_pos(&a, i, j),
            windows::add_rel_pos(&a, &b, &b, ip),
        ];
        sound += specs.into_iter().map(check).filter(|&ok| ok).count();
        let full = n.min(4);
        if let Ok(spec) = view::view(&a, &ne[..full], &nb[..full.saturating_sub(1)], offs) {
            if let Ok((nb, _)) = spec.layout() {
                spec.fits(&nb, offs, 4096);
            }
        }
    }
    assert!(sound > rounds, "the generator makes shapes that can be, too: {sound} of {rounds} rounds");
}

/// A view that fits is checked against the addresses that it reaches, one by one.
#[test]
fn bounds_are_those_of_the_elements() {
    let mut r = Random(7);
    let rounds = if cfg!(miri) { 100 } else { 20_000 };
    let mut hits = [0usize; 2];
    for _ in 0..rounds {
        let ne = [0; 4].map(|_| (r.next() % 12).min(3) as i64);
        let nb = [4, r.next() as usize % 24, r.next() as usize % 64, r.next() as usize % 96];
        let (offs, room) = (r.next() as usize % 64, r.next() as usize % 512);
        let spec = NodeSpec::new(GGML_OP_VIEW, GGML_TYPE_F32, ne);
        let reach = |i: [i64; 4]| offs + (0..4).map(|d| i[d] as usize * nb[d]).sum::<usize>() + 4;
        let mut inside = true;
        for i3 in 0..ne[3] {
            for i2 in 0..ne[2] {
                for i1 in 0..ne[1] {
                    inside &= (0..ne[0]).all(|i0| reach([i0, i1, i2, i3]) <= room);
                }
            }
        }
        assert_eq!(spec.fits(&nb, offs, room), inside, "{ne:?} {nb:?} {offs} {room}");
        hits[usize::from(inside)] += 1;
    }
    assert!(hits.iter().all(|&n| n > rounds / 20), "{hits:?}");
}
