//! gguf files with tensors: the parser (crate `ggml-oxide-gguf`) knows meta data only, this joins it to contexts, tensors and C
//! streams. Imports: `error`, `tensor`, `backend`.

mod stream;

pub use stream::{CFile, Callback};

use crate::backend::tensor_data::{self, Rows};
use crate::error::Error;
use crate::tensor::{self, Context};
use ggml_oxide_abi::*;
use ggml_oxide_gguf::{Gguf, Limits, TensorInfo};
use std::ffi::c_void;
use std::io::{self, Read, Seek, Write};

/// What is behind a `gguf_context`.
pub struct File {
    /// Pairs and tensor infos.
    pub meta: Gguf,
    /// Where each tensor's bytes are, by tensor number.
    sources: Vec<Source>,
}

/// Where the bytes of a tensor to be written are.
#[derive(Clone, Copy)]
enum Source {
    /// Nowhere: the meta data came from a file.
    None,
    /// In a tensor that the caller keeps.
    Tensor(*const ggml_tensor),
    /// In memory that the caller keeps.
    Memory(*const c_void),
}

/// The error of the parser, as the library's.
pub fn error(e: ggml_oxide_gguf::Error) -> Error {
    let code = match e.rule {
        ggml_oxide_gguf::Rule::OutOfMemory { .. } => GGML_EXT_CODE_OUT_OF_MEMORY,
        ggml_oxide_gguf::Rule::Io(_) => GGML_EXT_CODE_IO,
        _ => GGML_EXT_CODE_BAD_FILE,
    };
    Error::new(code, e.to_string())
}

fn limits() -> Limits {
    Limits { max_name: GGML_MAX_NAME, ..Default::default() }
}

impl File {
    /// Without pairs and tensors.
    pub fn empty() -> Self {
        File { meta: Gguf::new(&limits()), sources: Vec::new() }
    }

    /// The meta data of a file, and a context with its tensors where one is asked for: with data read, or without.
    pub fn read(
        source: &mut (impl Read + Seek),
        params: &gguf_init_params,
    ) -> Result<(Self, Option<Box<Context>>), Error> {
        let meta = Gguf::read(source, &limits()).map_err(error)?;
        let ctx = if params.ctx.is_null() { None } else { Some(read_tensors(&meta, source, params.no_alloc)?) };
        let sources = vec![Source::None; meta.tensors().len()];
        Ok((File { meta, sources }, ctx))
    }

    /// Adds a tensor, whose bytes are read from it when the file is written.
    ///
    /// # Safety
    /// The tensor is live and stays until the file was written.
    pub unsafe fn add_tensor(&mut self, tensor: *const ggml_tensor) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let t = unsafe { &*tensor };
        let name: Vec<u8> = t.name.iter().take_while(|&&c| c != 0).map(|&c| c as u8).collect();
        self.meta.add_tensor(&name, t.r#type.0, t.ne).map_err(error)?;
        self.sources.push(Source::Tensor(tensor));
        Ok(())
    }

    /// Says where a tensor's bytes are.
    pub fn set_data(&mut self, name: &[u8], data: *const c_void) -> Result<(), Error> {
        let id = self.meta.find_tensor(name);
        let text = || format!("gguf_set_tensor_data: there is no tensor '{}'", String::from_utf8_lossy(name));
        self.sources[id.ok_or_else(|| Error::argument(text()))?] = Source::Memory(data);
        Ok(())
    }

    /// Writes the file, or its meta data only.
    ///
    /// # Safety
    /// What was promised to [`File::add_tensor`] and [`File::set_data`] holds.
    pub unsafe fn write(&self, to: &mut impl Write, only_meta: bool) -> Result<(), Error> {
        if only_meta {
            return self.meta.write_meta(to).map_err(error);
        }
        for (info, &source) in self.meta.tensors().iter().zip(&self.sources) {
            // SAFETY: the caller's promise.
            unsafe { check_source(info, source)? };
        }
        let mut data = |id: usize, info: &TensorInfo, out: &mut dyn Write| {
            // SAFETY: the caller's promise.
            unsafe { write_data(self.sources[id], info.nbytes() as usize, out) }
        };
        self.meta.write_to(to, &mut data).map_err(error)
    }
}

/// Whether `source` has the bytes of `info`, side by side.
///
/// # Safety
/// A tensor as source is live.
unsafe fn check_source(info: &TensorInfo, source: Source) -> Result<(), Error> {
    let name = || String::from_utf8_lossy(info.name().as_bytes()).into_owned();
    let missing = match source {
        Source::None => true,
        Source::Memory(data) => data.is_null(),
        Source::Tensor(tensor) => {
            // SAFETY: the caller's promise.
            let t = unsafe { &*tensor };
            let has = ggml_oxide_shape::nbytes(t);
            if has as u64 != info.nbytes() || !ggml_oxide_shape::is_contiguous(t) {
                return Err(Error::shape(format!(
                    "gguf: tensor '{}' needs {} bytes without gaps, and the tensor that was added has {has}{}",
                    name(),
                    info.nbytes(),
                    if ggml_oxide_shape::is_contiguous(t) { "" } else { " and is not contiguous" }
                )));
            }
            t.data.is_null()
        }
    };
    if missing && info.nbytes() > 0 {
        return Err(Error::new(GGML_EXT_CODE_NOT_ALLOCATED, format!("gguf: tensor '{}' has no data", name())));
    }
    Ok(())
}

