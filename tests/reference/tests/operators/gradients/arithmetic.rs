//! Arithmetic, with operands that repeat.

use super::*;

type Two = fn(Ctx, T, T) -> T;

/// What repeats to [3, 4, 2, 2].
const SMALLER: [&[i64]; 6] = [&[3, 4, 2, 2], &[3], &[1], &[1, 4], &[3, 1, 2], &[3, 2, 1, 2]];

#[test]
fn binary() {
    let ops: [(&str, Two); 4] = [
        ("add", |c, a, b| ggml_add(c, a, b)),
        ("sub", |c, a, b| ggml_sub(c, a, b)),
        ("mul", |c, a, b| ggml_mul(c, a, b)),
        ("div", |c, a, b| ggml_div(c, a, b)),
    ];
    for (name, op) in ops {
        for ne in SMALLER {
            check(&format!("{name} {ne:?}"), |c| {
                let (a, b) = (c.param(&[3, 4, 2, 2], UNIT), c.param(ne, Away(0.6, 1.5)));
                op(c.ctx, a, b)
            });
        }
    }
}

#[test]
fn one_tensor_twice() {
    check("x x", |c| {
        let x = c.param(&[5, 3], UNIT);
        ggml_mul(c.ctx, x, x)
    });
    check("x - x x / (x + 3)", |c| {
        let x = c.param(&[5, 3], UNIT);
        let low = ggml_scale_bias(c.ctx, x, 1.0, 3.0);
        let part = ggml_div(c.ctx, ggml_mul(c.ctx, x, x), low);
        ggml_sub(c.ctx, x, part)
    });
}

#[test]
fn scalar_and_by_id() {
    check("add1", |c| {
        let (a, b) = (c.param(&[4, 3], UNIT), c.param(&[1], UNIT));
        ggml_add1(c.ctx, a, b)
    });
    check("add_id", |c| {
        let (a, b) = (c.param(&[4, 2, 3], UNIT), c.param(&[4, 5], UNIT));
        let ids = c.ids(&[2, 3], &[0, 4, 4, 1, 0, 4]);
        ggml_add_id(c.ctx, a, b, ids)
    });
}

#[test]
fn windows() {
    type Window = fn(Ctx, T, T, usize, usize, usize, usize) -> T;
    let ops: [(&str, Window); 2] = [
        ("acc", |c, a, b, n1, n2, n3, o| ggml_acc(c, a, b, n1, n2, n3, o)),
        ("set", |c, a, b, n1, n2, n3, o| ggml_set(c, a, b, n1, n2, n3, o)),
    ];
    for (name, op) in ops {
        check(name, |c| {
            let (a, b) = (c.param(&[6, 5, 2], UNIT), c.param(&[3, 2, 2], UNIT));
            op(c.ctx, a, b, 6 * 4, 30 * 4, 60 * 4, (6 + 2) * 4)
        });
    }
}

#[test]
fn half_precision() {
    check_to("f16 operand", 3e-3, |c| {
        let (a, b) = (c.param(&[6, 4], UNIT), c.param_of(GGML_TYPE_F16, &[6], UNIT));
        ggml_mul(c.ctx, a, b)
    });
    check_to("f16 weights", 3e-3, |c| {
        let (a, b) = (c.param_of(GGML_TYPE_F16, &[8, 5], UNIT), c.param(&[8, 3], UNIT));
        ggml_mul_mat(c.ctx, a, b)
    });
    check_to("cast", 3e-3, |c| {
        let a = c.param_of(GGML_TYPE_F16, &[8, 5], UNIT);
        let a = ggml_cast(c.ctx, a, GGML_TYPE_F32);
        ggml_sqr(c.ctx, a)
    });
}
