//! The one error type: where, about what, and which rule was broken.

use std::fmt;
use std::io;

use crate::value::ValueType;

/// The head of a key or name; longer ones are cut. Empty when there was no memory for it.
#[derive(Clone, PartialEq, Eq)]
pub struct Label {
    text: Vec<u8>,
    cut: bool,
}

impl Label {
    const MAX: usize = 64;

    pub(crate) fn new(name: &[u8]) -> Self {
        let head = &name[..name.len().min(Self::MAX)];
        let mut text = Vec::new();
        // An error about lack of memory must not need memory.
        if text.try_reserve_exact(head.len()).is_ok() {
            text.extend_from_slice(head);
        }
        let cut = name.len() > text.len();
        Label { text, cut }
    }

    /// The bytes kept, at most 64.
    pub fn as_bytes(&self) -> &[u8] {
        &self.text
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Names come out of files: control bytes must not reach a terminal.
        write!(f, "'{}", self.as_bytes().escape_ascii())?;
        f.write_str(if self.cut { "...'" } else { "'" })
    }
}

impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What an error is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The header, the data section or the file as a whole.
    File,
    /// The pair of this number, before its key is known.
    KvNumber(u64),
    /// The pair with this key.
    Key(Label),
    /// The tensor info of this number, before its name is known.
    TensorNumber(u64),
    /// The tensor of this name.
    Tensor(Label),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::File => f.write_str("file"),
            Subject::KvNumber(i) => write!(f, "key-value pair {i}"),
            Subject::Key(k) => write!(f, "key {k}"),
            Subject::TensorNumber(i) => write!(f, "tensor {i}"),
            Subject::Tensor(n) => write!(f, "tensor {n}"),
        }
    }
}

/// The rule that was broken. Sizes and counts are in bytes and elements as named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs)] // each is spelled out by its text below
pub enum Rule {
    Io(io::ErrorKind),
    OutOfMemory { bytes: u64 },
    Truncated { need: u64, left: u64 },
    BadMagic([u8; 4]),
    OtherByteOrder(u32),
    OldVersion(u32),
    NewVersion(u32),
    KvCount { n: i64, left: u64 },
    TensorCount { n: i64, left: u64 },
    StringLength { len: u64, max: u64 },
    ArrayLength { n: u64, max: u64 },
    EmptyKey,
    NulByte,
    DuplicateKey,
    DuplicateTensor,
    UnknownValueType(i32),
    ArrayOfArrays,
    AlignmentType(ValueType),
    AlignmentValue(u32),
    NameLength { len: u64, max: u64 },
    DimCount(u32),
    NegativeDim { dim: u8, ne: i64 },
    ElementOverflow([i64; 4]),
    SizeOverflow([i64; 4]),
    UnknownTensorType(i32),
    RaggedBlocks { ne0: i64, block: u64 },
    Offset { found: u64, expected: u64 },
    DataSizeOverflow,
    DataStart { at: u64, end: u64 },
    DataTruncated { need: u64, left: u64 },
    NoSuchId(i64),
    NoSuchName,
    WrongType { have: ValueType, want: ValueType },
    NotArray(ValueType),
    NotSingle(u64),
    RaggedBytes { len: u64, elem: u64 },
    TensorDataLength { given: u64, need: u64 },
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Rule::*;
        match *self {
            Io(kind) => write!(f, "input or output failed ({kind})"),
            OutOfMemory { bytes } => write!(f, "no memory for {bytes} bytes"),
            Truncated { need, left } => write!(f, "{need} bytes needed, {left} left in the file"),
            BadMagic(m) => write!(f, "the file starts with '{}', not 'GGUF'", m.escape_ascii()),
            OtherByteOrder(v) => write!(f, "version {v} is no version, or the file has the other byte order"),
            OldVersion(v) => write!(f, "version {v} is not supported, the lowest is 2"),
            NewVersion(v) => write!(f, "version {v} is not supported, the highest is {}", crate::VERSION),
            KvCount { n, left } => write!(f, "{n} key-value pairs cannot lie in {left} bytes"),
            TensorCount { n, left } => write!(f, "{n} tensor infos cannot lie in {left} bytes"),
            StringLength { len, max } => {
                write!(f, "string length {len} is above the limit of {max}")
            }
            ArrayLength { n, max } => write!(f, "array length {n} is above the limit of {max}"),
            EmptyKey => f.write_str("a key must not be empty"),
            NulByte => f.write_str("a key or name must not hold a NUL byte"),
            DuplicateKey => f.write_str("a key must not be given twice"),
            DuplicateTensor => f.write_str("a tensor name must not be given twice"),
            UnknownValueType(t) => write!(f, "{t} is no value type"),
            ArrayOfArrays => f.write_str("arrays of arrays are not supported"),
            AlignmentType(t) => write!(f, "the alignment must be of type u32, not {}", t.name()),
            AlignmentValue(a) => write!(f, "alignment {a} is not a power of two"),
            NameLength { len, max } => {
                write!(f, "name length {len} is above the limit of {max}")
            }
            DimCount(n) => write!(f, "{n} dimensions are more than 4"),
            NegativeDim { dim, ne } => write!(f, "dimension {dim} has the negative size {ne}"),
            ElementOverflow(ne) => write!(f, "shape {ne:?} has too many elements to count"),
            SizeOverflow(ne) => write!(f, "shape {ne:?} has too many bytes to address"),
            UnknownTensorType(t) => write!(f, "{t} is no tensor type"),
            RaggedBlocks { ne0, block } => write!(f, "rows of {ne0} elements are not whole blocks of {block} elements"),
            Offset { found, expected } => {
                write!(f, "the data offset is {found} and should be {expected}")
            }
            DataSizeOverflow => f.write_str("the data section has too many bytes to address"),
            DataStart { at, end } => {
                write!(f, "the data section starts at byte {at}, after the end of the file at {end}")
            }
            DataTruncated { need, left } => write!(f, "the data section has {need} bytes, {left} left in the file"),
            NoSuchId(id) => write!(f, "there is no entry {id}"),
            NoSuchName => f.write_str("there is no such entry"),
            WrongType { have, want } => {
                write!(f, "the type is {} and not {}", have.name(), want.name())
            }
            NotArray(t) => write!(f, "the value is a single {} and no array", t.name()),
            NotSingle(n) => write!(f, "a single value is needed and there are {n}"),
            RaggedBytes { len, elem } => {
                write!(f, "{len} bytes are not whole elements of {elem} bytes")
            }
            TensorDataLength { given, need } => {
                write!(f, "{given} bytes of tensor data were given, {need} needed")
            }
        }
    }
}

