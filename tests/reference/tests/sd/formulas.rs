//! The formulas, one element after the other.

/// Power of 4 that `group` is.
fn digits(group: usize) -> u32 {
    (0..16).find(|&n| 4usize.pow(n) == group).unwrap()
}

/// A row times the regular Hadamard matrix, group by group, in the order of operations that the specification gives.
pub fn rotate(row: &[f32], group: usize) -> Vec<f32> {
    let n = digits(group);
    let mut v: Vec<f32> = row.iter().map(|x| x * 0.5f32.powi(n as i32)).collect();
    for d in 0..n {
        let s = 4usize.pow(d);
        for i in (0..v.len()).filter(|i| i / s % 4 == 0) {
            let (a, b, c, e) = (v[i], v[i + s], v[i + 2 * s], v[i + 3 * s]);
            v[i] = ((a + b) + c) - e;
            v[i + s] = ((a + b) - c) + e;
            v[i + 2 * s] = ((a - b) + c) + e;
            v[i + 3 * s] = ((-a + b) + c) + e;
        }
    }
    v
}

/// The same row in f64, by the matrix: the sign of an entry is the product over the base-4 digits of both indices.
pub fn rotate_exactly(row: &[f32], group: usize) -> Vec<f64> {
    let n = digits(group);
    let h4 = [[1.0, 1.0, 1.0, -1.0], [1.0, 1.0, -1.0, 1.0], [1.0, -1.0, 1.0, 1.0], [-1.0, 1.0, 1.0, 1.0]];
    let entry = |i: usize, j: usize| -> f64 {
        (0..n).map(|d| h4[i / 4usize.pow(d) % 4][j / 4usize.pow(d) % 4]).product::<f64>() / (group as f64).sqrt()
    };
    let one = |r: usize| (0..group).map(|j| entry(r % group, j) * f64::from(row[r / group * group + j])).sum();
    (0..row.len()).map(one).collect()
}

/// A row as 8-bit integers, and its scale; `group` 0: not rotated.
pub fn quantise(row: &[f32], group: usize) -> (Vec<i8>, f32) {
    let v = if group == 0 { row.to_vec() } else { rotate(row, group) };
    let mut most = 0f32;
    for x in &v {
        if x.abs() > most {
            most = x.abs();
        }
    }
    let scale = most / 127.0;
    let inverse = if scale == 0.0 { 0.0 } else { 1.0 / scale };
    let one = |x: &f32| {
        let y = x * inverse;
        if y.is_nan() {
            0
        } else {
            f64::from(y).round_ties_even().clamp(-127.0, 127.0) as i8
        }
    };
    (v.iter().map(one).collect(), scale)
}

/// One output of the linear layer.
pub fn linear(w: &[i8], q: &[i8], x_scale: f32, w_scale: Option<f32>, bias: Option<f32>) -> f32 {
    let sum: i64 = w.iter().zip(q).map(|(&w, &q)| i64::from(w) * i64::from(q)).sum();
    let mut v = sum as i32 as f32;
    v *= x_scale;
    if let Some(scale) = w_scale {
        v *= scale;
    }
    if let Some(bias) = bias {
        v += bias;
    }
    v
}

/// E4M3 without infinities.
pub fn e4m3(b: u8) -> f32 {
    let (exp, man) = (i32::from(b >> 3 & 15), f32::from(b & 7));
    let size = match (exp, b & 7) {
        (0, _) => man * 2f32.powi(-9),
        (15, 7) => f32::NAN,
        _ => (1.0 + man / 8.0) * 2f32.powi(exp - 7),
    };
    if b & 128 == 0 {
        size
    } else {
        -size
    }
}
