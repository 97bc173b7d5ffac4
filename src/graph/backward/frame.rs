//! What a backward pass knows: tensors, gradients by hash slot, and how a node is made. The rules stand on this and hold no unsafe code.

use super::super::hash::{self, Found};
use crate::error::Error;
use crate::tensor::{self, materialise, name_bytes, set_name, Context, NodeSpec};
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::ops::Deref;
use std::ptr::NonNull;

/// A tensor that lives as long as the pass.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Tensor(NonNull<ggml_tensor>);

impl Tensor {
    /// The handle of `t`; `None` for NULL.
    ///
    /// # Safety
    /// `t` is NULL, or lives as long as the handle and its copies are used, and nothing but the pass changes it meanwhile.
    pub unsafe fn new(t: *mut ggml_tensor) -> Option<Self> {
        NonNull::new(t).map(Tensor)
    }

    /// The address.
    pub fn as_ptr(self) -> *mut ggml_tensor {
        self.0.as_ptr()
    }

    /// Source `i`.
    pub fn src(self, i: usize) -> Option<Tensor> {
        NonNull::new(self.src[i]).map(Tensor)
    }
}

impl Deref for Tensor {
    type Target = ggml_tensor;
    fn deref(&self) -> &ggml_tensor {
        // SAFETY: the promise of `new`; the pass changes names and flags only, and holds no reference while it does.
        unsafe { self.0.as_ref() }
    }
}

/// What is known about one tensor of the graph.
#[derive(Clone, Copy, Default)]
pub struct Gradient {
    /// It depends on a parameter or is one, and counts for a loss.
    pub needed: bool,
    /// The gradient as far as it is summed up.
    pub grad: Option<Tensor>,
    /// Where it is summed up in place.
    pub acc: Option<Tensor>,
}

/// What a rule says about one source.
pub enum Flow {
    /// Add this to the gradient; it may repeat to the shape of the source.
    Add(Tensor),
    /// Subtract it.
    Sub(Tensor),
    /// Add it to a window of the gradient: strides 1 to 3 and offset, in bytes of f32.
    Window(Tensor, [usize; 3], usize),
    /// The source has no effect on the result.
    Nothing,
}

/// A node with a gradient.
#[derive(Clone, Copy)]
pub struct Node {
    /// The node itself, which is the value that it computed.
    pub value: Tensor,
    /// Its gradient.
    pub grad: Tensor,
}

impl Node {
    /// Source `i`, which must be there.
    pub fn src(&self, i: usize) -> Result<Tensor, Error> {
        self.value.src(i).ok_or_else(|| Error::argument(format!("source {i} is NULL")))
    }

    /// A number in `op_params`.
    pub fn f32(&self, i: usize) -> f32 {
        f32::from_bits(self.value.op_params[i] as u32)
    }

    /// A number in `op_params`.
    pub fn i32(&self, i: usize) -> i32 {
        self.value.op_params[i]
    }
}

/// A pass under way.
pub struct Frame<'a> {
    ctx: &'a mut Context,
    set: ggml_hash_set,
    gradients: Vec<Gradient>,
    made: Vec<Tensor>,
}

impl<'a> Frame<'a> {
    /// A pass over a graph with the hash set `set`, whose arrays stay as they are meanwhile. Nodes are made in `ctx`.
    pub fn new(ctx: &'a mut Context, set: ggml_hash_set) -> Result<Self, Error> {
        let mut gradients = Vec::new();
        gradients.try_reserve_exact(set.size)?;
        gradients.resize(set.size, Gradient::default());
        Ok(Frame { ctx, set, gradients, made: Vec::new() })
    }

    /// By slot what is known, and what must be added to the graph in this order.
    pub fn done(self) -> (Vec<Gradient>, Vec<Tensor>) {
        (self.gradients, self.made)
    }

    /// What is known about `t`; `None` when the graph does not have it.
    pub fn of(&self, t: Tensor) -> Option<&Gradient> {
        // SAFETY: the set is whole, by the contract of `expand`.
        match unsafe { hash::find(&self.set, t.as_ptr()) } {
            Found::Slot(i) => self.gradients.get(i),
            _ => None,
        }
    }

