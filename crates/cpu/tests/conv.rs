//! Convolutions and pooling against plain f64 loops, and fused chains against the same chains node by node.
#![allow(clippy::unwrap_used)]

mod common;
use common::*;
use ggml_oxide_abi::*;
use ggml_oxide_cpu::{refusal, supports_op};

const PLAIN: [usize; 4] = [0, 1, 2, 3];
const ORDERS: [[usize; 4]; 3] = [PLAIN, [2, 0, 1, 3], [1, 3, 0, 2]];

/// Kernel size, image size (width, height, depth), stride, padding, dilation.
#[derive(Clone, Copy)]
struct Conv {
    k: [i64; 3],
    i: [i64; 3],
    s: [i64; 3],
    p: [i64; 3],
    d: [i64; 3],
}

impl Conv {
    fn out(&self, d: usize) -> i64 {
        (self.i[d] + 2 * self.p[d] - self.d[d] * (self.k[d] - 1) - 1) / self.s[d] + 1
    }
    /// Input position, if inside.
    fn at(&self, d: usize, o: i64, k: i64) -> Option<i64> {
        let i = o * self.s[d] + k * self.d[d] - self.p[d];
        (0..self.i[d]).contains(&i).then_some(i)
    }
    fn params_2d(&self) -> [i32; 6] {
        [self.s[0], self.s[1], self.p[0], self.p[1], self.d[0], self.d[1]].map(|v| v as i32)
    }
}

const CONVS: [Conv; 6] = [
    Conv { k: [3, 3, 1], i: [19, 11, 1], s: [1, 1, 1], p: [1, 1, 0], d: [1, 1, 1] },
    Conv { k: [1, 1, 1], i: [9, 7, 1], s: [1, 1, 1], p: [0, 0, 0], d: [1, 1, 1] },
    Conv { k: [3, 3, 1], i: [16, 9, 1], s: [2, 2, 1], p: [1, 1, 0], d: [1, 1, 1] },
    Conv { k: [5, 2, 1], i: [13, 8, 1], s: [1, 2, 1], p: [3, 0, 0], d: [2, 3, 1] },
    Conv { k: [4, 4, 1], i: [2, 3, 1], s: [1, 1, 1], p: [4, 5, 0], d: [1, 1, 1] },
    Conv { k: [3, 1, 1], i: [70, 1, 1], s: [3, 1, 1], p: [2, 0, 0], d: [1, 1, 1] },
];

fn same_on_all_threads(world: &World, y: T) {
    assert!(supports_op(t(y)), "{:?}", refusal(t(y)));
    let mut first: Option<Vec<u8>> = None;
    for nth in [1, 2, 3, 5] {
        world.spoil(y);
        world.compute(nth).unwrap();
        let got = bytes(y);
        assert_eq!(first.get_or_insert_with(|| got.clone()), &got, "other bits on {nth} threads");
    }
}

#[test]
fn im2col_2d() {
    let mut rng = Rng(1);
    for c in CONVS {
        for (from, to) in
            [(GGML_TYPE_F32, GGML_TYPE_F32), (GGML_TYPE_F32, GGML_TYPE_F16), (GGML_TYPE_F16, GGML_TYPE_F16)]
        {
            for order in ORDERS {
                let mut world = World::new();
                let a = world.bare(GGML_TYPE_F16, [c.k[0], c.k[1], 3, 2]);
                let b = world.random(from, [c.i[0], c.i[1], 3, 2], order, 1, &mut rng);
                let [kw, kh] = [c.k[0], c.k[1]];
                let mut p = c.params_2d().to_vec();
                p.push(1);
                let y = world.node(GGML_OP_IM2COL, to, [kw * kh * 3, c.out(0), c.out(1), 2], &[a, b], &p);
                same_on_all_threads(&world, y);
                let tol = if from != to { 1.0 / 2048.0 } else { 0.0 };
                close(
                    y,
                    tol,
                    |[k, x, yy, n]| {
                        let (kx, ky, ic) = (k % kw, k / kw % kh, k / kw / kh);
                        let v = match (c.at(0, x, kx), c.at(1, yy, ky)) {
                            (Some(ix), Some(iy)) => get(b, [ix, iy, ic, n]),
                            _ => 0.0,
                        };
                        (v, v.abs() + 1e-4)
                    },
                    "im2col",
                );
            }
        }
    }
}

