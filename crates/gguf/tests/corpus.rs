//! Every input that the fuzzer found worth keeping, through the fuzzer's own check.
#![allow(clippy::unwrap_used)]

#[path = "common/check.rs"]
mod check;

#[test]
#[cfg_attr(miri, ignore = "reads a folder; Miri runs the other tests")]
fn corpus() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/gguf");
    let mut n = 0;
    for entry in std::fs::read_dir(dir).unwrap() {
        check::check(&std::fs::read(entry.unwrap().path()).unwrap());
        n += 1;
    }
    assert!(n >= 50, "only {n} inputs in {dir}");
}

#[test]
fn files_of_other_writers() {
    check::check(include_bytes!("../../../tests/data/gguf/upstream_0.gguf"));
    check::check(include_bytes!("../../../tests/data/gguf/upstream_1.gguf"));
    check::check(include_bytes!("../../../tests/data/gguf/python.gguf"));
}
