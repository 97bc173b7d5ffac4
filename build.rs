//! Compiles the C file of variadic functions, and gives the shared library its name and its list of public symbols.

use std::path::PathBuf;

fn main() {
    // Checked by the abi crate; here it names a symbol (src/capi/layout.rs).
    println!("cargo:rerun-if-env-changed=GGML_MAX_NAME");
    println!("cargo:rustc-env=GGML_MAX_NAME={}", std::env::var("GGML_MAX_NAME").unwrap_or_else(|_| "160".into()));
    println!("cargo:rerun-if-env-changed=GGML_BACKEND_DIR");
    println!("cargo:rerun-if-changed=src/c/variadic.c");
    cc::Build::new().file("src/c/variadic.c").std("c11").warnings_into_errors(true).compile("ggml_variadic");

    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        // rustc's own list of exports has the Rust functions only; this adds the C file's.
        let script = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default()).join("public.map");
        let public = "{ global: ggml_abort; ggml_format_name; ggml_log_internal; ggml_set_abort_callback; };\n";
        if let Err(e) = std::fs::write(&script, public) {
            panic!("{}: {e}", script.display());
        }
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libggml.so.0");
        println!("cargo:rustc-cdylib-link-arg=-Wl,--version-script={}", script.display());
    }
}