/// Why a file was refused, an edit not made, or writing stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Position of the offending field in the source, where there is one.
    pub offset: Option<u64>,
    /// What the error is about.
    pub subject: Subject,
    /// The rule broken.
    pub rule: Rule,
}

impl Error {
    pub(crate) fn new(subject: Subject, rule: Rule) -> Self {
        Error { offset: None, subject, rule }
    }

    pub(crate) fn at(offset: u64, rule: Rule) -> Self {
        Error { offset: Some(offset), subject: Subject::File, rule }
    }

    pub(crate) fn key(key: &[u8], rule: Rule) -> Self {
        Error::new(Subject::Key(Label::new(key)), rule)
    }

    pub(crate) fn tensor(name: &[u8], rule: Rule) -> Self {
        Error::new(Subject::Tensor(Label::new(name)), rule)
    }

    pub(crate) fn memory(bytes: usize) -> Self {
        Error::new(Subject::File, Rule::OutOfMemory { bytes: bytes as u64 })
    }

    pub(crate) fn with_offset(mut self, offset: u64) -> Self {
        self.offset = Some(offset);
        self
    }
}

impl From<io::Error> for Error {
    fn from(e: io::Error) -> Self {
        Error::new(Subject::File, Rule::Io(e.kind()))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.offset {
            Some(at) => write!(f, "gguf: {} at byte {at}: {}", self.subject, self.rule),
            None => write!(f, "gguf: {}: {}", self.subject, self.rule),
        }
    }
}

impl std::error::Error for Error {}

/// Names the subject of errors that come from below, where only the position is known.
pub(crate) trait About<T> {
    fn about(self, subject: impl FnOnce() -> Subject) -> Result<T, Error>;
}

impl<T> About<T> for Result<T, Error> {
    fn about(self, subject: impl FnOnce() -> Subject) -> Result<T, Error> {
        self.map_err(|mut e| {
            e.subject = subject();
            e
        })
    }
}
