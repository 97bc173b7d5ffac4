//! Files of other writers: read right, and made again byte for byte.
#![allow(clippy::unwrap_used)]

use std::io::{self, Write};

use ggml_oxide_gguf::{Gguf, Limits, StrList, TensorInfo, ValueType, Values};

const UPSTREAM_0: &[u8] = include_bytes!("../../../tests/data/gguf/upstream_0.gguf");
const UPSTREAM_1: &[u8] = include_bytes!("../../../tests/data/gguf/upstream_1.gguf");
const PYTHON: &[u8] = include_bytes!("../../../tests/data/gguf/python.gguf");

const F32: i32 = 0;
const F16: i32 = 1;
const Q4_0: i32 = 2;
const Q8_0: i32 = 8;
const Q6_K: i32 = 14;
const I64: i32 = 27;
const BF16: i32 = 30;

fn written(g: &Gguf, mut byte: impl FnMut(&TensorInfo, usize) -> u8) -> Vec<u8> {
    let mut out = Vec::new();
    let mut data = |_id: usize, t: &TensorInfo, out: &mut dyn Write| -> io::Result<()> {
        let bytes: Vec<u8> = (0..t.nbytes() as usize).map(|i| byte(t, i)).collect();
        out.write_all(&bytes)
    };
    g.write_to(&mut out, &mut data).unwrap();
    out
}

fn upstream(second: bool) -> Gguf {
    let mut g = Gguf::new(&Limits::default());
    if second {
        g.set_scalar(b"general.alignment", 32u32).unwrap();
    }
    g.set_str(b"general.architecture", b"oxide").unwrap();
    g.set_scalar(b"v.u8", 250u8).unwrap();
    g.set_scalar(b"v.i8", -5i8).unwrap();
    g.set_scalar(b"v.u16", 65000u16).unwrap();
    g.set_scalar(b"v.i16", -30000i16).unwrap();
    g.set_scalar(b"v.u32", 4_000_000_000u32).unwrap();
    g.set_scalar(b"v.i32", -2_000_000_000i32).unwrap();
    g.set_scalar(b"v.f32", 1.5f32).unwrap();
    g.set_scalar(b"v.bool", true).unwrap();
    g.set_str(b"v.str", b"").unwrap();
    g.set_scalar(b"v.u64", 18_000_000_000_000_000_000u64).unwrap();
    g.set_scalar(b"v.i64", -9_000_000_000_000_000_000i64).unwrap();
    g.set_scalar(b"v.f64", -0.1f64).unwrap();
    g.set_array(b"a.u8", Values::U8(vec![1, 2, 3])).unwrap();
    g.set_array(b"a.i16", Values::I16(vec![-1, 0, 1, 2])).unwrap();
    g.set_array(b"a.f32", Values::F32(vec![0.5, -2.0])).unwrap();
    let bools = Values::from_ne_bytes(ValueType::Bool, &[1, 0, 1]).unwrap();
    g.set_array(b"a.bool", bools).unwrap();
    g.set_array(b"a.f64", Values::F64(vec![1e300])).unwrap();
    g.set_array(b"a.i64", Values::I64(vec![i64::MIN, i64::MAX])).unwrap();
    g.set_array(b"a.empty", Values::U32(vec![])).unwrap();
    let strings = ["", "one", "two words", "\u{e9}"];
    g.set_array(b"a.str", Values::Str(StrList::from_items(&strings).unwrap())).unwrap();
    g.set_array(b"a.nostr", Values::Str(StrList::new())).unwrap();
    g.set_scalar(b"v.u8", 7i32).unwrap();
    assert_eq!(g.remove_key(b"v.i8").unwrap(), Some(if second { 2 } else { 1 }));
    if second {
        let mut d = Gguf::new(&Limits::default());
        d.set_scalar(b"d.one", 1u16).unwrap();
        d.set_scalar(b"v.f32", 2.5f32).unwrap();
        d.set_array(b"a.str", Values::Str(StrList::from_items(&["x"]).unwrap())).unwrap();
        g.set_kv(&d).unwrap();
    }
    for (name, type_id, ne) in [
        ("w", F32, [3, 1, 1, 1]),
        ("blk.0.q8", Q8_0, [32, 3, 1, 1]),
        ("h", F16, [5, 1, 2, 1]),
        ("i", I64, [1, 1, 1, 2]),
        ("k", Q6_K, [256, 1, 1, 1]),
        ("b", BF16, [1, 1, 1, 1]),
    ] {
        g.add_tensor(name.as_bytes(), type_id, ne).unwrap();
    }
    if second {
        g.set_tensor_type(b"blk.0.q8", Q4_0).unwrap();
    }
    g
}