#[test]
fn im2col_1d_and_3d() {
    let mut rng = Rng(2);
    let mut world = World::new();
    let a = world.bare(GGML_TYPE_F32, [3, 4, 6, 1]);
    let b = world.random(GGML_TYPE_F32, [11, 4, 2, 1], [1, 0, 2, 3], 2, &mut rng);
    // stride 2, padding 1, dilation 2
    let y = world.node(GGML_OP_IM2COL, GGML_TYPE_F32, [12, 5, 2, 1], &[a, b], &[2, 0, 1, 0, 2, 0, 0]);
    same_on_all_threads(&world, y);
    close(
        y,
        0.0,
        |[k, x, n, _]| {
            let i = x * 2 + k % 3 * 2 - 1;
            (if (0..11).contains(&i) { get(b, [i, k / 3, n, 0]) } else { 0.0 }, 0.0)
        },
        "im2col of a signal",
    );

    let c = Conv { k: [3, 2, 2], i: [7, 6, 5], s: [1, 2, 1], p: [1, 0, 1], d: [1, 2, 3] };
    for order in ORDERS {
        let mut world = World::new();
        let (ic, n, oc) = (3, 2, 4);
        let a = world.bare(GGML_TYPE_F16, [c.k[0], c.k[1], c.k[2], ic * oc]);
        let b = world.random(GGML_TYPE_F32, [c.i[0], c.i[1], c.i[2], ic * n], order, 1, &mut rng);
        let [kw, kh, kd] = c.k;
        let od = c.out(2);
        let p: Vec<i32> = c.s.iter().chain(&c.p).chain(&c.d).map(|&v| v as i32).chain([ic as i32]).collect();
        let y =
            world.node(GGML_OP_IM2COL_3D, GGML_TYPE_F32, [kw * kh * kd * ic, c.out(0), c.out(1), od * n], &[a, b], &p);
        same_on_all_threads(&world, y);
        close(
            y,
            0.0,
            |[k, x, yy, z]| {
                let (kx, ky, kz, ch) = (k % kw, k / kw % kh, k / kw / kh % kd, k / kw / kh / kd);
                let (zz, n) = (z % od, z / od);
                let v = match (c.at(0, x, kx), c.at(1, yy, ky), c.at(2, zz, kz)) {
                    (Some(ix), Some(iy), Some(iz)) => get(b, [ix, iy, iz, n * ic + ch]),
                    _ => 0.0,
                };
                (v, 0.0)
            },
            "im2col of a volume",
        );
    }
}

#[test]
fn direct_2d() {
    let mut rng = Rng(3);
    for c in CONVS {
        for (kt, order) in [(GGML_TYPE_F16, PLAIN), (GGML_TYPE_F32, ORDERS[1]), (GGML_TYPE_F32, ORDERS[2])] {
            let mut world = World::new();
            let (ic, oc, n) = (5, 7, 2);
            let a = world.random(kt, [c.k[0], c.k[1], ic, oc], PLAIN, 0, &mut rng);
            let b = world.random(GGML_TYPE_F32, [c.i[0], c.i[1], ic, n], order, 2, &mut rng);
            let y = world.node(GGML_OP_CONV_2D, GGML_TYPE_F32, [c.out(0), c.out(1), oc, n], &[a, b], &c.params_2d());
            same_on_all_threads(&world, y);
            close(
                y,
                1e-5,
                |[x, yy, o, n]| {
                    let (mut s, mut m) = (0.0, 0.0);
                    for [kx, ky, ch, _] in each([c.k[0], c.k[1], ic, 1]) {
                        if let (Some(ix), Some(iy)) = (c.at(0, x, kx), c.at(1, yy, ky)) {
                            let v = get(a, [kx, ky, ch, o]) * get(b, [ix, iy, ch, n]);
                            (s, m) = (s + v, m + v.abs());
                        }
                    }
                    (s, m)
                },
                "conv 2d",
            );
        }
    }
}

