//! What has to hold for any bytes. Shared by the tests and the fuzz target.

use std::io::{self, Write};

use ggml_oxide_gguf::{Gguf, Limits, TensorInfo};

/// Alignments above make files of mostly padding.
const MAX_ALIGNMENT: u32 = 4096;
/// Data sections above are not written out.
const MAX_DATA: u64 = 1 << 20;

/// Reads `bytes`; panics when a promise of the crate is broken.
pub fn check(bytes: &[u8]) {
    let limits = Limits::default();
    let g = match Gguf::from_bytes(bytes, &limits) {
        Ok(g) => g,
        Err(e) => {
            let text = e.to_string();
            assert!(!text.is_empty() && text.is_ascii() && !text.contains('\n'));
            assert!(e.offset.is_none_or(|at| at <= bytes.len() as u64));
            return;
        }
    };
    let has_data = g.check_data().is_ok();
    assert!(g.data_offset() <= bytes.len() as u64);
    assert_eq!(has_data, g.data_size() <= bytes.len() as u64 - g.data_offset());
    for (i, kv) in g.kvs().iter().enumerate() {
        assert_eq!(g.find_key(kv.key().as_bytes()), Some(i));
    }
    for (i, t) in g.tensors().iter().enumerate() {
        assert_eq!(g.find_tensor(t.name().as_bytes()), Some(i));
    }
    if g.alignment() > MAX_ALIGNMENT {
        return;
    }
    comes_back(&g);
    if has_data && g.data_size() <= MAX_DATA {
        let mut data = vec![0; g.data_size() as usize];
        assert!(g.read_data(&mut io::Cursor::new(bytes), &mut data).is_ok());
        let file = written(&g);
        assert_eq!(file.len() as u64, g.meta_size().unwrap_or(0) + g.data_size());
    }
    edit(g);
}

/// Written and read again, everything is the same.
fn comes_back(g: &Gguf) {
    let meta = g.meta_bytes().expect("meta data");
    assert_eq!(meta.len() as u64, g.meta_size().expect("size"));
    let again = Gguf::from_bytes(&meta, &Limits::default()).expect("own output is refused");
    assert_eq!(again.tensors(), g.tensors());
    assert_eq!((again.alignment(), again.data_size(), again.version()), (g.alignment(), g.data_size(), g.version()));
    assert_eq!(again.meta_bytes().expect("meta data"), meta);
}

fn written(g: &Gguf) -> Vec<u8> {
    let mut file = Vec::new();
    let mut data =
        |_: usize, t: &TensorInfo, w: &mut dyn Write| -> io::Result<()> { w.write_all(&vec![1; t.nbytes() as usize]) };
    g.write_to(&mut file, &mut data).expect("writing to memory");
    file
}

/// Edits leave a file that can be read, refused ones leave it as it was.
fn edit(mut g: Gguf) {
    let mut copy = Gguf::new(&Limits::default());
    copy.set_kv(&g).expect("pairs that were read can be set");
    assert_eq!(copy.alignment(), g.alignment());
    comes_back(&copy);

    let state = |g: &Gguf| (g.meta_bytes().expect("meta data"), g.data_size());
    let names: Vec<_> = g.tensors().iter().take(4).map(|t| t.name().as_bytes().to_vec()).collect();
    for (i, name) in names.iter().enumerate() {
        let before = state(&g);
        if g.set_tensor_type(name, [0, 8, 14, 28][i]).is_err() {
            assert_eq!(state(&g), before);
        }
        assert!(g.add_tensor(name, 0, [1; 4]).is_err());
    }
    for alignment in [64u32, 8] {
        let before = state(&g);
        if g.set_scalar(b"general.alignment", alignment).is_err() {
            assert_eq!(state(&g), before);
        }
    }
    let before = state(&g);
    if g.add_tensor(b"added", 0, [3, 2, 0, 1]).is_err() {
        assert_eq!(state(&g), before);
    }
    comes_back(&g);
    while let Some(kv) = g.kvs().first() {
        let key = kv.key().as_bytes().to_vec();
        let before = state(&g);
        match g.remove_key(&key) {
            Ok(id) => assert_eq!(id, Some(0)),
            Err(_) => {
                assert_eq!(state(&g), before);
                return;
            }
        }
        // Long lists of pairs would make this quadratic.
        if g.kvs().len() > 16 {
            break;
        }
    }
    comes_back(&g);
}
