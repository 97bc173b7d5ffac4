//! The writer: header, pairs, tensor infos, padding, tensor data.

use std::io::{self, Write};

use crate::context::{Gguf, Kv};
use crate::error::{Error, Rule, Subject};
use crate::tensor::TensorInfo;
use crate::value::{ValueType, Values};
use crate::MAGIC;

/// Where the writer gets a tensor's bytes from.
pub trait TensorData {
    /// Writes exactly `info.nbytes()` bytes of tensor number `id` to `out`.
    fn write(&mut self, id: usize, info: &TensorInfo, out: &mut dyn Write) -> io::Result<()>;
}

impl<F: FnMut(usize, &TensorInfo, &mut dyn Write) -> io::Result<()>> TensorData for F {
    fn write(&mut self, id: usize, info: &TensorInfo, out: &mut dyn Write) -> io::Result<()> {
        self(id, info, out)
    }
}

/// Counts, gathers small writes, and refuses to go past a mark.
struct Out<'w, W: Write> {
    to: &'w mut W,
    /// Bytes written, gathered ones included.
    pos: u64,
    buffer: [u8; 4096],
    used: usize,
}

impl<'w, W: Write> Out<'w, W> {
    fn new(to: &'w mut W) -> Self {
        Out { to, pos: 0, buffer: [0; 4096], used: 0 }
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.pos += bytes.len() as u64;
        if bytes.len() > self.buffer.len() - self.used {
            self.drain()?;
            if bytes.len() > self.buffer.len() {
                return self.to.write_all(bytes);
            }
        }
        self.buffer[self.used..self.used + bytes.len()].copy_from_slice(bytes);
        self.used += bytes.len();
        Ok(())
    }

    fn drain(&mut self) -> io::Result<()> {
        let used = std::mem::take(&mut self.used);
        self.to.write_all(&self.buffer[..used])
    }

    fn text(&mut self, text: &[u8]) -> io::Result<()> {
        self.put(&(text.len() as u64).to_le_bytes())?;
        self.put(text)
    }

    fn value_type(&mut self, ty: ValueType) -> io::Result<()> {
        self.put(&ty.id().to_le_bytes())
    }

    fn pad(&mut self, alignment: u32) -> io::Result<()> {
        let over = self.pos & (u64::from(alignment) - 1);
        let mut left = if over == 0 { 0 } else { u64::from(alignment) - over };
        while left > 0 {
            let n = left.min(64);
            self.put(&[0; 64][..n as usize])?;
            left -= n;
        }
        Ok(())
    }
}

/// What a [`TensorData`] writes to: no more than the tensor's bytes.
struct Window<'o, 'w, W: Write> {
    out: &'o mut Out<'w, W>,
    left: u64,
    asked: u64,
}

impl<W: Write> Write for Window<'_, '_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.asked = self.asked.saturating_add(bytes.len() as u64);
        if bytes.len() as u64 > self.left {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.out.put(bytes)?;
        self.left -= bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Takes bytes to nowhere.
struct Sink;

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Gguf {
    /// Bytes of header, pairs, tensor infos and the padding behind them.
    pub fn meta_size(&self) -> Result<u64, Error> {
        let mut sink = Sink;
        let mut out = Out::new(&mut sink);
        self.put_meta(&mut out)?;
        Ok(out.pos)
    }

    /// Header, pairs, tensor infos and the padding behind them ([`Gguf::meta_size`] bytes).
    pub fn meta_bytes(&self) -> Result<Vec<u8>, Error> {
        let size = self.meta_size()?;
        let size = usize::try_from(size).map_err(|_| Error::memory(usize::MAX))?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(size).map_err(|_| Error::memory(size))?;
        self.write_meta(&mut bytes)?;
        Ok(bytes)
    }

    /// Writes what [`Gguf::meta_bytes`] gives.
    pub fn write_meta<W: Write>(&self, to: &mut W) -> Result<(), Error> {
        let mut out = Out::new(to);
        self.put_meta(&mut out)?;
        out.drain()?;
        out.to.flush()?;
        Ok(())
    }

    /// Writes the whole file; each tensor's bytes come from `data` and zeros follow up to the alignment. Errors: writing
    /// failed, or `data` gave fewer or more bytes than the tensor has.
    pub fn write_to<W: Write>(&self, to: &mut W, data: &mut dyn TensorData) -> Result<(), Error> {
        let mut out = Out::new(to);
        self.put_meta(&mut out)?;
        for (id, info) in self.tensors().iter().enumerate() {
            let need = info.nbytes();
            let mut window = Window { out: &mut out, left: need, asked: 0 };
            let wrote = data.write(id, info, &mut window);
            let given = window.asked;
            let fail = |rule| Error::tensor(info.name().as_bytes(), rule);
            if given > need {
                return Err(fail(Rule::TensorDataLength { given, need }));
            }
            wrote.map_err(|e| fail(Rule::Io(e.kind())))?;
            if given < need {
                return Err(fail(Rule::TensorDataLength { given, need }));
            }
            out.pad(self.alignment())?;
        }
        out.drain()?;
        out.to.flush()?;
        Ok(())
    }

    fn put_meta<W: Write>(&self, out: &mut Out<W>) -> Result<(), Error> {
        out.put(&MAGIC)?;
        out.put(&self.version().to_le_bytes())?;
        out.put(&(self.tensors().len() as u64).to_le_bytes())?;
        out.put(&(self.kvs().len() as u64).to_le_bytes())?;
        for kv in self.kvs() {
            put_kv(out, kv)?;
        }
        for info in self.tensors() {
            put_info(out, info)?;
        }
        out.pad(self.alignment()).map_err(|e| Error::new(Subject::File, Rule::Io(e.kind())))
    }
}

fn put_kv<W: Write>(out: &mut Out<W>, kv: &Kv) -> io::Result<()> {
    out.text(kv.key().as_bytes())?;
    let values = kv.values();
    if kv.is_array() {
        out.value_type(ValueType::Array)?;
        out.value_type(values.elem_type())?;
        out.put(&(values.len() as u64).to_le_bytes())?;
    } else {
        out.value_type(values.elem_type())?;
    }
    match values {
        Values::Str(list) => list.iter().try_for_each(|text| out.text(text)),
        numbers => numbers.each_le(|bytes| out.put(bytes)),
    }
}

fn put_info<W: Write>(out: &mut Out<W>, info: &TensorInfo) -> io::Result<()> {
    out.text(info.name().as_bytes())?;
    let dims = &info.ne()[..info.n_dims()];
    out.put(&(dims.len() as u32).to_le_bytes())?;
    for n in dims {
        out.put(&n.to_le_bytes())?;
    }
    out.put(&info.type_id().to_le_bytes())?;
    out.put(&info.offset().to_le_bytes())
}