#[test]
fn made_again_as_upstream_writes_them() {
    for (second, want) in [(false, UPSTREAM_0), (true, UPSTREAM_1)] {
        let g = upstream(second);
        let bytes = written(&g, |t, i| {
            if t.type_id() == Q4_0 {
                (i * 3) as u8
            } else {
                (i * 7 + usize::from(t.name().as_bytes()[0])) as u8
            }
        });
        assert!(bytes == want, "file {}", u8::from(second));
        let meta = g.meta_bytes().unwrap();
        assert_eq!(meta, want[..meta.len()]);
        assert_eq!(g.meta_size().unwrap(), if second { 960 } else { 928 });
    }
}

#[test]
fn read_and_written_again() {
    for want in [UPSTREAM_0, UPSTREAM_1, PYTHON] {
        let g = Gguf::from_bytes(want, &Limits::default()).unwrap();
        g.check_data().unwrap();
        let start = g.data_offset() as usize;
        assert_eq!(g.data_size() as usize, want.len() - start);
        let bytes = written(&g, |t, i| want[start + t.offset() as usize + i]);
        assert!(bytes == want);
        let meta = Gguf::from_bytes(&want[..start], &Limits::default()).unwrap();
        assert_eq!(meta.meta_bytes().unwrap(), want[..start]);
        assert!(meta.check_data().is_err());
    }
}

#[test]
fn upstream_file_is_read_as_it_was_made() {
    let g = Gguf::from_bytes(UPSTREAM_0, &Limits::default()).unwrap();
    let made = upstream(false);
    assert_eq!(g.kvs(), made.kvs());
    assert_eq!(g.tensors(), made.tensors());
    assert_eq!((g.version(), g.alignment(), g.data_offset()), (3, 32, 928));
    assert_eq!(g.find_tensor(b"k"), Some(4));
    assert_eq!(g.find_tensor(b"kk"), None);
}

#[test]
fn python_file_is_read_right() {
    let g = Gguf::from_bytes(PYTHON, &Limits::default()).unwrap();
    assert_eq!(g.alignment(), 64);
    let kv = |key: &str| &g.kvs()[g.find_key(key.as_bytes()).unwrap()];
    assert_eq!(kv("general.name").string_with_nul().unwrap(), b"py\0");
    assert_eq!(kv("v.u8").scalar::<u8>().unwrap(), 9);
    assert_eq!(kv("v.i64").scalar::<i64>().unwrap(), -3);
    assert_eq!(kv("v.f64").scalar::<f64>().unwrap(), 0.25);
    assert!(!kv("v.bool").scalar::<bool>().unwrap());
    assert_eq!(kv("a.i32").values().as_slice::<i32>().unwrap(), [1, -2, 3]);
    let strings = kv("a.str").strings().unwrap();
    assert_eq!(strings.iter().collect::<Vec<_>>(), [&b"a"[..], b"", b"bc"]);
    assert_eq!(strings.get_with_nul(2), Some(&b"bc\0"[..]));
    let t: Vec<_> = g.tensors().iter().map(|t| (t.type_id(), *t.ne(), t.offset())).collect();
    assert_eq!(t, [(F32, [3, 2, 1, 1], 0), (F16, [5, 1, 1, 1], 64), (Q8_0, [32, 2, 1, 1], 128)]);
}
