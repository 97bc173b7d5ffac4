//! Getters, setters and the writer's errors.
#![allow(clippy::unwrap_used)]

use std::io::{self, Write};

use ggml_oxide_gguf::{builtin_type_layout, CText, Gguf, Limits, Rule, StrList, TensorInfo, ValueType, Values};

fn empty() -> Gguf {
    Gguf::new(&Limits::default())
}

#[test]
fn an_empty_file_is_24_bytes_and_padding() {
    let g = empty();
    let bytes = g.meta_bytes().unwrap();
    let mut want = b"GGUF\x03\0\0\0".to_vec();
    want.resize(32, 0);
    assert_eq!(bytes, want);
    assert_eq!(g.meta_size().unwrap(), 32);
    assert_eq!(g.data_offset(), 0);
    // Read back: nothing to align when there is no tensor.
    let again = Gguf::from_bytes(&bytes, &Limits::default()).unwrap();
    assert_eq!((again.data_offset(), again.data_size()), (24, 0));
}

#[test]
fn bytes_by_hand() {
    let mut g = empty();
    g.set_scalar(b"k", -2i16).unwrap();
    g.set_array(b"s", Values::Str(StrList::from_items(&["ab"]).unwrap())).unwrap();
    g.add_tensor(b"t", 24, [2, 3, 1, 1]).unwrap();
    let mut out = Vec::new();
    let mut data = |_: usize, _: &TensorInfo, w: &mut dyn Write| w.write_all(b"123456");
    g.write_to(&mut out, &mut data).unwrap();
    #[rustfmt::skip]
    let want: &[&[u8]] = &[
        b"GGUF", &[3, 0, 0, 0], &[1, 0, 0, 0, 0, 0, 0, 0], &[2, 0, 0, 0, 0, 0, 0, 0],
        &[1, 0, 0, 0, 0, 0, 0, 0], b"k", &[3, 0, 0, 0], &[0xfe, 0xff],
        &[1, 0, 0, 0, 0, 0, 0, 0], b"s", &[9, 0, 0, 0], &[8, 0, 0, 0], &[1, 0, 0, 0, 0, 0, 0, 0],
        &[2, 0, 0, 0, 0, 0, 0, 0], b"ab",
        &[1, 0, 0, 0, 0, 0, 0, 0], b"t", &[2, 0, 0, 0],
        &[2, 0, 0, 0, 0, 0, 0, 0], &[3, 0, 0, 0, 0, 0, 0, 0], &[24, 0, 0, 0], &[0; 8],
        &[0; 13], // to 128
        b"123456", &[0; 26],
    ];
    let want = want.concat();
    assert_eq!(want.len() % 32, 0);
    assert_eq!(out, want);
}

#[test]
fn getters_tell_wrong_types() {
    let mut g = empty();
    g.set_scalar(b"n", 5u32).unwrap();
    g.set_array(b"one", Values::U32(vec![6])).unwrap();
    g.set_array(b"two", Values::U32(vec![6, 7])).unwrap();
    g.set_str(b"s", b"a\0b").unwrap();
    let kv = |i| g.kv(i).unwrap();
    assert_eq!(kv(0).scalar::<u32>().unwrap(), 5);
    assert_eq!(kv(1).scalar::<u32>().unwrap(), 6);
    assert_eq!(kv(2).scalar::<u32>().unwrap_err().rule, Rule::NotSingle(2));
    let (have, want) = (ValueType::U32, ValueType::I32);
    let e = kv(0).scalar::<i32>().unwrap_err();
    assert_eq!(e.rule, Rule::WrongType { have, want });
    assert_eq!(e.to_string(), "gguf: key 'n': the type is u32 and not i32");
    assert_eq!(kv(0).array_type().unwrap_err().rule, Rule::NotArray(ValueType::U32));
    assert_eq!(kv(1).array_type().unwrap(), ValueType::U32);
    assert_eq!(kv(1).value_type(), ValueType::Array);
    assert_eq!(kv(3).string_with_nul().unwrap(), b"a\0b\0");
    assert!(kv(0).string_with_nul().is_err());
    assert!(kv(3).scalar::<u8>().is_err());
    for id in [-1, 4, i64::MAX, i64::MIN] {
        assert_eq!(g.kv(id).unwrap_err().rule, Rule::NoSuchId(id));
        assert_eq!(g.tensor(id).unwrap_err().rule, Rule::NoSuchId(id));
    }
    // The whole string is written, NUL and all.
    let again = Gguf::from_bytes(&g.meta_bytes().unwrap(), &Limits::default()).unwrap();
    assert_eq!(again.kvs(), g.kvs());
}

