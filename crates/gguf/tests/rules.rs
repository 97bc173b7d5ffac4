//! Each rule of the reader, with a file that breaks it and one that just keeps it.
#![allow(clippy::unwrap_used)]

mod common;

use common::Raw;
use ggml_oxide_gguf::{Gguf, Limits, Rule, Subject, ValueType};

#[test]
fn header() {
    assert!(Raw::new(2, 0, 0).read().is_ok());
    assert_eq!(Raw::new(2, 0, 0).read().unwrap().version(), 2);
    assert_eq!(Raw::new(1, 0, 0).refused().rule, Rule::OldVersion(1));
    assert_eq!(Raw::new(4, 0, 0).refused().rule, Rule::NewVersion(4));
    for v in [0, 0x0300_0000, 0x0200_0000, 0x1_0000] {
        assert_eq!(Raw::new(v, 0, 0).refused().rule, Rule::OtherByteOrder(v));
    }
    let e = Raw(b"GGML\x03\0\0\0".to_vec()).refused();
    assert_eq!(e.rule, Rule::BadMagic(*b"GGML"));
    assert_eq!(e.to_string(), "gguf: file at byte 0: the file starts with 'GGML', not 'GGUF'");
    // Every cut of a header.
    let whole = Raw::new(3, 0, 0).0;
    for n in 0..whole.len() {
        let e = Raw(whole[..n].to_vec()).refused();
        assert!(matches!(e.rule, Rule::Truncated { .. }), "{n}: {e}");
    }
}

#[test]
fn every_cut_of_a_good_file_is_refused() {
    let whole = Raw::new(3, 2, 3)
        .text(b"general.alignment")
        .i32(4)
        .u32(8)
        .text(b"s")
        .i32(8)
        .text(b"text")
        .text(b"a")
        .i32(9)
        .i32(8)
        .u64(2)
        .text(b"x")
        .text(b"")
        .tensor(b"t", &[2, 3], 0, 0)
        .tensor(b"u", &[1], 0, 24)
        .pad(8);
    let g = whole.read().unwrap();
    assert_eq!(g.alignment(), 8);
    assert_eq!(g.data_offset(), whole.0.len() as u64);
    for n in 0..whole.0.len() {
        let e = Raw(whole.0[..n].to_vec()).refused();
        assert!(e.offset.is_some(), "{e}");
    }
}

#[test]
fn strings_and_arrays_are_held_against_what_is_left() {
    for len in [5u64, 1 << 30, 1 << 31, u64::MAX] {
        let e = Raw::new(3, 0, 1).u64(len).bytes(b"abcd").bytes(&[0; 2]).refused();
        let exceeds = matches!(e.rule, Rule::Truncated { need, left: 6 } if need == len);
        assert!(exceeds || len == 5, "{e}");
    }
    for ty in [0, 2, 4, 7, 8, 12] {
        for n in [100u64, 1 << 30, (1 << 30) + 1, 1 << 61, u64::MAX] {
            let raw = Raw::new(3, 0, 1).text(b"k").i32(9).i32(ty).u64(n).bytes(&[0; 16]);
            let e = raw.refused();
            let as_long = matches!(e.rule, Rule::ArrayLength { n: m, .. } if m == n);
            // The whole array is asked for before its first element; strings take 8 bytes at least.
            let size = [1, 2, 4, 1, 8, 8][[0, 2, 4, 7, 8, 12].iter().position(|&t| t == ty).unwrap()];
            let short = Rule::Truncated { need: n.saturating_mul(size), left: 16 };
            let as_short = e.rule == short;
            assert!(if n > 1 << 30 { as_long } else { as_short }, "{e}");
            assert!(matches!(&e.subject, Subject::Key(k) if k.as_bytes() == b"k"));
        }
    }
    let limits = Limits { max_string: 3, max_array: 2, ..Limits::default() };
    let s = |text: &[u8]| Raw::new(3, 0, 1).text(b"k").i32(8).text(text).0;
    assert!(Gguf::from_bytes(&s(b"abc"), &limits).is_ok());
    let e = Gguf::from_bytes(&s(b"abcd"), &limits).unwrap_err();
    assert_eq!(e.rule, Rule::StringLength { len: 4, max: 3 });
    let a = |n: u64| Raw::new(3, 0, 1).text(b"k").i32(9).i32(0).u64(n).u32(0).0;
    assert!(Gguf::from_bytes(&a(2), &limits).is_ok());
    let e = Gguf::from_bytes(&a(3), &limits).unwrap_err();
    assert_eq!(e.rule, Rule::ArrayLength { n: 3, max: 2 });
}

