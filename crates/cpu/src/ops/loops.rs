//! Loops over the elements of several tensors at once: broadcasting, merging of dimensions, sharing out.

use crate::node::View;
use crate::team::Team;

/// Elements of one inner call at most: small enough to share a single long row among threads.
const SEGMENT: usize = 8192;
const MAX: usize = 8;

/// Nested loops over `K` operands, innermost first. Strides are in bytes, 0 where an operand repeats.
#[derive(Clone, Debug)]
pub struct Loops<const K: usize> {
    nd: usize,
    n: [usize; MAX],
    s: [[usize; K]; MAX],
}

impl<const K: usize> Loops<K> {
    /// Loops over the shape `ne`, in which operand k has `ops[k].0` elements and strides `ops[k].1`. Each operand's dimensions
    /// divide `ne`'s; it repeats to fill them. Only one operand's dimension may be other than 1 and full.
    pub fn new(ne: [usize; 4], ops: [([usize; 4], [usize; 4]); K]) -> Self {
        let mut l = Loops { nd: 0, n: [1; MAX], s: [[0; K]; MAX] };
        for d in 0..4 {
            let part = ops.iter().map(|(n, _)| n[d]).find(|&n| n != 1 && n != ne[d]).unwrap_or(ne[d]);
            let mut inner = [0; K];
            let mut outer = [0; K];
            for k in 0..K {
                let (n, nb) = (ops[k].0[d], ops[k].1[d]);
                if n != 1 {
                    inner[k] = nb;
                    if n == ne[d] {
                        outer[k] = nb * part;
                    }
                }
            }
            l.push(part, inner);
            l.push(ne[d].checked_div(part).unwrap_or(0), outer);
        }
        l
    }

    /// Loops over views that all have the shape of the first or repeat to fill it.
    pub fn over(views: [&View; K]) -> Self {
        Loops::new(views[0].ne, views.map(|v| (v.ne, v.nb)))
    }

    fn push(&mut self, n: usize, s: [usize; K]) {
        if n != 1 {
            self.n[self.nd] = n;
            self.s[self.nd] = s;
            self.nd += 1;
        }
    }

    /// Puts the loops in ascending order of operand `k`'s stride: for work that may be done in any order.
    pub fn sort_by(mut self, k: usize) -> Self {
        for i in 1..self.nd {
            let mut j = i;
            while j > 0 && self.s[j][k] < self.s[j - 1][k] {
                self.s.swap(j, j - 1);
                self.n.swap(j, j - 1);
                j -= 1;
            }
        }
        self
    }

    /// Joins neighbouring loops that together walk evenly.
    pub fn merge(mut self) -> Self {
        if self.nd == 0 {
            return self;
        }
        let mut w = 0;
        for i in 1..self.nd {
            if (0..K).all(|k| self.s[i][k] == self.n[w] * self.s[w][k]) {
                self.n[w] *= self.n[i];
            } else {
                w += 1;
                self.n[w] = self.n[i];
                self.s[w] = self.s[i];
            }
        }
        self.nd = w + 1;
        self
    }

    /// Elements of the innermost loop.
    pub fn inner(&self) -> usize {
        if self.nd == 0 {
            1
        } else {
            self.n[0]
        }
    }

    /// Strides of the innermost loop.
    pub fn inner_strides(&self) -> [usize; K] {
        if self.nd == 0 {
            [0; K]
        } else {
            self.s[0]
        }
    }

    /// The first loop but the innermost whose stride for operand `k` is `stride`.
    pub fn find(&self, k: usize, stride: usize) -> Option<usize> {
        (1..self.nd).find(|&d| self.s[d][k] == stride)
    }

    /// Takes loop `d` out: its length and strides.
    pub fn remove(&mut self, d: usize) -> (usize, [usize; K]) {
        let taken = (self.n[d], self.s[d]);
        self.n.copy_within(d + 1.., d);
        self.s.copy_within(d + 1.., d);
        self.nd -= 1;
        taken
    }

    /// Iterations of all loops together.
    pub fn count(&self) -> usize {
        self.n[..self.nd].iter().product()
    }