#[test]
fn direct_3d() {
    let mut rng = Rng(4);
    let c = Conv { k: [3, 2, 2], i: [7, 6, 5], s: [1, 2, 1], p: [1, 0, 1], d: [1, 2, 3] };
    let (ic, n, oc) = (3, 2, 4);
    for (kt, order) in [(GGML_TYPE_F16, PLAIN), (GGML_TYPE_F32, ORDERS[1])] {
        let mut world = World::new();
        let a = world.random(kt, [c.k[0], c.k[1], c.k[2], ic * oc], PLAIN, 0, &mut rng);
        let b = world.random(GGML_TYPE_F32, [c.i[0], c.i[1], c.i[2], ic * n], order, 1, &mut rng);
        let p: Vec<i32> =
            c.s.iter().chain(&c.p).chain(&c.d).map(|&v| v as i32).chain([ic as i32, n as i32, oc as i32]).collect();
        let y = world.node(GGML_OP_CONV_3D, GGML_TYPE_F32, [c.out(0), c.out(1), c.out(2), oc * n], &[a, b], &p);
        same_on_all_threads(&world, y);
        close(
            y,
            1e-5,
            |[x, yy, z, on]| {
                let (o, n) = (on % oc, on / oc);
                let (mut s, mut m) = (0.0, 0.0);
                for [kx, ky, kz, ch] in each([c.k[0], c.k[1], c.k[2], ic]) {
                    if let (Some(ix), Some(iy), Some(iz)) = (c.at(0, x, kx), c.at(1, yy, ky), c.at(2, z, kz)) {
                        let v = get(a, [kx, ky, kz, o * ic + ch]) * get(b, [ix, iy, iz, n * ic + ch]);
                        (s, m) = (s + v, m + v.abs());
                    }
                }
                (s, m)
            },
            "conv 3d",
        );
    }
}

#[test]
fn depthwise() {
    let mut rng = Rng(5);
    for c in CONVS {
        for kt in [GGML_TYPE_F32, GGML_TYPE_F16] {
            // image and result order, kernel order: channels last, channels first, mixed
            for (order, korder) in
                [(PLAIN, PLAIN), ([2, 0, 1, 3], [3, 0, 1, 2]), ([1, 0, 3, 2], [1, 0, 2, 3]), ([2, 0, 1, 3], PLAIN)]
            {
                let mut world = World::new();
                let (ch, n) = (9, 2);
                let a = world.random(kt, [c.k[0], c.k[1], 1, ch], korder, 0, &mut rng);
                let b = world.random(GGML_TYPE_F32, [c.i[0], c.i[1], ch, n], order, 1, &mut rng);
                let y = world.strided(GGML_TYPE_F32, [c.out(0), c.out(1), ch, n], order, 0);
                world.make_node(y, GGML_OP_CONV_2D_DW, &[a, b], &c.params_2d());
                same_on_all_threads(&world, y);
                close(
                    y,
                    1e-5,
                    |[x, yy, ch, n]| {
                        let (mut s, mut m) = (0.0, 0.0);
                        for [kx, ky, _, _] in each([c.k[0], c.k[1], 1, 1]) {
                            if let (Some(ix), Some(iy)) = (c.at(0, x, kx), c.at(1, yy, ky)) {
                                let v = get(a, [kx, ky, 0, ch]) * get(b, [ix, iy, ch, n]);
                                (s, m) = (s + v, m + v.abs());
                            }
                        }
                        (s, m)
                    },
                    "depthwise",
                );
            }
        }
    }
}

