//! Public bug reports against gguf readers, each as the input that triggered it.
#![allow(clippy::unwrap_used)]

mod common;

use common::Raw;
use ggml_oxide_gguf::{Gguf, Limits, Rule, Subject};

const F32: i32 = 0;
const I8: i32 = 24;

/// llama.cpp#25596: 65 bytes, tensor "t" with a zero dimension; made readers divide by zero.
#[test]
fn case_10_zero_dimension_in_65_bytes() {
    let mut bytes = Raw::new(3, 1, 0).tensor(b"t", &[0, 0], F32, 0).0;
    bytes.resize(65, 0);
    #[rustfmt::skip]
    let reported: [u8; 65] = [
        b'G', b'G', b'U', b'F', 3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        1, 0, 0, 0, 0, 0, 0, 0, b't', 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ];
    // The report's file ends right after the tensor info: the data section would start past its end.
    let e = Raw(reported.to_vec()).refused();
    assert_eq!(e.rule, Rule::DataStart { at: 96, end: 65 });
    // With the padding there it is an empty tensor.
    let g = Raw(reported.to_vec()).pad(32).read().unwrap();
    assert_eq!(g.tensors()[0].ne(), &[1, 0, 1, 1]);
    assert_eq!(g.tensors()[0].nbytes(), 0);
    g.check_data().unwrap();
    assert!(Raw(bytes).pad(32).read().is_ok());
}

/// llama.cpp#26946, #26701, whisper.cpp#3864: tensors without elements are legal.
#[test]
fn case_11_zero_size_tensors_are_accepted() {
    for ne in [&[4i64, 0][..], &[1, 0], &[0], &[0, 3], &[2, 0, 5], &[1, 1, 1, 0], &[0, 0, 0, 0]] {
        for type_id in [F32, I8] {
            let raw = Raw::new(3, 3, 0)
                .tensor(b"before", &[1], F32, 0)
                .tensor(b"empty", ne, type_id, 32)
                .tensor(b"after", &[2], F32, 32)
                .pad(32)
                .bytes(&[7; 64]);
            let g = raw.read().unwrap();
            let t = &g.tensors()[1];
            assert_eq!(&t.ne()[..ne.len()], ne);
            assert_eq!((t.nbytes(), t.offset()), (0, 32));
            assert_eq!(g.data_size(), 64);
            g.check_data().unwrap();
            // And it comes back as it was.
            let again = Gguf::from_bytes(&g.meta_bytes().unwrap(), &Limits::default()).unwrap();
            assert_eq!(again.tensors(), g.tensors());
        }
    }
    // Rows of zero elements are whole blocks.
    let q = Raw::new(3, 1, 0).tensor(b"q", &[0, 7], 8, 0).pad(32);
    assert_eq!(q.read().unwrap().tensors()[0].nbytes(), 0);
}

/// llama.cpp#24884, #24445, #24446: a key of length 0, with each type of value.
#[test]
fn case_12_empty_key() {
    for ty in (0..13).filter(|&t| t != 9) {
        for raw in
            [Raw::new(3, 0, 1).text(b"").i32(ty).u64(0), Raw::new(3, 0, 1).text(b"").i32(9).i32(ty).u64(1).u64(0)]
        {
            let e = raw.refused();
            assert_eq!(e.rule, Rule::EmptyKey);
            assert_eq!(e.offset, Some(24));
            assert_eq!(e.subject, Subject::KvNumber(0));
        }
    }
    // The sizes of the reports: 37 and 45 bytes.
    for len in [37, 45] {
        let mut bytes = Raw::new(3, 0, 1).text(b"").0;
        bytes.resize(len, 0);
        assert!(matches!(Raw(bytes).refused().rule, Rule::EmptyKey | Rule::KvCount { .. }));
    }
}