#[test]
fn setters_refuse_and_change_nothing() {
    let mut g = empty();
    g.set_scalar(b"k", 1u8).unwrap();
    let before = g.meta_bytes().unwrap();
    assert_eq!(g.set_scalar(b"", 1u8).unwrap_err().rule, Rule::EmptyKey);
    assert_eq!(g.set_scalar(b"\0", 1u8).unwrap_err().rule, Rule::NulByte);
    let e = g.set(b"k", false, Values::U8(vec![])).unwrap_err();
    assert_eq!(e.rule, Rule::NotSingle(0));
    for a in [0u32, 3, 33] {
        let e = g.set_scalar(b"general.alignment", a).unwrap_err();
        assert_eq!(e.rule, Rule::AlignmentValue(a));
    }
    let e = g.set_scalar(b"general.alignment", 32u64).unwrap_err();
    assert_eq!(e.rule, Rule::AlignmentType(ValueType::U64));
    let e = g.set_array(b"general.alignment", Values::U32(vec![32])).unwrap_err();
    assert_eq!(e.rule, Rule::AlignmentType(ValueType::Array));
    assert_eq!(g.remove_key(b"no").unwrap(), None);
    assert_eq!(g.meta_bytes().unwrap(), before);
}

#[test]
fn alignment_moves_the_tensors() {
    let mut g = empty();
    for name in [b"a", b"b", b"c"] {
        g.add_tensor(name, 0, [9, 1, 1, 1]).unwrap();
    }
    let offsets = |g: &Gguf| g.tensors().iter().map(|t| t.offset()).collect::<Vec<_>>();
    assert_eq!((offsets(&g), g.data_size()), (vec![0, 64, 128], 192));
    g.set_scalar(b"general.alignment", 128u32).unwrap();
    assert_eq!((offsets(&g), g.data_size()), (vec![0, 128, 256], 384));
    assert!(Gguf::from_bytes(&g.meta_bytes().unwrap(), &Limits::default()).is_ok());
    g.remove_key(b"general.alignment").unwrap();
    assert_eq!((offsets(&g), g.alignment()), (vec![0, 64, 128], 32));
    assert!(Gguf::from_bytes(&g.meta_bytes().unwrap(), &Limits::default()).is_ok());
}

#[test]
fn tensors_are_added_and_retyped() {
    let mut g = empty();
    assert_eq!(g.add_tensor(b"z", 0, [32, 2, 1, 1]).unwrap(), 0);
    assert_eq!(g.add_tensor(b"a", 0, [1, 1, 1, 1]).unwrap(), 1);
    assert_eq!(g.add_tensor(b"m", 0, [0, 1, 1, 1]).unwrap(), 2);
    for (i, name) in [b"z", b"a", b"m"].iter().enumerate() {
        assert_eq!(g.find_tensor(*name), Some(i));
    }
    assert_eq!(g.tensors()[1].offset(), 256);
    g.set_tensor_type(b"z", 8).unwrap();
    assert_eq!((g.tensors()[0].nbytes(), g.tensors()[1].offset()), (68, 96));
    assert_eq!(g.tensors()[0].type_id(), 8);
    let before = g.meta_bytes().unwrap();

    let block = 32;
    let e = g.set_tensor_type(b"a", 8).unwrap_err();
    assert_eq!(e.rule, Rule::RaggedBlocks { ne0: 1, block });
    assert_eq!(g.set_tensor_type(b"q", 0).unwrap_err().rule, Rule::NoSuchName);
    assert_eq!(g.set_tensor_type(b"a", 4).unwrap_err().rule, Rule::UnknownTensorType(4));
    let mut add = |name: &[u8], id, ne| g.add_tensor(name, id, ne).unwrap_err().rule;
    assert_eq!(add(b"a", 0, [1; 4]), Rule::DuplicateTensor);
    assert_eq!(add(b"n\0", 0, [1; 4]), Rule::NulByte);
    assert_eq!(add(b"n", 33, [1; 4]), Rule::UnknownTensorType(33));
    let (len, max) = (160, 159);
    assert_eq!(add(&[b'n'; 160], 0, [1; 4]), Rule::NameLength { len, max });
    let ne = [i64::MAX, 1, 1, 1];
    assert_eq!(add(b"n", 0, ne), Rule::SizeOverflow(ne));
    assert_eq!(add(b"n", 24, [i64::MIN, 1, 1, 1]), Rule::NegativeDim { dim: 0, ne: i64::MIN });
    assert_eq!(g.meta_bytes().unwrap(), before);

    // Two that fill the address space: the third does not fit, and neither does a wider type.
    let mut g = empty();
    let half = i64::MAX - 63;
    g.add_tensor(b"a", 24, [half, 1, 1, 1]).unwrap();
    g.add_tensor(b"b", 24, [half, 1, 1, 1]).unwrap();
    let e = g.add_tensor(b"c", 24, [half, 1, 1, 1]).unwrap_err();
    assert_eq!(e.rule, Rule::DataSizeOverflow);
    let before = g.meta_bytes().unwrap();
    let infos = g.tensors().to_vec();
    assert_eq!(g.set_tensor_type(b"a", 1).unwrap_err().rule, Rule::DataSizeOverflow);
    let e = g.set_scalar(b"general.alignment", 1u32 << 31).unwrap_err();
    assert_eq!(e.rule, Rule::DataSizeOverflow);
    assert_eq!(g.meta_bytes().unwrap(), before);
    assert_eq!(g.tensors(), infos);
}