#[test]
fn transposed() {
    let mut rng = Rng(6);
    for (s, order) in [(1, PLAIN), (2, [1, 0, 2, 3]), (5, [2, 1, 0, 3])] {
        for kt in [GGML_TYPE_F32, GGML_TYPE_F16] {
            let mut world = World::new();
            let a = world.random(kt, [3, 2, 4, 5], order, 1, &mut rng);
            let b = world.random(GGML_TYPE_F32, [6, 3, 5, 2], order, 1, &mut rng);
            let y = world.node(
                GGML_OP_CONV_TRANSPOSE_2D,
                GGML_TYPE_F32,
                [5 * s + 3, 2 * s + 2, 4, 2],
                &[a, b],
                &[s as i32],
            );
            same_on_all_threads(&world, y);
            close(
                y,
                1e-5,
                |[x, yy, o, n]| {
                    let (mut sum, mut m) = (0.0, 0.0);
                    for [ix, iy, ch, _] in each([6, 3, 5, 1]) {
                        let (kx, ky) = (x - ix * s, yy - iy * s);
                        if (0..3).contains(&kx) && (0..2).contains(&ky) {
                            let v = get(a, [kx, ky, o, ch]) * get(b, [ix, iy, ch, n]);
                            (sum, m) = (sum + v, m + v.abs());
                        }
                    }
                    (sum, m)
                },
                "transposed 2d",
            );

            let mut world = World::new();
            let a = world.random(kt, [4, 3, 5, 1], order, 1, &mut rng);
            let b = world.random(GGML_TYPE_F32, [7, 5, 1, 1], [1, 0, 2, 3], 1, &mut rng);
            let y =
                world.node(GGML_OP_CONV_TRANSPOSE_1D, GGML_TYPE_F32, [6 * s + 4, 3, 1, 1], &[a, b], &[s as i32, 0, 1]);
            same_on_all_threads(&world, y);
            close(
                y,
                1e-5,
                |[x, o, _, _]| {
                    each([7, 5, 1, 1]).filter(|[ix, ..]| (0..4).contains(&(x - ix * s))).fold(
                        (0.0, 0.0),
                        |(sum, m), [ix, ch, _, _]| {
                            let v = get(a, [x - ix * s, o, ch, 0]) * get(b, [ix, ch, 0, 0]);
                            (sum + v, m + v.abs())
                        },
                    )
                },
                "transposed 1d",
            );
        }
    }
}

#[test]
fn pooling() {
    let mut rng = Rng(7);
    for ty in [GGML_TYPE_F32, GGML_TYPE_F16] {
        for order in ORDERS {
            for kind in [GGML_OP_POOL_MAX, GGML_OP_POOL_AVG] {
                for (k, s, p) in [([2, 2], [2, 2], [0, 0]), ([3, 2], [1, 3], [1, 1])] {
                    let mut world = World::new();
                    let a = world.random(ty, [11, 8, 3, 2], order, 1, &mut rng);
                    let o = |d: usize| (t(a).ne[d] + 2 * p[d] - k[d]) / s[d] + 1;
                    let params = [kind.0, k[0] as i32, k[1] as i32, s[0] as i32, s[1] as i32, p[0] as i32, p[1] as i32];
                    let y = world.node(GGML_OP_POOL_2D, GGML_TYPE_F32, [o(0), o(1), 3, 2], &[a], &params);
                    let params = [kind.0, k[0] as i32, s[0] as i32, p[0] as i32];
                    let z = world.node(GGML_OP_POOL_1D, GGML_TYPE_F32, [o(0), 8, 3, 2], &[a], &params);
                    let window = |[x, yy, c, n]: [i64; 4], rows: i64, sy: i64, py: i64| {
                        let mut inside = Vec::new();
                        for [kx, ky, _, _] in each([k[0], rows, 1, 1]) {
                            let (ix, iy) = (x * s[0] + kx - p[0], yy * sy + ky - py);
                            if (0..11).contains(&ix) && (0..8).contains(&iy) {
                                inside.push(get(a, [ix, iy, c, n]));
                            }
                        }
                        inside
                    };
                    let pool = |v: Vec<f64>, n: i64| {
                        if kind == GGML_OP_POOL_MAX {
                            (v.into_iter().fold(f64::MIN, f64::max), 1.0)
                        } else {
                            (v.iter().sum::<f64>() / n as f64, 1.0)
                        }
                    };
                    same_on_all_threads(&world, y);
                    close(y, 1e-6, |i| pool(window(i, k[1], s[1], p[1]), k[0] * k[1]), "pool 2d");
                    close(
                        z,
                        1e-6,
                        |i| {
                            let v = window(i, 1, 1, 0);
                            let n = v.len() as i64;
                            pool(v, n)
                        },
                        "pool 1d",
                    );
                }
            }
        }
    }
}

