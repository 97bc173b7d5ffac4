//! The parser. Every field is checked before anything depends on it.

use std::io::{Cursor as IoCursor, Read, Seek, SeekFrom};

use crate::context::{Gguf, Kv};
use crate::cursor::Cursor;
use crate::error::{About, Error, Label, Rule, Subject};
use crate::limits::Limits;
use crate::tensor::{check_elements, measure, pad, TensorInfo, MAX_DIMS};
use crate::value::{CText, Element, StrList, ValueType, Values};
use crate::{KEY_ALIGNMENT, MAGIC, VERSION};

/// Least bytes of a pair: key length, one byte of key, type, one byte of value.
const MIN_KV: u64 = 8 + 1 + 4 + 1;
/// Least bytes of a tensor info: name length, number of dimensions, type, offset.
const MIN_TENSOR: u64 = 8 + 4 + 4 + 8;
/// Bytes reserved at once for an array; beyond it grows with the bytes that arrive.
const RESERVE: usize = 1 << 20;

impl Gguf {
    /// Reads header, pairs and tensor infos from the source's present position, and leaves it at the start of the data
    /// section. Tensor data is not read, and need not be there ([`Gguf::check_data`]).
    pub fn read<R: Read + Seek>(source: &mut R, limits: &Limits) -> Result<Gguf, Error> {
        let mut cur = Cursor::new(source)?;
        let mut gguf = Gguf::new(limits);
        let (n_tensors, n_kv) = header(&mut cur, &mut gguf)?;
        read_kvs(&mut cur, &mut gguf, n_kv)?;
        read_tensors(&mut cur, &mut gguf, n_tensors)?;

        let mut at = cur.pos();
        if n_tensors > 0 {
            at = pad(at - cur.start(), gguf.alignment)
                .and_then(|p| p.checked_add(cur.start()))
                .ok_or(Error::at(at, Rule::DataSizeOverflow))?;
            if at > cur.end() {
                let end = cur.end();
                return Err(Error::at(cur.pos(), Rule::DataStart { at, end }));
            }
        }
        if at.checked_add(gguf.data_size).is_none() {
            return Err(Error::at(at, Rule::DataSizeOverflow));
        }
        gguf.data_offset = at;
        gguf.source_end = cur.end();
        cur.leave_at(at)?;
        Ok(gguf)
    }

    /// [`Gguf::read`] from memory.
    pub fn from_bytes(bytes: &[u8], limits: &Limits) -> Result<Gguf, Error> {
        Gguf::read(&mut IoCursor::new(bytes), limits)
    }

    /// Whether the source that was read holds the whole data section, up to the padding after the last tensor. To be
    /// asked before memory is taken for it.
    pub fn check_data(&self) -> Result<(), Error> {
        let left = self.source_end.saturating_sub(self.data_offset);
        let need = self.data_size;
        if need > left {
            return Err(Error::at(self.data_offset, Rule::DataTruncated { need, left }));
        }
        Ok(())
    }

    /// Reads the data section into `data`, which has [`Gguf::data_size`] bytes.
    pub fn read_data<R: Read + Seek>(&self, source: &mut R, data: &mut [u8]) -> Result<(), Error> {
        self.check_data()?;
        if data.len() as u64 != self.data_size {
            let (given, need) = (data.len() as u64, self.data_size);
            return Err(Error::at(self.data_offset, Rule::TensorDataLength { given, need }));
        }
        let at = self.data_offset;
        source.seek(SeekFrom::Start(at))?;
        source.read_exact(data).map_err(|e| Error::at(at, Rule::Io(e.kind())))
    }
}

