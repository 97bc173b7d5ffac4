//! Rotation by position.

use super::common::*;
use std::f64::consts::PI;

/// What a rotation is made of.
#[derive(Clone, Copy, Debug)]
struct Rope {
    mode: i32,
    dims: usize,
    /// Elements of a row before those that are turned.
    offset: usize,
    context: i32,
    base: f32,
    scale: f32,
    ext: f32,
    attn: f32,
    sections: [i32; 4],
    factors: bool,
    /// Turned back, as gradients are.
    back: bool,
}

const SIMPLE: Rope = Rope {
    mode: GGML_ROPE_TYPE_NORMAL,
    dims: 8,
    offset: 0,
    context: 0,
    base: 10000.0,
    scale: 1.0,
    ext: 0.0,
    attn: 1.0,
    sections: [0; 4],
    factors: false,
    back: false,
};
/// YaRN's corrections begin and end at these numbers of turns.
const BETA: [f32; 2] = [32.0, 1.0];

impl Rope {
    fn multi(&self) -> bool {
        self.mode & GGML_ROPE_TYPE_MROPE != 0
    }

    /// The position stream of pair `k`, and the pair's number among those that count for its angle.
    fn stream(&self, k: usize) -> (usize, usize) {
        let s = self.sections.map(|s| s as usize);
        if !self.multi() {
            return (0, k);
        }
        let sector = k % s.iter().sum::<usize>();
        let starts = [0, s[0], s[0] + s[1], s[0] + s[1] + s[2]];
        let section =
            (0..4).rev().find(|&i| sector >= starts[i] && (i == 3 || s[i] > 0 || sector >= starts[3])).unwrap_or(0);
        match self.mode {
            GGML_ROPE_TYPE_IMROPE => {
                let turn = sector % 3;
                (if sector < 3 * s[turn] { turn } else { 3 }, k)
            }
            GGML_ROPE_TYPE_VISION => (section, sector - starts[section]),
            _ => (section, k),
        }
    }

    /// Angle of pair `k` in radians and factor of its length.
    fn angle(&self, k: usize, position: f64, index: usize, factor: f64) -> (f64, f64) {
        let (base, scale, ext) = (f64::from(self.base), f64::from(self.scale), f64::from(self.ext));
        let n = self.dims as f64;
        let full = position * base.powf(-2.0 * index as f64 / n) / factor;
        let mut angle = full * scale;
        let mut length = f64::from(self.attn);
        if ext != 0.0 {
            let turns =
                |beta: f32| n * (f64::from(self.context) / (f64::from(beta) * 2.0 * PI)).ln() / (2.0 * base.ln());
            let (low, high) = (turns(BETA[0]).floor().max(0.0), turns(BETA[1]).ceil().min(n - 1.0));
            let ramp = 1.0 - ((k as f64 - low) / (high - low).max(0.001)).clamp(0.0, 1.0);
            angle = angle * (1.0 - ramp * ext) + full * ramp * ext;
            length *= 1.0 + 0.1 * (1.0 / scale).ln();
        }
        (angle, length)
    }

    /// The elements of pair `k`.
    fn pair(&self, k: usize) -> (usize, usize) {
        let o = self.offset;
        match self.mode {
            GGML_ROPE_TYPE_NORMAL => (o + 2 * k, o + 2 * k + 1),
            GGML_ROPE_TYPE_VISION => (k, k + self.dims),
            _ => (o + k, o + k + self.dims / 2),
        }
    }

    fn pairs(&self) -> usize {
        if self.mode == GGML_ROPE_TYPE_VISION {
            self.dims
        } else {
            self.dims / 2
        }
    }

    fn reference(&self, x: &Arr, positions: &Arr, factors: &Arr) -> Want {
        let mut mag = Vec::new();
        let tokens = x.ne[2];
        let arr = x.map_rows(|row, [_, token, _]| {
            let mut out = row.to_vec();
            let mut size: Vec<f64> = row.iter().map(|x| x.abs() * 0.0).collect();
            for k in 0..self.pairs() {
                let (stream, index) = self.stream(k);
                let position = positions.at([token + stream * tokens, 0, 0, 0]);
                let factor = if self.factors { factors.at([k, 0, 0, 0]) } else { 1.0 };
                let (angle, length) = self.angle(k, position, index, factor);
                let (a, b) = self.pair(k);
                let sign = if self.back { -1.0 } else { 1.0 };
                let (sin, cos) = (angle.sin() * length * sign, angle.cos() * length);
                out[a] = row[a] * cos - row[b] * sin;
                out[b] = row[a] * sin + row[b] * cos;
                // an angle's error goes with its size, and with the number of factors it is made of
                let spread = (row[a].abs() + row[b].abs()) * length * (1.0 + angle.abs() + position.abs() * 0.01);
                (size[a], size[b]) = (spread, spread);
            }
            mag.extend(size);
            out
        });
        Want { mag: Some(mag), ..Want::new(arr, Tol { rel: U32, mag: 24.0 * U32, abs: 0.0 }) }
    }

    fn build(&self, w: &World, [a, b, c]: [T; 3], inplace: bool) -> T {
        let (n, mode) = (self.dims as i32, self.mode);
        let out = if self.multi() {
            let mut s = self.sections;
            let build = match (self.back, inplace) {
                (true, _) => ggml_rope_multi_back,
                (_, true) => ggml_rope_multi_inplace,
                _ => ggml_rope_multi,
            };
            build(
                w.ctx,
                a,
                b,
                c,
                n,
                s.as_mut_ptr(),
                mode,
                self.context,
                self.base,
                self.scale,
                self.ext,
                self.attn,
                BETA[0],
                BETA[1],
            )
        } else {
            let build = match (self.back, inplace) {
                (true, _) => ggml_rope_ext_back,
                (_, true) => ggml_rope_ext_inplace,
                _ => ggml_rope_ext,
            };
            build(w.ctx, a, b, c, n, mode, self.context, self.base, self.scale, self.ext, self.attn, BETA[0], BETA[1])
        };
        if self.offset > 0 {
            ggml_rope_set_offset(out, self.offset as i32);
        }
        out
    }
}

