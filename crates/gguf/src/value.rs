//! Values of key-value pairs: one list of elements per type. A single value is a list of one, so that its address on
//! the heap stays while other pairs come and go.

use crate::error::{Error, Rule, Subject};

/// Types of values, with the numbers of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
#[allow(missing_docs)]
pub enum ValueType {
    U8 = 0,
    I8 = 1,
    U16 = 2,
    I16 = 3,
    U32 = 4,
    I32 = 5,
    F32 = 6,
    Bool = 7,
    Str = 8,
    Array = 9,
    U64 = 10,
    I64 = 11,
    F64 = 12,
}

impl ValueType {
    /// All types, in the order of their numbers.
    pub const ALL: [ValueType; 13] = [
        ValueType::U8,
        ValueType::I8,
        ValueType::U16,
        ValueType::I16,
        ValueType::U32,
        ValueType::I32,
        ValueType::F32,
        ValueType::Bool,
        ValueType::Str,
        ValueType::Array,
        ValueType::U64,
        ValueType::I64,
        ValueType::F64,
    ];

    /// The type with this number in a file, or `None`.
    pub fn from_id(id: i32) -> Option<Self> {
        usize::try_from(id).ok().and_then(|i| Self::ALL.get(i).copied())
    }

    /// The number in a file.
    pub fn id(self) -> i32 {
        self as i32
    }

    /// The short name, as `gguf_type_name` gives it.
    pub fn name(self) -> &'static str {
        match self {
            ValueType::U8 => "u8",
            ValueType::I8 => "i8",
            ValueType::U16 => "u16",
            ValueType::I16 => "i16",
            ValueType::U32 => "u32",
            ValueType::I32 => "i32",
            ValueType::F32 => "f32",
            ValueType::Bool => "bool",
            ValueType::Str => "str",
            ValueType::Array => "arr",
            ValueType::U64 => "u64",
            ValueType::I64 => "i64",
            ValueType::F64 => "f64",
        }
    }

    /// Bytes of an element in a file and in memory; 0 for strings and arrays, which have no fixed size.
    pub fn size(self) -> usize {
        match self {
            ValueType::U8 | ValueType::I8 | ValueType::Bool => 1,
            ValueType::U16 | ValueType::I16 => 2,
            ValueType::U32 | ValueType::I32 | ValueType::F32 => 4,
            ValueType::U64 | ValueType::I64 | ValueType::F64 => 8,
            ValueType::Str | ValueType::Array => 0,
        }
    }
}

/// A string with a NUL after its last byte; it may hold further NULs.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct CText {
    with_nul: Vec<u8>,
}

impl CText {
    /// Copies `text` (without the closing NUL). Fails when there is no memory.
    pub fn new(text: &[u8]) -> Result<Self, Error> {
        let bytes = text.len().saturating_add(1);
        let mut with_nul = Vec::new();
        with_nul.try_reserve_exact(bytes).map_err(|_| Error::memory(bytes))?;
        with_nul.extend_from_slice(text);
        with_nul.push(0);
        Ok(CText { with_nul })
    }

    /// Takes bytes that end with the closing NUL.
    pub(crate) fn from_vec_with_nul(with_nul: Vec<u8>) -> Self {
        debug_assert_eq!(with_nul.last(), Some(&0));
        CText { with_nul }
    }

    /// The text without its closing NUL.
    pub fn as_bytes(&self) -> &[u8] {
        self.with_nul.split_last().map_or(&[], |(_, head)| head)
    }

    /// The text with its closing NUL: the pointer of this slice is a C string that lives as long as the pair.
    pub fn as_bytes_with_nul(&self) -> &[u8] {
        if self.with_nul.is_empty() {
            &[0]
        } else {
            &self.with_nul
        }
    }
}

impl std::fmt::Debug for CText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\"{}\"", self.as_bytes().escape_ascii())
    }
}

/// Strings in one block of memory, each with a NUL after its last byte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StrList {
    blob: Vec<u8>,
    starts: Vec<usize>,
}

impl StrList {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// A list of copies of `items`. Fails when there is no memory.
    pub fn from_items<S: AsRef<[u8]>>(items: &[S]) -> Result<Self, Error> {
        let mut list = Self::new();
        for item in items {
            list.push(item.as_ref())?;
        }
        Ok(list)
    }