/// Numbers of tensors and of pairs.
fn header<R: Read + Seek>(cur: &mut Cursor<R>, gguf: &mut Gguf) -> Result<(u64, u64), Error> {
    let at = cur.pos();
    let magic = cur.bytes4()?;
    if magic != MAGIC {
        return Err(Error::at(at, Rule::BadMagic(magic)));
    }

    let at = cur.pos();
    let version = cur.u32()?;
    if version & 0xffff == 0 {
        return Err(Error::at(at, Rule::OtherByteOrder(version)));
    }
    if version < 2 {
        return Err(Error::at(at, Rule::OldVersion(version)));
    }
    if version > VERSION {
        return Err(Error::at(at, Rule::NewVersion(version)));
    }
    gguf.version = version;

    let at = cur.pos();
    let n_tensors = cur.i64()?;
    let n_kv = cur.i64()?;
    let left = cur.left();
    let tensors = count(n_tensors, MIN_TENSOR, left).ok_or(Error::at(at, Rule::TensorCount { n: n_tensors, left }))?;
    let left = left - tensors * MIN_TENSOR;
    let kvs = count(n_kv, MIN_KV, left).ok_or(Error::at(at + 8, Rule::KvCount { n: n_kv, left }))?;
    Ok((tensors, kvs))
}

/// `n` as a count of records of at least `least` bytes each that lie in `left` bytes.
fn count(n: i64, least: u64, left: u64) -> Option<u64> {
    let n = u64::try_from(n).ok()?;
    (n <= left / least).then_some(n)
}

fn read_kvs<R: Read + Seek>(cur: &mut Cursor<R>, gguf: &mut Gguf, n_kv: u64) -> Result<(), Error> {
    let limits = gguf.limits;
    let mut places = Vec::new();
    for i in 0..n_kv {
        let at = cur.pos();
        let key = read_text(cur, limits.max_string).about(|| Subject::KvNumber(i))?;
        if key.as_bytes().is_empty() {
            return Err(Error::at(at, Rule::EmptyKey)).about(|| Subject::KvNumber(i));
        }
        let subject = || Subject::Key(Label::new(key.as_bytes()));
        if key.as_bytes().contains(&0) {
            return Err(Error::at(at, Rule::NulByte)).about(subject);
        }
        let (is_array, values) = read_value(cur, &limits).about(subject)?;
        push(&mut gguf.kvs, Kv::new(key, is_array, values))?;
        push(&mut places, at)?;
    }
    let order = sorted(gguf.kvs.len(), |i| gguf.kvs[i].key().as_bytes())?;
    if let Some(i) = first_repeat(&order, |i| gguf.kvs[i].key().as_bytes()) {
        let e = Error::key(gguf.kvs[i].key().as_bytes(), Rule::DuplicateKey);
        return Err(e.with_offset(places[i]));
    }
    if let Some(i) = gguf.find_key(KEY_ALIGNMENT.as_bytes()) {
        gguf.alignment = gguf.kvs[i].alignment().map_err(|e| e.with_offset(places[i]))?;
    }
    Ok(())
}

fn read_value<R: Read + Seek>(cur: &mut Cursor<R>, limits: &Limits) -> Result<(bool, Values), Error> {
    let mut ty = read_type(cur)?;
    let mut n = 1;
    let is_array = ty == ValueType::Array;
    if is_array {
        let at = cur.pos();
        ty = read_type(cur)?;
        if ty == ValueType::Array {
            return Err(Error::at(at, Rule::ArrayOfArrays));
        }
        let at = cur.pos();
        n = cur.u64()?;
        if n > limits.max_array {
            let max = limits.max_array;
            return Err(Error::at(at, Rule::ArrayLength { n, max }));
        }
    }
    let values = match ty {
        ValueType::U8 => read_numbers::<u8, R>(cur, n)?,
        ValueType::I8 => read_numbers::<i8, R>(cur, n)?,
        ValueType::U16 => read_numbers::<u16, R>(cur, n)?,
        ValueType::I16 => read_numbers::<i16, R>(cur, n)?,
        ValueType::U32 => read_numbers::<u32, R>(cur, n)?,
        ValueType::I32 => read_numbers::<i32, R>(cur, n)?,
        ValueType::F32 => read_numbers::<f32, R>(cur, n)?,
        ValueType::Bool => read_numbers::<bool, R>(cur, n)?,
        ValueType::U64 => read_numbers::<u64, R>(cur, n)?,
        ValueType::I64 => read_numbers::<i64, R>(cur, n)?,
        ValueType::F64 => read_numbers::<f64, R>(cur, n)?,
        ValueType::Str => read_strings(cur, n, limits.max_string)?,
        // An array of arrays was refused above.
        ValueType::Array => return Err(Error::at(cur.pos(), Rule::ArrayOfArrays)),
    };
    Ok((is_array, values))
}

