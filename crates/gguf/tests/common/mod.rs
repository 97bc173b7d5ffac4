//! Bytes of gguf files, put together field by field, wrong ones too.
#![allow(dead_code)] // each test file uses its part

use ggml_oxide_gguf::{Error, Gguf, Limits};

#[derive(Clone)]
pub struct Raw(pub Vec<u8>);

impl Raw {
    pub fn new(version: u32, n_tensors: i64, n_kv: i64) -> Self {
        Raw(b"GGUF".to_vec()).u32(version).i64(n_tensors).i64(n_kv)
    }

    pub fn bytes(mut self, b: &[u8]) -> Self {
        self.0.extend_from_slice(b);
        self
    }

    pub fn u8(self, x: u8) -> Self {
        self.bytes(&[x])
    }

    pub fn u32(self, x: u32) -> Self {
        self.bytes(&x.to_le_bytes())
    }

    pub fn i32(self, x: i32) -> Self {
        self.bytes(&x.to_le_bytes())
    }

    pub fn u64(self, x: u64) -> Self {
        self.bytes(&x.to_le_bytes())
    }

    pub fn i64(self, x: i64) -> Self {
        self.bytes(&x.to_le_bytes())
    }

    pub fn text(self, s: &[u8]) -> Self {
        self.u64(s.len() as u64).bytes(s)
    }

    pub fn tensor(self, name: &[u8], ne: &[i64], type_id: i32, offset: u64) -> Self {
        let head = self.text(name).u32(ne.len() as u32);
        ne.iter().fold(head, |r, &n| r.i64(n)).i32(type_id).u64(offset)
    }

    pub fn pad(mut self, alignment: usize) -> Self {
        let len = self.0.len().next_multiple_of(alignment);
        self.0.resize(len, 0);
        self
    }

    pub fn read(&self) -> Result<Gguf, Error> {
        Gguf::from_bytes(&self.0, &Limits::default())
    }

    #[track_caller]
    pub fn refused(&self) -> Error {
        match self.read() {
            Err(e) => e,
            Ok(_) => panic!("accepted"),
        }
    }
}