#[test]
fn the_writer_wants_exactly_the_tensor() {
    let mut g = empty();
    g.add_tensor(b"t", 24, [4, 1, 1, 1]).unwrap();
    let write = |bytes: &'static [u8]| {
        let mut data = move |_: usize, _: &TensorInfo, w: &mut dyn Write| w.write_all(bytes);
        g.write_to(&mut Vec::new(), &mut data)
    };
    write(b"1234").unwrap();
    let need = 4;
    let e = write(b"123").unwrap_err();
    assert_eq!(e.rule, Rule::TensorDataLength { given: 3, need });
    let e = write(b"12345").unwrap_err();
    assert_eq!(e.rule, Rule::TensorDataLength { given: 5, need });
    let mut data =
        |_: usize, _: &TensorInfo, _: &mut dyn Write| -> io::Result<()> { Err(io::ErrorKind::TimedOut.into()) };
    let e = g.write_to(&mut Vec::new(), &mut data).unwrap_err();
    assert_eq!(e.rule, Rule::Io(io::ErrorKind::TimedOut));
    assert_eq!(e.to_string(), "gguf: tensor 't': input or output failed (timed out)");
}

#[test]
fn a_full_disk_is_told_wherever_it_is_met() {
    struct Full(usize);
    impl Write for Full {
        fn write(&mut self, b: &[u8]) -> io::Result<usize> {
            let n = b.len().min(self.0);
            self.0 -= n;
            if n == 0 && !b.is_empty() {
                return Err(io::ErrorKind::StorageFull.into());
            }
            Ok(n)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut g = empty();
    g.set_array(b"long", Values::U8(vec![1; 5000])).unwrap();
    g.add_tensor(b"t", 24, [5000, 1, 1, 1]).unwrap();
    let mut data = |_: usize, _: &TensorInfo, w: &mut dyn Write| w.write_all(&[2; 5000]);
    let mut whole = Vec::new();
    g.write_to(&mut whole, &mut data).unwrap();
    // Miri takes long over each.
    let step = if cfg!(miri) { 4001 } else { 97 };
    for room in (0..whole.len()).step_by(step) {
        let e = g.write_to(&mut Full(room), &mut data).unwrap_err();
        assert_eq!(e.rule, Rule::Io(io::ErrorKind::StorageFull));
    }
    g.write_to(&mut Full(whole.len()), &mut data).unwrap();
}

#[test]
fn texts_end_with_nul() {
    assert_eq!(CText::new(b"ab").unwrap().as_bytes_with_nul(), b"ab\0");
    assert_eq!(CText::default().as_bytes_with_nul(), b"\0");
    assert_eq!(CText::default().as_bytes(), b"");
    let list = StrList::from_items(&["", "x"]).unwrap();
    assert_eq!(list.get_with_nul(0), Some(&b"\0"[..]));
    assert_eq!(list.get_with_nul(1), Some(&b"x\0"[..]));
    assert_eq!(list.get_with_nul(2), None);
}

#[test]
fn arrays_lie_aligned_and_packed() {
    let v = Values::from_ne_bytes(ValueType::F64, &[0; 24]).unwrap();
    assert_eq!(v.data_ptr().unwrap() as usize % 8, 0);
    assert_eq!(v.len(), 3);
    let e = Values::from_ne_bytes(ValueType::U32, &[0; 5]).unwrap_err();
    assert_eq!(e.rule, Rule::RaggedBytes { len: 5, elem: 4 });
    assert!(Values::from_ne_bytes(ValueType::Str, &[]).is_err());
    assert!(Values::from_ne_bytes(ValueType::Array, &[]).is_err());
    let x = 0x0102_0304u32;
    let v = Values::from_ne_bytes(ValueType::U32, &x.to_ne_bytes()).unwrap();
    assert_eq!(v.as_slice::<u32>().unwrap(), [x]);
    // Addresses of values stay while others come and go.
    let mut g = empty();
    g.set_scalar(b"a", 1u8).unwrap();
    g.set_scalar(b"b", 2u8).unwrap();
    let (key, at) = (g.kvs()[1].key().as_bytes().as_ptr(), g.kvs()[1].values().data_ptr());
    for i in 0..100 {
        g.set_scalar(format!("k{i}").as_bytes(), i).unwrap();
    }
    g.remove_key(b"a").unwrap();
    assert_eq!((g.kvs()[0].key().as_bytes().as_ptr(), g.kvs()[0].values().data_ptr()), (key, at));
}

#[test]
fn types_have_numbers_names_and_sizes() {
    for (i, ty) in ValueType::ALL.into_iter().enumerate() {
        assert_eq!(ty.id(), i as i32);
        assert_eq!(ValueType::from_id(i as i32), Some(ty));
    }
    assert_eq!(ValueType::from_id(13), None);
    assert_eq!(ValueType::from_id(-1), None);
    assert_eq!(ValueType::Array.name(), "arr");
    assert_eq!((-1..50).filter(|&i| builtin_type_layout(i).is_some()).count(), 37);
}
