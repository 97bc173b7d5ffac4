//! Random files: what is written is read as it was; any bytes are read or refused; an accepted file comes back.
#![allow(clippy::unwrap_used)]

use std::io::Write;

use ggml_oxide_gguf::{Gguf, Limits, StrList, TensorInfo, Values};
use proptest::collection::vec;
use proptest::prelude::*;

fn values() -> impl Strategy<Value = Values> {
    prop_oneof![
        vec(any::<u8>(), 0..5).prop_map(Values::U8),
        vec(any::<i8>(), 0..5).prop_map(Values::I8),
        vec(any::<u16>(), 0..5).prop_map(Values::U16),
        vec(any::<i16>(), 0..5).prop_map(Values::I16),
        vec(any::<u32>(), 0..if cfg!(miri) { 20 } else { 5000 }).prop_map(Values::U32),
        vec(any::<i32>(), 0..5).prop_map(Values::I32),
        vec(-1e30f32..1e30, 0..5).prop_map(Values::F32),
        vec(any::<bool>(), 0..5).prop_map(Values::Bool),
        vec(any::<u64>(), 0..5).prop_map(Values::U64),
        vec(any::<i64>(), 0..5).prop_map(Values::I64),
        vec(-1e300f64..1e300, 0..5).prop_map(Values::F64),
        vec(vec(any::<u8>(), 0..20), 0..5).prop_map(|l| Values::Str(StrList::from_items(&l).unwrap())),
    ]
}

#[derive(Debug, Clone)]
enum Edit {
    Set(u8, bool, Values),
    Remove(u8),
    Align(u32),
    Add(u8, i32, [i64; 4]),
    Retype(u8, i32),
}

fn edit() -> impl Strategy<Value = Edit> {
    let ne = prop_oneof![
        Just([32i64, 1, 1, 1]),
        Just([256, 0, 2, 1]),
        (0i64..5, 0i64..4, 0i64..3, 0i64..3).prop_map(|(a, b, c, d)| [a * 32, b, c, d]),
        Just([-1, 1, 1, 1]),
        Just([i64::MAX, 3, 1, 1]),
    ];
    prop_oneof![
        6 => (0u8..20, any::<bool>(), values()).prop_map(|(k, a, v)| Edit::Set(k, a, v)),
        1 => (0u8..20).prop_map(Edit::Remove),
        1 => (0u32..9).prop_map(|s| Edit::Align(1 << s)),
        4 => (0u8..20, -1i32..44, ne).prop_map(|(n, t, ne)| Edit::Add(n, t, ne)),
        2 => (0u8..20, -1i32..44).prop_map(|(n, t)| Edit::Retype(n, t)),
    ]
}

fn cases(n: u32) -> ProptestConfig {
    // Under Miri each case takes long, and it has no file system for regressions.
    ProptestConfig { cases: if cfg!(miri) { 2 } else { n }, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn what_is_written_is_read(edits in vec(edit(), 0..if cfg!(miri) { 8 } else { 40 })) {
        let mut g = Gguf::new(&Limits::default());
        for e in edits {
            let before = g.meta_bytes().unwrap();
            let done = match e {
                Edit::Set(k, a, v) => g.set(format!("key.{k}").as_bytes(), a, v),
                Edit::Remove(k) => g.remove_key(format!("key.{k}").as_bytes()).map(|_| ()),
                Edit::Align(a) => g.set_scalar(b"general.alignment", a),
                Edit::Add(n, t, ne) => g.add_tensor(format!("t{n}").as_bytes(), t, ne).map(|_| ()),
                Edit::Retype(n, t) => g.set_tensor_type(format!("t{n}").as_bytes(), t),
            };
            if done.is_err() {
                prop_assert_eq!(g.meta_bytes().unwrap(), before);
            }
        }
        let mut file = Vec::new();
        let mut data = |id: usize, t: &TensorInfo, w: &mut dyn Write| {
            w.write_all(&vec![id as u8; t.nbytes() as usize])
        };
        g.write_to(&mut file, &mut data).unwrap();
        prop_assert_eq!(file.len() as u64, g.meta_size().unwrap() + g.data_size());
        let again = Gguf::from_bytes(&file, &Limits::default()).unwrap();
        again.check_data().unwrap();
        prop_assert_eq!(again.kvs(), g.kvs());
        prop_assert_eq!(again.tensors(), g.tensors());
        prop_assert_eq!(again.alignment(), g.alignment());
        for (i, t) in g.tensors().iter().enumerate() {
            prop_assert_eq!(again.find_tensor(t.name().as_bytes()), Some(i));
            let at = (again.data_offset() + t.offset()) as usize;
            prop_assert!(file[at..at + t.nbytes() as usize].iter().all(|&b| b == i as u8));
        }
        let mut second = Vec::new();
        again.write_to(&mut second, &mut data).unwrap();
        prop_assert_eq!(second, file);
    }

    #[test]
    fn damaged_files_are_read_or_refused(
        hits in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        which in 0usize..3,
    ) {
        let mut file = [
            &include_bytes!("../../../tests/data/gguf/upstream_0.gguf")[..],
            &include_bytes!("../../../tests/data/gguf/upstream_1.gguf")[..],
            &include_bytes!("../../../tests/data/gguf/python.gguf")[..],
        ][which].to_vec();
        for (at, byte) in hits {
            let at = at.index(file.len());
            file[at] = byte;
        }
        comes_back(&file)?;
    }

    #[test]
    fn any_bytes_are_read_or_refused(tail in vec(any::<u8>(), 0..200), version in 2u8..4) {
        let mut file = b"GGUF".to_vec();
        file.extend([version, 0, 0, 0]);
        file.extend(tail);
        comes_back(&file)?;
    }
}

/// An accepted file, written and read again, is the same.
fn comes_back(file: &[u8]) -> Result<(), TestCaseError> {
    match Gguf::from_bytes(file, &Limits::default()) {
        Err(e) => {
            prop_assert!(e.offset.is_none_or(|at| at <= file.len() as u64));
            prop_assert!(!e.to_string().contains('\n'));
        }
        Ok(g) if g.alignment() <= 4096 => {
            let meta = g.meta_bytes().unwrap();
            let again = Gguf::from_bytes(&meta, &Limits::default()).unwrap();
            // Bits, not values: NaN is a value like others here.
            prop_assert_eq!(again.meta_bytes().unwrap(), meta);
            prop_assert_eq!(again.tensors(), g.tensors());
        }
        Ok(_) => {}
    }
    Ok(())
}