/// Where the results of a chain lie relative to each other.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Memory {
    Apart,
    /// The result where the im2col was: as planners of memory do, since it is free by then.
    OutOnPatches,
    /// The result where the image was.
    OutOnImage,
    /// The product where the image was.
    ProductOnImage,
}

/// What adds a bias to a chain's result.
#[derive(Clone, Copy, PartialEq)]
enum Bias {
    None,
    /// Into memory of its own.
    Apart,
    /// Over the result of the chain, as models do.
    InPlace,
}

struct Chain {
    world: World,
    out: T,
    image: T,
}

impl Chain {
    fn add_bias(&mut self, bias: Bias) {
        if bias == Bias::None {
            return;
        }
        let ne = t(self.out).ne;
        let b = self.world.random(GGML_TYPE_F32, [ne[2], 1, 1, 1], PLAIN, 0, &mut Rng(77));
        let b = self.world.reshape(b, [1, 1, ne[2], 1]);
        let add = if bias == Bias::InPlace {
            let add = self.world.bare(GGML_TYPE_F32, ne);
            t(add).data = t(self.out).data;
            t(add).view_src = self.out;
            add
        } else {
            self.world.tensor(GGML_TYPE_F32, ne)
        };
        self.out = self.world.make_node(add, GGML_OP_ADD, &[self.out, b], &[]);
    }
}

#[allow(clippy::too_many_arguments)]
fn chain(
    c: &Conv,
    ic: i64,
    oc: i64,
    n: i64,
    dst: ggml_type,
    kernel: ggml_type,
    order: [usize; 4],
    memory: Memory,
    seed: u64,
) -> Chain {
    let mut rng = Rng(seed);
    let mut world = World::new();
    // Room behind the image for whatever is laid over it.
    let (ow, oh) = (c.out(0), c.out(1));
    let (m, k) = (ow * oh * n, c.k[0] * c.k[1] * ic);
    let room = world.tensor(GGML_TYPE_F32, [c.i[0] * c.i[1] * ic * n * 4 + m * oc + m * k, 1, 1, 1]);
    let a = world.random(kernel, [c.k[0], c.k[1], ic, oc], PLAIN, 0, &mut rng);
    let image = world.strided(GGML_TYPE_F32, [c.i[0], c.i[1], ic, n], order, 1);
    t(image).data = t(room).data;
    fill(image, &mut rng);
    let mut p = c.params_2d().to_vec();
    p.push(1);
    let patches = world.node(GGML_OP_IM2COL, dst, [k, ow, oh, n], &[a, image], &p);
    let rows = world.reshape(patches, [k, m, 1, 1]);
    let kernels = world.reshape(a, [k, oc, 1, 1]);
    let mm = world.node(GGML_OP_MUL_MAT, GGML_TYPE_F32, [m, oc, 1, 1], &[rows, kernels], &[]);
    if memory == Memory::ProductOnImage {
        t(mm).data = t(room).data;
    }
    let split = world.reshape(mm, [ow, oh, n, oc]);
    let nb = t(split).nb;
    let swapped = world.view(GGML_OP_PERMUTE, split, [ow, oh, oc, n], [nb[0], nb[1], nb[3], nb[2]]);
    let out = world.node(GGML_OP_CONT, GGML_TYPE_F32, [ow, oh, oc, n], &[swapped], &[]);
    match memory {
        Memory::OutOnPatches if m * oc * 4 <= m * k * if dst == GGML_TYPE_F16 { 2 } else { 4 } => {
            t(out).data = t(patches).data
        }
        Memory::OutOnImage => t(out).data = t(room).data,
        _ => {}
    }
    Chain { world, out, image }
}

