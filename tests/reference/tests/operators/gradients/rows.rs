//! Sums, normalisations, softmax, losses, rotary embedding, rows by index.

use super::*;

#[test]
fn sums() {
    type One = fn(Ctx, T) -> T;
    let list: [(&str, One); 5] = [
        ("sum", |c, x| ggml_sum(c, x)),
        ("sum_rows", |c, x| ggml_sum_rows(c, x)),
        ("mean", |c, x| ggml_mean(c, x)),
        ("cumsum", |c, x| ggml_cumsum(c, x)),
        ("repeat", |c, x| ggml_repeat_4d(c, x, 10, 3, 4, 2)),
    ];
    for (name, f) in list {
        check(name, |c| {
            let x = c.param(&[5, 3, 2], UNIT);
            f(c.ctx, x)
        });
        // where there is a gradient already
        check(&format!("{name} beside another"), |c| {
            let x = c.param(&[5, 3, 2], UNIT);
            let (y, rest) = (f(c.ctx, x), ggml_sqr(c.ctx, x));
            let rest = ggml_sum(c.ctx, rest);
            ggml_add(c.ctx, y, rest)
        });
    }
    check("repeat_back", |c| {
        let (x, to) = (c.param(&[6, 4, 2], UNIT), c.data(&[3, 2, 1], UNIT));
        ggml_repeat_back(c.ctx, x, to)
    });
}

#[test]
fn norms() {
    type One = fn(Ctx, T) -> T;
    let list: [(&str, One); 4] = [
        ("rms_norm", |c, x| ggml_rms_norm(c, x, 0.0625)),
        ("norm", |c, x| ggml_norm(c, x, 0.0625)),
        ("l2_norm", |c, x| ggml_l2_norm(c, x, 0.0625)),
        ("group_norm", |c, x| ggml_group_norm(c, x, 2, 0.0625)),
    ];
    for (name, f) in list {
        check(name, |c| {
            let x = c.param(&[6, 3, 4], Away(0.25, 1.5));
            f(c.ctx, x)
        });
    }
    check("l2_norm of what is shorter than eps", |c| {
        let x = c.param(&[3, 2], Between(-0.5, 0.5));
        ggml_l2_norm(c.ctx, x, 4.0)
    });
}

#[test]
fn soft_max() {
    check("soft_max", |c| {
        let x = c.param(&[7, 3, 2], Between(-2.0, 2.0));
        ggml_soft_max(c.ctx, x)
    });
    for (mask, scale, bias) in [(GGML_TYPE_F32, 0.5, 0.0), (GGML_TYPE_F16, 2.0, 0.0), (GGML_TYPE_F32, 0.75, 8.0)] {
        check(&format!("soft_max {mask:?} {scale} {bias}"), |c| {
            let x = c.param(&[7, 3, 2, 2], UNIT);
            let mask = c.tensor(mask, &[7, 3, 1, 2], UNIT);
            ggml_soft_max_ext(c.ctx, x, mask, scale, bias)
        });
    }
    check("soft_max, some masked", |c| {
        let (x, mask) = (c.param(&[5, 5], UNIT), c.data(&[5, 5], UNIT));
        let hidden = |i: usize| if i % 5 > i / 5 { f64::NEG_INFINITY } else { 0.0 };
        write(mask, &(0..25).map(hidden).collect::<Vec<_>>());
        ggml_soft_max_ext(c.ctx, x, mask, 1.0, 0.0)
    });
    check("soft_max with sinks", |c| {
        let (x, sinks) = (c.param(&[6, 3, 2], UNIT), c.data(&[2], UNIT));
        let y = ggml_soft_max(c.ctx, x);
        ggml_soft_max_add_sinks(y, sinks);
        y
    });
}

#[test]
fn cross_entropy() {
    check("cross_entropy_loss", |c| {
        let (x, labels) = (c.param(&[6, 4], Between(-2.0, 2.0)), c.data(&[6, 4], UNIT));
        // a distribution for each row
        let p: Vec<f64> = (0..24).map(|i| (1 + i % 6) as f64 / 21.0).collect();
        write(labels, &p);
        ggml_cross_entropy_loss(c.ctx, x, labels)
    });
}

#[test]
fn rope() {
    let modes = [0, GGML_ROPE_TYPE_NEOX, GGML_ROPE_TYPE_MROPE, GGML_ROPE_TYPE_VISION, GGML_ROPE_TYPE_IMROPE];
    for mode in modes {
        for (yarn, factors) in [(0.0, false), (1.0, false), (0.0, true)] {
            check(&format!("rope {mode} {yarn} {factors}"), |c| {
                let streams = mode & GGML_ROPE_TYPE_MROPE != 0;
                let n_dims = if mode == GGML_ROPE_TYPE_VISION { 4 } else { 8 };
                let x = c.param(&[8, 2, 3, 2], UNIT);
                let ids: Vec<i32> = (0..if streams { 12 } else { 3 }).map(|i| i * 5 % 7).collect();
                let positions = c.ids(&[ids.len() as i64], &ids);
                let freqs = if factors { c.data(&[4], Between(0.5, 2.0)) } else { null_mut() };
                let mut sections = [2, 1, 1, 0];
                if streams {
                    ggml_rope_multi(
                        c.ctx,
                        x,
                        positions,
                        freqs,
                        n_dims,
                        sections.as_mut_ptr(),
                        mode,
                        64,
                        1e4,
                        0.5,
                        yarn,
                        1.25,
                        32.0,
                        1.0,
                    )
                } else {
                    ggml_rope_ext(c.ctx, x, positions, freqs, n_dims, mode, 64, 1e4, 0.5, yarn, 1.25, 32.0, 1.0)
                }
            });
        }
    }
    check("rope with an offset", |c| {
        let (x, positions) = (c.param(&[10, 2, 3], UNIT), c.ids(&[3], &[0, 3, 5]));
        let y = ggml_rope(c.ctx, x, positions, 4, GGML_ROPE_TYPE_NEOX);
        ggml_rope_set_offset(y, 4)
    });
}

#[test]
fn get_rows() {
    check("get_rows", |c| {
        let (x, ids) = (c.param(&[5, 6], UNIT), c.ids(&[4], &[2, 0, 2, 5]));
        ggml_get_rows(c.ctx, x, ids)
    });
    check("get_rows of several", |c| {
        let (x, ids) = (c.param(&[5, 3, 2], UNIT), c.ids(&[4, 2], &[2, 0, 2, 1, 0, 0, 1, 2]));
        ggml_get_rows(c.ctx, x, ids)
    });
}