#[test]
fn value_types() {
    for id in [13, 14, -1, i32::MAX, i32::MIN] {
        let e = Raw::new(3, 0, 1).text(b"k").i32(id).u64(0).refused();
        assert_eq!(e.rule, Rule::UnknownValueType(id));
        let e = Raw::new(3, 0, 1).text(b"k").i32(9).i32(id).u64(0).refused();
        assert_eq!(e.rule, Rule::UnknownValueType(id));
    }
    let e = Raw::new(3, 0, 1).text(b"k").i32(9).i32(9).u64(0).refused();
    assert_eq!(e.rule, Rule::ArrayOfArrays);
}

#[test]
fn bools_other_than_zero_are_true_and_written_as_one() {
    let raw = Raw::new(3, 0, 2).text(b"one").i32(7).u8(0x80).text(b"many").i32(9).i32(7).u64(4).bytes(&[0, 1, 2, 255]);
    let g = raw.read().unwrap();
    assert!(g.kvs()[0].scalar::<bool>().unwrap());
    assert_eq!(g.kvs()[1].values().as_slice::<bool>().unwrap(), [false, true, true, true]);
    let want =
        Raw::new(3, 0, 2).text(b"one").i32(7).u8(1).text(b"many").i32(9).i32(7).u64(4).bytes(&[0, 1, 1, 1]).pad(32);
    assert_eq!(g.meta_bytes().unwrap(), want.0);
}

#[test]
fn names_and_keys() {
    let kv = |r: Raw, k: &[u8]| r.text(k).i32(0).u8(5);
    let e = kv(kv(kv(Raw::new(3, 0, 3), b"a"), b"b"), b"a").refused();
    assert_eq!(e.rule, Rule::DuplicateKey);
    assert_eq!(e.offset, Some(24 + 2 * 14));
    assert_eq!(kv(Raw::new(3, 0, 1), b"a\0b").refused().rule, Rule::NulByte);

    let t = |r: Raw, n: &[u8], off| r.tensor(n, &[1], 0, off);
    let e = t(t(Raw::new(3, 2, 0), b"a", 0), b"a", 32).pad(32).refused();
    assert_eq!(e.rule, Rule::DuplicateTensor);
    assert_eq!(t(Raw::new(3, 1, 0), b"a\0", 0).pad(32).refused().rule, Rule::NulByte);
    assert!(t(Raw::new(3, 1, 0), b"", 0).pad(32).read().is_ok());

    for max_name in [64, 160] {
        let limits = Limits { max_name, ..Limits::default() };
        let named = |len: usize| t(Raw::new(3, 1, 0), &vec![b'n'; len], 0).pad(32).0;
        assert!(Gguf::from_bytes(&named(max_name - 1), &limits).is_ok());
        let e = Gguf::from_bytes(&named(max_name), &limits).unwrap_err();
        let (len, max) = (max_name as u64, max_name as u64 - 1);
        assert_eq!(e.rule, Rule::NameLength { len, max });
        assert_eq!(e.subject, Subject::TensorNumber(0));
    }
}