fn read_type<R: Read + Seek>(cur: &mut Cursor<R>) -> Result<ValueType, Error> {
    let at = cur.pos();
    let id = cur.i32()?;
    ValueType::from_id(id).ok_or(Error::at(at, Rule::UnknownValueType(id)))
}

fn read_numbers<T: Element, R: Read + Seek>(cur: &mut Cursor<R>, n: u64) -> Result<Values, Error> {
    let mut left = n.saturating_mul(T::SIZE as u64);
    cur.require(left)?;
    let mut list = Vec::new();
    let first = usize::try_from(left).map_or(RESERVE, |l| l.min(RESERVE));
    list.try_reserve_exact(first / T::SIZE).map_err(|_| Error::memory(first))?;
    while left > 0 {
        let at = cur.pos();
        let chunk = cur.chunk(left)?;
        left -= chunk.len() as u64;
        list.try_reserve(chunk.len() / T::SIZE).map_err(|_| Error::memory(chunk.len()).with_offset(at))?;
        list.extend(chunk.chunks_exact(T::SIZE).map(T::from_le));
    }
    Ok(T::values(list))
}

fn read_strings<R: Read + Seek>(cur: &mut Cursor<R>, n: u64, max_string: u64) -> Result<Values, Error> {
    cur.require(n.saturating_mul(8))?;
    let mut list = StrList::new();
    for _ in 0..n {
        let mut left = read_length(cur, max_string)?;
        list.begin()?;
        while left > 0 {
            let chunk = cur.chunk(left)?;
            left -= chunk.len() as u64;
            list.append(chunk)?;
        }
        list.finish()?;
    }
    Ok(Values::Str(list))
}

/// Length of a string whose bytes follow.
fn read_length<R: Read + Seek>(cur: &mut Cursor<R>, max: u64) -> Result<u64, Error> {
    let at = cur.pos();
    let len = cur.u64()?;
    cur.require(len)?;
    if len > max {
        return Err(Error::at(at, Rule::StringLength { len, max }));
    }
    Ok(len)
}

fn read_text<R: Read + Seek>(cur: &mut Cursor<R>, max: u64) -> Result<CText, Error> {
    let mut left = read_length(cur, max)?;
    let mut text = Vec::new();
    let first = usize::try_from(left).map_or(RESERVE, |l| l.min(RESERVE)) + 1;
    text.try_reserve_exact(first).map_err(|_| Error::memory(first))?;
    while left > 0 {
        let chunk = cur.chunk(left)?;
        left -= chunk.len() as u64;
        text.try_reserve(chunk.len() + 1).map_err(|_| Error::memory(chunk.len()))?;
        text.extend_from_slice(chunk);
    }
    text.push(0);
    Ok(CText::from_vec_with_nul(text))
}