/// llama.cpp#27203: the number of elements overflows.
#[test]
fn case_14_element_count_overflows() {
    for ne in [
        [i64::MAX, 2, 1, 1],
        [2, i64::MAX, 1, 1],
        [1, 1, i64::MAX, 2],
        [1 << 32, 1 << 31, 1, 1],
        [1 << 16, 1 << 16, 1 << 16, 1 << 16],
        [3037000500, 3037000500, 1, 1],
        // The zero comes last, the overflow before it.
        [i64::MAX, 2, 0, 1],
    ] {
        let e = Raw::new(3, 1, 0).tensor(b"t", &ne, I8, 0).pad(32).refused();
        assert_eq!(e.rule, Rule::ElementOverflow(ne));
        assert_eq!(e.to_string(), format!("gguf: tensor 't' at byte 37: shape {ne:?} has too many elements to count"));
    }
    // The elements can be counted, the bytes cannot.
    for ne in [[i64::MAX, 1, 1, 1], [1 << 31, 1 << 31, 1, 1], [1, 1, 1, 1 << 62], [1 << 62, 1, 0, 1]] {
        let e = Raw::new(3, 1, 0).tensor(b"t", &ne, F32, 0).pad(32).refused();
        assert_eq!(e.rule, Rule::SizeOverflow(ne), "{ne:?}");
    }
}

/// GHSA-vgg9-87g3-85w8, llama.cpp#14595, #15711: sums of sizes and counts that wrap.
#[test]
fn case_16_sums_and_counts_that_wrap() {
    // 4 * 2^62 bytes.
    let big = 1i64 << 62;
    let mut raw = Raw::new(3, 5, 0);
    for i in 0..5u64 {
        raw = raw.tensor(&[b'a' + i as u8], &[big], I8, i.wrapping_mul(1 << 62));
    }
    let e = raw.pad(32).refused();
    assert_eq!(e.rule, Rule::DataSizeOverflow);
    // The fourth reaches 2^64.
    assert!(matches!(&e.subject, Subject::Tensor(n) if n.as_bytes() == b"d"));

    // One tensor whose padding wraps: (2^64 - 8) bytes of f64.
    let e = Raw::new(3, 1, 0).tensor(b"t", &[(1 << 61) - 1], 28, 0).pad(32).refused();
    assert_eq!(e.rule, Rule::DataSizeOverflow);

    // The section fits in u64, but not where it starts.
    let e = Raw::new(3, 1, 0).tensor(b"t", &[(1 << 61) - 4], 28, 0).pad(32).refused();
    assert_eq!(e.rule, Rule::DataSizeOverflow);

    // Less, and the file has no such data: meta data may be had, the data may not.
    let g = Raw::new(3, 1, 0).tensor(b"t", &[1 << 60], 28, 0).pad(32).read().unwrap();
    let e = g.check_data().unwrap_err();
    let need = 1 << 63;
    assert_eq!(e.rule, Rule::DataTruncated { need, left: 0 });
    assert!(g.read_data(&mut std::io::Cursor::new([0; 64]), &mut []).is_err());

    for n in [1 << 60, i64::MAX, i64::MIN, -1, 1 << 32, 2] {
        let raw = Raw::new(3, n, 0).tensor(b"t", &[1], F32, 0).pad(32);
        let Rule::TensorCount { n: found, .. } = raw.refused().rule else {
            panic!("{n}: {}", raw.refused());
        };
        assert_eq!(found, n);
        let raw = Raw::new(3, 0, n).text(b"k").i32(0).u8(1);
        let Rule::KvCount { n: found, .. } = raw.refused().rule else {
            panic!("{n}: {}", raw.refused());
        };
        assert_eq!(found, n);
    }
}

/// ggml#709: more than four dimensions, type ids that are none.
#[test]
fn case_17_dimensions_and_types() {
    for n_dims in [5u32, 6, 255, 1 << 31, u32::MAX] {
        let e = Raw::new(3, 1, 0).text(b"t").u32(n_dims).bytes(&[1; 64]).refused();
        assert_eq!(e.rule, Rule::DimCount(n_dims));
        assert_eq!(e.offset, Some(33));
    }
    for id in [4, 5, 31, 32, 33, 36, 37, 38, 45, 1000, -1, i32::MIN, i32::MAX] {
        let e = Raw::new(3, 1, 0).tensor(b"t", &[256], id, 0).pad(32).refused();
        assert_eq!(e.rule, Rule::UnknownTensorType(id));
        assert_eq!(e.offset, Some(45));
    }
}
