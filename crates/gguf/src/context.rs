//! What a file says, and the calls that ask and edit it.

use crate::error::{Error, Rule, Subject};
use crate::limits::Limits;
use crate::tensor::{measure, pad, TensorInfo};
use crate::value::{CText, Element, StrList, ValueType, Values};
use crate::{DEFAULT_ALIGNMENT, KEY_ALIGNMENT, VERSION};

/// A key with its value or array.
#[derive(Clone, Debug, PartialEq)]
pub struct Kv {
    key: CText,
    is_array: bool,
    values: Values,
}

impl Kv {
    pub(crate) fn new(key: CText, is_array: bool, values: Values) -> Self {
        Kv { key, is_array, values }
    }

    /// The key; its C string stays where it is until the pair is replaced or removed.
    pub fn key(&self) -> &CText {
        &self.key
    }

    /// Whether the value is an array.
    pub fn is_array(&self) -> bool {
        self.is_array
    }

    /// `Array` for arrays, else the type of the value.
    pub fn value_type(&self) -> ValueType {
        if self.is_array {
            ValueType::Array
        } else {
            self.values.elem_type()
        }
    }

    /// The elements: of the array, or the one value.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// Type of an array's elements. Error: no array.
    pub fn array_type(&self) -> Result<ValueType, Error> {
        let ty = self.values.elem_type();
        if self.is_array {
            Ok(ty)
        } else {
            Err(self.error(Rule::NotArray(ty)))
        }
    }

    /// The one number or bool (an array of one element counts too). Errors: another type, or not one element.
    pub fn scalar<T: Element>(&self) -> Result<T, Error> {
        match T::slice(&self.values) {
            Some(&[x]) => Ok(x),
            Some(list) => Err(self.error(Rule::NotSingle(list.len() as u64))),
            None => Err(self.wrong_type(T::TYPE)),
        }
    }

    /// The one string with its closing NUL. Errors: as [`Kv::scalar`].
    pub fn string_with_nul(&self) -> Result<&[u8], Error> {
        let list = self.strings()?;
        match (list.get_with_nul(0), list.len()) {
            (Some(text), 1) => Ok(text),
            (_, n) => Err(self.error(Rule::NotSingle(n as u64))),
        }
    }

    /// The strings. Error: another type.
    pub fn strings(&self) -> Result<&StrList, Error> {
        self.values.as_strings().ok_or_else(|| self.wrong_type(ValueType::Str))
    }

    /// The value of `general.alignment`, when it is one.
    pub(crate) fn alignment(&self) -> Result<u32, Error> {
        if self.value_type() != ValueType::U32 {
            return Err(self.error(Rule::AlignmentType(self.value_type())));
        }
        let a: u32 = self.scalar()?;
        if !a.is_power_of_two() {
            return Err(self.error(Rule::AlignmentValue(a)));
        }
        Ok(a)
    }

    fn wrong_type(&self, want: ValueType) -> Error {
        let have = self.values.elem_type();
        self.error(Rule::WrongType { have, want })
    }

    fn error(&self, rule: Rule) -> Error {
        Error::key(self.key.as_bytes(), rule)
    }
}

/// The meta data of a gguf file: key-value pairs and tensor infos, each in the order of the file.
#[derive(Clone, Debug)]
pub struct Gguf {
    pub(crate) limits: Limits,
    pub(crate) version: u32,
    pub(crate) alignment: u32,
    pub(crate) data_offset: u64,
    pub(crate) data_size: u64,
    pub(crate) source_end: u64,
    pub(crate) kvs: Vec<Kv>,
    pub(crate) tensors: Vec<TensorInfo>,
    /// Tensor numbers in the order of their names, for the search.
    pub(crate) by_name: Vec<usize>,
}

impl Gguf {
    /// An empty file of version 3. `limits` hold for tensors that are added.
    pub fn new(limits: &Limits) -> Self {
        Gguf {
            limits: *limits,
            version: VERSION,
            alignment: DEFAULT_ALIGNMENT,
            data_offset: 0,
            data_size: 0,
            source_end: 0,
            kvs: Vec::new(),
            tensors: Vec::new(),
            by_name: Vec::new(),
        }
    }

