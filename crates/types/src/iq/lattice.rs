//! Grids as the encoders see them: which point a code is, or else which points lie nearest to it.

use std::sync::OnceLock;

use super::grid;

/// Eight neighbours: digit i of neighbour l at `digits[i][l]`, and their grid indices.
struct Chunk<const D: usize> {
    digits: [[u8; 8]; D],
    index: [u16; 8],
}

/// A code's place: on the grid (`chunks` is 0), or a run of neighbours.
#[derive(Clone, Copy)]
struct Entry {
    start: u32,
    chunks: u16,
    index: u16,
}

pub(super) struct Lattice<const D: usize> {
    base: usize,
    /// The digits of each point of the grid.
    points: Vec<[u8; D]>,
    map: Vec<Entry>,
    chunks: Vec<Chunk<D>>,
}

impl<const D: usize> Lattice<D> {
    /// The grid `set` in a lattice of D digits below `base`. Neighbours of a code are all points at the `shells`
    /// smallest distances, nearest first, then by index.
    fn new(set: &[u64], base: usize, shells: usize) -> Lattice<D> {
        let digits = |code: usize| {
            let mut rest = code;
            std::array::from_fn::<u8, D, _>(|_| {
                let digit = rest % base;
                rest /= base;
                digit as u8
            })
        };
        let codes = base.pow(D as u32);
        let member = |p: &usize| set[p / 64] >> (p % 64) & 1 == 1;
        let points: Vec<[u8; D]> = (0..codes).filter(member).map(digits).collect();
        let (mut map, mut chunks) = (Vec::with_capacity(codes), Vec::new());
        let mut distance = vec![0u16; points.len()];
        let mut near: Vec<(u16, u16)> = Vec::new();
        let mut index = 0;
        for code in 0..codes {
            if member(&code) {
                map.push(Entry { start: 0, chunks: 0, index });
                index += 1;
                continue;
            }
            let at = digits(code);
            // No distance is larger: seven steps in each of four digits.
            let mut present = [false; 4 * 49 + 1];
            for (p, d) in points.iter().zip(&mut distance) {
                *d = (0..D).map(|i| (p[i].abs_diff(at[i]) as u16).pow(2)).sum();
                present[*d as usize] = true;
            }
            let last = (0..present.len()).filter(|&d| present[d]).take(shells).last().unwrap_or(0) as u16;
            near.clear();
            near.extend(distance.iter().enumerate().filter(|(_, &d)| d <= last).map(|(i, &d)| (d, i as u16)));
            near.sort_unstable();
            let start = chunks.len() as u32;
            for eight in near.chunks(8) {
                // A run ends with copies of its last neighbour: a copy is never nearer than the original.
                let index = std::array::from_fn(|l| eight[l.min(eight.len() - 1)].1);
                let digits = std::array::from_fn(|i| index.map(|p| points[p as usize][i]));
                chunks.push(Chunk { digits, index });
            }
            map.push(Entry { start, chunks: near.len().div_ceil(8) as u16, index: 0 });
        }
        Lattice { base, points, map, chunks }
    }

    /// The digits of a point of the grid.
    #[inline(always)]
    pub(super) fn point(&self, index: u16) -> [u8; D] {
        self.points[index as usize]
    }

    /// The code that digits below the base spell.
    #[inline(always)]
    pub(super) fn code(&self, digits: &[u8; D]) -> usize {
        digits.iter().rev().fold(0, |c, &d| c * self.base + d as usize)
    }

    /// The index of a code on the grid.
    #[inline(always)]
    pub(super) fn find(&self, code: usize) -> Option<u16> {
        let e = self.map[code];
        (e.chunks == 0).then_some(e.index)
    }

    /// The neighbour of a code off the grid (or the point of one on it) with the smallest sum of
    /// w (scale value(digit) - x)^2, the first of equals. Sums run in digit order.
    #[inline(always)]
    pub(super) fn nearest(
        &self,
        code: usize,
        x: &[f32; D],
        w: &[f32; D],
        scale: f32,
        value: impl Fn(f32) -> f32,
    ) -> u16 {
        let e = self.map[code];
        let run = &self.chunks[e.start as usize..e.start as usize + e.chunks as usize];
        let Some(first) = run.first() else { return e.index };
        let (mut best, mut at) = ([f32::MAX; 8], [0u32; 8]);
        for (c, chunk) in run.iter().enumerate() {
            let mut sum = [0.0f32; 8];
            for i in 0..D {
                for l in 0..8 {
                    let diff = scale * value(chunk.digits[i][l] as f32) - x[i];
                    sum[l] += w[i] * diff * diff;
                }
            }
            for l in 0..8 {
                let less = sum[l] < best[l];
                best[l] = if less { sum[l] } else { best[l] };
                at[l] = if less { c as u32 } else { at[l] };
            }
        }
        let least = best.iter().fold(f32::MAX, |m, &b| if b < m { b } else { m });
        // Where no sum is finite, every lane holds the start values and the first neighbour wins.
        let mut place = u32::MAX;
        for l in 0..8 {
            let p = at[l] * 8 + l as u32;
            if best[l] == least && p < place {
                place = p;
            }
        }
        run.get(place as usize / 8).unwrap_or(first).index[place as usize % 8]
    }
}

macro_rules! lattice {
    ($name:ident, $d:literal, $set:ident, $base:literal, $shells:literal) => {
        pub(super) fn $name() -> &'static Lattice<$d> {
            static LATTICE: OnceLock<Lattice<$d>> = OnceLock::new();
            LATTICE.get_or_init(|| Lattice::new(&grid::$set, $base, $shells))
        }
    };
}

lattice!(iq2_xxs, 8, IQ2_256, 3, 2);
lattice!(iq2_xs, 8, IQ2_512, 3, 2);
lattice!(iq2_s, 8, IQ2_1024, 3, 1);
lattice!(iq1, 8, IQ1_2048, 3, 3);
lattice!(iq3_xxs, 4, IQ3_256, 8, 2);
lattice!(iq3_s, 4, IQ3_512, 8, 3);
