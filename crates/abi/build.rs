//! GGML_MAX_NAME is a build-time choice: it decides the size of `ggml_tensor`.
fn main() {
    println!("cargo:rerun-if-env-changed=GGML_MAX_NAME");
    let n = std::env::var("GGML_MAX_NAME").unwrap_or_else(|_| "160".into());
    let ok = n.parse::<usize>().is_ok_and(|n| (64..=4096).contains(&n) && n % 16 == 0);
    assert!(ok, "GGML_MAX_NAME={n}: must be a multiple of 16 between 64 and 4096");
    println!("cargo:rustc-env=GGML_MAX_NAME={n}");
}