#[test]
fn fused_chains_give_the_bits_of_the_nodes() {
    let memories = [Memory::Apart, Memory::OutOnPatches, Memory::OutOnImage, Memory::ProductOnImage];
    let mut fused_with = [0; 4];
    for c in CONVS {
        for (ic, oc, n) in [(3, 4, 1), (5, 33, 2), (64, 8, 1)] {
            for (dst, kernel) in
                [(GGML_TYPE_F16, GGML_TYPE_F16), (GGML_TYPE_F32, GGML_TYPE_BF16), (GGML_TYPE_F32, GGML_TYPE_F32)]
            {
                for memory in memories {
                    for (order, bias) in [
                        (PLAIN, Bias::None),
                        ([2, 0, 1, 3], Bias::InPlace),
                        (PLAIN, Bias::Apart),
                        (PLAIN, Bias::InPlace),
                    ] {
                        let run = |fuse: bool, nth: usize| {
                            // Everything anew: chains whose memory overlaps destroy their sources.
                            let mut c = chain(&c, ic, oc, n, dst, kernel, order, memory, 11);
                            c.add_bias(bias);
                            let (done, chains) = c.world.compute_counting(nth, fuse);
                            done.unwrap();
                            (bytes(c.out), chains)
                        };
                        let (plain, none) = run(false, 1);
                        assert_eq!(none, 0);
                        for nth in [1, 3] {
                            let (fused, chains) = run(true, nth);
                            assert!(plain == fused, "{ic} {oc} {n} {dst:?} {memory:?} {order:?} on {nth} threads");
                            // Only product and image in one place with nothing to copy the image to keep it apart.
                            let may_stay = memory == Memory::ProductOnImage || memory == Memory::OutOnImage;
                            assert!(chains == 1 || may_stay, "not fused: {ic} {oc} {n} {dst:?} {memory:?}");
                            fused_with[memory as usize] += chains;
                        }
                    }
                }
            }
        }
    }
    assert!(fused_with.iter().all(|&n| n > 0), "{fused_with:?}");
}

#[test]
fn chains_that_end_at_the_product_are_fused_too() {
    // signals (1d) and volumes (3d); the product's rows are read as they are
    let mut rng = Rng(31);
    for three_d in [false, true] {
        for n in [1, 2] {
            let mut world = World::new();
            let (ic, oc) = (3, 5);
            let (patches, k, m) = if three_d {
                let a = world.bare(GGML_TYPE_F16, [3, 2, 2, ic * oc]);
                let b = world.random(GGML_TYPE_F32, [9, 8, 6, ic * n], PLAIN, 1, &mut rng);
                let p = [1, 1, 2, 1, 0, 1, 1, 2, 1, ic as i32];
                let k = 12 * ic;
                (world.node(GGML_OP_IM2COL_3D, GGML_TYPE_F16, [k, 9, 6, 4 * n], &[a, b], &p), k, 9 * 6 * 4 * n)
            } else {
                let a = world.bare(GGML_TYPE_F16, [4, ic, oc, 1]);
                let b = world.random(GGML_TYPE_F32, [50, ic, n, 1], [1, 0, 2, 3], 1, &mut rng);
                (
                    world.node(GGML_OP_IM2COL, GGML_TYPE_F16, [4 * ic, 25, n, 1], &[a, b], &[2, 0, 1, 0, 1, 0, 0]),
                    4 * ic,
                    25 * n,
                )
            };
            let rows = world.reshape(patches, [k, m, 1, 1]);
            let kernels = world.random(GGML_TYPE_F16, [k, oc, 1, 1], PLAIN, 0, &mut rng);
            let mm = world.node(GGML_OP_MUL_MAT, GGML_TYPE_F32, [m, oc, 1, 1], &[rows, kernels], &[]);
            world.compute_with(1, false).unwrap();
            let want = bytes(mm);
            for nth in [1, 2, 5] {
                world.spoil(patches);
                world.spoil(mm);
                let (done, chains) = world.compute_counting(nth, true);
                done.unwrap();
                assert_eq!(chains, 1);
                assert!(bytes(mm) == want, "3d: {three_d}, {n} images, {nth} threads");
            }
        }
    }
}