/// Copies a tensor's bytes to `out`, in pieces where they are not in the host's memory.
///
/// # Safety
/// The source is live and has `size` bytes.
unsafe fn write_data(source: Source, size: usize, out: &mut dyn Write) -> io::Result<()> {
    const PIECE: usize = 4 << 20;
    let tensor = match source {
        Source::Memory(data) if !data.is_null() => {
            // SAFETY: the caller's promise.
            return out.write_all(unsafe { std::slice::from_raw_parts(data.cast(), size) });
        }
        // nothing to write: `check_source` refused the others
        Source::None | Source::Memory(_) => return Ok(()),
        Source::Tensor(tensor) => tensor,
    };
    // SAFETY: the caller's promise.
    let t = unsafe { &*tensor };
    let host = tensor_data::buffer_of(t).is_none_or(|b| b.is_host());
    if host {
        // SAFETY: host memory of a tensor of `size` bytes.
        let bytes = if size == 0 { &[] } else { unsafe { std::slice::from_raw_parts(t.data.cast::<u8>(), size) } };
        return out.write_all(bytes);
    }
    let mut piece = vec![0u8; size.min(PIECE)];
    for offset in (0..size).step_by(PIECE) {
        let n = piece.len().min(size - offset);
        // SAFETY: `piece` has room for `n` bytes.
        unsafe { tensor_data::get("gguf_write_to_file", tensor, piece.as_mut_ptr().cast(), Rows::range(offset, n)) };
        out.write_all(&piece[..n])?;
    }
    Ok(())
}

/// A context with the file's tensors. With data, they lie in one tensor before the others, as in the file.
fn read_tensors(meta: &Gguf, source: &mut (impl Read + Seek), no_alloc: bool) -> Result<Box<Context>, Error> {
    let n = meta.tensors().len();
    let data_size = usize::try_from(meta.data_size()).unwrap_or(usize::MAX);
    let blob_size = if no_alloc { 0 } else { data_size };
    if !no_alloc {
        meta.check_data().map_err(error)?;
    }
    let size = tensor::TENSOR_OVERHEAD.checked_mul(n + usize::from(!no_alloc)).and_then(|s| s.checked_add(blob_size));
    let size = size.ok_or_else(|| Error::memory("gguf: the tensors do not fit into memory"))?;
    // SAFETY: the context makes its own memory.
    let mut ctx = unsafe { Context::new(size, std::ptr::null_mut(), no_alloc)? };
    let mut base = std::ptr::null_mut::<u8>();
    if !no_alloc {
        let blob = tensor::new_tensor(&mut ctx, "gguf_init_from_file", GGML_TYPE_I8, &[data_size as i64]);
        // SAFETY: `new_tensor` gives a live tensor; a sound one of this context has its bytes.
        let blob = unsafe { &mut *blob };
        if tensor::is_poisoned(blob) {
            return Err(Error::memory("gguf: the context has no room for the data"));
        }
        tensor::set_name(blob, [b"GGUF tensor data binary blob".as_slice()]);
        base = blob.data.cast();
        if data_size > 0 {
            // SAFETY: the arena is not initialised; bytes are plain, and all are written or the context is dropped.
            let bytes = unsafe {
                base.write_bytes(0, data_size);
                std::slice::from_raw_parts_mut(base, data_size)
            };
            meta.read_data(source, bytes).map_err(error)?;
        }
    }
    ctx.no_alloc = true;
    for info in meta.tensors() {
        let t = tensor::new_tensor(&mut ctx, "gguf_init_from_file", ggml_type(info.type_id()), info.ne());
        // SAFETY: as above.
        let t = unsafe { &mut *t };
        if tensor::is_poisoned(t) {
            return Err(Error::memory("gguf: the context has no room for the tensors"));
        }
        tensor::set_name(t, [info.name().as_bytes()]);
        if !no_alloc {
            t.data = base.wrapping_add(info.offset() as usize).cast();
        }
    }
    ctx.no_alloc = no_alloc;
    Ok(ctx)
}

#[cfg(test)]
mod tests {
    use ggml_oxide_gguf::builtin_type_layout;
    use ggml_oxide_types::Type;

    #[test]
    fn files_hold_every_format() {
        for id in -2..60 {
            let size = Type::from_id(id).map(|ty| (ty.block_size() as u64, ty.block_bytes() as u64));
            assert_eq!(builtin_type_layout(id).map(|l| (l.block_size, l.block_bytes)), size, "{id}");
        }
    }
}
