//! What a shape rule answers: the node to be made, before it has a place.

use crate::error::Error;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

/// Slots of `op_params`.
pub const N_PARAMS: usize = GGML_MAX_OP_PARAMS / 4;

/// Where the elements of a node lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In memory of its own.
    Own,
    /// In that of source `of`, `offs` bytes further on; the bounds are checked.
    View {
        /// Index of the source.
        of: usize,
        /// Bytes from the source's first element.
        offs: usize,
    },
    /// All of source `of`, in whatever order.
    Alias {
        /// Index of the source.
        of: usize,
    },
}

/// How a node gets its first name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// None.
    Blank,
    /// The name of source `of`, a space, and the word in brackets.
    After {
        /// Index of the source.
        of: usize,
        /// What was done to it.
        word: &'static str,
    },
    /// As the target of a copy from source 0 into source 1.
    Copy,
}

/// A node: format, shape and operator, but no memory yet. Sources are given by index.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeSpec {
    /// Format.
    pub ty: ggml_type,
    /// Elements.
    pub ne: [i64; GGML_MAX_DIMS],
    /// Strides; `None`: contiguous.
    pub nb: Option<[usize; GGML_MAX_DIMS]>,
    /// Operator.
    pub op: ggml_op,
    /// `op_params`.
    pub params: [i32; N_PARAMS],
    /// Memory.
    pub place: Place,
    /// Name.
    pub naming: Naming,
    /// The slot of `src` that holds the node itself.
    pub self_src: Option<usize>,
    /// How many of the sources the node keeps: a rule may look at more than that.
    pub n_src: usize,
}

impl NodeSpec {
    /// A contiguous node with memory of its own and no name.
    pub fn new(op: ggml_op, ty: ggml_type, ne: [i64; GGML_MAX_DIMS]) -> Self {
        NodeSpec {
            ty,
            ne,
            nb: None,
            op,
            params: [0; N_PARAMS],
            place: Place::Own,
            naming: Naming::Blank,
            self_src: None,
            n_src: GGML_MAX_SRC,
        }
    }

