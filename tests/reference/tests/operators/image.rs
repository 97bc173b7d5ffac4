//! Resizing.

use super::common::*;

/// How source and result positions go together along one dimension.
#[derive(Clone, Copy)]
struct Scale {
    from: usize,
    to: usize,
    corners: bool,
}

impl Scale {
    fn ratio(&self) -> f64 {
        if self.corners && self.to > 1 && self.from > 1 {
            (self.to - 1) as f64 / (self.from - 1) as f64
        } else {
            self.to as f64 / self.from as f64
        }
    }

    /// The source position of result `i`, pixel centres at whole numbers.
    fn position(&self, i: usize) -> f64 {
        let centre = if self.corners { 0.0 } else { 0.5 };
        (i as f64 + centre) / self.ratio() - centre
    }

    /// The source element before result `i`; both neighbours where the position is a whole number within rounding.
    fn nearest(&self, i: usize) -> [usize; 2] {
        let at = i as f64 / self.ratio();
        [at * (1.0 - 1e-6), at * (1.0 + 1e-6)].map(|x| (x as usize).min(self.from - 1))
    }

    /// The element at a position, the last ones continued.
    fn clamp(&self, i: f64) -> usize {
        (i.max(0.0) as usize).min(self.from - 1)
    }

    /// Elements and their weights for result `i`.
    fn taps(&self, i: usize, mode: i32, antialias: bool) -> Vec<(usize, f64)> {
        let x = self.position(i);
        let (whole, part) = (x.floor(), x - x.floor());
        if antialias {
            let support = (1.0 / self.ratio()).max(1.0);
            let weight = |k: usize| (1.0 - ((k as f64 - x) / support).abs()).max(0.0);
            let total: f64 = (0..self.from).map(weight).sum();
            return (0..self.from).map(|k| (k, weight(k) / total)).collect();
        }
        if mode == GGML_SCALE_MODE_BILINEAR.0 {
            return vec![(self.clamp(whole), 1.0 - part), (self.clamp(whole + 1.0), part)];
        }
        // Keys' cubic with a = -3/4
        let a = -0.75;
        let near = |d: f64| (a + 2.0) * d.powi(3) - (a + 3.0) * d.powi(2) + 1.0;
        let far = |d: f64| a * d.powi(3) - 5.0 * a * d.powi(2) + 8.0 * a * d - 4.0 * a;
        [far(part + 1.0), near(part), near(1.0 - part), far(2.0 - part)]
            .into_iter()
            .enumerate()
            .map(|(k, weight)| (self.clamp(whole + k as f64 - 1.0), weight))
            .collect()
    }
}

fn reference(x: Arr, to: [usize; 4], mode: ggml_scale_mode, corners: bool, antialias: bool) -> Want {
    let scale: [Scale; 4] = std::array::from_fn(|d| Scale { from: x.ne[d], to: to[d], corners: corners && d < 2 });
    if mode == GGML_SCALE_MODE_NEAREST {
        return Want::by(to, move |got| {
            for (i, &g) in each(to).zip(&got.v) {
                let near: [[usize; 2]; 4] = std::array::from_fn(|d| scale[d].nearest(i[d]));
                let fits = each([2; 4]).any(|pick| x.at(std::array::from_fn(|d| near[d][pick[d]])) == g);
                if !fits {
                    return Err(format!("element {i:?} is {g}, no neighbour of {near:?}"));
                }
            }
            Ok(())
        });
    }
    let arr = Arr::from_fn(to, |i| {
        let [k, l] = [2, 3].map(|d| scale[d].nearest(i[d])[1]);
        let rows = scale[1].taps(i[1], mode.0, antialias);
        let columns = scale[0].taps(i[0], mode.0, antialias);
        rows.iter()
            .flat_map(|&(r, u)| columns.iter().map(move |&(c, v)| (r, c, u * v)))
            .map(|(r, c, weight)| weight * x.at([c, r, k, l]))
            .sum()
    });
    // a position is rounded, and the more so the further out it is
    let far = x.ne[0].max(x.ne[1]).max(to[0]).max(to[1]) as f64;
    Want::new(arr, Tol::units(8.0).abs(2.0 * 8.0 * far * U32))
}

#[test]
fn interpolate() {
    let mut s = Suite::new("upscale");
    let resizes = [
        ([8, 6, 4, 2], [16, 12, 4, 2]),
        ([8, 6, 4, 2], [8, 6, 4, 2]),
        ([33, 7, 3, 2], [66, 21, 3, 2]),
        ([8, 6, 4, 2], [5, 4, 4, 2]),
        ([7, 5, 2, 1], [17, 13, 4, 3]),
        ([1, 1, 1, 1], [5, 3, 2, 2]),
        ([9, 8, 4, 2], [1, 1, 2, 1]),
        ([257, 3, 1, 1], [100, 7, 1, 1]),
        ([40, 20, 2, 1], [80, 60, 2, 1]),
        ([4, 3, 2, 1], [0, 3, 2, 1]),
    ];
    for (from, to) in resizes {
        for la in ALL {
            for mode in [GGML_SCALE_MODE_NEAREST, GGML_SCALE_MODE_BILINEAR, GGML_SCALE_MODE_BICUBIC] {
                for corners in [false, true] {
                    for antialias in [false, true] {
                        if antialias && (corners || mode != GGML_SCALE_MODE_BILINEAR) {
                            continue;
                        }
                        s.case(
                            true,
                            format!("{from:?} {to:?} {la:?} {mode:?} corners={corners} antialias={antialias}"),
                            |w| {
                                let a = w.source(GGML_TYPE_F32, from, la, &PLAIN);
                                let want = reference(read(a), to, mode, corners, antialias);
                                let flags = if corners { GGML_SCALE_FLAG_ALIGN_CORNERS.0 } else { 0 };
                                let flags = flags | if antialias { GGML_SCALE_FLAG_ANTIALIAS.0 } else { 0 };
                                let d = dims(to);
                                (ggml_interpolate(w.ctx, a, d[0], d[1], d[2], d[3], (mode.0 | flags) as u32), want)
                            },
                        );
                    }
                }
            }
        }
    }
    for mode in [GGML_SCALE_MODE_NEAREST, GGML_SCALE_MODE_BILINEAR, GGML_SCALE_MODE_BICUBIC] {
        for la in ALL {
            s.case(true, format!("by a factor {mode:?} {la:?}"), |w| {
                let a = w.source(GGML_TYPE_F32, [5, 4, 3, 2], la, &PLAIN);
                let want = reference(read(a), [15, 12, 3, 2], mode, false, false);
                (ggml_upscale(w.ctx, a, 3, mode), want)
            });
            s.case(true, format!("to a shape {mode:?} {la:?}"), |w| {
                let a = w.source(GGML_TYPE_F32, [5, 4, 3, 2], la, &PLAIN);
                let want = reference(read(a), [11, 9, 6, 2], mode, false, false);
                (ggml_upscale_ext(w.ctx, a, 11, 9, 6, 2, mode), want)
            });
        }
    }
    s.finish(500);
}