fn read_tensors<R: Read + Seek>(cur: &mut Cursor<R>, gguf: &mut Gguf, n_tensors: u64) -> Result<(), Error> {
    let mut places = Vec::new();
    for i in 0..n_tensors {
        let at = cur.pos();
        let name = read_name(cur, gguf.limits.max_name).about(|| Subject::TensorNumber(i))?;
        let mut info = read_shape(cur, &gguf.limits).about(|| Subject::Tensor(Label::new(name.as_bytes())))?;

        let place = cur.pos() - 8;
        let rule = match pad(info.nbytes, gguf.alignment)
            .and_then(|p| p.checked_add(gguf.data_size))
            .filter(|&size| usize::try_from(size).is_ok())
        {
            _ if info.offset != gguf.data_size => Err(Rule::Offset { found: info.offset, expected: gguf.data_size }),
            None => Err(Rule::DataSizeOverflow),
            Some(size) => Ok(size),
        };
        gguf.data_size = rule.map_err(|r| Error::tensor(name.as_bytes(), r).with_offset(place))?;
        info.name = name;
        push(&mut gguf.tensors, info)?;
        push(&mut places, at)?;
    }
    let order = sorted(gguf.tensors.len(), |i| gguf.tensors[i].name.as_bytes())?;
    if let Some(i) = first_repeat(&order, |i| gguf.tensors[i].name.as_bytes()) {
        let e = Error::tensor(gguf.tensors[i].name.as_bytes(), Rule::DuplicateTensor);
        return Err(e.with_offset(places[i]));
    }
    gguf.by_name = order;
    Ok(())
}

fn read_name<R: Read + Seek>(cur: &mut Cursor<R>, max_name: usize) -> Result<CText, Error> {
    let at = cur.pos();
    // Refused by its own rule before the string's bytes are asked for.
    let max = (max_name as u64).saturating_sub(1);
    let name = read_text(cur, max).map_err(|mut e| {
        if let Rule::StringLength { len, max } = e.rule {
            e.rule = Rule::NameLength { len, max };
        }
        e
    })?;
    if name.as_bytes().contains(&0) {
        return Err(Error::at(at, Rule::NulByte));
    }
    Ok(name)
}

/// Shape, type and offset; the name is left empty.
fn read_shape<R: Read + Seek>(cur: &mut Cursor<R>, limits: &Limits) -> Result<TensorInfo, Error> {
    let at = cur.pos();
    let n_dims = cur.u32()?;
    if n_dims as usize > MAX_DIMS {
        return Err(Error::at(at, Rule::DimCount(n_dims)));
    }
    let shape_at = cur.pos();
    let mut ne = [1i64; MAX_DIMS];
    for n in ne.iter_mut().take(n_dims as usize) {
        *n = cur.i64()?;
    }
    check_elements(ne).map_err(|r| Error::at(shape_at, r))?;

    let at = cur.pos();
    let type_id = cur.i32()?;
    let layout = (limits.type_layout)(type_id)
        .filter(|l| l.block_size > 0)
        .ok_or(Error::at(at, Rule::UnknownTensorType(type_id)))?;
    let nbytes = measure(ne, layout).map_err(|r| Error::at(shape_at, r))?;
    let offset = cur.u64()?;
    Ok(TensorInfo { name: CText::default(), ne, type_id, nbytes, offset })
}

fn push<T>(list: &mut Vec<T>, item: T) -> Result<(), Error> {
    list.try_reserve(1).map_err(|_| Error::memory(std::mem::size_of::<T>()))?;
    list.push(item);
    Ok(())
}

/// Numbers 0 to n - 1 in the order of their names, equal names in the order of the numbers.
fn sorted<'a>(n: usize, name: impl Fn(usize) -> &'a [u8]) -> Result<Vec<usize>, Error> {
    let mut order = Vec::new();
    order.try_reserve_exact(n).map_err(|_| Error::memory(n.saturating_mul(8)))?;
    order.extend(0..n);
    order.sort_unstable_by(|&a, &b| name(a).cmp(name(b)).then(a.cmp(&b)));
    Ok(order)
}

/// The lowest number whose name an earlier one has too.
fn first_repeat<'a>(order: &[usize], name: impl Fn(usize) -> &'a [u8]) -> Option<usize> {
    order.windows(2).filter(|w| name(w[0]) == name(w[1])).map(|w| w[1]).min()
}
