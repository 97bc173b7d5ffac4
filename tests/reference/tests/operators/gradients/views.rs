//! What moves elements.

use super::*;

type One = fn(Ctx, T) -> T;

fn run(ne: &[i64], list: &[(&str, One)]) {
    for &(name, f) in list {
        check(name, |c| {
            let x = c.param(ne, UNIT);
            f(c.ctx, x)
        });
        check(&format!("{name} beside another"), |c| {
            let x = c.param(ne, UNIT);
            let (y, rest) = (f(c.ctx, x), ggml_sqr(c.ctx, x));
            let rest = ggml_sum(c.ctx, rest);
            let y = if ggml_is_contiguous(y) { y } else { ggml_cont(c.ctx, y) };
            ggml_add(c.ctx, y, rest)
        });
    }
}

#[test]
fn views() {
    run(
        &[4, 3, 2, 2],
        &[
            ("reshape", |c, x| ggml_reshape_2d(c, x, 6, 8)),
            ("view_1d", |c, x| ggml_view_1d(c, x, 7, 20)),
            ("view_2d", |c, x| ggml_view_2d(c, x, 3, 5, 16, 4)),
            ("view_4d", |c, x| ggml_view_4d(c, x, 2, 2, 1, 2, 16, 48, 96, 52)),
            ("view of a view", |c, x| {
                let v = ggml_view_1d(c, x, 24, 24 * 4);
                ggml_view_2d(c, v, 2, 3, 32, 8)
            }),
            ("permute", |c, x| ggml_permute(c, x, 2, 0, 3, 1)),
            ("permute, the other way", |c, x| ggml_permute(c, x, 1, 3, 0, 2)),
            ("transpose", |c, x| ggml_transpose(c, x)),
            ("cont", |c, x| {
                let y = ggml_permute(c, x, 0, 2, 1, 3);
                ggml_cont(c, y)
            }),
            ("cont_2d", |c, x| {
                let y = ggml_permute(c, x, 1, 0, 2, 3);
                ggml_cont_2d(c, y, 8, 6)
            }),
            ("pad", |c, x| ggml_pad(c, x, 2, 1, 0, 1)),
            ("pad_ext", |c, x| ggml_pad_ext(c, x, 1, 0, 2, 1, 0, 1, 1, 0)),
            ("roll", |c, x| ggml_roll(c, x, 3, -1, 1, 0)),
        ],
    );
}

#[test]
fn squares() {
    run(
        &[4, 4, 2],
        &[
            ("diag_mask_zero", |c, x| {
                let x = ggml_sqr(c, x);
                ggml_diag_mask_zero(c, x, 0)
            }),
            ("tri", |c, x| ggml_tri(c, x, GGML_TRI_TYPE_LOWER_DIAG)),
            ("diag_mask_inf, softmax", |c, x| {
                let x = ggml_diag_mask_inf(c, x, 0);
                ggml_soft_max(c, x)
            }),
        ],
    );
    run(&[4, 1, 2], &[("diag", |c, x| ggml_diag(c, x))]);
}

#[test]
fn two_sources() {
    for dim in 0..4 {
        check(&format!("concat {dim}"), |c| {
            let mut ne = [3, 2, 2, 2];
            let a = c.param(&ne, UNIT);
            ne[dim] = 4;
            let b = c.param(&ne, UNIT);
            ggml_concat(c.ctx, a, b, dim as c_int)
        });
    }
    check("cpy", |c| {
        let (a, b) = (c.param(&[6, 2], UNIT), c.data(&[3, 4], UNIT));
        let a = ggml_sqr(c.ctx, a);
        ggml_cpy(c.ctx, a, b)
    });
}