fn kinds(row: usize) -> Vec<Rope> {
    let mut all = Vec::new();
    for mode in [GGML_ROPE_TYPE_NORMAL, GGML_ROPE_TYPE_NEOX] {
        let whole = Rope { mode, dims: row, ..SIMPLE };
        all.extend([
            whole,
            Rope { factors: true, ..whole },
            Rope { base: 500000.0, scale: 0.25, attn: 1.2, ..whole },
            Rope { scale: 0.25, ext: 1.0, context: 4096, ..whole },
            Rope { scale: 0.5, ext: 0.5, context: 128, base: 1e6, ..whole },
        ]);
        if row > 4 {
            all.push(Rope { dims: row - 4, ..whole });
            all.push(Rope { dims: row - 4, offset: 2, ..whole });
        }
    }
    let q = row as i32 / 8;
    if row >= 16 {
        for mode in [GGML_ROPE_TYPE_MROPE, GGML_ROPE_TYPE_IMROPE] {
            let multi = Rope { mode, dims: row, sections: [q, q, q, q], ..SIMPLE };
            all.extend([
                multi,
                Rope { sections: [2 * q, q, q, 0], factors: true, ..multi },
                Rope { dims: row / 2, ..multi },
            ]);
        }
        all.push(Rope {
            mode: GGML_ROPE_TYPE_VISION,
            dims: row / 2,
            sections: [row as i32 / 4, row as i32 / 4, 0, 0],
            ..SIMPLE
        });
    }
    all
}

#[test]
fn rope() {
    let mut s = Suite::new("rope");
    for ty in [GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16] {
        for ne in [
            [8, 3, 5, 2],
            [64, 2, 7, 1],
            [16, 1, 1, 1],
            [2, 5, 3, 2],
            [24, 4, 2, 2],
            [64, 8, 33, 1],
            [8, 0, 2, 1],
            [8, 2, 0, 1],
            [8, 2, 3, 0],
        ] {
            for la in ALL {
                for kind in kinds(ne[0]) {
                    for inplace in [false, true] {
                        // upstream has f32 and f16 with packed rows
                        let must = ty != GGML_TYPE_BF16 && la.packed();
                        s.case(must, format!("{} {ne:?} {la:?} {kind:?} {inplace}", type_name(ty)), |w| {
                            let a = w.source(ty, ne, la, &PLAIN);
                            let streams = if kind.multi() { 4 } else { 1 };
                            let b = w.source(
                                GGML_TYPE_I32,
                                [streams * ne[2], 1, 1, 1],
                                Layout::Offset,
                                &Fill::Whole(0, 600),
                            );
                            let c = w.source(GGML_TYPE_F32, [ne[0], 1, 1, 1], Layout::Offset, &Fill::Range(0.5, 4.0));
                            let want = kind.reference(&read(a), &read(b), &read(c));
                            let c = if kind.factors { c } else { NONE };
                            (kind.build(w, [a, b, c], inplace), want)
                        });
                    }
                }
            }
        }
    }
    backwards(&mut s);
    for inplace in [false, true] {
        s.case(true, "the short form", |w| {
            let a = w.source(GGML_TYPE_F32, [8, 3, 5, 1], Layout::Cont, &PLAIN);
            let b = w.source(GGML_TYPE_I32, [5, 1, 1, 1], Layout::Cont, &Fill::Whole(0, 100));
            let want = SIMPLE.reference(&read(a), &read(b), &read(b));
            let build = if inplace { ggml_rope_inplace } else { ggml_rope };
            (build(w.ctx, a, b, 8, GGML_ROPE_TYPE_NORMAL), want)
        });
    }
    s.finish(1000);
}

/// Gradients: in memory of their own, or over their source's.
fn backwards(s: &mut Suite) {
    for ty in [GGML_TYPE_F32, GGML_TYPE_F16] {
        for ne in [[8, 3, 5, 2], [64, 2, 7, 1], [24, 4, 2, 2], [64, 8, 33, 1]] {
            for la in ALL {
                for kind in kinds(ne[0]) {
                    for over in [false, true] {
                        let kind = Rope { back: true, ..kind };
                        if over && la != Layout::Cont {
                            continue;
                        }
                        s.case(la.packed(), format!("{} {ne:?} {la:?} {kind:?} {over}", type_name(ty)), |w| {
                            let a = w.source(ty, ne, la, &PLAIN);
                            let streams = if kind.multi() { 4 } else { 1 };
                            let positions = Fill::Whole(0, 600);
                            let b = w.source(GGML_TYPE_I32, [streams * ne[2], 1, 1, 1], Layout::Cont, &positions);
                            let c = w.source(GGML_TYPE_F32, [ne[0], 1, 1, 1], Layout::Offset, &Fill::Range(0.5, 4.0));
                            let want = kind.reference(&read(a), &read(b), &read(c));
                            let c = if kind.factors { c } else { NONE };
                            let out = kind.build(w, [a, b, c], false);
                            if over {
                                w.place_over(out, a);
                            }
                            (out, want)
                        });
                    }
                }
            }
        }
    }
}
