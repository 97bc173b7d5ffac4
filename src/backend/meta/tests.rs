#![allow(clippy::unwrap_used)]

use super::split::{slice, view, Cut, Split};
use crate::tensor::blank;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

fn tensor(ne: [i64; 4]) -> ggml_tensor {
    let nb = shape::contiguous_strides(GGML_TYPE_F32, &ne).unwrap();
    ggml_tensor { ne, nb, ..blank() }
}

/// Which device has each element of a tensor, by its place in the root's memory, and where in that device's memory.
fn places(cut: &Cut, ne: &[i64; 4], devices: usize) -> Vec<(usize, usize)> {
    let mut owner = Vec::new();
    for &(device, n) in &cut.pieces {
        owner.extend(std::iter::repeat_n(device, n as usize));
    }
    let inner: usize = ne[..cut.axis].iter().product::<i64>() as usize;
    let outer: usize = ne[cut.axis + 1..].iter().product::<i64>() as usize;
    let mut next = vec![0; devices];
    let mut all = Vec::new();
    for _ in 0..outer {
        for &device in &owner {
            for _ in 0..inner {
                all.push((device, next[device]));
                next[device] += 1;
            }
        }
    }
    all
}

/// Every element of a view is on the device, and there at the place, that the parts say.
fn check(root: &ggml_tensor, cut: &Cut, t: &ggml_tensor, expected: Option<usize>) {
    let (n, at) = (3, places(cut, &root.ne, 3));
    let Ok((result, slices)) = view(root, cut, t, n) else {
        assert_eq!(expected, None, "{:?} {:?}", cut, t.ne);
        return;
    };
    assert_eq!(Some(result.axis), expected, "{cut:?} {:?}", t.ne);
    assert_eq!(result.total(), t.ne[result.axis]);
    let mut owner = Vec::new();
    for &(device, n) in &result.pieces {
        owner.extend(std::iter::repeat_n(device, n as usize));
    }
    let mut seen = [0i64; 3];
    let mut local = Vec::new();
    for &device in &owner {
        local.push(seen[device]);
        seen[device] += 1;
    }
    for i3 in 0..t.ne[3] {
        for i2 in 0..t.ne[2] {
            for i1 in 0..t.ne[1] {
                for i0 in 0..t.ne[0] {
                    let i = [i0, i1, i2, i3];
                    let byte: usize = t.view_offs + (0..4).map(|d| i[d] as usize * t.nb[d]).sum::<usize>();
                    let (device, place) = at[byte / 4];
                    let along = i[result.axis] as usize;
                    assert_eq!(device, owner[along], "{cut:?} {:?} {i:?}", t.ne);
                    let mut own = i;
                    own[result.axis] = local[along];
                    let s = &slices[device];
                    let there = s.offset + (0..4).map(|d| own[d] as usize * s.nb[d]).sum::<usize>();
                    assert_eq!(there, place * 4, "{cut:?} {:?} {i:?}", t.ne);
                    assert!((0..4).all(|d| own[d] < s.ne[d]));
                }
            }
        }
    }
}

fn viewed(ne: [i64; 4], nb: [usize; 4], view_offs: usize) -> ggml_tensor {
    ggml_tensor { ne, nb, view_offs, ..blank() }
}

#[test]
fn views_of_heads() {
    // 6 heads of 8, 5 tokens; two, three and one of them on the devices.
    let root = tensor([48, 5, 1, 1]);
    let cut = Cut::new(0, [(0, 16), (1, 24), (2, 8)]);
    check(&root, &cut, &viewed([8, 6, 5, 1], [4, 32, 192, 960], 0), Some(1));
    // permuted: tokens before heads
    check(&root, &cut, &viewed([8, 5, 6, 1], [4, 192, 32, 960], 0), Some(2));
    // the second half of each head
    check(&root, &cut, &viewed([4, 6, 5, 1], [4, 32, 192, 960], 16), Some(1));
    // heads 2 to 5 of tokens 1 to 3
    check(&root, &cut, &viewed([8, 4, 3, 1], [4, 32, 192, 960], 192 + 64), Some(1));
    // all in one line
    check(&root, &cut, &viewed([240, 1, 1, 1], [4, 960, 960, 960], 0), Some(0));
    // transposed
    check(&root, &cut, &viewed([5, 48, 1, 1], [192, 4, 960, 960], 0), Some(1));
    // pieces that end within a row of the view
    check(&root, &cut, &viewed([12, 4, 5, 1], [4, 48, 192, 960], 0), None);
    // one token, one head: one device has it
    check(&root, &cut, &viewed([8, 1, 1, 1], [4, 192, 960, 960], 192 + 64), Some(0));
}

