//! Prints GB/s (of the encoded bytes, f32 bytes for activations) of encoding, decoding and dot products, one thread.

use std::hint::black_box;
use std::time::Instant;

use ggml_oxide_types::{kernels, level, Rows, Type};

/// The best of several runs, in seconds.
fn best(mut f: impl FnMut()) -> f64 {
    let mut least = f64::MAX;
    let start = Instant::now();
    while start.elapsed().as_secs_f64() < 0.06 {
        let t = Instant::now();
        f();
        least = least.min(t.elapsed().as_secs_f64());
    }
    least
}

fn main() {
    println!("level {:?}; rows of 4096, 64 MiB of f32 for dots, 64 KiB in cache for the rest", level());
    println!(
        "{:6} {:>14} {:>14} {:>10} {:>10} {:>10}",
        "type", "encode f32", "decode to f32", "dot 1x1", "dot rows", "rows x 4"
    );
    let n = 4096;
    let rows = 2048;
    let row: Vec<f32> = (0..n).map(|i| ((i * 7919 % 1009) as f32 - 500.0) / 500.0).collect();
    let small: Vec<f32> = row.iter().cycle().take(4 * n).copied().collect();
    for &ty in Type::ALL {
        let k = kernels(ty);
        let (Some(enc), Some(dec), Some(bytes)) = (k.encode, k.decode, ty.row_bytes(n)) else {
            continue;
        };
        let f32s = (small.len() * 4) as f64;
        let mut block = vec![0u8; 4 * bytes];
        let mut back = vec![0f32; small.len()];
        let e = f32s / best(|| enc(black_box(&small), &mut block)) / 1e9;
        let d = f32s / best(|| dec(black_box(&block), &mut back)) / 1e9;
        print!("{:6} {e:14.2} {d:14.2}", ty.name());
        if let (Some(dot), Some(ty_y)) = (k.dot, ty.vec_dot_type()) {
            let weights: Vec<u8> = block[..bytes].iter().cycle().take(bytes * rows).copied().collect();
            let mut y = vec![0u8; ty_y.row_bytes(n).unwrap_or(0) * 4];
            if let Some(enc_y) = kernels(ty_y).encode {
                enc_y(&small, &mut y);
            }
            let mut out = vec![0f32; rows * 4];
            for (x_rows, y_rows, group) in [(1, 1, rows), (rows, 1, 1), (rows, 4, 1)] {
                let t = best(|| {
                    for g in 0..group {
                        let x = Rows { ptr: weights[g * bytes..].as_ptr(), stride: bytes, count: x_rows };
                        let y = Rows { ptr: y.as_ptr(), stride: y.len() / 4, count: y_rows };
                        // SAFETY: the rows lie inside `weights` and `y`, the results inside `out`.
                        unsafe { dot(n, x, y, out[g..].as_mut_ptr(), rows) };
                    }
                    black_box(&out);
                });
                print!(" {:10.2}", (bytes * rows) as f64 / t / 1e9);
            }
        }
        println!();
    }
}