    /// As [`Frame::of`], to change it.
    pub fn of_mut(&mut self, t: Tensor) -> Option<&mut Gradient> {
        // SAFETY: as above.
        match unsafe { hash::find(&self.set, t.as_ptr()) } {
            Found::Slot(i) => self.gradients.get_mut(i),
            _ => None,
        }
    }

    /// Whether the gradient of `t` is wanted.
    pub fn needs(&self, t: Tensor) -> bool {
        self.of(t).is_some_and(|g| g.needed)
    }

    /// The node that a shape rule answered, from `sources`.
    pub fn make(&mut self, spec: Result<NodeSpec, Error>, sources: &[Tensor]) -> Result<Tensor, Error> {
        let mut src = [std::ptr::null_mut(); GGML_MAX_SRC];
        for (slot, t) in src.iter_mut().zip(sources) {
            *slot = t.as_ptr();
        }
        // SAFETY: live tensors, as many as the rule looked at.
        let made = unsafe { materialise(self.ctx, &spec?, &src) }?;
        // SAFETY: made just now in a context that outlives the pass.
        unsafe { Tensor::new(made) }.ok_or_else(|| Error::memory("the context is full"))
    }

    /// A tensor without operator: f32 of the shape of `like`.
    pub fn leaf(&mut self, like: Tensor) -> Result<Tensor, Error> {
        self.make(tensor::new::leaf(GGML_TYPE_F32, &like.ne), &[])
    }

    /// Takes `grad` as the new gradient of `t`.
    fn set(&mut self, t: Tensor, grad: Tensor) -> Result<(), Error> {
        if grad.r#type != GGML_TYPE_F32 || !shape::same_shape(&grad, &t) {
            let text = format!("{} is no gradient for {}", tensor::show("", &grad), tensor::show("", &t));
            return Err(Error::new(GGML_EXT_CODE_INTERNAL, text));
        }
        self.made.try_reserve(1)?;
        self.made.push(grad);
        if let Some(gradient) = self.of_mut(t) {
            gradient.grad = Some(grad);
        }
        // an accumulator handed on keeps the name that its owner gave it
        if grad.op != GGML_OP_NONE {
            // SAFETY: live tensors, two of them; no reference into either is held.
            unsafe {
                set_name(&mut *grad.as_ptr(), [b"grad for ", name_bytes(&(*t.as_ptr()).name)]);
            }
        }
        Ok(())
    }

    /// Lets `flow` reach source `t`.
    pub fn flow(&mut self, t: Tensor, flow: Flow) -> Result<(), Error> {
        let Some(&Gradient { grad, acc, .. }) = self.of(t) else { return Ok(()) };
        let inplace = acc.is_some();
        let next = match (flow, grad) {
            (Flow::Nothing, _) => return Ok(()),
            (Flow::Add(g), None) => self.spread(g, t)?,
            (Flow::Add(g), Some(sum)) => self.binary_over(GGML_OP_ADD, sum, g, inplace)?,
            (Flow::Sub(g), None) => {
                let g = self.neg(g)?;
                self.spread(g, t)?
            }
            (Flow::Sub(g), Some(sum)) => self.binary_over(GGML_OP_SUB, sum, g, inplace)?,
            (Flow::Window(g, nb, offset), None) => {
                let zeros = self.zeros(t)?;
                self.acc(zeros, g, nb, offset, false)?
            }
            (Flow::Window(g, nb, offset), Some(sum)) => self.acc(sum, g, nb, offset, inplace)?,
        };
        self.set(t, next)
    }

    /// `g` in the shape of `t`.
    fn spread(&mut self, g: Tensor, t: Tensor) -> Result<Tensor, Error> {
        if shape::same_shape(&g, &t) {
            Ok(g)
        } else {
            self.repeat(g, t.ne)
        }
    }
}