#[test]
fn text_of_errors_is_one_line_whatever_the_key() {
    let key = [b"\x1b[31m\n\xff".as_slice(), &[b'k'; 200]].concat();
    let e = Raw::new(3, 0, 1).text(&key).i32(77).u64(0).refused();
    let text = e.to_string();
    assert!(text.starts_with("gguf: key '\\x1b[31m\\n\\xffkkk") && text.contains("...' at byte "), "{text}");
    assert!(text.is_ascii() && !text.contains(char::is_control) && text.len() < 250);
}

#[test]
fn alignment() {
    let file = |a: u32| Raw::new(3, 1, 1).text(b"general.alignment").i32(4).u32(a).tensor(b"t", &[1], 0, 0);
    for a in [1u32, 2, 16, 32, 64, 4096] {
        let g = file(a).pad(a as usize).read().unwrap();
        assert_eq!(g.alignment(), a);
        assert_eq!(g.data_size(), 4u64.next_multiple_of(u64::from(a)));
        assert_eq!(g.data_offset() % u64::from(a), 0);
    }
    for a in [0u32, 3, 48, u32::MAX] {
        assert_eq!(file(a).pad(4096).refused().rule, Rule::AlignmentValue(a));
    }
    let e = file(1 << 31).pad(4096).refused();
    assert!(matches!(e.rule, Rule::DataStart { .. }), "{e}");
    let other = Raw::new(3, 0, 1).text(b"general.alignment").i32(10).u64(32);
    assert_eq!(other.refused().rule, Rule::AlignmentType(ValueType::U64));
    let array = Raw::new(3, 0, 1).text(b"general.alignment").i32(9).i32(4).u64(1).u32(32);
    assert_eq!(array.refused().rule, Rule::AlignmentType(ValueType::Array));
}

#[test]
fn shapes() {
    for (i, ne) in [[-1i64, 1], [1, -1], [i64::MIN, 0], [0, -5]].iter().enumerate() {
        let e = Raw::new(3, 1, 0).tensor(b"t", ne, 0, 0).pad(32).refused();
        assert!(matches!(e.rule, Rule::NegativeDim { .. }), "{i}: {e}");
    }
    for (ne0, ok) in [(32, true), (31, false), (33, false), (0, true), (64, true)] {
        let raw = Raw::new(3, 1, 0).tensor(b"t", &[ne0], 8, 0).pad(32);
        assert_eq!(raw.read().is_ok(), ok);
        if !ok {
            let block = 32;
            assert_eq!(raw.refused().rule, Rule::RaggedBlocks { ne0, block });
        }
    }
    // No dimension at all is one element.
    let g = Raw::new(3, 1, 0).tensor(b"t", &[], 0, 0).pad(32).read().unwrap();
    assert_eq!((g.tensors()[0].ne(), g.tensors()[0].nbytes()), (&[1; 4], 4));
}

#[test]
fn offsets_follow_each_other() {
    let two = |second| Raw::new(3, 2, 0).tensor(b"a", &[9], 0, 0).tensor(b"b", &[1], 0, second).pad(32);
    assert!(two(64).read().is_ok());
    for found in [0u64, 32, 36, 65, 96, u64::MAX] {
        let e = two(found).refused();
        let expected = 64;
        assert_eq!(e.rule, Rule::Offset { found, expected });
    }
    let e = Raw::new(3, 1, 0).tensor(b"a", &[1], 0, 32).pad(32).refused();
    assert_eq!(e.rule, Rule::Offset { found: 32, expected: 0 });
}

#[test]
fn data_is_read_and_its_lack_is_told() {
    let head = Raw::new(3, 2, 0).tensor(b"a", &[3], 24, 0).tensor(b"b", &[1], 0, 32).pad(32);
    let start = head.0.len();
    let mut whole = head.0.clone();
    whole.extend(0..64u8);
    let g = Gguf::from_bytes(&whole, &Limits::default()).unwrap();
    let mut data = vec![0xaa; 64];
    g.read_data(&mut std::io::Cursor::new(&whole), &mut data).unwrap();
    assert_eq!(data, whole[start..]);
    let e = g.read_data(&mut std::io::Cursor::new(&whole), &mut [0; 63]).unwrap_err();
    assert_eq!(e.rule, Rule::TensorDataLength { given: 63, need: 64 });

    // One byte of the last padding is not there.
    let g = Gguf::from_bytes(&whole[..whole.len() - 1], &Limits::default()).unwrap();
    let e = g.check_data().unwrap_err();
    assert_eq!(e.rule, Rule::DataTruncated { need: 64, left: 63 });
    assert_eq!(e.offset, Some(start as u64));
}