    /// Version of the file read, 3 for new ones.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Alignment of tensor data in bytes, a power of two.
    pub fn alignment(&self) -> u32 {
        self.alignment
    }

    /// Position of the data section in the source that was read (in that stream, so it counts what stood before the
    /// file); 0 for new ones. Padded to the alignment when there is a tensor.
    pub fn data_offset(&self) -> u64 {
        self.data_offset
    }

    /// Bytes of the data section, with the padding after each tensor.
    pub fn data_size(&self) -> u64 {
        self.data_size
    }

    /// The pairs, in the order of the file.
    pub fn kvs(&self) -> &[Kv] {
        &self.kvs
    }

    /// Pair `id`. Error: there is none.
    pub fn kv(&self, id: i64) -> Result<&Kv, Error> {
        usize::try_from(id).ok().and_then(|i| self.kvs.get(i)).ok_or(Error::new(Subject::File, Rule::NoSuchId(id)))
    }

    /// Number of the pair with this key.
    pub fn find_key(&self, key: &[u8]) -> Option<usize> {
        self.kvs.iter().position(|kv| kv.key.as_bytes() == key)
    }

    /// The tensors, in the order of the file.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// Tensor `id`. Error: there is none.
    pub fn tensor(&self, id: i64) -> Result<&TensorInfo, Error> {
        usize::try_from(id).ok().and_then(|i| self.tensors.get(i)).ok_or(Error::new(Subject::File, Rule::NoSuchId(id)))
    }

    /// Number of the tensor of this name.
    pub fn find_tensor(&self, name: &[u8]) -> Option<usize> {
        self.name_slot(name).ok().map(|slot| self.by_name[slot])
    }

    fn name_slot(&self, name: &[u8]) -> Result<usize, usize> {
        self.by_name.binary_search_by(|&i| self.tensors[i].name.as_bytes().cmp(name))
    }

    /// Removes a pair; gives the number that it had.
    pub fn remove_key(&mut self, key: &[u8]) -> Result<Option<usize>, Error> {
        let Some(id) = self.find_key(key) else {
            return Ok(None);
        };
        if key == KEY_ALIGNMENT.as_bytes() {
            self.realign(DEFAULT_ALIGNMENT)?;
        }
        self.kvs.remove(id);
        Ok(Some(id))
    }

    /// Sets a pair: one with the same key goes, the new one comes last. `values` of a single value has one element.
    /// Errors: an empty key or one with a NUL byte, not one element, an alignment that is no `u32` power of two. After
    /// an error nothing has changed.
    pub fn set(&mut self, key: &[u8], is_array: bool, values: Values) -> Result<(), Error> {
        if key.is_empty() {
            return Err(Error::key(key, Rule::EmptyKey));
        }
        if key.contains(&0) {
            return Err(Error::key(key, Rule::NulByte));
        }
        if !is_array && values.len() != 1 {
            return Err(Error::key(key, Rule::NotSingle(values.len() as u64)));
        }
        let kv = Kv::new(CText::new(key)?, is_array, values);
        self.kvs.try_reserve(1).map_err(|_| Error::memory(std::mem::size_of::<Kv>()))?;
        if key == KEY_ALIGNMENT.as_bytes() {
            self.realign(kv.alignment()?)?;
        }
        if let Some(id) = self.find_key(key) {
            self.kvs.remove(id);
        }
        self.kvs.push(kv);
        Ok(())
    }

    /// Sets a single number or bool. Errors: as [`Gguf::set`].
    pub fn set_scalar<T: Element>(&mut self, key: &[u8], x: T) -> Result<(), Error> {
        self.set(key, false, Values::one(x)?)
    }

    /// Sets a single string. Errors: as [`Gguf::set`].
    pub fn set_str(&mut self, key: &[u8], text: &[u8]) -> Result<(), Error> {
        self.set(key, false, Values::one_str(text)?)
    }

    /// Sets an array. Errors: as [`Gguf::set`].
    pub fn set_array(&mut self, key: &[u8], values: Values) -> Result<(), Error> {
        self.set(key, true, values)
    }