#[test]
fn odd_parameters_are_refused_or_right() {
    let mut rng = Rng(32);
    let mut world = World::new();
    let a = world.random(GGML_TYPE_F32, [3, 3, 2, 4], PLAIN, 0, &mut rng);
    let b = world.random(GGML_TYPE_F32, [8, 8, 2, 1], PLAIN, 0, &mut rng);
    let y = world.node(GGML_OP_CONV_2D, GGML_TYPE_F32, [6, 6, 4, 1], &[a, b], &[1, 1, 0, 0, 1, 1]);
    assert!(supports_op(t(y)));
    for (i, bad) in [(0, 0), (1, -1), (2, -1), (4, 0), (5, i32::MIN)] {
        let good = std::mem::replace(&mut t(y).op_params[i], bad);
        assert!(!supports_op(t(y)), "parameter {i} = {bad}");
        t(y).op_params[i] = good;
    }
    // The result's size is the caller's: whatever lies outside counts as zero.
    for extreme in [i32::MAX, 1000] {
        t(y).op_params[2] = extreme;
        assert!(supports_op(t(y)));
        world.compute(2).unwrap();
        assert!(bytes(y).iter().all(|&v| v == 0));
    }
    t(y).op_params[2] = 0;
    t(y).ne[2] = 5;
    assert!(!supports_op(t(y)));
    t(y).ne[2] = 4;
    t(y).src[0] = std::ptr::null_mut();
    assert_eq!(refusal(t(y)), Some("a source is missing"));
    // A negative padding of an im2col crops.
    let mut world = World::new();
    let a = world.bare(GGML_TYPE_F32, [2, 2, 1, 1]);
    let b = world.random(GGML_TYPE_F32, [6, 6, 1, 1], PLAIN, 0, &mut rng);
    let y = world.node(GGML_OP_IM2COL, GGML_TYPE_F32, [4, 3, 3, 1], &[a, b], &[1, 1, -1, -2, 1, 1, 1]);
    world.compute(2).unwrap();
    close(
        y,
        0.0,
        |[k, x, yy, _]| {
            let (ix, iy) = (x + k % 2 + 1, yy + k / 2 + 2);
            (if ix < 6 && iy < 6 { get(b, [ix, iy, 0, 0]) } else { 0.0 }, 0.0)
        },
        "cropping im2col",
    );
}

#[test]
fn special_values_pass_through_a_fused_chain() {
    let c = CONVS[0];
    let run = |fuse: bool| {
        let ch = chain(&c, 3, 4, 1, GGML_TYPE_F16, GGML_TYPE_F16, PLAIN, Memory::Apart, 16);
        for (i, v) in [f32::INFINITY, -1e30, 65520.0, 1e-8, -0.0, 6e-8].into_iter().enumerate() {
            set(ch.image, [3 * i as i64, i as i64, i as i64 % 3, 0], v);
        }
        ch.world.compute_with(2, fuse).unwrap();
        bytes(ch.out)
    };
    // NaNs differ in their bits only by who made them.
    let nan_free = |v: Vec<u8>| {
        v.as_chunks::<4>()
            .0
            .iter()
            .map(|b| f32::from_ne_bytes(*b))
            .map(|f| if f.is_nan() { 0 } else { f.to_bits() })
            .collect::<Vec<_>>()
    };
    assert!(nan_free(run(true)) == nan_free(run(false)));
}