#[test]
fn a_file_inside_of_a_file_counts_alignment_from_its_own_start() {
    let inner = Raw::new(3, 1, 0).tensor(b"a", &[1], 0, 0).pad(32).bytes(&[1; 32]).0;
    let mut source = std::io::Cursor::new([b"front".as_slice(), &inner].concat());
    source.set_position(5);
    let g = Gguf::read(&mut source, &Limits::default()).unwrap();
    assert_eq!(g.data_offset(), 5 + inner.len() as u64 - 32);
    assert_eq!(source.position(), g.data_offset());
    let mut data = [0; 32];
    g.read_data(&mut source, &mut data).unwrap();
    assert_eq!(data, [1; 32]);
}

/// A source that promises more bytes than it gives.
struct Liar {
    bytes: std::io::Cursor<Vec<u8>>,
}

impl std::io::Read for Liar {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        // In odd pieces, as a callback may.
        let n = buf.len().min(3);
        self.bytes.read(&mut buf[..n])
    }
}

impl std::io::Seek for Liar {
    fn seek(&mut self, pos: std::io::SeekFrom) -> std::io::Result<u64> {
        match pos {
            std::io::SeekFrom::End(_) => Ok(u64::MAX),
            other => self.bytes.seek(other),
        }
    }
}

#[test]
fn a_source_shorter_than_it_says_is_refused() {
    let head = Raw::new(3, 0, 1).text(b"k").i32(9).i32(12).u64(1 << 30).0;
    let mut source = Liar { bytes: std::io::Cursor::new(head) };
    let e = Gguf::read(&mut source, &Limits::default()).unwrap_err();
    assert!(matches!(e.rule, Rule::Truncated { left: 0, .. }), "{e}");

    let good = Raw::new(3, 1, 1).text(b"k").i32(0).u8(1).tensor(b"a", &[1], 0, 0).pad(32).0;
    let mut source = Liar { bytes: std::io::Cursor::new(good) };
    assert!(Gguf::read(&mut source, &Limits::default()).is_ok());
}

#[test]
fn an_error_of_the_source_comes_out() {
    struct Broken;
    impl std::io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::PermissionDenied.into())
        }
    }
    impl std::io::Seek for Broken {
        fn seek(&mut self, pos: std::io::SeekFrom) -> std::io::Result<u64> {
            Ok(if pos == std::io::SeekFrom::End(0) { 1000 } else { 0 })
        }
    }
    let e = Gguf::read(&mut Broken, &Limits::default()).unwrap_err();
    assert_eq!(e.rule, Rule::Io(std::io::ErrorKind::PermissionDenied));
}

#[test]
fn nothing_is_read_past_the_end_that_the_source_names() {
    struct Part(std::io::Cursor<Vec<u8>>);
    impl std::io::Read for Part {
        fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
            let n = self.0.read(buf)?;
            assert!(self.0.position() <= 24);
            Ok(n)
        }
    }
    impl std::io::Seek for Part {
        fn seek(&mut self, pos: std::io::SeekFrom) -> std::io::Result<u64> {
            match pos {
                std::io::SeekFrom::End(_) => Ok(24),
                other => self.0.seek(other),
            }
        }
    }
    let mut source = Part(std::io::Cursor::new(Raw::new(3, 0, 0).bytes(&[9; 99]).0));
    assert!(Gguf::read(&mut source, &Limits::default()).is_ok());
}
