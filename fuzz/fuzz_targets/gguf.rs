//! Any bytes: read or refused; what is accepted is edited, written, and read again.
//!
//! `cargo +nightly fuzz run gguf -- -malloc_limit_mb=16 -rss_limit_mb=512 -max_len=4096 -dict=fuzz/gguf.dict`
//! The limit on single allocations is part of the test: no input this short may ask for more.
#![no_main]

#[path = "../../crates/gguf/tests/common/check.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| check::check(bytes));