#[test]
fn a_chain_is_fused_only_when_nobody_else_reads_it() {
    let c = CONVS[0];
    let im2col_was_written = |change: &dyn Fn(&mut Chain)| {
        let mut c = chain(&c, 3, 4, 1, GGML_TYPE_F16, GGML_TYPE_F16, PLAIN, Memory::Apart, 12);
        let patches = c.world.nodes[0];
        change(&mut c);
        c.world.compute_with(2, false).unwrap();
        let want = bytes(patches);
        c.world.spoil(patches);
        c.world.compute_with(2, true).unwrap();
        want == bytes(patches)
    };
    assert!(!im2col_was_written(&|_| {}));
    assert!(im2col_was_written(&|c| t(c.world.nodes[0]).flags |= GGML_TENSOR_FLAG_OUTPUT.0));
    assert!(im2col_was_written(&|c| {
        // A second reader at the end.
        let patches = c.world.nodes[0];
        let ne = t(patches).ne;
        c.world.reshape(patches, ne);
    }));
}

#[test]
fn only_a_bias_of_one_value_per_channel_joins_the_chain() {
    let c = CONVS[0];
    let written = |ne: [i64; 4]| {
        let mut ch = chain(&c, 3, 4, 1, GGML_TYPE_F16, GGML_TYPE_F16, PLAIN, Memory::Apart, 17);
        let cont = ch.out;
        let b = ch.world.random(GGML_TYPE_F32, ne, PLAIN, 0, &mut Rng(78));
        let add = ch.world.node(GGML_OP_ADD, GGML_TYPE_F32, t(cont).ne, &[cont, b], &[]);
        ch.world.compute_with(2, false).unwrap();
        let want = bytes(add);
        ch.world.spoil(cont);
        ch.world.spoil(add);
        ch.world.compute_with(2, true).unwrap();
        assert!(want == bytes(add), "{ne:?}");
        // The chain's own result was skipped over if the addition joined.
        bytes(cont).iter().any(|&b| b != 0x5c)
    };
    assert!(!written([1, 1, 4, 1]));
    assert!(written([c.out(0), 1, 1, 1]));
    assert!(written([1, 1, 1, 1]));
    assert!(written([c.out(0), c.out(1), 4, 1]));
}

#[test]
fn a_bystander_between_the_nodes_keeps_its_image() {
    // A node between im2col and product that overwrites the image: the chain must not run late.
    let c0 = CONVS[0];
    let run = |fuse: bool| {
        let mut c = chain(&c0, 3, 4, 1, GGML_TYPE_F16, GGML_TYPE_F16, PLAIN, Memory::Apart, 13);
        let other = c.world.tensor(GGML_TYPE_F32, t(c.image).ne);
        fill(other, &mut Rng(5));
        let over = c.world.bare(GGML_TYPE_F32, t(c.image).ne);
        t(over).data = t(c.image).data;
        c.world.make_node(over, GGML_OP_CONT, &[other], &[]);
        let last = c.world.nodes.pop().unwrap();
        c.world.nodes.insert(1, last);
        c.world.compute_with(2, fuse).unwrap();
        bytes(c.out)
    };
    assert!(run(true) == run(false));
}

#[test]
fn the_result_is_the_convolution() {
    let mut rng = Rng(14);
    let _ = rng.next();
    for c in CONVS {
        let ch = chain(&c, 5, 6, 2, GGML_TYPE_F16, GGML_TYPE_F16, PLAIN, Memory::Apart, 15);
        ch.world.compute_with(3, true).unwrap();
        let a = t(ch.world.nodes[0]).src[0];
        close(
            ch.out,
            2e-3,
            |[x, yy, o, n]| {
                let (mut s, mut m) = (0.0, 0.0);
                for [kx, ky, i, _] in each([c.k[0], c.k[1], 5, 1]) {
                    if let (Some(ix), Some(iy)) = (c.at(0, x, kx), c.at(1, yy, ky)) {
                        let v = get(a, [kx, ky, i, o]) * get(ch.image, [ix, iy, i, n]);
                        (s, m) = (s + v, m + v.abs());
                    }
                }
                (s, m)
            },
            "im2col chain",
        );
    }
}