    /// Byte offsets of iteration `i` of all loops together.
    pub fn offsets_of(&self, mut i: usize) -> [usize; K] {
        let mut off = [0; K];
        for d in 0..self.nd {
            let x = i % self.n[d];
            i /= self.n[d];
            for (off, s) in off.iter_mut().zip(self.s[d]) {
                *off += x * s;
            }
        }
        off
    }

    fn outer(&self) -> usize {
        self.n[1..self.nd.max(1)].iter().product()
    }

    /// Byte offsets of outer iteration `i`.
    fn offsets(&self, mut i: usize) -> [usize; K] {
        let mut off = [0; K];
        for d in 1..self.nd {
            let x = i % self.n[d];
            i /= self.n[d];
            for (off, s) in off.iter_mut().zip(self.s[d]) {
                *off += x * s;
            }
        }
        off
    }

    /// Calls `f(n, pointers, strides)` for every piece of the innermost loop that falls to this thread. A stride is 0 where the
    /// operand repeats, or where there is one element only.
    pub fn share(&self, team: &Team, base: [*mut u8; K], f: impl FnMut(usize, [*mut u8; K], [usize; K])) {
        self.pieces(team.range(self.n_pieces()), base, f);
    }

    /// Calls `f(rows, pointers, row strides)` for this thread's part of the two innermost loops: `rows` whole innermost loops that
    /// lie the given strides apart. For short innermost loops.
    pub fn share_rows(&self, team: &Team, base: [*mut u8; K], mut f: impl FnMut(usize, [*mut u8; K], [usize; K])) {
        let (n, s) = if self.nd > 1 { (self.n[1], self.s[1]) } else { (1, [0; K]) };
        let range = team.range(self.outer());
        let mut outer = range.start;
        while outer < range.end {
            let rows = (n - outer % n).min(range.end - outer);
            let off = self.offsets(outer);
            f(rows, std::array::from_fn(|k| base[k].wrapping_add(off[k])), s);
            outer += rows;
        }
    }

    /// Pieces that the loops fall into; the same for any number of threads.
    pub fn n_pieces(&self) -> usize {
        self.outer() * self.inner().div_ceil(SEGMENT)
    }

    /// As [`share`](Loops::share), for the pieces in `range`.
    pub fn pieces(
        &self,
        range: std::ops::Range<usize>,
        base: [*mut u8; K],
        mut f: impl FnMut(usize, [*mut u8; K], [usize; K]),
    ) {
        let (n, s) = (self.inner(), self.inner_strides());
        let segments = n.div_ceil(SEGMENT);
        if range.is_empty() || n == 0 {
            return;
        }
        let mut outer = range.start / segments;
        let mut seg = range.start % segments;
        let mut off = self.offsets(outer);
        for _ in range {
            let start = seg * SEGMENT;
            let mut p = base;
            for k in 0..K {
                p[k] = base[k].wrapping_add(off[k] + start * s[k]);
            }
            f((n - start).min(SEGMENT), p, s);
            seg += 1;
            if seg == segments {
                seg = 0;
                outer += 1;
                off = self.offsets(outer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merges_contiguous_and_broadcast_parts() {
        let l = Loops::new(
            [2, 64, 608, 8],
            [([2, 64, 608, 8], [4, 8, 512, 311_296]), ([2, 64, 608, 1], [4, 8, 512, 311_296])],
        );
        let l = l.merge();
        assert_eq!((l.inner(), l.outer()), (2 * 64 * 608, 8));
        let l = Loops::new([5, 7, 3, 1], [([5, 7, 3, 1], [4, 20, 140, 420]), ([1, 1, 3, 1], [4, 4, 4, 12])]).merge();
        assert_eq!((l.inner(), l.inner_strides(), l.outer()), (35, [4, 0], 3));
    }

    #[test]
    fn splits_partial_repetition() {
        let l = Loops::new([6, 1, 1, 1], [([6, 1, 1, 1], [4, 24, 24, 24]), ([2, 1, 1, 1], [4, 8, 8, 8])]).merge();
        assert_eq!((l.inner(), l.outer()), (2, 3));
        assert_eq!(l.offsets(2), [16, 0]);
    }
}