    /// Appends a copy of `text`. Fails when there is no memory.
    pub fn push(&mut self, text: &[u8]) -> Result<(), Error> {
        let start = self.begin()?;
        if let Err(e) = self.append(text).and_then(|()| self.finish()) {
            self.blob.truncate(start);
            self.starts.pop();
            return Err(e);
        }
        Ok(())
    }

    /// Starts an item; pieces follow by `append`, the end by `finish`.
    pub(crate) fn begin(&mut self) -> Result<usize, Error> {
        let start = self.blob.len();
        self.starts.try_reserve(1).map_err(|_| Error::memory(8))?;
        self.starts.push(start);
        Ok(start)
    }

    pub(crate) fn append(&mut self, piece: &[u8]) -> Result<(), Error> {
        self.blob.try_reserve(piece.len()).map_err(|_| Error::memory(piece.len()))?;
        self.blob.extend_from_slice(piece);
        Ok(())
    }

    pub(crate) fn finish(&mut self) -> Result<(), Error> {
        self.append(&[0])
    }

    /// Number of strings.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether there is no string.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// String `i` with its closing NUL; the slice's pointer is a C string.
    pub fn get_with_nul(&self, i: usize) -> Option<&[u8]> {
        let start = *self.starts.get(i)?;
        let end = self.starts.get(i + 1).copied().unwrap_or(self.blob.len());
        self.blob.get(start..end)
    }

    /// String `i` without its closing NUL.
    pub fn get(&self, i: usize) -> Option<&[u8]> {
        self.get_with_nul(i)?.split_last().map(|(_, head)| head)
    }

    /// The strings without their closing NULs.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> + '_ {
        (0..self.len()).filter_map(|i| self.get(i))
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A number or bool that values hold.
pub trait Element: Copy + sealed::Sealed + 'static {
    /// Its type in the format.
    const TYPE: ValueType;
    /// Bytes of an element.
    const SIZE: usize;
    /// The elements, where `values` has this type.
    fn slice(values: &Values) -> Option<&[Self]>;
    /// A list of elements as values.
    fn values(list: Vec<Self>) -> Values;
    /// Decodes from `SIZE` little-endian bytes; missing bytes are zero.
    fn from_le(bytes: &[u8]) -> Self;
    /// Decodes from `SIZE` bytes in the machine's order; missing bytes are zero.
    fn from_ne(bytes: &[u8]) -> Self;
    /// The little-endian bytes, the first `SIZE` of eight.
    fn to_le(self) -> [u8; 8];
}

fn fixed<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut out = [0; N];
    for (to, from) in out.iter_mut().zip(bytes) {
        *to = *from;
    }
    out
}

macro_rules! values {
    ($($variant:ident: $t:ty, $from_le:expr, $from_ne:expr, $to_le:expr;)*) => {
        /// A list of elements of one type. Numbers lie packed and aligned for their type, bools as bytes 0 and 1.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs)]
        pub enum Values {
            $($variant(Vec<$t>),)*
            Str(StrList),
        }

        impl Values {
            /// Type of the elements; never [`ValueType::Array`].
            pub fn elem_type(&self) -> ValueType {
                match self {
                    $(Values::$variant(_) => ValueType::$variant,)*
                    Values::Str(_) => ValueType::Str,
                }
            }

            /// Number of elements.
            pub fn len(&self) -> usize {
                match self {
                    $(Values::$variant(v) => v.len(),)*
                    Values::Str(v) => v.len(),
                }
            }

            /// Address of the first element, aligned for its type and valid until the pair is replaced or removed;
            /// `None` for strings. Not to be read from when the list is empty.
            pub fn data_ptr(&self) -> Option<*const u8> {
                match self {
                    $(Values::$variant(v) => Some(v.as_ptr().cast()),)*
                    Values::Str(_) => None,
                }
            }

            /// Elements of type `ty` from memory in the machine's byte order, any alignment; bools other than 0 become
            /// 1. Errors: `ty` is `Str` or `Array`, or `bytes` is not whole elements.
            pub fn from_ne_bytes(ty: ValueType, bytes: &[u8]) -> Result<Values, Error> {
                match ty {
                    $(ValueType::$variant => from_ne_bytes::<$t>(bytes),)*
                    ValueType::Str | ValueType::Array => {
                        Err(Error::new(Subject::File, Rule::UnknownValueType(ty.id())))
                    }
                }
            }

            /// A copy. Fails when there is no memory.
            pub fn try_clone(&self) -> Result<Values, Error> {
                match self {
                    $(Values::$variant(v) => try_copy(v).map(Values::$variant),)*
                    Values::Str(v) => Ok(Values::Str(StrList {
                        blob: try_copy(&v.blob)?,
                        starts: try_copy(&v.starts)?,
                    })),
                }
            }

            /// Calls `put` with each element's little-endian bytes; strings have none here.
            pub(crate) fn each_le<E>(&self, mut put: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
                match self {
                    $(Values::$variant(v) => {
                        for x in v {
                            put(&Element::to_le(*x)[..<$t as Element>::SIZE])?;
                        }
                    })*
                    Values::Str(_) => {}
                }
                Ok(())
            }
        }

        $(
            impl sealed::Sealed for $t {}
            impl Element for $t {
                const TYPE: ValueType = ValueType::$variant;
                const SIZE: usize = std::mem::size_of::<$t>();
                fn slice(values: &Values) -> Option<&[Self]> {
                    match values {
                        Values::$variant(v) => Some(v),
                        _ => None,
                    }
                }
                fn values(list: Vec<Self>) -> Values {
                    Values::$variant(list)
                }
                fn from_le(bytes: &[u8]) -> Self {
                    $from_le(fixed(bytes))
                }
                fn from_ne(bytes: &[u8]) -> Self {
                    $from_ne(fixed(bytes))
                }
                fn to_le(self) -> [u8; 8] {
                    fixed(&$to_le(self))
                }
            }
        )*
    };
}