#[test]
fn views_of_what_is_divided_twice() {
    // queries, keys and values in one: each divided, one behind the other
    let root = tensor([24, 3, 1, 1]);
    let cut = Cut::new(0, [(0, 4), (1, 4), (2, 4), (0, 2), (1, 2), (2, 2), (0, 2), (1, 2), (2, 2)]);
    check(&root, &cut, &viewed([12, 3, 1, 1], [4, 96, 288, 288], 0), Some(0));
    check(&root, &cut, &viewed([6, 3, 1, 1], [4, 96, 288, 288], 48), Some(0));
    check(&root, &cut, &viewed([6, 3, 1, 1], [4, 96, 288, 288], 72), Some(0));
    check(&root, &cut, &viewed([2, 3, 3, 1], [4, 8, 96, 288], 72), Some(1));
}

#[test]
fn views_along_other_axes() {
    let root = tensor([4, 6, 5, 2]);
    for axis in 0..4 {
        let n = root.ne[axis];
        let cut = Cut::new(axis, [(0, n / 2), (2, n - n / 2)]);
        check(&root, &cut, &viewed(root.ne, root.nb, 0), Some(axis));
    }
    let rows = Cut::new(1, [(0, 2), (1, 3), (2, 1)]);
    check(&root, &rows, &viewed([4, 30, 2, 1], [4, 16, 480, 960], 0), Some(1));
    // one row: one device has it
    check(&root, &rows, &viewed([4, 1, 1, 1], [4, 16, 96, 480], 96 + 48), Some(3));
    check(&root, &rows, &viewed([24, 5, 2, 1], [4, 96, 480, 960], 0), Some(0));
    check(&root, &rows, &viewed([2, 6, 5, 2], [4, 16, 96, 480], 8), Some(1));
}

#[test]
fn shapes() {
    let cut = |axis, pieces: &[(usize, i64)]| Cut::new(axis, pieces.iter().copied());
    let heads = cut(0, &[(0, 16), (1, 32)]);
    assert_eq!(heads.reshaped(&[48, 5, 1, 1], &[8, 6, 5, 1]), Some(cut(1, &[(0, 2), (1, 4)])));
    assert_eq!(heads.reshaped(&[48, 5, 1, 1], &[48, 1, 5, 1]), Some(heads.clone()));
    assert_eq!(cut(1, &[(0, 2), (1, 4)]).reshaped(&[8, 6, 5, 1], &[48, 5, 1, 1]), Some(heads.clone()));
    assert_eq!(heads.reshaped(&[48, 2, 1, 1], &[96, 1, 1, 1]), Some(cut(0, &[(0, 16), (1, 32), (0, 16), (1, 32)])));
    assert_eq!(heads.reshaped(&[48, 5, 1, 1], &[12, 4, 5, 1]), None);
    let rows = cut(1, &[(0, 1), (1, 4)]);
    assert_eq!(rows.reshaped(&[8, 5, 1, 1], &[8, 5, 1, 1]), Some(rows.clone()));
    assert_eq!(rows.reshaped(&[8, 5, 1, 1], &[40, 1, 1, 1]), Some(cut(0, &[(0, 8), (1, 32)])));
    let t = tensor([8, 5, 2, 1]);
    let s = slice(&t, &Split::Along(rows), 1).unwrap();
    assert_eq!((s.ne, s.nb), ([8, 4, 2, 1], [4, 32, 128, 256]));
}