    /// Sets copies of all pairs of `from`, in their order. Errors: as [`Gguf::set`]; pairs before it stay set.
    pub fn set_kv(&mut self, from: &Gguf) -> Result<(), Error> {
        for kv in &from.kvs {
            self.set(kv.key.as_bytes(), kv.is_array, kv.values.try_clone()?)?;
        }
        Ok(())
    }

    /// Appends a contiguous tensor; gives its number. Errors: a name that is there already, too long or with a NUL
    /// byte, an unknown type, a shape that is negative, too large or no whole blocks.
    pub fn add_tensor(&mut self, name: &[u8], type_id: i32, ne: [i64; 4]) -> Result<usize, Error> {
        let fail = |rule| Error::tensor(name, rule);
        if name.len() >= self.limits.max_name {
            return Err(fail(Rule::NameLength {
                len: name.len() as u64,
                max: (self.limits.max_name as u64).saturating_sub(1),
            }));
        }
        if name.contains(&0) {
            return Err(fail(Rule::NulByte));
        }
        let slot = match self.name_slot(name) {
            Ok(_) => return Err(fail(Rule::DuplicateTensor)),
            Err(slot) => slot,
        };
        let nbytes = self.bytes_of(type_id, ne).map_err(fail)?;
        let size = grow(self.data_size, nbytes, self.alignment).map_err(fail)?;
        let info = TensorInfo { name: CText::new(name)?, ne, type_id, nbytes, offset: self.data_size };
        self.by_name.try_reserve(1).map_err(|_| Error::memory(8))?;
        self.tensors.try_reserve(1).map_err(|_| Error::memory(std::mem::size_of::<TensorInfo>()))?;
        let id = self.tensors.len();
        self.by_name.insert(slot, id);
        self.tensors.push(info);
        self.data_size = size;
        Ok(id)
    }

    /// Changes a tensor's type and moves the tensors behind it. Errors: no such tensor, an unknown type, rows that are
    /// no whole blocks of it, a size that overflows. After an error nothing has changed.
    pub fn set_tensor_type(&mut self, name: &[u8], type_id: i32) -> Result<(), Error> {
        let fail = |rule| Error::tensor(name, rule);
        let id = self.find_tensor(name).ok_or_else(|| fail(Rule::NoSuchName))?;
        let nbytes = self.bytes_of(type_id, self.tensors[id].ne).map_err(fail)?;
        let old = self.tensors[id].nbytes;
        self.tensors[id].nbytes = nbytes;
        if let Err(e) = self.relay(self.alignment) {
            self.tensors[id].nbytes = old;
            return Err(e);
        }
        self.tensors[id].type_id = type_id;
        Ok(())
    }

    fn bytes_of(&self, type_id: i32, ne: [i64; 4]) -> Result<u64, Rule> {
        let layout =
            (self.limits.type_layout)(type_id).filter(|l| l.block_size > 0).ok_or(Rule::UnknownTensorType(type_id))?;
        measure(ne, layout)
    }

    fn realign(&mut self, alignment: u32) -> Result<(), Error> {
        if alignment != self.alignment {
            self.relay(alignment)?;
            self.alignment = alignment;
        }
        Ok(())
    }

    /// Lays the tensors one after the other; changes nothing when that overflows.
    fn relay(&mut self, alignment: u32) -> Result<(), Error> {
        let mut size = 0;
        for t in &self.tensors {
            size = grow(size, t.nbytes, alignment).map_err(|r| Error::tensor(t.name.as_bytes(), r))?;
        }
        self.data_size = size;
        let mut offset = 0;
        for t in &mut self.tensors {
            t.offset = offset;
            // Cannot overflow: the first pass went through the same sums.
            offset = grow(offset, t.nbytes, alignment).unwrap_or(size);
        }
        Ok(())
    }
}

/// Size of the data section after `nbytes` more and their padding.
fn grow(size: u64, nbytes: u64, alignment: u32) -> Result<u64, Rule> {
    pad(nbytes, alignment)
        .and_then(|p| p.checked_add(size))
        .filter(|&s| usize::try_from(s).is_ok())
        .ok_or(Rule::DataSizeOverflow)
}