fn bool_from(b: [u8; 1]) -> bool {
    b[0] != 0
}

values! {
    U8: u8, u8::from_le_bytes, u8::from_ne_bytes, u8::to_le_bytes;
    I8: i8, i8::from_le_bytes, i8::from_ne_bytes, i8::to_le_bytes;
    U16: u16, u16::from_le_bytes, u16::from_ne_bytes, u16::to_le_bytes;
    I16: i16, i16::from_le_bytes, i16::from_ne_bytes, i16::to_le_bytes;
    U32: u32, u32::from_le_bytes, u32::from_ne_bytes, u32::to_le_bytes;
    I32: i32, i32::from_le_bytes, i32::from_ne_bytes, i32::to_le_bytes;
    F32: f32, f32::from_le_bytes, f32::from_ne_bytes, f32::to_le_bytes;
    Bool: bool, bool_from, bool_from, |b: bool| [u8::from(b)];
    U64: u64, u64::from_le_bytes, u64::from_ne_bytes, u64::to_le_bytes;
    I64: i64, i64::from_le_bytes, i64::from_ne_bytes, i64::to_le_bytes;
    F64: f64, f64::from_le_bytes, f64::from_ne_bytes, f64::to_le_bytes;
}

impl Values {
    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements, where they have type `T`.
    pub fn as_slice<T: Element>(&self) -> Option<&[T]> {
        T::slice(self)
    }

    /// The strings, where they are strings.
    pub fn as_strings(&self) -> Option<&StrList> {
        match self {
            Values::Str(v) => Some(v),
            _ => None,
        }
    }

    /// A list of one number or bool. Fails when there is no memory.
    pub fn one<T: Element>(x: T) -> Result<Values, Error> {
        Ok(T::values(try_copy(&[x])?))
    }

    /// A list of one string. Fails when there is no memory.
    pub fn one_str(text: &[u8]) -> Result<Values, Error> {
        Ok(Values::Str(StrList::from_items(&[text])?))
    }
}

fn try_copy<T: Copy>(from: &[T]) -> Result<Vec<T>, Error> {
    let mut v = Vec::new();
    v.try_reserve_exact(from.len()).map_err(|_| Error::memory(std::mem::size_of_val(from)))?;
    v.extend_from_slice(from);
    Ok(v)
}

fn from_ne_bytes<T: Element>(bytes: &[u8]) -> Result<Values, Error> {
    if !bytes.len().is_multiple_of(T::SIZE) {
        return Err(Error::new(Subject::File, Rule::RaggedBytes { len: bytes.len() as u64, elem: T::SIZE as u64 }));
    }
    let mut list = Vec::new();
    list.try_reserve_exact(bytes.len() / T::SIZE).map_err(|_| Error::memory(bytes.len()))?;
    list.extend(bytes.chunks_exact(T::SIZE).map(T::from_ne));
    Ok(T::values(list))
}