    /// A contiguous node of the format and shape of `a`.
    pub fn like(op: ggml_op, a: &ggml_tensor) -> Self {
        Self::new(op, a.r#type, a.ne)
    }

    /// A node that writes over `a`, which is source `of`: same format, shape, strides and memory.
    pub fn over(op: ggml_op, a: &ggml_tensor, of: usize) -> Self {
        NodeSpec {
            nb: Some(a.nb),
            place: Place::Alias { of },
            naming: Naming::After { of, word: "view" },
            ..Self::like(op, a)
        }
    }

    /// [`NodeSpec::over`] source 0 if `inplace`, else [`NodeSpec::like`] it.
    pub fn like_or_over(op: ggml_op, a: &ggml_tensor, inplace: bool) -> Self {
        if inplace {
            Self::over(op, a, 0)
        } else {
            Self::like(op, a)
        }
    }

    /// Sets the first slots of `op_params`.
    pub fn params<const N: usize>(mut self, params: [i32; N]) -> Self {
        self.params[..N].copy_from_slice(&params);
        self
    }

    /// Sets slot `i` of `op_params` to a number.
    pub fn param_f32(mut self, i: usize, value: f32) -> Self {
        self.params[i] = value.to_bits() as i32;
        self
    }

    /// Sets slots `i` and `i + 1` of `op_params` to a size.
    pub fn param_usize(mut self, i: usize, value: usize) -> Self {
        let value = value as u64;
        let halves = if cfg!(target_endian = "little") { [value, value >> 32] } else { [value >> 32, value] };
        self.params[i] = halves[0] as u32 as i32;
        self.params[i + 1] = halves[1] as u32 as i32;
        self
    }

    /// Sets how it is named.
    pub fn named(mut self, of: usize, word: &'static str) -> Self {
        self.naming = Naming::After { of, word };
        self
    }

    /// Keeps the first `n` sources only.
    pub fn keeping(mut self, n: usize) -> Self {
        self.n_src = n;
        self
    }

    /// Strides, and bytes of memory of its own that it needs. Errors: no such format, a negative dimension, a row that is no whole
    /// number of blocks, more elements or bytes than can be counted.
    pub fn layout(&self) -> Result<([usize; GGML_MAX_DIMS], usize), Error> {
        let Some(format) = shape::format_of(self.ty) else {
            return Err(Error::shape(format!("there is no format {}", self.ty.0)));
        };
        let ne = self.ne;
        if ne.iter().any(|&n| n < 0) {
            return Err(Error::shape(format!("shape {} has a negative dimension", dims(&ne))));
        }
        let too_large = || Error::shape(format!("shape {} has more elements or bytes than can be counted", dims(&ne)));
        shape::checked_nelements(&ne).ok_or_else(too_large)?;
        let nb = match self.nb {
            Some(nb) => nb,
            None => {
                let block = format.block_size();
                if !(ne[0] as u64).is_multiple_of(block as u64) {
                    return Err(Error::shape(format!(
                        "shape {}: ne[0] must be a whole number of {block}-element blocks of {}",
                        dims(&ne),
                        format.name()
                    )));
                }
                shape::contiguous_strides(self.ty, &ne).ok_or_else(too_large)?
            }
        };
        let bytes = match self.place {
            Place::Own => shape::checked_nbytes(self.ty, &ne, &nb).ok_or_else(too_large)?,
            Place::View { .. } | Place::Alias { .. } => 0,
        };
        if bytes > isize::MAX as usize {
            return Err(too_large());
        }
        Ok((nb, bytes))
    }

    /// Whether a view with strides `nb`, `offs` bytes into storage of `room` bytes, stays inside it. A view without elements does.
    pub fn fits(&self, nb: &[usize; GGML_MAX_DIMS], offs: usize, room: usize) -> bool {
        match shape::checked_nbytes(self.ty, &self.ne, nb) {
            Some(0) => true,
            Some(bytes) => offs.checked_add(bytes).is_some_and(|end| end <= room),
            None => false,
        }
    }
}

/// A shape as error texts show it: trailing ones are left out.
pub fn dims(ne: &[i64; GGML_MAX_DIMS]) -> String {
    let n = ne.iter().rposition(|&n| n != 1).map_or(1, |i| i + 1);
    let list: Vec<String> = ne[..n].iter().map(i64::to_string).collect();
    format!("[{}]", list.join(","))
}

/// A source as error texts show it: role, name, format and shape.
pub fn show(role: &str, t: &ggml_tensor) -> String {
    let ty = ggml_oxide_types::Type::from_id(t.r#type.0).map_or("?", |f| f.name());
    format!("{role} '{}' {ty}{}", shape::name(t), dims(&t.ne))
}

/// Whether `large` is a whole multiple of `small`; of nothing, only nothing is.
pub fn divides(small: i64, large: i64) -> bool {
    match small {
        0 => large == 0,
        _ => large.checked_rem(small).unwrap_or(0) == 0,
    }
}

/// Whether `small` repeated along each dimension gives the shape `large`.
pub fn repeats(small: &ggml_tensor, large: &[i64; GGML_MAX_DIMS]) -> bool {
    if shape::is_empty(small) {
        return large.contains(&0);
    }
    (0..GGML_MAX_DIMS).all(|i| divides(small.ne[i], large[i]))
}

/// A product of dimensions; saturates, so that a shape made with it is refused and not wrapped.
pub fn product(factors: &[i64]) -> i64 {
    factors.iter().fold(1, |acc, &n| acc.saturating_mul(n))
}

/// Returns an error of the rule's unless the condition holds. A rule whose operands cannot be compared is broken.
macro_rules! require {
    ($cond:expr, $($text:tt)+) => {
        if $cond {
        } else {
            return Err($crate::error::Error::shape(format!($($text)+)));
        }
    };
}
pub(super) use require;
